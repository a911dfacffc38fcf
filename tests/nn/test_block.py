"""Blocks: children, names, calls, hooks, files, and what is refused."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import pickle
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import (
    BlockError,
    DtypeError,
    FormatError,
    OptionError,
    ParameterError,
    ShapeError,
    SignatureError,
    UninitializedError,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class MLP(nn.HybridBlock):
    def __init__(self, units: int = 2) -> None:
        super().__init__()
        self.hidden = nn.Dense(4, activation="relu")
        self.output = nn.Dense(units)

    def forward(self, x: Any) -> Any:
        return self.output(self.hidden(x))


def ready(net: nn.Block, x: Any = X) -> nn.Block:
    net.initialize()
    net(x)
    return net


# ---------------------------------------------------------------------------- members


def test_children_and_parameters_are_found_in_attributes_and_structures():
    class Net(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(shape=2)
            self.layers = [nn.Dense(1), (nn.Dense(2), {"deep": nn.Dense(3)})]
            self.named = {"a": nn.Dense(4), "b": 5}
            self.rate = 0.5

    net = Net()
    assert list(net.collect_params()) == [
        "scale",
        *("layers.0.weight", "layers.0.bias", "layers.1.0.weight", "layers.1.0.bias"),
        *("layers.1.1.deep.weight", "layers.1.1.deep.bias", "named.a.weight", "named.a.bias"),
    ]
    assert net.scale.name == "scale"
    net.layers.append(nn.Dense(6))  # found, too: names are paths, there is no register
    assert "layers.2.weight" in net.collect_params()


def test_init_of_the_base_class_need_not_come_first():
    class Net(nn.HybridBlock):
        def __init__(self) -> None:
            self.layer = nn.Dense(2)

        def forward(self, x: Any) -> Any:
            return self.layer(x)

    assert ready(Net())(X).shape == (2, 2)


def test_a_member_that_is_replaced_or_deleted_is_gone():
    net = MLP()
    net.output = nn.Dense(7, use_bias=False)
    assert list(net.collect_params()) == ["hidden.weight", "hidden.bias", "output.weight"]
    del net.output
    assert list(net.collect_params()) == ["hidden.weight", "hidden.bias"]


@pytest.mark.parametrize("value", [None, 3, np.ones(2), nn.Parameter("p", 1)])
def test_a_block_stays_a_block(value: Any):
    net = MLP()
    with pytest.raises(TypeError, match="attribute output of MLP holds a Dense"):
        net.output = value
    assert isinstance(net.output, nn.Dense)


def test_a_parameter_stays_a_parameter():
    layer = nn.Dense(2, in_units=3)
    with pytest.raises(
        BlockError, match=r"weight of Dense holds a Parameter .* become something of type ndarray"
    ):
        layer.weight = np.ones((2, 3))
    layer.weight = nn.Parameter("weight", (2, 3))


def test_a_plain_attribute_may_become_anything():
    net = MLP()
    net.rate = 0.5
    net.rate = nn.Dense(2)
    net.rate = nn.HybridSequential()
    assert "rate" in repr(net)


def test_forward_must_be_defined():
    class Empty(nn.Block):
        pass

    with pytest.raises(NotImplementedError, match="Empty defines no forward"):
        Empty()(X)


def test_a_block_that_holds_its_parent_is_no_endless_tree():
    net = MLP()
    net.hidden.owner = net
    assert len(net.collect_params()) == 4
    assert "hidden" in repr(net)


# ---------------------------------------------------------------------------- repr


def test_repr_is_an_indented_tree():
    net = nn.HybridSequential()
    net.add(MLP(), nn.Dropout(0.5))
    assert repr(net) == (
        "HybridSequential(\n"
        "  (0): MLP(\n"
        "    (hidden): Dense(? -> 4, relu)\n"
        "    (output): Dense(? -> 2)\n"
        "  )\n"
        "  (1): Dropout(0.5)\n"
        ")"
    )


# ---------------------------------------------------------------------------- calls


def test_ndarrays_in_ndarrays_out_and_arrays_in_arrays_out():
    net = ready(MLP())
    assert type(net(X)) is np.ndarray
    assert type(net(mg.array(X))) is mg.Array
    with autograd.record():
        assert type(net(X)) is mg.Array


def test_inside_forward_arrays_are_arrays_in_structures_too():
    found = []

    class Inner(nn.Block):
        def forward(self, x: Any, states: Any) -> Any:
            found.append((type(x), type(states[0]), type(states[1]["c"])))
            return x, [states[0]]

    class Outer(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any, states: Any) -> Any:
            x, states = self.inner(np.ones(2), states)
            found.append((type(x), type(states[0])))
            return {"x": x, "states": states, "n": 3}

    result = Outer()(X, (X, {"c": X}))
    assert found == [(mg.Array, mg.Array, mg.Array), (mg.Array, mg.Array)]
    assert type(result["x"]) is np.ndarray and type(result["states"][0]) is np.ndarray
    assert result["states"][0] is X and result["n"] == 3  # nothing is copied
    assert type(Outer()(X, (mg.array(X), {"c": X}))["x"]) is mg.Array


def test_structures_of_every_kind_hold_arrays_inside():
    @dataclasses.dataclass
    class State:
        h: Any
        step: int

    Pair = collections.namedtuple("Pair", "a b")
    found = []

    class Net(nn.Block):
        def forward(self, state: Any, pair: Any) -> Any:
            found.append((type(state.h), type(pair.a)))
            return State(state.h + 1, state.step + 1), pair

    state, pair = Net()(State(X, 1), Pair(X, X))
    assert found == [(mg.Array, mg.Array)]
    assert type(state.h) is np.ndarray and state.step == 2
    assert type(pair) is Pair and pair.a is X


def test_a_list_without_ndarrays_is_the_callers_own():
    class Net(nn.Block):
        def forward(self, x: Any, seen: list[Any]) -> Any:
            seen.append(x)
            return x

    seen: list[Any] = []
    nn.Sequential(Net())(X, seen)
    assert len(seen) == 1 and type(seen[0]) is mg.Array


def test_a_parameter_that_came_into_a_list_is_initialized():
    class Net(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.weights: list[nn.Parameter] = []

        def infer_shape(self, x: Any) -> None:
            for weight in self.weights:
                weight.shape = x.shape[-1]

        def forward(self, x: Any) -> Any:
            return x + sum(weight.data() for weight in self.weights)

    net = ready(Net())
    net.weights.append(nn.Parameter("w", 0, init="ones", allow_deferred_init=True))
    net.initialize()
    assert np.array_equal(net(X), X + 1)


def test_arguments_by_name():
    class Scale(nn.Block):
        def forward(self, x: Any, *, by: Any) -> Any:
            return x * by

    assert np.array_equal(Scale()(X, by=X), X * X)
    assert type(Scale()(X, by=mg.array(X))) is mg.Array


# ---------------------------------------------------------------------------- parameters


def test_collect_params_selects_by_a_regular_expression():
    net = MLP()
    assert list(net.collect_params(".*weight")) == ["hidden.weight", "output.weight"]
    assert list(net.collect_params("output.*|hidden.bias")) == [
        "hidden.bias",
        "output.weight",
        "output.bias",
    ]


def test_a_shared_parameter_is_collected_once():
    net = nn.Sequential()
    layer = nn.Dense(3)
    net.add(layer, nn.Dense(3), layer)
    assert list(net.collect_params()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_share_parameters():
    first, second = ready(MLP()), MLP()
    assert second.share_parameters(first.collect_params()) is second
    assert second.output.weight is first.output.weight
    assert np.array_equal(second(X), first(X))
    second.output.bias.set_data([5, 6])
    assert np.array_equal(first.output.bias.data(), [5, 6])


def test_sharing_what_is_not_there_warns():
    with pytest.warns(UserWarning, match=r"MLP has no parameter 0\.weight"):
        MLP().share_parameters({"0.weight": nn.Parameter("weight", 1)})


def test_sharing_another_shape_is_refused():
    first, second = nn.Dense(4, in_units=8), nn.Dense(3)
    with pytest.raises(ParameterError, match=r"the parameter weight has shape \(3, 0\), and"):
        second.share_parameters(first.collect_params())


def test_sharing_within_a_list():
    class Net(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.scales = [nn.Parameter(shape=1), nn.Parameter(shape=1)]

    first, second = Net(), Net()
    second.share_parameters({"scales.1": first.scales[1]})
    assert second.scales[1] is first.scales[1] and second.scales[0] is not first.scales[0]


def test_an_uninitialized_parameter_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"0\.hidden\.\w+ has not been") as caught:
        nn.Sequential(MLP())(X)
    assert isinstance(caught.value, UninitializedError)
    assert "net.initialize()" in str(caught.value)


def test_a_call_that_fails_initializes_nothing():
    class Net(MLP):
        def forward(self, x: Any) -> Any:
            return super().forward(x) @ np.ones(5)

    net = Net()
    net.initialize()
    with pytest.raises(ValueError, match="matmul"):
        net(X)
    assert net.hidden.weight.shape == (4, 0) and net.hidden.weight.is_deferred
    with pytest.raises(ValueError, match="matmul"):
        net(np.ones((2, 9), np.float32))  # another width than in the call that failed


def test_initialize_twice_warns_once_and_changes_nothing():
    net = ready(MLP())
    before = net.hidden.weight.data().asnumpy()
    with pytest.warns(UserWarning, match=r"hidden\.weight, .* force_reinit=True") as caught:
        net.initialize(init="ones")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.array_equal(net.hidden.weight.data(), before)
    array = net.hidden.weight.data()
    net.initialize(init="ones", force_reinit=True)
    assert net.hidden.weight.data() is array and np.array_equal(array, np.ones((4, 3)))


def test_initialize_after_a_new_child_initializes_that():
    net = ready(MLP())
    net.output = nn.Dense(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.initialize()
    assert net(X).shape == (2, 5)


def test_apply_goes_from_the_leaves_to_the_root():
    seen: list[str] = []
    net = nn.Sequential(MLP(), nn.Dense(1))
    assert net.apply(lambda block: seen.append(type(block).__name__)) is net
    assert seen == ["Dense", "Dense", "MLP", "Dense", "Sequential"]


def test_cast():
    net = ready(MLP())
    net.cast("float64")
    assert net(X.astype(np.float64)).dtype == np.float64
    assert net.hidden.weight.grad().dtype == np.float64
    deferred = MLP()
    deferred.cast("float16")
    assert ready(deferred, X.astype(np.float16)).hidden.weight.data().dtype == np.float16


def test_zero_grad():
    net = ready(MLP())
    with autograd.record():
        loss = net(mg.array(X)).sum()
    loss.backward()
    assert np.any(net.output.bias.grad())
    net.zero_grad()
    assert not any(np.any(p.grad()) for p in net.collect_params().values())


# ---------------------------------------------------------------------------- hooks


def test_hooks_are_called_until_they_are_detached():
    net, calls = ready(MLP()), []
    before = net.register_forward_pre_hook(lambda block, args: calls.append((block, len(args))))
    after = net.hidden.register_forward_hook(lambda block, args, out: calls.append(out.shape))
    net(X)
    assert calls == [(net, 1), (2, 4)]
    after.detach()
    after.detach()
    net(X)
    assert calls[2:] == [(net, 1)]
    with before:
        pass
    net(X)
    assert len(calls) == 3


# ---------------------------------------------------------------------------- summary


def test_summary(capsys: pytest.CaptureFixture[str]):
    net = nn.HybridSequential(MLP(), nn.Dense(3))
    net.initialize()
    net[0].hidden.bias.grad_req = "null"
    net.summary(X)
    assert capsys.readouterr().out == (
        "layer              output shape   parameters\n"
        "────────────────────────────────────────────\n"
        "HybridSequential   (2, 3)                  0\n"
        "  0 MLP            (2, 2)                  0\n"
        "    hidden Dense   (2, 4)                 16\n"
        "    output Dense   (2, 2)                 10\n"
        "  1 Dense          (2, 3)                  9\n"
        "────────────────────────────────────────────\n"
        "35 parameters, 31 of them learned, 140 bytes\n"
    )


def test_summary_counts_a_shared_layer_once(capsys: pytest.CaptureFixture[str]):
    layer = nn.Dense(3)
    net = nn.Sequential(layer, layer)
    net.initialize()
    net.summary(X)
    assert "  0 Dense    (2, 3)             shared\n" in capsys.readouterr().out


# ---------------------------------------------------------------------------- files


def test_parameters_come_back_from_a_file(tmp_path: Path):
    net, file = ready(MLP()), tmp_path / "net.safetensors"
    net.save_parameters(file)
    other = MLP()
    assert other.load_parameters(file) is other  # neither initialized nor of known shape
    assert np.array_equal(other(X), net(X))
    array = other.hidden.weight.data()
    other.load_parameters(str(file))
    assert other.hidden.weight.data() is array


def test_a_file_without_a_parameter(tmp_path: Path):
    net, file = ready(nn.Sequential(nn.Dense(2, use_bias=False))), tmp_path / "net"
    net.save_parameters(file)
    other = nn.Sequential(nn.Dense(2))
    with pytest.raises(ParameterError, match=r"parameter 0\.bias is missing in .*net"):
        other.load_parameters(file)
    assert not other[0].weight.is_ready  # nothing was loaded
    other.initialize()
    other.load_parameters(file, allow_missing=True)
    assert np.array_equal(other(X), net(X))


def test_a_file_with_more_than_the_network_has(tmp_path: Path):
    net, file = ready(nn.Sequential(nn.Dense(2), nn.Dense(3))), tmp_path / "net"
    net.save_parameters(file)
    other = nn.Sequential(nn.Dense(2))
    with pytest.raises(ParameterError, match=r"holds 1\.bias, 1\.weight, which the network"):
        other.load_parameters(file)
    other.load_parameters(file, ignore_extra=True)
    assert np.array_equal(other(X), net[:1](X))


def test_a_file_with_other_shapes_names_both(tmp_path: Path):
    ready(MLP(2)).save_parameters(tmp_path / "net")
    net = ready(MLP(5))
    before = net.hidden.weight.data().asnumpy()
    with pytest.raises(ParameterError, match=r"output\.weight has shape \(5, 4\).*has \(2, 4\)"):
        net.load_parameters(tmp_path / "net")
    assert np.array_equal(net.hidden.weight.data(), before)


def test_a_file_with_another_dtype(tmp_path: Path):
    ready(MLP()).cast("float64").save_parameters(tmp_path / "net")
    net = ready(MLP())
    with pytest.raises(ParameterError, match=r"hidden\.weight has dtype float32.*float64"):
        net.load_parameters(tmp_path / "net")
    net.load_parameters(tmp_path / "net", cast_dtype=True)
    assert net(X).dtype == np.float32


def test_a_file_of_an_unshared_network_fits_a_shared_one(tmp_path: Path):
    ready(nn.Sequential(nn.Dense(3), nn.Dense(3))).save_parameters(tmp_path / "net")
    layer = nn.Dense(3)
    nn.Sequential(layer, layer).load_parameters(tmp_path / "net")
    assert layer.weight.is_ready


def test_a_file_that_is_none(tmp_path: Path):
    (tmp_path / "net").write_bytes(b"no parameters")
    with pytest.raises(FormatError, match="net is no safetensors file"):
        MLP().load_parameters(tmp_path / "net")
    with pytest.raises(FileNotFoundError):
        MLP().load_parameters(tmp_path / "missing")


# ---------------------------------------------------------------------------- copies and versions


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_is_a_network_of_its_own(copied: Any):
    net = ready(nn.Sequential(nn.Dense(4), nn.Dense(2)))
    other = copied(net)
    assert np.array_equal(other(X), net(X))
    net[1].bias.set_data([7, 7])
    assert not np.array_equal(other(X), net(X))
    version = other._version
    other[0].units = 5
    assert other._version != version


def changes() -> dict[str, Any]:
    return {
        "an attribute": lambda net: setattr(net, "rate", 1),
        "an attribute of a child": lambda net: setattr(net[0].hidden, "units", 9),
        "a deleted attribute": lambda net: delattr(net[0].hidden, "units"),
        "a child": lambda net: setattr(net[0], "output", nn.Dense(3)),
        "a new child": lambda net: net.add(nn.Dense(1)),
        "a child of a row": lambda net: net.__setitem__(0, nn.Dense(1)),
        "a child less": lambda net: net.__delitem__(0),
        "a parameter": lambda net: setattr(net[0].output, "bias", nn.Parameter("bias", 2)),
        "an array": lambda net: net[0].output.bias.cast("float64"),
        "a gradient": lambda net: setattr(net[0].output.bias, "grad_req", "null"),
        "a hook": lambda net: net[0].register_forward_hook(print),
        "a class": lambda net: setattr(MLP, "level", 3),
        "its class": lambda net: setattr(net[0], "__class__", type("Other", (MLP,), {})),
    }


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_each_change_gives_all_that_hold_the_block_a_new_version(change: Any):
    net = ready(nn.Sequential(MLP()))
    outer = nn.Sequential(net)
    versions = net._version, outer._version
    change(net)
    assert net._version > versions[0] and outer._version > versions[1]


def test_data_in_place_gives_no_new_version():
    net = ready(MLP())
    version = net._version
    net.output.bias.set_data([1, 2])
    net.output.bias.data()[...] = 3
    net.initialize(force_reinit=True)
    net(X)
    assert net._version == version


def test_a_child_of_two_parents_tells_both_and_keeps_neither_alive():
    child = nn.Dense(2)
    first, second = nn.Sequential(child), nn.Sequential(child)
    versions = first._version, second._version
    child.units = 3
    assert first._version > versions[0] and second._version > versions[1]
    del first
    gc.collect()
    child.units = 4


def test_a_hook_is_a_function():
    wrong: Any = 5
    with pytest.raises(OptionError, match="hook is a function"):
        MLP().register_forward_hook(wrong)


def test_sharing_within_a_named_tuple():
    class Pair(NamedTuple):
        first: nn.Parameter
        second: nn.Parameter

    class Net(nn.Block):
        def __init__(self):
            super().__init__()
            self.pair = Pair(nn.Parameter("w", 2), nn.Parameter("w", 2))

    net, other = Net(), Net()
    net.share_parameters(other.collect_params())
    assert type(net.pair) is Pair and net.pair.second is other.pair.second


def test_a_list_that_holds_itself():
    class Net(MLP):
        def __init__(self) -> None:
            super().__init__()
            self.layers: list[Any] = [nn.Dense(2)]
            self.layers.append(self.layers)

    assert list(Net().collect_params())[-2:] == ["layers.0.weight", "layers.0.bias"]


@pytest.mark.parametrize(
    "layer", [nn.Dense(2), nn.Dense(2, in_units=2), nn.BatchNorm(), nn.Flatten()]
)
def test_a_layer_of_one_array_is_given_something_else(layer: nn.HybridBlock):
    layer.initialize()
    with pytest.raises(DtypeError, match=f"a {type(layer).__name__} takes an array, not a list"):
        layer([[1.0, 2.0]])


def test_other_arguments_than_those_of_forward():
    with pytest.raises(SignatureError, match="a call of Dense: too many positional arguments"):
        nn.Dense(2).initialize()(X, X)
    assert nn.Dense(2).initialize()(x=X).shape == (len(X), 2)


def test_a_batch_axis_is_missing():
    with pytest.raises(ShapeError, match=r"a Dense takes a batch, .* has shape \(5,\)"):
        nn.Dense(2).initialize()(np.ones(5))
    assert nn.Dense(2, flatten=False).initialize()(np.ones(5)).shape == (2,)
