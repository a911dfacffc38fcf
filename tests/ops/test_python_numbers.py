"""Ops on Python's numbers: what they mean, and when they say that they raise."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops.nodes import node_of, types_of

from minigraph.errors import DtypeError
from minigraph.ir import FLOAT, INT, OPERAND, Op
from minigraph.ops import FAILURES, OPS, evaluate_node, infer, mathematics, words_of

ints = st.integers(-(2**80), 2**80)
small = st.integers(-50, 50)
floats = st.floats()
numbers = st.one_of(floats, ints, st.booleans())


def meaning(op: Op, *operands: Any, **attrs: Any) -> Any:
    node = node_of(op, types_of(operands), attrs)
    found = evaluate_node(node, operands)
    return found[0] if len(found) == 1 else found


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


@given(small, small, small.filter(bool))
def test_the_length_of_a_range(start: int, stop: int, step: int) -> None:
    assert meaning(OPS["range_length"], start, stop, step) == len(range(start, stop, step))


@given(st.one_of(st.tuples(floats, floats), st.tuples(ints, ints)))
def test_extremes_of_numbers_are_pythons(pair: tuple[Any, Any]) -> None:
    assert same(meaning(OPS["maximum"], *pair), max(*pair))
    assert same(meaning(OPS["minimum"], *pair), min(*pair))


def test_extremes_of_two_types_have_no_type() -> None:
    for types in ([INT, FLOAT], [FLOAT, INT]):
        with pytest.raises(DtypeError, match="depends on which one"):
            infer(OPS["maximum"], types, {})


@pytest.mark.parametrize("name", mathematics.FUNCTIONS)
@given(data=st.data())
def test_a_function_raises_only_where_it_says_so(name: str, data: st.DataObject) -> None:
    function = mathematics.FUNCTIONS[name]
    least, most = function.counts
    count = data.draw(st.integers(max(least, 1), min(most, 3)))
    kinds = small if function.integers else st.one_of(floats, small)
    operands = [data.draw(kinds) for _ in range(count)]
    if name == "ldexp":
        operands[1] = data.draw(small)
    python, op = getattr(math, name), OPS[f"math_{name}"]
    try:
        expected = python(*operands)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        node = node_of(op, types_of(operands), {})
        assert node.may_raise
        assert as_declared(FAILURES[op.name][""], operands), error
        with pytest.raises(type(error)):
            evaluate_node(node, operands)
        return
    assert same(meaning(op, *operands), expected)
    plain = expected if isinstance(expected, tuple) else (expected,)
    finite = all(not isinstance(x, float) or math.isfinite(x) for x in operands)
    if finite and "domain" in FAILURES[op.name][""]:  # else it would have raised
        assert not any(isinstance(x, float) and math.isnan(x) for x in plain)


def as_declared(words: str, operands: list[Any]) -> bool:
    """One of the words that name failures may hold of these operands."""
    if "below" in words:
        return any(x < 0 for x in operands)
    if "beyond" in words:
        return not math.isfinite(operands[0])
    return "domain" in words or "infinite" in words


@pytest.mark.parametrize("name", FAILURES)
def test_the_words_for_failures(name: str) -> None:
    known = set("zero negative below domain infinite beyond large still other".split())
    assert name in OPS
    for kinds, words in FAILURES[name].items():
        assert set(kinds) <= set("if") and set(words.split()) <= known


def test_every_op_on_numbers_that_may_raise_says_when() -> None:
    for op in OPS.values():
        if op.python is None or op.name in ("power", "add", "subtract", "multiply"):
            continue
        for types in ([FLOAT], [INT], [FLOAT, FLOAT], [INT, INT], [INT] * 3):
            attrs = {"result": INT} if op.name == "pow" else {}
            try:
                node = node_of(op, types, attrs)
            except (DtypeError, ValueError, TypeError):
                continue
            assert not node.may_raise or op.name in FAILURES, op.name


def test_items_are_numbers_of_the_arrays_kind() -> None:
    import numpy as np

    for x in (np.int8(3), np.array(True), np.float32(1.5), np.array(2 + 1j), np.uint64(2**63)):
        assert same(meaning(OPS["item"], x), x.item())
    with pytest.raises(DtypeError):
        infer(OPS["item"], types_of([np.ones(2)]), {})


@given(numbers)
def test_words_are_what_f_strings_show(x: Any) -> None:
    parts = (
        "a",
        OPERAND,
        ("<", (OPERAND, "", ""), "|", (OPERAND, "r", ">9"), "{}"),
        ((OPERAND, "%s", ""),),
    )
    assert words_of(parts, [x, x, x, x]) == ["a", x, f"<{x}|{x!r:>9}{{}}", str(x)] or x != x
