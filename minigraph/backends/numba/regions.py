"""What compiled loops do with the nodes of a region: each op in its form, kernels, products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from minigraph.ir import INT, ArrayType, Graph, Node, Value
from minigraph.ops import array_type, get, is_float_product, loop_dtypes, scalar_text

from ..strided import Strided, c_strides
from .frames import Frame, Place
from .intervals import SIZE
from .matrices import Product
from .parts import FILLED, Parts
from .segments import TRANSPOSED, is_compiled_product, matrix_form
from .statements import CannotCompile, is_about_numbers

PACKED = 8
"""Rows from which a product is faster if the second operand is not transposed."""


class Regions(Parts):
    """Writes the nodes of a region, but for branches and loops within it."""

    # ---- regions and names

    def region(
        self,
        graph: Graph,
        owned: set[Value],
        wanted: Mapping[Value, Place],
        names: Mapping[Value, Value],
    ) -> None:
        """Write the nodes of a region.

        Args:
            graph: the region.
            owned: the memory that it may write over.
            wanted: where its results should lie.
            names: inputs that are other names of values outside; the others are defined already.
        """
        outer = self.frame
        self.frame = Frame(graph, owned, wanted)
        for inner in graph.inputs:
            if inner in names:
                self.alias(inner, names[inner])
            elif not self.is_number(inner):
                self.define(inner, self.windows[inner])
        for position, node in enumerate(graph.nodes):
            self.frame.position = position
            self.write_node(node)
        self.frame = outer

    def inlined(self, graph: Graph, operands: Sequence[Value], node: Node) -> None:
        """A region that means what the node does, in its place."""
        self.region(graph, set(), {}, dict(zip(graph.inputs, operands, strict=True)))
        for outer, inner in zip(node.outputs, graph.outputs, strict=False):
            self.alias(outer, inner)

    def alias(self, name: Value, value: Value) -> None:
        """Another name of a value."""
        if not self.is_number(value):
            self.define(name, self.windows[value])
            return
        self.bind(name, "" if value in self.numbers else self.read(value))
        if value in self.numbers:
            self.numbers[name] = self.numbers[value]
        if value in self.bounds:
            self.bounds[name] = self.bounds[value]

    # ---- nodes

    def write_node(self, node: Node) -> None:
        """The lines of one node.

        Raises:
            CannotCompile: there are none.
        """
        for value in node.outputs:
            self.check_type(value, node)
        form = FORMS.get(node.op.name)
        if form is not None:
            form(self, node)
        elif node.op.view:
            self.show_view(node)
        elif is_compiled_product(node):
            self.make(node.output)
            self._product(node, node.output)
            self.made(node.output, node)
        elif is_float_product(node) and len(node.inputs[0].shape) == 1 == len(node.inputs[1].shape):
            self.dot(node)
        elif node.op.kind == "elementwise":
            is_number = all(map(self.is_number, (*node.inputs, *node.outputs)))
            (self.compute if is_number else self._single)(node)
        else:
            what = {"print": "prints", "random": "draws random numbers"}.get(node.op.effect or "")
            raise CannotCompile(node, f"it {what}" if what else f"`{node.op.name}` is not compiled")

    def call_node(self, node: Node) -> None:
        self.inlined(node.attrs["body"], node.inputs, node)

    def size_node(self, node: Node) -> None:
        size = array_type(node.inputs[0].type).shape[node.attrs["axis"]]
        self.bounds[node.output] = SIZE
        self.texts[node.output] = self._size(size)

    def item(self, node: Node) -> None:
        self.texts[node.output] = self.assign(f"float64({self.read(node.inputs[0])})", node)

    def barrier(self, node: Node) -> None:
        self.alias(node.output, node.inputs[0])

    def write_effect(self, node: Node) -> None:
        """Nothing: the loop's results are written to the argument once it has ended."""

    def constant(self, node: Node) -> None:
        """A number, or an array that the program keeps."""
        if self.is_number(node.output):
            self.numbers[node.output] = node.attrs["value"]
        else:
            self.arguments.add(node.output)
            self.segment.constants.append(node)
            kind = array_type(node.output.type)
            self.define(node.output, Strided(node.output, kind.shape, c_strides(kind.shape), 0))

    def check(self, node: Node) -> None:
        condition = node.inputs[0]
        kind = array_type(condition.type)
        if kind.ndim:
            window = self.windows[condition]
            pointer = self._pointer(window.buffer)
            text = self.load(pointer, self._size(window.offset), ArrayType(kind.dtype, ()))
        else:
            text = self.read(condition)
        self._line(f"fail_unless({text if kind.dtype.kind == 'b' else f'{text} != 0'})", node)

    def dot(self, node: Node) -> None:
        """The product of two vectors, which needs no matrices."""
        left, right = (self._window(value) for value in node.inputs)
        if not left.strides == right.strides == (1,):
            raise CannotCompile(node, "the product of strided vectors is not compiled")
        self.make(node.output)
        pointers = [self._start(left), self._start(right), self._pointer(node.output)]
        size = self._size(left.shape[0])
        self._line(f"product_cf(1, {size}, 1, {', '.join(pointers)})", node)
        self.made(node.output, node)

    # ---- kernels and products

    def _product(self, node: Node, place: Value) -> None:
        """A product; a transposed operand that is the same at each turn is copied once before."""
        left, right = node.inputs
        window = self.windows[right]
        rows = Product(self.windows[left], window, array_type(node.output.type).shape).rows
        many = isinstance(rows, int) and rows >= PACKED and rows * self.turns >= TRANSPOSED
        if many and window.buffer in self.arguments and self.depth and matrix_form(window) == "F":
            inputs = [left, self._packed(window, node)]
            node = Node(node.id, node.op, inputs, node.attrs, node.outputs, node.loc, (node,))
        super()._product(node, place)

    def _call_product(
        self, forms: str, parts: Product, pointers: Sequence[str], node: Node
    ) -> None:
        if not self.rows:
            super()._call_product(forms, parts, pointers, node)
            return
        inner, columns = self._size(parts.inner), self._size(parts.columns)
        left, right, place = pointers
        left, place = f"moved({left}, lo * {inner})", f"moved({place}, lo * {columns})"
        sizes = ["hi - lo", inner, columns]
        self._line(f"product_{forms}({', '.join([*sizes, left, right, place])})", node)

    def _copied(self, window: Strided, node: Node) -> Strided:
        """The same of what is another at each turn, which threads that share rows cannot share."""
        if self.rows:
            raise CannotCompile(node, "each thread would need a copy of the second operand")
        return super()._copied(window, node)

    def _packed(self, window: Strided, node: Node) -> Value:
        """A window's elements in C order, copied before everything else."""
        key = (window.buffer, window.strides, window.offset)
        if key not in self.packed:
            dtype = array_type(window.buffer.type).dtype
            made = self.packed[key] = Value(-1, ArrayType(dtype, window.shape))
            self.windows[made] = Strided(made, window.shape, c_strides(window.shape), 0)
            before = self.lines, self.depth, self.rows
            self.lines, self.depth, self.rows = self.first_lines, 0, 0
            self._copy_operand(node, window, made)
            self.lines, self.depth, self.rows = before
        return self.packed[key]

    def any_kernel(self, node: Node) -> None:
        body: Graph = node.attrs["body"]
        if is_about_numbers(body):
            self.inlined(body, node.inputs, node)
            return
        for value in (*node.inputs, *node.outputs):
            self.check_type(value, node)
        for value in node.outputs:
            self.make(value)
        self._kernel(node)
        for value in node.outputs:
            self.made(value, node)

    def _single(self, node: Node) -> None:
        """An elementwise node by itself, as a kernel: one that may raise."""
        for value in node.inputs:
            self.check_type(value, node)
        dtypes = loop_dtypes(node, self.numbers)
        if dtypes is None or scalar_text(node, self.numbers, self.settings.math == "libm") is None:
            raise CannotCompile(node, f"`{node.op.name}` is not computed element by element")
        for value, dtype in zip(node.inputs, dtypes[0], strict=True):
            if value.type is INT and dtype.kind in "iu":
                text = self.operand(value, dtype)  # it must fit
                if "within" in text:
                    self.assign(text, node)
        inputs = [Value(number, value.type) for number, value in enumerate(node.inputs)]
        output = Value(len(inputs), node.output.type)
        inner = Node(len(inputs) + 1, node.op, inputs, node.attrs, [output], node.loc, (node,))
        body = Graph("body", inputs, [inner], [output])
        attrs = {"form": "map", "body": body}
        kernel = Node(node.id, get("kernel"), node.inputs, attrs, node.outputs, node.loc, (node,))
        self.any_kernel(kernel)


FORMS: Mapping[str, Callable[[Regions, Node], None]] = {
    "const": Regions.constant,
    "kernel": Regions.any_kernel,
    "call": Regions.call_node,
    "size": Regions.size_node,
    "item": Regions.item,
    "barrier": Regions.barrier,
    "check": Regions.check,
    "write": Regions.write_effect,
    **dict.fromkeys(("slice", "gather", "take"), Regions.read_at),
    **dict.fromkeys(("update", "scatter_add"), Regions.update),
    **dict.fromkeys(("concatenate", "stack"), Regions.join),
    **dict.fromkeys((*FILLED, "full"), Regions.fill),
}
"""By the name of the op."""
