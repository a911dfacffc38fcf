"""`mg.nd` and `mg.sym`, and the two kinds of `F` that `hybrid_forward` is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import nn
from minigraph.errors import BlockError, UnsupportedError

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def test_they_are_two_modules():
    assert mg.nd is not mg.sym
    assert repr(mg.nd) == "<module 'minigraph.nd'>" and repr(mg.sym) == "<module 'minigraph.sym'>"


def test_nd_computes_at_once_and_gives_arrays():
    assert type(mg.nd.ones((2, 3))) is mg.Array
    assert type(mg.nd.exp(X)) is mg.Array
    assert np.array_equal(mg.nd.relu(mg.nd.array(X)), np.maximum(X, 0))
    assert np.array_equal(mg.nd.linalg.norm(X), np.linalg.norm(X))
    assert all(type(part) is mg.Array for part in mg.nd.split(np.arange(4), 2))
    assert mg.nd.pi == np.pi and mg.nd.float32 is np.float32 and mg.nd.newaxis is None
    assert mg.nd.np is mg.nd and mg.nd.npx is mg.nd
    assert mg.nd.random is mg.random


def test_sym_records_and_nothing_else():
    with pytest.raises(UnsupportedError, match=r"mg\.sym\.exp records") as caught:
        mg.sym.exp(X)
    assert "mg.nd.exp" in str(caught.value)

    @mg.jit
    def f(x: Any) -> Any:
        return mg.sym.softmax(x) + mg.sym.ones(3) * mg.nd.ones(3)

    assert np.allclose(f(X), nn.functional.softmax(X) + 1)


def test_a_name_that_is_none():
    with pytest.raises(AttributeError, match=r"minigraph\.nd has no 'sofmax'; .*'softmax'"):
        _ = mg.nd.sofmax
    assert not hasattr(mg.sym, "no_such_function")
    assert {"relu", "exp", "linalg"} <= set(dir(mg.nd))


class Gated(nn.HybridBlock):
    """Gluon's own way of writing it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Dense(3)
        self.scale = nn.Parameter("scale", 3, init="ones")

    def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
        return F.relu(self.inner(x)) * scale + F.npx.softmax(x) + F.np.ones(3)


def test_hybrid_forward_is_given_functions_and_its_own_parameters():
    net = Gated()
    net.initialize()
    expected = np.maximum(net.inner(X), 0) + nn.functional.softmax(X) + 1
    assert np.allclose(net(X), expected)
    net.hybridize()
    assert np.allclose(net(X), expected, atol=1e-6)


def test_print_of_f_shows_which_and_only_while_tracing(capsys: pytest.CaptureFixture[str]):
    class Net(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Dense(4)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            print("F:", F)
            print("x:", x)
            return F.relu(self.hidden(x))

    net = Net()
    net.initialize()
    printed = []
    for hybridized in (False, False, True, True, True):
        if hybridized and not printed[2:]:
            net.hybridize()
        net(X)
        printed.append(capsys.readouterr().out)
    assert [text.count("F:") for text in printed] == [1, 1, 1, 0, 0]
    assert printed[0].startswith(f"F: <module 'minigraph.nd'>\nx: {X}")
    assert printed[2].startswith("F: <module 'minigraph.sym'>\nx: ")
    assert "f32[2,3]" in printed[2] and str(X) not in printed[2]


def test_both_forwards_in_one_class_are_refused():
    with pytest.raises(TypeError, match="Both defines both forward and hybrid_forward") as caught:

        class Both(nn.HybridBlock):
            def forward(self, x: Any) -> Any:
                return x

            def hybrid_forward(self, F: Any, x: Any) -> Any:
                return x

    assert isinstance(caught.value, BlockError)


def test_the_nearest_class_decides_which_forward_runs():
    class Old(nn.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.exp(x)

    class New(Old):
        def forward(self, x: Any) -> Any:
            return np.sin(x)

    class Older(New):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.cos(x)

    class Same(Older):
        pass

    for kind, function in ((Old, np.exp), (New, np.sin), (Older, np.cos), (Same, np.cos)):
        net = kind()
        assert np.array_equal(net(X), function(X))
        net.hybridize()
        assert np.allclose(net(X), function(X), atol=1e-6)


@pytest.mark.parametrize("use_bias", [True, False])
def test_a_parameter_that_a_block_may_do_without(use_bias: bool):
    class Linear(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter("weight", (2, 3), init="ones")
            self.bias = nn.Parameter("bias", 2, init="ones") if use_bias else None

        def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
            y = F.dot(x, weight.T)
            return y if bias is None else y + bias

    net = Linear().initialize()
    x = np.ones((1, 3), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(net(x), np.full((1, 2), 4.0 if use_bias else 3.0))
        net.hybridize()
