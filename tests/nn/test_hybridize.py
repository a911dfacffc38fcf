"""Hybridized blocks: the same results, compiled; never stale; and what is refused."""

from __future__ import annotations

import abc
import copy
import dataclasses
import gc
import pickle
import threading
import types
import warnings
import weakref
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.compiled import Compiled
from minigraph.errors import (
    ChildError,
    DimensionError,
    MinigraphError,
    OptionError,
    RetraceWarning,
    StateError,
    StructureError,
    UninitializedError,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
Y = np.arange(12, dtype=np.float32).reshape(4, 3)


class MLP(nn.HybridBlock):
    def __init__(self, units: int = 2) -> None:
        super().__init__()
        self.rate = 0.5
        self.hidden = nn.Dense(4, activation="relu")
        self.output = nn.Dense(units)

    def forward(self, x: Any) -> Any:
        return self.output(self.hidden(x)) * self.rate


def hybrid(net: Any, *args: Any, **options: Any) -> Any:
    net.initialize()
    net.hybridize(**options)
    net(*(args or (X,)))
    return net


def eager(net: Any, *args: Any) -> Any:
    with mg.eager():
        return net(*args)


def agrees(net: Any, *args: Any) -> bool:
    args = args or (X,)
    return bool(np.allclose(net(*args), eager(net, *args), atol=1e-6))


# ---------------------------------------------------------------------------- compiling


def test_hybridize_compiles_at_the_first_call_and_returns_the_block():
    net = MLP()
    net.initialize()
    expected = net(X)
    assert net.hybridize() is net
    assert len(net.cache_info()) == 0
    assert np.allclose(net(X), expected, atol=1e-6)
    assert np.allclose(net(X), expected, atol=1e-6)
    assert len(net.cache_info()) == 1
    assert "matmul" in str(net.graph())


def test_a_signature_is_traced_once():
    net = hybrid(MLP())
    for x in (X, Y, X, Y, X.astype(np.float64)):
        net(x)
    assert len(net.cache_info()) == 3


def test_the_outermost_block_owns_the_graph_and_inner_ones_their_own():
    net = hybrid(nn.HybridSequential(MLP(), nn.Dense(3)))
    assert len(net.cache_info()) == 1 and len(net[0].cache_info()) == 0
    assert len([node for node in net.graph("traced").nodes if node.op.name == "matmul"]) == 3
    net[0](X)
    assert len(net[0].cache_info()) == 1


def test_parameters_of_unknown_shape_are_initialized_by_the_first_compiled_call():
    mg.random.seed(0)
    net = hybrid(MLP())
    mg.random.seed(0)
    same = MLP()
    same.initialize()
    assert np.allclose(net(X), same(X), atol=1e-6)
    assert len(net.cache_info()) == 1


def test_a_compiled_call_that_fails_initializes_nothing():
    class Net(MLP):
        def forward(self, x: Any) -> Any:
            return super().forward(x) @ np.ones(5)

    net = Net()
    net.initialize()
    net.hybridize()
    with pytest.raises(ValueError, match="matmul"):
        net(X)
    assert net.hidden.weight.is_deferred and net.hidden.weight.shape == (4, 0)


def test_uninitialized_parameters_are_named():
    net = MLP()
    net.hybridize()
    with pytest.raises(UninitializedError, match=r"hidden\.\w+ has not been initialized"):
        net(X)


def test_hybridize_false_is_python_again():
    net = hybrid(nn.HybridSequential(MLP()))
    net.hybridize(False)
    assert agrees(net)
    for block in (net, net[0]):
        with pytest.raises(OptionError, match="is not hybridized") as caught:
            block.cache_info()
        assert "hybridize()" in str(caught.value)


def test_hybridize_again_starts_anew():
    net = hybrid(MLP())
    net.hybridize(backend="python")
    assert len(net.cache_info()) == 0
    assert agrees(net)


def test_eager_switches_it_off():
    net = hybrid(MLP())
    with mg.eager():
        net(Y)
    assert len(net.cache_info()) == 1


def test_an_attribute_may_have_the_name_of_a_view():
    net = MLP()
    net.stages = [nn.Dense(1)]
    net.graph = "mine"
    net.hybridize()
    assert net.graph == "mine" and isinstance(net.stages[0], nn.Dense)


# ---------------------------------------------------------------------------- options


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(TypeError, match="no option 'static_aloc'") as caught:
        MLP().hybridize(static_aloc=True)
    assert "did you mean 'static_alloc'?" in str(caught.value)
    with pytest.raises(OptionError, match="no backend 'numbr'"):
        MLP().hybridize(backend="numbr")
    with pytest.raises(OptionError, match="no option 'inline_limit'"):
        nn.Sequential(nn.Dense(1)).hybridize(inline_limit=2)


@pytest.mark.parametrize("options", [{"static_alloc": True}, {"static_shape": True}])
def test_static_alloc_does_not_overwrite_results(options: dict[str, Any]):
    net = hybrid(MLP(), **options)
    first = net(X)
    before = first.copy()
    net(X + 1)
    assert np.array_equal(first, before)
    assert agrees(net)


def test_static_shape_refuses_other_shapes():
    net = hybrid(MLP(), static_shape=True)
    with pytest.raises(MinigraphError, match=r"\(4, ?3\)|\[4,3\]"):
        net(Y)
    assert agrees(net)


def test_passes():
    net = hybrid(MLP(), passes=("cse", "dce"))
    assert agrees(net)
    assert [stage.name for stage in net.stages][0] == "traced"


# ---------------------------------------------------------------------------- plain blocks


def test_a_plain_block_compiles_its_hybrid_children_and_says_so_once():
    class Net(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.body = MLP()
            self.head = nn.Sequential(nn.Dense(2))

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x))

    net = Net()
    net.initialize()
    expected = net(X)
    with pytest.warns(UserWarning, match="Net is a plain Block") as caught:
        assert net.hybridize() is net
    assert len(caught) == 1 and caught[0].filename == __file__
    assert np.allclose(net(X), expected, atol=1e-6)
    assert len(net.body.cache_info()) == 1 and len(net.head[0].cache_info()) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.hybridize(False)


def test_a_sequential_of_hybrid_blocks_is_better_a_hybrid_sequential():
    net = nn.Sequential(nn.Dense(2), nn.Dense(3))
    with pytest.warns(UserWarning, match=r"All children of this Sequential .*HybridSequential"):
        net.hybridize()
    with pytest.warns(UserWarning, match="Sequential is a plain Block"):
        nn.Sequential(nn.Dense(2), nn.Sequential()).hybridize()


def test_a_plain_block_that_came_into_a_list_is_refused_at_the_call():
    class Net(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Dense(2)]

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    net = hybrid(Net())
    net.layers.append(nn.Lambda(np.tanh))
    with pytest.raises(ChildError, match="Lambda is a plain Block"):
        net(X)


# ---------------------------------------------------------------------------- never stale


def changes() -> dict[str, Any]:
    return {
        "an attribute": lambda net: setattr(net[0], "rate", 3.0),
        "a child of a child": lambda net: setattr(net[0], "output", nn.Dense(2)),
        "a new child": lambda net: net.add(nn.Dense(4)),
        "a child less": lambda net: net.__delitem__(1),
        "another child": lambda net: net.__setitem__(1, MLP(7)),
        "an activation": lambda net: setattr(net[0].hidden, "activate", np.tanh),
        "a parameter": lambda net: setattr(
            net[0].output, "bias", nn.Parameter("bias", 2, init="ones")
        ),
        "a cast": lambda net: net.cast("float64"),
        "a method": lambda net: setattr(Net, "finish", lambda self, x: x * 7),
        "a class": lambda net: setattr(net, "__class__", Other),
    }


class Net(nn.HybridSequential):
    level = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.add(MLP(), nn.Dense(3))

    def finish(self, x: Any) -> Any:
        return x + 1

    def forward(self, x: Any) -> Any:
        return self.finish(super().forward(x)) * self.level


class Other(Net):
    def finish(self, x: Any) -> Any:
        return x - 5


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_every_change_is_seen(change: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Net, "finish", Net.finish)
    net = hybrid(Net())
    before = net(X)
    change(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.initialize()
    assert agrees(net)
    after = net(X)
    assert (before.shape, before.dtype) != (after.shape, after.dtype) or np.any(before != after)
    assert len(net.cache_info()) == 2
    info = net.cache_info()
    net(X)
    assert len(net.cache_info()) == len(info)


class Helper:
    def __init__(self) -> None:
        self.block = nn.Dense(3)
        self.factor = 1.0

    def run(self, x: Any) -> Any:
        return self.block(x) * self.factor


def halved(x: Any) -> Any:
    return x / 2


class Everything(nn.HybridBlock):
    """Reads its state in every way there is."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3)
        self.config = {"rate": 0.5}
        self.space = types.SimpleNamespace(shift=1.0)
        self.array = np.ones(3, np.float32)
        self.eager = mg.array(np.ones(3, np.float32))
        self.helper = Helper()
        self.scaled = nn.HybridLambda(lambda x: x * GLOBAL)
        self.activate = nn.HybridLambda("sin")
        self.blocks = {"first": nn.Dense(3), "others": [nn.Dense(3)]}
        self.flag = True
        self.function = np.tanh
        self.numbers = [1.0, 2.0]

    @property
    def shift(self) -> float:
        return self.space.shift + GLOBAL

    def forward(self, x: Any, k: Any = 1.0, *, extra: Any = None) -> Any:
        x = self.dense(x) * self.config["rate"] + self.array * self.eager
        x = self.activate(self.scaled(self.helper.run(x) + halved(x)))
        for block in [self.blocks["first"], *self.blocks["others"]]:
            x = block(x)
        if self.flag:
            x = x + 1
        if extra is not None:
            x = x + extra
        return self.function(x) * self.shift * k + sum(self.numbers)


def dense() -> nn.Dense:
    made = nn.Dense(3)
    made.initialize()
    return made


def deep_changes() -> dict[str, Any]:
    return {
        "a dict": lambda net, _: net.config.__setitem__("rate", 2.0),
        "a namespace": lambda net, _: setattr(net.space, "shift", 5.0),
        "an array's numbers": lambda net, _: net.array.__setitem__(0, 9),
        "an array": lambda net, _: setattr(net, "array", np.full(3, 4, np.float32)),
        "an eager array's numbers": lambda net, _: net.eager.__setitem__(0, 9),
        "an eager array": lambda net, _: setattr(net, "eager", mg.array([1, 2, 3])),
        "an object": lambda net, _: setattr(net.helper, "factor", 7.0),
        "a block of an object": lambda net, _: setattr(net.helper, "block", dense()),
        "within a block of an object": lambda net, _: setattr(net.helper.block, "activate", np.cos),
        "a lambda": lambda net, _: setattr(net, "scaled", nn.HybridLambda("exp")),
        "a lambda's function": lambda net, _: setattr(net.scaled, "function", lambda x: x - 1),
        "a name of a function": lambda net, _: setattr(net.activate, "function", "cos"),
        "a dict of blocks": lambda net, _: net.blocks.__setitem__("first", dense()),
        "a list of blocks": lambda net, _: net.blocks["others"].append(dense()),
        "a flag": lambda net, _: setattr(net, "flag", False),
        "a function": lambda net, _: setattr(net, "function", np.sin),
        "a list": lambda net, _: net.numbers.append(4.0),
        "a method of a block": lambda net, _: setattr(net.dense, "forward", lambda x: x * 3),
        "a method of a library class": lambda net, patch: patch.setattr(
            nn.Dense, "forward", lambda self, x: x * 4
        ),
        "a method of a helper": lambda net, patch: patch.setattr(
            Helper, "run", lambda self, x: x * 9
        ),
        "a property": lambda net, patch: patch.setattr(Everything, "shift", 11.0),
        "a global function": lambda net, patch: patch.setitem(
            globals(), "halved", lambda x: x * 100
        ),
        "a global number": lambda net, patch: patch.setitem(globals(), "GLOBAL", 4.0),
        "a parameter": lambda net, _: net.dense.weight.set_data(np.ones((3, 3))),
        "a parameter less": lambda net, _: (
            delattr(net.dense, "bias"),
            setattr(net.dense, "bias", None),
        ),
        "a cast": lambda net, _: net.dense.weight.cast("float64"),
    }


@pytest.mark.filterwarnings("ignore:.*is not used")
@pytest.mark.parametrize("change", deep_changes().values(), ids=deep_changes().keys())
def test_no_change_however_deep_leaves_it_stale(change: Any, monkeypatch: pytest.MonkeyPatch):
    net = Everything()
    net.helper.block.initialize()
    net.initialize(init="xavier")
    net.hybridize()
    net.dense.bias.set_data(np.ones(3))
    before = net(X)
    assert agrees(net)
    change(net, monkeypatch)
    after = net(X)
    assert agrees(net)
    assert np.any(before != after) or before.dtype != after.dtype


def test_the_reason_names_what_changed():
    net = hybrid(Net())
    net[0].rate = 2.0
    net(X)
    net[0].output = nn.Dense(2)
    net[0].output.initialize()
    net(X)
    attribute, child = net.cache_info().retraces
    assert "rate" in attribute and "2.0" in attribute and "0.5" in attribute
    assert "output" in child


def test_a_change_that_changes_nothing_traces_nothing():
    net = hybrid(Net())
    net[0].rate = 0.5
    handle = net.register_forward_hook(lambda *_: None)
    handle.detach()
    net(X)
    net.summary(X)
    net(X)
    assert len(net.cache_info()) == 1


def test_globals_and_closures_are_seen(monkeypatch: pytest.MonkeyPatch):
    factor = 2.0

    class Scaled(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x * factor + GLOBAL

    net = hybrid(Scaled())
    assert np.array_equal(net(X), X * 2 + 1)
    factor = 3.0
    assert np.array_equal(net(X), X * 3 + 1)
    monkeypatch.setitem(globals(), "GLOBAL", 5.0)
    assert np.array_equal(net(X), X * 3 + 5)


GLOBAL = 1.0


def test_training_mode_is_seen():
    class Mode(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x * (2 if autograd.is_training() else 3)

    net = hybrid(Mode())
    assert np.array_equal(net(X), X * 3)
    with autograd.train_mode():
        assert np.array_equal(net(X), X * 2)
    with autograd.record():
        assert np.array_equal(net(X), X * 2)
    assert np.array_equal(net(X), X * 3)


def test_dropout_follows_the_mode():
    net = hybrid(nn.HybridSequential(nn.Dropout(0.5)), np.ones((100, 10), np.float32))
    x = np.ones((100, 10), np.float32)
    assert np.array_equal(net(x), x)
    with autograd.train_mode():
        first, second = net(x), net(x)
    assert 0.2 < np.mean(first == 0) < 0.8 and not np.array_equal(first, second)


def test_parameters_are_read_at_each_call():
    net = hybrid(MLP())
    net.output.bias.set_data([5.0, 6.0])
    assert agrees(net)
    net.output.bias.data()[0] = -50.0
    assert agrees(net)
    net.initialize(init="ones", force_reinit=True)
    assert agrees(net)
    assert len(net.cache_info()) == 1


def test_loaded_parameters_are_seen(tmp_path: Path):
    net, other = hybrid(MLP()), MLP()
    other.initialize()
    other(X)
    other.save_parameters(tmp_path / "net")
    net.load_parameters(tmp_path / "net")
    assert np.allclose(net(X), other(X), atol=1e-6)
    assert len(net.cache_info()) == 1


def test_shared_parameters_are_seen():
    net, other = hybrid(MLP()), hybrid(MLP())
    net.share_parameters(other.collect_params())
    assert np.allclose(net(X), other(X), atol=1e-6)
    other.output.bias.set_data([5.0, 6.0])
    assert np.allclose(net(X), other(X), atol=1e-6)


def test_a_list_of_children_that_grows():
    class Stack(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Dense(3)]

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    net = hybrid(Stack())
    net.layers.append(nn.Dense(2))
    net.layers[1].initialize()
    assert net(X).shape == (2, 2) and agrees(net)
    net.layers[1].activate = np.tanh  # a change in a block that came through the list
    assert agrees(net)
    net.layers.pop()
    assert net(X).shape == (2, 3)


@pytest.mark.parametrize("policy", ["warn", "error"])
def test_on_stale(policy: str):
    net = hybrid(MLP(), on_stale=policy)
    net.rate = 2.0
    if policy == "warn":
        with pytest.warns(UserWarning, match="rate"):
            assert np.allclose(net(X), eager(net, X), atol=1e-6)
    else:
        with pytest.raises(MinigraphError, match="rate"):
            net(X)
        net.rate = 0.5
        assert agrees(net)
    with pytest.raises(OptionError, match="on_stale"):
        MLP().hybridize(on_stale="ignor")


def test_another_shape_is_no_staleness():
    net = hybrid(MLP(), on_stale="error")
    assert agrees(net, Y) and agrees(net, X)


# ---------------------------------------------------------------------------- arrays


def test_ndarrays_in_ndarrays_out_and_arrays_in_arrays_out():
    net = hybrid(MLP())
    assert type(net(X)) is np.ndarray
    assert type(net(mg.array(X))) is mg.Array
    with autograd.record():
        assert type(net(X)) is mg.Array


def test_results_are_not_overwritten_by_the_next_call():
    net = hybrid(MLP())
    first = net(X)
    before = first.copy()
    net(X + 1)
    assert np.array_equal(first, before)


def test_structures():
    class Net(nn.HybridBlock):
        def forward(self, x: Any, states: Any) -> Any:
            h, c = states
            return x + h, {"c": [c * 2]}

    net = hybrid(Net(), X, (X, X))
    y, states = net(X, (X, X))
    assert np.array_equal(y, X + X) and np.array_equal(states["c"][0], X * 2)
    y, _ = net(X, [X, X])
    assert np.array_equal(y, X + X)
    assert len(net.cache_info()) == 2


def test_wrong_arguments_are_told_apart():
    class Net(nn.HybridBlock):
        def forward(self, x: Any, states: Any) -> Any:
            h, c = states
            return x + h + c

    net = hybrid(Net(), X, [X, X])
    with pytest.raises(ValueError, match=r"expected \(x, \[.*\]\), got \(x, states\)") as caught:
        net(X, X[:1])
    assert isinstance(caught.value, StructureError)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'states'"):
        net(X)
    with pytest.raises(TypeError, match="unexpected keyword argument 'state'"):
        net(X, state=[X, X])
    assert net(X, states=[X, X]).shape == X.shape


def test_a_named_axis_takes_all_sizes():
    net = nn.HybridSequential(nn.Dense(2))
    net.initialize()
    net.hybridize(dynamic={"x": {0: "batch"}})
    for count in (1, 2, 4):
        assert agrees(net, Y[:count])
    assert len(net.cache_info()) == 1 and str(net.graph().inputs[0].type) == "f32[batch,3]"


def test_a_named_axis_that_meets_a_weight_is_named():
    """`flatten` puts it into one axis with the features: their product is not known."""
    net = nn.Dense(3, in_units=8)
    net.initialize()
    net.hybridize(dynamic={"x": {1: "time"}})
    with pytest.raises(DimensionError, match=r"4\*time == 8.*depends on the named dimension time"):
        net(np.ones((2, 2, 4), "float32"))


def test_classes_of_other_kinds_are_blocks_too():
    class Shape(nn.HybridBlock, abc.ABC):
        @abc.abstractmethod
        def finish(self, x: Any) -> Any: ...

        def forward(self, x: Any) -> Any:
            return self.finish(x)

    class Round(Shape):
        def finish(self, x: Any) -> Any:
            return np.sin(x)

    @dataclasses.dataclass(eq=False, repr=False)
    class Scale(nn.HybridBlock):
        rate: float = 2.0

        def __post_init__(self) -> None:
            self.inner = nn.Dense(2)

        def forward(self, x: Any) -> Any:
            return self.inner(x) * self.rate

    with pytest.raises(TypeError, match="abstract"):
        Shape()  # type: ignore[abstract]
    assert agrees(hybrid(Round()))
    net = hybrid(Scale(3.0))
    assert agrees(net)
    net.rate = 1.0
    assert agrees(net)


def test_gradients_agree_with_python():
    net = hybrid(MLP())
    gradients = []
    for off in (False, True):
        x = mg.array(X)
        x.attach_grad()
        net.zero_grad()
        with autograd.record():
            loss = (eager(net, x) if off else net(x)) ** 2
        loss.backward()
        found = [p.grad().asnumpy() for p in net.collect_params().values()]
        gradients.append([x.grad.asnumpy(), *found])
    for compiled, python in zip(*gradients, strict=True):
        assert np.allclose(compiled, python, atol=1e-5) and np.any(python)


def test_a_gradient_that_is_not_wanted_any_more():
    net = hybrid(MLP())
    for request in ("write", "null", "write"):
        net.hidden.collect_params().setattr("grad_req", request)
        with autograd.record():
            loss = net(X).sum()
        loss.backward()
    assert np.any(net.hidden.bias.grad()) and agrees(net)


def test_hooks_run_in_the_compiled_program(capsys: pytest.CaptureFixture[str]):
    def show(block: Any, args: Any, result: Any) -> None:
        print("mean", np.mean(result) * 0)

    net = hybrid(MLP())
    with net.hidden.register_forward_hook(show):
        net(X)
        net(X)
        assert capsys.readouterr().out == "mean 0.0\nmean 0.0\n"
    net(X)
    assert capsys.readouterr().out == ""


def test_summary_of_a_hybridized_block(capsys: pytest.CaptureFixture[str]):
    net = hybrid(MLP())
    net.summary(X)
    compiled = capsys.readouterr().out
    net.hybridize(False)
    net.summary(X)
    assert capsys.readouterr().out == compiled and "hidden Dense" in compiled


def test_print_in_forward_is_an_effect_of_each_call(capsys: pytest.CaptureFixture[str]):
    class Net(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            print("x", x[0])
            return x

    net = hybrid(Net())
    net(X + 1)
    assert capsys.readouterr().out == f"x {X[0]}\nx {(X + 1)[0]}\n"


# ---------------------------------------------------------------------------- copies and threads


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_of_a_hybridized_block_is_hybridized(copied: Any):
    net = hybrid(nn.HybridSequential(nn.Dense(4), nn.Dense(2)))
    other = copied(net)
    assert np.allclose(other(X), net(X))
    net[1].bias.set_data([7, 7])
    assert not np.allclose(other(X), net(X))
    assert len(other.cache_info()) == 1


def test_threads():
    net, found = hybrid(MLP()), []

    def work(index: int) -> None:
        x = X[: 1 + index % 2] + index
        found.append(np.allclose(net(x), eager(net, x), atol=1e-5))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


# ---------------------------------------------------------------------------- in other functions


def test_a_block_inside_a_jitted_function():
    net = hybrid(MLP())

    @mg.jit
    def f(x: Any) -> Any:
        return np.tanh(net(x))

    assert np.allclose(f(X), np.tanh(eager(net, X)), atol=1e-6)
    net.rate = 3.0
    assert np.allclose(f(X), np.tanh(eager(net, X)), atol=1e-6)
    net.output.bias.set_data([9.0, 9.0])
    assert np.allclose(f(X), np.tanh(eager(net, X)), atol=1e-6)
    assert len(f.cache_info()) == 2


def test_a_network_that_nobody_needs_is_freed():
    net = hybrid(MLP())
    with autograd.record():
        loss = net(X).sum()
    loss.backward()
    gone = weakref.ref(net), weakref.ref(net.hidden.weight)
    del net, loss
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


class Scaled(nn.HybridBlock):
    scale = 2.0
    table: ClassVar[dict[str, float]] = {"shift": 1.0}

    def forward(self, x: Any) -> Any:
        return x * type(self).scale + Scaled.table["shift"] * self.__class__.scale


def test_attributes_read_through_the_class(monkeypatch: pytest.MonkeyPatch):
    net = Scaled().hybridize()
    x = np.ones(2, np.float32)
    assert np.array_equal(net(x), [4.0, 4.0])
    monkeypatch.setattr(Scaled, "scale", 3.0)
    assert np.array_equal(net(x), [6.0, 6.0])
    monkeypatch.setitem(Scaled.table, "shift", 2.0)
    assert np.array_equal(net(x), [9.0, 9.0])
    monkeypatch.setattr(Scaled, "table", {"shift": 0.0})
    assert np.array_equal(net(x), [3.0, 3.0])
    assert len(net.cache_info()) == 4


def test_a_class_attribute_cannot_be_assigned_while_tracing():
    class Counting(nn.HybridBlock):
        count = 0

        def forward(self, x: Any) -> Any:
            Counting.count += 1
            return x

    with pytest.raises(StateError, match="class attribute"):
        Counting().hybridize()(X)
    assert Counting.count == 0


def test_a_block_that_is_made_while_tracing(monkeypatch: pytest.MonkeyPatch):
    class Net(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return Scaled()(x) + nn.Activation("relu")(x)

    net = Net().hybridize()
    x = np.ones(2, np.float32)
    assert np.array_equal(net(x), [5.0, 5.0])
    monkeypatch.setattr(Scaled, "scale", 3.0)
    assert np.array_equal(net(x), [7.0, 7.0])
    monkeypatch.setattr(Scaled, "forward", lambda self, x: x)
    assert np.array_equal(net(x), [2.0, 2.0])


def test_many_retraces_are_told_once():
    net = MLP().initialize().hybridize()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for rate in range(12):
            net.rate = rate + 0.5
            net(X)
    assert len(net.cache_info()) == 12 and len(told) == 1
    assert told[0].category is RetraceWarning and told[0].filename == __file__
    assert "retraced 8 times" in str(told[0].message) and "self.rate is" in str(told[0].message)


def test_gradients_run_on_the_same_backend(monkeypatch: pytest.MonkeyPatch):
    used: list[str] = []

    class Watched(Compiled):
        def __init__(self, graph: Any, backend: str, **options: Any) -> None:
            used.append(backend)
            super().__init__(graph, backend, **options)

    monkeypatch.setattr("minigraph.tape.programs.Compiled", Watched)
    net = nn.HybridSequential(nn.Dense(3, activation="softsign"), nn.Dense(1)).initialize()
    for backend in ("python", "interpret"):
        net.hybridize(backend=backend)
        with autograd.record():
            loss = net(mg.array(X)).sum()
        loss.backward()
    assert used == ["python", "interpret"]


def test_another_mode_is_a_reason_too():
    net = nn.HybridSequential(nn.Dropout(0.5)).hybridize()
    net(X)
    with autograd.train_mode():
        net(X)
    assert net.cache_info().retraces == ["training, and so far only predicting"]


def test_a_network_that_looks_at_its_own_parameters():
    class Regularised(MLP):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            weights = self.collect_params(".*weight").values()
            penalty = sum((weight.data() ** 2).sum() for weight in weights)
            return y + penalty * len(list(self.named_blocks()))

    net = Regularised().initialize()
    expected = net(X)
    net.hybridize()
    assert np.allclose(net(X), expected, rtol=1e-5)
    net.output = nn.Dense(2).initialize()
    with mg.eager():
        expected = net(X)
    assert np.allclose(net(X), expected, rtol=1e-5)


def test_a_forward_that_replaces_hybrid_forward():
    class Doubled(nn.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return x * 2

    class Added(Doubled):
        def forward(self, x: Any, y: Any) -> Any:
            return x * 2 + y

    class Tripled(Doubled):
        def forward(self, z: Any) -> Any:
            return z * 3

    added, tripled = Added().hybridize(), Tripled().hybridize()
    assert np.array_equal(added(X, X), X * 3)
    assert np.array_equal(tripled(z=X), X * 3)
    assert len(added.cache_info()) == len(tripled.cache_info()) == 1
