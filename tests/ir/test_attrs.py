from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from ir.local import F32, arrays, plain

from minigraph.ir import FLOAT, INT, OPERAND, ArrayType, constant_digest, dim, freeze

PAYLOAD = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]  # a NaN with other bits
BIG = np.arange(5000.0)

# No two of these are the same.
DIFFERENT = [
    0.0,
    -0.0,
    0,
    False,
    1,
    True,
    1.0,
    1 + 0j,
    complex(1.0, -0.0),
    float("nan"),
    -float("nan"),
    PAYLOAD,
    None,
    "1",
    b"1",
    "float32",
    np.dtype("f4"),
    np.dtype("f8"),
    F32,
    ArrayType(np.dtype("f4"), ()),
    INT,
    FLOAT,
    Ellipsis,
    OPERAND,
    (),
    [],
    (1,),
    [1],
    (1.0,),
    (True,),
    ((1,),),
    slice(1),
    slice(1, None),
    slice(None, True),
    slice(0, 1, 1),
    dim("n"),
    dim("n") + 1,
    np.float32(1),
    np.float64(1),
    np.array(1.0),
    np.array([1.0]),
    np.array([[1.0]]),
    np.array([1]),
    np.array([0.0]),
    np.array([-0.0]),
    np.array([np.nan]),
    np.array([PAYLOAD]),
    BIG,
    BIG.reshape(50, 100),
    BIG.astype("f4"),
    {"a": 1},
    {"a": 1.0},
    {"b": 1},
]


def test_what_differs_has_another_key() -> None:
    for i, a in enumerate(DIFFERENT):
        for j, b in enumerate(DIFFERENT):
            same = freeze(a) == freeze(b)
            assert same == (i == j), (a, b)


@pytest.mark.parametrize("attr", DIFFERENT, ids=repr)
def test_a_copy_has_the_same_key_and_hash(attr: Any) -> None:
    copy = attr.copy() if isinstance(attr, np.ndarray | list | dict) else attr
    assert freeze(copy) == freeze(attr) and hash(freeze(copy)) == hash(freeze(attr))


@given(plain)
def test_plain_attrs_are_hashable(attr: Any) -> None:
    assert {freeze(attr): 1}[freeze(attr)] == 1


def test_names_of_attrs_have_no_order() -> None:
    assert freeze({"a": 1, "b": 2}) == freeze({"b": 2, "a": 1})


def test_memory_layout_is_no_part_of_the_key() -> None:
    plain_array = np.arange(20000.0).reshape(100, 200)
    for array in (plain_array, plain_array[:3, :3]):
        other = np.asfortranarray(array)
        swapped = array.astype(array.dtype.newbyteorder())
        assert freeze(array) == freeze(other) == freeze(swapped)
        assert constant_digest(array) == constant_digest(other) == constant_digest(swapped)


def test_the_digest_is_for_large_arrays() -> None:
    assert constant_digest(np.zeros(8)) is None and constant_digest(np.float32(1)) is None
    assert constant_digest(3) is None and constant_digest(np.zeros((9, 0))) is None
    digests = {
        constant_digest(array)
        for array in (np.zeros(9), np.zeros((3, 3)), np.zeros(9, "f4"), -np.zeros(9))
    }
    assert len(digests) == 4 and all(len(str(digest)) == 7 + 24 for digest in digests)


@given(arrays(), arrays())
def test_arrays_have_one_key_exactly_when_they_are_the_same(a: Any, b: Any) -> None:
    same = (
        type(a) is type(b)
        and a.dtype == b.dtype
        and a.shape == b.shape
        and a.tobytes() == b.tobytes()
    )
    assert (freeze(a) == freeze(b)) == same
