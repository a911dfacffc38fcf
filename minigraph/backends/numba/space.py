"""The loops of a kernel: its loop axes, what runs along them, and what is ready when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from minigraph.ir import ArrayType, Graph, Node, ScalarType, Size, Value, product
from minigraph.ops import TRANSCENDENTAL, Axes, largest, place, scalar_text

from ..strided import Strided, view, whole

NO_TARGETS: Mapping[Value, Strided] = MappingProxyType({})
COSTLY = 8  # what a transcendental function costs, in simple operations


class Loop:
    """Neighbouring loop axes run through as one.

    Attributes:
        axes: the loop axes, in order; extent: the product of theirs.
    """

    __slots__ = ("axes", "extent")

    def __init__(self, axis: int, extent: Size) -> None:
        self.axes = [axis]
        self.extent = extent


class Space:
    """The loop space of a body.

    Attributes:
        body: the region of a `kernel` node.
        nodes: those that compute something; constants: the numbers; windows: the inputs and the
        views of inputs, each a window on a buffer.
        targets: where outputs go that have no buffer of their own.
        shape: the extents of the loop axes; reduced: the axes that the reductions run along.
        axes: the loop axes of each value.
        level: how many loops over the reduced axes come before a value can be computed.
    """

    def __init__(
        self,
        body: Graph,
        windows: Mapping[Value, Strided],
        targets: Mapping[Value, Strided] = NO_TARGETS,
    ) -> None:
        self.body = body
        self.targets = targets
        self.windows: dict[Value, Strided] = {
            value: windows.get(value) or whole(value) for value in body.inputs
        }
        self.constants: dict[Value, Any] = {}
        self.nodes: list[Node] = []
        for node in body.nodes:
            base = self.windows.get(node.inputs[0]) if node.op.view and node.inputs else None
            if node.op.name == "const":
                self.constants[node.output] = node.attrs["value"]
            elif base is not None:
                window = view(node, base)
                assert window is not None, f"{node} cannot be read by index arithmetic"
                self.windows[node.output] = window
            else:
                self.nodes.append(node)
        self.shape = loop_shape(self.nodes)
        self.axes: dict[Value, Axes] = {}
        for node in self.nodes:
            placed = place(node, self.axes, self.shape)
            assert placed is not None, f"{node} does not fit loops over {self.shape}"
            self.axes.update(placed)
        self.reductions = [node for node in self.nodes if node.op.kind == "reduce"]
        self.reduced: tuple[int, ...] = self._reduced()
        self.level = self._levels()

    def _reduced(self) -> tuple[int, ...]:
        found = {
            self.axes[node.inputs[0]][dim] for node in self.reductions for dim in node.attrs["axis"]
        }
        return tuple(sorted(axis for axis in found if axis is not None))

    def _levels(self) -> dict[Value, int]:
        level: dict[Value, int] = {}
        for node in self.nodes:
            after = max((level.get(value, 0) for value in node.inputs), default=0)
            level[node.output] = after + (node.op.kind == "reduce")
        return level

    def varies(self, value: Value) -> bool:
        """Whether the value is another one at each step along the reduced axes."""
        return any(axis in self.reduced for axis in self.axes.get(value, ()))

    def is_costly(self, node: Node) -> bool:
        """Whether a node computes a transcendental function."""
        exact = scalar_text(node, self.constants, exact=True)
        return node.op.name in TRANSCENDENTAL and exact is None

    @property
    def passes(self) -> int:
        """How many loops over the reduced axes there are, one after the other."""
        return 1 + max([self.level[value] for value in self.body.outputs], default=0)

    def is_across(self, outer: int, inner: int) -> bool:
        """Whether the elements of some buffer lie side by side along the outer of two axes."""
        for value, window in self.in_memory():
            step = self.steps(value, window)
            if step[outer] == 1 and step[inner] not in (0, 1):
                return True
        return False

    @property
    def others(self) -> list[int]:
        """The axes that are not reduced, in order; the last one has more than one step if any."""
        axes = [axis for axis in range(len(self.shape)) if axis not in self.reduced]
        wide = (number for number, axis in enumerate(axes, 1) if self.shape[axis] != 1)
        last = max(wide, default=len(axes))
        return axes[last:] + axes[:last]

    @property
    def work(self) -> Size:
        """The cost of it all, in simple operations on one element."""
        cost = sum(COSTLY if self.is_costly(node) else 1 for node in self.nodes)
        return product(self.shape) * (cost + len(self.body.inputs) + len(self.body.outputs))

    def between(self, level: int) -> list[Value]:
        """What does not vary along the reduced axes and can be had after `level` loops."""
        return [
            node.output
            for node in self.nodes
            if node.op.kind != "reduce"
            and self.level[node.output] == level
            and not self.varies(node.output)
        ]

    def reduced_at(self, level: int) -> list[Node]:
        """The reductions of what can be had in loop `level`."""
        return [node for node in self.reductions if self.level.get(node.inputs[0], 0) == level]

    def stored_at(self, level: int) -> list[Value]:
        """The outputs that loop `level` writes."""
        outputs = self.body.outputs
        return [value for value in outputs if self.varies(value) and self.level[value] == level]

    def in_memory(self) -> Iterator[tuple[Value, Strided]]:
        """The values that are loaded or stored, each with its window; numbers are not."""
        read = {value for node in self.nodes for value in node.inputs}
        for value, window in self.windows.items():
            if value in read and not isinstance(window.buffer.type, ScalarType):
                yield value, window
        for value in self.body.outputs:
            yield value, self._target(value)

    def _target(self, value: Value) -> Strided:
        """Where an output goes."""
        return self.targets.get(value) or whole(value)

    def steps_to(self, value: Value) -> list[Size]:
        """The same of an output as `steps`."""
        return self.steps(value, self._target(value))

    def is_dense_along(self, axis: int) -> bool:
        """Whether steps along this loop axis are steps to the next element in memory, or none."""
        steps = [self.steps(value, window)[axis] for value, window in self.in_memory()]
        return all(step == 0 or step == 1 for step in steps)

    def steps(self, value: Value, window: Strided) -> list[Size]:
        """How far apart in memory a step along each loop axis leads."""
        found: list[Size] = [0] * len(self.shape)
        for stride, axis in zip(window.strides, self.axes[value], strict=True):
            if axis is not None:
                found[axis] = stride
        return found

    def loops(self, axes: Iterable[int]) -> list[Loop]:
        """These axes as loops: neighbours as one where every buffer goes through them evenly."""
        steps = [self.steps(value, window) for value, window in self.in_memory()]
        loops: list[Loop] = []
        for axis in axes:
            before = axis - 1
            if (
                loops
                and loops[-1].axes[-1] == before
                and all(step[before] == step[axis] * self.shape[axis] for step in steps)
            ):
                loops[-1].axes.append(axis)
                loops[-1].extent = loops[-1].extent * self.shape[axis]
            else:
                loops.append(Loop(axis, self.shape[axis]))
        return loops


def loop_shape(nodes: Iterable[Node]) -> tuple[Size, ...]:
    """The extents of the loops that compute these nodes: those of the largest value in them."""
    shapes = [
        value.type.shape
        for node in nodes
        for value in (*node.inputs, *node.outputs)
        if isinstance(value.type, ArrayType)
    ]
    return largest(shapes)


def sequence(loops: Sequence[Loop]) -> Size:
    """How many steps these loops have together."""
    return product(loop.extent for loop in loops)
