from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from ir.local import CONST, OPS, arrays, numbers

from minigraph.errors import TextError
from minigraph.ir import Graph, Node, Value, freeze, parse_graph, type_of
from minigraph.ir.literals import constant_text, number_text


def graph_of(value: Any) -> Graph:
    made = Value(0, type_of(value))
    return Graph("f", [], [Node(0, CONST, [], {"value": value}, [made])], [made])


def reread(value: Any) -> Any:
    """The constant by way of text."""
    graph = graph_of(value)
    return parse_graph(str(graph), OPS, graph.constants).nodes[0].attrs["value"]


def read(text: str, type: str) -> Any:
    return (
        parse_graph(f"graph f() {{\n%0 = const {text} : {type}\nreturn %0\n}}", OPS)
        .nodes[0]
        .attrs["value"]
    )


PAYLOAD = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (-3, "-3"),
        (2**64, "18446744073709551616"),
        (0.1, "0.1"),
        (1e16, "1e+16"),
        (-0.0, "-0.0"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (-math.nan, "-nan"),
        (PAYLOAD, "<hex:010000000000f87f>"),
        (complex(0.0, -0.0), "complex(0.0, -0.0)"),
        (complex(math.nan, -math.inf), "complex(nan, -inf)"),
        (complex(PAYLOAD, 1.0), "<hex:010000000000f87f000000000000f03f>"),
        (np.float32(0.1), "0.1"),
        (np.float16(0.1), "0.1"),
        (np.float32(-np.nan), "-nan"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.int8(-128), "-128"),
        (np.bool_(False), "False"),
        (np.complex64(0.1 - 0j), "complex(0.1, 0.0)"),
        (np.array(0.1, "f4"), "array(0.1)"),
        (np.array(True), "array(True)"),
        (np.array(1j), "array(complex(0.0, 1.0))"),
        (np.array([1.5, -0.0, np.nan]), "[1.5, -0.0, nan]"),
        (np.array([[1, 2], [3, 4]], "u1"), "[[1, 2], [3, 4]]"),
        (np.array([PAYLOAD, 1.0]), "<hex:010000000000f87f000000000000f03f>"),
        (np.array([1, 2], ">i2"), "[1, 2]"),
        (np.zeros((0, 3), "f4"), "[]"),
        (np.zeros((3, 0), "f4"), "[]"),
        (np.zeros((10**6, 0)), "[]"),
    ],
)
def test_text_and_back(value: Any, text: str) -> None:
    assert constant_text(value) == text
    assert freeze(reread(value)) == freeze(value)
    assert type(reread(value)) is type(value)


@given(numbers)
def test_python_numbers_come_back_bit_for_bit(value: Any) -> None:
    assert freeze(reread(value)) == freeze(value)


@given(arrays())
def test_arrays_come_back_bit_for_bit(value: Any) -> None:
    again = reread(value)
    assert freeze(again) == freeze(value) and again.dtype == value.dtype


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_every_kind_of_float_comes_back(dtype: str) -> None:
    # All 65536 bit patterns of a half; of the others the patterns around the powers of two.
    bits = np.arange(65536, dtype="u2")
    size = np.dtype(dtype).itemsize
    patterns = bits.astype(f"u{size}") << (8 * (size - 2)) if size > 2 else bits
    for near in (0, 1, -1) if size > 2 else (0,):
        array = (patterns + np.array(near).astype(patterns.dtype)).view(dtype)[
            :: 1 + 60 * (size > 2)
        ]
        for item in array[::5]:
            text = constant_text(item)
            assert read(text, f"f{size * 8}[]").tobytes() == item.tobytes(), text


def test_print_options_change_nothing() -> None:
    value = np.array([0.1, 1 / 3, 1e300])
    with np.printoptions(precision=2, suppress=True, legacy="1.13"):
        assert freeze(reread(value)) == freeze(value)
        assert freeze(reread(value[1])) == freeze(value[1])


def test_what_is_no_constant_prints_all_the_same() -> None:
    assert constant_text("x") == "<?str>" and constant_text(np.array([{}])) == "<?array of object>"


def test_huge_integers() -> None:
    for value in (2**20000, -(2**20000) + 1):
        assert number_text(value).lstrip("-").startswith("0x") and reread(value) == value


def test_large_arrays_stay_beside_the_text() -> None:
    array = np.arange(9.0)
    graph = graph_of(array)
    text = str(graph)
    assert "const <sha256:" in text and len(text) < 120
    assert list(graph.constants) == [text.split("<")[1].split(">")[0]]
    assert reread(array) is array


@pytest.mark.parametrize(
    ("text", "type", "value"),
    [
        ("1", "float", 1.0),
        ("1", "complex", 1 + 0j),
        ("-nan", "f16[]", np.float16(-np.nan)),
        ("-nan", "f64[]", np.float64(-np.nan)),
        ("2", "f32[]", np.float32(2)),
        ("[1, 2.5]", "f32[2]", np.array([1, 2.5], "f4")),
        ("[1, complex(0.0, -0.0)]", "c64[2]", np.array([1, complex(0.0, -0.0)], "c8")),
        ("[[], [], []]", "f32[3,0]", np.zeros((3, 0), "f4")),
        ("[]", "f32[0,3]", np.zeros((0, 3), "f4")),
        ("[[1,],]", "i64[1,1]", np.array([[1]])),
        ("0xff", "u8[]", np.uint8(255)),
        ("<hex:0000c07f>", "f32[]", np.float32(np.nan)),
    ],
)
def test_what_people_may_write(text: str, type: str, value: Any) -> None:
    assert freeze(read(text, type)) == freeze(value)


@pytest.mark.parametrize(
    ("text", "type", "why"),
    [
        ("1.5", "int", "1.5 is no int"),
        ("True", "int", "True is no int"),
        ("1", "bool", "1 is no bool"),
        ("complex(1.0, 0.0)", "float", "is no float"),
        ("[1]", "int", "a list is no number"),
        ("array(1)", "int", "array"),
        ("array(1)", "i64[1]", "without axes"),
        ("256", "u8[]", "256 does not fit uint8"),
        ("-1", "u64[]", "-1 does not fit uint64"),
        ("1e10", "f16[]", "does not fit float16"),
        ("[1.5]", "i32[1]", "1.5 is no int32"),
        ("[True]", "f32[1]", "True is no float32"),
        ("[1]", "bool[1]", "1 is no bool"),
        ("[1, 2]", "i32[3]", r"does not have the shape of i32\[3\]"),
        ("[1, [2]]", "i32[2]", "shape"),
        ("[[1, 2], [3]]", "i32[2,2]", "shape"),
        ("1", "i32[1]", "shape"),
        ("[1]", "i32[]", "shape"),
        ("[]", "i32[2]", "shape"),
        ("[1]", "i32[n]", "no constants of type"),
        ("1", "generator", "no constants of type"),
        ("<hex:00>", "f32[]", "1 bytes are no f32"),
        ("<hex:0>", "f32[]", "hex"),
        ("<hex:00>", "float", "8 bytes"),
        ("<sha256:00>", "f32[9]", "not among `constants`.*graph.constants"),
        ("1" * 5000, "int", "digits"),
        ("0x" + "f" * 5000, "u8[]", "does not fit uint8"),
    ],
)  # fmt: skip
def test_a_constant_that_does_not_fit_its_type(text: str, type: str, why: str) -> None:
    with pytest.raises(TextError, match=why) as caught:
        read(text, type)
    assert "line 2, column 12" in str(caught.value)


def test_a_large_constant_of_another_type() -> None:
    graph = graph_of(np.arange(9.0))
    wrong = {digest: array.astype("f4") for digest, array in graph.constants.items()}
    with pytest.raises(TextError, match=r"f32\[9\], not f64\[9\]"):
        parse_graph(str(graph), OPS, wrong)
