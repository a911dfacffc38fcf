"""Nodes with regions as the `if`, `while` and `for` that a person would have written.

    %n, %count = while %n, %0 {test=..., body=...}      while n != 1:
                                                            n = n * 3 + 1
                                                            count = count + 1

    %h, %hs = scan %h, %xs {body=..., length=64}        hs = np.empty((64, 8), np.float64)
                                                        for t in range(64):
                                                            x = xs[t]
                                                            h = np.tanh(x + h)
                                                            hs[t] = h

What is the same at each turn goes by the name that it has outside.  A carried value has one name,
which each turn binds again; where one that is bound would still be read, the new ones wait under
names of their own, or are bound at once (`a, b = b, a`).

Results lie in memory of their own: what a region returns of its inputs or constants is copied, and
so is what a loop carries, before the first turn, if it could otherwise be returned.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from minigraph.errors import DimensionError, OptionError
from minigraph.ir import (
    ArrayType,
    Graph,
    Node,
    Plan,
    Size,
    Value,
    decide_at_least,
    has_axes,
    results_to_copy,
    storage_roots,
    walk,
)

from .forms import FORMS
from .scope import Scope, base_name
from .threads import run_together
from .writer import WORDS, Writer, copy_text

LONGEST_TEST = 60
"""So many characters of a condition stand in the line of the loop."""


def write_nodes(writer: Writer, graph: Graph, plan: Plan | None) -> None:
    """The lines of all nodes of the function or of a region."""
    last = len(graph.nodes) - 1
    for position, node in enumerate(graph.nodes):
        write_node(writer, node)
        if plan is not None and position != last:
            writer.free(node, plan.dies[position])


def write_node(writer: Writer, node: Node) -> None:
    """The lines of one node."""
    name = node.op.name
    if node in writer.compiled:
        writer.compiled[node]()
    elif name == "const":
        writer.constant(node.output, node.attrs["value"])
    elif name in FORMS:
        FORMS[name](writer, node)
    elif name in CONTROL:
        CONTROL[name](writer, node)
    elif node.op.kind == "control":
        raise OptionError(
            f"the python backend cannot run `{name}` nodes", instead='backend="interpret"'
        )
    else:
        writer.assign(node, writer.expression(node))


# ---- nodes


def _if(writer: Writer, node: Node) -> None:
    then, otherwise = node.attrs["then"], node.attrs["otherwise"]
    condition, *operands = node.inputs
    own = [_may_rebind(writer, operand, node) for operand in operands]
    names: list[str] = []
    for at, value in enumerate(node.outputs):
        returned = [region.outputs[at] for region in (then, otherwise)]
        waits = writer.scope.wanted.get(value)
        replaced = [
            operand
            for operand, *inner in zip(operands, then.inputs, otherwise.inputs, strict=True)
            if writer.text[operand] not in names
            and (
                writer.text[operand] == waits
                or any(one is other for one, other in zip(inner, returned, strict=True))
            )
        ]
        names.append(_result_name(writer, node, value, replaced, returned[0]))
    texts = [writer.text[operand] for operand in operands]
    test = writer.text[condition]
    at = len(writer.code)
    writer.line(f"if {test}:", node)
    with writer.block(node):
        _write_region(writer, node, "then", texts, own, names)
    nothing = writer.code[at + 1].strip() == "pass"
    if nothing:
        del writer.code[at:], writer.comments[at:], writer.nodes[at:]
        writer.line(f"if not {test}:", node)
    else:
        at = len(writer.code)
        writer.line("else:", node)
    with writer.block(node):
        _write_region(writer, node, "otherwise", texts, own, names)
    if writer.code[at + 1].strip() == "pass":
        del writer.code[at:], writer.comments[at:], writer.nodes[at:]
    _bind_results(writer, node, names)


def _while(writer: Writer, node: Node) -> None:
    test, body = node.attrs["test"], node.attrs["body"]
    limit: int | None = node.attrs.get("limit")
    count = len(body.outputs)
    names = _enter(writer, node, body, count, runs=False)
    texts = [*names, *(writer.text[value] for value in node.inputs[count:])]
    condition = _one_expression(writer, test, texts)
    if limit is not None:
        writer.line(f"for {writer.names.fresh('turn')} in range({limit}):", node)
    else:
        writer.line(f"while {condition or True}:", _last(test, node))
    with writer.block(node):
        if condition is None:
            plan = _plan_of(writer, node, "test")
            with writer.inside(Scope(test, plan), texts):
                write_nodes(writer, test, plan)
                condition = writer.text[test.outputs[0]]
            _leave(writer, node, condition)
        elif limit is not None:
            _leave(writer, _last(test, node), condition)
        own = [at < count for at in range(len(texts))]
        _write_region(writer, node, "body", texts, own, names)
    _bind_results(writer, node, names)


def _leave(writer: Writer, node: Node, condition: str) -> None:
    test = _simplest(f"not ({condition})")
    writer.line(f"if {test}:", node)
    writer.line("    break", node)


def _simplest(expression: str) -> str:
    """An expression without needless parentheses."""
    return ast.unparse(ast.parse(expression, mode="eval"))


def _scan(writer: Writer, node: Node) -> None:
    body: Graph = node.attrs["body"]
    carried, scanned = node.attrs["carried"], node.attrs["scanned"]
    length: Size = node.attrs["length"]
    backward = node.attrs.get("reverse", False)
    names = _enter(writer, node, body, carried, runs=_at_least_one(length))
    stacked = [_empty(writer, node, value) for value in node.outputs[carried:]]
    arrays = [writer.text[value] for value in node.inputs[carried : carried + scanned]]
    inner = body.inputs[carried : carried + scanned]
    rows = [writer.names.fresh(_hint(value, "row")) for value in inner]
    if stacked or not rows:
        index = writer.names.fresh("t") if stacked else "_"
        span = f"range({writer.attr(length)})"
        writer.line(f"for {index} in {f'reversed({span})' if backward else span}:", node)
    else:
        index = ""
        turned = [f"{array}[::-1]" if backward else array for array in arrays]
        source = turned[0] if len(turned) == 1 else f"zip({', '.join(turned)})"
        writer.line(f"for {', '.join(rows)} in {source}:", node)
    same = [writer.text[value] for value in node.inputs[carried + scanned :]]
    texts = [*names, *rows, *same]
    with writer.block(node):
        if index:
            for row, array, value in zip(rows, arrays, inner, strict=True):
                writer.line(f"{row} = {array}[{index}]", node, writer.type_text(value.type))
        own = [at < carried + scanned for at in range(len(texts))]
        places = [f"{name}[{index}]" for name in stacked]
        _write_region(writer, node, "body", texts, own, names, places)
    _bind_results(writer, node, [*names, *stacked])


def _call(writer: Writer, node: Node) -> None:
    texts = [writer.text[value] for value in node.inputs]
    pairs = zip(node.outputs, node.attrs["body"].outputs, strict=True)
    names = [_result_name(writer, node, value, (), inner) for value, inner in pairs]
    _write_region(writer, node, "body", texts, [False] * len(texts), names)
    _bind_results(writer, node, names)


def _parallel(writer: Writer, node: Node) -> None:
    """Each part as a function of no arguments, and one call that runs them all."""
    texts = [writer.text[value] for value in node.inputs]
    results = iter(node.outputs)
    functions: list[str] = []
    bound: list[list[str]] = []
    for name, region in node.regions:
        functions.append(writer.names.fresh("part"))
        writer.line(f"def {functions[-1]}():", node)
        names = [_result_name(writer, node, next(results), (), value) for value in region.outputs]
        with writer.block(node):
            _write_region(writer, node, name, texts, [False] * len(texts), names)
            writer.line(f"return {', '.join(names)}", node)
        bound.append(names)
    run = writer.bind(run_together, "run_together")
    targets = [names[0] if len(names) == 1 else f"({', '.join(names)})" for names in bound]
    comment = ", ".join(writer.type_text(value.type) for value in node.outputs)
    writer.line(f"{', '.join(targets)} = {run}([{', '.join(functions)}])", node, comment)
    _bind_results(writer, node, [name for names in bound for name in names])


CONTROL: dict[str, Callable[[Writer, Node], None]] = {
    "if": _if,
    "while": _while,
    "scan": _scan,
    "call": _call,
    "parallel": _parallel,
}
"""By the name of the op."""


# ---- regions


def _write_region(
    writer: Writer,
    node: Node,
    name: str,
    texts: Sequence[str],
    own: Sequence[bool],
    names: Sequence[str],
    places: Sequence[str] = (),
) -> None:
    """The lines of a region, which leave its results where they are wanted.

    Args:
        writer: writes them.
        node: the node.
        name: the attr that holds the region.
        texts: what stands for its inputs.
        own: for each of these, whether the lines may bind it again.
        names: of the first results.
        places: where the other results are stored.
    """
    region: Graph = node.attrs[name]
    plan = _plan_of(writer, node, name)
    inputs = [value for value, is_own in zip(region.inputs, own, strict=True) if is_own]
    owned = _owned(writer, node, region)
    returned = region.outputs[: len(names)]
    copied = results_to_copy(region, returned, owned)
    wanted: dict[Value, str] = {}
    for value, result, is_copied in zip(returned, names, copied, strict=True):
        if not is_copied:
            wanted.setdefault(value, result)
    holder = {
        text: value for text, value in zip(texts, region.inputs, strict=True) if text in names
    }
    with writer.inside(Scope(region, plan, inputs, owned, wanted, holder), texts):
        write_nodes(writer, region, plan)
        for place, value in zip(places, region.outputs[len(names) :], strict=True):
            writer.line(f"{place} = {writer.text[value]}", node)
        moves: list[_Move] = []
        for value, result, is_copied in zip(returned, names, copied, strict=True):
            text = writer.text[value]
            if is_copied or text != result:
                made = copy_text(text, value) if is_copied else text
                moves.append(_Move(result, made, text, writer.type_text(value.type)))
    _write_moves(writer, node, moves)


class _Move(NamedTuple):
    name: str
    expression: str
    source: str
    comment: str


def _write_moves(writer: Writer, node: Node, moves: list[_Move]) -> None:
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


def _owned(writer: Writer, node: Node, region: Graph) -> list[Value]:
    """The inputs of a region whose memory is its own: what a loop carries, else what is given.

    A loop copies what it carries before the first turn, if that matters and it was not given.
    """
    if node.op.name in ("while", "scan"):
        count = node.attrs.get("carried", len(region.outputs))
        return [value for value in region.inputs[:count] if has_axes(value)]
    operands = node.inputs[node.op.name == "if" :]
    return [
        inner
        for operand, inner in zip(operands, region.inputs, strict=True)
        if writer.is_given(operand, node)
    ]


def _plan_of(writer: Writer, node: Node, name: str) -> Plan | None:
    plan = writer.scope.plan
    return None if plan is None else plan.regions.get((node, name))


# ---- tests


def _one_expression(writer: Writer, test: Graph, texts: Sequence[str]) -> str | None:
    """What a test computes, if that is short, reads nothing twice and can be read from the left."""
    nodes = [node for node in test.nodes if node.op.name != "const"]
    reads = [value for node in nodes for value in node.inputs] + [*test.outputs]
    made = {value for node in nodes for value in node.outputs}
    plain = all(
        len(node.outputs) == 1
        and node.op.kind not in ("control", "random", "effect")
        and node.op.name not in FORMS
        for node in nodes
    )
    raising = sum(node.is_effect for node in nodes)
    skips = any(node.op.name in WORDS for node in nodes)
    if not plain or raising > 1 or (raising and skips) or len(nodes) > LONGEST_TEST:
        return None
    if any(value in made and reads.count(value) > 1 for value in reads) or any(
        isinstance(node.attrs.get("value"), np.ndarray) for node in test.nodes
    ):
        return None
    text = ""
    with writer.inside(Scope(test, None), texts):
        for node in test.nodes:
            if node.op.name == "const":
                writer.constant(node.output, node.attrs["value"])
                continue
            text = writer.expression(node)
            writer.text[node.output] = f"({text})"
        if not nodes or nodes[-1].output is not test.outputs[0]:
            text = writer.text[test.outputs[0]]
    text = _simplest(text)
    return text if len(text) <= LONGEST_TEST else None


def _last(test: Graph, node: Node) -> Node:
    """The node of a test that stands for its line."""
    return test.producers().get(test.outputs[0], node)


# ---- names


def _result_name(
    writer: Writer, node: Node, value: Value, operands: Iterable[Value], inner: Value
) -> str:
    """The name of a result: that of an operand which ends here, one that waits, or a new one."""
    scope = writer.scope
    hint = _hint(inner, _hint(value, "result"))
    for operand in operands:
        named_alike = (
            writer.text[operand] == scope.wanted.get(value) or _hint(operand, hint) == hint
        )
        if named_alike and _may_rebind(writer, operand, node):
            if operand in writer.locals or scope.graph is writer.graph:
                writer.locals.discard(operand)
                writer.locals.add(value)
            return writer.text[operand]
    name = scope.wanted.get(value)
    if name is not None and scope.may_bind(name, value):
        return name
    writer.locals.add(value)
    return writer.names.fresh(hint)


def _may_rebind(writer: Writer, operand: Value, node: Node) -> bool:
    """Whether the name of an operand may stand for something else from here on."""
    scope = writer.scope
    is_name = operand in writer.locals or operand in scope.own
    return is_name and operand not in writer.out and scope.ends(operand, node)


def _hint(value: Value, otherwise: str) -> str:
    return base_name(value.hint or otherwise)


def _enter(writer: Writer, node: Node, body: Graph, count: int, runs: bool) -> list[str]:
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
        name = _result_name(writer, node, node.outputs[at], [operand], inner)
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
    plan = _plan_of(writer, node, "body")
    return found if plan is None else found.union(plan.reuses.values(), plan.given)


def _empty(writer: Writer, node: Node, value: Value) -> str:
    """The name of a new array for what is stacked."""
    kind = value.type
    assert isinstance(kind, ArrayType)
    name = writer.local(value)
    shape, dtype = writer.attr(kind.shape), writer.dtype(kind.dtype)
    writer.line(f"{name} = np.empty({shape}, {dtype})", node, writer.type_text(kind))
    return name


def _at_least_one(length: Size) -> bool:
    try:
        return decide_at_least(length, 1)
    except DimensionError:
        return False


def _bind_results(writer: Writer, node: Node, names: Sequence[str]) -> None:
    """From here on the names stand for the results."""
    for value, name in zip(node.outputs, names, strict=True):
        writer.text[value] = name
        writer.scope.holder[name] = value
