"""Functions of SciPy on traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from scipy.special import erf, expit

import minigraph as mg
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


def test_a_function_of_a_recorded_name_is_not_taken_for_it():
    """`scipy.special.log1p` is not `np.log1p`: of float16 it makes float32."""
    assert isinstance(scipy.special.log1p, np.ufunc) and scipy.special.log1p is not np.log1p
    for function in (scipy.special.log1p, scipy.special.gamma, np.frompyfunc(abs, 1, 1)):
        with pytest.raises(UnsupportedError, match="is no function of NumPy"):
            mg.trace(lambda x, function=function: function(x), X)


def test_of_known_values_any_function_is_computed():
    def scaled(x: Any) -> Any:
        return x * scipy.special.gamma(np.ones(3) + 3)

    assert mg.jit(scaled)(X[:3]).tolist() == scaled(X[:3]).tolist()
