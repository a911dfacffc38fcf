"""Loop-invariant code motion: what is the same at each turn is computed once, before the loop.

    graph f(%x: f64[3], %w: f64[3,3], %n: int) {
      %0 = const 0                 : int
      %i, %y = while %0, %x, %w, %n {test=graph test(%i: int, %h: f64[3], %w: f64[3,3], %n: int) {
        %more = less %i, %n          : bool
        return %more
      }, body=graph body(%i: int, %h: f64[3], %w: f64[3,3], %n: int) {
        %t = transpose %w {axes=(1, 0)} : f64[3,3]
        %e = exp %t                  : f64[3,3]
        %a = matmul %e, %h           : f64[3]
        %one = const 1               : int
        %j = add %i, %one            : int
        return (%j, %a)
      }} : int, f64[3]
      return %y
    }

becomes

    graph f(%x: f64[3], %w: f64[3,3], %n: int) {
      %0 = const 0                 : int
      %t.1 = transpose %w {axes=(1, 0)} : f64[3,3]
      %e.1 = exp %t.1              : f64[3,3]
      %i, %y = while %0, %x, %w, %n, %e.1 {test=graph test(%i: int, %h: f64[3], %w: f64[3,3], \
%n: int, %e.2: f64[3,3]) {
        %more = less %i, %n          : bool
        return %more
      }, body=graph body(%i: int, %h: f64[3], %w: f64[3,3], %n: int, %e: f64[3,3]) {
        %t = transpose %w {axes=(1, 0)} : f64[3,3]
        %a = matmul %e, %h           : f64[3]
        %one = const 1               : int
        %j = add %i, %one            : int
        return (%j, %a)
      }} : int, f64[3]
      return %y
    }

and `dce` and `prune` then remove what nothing reads any more.

Legality: a node is the same at each turn if all that it reads is.  Without effects it may run
before the loop, even if there is no turn at all.  What may raise runs before the loop only if it is
certain to run, and nothing that the world sees comes before it: in a `scan` of a known length, or
in the test of a `while`, before all other effects.  Nodes within a branch may not run, and stay.

Profit: constants, views and new arrays are taken along where they are needed; they are no reason
to hoist, for they cost nothing, or as much as a copy of what was hoisted.

Cost: each node of a loop is looked at once; one hoisted out of several loops, once in each.  What
is hoisted out of a loop that turns out to have no turn was computed in vain, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from minigraph.ir import (
    Graph,
    Node,
    Value,
    carried_count,
    is_loop,
    running_regions,
    scanned_count,
)

from .recorder import Recorder
from .regions import does_something, in_regions, is_effect, within


def hoist(graph: Graph, recorder: Recorder) -> Graph:
    """Move what is the same at each turn of a loop to the place before it."""
    graph = in_regions(graph, hoist, recorder)
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        if is_loop(node):
            before, loop = _Loop(node, recorder).hoisted()
            nodes += before
            changed = changed or loop is not node
            node = loop
        nodes.append(node)
    return graph.replace(nodes) if changed else graph


class _Loop:
    """One loop, and what was found to be the same at each turn of it.

    Attributes:
        before: the nodes that go before the loop.
        outside: for what a region is given or makes and is the same at each turn, the value that it
            is before the loop; None for one of a free node that nothing needs there yet.
        free: the nodes that make these.
        moved: by region, what it made and is given now: values of the region, and before the loop.
    """

    def __init__(self, node: Node, recorder: Recorder) -> None:
        self.node = node
        self.recorder = recorder
        self.before: list[Node] = []
        self.moved: dict[str, dict[Value, Value]] = {}
        self.left: dict[str, list[Node]] = {}
        self.outside: dict[Value, Value | None] = {}
        self.free: dict[Value, Node] = {}

    def hoisted(self) -> tuple[list[Node], Node]:
        """What goes before the loop, and the loop without it."""
        first = carried_count(self.node) + scanned_count(self.node)
        for name, region in running_regions(self.node):
            self.outside = dict(zip(region.inputs[first:], self.node.inputs[first:], strict=True))
            self.free = {}
            gone = {value: None for node in self._found(name, region) for value in node.outputs}
            self.left[name] = [n for n in region.nodes if gone.keys().isdisjoint(n.outputs)]
            read = set(region.outputs).union(*(node.inputs for node in self.left[name]))
            pairs = ((value, self.outside[value]) for value in gone if value in read)
            self.moved[name] = {v: outer for v, outer in pairs if outer is not None}
        if not self.before:
            return [], self.node
        return self.before, self._without()

    def _found(self, name: str, region: Graph) -> Iterator[Node]:
        """The nodes of a region that are hoisted; `outside` knows their results then."""
        certain = self._runs(name)
        for node in region.nodes:
            same = all(value in self.outside for value in node.inputs)
            safe = not is_effect(node) and not _may_not_end(node)
            if same and safe and _is_free(node):
                self.outside.update(dict.fromkeys(node.outputs))
                self.free.update(dict.fromkeys(node.outputs, node))
            elif same and node.outputs and (safe or (certain and not does_something(node))):
                self._take(node)
                yield node
            else:
                certain = certain and not is_effect(node)
                if same and not safe:
                    self._tell_why_not(node)

    def _runs(self, name: str) -> bool:
        """Whether a region is certain to run."""
        if name == "test":
            return self.node.attrs.get("limit") != 0
        length = self.node.attrs.get("length")
        return isinstance(length, int) and length > 0

    def _take(self, node: Node) -> None:
        """Copy a node, and the free ones that it needs, to the place before the loop."""
        pending = [node]
        while pending:
            wanted = pending[-1]
            missing = [v for v in wanted.inputs if self.outside[v] is None]
            if missing:
                pending += dict.fromkeys(self.free[value] for value in missing)
                continue
            pending.pop()
            if any(self.outside.get(value) is not None for value in wanted.outputs):
                continue  # two nodes needed it
            given = [value for value in map(self.outside.get, wanted.inputs) if value is not None]
            made = [self.recorder.ids.value(v.type, v.hint) for v in wanted.outputs]
            copy = self.recorder.remake(
                self.node,
                op=wanted.op,
                inputs=given,
                attrs=wanted.attrs,
                outputs=made,
                loc=wanted.loc,
            )
            self.before.append(copy)
            self.outside.update(zip(wanted.outputs, made, strict=True))

    def _without(self) -> Node:
        """The loop, given what was computed before it."""
        changed: dict[str, Graph] = {}
        for name, region in running_regions(self.node):
            given = [
                inner if name == at else self.recorder.ids.value(inner.type, inner.hint)
                for at, moved in self.moved.items()
                for inner in moved
            ]
            inputs = [*region.inputs, *given]
            changed[name] = Graph(region.name, inputs, self.left[name], region.outputs)
        outer = [value for moved in self.moved.values() for value in moved.values()]
        loop = self.recorder.remake(
            self.node, inputs=[*self.node.inputs, *outer], attrs={**self.node.attrs, **changed}
        )
        names = ", ".join(f"%{value.name}" for node in self.before for value in node.outputs)
        why = f"{names}: the same at each turn"
        self.recorder.replaced(self.node, [*self.before, loop], "hoist.same", why)
        return loop

    def _tell_why_not(self, node: Node) -> None:
        """Why a node stays that is the same at each turn."""
        if does_something(node):
            why = "it does something to the world at each turn"
        elif is_effect(node):
            why = "it may raise, but may not run at all, or something else is seen before"
        else:
            why = "it may not end, but may not run at all"
        self.recorder.refused(node, None, "SIDE_EFFECT", why, rule="hoist.stays")


def _may_not_end(node: Node) -> bool:
    return any(
        inner.op.name == "while" and inner.attrs.get("limit") is None for inner in within(node)
    )


def _is_free(node: Node) -> bool:
    """It costs nothing, or makes what is written to as soon as it is there."""
    return node.op.view or node.op.kind == "create"
