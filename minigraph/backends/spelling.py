"""Values and attrs as Python text that evaluates to exactly them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.ir import LONGEST_DECIMAL_BITS, OPERAND, Dim, dim

Bind = Callable[[Any, str], str]
"""Binds an object in the program's namespace under a name like the wish, and gives the name."""


def number_code(value: complex) -> str | None:
    """A Python number; None for a NaN whose bits no expression says."""
    if isinstance(value, complex):
        return _complex_code(value)
    if isinstance(value, float):
        return _float_code(value)
    return repr(value) if value.bit_length() <= LONGEST_DECIMAL_BITS else hex(value)


def _float_code(value: float) -> str | None:
    if math.isfinite(value):
        return repr(value)
    word = f"{value}" if math.copysign(1, value) > 0 else f"-{abs(value)}"
    same = struct.pack("=d", float(word)) == struct.pack("=d", value)
    return f'float("{word}")' if same else None


def _complex_code(value: complex) -> str | None:
    real, imag = value.real, value.imag
    # `1-2j` is a sum: it says the number only if no part is a zero whose sign the sum would lose.
    if math.isfinite(real) and math.isfinite(imag) and real != 0 and imag != 0:
        return repr(value)
    parts = _float_code(real), _float_code(imag)
    return None if None in parts else f"complex({parts[0]}, {parts[1]})"


def scalar_code(value: np.generic) -> str | None:
    """A NumPy scalar, as `np.float32(0.1)`; None where no expression says its bits."""
    kind = value.dtype.type
    number = value.item()
    words = [(number_code(number), number)]
    if isinstance(value, np.floating) and np.isfinite(value):
        # The shortest text first; that of the same number as a double is always exact.
        words.insert(0, (str(value), float(str(value))))
    for text, said in words:
        if text is not None and kind(said).tobytes() == value.tobytes():
            return f"np.{kind.__name__}({text})"
    return None


def attr_code(attr: Any, sizes: Mapping[str, str], bind: Bind) -> str:
    """An attr as an argument of a call.

    Args:
        attr: plain data.
        sizes: the local variable that holds each named dimension.
        bind: what to do with an object that has no short text.
    """
    if isinstance(attr, bool | str | bytes) or attr is None:
        return repr(attr)
    if attr is Ellipsis:
        return "..."
    if type(attr) in (int, float, complex):
        return number_code(attr) or bind(attr, "number")
    if isinstance(attr, tuple):
        inner = ", ".join(attr_code(item, sizes, bind) for item in attr)
        return f"({inner},)" if len(attr) == 1 else f"({inner})"
    if isinstance(attr, list):
        return "[" + ", ".join(attr_code(item, sizes, bind) for item in attr) + "]"
    if isinstance(attr, slice):
        parts = (attr_code(part, sizes, bind) for part in (attr.start, attr.stop, attr.step))
        return f"slice({', '.join(parts)})"
    if isinstance(attr, Dim):
        return dim_code(attr, sizes)
    if isinstance(attr, np.dtype):
        return bind(attr, attr.name)
    return bind(attr, "attr")


def dim_code(size: int | Dim, sizes: Mapping[str, str]) -> str:
    """A size as an expression over the local variables that hold the named dimensions."""
    if isinstance(size, Dim):
        size = size.substitute({name: dim(sizes[name]) for name in size.names()})
    return str(size)


def index_code(
    index: Sequence[Any], operands: Iterator[str], sizes: Mapping[str, str], bind: Bind
) -> str:
    """What stands between the brackets: `1:3, ::-1`, `i, :`; `operands` are the index arrays."""
    items = [_index_item(item, operands, sizes, bind) for item in index]
    return ", ".join(items) or "()"


def _index_item(item: Any, operands: Iterator[str], sizes: Mapping[str, str], bind: Bind) -> str:
    if item is OPERAND:
        return next(operands)
    if isinstance(item, slice):
        parts = [
            "" if part is None else _index_item(part, operands, sizes, bind)
            for part in (item.start, item.stop, item.step)
        ]
        return ":".join(parts if item.step is not None else parts[:2])
    return attr_code(item, sizes, bind)
