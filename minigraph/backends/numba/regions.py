"""What compiled loops say about arrays: views, single elements, kernels, stores in place.

%x = gather %table, %i, %j : i64[]       t0 = place(i, n1)
                                         t1 = place(j, n2)
                                         t2 = load_any(p0, n2 * t0 + t1)
%new = update %table, %y, %i, %j         store_any(p0, n2 * t0 + t1, y)    where %table dies
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from minigraph.ir import (
    INT,
    OPERAND,
    ArrayType,
    Graph,
    Node,
    Shape,
    Size,
    Value,
    decide_equal,
)
from minigraph.ops import (
    array_type,
    expand,
    get,
    is_float_product,
    loop_dtypes,
    scalar_text,
    slice_bounds,
)

from ..settings import Settings
from ..strided import Strided, c_strides, view
from .frames import Frame, Place
from .intervals import POSITION, SIZE
from .kernels import write_kernel
from .matrices import Product
from .segments import TRANSPOSED, is_compiled_product, matrix_form
from .statements import CannotCompile, Statements, is_about_numbers
from .writing import Kernel, element_dtype

PACKED = 8
"""Rows from which a product is faster if the second operand is not transposed."""

FILLED: Mapping[str, int] = {"zeros": 0, "ones": 1, "empty": 0}
"""Ops that fill an array with a number."""


class Regions(Statements):
    """Writes the nodes of a region, but for branches and loops within it.

    Attributes:
        frame: the region being written.
        memory: for each pointer into the middle of a memory that memory.
        results: the arrays that the caller gets.
        rows: so many rows of each array are shared among threads, from `lo` to `hi`; 0: none.
        turns: how often, at least, the scans around run the node that is being written.
        given: the memory of arguments, results and the segment's own, each with its pointer.
        packed: the copies that are made first, by what they are of; first_lines: what makes them.
    """

    frame: Frame

    def __init__(
        self,
        node: Node,
        windows: Mapping[Value, Strided],
        known: Mapping[Value, Any],
        settings: Settings,
        rows: int = 0,
    ) -> None:
        super().__init__(node, windows, known, settings)
        self.memory: dict[Value, Value] = {}
        self.rows = rows
        self.turns = 1
        self.given: dict[Value, str] = {}
        self.packed: dict[Hashable, Value] = {}
        self.first_lines: list[tuple[str, Node | None]] = []
        self.results = {v for v in node.outputs if isinstance(v.type, ArrayType)}

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

    def define(self, value: Value, window: Strided) -> None:
        """A value lies there."""
        self.windows[value] = window
        self.frame.add(value, self.memory_of(window))

    def memory_of(self, window: Strided) -> Value:
        """The memory that a window looks into."""
        return self.memory.get(window.buffer, window.buffer)

    def is_whole(self, window: Strided) -> bool:
        """Whether a window shows a memory from its start, in C order."""
        return window.buffer not in self.memory and window.is_dense

    def make(self, value: Value) -> None:
        """Give a result memory."""
        kind = array_type(value.type)
        if kind.ndim:
            place = self.frame.destination(value)
            self.define(value, Strided(place, kind.shape, c_strides(kind.shape), 0))
            self.buffers[value] = place
        else:
            self.pointers[value] = self.slot(value)

    def made(self, value: Value, node: Node) -> None:
        """What a kernel has written to a slot becomes a local."""
        if self.is_number(value):
            text = self.load(self.pointers.pop(value), "0", array_type(value.type))
            self.texts[value] = self.assign(text, node)

    def _pointer(self, value: Value) -> str:
        value = self.buffers.get(value, value)
        if value in self.pointers:
            return self.pointers[value]
        if value in self.texts or value in self.numbers:
            return self.spilled(value)
        return self.new_pointer(value)

    def address(self, memory: Value) -> str:
        """The local that points to a memory."""
        return self._pointer(memory)

    def new_pointer(self, value: Value) -> str:
        """A local that points to an argument, a result, or memory of the segment's own."""
        name = self.pointers[value] = f"p{len(self.pointers)}"
        self.given[value] = name
        if value in self.arguments:
            self.segment.reads.append(value)
        elif value in self.results:
            self.segment.writes.append(value)
        else:
            kind = array_type(value.type)
            text = self._reserve(kind.size_bytes, element_dtype(kind.dtype))
            self.setup.append(f"    {name} = {text}")
        return name

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
            self._view(node)
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

    # ---- views

    def _view(self, node: Node) -> None:
        base = node.inputs[0]
        self.check_type(base, node)
        window = view(node, self._window(base))
        if window is not None:
            self.show(node.output, window, "", node)
        elif node.op.name == "reshape":
            self.make(node.output)
            self._copy(node, self._window(base), node.output)
        else:
            raise CannotCompile(node, f"`{node.op.name}` is not compiled")

    def _window(self, value: Value) -> Strided:
        """Where an array lies; one without axes is written to memory first."""
        if not self.is_number(value):
            return self.windows[value]
        self.spilled(value)
        self.pointers[value] = self.slot(value)
        return Strided(value, (), (), 0)

    def show(self, value: Value, window: Strided, offset: str, node: Node) -> None:
        """A value is what a window shows, so many elements further (""; none)."""
        kind = array_type(value.type)
        pointer = self._pointer(window.buffer)
        if not kind.ndim:
            index = self.index(window, offset)
            self.texts[value] = self.assign(self.load(pointer, index, kind), node)
        elif offset:
            self.define(value, self.further(window, offset, node))
        else:
            self.define(value, window)

    def index(self, window: Strided, offset: str) -> str:
        """The index of a window's first element, so many elements further."""
        terms = [] if window.offset == 0 else [self._size(window.offset)]
        return " + ".join([*terms, offset] if offset else terms) or "0"

    def further(self, window: Strided, offset: str, node: Node) -> Strided:
        """A window so many elements further, by a pointer of its own."""
        pointer = self.assign(f"moved({self._pointer(window.buffer)}, {offset})", node)
        buffer = Value(-1, window.buffer.type)
        self.pointers[buffer] = pointer
        self.memory[buffer] = self.memory_of(window)
        return Strided(buffer, window.shape, window.strides, window.offset)

    # ---- elements and parts

    def read_at(self, node: Node) -> None:
        """`slice`, `gather`, `take`: parts, at numbers that are known or not."""
        base, *places = node.inputs
        self.check_type(base, node)
        window, offset = self.part(node, self._window(base), self.entries(node), places)
        if len(window.shape) != len(node.output.shape):
            raise CannotCompile(node, f"`{node.op.name}` by an array is not compiled")
        self.show(node.output, window, offset, node)

    def entries(self, node: Node) -> list[Any]:
        """What stands between the brackets."""
        if node.op.name != "take":
            return node.attrs["index"]
        axis = node.attrs.get("axis")
        if axis is None and len(node.inputs[0].shape) == 1:
            axis = 0
        if axis is None or node.attrs.get("mode", "raise") != "raise":
            raise CannotCompile(node, "this `take` is not compiled")
        return [*[slice(None)] * axis, OPERAND]

    def part(
        self, node: Node, window: Strided, entries: Sequence[Any], places: Sequence[Value]
    ) -> tuple[Strided, str]:
        """The window that an index leaves, and how much further it begins ("": not at all)."""
        remaining = iter(places)
        shape: list[Size] = []
        strides: list[Size] = []
        terms: list[str] = []
        offset = window.offset
        axis = 0
        for entry in expand(list(entries), window.shape, [1] * len(places)):
            if entry is None:
                shape.append(1)
                strides.append(0)
            elif entry is ...:
                pass
            else:
                size, stride = window.shape[axis], window.strides[axis]
                axis += 1
                if isinstance(entry, slice):
                    start, count, step = slice_bounds(entry, size)
                    offset += start * stride
                    shape.append(count)
                    strides.append(step * stride)
                elif isinstance(entry, int) and isinstance(size, int):
                    offset += (entry % size) * stride
                else:
                    value = next(remaining) if entry is OPERAND else None
                    text = self._size(entry) if value is None else self._position(node, value)
                    at = self.assign(f"place({text}, {self._size(size)})", node)
                    if value is not None and value not in self.numbers:
                        low, high = self.bounds_of(value)  # what is not in range ends the loop
                        self.bounds[value] = max(low, POSITION[0]), min(high, POSITION[1])
                    terms.append(at if stride == 1 else f"{self._size(stride)} * {at}")
        return Strided(window.buffer, tuple(shape), strides, offset), " + ".join(terms)

    def _position(self, node: Node, value: Value) -> str:
        """An index that is a number."""
        if not self.is_number(value) or array_type(value.type).dtype.kind not in "iu":
            raise CannotCompile(node, f"`{node.op.name}` by an array is not compiled")
        text = self.read(value)
        return text if value.type is INT else f"int64({text})"

    # ---- stores

    def update(self, node: Node) -> None:
        """`base[index] = value`, in the memory of the base if nothing needs it any more."""
        base, value, *places = node.inputs
        for each in (base, value):
            self.check_type(each, node)
        kind = array_type(base.type)
        if not kind.ndim:
            text = self.converted(value, kind.dtype, node)
            if node.op.name != "update":
                raise CannotCompile(node, "`scatter_add` to one number is not compiled")
            self.texts[node.output] = self.assign(text, node)
            return
        window = self.windows[base]
        free = self.is_whole(window) and self.frame.is_free(window.buffer)
        if free:
            self.define(node.output, window)
        else:
            self.make(node.output)
            self.copy_to(self.windows[node.output].buffer, window, node)
        into = self.windows[node.output]
        target, offset = self.part(node, into, node.attrs["index"], places)
        if node.op.name == "scatter_add":
            value = self._sum(node, target, offset, value)
        self.put(target, offset, value, node)

    def _sum(self, node: Node, target: Strided, offset: str, value: Value) -> Value:
        """What is there and a value, as one array or number."""
        kind = array_type(node.output.type)
        if array_type(value.type).dtype != kind.dtype:
            raise CannotCompile(node, "a `scatter_add` of another dtype is not compiled")
        there = Value(-1, ArrayType(kind.dtype, target.shape))
        total = Value(-1, there.type)
        self.show(there, target, offset, node)
        add = Node(-1, get("add"), [there, value], {}, [total], node.loc, (node,))
        self.write_node(add)
        return total

    def put(self, target: Strided, offset: str, value: Value, node: Node) -> None:
        """Write a value to all elements of a window, so many elements further."""
        kind = ArrayType(array_type(target.buffer.type).dtype, target.shape)
        if not target.shape:
            if not self.is_number(value):
                raise CannotCompile(node, "an array is stored as one number")
            text = self.converted(value, kind.dtype, node)
            index = self.index(target, offset)
            self.store(self._pointer(target.buffer), index, text, kind, node)
            return
        if offset:
            target = self.further(target, offset, node)
        if self.is_number(value):
            number = Value(-1, ArrayType(kind.dtype, ()))
            self.texts[number] = self.assign(self.converted(value, kind.dtype, node), node)
            source = Strided(number, (), (), 0)
        else:
            source = self.windows[value]
            if self.memory_of(source) is self.memory_of(target):
                source = self._copied(source, node)
        self.convert(source, target, node)

    def convert(self, source: Strided, target: Strided, node: Node) -> None:
        """Write the elements of one window to another, stretched and in its dtype."""
        kind = array_type(target.buffer.type).dtype
        given = array_type(source.buffer.type).dtype
        shape, strides = _stretched(source, target.shape)
        read, made = Value(0, ArrayType(given, shape)), Value(1, ArrayType(kind, shape))
        step = Node(2, get("cast"), [read], {"dtype": kind}, [made], node.loc, (node,))
        body = Graph("body", [read], [step], [made])
        windows = {read: Strided(source.buffer, shape, strides, source.offset)}
        into = Strided(made, shape, target.strides, target.offset)
        kernel = write_kernel(body, windows, {}, self.settings, {made: into})
        self._call(node, kernel, {made: target.buffer})

    def join(self, node: Node) -> None:
        """`concatenate`, `stack`: each array is written to its part of the result."""
        axis: int | None = node.attrs.get("axis", 0)
        if axis is None:
            raise CannotCompile(node, f"`{node.op.name}` of flattened arrays is not compiled")
        self.make(node.output)
        into = self.windows[node.output]
        stacked = node.op.name == "stack"
        strides = list(into.strides)
        if stacked:
            del strides[axis]
        offset = into.offset
        for value in node.inputs:
            self.check_type(value, node)
            self.put(Strided(into.buffer, value.shape, strides, offset), "", value, node)
            offset += (1 if stacked else value.shape[axis]) * into.strides[axis]

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

    def copy_to(self, memory: Value, window: Strided, node: Node) -> None:
        """Write a window's elements in C order to a memory, if they are not there already."""
        if window.strides == c_strides(window.shape):
            source = self._pointer(window.buffer)
            if window.offset != 0:
                source = f"moved({source}, {self._size(window.offset)})"
            target = self._pointer(memory)
            count = ArrayType(array_type(memory.type).dtype, window.shape).size
            text = self._size(count)
            if self.rows:
                width = self._size(count // self.rows)
                target, source = (f"moved({each}, lo * {width})" for each in (target, source))
                text = f"(hi - lo) * {width}"
            self._line(f"copy_elements({target}, {source}, {text})", node)
        else:
            self._copy(node, window, memory)

    def fill(self, node: Node) -> None:
        """`zeros`, `ones`, `full`."""
        kind = array_type(node.output.type)
        if node.inputs:
            value = node.inputs[0]
        else:
            value = Value(-1, ArrayType(kind.dtype, ()))
            self.numbers[value] = kind.dtype.type(FILLED[node.op.name])
        if kind.ndim:
            self.make(node.output)
            self.put(self.windows[node.output], "", value, node)
        else:
            self.texts[node.output] = self.assign(self.converted(value, kind.dtype, node), node)

    # ---- kernels and products

    def _product(self, node: Node, place: Value) -> None:
        """A product; a transposed operand that is the same at each turn is copied once before."""
        left, right = node.inputs
        window = self.windows[right]
        rows = Product(self.windows[left], window, array_type(node.output.type).shape).rows
        many = isinstance(rows, int) and rows >= PACKED and rows * self.turns >= TRANSPOSED
        outside = self.memory_of(window) in self.arguments
        if many and outside and self.depth and matrix_form(window) == "F":
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

    def _span(self, kernel: Kernel) -> tuple[str, str]:
        if not self.rows:
            return super()._span(kernel)
        assert isinstance(kernel.iterations, int)
        if kernel.iterations % self.rows or kernel.finish is not None:
            raise CannotCompile(self.node, "its rows are not loops of their own")
        if kernel.iterations == self.rows:
            return "lo", "hi"
        width = self._size(kernel.iterations // self.rows)
        return f"lo * {width}", f"hi * {width}"

    def _packed(self, window: Strided, node: Node) -> Value:
        """A window's elements in C order, copied before everything else."""
        key = (window.buffer, window.strides, window.offset)
        if key not in self.packed:
            dtype = array_type(window.buffer.type).dtype
            made = self.packed[key] = Value(-1, ArrayType(dtype, window.shape))
            self.windows[made] = Strided(made, window.shape, c_strides(window.shape), 0)
            before = self.lines, self.depth, self.rows
            self.lines, self.depth, self.rows = self.first_lines, 0, 0
            self._copy(node, window, made)
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


def _stretched(source: Strided, shape: Shape) -> tuple[Shape, list[Size]]:
    """The strides with which a window is read that is stretched to a shape."""
    own, steps = list(source.shape), list(source.strides)
    while len(own) > len(shape):  # leading axes of one element
        del own[0], steps[0]
    new = len(shape) - len(own)
    stretched = [
        step if decide_equal(size, wanted) else 0
        for size, step, wanted in zip(own, steps, shape[new:], strict=True)
    ]
    return shape, [0] * new + stretched


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
