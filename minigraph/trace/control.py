"""Control flow as functions: `cond`, `while_loop`, `for_loop`, `scan` and what is made of them.

Outside of a trace they are ordinary Python.  Inside, what is known while tracing stays Python, and
what depends on arguments is recorded as a node whose regions are the functions given here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph.errors import RAISED, LoopError, ShapeError, SignatureError
from minigraph.ir import Size, Tree, Value, flatten, unflatten

from .arrays import TracedArray, wrap
from .holders import reachable
from .iterables import Cursors, Source, source_of
from .joins import Join, Side
from .kinds import is_data
from .loops import Loop, both, condition, named, negated
from .operands import operand
from .recording import ACTIVE, Recording
from .sections import Section
from .views import Layout

UNROLLED = 16  # the most turns that are recorded one after the other


def cond(
    test: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    *operands: Any,
    names: Sequence[str] = (),
) -> Any:
    """What `then(*operands)` returns if the test holds, else what `otherwise(*operands)` does.

    Args:
        test: one truth value.
        then: a function of the operands.
        otherwise: another one, which returns the same structure.
        *operands: anything.
        names: what the results are called, for messages.

    Raises:
        JoinError: the two return different things, and which runs is known at the call only.
    """
    recording = ACTIVE.get()
    holds = bool(test) if recording is None else condition(recording, test)
    if recording is None or isinstance(holds, bool):
        return (then if holds else otherwise)(*operands)
    holders = reachable(recording, [("then", then), ("otherwise", otherwise), *_named(operands)])
    sides = (
        Side(recording, "then", then, operands, holders),
        Side(recording, "otherwise", otherwise, operands, holders),
    )
    return Join(recording, *sides).record(holds, names)


def while_loop(
    test: Callable[..., Any],
    body: Callable[..., Any],
    state: Any,
    *,
    max_iter: int | None = None,
    names: Sequence[str] = (),
) -> Any:
    """Apply `body` to the state as long as `test` holds of it.

    Args:
        test: a function of the state's parts, which returns one truth value.
        body: a function of the same, which returns the next state.
        state: a tuple of anything; what is no tuple is a state of one part.
        max_iter: the most turns.
        names: what the parts are called, for messages.

    Returns:
        The last state.

    Raises:
        LoopError: a part changes its type from one turn to the next.
    """
    parts, single = _parts(state)
    recording = ACTIVE.get()
    turns = 0
    start = len(recording.nodes) if recording is not None else 0
    while max_iter is None or turns < max_iter:
        if recording is not None and turns >= UNROLLED and len(recording.nodes) > start:
            holds = None
        else:
            holds = _asked(recording, test, parts)
        if holds is None:
            assert recording is not None
            limit = None if max_iter is None else max_iter - turns

            def turn(parts: tuple[Any, ...], rows: Any) -> Any:
                return _next(body(*parts), parts, single), None

            roots = [("the test", test), ("the body", body)]
            loop = Loop(recording, turn, parts, names, roots=roots, test=test, limit=limit)
            return _state(loop.record()[0], single)
        if not holds:
            break
        parts = _next(body(*parts), parts, single)
        turns += 1
    return _state(parts, single)


def _asked(
    recording: Recording | None, test: Callable[..., Any], parts: tuple[Any, ...]
) -> bool | None:
    """What the test says of a state; None: that depends on what is not known."""
    if recording is None:
        return bool(test(*parts))
    with Section(recording, tentative=True) as section:
        holds = condition(recording, test(*parts))
        if isinstance(holds, bool):
            section.keep()
    return holds if isinstance(holds, bool) else None


def for_loop(
    items: Any,
    body: Callable[..., Any],
    state: Any = (),
    *,
    until: Callable[..., Any] | None = None,
    names: Sequence[str] = (),
) -> Any:
    """Apply `body` to each item and the state: `state = body(item, *state)`.

    Args:
        items: anything that a `for` takes.
        body: a function of an item and the state's parts, which returns the next state.
        state: a tuple of anything; what is no tuple is a state of one part.
        until: a function of the state's parts, asked before each turn; true ends the loop.
        names: what the parts are called, for messages.

    Returns:
        The last state.

    Raises:
        LoopError: a part changes its type from one turn to the next.
    """
    parts, single = _parts(state)
    recording = ACTIVE.get()
    source = source_of(items) if recording is not None else None

    def turn(item: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return _next(body(item, *parts), parts, single)

    if recording is not None and source is not None:
        plan = Through(
            recording, source, turn, [("the body", body), ("until", until)], until, names
        )
        return _state(plan.run(parts), single)
    for item in items:
        stop = False if until is None else _asked(recording, until, parts)
        if stop is None:
            assert until is not None

            def keep(*parts: Any) -> tuple[Any, ...]:
                return parts

            def go_on(*parts: Any) -> tuple[Any, ...]:
                return turn(item, parts)  # noqa: B023

            parts = cond(until(*parts), keep, go_on, *parts, names=names)
        elif stop:
            break
        else:
            parts = turn(item, parts)
    return _state(parts, single)


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
        length, cursors, turns = self.source.length, self.source.first, 0
        short = isinstance(length, int) and length <= UNROLLED
        while not isinstance(length, int) or turns < length:
            stop = False if self.until is None else _asked(self.recording, self.until, parts)
            if stop:
                break
            if stop is None or not short:
                certain = stop is not None and length is not None
                loop = self._loop(cursors, turns, parts, certain)
                try:
                    return tuple(loop.record()[0][1:])
                except LoopError as error:
                    if error.loop is not loop or turns or not (certain and isinstance(length, int)):
                        raise
                    _forget(error)
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
            item = source.item(parts[0], iter(rows))
            return (source.advance(parts[0]), *self.turn(item, tuple(parts[1:]))), None

        how: dict[str, Any] = {"test": self._test}
        if scans:
            length = length - turns if isinstance(length, int) else length
            how = {"length": length, "scanned": source.arrays}
        names = ("item", *(self.names or named(parts)))
        state = (cursors, *parts)
        return Loop(self.recording, body, state, names, roots=self.roots, certain=certain, **how)

    def _test(self, cursors: Cursors, *parts: Any) -> bool | Value:
        recording = self.recording
        tests = [condition(recording, test) for test in self.source.more(cursors)]
        if self.until is not None:
            tests.append(negated(recording, condition(recording, self.until(*parts))))
        return both(recording, tests)


def _forget(error: LoopError) -> None:
    """What was wrong is done in another way."""
    raised = RAISED.get()
    if raised is not None:
        raised.remove(error)


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Apply `f` to each element along the first axis of arrays, and stack what it gives.

    Args:
        f: takes (carry, x), returns (next carry, y).
        init: the first carry: any structure of arrays and numbers.
        xs: a structure of arrays with first axes of one extent; None: f gets None.
        length: that extent, where xs does not tell.
        reverse: the last element first; y is stacked where x was taken from.

    Returns:
        The last carry and the structure of the stacked ys.

    Raises:
        ShapeError: the first axes have different extents.
        LoopError: a part of the carry changes its type from one turn to the next.
    """
    arrays, tree = flatten(xs, is_data)
    recording = ACTIVE.get()
    count = _extent(recording, arrays, length)
    if recording is None:
        return _scan_eagerly(f, init, arrays, tree, int(count), reverse)

    def turn(parts: tuple[Any, ...], rows: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
        carry, y = _pair(f(parts[0], unflatten(tree, iter(rows))))
        return (carry,), y

    loop = Loop(
        recording,
        turn,
        (init,),
        ("carry",),
        roots=[("the function", f)],
        certain=count != 0,
        length=count,
        scanned=[_as_traced(recording, array) for array in arrays],
        reverse=reverse,
    )
    (carry,), ys = loop.record()
    return carry, ys


def _pair(result: Any) -> tuple[Any, Any]:
    if type(result) is tuple and len(result) == 2:
        return result
    active = ACTIVE.get()
    raise SignatureError(
        "what a scan applies returns (next carry, y)",
        where=active.here() if active is not None else None,
        instead="return carry, y  (y may be None)",
    )


def _extent(recording: Recording | None, arrays: Sequence[Any], length: int | None) -> Size:
    """The one extent of the first axes."""
    where = recording.here() if recording is not None else None
    found: list[Size] = [] if length is None else [operator.index(length)]
    for array in arrays:
        sizes = array.type_.shape if isinstance(array, TracedArray) else np.shape(array)
        if not sizes:
            raise ShapeError("what is scanned has a first axis", where=where)
        found.append(sizes[0])
    if not found:
        raise SignatureError(
            "a scan over nothing", where=where, instead="xs=, or length= for the number of turns"
        )
    if any(size != found[0] for size in found):
        raise ShapeError(
            f"arrays that are scanned together have first axes of {', '.join(map(str, found))}",
            where=where,
        )
    return found[-1]


def _as_traced(recording: Recording, array: Any) -> TracedArray:
    if isinstance(array, TracedArray):
        return array
    value = operand(recording, array)
    return wrap(recording, value, Layout(value.shape, True))


def _scan_eagerly(
    f: Callable[..., Any], carry: Any, arrays: Sequence[Any], tree: Tree, count: int, reverse: bool
) -> tuple[Any, Any]:
    found: list[Any] = []
    for at in reversed(range(count)) if reverse else range(count):
        carry, y = _pair(f(carry, unflatten(tree, iter([array[at] for array in arrays]))))
        found.append(y)
    if not found:
        raise SignatureError("an eager scan without a turn has nothing to stack")
    ys = [flatten(y, is_data) for y in (found[::-1] if reverse else found)]
    stacked = [np.stack(column) for column in zip(*(leaves for leaves, _ in ys), strict=True)]
    return carry, unflatten(ys[0][1], iter(stacked))


def _named(things: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"operand {at}", thing) for at, thing in enumerate(things)]


def _parts(state: Any) -> tuple[tuple[Any, ...], bool]:
    """The parts of a state, and whether it is one without a tuple around."""
    return (state, False) if type(state) is tuple else ((state,), True)


def _state(parts: tuple[Any, ...], single: bool) -> Any:
    return parts[0] if single else parts


def _next(result: Any, before: tuple[Any, ...], single: bool) -> tuple[Any, ...]:
    """What a body returns, as parts.

    Raises:
        SignatureError: they are not as many as before.
    """
    if single:
        return (result,)
    if not before and result is None:
        return ()
    if type(result) is tuple and len(result) == len(before):
        return result
    found = f"a tuple of {len(result)}" if type(result) is tuple else f"a {type(result).__name__}"
    active = ACTIVE.get()
    raise SignatureError(
        f"the body returns {found}, and the state has {len(before)} parts",
        where=active.here() if active is not None else None,
        instead="return the next state, part for part",
    )
