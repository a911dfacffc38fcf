"""How the regions of a node hang together with its operands and results.

What a region is given are the node's operands (of an `if` all but the condition), in order.  The
first operands of a loop are *carried*: a region's first outputs are what the next turn is given in
their place, and the node's first results are what the last turn left.
"""

from __future__ import annotations

from collections.abc import Iterator

from .graph import Graph, Node, Value, inner_first

LOOPS = ("while", "scan")
STRUCTURED = ("if", *LOOPS)
"""The ops whose regions run as they are needed: not at all, once, or again and again."""


def is_loop(node: Node) -> bool:
    """Whether its regions run again and again."""
    return node.op.name in LOOPS


def is_structured(node: Node) -> bool:
    """Whether it is an `if` or a loop."""
    return node.op.name in STRUCTURED


def first_operand(node: Node) -> int:
    """The position of the operand that is the regions' first input."""
    return int(node.op.name == "if")


def operands(node: Node) -> tuple[Value, ...]:
    """What the regions are given, or for scanned arrays what their elements are taken from."""
    return node.inputs[first_operand(node) :]


def running_regions(node: Node) -> Iterator[tuple[str, Graph]]:
    """The regions that are given the operands (not the `backward` graph of a `call`)."""
    return ((name, region) for name, region in node.regions if name != "backward")


def carried_count(node: Node) -> int:
    """How many of the first operands are carried from turn to turn."""
    if node.op.name == "scan":
        return node.attrs["carried"]
    return len(node.attrs["body"].outputs) if node.op.name == "while" else 0


def scanned_count(node: Node) -> int:
    """How many of the operands after the carried ones are given element by element."""
    return node.attrs["scanned"] if node.op.name == "scan" else 0


def written_operands(node: Node) -> Iterator[Value]:
    """What a `write` stores into, and what the regions of a node write to."""
    if node.op.name == "write":
        return iter(node.inputs[:1])
    given = operands(node)
    return (
        given[at]
        for _, region in running_regions(node)
        for at in written_inputs(region)
        if at < len(given)
    )


def written_inputs(graph: Graph) -> tuple[int, ...]:
    """The positions of the inputs that a graph writes to, also in regions; found out once."""
    if graph.written is None:
        for inner in inner_first(graph):
            if inner.written is None:
                targets = {value for node in inner.nodes for value in written_operands(node)}
                inner.written = tuple(at for at, v in enumerate(inner.inputs) if v in targets)
    assert graph.written is not None
    return graph.written
