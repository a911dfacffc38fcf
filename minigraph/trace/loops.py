"""Loops as nodes: the body is recorded once, with parameters in place of what changes.

What changes is found by recording: the body is recorded again, from the same state, until all that
it changes is carried and every carried part is at the end of a turn what it was at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import LoopError
from minigraph.ir import (
    BOOL,
    LEAF,
    ArrayType,
    Branch,
    ScalarType,
    Size,
    Static,
    Tree,
    Value,
    unflatten,
)

from .arrays import TracedArray
from .joins import Kind, children, is_data
from .leaves import standing_for
from .operands import cast, operand
from .parts import part_of
from .recording import Recording, Storage
from .scalars import TracedScalar
from .sections import Section, emit_node
from .views import Layout


def condition(recording: Recording, test: Any) -> bool | Value:
    """The truth of something: a bool if it is the same at each call, else a value.

    Raises:
        ValueError: an array of another size than one.
    """
    if not isinstance(test, TracedScalar | TracedArray):
        return bool(test)
    value = operand(recording, test)
    if recording.is_settled(value):
        return bool(recording.force(value, "a condition"))
    if isinstance(value.type, ArrayType) and value.type.size != 1:
        bool(test)  # raises as NumPy does
    if value.type is BOOL:
        return value
    if isinstance(value.type, ArrayType):
        if value.type.ndim:
            (value,) = recording.emit(ops.get("reshape"), (value,), {"shape": ()})
        assert isinstance(value.type, ArrayType)
        if value.type.dtype == bool:
            return value
    return recording.emit(ops.get("not_equal"), (value, recording.constant(0)), {})[0]


def negated(recording: Recording, test: bool | Value) -> bool | Value:
    """The opposite of a condition."""
    if isinstance(test, bool):
        return not test
    if isinstance(test.type, ArrayType):
        return recording.emit(ops.get("logical_not"), (test,), {})[0]
    return recording.emit(ops.get("bitwise_xor"), (test, recording.constant(True)), {})[0]


def both(recording: Recording, tests: Sequence[bool | Value]) -> bool | Value:
    """Whether all of these conditions hold."""
    values = [test for test in tests if not isinstance(test, bool)]
    if len(values) < len(tests) and not all(t for t in tests if isinstance(t, bool)):
        return False
    found = values[0] if values else True
    for value in values[1:]:
        (found,) = recording.emit(ops.get("bitwise_and"), (found, value), {})
    return found


class Loop:
    """A loop that is being recorded.

    Attributes:
        length: the number of turns, where it is known before the loop; else `test` tells.
        scanned: arrays of which each turn gets one element along the first axis.
    """

    def __init__(
        self,
        recording: Recording,
        body: Callable[..., tuple[tuple[Any, ...], Any]],
        state: Sequence[Any],
        names: Sequence[str] = (),
        *,
        test: Callable[..., Any] | None = None,
        limit: int | None = None,
        length: Size | None = None,
        scanned: Sequence[TracedArray] = (),
        reverse: bool = False,
    ) -> None:
        self.recording = recording
        self.body = body
        self.test = test
        self.limit = limit
        self.length = length
        self.scanned = list(scanned)
        self.reverse = reverse
        words = names if len(names) == len(state) else [f"state[{at}]" for at in range(len(state))]
        self.parts = [
            part_of(recording, name, thing) for name, thing in zip(words, state, strict=True)
        ]
        self.memory: dict[Storage, Value] = {}  # what is written in a turn -> its parameter

    def record(self) -> tuple[tuple[Any, ...], Any]:
        """Record the loop.

        Returns:
            The state after it, and the structure of what was stacked.
        """
        try:
            while not self._turn():
                pass
        except LoopError as error:
            error.loop = error.loop or self
            raise
        return self._node()

    # ---- one turn ----------------------------------------------------------------------------

    def _turn(self) -> bool:
        """Record a turn; whether all that it changes is carried."""
        recording = self.recording
        for part in self.parts:
            part.begin()
        self.memory = {
            storage: recording.ids.value(storage.value.type, storage.value.hint)
            for storage in self.memory
        }
        with Section(recording) as section:
            self._hold(section)
            rows, self.rows = self._elements()
            results, stacked = self.body(tuple(part.enter() for part in self.parts), rows)
            parts = [part.leave(found) for part, found in zip(self.parts, results, strict=True)]
            self.ys = Stacked(recording, stacked)
            self.contents = {storage: storage.value for storage in self.memory}
        self.section = section
        unchanged = all(a is b for a, b in zip(parts, self.parts, strict=True))
        found = section.written.keys() - self.memory.keys()
        self.parts = parts
        self.memory.update((storage, storage.value) for storage in found)
        return unchanged and not found

    def _hold(self, section: Section) -> None:
        for storage, param in self.memory.items():
            section.hold(storage, param, pending=True)

    def _elements(self) -> tuple[list[Any], list[Value]]:
        things: list[Any] = []
        values: list[Value] = []
        for array in self.scanned:
            kind = ArrayType(array.type_.dtype, array.type_.shape[1:])
            value = self.recording.ids.value(kind, None)
            layout = Layout(kind.shape, array.layout_.c_order, array.layout_.depends)
            things.append(Kind(kind, not kind.shape, layout).stand(self.recording, value))
            values.append(value)
        return things, values

    def _test(self) -> tuple[Section, Value]:
        """Record the test, of the same parameters."""
        recording = self.recording
        assert self.test is not None
        with Section(recording) as section:
            self._hold(section)
            found = self.test(*(part.enter() for part in self.parts))
            found = found if isinstance(found, Value) else condition(recording, found)
            value = recording.constant(found) if isinstance(found, bool) else found
        return section, value

    # ---- the node ----------------------------------------------------------------------------

    def _node(self) -> tuple[tuple[Any, ...], Any]:
        recording = self.recording
        carried = [part for whole in self.parts for part in whole.carried()]
        changing = [part for part in carried if part.changing]
        params = [*(part.param for part in changing), *self.memory.values()]
        inits = [*(part.init for part in changing), *(s.value for s in self.memory)]
        outputs = [*(part.out for part in changing), *self.contents.values()]
        sections, attrs = [self.section], {}
        results = [*outputs, *self.ys.values]
        bound = [*params, *self.rows]
        reads = self.section.reads(results, bound)
        if self.test is not None:
            section, value = self._test()
            sections.append(section)
            reads += [v for v in section.reads([value], bound) if v not in reads]
            attrs["test"] = section.graph("test", [*bound, *reads], [value])
        attrs["body"] = self.section.graph("body", [*bound, *reads], results)
        if self.test is None:
            attrs |= {"carried": len(params), "scanned": len(self.rows), "length": self.length}
            attrs |= {"reverse": True} if self.reverse else {}
        elif self.limit is not None:
            attrs["limit"] = self.limit
        outer = {part.param: part.init for part in carried if not part.changing}
        operands = [
            *inits,
            *(array.value_ for array in self.scanned),
            *(outer.get(value, value) for value in reads),
        ]
        names = [part.param.hint or "" for part in changing]
        op = "scan" if self.test is None else "while"
        values: Sequence[Value] = ()
        if results or any(section.has_effects for section in sections):
            values = emit_node(recording, op, operands, attrs, sections, names)
        made = iter(values)
        after = tuple(part.after(made) for part in self.parts)
        for storage in self.memory:
            recording.write(storage, next(made))
        return after, self.ys.after(made)


class Stacked:
    """The structure of what each turn of a scan gives."""

    def __init__(self, recording: Recording, structure: Any) -> None:
        self.recording = recording
        self.values: list[Value] = []
        self.tree = self._open(structure)

    def _open(self, thing: Any) -> Tree:
        if is_data(thing):
            value = operand(self.recording, thing)
            if isinstance(value.type, ScalarType):
                value = cast(self.recording, value, np.dtype(value.type.python))
            self.values.append(value)
            return LEAF
        opened = children(thing)
        if opened is None:
            return Static(thing, "")
        kind, pairs = opened
        return Branch(kind, [key for key, _ in pairs], [self._open(part) for _, part in pairs])

    def after(self, values: Iterator[Value]) -> Any:
        """The structure around the stacked arrays."""
        return unflatten(self.tree, (standing_for(self.recording, value) for value in values))
