"""The Python function around the segments: makes arrays, calls compiled code, runs what is left.

    def mlp(x, w, b):
        y = np.empty((1, 2), np.float32)
        segment0(n0, x, w, b, y)
        return y

Results and what Python nodes read are fresh arrays; all else that compiled code makes lies in one
piece of memory that a call takes and gives back.  Where the plan lets a result take over a dead
value's buffer, it gets its array.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from minigraph.ir import INT, ArrayType, Graph, Node, Plan, Size, Value, storage_roots

from ..control import write_node
from ..program import Program
from ..settings import Settings
from ..spelling import dim_code
from ..writer import Writer
from .again import Again
from .division import Division
from .segments import Segment, write_segment
from .statements import CannotCompile

NEW_ARRAYS = ("join", "cumulate", "create", "random")
"""Kinds of nodes whose results NumPy makes anew, in C order, free to be written."""


class NumbaProgram(Program):
    """A program some of whose functions are compiled when it is loaded.

    Attributes:
        segments: those functions, by their name in the source.
        python_nodes: the nodes that Python runs.
        reasons: for each loop among them why it is not compiled.
        settings: what the user chose.
        given_names: what `load` supplies, and its name in the source.
    """

    __slots__ = ("given_names", "python_nodes", "reasons", "segments", "settings")

    segments: dict[str, Segment]
    python_nodes: list[Node]
    reasons: dict[Node, CannotCompile]
    settings: Settings
    given_names: dict[str, str]

    @property
    def memory_bytes(self) -> Size:
        """The largest piece of memory that a segment takes; of named sizes, what all take."""
        sizes = [segment.memory_bytes for segment in self.segments.values()]
        fixed = [size for size in sizes if isinstance(size, int)]
        return max(fixed, default=0) if len(fixed) == len(sizes) else sum(sizes)


def write_program(graph: Graph, plan: Plan, settings: Settings) -> NumbaProgram:
    """Divide a graph, write the compiled functions, and the Python function that calls them."""
    return _Driver(graph, plan, settings).write()


class _Driver:
    def __init__(self, graph: Graph, plan: Plan, settings: Settings) -> None:
        self.graph = graph
        self.plan = plan
        self.settings = settings
        self.division = Division(graph, plan.written, settings)
        self.writer = Writer(graph, plan)
        self.segments: dict[str, Segment] = {}
        self.buffers: dict[Value, Value] = {}  # a segment's result -> whose memory it gets
        outside = self.division.outside
        self.made_by: dict[Segment, list[Value]] = {
            part: [value for node in part.nodes for value in node.outputs]
            for part in self.division.parts
            if isinstance(part, Segment)
        }
        self.producers = graph.producers()
        compiled = {value for values in self.made_by.values() for value in values}
        self.given_names: dict[str, str] = {}
        # A Python node cannot write into what has no array.
        self.writer.takeovers = {
            value: dead
            for value, dead in self.writer.takeovers.items()
            if value not in compiled and dead in outside
        }

    def write(self) -> NumbaProgram:
        writer = self.writer
        parts, outside = self.division.parts, self.division.outside
        for part in parts:
            if isinstance(part, Node):
                self._compile_inside(part)
            elif not part.is_loop:
                self._choose_buffers(part)
                windows = self.division.windows
                write_segment(part, windows, outside, self.buffers, self.settings)
        writer.bind_sizes(self._sizes_used())
        if self.settings.static_alloc and not self.graph.signature.program:
            writer.take_kept(self._to_keep())
        for part, dead in zip(parts, self._dead(), strict=True):
            if isinstance(part, Segment):
                if part.is_loop:
                    self._loop(part)
                else:
                    self._segment(part)
            else:
                write_node(writer, part)
            names = [writer.text[value] for value in dead if writer.deletable(value)]
            if names and part is not parts[-1]:
                last = part if isinstance(part, Node) else part.nodes[-1]
                writer.line(f"del {', '.join(names)}", last)
        writer.give_kept()
        if not self.graph.signature.program:
            writer.write_return()
        source, lines = writer.assemble()
        program = NumbaProgram(
            writer.name, source, lines, writer.constants, self.graph, self.plan, names=writer.text
        )
        program.segments = self.segments
        program.settings = self.settings
        program.given_names = self.given_names
        if self.settings.static_alloc:
            program.kept_bytes = writer.kept_bytes + program.memory_bytes
        program.reasons = self.division.reasons
        program.python_nodes = [part for part in parts if isinstance(part, Node)]
        return program

    def _compile_inside(self, node: Node) -> None:
        """Compile the kernels and loops in the regions of a node that Python runs."""
        for _, region in node.regions if node.op.name != "kernel" else ():
            for inner in region.nodes:
                segment = self.division.by_itself(inner)
                if segment is None:
                    self._compile_inside(inner)
                    continue
                self.made_by[segment] = list(inner.outputs)
                self.buffers.update({value: value for value in inner.outputs})
                if segment.is_loop:
                    self.writer.compiled[inner] = partial(self._loop, segment)
                else:
                    self.writer.compiled[inner] = partial(self._segment, segment)

    def _sizes_used(self) -> Iterator[Size]:
        """The sizes that the calls of segments mention."""
        for segment, made in self.made_by.items():
            yield from segment.sizes
            yield segment.memory_bytes
            for value in segment.writes:
                yield from value.shape if value in made else ()

    def _to_keep(self) -> list[Value]:
        """The values whose arrays segments write and no result shows."""
        root = storage_roots(self.graph)
        shown: set[Value] = set()
        for value in self.graph.outputs:
            if not isinstance(value.type, ArrayType) or value.type.ndim:
                window = self.division.windows.get(value)
                shown.add(self._place(root[value] if window is None else window.buffer))
        parts = [p for p in self.division.parts if isinstance(p, Segment) and not p.is_loop]
        written = [v for part in parts for v in part.writes if v in self.made_by[part]]
        taken = {self._place(value) for value in self.writer.takeovers.values()}
        given = {self._place(value) for value in self.plan.given}  # may come out of a loop
        lost = shown | taken | given
        return [value for value in dict.fromkeys(written) if value not in lost]

    def _place(self, value: Value) -> Value:
        """The value whose array a value lies in."""
        while value in self.writer.takeovers:
            value = self.writer.takeovers[value]
        return self.buffers.get(value, value)

    def _dead(self) -> list[list[Value]]:
        """The values whose arrays no part after each one reads."""
        uses: list[set[Value]] = []
        for part in self.division.parts:
            if isinstance(part, Segment):
                made = (value for value in self.made_by[part] if value in self.division.outside)
                given = part.nodes[0].inputs if part.may_fail else ()
                constants = {node.output for node in part.constants}
                uses.append({*part.reads, *part.writes, *made, *given} - constants)
            else:
                taken = (self.writer.takeovers.get(value) for value in part.outputs)
                uses.append({*part.inputs, *part.outputs, *(v for v in taken if v is not None)})
        order = {value: number for number, value in enumerate(self.graph.values())}
        seen = set(self.graph.outputs)
        dead: list[list[Value]] = []
        for used in reversed(uses):
            dead.append(sorted(used - seen, key=order.__getitem__))
            seen |= used
        return dead[::-1]

    def _segment(self, segment: Segment) -> None:
        """Make the arrays that a segment writes, call it, and name its results."""
        writer, outside = self.writer, self.division.outside
        name = writer.names.fresh(f"segment{len(self.segments)}")
        self.segments[name] = segment
        first = segment.nodes[0]
        for value in segment.writes:
            if value in writer.out:
                writer.text[value] = writer.out[value]
            elif value in self.made_by[segment]:
                self._assign(value, self._empty(value), first)
        given = self._given(segment)
        reads = [self._array(value) for value in segment.reads]
        writes = [writer.text[value] for value in segment.writes]
        self._call(name, given, reads, writes, segment)
        self._give_memory(segment)
        for value in self.made_by[segment]:
            if value in outside:
                self._name_result(value, segment)

    def _loop(self, segment: Segment) -> None:
        """Call a compiled loop, and let Python run it if that could not go on."""
        writer, node = self.writer, segment.nodes[0]
        for constant in segment.constants:
            writer.constant(constant.output, constant.attrs["value"])
        name = writer.names.fresh(f"loop{len(self.segments)}")
        self.segments[name] = segment
        for value in segment.writes:
            self._assign(value, self._empty(value), node)
        given = self._given(segment)
        reads = [self._array(value) for value in segment.reads]
        writes = [writer.text[value] for value in segment.writes]
        results = [writer.local(value) for value in segment.results]
        bound = f"{', '.join(results)} = " if results else ""
        line = writer.line
        margin = "    " if segment.may_fail else ""
        again = writer.names.fresh(f"{name}_again")
        call = f"{bound}{name}({', '.join([*given, *reads, *writes])})"
        if segment.may_fail:
            line(f"{again} = False", node)
            line("try:", node)
        if reads:
            copies = f"*{self._name('dense')}({', '.join(reads)})"
            line(f"{margin}try:", node)
            line(f"{margin}    {call}", node)
            line(f"{margin}except TypeError:", node)
            call = f"    {bound}{name}({', '.join([*given, copies, *writes])})"
        line(f"{margin}{call}", node)
        if segment.may_fail:
            line("except OverflowError:", node)
            line(f"    {again} = True", node)
        for value in segment.writes:
            if not value.shape:
                line(f"{writer.text[value]} = {writer.text[value]}[()]", node)
        if segment.may_fail:
            line(f"if {again}:", node)
            in_python = Again(node, self.graph)
            operands = ", ".join(writer.text[value] for value in in_python.operands)
            names = ", ".join(writer.text[value] for value in node.outputs)
            function = writer.bind(in_python, f"{node.op.name}_in_python")
            line(f"    [{names}] = {function}({operands})", None)  # which says itself what fails
        self._give_memory(segment)

    def _give_memory(self, segment: Segment) -> None:
        """Leave the memory to the next call."""
        if segment.memory_bytes != 0:
            text = f"{self._name('free')}.append({self._name('memory')})"
            self.writer.line(text, segment.nodes[0])

    def _given(self, segment: Segment) -> list[str]:
        """What a segment takes before arrays; with the lines that make it."""
        first = segment.nodes[0]
        given = [self._sizes(segment, first)] if segment.sizes else []
        if segment.threads:
            given.append(f"{self._name('threads')}()")
        if segment.memory_bytes != 0:
            self._take_memory(segment.memory_bytes, first)
            given.append(self._name("memory"))
        return given + [self._number(value, dtype) for value, dtype in segment.numbers]

    def _call(
        self, name: str, given: list[str], reads: list[str], writes: list[str], segment: Segment
    ) -> None:
        """Call a segment, with copies of arguments that are not in C order.

        What it writes to such an argument is then copied back.
        """
        line, first = self.writer.line, segment.nodes[0]
        own = [self.writer.text[v] for v in segment.writes if v in self.graph.inputs]
        call = f"{name}({', '.join([*given, *reads, *writes])})"
        if not reads and not own:
            line(call, first)
            return
        dense = self._name("dense")
        copies = {text: self.writer.names.fresh(text) for text in own}
        again = [*given, *([f"*{dense}({', '.join(reads)})"] if reads else [])]
        again += [copies.get(text, text) for text in writes]
        line("try:", first)
        line(f"    {call}", first)
        line("except TypeError:", first)
        if copies:
            line(f"    [{', '.join(copies.values())}] = {dense}({', '.join(copies)})", first)
        line(f"    {name}({', '.join(again)})", first)
        for text, copy in copies.items():
            line(f"    {text}[...] = {copy}", first)

    def _take_memory(self, size_bytes: Size, node: Node) -> None:
        """A piece of memory for this call alone: a free one that is large enough, or a new one."""
        line, memory, free = self.writer.line, self._name("memory"), self._name("free")
        size = dim_code(size_bytes, self.writer.sizes)
        line("try:", node)
        line(f"    {memory} = {free}.pop()", node)
        if not isinstance(size_bytes, int) or len(self.made_by) > 1:
            line(f"    if {memory}.size < {size}:", node)
            line(f"        {memory} = {self._name('new_memory')}({size})", node)
        line("except IndexError:", node)
        line(f"    {memory} = {self._name('new_memory')}({size})", node)

    def _name_result(self, value: Value, segment: Segment) -> None:
        """The local of a result: a scalar if it has no axes, or the array that it took over."""
        place = self.buffers[value]
        assert isinstance(value.type, ArrayType)
        if value.type.ndim == 0:
            self._assign(value, f"{self.writer.text[value]}[()]", segment.nodes[-1])
        elif place is not value:
            self._assign(value, self.writer.text[place], segment.nodes[-1])

    def _choose_buffers(self, segment: Segment) -> None:
        """Whose memory each result of a segment gets."""
        outside = self.division.outside
        groups: dict[Value, list[Value]] = {}
        for value in self.made_by[segment]:
            if value in self.plan.written:
                self.buffers[value] = self.plan.written[value]
                continue
            dead = self.plan.reuses.get(value)
            place = (
                value if dead is None else self.buffers.get(dead, self._fresh_array(dead, value))
            )
            if place not in groups and (place is not dead or dead not in outside):
                place = value  # the memory was another segment's own
            if value in outside and any(member in outside for member in groups.get(place, ())):
                place = value
            groups.setdefault(place, []).append(value)
            self.buffers[value] = place
        for root, members in groups.items():
            escaping = next((member for member in members if member in outside), None)
            if root not in outside and escaping is not None:
                self.buffers.update(dict.fromkeys(members, escaping))

    def _fresh_array(self, dead: Value, value: Value) -> Value:
        """`dead`, if a Python node made it as an array that compiled code can write."""
        maker = self.producers.get(dead)
        is_new = maker is not None and maker.op.kind in NEW_ARRAYS and not maker.op.view
        return dead if is_new and dead in self.division.outside else value

    def _sizes(self, segment: Segment, node: Node) -> str:
        """The array of integers that a segment takes."""
        if all(isinstance(size, int) for size in segment.sizes):
            return self.writer.bind(np.array(segment.sizes, np.int64), "n")
        np_ = self.writer.module("np")
        inner = ", ".join(dim_code(size, self.writer.sizes) for size in segment.sizes)
        name = self.writer.names.fresh("n")
        self.writer.line(f"{name} = {np_}.array([{inner}], {np_}.int64)", node)
        return name

    def _empty(self, value: Value) -> str:
        assert isinstance(value.type, ArrayType)
        shape = self.writer.attr(value.type.shape)
        dtype = self.writer.bind(value.type.dtype, value.type.dtype.name)
        return f"{self.writer.module('np')}.empty({shape}, {dtype})"

    def _number(self, value: Value, dtype: str) -> str:
        text = self.writer.text[value]
        return f"float({text})" if value.type == INT and dtype == "float64" else text

    def _array(self, value: Value) -> str:
        text = self.writer.text[value]
        assert isinstance(value.type, ArrayType)
        return text if value.type.ndim else f"{self.writer.module('np')}.asarray({text})"

    def _assign(self, value: Value, expression: str, node: Node) -> None:
        writer = self.writer
        writer.line(f"{writer.local(value)} = {expression}", node, writer.type_text(value.type))

    def _name(self, wish: str) -> str:
        """The name in this program of something that `load` supplies, or of the memory."""
        if wish not in self.given_names:
            self.given_names[wish] = self.writer.names.fresh(wish)
        return self.given_names[wish]
