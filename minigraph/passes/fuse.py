"""Fusion: nodes that can run as one loop become one node, a `kernel`.

    graph f(%x: f32[n,4], %w: f32[4]) {
      %0 = multiply %x, %w         : f32[n,4]
      %1 = max %0 {axis=(1,), keepdims=True} : f32[n,1]
      %2 = subtract %0, %1         : f32[n,4]
      %3 = transpose %2 {axes=(1, 0)} : f32[4,n]
      %4 = exp %3                  : f32[4,n]
      return %4
    }

becomes

    graph f(%x: f32[n,4], %w: f32[4]) {
      %2 = kernel %x, %w {form='rows', body=graph body(%x: f32[n,4], %w: f32[4]) {
        %0 = multiply %x, %w         : f32[n,4]
        %1 = max %0 {axis=(1,), keepdims=True} : f32[n,1]
        %2 = subtract %0, %1         : f32[n,4]
        return %2
      }} : f32[n,4]
      %4 = kernel %2 {form='map', body=graph body(%2: f32[n,4]) {
        %3 = transpose %2 {axes=(1, 0)} : f32[4,n]
        %4 = exp %3                  : f32[4,n]
        return %4
      }} : f32[4,n]
      return %4
    }

Legality: the nodes of a kernel run along the same loops (`ops.place`); none of them does something
to the world, may raise, or has to wait for a node outside that waits for the kernel.  Reductions of
one kernel run along the same axes; if those are all there are, what needs the result at each
element is left to the next kernel.  What depends on how elements are numbered (a `reshape`) is no
part of it; views of what comes in are read where they look.  A product of matrices begins a kernel
if nothing but elementwise nodes follows and nobody else needs it.  An op that the backend has no
loop for (`Options.cannot_fuse`) stays as it is.

Profit: nothing is computed twice, so each fusion saves the bytes that would have been written and
read again; kernels that read the same become one, so that it is read once.  A single node becomes a
kernel, too, so that a backend can compile it.  Before all that, `var` and `std` become the mean of
squared distances, as NumPy computes them, and of filled arrays only the number is read.

Cost: each node is looked at once, and each edge once more to say why it lies between two kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from minigraph.ir import ArrayType, Dim, Graph, Node, Size, Value
from minigraph.ops import get, shape_text

from .apart import apart
from .fills import without_fills
from .grouping import Grouping
from .groups import Group
from .recorder import Recorder
from .refusals import Refusal
from .regions import in_regions, is_effect
from .siblings import join_siblings
from .sources import read_before_written
from .variance import without_variances


def fuse(graph: Graph, recorder: Recorder) -> Graph:
    """Make kernels of the nodes that can run as one loop."""
    graph = in_regions(graph, fuse, recorder)
    expanded = without_variances(without_fills(graph, recorder), recorder)
    grouping = Grouping(expanded, recorder.options.cannot_fuse)
    join_siblings(grouping)
    kernels = _kernels(grouping)
    fused = _Assembly(grouping, kernels, graph, recorder).run() if kernels else graph
    for value, node, refusal in apart(grouping):
        recorder.refused(node, value, refusal.code, refusal.why, rule="fuse.apart")
    return fused


# ---- from groups to kernels


class _Kernel:
    """A group as it will be.

    Attributes:
        nodes: the body, in order; computing: those that are no numbers and no views.
        inputs, outputs: of the body, and of the node that stands for the group.
    """

    def __init__(self, group: Group, grouping: Grouping) -> None:
        self.group = group
        in_order = grouping.position.__getitem__
        self.computing = sorted(group.computing, key=in_order)
        self.nodes = sorted(group.nodes, key=in_order)
        if group.product is not None:
            first = [n for n in self.nodes if n.outputs[0] in group.product.inputs]
            first.append(group.product)
            self.nodes = [*first, *(node for node in self.nodes if node not in first)]
        made = {node.output for node in self.nodes}
        read = (value for node in self.nodes for value in node.inputs)
        self.inputs = list(dict.fromkeys(value for value in read if value not in made))
        self.outputs: list[Value] = []

    def unknown_name(self) -> str:
        """A named dimension that the body needs and that no shape of its inputs tells."""
        told = {size for value in self.inputs for size in value.shape}
        stretched = [n for n in self.nodes if n.op.name == "broadcast_to"]
        named = {size for node in stretched for size in node.attrs["shape"]}
        names = {name for size in named - told if isinstance(size, Dim) for name in size.names()}
        return min(names - {str(size) for size in told}, default="")

    def make(self, recorder: Recorder) -> Node:
        """The node that stands for the group."""
        *others, last = self.computing
        body = Graph("body", self.inputs, self.nodes, self.outputs)
        node = recorder.remake(
            last,
            op=get("kernel"),
            inputs=self.inputs,
            attrs={"form": self.group.form, "body": body},
            outputs=self.outputs,
            origin=others,
        )
        recorder.replaced(self.computing, node, "fuse.kernel", self._why())
        return node

    def _why(self) -> str:
        """`map over (n, 4): 3 ops, saves 48 bytes of traffic`."""
        count, saved = len(self.computing), self._saved()
        head = f"{self.group.form} over {shape_text(self.group.loop)}"
        saves = f", saves {saved} bytes of traffic" if saved != 0 else ""
        return f"{head}: {count} op{'s' if count > 1 else ''}{saves}"

    def _saved(self) -> Size:
        """The bytes that the nodes would have read and written, and the kernel does not."""
        made = {node.output for node in self.computing}
        made.update(n.output for n in self.nodes if n.op.view and n.inputs[0] in made)
        stretched = {n.output: n.inputs[0] for n in self.nodes if n.op.name == "broadcast_to"}
        each: list[Value] = []
        once: dict[Value, None] = dict.fromkeys(self.outputs)
        for node in self.computing:
            each += [*dict.fromkeys(node.inputs), node.output]
            once.update(dict.fromkeys(value for value in node.inputs if value not in made))
        return _size_bytes(each, stretched) - _size_bytes(once, stretched)


def _size_bytes(values: Iterable[Value], stretched: Mapping[Value, Value]) -> Size:
    """The bytes that have to be read for these values."""
    total: Size = 0
    for value in values:
        while value in stretched:
            value = stretched[value]
        if isinstance(value.type, ArrayType) and value.type.ndim:
            total += value.type.size_bytes
    return total


def _kernels(grouping: Grouping) -> list[_Kernel]:
    """What becomes of the groups."""
    kernels: list[_Kernel] = []
    for group in grouping.groups():
        grouping.check_product(group)
        kernel = _Kernel(group, grouping)
        unknown = kernel.unknown_name()
        if unknown:
            why = f"the size {unknown} is in the shape of no operand"
            grouping.dissolve(group, Refusal("BACKEND_CANNOT", why))
        elif kernel.computing:
            kernels.append(kernel)
    return kernels


class _Assembly:
    """The graph with kernels in the place of their nodes."""

    def __init__(
        self, grouping: Grouping, kernels: Sequence[_Kernel], before: Graph, recorder: Recorder
    ) -> None:
        self.grouping = grouping
        self.graph = grouping.graph
        self.there = set(before.values())
        self.recorder = recorder
        self.kernels = kernels
        self.stands_in: dict[Node, Node] = {}  # for a node in a kernel, that kernel

    def run(self) -> Graph:
        inside = {node for kernel in self.kernels for node in kernel.computing}
        needed = set(self.graph.outputs)
        for kernel in self.kernels:
            needed.update(kernel.inputs)
        outside: list[Node] = []
        for node in reversed(self.graph.nodes):
            if node in inside:
                continue
            if self._is_left(node, needed):
                outside.append(node)
                needed.update(node.inputs)
            elif node.output in self.there:
                why = "each kernel that reads it has it inside"
                self.recorder.removed(node, "fuse.inside", why)
        order: dict[Node, int] = {node: self.grouping.position[node] for node in outside}
        for kernel in self.kernels:
            kernel.outputs = [n.output for n in kernel.computing if n.output in needed]
            node = kernel.make(self.recorder)
            self.stands_in.update(dict.fromkeys(kernel.computing, node))
            order[node] = self.grouping.position[kernel.computing[-1]]
        return self.graph.replace(self._in_order(order))

    def _is_left(self, node: Node, needed: set[Value]) -> bool:
        """Whether a node is needed outside of kernels: numbers and views may not be."""
        sources = self.grouping.sources
        if not sources.is_followed(node):
            return True
        return node.output in needed or node.output not in sources.readers

    def _in_order(self, order: Mapping[Node, int]) -> Iterator[Node]:
        """The nodes so that none stands before what it waits for, else in the given order."""
        waiting: dict[Node, int] = dict.fromkeys(order, 0)
        followers: dict[Node, list[Node]] = {}
        for before, after in self._edges(order):
            followers.setdefault(before, []).append(after)
            waiting[after] += 1
        ready = [(position, node.id, node) for node, position in order.items() if not waiting[node]]
        heapify(ready)
        count = 0
        while ready:
            _, _, node = heappop(ready)
            yield node
            count += 1
            for after in followers.get(node, ()):
                waiting[after] -= 1
                if not waiting[after]:
                    heappush(ready, (order[after], after.id, after))
        assert count == len(order), "kernels wait for each other"

    def _edges(self, order: Mapping[Node, int]) -> Iterator[tuple[Node, Node]]:
        """Who waits for whom: for a value, its turn among effects, the last look at memory."""
        made_by = {value: node for node in order for value in node.outputs}
        for node in order:
            for value in node.inputs:
                if value in made_by:
                    yield made_by[value], node
        effects = [node for node in self.graph.nodes if node in order and is_effect(node)]
        yield from pairwise(effects)
        for write, readers in read_before_written(self.graph).items():
            for reader in readers:
                before = self.stands_in.get(reader, reader)
                if before in order and before is not write:
                    yield before, write
