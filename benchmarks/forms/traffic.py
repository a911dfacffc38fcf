"""The bytes that a graph of minigraph reads and writes, if each node does so by itself.

A view costs nothing, and who reads through one reads what it shows, but no more than there is.  A
kernel reads each of its operands once, and writes its results.  What is stored into an array costs
what is stored, read and written.  A `scan` costs its body for each turn, an `if` its dearer branch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minigraph.ir import ArrayType, Graph, Node, Value, storage_roots

FREE = ("const", "size", "barrier")


def traffic(graph: Graph, written: Mapping[Value, Value] | None = None) -> int | None:
    """The bytes, or None where they depend on data: a `while` has no number of turns.

    Args:
        graph: all of whose dimensions are known.
        written: the values that are computed in the memory of an argument (`Plan.written`), whose
            `write` has nothing left to do.
    """
    root = storage_roots(graph)
    total = 0
    for node in graph.nodes:
        found = _of_regions(node) if _is_control(node) else _of_node(node, root, written or {})
        if found is None:
            return None
        total += found
    return total


def does_something(node: Node) -> bool:
    """Whether a node touches memory by itself."""
    return not node.op.view and node.op.name not in FREE


def _is_control(node: Node) -> bool:
    return node.op.name != "kernel" and any(True for _ in node.regions)


def _of_regions(node: Node) -> int | None:
    if node.op.name == "while":
        return None
    found = [traffic(region) for _, region in node.regions]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    if node.op.name == "if":
        return max(known)
    return sum(known) * (node.attrs["length"] if node.op.name == "scan" else 1)


def _of_node(node: Node, root: Mapping[Value, Value], written: Mapping[Value, Value]) -> int:
    if not does_something(node):
        return 0
    if node.op.name == "write" or node.op.stores:
        stored = node.inputs[1]
        return 0 if stored in written else 2 * _size(stored)
    read = sum(min(_size(value), _size(root[value])) for value in dict.fromkeys(node.inputs))
    return read + sum(map(_size, node.outputs))


def _size(value: Value) -> Any:
    return value.type.size_bytes if isinstance(value.type, ArrayType) else 0
