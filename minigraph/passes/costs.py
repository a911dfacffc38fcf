"""Estimates of how long a node takes on one core, in ns; measured on one machine, and rough.

What already uses every core, such as a large product of matrices, counts as nothing here: more
threads would only get in its way.
"""

from __future__ import annotations

from math import log2

from minigraph.ir import ArrayType, Graph, Node, Size, Value
from minigraph.ops import TRANSCENDENTAL

NODE_NS = 500  # of any node
INNER_NODE_NS = 50  # of one in a region, which may be compiled
ELEMENT_NS = 0.25
TRANSCENDENTAL_NS = 5.0
SORT_NS = 0.5  # for each element, and each time that their number doubles
LINALG_NS = 1.0  # for each step of an algorithm that takes n**3
DRAW_NS = 5.0
PRODUCT_NS = 0.1  # for each multiplication
SHARED_PRODUCT = 1 << 20  # multiplications from which a product uses several threads of its own
SHARED_KERNEL = 1 << 20  # elements from which a kernel does
ASSUMED_SIZE = 64  # of a dimension that has a name
ASSUMED_TURNS = 100  # of a `while`

_SORTS = ("sort", "argsort", "lexsort", "unique", "partition", "argpartition", "searchsorted")


def cost_ns(graph: Graph) -> float:
    """How long a graph takes; the regions of its nodes count as often as they run.

    Regions nest as deep as the user's loops do.
    """
    return sum(node_ns(node, INNER_NODE_NS) for node in graph.nodes)


def node_ns(node: Node, least_ns: float = NODE_NS) -> float:
    """How long a node takes, if one that does next to nothing takes `least_ns`."""
    regions = {name: cost_ns(region) for name, region in node.regions}
    name = node.op.name
    if name == "kernel":
        return least_ns + (regions["body"] if elements(node) < SHARED_KERNEL else 0.0)
    if name == "if":
        return max(regions.values())
    if name == "while":
        turns = min(node.attrs.get("limit") or ASSUMED_TURNS, ASSUMED_TURNS)
        return turns * (regions["test"] + regions["body"])
    if name == "scan":
        return _number(node.attrs["length"]) * regions["body"]
    if regions:
        return sum(regions.values())
    return least_ns + _own_ns(node)


def elements(node: Node) -> int:
    """The most elements that it reads or writes of one array."""
    return max(map(_elements, (*node.inputs, *node.outputs)), default=0)


def _own_ns(node: Node) -> float:
    name, kind, size = node.op.name, node.op.kind, elements(node)
    if node.op.view or name in ("const", "size"):
        return 0.0
    if kind == "contract":
        count = _multiplications(node)
        return PRODUCT_NS * count if count < SHARED_PRODUCT else 0.0
    if name in _SORTS:
        return SORT_NS * size * log2(max(size, 2))
    if kind == "library":
        return LINALG_NS * size * max(_last_extent(value) for value in node.inputs)
    if kind == "random":
        return DRAW_NS * size
    return (TRANSCENDENTAL_NS if name in TRANSCENDENTAL else ELEMENT_NS) * size


def _multiplications(node: Node) -> int:
    """Of a product: each element of the result is a sum along the last axis of the first operand.

    It is an upper bound for what contracts several axes.
    """
    return _elements(node.outputs[0]) * max(map(_last_extent, node.inputs))


def _elements(value: Value) -> int:
    return _number(value.type.size) if isinstance(value.type, ArrayType) else 1


def _last_extent(value: Value) -> int:
    return _number(value.shape[-1]) if value.shape else 1


def _number(size: Size) -> int:
    if isinstance(size, int):
        return size
    known = size.substitute(dict.fromkeys(size.names(), ASSUMED_SIZE))
    assert isinstance(known, int)
    return known
