"""Through `scan`: a scan from the last turn to the first.

    %h, %hs = scan %h0, %xs, %w {carried=1, scanned=1, length=64, body=...}

has, where `%dh` and `%dhs` are the cotangents of its results,

    %dh0, %dw, %dxs = scan %dh, %zeros, %saved, %xs, %dhs, %w {
        carried=2, scanned=3, length=64, reverse=True, body=...}

It carries the cotangents of what is carried and the sums of the cotangents of the operands, and
stacks the cotangents of what is scanned.  What a turn needs of what was computed in it, it computes
again or saves, as `partition` says for the body; what is saved is stacked by the forward scan as a
further result.  Where what is carried is stacked besides, the state before a turn is what was
stacked in the turn before, and is not saved.

Cost: one turn back for each turn forth; memory for each turn: what is saved of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigraph.ir import ArrayType, Graph, Node, Value

from .building import GraphBuilder, add_part, zeros
from .kept import as_array, as_value, kept_value
from .partition import Partition, needed
from .reach import Wanted
from .regions import Scope, halves, read_by
from .totals import Totals


def through_scan(
    scope: Scope, node: Node, cotangents: Sequence[Value | None], needs: Sequence[bool]
) -> list[Value | None]:
    """The cotangents of the inputs."""
    node = scope.now(node)
    cotangents = [*cotangents, *[None] * (len(node.outputs) - len(cotangents))]
    body: Graph = node.attrs["body"]
    carried: int = node.attrs["carried"]
    scanned = range(carried, carried + node.attrs["scanned"])
    wanted = Wanted(node, cotangents, needs)
    if not wanted.carried and not wanted.others:
        return [None] * len(node.inputs)
    part = halves(
        scope,
        body,
        [*wanted.carried, *wanted.others],
        [*wanted.carried, *wanted.stacked],
        carried,
    )
    kept = _kept(part, carried)
    saved = _stacked(scope, node, part, kept)
    back = _Back(part, len(body.inputs))
    results = part.forward.outputs[: len(body.outputs)]
    for at, value in enumerate(node.inputs):
        if at >= scanned.stop or (at < carried and results[at] is part.forward.inputs[at]):
            back.operand(part.forward.inputs[at], value)
    for at in scanned:
        back.element(part.forward.inputs[at], node.inputs[at])
    for at, value in enumerate(node.outputs[carried:], carried):
        back.element(results[at], value)
    for inner, outer in zip(kept, saved, strict=True):
        back.element(inner, outer)
    stacked = dict(zip((*results[carried:], *kept), (*node.outputs[carried:], *saved), strict=True))
    for at in range(carried):
        if results[at] in stacked and back.reads(part.forward.inputs[at]):
            start, reverse = node.inputs[at], node.attrs.get("reverse", False)
            before = _before(scope, start, stacked[results[at]], reverse)
            back.element(part.forward.inputs[at], before)
    return back.record(scope, node, wanted, cotangents)


def _kept(part: Partition, carried: int) -> list[Value]:
    """What is saved, but for what another saved value was in the turn before."""
    turns = dict(zip(part.forward.inputs[:carried], part.forward.outputs, strict=False))
    saved = part.saved_values
    computed = {
        value for value in saved if value not in turns and isinstance(value.type, ArrayType)
    }
    return [value for value in saved if turns.get(value) not in computed]


def _stacked(scope: Scope, node: Node, part: Partition, kept: Sequence[Value]) -> Sequence[Value]:
    """What the forward scan stacks besides."""
    if not kept:
        return ()
    graph, builder = part.forward, GraphBuilder(part.forward)
    arrays = [as_array(builder, value) for value in kept]
    results = graph.outputs[: len(graph.outputs) - part.saved]
    body = Graph(graph.name, graph.inputs, builder.nodes, [*results, *arrays])
    return scope.more(node, {**node.attrs, "body": body})


def _before(scope: Scope, start: Value, stacked: Value, reverse: bool) -> Value:
    """The states before each turn, where those after each turn are stacked."""
    first = scope.op("expand_dims", start, axis=(0,))
    parts = (stacked, first) if reverse else (first, stacked)
    index = slice(1, None) if reverse else slice(None, -1)
    return scope.op("slice", scope.op("concatenate", *parts, axis=0), index=[index])


class _Back:
    """The backward scan of a part."""

    def __init__(self, part: Partition, count: int) -> None:
        self.graph = part.backward
        self.cotangents = part.backward.inputs[count + len(part.forward.outputs) :]
        made = {value for node in self.graph.nodes for value in node.outputs}
        self._unknown = read_by(self.graph) - made - set(self.cotangents)
        self._elements: dict[Value, Value] = {}
        self._operands: dict[Value, Value] = {}

    def reads(self, inner: Value) -> bool:
        """It reads a value of the body that nothing is known of yet."""
        return inner in self._unknown

    def operand(self, inner: Value, outer: Value) -> None:
        """A value of the body is the same in each turn."""
        if inner in self._unknown:
            self._unknown.remove(inner)
            self._operands[inner] = outer

    def element(self, inner: Value, outer: Value) -> None:
        """A value of the body is an element of an array in each turn."""
        if inner in self._unknown:
            self._unknown.remove(inner)
            self._elements[inner] = outer

    def record(
        self, scope: Scope, node: Node, wanted: Wanted, cotangents: Sequence[Value | None]
    ) -> list[Value | None]:
        """Record the scan; the cotangents of the inputs of the forward one."""
        assert not self._unknown, self._unknown
        first = node.attrs["carried"] + node.attrs["scanned"]
        elements = [at for at in wanted.others if at < first]
        operands = [at for at in wanted.others if at >= first]
        gradients = dict(zip((*wanted.carried, *wanted.others), self.graph.outputs, strict=True))
        count = len(wanted.carried)
        given = [g for at in wanted.stacked if (g := cotangents[at]) is not None]
        arrays = {**self._elements, **dict(zip(self.cotangents[count:], given, strict=True))}
        rows = dict.fromkeys(gradients[at] for at in elements)
        totals = Totals(scope, self.graph, node.attrs["length"], (*arrays, *rows))
        later = totals.choose([gradients[at] for at in operands])
        rows.update(totals.stacked)
        summed = [at for at in operands if gradients[at] not in later]
        builder = GraphBuilder(self.graph)
        sums = [builder.ids.value(gradients[at].type) for at in summed]
        added = [
            add_part(builder, so_far, gradients[at])
            for so_far, at in zip(sums, summed, strict=True)
        ]
        results = [*(gradients[at] for at in wanted.carried), *added, *rows]
        nodes = needed(builder.nodes, results)
        read = read_by(Graph("read", (), nodes, results))
        elements_read = [value for value in arrays if value in read]
        operands_read = [value for value in self._operands if value in read]
        kept = [kept_value(builder.ids, value) for value in elements_read]
        unpacked = [
            each
            for held, value in zip(kept, elements_read, strict=True)
            for each in as_value(builder.ids, held, value)
        ]
        inputs = [*self.cotangents[:count], *sums, *kept, *operands_read]
        attrs: dict[str, Any] = {
            "body": Graph(self.graph.name, inputs, [*unpacked, *nodes], results),
            "carried": count + len(sums),
            "scanned": len(kept),
            "length": node.attrs["length"],
        }
        if not node.attrs.get("reverse"):
            attrs["reverse"] = True
        starts = [
            cotangents[at] or zeros(scope.builder, node.inputs[at].type, scope.place)
            for at in wanted.carried
        ]
        starts += [zeros(scope.builder, node.inputs[at].type, scope.place) for at in summed]
        found = scope.emit(
            "scan",
            [
                *starts,
                *(arrays[value] for value in elements_read),
                *(self._operands[value] for value in operands_read),
            ],
            attrs,
        )
        carried = len(starts)
        arrays.update(zip(rows, found[carried:], strict=True))
        parts = dict(zip((*wanted.carried, *summed), found[:carried], strict=True))
        parts.update((at, arrays[gradients[at]]) for at in elements)
        for at in operands:
            if at not in parts:
                parts[at] = later[gradients[at]].finish(arrays)
        return [parts.get(at) for at in range(len(node.inputs))]
