"""What a runner computes is compared with the reference."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.harness.checking import check
from benchmarks.workloads import WORKLOADS


def right(name: str):
    """A case, its reference, and outputs as a good runner has them."""
    workload = WORKLOADS[name]
    case = workload.case(0.01)
    expected = case.expected()
    dtype = workload.dtype or np.int64
    return case, expected, [each.astype(dtype) for each in expected]


@pytest.mark.parametrize("name", ["mlp-32", "softmax", "mandelbrot", "collatz", "newton"])
def test_what_is_right_is_found_right(name: str):
    case, expected, outputs = right(name)
    verdict = check(case, outputs, expected)
    assert verdict.wrong == "" and verdict.error <= case.workload.tolerance


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16])
def test_any_integer_does_where_no_dtype_is_asked_for(dtype: type):
    case, expected, (steps,) = right("collatz")
    assert check(case, [steps.astype(dtype)], expected).error == 0
    assert "instead of an integer" in check(case, [steps.astype(np.float64)], expected).wrong
    assert "1 away" in check(case, [2 * steps.astype(dtype)], expected).wrong


def test_counts_may_differ_in_few_elements():
    case, expected, (counts,) = right("mandelbrot")
    flat = counts.reshape(-1)
    few = int(flat.size * case.workload.tolerance)
    flat[:few] += 1
    assert check(case, [counts], expected).error == few / flat.size
    flat[: few + flat.size // 100] += 3
    assert "of the elements differ" in check(case, [counts], expected).wrong


def test_gradients_are_compared_along_a_direction():
    workload = WORKLOADS["lstm-training"]
    case = workload.case(0.05)
    expected = case.expected()
    along = iter(expected[1:])
    gradients = []
    for name, direction in case.directions().items():  # the shortest with that derivative
        wanted = next(along) / np.sum(direction**2)
        gradients.append((wanted * direction).astype(np.float32))
        assert gradients[-1].shape == case.parameters[name].shape
    loss = expected[0].astype(np.float32)
    assert check(case, [loss, *gradients], expected).wrong == ""
    assert "away" in check(case, [loss, 1.1 * gradients[0], *gradients[1:]], expected).wrong
    assert "away" in check(case, [np.float32(1.1) * loss, *gradients], expected).wrong
    assert "gradients of shapes" in check(case, [loss, *gradients[1:]], expected).wrong
    assert (
        "gradients of shapes" in check(case, [loss, gradients[0].T, *gradients[1:]], expected).wrong
    )
