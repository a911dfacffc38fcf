"""Values that are kept for each turn of a loop, as elements of arrays.

An array is stacked.  A Python number becomes an array without axes, and a number again where it is
read; an int that does not fit into 64 bits raises `OverflowError`.  A scan stacks by itself; a
`while` carries arrays that it stores into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minigraph.ir import INT, OPERAND, ArrayType, Graph, Ids, Node, ScalarType, Type, Value
from minigraph.ops import get

from .building import GraphBuilder
from .turns import one


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


class Keeping:
    """A forward loop that counts its turns, and keeps values of them in arrays.

    Args:
        body: what a turn does.
        kept: which values of it.
        room: the extent of the arrays.
    """

    def __init__(self, body: Graph, kept: Sequence[Value], room: int) -> None:
        self.body = body
        self.kept = kept
        self.room = room
        self._types = [
            ArrayType(held.dtype, (room, *held.shape))
            for held in (kept_type(value.type) for value in kept)
        ]
        zeros_of = ({"shape": each.shape, "dtype": each.dtype} for each in self._types)
        self.starts = [("const", {"value": 0}), *(("zeros", attrs) for attrs in zeros_of)]

    def attrs(
        self, node: Node, slot: Callable[..., Value], more: Sequence[Type] = ()
    ) -> dict[str, Any]:
        """The attrs of the loop.

        Args:
            node: the loop that keeps nothing.
            slot: records where in the arrays a turn has its place: `(builder, turn, *more)`.
            more: the types of further operands, at the end.
        """
        count = len(self.body.outputs)
        builder = GraphBuilder(self.body)
        turn = builder.ids.value(INT)
        others = [builder.ids.value(type_) for type_ in more]
        arrays = [builder.ids.value(type_) for type_ in self._types]
        place = slot(builder, turn, *others)
        stored = [
            one(builder, "update", into, as_array(builder, value), place, index=[OPERAND])
            for into, value in zip(arrays, self.kept, strict=True)
        ]
        after = one(builder, "add", turn, builder.constant(1))
        inputs, results = self.body.inputs, self.body.outputs
        body = Graph(
            self.body.name,
            [*inputs[:count], turn, *arrays, *inputs[count:], *others],
            builder.nodes,
            [*results, after, *stored],
        )
        test: Graph = node.attrs["test"]
        ids = Ids.after(test)
        unread = [ids.value(value.type) for value in (turn, *arrays, *others)]
        first = 1 + len(arrays)
        inputs = [
            *test.inputs[:count],
            *unread[:first],
            *test.inputs[count:],
            *unread[first:],
        ]
        return {
            **node.attrs,
            "test": Graph(test.name, inputs, test.nodes, test.outputs),
            "body": body,
        }


def taken(
    builder: GraphBuilder, place: Value, values: Sequence[Value], arrays: Iterable[Value]
) -> dict[Value, Value]:
    """Record what was kept of some values."""
    found: dict[Value, Value] = {}
    for value, array in zip(values, arrays, strict=True):
        held = one(builder, "gather", array, place, index=[OPERAND])
        is_array = isinstance(value.type, ArrayType)
        found[value] = held if is_array else one(builder, "item", held)
    return found
