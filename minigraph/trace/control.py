"""Control flow as functions: `cond`, `while_loop`, `for_loop`, `scan` and what is made of them.

Outside of a trace they are ordinary Python.  Inside, what is known while tracing stays Python, and
what depends on arguments is recorded as a node whose regions are the functions given here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from minigraph.errors import LoopError, MinigraphError, SignatureError
from minigraph.ir import BOOL, INT, ArrayType

from .arrays import TracedArray
from .given import a_kind, check_callable, check_state, number_of_turns
from .holders import reachable
from .iterables import counting, source_of
from .joins import Join, Side
from .loops import Loop, truth
from .operands import operand
from .recording import ACTIVE, here
from .scalars import TracedScalar
from .turns import UNROLLED, Through, asked, forget, may_stay


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
    check_callable("mg.cond(test, lambda: x * 2, lambda: -x)", then, otherwise)
    recording = ACTIVE.get()
    holds = truth(recording, test)
    if recording is None or isinstance(holds, bool):
        return (then if holds else otherwise)(*operands)
    holders = reachable(recording, [("then", then), ("otherwise", otherwise), *_named(operands)])
    sides = (
        Side(recording, "then", then, operands, holders),
        Side(recording, "otherwise", otherwise, operands, holders),
    )
    return Join(recording, *sides).record(holds, names)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """What the branch of this number returns for the operands.

    Args:
        index: an int; below 0 it means the first branch, beyond the last one that.
        branches: functions of the operands, which return the same structure.
        *operands: anything.

    Raises:
        SignatureError: the index is no int, or there is no branch.
        JoinError: they return different things, and which runs is known at the call only.
    """
    if not branches:
        raise SignatureError("a switch without branches")
    recording = ACTIVE.get()
    if recording is None or not isinstance(index, TracedScalar | TracedArray):
        try:
            at = operator.index(index)
        except TypeError:
            raise _no_int(f"a {type(index).__name__}") from None
        return branches[min(max(at, 0), len(branches) - 1)](*operands)
    type_ = operand(recording, index).type
    if type_ not in (INT, BOOL) and not (isinstance(type_, ArrayType) and type_.dtype.kind in "iu"):
        raise _no_int(str(type_))
    return _branch(index, 0, branches, operands)


def _branch(
    index: Any, first: int, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """What one of the branches returns, which count from `first`: half of them after half."""
    if len(branches) == 1:
        return branches[0](*operands)
    half = len(branches) // 2

    def below(*operands: Any) -> Any:
        return _branch(index, first, branches[:half], operands)

    def above(*operands: Any) -> Any:
        return _branch(index, first + half, branches[half:], operands)

    return cond(index < first + half, below, above, *operands)


def _no_int(found: str) -> SignatureError:
    return SignatureError(
        f"the index of a switch is {found}, which is no int",
        where=here(),
        instead="int(index)",
    )


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
        state: a tuple of anything; what is no tuple, or has one name, is a state of one part.
        max_iter: the most turns.
        names: what the parts are called, for messages.

    Returns:
        The last state.

    Raises:
        LoopError: a part changes its type from one turn to the next.
    """
    check_callable("mg.while_loop(test, body, state)", test, body)
    check_state(state, test)
    parts, single = _parts(state, names)
    recording = ACTIVE.get()
    max_iter = number_of_turns("max_iter", max_iter)
    turns = 0
    start = len(recording.nodes) if recording is not None else 0
    refused: MinigraphError | None = None
    while max_iter is None or turns < max_iter:
        long = recording is not None and turns >= UNROLLED and len(recording.nodes) > start
        holds = None if long and refused is None else asked(recording, test, parts)
        if holds is None:
            assert recording is not None
            limit = None if max_iter is None else max_iter - turns

            def turn(parts: tuple[Any, ...], rows: Any) -> Any:
                return _next(body(*parts), parts, single), None

            roots = [("the test", test), ("the body", body)]
            try:
                loop = Loop(recording, turn, parts, names, roots=roots, test=test, limit=limit)
                return _state(loop.record()[0], single)
            except MinigraphError as error:
                holds = asked(recording, test, parts) if long and may_stay(error, turns) else None
                if holds is None:
                    raise
                forget(error)
                refused = error
        elif refused is not None and not may_stay(refused, turns):
            raise refused
        if not holds:
            break
        parts = _next(body(*parts), parts, single)
        turns += 1
    return _state(parts, single)


def for_loop(
    items: Any,
    body: Callable[..., Any],
    state: Any = (),
    *,
    until: Callable[..., Any] | None = None,
    names: Sequence[str] = (),
    own: bool = False,
) -> Any:
    """Apply `body` to each item and the state: `state = body(item, *state)`.

    Args:
        items: anything that a `for` takes.
        body: a function of an item and the state's parts, which returns the next state.
        state: a tuple of anything; what is no tuple, or has one name, is a state of one part.
        until: a function of the state's parts, asked before each turn; true ends the loop.
        names: what the parts are called, for messages.
        own: no one sees how far the loop went through the items, if they are an iterator.

    Returns:
        The last state.

    Raises:
        LoopError: a part changes its type from one turn to the next; or only the call tells how
            many items are taken out of an iterator.
    """
    check_callable("mg.for_loop(items, body, state)", body, *(() if until is None else (until,)))
    parts, single = _parts(state, names)
    recording = ACTIVE.get()
    source = source_of(items) if recording is not None else None

    def turn(item: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return _next(body(item, *parts), parts, single)

    if recording is not None and source is not None:
        roots = [("the body", body), ("until", until)]
        return _state(Through(recording, source, turn, roots, until, names).run(parts), single)
    rest = iter(items)
    while True:
        stop = False if until is None else asked(recording, until, parts)
        if stop:
            break
        if recording is not None and stop is None and rest is items and not own:
            raise LoopError(
                "only the call tells how many items this loop takes out of an iterator",
                where=recording.here(),
                instead="a list of the items: for item in list(items)",
            )
        try:
            item = next(rest)
        except StopIteration:
            break
        if stop is None:
            assert until is not None
            parts = _unless(until, turn, item, parts, names)
        else:
            parts = turn(item, parts)
    return _state(parts, single)


def _unless(
    until: Callable[..., Any],
    turn: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]],
    item: Any,
    parts: tuple[Any, ...],
    names: Sequence[str],
) -> tuple[Any, ...]:
    """One turn, unless the loop has ended."""
    alone = len(parts) == 1

    def stay(*parts: Any) -> Any:
        return _state(parts, alone)

    def go_on(*parts: Any) -> Any:
        return _state(turn(item, parts), alone)

    found = cond(until(*parts), stay, go_on, *parts, names=names)
    return (found,) if alone else found


def fori_loop(lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    """Apply `body` to each number from `lower` to before `upper`, and the value of the turn before.

    Args:
        lower: the first number.
        upper: the first that is not reached.
        body: takes (number, value), returns the next value.
        init: the first value: any structure of arrays and numbers.

    Returns:
        The last value.

    Raises:
        LoopError: a part of the value changes its type from one turn to the next.
    """
    check_callable("mg.fori_loop(lower, upper, lambda i, value: value + i, init)", body)

    def turn(number: Any, value: Any) -> tuple[Any]:
        return (body(number, value),)

    return for_loop(counting(lower, upper), turn, (init,))[0]


def unroll(items: Any) -> tuple[Any, ...]:
    """The items, for a `for` that stays in Python: its turns are recorded one after the other.

    Raises:
        IterationError: how many there are is not known while tracing.
    """
    return tuple(items)


def _named(things: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(f"operand {at}", thing) for at, thing in enumerate(things)]


def _parts(state: Any, names: Sequence[str]) -> tuple[tuple[Any, ...], bool]:
    """The parts of a state, and whether it is one without a tuple around."""
    single = type(state) is not tuple or len(names) == 1
    return ((state,), True) if single else (state, False)


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
    found = f"a tuple of {len(result)}" if type(result) is tuple else a_kind(result)
    raise SignatureError(
        f"the body returns {found}, and the state has {len(before)} part{'s'[: len(before) != 1]}",
        where=here(),
        instead="return (i + n,), a tuple of one part as the state is"
        if len(before) == 1
        else "return the next state, part for part",
    )
