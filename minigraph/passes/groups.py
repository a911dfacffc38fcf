"""Groups of nodes that will be kernels: what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from minigraph.ir import Node, Shape, Value
from minigraph.ops import Axes, extent, place

from . import refusals
from .refusals import Refusal


class Step:
    """What runs as one: a node by itself, or a group.

    Attributes:
        level: higher than those of all steps whose results it reads.
        limit: the lowest level of those that read its results.
    """

    __slots__ = ("level", "limit")

    def __init__(self, level: float) -> None:
        self.level = level
        self.limit = inf

    def precedes(self, level: float) -> None:
        """Something at this level reads a result."""
        self.limit = min(self.limit, level)


class Group(Step):
    """Nodes that will be one kernel.

    Attributes:
        loop: the extents of the loop axes.
        axes: the loop axes of each value; reduced: those along which the reductions run.
        nodes: the nodes of the body, with the views of inputs and the numbers that it reads.
        late: the values that depend on a reduction.
        inner: the axes of the values that do not vary along all loop axes, reductions left out.
        product: the product of matrices that the kernel begins with, if it does.
        into: the group that this one has become a part of.
    """

    __slots__ = ("axes", "inner", "into", "late", "loop", "nodes", "product", "reduced")

    def __init__(self, level: float, loop: Shape) -> None:
        super().__init__(level)
        self.loop = loop
        self.axes: dict[Value, Axes] = {}
        self.reduced: tuple[int, ...] = ()
        self.nodes: dict[Node, None] = {}
        self.late: set[Value] = set()
        self.inner: set[tuple[int, ...]] = set()
        self.product: Node | None = None
        self.into: Group | None = None

    @property
    def form(self) -> str:
        """The attr of the kernel."""
        if self.product is not None:
            return "epilogue"
        if not self.reduced:
            return "map"
        return "rows" if self.reduced[-1] == len(self.loop) - 1 else "columns"

    @property
    def computing(self) -> Iterator[Node]:
        """The nodes that compute something: no numbers, no views."""
        return (node for node in self.nodes if node.op.name != "const" and not node.op.view)


class Seat(NamedTuple):
    """A group as it would be in given loops."""

    group: Group
    axes: dict[Value, Axes]
    inner: set[tuple[int, ...]]


def clash(seat: Seat, other: Seat) -> Refusal | None:
    """Why two groups cannot be in the same loops; None: they can."""
    reduced = seat.group.reduced or other.group.reduced
    for each in (seat, other):
        if each.group.reduced not in ((), reduced):
            return refusals.OTHER_AXES
        if any(not set(span).isdisjoint(reduced) for span in each.inner):
            return refusals.AGAIN
    few, many = sorted((seat.axes, other.axes), key=len)
    if any(many.get(value, axes) != axes for value, axes in few.items()):
        return refusals.MISFIT
    return None


def root_of(group: Group) -> Group:
    """The group that one has become a part of, or itself."""
    while group.into is not None:
        if group.into.into is not None:
            group.into = group.into.into  # so that the way is short the next time
        group = group.into
    return group


def above(steps: Iterable[Step]) -> float:
    """The lowest level above all of these."""
    return 1 + max((step.level for step in steps), default=0.0)


# ---- loops


def placed_in(node: Node, known: Mapping[Value, Axes], loop: Shape) -> dict[Value, Axes] | None:
    """As `ops.place`, but what is squeezed out must not be a loop axis (of extent 1)."""
    placed = place(node, known, loop)
    if placed is not None and node.op.name == "squeeze":
        before, after = placed[node.inputs[0]], placed[node.output]
        return placed if span(before) == span(after) else None
    return placed


def reduced_axes(node: Node, axes: Mapping[Value, Axes]) -> tuple[int, ...]:
    """The loop axes that a reduction runs along."""
    dims: tuple[int, ...] = node.attrs["axis"]
    return span(tuple(axes[node.inputs[0]][dim] for dim in dims))


def span(axes: Axes) -> tuple[int, ...]:
    """The loop axes along which a value varies."""
    return tuple(axis for axis in axes if axis is not None)


def within(shapes: Iterable[Shape], loop: Shape) -> bool:
    """Whether the loops that these shapes need are (part of) the given ones."""
    return all(shape == loop or extent(shape) < extent(loop) for shape in shapes)
