"""Derivatives where functions have kinks, poles and ties, and against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.gradients import gradient, gradient_graph, gradients, recorded

import minigraph as mg
from minigraph.errors import UnsupportedError
from minigraph.ir import OPERAND
from minigraph.ops import evaluate, special

inf, nan = np.inf, np.nan


def of(name: str, *inputs: Any, **attrs: Any) -> Any:
    """The gradient of the first input."""
    found = gradient(name, *(np.array(x) if isinstance(x, list) else x for x in inputs), **attrs)
    return found[0].tolist()


def both(name: str, *inputs: Any, **attrs: Any) -> list[Any]:
    return [each.tolist() for each in gradient(name, *map(np.array, inputs), **attrs)]


# ---- kinks, poles


def test_where_the_slope_jumps_it_lies_in_the_middle():
    assert of("absolute", [-2.0, 0.0, -0.0, 3.0]) == [-1, 0, 0, 1]
    assert of("fabs", [-2.0, 0.0, 3.0]) == [-1, 0, 1]
    assert of("maximum", [-1.0, 0.0, 2.0], 0) == [0, 0.5, 1]
    assert of("minimum", [-1.0, 0.0, 2.0], 0) == [1, 0.5, 0]
    assert of("sign", [-1.0, 0.0]) == [0, 0]


def test_equal_operands_get_half_each():
    x, y = [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]
    assert both("maximum", x, y) == [[0.5, 0, 1], [0.5, 1, 0]]
    assert both("minimum", x, y) == [[0.5, 1, 0], [0.5, 0, 1]]
    assert both("fmax", x, y) == both("maximum", x, y)
    assert both("fmin", x, y) == both("minimum", x, y)


def test_nan_and_the_larger_one():
    assert both("maximum", [nan, 1.0], [1.0, nan]) == [[1, 1], [1, 1]]
    assert both("fmax", [nan, 1.0], [1.0, nan]) == [[0, 1], [1, 0]]
    assert both("fmin", [nan, 1.0], [1.0, nan]) == [[0, 1], [1, 0]]


def test_of_what_is_stored_at_equal_positions_the_last_counts():
    base, value, g = np.zeros((2, 3)), np.ones((3, 3)), np.arange(1.0, 7.0).reshape(2, 3)

    def found(index: Any, *places: Any, value: Any = value) -> Any:
        graph = recorded(
            lambda op, *inputs: op("update", *inputs, *map(np.array, places), index=index),
            *(base, value),
        )
        return evaluate(gradient_graph(graph), [base, value, g])[1].tolist()

    assert found([OPERAND], [1, 0, -1]) == [[0] * 3, [1, 2, 3], [4, 5, 6]]
    assert found([OPERAND], [1, 0, -1], value=np.ones(3)) == [5, 7, 9]
    assert found([slice(None), OPERAND], [0, -3], value=np.ones((2, 2))) == [[0, 1], [0, 4]]
    assert found([OPERAND], [0], value=np.ones((1, 3))) == [[1, 2, 3]]


def test_on_a_bound_all_passes():
    assert of("clip", [-1.0, 0.0, 0.5, 1.0, 2.0], 0.0, 1.0) == [0, 1, 1, 1, 0]
    low, high = np.array([0.0, 0.0, 3.0]), np.array([1.0, 1.0, 2.0])
    found = gradient("clip", np.array([-1.0, 2.0, 0.0]), low, high)
    assert [each.tolist() for each in found] == [[0, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert of("clip", [1.0, 3.0], 2.0, high=OPERAND) == [1, 0]


def test_a_root_has_an_infinite_slope_at_0():
    assert of("sqrt", [0.0, 4.0]) == [inf, 0.25]
    assert of("cbrt", [0.0]) == [inf]
    assert of("log", [0.0]) == [inf]


def test_powers_at_0():
    x = [0.0, 0.0, 0.0, 0.0, 2.0]
    y = [0.0, 1.0, 2.0, 0.5, 3.0]
    base, exponent = gradient("power", np.array(x), np.array(y))
    assert base.tolist() == [0, 1, 0, inf, 12]
    np.testing.assert_allclose(exponent, [0, 0, 0, 0, 8 * np.log(2)])
    assert of("pow", [0.0, 2.0], 0) == [0, 0]
    assert of("pow", [0.0, 3.0], 1) == [1, 1]
    assert of("pow", [0.0, -3.0], 2) == [0, -6]
    assert of("pow", [-2.0], 3) == [12]
    (exponent,) = gradient("power", 0, np.array([1.0, -1.0]))
    assert exponent.tolist() == [0, -inf]


def test_python_numbers_have_gradients_of_float64():
    x, y = gradient("pow", 3.0, 2.0)
    assert (x.dtype, x.shape, float(x)) == (np.float64, (), 6.0)
    np.testing.assert_allclose(y, 9 * np.log(3))
    x, y = gradient("pow", 0.0, 0.5)
    assert (float(x), float(y)) == (inf, 0.0)
    number, array = gradient("multiply", 2.0, np.float32([1, 2]))
    assert (number.dtype, float(number)) == (np.float64, 3.0)
    assert (array.dtype, array.tolist()) == (np.float32, [2, 2])


@pytest.mark.parametrize("order", [None, 2, 1, 3, inf])
def test_a_norm_at_the_origin(order: Any):
    attrs = {} if order is None else {"ord": order}
    assert of("norm", [0.0, 0.0], **attrs) == [0, 0]
    assert of("hypot", [0.0], [0.0]) == [0]


def test_a_branch_that_is_not_taken_may_be_nan():
    def root(op: Any, x: Any) -> Any:
        return op("where", op("greater", x, 0), op("sqrt", op("maximum", x, 1e-300)), 0.0)

    (found,) = gradients(root, np.array([4.0, 0.0, -1.0]))
    assert found.tolist() == [0.25, 0, 0]
    x, y = gradients(
        lambda op, x, y: op("where", op("greater", x, 0), x, y),
        np.array([nan, 1.0]),
        np.array([1.0, nan]),
    )
    assert (x.tolist(), y.tolist()) == ([0, 1], [1, 0])


# ---- ties of reductions


def test_equal_extremes_share():
    assert of("max", [[1.0, 3, 3], [5, 5, 5]], axis=(1,)) == [[0, 0.5, 0.5], [1 / 3] * 3]
    assert of("min", [1.0, 1.0, 2.0], axis=(0,)) == [0.5, 0.5, 0]
    assert of("nanmax", [nan, 2.0, 2.0], axis=(0,)) == [0, 0.5, 0.5]
    assert of("ptp", [0.0, 0.0, 4.0, 4.0], axis=(0,)) == [-0.5, -0.5, 0.5, 0.5]
    assert of("max", [1.0, 2.0], axis=(0,), initial=2) == [0, 0.5]
    assert of("max", [1.0, 2.0], axis=(0,), initial=3) == [0, 0]
    assert of("median", [1.0, 2.0, 2.0, 3.0], axis=(0,)) == [0, 0.5, 0.5, 0]
    assert of("median", [4.0, 1.0, 2.0], axis=(0,)) == [0, 0, 1]
    assert of("norm", [2.0, -2.0, 1.0], ord=inf) == [0.5, -0.5, 0]


def test_the_last_of_equal_extremes_so_far():
    assert of("cummax", [1.0, 1.0, 0.0, 2.0], axis=0) == [1, 2, 0, 1]
    assert of("cummin", [1.0, 1.0, 2.0, 0.0], axis=0) == [1, 2, 0, 1]
    assert of("cummax", [1.0, nan, 3.0], axis=0) == [1, 2, 0]


def test_products_of_zeros():
    assert of("prod", [2.0, 3.0, 4.0], axis=(0,)) == [12, 8, 6]
    assert of("prod", [0.0, 3.0, 4.0], axis=(0,)) == [12, 0, 0]
    assert of("prod", [0.0, 0.0, 4.0], axis=(0,)) == [0, 0, 0]
    assert of("nanprod", [nan, 0.0, 4.0], axis=(0,)) == [0, 4, 0]
    assert of("cumprod", [2.0, 0.0, 3.0, 0.0, 5.0], axis=0) == [1, 8, 0, 0, 0]
    assert of("prod", np.ones((0, 2)), axis=(0,)) == []


def test_the_second_derivative_of_a_product_with_a_zero():
    x = np.array([0.0, 3.0, 4.0])
    back = gradient_graph(recorded(lambda op, x: op("prod", x, axis=(0,)), x))
    (row,) = evaluate(gradient_graph(back, [0]), [x, np.ones(()), np.array([1.0, 0, 0])])
    assert row.tolist() == [0, 4, 3]
    (row,) = evaluate(gradient_graph(back, [0]), [x, np.ones(()), np.array([0.0, 1, 0])])
    assert row.tolist() == [4, 0, 0]


def test_the_deviation_of_what_is_all_equal():
    assert of("std", [2.0, 2.0], axis=(0,)) == [0, 0]
    assert of("var", [1.0, 3.0], axis=(0,), ddof=1) == [-2, 2]


# ---- positions


def test_equal_positions_add_up():
    x = np.arange(4.0)
    assert of("take", x, [1, 1, -3, 0]) == [1, 3, 0, 0]
    assert of("take", x, [5, 9], mode="wrap") == [0, 2, 0, 0]
    assert of("take", x, [5, 9], mode="clip") == [0, 0, 0, 2]
    assert of("gather", x, np.array([2, 2, 2]), index=[OPERAND]) == [0, 0, 3, 0]
    assert of("take_along_axis", np.ones((2, 2)), np.array([[0, 0, 0], [1, 1, 0]]), axis=1) == [
        [3, 0],
        [1, 2],
    ]
    assert of("repeat", [1.0, 2.0], repeats=(3, 0)) == [3, 0]
    assert of("pad", [1.0, 2.0, 3.0], pad_width=((2, 1),), mode="edge") == [3, 1, 2]


def test_what_is_replaced_gets_nothing():
    base, value = gradient("update", np.zeros(4), np.ones(2), np.array([1, 3]), index=[OPERAND])
    assert (base.tolist(), value.tolist()) == ([1, 0, 1, 0], [1, 1])
    mask = np.array([True, False, True])
    base, value = gradient("update", np.zeros((3, 2)), np.ones(2), mask, index=[OPERAND])
    assert (base.tolist(), value.tolist()) == ([[0, 0], [1, 1], [0, 0]], [2, 2])
    with pytest.raises(UnsupportedError, match="a value for each element"):
        gradient("update", np.zeros(3), np.ones(2), mask, index=[OPERAND])


def test_sorting_brings_cotangents_back():
    def weighted(op: Any, x: Any) -> Any:
        return op("multiply", op("sort", x), np.array([1.0, 2.0, 3.0]))

    assert gradients(weighted, np.array([5.0, 1.0, 3.0]))[0].tolist() == [3, 1, 2]


# ---- what has no derivative


def test_an_op_without_a_rule_says_so():
    with pytest.raises(UnsupportedError, match="mode='mean'"):
        gradient("pad", np.ones(3), pad_width=((1, 1),), mode="mean")
    with pytest.raises(UnsupportedError, match="hazen"):
        gradient("quantile", np.ones(3), 0.5, axis=(0,), method="hazen")


def test_a_stopped_gradient():
    def product(op: Any, x: Any) -> Any:
        return op("multiply", x, op("stop_gradient", x))

    assert gradients(product, np.array([3.0, 4.0]))[0].tolist() == [3, 4]
    assert gradients(lambda op, x: op("identity", x), np.array([3.0]))[0].tolist() == [1]


def test_integers_have_no_gradient():
    def steps(op: Any, x: Any) -> Any:
        return op(
            "multiply", op("cast", op("cast", x, dtype=np.dtype("i8")), dtype=np.dtype("f8")), x
        )

    assert gradients(steps, np.array([2.5]))[0].tolist() == [2]
    assert len(gradient("multiply", np.array([1, 2]), np.array([1.0, 2.0]))) == 1


# ---- against PyTorch


def _at_kinks(*shape: int) -> np.ndarray[Any, Any]:
    """Small integers: many zeros and ties."""
    return np.random.default_rng(3).integers(-2, 3, shape).astype(np.float64)


def _smooth(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(4).uniform(0.2, 0.9, shape)


TORCH: dict[str, tuple[Any, list[Any], dict[str, Any]]] = {
    "absolute": (lambda t, x: t.abs(x), [_at_kinks(9)], {}),
    "maximum": (lambda t, x, y: t.maximum(x, y), [_at_kinks(9), _at_kinks(9)[::-1]], {}),
    "minimum": (lambda t, x, y: t.minimum(x, y), [_at_kinks(9), _at_kinks(9)[::-1]], {}),
    "clip": (lambda t, x: t.clamp(x, -1, 1), [_at_kinks(9)], {}),
    "max": (lambda t, x: t.amax(x, 1), [_at_kinks(4, 9)], {"axis": (1,)}),
    "min": (lambda t, x: t.amin(x, 0), [_at_kinks(9, 4)], {"axis": (0,)}),
    "prod": (lambda t, x: t.prod(x, 1), [_at_kinks(6, 3)], {"axis": (1,)}),
    "cumprod": (lambda t, x: t.cumprod(x, 1), [_at_kinks(6, 4)], {"axis": 1}),
    "cumsum": (lambda t, x: t.cumsum(x, 0), [_at_kinks(6, 4)], {"axis": 0}),
    "cummax": (lambda t, x: t.cummax(x, 1)[0], [_at_kinks(4, 6)], {"axis": 1}),
    "sort": (lambda t, x: t.sort(x, 1)[0], [_smooth(4, 6)], {"axis": -1}),
    "var": (lambda t, x: t.var(x, 1, correction=1), [_smooth(4, 6)], {"axis": (1,), "ddof": 1}),
    "std": (lambda t, x: t.std(x, 0, correction=0), [_smooth(4, 6)], {"axis": (0,)}),
    "nansum": (lambda t, x: t.nansum(x, 0), [np.array([1.0, nan])], {"axis": (0,)}),
    "norm": (lambda t, x: t.linalg.norm(x, dim=1), [_at_kinks(5, 3)], {"axis": 1}),
    "quantile": (lambda t, x: t.quantile(x, 0.3), [_smooth(7)], {"axis": (0,)}),
    "power": (lambda t, x, y: t.pow(x, y), [_at_kinks(8).clip(0), _at_kinks(8)[::-1]], {}),
    "hypot": (lambda t, x, y: t.hypot(x, y), [_smooth(5), _smooth(5)], {}),
    "arctan2": (lambda t, x, y: t.atan2(x, y), [_smooth(5), -_smooth(5)], {}),
    "logaddexp": (lambda t, x, y: t.logaddexp(x, y), [_smooth(5), 3 * _smooth(5)], {}),
    "copysign": (lambda t, x, y: t.copysign(x, y), [_at_kinks(9), _smooth(9) - 0.5], {}),
    "sinc": (lambda t, x: t.sinc(x), [_at_kinks(9) / 2], {}),
    "erf": (lambda t, x: t.erf(x), [_smooth(5)], {}),
    "expit": (lambda t, x: t.sigmoid(x), [_smooth(5)], {}),
    "cholesky": (lambda t, x: t.linalg.cholesky(x), [3 * np.eye(3) + _smooth(3, 1)], {}),
    "inv": (lambda t, x: t.linalg.inv(x), [np.eye(3) + _smooth(3, 3)], {}),
    "det": (lambda t, x: t.linalg.det(x), [np.eye(3) + _smooth(3, 3)], {}),
    "pinv": (lambda t, x: t.linalg.pinv(x), [_smooth(4, 3)], {}),
    "eigvalsh": (lambda t, x: t.linalg.eigvalsh(x), [np.diag([1.0, 2, 4]) + 0.1], {}),
    "solve": (lambda t, a, b: t.linalg.solve(a, b), [np.eye(3) + _smooth(3, 3), _smooth(3)], {}),
    "einsum": (
        lambda t, x, y: t.einsum("bij,bjk->ki", x, y),
        [_smooth(2, 3, 4), _smooth(2, 4, 5)],
        {"subscripts": "bij,bjk->ki"},
    ),
}


@pytest.mark.parametrize("name", TORCH)
def test_torch_has_the_same_gradients(name: str):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if name in special.RULES:
        pytest.importorskip("scipy.special", reason="SciPy is not installed")
    function, inputs, attrs = TORCH[name]
    extra: list[Any] = {"clip": [-1.0, 1.0], "quantile": [0.3]}.get(name, [])
    graph = recorded(lambda op, *values: op(name, *values, *extra, **attrs), *inputs)
    with np.errstate(all="ignore"):
        (result,) = evaluate(graph, inputs)
        weights = np.linspace(0.5, 2.0, np.size(result)).reshape(np.shape(result))
        found = evaluate(gradient_graph(graph), [*inputs, weights])
    leaves = [torch.tensor(np.array(x), requires_grad=True) for x in inputs]
    (function(torch, *leaves) * torch.tensor(weights)).sum().backward()
    for one, leaf in zip(found, leaves, strict=True):
        np.testing.assert_allclose(one, leaf.grad.numpy(), 1e-9, 1e-12)


def test_what_where_does_not_choose():
    """0 times an infinite slope is NaN, as README says; so is its way out."""
    x = np.array([4.0, 0.0, -1.0])
    with np.errstate(all="ignore"):
        found = mg.grad(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum())(x)
        chosen_before = mg.grad(
            lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 1)), 0.0).sum()
        )(x)
        not_passed_on = mg.grad(lambda x: np.where(x > 0, x, np.nan).sum())(x)
    assert np.array_equal(found, [0.25, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(chosen_before, [0.25, 0, 0])
    assert np.array_equal(not_passed_on, [1, 0, 0])
