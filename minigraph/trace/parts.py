"""The parts of what a loop carries: how each enters a turn, and what is found at its end.

`leave` looks at what the body returns in a part's place.  Where that shows that the part is of
another sort than was thought, it returns the part to begin again with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minigraph.errors import LoopError, Place
from minigraph.ir import Branch, Static, Value, unflatten

from .arrays import TracedArray
from .joins import Kind, below, children, describe, hint_of, is_data, same
from .operands import operand
from .recording import Recording
from .undefined import Undefined


class Part:
    """Something that is the same at each turn.

    Attributes:
        name: what the user calls it.
        thing: what it is before the loop.
    """

    def __init__(self, recording: Recording, name: str, thing: Any) -> None:
        self.recording = recording
        self.name = name
        self.thing = thing

    def begin(self) -> None:
        """A turn is about to be recorded."""

    def enter(self) -> Any:
        """What the body is given."""
        return self.thing

    def leave(self, found: Any) -> Part:
        """What the body returned; returns the part to begin again with, if not itself.

        Raises:
            LoopError: it cannot be carried.
        """
        if not same(self.thing, found):
            raise self.changes(self.thing, found)
        return self

    def carried(self) -> Iterator[Carried]:
        """The arrays and numbers in it that change."""
        return iter(())

    def after(self, values: Iterator[Value]) -> Any:
        """What it is after the loop, given the results of those."""
        return self.thing

    def changes(self, before: Any, after: Any) -> LoopError:
        """The error about a part that is something else at the end of a turn."""
        what = [describe(self.recording, thing) for thing in (before, after)]
        return LoopError(
            f"{self.name} is {what[0]} at the beginning of a turn and {what[1]} at its end",
            sides=(
                ("before the loop", what[0], _made_at(self.recording, self.thing)),
                ("after a turn", what[1], _made_at(self.recording, after)),
            ),
            where=self.recording.here(),
            instead=self._remedy(after),
        )

    def _remedy(self, after: Any) -> str:
        if not is_data(after):
            return f"let {self.name} be an array or a number of one type, or mg.unroll(...)"
        kind = Kind.of(self.recording, after)
        if kind.scalar:
            return f"{self.name} = {kind}(...) before the loop"
        if kind.layout is None:
            return f"{self.name} = {kind.type}(...) before the loop"
        return f"begin with a {kind.type}, or write into a part of a larger array"


def _made_at(recording: Recording, thing: Any) -> Place | None:
    value = getattr(thing, "value_", None)
    node = recording.producer(value) if isinstance(value, Value) else None
    return node.loc if node is not None else None


class Carried(Part):
    """An array or a number that each turn may exchange.

    Attributes:
        kind: what it is; param: its value at the beginning of a turn; out: at the end.
        init: its value before the loop.
    """

    def __init__(
        self, recording: Recording, name: str, thing: Any, kind: Kind | None = None
    ) -> None:
        super().__init__(recording, name, thing)
        self.kind = kind or Kind.of(recording, thing)
        self.init = operand(recording, thing)
        self._given: list[Any] = []

    def begin(self) -> None:
        self.param = self.recording.ids.value(self.kind.type, hint_of(self.name) or None)
        self.out = self.param

    def enter(self) -> Any:
        made = self.kind.stand(self.recording, self.param)
        self._given = [made]
        return made

    def leave(self, found: Any) -> Part:
        recording = self.recording
        if not is_data(found):
            raise self.changes(self.thing, found)
        kind = Kind.of(recording, found)
        if not self.kind.fits(kind):
            raise self.changes(self.enter(), found)
        self.out = operand(recording, found)
        written = self.out is not self.param and found is self._given[0]
        if written and isinstance(self.thing, TracedArray) and not self.kind.scalar:
            return Held(recording, self.name, self.thing)
        both = self.kind.both(kind)
        if self.kind.c_order and not both.c_order:
            return Carried(recording, self.name, self.thing, both)
        return self

    @property
    def changing(self) -> bool:
        return self.out is not self.param

    def carried(self) -> Iterator[Carried]:
        yield self

    def after(self, values: Iterator[Value]) -> Any:
        if not self.changing:
            return self.thing
        return self.kind.stand(self.recording, next(values))


class Held(Part):
    """An array that stays the same object; only what it holds may change."""

    def leave(self, found: Any) -> Part:
        if found is self.thing:
            return self
        return Carried(self.recording, self.name, self.thing)


class Missing(Part):
    """A name that is not assigned before the loop."""

    def leave(self, found: Any) -> Part:
        raise NotImplementedError


class Group(Part):
    """A tuple, list, dict or dataclass whose parts are carried."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        thing: Any,
        kind: type,
        parts: Sequence[Part],
        keys: Sequence[Any],
    ) -> None:
        super().__init__(recording, name, thing)
        self.kind = kind
        self.parts = list(parts)
        self.keys = list(keys)

    def begin(self) -> None:
        for part in self.parts:
            part.begin()

    def enter(self) -> Any:
        return self._around([part.enter() for part in self.parts])

    def _around(self, things: Sequence[Any]) -> Any:
        return unflatten(
            Branch(self.kind, self.keys, [Static(thing, "") for thing in things]), iter(())
        )

    def leave(self, found: Any) -> Part:
        opened = children(found)
        if opened is None or opened[0] is not self.kind:
            raise self.changes(self.thing, found)
        if [key for key, _ in opened[1]] != self.keys:
            raise self.changes(self.thing, found)
        parts = [part.leave(child) for part, (_, child) in zip(self.parts, opened[1], strict=True)]
        if all(a is b for a, b in zip(parts, self.parts, strict=True)):
            return self
        return Group(self.recording, self.name, self.thing, self.kind, parts, self.keys)

    def carried(self) -> Iterator[Carried]:
        for part in self.parts:
            yield from part.carried()

    def after(self, values: Iterator[Value]) -> Any:
        things = [part.after(values) for part in self.parts]
        opened = children(self.thing)
        assert opened is not None
        if all(a is b for a, (_, b) in zip(things, opened[1], strict=True)):
            return self.thing
        return self._around(things)


def part_of(recording: Recording, name: str, thing: Any) -> Part:
    """The part for something that a loop begins with."""
    if is_data(thing):
        return Carried(recording, name, thing)
    if isinstance(thing, Undefined):
        return Missing(recording, name, thing)
    opened = children(thing)
    if opened is None:
        return Part(recording, name, thing)
    kind, pairs = opened
    parts = [part_of(recording, below(name, kind, key), child) for key, child in pairs]
    return Group(recording, name, thing, kind, parts, [key for key, _ in pairs])
