"""What NumPy code may do with memory: which outputs to copy, which buffers to write again.

A plan says whose buffer a result takes over, and answers for it: also for the order of elements, on
which the last bits of a later sum depend.  NumPy code can follow it where a function has an `out=`
that stores bit for bit what a fresh result would hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, Plan, Value, storage_roots
from minigraph.ops import takes_out


def outputs_to_copy(
    graph: Graph,
    outputs: Sequence[Value] | None = None,
    *,
    owned: Collection[Value] = (),
    foreign: Iterable[Value] = (),
) -> list[bool]:
    """For each output whether it shares memory with an input, a constant or an earlier output.

    Args:
        graph: a function or a region.
        outputs: which (default: all); of a region those without axes are numbers, never copied.
        owned: the inputs whose memory the graph may give away.
        foreign: further values whose memory may be that of an input.
    """
    root = storage_roots(graph)
    shared = {*foreign, *graph.inputs} - {*owned}
    for node in graph.nodes:
        if node.op.name == "const" and isinstance(node.attrs["value"], np.ndarray):
            shared.update(node.outputs)
    decisions: list[bool] = []
    for value in graph.outputs if outputs is None else outputs:
        is_array = isinstance(value.type, ArrayType) if outputs is None else has_axes(value)
        decisions.append(is_array and root[value] in shared)
        shared.add(root[value])
    return decisions


def of_regions(graph: Graph) -> Iterator[Value]:
    """The arrays that regions return."""
    for node in graph.nodes:
        if node.op.name != "kernel" and any(True for _ in node.regions):
            yield from node.outputs


def has_axes(value: Value) -> bool:
    """It is an array, and not one number."""
    return isinstance(value.type, ArrayType) and value.type.ndim > 0


def fresh(result: Any) -> Any:
    """A copy that lies in memory as the original does; a NumPy scalar stays one."""
    return result.copy("K")


def takeovers(graph: Graph, plan: Plan) -> dict[Value, Value]:
    """For each result that NumPy code can write into a dead value's buffer, that value.

    The same for what the plan computes in the memory of an argument.
    """
    if not plan.reuses and not plan.written:
        return {}
    root = storage_roots(graph)
    owners: set[Value] = set()  # values that hold a buffer made here, of the size of their type
    found: dict[Value, Value] = {}
    for node in graph.nodes:
        for value in node.outputs:
            dead = plan.reuses.get(value)
            if dead in owners and dead.type == value.type and _accepts_out(node, dead, root):
                found[value] = dead
            if value in plan.written and node.op.name != "kernel":
                found[value] = plan.written[value]
            elif _owns(node, value):
                owners.add(value)
    return found


def to_keep(graph: Graph, plan: Plan) -> list[Value]:
    """The first value of each slot that can be kept between calls, where that goes as told."""
    found: dict[int, Value] = {}
    met: set[int] = set()
    for node in graph.nodes:
        for value in node.outputs:
            slot = plan.slot.get(value)
            if slot is None or slot in met:
                continue
            met.add(slot)
            if slot in plan.scratch and _owns(node, value) and takes_out(node):
                found[slot] = value
    return list(found.values())


def _owns(node: Node, value: Value) -> bool:
    """The result is a whole new array: no view, no constant, no NumPy scalar.

    float16 is left out: where memory overlaps NumPy takes loops that give other signs of NaN.
    """
    if not isinstance(value.type, ArrayType) or value.type.dtype == np.float16:
        return False
    return value.type.ndim > 0 and not node.op.view and node.op.name != "const"


def _accepts_out(node: Node, dead: Value, root: dict[Value, Value]) -> bool:
    """The node can store into `dead` what it would otherwise have stored into a new array."""
    if node.op.stores:
        others = [root[value] for value in node.inputs[1:]]
        return node.inputs[0] is dead and dead not in others
    return takes_out(node)
