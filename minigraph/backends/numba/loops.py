"""Loops and branches as one compiled function: `if`, `while` and `scan`, within each other.

    %n, %k = while %n0, %k0 {...}        def segment(c0, c1):
                                             t0 = c0
                                             t1 = c1
                                             while True:
                                                 t2 = t0 > 1
                                                 if not t2:
                                                     break
                                                 t3 = floor_divide_numbers(t0, 2)
                                                 t4 = add_ints(t1, 1)
                                                 t0 = t3
                                                 t1 = t4
                                             return t0, t1

Numbers are locals.  A carried array lies in memory of the loop's own, into which it is copied
first; where a turn makes a new one elsewhere, two memories take turns.  A turn that only stores
into it does so in place.

What Python would raise, and what 64 bits do not hold, ends the function with an OverflowError: then
the node runs again in Python, from its inputs, which are as they were.  Ctrl-C is seen when the
function has ended, as with all that is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from minigraph.ir import (
    INT,
    ArrayType,
    Graph,
    Node,
    ScalarType,
    Value,
    carried_count,
    scanned_count,
)
from minigraph.ops import array_type

from ..settings import Settings
from ..strided import Strided, c_strides
from .batches import independent_rows
from .frames import Frame, Place
from .intervals import COUNTER, POSITION, Interval, union
from .numbers import is_cheap, may_end
from .regions import Regions
from .segments import PARALLEL_WORK, TRANSPOSED, Segment
from .statements import CannotCompile
from .writing import Buffer, Function, element_dtype

LOOPS = frozenset(("if", "while", "scan"))
STEP = 16  # by how much a counter goes on at most
SHORT = 4  # nodes of a branch that is computed whether it is taken or not


def write_loop(
    node: Node, windows: Mapping[Value, Strided], known: Mapping[Value, Any], settings: Settings
) -> Segment:
    """A segment that computes an `if`, `while` or `scan`.

    Args:
        node: the loop.
        windows: where its operands lie.
        known: the operands that are known numbers.
        settings: what the user chose.

    Raises:
        CannotCompile: something in it is for Python to run.
    """
    rows = independent_rows(node)
    if rows is not None and settings.threads != 1 and rows.work >= PARALLEL_WORK:
        with suppress(CannotCompile):
            return _Loops(node, windows, known, settings, rows.count).write_all()
    return _Loops(node, windows, known, settings).write_all()


class _Loops(Regions):
    def write_all(self) -> Segment:
        node, segment = self.node, self.segment
        for value in (*node.inputs, *node.outputs):
            self.check_type(value, node)
        around = Graph(node.op.name, node.inputs, [node], node.outputs)
        wanted = {value: partial(_itself, value) for value in self.results if value.shape}
        self.frame = Frame(around, set(), wanted)
        for value in node.inputs:
            if value in self.known:
                self.numbers[value] = self.known[value]
            elif isinstance(value.type, ArrayType):
                self.arguments.add(self.windows[value].buffer)
                self.frame.add(value, self.windows[value].buffer)
        self.write_node(node)
        for value in node.outputs:
            if isinstance(value.type, ScalarType):
                segment.results.append(value)
            elif self.is_number(value):
                pointer = self.new_pointer(value)
                self.store(pointer, "0", self.read(value), array_type(value.type), node)
            elif self.windows[value].buffer is not value:
                self.copy_to(value, self.windows[value], node)
            else:
                self._pointer(value)
        self._assemble([self.read(value) for value in segment.results])
        return segment

    def _assemble(self, results: Sequence[str]) -> None:
        """The text of the function."""
        segment = self.segment
        if self.rows:
            self._share()
        arrays = [*segment.reads, *segment.writes]
        names = [f"a{number}" for number in range(len(arrays))]
        parameters = ["n"] * bool(segment.sizes) + ["t"] * segment.threads
        parameters += ["m"] * (segment.memory_bytes != 0)
        parameters += [f"c{number}" for number in range(len(segment.numbers))] + names
        head = [f"    {name} = {text}" for name, text in self.size_locals.items()]
        head += [f"    {self.pointers[v]} = data({a})" for v, a in zip(arrays, names, strict=True)]
        head += [*self.setup, *self.own_setup]
        lines = [*self.first_lines, *self.lines]
        written = [*head, *(f"    {text}" for text, _ in lines)]
        written.append(f"    return {', '.join(results)}".rstrip())
        segment.text = "\n".join([f"def segment({', '.join(parameters)}):", *written])
        segment.lines = [(n, node) for n, (_, node) in enumerate(lines, 2 + len(head)) if node]
        segment.pointers = {name: value for value, name in self.pointers.items()}
        segment.pointers |= {text: v for v, text in self.texts.items() if text.isidentifier()}
        large = any(dtype == "int64" for _, dtype in segment.numbers)
        segment.may_fail = large or may_end(segment.text)

    def _share(self) -> None:
        """Make a function of the loop, of which each thread runs some rows."""
        segment, node = self.segment, self.node
        written = _Shared(self)
        if may_end("\n".join(line for line, _ in written.lines)):
            raise CannotCompile(node, "it may end before all rows are done")
        segment.functions["turns"] = Function(written, dict(segment.functions))
        segment.shared, segment.threads = {"turns"}, True
        rest = [*written.sizes, *written.scalars.values()]
        arguments = ", ".join([*rest, *(name for name, _ in written.pointers.values())])
        rows = self._size(self.rows)
        self.own_setup, self.depth = [], 0
        self.lines = []
        self._line("if t > 1:", node)
        self._line(f"    shared_turns(t, {rows}, {arguments})", node)
        self._line("else:", node)
        self._line(f"    turns(0, {rows}, {arguments})", node)

    def write_node(self, node: Node) -> None:
        if node.op.name == "if":
            self._if(node)
        elif node.op.name == "while":
            self._while(node)
        elif node.op.name == "scan":
            self._scan(node)
        else:
            super().write_node(node)

    def open(self, text: str, node: Node) -> None:
        self._line(text, node)
        self.depth += 1

    # ---- branches

    def _choice(self, node: Node) -> bool:
        """A branch without a jump: both sides are computed, if they are short, and one is taken.

        LLVM does this itself where nothing ends the loop.
        """
        condition, *operands = node.inputs
        graphs: list[Graph] = [node.attrs["then"], node.attrs["otherwise"]]
        if not all(map(self.is_number, node.outputs)) or not all(map(_is_short, graphs)):
            return False
        text, start, outer = self.read(condition), len(self.lines), self.needed
        found: list[list[str]] = []
        for graph, needed in zip(graphs, (text, f"not {text}"), strict=True):
            self.needed = self.assign(f"{outer} and {needed}" if outer else needed, node)
            self.region(graph, set(), {}, dict(zip(graph.inputs, operands, strict=True)))
            found.append([self.read(value) for value in graph.outputs])
        self.needed = outer
        lines = [line for line, _ in self.lines[start:]]
        may_end = any("_ints_if(" in line for line in lines)
        if not may_end or not all(map(is_cheap, lines)):
            del self.lines[start:]
            return False
        for value, one, other in zip(node.outputs, *found, strict=True):
            self.texts[value] = self.assign(f"{one} if {text} else {other}", node)
        self._join_bounds(node)
        return True

    def _join_bounds(self, node: Node) -> None:
        """The bounds of the results of two branches."""
        graphs: list[Graph] = [node.attrs["then"], node.attrs["otherwise"]]
        for value, *found in zip(node.outputs, *(graph.outputs for graph in graphs), strict=True):
            if value.type is INT:
                self.bounds[value] = union(*map(self.bounds_of, found))

    def _if(self, node: Node) -> None:
        if self._choice(node):
            return
        outer = self.frame
        condition, *operands = node.inputs
        memories = [self.memory_of(self.windows[v]) for v in operands if not self.is_number(v)]
        free = {memory for memory in memories if outer.is_free(memory)}
        text = self.read(condition)
        targets: dict[int, Value] = {}

        def target(number: int) -> Value:
            """Memory for a result that a branch makes."""
            if number not in targets:
                targets[number] = outer.destination(node.outputs[number])
            return targets[number]

        names = [self.fresh() if self.is_number(v) else "" for v in node.outputs]
        branches: list[list[tuple[str, Node | None]]] = []
        graphs: list[Graph] = [node.attrs["then"], node.attrs["otherwise"]]
        lines = self.lines
        self.depth += 1
        for graph in graphs:
            self.lines = []
            wanted = {v: partial(target, n) for n, v in enumerate(graph.outputs) if not names[n]}
            self.region(graph, set(free), wanted, dict(zip(graph.inputs, operands, strict=True)))
            for name, value in zip(names, graph.outputs, strict=True):
                if name:
                    self._line(f"{name} = {self.read(value)}", node)
            branches.append(self.lines)
        for number, value in enumerate(node.outputs):
            if names[number]:
                self.texts[value] = names[number]
            else:
                found = [self.windows[graph.outputs[number]] for graph in graphs]
                self._join(value, found, branches, partial(target, number), node)
        self._join_bounds(node)
        self.depth -= 1
        self.lines = lines
        for head, branch in zip((f"if {text}:", "else:"), branches, strict=True):
            if branch or head != "else:":
                self._line(head, node)
                self.lines += branch or [("    " * (self.depth + 1) + "pass", None)]

    def _join(
        self,
        value: Value,
        found: Sequence[Strided],
        branches: Sequence[list[tuple[str, Node | None]]],
        target: Place,
        node: Node,
    ) -> None:
        """Where a result of two branches lies: where it does in both, or where both copy it to."""
        if _is_same(*found):
            self.define(value, found[0])
            return
        place = target()
        for window, branch in zip(found, branches, strict=True):
            if window.buffer is not place:
                self.lines = branch
                self.copy_to(place, window, node)
        self.define(value, _whole(place, value))

    # ---- loops

    def _while(self, node: Node) -> None:
        test: Graph = node.attrs["test"]
        body: Graph = node.attrs["body"]
        limit: int | None = node.attrs.get("limit")
        count = len(body.outputs)
        carried = [_Carried(self, node, number) for number in range(count)]
        turns = self.assign("0", node) if limit is not None else ""
        self.open("while True:" if limit is None else f"while {turns} < {limit}:", node)
        same = node.inputs[count:]
        self._enter(carried, test.inputs)
        self.region(test, set(), {}, dict(zip(test.inputs[count:], same, strict=True)))
        self._line(f"if not {self.read(test.outputs[0])}:", node)
        self._line("    break", node)
        self._enter(carried, body.inputs)
        self._turn(carried, body, dict(zip(body.inputs[count:], same, strict=True)), {})
        if turns:
            self._line(f"{turns} += 1", node)
        self._leave(carried, node)

    def _scan(self, node: Node) -> None:
        body: Graph = node.attrs["body"]
        count: int = node.attrs["carried"]
        scanned: int = node.attrs["scanned"]
        carried = [_Carried(self, node, number) for number in range(count)]
        stacks: dict[Value, Value] = {}  # what is stacked -> the memory of all of it
        for value in node.outputs[count:]:
            kind = array_type(value.type)
            place = self.frame.destination(value)
            stacks[value] = place
            self.define(value, Strided(place, kind.shape, c_strides(kind.shape), 0))
        length = self._size(node.attrs["length"])
        at = self.fresh()
        backwards = node.attrs.get("reverse", False)
        steps = f"{length} - 1, -1, -1" if backwards else length
        self.open(f"for {at} in range({steps}):", node)
        self._enter(carried, body.inputs)
        rows = zip(
            body.inputs[count : count + scanned],
            node.inputs[count : count + scanned],
            strict=True,
        )
        for inner, value in rows:
            self._row(inner, self.windows[value], at, node)
        wanted: dict[Value, Place] = {}
        targets: dict[Value, Strided] = {}
        for value, inner in zip(node.outputs[count:], body.outputs[count:], strict=True):
            if not self.is_number(inner):
                window = self._row_window(self.windows[value], at, node)
                targets[value] = window
                wanted.setdefault(inner, partial(_itself, window.buffer))
        names = dict(
            zip(body.inputs[count + scanned :], node.inputs[count + scanned :], strict=True)
        )
        turns, known = self.turns, node.attrs["length"]
        self.turns *= known if isinstance(known, int) else TRANSPOSED
        self._turn(carried, body, names, wanted, partial(self._stack, node, at, targets))
        self.turns = turns
        self._leave(carried, node)

    def _row_window(self, window: Strided, at: str, node: Node) -> Strided:
        """Where one element of an array along its first axis lies."""
        inside = Strided(window.buffer, window.shape[1:], window.strides[1:], window.offset)
        return self.further(inside, f"{self._size(window.strides[0])} * {at}", node)

    def _row(self, value: Value, window: Strided, at: str, node: Node) -> None:
        """What a turn sees of a scanned array."""
        inside = Strided(window.buffer, window.shape[1:], window.strides[1:], window.offset)
        self.show(value, inside, f"{self._size(window.strides[0])} * {at}", node)

    def _stack(self, node: Node, at: str, targets: Mapping[Value, Strided]) -> None:
        """Write what a turn returns to where it is stacked, if it was not made there."""
        body: Graph = node.attrs["body"]
        count: int = node.attrs["carried"]
        for value, inner in zip(node.outputs[count:], body.outputs[count:], strict=True):
            if self.is_number(inner):
                kind = ArrayType(array_type(value.type).dtype, ())
                pointer = self._pointer(self.windows[value].buffer)
                self.store(pointer, at, self.read(inner), kind, node)
            elif self.windows[inner].buffer is not targets[value].buffer:
                self.copy_to(targets[value].buffer, self.windows[inner], node)

    # ---- what loops carry

    def step(self, node: Node, number: int) -> int:
        """The small number that each turn adds to a carried int; 0: there is none.

        Who begins below 2⁶⁰ does not come beyond 2⁶¹ that way in a lifetime.
        """
        body: Graph = node.attrs["body"]
        value, result = body.inputs[number], body.outputs[number]
        numbers = {n.output: n.attrs["value"] for n in body.nodes if n.op.name == "const"}
        same = zip(body.inputs, node.inputs, strict=True)  # what no turn changes
        same = islice(same, carried_count(node) + scanned_count(node), None)
        numbers |= {inner: self.numbers[v] for inner, v in same if v in self.numbers}
        maker = next((node for node in body.nodes if result in node.outputs), None)
        if value.type is not INT or maker is None or maker.op.name not in ("add", "subtract"):
            return 0
        first, second = maker.inputs
        if maker.op.name == "add" and second is value:
            first, second = second, first
        step = numbers.get(second)
        if first is not value or type(step) is not int or abs(step) > STEP:
            return 0
        return step if maker.op.name == "add" else -step

    def _enter(self, carried: Sequence[_Carried], inputs: Sequence[Value]) -> None:
        """The inputs of a region are the carried values."""
        for state, value in zip(carried, inputs, strict=False):
            if state.name:
                self.bind(value, state.name)
                if state.bounds is not None:
                    self.bounds[value] = state.bounds
            else:
                self.windows[value] = _whole(state.now, value)

    def _turn(
        self,
        carried: Sequence[_Carried],
        body: Graph,
        names: Mapping[Value, Value],
        wanted: dict[Value, Place],
        stack: Callable[[], None] | None = None,
    ) -> None:
        """The lines of one turn, and those that pass its results on to the next."""
        owned = {state.now for state in carried if not state.name}
        for state, value in zip(carried, body.outputs, strict=False):
            if not state.name:
                wanted[value] = state.other
        self.region(body, owned, wanted, names)
        if stack is not None:
            stack()
        for state, value in zip(carried, body.outputs, strict=False):
            if not state.name:
                state.take(value)
        mutable = {state.name for state in carried}
        results = body.outputs[: len(carried)]
        following = [self.read(v) if self.is_number(v) else "" for v in results]
        for number, (state, text) in enumerate(zip(carried, following, strict=True)):
            if state.name and text in mutable and text != state.name:
                following[number] = self.assign(text, self.node)
        for state, text in zip(carried, following, strict=True):
            if state.name and text != state.name:
                self._line(f"{state.name} = {text}", self.node)
            elif state.alternates:
                a, b = self.pointers[state.now], self.pointers[state.other()]
                self._line(f"{a}, {b} = {b}, {a}", self.node)

    def _leave(self, carried: Sequence[_Carried], node: Node) -> None:
        """After the loop: its results."""
        if self.lines[-1][0].endswith(":"):
            self._line("pass", node)
        self.depth -= 1
        for state, value in reversed(list(zip(carried, node.outputs, strict=False))):
            if state.name:
                self.texts[value] = state.name
            else:
                state.leave(value)


def _is_short(graph: Graph) -> bool:
    """Whether a region has a few nodes only, which compute numbers."""
    nodes = [node for node in graph.nodes if node.op.name != "const"]
    return len(nodes) <= SHORT and all(node.op.kind == "elementwise" for node in nodes)


class _Shared:
    """The lines of a loop as a function of the rows that it goes over."""

    def __init__(self, loops: _Loops) -> None:
        segment = loops.segment
        own: list[tuple[str, Node | None]] = [(line, None) for line in loops.own_setup]
        self.lines = own + [(f"    {text}", node) for text, node in loops.lines]
        used = set(re.findall(r"\b[npc]\d+\b", "\n".join(line for line, _ in self.lines)))
        sizes = {text: size for size, text in loops.sizes.items()}
        self.sizes = {name: sizes[name] for name in loops.size_locals if name in used}
        self.scalars = {number: f"c{at}" for at, number in enumerate(segment.numbers)}
        self.pointers: dict[Buffer, tuple[str, str]] = {
            value: (name, element_dtype(array_type(value.type).dtype))
            for value, name in loops.given.items()
            if name in used
        }
        self.names = {v: text for v, text in loops.texts.items() if text.isidentifier()}


class _Carried:
    """A value that a loop carries from turn to turn.

    Attributes:
        name: the local of a number; "": it is an array.
        bounds: of an int to which each turn adds the same small number; None: it is none.
        first: the memory of the first turn's value; now: that which a turn reads, by a pointer of
        its own; is_wanted: whether the result is to lie in `first`.
        alternates: whether the turns make it in another memory.
    """

    def __init__(self, loops: _Loops, node: Node, number: int) -> None:
        self.loops = loops
        self.node = node
        self.name = ""
        self.alternates = False
        self.bounds: Interval | None = None
        value = node.inputs[number]
        if loops.is_number(value):
            text = loops.read(value)
            step = loops.step(node, number)
            low, high = loops.bounds_of(value)
            if step and not POSITION[0] <= low <= high <= POSITION[1]:
                text = f"within({text}, {POSITION[0]}, {POSITION[1]})"
                low, high = POSITION
            if step:
                self.bounds = (low, COUNTER[1]) if step > 0 else (COUNTER[0], high)
            self.name = loops.assign(text, node)
            return
        frame = loops.frame
        window = loops.windows[value]
        memory = loops.memory_of(window)
        sharing = sum(
            not loops.is_number(v) and loops.memory_of(loops.windows[v]) is memory
            for v in node.inputs
        )
        taken = loops.is_whole(window) and sharing == 1 and frame.is_free(memory)
        self.is_wanted = not taken and node.outputs[number] in frame.wanted
        if taken:
            self.first = memory
        else:
            self.first = frame.destination(node.outputs[number])
            loops.copy_to(self.first, window, node)
        kind = array_type(value.type)
        self.kind = kind
        self.now, self._other = Value(-1, kind), Value(-1, kind)
        self.frame = frame
        loops.pointers[self.now] = loops.assign(loops.address(self.first), node)
        self.line = len(loops.lines)  # where the other pointer will be set, if there is one
        loops.lines.append(("", None))

    def other(self) -> Value:
        """The memory for the next turn's value."""
        if not self.alternates:
            self.alternates = True
            self.loops.pointers[self._other] = self.loops.fresh()
        return self._other

    def take(self, value: Value) -> None:
        """A turn has ended: its result is to lie where the next one reads it."""
        window = self.loops.windows[value]
        if window.buffer is not self.now and window.buffer is not self._other:
            self.loops.copy_to(self.other(), window, self.node)

    def leave(self, value: Value) -> None:
        """The loop has ended: the result lies where it was wanted, or where it is."""
        loops, place = self.loops, self.first
        if self.alternates:
            memory = self.frame.new(self.kind)
            self.frame.claim(memory)
            name = loops.pointers[self._other]
            margin = "    " * loops.depth
            loops.lines[self.line] = (f"{margin}{name} = {loops.address(memory)}", self.node)
            if self.is_wanted:
                loops.copy_to(place, _whole(self.now, value), self.node)
            else:
                place = self.now
                self.frame.claim(self.first)
                self.frame.owned.add(place)
        else:
            del loops.lines[self.line]
        loops.define(value, _whole(place, value))


def _itself(value: Value) -> Value:
    return value


def _whole(memory: Value, value: Value) -> Strided:
    """The window that shows a value which lies in a memory from its start."""
    return Strided(memory, value.shape, c_strides(value.shape), 0)


def _is_same(a: Strided, b: Strided) -> bool:
    return a.buffer is b.buffer and a.strides == b.strides and a.offset == b.offset
