"""Attrs are plain data; `freeze` gives them a hashable form that tells equal from nearly equal."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np


class Operand:
    """Stands in an index for the next array among the node's inputs (`%` in the text form)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "%"


OPERAND = Operand()

LARGEST_KEY_BYTES = 4096  # arrays above this are keyed by the digest of their bytes


def class_of(value: object) -> type[Any]:
    """`type(value)`, for type checkers: a class that one may ask anything."""
    return type(value)


def freeze(attr: Any) -> Any:
    """A hashable key: equal exactly for attrs that are the same bit for bit.

    0.0 is not -0.0, NaN is itself, True is not 1 is not 1.0; arrays count by bytes, shape and dtype
    (in native byte order: a type has no other).
    """
    kind = class_of(attr)
    if kind is float:
        return (float, struct.pack("=d", attr))
    if kind is complex:
        return (complex, struct.pack("=dd", attr.real, attr.imag))
    if kind is tuple or kind is list:
        return (kind, *(freeze(item) for item in attr))
    if kind is slice:
        return (slice, freeze(attr.start), freeze(attr.stop), freeze(attr.step))
    if isinstance(attr, np.ndarray | np.generic):
        # A 0-d array and a NumPy scalar of the same bytes are different objects to a user.
        array = native(attr)
        content = _sha256(array) if array.nbytes > LARGEST_KEY_BYTES else array.tobytes()
        return (isinstance(attr, np.generic), array.dtype.str, array.shape, content)
    if isinstance(attr, np.dtype):
        return (np.dtype, attr.str)  # `np.dtype("f4") == "f4"` holds
    if issubclass(kind, Mapping):
        return (dict, *sorted((name, freeze(item)) for name, item in attr.items()))
    if kind in (int, bool):
        return (kind, attr)
    return attr  # str, bytes, None, Ellipsis, Dim, types, Graph: hashable, and equal when the same


LARGEST_PRINTED = 8  # elements of a constant array that the text form shows in full


def constant_digest(value: Any) -> str | None:
    """The digest by which the text form names a large array constant; None for a small one."""
    if not isinstance(value, np.ndarray) or value.size <= LARGEST_PRINTED:
        return None
    return "sha256:" + _sha256(native(value)).hex()[:24]


def native(value: Any) -> np.ndarray[Any, Any]:
    """The array in native byte order (itself if it is)."""
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _sha256(array: np.ndarray[Any, Any]) -> bytes:
    content = hashlib.sha256(repr((array.dtype.str, array.shape)).encode())
    content.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return content.digest()
