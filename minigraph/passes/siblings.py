"""Groups that read the same values at each step of the same loops become one: it is read once."""

from __future__ import annotations

from minigraph.ir import Shape, Value

from .grouping import Grouping
from .groups import Group, Seat, clash, root_of, span
from .refusals import SIZE_LIMIT

MOST_RESULTS = 8
"""A processor does not follow many streams of writes well."""


def join_siblings(grouping: Grouping) -> None:
    """Join groups of which neither waits for the other."""
    met: dict[tuple[Value, Shape], dict[tuple[int, ...], Group]] = {}
    for group in grouping.groups():
        for value in _read_fully(group, grouping):
            group = root_of(group)
            others = met.setdefault((value, group.loop), {})
            for reduced in dict.fromkeys((group.reduced, *others)):
                other = root_of(others.get(reduced, group))
                if other is not group and _joined(other, group, grouping):
                    group = root_of(group)
                    break
            others[group.reduced] = group


def _read_fully(group: Group, grouping: Grouping) -> list[Value]:
    """The operands that are other ones at each step of the loops."""
    return [
        value
        for value, axes in group.axes.items()
        if len(span(axes)) == len(group.loop) > 0 and not grouping.is_inside(value, [group])
    ]


def _joined(a: Group, b: Group, grouping: Grouping) -> bool:
    """Make one group of two if that is legal."""
    seats = [Seat(group, group.axes, group.inner) for group in (a, b)]
    level = max(a.level, b.level)
    if a.product is not None or b.product is not None or clash(*seats) is not None:
        return False
    if min(a.limit, b.limit) <= level or len(a.nodes | b.nodes) > SIZE_LIMIT:
        return False
    if sum(_results(group, grouping) for group in (a, b)) > MOST_RESULTS:
        return False
    grouping.merge(seats, a.loop, level)
    return True


def _results(group: Group, grouping: Grouping) -> int:
    """How many values of a group others need."""
    return sum(bool(grouping.escapes(node.output, group)) for node in group.computing)
