"""Blocks in traces and hybridized: equal to Python, and never stale."""

from __future__ import annotations

import dataclasses
import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import (
    OptionError,
    RetraceWarning,
    SignatureError,
    StaleError,
    StateError,
    StructureError,
)
from minigraph.jit import HybridFunction

X = np.array([[1.0, -2.0, 0.5], [0.5, 3.0, 2.0]], np.float32)
FACTOR = 2.0


class Inner(nn.HybridBlock):
    def __init__(self, units: int = 4) -> None:
        super().__init__()
        self.dense = nn.Dense(units, in_units=3)
        self.rate = 0.5

    def forward(self, x: Any) -> Any:
        return self.dense(x) * self.rate


@dataclasses.dataclass
class Options:
    shift: float


class Net(nn.HybridBlock):
    sign = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.layers = [nn.Dense(3, in_units=4), nn.Dense(2, in_units=3)]
        self.config = {"power": 2, "names": ["a"]}
        self.table = np.array([1.0, 2.0], np.float32)
        self.names = {"a", "b"}
        self.options = Options(1.0)
        self.activation = np.tanh
        self.bias = nn.Parameter("bias", shape=(2,))

    def forward(self, x: Any) -> Any:
        x = self.inner(x)
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.scaled(x) + self.bias.data()

    def scaled(self, x: Any) -> Any:
        x = x ** self.config["power"] * len(self.names) - self.options.shift
        return x * self.table * FACTOR * self.sign


def made() -> Net:
    net = Net()
    net.initialize()
    return net


def agree(hybrid: Any, net: Any, x: Any = X) -> None:
    """Compiled, eager, and jitted from outside."""
    found, expected = hybrid(x), net.call_in_python((x,), {})
    assert type(found) is type(expected)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)


def replace_child(net: Net) -> None:
    net.inner = Inner()
    net.inner.initialize()


def replace_nested(net: Net) -> None:
    net.inner.dense = nn.Dense(4, in_units=3, activation="relu")
    net.inner.dense.initialize()


def change_list(net: Net) -> None:
    net.layers[1] = nn.Dense(2, in_units=3, use_bias=False)
    net.layers[1].initialize()


def grow_list(net: Net) -> None:
    net.layers.append(nn.Dense(2, in_units=2))
    net.layers[2].initialize()


def cast(net: Net) -> None:
    net.cast("float64")


def set_attribute(owner: str, name: str, value: Any) -> Callable[[Net], None]:
    def change(net: Any) -> None:
        for part in filter(None, owner.split(".")):
            net = getattr(net, part)
        setattr(net, name, value)

    return change


CHANGES: dict[str, tuple[Callable[[Net], None], str]] = {
    "an attribute of a child": (set_attribute("inner", "rate", 0.25), "self.inner.rate is 0.25"),
    "an attribute that is called": (set_attribute("", "activation", np.sin), "activation"),
    "an attribute of the instance before that of the class": (
        set_attribute("", "sign", -1.0),
        "self.sign is -1.0, was 1.0",
    ),
    "a child": (replace_child, "child 'inner' was replaced"),
    "a nested child": (replace_nested, "child 'dense' of self.inner was replaced"),
    "a list of children": (change_list, "self.layers"),
    "a longer list of children": (grow_list, "self.layers"),
    "a dict": (lambda net: net.config.update(power=3), "self.config['power'] is 3, was 2"),
    "a set": (lambda net: net.names.add("c"), "self.names is {"),
    "an object": (lambda net: setattr(net.options, "shift", 2.0), "self.options.shift is 2.0"),
    "an array": (set_attribute("", "table", np.ones((2, 1), np.float32)), "self.table"),
    "all dtypes": (cast, "float64"),
    "the class of a child": (
        lambda net: setattr(net.inner, "__class__", Shifted),
        "self.inner is a Shifted, was a Inner",
    ),
    "a method of the instance": (
        lambda net: setattr(net, "scaled", lambda x: x - 1),
        "self.scaled",
    ),
}


class Shifted(Inner):
    def forward(self, x: Any) -> Any:
        return super().forward(x) + 1


@pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES.keys())
def test_never_stale(change: Callable[[Net], None], reason: str) -> None:
    net = made()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    jitted = mg.jit(lambda x: net(x))
    agree(jitted, net)
    change(net)
    agree(hybrid, net)
    agree(jitted, net)
    (found,) = hybrid.cache_info().retraces
    assert found.startswith("Net: retraced because ") and reason in found
    assert len(jitted.cache_info()) == 2
    agree(hybrid, net)
    assert len(hybrid.cache_info()) == 2


def test_never_stale_globals_and_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    net = made()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    agree(hybrid, net)
    monkeypatch.setattr(Net, "sign", -2.0)
    agree(hybrid, net)
    monkeypatch.setattr(Inner, "forward", lambda self, x: self.dense(x) - self.rate)
    agree(hybrid, net)
    monkeypatch.setattr(nn.Dense, "forward", lambda self, x: x @ self.weight.data().T)
    agree(hybrid, net)
    reasons = hybrid.cache_info().retraces
    assert [reason.split("because ")[1].split()[0] for reason in reasons] == [
        "FACTOR",
        "self.sign",
        "self.inner.forward",
        "self.inner.dense.forward",
    ]


def test_closures() -> None:
    scale = 2.0

    class Closed(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x * scale

    net = Closed()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    scale = 5.0
    agree(hybrid, net)
    assert hybrid.cache_info().retraces == ["Closed: retraced because scale is 5.0, was 2.0"]


def test_numbers_are_read_at_each_call() -> None:
    net = made()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    for parameter in net.collect_params().values():
        parameter.set_data(parameter.data().asnumpy() + 0.1)
    agree(hybrid, net)
    net.initialize(force_reinit=True)
    agree(hybrid, net)
    net.table[...] = 5.0
    agree(hybrid, net)
    assert len(hybrid.cache_info()) == 1


def test_a_change_that_changes_nothing() -> None:
    """The version is another one, all that was read is the same: no retrace, one look only."""
    net = made()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    net.unused = 3
    net.inner.rate = 0.5
    agree(hybrid, net)
    assert len(hybrid.cache_info()) == 1


def test_an_array_of_the_same_type_is_bound_anew() -> None:
    net = made()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    net.cast("float64")
    agree(hybrid, net)
    net.cast("float32")  # other arrays than at first, of the first types
    agree(hybrid, net)
    assert len(hybrid.cache_info()) == 2


def test_the_version_is_one_look() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=4))
    net.initialize()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    assert "_version == " in hybrid.source("guard")
    assert hybrid.source("guard").count("\n") == 2  # of x, of what else is given, and of the block


def test_modes_have_entries_of_their_own() -> None:
    class Mode(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x + (1 if autograd.is_training() else 2) + (4 if autograd.is_recording() else 0)

    net = Mode()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    with autograd.train_mode():
        agree(hybrid, net)
    with autograd.record():
        agree(hybrid, net)
    with autograd.record(train_mode=False):
        agree(hybrid, net)
    agree(hybrid, net)
    assert len(hybrid.cache_info()) == 4
    assert "mode" not in hybrid.source("guard")


def test_shapes_have_entries_of_their_own() -> None:
    net = made()
    hybrid = HybridFunction(net)
    for count in (1, 2, 3, 2, 1):
        agree(hybrid, net, np.ones((count, 3), np.float32))
    assert len(hybrid.cache_info()) == 3
    assert hybrid.cache_info().retraces[0].startswith("x is ndarray float32(2, 3)")


def test_gradients() -> None:
    net = made()
    hybrid = HybridFunction(net)
    found: list[dict[str, Any]] = []
    for run in (net, hybrid):
        x = mg.array(X)
        x.attach_grad()
        with autograd.record():
            loss = (run(x) ** 2).sum()
        loss.backward()
        grads = {name: p.grad().asnumpy() for name, p in net.collect_params().items()}
        found.append({**grads, "x": x.grad.asnumpy()})
    for name, gradient in found[0].items():
        np.testing.assert_allclose(found[1][name], gradient, rtol=1e-4, atol=1e-6, err_msg=name)
    assert "matmul" in str(hybrid.graph("joint"))


def test_frozen_parameters_have_no_gradient() -> None:
    net = made()
    hybrid = HybridFunction(net)
    net.inner.collect_params().setattr("grad_req", "null")
    with autograd.record():
        loss = hybrid(mg.array(X)).sum()
    loss.backward()
    assert net.layers[0].weight.grad().asnumpy().any()
    net.inner.collect_params().setattr("grad_req", "write")
    with autograd.record():
        loss = hybrid(mg.array(X)).sum()
    loss.backward()
    assert net.inner.dense.weight.grad().asnumpy().any()


def test_on_stale() -> None:
    net = made()
    hybrid = HybridFunction(net, {"on_stale": "error"})
    hybrid(X)
    hybrid(np.ones((1, 3), np.float32))  # another shape is no change
    net.inner.rate = 0.25
    with pytest.raises(StaleError, match=r"self\.inner\.rate is 0\.25, was 0\.5"):
        hybrid(X)
    net.inner.rate = 0.5
    hybrid(X)
    hybrid = HybridFunction(net, {"on_stale": "warn"})
    hybrid(X)
    net.inner.rate = 0.25
    with pytest.warns(RetraceWarning, match=r"Net: retraced because self\.inner\.rate is 0\.25"):
        agree(hybrid, net)


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="there is no option 'statc_alloc'"):
        HybridFunction(made(), {"statc_alloc": True})
    with pytest.raises(OptionError, match="there is no on_stale 'ignore'"):
        HybridFunction(made(), {"on_stale": "ignore"})
    with pytest.raises(OptionError, match="backend"):
        HybridFunction(made(), {"backend": "nmba"})


def test_static_shape_refuses_others() -> None:
    net = made()
    hybrid = HybridFunction(net, {"static_shape": True})
    agree(hybrid, net)
    with pytest.raises(SignatureError, match=r"x must be f32\[2,3\], as in the first call"):
        hybrid(np.ones((1, 3), np.float32))


class Recurrent(nn.HybridBlock):
    def forward(self, x: Any, state: Any, extra: Any = None) -> Any:
        h, c = state
        if extra is not None:
            raise ValueError("no extra")
        return h * x + c


def test_structures_of_arguments() -> None:
    hybrid = HybridFunction(Recurrent())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert hybrid(X, [X, X]).shape == (2, 3)
        assert hybrid(X, (X, X)).shape == (2, 3)  # Python takes it, and so do we
    with pytest.raises(StructureError) as caught:
        hybrid(X, np.ones(3))
    assert "expected (x, (state[0], state[1]), None), got (x, state, None)" in str(caught.value)
    with pytest.raises(ValueError, match="no extra"):
        hybrid(X, [X, X], X)  # given or not: that is no structure


def test_other_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    net = made()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    monkeypatch.setattr(Net, "forward", lambda self, x, y=1.0: self.inner(x) * y)
    np.testing.assert_allclose(hybrid(X, 2.0), net.inner(X) * 2.0, rtol=1e-5)
    np.testing.assert_allclose(hybrid(X), net.inner(X), rtol=1e-5)
    np.testing.assert_allclose(hybrid(y=3.0, x=X), net.inner(X) * 3.0, rtol=1e-5)
    assert len(hybrid.cache_info()) == 1
    with pytest.raises(TypeError, match="too many|takes"):
        hybrid(X, X, X)


def test_what_is_not_used_is_told_once() -> None:
    class Careless(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Dense(2, in_units=3)
            self.idle = nn.Dense(2, in_units=3, use_bias=False)

        def forward(self, x: Any, mask: Any) -> Any:
            return self.used(x)

    net = Careless()
    net.initialize()
    hybrid = HybridFunction(net)
    with pytest.warns(UserWarning) as told:
        hybrid(X, X)
    assert sorted(str(each.message) for each in told) == [
        "Careless: the argument mask is not used",
        "Careless: the parameter self.idle.weight is not used",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hybrid(X[:1], X)


def test_attributes_are_not_assigned_in_forward() -> None:
    class Counting(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x

    with pytest.raises(StateError, match=r"the attribute self\.calls was assigned while tracing"):
        HybridFunction(Counting())(X)


def test_shared_blocks_and_parameters() -> None:
    class Tied(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Dense(3, in_units=3)
            self.second = self.first

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    net = Tied()
    net.initialize()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    assert len(hybrid.graph("traced").inputs) == 3
    net.second = nn.Dense(3, in_units=3)
    net.second.initialize()
    agree(hybrid, net)


def test_blocks_reached_in_several_ways() -> None:
    net = made()
    inner = net.inner
    jitted = mg.jit(lambda x: net(x), verify=True)
    both = mg.jit(lambda x: inner(x).sum() + net(x))
    agree(jitted, net)
    expected = inner(X).sum() + net(X)
    np.testing.assert_allclose(both(X), expected, rtol=1e-5)
    inner.rate = 3.0
    agree(jitted, net)
    np.testing.assert_allclose(both(X), inner(X).sum() + net(X), rtol=1e-5)
    assert "inner.rate is 3.0" in both.cache_info().retraces[0]


def test_a_block_as_an_argument() -> None:
    jitted = mg.jit(lambda block, x: block(x))
    one, two = made(), made()
    for net in (one, two, one, two):
        np.testing.assert_allclose(jitted(net, X), net(X), rtol=1e-5)
    assert len(jitted.cache_info()) == 2


class Mixin:
    factor = 2.0

    def twice(self, x: Any) -> Any:
        return x * self.factor


class Mixed(Mixin, nn.HybridBlock):
    def forward(self, x: Any) -> Any:
        return self.twice(x)


def test_bases_that_are_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not tell when they change, so they are looked at in each call."""
    net = Mixed()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    monkeypatch.setattr(Mixin, "factor", 3.0)
    agree(hybrid, net)
    monkeypatch.setattr(Mixin, "twice", lambda self, x: x - self.factor)
    agree(hybrid, net)
    net.factor = 5.0
    agree(hybrid, net)
    assert len(hybrid.cache_info()) == 4


class Dynamic(nn.HybridBlock):
    table: dict[str, float] = {"rate": 2.0}  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name not in type(self).table:
            raise AttributeError(name)
        return type(self).table[name]

    @property
    def double(self) -> float:
        return self.rate * FACTOR

    def forward(self, x: Any) -> Any:
        return x * self.double + self.rate


def test_attributes_that_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Dynamic()
    hybrid = HybridFunction(net)
    agree(hybrid, net)
    monkeypatch.setitem(Dynamic.table, "rate", 3.0)
    agree(hybrid, net)
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    agree(hybrid, net)
    assert len(hybrid.cache_info()) == 3


def test_a_block_as_an_argument_that_changes() -> None:
    jitted = mg.jit(lambda block, x: block(x))
    net = made()
    agree(lambda x: jitted(net, x), net)
    net.unused = 1
    agree(lambda x: jitted(net, x), net)
    assert len(jitted.cache_info()) == 1
    net.inner.rate = 7.0
    agree(lambda x: jitted(net, x), net)
    assert jitted.cache_info().retraces == ["block.inner.rate is 7.0, was 0.5"]


def test_hooks_that_stay_are_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    net = made()
    net.inner.register_forward_hook(lambda block, args, y: print("inner", y.sum()))
    hybrid = HybridFunction(net)
    hybrid(X)
    net.inner.unused = 1
    hybrid(X)
    assert len(hybrid.cache_info()) == 1
    assert capsys.readouterr().out.count("inner") == 2


def test_entries_of_blocks_that_are_gone_go() -> None:
    jitted = mg.jit(lambda block, x: block(x))
    for _ in range(3):
        jitted(made(), X)
        gc.collect()
    assert len(jitted.cache_info()) == 1


def test_nothing_is_kept_alive() -> None:
    net = made()
    hybrid: Any = HybridFunction(net)
    hybrid(X)
    with autograd.record():
        hybrid(mg.array(X)).sum().backward()
    dead = weakref.ref(net), weakref.ref(net.inner.dense.weight)
    del net, hybrid
    gc.collect()
    assert [ref() for ref in dead] == [None, None]


def test_random_numbers_are_fresh() -> None:
    class Noisy(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x + mg.random.generator().normal(size=x.shape)

    net = Noisy()
    hybrid = HybridFunction(net)
    mg.random.seed(7)
    found = [hybrid(X), hybrid(X)]
    mg.random.seed(7)
    for one in found:
        np.testing.assert_array_equal(one, net(X))
    assert not np.array_equal(*found)
    assert len(hybrid.cache_info()) == 1


def test_hooks_are_traced(capsys: pytest.CaptureFixture[str]) -> None:
    net = made()
    hybrid = HybridFunction(net)
    hybrid(X)
    handle = net.inner.register_forward_hook(
        lambda block, args, result: print("inner", result.sum())
    )
    net.call_in_python((X,), {})
    expected = capsys.readouterr().out
    for _ in range(2):
        hybrid(X)
        assert capsys.readouterr().out.split()[0] == expected.split()[0] == "inner"
    handle.detach()
    hybrid(X)
    assert capsys.readouterr().out == ""


def test_print_in_hybrid_forward_runs_while_tracing(capsys: pytest.CaptureFixture[str]) -> None:
    class Old(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(2, in_units=3)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            print("in", x)
            return self.dense(x)

    net = Old()
    net.initialize()
    hybrid = HybridFunction(net)
    printed: list[int] = []
    for run in (net, hybrid, hybrid, hybrid):
        run(X)
        printed.append(capsys.readouterr().out.count("in "))
    assert printed == [1, 1, 0, 0]


def test_parameters_that_wait_for_a_shape() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.Dropout(0.5), nn.Dense(2))
    net.initialize()
    hybrid = HybridFunction(net)
    found = hybrid(X)
    assert net[0].weight.shape == (4, 3)
    np.testing.assert_allclose(found, net(X), rtol=1e-5)
    assert len(hybrid.cache_info()) == 1


def test_running_statistics_are_written() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3), nn.BatchNorm(in_channels=4))
    net.initialize()
    twin = nn.HybridSequential()
    twin.add(nn.Dense(4, in_units=3), nn.BatchNorm(in_channels=4))
    twin.initialize()
    for one, other in zip(
        net.collect_params().values(), twin.collect_params().values(), strict=True
    ):
        other.set_data(one.data())
    hybrid = HybridFunction(net)
    for _ in range(2):
        with autograd.record():
            (hybrid(mg.array(X)) ** 3).sum().backward()
            (twin(mg.array(X)) ** 3).sum().backward()
    for (name, one), other in zip(
        net.collect_params().items(), twin.collect_params().values(), strict=True
    ):
        np.testing.assert_allclose(one.data(), other.data(), rtol=1e-5, err_msg=name)
        if one.grad_req != "null":
            np.testing.assert_allclose(one.grad(), other.grad(), rtol=1e-3, atol=1e-5)
    agree(hybrid, net)
