"""Where two branches meet: what they return, write and exchange becomes one.

Structures are joined part by part.  A leaf is an array or a number, and of one kind on both sides;
everything else must be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph.errors import JoinError
from minigraph.ir import BOOL, LEAF, ArrayType, Branch, ScalarType, Static, Tree, Value, unflatten

from .arrays import TracedArray
from .either import either
from .exceptions import Unreachable, attempt
from .growing import INSTEAD
from .holders import EMPTY, Holder
from .kinds import (
    Kind,
    below,
    children,
    describe,
    hint_of,
    is_data,
    is_frozen,
    is_plain,
    place_of,
    same,
)
from .operands import operand
from .recording import Recording, Storage
from .scalars import TracedScalar
from .sections import Section, emit_node
from .undefined import NEVER, Undefined

UNNAMED = "what the branches return"


class Side:
    """One of two branches.

    Attributes:
        word: "then" or "otherwise"; function: what it runs.
        section: what it recorded; result: what it returned.
    """

    def __init__(
        self,
        recording: Recording,
        word: str,
        function: Callable[..., Any],
        operands: Sequence[Any],
        holders: Sequence[Holder],
    ) -> None:
        self.recording = recording
        self.word = word
        self.function = function
        self.operands = operands
        self.holders = holders
        while not self._run():
            pass

    def _run(self) -> bool:
        """Record the branch; whether that is final."""
        self._values: dict[int, tuple[Any, Value]] = {}  # of things, as they were at the end
        self._opened: dict[int, tuple[Any, Any]] = {}  # structures, likewise
        with Section(self.recording, self.holders) as section:
            self.result = attempt(self.recording, self.function, *self.operands)
            self._read(self.result)
            for thing in section.look():
                self._read(thing)
        self.section = section
        return section.is_final()

    @property
    def returns(self) -> bool:
        """It does not end in an exception."""
        return self.result is not NEVER

    def _read(self, thing: Any) -> None:
        """Note the values of a structure."""
        pending = [thing]
        while pending:
            part = pending.pop()
            if is_data(part):
                self._values[id(part)] = (part, operand(self.recording, part))
            else:
                opened = children(part)
                self._opened[id(part)] = (part, opened)
                pending += [child for _, child in opened[1]] if opened else ()

    def children(self, thing: Any) -> tuple[type, list[tuple[Any, Any]]] | None:
        """What a structure held at the end of the branch; None: it is not opened."""
        return self._opened[id(thing)][1] if id(thing) in self._opened else children(thing)

    def is_from_before(self, thing: Any) -> bool:
        """A container, an array or a number that the branch did not make."""
        if isinstance(thing, TracedScalar):
            return not self.section.made(thing.value_)
        if isinstance(thing, TracedArray):
            return self.section.is_outer(thing.storage_) and not any(
                self.section.made(value) for step in thing.path_ for value in step.operands
            )
        return self.section.is_from_before(thing)

    def value(self, thing: Any) -> Value:
        """The value that a thing had at the end of the branch."""
        if id(thing) not in self._values:
            with Section(self.recording) as section:
                for storage, value in self.section.written.items():
                    section.hold(storage, value)
                self._read(thing)
            self.section.add(section.nodes)
        return self._values[id(thing)][1]

    def padding(self, kind: Kind) -> Value:
        """Some value of this kind, made in this branch."""
        with Section(self.recording) as section:
            value = kind.zero(self.recording)
        self.section.add(section.nodes)
        return value

    def held(self, holder: Holder) -> dict[Any, Any]:
        """What a holder holds at the end of the branch."""
        changed = self.section.changed
        return changed[holder] if holder in changed else holder.items()


class Join:
    """Two branches as one node."""

    def __init__(self, recording: Recording, then: Side, otherwise: Side) -> None:
        self.recording = recording
        self.sides = (then, otherwise)
        self._outputs: list[tuple[Value, Value]] = []
        self._kinds: list[Kind] = []
        self._hints: list[str] = []
        self._shared: list[list[Storage]] = []  # memory from before that each may be

    def record(self, test: Value, names: Sequence[str]) -> Any:
        """Record the node.

        Args:
            test: which branch runs.
            names: what the results are called.

        Returns:
            What both branches return, as one structure.

        Raises:
            JoinError: they return, or leave behind, things of different kinds.
        """
        sections = [side.section for side in self.sides]
        tree = self._results(self.sides[0].result, self.sides[1].result, names)
        held = self._holders()
        memory = list(dict.fromkeys([*sections[0].written, *sections[1].written]))
        outputs = [
            [pair[at] for pair in self._outputs]
            + [section.written.get(storage, storage.value) for storage in memory]
            for at, section in enumerate(sections)
        ]
        reads = [section.reads(out, ()) for section, out in zip(sections, outputs, strict=True)]
        free = list(dict.fromkeys([*reads[0], *reads[1]]))
        attrs = {
            side.word: side.section.graph(side.word, free, out)
            for side, out in zip(self.sides, outputs, strict=True)
        }
        values: Sequence[Value] = ()
        if outputs[0] or any(section.has_effects for section in sections):
            inputs = [test, *free]
            values = emit_node(self.recording, "if", inputs, attrs, sections, self._hints)
        made = iter(
            [self._result(*each) for each in zip(self._kinds, self._shared, values, strict=False)]
        )
        for storage, value in zip(memory, values[len(self._kinds) :], strict=True):
            self.recording.write(storage, value)
        found = unflatten(tree, made)
        for holder, trees in held.items():
            holder.hold({key: unflatten(part, made) for key, part in trees.items()})
        results = (self.sides[0].result, self.sides[1].result)
        self._note(found, *results, names[0] if names else UNNAMED)
        if not any(side.returns for side in self.sides):
            raise Unreachable
        return found

    def _result(self, kind: Kind, shared: Sequence[Storage], value: Value) -> Any:
        made = kind.stand(self.recording, value)
        for storage in shared:
            self.recording.may_share(made.storage_, storage)
        return made

    def _results(self, a: Any, b: Any, names: Sequence[str]) -> Tree:
        if len(names) == 1:
            return self._join(a, b, names[0])
        if len(names) > 1:
            parts = [self._join(_part(a, at), _part(b, at), name) for at, name in enumerate(names)]
            return Branch(tuple, range(len(names)), parts)
        return self._join(a, b, UNNAMED)

    def _note(self, found: Any, a: Any, b: Any, name: str) -> None:
        """A container that may be one from before must not be changed any more."""
        then, otherwise = self.sides
        pending = [(found, a, b)]
        while pending:
            made, one, other = pending.pop()
            opened = [children(made), then.children(one), otherwise.children(other)]
            if made is one or made is other or None in opened:
                continue
            before = [one] if then.is_from_before(one) else []
            before += [other] if otherwise.is_from_before(other) else []
            if before and not is_frozen(made):
                either(self.recording, name, made, *before)
            things = ([child for _, child in each[1]] for each in opened if each is not None)
            pending += zip(*things, strict=True)

    def _holders(self) -> dict[Holder, dict[Any, Tree]]:
        """The holders that a branch changes, each with what it holds afterwards."""
        found: dict[Holder, dict[Any, Tree]] = {}
        returning = [side for side in self.sides if side.returns]
        changed = (holder for side in returning for holder in side.section.changed)
        for holder in dict.fromkeys(changed):
            items = [side.held(holder) for side in returning]
            if list(items[0]) != list(items[-1]):
                raise self._resized(holder, *items)
            found[holder] = {}
            for key in items[0]:
                word = holder.word(key)
                first, second = (self._held(side, holder, key, word) for side in self.sides)
                found[holder][key] = self._join(first, second, word)
        return found

    def _held(self, side: Side, holder: Holder, key: Any, word: str) -> Any:
        if not side.returns:
            return NEVER
        thing = side.held(holder)[key]
        return Undefined(word) if thing is EMPTY else thing

    # ---- parts of structures -----------------------------------------------------------------

    def _join(self, a: Any, b: Any, name: str) -> Tree:
        """The structure of what is `a` after the first branch and `b` after the second."""
        if self._stays(a, b):
            return Static(a, "")
        if _lacks(a) or _lacks(b):
            here = 1 if _lacks(a) else 0
            return self._one_side(here, (a, b)[here], (a, b)[1 - here], name)
        if is_data(a) and is_data(b):
            kinds = Kind.of(self.recording, a), Kind.of(self.recording, b)
            if not kinds[0].fits(kinds[1]):
                raise self._error(a, b, name)
            pair = self.sides[0].value(a), self.sides[1].value(b)
            tree = self._output(pair, kinds[0].both(kinds[1]), name)
            self._shared[-1] = [
                thing.storage_
                for side, thing in zip(self.sides, (a, b), strict=True)
                if isinstance(thing, TracedArray) and not thing.scalar_
                if side.section.is_outer(thing.storage_)
            ]
            return tree
        one, other = self.sides[0].children(a), self.sides[1].children(b)
        if one is None or other is None or one[0] is not other[0]:
            raise self._error(a, b, name)
        keys = [key for key, _ in one[1]]
        if keys != [key for key, _ in other[1]]:
            raise self._error(a, b, name)
        parts = [
            self._join(x, y, below(name, one[0], key))
            for (key, x), (_, y) in zip(one[1], other[1], strict=True)
        ]
        return Branch(one[0], keys, parts)

    def _stays(self, a: Any, b: Any) -> bool:
        """Both are one thing from before, or equal plain values."""
        return same(a, b) and not (
            isinstance(a, TracedScalar) and any(side.section.made(a.value_) for side in self.sides)
        )

    def _one_side(self, here: int, found: Any, lacking: Any, name: str) -> Tree:
        """What only one branch gives: the other does not come here, or does not assign it."""
        if _lacks(found):
            ways = [each for each in (found, lacking) if isinstance(each, Undefined)]
            # What is assigned on some way below is not simply missing.
            return Static(next((each for each in ways if each.sides), (*ways, found)[0]), "")
        if isinstance(lacking, Undefined) and not lacking.guarded:
            return Static(self._undefined(here, found, name), "")
        if self.sides[here].is_from_before(found):
            return Static(found, "")
        if is_data(found) and not is_plain(found):
            kind = Kind.of(self.recording, found)
            pair = self.sides[here].value(found), self.sides[1 - here].padding(kind)
            return self._output(pair if here == 0 else pair[::-1], kind, name)
        opened = self.sides[here].children(found)
        if opened is None:
            return Static(found, "")
        parts = [
            self._one_side(here, child, lacking, below(name, opened[0], key))
            for key, child in opened[1]
        ]
        return Branch(opened[0], [key for key, _ in opened[1]], parts)

    def _undefined(self, here: int, found: Any, name: str) -> Undefined:
        there = self.sides[1 - here]
        place = place_of(self.recording, found, self.sides[here].function, name)
        missing = place_of(self.recording, None, there.function, "")
        return Undefined(
            name,
            (
                (self.sides[here].word, f"{name} is assigned", place),
                (there.word, f"{name} is not", missing),
            ),
        )

    def _output(self, pair: tuple[Value, ...], kind: Kind, name: str) -> Tree:
        self._outputs.append((pair[0], pair[1]))
        self._kinds.append(kind)
        self._shared.append([])
        self._hints.append("" if name.startswith(UNNAMED) else hint_of(name))
        return LEAF

    # ---- errors ------------------------------------------------------------------------------

    def _error(self, a: Any, b: Any, name: str) -> JoinError:
        recording = self.recording
        what = [describe(recording, thing) for thing in (a, b)]
        sides = tuple(
            (side.word, text, place_of(recording, thing, side.function, name))
            for side, text, thing in zip(self.sides, what, (a, b), strict=True)
        )
        return JoinError(
            f"{name} is {what[0]} after one branch and {what[1]} after the other",
            sides=sides,
            where=recording.here(),
            instead=self._remedy(a, b, name),
        )

    def _remedy(self, a: Any, b: Any, name: str) -> str:
        """What to write where a number of Python meets another number."""
        for thing, other in ((a, b), (b, a)):
            if not is_data(thing) or not is_data(other):
                break
            mine, its = Kind.of(self.recording, thing), Kind.of(self.recording, other)
            if not isinstance(mine.type, ScalarType) or not (its.scalar or its.layout is None):
                continue
            dtype = its.type.dtype if isinstance(its.type, ArrayType) else its.type.python  # type: ignore[union-attr]
            if not np.can_cast(mine.type.python, dtype, "same_kind"):
                continue
            if not name.startswith(UNNAMED):
                return f"{name} = {its.number(thing) if is_plain(thing) else f'{its}(...)'}"
            boolean = mine.type is BOOL and np.dtype(dtype).kind == "b"
            return f"{'bool' if boolean else its}(...) of both"
        return "the same type, dtype and shape after both"

    def _resized(self, holder: Holder, first: Any, second: Any) -> JoinError:
        name = holder.name
        rest = f"; in a loop, {INSTEAD}" if type(holder.thing) is list else ""
        sides = tuple(
            (side.word, holder.describe(items), place_of(self.recording, None, side.function, ""))
            for side, items in zip(self.sides, (first, second), strict=True)
        )
        return JoinError(
            f"{name} holds different things after the two branches",
            sides=sides,
            where=self.recording.here(),
            instead=f"change {name} in the same way in both, or outside of them{rest}",
        )


def _part(result: Any, at: int) -> Any:
    return result if result is NEVER else result[at]


def _lacks(thing: Any) -> bool:
    return thing is NEVER or isinstance(thing, Undefined)
