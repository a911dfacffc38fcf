"""Products of matrices as loops: over the matrices of a batch, or over the rows of a large one.

    def kernel(lo, hi, n0, n1, n2, n3, v0, v1, v2):
        for i in range(lo, hi):
            in_tiles(n0, n1, n2, n1, 1, moved(v0, n3 * i), n2, moved(v1, ...), moved(v2, ...))

Threads share the outermost loop as they do that of any kernel, and no library has threads of its
own that would be in their way.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from minigraph.ir import Node, Shape, Size, Value, product

from ..strided import Strided
from .writing import Buffer, Function, Kernel, dtype_of, element_dtype

MULTIPLICATIONS = 4
"""So many are done in the time of a simple operation on one element."""


class Matrices:
    """An operand of a product: matrices along the axes of a batch.

    Attributes:
        window: where the elements lie.
        batch: the steps along the axes of the batch; 0: the same matrix again.
        row, column: the steps from one row, and from one column, to the next.
    """

    __slots__ = ("batch", "column", "row", "window")

    def __init__(self, window: Strided, batch: Sequence[Size], row: Size, column: Size) -> None:
        self.window = window
        self.batch = list(batch)
        self.row = row
        self.column = column


class Product:
    """A product of two arrays as `numpy.matmul` defines it, in terms of matrices.

    A vector is a matrix of one row or column.

    Attributes:
        batch: the extents of the batch's axes, none where all rows meet the same matrix.
        rows, inner, columns: the extents of each product.
        left, right: the operands.
    """

    def __init__(self, left: Strided, right: Strided, shape: Shape) -> None:
        axes = len(shape) - (len(left.shape) > 1) - (len(right.shape) > 1)
        self.batch = list(shape[:axes])
        *_, self.rows, self.inner = (1, *left.shape)
        self.columns: Size = right.shape[-1] if len(right.shape) > 1 else 1
        row = left.strides[-2] if len(left.shape) > 1 else 0
        self.left = Matrices(left, self._steps(left), row, left.strides[-1])
        if len(right.shape) > 1:
            self.right = Matrices(right, self._steps(right), *right.strides[-2:])
        else:
            self.right = Matrices(right, self._steps(right), right.strides[-1], 0)
        self._merge_rows()

    def _steps(self, window: Strided) -> list[Size]:
        own = [
            0 if size == 1 else step
            for size, step in zip(window.shape[:-2], window.strides[:-2], strict=True)
        ]
        return [0] * (len(self.batch) - len(own)) + own

    def _merge_rows(self) -> None:
        """Make one matrix of all rows that meet the same one, where they follow each other."""
        steps = [*zip(self.batch, self.left.batch, strict=True), (self.rows, self.left.row)]
        wide = [(size, step) for size, step in steps if size != 1]
        chained = all(step == size * inner for (_, step), (size, inner) in pairwise(wide))
        if self.batch and chained and all(step == 0 for step in self.right.batch):
            self.rows = product([*self.batch, self.rows])
            self.left.row = wide[-1][1] if wide else 0
            self.left.batch, self.right.batch, self.batch = [], [], []

    @property
    def multiplications(self) -> Size:
        return product([*self.batch, self.rows, self.inner, self.columns])

    @property
    def has_rows_in_one_piece(self) -> bool:
        """Whether the columns of the second operand lie side by side."""
        return self.columns == 1 or self.right.column == 1

    @property
    def has_pieces_in_both(self) -> bool:
        """Whether what is multiplied lies side by side in both operands."""
        return self.inner == 1 or (self.left.column == 1 and self.right.row == 1)


def write_product(node: Node, parts: Product, place: Value) -> Kernel:
    """The function that computes a product, to the buffer of `place`."""
    text = _Text()
    rows, inner, columns = (text.size(n) for n in (parts.rows, parts.inner, parts.columns))
    left, right = parts.left, parts.right
    if parts.batch:
        text.lines.append(("    for i in range(lo, hi):", None))
        places = text.places(parts.batch)
        first = [text.start(each.window, each.batch, places) for each in (left, right)]
        result = f"moved({text.pointer(place)}, i * {rows} * {columns})"
    else:
        rows = "hi - lo"
        first = [text.start(left.window, [left.row], ["lo"]), text.start(right.window, [], [])]
        result = f"moved({text.pointer(place)}, lo * {columns})"
    if parts.has_rows_in_one_piece:
        steps = [text.size(left.row), text.size(left.column)]
        call, step = "in_tiles", text.size(right.row)
    else:
        steps = [text.size(left.row)]
        call, step = "rows_times_rows", text.size(right.column)
    arguments = ", ".join([rows, inner, columns, *steps, first[0], step, first[1], result])
    text.lines.append((f"    {'    ' if parts.batch else ''}{call}({arguments})", node))
    iterations = product(parts.batch) if parts.batch else parts.rows
    count = parts.multiplications
    return Kernel(
        Function(text), iterations, count // MULTIPLICATIONS if isinstance(count, int) else count
    )


class _Text:
    """The function being written."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Node | None]] = []
        self.sizes: dict[str, Size] = {}
        self.scalars: dict[tuple[Value, str], str] = {}
        self.pointers: dict[Buffer, tuple[str, str]] = {}
        self.names: dict[Value, str] = {}

    def size(self, size: Size) -> str:
        """A parameter that holds a size: one for each, so that no size is in the text."""
        name = f"n{len(self.sizes)}"
        self.sizes[name] = size
        return name

    def pointer(self, value: Value) -> str:
        if value not in self.pointers:
            self.pointers[value] = (f"v{len(self.pointers)}", element_dtype(dtype_of(value)))
        return self.pointers[value][0]

    def places(self, batch: Sequence[Size]) -> list[str]:
        """The lines that find the place along each axis of the batch, and its names there."""
        names: list[str] = []
        index = "i"
        for number, size in reversed(list(enumerate(batch[1:], 1))):
            names.append(f"b{number}")
            extent = self.size(size)
            self.lines.append((f"        b{number} = {index} % {extent}", None))
            self.lines.append((f"        b = {index} // {extent}", None))
            index = "b"
        return [index, *reversed(names)]

    def start(self, window: Strided, steps: Sequence[Size], places: Sequence[str]) -> str:
        """The address of the first element of a matrix."""
        terms = [
            f"{place} * {self.size(step)}"
            for step, place in zip(steps, places, strict=True)
            if step != 0
        ]
        if window.offset != 0:
            terms.append(self.size(window.offset))
        pointer = self.pointer(window.buffer)
        return f"moved({pointer}, {' + '.join(terms)})" if terms else pointer
