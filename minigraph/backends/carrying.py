"""The names and the memory of what goes into regions and comes out of them.

    n = n // 2              the result takes over the name of an operand that ends
    a, b = b, a             each turn binds the names of carried values again
    prime = prime.copy()    before the first turn, if a turn may write what is not the loop's own

A name is taken over where its value is read no more, and its buffer is not to be taken over later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from minigraph.errors import DimensionError
from minigraph.ir import (
    ArrayType,
    Graph,
    Node,
    Plan,
    Size,
    Value,
    carried_count,
    decide_at_least,
    has_axes,
    is_loop,
    operands,
    storage_roots,
    walk,
)

from .scope import base_name
from .writer import Writer, copy_text


def plan_of(writer: Writer, node: Node, name: str) -> Plan | None:
    """The plan of a region of a node, if the graph around has one."""
    plan = writer.scope.plan
    return None if plan is None else plan.regions.get((node, name))


def result_name(
    writer: Writer, node: Node, value: Value, operands: Iterable[Value], inner: Value
) -> str:
    """The name of a result: that of an operand which ends here, one that waits, or a new one."""
    scope = writer.scope
    hint = hint_of(inner, hint_of(value, "result"))
    for operand in operands:
        named_alike = (
            writer.text[operand] == scope.wanted.get(value) or hint_of(operand, hint) == hint
        )
        if named_alike and may_rebind(writer, operand, node):
            if operand in writer.locals or scope.graph is writer.graph:
                writer.locals.discard(operand)
                writer.locals.add(value)
            return writer.text[operand]
    name = scope.wanted.get(value)
    if name is not None and scope.may_bind(name, value):
        return name
    writer.locals.add(value)
    return writer.names.fresh(hint)


def may_rebind(writer: Writer, operand: Value, node: Node) -> bool:
    """Whether the name of an operand may stand for something else from here on."""
    scope = writer.scope
    is_name = operand in writer.locals or operand in scope.own
    return is_name and operand not in writer.out and scope.ends(operand, node)


def hint_of(value: Value, otherwise: str) -> str:
    """The user's name of a value, or another one where it has none."""
    return base_name(value.hint or otherwise)


def enter(writer: Writer, node: Node, body: Graph, count: int, runs: bool) -> list[str]:
    """The names of the carried values, bound to what the first turn gets.

    Args:
        writer: writes the lines.
        node: the loop.
        body: what is done at each turn.
        count: how many values are carried.
        runs: there is at least one turn.
    """
    exposed = _exposed(writer, node, body, count, runs)
    names: list[str] = []
    for at, inner in enumerate(body.inputs[:count]):
        operand = node.inputs[at]
        name = result_name(writer, node, node.outputs[at], [operand], inner)
        names.append(name)
        text = writer.text[operand]
        if inner in exposed and has_axes(operand) and not writer.is_given(operand, node):
            text = copy_text(text, operand)
        if text != name:
            writer.line(f"{name} = {text}", node, writer.type_text(operand.type))
    writer.free(node, _left_behind(writer, node, count))
    return names


def _left_behind(writer: Writer, node: Node, count: int) -> Iterable[Value]:
    """The operands whose names end once the loop has begun."""
    plan = writer.scope.plan
    if plan is None:
        return ()
    ends = plan.dies[writer.scope.position[node]]
    return (value for value in ends if value in node.inputs and value not in node.inputs[count:])


def _exposed(writer: Writer, node: Node, body: Graph, count: int, runs: bool) -> set[Value]:
    """The carried values whose memory a turn may write or hand on, or nobody knows."""
    if not runs or any(inner.op.effect == "write" for inner in walk(body)):
        return set(body.inputs)
    root = storage_roots(body)
    found = {root[value] for value in body.outputs[:count]}
    plan = plan_of(writer, node, "body")
    return found if plan is None else found.union(plan.reuses.values(), plan.given)


def new_array(writer: Writer, node: Node, value: Value) -> str:
    """The name of a new array for what is stacked."""
    kind = value.type
    assert isinstance(kind, ArrayType)
    name = writer.local(value)
    shape, dtype = writer.attr(kind.shape), writer.dtype(kind.dtype)
    writer.line(f"{name} = np.empty({shape}, {dtype})", node, writer.type_text(kind))
    return name


def at_least_one(length: Size) -> bool:
    """Whether a scan of this length has a turn for certain."""
    try:
        return decide_at_least(length, 1)
    except DimensionError:
        return False


def bind_results(writer: Writer, node: Node, names: Sequence[str]) -> None:
    """From here on the names stand for the results."""
    for value, name in zip(node.outputs, names, strict=True):
        writer.text[value] = name
        writer.scope.holder[name] = value


# ---- memory


def owned_inputs(writer: Writer, node: Node, region: Graph) -> list[Value]:
    """The inputs of a region whose memory is its own: what a loop carries, else what is given.

    A loop copies what it carries before the first turn, if that matters and it was not given.
    """
    if is_loop(node):
        return [value for value in region.inputs[: carried_count(node)] if has_axes(value)]
    return [
        inner
        for operand, inner in zip(operands(node), region.inputs, strict=True)
        if writer.is_given(operand, node)
    ]


# ---- from turn to turn


class Move(NamedTuple):
    """A name to bind to an expression of one other name, its source."""

    name: str
    expression: str
    source: str
    comment: str


def write_moves(writer: Writer, node: Node, moves: list[Move]) -> None:
    """Bind names to what other names stand for now; none is bound before all have read it."""
    while moves:
        sources = [move.source for move in moves]
        free = [move for move in moves if sources.count(move.name) == (move.name == move.source)]
        if not free:
            names, expressions, _, comments = (
                ", ".join(column) for column in zip(*moves, strict=True)
            )
            writer.line(f"{names} = {expressions}", node, comments)
            return
        for move in free[:1]:
            writer.line(f"{move.name} = {move.expression}", node, move.comment)
            moves.remove(move)
