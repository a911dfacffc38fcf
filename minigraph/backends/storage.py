"""What NumPy code may do with memory: which buffers it writes again, which it keeps.

A plan says whose buffer a result takes over, and answers for it: also for the order of elements, on
which the last bits of a later sum depend.  NumPy code can follow it where a function has an `out=`
that stores bit for bit what a fresh result would hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, Plan, Value, has_axes, storage_roots
from minigraph.ops import takes_out


def fresh(result: Any) -> Any:
    """A copy that lies in memory as the original does; a NumPy scalar stays one."""
    return result.copy("K")


def takeovers(graph: Graph, plan: Plan, owned: Iterable[Value] = ()) -> dict[Value, Value]:
    """For each result that NumPy code can write into a dead value's buffer, that value.

    The same for what the plan computes in the memory of an argument.

    Args:
        graph: a function or a region.
        plan: its plan.
        owned: the inputs of a region whose memory it may write.
    """
    if not plan.reuses and not plan.written:
        return {}
    root = storage_roots(graph)
    owners = set(owned)  # values that hold a buffer of ours, of the size of their type
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
            if slot in plan.scratch and takes_out(node) and not _is_half(value):
                found[slot] = value
    return list(found.values())


def _owns(node: Node, value: Value) -> bool:
    """The result is a whole new array: no view, no constant, no NumPy scalar."""
    return has_axes(value) and not node.op.view and node.op.name != "const"


def _accepts_out(node: Node, dead: Value, root: dict[Value, Value]) -> bool:
    """The node can store into `dead` what it would otherwise have stored into a new array.

    float16 is left out: where memory overlaps NumPy takes loops that give other signs of NaN.
    """
    if node.op.stores:
        others = [root[value] for value in node.inputs[1:]]
        return node.inputs[0] is dead and dead not in others
    return takes_out(node) and not _is_half(dead)


def _is_half(value: Value) -> bool:
    return isinstance(value.type, ArrayType) and value.type.dtype == np.float16
