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

UNCHECKED = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
}
"""Ops of ints whose result is known to fit."""

Texts = tuple[str | None, str | None]

_LARGER, _SMALLER = "({1} if {1} > {0} else {0})", "({1} if {1} < {0} else {0})"

_OPERATIONS: Mapping[str, Texts] = {
    "add": ("add_ints{if}({0}, {1}{needed})", "{0} + {1}"),
    "subtract": ("subtract_ints{if}({0}, {1}{needed})", "{0} - {1}"),
    "multiply": ("multiply_ints{if}({0}, {1}{needed})", "{0} * {1}"),
    "divide": ("divide_ints({0}, {1})", "divide_floats({0}, {1})"),
    "floor_divide": ("floor_divide_numbers({0}, {1})", "floor_divide_floats({0}, {1})"),
    "remainder": ("remainder_of_numbers({0}, {1})", "remainder_of_floats({0}, {1})"),
    "pow": ("power_int({0}, {1})", "power_floats({0}, {1})"),
    "negative": ("subtract_ints{if}(0, {0}{needed})", "-{0}"),
    "positive": ("{0}", "{0}"),
    "absolute": ("(subtract_ints(0, {0}) if {0} < 0 else {0})", "fabs({0})"),
    "maximum": (_LARGER, _LARGER),
    "minimum": (_SMALLER, _SMALLER),
    "bitwise_and": ("{0} & {1}", None),
    "bitwise_or": ("{0} | {1}", None),
    "bitwise_xor": ("{0} ^ {1}", None),
    "invert": ("~{0}", None),
    "left_shift": ("left_shift_int({0}, {1})", None),
    "right_shift": ("right_shift_int({0}, {1})", None),
    "to_int": ("{0}", "int_of_float({0})"),
    "round_number": ("{0}", "int_of_float(rint({0}))"),
    "math_ceil": ("{0}", "int_of_float(ceil({0}))"),
    "math_floor": ("{0}", "int_of_float(floor({0}))"),
    "math_trunc": ("{0}", "int_of_float({0})"),
    "math_gcd": ("greatest_common_divisor({0}, {1})", None),
    "math_isqrt": ("integer_root({0})", None),
}
"""By the name of the op: its text for ints and for floats, as what its operands go together."""

_OF_FLOATS: Mapping[str, str] = {
    "to_float": "{0}",
    "math_atan2": "c_atan2({0}, {1})",
    "math_copysign": "c_copysign({0}, {1})",
    "math_isfinite": "isfinite({0})",
    "math_isinf": "isinf({0})",
    "math_isnan": "{0} != {0}",
    **{f"math_{name}": f"c_{name}({{0}})" for name in "atan degrees erf erfc fabs radians".split()},
    **{
        f"math_{name}": f"defined(c_{name}({{0}}), {{0}})"
        for name in (
            "acos acosh asin asinh atanh cos cosh exp expm1 log log10 log1p log2 sin sinh sqrt tan "
            "tanh"
        ).split()
    },
}
"""Of functions whose operands count as floats."""

_COMPARISONS = frozenset("equal not_equal less less_equal greater greater_equal".split())
_SAME = frozenset(("identity", "stop_gradient"))
_BY_KNOWN = {
    "floor_divide": ("{0} >> {1}", "floor_divide_by_known({0}, {1})"),
    "remainder": ("{0} & {1}", "remainder_by_known({0}, {1})"),
}
"""By a known power of two, of which the operand is the exponent or one less; by another number."""

_NEVER = frozenset(
    "boolean int64 float64 uint8 uint64 fabs ceil floor isfinite isinf rint floor_divide_by_known "
    "remainder_by_known".split()
)
"""What is called without ending the loop."""

_WORDS = re.compile(r"([^\W\d]\w*)\(")
ENDING = frozenset(
    word
    for text in (*(t for pair in _OPERATIONS.values() for t in pair if t), *_OF_FLOATS.values())
    for word in _WORDS.findall(text.replace("{if}", ""))
    if word not in _NEVER and not word.startswith("c_")
) | frozenset("exact_float fail_unless place square_float within".split())
"""What a text may call that may end the loop."""


def number_texts(
    node: Node, operands: Sequence[str], numbers: Mapping[Value, Any], needed: str = ""
) -> list[str]:
    """The text of each result of a node all of whose operands are Python numbers; none: no text.

    Args:
        node: of any op.
        operands: the texts of its operands.
        numbers: those that are known.
        needed: the local that holds whether the result is of any use; "": it is.
    """
    kinds = [value.type for value in node.inputs]
    name = node.op.name
    if name == "select":
        return ["{1} if {0} else {2}".format(*operands)]
    if not all(kind in NUMBER_DTYPES for kind in kinds) or "dtype" in node.attrs:
        return []
    if name in _COMPARISONS:
        return [_compared(node, operands)]
    if name in _SAME:
        return list(operands)
    names = ("floor_divide", "remainder") if name == "divmod" else (name,)
    found = [_template(each, node, operands, numbers) for each in names]
    if any(value.type not in NUMBER_DTYPES for value in node.outputs):
        return []
    texts: list[str] = []
    for each, value in zip(found, node.outputs, strict=True):
        if each is None:
            return []
        template, given, result = each
        words = {"if": "_if" if needed else "", "needed": f", {needed}" if needed else ""}
        text = template.format(*given, **words)
        texts.append(number_as(text, result, value.type) if value.type is BOOL else text)
    return texts


def _template(
    name: str, node: Node, operands: Sequence[str], numbers: Mapping[Value, Any]
) -> tuple[str, list[str], Type] | None:
    """The text of an op, what goes into it, and what comes out of it."""
    kinds = [value.type for value in node.inputs]
    floats = FLOAT in kinds or name in _OF_FLOATS
    floats = floats or (name == "pow" and node.outputs[0].type is FLOAT)
    text = _OF_FLOATS.get(name) or _OPERATIONS.get(name, (None, None))[floats]
    if text is None or len(operands) != len(set(re.findall(r"\{(\d)\}", text))):
        return None
    wanted = FLOAT if floats else INT
    given = [number_as(text, kind, wanted) for text, kind in zip(operands, kinds, strict=True)]
    known = numbers.get(node.inputs[-1])
    if name == "pow" and floats and known == 2:
        return "square_float({0})", given, FLOAT
    if name in _BY_KNOWN and not floats and known not in (None, 0, -1):
        power, other = _BY_KNOWN[name]
        if known > 0 and known & (known - 1) == 0:
            number = known - 1 if name == "remainder" else known.bit_length() - 1
            return power, [given[0], str(number)], INT
        return other, given, INT
    is_bool = name.startswith("math_is") and name != "math_isqrt"
    return text, given, BOOL if is_bool else wanted


def may_end(text: str) -> bool:
    """Whether a text calls what may end the loop."""
    return not ENDING.isdisjoint(_WORDS.findall(text))


def is_cheap(text: str) -> bool:
    """Whether a text may as well be computed where its result is of no use."""
    return all(word in _NEVER or word.endswith("_ints_if") for word in _WORDS.findall(text))


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
