"""What NumPy code may do with memory: which outputs to copy, which buffers to write again.

A plan says whose buffer a result may take over.  NumPy code can follow it only where `out=` stores
bit for bit what a fresh result would hold *and* leaves it in the same memory order: the order of a
matrix decides in which sequence a later sum adds.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, Op, Plan, Value
from minigraph.ops import ANNOTATIONS

Order = frozenset[Value] | None
"""How a value with two or more axes lies in memory.

None: row by row (C).  Else the values by whose order it goes: a ufunc's result lies as its operands
do where these agree, and row by row where one of them does.
"""

C: Order = None
CHANGES = ("update", "scatter_add")
"""Ops that copy their first input and then store into the copy."""
PRODUCTS = ("matmul", "dot")
"""NumPy functions with `out=` whose results lie row by row."""


def roots(graph: Graph) -> dict[Value, Value]:
    """For each view the value whose memory it looks into, found through chains of views."""
    found: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.op.view:
            root = found.get(node.inputs[0], node.inputs[0])
            for value in node.outputs:
                found[value] = root
    return found


def outputs_to_copy(graph: Graph) -> list[bool]:
    """For each output whether it shares memory with an input, a constant or an earlier output."""
    root_of = roots(graph)
    shared = set(graph.inputs)
    for node in graph.nodes:
        if node.op.name == "const":
            shared.update(node.outputs)
    decisions: list[bool] = []
    for value in graph.outputs:
        root = root_of.get(value, value)
        decisions.append(isinstance(value.type, ArrayType) and root in shared)
        shared.add(root)
    return decisions


def fresh(result: Any) -> Any:
    """A copy that lies in memory as the original does; a NumPy scalar stays one."""
    return result.copy("K")


@cache
def ufunc_of(op: Op) -> np.ufunc | None:
    """The ufunc that is the op's meaning, if it is one."""
    found = getattr(np, op.numpy, None) if isinstance(op.numpy, str) else None
    return found if isinstance(found, np.ufunc) else None


def takeovers(graph: Graph, plan: Plan, c_order: Collection[Value] = ()) -> dict[Value, Value]:
    """For each result that NumPy code can write into a dead value's buffer, that value.

    Args:
        graph: what will run.
        plan: who may take over from whom.
        c_order: inputs that are known to lie in C order; the others may lie in any.
    """
    if not plan.reuses:
        return {}
    root_of = roots(graph)
    owners: set[Value] = set()  # values that hold a buffer made here, of the size of their type
    orders: dict[Value, Order] = {
        value: C if value in c_order else frozenset([value]) for value in graph.inputs
    }
    found: dict[Value, Value] = {}
    for node in graph.nodes:
        for value in node.outputs:
            orders[value] = order = _order(node, value, orders)
            dead = plan.reuses.get(value)
            if (
                dead in owners
                and dead.type == value.type
                and _accepts_out(node, dead, root_of)
                and (_axes(value) < 2 or orders[dead] == order)
            ):
                found[value] = dead
            if _owns(node, value):
                owners.add(value)
    return found


def _owns(node: Node, value: Value) -> bool:
    """The result is a whole new array: no view, no constant, no NumPy scalar.

    float16 is left out: where memory overlaps NumPy takes loops that give other signs of NaN.
    """
    if not isinstance(value.type, ArrayType) or value.type.dtype == np.float16:
        return False
    return value.type.ndim > 0 and not node.op.view and node.op.name != "const"


def _axes(value: Value) -> int:
    return value.type.ndim if isinstance(value.type, ArrayType) else 0


def _accepts_out(node: Node, dead: Value, root_of: dict[Value, Value]) -> bool:
    """The node can store into `dead` what it would otherwise have stored into a new array."""
    if node.op.name in CHANGES:
        others = [root_of.get(value, value) for value in node.inputs[1:]]
        return node.inputs[0] is dead and dead not in others
    if len(node.outputs) != 1 or node.attrs.keys() - set(ANNOTATIONS):
        return False
    return node.op.numpy in PRODUCTS or ufunc_of(node.op) is not None


def _order(node: Node, value: Value, orders: dict[Value, Order]) -> Order:
    own = frozenset([value])
    if not isinstance(value.type, ArrayType) or value.type.ndim < 2:
        return own
    if node.op.name == "const":
        return C if node.attrs["value"].flags.c_contiguous else own
    if node.op.kind in ("create", "random") and not any(
        isinstance(each.type, ArrayType) and each.type.ndim > 1 for each in node.inputs
    ):
        return C
    if node.op.numpy in PRODUCTS and all(_axes(each) == 2 for each in node.inputs):
        return C
    if node.op.name in ("cast", "copy", *CHANGES):
        return orders[node.inputs[0]]
    if node.op.kind == "elementwise" and ufunc_of(node.op) is not None:
        return _merged(node, value.type, orders, own)
    return own


def _merged(node: Node, shape_of: ArrayType, orders: dict[Value, Order], own: Order) -> Order:
    """The order of a ufunc's result."""
    merged: frozenset[Value] = frozenset()
    clear = True
    for each in node.inputs:
        if not isinstance(each.type, ArrayType):
            continue
        if each.type.shape == shape_of.shape:
            order = orders[each]
            if order is None:
                return C
            merged = order if not merged or merged == order else merged | order
        elif sum(size != 1 for size in each.type.shape) > 1:
            clear = False  # it is stretched and still has an order of its own
    if not clear or len(merged) > (8 if shape_of.ndim == 2 else 1):
        return own
    return merged or C
