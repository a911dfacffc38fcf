"""Independent parts: what neither waits for the other, and takes long enough, runs on threads.

    graph f(%a: f64[1000000], %b: f64[1000000]) {
      %0 = sort %a {axis=0}        : f64[1000000]
      %1 = sort %b {axis=0}        : f64[1000000]
      %2 = add %0, %1              : f64[1000000]
      return %2
    }

becomes

    graph f(%a: f64[1000000], %b: f64[1000000]) {
      %0, %1 = parallel %a, %b {part0=graph part(%a: f64[1000000], %b: f64[1000000]) {
        %0 = sort %a {axis=0}        : f64[1000000]
        return %0
      }, part1=graph part(%a: f64[1000000], %b: f64[1000000]) {
        %1 = sort %b {axis=0}        : f64[1000000]
        return %1
      }} : f64[1000000], f64[1000000]
      %2 = add %0, %1              : f64[1000000]
      return %2
    }

Where a node reads two values, some nodes lead to the first one only, and some to the second one
only.  No node of these two sets waits for one of the other: it would lead to both values.  Nor does
a way out of a set lead back into it, so each may become one part.  The results of the graph count
as read by one node at its end.

Legality: what does something to the world, or may raise, keeps its place, and so does what reads an
argument that is written.  All else may run in any order.

Cost: parts that run at the same time need their memory at the same time, and threads have to be
woken, so each has to take `LEAST_NS`; see `costs.py`.  Sets of nodes are bits of an int, and graphs
of more than `MOST_NODES` nodes stay as they are.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np

from minigraph.ir import Graph, Node, Value, storage_roots
from minigraph.ops import get

from .costs import node_ns
from .recorder import Recorder
from .regions import is_effect

LEAST_NS = 1_000_000
MOST_NODES = 4000
MOST_SHORT_NODES = 200  # of which it is worked out how short their parts are, to say so


Groups = list[list[list[Node]]]
"""Sets of nodes, each divided into parts."""


def parallel(graph: Graph, recorder: Recorder) -> Graph:
    """Make parts of what can run at the same time and takes long enough."""
    if len(graph.nodes) > MOST_NODES:
        why = f"more than {MOST_NODES} nodes are not searched for independent parts"
        recorder.note("parallel.size", why)
        return graph
    search = _Search(graph)
    groups = search.groups()
    if not groups:
        if search.second_ns:
            recorder.note("parallel.none", search.why_none())
        return graph
    return _rebuilt(graph, search, groups, recorder)


class _Search:
    """Finds sets of nodes that do not wait for each other; a set is an int with a bit for each.

    Attributes:
        second_ns: the longest that two independent parts take, of which one is the shorter.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.second_ns = 0.0
        self._ns = np.array([node_ns(node) for node in graph.nodes])
        self._maker = {value: at for at, node in enumerate(graph.nodes) for value in node.outputs}
        self._groups: list[_Group] = []
        self.waits = _waits(graph)
        self._before: list[int] = []  # of each node: itself, and all that it waits for
        for at, others in enumerate(self.waits):
            self._before.append(1 << at | _union(self._before[other] for other in others))
        roots = storage_roots(graph)
        written = {roots[node.inputs[0]] for node in graph.nodes if node.op.name == "write"}
        self._fixed = 0  # what keeps its place
        for at, node in enumerate(graph.nodes):
            touched = {roots.get(value, value) for value in (*node.inputs, *node.outputs)}
            if is_effect(node) or not touched.isdisjoint(written):
                self._fixed |= 1 << at

    def groups(self) -> Groups:
        """Sets of nodes, each divided into parts; no node is in two of them."""
        if self._ns.sum() < LEAST_NS and len(self.graph.nodes) > MOST_SHORT_NODES:
            return []
        taken = self._fixed
        found: list[list[int]] = []
        for values in (self.graph.outputs, *(node.inputs for node in reversed(self.graph.nodes))):
            makers = dict.fromkeys(self._maker[value] for value in values if value in self._maker)
            ways = [self._before[at] for at in makers]
            if len(ways) < 2:
                continue
            parts = [part for part in _exclusive(ways) if part and not part & taken]
            times = sorted(map(self._part_ns, parts))
            self.second_ns = max([self.second_ns, *times[-2:-1]])
            chosen = [part for part in parts if self._part_ns(part) >= LEAST_NS]
            if len(chosen) > 1 and self._accept(sum(chosen)):
                found.append(chosen)
                taken |= sum(chosen)
        return [[self._nodes(part) for part in parts] for parts in found]

    def _accept(self, nodes: int) -> bool:
        """Add a group, unless it and another one would wait for each other."""
        new = _Group(nodes, _union(self._before[at] for at in _bits(nodes)) & ~nodes)
        for group in self._groups:
            if group.nodes & new.waits:
                new.waits |= group.nodes | group.waits
        if new.nodes & new.waits:
            return False
        for group in self._groups:
            if new.nodes & group.waits:
                group.waits |= new.nodes | new.waits
        self._groups.append(new)
        return True

    def _part_ns(self, part: int) -> float:
        octets = part.to_bytes(len(self._ns) // 8 + 1, "little")
        bits = np.unpackbits(np.frombuffer(octets, np.uint8), bitorder="little")
        return float(self._ns @ bits[: len(self._ns)])

    def _nodes(self, part: int) -> list[Node]:
        return [self.graph.nodes[at] for at in _bits(part)]

    def why_none(self) -> str:
        """Why nothing runs in parallel, though there are independent parts."""
        return (
            f"the shorter of two independent parts takes about {self.second_ns / 1000:.0f} µs; "
            f"threads are worth it from {LEAST_NS // 1000} µs"
        )


class _Group:
    """The nodes of all parts of a group, and all that it waits for, through other groups too."""

    __slots__ = ("nodes", "waits")

    def __init__(self, nodes: int, waits: int) -> None:
        self.nodes = nodes
        self.waits = waits


def _exclusive(ways: Sequence[int]) -> list[int]:
    """Of each set what is in none of the others."""
    once = twice = 0
    for way in ways:
        twice |= once & way
        once |= way
    return [way & ~twice for way in ways]


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def _bits(bits: int) -> list[int]:
    found: list[int] = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def _waits(graph: Graph) -> list[set[int]]:
    """For each node the positions of those that it stands behind.

    It is behind what makes its operands; effects stay in order, and writes behind what reads.
    """
    roots = storage_roots(graph)
    maker: dict[Value, int] = {}
    readers: dict[Value, set[int]] = {}
    found: list[set[int]] = []
    last: set[int] = set()
    for at, node in enumerate(graph.nodes):
        waits = {maker[value] for value in node.inputs if value in maker}
        if is_effect(node):
            waits |= last
            last = {at}
        if node.op.name == "write":
            waits |= readers.get(roots[node.inputs[0]], set())
        for value in node.inputs:
            readers.setdefault(roots.get(value, value), set()).add(at)
        maker.update(dict.fromkeys(node.outputs, at))
        found.append(waits)
    return found


def _rebuilt(graph: Graph, search: _Search, groups: Groups, recorder: Recorder) -> Graph:
    """The graph with one node in place of each group."""
    made = [_together(graph, parts, recorder) for parts in groups]
    order = _order(graph, search.waits, groups)
    nodes = [made[item] if isinstance(item, int) else item for item in order]
    read = {value for node in nodes for value in node.inputs} | set(graph.outputs)
    return graph.replace([node for node in nodes if node.op.name != "const" or node.output in read])


def _order(graph: Graph, waits: Sequence[set[int]], groups: Groups) -> list[Node | int]:
    """Nodes, and groups by number, each behind all that it waits for, else as they stood."""
    item: dict[Node, Node | int] = {node: node for node in graph.nodes}
    for number, parts in enumerate(groups):
        item.update((node, number) for part in parts for node in part)
    items = [item[node] for node in graph.nodes]
    position = {each: at for at, each in enumerate(items)}
    behind: dict[Node | int, set[Node | int]] = {each: set() for each in items}
    for each, others in zip(items, waits, strict=True):
        behind[each].update(items[other] for other in others)
    for each, others in behind.items():
        others.discard(each)
    return _sorted(behind, position)


def _sorted(
    waits: dict[Node | int, set[Node | int]], position: dict[Node | int, int]
) -> list[Node | int]:
    """Each behind those for which it waits, else by position (Kahn's algorithm)."""
    open_ = {item: len(others) for item, others in waits.items()}
    followers: dict[Node | int, list[Node | int]] = {}
    for item, others in waits.items():
        for other in others:
            followers.setdefault(other, []).append(item)
    by_position = {at: item for item, at in position.items()}
    ready = [position[item] for item, count in open_.items() if not count]
    heapq.heapify(ready)
    order: list[Node | int] = []
    while ready:
        item = by_position[heapq.heappop(ready)]
        order.append(item)
        for follower in followers.get(item, ()):
            open_[follower] -= 1
            if not open_[follower]:
                heapq.heappush(ready, position[follower])
    assert len(order) == len(waits), "groups that wait for each other"
    return order


def _together(graph: Graph, parts: Sequence[Sequence[Node]], recorder: Recorder) -> Node:
    """One node for several parts."""
    inside = {node for part in parts for node in part}
    constants = {v: n for n in graph.nodes if n.op.name == "const" for v in n.outputs}
    own = {value for node in inside for value in node.outputs}
    read = dict.fromkeys(value for part in parts for node in part for value in node.inputs)
    inputs = [value for value in read if value not in own and value not in constants]
    outside = {v for n in graph.nodes if n not in inside for v in n.inputs} | set(graph.outputs)
    results: list[Value] = []
    regions: dict[str, Graph] = {}
    for at, part in enumerate(parts):
        needed = dict.fromkeys(value for node in part for value in node.inputs)
        copies = [constants[value] for value in needed if value in constants and value not in own]
        shown = [value for node in part for value in node.outputs if value in outside]
        regions[f"part{at}"] = Graph("part", inputs, [*copies, *part], shown)
        results += shown
    first, *others = [node for part in parts for node in part]
    node = recorder.remake(
        first,
        op=get("parallel"),
        inputs=inputs,
        attrs=regions,
        outputs=results,
        origin=others,
    )
    times = " and ".join(f"{sum(map(node_ns, part)) / 1000:.0f}" for part in parts)
    why = f"{len(parts)} independent parts, of about {times} µs on one core"
    recorder.replaced([first, *others], node, "parallel.parts", why)
    return node
