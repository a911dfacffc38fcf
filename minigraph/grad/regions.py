"""Regions differentiated: a forward and a backward graph of each, and what goes between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from minigraph.errors import UnsupportedError
from minigraph.ir import Graph, Ids, Node, Value
from minigraph.ops import Builder, cotangent_type, get, infer
from minigraph.passes import optimize

from .building import Place, Rebuilder
from .joining import Sweep, join
from .partition import Partition, partition

TIDY = ("fold", "simplify", "dce", "cse")

Start = tuple[str, Mapping[str, Any]]
"""An op without inputs, and its attrs."""


class Scope(NamedTuple):
    """Where a node with regions is differentiated.

    Attributes:
        sweep: differentiates what is inside.
        builder: takes the new nodes.
        place: where the user wrote the node.
        paused: nodes through which no gradient flows.
    """

    sweep: Sweep
    builder: Rebuilder
    place: Place
    paused: Collection[Node]

    def op(self, name: str, *inputs: Value, **attrs: Any) -> Value:
        """Record an op that cannot fail."""
        return self.emit(name, inputs, attrs)[0]

    def emit(
        self, name: str, inputs: Sequence[Value], attrs: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        """As `op`, of an op with several results."""
        return self.builder.emit(get(name), inputs, attrs, place=self.place, checked=True)

    def number(self, number: int) -> Value:
        """Record a constant."""
        return self.builder.constant(number, self.place)

    def now(self, node: Node) -> Node:
        """The node as it stands in the recording: an earlier sweep may have exchanged it."""
        return self.builder.maker(node.outputs[0]) or node

    def more(
        self, node: Node, attrs: Mapping[str, Any], starts: Sequence[Start] = (), at: int = 0
    ) -> tuple[Value, ...]:
        """The further results of a node with other regions.

        It takes the place of the node.  If that was recorded elsewhere, it is done once more, but
        for what it does to the world.

        Args:
            node: as it stands.
            attrs: of the other one.
            starts: further inputs, each as an op and its attrs.
            at: where they stand among the inputs.

        Raises:
            UnsupportedError: it would draw a second time.
        """
        count, ids = len(node.outputs), self.builder.ids
        if self.builder.maker(node.outputs[0]) is not node:
            again = {
                name: quiet(attr) if isinstance(attr, Graph) else attr
                for name, attr in attrs.items()
            }
            first = [self.op(name, **given) for name, given in starts]
            inputs = [*node.inputs[:at], *first, *node.inputs[at:]]
            return self.emit(node.op.name, inputs, again)[count:]
        nodes = [self._made(name, given) for name, given in starts]
        inputs = [*node.inputs[:at], *(each.output for each in nodes), *node.inputs[at:]]
        types = infer(node.op, [value.type for value in inputs], attrs)
        more = tuple(ids.value(type_) for type_ in types[count:])
        outputs = [*node.outputs, *more]
        nodes.append(Node(ids.next(), node.op, inputs, attrs, outputs, node.loc, node.origin))
        self.builder.exchange(node, nodes)
        return more

    def _made(self, name: str, attrs: Mapping[str, Any]) -> Node:
        """A node without inputs."""
        ids, op = self.builder.ids, get(name)
        (type_,) = infer(op, (), attrs)
        return Node(ids.next(), op, (), attrs, [ids.value(type_)], self.place[0])


def halves(
    scope: Scope, region: Graph, wanted: Sequence[int], given: Sequence[int], carried: int = 0
) -> Partition:
    """The forward and the backward graph of a region, as `partition` says.

    Args:
        scope: see there.
        region: what to differentiate.
        wanted: positions of the inputs whose gradients are asked for.
        given: positions of the outputs whose cotangents are given.
        carried: how many of its first outputs are its first inputs in the next turn.  A value of
            one turn is gone in the end, but if it is stacked besides or never changes.
    """
    both = join(scope.sweep, without(region, scope.paused), wanted, given)
    both = optimize(both, TIDY).graph
    results = len(region.outputs)
    stacked = both.outputs[carried:results]
    passing: set[Value] = set()
    for before, after in zip(both.inputs[:carried], both.outputs[:carried], strict=True):
        if after is not before and after not in stacked:
            passing |= {before, after}
    passing.difference_update(both.inputs[carried : len(region.inputs)])
    parts = partition(both, results, len(given), passing)
    forward, backward = (
        Graph(region.name, each.inputs, each.nodes, each.outputs)
        for each in (parts.forward, parts.backward)
    )
    return parts._replace(forward=forward, backward=backward)


def without(region: Graph, paused: Collection[Node]) -> Graph:
    """The region with constants in place of what these nodes compute."""
    if not paused:
        return region
    ids, now = Ids.after(region), dict[Value, Value]()
    nodes: list[Node] = []
    for node in region.nodes:
        inputs = [now.get(value, value) for value in node.inputs]
        attrs = {
            name: without(attr, paused) if isinstance(attr, Graph) else attr
            for name, attr in node.attrs.items()
        }
        nodes.append(Node(node.id, node.op, inputs, attrs, node.outputs, node.loc, node.origin))
        if node in paused:
            for value in node.outputs:
                if cotangent_type(value.type) is not None:
                    now[value] = ids.value(value.type)
                    stop = get("stop_gradient")
                    nodes.append(Node(ids.next(), stop, [value], {}, [now[value]], node.loc))
    return region.replace(nodes, [now.get(value, value) for value in region.outputs])


def quiet(region: Graph, instead: str = "draw before, and pass what is drawn") -> Graph:
    """The region without what it does to the world, to be run once more on the same values.

    Args:
        region: the region.
        instead: what to do if it draws.

    Raises:
        UnsupportedError: it draws.
    """
    nodes: list[Node] = []
    for node in region.nodes:
        if node.op.effect is not None and node.outputs:
            raise UnsupportedError(
                f"`{node.op.name}` would have to be done a second time to differentiate",
                where=node.loc,
                instead=instead,
            )
        if node.op.effect is None:
            attrs = {
                name: quiet(attr, instead) if isinstance(attr, Graph) else attr
                for name, attr in node.attrs.items()
            }
            if node.may_raise:
                attrs["safe"] = True
            nodes.append(Node(node.id, node.op, node.inputs, attrs, node.outputs, node.loc))
    return region.replace(nodes)


def inlined(builder: Builder, region: Graph, now: Mapping[Value, Value]) -> list[Value]:
    """Record the nodes of a region; its outputs.

    Args:
        builder: what records them.
        region: what is recorded.
        now: what its inputs are, as far as they are read.
    """
    now = dict(now)
    for node in region.nodes:
        inputs = [now[value] for value in node.inputs]
        found = builder.emit(node.op, inputs, node.attrs, place=(node.loc, ()), checked=True)
        now.update(zip(node.outputs, found, strict=True))
    return [now[value] for value in region.outputs]


def read_by(*graphs: Graph) -> set[Value]:
    """The values that graphs read or return."""
    return {
        value
        for graph in graphs
        for values in (graph.outputs, *(node.inputs for node in graph.nodes))
        for value in values
    }
