"""How passes go into regions: the attrs of `if`, `while`, `scan`, `call` that are graphs."""

from __future__ import annotations

from collections.abc import Callable

from minigraph.ir import Graph, Node, walk

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
    for position, node in enumerate(graph.nodes):
        if not node.attrs or node.op.name == "kernel":
            continue
        changed = {
            name: after
            for name, region in node.regions
            if (after := rewrite(region, recorder)) is not region
        }
        if changed:
            nodes = list(graph.nodes) if nodes is None else nodes
            nodes[position] = recorder.remake(node, attrs={**node.attrs, **changed})
    return graph if nodes is None else graph.replace(nodes)


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


def may_share_memory(node: Node) -> bool:
    """What it returns may lie in memory that it was given: only its regions know.

    The results of a kernel are computed, and lie in buffers of their own.
    """
    return node.op.name != "kernel" and any(True for _ in node.regions)
