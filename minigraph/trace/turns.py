"""A `for` in a trace: in Python while it is short, then recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from minigraph.errors import (
    RAISED,
    ConcreteValueError,
    JoinError,
    LoopError,
    MinigraphError,
    UnsupportedError,
)
from minigraph.ir import Value

from .holders import reachable
from .loops import Loop, both, condition, named, negated, truth
from .recording import Recording
from .sections import Section
from .sources import Cursors, Source

UNROLLED = 16  # the most turns that are recorded one after the other
LONGEST = 256  # the same of a loop that cannot be recorded
WITHIN = 1024  # the same of all loops within one that is unrolled: a product of many small numbers


def asked(
    recording: Recording | None, test: Callable[..., Any], parts: tuple[Any, ...]
) -> bool | None:
    """What the test says of a state; None: that depends on what is not known.

    The test is recorded again then, so what it has changed in Python is undone.
    """
    if recording is None:
        return truth(None, test(*parts)) is True
    try:
        holders = reachable(recording, [("the test", test), ("the state", parts)])
    except UnsupportedError as error:  # raised again if it is recorded
        forget(error)
        holders = []
    with Section(recording, holders, tentative=True) as section:
        holds = truth(recording, test(*parts))
        if isinstance(holds, bool):
            section.keep()
    return holds if isinstance(holds, bool) else None


class Through:
    """A `for` through a source, in a trace: in Python while it is short, then recorded.

    It is a scan where the number of turns is known and nothing breaks off; else a while.
    """

    def __init__(
        self,
        recording: Recording,
        source: Source,
        turn: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]],
        roots: Sequence[tuple[str, Any]],
        until: Callable[..., Any] | None,
        names: Sequence[str],
    ) -> None:
        self.recording = recording
        self.source = source
        self.turn = turn
        self.roots = roots
        self.until = until
        self.names = names

    def run(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        """The state after the loop."""
        length = self.source.length
        short = isinstance(length, int) and length <= UNROLLED
        if short and self.recording.turns_left is None:
            with _turns_left(self.recording, WITHIN):
                return self._run(parts, short=True, outermost=True)
        return self._run(parts, short=short, outermost=False)

    def _run(self, parts: tuple[Any, ...], *, short: bool, outermost: bool) -> tuple[Any, ...]:
        recording, length = self.recording, self.source.length
        cursors, turns = self.source.first, 0
        stays = False
        while not isinstance(length, int) or turns < length:
            stop = False if self.until is None else asked(self.recording, self.until, parts)
            if stop:
                break
            spent = recording.turns_left == 0
            if stop is None or not (stays or (short and not spent)):
                certain = stop is not None and length is not None
                loop = self._loop(cursors, turns, parts, certain)
                try:
                    with _turns_left(recording, 0 if spent else None):
                        return tuple(loop.record()[0][1:])
                except MinigraphError as error:
                    if not certain or not isinstance(length, int):
                        raise
                    # With the types after a turn it may be right, and a short one may stay Python.
                    again = changes_type(error) and not turns
                    if not (short or again or may_stay(error, length)):
                        _offer_python(error)
                        raise
                    stays = not again
                    forget(error)
            if recording.turns_left and not outermost:
                recording.turns_left -= 1
            parts = self.turn(self.source.item(cursors), parts)
            cursors = self.source.advance(cursors)
            turns += 1
        return parts

    def _loop(self, cursors: Cursors, turns: int, parts: tuple[Any, ...], certain: bool) -> Loop:
        """The turns from one on."""
        length = self.source.length
        scans = self.until is None and length is not None
        source = self.source.scanned(turns) if scans else self.source

        def body(parts: Sequence[Any], rows: Sequence[Any]) -> tuple[Sequence[Any], None]:
            with self.recording.unnamed():
                item = source.item(self._cursors(parts[0]), iter(rows))
            after = self.turn(item, tuple(parts[1:]))
            with self.recording.unnamed():
                cursors = source.advance(self._cursors(parts[0]))
            return (self._carried(cursors), *after), None

        how: dict[str, Any] = {"test": self._test}
        if scans:
            length = length - turns if isinstance(length, int) else length
            how = {"length": length, "scanned": source.arrays}
        names = (self._item_name(), *(self.names or named(parts)))
        state = (self._carried(cursors), *parts)
        return Loop(self.recording, body, state, names, roots=self.roots, certain=certain, **how)

    def _carried(self, cursors: Cursors) -> Any:
        """The cursors as a part of the state: a single one by itself."""
        return cursors[0] if len(self.source.first) == 1 else cursors

    def _cursors(self, carried: Any) -> Cursors:
        return (carried,) if len(self.source.first) == 1 else carried

    def _item_name(self) -> str:
        """What the body calls an item."""
        body = self.roots[0][1]
        code = getattr(getattr(body, "__func__", body), "__code__", None)
        return code.co_varnames[0] if code is not None and code.co_argcount else "item"

    def _test(self, carried: Any, *parts: Any) -> bool | Value:
        recording = self.recording
        with recording.unnamed():
            tests = [
                condition(recording, test) for test in self.source.more(self._cursors(carried))
            ]
        stop = self.until(*parts) if self.until is not None else False
        with recording.unnamed():
            tests.append(negated(recording, condition(recording, stop)))
            return both(recording, tests)


@contextmanager
def _turns_left(recording: Recording, turns: int | None) -> Iterator[None]:
    """Within, so many turns of short loops may still be unrolled."""
    before = recording.turns_left
    recording.turns_left = turns
    try:
        yield
    finally:
        recording.turns_left = before


def changes_type(error: MinigraphError) -> bool:
    """What is wrong is a type, which is another one at the end of a turn or after one branch."""
    return isinstance(error, JoinError | LoopError) and bool(error.sides)


def may_stay(error: MinigraphError, turns: int) -> bool:
    """A loop of so many turns, all known, that cannot be recorded may stay Python.

    What a loop carries, or a number that it needs, is right then; all else is wrong there, too.
    """
    return (
        turns <= LONGEST
        and isinstance(error, LoopError | ConcreteValueError)
        and not changes_type(error)
    )


def _offer_python(error: MinigraphError) -> None:
    """Say how a loop stays Python all the same."""
    offer = "keep the loop in Python: for x in mg.unroll(items)"
    if isinstance(error, LoopError | ConcreteValueError) and "mg.unroll" not in error.instead:
        error.instead = f"{error.instead}; or {offer}" if error.instead else offer


def forget(error: MinigraphError) -> None:
    """What was wrong is done in another way."""
    raised = RAISED.get()
    if raised is not None and error in raised:
        raised.remove(error)
