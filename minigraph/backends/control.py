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
from collections.abc import Callable, Sequence

import numpy as np

from minigraph.errors import OptionError
from minigraph.ir import Graph, Node, Plan, Size, Value, results_to_copy

from .carrying import (
    Move,
    at_least_one,
    bind_results,
    enter,
    hint_of,
    may_rebind,
    new_array,
    owned_inputs,
    plan_of,
    result_name,
    write_moves,
)
from .forms import FORMS, always_raises
from .scope import Scope
from .threads import run_together
from .writer import WORDS, Writer, copy_text

LONGEST_TEST = 60
"""So many characters of a condition stand in the line of the loop."""

MOST_NODES = 60
"""Of a condition with so many nodes it is tried whether it is that short."""


def write_nodes(writer: Writer, graph: Graph, plan: Plan | None) -> bool:
    """The lines of all nodes of the function or of a region; whether its end can be reached.

    In a region nothing is written after an error that is always raised.
    """
    last = len(graph.nodes) - 1
    for position, node in enumerate(graph.nodes):
        write_node(writer, node)
        if graph is not writer.graph and always_raises(writer, node):
            return False
        if plan is not None and position != last:
            writer.free(node, plan.dies[position])
    return True


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
    own = [may_rebind(writer, operand, node) for operand in operands]
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
        names.append(result_name(writer, node, value, replaced, returned[0]))
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
    bind_results(writer, node, names)


def _while(writer: Writer, node: Node) -> None:
    test, body = node.attrs["test"], node.attrs["body"]
    limit: int | None = node.attrs.get("limit")
    count = len(body.outputs)
    names = enter(writer, node, body, count, runs=False)
    texts = [*names, *(writer.text[value] for value in node.inputs[count:])]
    condition = _one_expression(writer, test, texts)
    if limit is not None:
        writer.line(f"for {writer.names.fresh('turn')} in range({limit}):", node)
    else:
        writer.line(f"while {condition or True}:", _last(test, node))
    goes_on = True
    with writer.block(node):
        if condition is None:
            plan = plan_of(writer, node, "test")
            with writer.inside(Scope(test, plan), texts):
                goes_on = write_nodes(writer, test, plan)
                condition = writer.text.get(test.outputs[0], "")
            if goes_on:
                _leave(writer, node, condition)
        elif limit is not None:
            _leave(writer, _last(test, node), condition)
        if goes_on:
            own = [at < count for at in range(len(texts))]
            _write_region(writer, node, "body", texts, own, names)
    bind_results(writer, node, names)


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
    names = enter(writer, node, body, carried, runs=at_least_one(length))
    stacked = [new_array(writer, node, value) for value in node.outputs[carried:]]
    arrays = [writer.text[value] for value in node.inputs[carried : carried + scanned]]
    inner = body.inputs[carried : carried + scanned]
    rows = [writer.names.fresh(hint_of(value, "row")) for value in inner]
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
    bind_results(writer, node, [*names, *stacked])


def _call(writer: Writer, node: Node) -> None:
    texts = [writer.text[value] for value in node.inputs]
    pairs = zip(node.outputs, node.attrs["body"].outputs, strict=True)
    names = [result_name(writer, node, value, (), inner) for value, inner in pairs]
    _write_region(writer, node, "body", texts, [False] * len(texts), names)
    bind_results(writer, node, names)


def _parallel(writer: Writer, node: Node) -> None:
    """Each part as a function of no arguments, and one call that runs them all."""
    texts = [writer.text[value] for value in node.inputs]
    results = iter(node.outputs)
    functions: list[str] = []
    bound: list[list[str]] = []
    for name, region in node.regions:
        functions.append(writer.names.fresh("part"))
        writer.line(f"def {functions[-1]}():", node)
        names = [result_name(writer, node, next(results), (), value) for value in region.outputs]
        with writer.block(node):
            _write_region(writer, node, name, texts, [False] * len(texts), names)
            writer.line(f"return {', '.join(names)}", node)
        bound.append(names)
    run = writer.bind(run_together, "run_together")
    targets = [names[0] if len(names) == 1 else f"({', '.join(names)})" for names in bound]
    comment = ", ".join(writer.type_text(value.type) for value in node.outputs)
    writer.line(f"{', '.join(targets)} = {run}([{', '.join(functions)}])", node, comment)
    bind_results(writer, node, [name for names in bound for name in names])


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
    plan = plan_of(writer, node, name)
    inputs = [value for value, is_own in zip(region.inputs, own, strict=True) if is_own]
    owned = owned_inputs(writer, node, region)
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
        if not write_nodes(writer, region, plan):
            return
        for place, value in zip(places, region.outputs[len(names) :], strict=True):
            writer.line(f"{place} = {writer.text[value]}", node)
        moves: list[Move] = []
        for value, result, is_copied in zip(returned, names, copied, strict=True):
            text = writer.text[value]
            if is_copied or text != result:
                made = copy_text(text, value) if is_copied else text
                moves.append(Move(result, made, text, writer.type_text(value.type)))
    write_moves(writer, node, moves)


# ---- tests


def _one_expression(writer: Writer, test: Graph, texts: Sequence[str]) -> str | None:
    """What a test computes, if that is short, reads all once and can be read from the left."""
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
    if not plain or raising > 1 or (raising and skips) or len(nodes) > MOST_NODES:
        return None
    if any(reads.count(value) != 1 for value in made) or any(
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
