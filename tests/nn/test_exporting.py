"""Networks in files: loaded without their classes they compute, and learn, the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import BlockError, FormatError, ShapeError, StructureError

SCALE = np.float32([1.0, 2.0, 3.0])


class Net(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Dense(8, activation="relu"), nn.BatchNorm(), nn.Dropout(0.5)]
        self.output = nn.Dense(3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return {"scores": self.output(x) * SCALE, "features": x}


def ready(net, *example):
    mg.random.seed(1)
    net.initialize()
    net(*example)
    return net


X = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)


def test_a_loaded_network_computes_the_same(tmp_path):
    net = ready(Net(), X)
    net.export(tmp_path / "net.mg", X)
    loaded = mg.load(tmp_path / "net.mg")
    expected, found = net(X), loaded(X)
    assert list(found) == ["scores", "features"]
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


class Filter(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(4, layout="NTC")
        self.output = nn.Dense(2, flatten=False)

    def forward(self, x):
        return self.output(self.memory(x))


SEQUENCES = np.random.default_rng(0).normal(size=(3, 6, 2)).astype("float32")


@pytest.mark.parametrize(
    "example", [(SEQUENCES,), (mg.array(SEQUENCES),), ()], ids=["ndarray", "array", "none"]
)
def test_axes_that_hybridize_names_stay_free(tmp_path, example):
    net = ready(Filter(), SEQUENCES)
    net.hybridize(dynamic={"x": {1: "time"}})
    net(SEQUENCES)
    net.export(tmp_path / "net.mg", *example)
    loaded = mg.load(tmp_path / "net.mg")
    for x in (SEQUENCES, SEQUENCES[:2, :4]):
        np.testing.assert_allclose(loaded(x), net(x), rtol=1e-6)


def test_another_length_of_sequences_says_how_to_export(tmp_path):
    net = ready(Filter(), SEQUENCES)
    net.export(tmp_path / "net.mg", SEQUENCES)
    with pytest.raises(ShapeError, match="expected f32.batch,6,2., got f32.3,4,2.") as caught:
        mg.load(tmp_path / "net.mg")(SEQUENCES[:, :4])
    spec = 'mg.Spec(("batch", "axis_1", 2), "float32")'
    assert f"exported with {spec}" in str(caught.value)
    net.export(tmp_path / "net.mg", eval(spec))
    x = SEQUENCES[:, :4]
    np.testing.assert_allclose(mg.load(tmp_path / "net.mg")(x), net(x), rtol=1e-6)


def test_any_batch_size_fits_where_the_code_allows_it(tmp_path):
    net = ready(nn.Dense(3), X)
    net.export(tmp_path / "net.mg", X)
    loaded = mg.load(tmp_path / "net.mg")
    for size in (1, 4, 7):
        x = np.ones((size, 5), np.float32)
        np.testing.assert_allclose(loaded(x), net(x), rtol=1e-6)


def test_a_size_that_the_code_needs_stays(tmp_path):
    class Rows(nn.HybridBlock):
        def forward(self, x):
            return sum(row for row in x)

    net = Rows()
    net.export(tmp_path / "net.mg", X)
    loaded = mg.load(tmp_path / "net.mg")
    np.testing.assert_array_equal(loaded(X), net(X))
    with pytest.raises(ValueError, match="expected"):
        loaded(X[:2])


def test_without_an_example_the_last_call_is_one(tmp_path):
    net = ready(nn.Dense(3), X)
    with pytest.raises(FormatError, match="has not been traced yet"):
        net.export(tmp_path / "net.mg")
    net.hybridize()
    net(X)
    net.export(tmp_path / "net.mg")
    np.testing.assert_allclose(mg.load(tmp_path / "net.mg")(X), net(X), rtol=1e-6)


def test_several_arguments_and_structures(tmp_path):
    class Pair(nn.HybridBlock):
        def forward(self, x, state):
            h, c = state
            return x * h + c, [h, c]

    net = Pair()
    net.export(tmp_path / "net.mg", X, [X, X])
    y, (h, _) = mg.load(tmp_path / "net.mg")(X, [X, X + 1])
    np.testing.assert_array_equal(y, X * X + (X + 1))
    np.testing.assert_array_equal(h, X)


def test_it_is_exported_as_it_predicts_also_while_recording(tmp_path):
    net = ready(Net(), X)
    with autograd.record():
        net.export(tmp_path / "net.mg", X)
    np.testing.assert_array_equal(mg.load(tmp_path / "net.mg")(X)["features"], net(X)["features"])


def test_a_loaded_network_learns_on(tmp_path):
    net = ready(nn.HybridSequential(nn.Dense(4, activation="tanh"), nn.Dense(1)), X)
    net.export(tmp_path / "net.mg", X)
    loaded = mg.load(tmp_path / "net.mg")
    target = np.float32([[0.0], [1.0], [0.0], [1.0]])
    gradients = []
    for network in (net, loaded):
        loss_of = nn.L2Loss()
        trainer = nn.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
        with autograd.record():
            loss = loss_of(network(mg.array(X)), mg.array(target))
        loss.backward()
        parameters = network.collect_params()
        gradients.append({name: p.grad().asnumpy() for name, p in parameters.items()})
        trainer.step(4)
    expected, found = gradients
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(loaded(X), net(X), rtol=1e-5, atol=1e-7)


def test_what_is_not_learned_stays_so(tmp_path):
    net = ready(Net(), X)
    net.export(tmp_path / "net.mg", X)
    kinds = {n: p.grad_req for n, p in mg.load(tmp_path / "net.mg").collect_params().items()}
    assert kinds["layers.0.weight"] == "write" and kinds["layers.1.running_mean"] == "null"
    assert kinds["SCALE"] == "null"


def test_a_new_process_needs_no_class(tmp_path):
    net = ready(Net(), X)
    net.export(tmp_path / "net.mg", X)
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, numpy as np, minigraph as mg\n"
        "net = mg.load(sys.argv[1] + '/net.mg')\n"
        "np.save(sys.argv[1] + '/y.npy', net(np.load(sys.argv[1] + '/x.npy'))['scores'])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), net(X)["scores"], rtol=1e-5)


def test_shapes_are_computed_from_the_size_of_the_batch(tmp_path: Path):
    net = nn.HybridSequential(nn.Flatten(), nn.Dense(2)).initialize()
    x = np.ones((3, 4, 5), "float32")
    expected = net(x)
    net.export(tmp_path / "net.mg", x)
    loaded = mg.load(tmp_path / "net.mg")
    np.testing.assert_allclose(loaded(x), expected, rtol=1e-6)
    np.testing.assert_allclose(loaded(x[:1]), expected[:1], rtol=1e-6)
    again = mg.jit(lambda x: loaded(x), dynamic={"x": {0: "rows"}})
    np.testing.assert_allclose(again(x), expected, rtol=1e-6)
    np.testing.assert_allclose(again(x[:2]), expected[:2], rtol=1e-6)
    assert len(again.cache_info()) == 1


class Powers(nn.HybridBlock):
    def forward(self, x: Any, count: int, factor: float = 1.0, negate: bool = False) -> Any:
        for _ in range(count):
            x = x * 2
        return -x * factor if negate else x * factor


@pytest.mark.filterwarnings("ignore:SymbolBlock. the argument")
def test_a_number_whose_value_the_code_needs(tmp_path: Path):
    net, file = Powers(), tmp_path / "net.mg"
    with pytest.raises(FormatError, match="the value of count was needed") as caught:
        net.export(file, X, 3)
    assert "static=" in str(caught.value) and not file.exists()
    net.hybridize(static=["count"])
    net.export(file, X, 3, 2.0)
    loaded = mg.load(file)
    for active in (True, False):
        loaded.hybridize(active)
        assert np.array_equal(loaded(X, 3, 5.0), X * 40)
        assert np.array_equal(loaded(X, factor=5.0), X * 40)
        for wrong in [(X, 4, 5.0), (X, 3, 5.0, True), (X, X, 5.0), (X, 3, None)]:
            with pytest.raises(StructureError, match="expected .x, 3, factor, False., got"):
                loaded(*wrong)


def test_a_plain_block_is_no_program(tmp_path: Path):
    with pytest.raises(BlockError, match="Sequential is a plain Block") as caught:
        nn.Sequential(nn.Dense(2)).export(tmp_path / "net.mg", X)
    assert "HybridSequential" in str(caught.value)
