"""Where the arrays of a compiled loop lie: windows on memory, and the locals that point to it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from minigraph.ir import ArrayType, Node, Size, Value
from minigraph.ops import array_type

from ..settings import Settings
from ..strided import Strided, c_strides
from .frames import Frame
from .statements import CannotCompile, Statements
from .writing import Kernel, element_dtype


class Memory(Statements):
    """Knows where arrays lie, and makes room for new ones.

    Attributes:
        frame: the region being written.
        memory: for each pointer into the middle of a memory that memory.
        results: the arrays that the caller gets.
        rows: so many rows of each array are shared among threads, from `lo` to `hi`; 0: none.
        turns: how often, at least, the scans around run the node that is being written.
        given: the memory of arguments, results and the segment's own, each with its pointer.
        packed: the copies that are made first, by what they are of; first_lines: what makes them.
    """

    frame: Frame

    def __init__(
        self,
        node: Node,
        windows: Mapping[Value, Strided],
        known: Mapping[Value, Any],
        settings: Settings,
        rows: int = 0,
    ) -> None:
        super().__init__(node, windows, known, settings)
        self.memory: dict[Value, Value] = {}
        self.rows = rows
        self.turns = 1
        self.given: dict[Value, str] = {}
        self.packed: dict[Hashable, Value] = {}
        self.first_lines: list[tuple[str, Node | None]] = []
        self.results = {v for v in node.outputs if isinstance(v.type, ArrayType)}

    def define(self, value: Value, window: Strided) -> None:
        """A value lies there."""
        self.windows[value] = window
        self.frame.add(value, self.memory_of(window))

    def memory_of(self, window: Strided) -> Value:
        """The memory that a window looks into."""
        return self.memory.get(window.buffer, window.buffer)

    def is_whole(self, window: Strided) -> bool:
        """Whether a window shows a memory from its start, in C order."""
        return window.buffer not in self.memory and window.is_dense

    def make(self, value: Value) -> None:
        """Give a result memory."""
        kind = array_type(value.type)
        if kind.ndim:
            place = self.frame.destination(value)
            self.define(value, Strided(place, kind.shape, c_strides(kind.shape), 0))
            self.buffers[value] = place
        else:
            self.pointers[value] = self.slot(value)

    def made(self, value: Value, node: Node) -> None:
        """What a kernel has written to a slot becomes a local."""
        if self.is_number(value):
            text = self.load(self.pointers.pop(value), "0", array_type(value.type))
            self.texts[value] = self.assign(text, node)

    def _pointer(self, value: Value) -> str:
        value = self.buffers.get(value, value)
        if value in self.pointers:
            return self.pointers[value]
        if value in self.texts or value in self.numbers:
            return self.spilled(value)
        return self.new_pointer(value)

    def address(self, memory: Value) -> str:
        """The local that points to a memory."""
        return self._pointer(memory)

    def new_pointer(self, value: Value) -> str:
        """A local that points to an argument, a result, or memory of the segment's own."""
        name = self.pointers[value] = f"p{len(self.given)}"
        self.given[value] = name
        if value in self.arguments:
            self.segment.reads.append(value)
        elif value in self.results:
            self.segment.writes.append(value)
        else:
            kind = array_type(value.type)
            text = self._reserve(kind.size_bytes, element_dtype(kind.dtype))
            self.setup.append(f"    {name} = {text}")
        return name

    def _window(self, value: Value) -> Strided:
        """Where an array lies; one without axes is written to memory first."""
        if not self.is_number(value):
            return self.windows[value]
        self.spilled(value)
        self.pointers[value] = self.slot(value)
        return Strided(value, (), (), 0)

    def show(self, value: Value, window: Strided, offset: str, node: Node) -> None:
        """A value is what a window shows, so many elements further (""; none)."""
        kind = array_type(value.type)
        pointer = self._pointer(window.buffer)
        if not kind.ndim:
            index = self.index(window, offset)
            self.texts[value] = self.assign(self.load(pointer, index, kind), node)
        elif offset:
            self.define(value, self.further(window, offset, node))
        else:
            self.define(value, window)

    def index(self, window: Strided, offset: str) -> str:
        """The index of a window's first element, so many elements further."""
        terms = [] if window.offset == 0 else [self._size(window.offset)]
        return " + ".join([*terms, offset] if offset else terms) or "0"

    def further(self, window: Strided, offset: str, node: Node) -> Strided:
        """A window so many elements further, by a pointer of its own."""
        pointer = self.assign(f"moved({self._pointer(window.buffer)}, {offset})", node)
        buffer = Value(-1, window.buffer.type)
        self.pointers[buffer] = pointer
        self.memory[buffer] = self.memory_of(window)
        return Strided(buffer, window.shape, window.strides, window.offset)

    def copy_to(self, memory: Value, window: Strided, node: Node) -> None:
        """Write a window's elements in C order to a memory, if they are not there already."""
        if window.strides == c_strides(window.shape):
            source = self._pointer(window.buffer)
            if window.offset != 0:
                source = f"moved({source}, {self._size(window.offset)})"
            target = self._pointer(memory)
            count = ArrayType(array_type(memory.type).dtype, window.shape).size
            text = self._size(count)
            if self.rows:
                width = self._size(count // self.rows)
                target, source = (f"moved({each}, lo * {width})" for each in (target, source))
                text = f"(hi - lo) * {width}"
            self._line(f"copy_elements({target}, {source}, {text})", node)
        else:
            self._copy(node, window, memory)

    def _span(self, kernel: Kernel) -> tuple[str, str]:
        if not self.rows:
            return super()._span(kernel)
        assert isinstance(kernel.iterations, int)
        if kernel.iterations % self.rows or kernel.finish is not None:
            raise CannotCompile(self.node, "its rows are not loops of their own")
        if kernel.iterations == self.rows:
            return "lo", "hi"
        width = self._size(kernel.iterations // self.rows)
        return f"lo * {width}", f"hi * {width}"

    def _threads(self, work: Size) -> str:
        """Threads that share the rows of all steps share no single kernel of one."""
        return "" if self.rows else super()._threads(work)
