"""What compiled loops say about parts of arrays: views, elements, stores.

An element, and what is stored into an array that dies, need neither a copy nor a call:

    %x = gather %table, %i, %j : i64[]       t0 = place(i, n1)
                                             t1 = place(j, n2)
                                             t2 = load_any(p0, n2 * t0 + t1)
    %new = update %table, %y, %i, %j         store_any(p0, n2 * t0 + t1, y)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minigraph.ir import INT, OPERAND, ArrayType, Graph, Node, Shape, Size, Value, decide_equal
from minigraph.ops import array_type, expand, get, slice_bounds

from ..strided import Strided, view
from .intervals import POSITION
from .kernels import write_kernel
from .places import Memory
from .statements import CannotCompile

FILLED: Mapping[str, int] = {"zeros": 0, "ones": 1, "empty": 0}
"""Ops that fill an array with a number."""


class Parts(Memory):
    """Writes the nodes that read or store parts of arrays."""

    def write_node(self, node: Node) -> None:
        """The lines of one node of any kind."""
        raise NotImplementedError

    def show_view(self, node: Node) -> None:
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
