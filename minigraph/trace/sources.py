"""The items of a loop, by cursors: numbers that move on from turn to turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minigraph.ir import Size

from .arrays import TracedArray
from .numbers import is_traced, record_number
from .scalars import TracedDim

Cursors = tuple[Any, ...]
_NO_ROWS: Iterator[Any] = iter(())


class Source:
    """The items of a loop, by cursors.

    Attributes:
        arrays: those of which each turn of a scan is given an element.
        length: how many items there are; None: that depends on numbers which are not known.
        first: the cursors of the first item.
    """

    arrays: Sequence[TracedArray] = ()
    length: Size | None = None
    first: Cursors = ()

    def more(self, cursors: Cursors) -> list[Any]:
        """Truth values that all hold if there is an item."""
        return []

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        """The item; `rows` are the elements of the arrays that are scanned."""
        raise NotImplementedError

    def advance(self, cursors: Cursors) -> Cursors:
        """The cursors of the next item."""
        return cursors

    def scanned(self, turns: int) -> Source:
        """The same where the elements of arrays are given, after so many turns."""
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
        return self.array.element_(cursors[0])

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


class Numbers(Source):
    """The numbers of a range."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.stop = stop
        self.step = step
        self.first = (start,)
        if not any(map(is_traced, (start, stop, step))):
            self.length = len(range(start, stop, step))
        elif isinstance(stop, TracedDim) and type(start) is type(step) is int:
            self.length = stop.dim if (start, step) == (0, 1) else None

    def more(self, cursors: Cursors) -> list[Any]:
        (at,) = cursors
        if not is_traced(self.step):
            return [at < self.stop if self.step > 0 else at > self.stop]
        return [record_number("select", self.step > 0, at < self.stop, at > self.stop)]

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        return cursors[0]

    def advance(self, cursors: Cursors) -> Cursors:
        return (cursors[0] + self.step,)


class Places(Source):
    """The numbers that `enumerate` gives: they have no end."""

    def __init__(self, start: Any) -> None:
        self.first = (start,)

    def item(self, cursors: Cursors, rows: Iterator[Any] = _NO_ROWS) -> Any:
        return cursors[0]

    def advance(self, cursors: Cursors) -> Cursors:
        return (cursors[0] + 1,)


class Together(Source):
    """Items of several sources, as far as the shortest goes.

    Args:
        sources: the sources.
        endless: those that do not end.
    """

    def __init__(self, sources: Sequence[Source], endless: Sequence[Source] = ()) -> None:
        self.sources = [*endless, *sources]
        self.arrays = [array for source in sources for array in source.arrays]
        self.first = tuple(source.first for source in self.sources)
        self.endless = len(endless)
        lengths = [source.length for source in sources]
        if lengths and all(isinstance(length, int) for length in lengths):
            self.length = min(length for length in lengths if isinstance(length, int))
        elif lengths and all(length == lengths[0] for length in lengths):
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
        sources = [source.scanned(turns) for source in self.sources]
        made = Together(sources[self.endless :], sources[: self.endless])
        if isinstance(self.length, int):  # longer arrays end with the shortest
            last = self.length - turns
            for source in made.sources:
                if isinstance(source, Elements) and source.arrays[0].type_.shape[0] != last:
                    source.arrays = (source.arrays[0][:last],)
            made.arrays = [array for source in made.sources for array in source.arrays]
        return made
