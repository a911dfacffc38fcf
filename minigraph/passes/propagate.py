"""Propagation through regions: what is known of an operand is known inside, and the other way.

    graph f(%c: bool, %x: f64[3], %w: f64[3], %n: int) {
      %two = const 2               : int
      %i, %s, %h = while %two, %two, %x, %w, %w, %n {test=graph test(%i: int, %s: int, \
%h: f64[3], %w: f64[3], %v: f64[3], %n: int) {
        %more = less %i, %n          : bool
        return %more
      }, body=graph body(%i: int, %s: int, %h: f64[3], %w: f64[3], %v: f64[3], %n: int) {
        %j = add %i, %s              : int
        %y = add %w, %v              : f64[3]
        print %y {parts=(%,)}
        return (%j, %s, %h)
      }} : int, int, f64[3]
      %z = add %h, %s              : f64[3]
      return (%z, %i)
    }

becomes

    graph f(%c: bool, %x: f64[3], %w: f64[3], %n: int) {
      %two = const 2               : int
      %i = while %two, %w, %w, %n, %two, %x {test=graph test(%i: int, %w: f64[3], %v: f64[3], \
%n: int, %s: int, %h: f64[3]) {
        %more = less %i, %n          : bool
        return %more
      }, body=graph body(%i: int, %w: f64[3], %v: f64[3], %n: int, %s: int, %h: f64[3]) {
        %two.1 = const 2             : int
        %j = add %i, %two.1          : int
        %y = add %w, %w              : f64[3]
        print %y {parts=(%,)}
        return %j
      }} : int
      %z = add %x, %two            : f64[3]
      return (%z, %i)
    }

and `prune` then removes the operands that nothing reads any more.

Legality: a region's input that is always the same constant is that constant; one that is always the
same as another one is that one.  A carried value that each turn hands on as it was given is an
operand like any other, and its last state is what it was at first.  In its branches, the condition
of an `if` is True and False.  A result that is the same operand, or the same constant, whichever
way is taken is that, and two results that are computed by the same nodes are one.  What lies in
memory that is written to stays as it is, for results and carried values lie in memory of their own.

Profit: constants fold inside, what is the same at each turn can be hoisted.  Constants of more than
`fold_limit_bytes`, of which nothing would fold, stay operands.

Cost: one sweep over the graph and its regions, and another one after each that changed something.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from minigraph.ir import (
    BOOL,
    Graph,
    Node,
    Value,
    carried_count,
    freeze,
    has_axes,
    is_structured,
    operands,
    running_regions,
    scanned_count,
)
from minigraph.ops import get

from .recorder import Recorder
from .regions import in_regions, overwritten, with_values


def propagate(graph: Graph, recorder: Recorder) -> Graph:
    """Use inside of regions what is known around them, and around them what is known inside."""
    while True:
        graph = in_regions(graph, propagate, recorder)
        after = _Sweep(graph, recorder).run() if any(map(is_structured, graph.nodes)) else graph
        if after is graph:
            return graph
        graph = after


class _Sweep:
    """One sweep over the nodes of a graph.

    Attributes:
        constants: the node of each constant that is small enough.
        now: for each result that is another value, that.
    """

    def __init__(self, graph: Graph, recorder: Recorder) -> None:
        self.graph = graph
        self.recorder = recorder
        self.constants: dict[Value, Node] = {}
        self.now: dict[Value, Value] = {}
        self.written = overwritten(graph)
        self.read = set(graph.outputs).union(*(node.inputs for node in graph.nodes))
        self.nodes: list[Node] = []

    def run(self) -> Graph:
        for node in self.graph.nodes:
            (node,) = with_values((node,), self.now, self.recorder)
            if node.op.name == "const" and _is_small(node, self.recorder):
                self.constants[node.output] = node
            if is_structured(node):
                node = self._inwards(node)
                node = self._without_invariants(node)
                self._outwards(node)
            self.nodes.append(node)
        outputs = [self.now.get(value, value) for value in self.graph.outputs]
        same = zip(self.nodes, self.graph.nodes, strict=False)
        if not self.now and all(a is b for a, b in same):
            return self.graph
        return self.graph.replace(self.nodes, outputs)

    # ---- inwards

    def _inwards(self, node: Node) -> Node:
        """The node with regions that make use of what is known of their inputs."""
        changed: dict[str, Graph] = {}
        reasons: dict[str, None] = {}
        known = {at: self.constants[v] for at, v in self._always(node).items()}
        twins = _twins(node)
        for name, region in running_regions(node):
            read = set(region.outputs).union(*(inner.inputs for inner in region.nodes))
            replaced: dict[Value, Value] = {}
            made: list[Node] = []
            for at, value in enumerate(region.inputs):
                constant = known.get(at) or self._decided(node, name, at)
                if value not in read or not (constant or at in twins):
                    continue
                outer = operands(node)[at].name
                if constant is None:
                    replaced[value] = region.inputs[twins[at]]
                    reasons[f"%{outer} is given twice"] = None
                else:
                    made.append(self._constant(constant, constant))
                    replaced[value] = made[-1].output
                    reasons[f"%{outer} is a constant inside"] = None
            if replaced:
                nodes = with_values(region.nodes, replaced, self.recorder)
                outputs = [replaced.get(value, value) for value in region.outputs]
                changed[name] = region.replace([*made, *nodes], outputs)
        if not changed:
            return node
        new = self.recorder.remake(node, attrs={**node.attrs, **changed})
        self.recorder.replaced(node, new, "propagate.inwards", "; ".join(reasons))
        return new

    def _always(self, node: Node) -> dict[int, Value]:
        """The operands that are the same constant at each turn, by their positions."""
        carried = carried_count(node)
        first = carried + scanned_count(node)
        found = {
            at: value
            for at, value in enumerate(operands(node))
            if at >= first and value in self.constants
        }
        left = _constants(node.attrs["body"]) if carried else {}
        for at, value in enumerate(node.inputs[:carried]):
            if value in self.constants:
                begun, stays = self.constants[value], left.get(node.attrs["body"].outputs[at])
                if stays is not None and _constant_key(begun) == _constant_key(stays):
                    found[at] = value
        return found

    def _decided(self, node: Node, name: str, at: int) -> Node | None:
        """The condition of an `if`, as it is known in a branch."""
        if node.op.name != "if" or operands(node)[at] is not node.inputs[0]:
            return None
        holds = name == "then"
        value = holds if node.inputs[0].type == BOOL else np.bool_(holds)
        return self.recorder.remake(
            node, op=get("const"), inputs=(), attrs={"value": value}, outputs=node.inputs[:1]
        )

    def _constant(self, known: Node, origin: Node) -> Node:
        """A constant once more, for another graph."""
        made = self.recorder.ids.value(known.output.type, known.output.hint)
        return self.recorder.remake(
            origin, op=known.op, inputs=(), attrs=known.attrs, outputs=(made,), loc=known.loc
        )

    # ---- carried values that never change

    def _without_invariants(self, node: Node) -> Node:
        """The node with what each turn hands on as it was given among the other operands."""
        carried = carried_count(node)
        if not carried:
            return node
        body: Graph = node.attrs["body"]
        fixed = [
            at
            for at in range(carried)
            if body.outputs[at] is body.inputs[at] and node.inputs[at] not in self.written
        ]
        if not fixed:
            return node
        others = [at for at in range(len(node.inputs)) if at not in fixed]
        changed: dict[str, Any] = {}
        for name, region in running_regions(node):
            inputs = [region.inputs[at] for at in (*others, *fixed)]
            left = [at for at in range(len(region.outputs)) if at not in fixed or name == "test"]
            outputs = [region.outputs[at] for at in left]
            changed[name] = Graph(region.name, inputs, region.nodes, outputs)
        if node.op.name == "scan":
            changed["carried"] = carried - len(fixed)
        new = self.recorder.remake(
            node,
            inputs=[node.inputs[at] for at in (*others, *fixed)],
            attrs={**node.attrs, **changed},
            outputs=[value for at, value in enumerate(node.outputs) if at not in fixed],
        )
        names = ", ".join(f"%{node.outputs[at].name}" for at in fixed)
        why = f"each turn hands on {names} as given"
        self.recorder.replaced(node, new, "propagate.invariant", why)
        self.now.update((node.outputs[at], node.inputs[at]) for at in fixed)
        return new

    # ---- outwards

    def _outwards(self, node: Node) -> None:
        """Learn which results of a node are other values."""
        first, found = carried_count(node), dict[Hashable, Value]()
        results = [region.outputs for name, region in running_regions(node) if name != "test"]
        always = self._always(node)
        for at, value in enumerate(node.outputs):
            ways = tuple(outputs[at] for outputs in results)
            twin = found.setdefault((at < first and node.inputs[at], *ways), value)
            if value not in self.read:
                continue
            if twin is not value:
                self._is(node, value, twin, "is computed by the same nodes")
            elif node.op.name == "if":
                self._whichever(node, value, ways)
            elif at < first and at in always:
                self._is(node, value, always[at], "is that constant after each turn")

    def _whichever(self, node: Node, value: Value, ways: tuple[Value, ...]) -> None:
        """A result of an `if` that is the same in both branches."""
        regions = [region for _, region in running_regions(node)]
        pairs = list(zip(regions, ways, strict=True))
        places = {region.inputs.index(v) if v in region.inputs else -1 for region, v in pairs}
        if len(places) == 1 and -1 not in places:
            operand = operands(node)[places.pop()]
            if not has_axes(operand) or operand not in self.written:
                self._is(node, value, operand, "is that in both branches")
            return
        constants = [_constants(region).get(v) for region, v in pairs]
        keys = {None if each is None else _constant_key(each) for each in constants}
        if len(keys) == 1 and constants[0] is not None:
            constant = self._constant(constants[0], node)
            self.nodes.append(constant)
            self._is(node, value, constant.output, "is that constant in both branches")

    def _is(self, node: Node, value: Value, other: Value, why: str) -> None:
        self.now[value] = self.now.get(other, other)
        self.recorder.replaced(node, other, "propagate.outwards", f"%{value.name} {why}")


def _twins(node: Node) -> dict[int, int]:
    """For an operand that is always the same as an earlier one, the positions of both."""
    carried, scanned = carried_count(node), scanned_count(node)
    first: dict[Hashable, int] = {}
    found: dict[int, int] = {}
    for at, value in enumerate(operands(node)):
        left = node.attrs["body"].outputs[at] if at < carried else None
        earlier = first.setdefault((value, left, at < carried, at < carried + scanned), at)
        if earlier != at:
            found[at] = earlier
    return found


def _constants(graph: Graph) -> dict[Value, Node]:
    return {node.output: node for node in graph.nodes if node.op.name == "const"}


def _constant_key(node: Node) -> Hashable:
    return (node.output.type, freeze(node.attrs["value"]))


def _is_small(constant: Node, recorder: Recorder) -> bool:
    value = constant.attrs["value"]
    return not isinstance(value, np.ndarray) or value.nbytes <= recorder.options.fold_limit_bytes
