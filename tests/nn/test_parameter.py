"""Parameters: shapes that wait, values, gradients, and what is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import (
    BlockError,
    DeferredInitializationError,
    OptionError,
    ParameterError,
    StateError,
    UninitializedError,
)

X = np.ones((4, 2), np.float32)


def made(shape: Any = (2, 3), **options: Any) -> nn.Parameter:
    parameter = nn.Parameter("weight", shape, **options)
    parameter.initialize("ones")
    return parameter


def test_data_is_the_same_array_at_each_call():
    weight = made()
    array = weight.data()
    assert type(array) is mg.Array and array.dtype == np.float32
    weight.set_data(np.zeros((2, 3)))
    assert weight.data() is array and not np.any(array)
    assert weight.list_data()[0] is array


def test_not_initialized():
    weight = nn.Parameter("weight", (2, 3))
    with pytest.raises(UninitializedError, match=r"parameter weight .*") as caught:
        weight.data()
    assert "net.initialize()" in str(caught.value)
    with pytest.raises(UninitializedError):
        weight.grad()


def test_deferred():
    layer = nn.Dense(4)
    layer.initialize()
    with pytest.raises(DeferredInitializationError, match=r"weight .*shape \(4, 0\)") as caught:
        layer.weight.data()
    assert isinstance(caught.value, RuntimeError)
    assert "first" in str(caught.value) and "in_units" in str(caught.value)
    layer(np.ones((1, 3), np.float32))
    assert layer.weight.data().shape == (4, 3)


def test_a_shape_that_is_not_known_must_be_allowed():
    weight = nn.Parameter("weight", (2, None))
    assert weight.shape == (2, 0)
    with pytest.raises(ParameterError, match="allow_deferred_init"):
        weight.initialize()
    with pytest.raises(ParameterError, match="None is not known"):
        nn.Parameter("weight").initialize()


def test_a_layer_that_does_not_infer_its_shape():
    class Layer(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter("weight", (2, -1), allow_deferred_init=True)

        def forward(self, x: Any) -> Any:
            return x @ self.weight.data().T

    layer = Layer()
    layer.initialize()
    with pytest.raises(DeferredInitializationError, match="infer_shape"):
        layer(np.ones((1, 3)))


def test_shapes_are_completed_and_nothing_else():
    weight = nn.Parameter("weight", (2, 0), allow_deferred_init=True)
    weight.shape = (2, 3)
    assert weight.shape == (2, 3)
    for wrong in ((2, 4), (2,), 5):
        with pytest.raises(ParameterError, match=r"shape \(2, 3\)"):
            weight.shape = wrong


def test_a_layer_called_with_another_width_says_both_shapes():
    layer = nn.Dense(4)
    layer.initialize()
    layer(np.ones((1, 3), np.float32))
    with pytest.raises(ValueError, match=r"5 features.*\(4, 3\)"):
        layer(np.ones((1, 5), np.float32))


def test_set_data_before_initialize_gives_values_and_shape():
    weight = nn.Parameter("weight", (2, 0), allow_deferred_init=True)
    weight.set_data(np.ones((2, 5)))
    assert weight.shape == (2, 5) and weight.data().dtype == np.float32
    with pytest.raises(ParameterError, match=r"shape \(2, 5\), .* \(3, 5\)"):
        weight.set_data(np.ones((3, 5)))
    with pytest.raises(ParameterError, match=r"\(2, 0\)"):
        nn.Parameter("weight", (2, 0)).set_data(np.ones((3, 5)))


def test_its_own_initializer_comes_before_that_of_the_network():
    layer = nn.Dense(2, in_units=3, weight_initializer="ones")
    layer.initialize(init="zeros")
    assert np.array_equal(layer.weight.data(), np.ones((2, 3)))
    layer.weight.initialize("zeros", force_reinit=True)
    assert not np.any(layer.weight.data())


def test_a_second_initialize_warns_at_the_users_line():
    net = nn.Sequential(nn.Dense(2, in_units=3))
    net.initialize()
    for again in (net[0].weight.initialize, net.collect_params().initialize, net.initialize):
        with pytest.warns(UserWarning, match="already initialized") as caught:
            again()
        assert [each.filename for each in caught] == [__file__]


def test_a_function_is_an_initializer():
    weight = nn.Parameter("weight", 3)

    def count(name: str, array: Any) -> None:
        array[...] = np.arange(3) + len(name)

    weight.initialize(count)
    assert np.array_equal(weight.data(), [6, 7, 8])


def test_the_seed_makes_first_values_repeatable():
    values = []
    for _ in range(2):
        mg.random.seed(3)
        weight = nn.Parameter("weight", (2, 3))
        weight.initialize("xavier")
        values.append(weight.data().asnumpy())
    assert np.array_equal(*values)


def test_grad_req():
    weight = made()

    def step() -> None:
        with autograd.record():
            loss = (weight.data() * 3).sum()
        loss.backward()

    step(), step()
    assert np.array_equal(weight.grad(), np.full((2, 3), 3))
    weight.grad_req = "add"
    step(), step()
    assert np.array_equal(weight.grad(), np.full((2, 3), 6))
    weight.zero_grad()
    assert not np.any(weight.grad())
    weight.grad_req = "null"
    with pytest.raises(ParameterError, match="grad_req is 'null'"):
        weight.grad()
    with pytest.raises(ParameterError, match="no grad_req 'wite'") as caught:
        weight.grad_req = "wite"
    assert "did you mean 'write'?" in str(caught.value)
    with pytest.raises(ParameterError, match="no grad_req"):
        nn.Parameter("weight", 1, grad_req="ad")


def test_set_data_while_recording_is_not_recorded():
    weight = made()
    with autograd.record():
        weight.set_data(np.full((2, 3), 2))
        loss = (weight.data() ** 2).sum()
    loss.backward()
    assert np.array_equal(weight.grad(), np.full((2, 3), 4))


def test_cast_makes_another_array():
    weight = made()
    before = weight.data()
    weight.cast("float64")
    assert weight.data() is not before and weight.data().dtype == weight.dtype == np.float64
    assert weight.grad().dtype == np.float64


def test_constant_is_not_learned():
    class Net(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.offset = nn.Constant([1.0, 2.0])

        def forward(self, x: Any) -> Any:
            return x + self.offset.data()

    net = Net()
    net.initialize(init="zeros")
    assert np.array_equal(net(np.zeros(2)), [1, 2])
    assert net.offset.grad_req == "null" and net.offset.dtype == np.float64
    assert np.array_equal(copy.deepcopy(net)(np.zeros(2)), [1, 2])


def test_parameter_dict():
    net = nn.Sequential(nn.Dense(2, in_units=3), nn.Dense(1, in_units=2))
    params = net.collect_params()
    params.initialize("ones")
    assert params["0.weight"].data().shape == (2, 3)
    net.collect_params("0").setattr("grad_req", "null")
    assert [p.grad_req for p in params.values()] == ["null", "null", "write", "write"]
    params.setattr("lr_mult", 0.1)
    assert net[1].weight.lr_mult == 0.1
    with pytest.raises(ParameterError, match="no attribute 'lr_mul'") as caught:
        params.setattr("lr_mul", 1)
    assert "did you mean 'lr_mult'?" in str(caught.value)
    assert repr(params).splitlines()[1] == "  0.weight: shape=(2, 3), dtype=float32"


def test_parameters_of_a_dict_are_selected_saved_and_loaded(tmp_path: Path):
    net = nn.Sequential(nn.Dense(2, in_units=3), nn.Dense(1, in_units=2))
    net.initialize()
    weights = net.collect_params().select(".*weight")
    assert list(weights) == ["0.weight", "1.weight"]
    weights.save(tmp_path / "weights")
    before = [p.data().asnumpy() for p in weights.values()]
    net.initialize("zeros", force_reinit=True)
    weights.load(tmp_path / "weights")
    assert all(np.array_equal(p.data(), b) for p, b in zip(weights.values(), before, strict=True))
    with pytest.raises(ParameterError, match=r"0\.bias is missing"):
        net.collect_params().load(tmp_path / "weights")
    net.collect_params().load(tmp_path / "weights", allow_missing=True)


def test_params_get_makes_a_parameter_as_in_gluon():
    class Layer(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.weight = self.params.get("weight", shape=(2, 3), init="ones")

    assert Layer().params.get("weight").shape == (2, 3)
    assert Layer().params.get("bias") is None


def test_a_parameter_is_no_array():
    weight = made()
    for use in (lambda: np.exp(weight), lambda: weight.data() + weight, lambda: X @ weight):
        with pytest.raises(TypeError, match="parameter weight is used as an array") as caught:
            use()
        assert "parameter.data()" in str(caught.value)


def test_repr_has_the_name_in_the_network():
    net = nn.Sequential(nn.Dense(2, in_units=3))
    assert repr(net[0].weight) == "Parameter 0.weight (shape=(2, 3), dtype=float32)"


@pytest.mark.parametrize("shape", ["a", (2, "b"), 2.0, (2, 3.0), -2, (2, -3)])
def test_a_shape_is_whole_numbers(shape: Any):
    with pytest.raises(ParameterError, match="not the shape of a parameter"):
        nn.Parameter("weight", shape)


def test_sizes_may_be_numbers_of_numpy():
    assert made(shape=np.int64(3)).shape == (3,)
    assert made(shape=np.array([2, 3])).shape == (2, 3)
    assert nn.Parameter("weight", (2, -1)).shape == (2, 0)


def test_a_parameter_with_a_gradient_stays_a_float():
    weight = made()
    with pytest.raises(ParameterError, match="has a gradient, which int32 cannot have"):
        weight.cast("int32")
    assert weight.dtype == weight.data().dtype == np.float32
    weight.grad_req = "null"
    weight.cast("int32")
    assert weight.dtype == weight.data().dtype == np.int32


def test_params_get_constant_makes_one_as_in_gluon():
    class Scaled(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.scale = self.params.get_constant("scale", np.array([1.0, 2.0]))

        def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
            return F.multiply(x, scale)

    net = Scaled().initialize()
    assert isinstance(net.scale, nn.Constant) and net.scale.grad_req == "null"
    for _ in range(2):
        np.testing.assert_array_equal(net(X), X * [1.0, 2.0])
        net.hybridize()


def test_a_pattern_that_is_no_regular_expression():
    with pytest.raises(ParameterError, match="not a regular expression") as caught:
        nn.Dense(2).collect_params("*weight")
    assert ".*weight" in str(caught.value)


def test_errors_show_the_users_line():
    for wrong in (
        lambda: nn.Dense(2)(X),
        lambda: nn.Dense(2).weight.data(),
        lambda: made().set_data(np.ones(5)),
        lambda: np.dot(X, made()),
    ):
        with pytest.raises(mg.MinigraphError) as caught:
            wrong()
        where = caught.value.where
        assert where is not None and Path(where.file) == Path(__file__)


# ---- while a function is traced


def test_first_values_are_drawn_outside_of_traces():
    net = nn.Dense(3, in_units=2)
    net.initialize()
    before = net.weight.data().asnumpy()

    def again(x: Any) -> Any:
        net.initialize("xavier", force_reinit=True)
        return net(x)

    def new(x: Any) -> Any:
        inside = nn.Dense(3)
        inside.initialize()
        return inside(x)

    def loaded(x: Any) -> Any:
        weight = nn.Parameter("weight")
        weight.set_data(np.ones((2, 3)))
        return x @ weight.data()

    for function in (again, new, loaded):
        assert function(mg.array(X)).shape == (4, 3), "Python may do so"
        net.weight.set_data(before)
        with pytest.raises(StateError, match=r"parameter weight is .* while tracing") as caught:
            mg.jit(function)(mg.array(X))
        assert caught.value.where is not None and caught.value.where.file == __file__
        assert "outside" in caught.value.instead
    assert np.array_equal(net.weight.data(), before)


@pytest.mark.parametrize("hybrid", [False, True])
def test_what_was_deferred_is_drawn_by_the_first_call_also_in_a_trace(hybrid: bool):
    net = nn.HybridSequential(nn.Dense(3), nn.Dense(2))
    net.initialize()
    function = net.hybridize() if hybrid else mg.jit(lambda x: net(x))
    first = function(mg.array(X))
    assert np.allclose(first, function(mg.array(X)))
    assert np.any(first)


def test_parameters_in_the_place_of_their_arrays():
    net = nn.Dense(3, in_units=2)
    net.initialize()

    def by(variables: Any) -> Any:
        with autograd.record():
            loss = net(X).sum()
        return autograd.grad(loss, variables)

    expected = by([net.weight.data(), net.bias.data()])
    for variables in ([net.weight, net.bias], net.collect_params().values()):
        assert all(map(np.array_equal, by(variables), expected))
    assert np.array_equal(by(net.weight), expected[0])
    step = mg.jit(lambda: by([net.weight])[0] + by(net.weight))
    assert np.array_equal(step(), 2 * expected[0])
    with pytest.raises(OptionError, match="gradients are taken by arrays, not by a str"):
        by(net.collect_params())
    for misuse in (
        lambda: net.weight * 2,
        lambda: 2 - net.weight,
        lambda: -net.weight,
        lambda: X @ net.weight,
        lambda: net.weight[0],
        lambda: net.weight < 1,
    ):
        with pytest.raises(BlockError, match="parameter weight is used as an array") as caught:
            misuse()
        assert caught.value.instead == "parameter.data()"
