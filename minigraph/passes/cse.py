"""Common subexpressions: what was computed before is not computed again.

    graph f(%x: f64[3], %y: f64[3]) {
      %0 = multiply %x, %y         : f64[3]
      %1 = exp %0                  : f64[3]
      %2 = multiply %x, %y         : f64[3]
      %3 = exp %2                  : f64[3]
      %4 = subtract %1, %3         : f64[3]
      return %4
    }

becomes

    graph f(%x: f64[3], %y: f64[3]) {
      %0 = multiply %x, %y         : f64[3]
      %1 = exp %0                  : f64[3]
      %4 = subtract %1, %1         : f64[3]
      return %4
    }

Legality: the same op of the same values with the same attrs, bit for bit (0.0 is not -0.0, True is
not 1 is not 1.0; constants count by bytes, dtype and shape).  What does something to the world is
never merged, nor what may come out different the second time: draws of random numbers, memory that
was not initialised.  A node that may raise is merged into the first of its kind: had that raised,
the second would not have run.  Operands may be exchanged where the op says so and the result is
exact (`a + b` and `b + a` may differ in the bits of a NaN).

Cost: one table lookup for each node.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, ScalarType, Value, attr_text, freeze
from minigraph.ops import ANNOTATIONS

from .patterns import uniform_number
from .recorder import Recorder, difference
from .regions import does_something, in_regions


def cse(graph: Graph, recorder: Recorder) -> Graph:
    """Merge each node into an earlier one that computes the same."""
    graph = in_regions(graph, cse, recorder)
    first: dict[Hashable, Node] = {}
    similar: dict[Hashable, Node] = {}
    merged: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if merged and not merged.keys().isdisjoint(node.inputs):
            node = recorder.remake(node, inputs=[merged.get(v, v) for v in node.inputs])
        pure = not does_something(node)
        earlier = first.setdefault(_key(node, recorder), node) if pure else node
        if earlier is node:
            nodes.append(node)
            _tell_near_miss(node, similar, recorder)
            continue
        merged.update(zip(node.outputs, earlier.outputs, strict=True))
        same = ", ".join(f"%{value.name}" for value in earlier.outputs)
        recorder.replaced(node, earlier, "cse.same", f"same op, same inputs as {same}")
    if not merged:
        return graph
    return graph.replace(nodes, [merged.get(value, value) for value in graph.outputs])


def _key(node: Node, recorder: Recorder) -> Hashable:
    attrs = {name: a for name, a in node.attrs.items() if name not in ANNOTATIONS}
    inputs = _sorted(node) if _may_exchange(node, recorder) else node.inputs
    return (node.op, inputs, freeze(attrs) if attrs else (), *(v.type for v in node.outputs))


def _sorted(node: Node) -> tuple[Value, ...]:
    return tuple(sorted(node.inputs, key=lambda value: value.id))


def _may_exchange(node: Node, recorder: Recorder) -> bool:
    return node.op.commutative and (recorder.options.fast_math or not _is_inexact(node.output))


def _is_inexact(value: Value) -> bool:
    if isinstance(value.type, ArrayType):
        return value.type.dtype.kind in "fc"
    return isinstance(value.type, ScalarType) and value.type.python in (float, complex)


# ---- near misses: why two nodes that look alike are two


def _tell_near_miss(node: Node, similar: dict[Hashable, Node], recorder: Recorder) -> None:
    """Say once of a node why it was not merged with the first that has its op and its inputs."""
    key = _loose_key(node)
    if key is None:
        return
    other = similar.setdefault(key, node)
    if other is not node:
        code, why = _difference(node, other)
        recorder.refused(node, other, code, why, rule="cse.differs")


def _loose_key(node: Node) -> Hashable:
    """Equal for nodes that a reader might take for the same; None if there is nothing to say."""
    if node.op.name == "const":
        number = None if np.ndim(node.attrs["value"]) else uniform_number(node.attrs["value"])
        return None if number is None or number != number else (node.op, number)
    if not node.inputs:
        return None
    return (node.op, _sorted(node) if node.op.commutative else node.inputs)


def _difference(node: Node, other: Node) -> tuple[str, str]:
    """The code and the sentence for two nodes of the same op and inputs."""
    if node.outputs and does_something(node):
        return "NOT_PURE", "each one gives a result of its own"
    if does_something(node):
        return "SIDE_EFFECT", f"each one does its own {node.op.effect}"
    for value, like in zip(node.outputs, other.outputs, strict=False):
        if str(value.type) != str(like.type):
            return difference(value.type, like.type), f"{value.type}, not {like.type}"
    names = [
        name
        for name in dict.fromkeys((*node.attrs, *other.attrs))
        if freeze(node.attrs.get(name)) != freeze(other.attrs.get(name))
    ]
    if names:
        texts = [tuple(_attr_text(each, name) for each in (node, other)) for name in names]
        return "ATTRS", "; ".join(
            f"{name}: {a}, not {b}" for name, (a, b) in zip(names, texts, strict=True)
        )
    return "FLOAT_ORDER", "the operands are exchanged, and a NaN may come out with other bits"


def _attr_text(node: Node, name: str) -> str:
    return attr_text(node.attrs[name]) if name in node.attrs else "left out"
