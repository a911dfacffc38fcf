"""Joint graphs: a graph with its derivative."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from minigraph.ir import Graph, Node, Value
from minigraph.ops import cotangent_type

from .joining import join
from .sweep import backward


def joint(
    graph: Graph, wanted: Sequence[int] | None = None, paused: Collection[Node] = ()
) -> Graph:
    """A graph with its derivative.

    Args:
        graph: what to differentiate.
        wanted: positions of the inputs whose gradients are asked for; all that have one.
        paused: nodes through which no gradient flows, in regions too.

    Returns:
        (inputs, cotangents of the outputs that have one) -> (outputs, gradients of `wanted`).

    Raises:
        UnsupportedError: an op on the way has no rule (with the user's line).
    """
    if wanted is None:
        wanted = differentiable(graph.inputs)
    return join(backward, graph, wanted, differentiable(graph.outputs), paused)


def differentiable(values: Sequence[Value]) -> list[int]:
    """The positions of the values that have a gradient."""
    return [at for at, value in enumerate(values) if cotangent_type(value.type) is not None]
