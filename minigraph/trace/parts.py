"""The parts of what a loop carries: how each enters a turn, and what is found at its end.

`leave` looks at what the body returns in a part's place.  Where that shows that the part is of
another sort than was thought, it returns the part to begin again with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from minigraph.errors import LoopError, Place, UnsupportedError
from minigraph.ir import Branch, Static, Value, unflatten

from .arrays import TracedArray
from .either import either
from .growing import INSTEAD
from .kinds import Kind, below, children, describe, hint_of, is_data, is_frozen, is_plain, same
from .operands import operand
from .recording import Recording, Storage
from .undefined import Undefined


class Part:
    """Something that is the same at each turn.

    Args:
        recording: the one that is running.
        name: what the user calls it.
        thing: what it is before the loop.
        certain: the loop has a turn.
    """

    def __init__(
        self, recording: Recording, name: str, thing: Any, *, certain: bool = False
    ) -> None:
        self.recording = recording
        self.name = name
        self.thing = thing
        self.certain = certain

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
        """The arrays and numbers in it that may change."""
        return iter(())

    def kept(self) -> Iterator[Kept]:
        """The containers in it that stay the same objects."""
        return iter(())

    def after(self, values: Iterator[Value]) -> Any:
        """What it is after the loop, given the results of those that do."""
        return self.thing

    def changes(self, before: Any, after: Any) -> LoopError:
        """The error about a part that is something else at the end of a turn."""
        what = [describe(self.recording, thing) for thing in (before, after)]
        return LoopError(
            f"{self.name} is {what[0]} at the beginning of a turn and {what[1]} at its end",
            sides=(
                ("before the loop", what[0], made_at(self.recording, self.thing)),
                ("after a turn", what[1], made_at(self.recording, after)),
            ),
            where=self.recording.here(),
            instead=self._remedy(after),
        )

    def _remedy(self, after: Any) -> str:
        if isinstance(after, list):
            return f"{self.name}.append(...); or {INSTEAD}"
        if not is_data(after):
            return f"let {self.name} be an array or a number of one type, or mg.unroll(...)"
        kind = Kind.of(self.recording, after)
        if kind.scalar or kind.layout is None:
            first = kind.number(self.thing) if is_plain(self.thing) else f"{kind}(...)"
            return f"{self.name} = {first} before the loop"
        return f"begin with a {kind.type}, or write into a part of a larger array"


def made_at(recording: Recording, thing: Any) -> Place | None:
    """Where a traced thing was computed, if that is known."""
    value = thing.value_ if isinstance(thing, TracedArray) else getattr(thing, "value_", None)
    node = recording.producer(value) if isinstance(value, Value) else None
    return node.loc if node is not None else None


class Carried(Part):
    """An array or a number that each turn may exchange.

    Attributes:
        kind: what it is.
        init: its value before the loop; param: at the beginning of a turn; out: at the end.
    """

    def __init__(
        self,
        recording: Recording,
        name: str,
        thing: Any,
        kind: Kind | None = None,
        *,
        certain: bool = False,
    ) -> None:
        super().__init__(recording, name, thing, certain=certain)
        self.kind = kind or Kind.of(recording, thing)

    def begin(self) -> None:
        self.init = self._first()
        self.param = self.recording.ids.value(self.kind.type, hint_of(self.name) or None)
        self.out = self.param
        self.origins: list[Storage] = []
        self._found: Any = None

    def _first(self) -> Value:
        return operand(self.recording, self.thing)

    def enter(self) -> Any:
        self._given = self.kind.stand(self.recording, self.param)
        if _has_memory(self.thing) and _has_memory(self._given):
            self.recording.sections[-1].stands[self._given.storage_] = self.thing.storage_
        return self._given

    def leave(self, found: Any) -> Part:
        recording = self.recording
        if not is_data(found):
            raise self.changes(self.thing, found)
        kind = Kind.of(recording, found)
        if not self.kind.fits(kind):
            raise self.changes(self._given, found)
        self._found = found
        self.out = operand(recording, found)
        if found is self._given and self.changing and isinstance(self.thing, TracedArray):
            return Kept(recording, self.name, self.thing, certain=self.certain)
        if _has_memory(found) and self.changing:
            self.origins = recording.sections[-1].origins(found.storage_)
            own = [self.thing.storage_] if _has_memory(self.thing) else []
            if self.is_written and not set(self.origins) <= set(own):
                raise LoopError(
                    f"a turn writes into {self.name}, which may be another array since the turn "
                    "before",
                    where=recording.here(),
                    instead=f"take a .copy() for {self.name}",
                )
        both = self.kind.both(kind)
        if self.kind.c_order and not both.c_order:
            return Carried(recording, self.name, self.thing, both, certain=self.certain)
        return self

    @property
    def changing(self) -> bool:
        return self.out is not self.param

    @property
    def is_written(self) -> bool:
        """The body writes into the array that it is given, and goes on with another."""
        given = self._given
        return isinstance(given, TracedArray) and bool(given.storage_.version)

    @property
    def found_memory(self) -> Storage | None:
        """The memory of the array that the body goes on with."""
        return self._found.storage_ if _has_memory(self._found) else None

    def carried(self) -> Iterator[Carried]:
        yield self

    def after(self, values: Iterator[Value]) -> Any:
        if not self.changing:
            return self.thing
        made = self.made = self.kind.stand(self.recording, next(values))
        if self.certain and is_plain(self._found):
            return self._found
        if _has_memory(made):
            for storage in self.origins if not self.is_written else ():
                self.recording.may_share(made.storage_, storage)
            if _has_memory(self.thing):
                self._part_with(made.storage_, self.thing.storage_)
        return made

    def _part_with(self, after: Storage, before: Storage) -> None:
        """The array before the loop is another one than that after it, if there is a turn."""
        if self.is_written:
            self.recording.spoil(before, "the first turn of a loop writes into it")
        elif not self.certain and before not in self.origins:
            self.recording.may_share(after, before)

    def check_memory(self, written: Collection[Storage]) -> None:
        """What a turn writes is not the memory of this, by another name.

        Raises:
            UnsupportedError: it may be.
        """
        if not self.changing or self.kind.layout is None or self.kind.scalar:
            return
        outside = [self.thing.storage_] if _has_memory(self.thing) else []
        if not {*outside, *self.origins}.isdisjoint(written):
            raise UnsupportedError(
                f"{self.name} may be an array that a turn of the loop writes into, and in other "
                "turns it is not",
                where=self.recording.here(),
                instead=f"take a .copy() for {self.name}",
            )


def _has_memory(thing: Any) -> bool:
    """It is an array that can be written."""
    return isinstance(thing, TracedArray) and not thing.scalar_


class Padded(Carried):
    """A name that is assigned in each turn, and not before the loop."""

    def _first(self) -> Value:
        return self.kind.zero(self.recording)

    def enter(self) -> Any:
        super().enter()
        return self._given if self.thing.guarded else self.thing


class Kept(Part):
    """A thing that stays the same object; only what it holds may change.

    Attributes:
        seen: what stands for it in a turn.
    """

    def begin(self) -> None:
        self.seen = self.thing

    def enter(self) -> Any:
        return self.seen

    def kept(self) -> Iterator[Kept]:
        yield self

    def leave(self, found: Any) -> Part:
        if found is self.seen:
            return self
        if isinstance(self.thing, TracedArray):
            raise self.changes(self.thing, found)
        opened, mine = children(found), children(self.thing)
        if opened is None or mine is None or opened[0] is not mine[0]:
            raise self.changes(self.thing, found)
        if [key for key, _ in opened[1]] != [key for key, _ in mine[1]]:
            raise self.changes(self.thing, found)
        return _group(self.recording, self.name, self.thing, self.certain)


class Missing(Part):
    """A name that is not assigned before the loop."""

    def leave(self, found: Any) -> Part:
        if isinstance(found, Undefined):
            return self
        if self.thing.guarded or self.certain:
            return _padded(self.recording, self.name, found, self.thing)
        place = made_at(self.recording, found)
        self._after = Undefined(
            self.name,
            (
                ("in the loop", f"{self.name} is assigned", place),
                ("without a turn", f"{self.name} is not", self.recording.here()),
            ),
        )
        return self

    def begin(self) -> None:
        self._after = self.thing

    def after(self, values: Iterator[Value]) -> Any:
        return self._after


class Assigned(Part):
    """A name that each turn assigns the same thing, and nothing does before the loop."""

    def __init__(self, recording: Recording, name: str, thing: Any, before: Undefined) -> None:
        super().__init__(recording, name, thing)
        self.before = before

    def enter(self) -> Any:
        return self.thing if self.before.guarded else self.before


class Group(Part):
    """A tuple, or another structure that each turn makes anew."""

    def __init__(
        self,
        recording: Recording,
        name: str,
        thing: Any,
        kind: type,
        parts: dict[Any, Part],
        *,
        certain: bool = False,
    ) -> None:
        super().__init__(recording, name, thing, certain=certain)
        self.kind = kind
        self.parts = parts

    def begin(self) -> None:
        for part in self.parts.values():
            part.begin()

    def enter(self) -> Any:
        self._given = [part.enter() for part in self.parts.values()]
        self._made = self._around(self._given)
        return self._made

    def _around(self, things: Sequence[Any]) -> Any:
        return unflatten(
            Branch(self.kind, list(self.parts), [Static(thing, "") for thing in things]), iter(())
        )

    def leave(self, found: Any) -> Part:
        opened = children(found)
        if opened is None or opened[0] is not self.kind:
            raise self.changes(self.thing, found)
        if [key for key, _ in opened[1]] != list(self.parts):
            raise self.changes(self.thing, found)
        self._outer = [found] if self.recording.sections[-1].is_from_before(found) else []
        given = children(self._made)
        if found is not self._made and given and _exchanged(given[1], self._given):
            raise LoopError(
                f"a turn writes into {self.name}, and goes on with another {self.kind.__name__}",
                where=self.recording.here(),
                instead="make a new one only, or write into the one only",
            )
        parts = {
            key: part.leave(child)
            for (key, part), (_, child) in zip(self.parts.items(), opened[1], strict=True)
        }
        if all(parts[key] is part for key, part in self.parts.items()):
            return self
        return Group(self.recording, self.name, self.thing, self.kind, parts, certain=self.certain)

    def carried(self) -> Iterator[Carried]:
        for part in self.parts.values():
            yield from part.carried()

    def kept(self) -> Iterator[Kept]:
        for part in self.parts.values():
            yield from part.kept()

    def after(self, values: Iterator[Value]) -> Any:
        things = [part.after(values) for part in self.parts.values()]
        opened = children(self.thing)
        if opened is not None and not _exchanged(opened[1], things):
            return self.thing
        made = self._around(things)
        if opened is not None and not is_frozen(made):
            either(self.recording, self.name, made, self.thing, *self._outer)
        return made


def _exchanged(pairs: Sequence[tuple[Any, Any]], things: Sequence[Any]) -> bool:
    """A structure holds other things than these."""
    if len(pairs) != len(things):
        return True
    return any(thing is not held for (_, held), thing in zip(pairs, things, strict=True))


def part_of(recording: Recording, name: str, thing: Any, *, certain: bool) -> Part:
    """The part for something that a loop begins with."""
    if is_data(thing):
        return Carried(recording, name, thing, certain=certain)
    if isinstance(thing, Undefined):
        return Missing(recording, name, thing, certain=certain)
    if children(thing) is None:
        return Part(recording, name, thing, certain=certain)
    if is_frozen(thing):
        return _group(recording, name, thing, certain)
    return Kept(recording, name, thing, certain=certain)


def _group(recording: Recording, name: str, thing: Any, certain: bool) -> Group:
    opened = children(thing)
    assert opened is not None
    kind, pairs = opened
    parts = {
        key: part_of(recording, below(name, kind, key), child, certain=certain)
        for key, child in pairs
    }
    return Group(recording, name, thing, kind, parts, certain=certain)


def _padded(recording: Recording, name: str, found: Any, before: Undefined) -> Part:
    """The part for what a turn assigns to a name that nothing is assigned to before."""
    if is_data(found):
        return Padded(recording, name, before, Kind.of(recording, found), certain=True)
    opened = children(found)
    if opened is None or recording.sections[-1].is_from_before(found):
        return Assigned(recording, name, found, before)
    kind, pairs = opened
    if not before.guarded:  # it is read after the loop only
        before = Undefined(name, before.sides, guarded=True)
    parts = {key: _padded(recording, below(name, kind, key), child, before) for key, child in pairs}
    return Group(recording, name, before, kind, parts, certain=True)
