"""The memory of a region while its lines are written: who may write where.

A *memory* is named by the value that stands for it; arrays are windows on it.  A region owns the
memory that it made, and that of an operand which nothing needs after the node that it belongs to;
what it owns it may write over once nothing in it will read any of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minigraph.ir import ArrayType, Graph, Value

Place = Callable[[], Value]


class Frame:
    """A region being written.

    Attributes:
        position: of the node being written.
        last: the position of the last node that reads each value; the end for results.
        owned: the memory that the region may write.
        windows: the values that lie in each memory.
        wanted: where results of the region are to lie, if who makes them can choose: a function
            that gives the memory.
    """

    def __init__(self, graph: Graph, owned: set[Value], wanted: Mapping[Value, Place]) -> None:
        self.position = 0
        self.last: dict[Value, int] = {}
        for position, node in enumerate(graph.nodes):
            self.last.update(dict.fromkeys(node.inputs, position))
        self.last.update(dict.fromkeys(graph.outputs, len(graph.nodes)))
        self.owned = owned
        self.wanted = dict(wanted)
        self.windows: dict[Value, list[Value]] = {}
        self._made: list[Value] = []
        self._given: dict[Value, int] = {}  # the position of the node that was last given a memory

    def add(self, value: Value, memory: Value) -> None:
        """A value lies in this memory."""
        self.windows.setdefault(memory, []).append(value)

    def is_dead(self, memory: Value, *, before: bool = False) -> bool:
        """Whether nothing after the node being written (or from it on) reads the memory."""
        position = self.position - before
        return all(self.last.get(value, -1) <= position for value in self.windows.get(memory, ()))

    def is_free(self, memory: Value) -> bool:
        """Whether the node being written may write the memory, as far as others are concerned."""
        return memory in self.owned and self.is_dead(memory)

    def claim(self, memory: Value) -> None:
        """The memory goes to someone else for good."""
        self.owned.discard(memory)
        if memory in self._made:
            self._made.remove(memory)

    def new(self, kind: ArrayType) -> Value:
        """Memory for an array in C order: some that is dead, or new; to a node none twice."""
        for memory in self._made:
            given = self._given.get(memory) == self.position
            if memory.type == kind and not given and self.is_dead(memory, before=True):
                self.windows[memory] = []
                self._made.remove(memory)
                break
        else:
            memory = Value(-1, kind)
        self._made.append(memory)
        self._given[memory] = self.position
        self.owned.add(memory)
        return memory

    def destination(self, value: Value) -> Value:
        """Memory for an array that a node makes: where it is wanted, or any."""
        place = self.wanted.pop(value, None)
        if place is None:
            kind: Any = value.type
            return self.new(kind)
        return place()
