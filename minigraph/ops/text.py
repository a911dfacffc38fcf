"""Texts with values in them, as attrs: what `print` prints and what errors say.

    print("x =", x)                parts=('x =', %)
    print(f"loss {x:.3f} of {y!r}")   parts=(('loss ', (%, '', '.3f'), ' of ', (%, 'r', '')),)

A word is a string, `%` for an operand as it is, or a tuple: a text put together of strings and of
operands with a conversion and a format, as in f-strings.  The conversion is "", "r", "s", "a";
"array" for the repr of an array without axes, which "r" takes for the scalar that it holds; or one
of the operator %, such as "%5.2f".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from minigraph.ir import OPERAND, is_array

from .rules import items_of

CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "": lambda x: x,
    "r": repr,
    "s": str,
    "a": ascii,
    "array": repr,
}


def words_of(parts: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """The words, with the values in place."""
    remaining = iter(values)
    return [_word(part, remaining) for part in parts]


def _word(part: Any, values: Iterator[Any]) -> Any:
    if part is OPERAND:
        return next(values)
    pieces = items_of(part)
    if pieces is None:
        return part
    return "".join(piece if type(piece) is str else _formatted(piece, values) for piece in pieces)


def _formatted(piece: Any, values: Iterator[Any]) -> str:
    _, conversion, spec = piece
    value: Any = next(values)
    if is_array(value) and not value.ndim:
        value = np.asarray(value) if conversion == "array" else value[()]
    if conversion.startswith("%"):
        return str(conversion % (value,))
    return format(CONVERSIONS[conversion](value), spec)


def operands_of(parts: Iterable[Any]) -> int:
    """How many operands the words need."""
    return sum(1 if part is OPERAND else operands_of(items_of(part) or ()) for part in parts)
