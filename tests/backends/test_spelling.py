"""A literal evaluates to exactly the number that it stands for."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from backends.checks import PYTHON, same
from hypothesis import given
from hypothesis import strategies as st

from minigraph import ops
from minigraph.backends.spelling import attr_code, number_code, scalar_code
from minigraph.ir import Graph, Node, Value, dim, type_of

DTYPES = [
    np.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float16 float32 float64 complex64 complex128"
    ).split()
]
NUMBERS = [
    0, -1, True, False, 10**5000, -(10**5000), 0.1, -0.0, 1e-324, 1e308, math.inf, -math.inf,
    math.nan, -math.nan, 1j, -1j, complex(-0.0, 2), complex(2, -0.0), complex(0.0, -2.0), 1 - 2j,
    complex(math.inf, math.nan), complex(-0.0, -0.0), 0j, -1.5 + 0.25j,
]  # fmt: skip


def evaluated(text: str) -> Any:
    return eval(text, {"np": np})


@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
def test_numbers(number: complex):
    text = number_code(number)
    assert text is not None and same(evaluated(text), number)


@given(st.floats() | st.complex_numbers() | st.integers())
def test_all_numbers(number: complex):
    text = number_code(number)
    odd = any(math.isnan(part) for part in (number.real, number.imag))
    assert odd if text is None else same(evaluated(text), number)


@given(st.sampled_from(DTYPES), st.binary(min_size=16, max_size=16))
def test_all_numpy_scalars(dtype: np.dtype[Any], content: bytes):
    if dtype.kind == "b":
        content = bytes([content[0] & 1]) * 16
    scalar = np.frombuffer(content, dtype)[0]
    text = scalar_code(scalar)
    assert np.isnan(scalar) if text is None else same(evaluated(text), scalar)


def test_scalars_read_well():
    assert scalar_code(np.float32(0.1)) == "np.float32(0.1)"
    assert scalar_code(np.float16("nan")) == 'np.float16(float("nan"))'
    assert scalar_code(np.int8(-3)) == "np.int8(-3)"
    assert scalar_code(np.complex64(1 - 2j)) == "np.complex64((1-2j))"
    assert number_code(-3) == "-3"


def test_a_number_that_no_text_says_is_bound():
    (odd,) = struct.unpack("<d", bytes.fromhex("010000000000f87f"))
    for held in (odd, np.float64(odd)):
        value = Value(0, type_of(held), "x")
        graph = Graph("f", [], [Node(0, ops.get("const"), [], {"value": held}, [value])], [value])
        program = PYTHON.emit(graph)
        assert program.source.splitlines()[-1].startswith("    return x")
        assert same(PYTHON.load(program)()[0], held)


def test_attrs():
    bound: list[Any] = []

    def bind(held: Any, wish: str) -> str:
        bound.append(held)
        return wish

    sizes = {"n": "n", "class": "class_"}
    attrs = [1, -0.5, None, True, "a'b", (1,), (1, (2, 3)), [], slice(1, None), ..., dim("n") * 2]
    assert [attr_code(attr, sizes, bind) for attr in attrs] == [
        "1", "-0.5", "None", "True", '"a\'b"', "(1,)", "(1, (2, 3))", "[]", "slice(1, None, None)",
        "...", "2*n",
    ]  # fmt: skip
    assert attr_code(dim("class") // dim("n"), sizes, bind) == "(class_//n)"
    assert bound == []
    array = np.ones(2)
    assert attr_code(array, sizes, bind) == "attr" and bound == [array]
