"""The turns of a `while`, as the loop that takes them back has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minigraph.ir import Graph, Ids, Node, Value, carried_count
from minigraph.ops import Builder, get

from .building import GraphBuilder


class Turns:
    """The turns of a loop, as the loop back takes them.

    Attributes:
        count: how many there were.
        ids: of the values of the loop back.
        outer: what that reads from outside, by what it is called within.
        derive: records the gradients of one turn: `(builder, turn, cotangents)`.
    """

    def __init__(self, count: Value) -> None:
        self.count = count
        self.ids = Ids()
        self.outer: dict[Value, Value] = {}
        self._inner: dict[Value, Value] = {}
        self.derive: Callable[[GraphBuilder, Value, Sequence[Value]], Sequence[Value]]

    def read(self, outer: Value) -> Value:
        """A value from outside, as it is called within."""
        if outer not in self._inner:
            inner = self._inner[outer] = self.ids.value(outer.type)
            self.outer[inner] = outer
        return self._inner[outer]


def fixed_inputs(turns: Turns, node: Node, body: Graph) -> dict[Value, Value]:
    """The inputs of the body that are the same in each turn, as the loop back calls them."""
    count = carried_count(node)
    return {
        value: turns.read(outer)
        for at, (value, outer) in enumerate(zip(body.inputs, node.inputs, strict=True))
        if at >= count or body.outputs[at] is value
    }


def one(builder: Builder, name: str, *inputs: Value, **attrs: Any) -> Value:
    """Record an op that cannot fail, with one result."""
    return builder.emit(get(name), inputs, attrs, checked=True)[0]


def like(values: Iterable[Value]) -> list[Value]:
    """Other values of the same types."""
    ids = Ids()
    return [ids.value(value.type) for value in values]
