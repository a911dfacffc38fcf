"""From a graph to segments: each a run of nodes that one compiled function computes.

    def segment(n, m, a0, a1, a2, a3):           n: sizes; m: memory that nothing outlives
        p0 = data(a0)
        p1 = data(a1)                            a0, a1, a2: arrays that are read
        p2 = data(a2)
        p3 = data(a3)                            a3: an array to write, made by the caller
        product_cc(n[0], n[1], n[2], p0, p1, p3)
        kernel0(0, n[3], n[4], p2, p3)

The text holds no size: they come as one array of integers (but under `static_shape`).  Views are no
nodes here: who reads through a view computes where in the buffer the elements lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence, Set
from typing import Any

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, ScalarType, Size, Value
from minigraph.ops import array_type, get, is_float_product

from ..settings import Settings
from ..strided import Strided, c_strides, view, whole
from .kernels import Kernel, write_kernel
from .matrices import Product, write_product
from .writing import Function, Partial, element_dtype

ALIGNMENT = 64
PARALLEL_WORK = 1 << 22
"""Work in simple operations from which threads are worth it.

Their start takes only a fiftieth of that; but where another program has one of the cores, the
kernel waits for it.
"""

BESIDE_BLAS = 4
"""So many times more it must be where BLAS has threads, too: these keep their cores for a while."""

ROW_BYTES = 1 << 20
"""Of a matrix, up to which a row times it is faster in a loop of our own than in BLAS."""

TILED = 1 << 23
"""Multiplications of a product up to which it is so."""

TILED_BYTES = 1 << 22
"""Of the second operand, up to which rows that are known to be many go in tiles."""

TRANSPOSED = 64
"""Rows from which it is worth it to copy a transposed second operand: so many times it is read."""


class Segment:
    """A run of compiled nodes.

    Attributes:
        nodes: in order.
        is_loop: its one node is an `if`, `while` or `scan`.
        text: the source of its function, called `segment`.
        sizes: what its array of integers holds.
        memory_bytes: how much memory it needs besides arrays; 0: it takes none.
        threads: whether it takes the number of threads.
        reads, writes: the values whose arrays it takes, in order; what it both reads and writes
        stands in `writes`.
        numbers: the Python numbers that it takes, each with the name of its dtype.
        results: the Python numbers that it returns.
        constants: the nodes of arrays within it.
        may_fail: whether it may raise OverflowError: then Python is to run its node.
        functions: the kernels that it calls, by name.
        shared: the names of those that threads may share.
        pointers: the value of each local that points to a buffer.
        lines: (line, node) for each line of the text that stands for a node.
    """

    def __init__(self, nodes: Sequence[Node], *, is_loop: bool = False) -> None:
        self.nodes = list(nodes)
        self.is_loop = is_loop
        self.text = ""
        self.sizes: list[Size] = []
        self.memory_bytes: Size = 0
        self.threads = False
        self.reads: list[Value] = []
        self.writes: list[Value] = []
        self.numbers: list[tuple[Value, str]] = []
        self.results: list[Value] = []
        self.constants: list[Node] = []
        self.may_fail = False
        self.functions: dict[str, Function] = {}
        self.shared: set[str] = set()
        self.pointers: dict[str, Value] = {}
        self.lines: list[tuple[int, Node]] = []


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether compiled code can load and store such elements."""
    return dtype.kind in "biu" or dtype.name in ("float32", "float64")


def is_compiled_product(node: Node) -> bool:
    """Whether the node is a product as of `matmul`: of matrices, vectors, or batches of them."""
    if not is_float_product(node):
        return False
    left, right = (array_type(value.type).ndim for value in node.inputs)
    return left + right > 2 and (node.op.name == "matmul" or left == 1 or right <= 2)


def matrix_form(window: Strided) -> str | None:
    """How BLAS can read a window: "C" rows one after the other, "F" columns; None: not at all."""
    dense = c_strides(window.shape)
    if window.strides == dense:
        return "C"
    if len(window.shape) == 2 and window.strides == (1, window.shape[0]):
        return "F"
    return None


def is_transposed(window: Strided) -> bool:
    """Whether it is a matrix of floats whose columns are each in one piece."""
    if len(window.shape) != 2 or window.strides[0] != 1:
        return False
    return array_type(window.buffer.type).dtype in (np.float32, np.float64)


# ---------------------------------------------------------------------------- the text of a segment


def write_segment(
    segment: Segment,
    windows: MutableMapping[Value, Strided],
    outside: Set[Value],
    buffers: MutableMapping[Value, Value],
    settings: Settings,
) -> None:
    """Write the text of a segment.

    Args:
        segment: gets its text and what belongs to it.
        windows: where each value lies.
        outside: the values that have an array in Python.
        buffers: for each value that the segment makes the value whose memory it is written to;
            that value has an array outside, or memory of the segment's own.
        settings: what the user chose.
    """
    SegmentWriter(segment, windows, outside, buffers, settings).write()


class SegmentWriter:
    """The text of a segment being written."""

    def __init__(
        self,
        segment: Segment,
        windows: MutableMapping[Value, Strided],
        outside: Set[Value],
        buffers: MutableMapping[Value, Value],
        settings: Settings,
    ) -> None:
        self.segment = segment
        self.windows = windows
        self.outside = outside
        self.buffers = buffers
        self.written = {buffers.get(value) for node in segment.nodes for value in node.outputs}
        self.settings = settings
        beside_blas = any(map(self._is_large, segment.nodes))
        self.parallel_work = PARALLEL_WORK * (BESIDE_BLAS if beside_blas else 1)
        self.lines: list[tuple[str, Node | None]] = []
        self.pointers: dict[Value, str] = {}
        self.setup: list[str] = []
        self.names: dict[tuple[str, ...], str] = {}  # of a kernel's text and dtypes -> its name

    def write(self) -> None:
        segment = self.segment
        for node in segment.nodes:
            if node.op.name == "kernel":
                self._kernel(node)
            elif node.op.name == "reshape":
                self._copy(node, self.windows[node.inputs[0]], node.output)
            else:
                self._product(node, node.output)
        arrays = [f"a{number}" for number in range(len(segment.reads) + len(segment.writes))]
        names = [*segment.reads, *segment.writes]
        head = [f"    {self.pointers[v]} = data({a})" for v, a in zip(names, arrays, strict=True)]
        parameters = (
            ["n"] * bool(segment.sizes)
            + ["t"] * segment.threads
            + ["m"] * (segment.memory_bytes != 0)
        )
        parameters += [f"c{number}" for number in range(len(segment.numbers))] + arrays
        lines = [*head, *self.setup, *(f"    {text}" for text, _ in self.lines)]
        segment.text = "\n".join([f"def segment({', '.join(parameters)}):", *lines])
        segment.pointers = {name: value for value, name in self.pointers.items()}
        first = 2 + len(head) + len(self.setup)
        segment.lines = [(n, node) for n, (_, node) in enumerate(self.lines, first) if node]

    def _size(self, size: Size) -> str:
        if self.settings.static_shape and isinstance(size, int):
            return str(size)
        self.segment.sizes.append(size)
        return f"n[{len(self.segment.sizes) - 1}]"

    def _line(self, text: str, node: Node) -> None:
        self.lines.append((text, node))

    # ---- memory

    def _pointer(self, value: Value) -> str:
        """The local that points to a buffer."""
        value = self.buffers.get(value, value)
        if value not in self.pointers:
            name = self.pointers[value] = f"p{len(self.pointers)}"
            assert isinstance(value.type, ArrayType), value
            if value not in self.outside:
                dtype = element_dtype(value.type.dtype)
                self.setup.append(f"    {name} = {self._reserve(value.type.size_bytes, dtype)}")
            elif value in self.written:
                self.segment.writes.append(value)
            else:
                self.segment.reads.append(value)
        return self.pointers[value]

    def _reserve(self, size_bytes: Size, dtype: str) -> str:
        """Memory of the segment's own."""
        offset = self.segment.memory_bytes
        self.segment.memory_bytes = offset + (size_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        if size_bytes == 0:  # still a place to point to
            self.segment.memory_bytes = offset + ALIGNMENT
        return f"at_offset(m, {self._size(offset)}, {dtype})"

    # ---- products

    def _is_large(self, node: Node) -> bool:
        """Whether the node is, or may be, a product that BLAS shares among threads."""
        if node.op.name == "kernel":
            body: Graph = node.attrs["body"]
            return any(map(self._is_large, body.nodes))
        if not is_compiled_product(node):
            return False
        left, right = (whole(value) for value in node.inputs)
        parts = Product(left, right, array_type(node.output.type).shape)
        if parts.batch or self._is_tiled(parts, array_type(node.output.type)):
            return False
        count = parts.multiplications
        return not isinstance(count, int) or count > TILED

    def _is_tiled(self, parts: Product, kind: ArrayType) -> bool:
        """Whether a product is large, known to be so, and yet faster in tiles than in BLAS."""
        count, weights = parts.multiplications, parts.inner * parts.columns * kind.dtype.itemsize
        if not isinstance(count, int) or not isinstance(weights, int) or parts.rows == 1:
            return False
        return count > TILED and weights <= TILED_BYTES

    def _product(self, node: Node, place: Value) -> None:
        """A product, to the buffer of `place`; a vector is a matrix of one row or column."""
        left, right = (self.windows[value] for value in node.inputs)
        kind = array_type(node.output.type)
        parts = Product(left, right, kind.shape)
        forms = f"{matrix_form(left)}{matrix_form(right)}".lower()
        known = len(forms) == 2 and len(right.shape) <= 2 and not parts.batch
        rows = parts.rows
        many = isinstance(rows, int) and rows >= TRANSPOSED
        weights = parts.inner * parts.columns * kind.dtype.itemsize
        is_large = isinstance(weights, int) and weights > TILED_BYTES
        is_better_copied = forms == "cf" and many and not is_large
        if known and not self._is_tiled(parts, kind) and not is_better_copied:
            pointers = [self._start(left), self._start(right), self._pointer(place)]
            self._call_product(forms, parts, pointers, node)
            return
        if not parts.has_rows_in_one_piece and (many or not parts.has_pieces_in_both):
            right = self._copied(right, node)
            parts = Product(left, right, kind.shape)
        self._call(node, write_product(node, parts, place), {})

    def _call_product(
        self, forms: str, parts: Product, pointers: Sequence[str], node: Node
    ) -> None:
        """The call of the product of two matrices that lie in known ways."""
        sizes = [self._size(size) for size in (parts.rows, parts.inner, parts.columns)]
        self._line(f"product_{forms}({', '.join([*sizes, *pointers])})", node)

    def _copied(self, window: Strided, node: Node) -> Strided:
        """A window's elements in C order, in memory of the segment's own."""
        kind = ArrayType(array_type(window.buffer.type).dtype, window.shape)
        made = Value(-1, kind)
        self._copy_operand(node, window, made)
        return whole(made)

    def _copy_operand(self, node: Node, window: Strided, place: Value) -> None:
        """`_copy` of what is multiplied: in squares, if its columns are each in one piece."""
        if not is_transposed(window):
            self._copy(node, window, place)
            return
        sizes = [self._size(size) for size in (*window.shape, window.strides[1])]
        pointers = [self._start(window), self._pointer(place)]
        self._line(f"transpose({', '.join([*sizes, *pointers])})", node)

    def _copy(self, node: Node, window: Strided, place: Value) -> None:
        """Write a window's elements in C order to the buffer of `place`."""
        dtype = array_type(window.buffer.type).dtype
        read, made = (Value(number, ArrayType(dtype, window.shape)) for number in (0, 1))
        copy = Node(2, get("copy"), [read], {}, [made], node.loc, (node,))
        body = Graph("body", [read], [copy], [made])
        kernel = write_kernel(body, {read: window}, {}, self.settings)
        self._call(node, kernel, {made: place})

    def _start(self, window: Strided) -> str:
        """The address of a window's first element."""
        pointer = self._pointer(window.buffer)
        return pointer if window.offset == 0 else f"moved({pointer}, {self._size(window.offset)})"

    # ---- kernels

    def _kernel(self, node: Node) -> None:
        body: Graph = node.attrs["body"]
        outer = dict(zip(body.inputs, node.inputs, strict=True))
        outputs = dict(zip(body.outputs, node.outputs, strict=True))
        inner_of = {value: inner for inner, value in outputs.items()}
        if node.attrs["form"] == "epilogue":
            body, outer = self._before_epilogue(node, body, outer, outputs)
        windows: dict[Value, Strided] = {}
        over: dict[Value, Value] = {}
        for inner, value in outer.items():
            window = self.windows.get(value)
            if isinstance(value.type, ScalarType) or window is None:
                continue
            windows[inner] = window
            for made in node.outputs:
                if self._same_memory(window.buffer, made):
                    over[window.buffer] = inner_of[made]
        kernel = write_kernel(body, windows, over, self.settings)
        self._call(node, kernel, {**outer, **outputs})

    def _before_epilogue(
        self, node: Node, body: Graph, outer: dict[Value, Value], outputs: Mapping[Value, Value]
    ) -> tuple[Graph, dict[Value, Value]]:
        """Call BLAS; what is left of the body reads the product as an input."""
        position, product_ = next(
            (position, inner)
            for position, inner in enumerate(body.nodes)
            if is_compiled_product(inner)
        )
        place = next(
            value for inner, value in outputs.items() if inner.type == product_.output.type
        )
        views = dict(outer)
        for inner in body.nodes[:position]:
            self._follow_view(inner, views)
        operands = [views[value] for value in product_.inputs]
        rest = [inner for inner in body.nodes if inner is not product_]
        read = {value for inner in rest for value in inner.inputs}
        kept = [value for value in body.inputs if value in read]
        if any(self._same_memory(self._buffer(outer[value]), place) for value in kept):
            place = product_.output  # what it would be written over is read after it
        call = Node(product_.id, product_.op, operands, {}, [place], node.loc, (node,))
        self._product(call, place)
        inputs = [product_.output, *kept]
        self.windows[product_.output] = whole(place)
        left = {value: outer.get(value, value) for value in inputs}
        return Graph(body.name, inputs, rest, body.outputs), left

    def _buffer(self, value: Value) -> Value:
        """The value in whose memory an array lies."""
        window = self.windows.get(value)
        return value if window is None else window.buffer

    def _follow_view(self, inner: Node, views: dict[Value, Value]) -> None:
        if not inner.op.view:
            return
        base = views.get(inner.inputs[0])
        window = None if base is None else view(inner, self.windows[base])
        if window is not None:
            self.windows[inner.output] = window
            views[inner.output] = inner.output

    def _same_memory(self, a: Value, b: Value) -> bool:
        return self.buffers.get(a, a) is self.buffers.get(b, b)

    def _call(self, node: Node, kernel: Kernel, outer: Mapping[Value, Value]) -> None:
        partials = {
            buffer: self._reserve(kernel.iterations * 8, dtype)
            for buffer, dtype in kernel.main.pointers
            if isinstance(buffer, Partial)
        }
        for number, (partial, text) in enumerate(partials.items()):
            name = f"r{len(self.setup)}_{number}"
            self.setup.append(f"    {name} = {text}")
            partials[partial] = name
        first, iterations = self._span(kernel)
        arguments = self._arguments(kernel.main, outer, partials)
        name = self._name(kernel.main)
        call = f"{name}({', '.join([first, iterations, *arguments])})"
        threads = self._threads(kernel.work)
        if threads:
            self.segment.threads = True
            self.segment.shared.add(name)
            self._line(f"if {threads}:", node)
            self._line(f"    shared_{name}(t, {', '.join([iterations, *arguments])})", node)
            self._line("else:", node)
            call = "    " + call
        self._line(call, node)
        if kernel.finish is not None:
            arguments = self._arguments(kernel.finish, outer, partials)
            name = self._name(kernel.finish)
            self._line(f"{name}(0, {', '.join([iterations, *arguments])})", node)

    def _span(self, kernel: Kernel) -> tuple[str, str]:
        """Where the outermost loop of a kernel begins and ends."""
        return "0", self._size(kernel.iterations)

    def _threads(self, work: Size) -> str:
        """The condition under which threads share a kernel; "": never."""
        if self.settings.threads == 1:
            return ""
        if isinstance(work, int):
            return "t > 1" if work >= self.parallel_work else ""
        return f"t > 1 and {self._size(work)} >= {self.parallel_work}"

    def _arguments(
        self, function: Function, outer: Mapping[Value, Value], partials: Mapping[Partial, str]
    ) -> Iterable[str]:
        numbers = [
            self._number(outer.get(value, value), dtype) for value, dtype in function.scalars
        ]
        pointers = [
            partials[buffer]
            if isinstance(buffer, Partial)
            else self._pointer(outer.get(buffer, buffer))
            for buffer, _ in function.pointers
        ]
        return [*map(self._size, function.sizes), *numbers, *pointers]

    def _number(self, value: Value, dtype: str) -> str:
        if (value, dtype) not in self.segment.numbers:
            self.segment.numbers.append((value, dtype))
        return f"c{self.segment.numbers.index((value, dtype))}"

    def _name(self, function: Function) -> str:
        """The name of a kernel; equal ones have one."""
        name = self.names.get(function.key)
        if name is None:
            name = self.names[function.key] = f"kernel{len(self.names)}"
            self.segment.functions[name] = function
        return name
