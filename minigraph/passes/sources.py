"""Where operands come from, past numbers and views: these stand wherever they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from minigraph.ir import Graph, Node, Value, storage_roots, written_operands

from .fusible import is_product, is_window, only_moves

MOST_WINDOWS = 8  # views of views of views ...


class Sources:
    """The numbers and views of a graph, and who reads what.

    Attributes:
        readers: the nodes that read each value.
        numbers: the node of each constant without axes; known: what it holds.
        windows: for each value that a kernel can read through views those views, the first of all
            first.
    """

    def __init__(self, graph: Graph, dead: Iterable[Node]) -> None:
        self.readers: dict[Value, list[Node]] = {}
        self.numbers: dict[Value, Node] = {}
        self.known: dict[Value, Any] = {}
        self.windows: dict[Value, tuple[Node, ...]] = {}
        self._base: dict[Value, Value] = {}
        self._moved: dict[Value, Value | None] = {}
        ignored = set(dead)
        whole = {v for node in graph.nodes if is_product(node) for v in node.inputs}
        for node in graph.nodes:
            for value in dict.fromkeys(node.inputs):
                self.readers.setdefault(value, []).append(node)
            if node.op.name == "const" and np.ndim(node.attrs["value"]) == 0:
                self.numbers[node.output] = node
                self.known[node.output] = node.attrs["value"]
            elif node not in ignored and node.inputs and is_window(node):
                # A library multiplies, and takes matrices as they are or transposed.
                plain = node.op.name == "transpose" and node.inputs[0] not in self.windows
                if plain or node.output not in whole:
                    self._add_window(node)

    def _add_window(self, node: Node) -> None:
        (operand,) = node.inputs
        windows = (*self.windows.get(operand, ()), node)
        base, moved = self.base(operand), self.moved(operand) if only_moves(node) else None
        if len(windows) > MOST_WINDOWS or (base in self.numbers and moved is None):
            return
        self.windows[node.output] = windows
        self._base[node.output] = base
        self._moved[node.output] = moved

    def base(self, value: Value) -> Value:
        """What a value is a window on; else itself."""
        return self._base.get(value, value)

    def moved(self, value: Value) -> Value | None:
        """The value of which this one is the same at each place of the loops; None: of none."""
        return self._moved.get(value, value)

    def is_window(self, node: Node) -> bool:
        """Whether it is a view that is read as part of whoever reads it."""
        return len(node.outputs) == 1 and node.outputs[0] in self.windows

    def is_followed(self, node: Node) -> bool:
        """Whether it stands wherever it is read."""
        return node.op.name == "const" or self.is_window(node)

    def parts(self, node: Node) -> Iterator[Node]:
        """What a node brings into a body: numbers, views, and itself."""
        for value in dict.fromkeys(node.inputs):
            number = self.numbers.get(self.base(value))
            if number is not None:
                yield number
            yield from self.windows.get(value, ())
        yield node


def read_before_written(graph: Graph) -> dict[Node, list[Node]]:
    """For the node that first writes to an argument those that read it: they all come before.

    Who writes to it later is given it too, and comes after.
    """
    first: dict[Value, Node] = {}
    for node in graph.nodes:
        for target in written_operands(node):
            first.setdefault(target, node)
    found: dict[Node, list[Node]] = {node: [] for node in first.values()}
    root = storage_roots(graph) if first else {}
    for node in graph.nodes if first else ():
        read = node.inputs[1:] if node.op.effect == "write" else node.inputs
        for owner in ({root[value] for value in read} & first.keys()) - {*written_operands(node)}:
            found[first[owner]].append(node)
    return found
