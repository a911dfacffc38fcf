"""Containers: rows of blocks, blocks side by side, functions as blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import nn
from minigraph.errors import ChildError, OptionError

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
ROWS = (nn.Sequential, nn.HybridSequential)


def layers(count: int) -> list[nn.Block]:
    return [nn.Dense(index + 1) for index in range(count)]


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_is_a_sequence(kind: Any):
    blocks = layers(4)
    net = kind()
    assert net.add(*blocks[:2]) is net
    net.add(blocks[2])
    assert len(net) == 3 and list(net) == blocks[:3]
    assert net[0] is blocks[0] and net[-1] is blocks[2]
    net[1] = blocks[3]
    assert list(net) == [blocks[0], blocks[3], blocks[2]]
    assert list(net.collect_params())[2] == "1.weight"
    del net[0]
    assert list(net) == [blocks[3], blocks[2]]
    with pytest.raises(IndexError):
        net[5]
    with pytest.raises(IndexError):
        net[5] = blocks[0]


@pytest.mark.parametrize("kind", ROWS)
def test_a_slice_is_a_row_of_the_same_blocks(kind: Any):
    net = kind(*layers(4))
    net.initialize()
    part = net[1:3]
    assert type(part) is kind and list(part) == list(net)[1:3]
    x = net[0](X)
    assert np.array_equal(part(x), net[2](net[1](x)))
    del net[1:]
    assert len(net) == 1 and len(part) == 2


@pytest.mark.parametrize("kind", ROWS)
def test_a_tuple_is_several_arguments_of_the_next(kind: Any):
    class Split(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x, x + 1

    class Join(nn.HybridBlock):
        def forward(self, x: Any, y: Any) -> Any:
            return x * y

    assert np.array_equal(kind(Split(), Join())(X), X * (X + 1))
    first, second = kind(Split())(X)
    assert np.array_equal(second, first + 1)
    assert np.array_equal(kind(Join(), nn.Flatten())(X, X), X * X)


def test_an_empty_row_returns_what_it_is_given():
    assert np.array_equal(nn.Sequential()(X), X)


def test_a_row_that_adds_its_own_blocks():
    class Net(nn.HybridSequential):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(shape=1)
            self.add(nn.Dense(2))

    net = Net()
    assert list(net.collect_params()) == ["scale", "0.weight", "0.bias"]
    assert type(net[:1]) is Net


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("wrong", [np.tanh, 3, None, nn.Parameter("p", 1)])
def test_only_blocks_are_put_in_a_row(kind: Any, wrong: Any):
    with pytest.raises(OptionError, match=f"{kind.__name__} holds blocks, nothing of type "):
        kind().add(wrong)


def test_a_plain_block_in_a_hybrid_one_is_refused():
    net = nn.HybridSequential(nn.Dense(2))
    with pytest.raises(ValueError, match="Children of HybridBlock must also be HybridBlock") as e:
        net.add(nn.Sequential())
    assert isinstance(e.value, ChildError)
    assert "Sequential is a plain Block" in str(e.value) and "HybridSequential" in str(e.value)
    assert len(net) == 1
    with pytest.raises(ChildError):
        net[0] = nn.Sequential()

    class Net(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [nn.Dense(1), {"inner": nn.Lambda(np.tanh)}]

    with pytest.raises(ChildError, match="Lambda is a plain Block"):
        Net()


@pytest.mark.parametrize("kind", [nn.Concurrent, nn.HybridConcurrent])
def test_blocks_side_by_side(kind: Any):
    net = kind(*layers(3))
    net.initialize()
    assert net(X).shape == (2, 6)
    assert np.array_equal(net(X)[:, :1], net[0](X))
    rows = kind(nn.Dense(2), nn.Dense(2), axis=0)
    rows.initialize()
    assert rows(X).shape == (4, 2)
    assert rows[:1].axis == 0


@pytest.mark.parametrize("kind", [nn.Lambda, nn.HybridLambda])
def test_functions_as_blocks(kind: Any):
    assert np.array_equal(kind("relu")(X), np.maximum(X, 0))
    assert np.array_equal(kind(np.tanh)(X), np.tanh(X))
    assert np.array_equal(kind(lambda x, y: x - y)(X, X), np.zeros_like(X))
    assert repr(kind("relu")) == f"{kind.__name__}(relu)"
    assert repr(kind(np.tanh)) == f"{kind.__name__}(tanh)"
    assert type(kind("relu")(mg.array(X))) is mg.Array
    with pytest.raises(AttributeError, match="did you mean 'relu'"):
        kind("reluu")
    with pytest.raises(OptionError, match="takes a function or the name of one, not a int"):
        kind(3)


def test_a_class_in_place_of_a_block():
    with pytest.raises(OptionError, match=r"a block of this class: nn\.Dense\(\.\.\.\)"):
        nn.HybridSequential().add(nn.Dense)
