"""Values that are kept for each turn of a loop, as elements of arrays.

An array is stacked.  A Python number becomes an array without axes, and a number again where it is
read; an int that does not fit into 64 bits raises `OverflowError`.
"""

from __future__ import annotations

import numpy as np

from minigraph.ir import ArrayType, Ids, Node, ScalarType, Type, Value
from minigraph.ops import get

from .building import GraphBuilder


def kept_type(type_: Type) -> ArrayType:
    """The type of an array that holds one value."""
    if isinstance(type_, ArrayType):
        return type_
    assert isinstance(type_, ScalarType), type_
    return ArrayType(np.asarray(type_.python()).dtype, ())


def as_array(builder: GraphBuilder, value: Value) -> Value:
    """Record what is kept of a value."""
    if isinstance(value.type, ArrayType):
        return value
    return builder.emit(get("cast"), (value,), {"dtype": kept_type(value.type).dtype})[0]


def kept_value(ids: Ids, value: Value) -> Value:
    """What holds one value that was kept; an array is itself."""
    return value if isinstance(value.type, ArrayType) else ids.value(kept_type(value.type))


def as_value(ids: Ids, kept: Value, value: Value) -> list[Node]:
    """The nodes that make of what was kept the value it was kept of; none for an array."""
    if kept is value:
        return []
    return [Node(ids.next(), get("item"), [kept], {}, [value])]
