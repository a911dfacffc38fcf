"""Loops as nodes: the body is recorded once, with parameters in place of what changes.

What changes is found by recording: the body is recorded again, from the same state, until all that
it changes is carried and every carried part is at the end of a turn what it was at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import LoopError, MinigraphError, ShapeError, freed
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
from .exceptions import attempt
from .growing import INSTEAD, MOST, Column, Growth
from .holders import EMPTY, Holder, Key, reachable
from .kinds import Kind, children, is_data
from .leaves import standing_for
from .operands import cast, operand
from .parts import Carried, Part, part_of
from .recording import Recording, Storage, here
from .scalars import TracedScalar
from .sections import Section, emit_node
from .undefined import NEVER, Undefined
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


def truth(recording: Recording | None, test: Any) -> bool | Value:
    """The truth of a test that is given to a branch or a loop, in a trace or outside.

    Raises:
        ShapeError: it is an array of another size than one.
    """
    try:
        return bool(test) if recording is None else condition(recording, test)
    except ValueError as error:
        shape = getattr(test, "shape", ())
        if not shape or isinstance(error, MinigraphError):
            raise
        raise ShapeError(
            f"the truth value of a test of shape {shape} is ambiguous",
            where=here(),
            instead="test.all() or test.any(); np.where(test, a, b) chooses element by element",
        ) from error


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
    if not values:
        return True
    found = values[0]
    for value in values[1:]:
        (found,) = recording.emit(ops.get("bitwise_and"), (found, value), {})
    return found


def _asked(recording: Recording, found: Any) -> Value:
    """What a test returns, which may be a condition already, as a value."""
    holds = found if isinstance(found, Value) else truth(recording, found)
    return recording.constant(holds) if isinstance(holds, bool) else holds


class Loop:
    """A loop that is being recorded.

    Args:
        recording: the one that is running.
        body: takes the state's parts and the elements of the scanned arrays; returns the next
            parts, and what is stacked.
        state: the parts before the loop.
        names: what they are called.
        roots: what the body and the test may change, each with the user's name for it.
        test: takes the parts, returns a condition; else `length` tells the number of turns.
        certain: there is a turn.
        limit: the most turns.
        length: the number of turns.
        scanned: arrays of which each turn gets one element along the first axis.
        reverse: the last element first.
    """

    def __init__(
        self,
        recording: Recording,
        body: Callable[..., tuple[Sequence[Any], Any]],
        state: Sequence[Any],
        names: Sequence[str] = (),
        *,
        roots: Sequence[tuple[str, Any]] = (),
        test: Callable[..., Any] | None = None,
        certain: bool = False,
        limit: int | None = None,
        length: Size | None = None,
        scanned: Sequence[TracedArray] = (),
        reverse: bool = False,
    ) -> None:
        self.recording = recording
        self.body = body
        self.state = tuple(state)
        self.names = names if len(names) == len(state) else named(state)
        self.roots = roots
        self.test = test
        self.certain = certain
        self.limit = limit
        self.length = length
        self.arrays = scanned
        self.reverse = reverse
        pairs = list(zip(self.names, state, strict=True))
        self.holders = reachable(recording, [*roots, *pairs])
        self.parts: list[Part] = [
            part_of(recording, name, thing, certain=certain) for name, thing in pairs
        ]
        self.places: dict[tuple[Holder, Key], Part] = {}  # what is exchanged in containers
        self.memory: dict[Storage, Value] = {}  # what is written in a turn -> its parameter
        self.growths: dict[int, Growth] = {}  # by the identity of the list
        self.tested: Section | None = None
        self.place: Carried | None = None  # of the elements, where arrays are not scanned

    def record(self) -> tuple[tuple[Any, ...], Any]:
        """Record the loop.

        Returns:
            The state after it, and the structure of what was stacked.

        Raises:
            LoopError: a part changes its type from one turn to the next.
        """
        while not self._turn():
            pass
        if self.test is not None and not self._record_test():
            return self._rotated()
        return self._node()

    def _wholes(self) -> list[Part]:
        """All that is carried besides memory."""
        last = [self.place] if self.place is not None else []
        return [*self.parts, *self.places.values(), *last]

    # ---- one turn ----------------------------------------------------------------------------

    def _turn(self) -> bool:
        """Record a turn; whether all that it changes is carried."""
        recording = self.recording
        for part in self._wholes():
            part.begin()
        self.memory = {
            storage: recording.ids.value(storage.value.type, storage.value.hint)
            for storage in self.memory
        }
        for growth in self.growths.values():
            growth.begin()
        for part in self._wholes():
            for kept in part.kept():
                kept.seen = self._seen(kept.thing)
        growths = len(self.growths)
        with Section(recording, self.holders) as section:
            self._enter(section)
            rows = self._elements()
            given = tuple(part.enter() for part in self.parts)
            found = attempt(recording, self.body, given, rows)
            parts, places = self.parts, self.places
            results, stacked = (None, None) if found is NEVER else found
            if results is not None:
                pairs = zip(self.parts, results, strict=True)
                parts = [part.leave(result) for part, result in pairs]
                places = self._leave()
                if self.place is not None:
                    self.place.leave(self.place.enter() + (-1 if self.reverse else 1))
                outside = {id(holder.thing) for holder in self.holders}
                for growth in list(self.growths.values())[:growths]:
                    growth.leave(outside)
            self.ys = Stacked(recording, stacked)
            self.contents = [
                param if results is None else storage.value
                for storage, param in self.memory.items()
            ]
        self.section = section
        for node in section.freed:  # the second turn would go through it again
            raise freed(node.loc)
        new = [] if results is None else [s for s in section.written if s not in self.memory]
        done = section.is_final() and not new and growths == len(self.growths)
        done = done and _unchanged(parts, self.parts)
        done = done and _unchanged(list(places.values()), list(self.places.values()))
        self.parts, self.places = parts, places
        self.memory.update((storage, storage.value) for storage in new)
        return self._check_elements(rows) and done

    def _enter(self, section: Section) -> None:
        """Let memory and containers hold what they hold at the beginning of a turn."""
        for storage, param in self.memory.items():
            section.hold(storage, param, pending=True)
        self._held = {}
        for holder in self.holders:
            before = holder.items()
            items = {key: self._seen(thing) for key, thing in before.items()}
            mine = {key: self.places[holder, key] for key in items if (holder, key) in self.places}
            items |= {key: part.enter() for key, part in mine.items()}
            if not _is_held(items, before):
                holder.hold(items)
            self._held[holder] = items

    def _seen(self, thing: Any) -> Any:
        """What a turn sees of a thing: of a list that grows, one that may not be read."""
        growth = self.growths.get(id(thing))
        return thing if growth is None else growth.stand

    def _leave(self) -> dict[tuple[Holder, Key], Part]:
        """What is found in containers at the end of a turn, as parts to go on with."""
        recording, places = self.recording, dict(self.places)
        for holder, before in self._held.items():
            now = holder.items()
            if list(now) != list(before):
                self._grow(holder, before, now)
                continue
            for key, thing in now.items():
                if (holder, key) in places:
                    places[holder, key] = places[holder, key].leave(thing)
                elif thing is not before[key]:
                    word, old = holder.word(key), before[key]
                    old = Undefined(word) if old is EMPTY else old
                    places[holder, key] = part_of(recording, word, old, certain=self.certain)
        return places

    def _grow(self, holder: Holder, before: dict[Key, Any], now: dict[Key, Any]) -> None:
        """A container has not the length that it had at the beginning of the turn.

        Raises:
            LoopError: it is no list that can grow in this loop.
        """
        things, length = holder.thing, self.length
        grows = type(things) is list and len(now) > len(before) and id(things) not in self.growths
        if not grows or not isinstance(length, int) or self.reverse:
            raise self._resized(holder, before, now)
        if (len(now) - len(before)) * length > MOST or any(
            thing is not now[key] for key, thing in before.items()
        ):
            raise self._resized(holder, before, now)
        self.growths[id(things)] = Growth(self.recording, holder.name, things)

    def _elements(self) -> list[Any]:
        """The elements of the scanned arrays that a turn is given."""
        self.rows: list[Value] = []
        if self.place is not None:
            return [array.element_(self.place.enter()) for array in self.arrays]
        things: list[Any] = []
        for array in self.arrays:
            kind = ArrayType(array.type_.dtype, array.type_.shape[1:])
            value = self.recording.ids.value(kind, None)
            layout = Layout(kind.shape, array.layout_.c_order, array.layout_.depends)
            made = Kind(kind, not kind.shape, layout).stand(self.recording, value)
            self.recording.sections[-1].stands[made.storage_] = array.storage_
            things.append(made)
            self.rows.append(value)
        return things

    def _check_elements(self, elements: Sequence[Any]) -> bool:
        """Whether elements may be taken out of arrays before the loop: no turn writes into those.

        Otherwise the next try has views of the arrays, by a number that is carried.
        """
        if self.place is not None or not self.arrays:
            return True
        written = any(element.storage_.version for element in elements)
        if not written and all(array.storage_ not in self.memory for array in self.arrays):
            return True
        first = self.arrays[0].shape[0] - 1 if self.reverse else 0
        self.place = Carried(self.recording, "place", first, certain=self.certain)
        return False

    def _record_test(self) -> bool:
        """Record the test, of the same parameters; whether it changes nothing."""
        recording = self.recording
        assert self.test is not None
        with Section(recording, self.holders) as section:
            self._enter(section)
            found = self.test(*(part.enter() for part in self.parts))
            self.holds = _asked(recording, found)
            same = all(_is_held(holder.items(), before) for holder, before in self._held.items())
        self.tested = section
        if not section.is_final():
            return self._record_test()
        return same and all(
            value is self.memory.get(storage) for storage, value in section.written.items()
        )

    def _rotated(self) -> tuple[tuple[Any, ...], Any]:
        """The same loop with a test that changes nothing: it is asked at the end of each turn."""
        recording, test, body = self.recording, self.test, self.body
        assert test is not None

        def ask(parts: Sequence[Any]) -> Any:
            return standing_for(recording, _asked(recording, test(*parts)))

        def turn(parts: Sequence[Any], rows: Sequence[Any]) -> tuple[Sequence[Any], Any]:
            results, stacked = body(parts[1:], rows)
            return (ask(results), *results), stacked

        loop = Loop(
            recording,
            turn,
            (ask(self.state), *self.state),
            ("the test", *self.names),
            roots=self.roots,
            test=lambda holds, *_: holds,
            certain=self.certain,
            limit=self.limit,
        )
        parts, stacked = loop.record()
        return parts[1:], stacked

    # ---- the node ----------------------------------------------------------------------------

    def _node(self) -> tuple[tuple[Any, ...], Any]:
        recording = self.recording
        carried = [part for whole in self._wholes() for part in whole.carried()]
        columns = [c for growth in self.growths.values() for c in growth.columns]
        rewritten = [part.found_memory for part in carried if part.is_written]
        for each in (*carried, *columns):
            each.check_memory(self.memory)
        for column in columns:
            column.check_memory([memory for memory in rewritten if memory is not None])
        changing = [part for part in carried if part.changing]
        params = [*(part.param for part in changing), *self.memory.values()]
        inits = [*(part.init for part in changing), *(s.value for s in self.memory)]
        results = [*(part.out for part in changing), *self.contents, *self.ys.values]
        results += [column.value for column in columns]
        sections = [self.section, self.tested] if self.tested is not None else [self.section]
        bound = [*params, *self.rows]
        asked = [self.holds] if self.tested is not None else []
        reads = self.section.reads(results, bound)
        if self.tested is not None:
            reads = list(dict.fromkeys([*reads, *self.tested.reads(asked, bound)]))
        inputs = [*bound, *reads]
        attrs: dict[str, Any] = {}
        if self.tested is not None:
            attrs["test"] = self.tested.graph("test", inputs, asked)
            attrs |= {} if self.limit is None else {"limit": self.limit}
        else:
            attrs |= {"carried": len(params), "scanned": len(self.rows), "length": self.length}
            attrs |= {"reverse": True} if self.reverse else {}
        attrs["body"] = self.section.graph("body", inputs, results)
        same = {part.param: part.init for part in carried if not part.changing}
        operands = [
            *inits,
            *(array.value_ for array in self.arrays if self.place is None),
            *(same.get(value, value) for value in reads),
        ]
        op = "scan" if self.tested is None else "while"
        values: Sequence[Value] = ()
        if results or any(section.has_effects for section in sections):
            hints = [part.param.hint or "" for part in changing]
            values = emit_node(recording, op, operands, attrs, sections, hints)
        made = iter(values)
        after = tuple(part.after(made) for part in self.parts)
        self._exchange(made)
        if self.place is not None:
            self.place.after(made)
        for storage in self.memory:
            recording.write(storage, next(made))
        ys = self.ys.after(made)
        self._extend(made, carried, columns)
        return after, ys

    def _extend(
        self, values: Iterator[Value], carried: Sequence[Carried], columns: Sequence[Column]
    ) -> None:
        """Let lists that grow hold what they hold after the loop."""
        for growth in self.growths.values():
            assert isinstance(self.length, int)
            growth.after(values, self.length)
        memories = [(column.storages, column.memory) for column in columns]
        made = [
            ([part.found_memory], part.made.storage_)
            for part in carried
            if part.found_memory is not None and part.changing
        ]
        for at, (storages, memory) in enumerate(memories):
            for others, other in (*memories[at + 1 :], *made):
                if not set(storages).isdisjoint(others):
                    self.recording.may_share(memory, other)

    def _exchange(self, values: Iterator[Value]) -> None:
        """Let containers hold what they hold after the loop."""
        after = {place: part.after(values) for place, part in self.places.items()}
        for holder in dict.fromkeys(holder for holder, _ in after):
            items = holder.items()
            holder.hold({key: after.get((holder, key), items[key]) for key in items})

    def _resized(self, holder: Holder, before: dict[Key, Any], after: dict[Key, Any]) -> LoopError:
        return LoopError(
            f"{holder.name} is a {holder.describe(before)} at the beginning of a turn and a "
            f"{holder.describe(after)} at its end",
            where=self.recording.here(),
            instead=INSTEAD,
        )


def named(things: Sequence[Any]) -> list[str]:
    """Names for the parts of a state that has none."""
    return ["the state"] if len(things) == 1 else [f"state[{at}]" for at in range(len(things))]


def _is_held(now: dict[Key, Any], before: dict[Key, Any]) -> bool:
    return list(now) == list(before) and all(now[key] is before[key] for key in now)


def _unchanged(now: Sequence[Part], before: Sequence[Part]) -> bool:
    return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))


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
