"""The trainer: one program for all parameters, that sees every new rate and is never stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import FormatError, MinigraphError, OptionError, StateError
from minigraph.nn import (
    Parameter,
    ParameterDict,
    StaleGradientError,
    Trainer,
    clip_global_norm,
)
from minigraph.nn.optimizers import SGD, Adam, Optimizer
from minigraph.nn.schedules import Step

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01},
    "adagrad": {},
    "rmsprop": {"momentum": 0.5, "centered": True},
    "adam": {"clip_gradient": 0.5},
    "adamw": {"clip_global_norm": 0.5},
}


def parameters(*shapes: Any, dtype: str = "float32") -> ParameterDict:
    rng = np.random.default_rng(0)
    made = ParameterDict()
    for index, shape in enumerate(shapes or [(3, 2), (2,)]):
        name = f"layer{index}.weight"
        made[name] = Parameter(name, shape, dtype)
        made[name].initialize("zeros")
        made[name].set_data(rng.normal(size=shape))
    return made


def backward(params: ParameterDict, seed: int = 0, but: tuple[str, ...] = ()) -> None:
    """As `backward` of some loss would do."""
    rng = np.random.default_rng(seed)
    for name, parameter in params.items():
        gradient = rng.normal(size=parameter.shape)
        if name not in but:
            parameter.grad()[...] = gradient
            parameter.data().fresh_grad = True


def values(params: ParameterDict) -> list[Any]:
    return [parameter.data().asnumpy() for parameter in params.values()]


def assert_close(found: list[Any], expected: list[Any], tolerance: float = 1e-6) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_gradients_are_divided_by_the_batch_size():
    params = parameters((1,))
    params["layer0.weight"].set_data([10.0])
    params["layer0.weight"].grad()[...] = 18.0
    params["layer0.weight"].data().fresh_grad = True
    Trainer(params, "sgd", {"learning_rate": 1.0}).step(4)
    assert values(params) == [[5.5]]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS.items())
def test_compiled_is_eager(name: str, options: dict[str, Any]):
    compiled, eager = parameters(), parameters()
    trainer, other = Trainer(compiled, name, options), Trainer(eager, name, options)
    for step in range(5):
        backward(compiled, step)
        backward(eager, step)
        trainer.step(2)
        with mg.eager():
            other.step(2)
    assert_close(values(compiled), values(eager))
    assert trainer.compiled.graph().name == "update"
    with pytest.raises(OptionError, match="no step was compiled yet"):
        print(other.compiled)


def test_one_program_serves_all_rates_and_batch_sizes():
    params = parameters()
    trainer = Trainer(params, "sgd", {"learning_rate": 0.5})
    backward(params)
    trainer.step(1)
    program = trainer.compiled
    before = values(params)
    trainer.set_learning_rate(0.25)
    assert trainer.learning_rate == 0.25
    backward(params)
    gradients = [parameter.grad().asnumpy() for parameter in params.values()]
    trainer.step(4)
    assert trainer.compiled is program
    assert trainer.updates == 2
    assert_close(values(params), [w - 0.25 * g / 4 for w, g in zip(before, gradients, strict=True)])


def test_arrays_stay_the_same_objects():
    params = parameters()
    arrays = [parameter.data().data_ for parameter in params.values()]
    trainer = Trainer(params, "adam")
    backward(params)
    trainer.step(1)
    for parameter, array in zip(params.values(), arrays, strict=True):
        assert parameter.data().data_ is array


def test_a_schedule_sets_the_rate_of_each_update():
    params = parameters((2,))
    trainer = Trainer(params, "sgd", {"lr_scheduler": Step(1.0, every=2, factor=0.1)})
    assert trainer.learning_rate == 1.0
    for rate in (1.0, 1.0, 0.1, 0.1, 0.01):
        before = values(params)[0]
        backward(params)
        trainer.step(1)
        assert trainer.learning_rate == pytest.approx(rate)
        assert_close([before - values(params)[0]], [rate * params["layer0.weight"].grad()])
    with pytest.raises(OptionError, match="follows a schedule"):
        trainer.set_learning_rate(0.1)


def test_a_function_may_be_the_schedule_and_run_in_python():
    counts: list[int] = []

    def rate(count: int) -> float:
        counts.append(count)
        return 1.0 if count < 1 else 0.5

    params = parameters((2,))
    trainer = Trainer(params, "sgd", {"learning_rate": rate})
    assert np.isnan(trainer.learning_rate)
    for _ in range(3):
        backward(params)
        trainer.step(1)
    assert counts == [0, 1, 2] and trainer.learning_rate == 0.5


def test_factors_of_a_parameter_are_seen():
    params = parameters((2,), (2,))
    trainer = Trainer(params, "sgd", {"learning_rate": 1.0, "wd": 0.5})
    for factors in ((1.0, 1.0), (0.5, 0.0)):
        first = params["layer0.weight"]
        first.lr_mult, first.wd_mult = factors
        before = values(params)
        backward(params)
        gradients = [parameter.grad().asnumpy() for parameter in params.values()]
        trainer.step(1)
        expected = [
            before[0] - factors[0] * (gradients[0] + 0.5 * factors[1] * before[0]),
            before[1] - (gradients[1] + 0.5 * before[1]),
        ]
        assert_close(values(params), expected)


def test_a_stale_gradient_is_an_error_and_changes_nothing():
    params = parameters((2,), (2,), (2,))
    trainer = Trainer(params, "sgd", {"learning_rate": 1.0})
    backward(params)
    trainer.step(1)
    before = values(params)
    backward(params, but=("layer0.weight", "layer2.weight"))
    message = (
        r"gradient of layer0.weight, layer2.weight since (.|\n)*test_trainer.py"
        r"(.|\n)*ignore_stale_grad=True"
    )
    with pytest.raises(StaleGradientError, match=message):
        trainer.step(1)
    with pytest.raises(UserWarning):  # what code for Gluon catches
        trainer.step(1)
    assert_close(values(params), before, 0.0)
    trainer.step(1, ignore_stale_grad=True)
    assert_close(values(params)[::2], before[::2], 0.0)
    assert np.all(values(params)[1] != before[1])


def test_parameters_count_their_own_updates():
    params, single = parameters((2,), (2,)), parameters((2,))
    single["layer0.weight"].set_data(values(params)[1])
    trainer, other = Trainer(params, "adam"), Trainer(single, "adam")
    backward(params, but=("layer1.weight",))
    trainer.step(1, ignore_stale_grad=True)
    backward(params)
    single["layer0.weight"].grad()[...] = params["layer1.weight"].grad()
    single["layer0.weight"].data().fresh_grad = True
    trainer.step(1)
    other.step(1)
    assert_close(values(params)[1:], values(single))


def test_parameters_without_a_gradient_are_left_alone():
    params = parameters((2,), (2,))
    params["layer0.weight"].grad_req = "null"
    before = values(params)
    trainer = Trainer(params, "sgd", {"learning_rate": 1.0})
    backward(ParameterDict({"layer1.weight": params["layer1.weight"]}))
    trainer.step(1)
    assert_close(values(params)[:1], before[:1], 0.0)
    assert np.all(values(params)[1] != before[1])


def test_a_parameter_is_updated_once_however_often_it_is_given():
    params = parameters((2,))
    (parameter,) = params.values()
    before = values(params)[0]
    trainer = Trainer([parameter, parameter], "sgd", {"learning_rate": 1.0})
    backward(params)
    trainer.step(1)
    assert_close(values(params), [before - parameter.grad()])


def test_a_parameter_that_is_cast_goes_on():
    params = parameters((2,))
    trainer = Trainer(params, "sgd", {"learning_rate": 1.0, "momentum": 0.5})
    backward(params)
    trainer.step(1)
    first = params["layer0.weight"].grad().asnumpy()
    params["layer0.weight"].cast("float64")
    before = values(params)[0]
    backward(params, 1)
    trainer.step(1)
    (after,) = values(params)
    assert after.dtype == np.float64
    assert_close([before - after], [0.5 * first + params["layer0.weight"].grad()])


def test_an_optimizer_of_ones_own_runs_eagerly():
    class Signs(Optimizer):
        def update(self, weight: Any, gradient: Any, state: Any, rate: Any, wd: float) -> None:
            weight -= rate * np.sign(gradient)

    params = parameters((2,))
    before = values(params)[0]
    backward(params)
    Trainer(params, Signs(learning_rate=0.5)).step(1)
    assert_close(values(params), [before - 0.5 * np.sign(params["layer0.weight"].grad())])


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS.items())
def test_states_that_are_saved_and_loaded_go_on_identically(
    name: str, options: dict[str, Any], tmp_path: Path
):
    params, others = parameters(), parameters()
    trainer = Trainer(params, name, options)
    for step in range(3):
        backward(params, step)
        trainer.step(1)
    trainer.set_learning_rate(0.25)
    trainer.save_states(tmp_path / "states")
    for parameter, value in zip(others.values(), values(params), strict=True):
        parameter.set_data(value)
    other = Trainer(others, name, options)
    other.load_states(tmp_path / "states")
    assert other.learning_rate == 0.25 and other.updates == 3
    for step in range(3, 6):
        for each, at in ((params, trainer), (others, other)):
            backward(each, step)
            at.step(1)
    for a, b in zip(values(params), values(others), strict=True):
        assert a.tobytes() == b.tobytes()


def test_loading_goes_into_the_arrays_of_a_compiled_program(tmp_path: Path):
    params = parameters()
    trainer = Trainer(params, "sgd", {"momentum": 0.9})
    backward(params)
    trainer.step(1)
    trainer.save_states(tmp_path / "states")
    program, weights = trainer.compiled, values(params)
    found: list[Any] = []
    for _ in range(2):
        for parameter, weight in zip(params.values(), weights, strict=True):
            parameter.set_data(weight)
        trainer.load_states(tmp_path / "states")
        backward(params, 1)
        trainer.step(1)
        found.append(values(params))
    assert trainer.compiled is program
    assert_close(*found, 0.0)


def test_states_of_another_optimizer_are_refused(tmp_path: Path):
    params = parameters()
    trainer = Trainer(params, "adam")
    backward(params)
    trainer.step(1)
    trainer.save_states(tmp_path / "states")
    other = Trainer(params, "sgd", {"momentum": 0.9})
    with pytest.raises(FormatError, match=r"layer0.weight.momentum it has no such array"):
        other.load_states(tmp_path / "states")
    assert other.updates == 0


@pytest.mark.parametrize("most", [2.0, 200.0])
def test_clipping_by_the_global_norm_is_that_of_pytorch(most: float):
    torch = pytest.importorskip("torch")
    arrays = [mg.array(np.arange(6.0).reshape(2, 3)), mg.array(np.float32([7.0]))]
    tensors = [torch.zeros(array.shape, requires_grad=True) for array in arrays]
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor.grad = torch.tensor(array.asnumpy(), dtype=tensor.dtype)
    norm = torch.nn.utils.clip_grad_norm_(tensors, most)
    assert float(clip_global_norm(arrays, most)) == pytest.approx(float(norm))
    assert [array.dtype for array in arrays] == [np.float64, np.float32]
    assert_close(arrays, [tensor.grad for tensor in tensors])


def test_states_are_saved_before_the_first_step_too(tmp_path: Path):
    Trainer(parameters(), "adam", {"learning_rate": 0.5}).save_states(tmp_path / "states")
    other = Trainer(parameters(), "adam")
    other.load_states(tmp_path / "states")
    assert other.learning_rate == 0.5 and other.updates == 0


def test_what_a_trainer_says_of_itself():
    trainer = Trainer(parameters(), "sgd", {"learning_rate": 0.5})
    assert repr(trainer).startswith("Trainer(2 parameters, SGD(learning_rate=0.5, ")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Trainer(parameters(), "sdg"), r"no optimizer 'sdg'\n.*did you mean 'sgd'\?"),
        (lambda: Trainer(parameters(), "sgd", {"rate": 1}), "no option of SGD 'rate'"),
        (lambda: Trainer({}, "sgd"), "was given no parameters"),
        (lambda: Trainer([np.ones(3)], "sgd"), r"not a ndarray\n.*collect_params"),  # type: ignore[list-item]
        (lambda: Trainer(mg.nn.Block(), "sgd"), r"not a Block\n.*collect_params"),
        (lambda: Trainer(parameters(), Adam(), {"beta1": 0.5}), r"Adam\(beta1=\.\.\.\)"),
        (lambda: Trainer(parameters(), "sgd").step(0), "batch_size is 0"),
        (lambda: Trainer(parameters(), "sgd").set_learning_rate(-1), "the learning rate is -1"),
        (lambda: clip_global_norm([np.ones(2)], 0.0), "max_norm is 0.0"),
        (lambda: clip_global_norm([], 1.0), "no arrays to scale"),
        (lambda: Trainer(parameters(), SGD()).set_learning_rate(np.nan), "rate is nan"),
    ],
)
def test_wrong_use_is_told(make: Any, message: str):
    with pytest.raises(OptionError, match=message):
        make()


def test_a_parameter_without_numbers_says_so():
    trainer = Trainer([Parameter("weight", (2,))], "sgd")
    with pytest.raises(MinigraphError, match="weight has not been initialized"):
        trainer.step(1)


def test_a_trainer_is_made_outside_of_traces():
    params = parameters()

    def step(x: Any) -> Any:
        trainer = Trainer(params, "adam")
        with mg.autograd.record():
            loss = (x @ params["layer0.weight"].data()).sum()
        loss.backward()
        trainer.step(1, ignore_stale_grad=True)
        return loss

    x = mg.array(np.ones((2, 3), np.float32))
    step(x)
    with pytest.raises(StateError, match="a Trainer is made while tracing") as caught:
        mg.jit(step)(x)
    assert caught.value.where is not None and caught.value.where.file == __file__
