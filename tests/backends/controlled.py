"""Random graphs with `if`s and loops inside of each other, and inputs for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from minigraph import ops
from minigraph.ir import INT, OPERAND, Graph, Node, Type, Value, parse_type

ROW, SQUARE, PAIR, NUMBER = (parse_type(text) for text in ("f64[3]", "f64[2,2]", "f64[2]", "f64[]"))
CONSTANTS = {
    ROW: np.arange(3.0),
    SQUARE: np.arange(4.0).reshape(2, 2),
    PAIR: np.arange(2.0),
    NUMBER: np.float64(0.5),
}
DEEPEST = 3
HINTS = ("x", "y", "n", None)

Draw = Callable[[st.SearchStrategy[Any]], Any]


class _Builder:
    """One graph: the function's or a region's."""

    def __init__(self, draw: Draw, kinds: Sequence[Type], depth: int, effects: bool) -> None:
        self.draw = draw
        self.depth = depth
        self.effects = effects
        self.count = 0
        self.inputs = [self.value(kind) for kind in kinds]
        self.values = list(self.inputs)
        self.nodes: list[Node] = []

    def value(self, kind: Type) -> Value:
        hint = self.draw(st.sampled_from(HINTS))
        self.count += 1
        return Value(self.count, kind, hint and f"{hint}.{self.count}")

    def add(self, name: str, inputs: Sequence[Value], attrs: Any = None) -> list[Value]:
        op, attrs = ops.get(name), attrs or {}
        kinds = ops.infer(op, [value.type for value in inputs], attrs)
        outputs = [self.value(kind) for kind in kinds]
        self.nodes.append(Node(len(self.nodes), op, inputs, attrs, outputs))
        self.values += outputs
        return outputs

    def const(self, value: Any) -> Value:
        return self.add("const", [], {"value": value})[0]

    def some(self, kind: Type) -> Value:
        """A value of a type, one of the latest if there is any."""
        found = [value for value in self.values if value.type == kind]
        if found:
            return found[-self.draw(st.integers(1, min(len(found), 3)))]
        if kind == INT:
            return self.const(self.draw(st.integers(0, 3)))
        return self.const(CONSTANTS[kind])

    def condition(self) -> Value:
        if self.draw(st.booleans()):
            return self.add("less", [self.some(INT), self.const(self.draw(st.integers(0, 4)))])[0]
        return self.add("less", [self.some(NUMBER), self.some(NUMBER)])[0]

    def kinds(self, most: int, of: Sequence[Type] = (ROW, SQUARE, NUMBER, INT)) -> list[Type]:
        return self.draw(st.lists(st.sampled_from(of), min_size=1, max_size=most))

    # ---- steps

    def step(self) -> None:
        choices = [*[self.elementwise] * 3, self.view, *[self.update] * 2, self.reduce]
        if self.depth < DEEPEST:
            choices += [self.branch, self.branch, self.loop, self.loop, self.scan]
        if self.effects:
            choices.append(self.effect)
        self.draw(st.sampled_from(choices))()

    def elementwise(self) -> None:
        kind = self.draw(st.sampled_from([ROW, SQUARE, NUMBER, INT]))
        if kind == INT:
            self.add("add", [self.some(INT), self.const(1)])
        elif self.draw(st.booleans()):
            self.add("negative", [self.some(kind)])
        else:
            name = self.draw(st.sampled_from(["add", "subtract", "maximum"]))
            other = self.draw(st.sampled_from([kind, NUMBER]))
            self.add(name, [self.some(kind), self.some(other)])

    def view(self) -> None:
        which = self.draw(st.integers(0, 3))
        if which == 0:
            self.add("transpose", [self.some(SQUARE)], {"axes": (1, 0)})
        elif which == 1:
            self.add("slice", [self.some(ROW)], {"index": [slice(None, None, -1)]})
        elif which == 2:
            self.add("broadcast_to", [self.some(NUMBER)], {"shape": (3,)})
        else:
            self.add("slice", [self.some(SQUARE)], {"index": [self.draw(st.integers(0, 1))]})

    def update(self) -> None:
        if self.draw(st.booleans()):
            index = self.draw(st.integers(0, 2))
            self.add("update", [self.some(ROW), self.some(NUMBER)], {"index": [index]})
        else:
            self.add("update", [self.some(SQUARE), self.some(PAIR)], {"index": [0]})

    def reduce(self) -> None:
        if self.draw(st.booleans()):
            self.add("sum", [self.some(ROW)], {"axis": (0,)})
        else:
            self.add("slice", [self.some(ROW)], {"index": [self.draw(st.integers(0, 2))]})

    def effect(self) -> None:
        kind = self.draw(st.sampled_from([ROW, NUMBER, INT]))
        self.add("print", [self.some(kind)], {"parts": ("at", OPERAND)})

    # ---- regions

    def region(self, kinds: Sequence[Type], results: Sequence[Type]) -> Graph:
        inner = _Builder(self.draw, kinds, self.depth + 1, self.effects)
        for _ in range(self.draw(st.integers(1, 4))):
            inner.step()
        return inner.graph("region", [inner.some(kind) for kind in results])

    def graph(self, name: str, outputs: Sequence[Value]) -> Graph:
        return Graph(name, self.inputs, self.nodes, outputs)

    def branch(self) -> None:
        operands = [self.some(kind) for kind in self.kinds(3)]
        kinds, results = [value.type for value in operands], self.kinds(2)
        then, otherwise = self.region(kinds, results), self.region(kinds, results)
        attrs = {"then": then, "otherwise": otherwise}
        if results:
            self.add("if", [self.condition(), *operands], attrs)

    def loop(self) -> None:
        operands = [self.some(kind) for kind in self.kinds(3)]
        same = [self.some(kind) for kind in self.kinds(2)]
        count = self.const(0)
        carried = [INT, *(value.type for value in operands)]
        kinds = [*carried, *(value.type for value in same)]
        test = _Builder(self.draw, kinds, DEEPEST, False)
        (more,) = test.add("less", [test.inputs[0], test.const(self.draw(st.integers(0, 3)))])
        inner = _Builder(self.draw, kinds, self.depth + 1, self.effects)
        for _ in range(self.draw(st.integers(1, 4))):
            inner.step()
        (after,) = inner.add("add", [inner.inputs[0], inner.const(1)])
        results = [after, *(inner.some(kind) for kind in carried[1:])]
        attrs = {"test": test.graph("test", [more]), "body": inner.graph("body", results)}
        if self.draw(st.booleans()):
            attrs["limit"] = self.draw(st.integers(0, 4))
        self.add("while", [count, *operands, *same], attrs)

    def scan(self) -> None:
        operands = [self.some(kind) for kind in self.kinds(2)]
        scanned = self.draw(st.sampled_from([[], [ROW], [ROW, ROW], [SQUARE]]))
        length = self.draw(st.integers(0, 3)) if not scanned else 3 if ROW in scanned else 2
        arrays = [self.some(kind) for kind in scanned]
        same = [self.some(kind) for kind in self.kinds(1)]
        carried = [value.type for value in operands]
        elements = [NUMBER if kind == ROW else PAIR for kind in scanned]
        stacked = self.kinds(2, (ROW, NUMBER))
        kinds = [*carried, *elements, *(value.type for value in same)]
        attrs = {
            "body": self.region(kinds, [*carried, *stacked]),
            "carried": len(carried),
            "scanned": len(scanned),
            "length": length,
            "reverse": self.draw(st.booleans()),
        }
        if carried or stacked:
            self.add("scan", [*operands, *arrays, *same], attrs)


@st.composite
def controlled(draw: st.DrawFn, effects: bool = True) -> tuple[Graph, list[Any]]:
    """A random graph with control flow, and inputs for it."""
    builder = _Builder(draw, [ROW, SQUARE, NUMBER, INT, ROW], 0, effects)
    for _ in range(draw(st.integers(2, 8))):
        builder.step()
    kinds = draw(st.lists(st.sampled_from([ROW, SQUARE, NUMBER, INT]), min_size=1, max_size=4))
    graph = builder.graph("random", [builder.some(kind) for kind in kinds])
    square = np.array([[1.0, -2.0], [0.5, 4.0]])
    if draw(st.booleans()):
        square = np.asfortranarray(square)
    inputs = [np.array([1.0, -0.0, 2.5]), square, np.float64(0.75), draw(st.integers(0, 3))]
    return graph, [*inputs, np.arange(3.0)]
