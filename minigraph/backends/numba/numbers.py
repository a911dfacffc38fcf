"""Python's numbers one statement at a time: what `checked` has for each op.

    %n = add %a, %b : int          n = add_ints(a, b)
    %x = divide %n, %y : float     x = divide_floats(float64(n), y)

Operands are bools, int64 and float64.  As in Python, a bool counts as an int, and an int that meets
a float becomes one, but for comparisons, which are exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from minigraph.ir import BOOL, FLOAT, INT, Node, Type, Value

NUMBER_DTYPES: Mapping[Type, str] = {BOOL: "boolean", INT: "int64", FLOAT: "float64"}
"""As what compiled code holds Python's numbers."""

Texts = tuple[str | None, str | None]

_ARITHMETIC: Mapping[str, Texts] = {
    "add": ("add_ints({0}, {1})", "{0} + {1}"),
    "subtract": ("subtract_ints({0}, {1})", "{0} - {1}"),
    "multiply": ("multiply_ints({0}, {1})", "{0} * {1}"),
    "divide": ("divide_ints({0}, {1})", "divide_floats({0}, {1})"),
    "floor_divide": ("floor_divide_numbers({0}, {1})", "floor_divide_floats({0}, {1})"),
    "remainder": ("remainder_of_numbers({0}, {1})", "remainder_of_floats({0}, {1})"),
    "pow": ("power_int({0}, {1})", "power_floats({0}, {1})"),
    "negative": ("subtract_ints(0, {0})", "-{0}"),
    "positive": ("{0}", "{0}"),
    "absolute": ("(subtract_ints(0, {0}) if {0} < 0 else {0})", "fabs({0})"),
    "bitwise_and": ("{0} & {1}", None),
    "bitwise_or": ("{0} | {1}", None),
    "bitwise_xor": ("{0} ^ {1}", None),
    "invert": ("~{0}", None),
    "left_shift": ("left_shift_int({0}, {1})", None),
    "right_shift": ("right_shift_int({0}, {1})", None),
}
"""By the name of the op: its text for ints and for floats."""

ENDING = frozenset(
    "exact_float fail_unless int_of_float place square_float within".split()
) | frozenset(
    re.findall(r"(\w+)\(", " ".join(text for pair in _ARITHMETIC.values() for text in pair if text))
) - {"fabs"}  # fmt: skip
"""What a text may call that may end the loop."""

_COMPARISONS = frozenset("equal not_equal less less_equal greater greater_equal".split())
_SAME = frozenset(("identity", "stop_gradient"))


def number_texts(node: Node, operands: Sequence[str], numbers: Mapping[Value, Any]) -> list[str]:
    """The text of each result of a node all of whose operands are Python numbers; none: no text.

    Args:
        node: of any op.
        operands: the texts of its operands.
        numbers: those that are known.
    """
    kinds = [value.type for value in node.inputs]
    if not all(kind in (BOOL, INT, FLOAT) for kind in kinds) or "dtype" in node.attrs:
        return []
    if node.op.name == "divmod":
        names = ("floor_divide", "remainder")
    elif node.op.name in _COMPARISONS:
        return [_compared(node, operands)]
    elif node.op.name in _SAME:
        return list(operands)
    elif node.op.name in _ARITHMETIC:
        names = (node.op.name,)
    else:
        return []
    as_floats = FLOAT in kinds or (node.op.name == "pow" and node.outputs[0].type is FLOAT)
    texts = [_ARITHMETIC[name][as_floats] for name in names]
    if any(value.type not in (BOOL, INT, FLOAT) for value in node.outputs) or None in texts:
        return []
    if node.op.name == "pow" and as_floats and numbers.get(node.inputs[1]) == 2:
        texts = ["square_float({0})"]
    wanted = FLOAT if as_floats else INT
    given = [number_as(text, kind, wanted) for text, kind in zip(operands, kinds, strict=True)]
    return [
        number_as(str(text).format(*given), wanted, value.type)
        if value.type is BOOL
        else str(text).format(*given)
        for text, value in zip(texts, node.outputs, strict=True)
    ]


def number_as(text: str, kind: Type, wanted: Type) -> str:
    """A number of one of Python's kinds as one of another."""
    return text if kind is wanted else f"{NUMBER_DTYPES[wanted]}({text})"


def _compared(node: Node, operands: Sequence[str]) -> str:
    kinds = [value.type for value in node.inputs]
    assert node.op.operator is not None
    given = list(operands)
    for at, kind in enumerate(kinds):
        if kind is BOOL:
            given[at] = f"int64({given[at]})"
        if FLOAT in kinds and kind is not FLOAT:
            given[at] = f"exact_float({given[at]})"
    return node.op.operator.format(*given)
