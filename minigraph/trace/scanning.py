"""Scans: a function applied along the first axis of arrays, with a carry from turn to turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph.errors import ShapeError, SignatureError
from minigraph.ir import Size, Tree, flatten, unflatten

from .arrays import TracedArray, wrap
from .given import a_kind, check_callable, number_of_turns
from .kinds import is_data
from .loops import Loop
from .operands import operand
from .recording import ACTIVE, Recording, here
from .views import Layout


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
        ShapeError: the first axes have different extents, or an eager scan has nothing to stack.
        LoopError: a part of the carry changes its type from one turn to the next.
    """
    check_callable("mg.scan(lambda carry, x: (carry + x, carry), init, xs)", f)
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


def foreach(body: Callable[..., Any], data: Any, states: Any) -> tuple[Any, Any]:
    """Apply `body` along the first axis of arrays, as MXNet does.

    Args:
        body: takes (data, states), returns (out, next states).
        data: an array, or a list of arrays.
        states: any structure of arrays and numbers.

    Returns:
        The stacked outs, and the last states.

    Raises:
        ShapeError, LoopError: as `scan`.
    """
    check_callable("mg.foreach(lambda data, states: (data, states), data, states)", body)

    def step(states: Any, data: Any) -> tuple[Any, Any]:
        out, after = body(data, states)
        return after, out

    states, outs = scan(step, states, data)
    return outs, states


def _pair(result: Any) -> tuple[Any, Any]:
    if type(result) is tuple and len(result) == 2:
        return result
    raise SignatureError(
        f"what a scan applies returns (next carry, y), not {a_kind(result)}",
        where=here(),
        instead="return carry, y  (y may be None)",
    )


def _extent(recording: Recording | None, arrays: Sequence[Any], length: int | None) -> Size:
    """The one extent of the first axes."""
    where = recording.here() if recording is not None else None
    turns = number_of_turns("length", length)
    found: list[Size] = [] if turns is None else [turns]
    for array in arrays:
        sizes = array.type_.shape if isinstance(array, TracedArray) else np.shape(array)
        if not sizes:
            raise ShapeError(
                f"what is scanned has a first axis, and {a_kind(array)} has none",
                where=where,
                instead="np.array([...]) of a list of numbers, length= for a number of turns",
            )
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
        raise ShapeError(
            "without a turn there is nothing to stack, and nobody knows of which shape",
            instead="@mg.jit, which knows the shapes without running f",
        )
    ys = [flatten(y, is_data) for y in (found[::-1] if reverse else found)]
    stacked = [np.stack(column) for column in zip(*(leaves for leaves, _ in ys), strict=True)]
    return carry, unflatten(ys[0][1], iter(stacked))
