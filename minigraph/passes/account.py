"""The bytes that a plan needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from minigraph.errors import DimensionError
from minigraph.ir import ArrayType, Dim, Node, Size, Value, decide_at_least


class Inside(NamedTuple):
    """What the regions of a node need while they run.

    Attributes:
        naive: the sum of their buffers; peak: the most at once; lower: the least that this can be.
        given: the operands that are needed no longer, once the regions have read them.
        loops: the results have their buffers from the start, and are not made in the regions.
    """

    naive: Size
    peak: Size
    lower: Size
    given: Sequence[Value]
    loops: bool


class Account:
    """The sums over one plan.

    Args:
        nodes: in order.
        made: the owners of buffers that each node makes; ends: those needed no longer after it.
        size: the bytes of an owner.
        reuses: the owners that take over the buffer of another one; in_place: of an operand.
        inside: what regions need.

    Attributes:
        naive: the sum of all buffers, if none were taken over or freed.
        after: the bytes allocated after each node; a buffer that will be taken over stays.
        peak: the most bytes allocated at once.
        lower: the most bytes of values that are needed at once.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        made: Sequence[Sequence[Value]],
        ends: Sequence[Sequence[Value]],
        size: Callable[[Value], Size],
        reuses: Mapping[Value, Value],
        in_place: Collection[Value],
        inside: Mapping[Node, Inside],
    ) -> None:
        self.naive: Size = 0
        self.peak: Size = 0
        self.lower: Size = 0
        self.after: list[Size] = []
        taken = set(reuses.values())
        allocated: Size = 0
        needed: Size = 0
        for node, new, old in zip(nodes, made, ends, strict=True):
            within = inside.get(node)
            before, least = allocated, needed
            if within is not None:
                least += within.lower - sum(map(size, within.given))
            for value in new:
                bytes_ = size(value)
                self.naive += bytes_
                needed += bytes_
                if value not in in_place and within is None:
                    least += bytes_
                if value not in reuses:
                    allocated += bytes_
            if within is not None:
                self.naive += within.naive
                start = allocated if within.loops else before
                self.peak = upper(self.peak, start + within.peak)
                passing = sum(size(value) for value in old if value not in new)
                self.lower = larger(self.lower, needed - passing)
            self.peak = upper(self.peak, allocated)
            self.lower = larger(self.lower, least)
            for value in old:
                bytes_ = size(value)
                needed -= bytes_
                if value not in taken:
                    allocated -= bytes_
            self.after.append(allocated)
        if not is_at_least(self.naive, self.peak):
            self.peak = self.naive


# ---- sizes, of which some may be named dimensions


def size_bytes(value: Value) -> Size:
    """The bytes of an array."""
    assert isinstance(value.type, ArrayType)
    return value.type.size_bytes


def is_at_least(a: Size, b: Size) -> bool:
    """Whether one is at least as large as the other; of two that cannot be compared, no."""
    try:
        return decide_at_least(a, b)
    except DimensionError:
        return False


def larger(a: Size, b: Size) -> Size:
    """The larger of two; of two that cannot be compared, the first."""
    return b if is_at_least(b, a) else a


def upper(a: Size, b: Size) -> Size:
    """The larger of two; of two that cannot be compared, a sum that neither exceeds."""
    difference = b - a
    if isinstance(difference, int):
        return a + max(difference, 0)
    for monomial, coefficient in difference.terms:
        if coefficient > 0:
            a += Dim(((monomial, coefficient),)) if monomial else coefficient
    return a
