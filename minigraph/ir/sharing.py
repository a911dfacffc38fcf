"""Results in memory of their own: what a function or a region has to copy before it returns it.

A call returns arrays that nothing else sees, and so do the regions of `if`s and loops: a result of
such a node never lies in the memory of an operand, a constant or another result, unless the plan
gives the operand's memory away (`Plan.given`).  So views are all that shares memory in a graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from .graph import Graph, Value
from .plan import storage_roots
from .types import ArrayType

DENSE_VIEWS = ("barrier", "expand_dims", "reshape", "squeeze", "transpose")
"""The views of all elements: where these lie side by side, so do theirs."""


def has_axes(value: Value) -> bool:
    """It is an array, and not one number."""
    return isinstance(value.type, ArrayType) and value.type.ndim > 0


def outputs_to_copy(graph: Graph) -> list[bool]:
    """For each output whether it shares memory with an input, a constant or an earlier output.

    An argument without axes may be an array, and come out of a region as it is.
    """
    root = storage_roots(graph)
    shared = {*graph.inputs, *_constants(graph)}
    for node in graph.nodes:
        if any(True for _ in node.regions):
            shared.update(value for value in node.outputs if not has_axes(value))
    decisions: list[bool] = []
    for value in graph.outputs:
        decisions.append(isinstance(value.type, ArrayType) and root[value] in shared)
        shared.add(root[value])
    return decisions


def results_to_copy(
    region: Graph, results: Sequence[Value], owned: Collection[Value] = ()
) -> list[bool]:
    """The same for outputs of a region; without axes they are numbers, and need no copy.

    What has gaps, or runs backward, is copied, too: a result is memory that can be used again.

    Args:
        region: whose results are wanted.
        results: outputs that become results of its node, or carried values.
        owned: the inputs whose memory the region may give away.
    """
    root = storage_roots(region)
    shared = {*region.inputs, *_constants(region)} - {*owned}
    loose: set[Value] = set()
    for node in region.nodes:
        if node.op.view and (node.op.name not in DENSE_VIEWS or node.inputs[0] in loose):
            loose.add(node.output)
    decisions: list[bool] = []
    for value in results:
        decisions.append(has_axes(value) and (root[value] in shared or value in loose))
        shared.add(root[value])
    return decisions


def _constants(graph: Graph) -> Iterator[Value]:
    for node in graph.nodes:
        if node.op.name == "const" and isinstance(node.attrs["value"], np.ndarray):
            yield from node.outputs
