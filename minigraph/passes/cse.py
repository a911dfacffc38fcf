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
was not initialized.  A node that may raise is merged into the first of its kind: had that raised,
the second would not have run.  Operands may be exchanged where the op says so and the result is
exact (`a + b` and `b + a` may differ in the bits of a NaN).

What a region computes of its operands alone, and could take from another operand, it takes.

Cost: one table lookup for each node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from minigraph.ir import (
    ArrayType,
    Graph,
    Node,
    ScalarType,
    Value,
    attr_text,
    carried_count,
    freeze,
    is_structured,
    operands,
    running_regions,
    scanned_count,
)
from minigraph.ops import ANNOTATIONS

from .patterns import uniform_number
from .recorder import Recorder, difference
from .regions import does_something, in_regions_of, meaning, with_values


def cse(graph: Graph, recorder: Recorder) -> Graph:
    """Merge each node into an earlier one that computes the same."""
    first: dict[Hashable, Node] = {}
    similar: dict[Hashable, Node] = {}
    merged: dict[Value, Value] = {}
    made_by: dict[Value, Node] = {}
    nodes: list[Node] = []
    for old in graph.nodes:
        (node,) = with_values((old,), merged, recorder)
        if is_structured(node):
            node = _with_operands(node, made_by, recorder)
        node = in_regions_of(node, cse, recorder)
        pure = not does_something(node)
        earlier = first.setdefault(_key(node, recorder), node) if pure else node
        if earlier is node:
            nodes.append(node)
            made_by.update(dict.fromkeys(node.outputs, node))
            _tell_near_miss(node, similar, recorder)
            continue
        merged.update(zip(node.outputs, earlier.outputs, strict=True))
        same = ", ".join(f"%{value.name}" for value in earlier.outputs)
        recorder.replaced(node, earlier, "cse.same", f"same op, same inputs as {same}")
    if not merged and all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return graph.replace(nodes, [merged.get(value, value) for value in graph.outputs])


def _with_operands(node: Node, made_by: Mapping[Value, Node], recorder: Recorder) -> Node:
    """An `if` or loop that does not compute inside what is among its operands."""
    same = carried_count(node) + scanned_count(node)
    changed: dict[str, Graph] = {}
    for name, region in running_regions(node):
        inside = dict(zip(operands(node)[same:], region.inputs[same:], strict=True))
        there: dict[Hashable, Value] = {}
        for outer, inner in inside.items():
            maker = made_by.get(outer)
            if maker is None or len(maker.outputs) != 1 or not inside.keys() >= {*maker.inputs}:
                continue
            if maker.inputs and not does_something(maker):
                given = [inside[value] for value in maker.inputs]
                there[_key(recorder.remake(maker, inputs=given), recorder)] = inner
        found: dict[Value, Value] = {}
        kept: list[Node] = []
        for old in region.nodes if there else ():
            (each,) = with_values((old,), found, recorder)
            value = there.get(_key(each, recorder)) if len(each.outputs) == 1 else None
            if value is None:
                kept.append(each)
                continue
            found[each.output] = value
            why = f"it is computed outside, and given as %{value.name}"
            recorder.replaced(old, value, "cse.operand", why)
        if found:
            outputs = [found.get(value, value) for value in region.outputs]
            changed[name] = region.replace(kept, outputs)
    return recorder.remake(node, attrs={**node.attrs, **changed}) if changed else node


def _key(node: Node, recorder: Recorder) -> Hashable:
    regions = tuple((name, meaning(region)) for name, region in node.regions)
    attrs = {
        name: attr
        for name, attr in node.attrs.items()
        if name not in ANNOTATIONS and not isinstance(attr, Graph)
    }
    inputs = _sorted(node) if _may_exchange(node, recorder) else node.inputs
    kinds = tuple(value.type for value in node.outputs)
    return (node.op, inputs, freeze(attrs) if attrs else (), regions, kinds)


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
    """Say once of a node why it was not merged with an earlier one that is nearly the same."""
    told = False
    for key in _loose_keys(node):
        other = similar.setdefault(key, node)
        if other is node or told:
            continue
        found = _difference(node, other)
        if found is not None:
            recorder.refused(node, other, *found, rule="cse.differs")
            told = True


def _loose_keys(node: Node) -> Iterator[Hashable]:
    """What nodes share that a reader might take for the same: all of it, or all but one attr."""
    if node.op.name == "const":
        number = None if np.ndim(node.attrs["value"]) else uniform_number(node.attrs["value"])
        if number is not None and number == number:
            yield node.op, number, node.output.type
        return
    if not node.inputs:
        return
    attrs = {name: freeze(a) for name, a in node.attrs.items() if name not in ANNOTATIONS}
    inputs = _sorted(node) if node.op.commutative else node.inputs
    yield node.op, inputs, frozenset(attrs.items())
    for name in attrs:
        yield node.op, inputs, frozenset(each for each in attrs.items() if each[0] != name)


def _difference(node: Node, other: Node) -> tuple[str, str] | None:
    """The code and the sentence, if one thing alone tells them apart."""
    names = [
        name
        for name in dict.fromkeys((*node.attrs, *other.attrs))
        if name not in ANNOTATIONS and freeze(node.attrs.get(name)) != freeze(other.attrs.get(name))
    ]
    exchanged = node.inputs != other.inputs
    if len(names) + exchanged > 1:
        return None
    partner = _partner(node, other)
    if does_something(node):
        if names or exchanged:
            return None
        if node.outputs:
            return "NOT_PURE", f"each gives a result of its own: this one, and {partner}"
        return "SIDE_EFFECT", f"each does its own {node.op.effect}: this one, and {partner}"
    if exchanged:
        return (
            "FLOAT_ORDER",
            f"the operands of {partner} exchanged: a NaN may come out with other bits",
        )
    kinds = zip(node.outputs, other.outputs, strict=False)
    kind, like = next(((a.type, b.type) for a, b in kinds if a.type != b.type), (None, None))
    code = difference(kind, like) if kind is not None and like is not None else "ATTRS"
    if not names:
        return (code, f"other type than {partner}: {kind}, not {like}") if kind else None
    (name,) = names
    if any(isinstance(each.attrs.get(name), Graph) for each in (node, other)):
        return code, f"other {name} graph than {partner}"
    here, there = (_attr_text(each, name) for each in (node, other))
    return code, f"other {name} than {partner}: {here}, not {there}"


def _partner(node: Node, other: Node) -> str:
    """`%x (line 3)`: the other node, and where it was written."""
    name = f"%{other.outputs[0].name}" if other.outputs else f"the other {other.op.name}"
    if other.loc is None:
        return name
    here = node.loc is not None and node.loc.file == other.loc.file
    return f"{name} (line {other.loc.line})" if here else f"{name} ({other.loc})"


def _attr_text(node: Node, name: str) -> str:
    return attr_text(node.attrs[name]) if name in node.attrs else "left out"
