"""Sums over the turns of a loop that are better taken after it.

The gradient of a matrix that a loop multiplies with is a product in each turn,

    %sum.1 = add %sum, (matmul (transpose %x) %g)

which reads and writes a whole matrix to add a few outer products.  Stacked, the rows of all turns
make one product: with `%xs` and `%gs` of all turns as matrices, `matmul (transpose %xs) %gs`.  That
is done where what has to be stacked for it is smaller than what would be read and written, the sum.
A sum over some axes of what is stacked in any case is taken after the loop, too.

The order in which numbers are added is another one than that of the turns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from minigraph.ir import Graph, Node, Shape, Size, Value, product

from .partition import size_bytes
from .regions import Scope

Arrays = Mapping[Value, Value]
"""Outside of the loop: the array of what a value in the loop is in each turn."""


class Total(NamedTuple):
    """What is computed after a loop.

    Attributes:
        needs: values in the loop that are stacked for it.
        finish: computes it from the stacked arrays.
    """

    needs: tuple[Value, ...]
    finish: Callable[[Arrays], Value]


class Totals:
    """The sums over all turns of some values, where they are taken after the loop.

    Args:
        scope: where they are recorded.
        graph: what a turn computes.
        length: how many turns there are.
        known: values of which all turns are there.
    """

    def __init__(self, scope: Scope, graph: Graph, length: Size, known: Collection[Value]) -> None:
        self.scope = scope
        self.length = length
        self.known = set(known)
        self.stacked: dict[Value, None] = {}
        self._producer = graph.producers()

    def choose(self, values: Iterable[Value]) -> dict[Value, Total]:
        """Those of the values whose sum is taken after the loop; what that needs is `stacked`."""
        found: dict[Value, Total] = {}
        rest: list[Value] = []
        for value in values:
            total = self._products(value)
            new = {} if total is None else dict.fromkeys(total.needs)
            cost = sum(size_bytes(each) for each in new if each not in self.known)
            if total is None or cost > 2 * size_bytes(value):
                rest.append(value)
                continue
            found[value] = total
            self.stacked.update((each, None) for each in new if each not in self.known)
            self.known.update(new)
        for value in rest:
            total = self._summed(value)
            if total is not None:
                found[value] = total
        return found

    def _products(self, value: Value) -> Total | None:
        """The sum of products of matrices."""
        node = self._producer.get(value)
        if node is None:
            return None
        name, op = node.op.name, self.scope.op
        if name in ("transpose", "reshape"):
            inner = self._products(node.inputs[0])
            return inner and Total(
                inner.needs, lambda arrays: op(name, inner.finish(arrays), **node.attrs)
            )
        if name == "add":
            one, other = (self._products(each) for each in node.inputs)
            return (
                one
                and other
                and Total(
                    one.needs + other.needs,
                    lambda arrays: op(name, one.finish(arrays), other.finish(arrays)),
                )
            )
        if not _is_product(node):
            return None
        left, right = node.inputs
        columns, rows = self._columns(left), self._rows(right)
        return Total(
            columns.needs + rows.needs,
            lambda arrays: op("matmul", columns.finish(arrays), rows.finish(arrays)),
        )

    def _rows(self, matrix: Value) -> Total:
        """The matrices of all turns, one below the other."""
        *count, width = matrix.shape
        return self._reshaped(self._array(matrix), (self.length * product(count), width))

    def _columns(self, matrix: Value) -> Total:
        """The matrices of all turns, side by side."""
        op, node = self.scope.op, self._producer.get(matrix)
        height, count = matrix.shape
        rows = None
        if count == 1:
            rows = self._reshaped(self._array(matrix), (self.length, height))
        elif node is not None and node.op.name == "transpose":
            rows = self._rows(node.inputs[0])
        if rows is not None:
            return Total(
                rows.needs, lambda arrays: op("transpose", rows.finish(arrays), axes=(1, 0))
            )
        inner = self._array(matrix)
        beside = Total(
            inner.needs, lambda arrays: op("transpose", inner.finish(arrays), axes=(1, 0, 2))
        )
        return self._reshaped(beside, (height, self.length * count))

    def _array(self, value: Value) -> Total:
        """The array of all turns; of what has other axes only, from the array of what it shows."""
        node = self._producer.get(value)
        if value not in self.known and node is not None and node.op.name in _OTHER_AXES:
            inner = self._array(node.inputs[0])
            return self._reshaped(inner, (self.length, *value.shape))
        return Total((value,), lambda arrays: arrays[value])

    def _reshaped(self, total: Total, shape: Shape) -> Total:
        def finish(arrays: Arrays) -> Value:
            found = total.finish(arrays)
            return found if found.shape == shape else self.scope.op("reshape", found, shape=shape)

        return Total(total.needs, finish)

    def _summed(self, value: Value) -> Total | None:
        """The sum of what is there of all turns, over some of its axes."""
        node, axes = self._producer.get(value), tuple[int, ...]()
        whole = value
        if value not in self.known and node is not None and node.op.name == "sum":
            (whole, *_), axes = node.inputs, node.attrs["axis"]
            if not node.attrs.keys() <= {"axis", "keepdims"}:
                return None
        if whole not in self.known:
            return None
        over = (0, *(axis + 1 for axis in axes))
        total = Total((whole,), lambda arrays: self.scope.op("sum", arrays[whole], axis=over))
        return self._reshaped(total, value.shape)


_OTHER_AXES = ("reshape", "expand_dims", "squeeze")


def _is_product(node: Node) -> bool:
    """A product of two matrices; of a column and a row also where it is not called one."""
    shapes = [value.shape for value in node.inputs]
    if node.op.name == "matmul":
        return all(len(shape) == 2 for shape in shapes)
    if node.op.name != "multiply" or node.attrs:
        return False
    left, right = shapes
    return len(left) == 2 and left[1] == 1 and len(right) > 0 and right[:-1] in ((), (1,))
