"""Graph to text, by the grammar at the top of `ir/graph.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .attrs import Operand, class_of
from .dims import Dim
from .literals import constant_text, number_text
from .tree import Branch, Leaf, Tree, static_text
from .types import SHORT, ArrayType, ObjectType, ScalarType

if TYPE_CHECKING:
    from .graph import Graph, Node, Value

TYPE_COLUMN, COMMENT_COLUMN = 28, 42

# A name that stands bare in the text: `f`, `Model.forward`, `y.1`, `<lambda>`.
NAME = r"[^\W\d]\w*(?:\.\w+)*"
_PLAIN_NAME = re.compile(rf"{NAME}|<\w+>")


def print_graph(graph: Graph, *, locations: bool = True, indent: int = 0) -> str:
    """The text form.

    Args:
        graph: what to print.
        locations: append `# file:line` to each node.
        indent: spaces before each line but the first.
    """
    return _join(_graph_pieces(graph, locations, indent))


def node_text(node: Node) -> str:
    """One node without its comment: `%e = add %a, %b : int`."""
    return _join(_node_pieces(node, False, 0, aligned=False))


# Pieces of text, and further pieces in their place: regions nest without recursion.
_Pieces = Iterator["str | _Pieces"]


def _join(pieces: _Pieces) -> str:
    found: list[str] = []
    pending = [pieces]
    while pending:
        piece = next(pending[-1], None)
        if piece is None:
            pending.pop()
        elif isinstance(piece, str):
            found.append(piece)
        else:
            pending.append(piece)
    return "".join(found)


def _graph_pieces(graph: Graph, locations: bool, indent: int) -> _Pieces:
    margin = "\n" + " " * indent
    yield head_text(graph) + " {"
    for node in graph.nodes:
        yield margin + "  "
        yield _node_pieces(node, locations, indent)
    yield f"{margin}  {return_text(graph)}{margin}}}"


def head_text(graph: Graph) -> str:
    """`graph f(%a: int) captures(%w: f32[2] = 'w')`, as far as the values reach."""
    inputs = iter(graph.inputs)
    params = ", ".join(_param(name, tree, inputs) for name, tree in graph.signature.params)
    captures = ", ".join(
        f"{_typed(value)} = {path!r}"
        for path, value in zip(graph.signature.captures, inputs, strict=False)
    )
    keyword = "program" if graph.signature.program else "graph"
    name = graph.name if _PLAIN_NAME.fullmatch(graph.name) else repr(graph.name)
    return f"{keyword} {name}({params})" + (f" captures({captures})" if captures else "")


def return_text(graph: Graph) -> str:
    """`return (%a, %b)`."""
    outputs = (f"%{value.name}" for value in graph.outputs)
    return f"return {_tree(graph.signature.result, outputs)}"


def _node_pieces(node: Node, locations: bool, indent: int, aligned: bool = True) -> _Pieces:
    names = ", ".join(f"%{value.name}" for value in node.outputs)
    left = f"{names} = {node.op.name}" if names else node.op.name
    attrs = dict(node.attrs)
    if node.op.name == "const" and "value" in attrs:
        left += " " + constant_text(attrs.pop("value"))
    elif node.inputs:
        left += " " + ", ".join(f"%{value.name}" for value in node.inputs)
    regions = dict(node.regions)
    if not regions and attrs:
        inner = ", ".join(f"{name}={attr_text(attr)}" for name, attr in attrs.items())
        left += " {" + inner + "}"
    elif attrs:
        yield left
        before = " {"
        for name, attr in attrs.items():
            yield f"{before}{name}="
            before = ", "
            if name in regions:
                yield _graph_pieces(regions[name], locations, indent + 2)
            else:
                yield attr_text(attr, indent)
        left = "}"
        aligned = False
    line = left
    if node.outputs:
        types = ", ".join(str(value.type) for value in node.outputs)
        line = f"{left:<{TYPE_COLUMN}} : {types}" if aligned else f"{left} : {types}"
    if locations and node.loc is not None:
        line = f"{line:<{COMMENT_COLUMN}}  # {node.loc}"
    yield line


def attr_text(attr: Any, indent: int = 0) -> str:
    """An attr as the grammar writes it (what is no attr as `<?Class>`, which nothing reads)."""
    kind = class_of(attr)
    if isinstance(attr, str | bytes) or attr is None:
        return repr(attr)
    if isinstance(attr, Operand):
        return "%"
    if attr is Ellipsis:
        return "..."
    if isinstance(attr, int | float | complex):
        return number_text(attr)
    if kind in (tuple, list):
        inner = ", ".join(attr_text(item, indent) for item in attr)
        if kind is list:
            return f"[{inner}]"
        return f"({inner},)" if len(attr) == 1 else f"({inner})"
    if kind is slice:
        parts = [
            "" if part is None else attr_text(part) for part in (attr.start, attr.stop, attr.step)
        ]
        return ":".join(parts if attr.step is not None else parts[:2])
    if isinstance(attr, Dim | ArrayType):
        return f"<{attr}>"
    if isinstance(attr, ScalarType | ObjectType):
        return f"py.{attr}"
    if issubclass(kind, np.dtype) and attr.name in SHORT:
        return SHORT[attr.name]
    if hasattr(attr, "signature"):
        return print_graph(attr, locations=False, indent=indent + 2)
    return f"<?{kind.__name__}>"


def _typed(value: Value) -> str:
    return f"%{value.name}: {value.type}"


def _param(name: str, tree: Tree, inputs: Iterator[Value]) -> str:
    if isinstance(tree, Leaf):
        value = next(inputs, None)
        if value is not None and (value.hint or "") == name:
            return _typed(value)
        return f"{name}=" + ("?" if value is None else _typed(value))
    return f"{name}={_tree(tree, map(_typed, inputs))}"


def _tree(tree: Tree, leaves: Iterator[str]) -> str:
    if isinstance(tree, Leaf):
        return next(leaves, "?")
    if not isinstance(tree, Branch):
        return tree.text
    children = [_tree(child, leaves) for child in tree.children]
    if tree.name == "tuple":
        return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
    if tree.name == "list":
        return f"[{', '.join(children)}]"
    pairs = list(zip(tree.keys, children, strict=True))
    if tree.name == "dict":
        return "{" + ", ".join(f"{static_text(key)}: {child}" for key, child in pairs) + "}"
    return f"{tree.name}({', '.join(f'{key}={child}' for key, child in pairs)})"
