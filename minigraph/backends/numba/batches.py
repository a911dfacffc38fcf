"""Scans whose rows have nothing to do with each other: threads share the rows, not the steps.

    %h, %hs = scan %h0, %xs, %w          h: f32[batch,8], a row of xs: f32[batch,16]
      %p = matmul %h, %w                 row i of p is made of row i of h, and of all of w
      %t = tanh %p                       row i of row i
      return (%t, %t)

A thread goes through all steps with its rows, and waits for nobody in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from minigraph.ir import ArrayType, Graph, Node, Value
from minigraph.ops import array_type, expand

from ..strided import whole
from .matrices import MULTIPLICATIONS, Product
from .segments import is_compiled_product
from .space import Space
from .statements import is_about_numbers


class Rows(NamedTuple):
    """How many rows there are, and the work of all steps in simple operations."""

    count: int
    work: int


def independent_rows(node: Node) -> Rows | None:
    """The rows of a scan, each of which can be computed by itself; None: they cannot."""
    if node.op.name != "scan" or not isinstance(node.attrs["length"], int):
        return None
    body: Graph = node.attrs["body"]
    carried: int = node.attrs["carried"]
    scanned: int = node.attrs["scanned"]
    first = body.inputs[0].shape[:1] if carried else ()
    if not first or not isinstance(first[0], int):
        return None
    search = _Search(first[0])
    if not search.have_rows(body.inputs[:carried]):
        return None
    search.rows.update(body.inputs[:carried])
    search.rows.update(v for v in body.inputs[carried : carried + scanned] if search.have_rows([v]))
    if not all(map(search.follow, body.nodes)) or not search.rows.issuperset(body.outputs):
        return None
    return Rows(search.count, search.work * node.attrs["length"])


class _Search:
    """What is known so far.

    Attributes:
        count: how many rows there are.
        rows: the values each of whose rows depends on that row of others only.
        work: of one step.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.rows: set[Value] = set()
        self.work = 0

    def have_rows(self, values: Iterable[Value]) -> bool:
        return all(isinstance(v.type, ArrayType) and v.shape[:1] == (self.count,) for v in values)

    def follow(self, node: Node) -> bool:
        """Whether the node keeps rows apart, or has nothing to do with them and writes nothing."""
        if not self.rows.intersection(node.inputs):
            return node.op.view or _is_about_numbers(node)
        if node.op.view:
            kept = keeps_rows(node)
        elif node.op.name == "kernel":
            kept = self._follow_kernel(node)
        else:
            kept = is_compiled_product(node) and self._follow_product(node, self.rows)
        self.rows.update(node.outputs)
        return kept and self.have_rows(node.outputs)

    def _follow_product(self, node: Node, rows: Set[Value]) -> bool:
        left, right = node.inputs
        shape = array_type(node.output.type).shape
        parts = Product(whole(left), whole(right), shape)
        count = parts.multiplications
        if left not in rows or right in rows or parts.batch or parts.rows != self.count:
            return False
        self.work += count // MULTIPLICATIONS if isinstance(count, int) else 0
        return isinstance(count, int)

    def _follow_kernel(self, node: Node) -> bool:
        body: Graph = node.attrs["body"]
        pairs = zip(body.inputs, node.inputs, strict=True)
        inside = {inner for inner, value in pairs if value in self.rows}
        steps = list(body.nodes)
        inputs = list(body.inputs)
        for step in body.nodes:
            if is_compiled_product(step):
                if not self._follow_product(step, inside):
                    return False
                steps.remove(step)
                inputs.append(step.output)
                inside.add(step.output)
            elif step.op.view and inside.intersection(step.inputs):
                if not keeps_rows(step):
                    return False
                inside.add(step.output)
        if node.attrs["form"] == "columns":
            return False
        space = Space(Graph(body.name, inputs, steps, body.outputs), {})
        work = space.work
        if space.shape[:1] != (self.count,) or 0 in space.reduced or not isinstance(work, int):
            return False
        self.work += work
        placed = [*(value for value in inside if value in space.axes), *body.outputs]
        return all(space.axes[value][:1] == (0,) for value in placed)


def _is_about_numbers(node: Node) -> bool:
    """Whether each thread may as well compute a node for itself."""
    if node.op.name == "kernel":
        return is_about_numbers(node.attrs["body"])
    plain = node.op.name == "const" or node.op.kind == "elementwise"
    return plain and not any(value.shape for value in node.outputs)


def keeps_rows(node: Node) -> bool:
    """Whether a view shows in each row parts of the same row."""
    if node.op.name != "slice":
        return False
    index = expand(node.attrs["index"], node.inputs[0].shape)
    return index[0] == slice(None)
