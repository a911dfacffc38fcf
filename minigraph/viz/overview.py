"""A graph too large to draw node by node: blocks of neighbouring nodes, and how much flows between.

Blocks follow the order of the nodes, so the arrows between them never run in a circle.
"""

from __future__ import annotations

from collections import Counter

from minigraph.ir import Graph, Node, Value

from .compose import description_of, title_of
from .escape import clip, visible
from .fold import count_steps, describe, function_of, split, steps
from .options import Options
from .picture import Arrow, Box, Cluster, Line, Picture
from .words import LINE_WIDTH, counted, node_tooltip, value_name, value_tooltip

MOST_BLOCKS = 60
MOST_ARROWS = 300
MOST_ENDS = 24  # arguments or results that are drawn one by one


def overview(graph: Graph, options: Options) -> Picture:
    """At most `MOST_BLOCKS` blocks: fewer, until the arrows between them are few enough."""
    order = steps(graph)
    blocks = MOST_BLOCKS
    while True:
        pieces = split(order, blocks)
        arrows = _arrows(graph, pieces)
        if len(arrows) <= MOST_ARROWS or blocks <= 6:
            break
        blocks //= 2
    root = Cluster("root", "root")
    root.members.extend(_ends(graph.inputs, "input", "v"))
    seen = 0
    for index, piece in enumerate(pieces):
        root.members.append(_block(index, piece, seen))
        seen += len(piece)
    root.members.extend(_ends(graph.outputs, "output", "return"))
    total = count_steps(graph)
    unmarked = "; what changed is not marked" if options.before is not None else ""
    return Picture(
        title_of(graph, options),
        description_of(graph),
        root,
        arrows,
        note=f"overview: {counted(total, 'node')} in {counted(len(pieces), 'block')}{unmarked}",
        rankdir=options.rankdir,
    )


def _ends(values: tuple[Value, ...], look: str, name: str) -> list[Box]:
    if len(values) > MOST_ENDS:
        words = counted(len(values), "argument" if look == "input" else "result")
        return [Box(_end(values, 0, name), look, [Line(words, "strong")])]
    return [
        Box(
            _end(values, index, name),
            look,
            [Line(value_name(value), "strong"), Line(clip(str(value.type), LINE_WIDTH))],
            value_tooltip(value),
        )
        for index, value in enumerate(values)
    ]


def _end(values: tuple[Value, ...], index: int, name: str) -> str:
    return f"{name}s" if len(values) > MOST_ENDS else f"{name}{index}"


def _block(index: int, piece: list[Node], seen: int) -> Box:
    if len(piece) == 1:
        node = piece[0]
        lines = [
            Line(f"{value_name(node.outputs[0])} {node.op.name}" if node.outputs else node.op.name)
        ]
        return Box(f"b{index}", "block", lines, node_tooltip(node), (f"n{node.id}",))
    functions = {function_of(node) for node in piece}
    name = functions.pop() if len(functions) == 1 else ""
    heading = clip(visible(name), LINE_WIDTH) or "nodes"
    lines = [
        Line(f"{heading} {seen + 1}-{seen + len(piece)}", "strong"),
        Line(clip(describe(piece, LINE_WIDTH), LINE_WIDTH)),
    ]
    first, last = node_tooltip(piece[0])[0], node_tooltip(piece[-1])[0]
    return Box(f"b{index}", "block", lines, (first, "...", last))


def _arrows(graph: Graph, pieces: list[list[Node]]) -> list[Arrow]:
    """One arrow for each pair of blocks, with the number of values that flow."""
    made_in: dict[Value, str] = {
        value: _end(graph.inputs, index, "v") for index, value in enumerate(graph.inputs)
    }
    flows: Counter[tuple[str, str]] = Counter()
    for index, piece in enumerate(pieces):
        block = f"b{index}"
        used = dict.fromkeys(value for node in piece for value in node.inputs)
        made_in.update((value, block) for node in piece for value in node.outputs)
        flows.update(
            (made_in[value], block)
            for value in used
            if value in made_in and made_in[value] != block
        )
    for index, value in enumerate(graph.outputs):
        if value in made_in:
            flows[made_in[value], _end(graph.outputs, index, "return")] += 1
    return [
        Arrow(tail, head, count=count, tooltip=(counted(count, "value"),))
        for (tail, head), count in flows.items()
    ]
