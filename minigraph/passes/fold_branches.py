"""Known branches: what is decided already is not asked again.

    graph f(%x: f64[3]) {
      %0 = const True              : bool
      %y = if %0, %x {then=graph then(%x: f64[3]) {
        %a = exp %x                  : f64[3]
        return %a
      }, otherwise=graph otherwise(%x: f64[3]) {
        return %x
      }} : f64[3]
      %1 = const 0                 : int
      %n = while %1 {test=graph test(%i: int) {
        %c = const 0                 : int
        %more = less %i, %c          : bool
        return %more
      }, body=graph body(%i: int) {
        %one = const 1               : int
        %j = add %i, %one            : int
        return %j
      }} : int
      return (%y, %n)
    }

becomes

    graph f(%x: f64[3]) {
      %0 = const True              : bool
      %y = exp %x                  : f64[3]
      %1 = const 0                 : int
      %c.1 = const 0               : int
      %more.1 = less %1, %c.1      : bool
      return (%y, %1)
    }

Legality: an `if` means what the chosen graph means, in the same place; where both graphs are the
same, any condition will do.  A `while` whose test does not hold of what it begins with leaves that
as it is; the test is run all the same, for it may print or raise.  So does a `while` with
`limit=0`, where the test is not run, and a `scan` of no elements.  A `scan` of one element is its
body.

Cost: each test is folded once with the constants that it begins with, each node of a region that is
taken is copied once.  A loop of a few turns stays a loop: copies of its body would have to be
compiled one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigraph.ir import (
    ArrayType,
    Graph,
    Ids,
    Node,
    Value,
    carried_count,
    has_axes,
    operands,
    running_regions,
)
from minigraph.ops import get, infer

from .fold import fold
from .recorder import Recorder
from .regions import in_regions, meaning, overwritten, spliced


def fold_branches(graph: Graph, recorder: Recorder) -> Graph:
    """Put the region that is known to run in the place of its node."""
    graph = in_regions(graph, fold_branches, recorder)
    if not any(True for node in graph.nodes for _ in running_regions(node)):
        return graph
    return _Sweep(graph, recorder).run()


class _Sweep:
    """One sweep over a graph; what takes the place of a node is looked at in turn."""

    def __init__(self, graph: Graph, recorder: Recorder) -> None:
        self.graph = graph
        self.recorder = recorder
        self.constants: dict[Value, Node] = {}
        self.now: dict[Value, Value] = {}  # results that are values which were there before
        self.written = overwritten(graph)
        self.changed = False

    def run(self) -> Graph:
        nodes: list[Node] = []
        pending: list[Iterator[Node]] = [iter(self.graph.nodes)]
        while pending:
            node = next(pending[-1], None)
            if node is None:
                pending.pop()
                continue
            if not self.now.keys().isdisjoint(node.inputs):
                node = self.recorder.remake(node, inputs=map(self._final, node.inputs))
            made = self._instead(node)
            if made is not None:
                self.changed = True
                pending.append(iter(made))
                continue
            nodes.append(node)
            if node.op.view and node.inputs[0] in self.written:
                self.written.add(node.output)
            if node.op.name == "const":
                self.constants[node.output] = node
        if not self.changed:
            return self.graph
        return self.graph.replace(nodes, map(self._final, self.graph.outputs))

    def _final(self, value: Value) -> Value:
        while value in self.now:
            value = self.now[value]
        return value

    def _instead(self, node: Node) -> list[Node] | None:
        """What stands in the place of a node; None if it stays."""
        match node.op.name:
            case "if":
                return self._branch(node)
            case "while":
                return self._while(node)
            case "scan":
                return self._scan(node)
            case _:
                return None

    def _branch(self, node: Node) -> list[Node] | None:
        condition = node.inputs[0]
        then, otherwise = node.attrs["then"], node.attrs["otherwise"]
        if condition in self.constants:
            holds = bool(self.constants[condition].attrs["value"])
            why = f"%{condition.name} is {holds}"
            return self._taken(node, then if holds else otherwise, "known", why)
        if meaning(then) == meaning(otherwise):
            return self._taken(node, then, "equal", "both branches do the same")
        return None

    def _taken(self, node: Node, region: Graph, rule: str, why: str) -> list[Node]:
        made, there = spliced(
            node, region, operands(node), node.outputs, self.written, self.recorder
        )
        self._replace(node, made, rule, why)
        self.now |= there
        return made

    def _replace(self, node: Node, made: list[Node], rule: str, why: str) -> None:
        self.recorder.replaced(node, made, f"fold_branches.{rule}", why)

    def _while(self, node: Node) -> list[Node] | None:
        test: Graph = node.attrs["test"]
        if node.attrs.get("limit") == 0:
            made, why = [], "no turn is allowed"
        elif self._begins(node) is False:
            asked = self.recorder.ids.value(test.outputs[0].type, test.outputs[0].hint)
            made, _ = spliced(node, test, node.inputs, [asked], self.written, self.recorder)
            why = "the test does not hold at the first turn"
        else:
            return None
        made += self._carried_left(node)
        self._replace(node, made, "never", why)
        return made

    def _carried_left(self, node: Node) -> list[Node]:
        """The carried values are what they were before the loop; what will be overwritten, kept."""
        copies: list[Node] = []
        for value, before in zip(node.outputs[: carried_count(node)], node.inputs, strict=False):
            if before in self.written and has_axes(before):
                copies.append(self._node(node, "copy", before, {}, value))
            else:
                self.now[value] = before
        return copies

    def _begins(self, node: Node) -> bool | None:
        """What the test of a loop says before the first turn, if that is known."""
        test: Graph = node.attrs["test"]
        known = [
            self.recorder.remake(self.constants[outer], outputs=(inner,))
            for outer, inner in zip(node.inputs, test.inputs, strict=True)
            if outer in self.constants
        ]
        given = {constant.output for constant in known}
        inputs = [value for value in test.inputs if value not in given]
        first = Graph(test.name, inputs, (*known, *test.nodes), test.outputs)
        folded = fold(first, Recorder(Ids.after(first)))
        answer = next((n for n in folded.nodes if folded.outputs[0] in n.outputs), None)
        if answer is None or answer.op.name != "const":
            return None
        return bool(answer.attrs["value"])

    def _scan(self, node: Node) -> list[Node] | None:
        length = node.attrs["length"]
        if length == 0:
            count = carried_count(node)
            made = [self._empty(node, value) for value in node.outputs[count:]]
            made += self._carried_left(node)
            self._replace(node, made, "never", "there are no elements")
            return made
        return self._once(node) if length == 1 else None

    def _empty(self, node: Node, value: Value) -> Node:
        kind = value.type
        assert isinstance(kind, ArrayType)
        attrs: dict[str, Any] = {"shape": kind.shape}
        if kind.dtype != np.float64:
            attrs["dtype"] = kind.dtype
        return self.recorder.remake(node, op=get("zeros"), inputs=(), attrs=attrs, outputs=(value,))

    def _once(self, node: Node) -> list[Node]:
        """The body, of the only element of each scanned array; what it stacks gets a new axis."""
        body: Graph = node.attrs["body"]
        carried, scanned = carried_count(node), node.attrs["scanned"]
        given = list(node.inputs)
        before: list[Node] = []
        for at in range(carried, carried + scanned):
            taken = self._node(node, "slice", given[at], {"index": [0]})
            before.append(taken)
            given[at] = taken.output
        rows = [self.recorder.ids.value(value.type) for value in body.outputs[carried:]]
        results = [*node.outputs[:carried], *rows]
        made, there = spliced(node, body, given, results, self.written, self.recorder)
        after: list[Node] = []
        for row, value in zip(rows, node.outputs[carried:], strict=True):
            seen = self._node(node, "expand_dims", there.get(row, row), {"axis": (0,)})
            after += [seen, self._node(node, "copy", seen.output, {"order": "C"}, value)]
        made = [*before, *made, *after]
        self._replace(node, made, "once", "there is one element")
        self.now |= {value: there[value] for value in node.outputs[:carried] if value in there}
        return made

    def _node(
        self,
        holder: Node,
        op: str,
        operand: Value,
        attrs: dict[str, Any],
        output: Value | None = None,
    ) -> Node:
        if output is None:
            (kind,) = infer(get(op), [operand.type], attrs)
            output = self.recorder.ids.value(kind)
        return self.recorder.remake(
            holder, op=get(op), inputs=(operand,), attrs=attrs, outputs=(output,)
        )
