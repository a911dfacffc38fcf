"""The texts of a drawing: labels, operands, types and tooltips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigraph.ir import (
    OPERAND,
    ArrayType,
    Branch,
    Graph,
    Node,
    Static,
    Tree,
    Type,
    Value,
    attr_text,
    leaf_paths,
    node_text,
)

from .escape import clip, visible
from .picture import Line

NAME_WIDTH, LINE_WIDTH, TOOLTIP_WIDTH = 24, 30, 600
SMALL = 4  # elements of a constant whose value is shown


def value_name(value: Value) -> str:
    """`%name`, short enough for a label."""
    return "%" + clip(visible(value.name), NAME_WIDTH)


def outputs_text(node: Node) -> str:
    """`%a, %b, ...`: what a node defines, at most three of them."""
    names = [value_name(value) for value in node.outputs[:3]]
    return ", ".join(names) + (", ..." if len(node.outputs) > 3 else "")


def attr_lines(node: Node) -> list[Line]:
    """The attrs that are no graphs, one a line, at most three."""
    texts = [
        clip(f"{name}={_attr(attr)}", LINE_WIDTH)
        for name, attr in node.attrs.items()
        if not isinstance(attr, Graph) and not (name == "parts" and node.op.effect == "print")
    ]
    if len(texts) > 3:
        texts[2:] = [f"... {len(texts) - 2} more"]
    return [Line(visible(text)) for text in texts]


def _attr(attr: Any) -> str:
    return constant_label(attr) if isinstance(attr, np.ndarray | np.generic) else attr_text(attr)


def constant_label(value: Any) -> str:
    """The number, the few elements, or the type of a large array."""
    if not isinstance(value, np.ndarray | np.generic):
        return clip(str(value) if type(value) is not complex else repr(value), NAME_WIDTH)
    array = np.asarray(value)
    if array.ndim == 0:
        return str(array[()])
    if array.size > SMALL:
        return "array"
    return clip(np.array2string(array, separator=", ").replace("\n", ""), NAME_WIDTH)


def operand_line(node: Node, names: list[str]) -> list[Line]:
    """Which operand is which, where the order matters: `%a - %b`."""
    short = [clip(name, 14) for name in names]
    if node.op.effect == "print":
        values = iter(short)
        parts = node.attrs.get("parts", ())
        words = [_printed(part, values) for part in parts]
        return [Line(clip(visible(", ".join(words)), LINE_WIDTH))] if words else []
    if node.op.commutative or len(set(node.inputs)) < 2:
        return []
    spelling = node.op.operator
    if spelling and len(short) == 2 and not node.attrs:
        return [
            Line(spelling.replace("{0}", "\0").replace("{1}", short[1]).replace("\0", short[0]))
        ]
    return [Line(clip(", ".join(short[:4]) + (", ..." if len(short) > 4 else ""), LINE_WIDTH))]


def _printed(part: Any, values: Iterator[str]) -> str:
    """A word that is printed; one with values in it as an f-string."""
    if part is OPERAND:
        return next(values, "?")
    if isinstance(part, str):
        return repr(part)
    body = ""
    for piece in part:
        if isinstance(piece, str):
            body += piece.replace("{", "{{").replace("}", "}}")
        else:
            _, conversion, spec = piece
            mark = f"!{conversion}" if conversion else ""
            body += f"{{{next(values, '?')}{mark}{spec and ':' + spec}}}"
    return f"f{body!r}"


def place_line(node: Node, with_file: bool) -> list[Line]:
    """Where the user wrote it: `line 7`, or `model.py:7`."""
    if node.loc is None:
        return []
    text = clip(visible(str(node.loc)), LINE_WIDTH) if with_file else f"line {node.loc.line}"
    return [Line(text, "dim")]


def node_tooltip(node: Node, note: str = "") -> tuple[str, ...]:
    """The line of the text form, where it was written, and why it changed."""
    if any(True for _ in node.regions):
        text = f"{outputs_text(node)} = {node.op.name}".removeprefix(" = ")
    else:
        text = node_text(node)
    lines = [clip(visible(text), TOOLTIP_WIDTH)]
    if node.loc is not None:
        lines.append(clip(str(node.loc), LINE_WIDTH * 2))
    if note:
        lines.append(clip(visible(note), TOOLTIP_WIDTH))
    return tuple(lines)


def value_tooltip(value: Value) -> tuple[str, ...]:
    """What flows along an arrow: `%x: f32[4,8], 128 bytes`."""
    size = value.type.size_bytes if isinstance(value.type, ArrayType) else None
    text = f"%{visible(value.name)}: {value.type}" + (f", {size} bytes" if size is not None else "")
    return (clip(text, TOOLTIP_WIDTH),)


def edge_width(kind: Type) -> float:
    """Points: 1 below 64 KB, 1.5 below 1 MB, 2.2 below 64 MB, 3 above."""
    size = kind.size_bytes if isinstance(kind, ArrayType) else 0
    if not isinstance(size, int):
        return 1
    return 1 if size < 1 << 16 else 1.5 if size < 1 << 20 else 2.2 if size < 1 << 26 else 3


def input_paths(graph: Graph) -> list[str]:
    """How the user reaches each input: `params["w"]`, or the path of a captured array."""
    paths = [
        path for name, tree in graph.signature.params for path in leaf_paths(tree, name)
    ] + list(graph.signature.captures)
    if len(paths) != len(graph.inputs):
        return [value.name for value in graph.inputs]
    return paths


def output_paths(graph: Graph) -> list[str]:
    """`return`, or the place of each output in the result."""
    paths = leaf_paths(graph.signature.result, "return")
    if len(paths) != len(graph.outputs):
        return [f"return[{index}]" for index in range(len(graph.outputs))]
    return paths


def constant_results(graph: Graph) -> list[tuple[str, str]]:
    """What is returned as it is and computed by no node: `return[1]`, and its text."""
    result = graph.signature.result
    if isinstance(result, Static) and result.text == "None":
        return []
    found: list[tuple[str, str]] = []
    pending: list[tuple[Tree, str]] = [(result, "return")]
    while pending:
        tree, path = pending.pop()
        if isinstance(tree, Static):
            found.append((path, clip(visible(tree.text), NAME_WIDTH)))
        elif isinstance(tree, Branch):
            plain = tree.kind in (tuple, list, dict)
            pending += [
                (child, f"{path}[{key!r}]" if plain else f"{path}.{key}")
                for key, child in reversed(list(zip(tree.keys, tree.children, strict=True)))
            ]
    return found


def counted(number: int, noun: str = "") -> str:
    """`1 node`, `3 nodes`, `10 432 nodes`."""
    words = [f"{number:,}".replace(",", " "), noun and noun + ("" if number == 1 else "s")]
    return " ".join(filter(None, words))
