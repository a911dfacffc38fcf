from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from ir.local import DTYPES, types

from minigraph.errors import DtypeError
from minigraph.ir import (
    BOOL,
    COMPLEX,
    FLOAT,
    GENERATOR,
    INT,
    ArrayType,
    ObjectType,
    ScalarType,
    as_dtype,
    dim,
    parse_type,
    type_of,
)

n = dim("n")


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (BOOL, "bool"),
        (INT, "int"),
        (FLOAT, "float"),
        (COMPLEX, "complex"),
        (GENERATOR, "generator"),
        (ArrayType(np.dtype("?"), (3,)), "bool[3]"),
        (ArrayType(np.dtype("f2"), ()), "f16[]"),
        (ArrayType(np.dtype("u8"), (0, 3)), "u64[0,3]"),
        (ArrayType(np.dtype("c8"), (n, 2 * n + 1, n // 2)), "c64[n,2*n+1,(n//2)]"),
    ],
)
def test_text(type: Any, text: str) -> None:
    assert str(type) == text
    assert parse_type(text) == type and hash(parse_type(text)) == hash(type)
    assert parse_type(f"  {text} ") == type


@given(types)
def test_text_round_trip(type: Any) -> None:
    assert parse_type(str(type)) == type


@pytest.mark.parametrize(
    "text",
    ["", "f32", "float32[2]", "f32[2", "f32[,]", "f32[-1]", "f32[1.5]", "int[]", "f32[n//0]"],
)
def test_not_a_type(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse_type(text)


def test_types_differ() -> None:
    f4, f8 = np.dtype("f4"), np.dtype("f8")
    assert ArrayType(f4, (2,)) == ArrayType(f4, [2]) != ArrayType(f4, (2, 1))
    assert ArrayType(f4, (2,)) != ArrayType(f8, (2,)) and ArrayType(f4, (n,)) != ArrayType(f4, (2,))
    assert ScalarType(int) == INT != FLOAT and ObjectType("generator") == GENERATOR
    assert ArrayType(np.dtype("?"), ()) != BOOL


def test_sizes() -> None:
    type = ArrayType(np.dtype("f4"), (np.int64(2), n, 3))
    assert all(size.__class__ is not np.int64 for size in type.shape)
    assert (type.ndim, type.size, type.size_bytes, type.is_static) == (3, 6 * n, 24 * n, False)
    scalar = ArrayType(np.dtype("c16"), ())
    assert (scalar.ndim, scalar.size, scalar.size_bytes, scalar.is_static) == (0, 1, 16, True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "bool"),
        (1, "int"),
        (1.0, "float"),
        (1j, "complex"),
        (np.float64(1), "f64[]"),
        (np.bool_(True), "bool[]"),
        (np.array(1, "i4"), "i32[]"),
        (np.zeros((2, 0), ">f4"), "f32[2,0]"),
        (np.random.default_rng(0), "generator"),
    ],
)
def test_type_of(value: Any, text: str) -> None:
    assert str(type_of(value)) == text


@pytest.mark.parametrize("value", [None, "x", [1], object(), int, np.array(["a"]), np.array([{}])])
def test_no_type(value: Any) -> None:
    with pytest.raises(DtypeError):
        type_of(value)


def test_as_dtype() -> None:
    for dtype in DTYPES:
        assert as_dtype(dtype.newbyteorder()) is as_dtype(dtype.name) is as_dtype(dtype) == dtype
    assert as_dtype(np.longlong) is as_dtype(np.int64)
    assert as_dtype(float) == np.float64 and as_dtype(bool) == np.bool_


@pytest.mark.parametrize(
    "dtype", ["f3", "O", object, "U3", "M8[s]", "f4,f4", np.longdouble, [], {}]
)
def test_not_a_dtype(dtype: Any) -> None:
    with pytest.raises(DtypeError):
        as_dtype(dtype)
