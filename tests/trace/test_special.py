"""Functions of SciPy on traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from scipy.special import erf, expit

import minigraph as mg
from minigraph import ops
from minigraph.errors import UnsupportedError

X = np.array([-np.inf, -2, -0.5, -0.0, 0.3, 1, np.nan])


def ops_of(graph: Any) -> list[str]:
    return [node.op.name for node in graph.nodes]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32"])
def test_erf_and_expit_are_ops(dtype: str):
    def both(x: Any) -> Any:
        return scipy.special.erf(x), expit(x)

    x = np.nan_to_num(X, posinf=9, neginf=-9).astype(dtype)
    graph = mg.trace(both, x)
    assert ops_of(graph) == ["erf", "expit"]
    for found, expected in zip(mg.compile(graph)(x), both(x), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_they_take_what_ufuncs_take():
    def into(x: Any, mask: Any) -> Any:
        out = np.zeros_like(x)
        erf(x, out=out, where=mask)
        x[mask] = expit(x[mask])
        return out, x, erf(0.5), erf(x.astype("f4"), dtype="f8")

    for found, expected in zip(mg.jit(into)(X.copy(), X > 0), into(X.copy(), X > 0), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_python_number_becomes_an_array():
    assert mg.jit(lambda x: erf(x))(0.5) == erf(0.5)


def test_a_function_of_that_name_is_not_taken_for_it():
    def erf(x: Any) -> Any:
        return x + 1

    assert ops.special_op(scipy.special.erf) is ops.OPS["erf"]
    assert ops.special_op(np.frompyfunc(erf, 1, 1)) is None
    with pytest.raises(UnsupportedError):
        mg.trace(lambda x: scipy.special.gamma(x), X)
