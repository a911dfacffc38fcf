"""Sections: parts of a recording that become regions of one node.

What is recorded while a section is open is taken out of the recording again when it closes, and
what was done to memory and to containers from before is undone; the node then does it for good.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from minigraph import ops
from minigraph.errors import UnsupportedError
from minigraph.ir import Graph, Node, Value, walk

from .holders import Holder, Key
from .recording import Recording, Storage
from .regions import free, region, take

DEEPEST = 80  # sections within sections; generated Python may be indented a hundred times


class Section:
    """What is recorded while it is open.

    Args:
        recording: the one that is running.
        holders: what the code in it may change in Python.
        tentative: it may be kept as it is.

    Attributes:
        start: where in the recording it begins.
        nodes: what was recorded, without constants (once it is closed).
        written: memory from before, and what it holds at the end.
        spoiled: memory from before of which is not known what it holds at the end.
        freed: nodes from before that a `backward` went through.
        changed: the holders that hold something else at the end, and all that they hold.
    """

    def __init__(
        self, recording: Recording, holders: Sequence[Holder] = (), *, tentative: bool = False
    ) -> None:
        self.recording = recording
        self.holders = holders
        self.tentative = tentative
        self.nodes: list[Node] = []
        self.written: dict[Storage, Value] = {}
        self.spoiled: list[Storage] = []
        self.freed: list[Node] = []
        self.changed: dict[Holder, dict[Key, Any]] = {}
        self.stands: dict[Storage, Storage] = {}  # memory that is given here -> what it is outside
        self._made: set[Value] = set()
        self._kept = False
        self._befores: dict[Storage, tuple[Value, tuple[Value, ...]]] = {}

    def __enter__(self) -> Section:
        recording = self.recording
        if len(recording.sections) >= DEEPEST:
            raise UnsupportedError(
                f"branches and loops that data decides are nested more than {DEEPEST} deep here; "
                "each `elif` and each early `return` begins a branch within the one before",
                where=recording.here(),
                instead="mg.switch, a table that is indexed, or a function for a part of it",
            )
        self._born = next(Storage.births)
        self._dirty = list(recording.dirty)
        if not self.tentative:
            if recording.mode is not None:
                recording.flush()
            self._dirty = list(recording.dirty)
            self._set_dirty([])
        self._before = dict(recording.before)
        self._freed = set(recording.freed)
        self._stored = dict(recording.stored)
        self._replaced = len(recording.replaced)
        self.start = len(recording.nodes)
        self._items = [(holder, holder.items()) for holder in self.holders]
        recording.sections.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        recording = self.recording
        recording.sections.pop()
        if self._kept:
            if recording.sections:
                for storage, before in self._befores.items():
                    recording.sections[-1].note(storage, before)
            return
        self.add(take(recording, self.start))
        for storage, (value, past) in self._befores.items():
            if self.is_outer(storage):
                if storage.value in recording.spoiled:
                    self.spoiled.append(storage)
                else:
                    self.written[storage] = storage.value
            storage.value, storage.past = value, past
            storage.version += 1
        self._set_dirty(self._dirty)
        self._inputs = [source for source in recording.before if source not in self._before]
        recording.before = self._before
        mine = set(self.nodes)
        self.freed = [n for n in recording.freed if n not in self._freed and n not in mine]
        recording.freed = self._freed
        recording.stored = self._stored
        del recording.replaced[self._replaced :]
        for holder, before in self._items:
            holder.hold(before)

    def is_final(self) -> bool:
        """It need not be recorded again, once inputs are kept as they were before it."""
        for source in self._inputs:
            self.recording.keep(source)
        return not self._inputs

    def look(self) -> list[Any]:
        """Note what has changed until now; returns what is held instead."""
        for holder, before in self._items:
            if holder.differs(before):
                self.changed[holder] = holder.items()
        return [thing for items in self.changed.values() for thing in items.values()]

    def _set_dirty(self, storages: Sequence[Storage]) -> None:
        for storage in self.recording.dirty:
            storage.dirty = False
        self.recording.dirty = list(storages)
        for storage in storages:
            storage.dirty = True

    def keep(self) -> None:
        """Let everything stay as it is recorded, as if there was no section."""
        assert self.tentative
        self._kept = True

    # ---- memory ------------------------------------------------------------------------------

    def is_outer(self, storage: Storage) -> bool:
        """The memory was there before the section was opened."""
        return storage.source is not None or storage.born < self._born

    def is_from_before(self, thing: Any) -> bool:
        """A list, a dict or an object that was there before, and is looked at."""
        inside = getattr(thing, "__dict__", thing)
        return any(holder.thing is thing or holder.thing is inside for holder in self.holders)

    def origins(self, storage: Storage) -> list[Storage]:
        """The memory from before that this may be."""
        found: list[Storage] = []
        for each in (storage, *storage.shared):
            if each in self.stands:
                found.append(self.stands[each])
            elif self.is_outer(each):
                found.append(each)
        return found

    def note(self, storage: Storage, before: tuple[Value, tuple[Value, ...]] | None = None) -> None:
        """A memory is about to be written, or was and held something else before."""
        self._befores.setdefault(storage, before or (storage.value, storage.past))

    def hold(self, storage: Storage, value: Value, *, pending: bool = False) -> None:
        """Let a memory hold another value while the section is open.

        Args:
            storage: the memory.
            value: what it holds.
            pending: if an argument, the caller has not seen that yet.
        """
        self.note(storage)
        storage.value = value
        storage.version += 1
        if pending and storage.source is not None and not storage.dirty:
            storage.dirty = True
            self.recording.dirty.append(storage)

    # ---- the region --------------------------------------------------------------------------

    def add(self, nodes: Sequence[Node]) -> None:
        """More nodes, at the end; what they compute is not seen outside."""
        self.nodes += nodes
        refuse = partial(_refuse, self.recording)
        for node in nodes:
            self._made.update(node.outputs)
            self.recording.hidden.update((value, partial(refuse, value)) for value in node.outputs)

    def made(self, value: Value) -> bool:
        """The value is computed here."""
        return value in self._made

    @property
    def has_effects(self) -> bool:
        """Something that it records does something to the world, or may raise."""
        inner = (other for node in self.nodes for _, body in node.regions for other in walk(body))
        return any(node.is_effect for node in (*self.nodes, *inner))

    def graph(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """The region."""
        return region(self.recording, name, inputs, self.nodes, outputs)

    def reads(self, outputs: Sequence[Value], bound: Collection[Value]) -> list[Value]:
        """What it takes from outside, besides `bound`."""
        return free(self.recording, self.nodes, outputs, bound)


def _refuse(recording: Recording, value: Value) -> None:
    node = recording.producer(value)
    at = f" (%{value.name}, {node.loc.file}:{node.loc.line})" if node and node.loc else ""
    raise UnsupportedError(
        f"a value that is computed inside of a recorded branch or loop is used outside of it{at}",
        where=recording.here(),
        instead="return it from the function of the branch or of the loop's body",
    )


def emit_node(
    recording: Recording,
    op: str,
    inputs: Sequence[Value],
    attrs: dict[str, Any],
    sections: Sequence[Section],
    names: Sequence[str],
) -> tuple[Value, ...]:
    """Record the node of which these sections are the regions."""
    if any(section.has_effects for section in sections):
        recording.flush()
    place = (recording.here(), tuple(names))
    values = recording.emit(ops.get(op), inputs, attrs, place=place)
    nodes = {node for section in sections for node in section.nodes}
    if not nodes <= recording.untaped:  # some of it was recorded for `backward`
        recording.untaped.discard(recording.nodes[-1])
    for section in sections:
        recording.freed.update(section.freed)
        for storage in section.spoiled:
            recording.spoil(storage, "in a branch or a loop")
    return values
