"""The rules of the IR for `if` and loops; their docstrings are the rules as errors quote them."""

from __future__ import annotations

from collections.abc import Iterator

from minigraph.errors import DimensionError

from .dims import decide_equal
from .graph import Graph, Node
from .regions import (
    carried_count,
    first_operand,
    is_loop,
    is_structured,
    operands,
    running_regions,
    scanned_count,
)
from .types import BOOL, ArrayType, Size, Type

# What is wrong, and the node where it is wrong (None: the head or the outputs).
Finding = tuple[str, Node | None]


def regions_fit_operands(graph: Graph) -> Iterator[Finding]:
    """A region has one input for each operand, of its type; for a scanned array, of an element."""
    for node in filter(is_structured, graph.nodes):
        first, carried = first_operand(node), carried_count(node)
        scanned = range(carried, carried + scanned_count(node))
        given = operands(node)
        for name, region in running_regions(node):
            if len(region.inputs) != len(given):
                found = f"{len(region.inputs)} inputs for {len(given)} operands"
                yield f"the {name} graph has {found}", node
                continue
            for at, (value, inner) in enumerate(zip(given, region.inputs, strict=True)):
                kind = _element(value.type) if at in scanned else value.type
                if kind is None or not _same(kind, inner.type):
                    what = "an element of " if at in scanned else ""
                    yield (
                        f"input {at} of the {name} graph is %{inner.name}: {inner.type}, "
                        f"and operand {at + first} {what}%{value.name}: {value.type}",
                        node,
                    )


def branches_agree(graph: Graph) -> Iterator[Finding]:
    """Both graphs of an `if` return values of the same types, one for each result."""
    for node in graph.nodes:
        if node.op.name != "if":
            continue
        then, otherwise = (region.outputs for _, region in running_regions(node))
        if len(then) != len(otherwise):
            yield f"one returns {len(then)} values, the other one {len(otherwise)}", node
            continue
        for at, (a, b) in enumerate(zip(then, otherwise, strict=True)):
            if not _same(a.type, b.type):
                yield f"result {at} is a {a.type} in one, and a {b.type} in the other one", node


def tests_are_bools(graph: Graph) -> Iterator[Finding]:
    """What decides is one bool: the condition of an `if`, the one output of a loop's test."""
    for node in graph.nodes:
        if node.op.name == "if":
            decisive = node.inputs[:1]
        elif node.op.name == "while":
            decisive = node.attrs["test"].outputs
        else:
            continue
        if len(decisive) != 1:
            yield f"the test returns {len(decisive)} values", node
        for value in decisive[:1]:
            kind = value.type
            is_array_bool = isinstance(kind, ArrayType) and kind.dtype == bool and not kind.ndim
            if kind != BOOL and not is_array_bool:
                yield f"%{value.name} is a {kind}", node


def carried_types_stay(graph: Graph) -> Iterator[Finding]:
    """What a turn of a loop hands on has the type of what it was given."""
    for node in filter(is_loop, graph.nodes):
        body: Graph = node.attrs["body"]
        count = carried_count(node)
        for given, left in zip(body.inputs[:count], body.outputs, strict=False):
            if not _same(given.type, left.type):
                yield f"given %{given.name}: {given.type}, left %{left.name}: {left.type}", node


def _element(kind: Type) -> Type | None:
    """The type of an array's elements along the first axis."""
    if isinstance(kind, ArrayType) and kind.ndim:
        return ArrayType(kind.dtype, kind.shape[1:])
    return None


def _same(a: Type, b: Type) -> bool:
    if not isinstance(a, ArrayType) or not isinstance(b, ArrayType):
        return a == b
    return a.dtype == b.dtype and a.ndim == b.ndim and all(map(_equal, a.shape, b.shape))


def _equal(a: Size, b: Size) -> bool:
    try:
        return decide_equal(a, b)
    except DimensionError:
        return False
