"""How passes go into regions: the attrs of `if`, `while`, `scan`, `call` that are graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import cache, partial

from minigraph.ir import Graph, Node, Value, has_axes, storage_roots, walk, written_operands
from minigraph.ops import get

from .order import MemoryOrder
from .recorder import Recorder


def in_regions(
    graph: Graph, rewrite: Callable[[Graph, Recorder], Graph], recorder: Recorder
) -> Graph:
    """The graph with `rewrite` applied to each region of each node.

    `rewrite` calls this itself, so it reaches regions within regions, the innermost first; the
    depth of that is the depth to which the user's `if`s and loops are nested.  The body of a kernel
    stays as it is: it was optimised before it became one.
    """
    nodes: list[Node] | None = None
    options = recorder.options
    order = cache(lambda: options.order(graph).after(graph.nodes))
    for position, node in enumerate(graph.nodes):
        if not node.attrs or node.op.name == "kernel":
            continue
        changed: dict[str, Graph] = {}
        for name, region in node.regions:
            inside = _inside if name != "backward" else _unknown
            recorder.options = options.within(partial(inside, order, node, name))
            after = rewrite(region, recorder)
            recorder.options = options
            if after is not region:
                changed[name] = after
        if changed:
            nodes = list(graph.nodes) if nodes is None else nodes
            nodes[position] = recorder.remake(node, attrs={**node.attrs, **changed})
    return graph if nodes is None else graph.replace(nodes)


def in_regions_of(
    node: Node, rewrite: Callable[[Graph, Recorder], Graph], recorder: Recorder
) -> Node:
    """The same for one node, of a pass that does not ask how its operands lie in memory."""
    if not any(True for _ in node.regions):
        return node
    return in_regions(Graph("", node.inputs, (node,), node.outputs), rewrite, recorder).nodes[0]


def _inside(order: Callable[[], MemoryOrder], node: Node, name: str) -> MemoryOrder:
    return order().inside(node, name)


def _unknown(order: Callable[[], MemoryOrder], node: Node, name: str) -> MemoryOrder:
    """Of a `backward` graph, whose inputs are not those of the node alone."""
    region: Graph = node.attrs[name]
    return MemoryOrder(region.inputs, strided=region.inputs)


def within(node: Node) -> Iterator[Node]:
    """A node, and all nodes of its regions."""
    yield node
    for _, region in node.regions:
        yield from walk(region)


def is_effect(node: Node) -> bool:
    """It does something to the world or may raise, itself or in a region."""
    return node.is_effect or any(
        inner.is_effect for _, region in node.regions for inner in walk(region)
    )


def does_something(node: Node) -> bool:
    """It does something to the world, itself or in a region; raising alone does not count."""
    return node.op.effect is not None or any(
        inner.op.effect is not None for _, region in node.regions for inner in walk(region)
    )


def meaning(graph: Graph) -> Hashable:
    """A key that is the same for graphs that do the same by the same nodes, whatever the names."""
    return tuple(own[1:] for own in graph.key())  # the signature comes first


def overwritten(graph: Graph) -> set[Value]:
    """The values in whose memory the graph, or a region within it, writes something else."""
    targets = {value for node in graph.nodes for value in written_operands(node)}
    if not targets:
        return targets
    return {value for value, owner in storage_roots(graph).items() if owner in targets}


def spliced(
    holder: Node,
    region: Graph,
    operands: Sequence[Value],
    results: Sequence[Value],
    written: Collection[Value],
    recorder: Recorder,
) -> tuple[list[Node], dict[Value, Value]]:
    """The nodes of a region as nodes of the graph around it.

    Args:
        holder: the node in whose place they will stand.
        region: one of its regions; it stays as it is.
        operands: what its inputs are.
        results: the values that its outputs shall be; they lay in memory of their own.
        written: those among the operands whose memory may be overwritten: what shows it is copied.
        recorder: gives ids.

    Returns:
        The nodes, and for the results that are values which were there before, those.
    """
    known = dict(zip(region.inputs, operands, strict=True))
    root = storage_roots(region)
    copied = [
        (inner, outer)
        for inner, outer in zip(region.outputs, results, strict=True)
        if has_axes(inner) and known.get(root[inner]) in written
    ]
    wanted = dict(zip(results, region.outputs, strict=True))
    for _, outer in copied:
        del wanted[outer]
    made = {value for node in region.nodes for value in node.outputs}
    for outer, inner in wanted.items():
        if inner in made:
            known.setdefault(inner, outer)
    nodes: list[Node] = []
    for node in region.nodes:
        for value in node.outputs:
            if value not in known:
                known[value] = recorder.ids.value(value.type, value.hint)
        nodes.append(
            recorder.remake(
                holder,
                op=node.op,
                inputs=[known[value] for value in node.inputs],
                attrs=node.attrs,
                outputs=[known[value] for value in node.outputs],
                loc=node.loc,
            )
        )
    for inner, outer in copied:
        copy = recorder.remake(
            holder, op=get("copy"), inputs=(known[inner],), attrs={}, outputs=(outer,)
        )
        nodes.append(copy)
    there = {outer: known[inner] for outer, inner in wanted.items()}
    return nodes, {outer: value for outer, value in there.items() if value is not outer}


def with_values(nodes: Iterable[Node], now: dict[Value, Value], recorder: Recorder) -> list[Node]:
    """Nodes that read other values in the place of some."""
    return [
        recorder.remake(node, inputs=[now.get(value, value) for value in node.inputs])
        if not now.keys().isdisjoint(node.inputs)
        else node
        for node in nodes
    ]
