"""What a loop goes through: `range`, `enumerate`, `zip` and `reversed` of what is being described.

Where all is plain these are Python's own.  Otherwise they stand for the sequence, and a loop that
is recorded asks a `Source` for items by cursors: numbers that move on from turn to turn.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

from minigraph.errors import IterationError
from minigraph.ir import Size

from .arrays import TracedArray
from .recording import current
from .scalars import TracedDim

Cursors = tuple[Any, ...]
_NO_ROWS: Iterator[Any] = iter(())


class Source:
    """The items of a loop, by cursors.

    Attributes:
        arrays: those of which each turn is given an element.
        length: how many items there are; None: that depends on numbers which are not known.
        first: the cursors of the first item.
    """

    arrays: Sequence[TracedArray] = ()
    length: Size | None = None
    first: Cursors = ()

    def more(self, cursors: Cursors) -> list[Any]:
        """Truth values that all hold if there is an item."""
        raise NotImplementedError

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        """The item; `rows` are the elements of the arrays that are scanned."""
        raise NotImplementedError

    def advance(self, cursors: Cursors) -> Cursors:
        """The cursors of the next item."""
        raise NotImplementedError

    def scanned(self, turns: int) -> Source:
        """The same where the elements of the arrays are given, after so many turns."""
        return self


class Rows(Source):
    """The elements of an array along its first axis, from the first or from the last."""

    def __init__(self, array: TracedArray, *, backwards: bool = False) -> None:
        self.array = array
        self.backwards = backwards
        self.length = array.type_.shape[0]
        self.first = (array.shape[0] - 1 if backwards else 0,)

    def more(self, cursors: Cursors) -> list[Any]:
        return [cursors[0] >= 0 if self.backwards else cursors[0] < self.array.shape[0]]

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        return self.array[cursors[0]]

    def advance(self, cursors: Cursors) -> Cursors:
        return (cursors[0] + (-1 if self.backwards else 1),)

    def scanned(self, turns: int) -> Source:
        return self if self.backwards else Elements(self.array[turns:] if turns else self.array)


class Elements(Source):
    """The elements of an array, which each turn is given."""

    def __init__(self, array: TracedArray) -> None:
        self.arrays = (array,)

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        return next(rows)

    def advance(self, cursors: Cursors) -> Cursors:
        return cursors


class Range(Source):
    """`range` of numbers that are not known."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start = start
        self.stop = stop
        self.step = step
        self.first = (start,)
        if all(type(bound) is int for bound in (start, stop, step)):
            self.length = len(builtins.range(start, stop, step))
        elif isinstance(stop, TracedDim) and start == 0 and step == 1:
            self.length = stop.dim

    def more(self, cursors: Cursors) -> list[Any]:
        (at,) = cursors
        if type(self.step) is int:
            return [at < self.stop if self.step > 0 else at > self.stop]
        return [(self.stop - at) * self.step > 0]

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        return cursors[0]

    def advance(self, cursors: Cursors) -> Cursors:
        return (cursors[0] + self.step,)


class Several(Source):
    """Items of several sources, as far as the shortest goes."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = list(sources)
        self.arrays = [array for source in sources for array in source.arrays]
        self.first = tuple(source.first for source in sources)
        lengths = [source.length for source in sources]
        if all(isinstance(length, int) for length in lengths):
            self.length = min(lengths)  # type: ignore[type-var]
        elif all(length == lengths[0] for length in lengths):
            self.length = lengths[0]

    def more(self, cursors: Cursors) -> list[Any]:
        pairs = zip(self.sources, cursors, strict=True)
        return [test for source, cursor in pairs for test in source.more(cursor)]

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        pairs = zip(self.sources, cursors, strict=True)
        return tuple(source.item(cursor, rows) for source, cursor in pairs)

    def advance(self, cursors: Cursors) -> Cursors:
        pairs = zip(self.sources, cursors, strict=True)
        return tuple(source.advance(cursor) for source, cursor in pairs)

    def scanned(self, turns: int) -> Source:
        return Several([source.scanned(turns) for source in self.sources])


class Count(Range):
    """Numbers without an end: those of `enumerate`."""

    def __init__(self, start: Any) -> None:
        self.start = start
        self.first = (start,)
        self.step = 1

    def more(self, cursors: Cursors) -> list[Any]:
        return []


class Symbolic:
    """A sequence that a recorded loop can go through.

    Attributes:
        source: its items.
    """

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


def source_of(thing: Any) -> Source | None:
    """The source of what a `for` goes through; None: it stays in Python."""
    if isinstance(thing, Symbolic):
        return thing.source
    if type(thing) is builtins.range:
        return Range(thing.start, thing.stop, thing.step)
    if isinstance(thing, TracedArray) and thing.ndim and not thing.scalar_:
        return Rows(thing)
    return None
