"""Divides a graph into segments, which are compiled, and nodes that Python runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minigraph.ir import ArrayType, Graph, Node, Value, is_element

from ..settings import Settings
from ..strided import Strided, view, whole
from .loops import LOOPS, write_loop
from .segments import Segment, is_compiled_product, is_plain, write_segment
from .statements import CannotCompile


class Division:
    """A graph divided into segments and nodes that Python runs.

    Attributes:
        parts: segments and Python nodes, in order.
        windows: where each value lies that is an array or a view of one.
        outside: the values that have an array in Python.
        written: the values that are computed in the memory of an argument, each with that.
        reasons: for each loop that Python runs why it is not compiled.
    """

    def __init__(self, graph: Graph, written: Mapping[Value, Value], settings: Settings) -> None:
        self.graph = graph
        self.written = written
        self.settings = settings
        self.reasons: dict[Node, CannotCompile] = {}
        self.windows: dict[Value, Strided] = {value: whole(value) for value in graph.inputs}
        self.parts: list[Segment | Node] = []
        self.outside: set[Value] = {*graph.inputs, *graph.outputs}
        self._views: dict[Value, Value] = {}  # a view -> the value that it is a view of
        self._readers: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self._readers.setdefault(value, []).append(node)
        self._divide()
        self._find_outside()

    def _divide(self) -> None:
        current: Segment | None = None
        constants: list[Node] = []
        waiting: list[Node] = []  # views: who needs them outside makes them after the segment
        numbers: dict[Value, Any] = {}
        for node in self.graph.nodes:
            window = self._window(node)
            if window is not None:
                self.windows[node.output] = window
                self._views[node.output] = node.inputs[0]
                waiting.append(node)
            elif node.op.name == "write" and self.written.get(node.inputs[1]) is node.inputs[0]:
                pass  # it was computed there
            elif node.op.name == "const":
                self._take_as_array(node)
                constants.append(node)
                if not node.output.shape:
                    numbers[node.output] = node.attrs["value"]
            elif self.is_compiled(node):
                if current is None:
                    self.parts += waiting
                    waiting = []
                    current = Segment([])
                    self.parts.append(current)
                current.nodes.append(node)
                self._take_as_array(node)
            else:
                self.parts += waiting
                waiting = []
                current = None
                self.parts.append(self._loop(node, numbers) or node)
                self._take_as_array(node)
        self.parts = [*constants, *self.parts, *waiting]

    def _window(self, node: Node) -> Strided | None:
        """Where a view lies; None: it is none, or an element, which is read at its own node."""
        base = self.windows.get(node.inputs[0]) if node.op.view and node.inputs else None
        if base is None or not isinstance(node.inputs[0].type, ArrayType) or is_element(node):
            return None
        return view(node, base)

    def _take_as_array(self, node: Node) -> None:
        for value in node.outputs:
            if isinstance(value.type, ArrayType):
                self.windows[value] = whole(value)

    def is_compiled(self, node: Node) -> bool:
        """Whether the node is part of a segment."""
        return node.op.name == "kernel" or is_compiled_product(node) or self._is_copied(node)

    def _is_copied(self, node: Node) -> bool:
        """Whether the node is a `reshape` that copies, for compiled code to read."""
        if node.op.name != "reshape" or node.inputs[0] not in self.windows or node.may_raise:
            return False
        kind = node.inputs[0].type
        if not isinstance(kind, ArrayType) or not is_plain(kind.dtype):
            return False
        return any(
            reader.op.name == "kernel" or is_compiled_product(reader)
            for reader in self._readers.get(node.output, ())
        )

    def _loop(self, node: Node, numbers: Mapping[Value, Any]) -> Segment | None:
        """A segment of its own for a loop or branch; None: Python runs it."""
        if node.op.name not in LOOPS:
            return None
        try:
            return write_loop(node, self.windows, numbers, self.settings)
        except CannotCompile as reason:
            self.reasons[node] = reason
            return None

    def by_itself(self, node: Node) -> Segment | None:
        """A segment for one node in a region that Python runs; None: Python runs it, too."""
        values = [*node.inputs, *node.outputs]
        self.windows.update({v: whole(v) for v in values if isinstance(v.type, ArrayType)})
        if node.op.name != "kernel":
            segment = self._loop(node, {})
        else:
            segment = Segment([node])
            buffers = {value: value for value in node.outputs}
            write_segment(segment, self.windows, set(values), buffers, self.settings)
        if segment is not None:
            self.outside.update(values)
        return segment

    def _find_outside(self) -> None:
        """Which values need arrays in Python: all that not only their own segment reads."""
        place: dict[Value, Segment] = {}
        for part in self.parts:
            if isinstance(part, Segment):
                for node in part.nodes:
                    place.update(dict.fromkeys(node.outputs, part))
        for part in self.parts:
            if isinstance(part, Segment):
                self.outside.update(part.nodes[0].outputs if part.is_loop else ())
                self.outside.update(part.nodes[0].inputs if part.may_fail else ())
                for node in part.nodes:
                    for value in node.inputs:
                        window = self.windows.get(value)
                        buffer = value if window is None else window.buffer
                        if place.get(buffer) is not part:
                            self.outside.add(buffer)
            elif part.outputs and part.outputs[0] in self._views:
                continue
            else:
                self.outside.update(part.inputs)
        for shown in reversed(self._views):
            if shown in self.outside:
                self.outside.add(self._views[shown])
        unused = self._views.keys() - self.outside
        self.parts = [
            part
            for part in self.parts
            if isinstance(part, Segment) or unused.isdisjoint(part.outputs)
        ]
