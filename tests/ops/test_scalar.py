"""In which dtypes an elementwise op is computed, and by which text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ops.nodes import node_of, types_of

from minigraph import ops
from minigraph.ir import OPERAND, Node, ScalarType, Value
from minigraph.ops import OPS

BYTES = np.ones(3, "u1")
INTS = np.ones(3, "i4")
LONGS = np.ones(3, "i8")
UNSIGNED = np.ones(3, "u8")
SINGLES = np.ones(3, "f4")
DOUBLES = np.ones(3, "f8")
BOOLS = np.ones(3, bool)
ROWS = np.ones((2, 3), "f4")


def made(name: str, *operands: Any, **attrs: Any) -> tuple[Node, dict[Value, Any]]:
    node = node_of(OPS[name], types_of(operands), attrs)
    given = zip(node.inputs, operands, strict=True)
    return node, {value: x for value, x in given if isinstance(value.type, ScalarType)}


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "loop", "text"),
    [
        ("add", (SINGLES, 1), {}, "f4 f4 -> f4", "{0} + {1}"),
        ("add", (BYTES, INTS), {}, "i4 i4 -> i4", "{0} + {1}"),
        ("add", (LONGS, UNSIGNED), {}, "f8 f8 -> f8", "{0} + {1}"),
        ("add", (BOOLS, BOOLS), {}, "? ? -> ?", "{0} | {1}"),
        ("add", (DOUBLES, SINGLES), {"dtype": np.dtype("f4")}, "f4 f4 -> f4", "{0} + {1}"),
        ("divide", (INTS, SINGLES), {}, "f8 f8 -> f8", "{0} / {1}"),
        ("floor_divide", (BYTES, BYTES), {}, "u1 u1 -> u1", "floor_divide_ints({0}, {1})"),
        ("sqrt", (INTS,), {}, "f8 -> f8", "sqrt({0})"),
        ("less", (BYTES, 300), {}, "i8 i8 -> ?", "{0} < {1}"),
        ("less", (BYTES, 2**70), {}, "u8 u8 -> ?", "True"),
        ("less", (2**70, BYTES), {}, "u8 u8 -> ?", "False"),
        ("less", (LONGS, UNSIGNED), {}, "i8 u8 -> ?", "order({0}, {1}) < 0"),
        ("less", (UNSIGNED, LONGS), {}, "u8 i8 -> ?", "0 < order({1}, {0})"),
        ("less", (SINGLES, 3), {}, "f4 f4 -> ?", "{0} < {1}"),
        ("logical_and", (SINGLES, INTS), {}, "? ? -> ?", "({0} != 0) & ({1} != 0)"),
        ("isnan", (INTS,), {}, "i4 -> ?", "False"),
        ("where", (SINGLES, INTS, 1.5), {}, "? f8 f8 -> f8", "{1} if {0} else {2}"),
        ("round", (SINGLES,), {}, "f4 -> f4", "rint({0})"),
        ("cast", (DOUBLES,), {"dtype": np.dtype("f4")}, "f8 -> f4", "{0}"),
        ("cast", (SINGLES,), {"dtype": np.dtype("u1")}, "f4 -> u1", "float_to_uint8({0})"),
        ("cast", (SINGLES,), {"dtype": np.dtype(bool)}, "f4 -> ?", "{0} != 0"),
        ("copy", (BOOLS,), {"order": "C"}, "? -> ?", "{0} != 0"),
        ("clip", (SINGLES, 0, 1), {}, "f4 f4 f4 -> f4", "clip_to_fixed({0}, {1}, {2})"),
        ("clip", (SINGLES, SINGLES, 1), {}, "f4 f4 f4 -> f4", "minimum(maximum({0}, {1}), {2})"),
        ("clip", (SINGLES, 1), {"high": OPERAND}, "f4 f4 -> f4", "minimum({0}, {1})"),
        ("pow", (SINGLES, 2), {}, "f4 f4 -> f4", "{0} * {0}"),
        ("pow", (SINGLES, True), {}, "f4 f4 -> f4", "{0}"),
        ("pow", (INTS, 2), {}, "i4 i4 -> i4", "power_ints({0}, {1})"),
        ("pow", (2, SINGLES), {}, "f4 f4 -> f4", "power({0}, {1})"),
        ("erf", (INTS,), {}, "f8 -> f8", "erf({0})"),
    ],
)
def test_loops_and_texts(name: str, operands: Any, attrs: Any, loop: str, text: str):
    node, numbers = made(name, *operands, **attrs)
    inputs, outputs = (tuple(map(np.dtype, part.split())) for part in loop.split(" -> "))
    assert ops.loop_dtypes(node, numbers) == (inputs, outputs)
    assert ops.scalar_text(node, numbers) == text


@pytest.mark.parametrize(
    ("name", "operands", "attrs"),
    [
        ("add", (np.ones(3, "f2"), 1), {}),
        ("add", (SINGLES, 1j), {}),
        ("add", (1, 2), {}),
        ("sqrt", (np.ones(3, "i1"),), {}),
        ("where", (np.ones(3, "f2"), SINGLES, SINGLES), {}),
        ("round", (SINGLES,), {"decimals": 1}),
        ("round", (BOOLS,), {}),
        ("reciprocal", (INTS,), {}),
        ("divmod", (SINGLES, SINGLES), {}),
        ("gcd", (INTS, INTS), {}),
        ("sum", (SINGLES,), {"axis": (0,)}),
    ],
)
def test_what_is_not_computed_element_by_element(name: str, operands: Any, attrs: Any):
    node, numbers = made(name, *operands, **attrs)
    assert ops.scalar_text(node, numbers) is None


@pytest.mark.parametrize(
    ("base", "exponent", "exact"),
    [
        (SINGLES, 2, True),
        (SINGLES, np.array(0.5), True),
        (SINGLES, 3, False),
        (SINGLES, 0.3, False),
        (SINGLES, SINGLES, False),
        (np.float32(2), 2, False),
        (INTS, 3, True),
    ],
)
def test_which_powers_are_numpys_bit_for_bit(base: Any, exponent: Any, exact: bool):
    node, _ = made("pow", base, exponent)
    numbers = {} if exponent is SINGLES else {node.inputs[1]: exponent}
    assert (ops.scalar_text(node, numbers, exact=True) is not None) is exact
    assert ops.scalar_text(node, numbers) is not None


@pytest.mark.parametrize(
    ("exponent", "fixed"),
    [(0.5, True), (np.float32(0.5), True), (np.ones((2, 1), "f4"), True), (SINGLES, False)],
)
def test_numpy_takes_the_root_for_a_power_that_is_fixed_along_a_row(exponent: Any, fixed: bool):
    node, _ = made("pow", ROWS, exponent)  # nothing is known of the exponent
    text = ops.scalar_text(node)
    assert text == ("sqrt({0}) if {1} == 0.5 else power({0}, {1})" if fixed else "power({0}, {1})")


def test_ops_that_may_differ_in_the_last_bits_have_no_exact_text():
    for name in ops.TRANSCENDENTAL - {"pow", "power"}:
        scalar = OPS[name].scalar
        assert isinstance(scalar, str), name
        node, _ = made(name, *[DOUBLES] * len(set(re.findall(r"{\d}", scalar))))
        assert ops.scalar_text(node) == scalar
        assert ops.scalar_text(node, exact=True) is None
