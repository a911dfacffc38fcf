"""What a loop goes through: `range`, `enumerate`, `zip` and `reversed` in traced code.

Of what is plain these are Python's own.  Otherwise they stand for the items, which a loop that is
recorded takes from their `Source`.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterator
from typing import Any

from minigraph.errors import IterationError, UnsupportedError
from minigraph.ir import INT

from .arrays import TracedArray
from .called import CALLED
from .checks import check
from .literals import plain
from .numbers import as_number, is_traced, record_number
from .recording import ACTIVE, current
from .scalars import TracedDim
from .sources import Numbers, Places, Rows, Source, Together


class Symbolic:
    """Items that a recorded loop can go through; in Python they are items like any others.

    Attributes:
        source: the items.
    """

    symbolic_ = True

    def __init__(self, source: Source) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        length = self.source.length
        if not isinstance(length, int):
            raise IterationError(
                "a loop whose number of turns is not known cannot be unrolled",
                where=current().here(),
                instead="@mg.script, which records the loop, or mg.for_loop(items, body, state)",
            )
        return _items(self.source, length)


def _items(source: Source, length: int) -> Iterator[Any]:
    cursors = source.first
    for _ in builtins.range(length):
        yield source.item(cursors)
        cursors = source.advance(cursors)


class Once(Symbolic):
    """Items that can be taken once: those of `enumerate`, `zip` and `reversed`."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._sections = tuple(current().sections)
        self._rest: Iterator[Any] | None = None

    def take(self) -> Source | None:
        """All items, if none was taken yet.

        Raises:
            UnsupportedError: they were made outside of the loop or branch that is recorded.
        """
        if self._sections != tuple(current().sections):
            raise UnsupportedError(
                "an iterator goes on inside of a recorded branch or loop, where its items would "
                "be taken once only",
                where=current().here(),
                instead="make it inside: for i, x in enumerate(xs)",
            )
        if self._rest is not None:
            return None
        self._rest = iter(())
        return self.source

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._rest is None:
            self._rest = super().__iter__()
        return next(self._rest)


class SymbolicRange(Symbolic):
    """`range` of numbers that are not known."""

    __class__ = property(lambda self: builtins.range)  # type: ignore[assignment]

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step
        super().__init__(Numbers(start, stop, step))

    def _plain(self) -> builtins.range:
        """The range itself, if its bounds are known; they are guarded."""
        return builtins.range(*map(operator.index, (self.start, self.stop, self.step)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._plain())

    def __len__(self) -> int:
        return len(self._plain())

    def __getitem__(self, at: Any) -> Any:
        return self._plain()[at]

    def __contains__(self, number: Any) -> bool:
        return number in self._plain()

    def __eq__(self, other: object) -> bool:
        return self._plain() == other

    def __hash__(self) -> int:
        return hash(self._plain())

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._plain())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)


def source_of(thing: Any) -> Source | None:
    """The source of what a `for` goes through; None: it stays in Python."""
    if type(thing) is Once:
        return thing.take()
    if type(thing) is SymbolicRange:
        return thing.source
    if type(thing) is builtins.range:
        return Numbers(thing.start, thing.stop, thing.step)
    if isinstance(thing, TracedArray) and thing.ndim and not thing.scalar_:
        return Rows(thing)
    return None


# ---- as traced code sees Python's own ---------------------------------------------------------


def symbolic_range(*bounds: Any) -> Any:
    """`range`: a recorded loop does not need the numbers.

    Numbers among the arguments are guarded, except in a script.
    """
    recording = ACTIVE.get()
    if recording is None or not any(map(is_traced, bounds)) or len(bounds) > 3:
        return builtins.range(*bounds)
    numbers = [_bound(bound) for bound in bounds]
    if not any(map(is_traced, numbers)):
        return builtins.range(*numbers)
    start, stop, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    if is_traced(step):
        check(step != 0, ValueError, "range() arg 3 must not be zero")
    elif not step:
        raise ValueError("range() arg 3 must not be zero")
    return SymbolicRange(start, stop, step)


def counting(lower: Any, upper: Any) -> Any:
    """The numbers from one to before another, which are not guarded."""
    start, stop = _bound(lower, guarded=False), _bound(upper, guarded=False)
    traced = is_traced(start) or is_traced(stop)
    return SymbolicRange(start, stop, 1) if traced else builtins.range(start, stop)


def _bound(bound: Any, *, guarded: bool = True) -> Any:
    """A bound of a range: a plain int, or a number or size that is not known.

    Args:
        bound: what is given.
        guarded: a number that is known now may be guarded, except in a script.
    """
    if isinstance(bound, TracedDim):
        return bound
    if not is_traced(bound):
        return operator.index(plain(bound))
    if isinstance(bound, TracedArray):
        if bound.ndim or bound.type_.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
    elif bound.__class__ not in (int, bool):
        kind = bound.__class__.__name__
        raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
    number, recording = as_number(bound), current()
    guarded = guarded and not recording.script and recording.is_known(number.value_)
    if guarded or recording.is_settled(number.value_):
        return operator.index(number)
    return number if number.value_.type is INT else record_number("to_int", number)


def symbolic_enumerate(iterable: Any, start: Any = 0) -> Any:
    """`enumerate`."""
    source = source_of(iterable) if ACTIVE.get() is not None else None
    if source is None:
        return builtins.enumerate(iterable, start)
    return Once(Together([source], [Places(_bound(start))]))


def symbolic_zip(*iterables: Any, strict: bool = False) -> Any:
    """`zip`."""
    if ACTIVE.get() is None or not iterables or any(map(_is_python, iterables)):
        return builtins.zip(*iterables, strict=strict)
    sources = [source for each in iterables if (source := source_of(each)) is not None]
    lengths = [source.length for source in sources]
    if strict and (None in lengths or any(length != lengths[0] for length in lengths)):
        raise UnsupportedError(
            "zip(strict=True) of items whose numbers are not known to be equal is not recorded",
            where=current().here(),
            instead="zip(...) of arrays whose first axes have one extent",
        )
    return Once(Together(sources))


def _is_python(thing: Any) -> bool:
    """A `for` through it stays in Python."""
    return not isinstance(thing, Symbolic | builtins.range) and (
        not isinstance(thing, TracedArray) or not thing.ndim or thing.scalar_
    )


def symbolic_reversed(sequence: Any) -> Any:
    """`reversed`."""
    if type(sequence) is SymbolicRange:
        start, stop, step = sequence.start, sequence.stop, sequence.step
        if is_traced(step):
            raise UnsupportedError(
                "reversed(range(...)) with a step that is not known is not recorded",
                where=current().here(),
                instead="range(last, first - step, -step)",
            )
        turns = (stop - start + step - (1 if step > 0 else -1)) // step
        turns = record_number("maximum", 0, turns)
        last = start + (turns - 1) * step
        return Once(Numbers(last, start - step, -step))
    if type(sequence) is builtins.range and ACTIVE.get() is not None:
        backwards = sequence[::-1]
        return Once(Numbers(backwards.start, backwards.stop, backwards.step))
    if isinstance(sequence, TracedArray) and not _is_python(sequence):
        return Once(Rows(sequence, backwards=True))
    return builtins.reversed(sequence)


CALLED.update(
    {
        id(builtins.range): symbolic_range,
        id(builtins.enumerate): symbolic_enumerate,
        id(builtins.zip): symbolic_zip,
        id(builtins.reversed): symbolic_reversed,
    }
)
