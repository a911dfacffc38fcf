"""Constant folding: what depends on constants alone is computed now.

    graph f(%x: f64[3]) {
      %0 = const 2                 : int
      %1 = const 3                 : int
      %2 = add %0, %1              : int
      %3 = multiply %x, %2         : f64[3]
      return %3
    }

becomes

    graph f(%x: f64[3]) {
      %0 = const 2                 : int
      %1 = const 3                 : int
      %2 = const 5                 : int
      %3 = multiply %x, %2         : f64[3]
      return %3
    }

Legality: the evaluator of `minigraph.ops` computes the result, so it is what the program would have
computed, bit for bit: arrays wrap around, Python's numbers do not.  Effects are never folded.  A
node that may raise is folded when it does not raise on its constants; if it does, it stays, to
raise when the program runs.  Loops are left to the program, for nobody knows how long they take.
The size of an axis is a constant where it has no name.  A node that makes an array from nothing
(`zeros`) is as good as a constant: others fold through it, it stays as it is.

Cost: one evaluation of each node whose inputs are constants, results up to `fold_limit_bytes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minigraph.errors import MinigraphError
from minigraph.ir import (
    INT,
    LONGEST_DECIMAL_BITS,
    ArrayType,
    Dim,
    Graph,
    Node,
    ObjectType,
    Value,
    is_loop,
    node_text,
    type_of,
)
from minigraph.ops import evaluate_node, get

from .recorder import Recorder
from .regions import does_something, in_regions, within

GROWING = {"multiply", "pow", "left_shift"}  # Python ints of any length come from these


def fold(graph: Graph, recorder: Recorder) -> Graph:
    """Replace each node that depends on constants alone by its result."""
    graph = in_regions(graph, fold, recorder)
    known: dict[Value, Any] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op.name == "const":
            known[node.output] = node.attrs["value"]
        elif node.op.name == "size":
            node = _fold_size(node, known, recorder)
        elif all(value in known for value in node.inputs) and not does_something(node):
            nodes.extend(_folded(node, known, recorder))
            continue
        nodes.append(node)
    if len(nodes) == len(graph.nodes) and all(map(_same, nodes, graph.nodes)):
        return graph
    return graph.replace(nodes)


def _same(a: Node, b: Node) -> bool:
    return a is b


def _folded(node: Node, known: dict[Value, Any], recorder: Recorder) -> list[Node]:
    """The constants that replace a node of known inputs, or the node itself."""
    results = _results(node, [known[value] for value in node.inputs], recorder)
    if results is None:
        return [node]
    known.update(zip(node.outputs, results, strict=True))
    if node.op.kind == "create":
        return [node]
    why = " = ".join(_short(result) for result in results)
    constants = [
        recorder.remake(node, op=get("const"), inputs=(), attrs={"value": result}, outputs=(value,))
        for value, result in zip(node.outputs, results, strict=True)
    ]
    recorder.replaced(node, constants, "fold.constant", f"of constants alone: it is {why}")
    return constants


def _results(node: Node, inputs: Sequence[Any], recorder: Recorder) -> list[Any] | None:
    """The results, ready to be constants; None if it cannot or shall not be folded."""
    types = [value.type for value in node.outputs]
    if not types or any(
        isinstance(t, ObjectType) or (isinstance(t, ArrayType) and not t.is_static) for t in types
    ):
        return None
    if any(map(is_loop, within(node))):
        recorder.refused(node, None, "COST", "a loop is run by the program", rule="fold.loop")
        return None
    limit = recorder.options.fold_limit_bytes
    if _size_bytes(node, inputs) > limit:
        recorder.refused(
            node, None, "SIZE_LIMIT", f"the constant would exceed {limit} bytes", rule="fold.limit"
        )
        return None
    try:
        with np.errstate(all="ignore"):
            results = [_frozen(result) for result in evaluate_node(node, inputs)]
        found = [type_of(result) for result in results]
    except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError) as error:
        why = f"it raises {type(error).__name__}: {_fact(error)}, when the program runs"
        recorder.refused(node, None, "RAISES", why, rule="fold.raises")
        return None
    if found != types:
        why = f"it would be a {', '.join(map(str, found))}: {node_text(node)}"
        recorder.refused(node, None, "DTYPE", why, rule="fold.type")
        return None
    return results


def _size_bytes(node: Node, inputs: Sequence[Any]) -> int:
    """What the results need; for a Python int, whose length no type tells, at most that."""
    total = 0
    for value in node.outputs:
        if isinstance(value.type, ArrayType):
            size = value.type.size_bytes
            assert isinstance(size, int)
            total += size
    if node.op.name in GROWING and len(inputs) == 2 and all(type(n) is int for n in inputs):
        a, b = inputs
        bits = {
            "multiply": a.bit_length() + b.bit_length(),
            "pow": a.bit_length() * max(b, 0) if abs(a) > 1 else 1,
            "left_shift": a.bit_length() + max(b, 0) if a else 1,
        }[node.op.name]
        total += bits // 8
    return total


def _frozen(result: Any) -> Any:
    """The result as it was laid out in memory, and not to be written to."""
    if not isinstance(result, np.ndarray):
        return result
    view = cast(Any, result).view()
    view.flags.writeable = False
    return view


def _fold_size(node: Node, known: dict[Value, Any], recorder: Recorder) -> Node:
    """The size of an axis that has no name is known."""
    type_ = node.inputs[0].type
    if not isinstance(type_, ArrayType) or node.output.type is not INT:
        return node
    axis: int = node.attrs["axis"]
    size = type_.shape[axis]
    if isinstance(size, Dim):
        return node
    known[node.output] = size
    constant = recorder.remake(node, op=get("const"), inputs=(), attrs={"value": size})
    recorder.replaced(node, constant, "fold.size", f"every {type_} has {size} there")
    return constant


def _short(result: Any) -> str:
    """A number as it is, an array by its type."""
    if isinstance(result, np.ndarray):
        return str(type_of(result))
    if isinstance(result, int) and result.bit_length() > LONGEST_DECIMAL_BITS:
        return f"an int of {result.bit_length()} bits"
    text = str(result)
    return text if len(text) <= 40 else text[:37] + "..."


def _fact(error: Exception) -> str:
    return error.fact if isinstance(error, MinigraphError) else str(error)
