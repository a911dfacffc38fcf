"""Blocks around a graph."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import ParameterError, ShapeError, StructureError

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


class Net(nn.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Dense(4, activation="tanh")
        self.output = nn.Dense(2)

    def forward(self, x: Any, states: Any) -> Any:
        return {"y": self.output(self.hidden(x)), "states": [states[0] + 1, states[1]]}


def made(net: Any, *args: Any) -> nn.SymbolBlock:
    net.initialize()
    net.hybridize()
    net(*args)
    return nn.SymbolBlock(net.graph("traced"), net.collect_params())


@pytest.mark.parametrize("active", [True, False])
def test_it_computes_what_the_network_did(active: bool):
    net = Net()
    block = made(net, X, [X, X])
    block.hybridize(active)
    for found, expected in ((block(X, [X, X]), net(X, [X, X])),):
        assert np.allclose(found["y"], expected["y"], atol=1e-6)
        assert np.array_equal(found["states"][0], X + 1)
    assert type(block(mg.array(X), [X, X])["y"]) is mg.Array
    assert np.allclose(block(states=[X, X], x=X)["y"], net(X, [X, X])["y"], atol=1e-6)
    assert list(block.collect_params()) == list(made(Net(), X, [X, X]).collect_params())
    assert repr(block).startswith("SymbolBlock(Net, ")


@pytest.mark.parametrize("active", [True, False])
def test_it_learns(active: bool):
    net = Net()
    block = made(net, X, [X, X])
    block.hybridize(active)
    gradients = []
    for each in (net, block):
        net.zero_grad()
        x = mg.array(X)
        x.attach_grad()
        with autograd.record():
            loss = (each(x, [X, X])["y"] ** 2).sum()
        loss.backward()
        found = [p.grad().asnumpy() for p in net.collect_params().values()]
        gradients.append([x.grad.asnumpy(), *found])
    for mine, expected in zip(*gradients, strict=True):
        assert np.allclose(mine, expected, atol=1e-5) and np.any(expected)


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("recording", [True, False])
def test_running_statistics_and_draws(active: bool, recording: bool):
    net = nn.HybridSequential(nn.BatchNorm(), nn.Dropout(0.5))
    net.initialize()
    x = np.repeat(X, 20, axis=0)
    net(x)
    net.hybridize()
    with autograd.train_mode():
        net(x)
    block = nn.SymbolBlock(net.graph("traced"), net.collect_params())
    block.hybridize(active)
    before = net[0].running_mean.data().asnumpy()
    with autograd.record() if recording else autograd.train_mode():
        first, second = block(x), block(x)
    assert not np.array_equal(first, second)
    assert not np.array_equal(net[0].running_mean.data(), before)


def test_a_child_of_another_block():
    net = nn.HybridSequential(made(nn.HybridSequential(nn.Dense(3)), X), nn.Dense(1))
    net[1].initialize()
    expected = net(X)
    net.hybridize()
    assert np.allclose(net(X), expected, atol=1e-6) and expected.shape == (2, 1)


def test_what_does_not_fit_is_refused():
    block = made(Net(), X, [X, X])
    with pytest.raises(StructureError, match=r"expected \(x, \[states.*\]\), got \(x, states\)"):
        block(X, X)
    with pytest.raises(StructureError, match=r"expected \(x, .*got \(data, "):
        block(data=X, states=[X, X])
    with pytest.raises(ShapeError, match=r"argument x of Net: expected f32\[2,3\], got f32\[2,2\]"):
        block(X[:, :2], [X, X])
    with pytest.raises(ShapeError, match=r"got f64\[2,3\](.|\n)*x\.astype..float32"):
        block(X.astype(np.float64), [X, X])
    graph = block._graph
    with pytest.raises(ParameterError, match=r"captures hidden\.\w+, for which no parameter"):
        nn.SymbolBlock(graph, {})
    wrong = {**block.collect_params(), "output.bias": nn.Parameter("bias", 5)}
    with pytest.raises(ParameterError, match=r"output\.bias has shape \(5,\), .* takes \(2,\)"):
        nn.SymbolBlock(graph, wrong)


def test_it_is_pickled_and_copied():
    block = made(nn.HybridSequential(nn.Dense(3), nn.BatchNorm()), X)
    with autograd.train_mode():
        many = np.ones((9, 9), "float32")
        drawing = made(nn.Dropout(0.5), many)  # its graph captures the generator
    for other in (copy.deepcopy(drawing), pickle.loads(pickle.dumps(drawing))):
        assert not np.array_equal(other(many), other(many))
    expected = block(X)
    for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        assert np.array_equal(other(X), expected)
        other.collect_params()["0.bias"].set_data(np.ones(3))
        assert not np.array_equal(other(X), expected)
    assert np.array_equal(block(X), expected)
