"""What records derivatives: into a graph, or into any recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from minigraph.ir import Graph, Ids, Loc, Node, Op, Type, Value, freeze
from minigraph.ops import Builder, cotangent_type, get, infer

Place = tuple[Loc | None, tuple[str, ...]]


class Rebuilder(Builder, Protocol):
    """A builder whose nodes can be exchanged: for those that give more than they did."""

    ids: Ids

    def maker(self, value: Value) -> Node | None:
        """The node of this recording that computes a value; None: that is recorded elsewhere."""
        ...

    def exchange(self, node: Node, by: Sequence[Node]) -> None:
        """Put nodes in the place of one; the last one has its results, and more."""
        ...


class GraphBuilder:
    """Adds nodes to those of a graph.

    Attributes:
        nodes: of the graph, and after them what was added; count: how many of them are no new ones.
    """

    def __init__(self, graph: Graph) -> None:
        self.ids = Ids.after(graph)
        self.nodes = list(graph.nodes)
        self.count = len(self.nodes)
        self._makers = graph.producers()
        self._constants: dict[Any, Value] = {}

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Place | None = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        types = infer(op, [value.type for value in inputs], attrs)
        loc, names = place or (None, ())
        outputs = [
            self.ids.value(type_, names[at] if at < len(names) else None)
            for at, type_ in enumerate(types)
        ]
        node = Node(self.ids.next(), op, inputs, attrs, outputs, loc)
        if checked and node.may_raise:
            node = Node(node.id, op, inputs, {**attrs, "safe": True}, outputs, loc)
        self.nodes.append(node)
        self._makers.update(dict.fromkeys(outputs, node))
        return tuple(outputs)

    def constant(self, concrete: Any, place: Place | None = None) -> Value:
        key = (type(concrete), freeze(concrete))
        if key not in self._constants:
            attrs = {"value": concrete}
            (self._constants[key],) = self.emit(get("const"), (), attrs, place=place)
        return self._constants[key]

    def maker(self, value: Value) -> Node | None:
        return self._makers.get(value)

    def exchange(self, node: Node, by: Sequence[Node]) -> None:
        at = self.nodes.index(node)
        self.nodes[at : at + 1] = by
        self.count += len(by) - 1 if at < self.count else 0
        self._makers.update((value, new) for new in by for value in new.outputs)


def add(builder: Builder, a: Value, b: Value, place: Place | None = None) -> Value:
    """Record a sum."""
    return builder.emit(get("add"), (a, b), {}, place=place)[0]


def zeros(builder: Builder, type_: Type, place: Place | None = None) -> Value:
    """Record the cotangent of a value of this type on which nothing depends."""
    like = cotangent_type(type_)
    assert like is not None, type_
    attrs = {"shape": like.shape, "dtype": like.dtype}
    return builder.emit(get("zeros"), (), attrs, place=place)[0]


def add_stored(
    builder: Builder,
    so_far: Value,
    op: Op,
    operands: Sequence[Value],
    attrs: Mapping[str, Any],
    place: Place | None = None,
) -> Value:
    """Record a sum, where what is added is zero but for what an op stores.

    Args:
        builder: what records it.
        so_far: what is added to.
        op: `update` or `scatter_add`.
        operands: all but the zeros that it stores into.
        attrs: its attrs.
        place: where the user wrote it.
    """

    def one(name: str, inputs: Sequence[Value]) -> Value:
        return builder.emit(get(name), inputs, attrs, place=place, checked=True)[0]

    stored, *places = operands
    if op.name == "update":
        there = one("gather" if places else "slice", [so_far, *places])
        stored = add(builder, there, stored, place)
    return one(op.name, [so_far, stored, *places])


def add_part(builder: GraphBuilder, so_far: Value, part: Value) -> Value:
    """Record a sum; of what is zero but for what an op stores, only that is added."""
    node = builder.maker(part)
    if node is not None and node.op.name in ("update", "scatter_add"):
        into = builder.maker(node.inputs[0])
        if into is not None and into.op.name == "zeros":
            return add_stored(builder, so_far, node.op, node.inputs[1:], node.attrs)
    return add(builder, so_far, part)
