"""What compiled loops say about single numbers: Python's, and arrays without axes.

Each is a local: `t3 = add_ints(t1, t2)`.  An array without axes goes into memory only where a
kernel reads it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.ir import BOOL, FLOAT, INT, ArrayType, Graph, Node, ScalarType, Size, Type, Value
from minigraph.ops import array_type, get, loop_dtypes, scalar_text

from ..settings import Settings
from ..strided import Strided
from .intervals import ANY, Interval, cut, fits, interval
from .numbers import NUMBER_DTYPES, UNCHECKED, number_as, number_texts
from .segments import Segment, SegmentWriter, is_plain
from .writing import cast, element_dtype, element_text, number_operand, number_text

_INT64 = np.iinfo(np.int64)


class CannotCompile(Exception):
    """A loop is for Python to run.

    Attributes:
        node: what is not compiled; why: what is in the way.
    """

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(why)
        self.node = node
        self.why = why

    @property
    def text(self) -> str:
        """What is in the way, with the line it stands in."""
        place = f" ({self.node.loc})" if self.node.loc else ""
        return f"{self.why}{place}"


class Statements(SegmentWriter):
    """Writes the nodes that compute numbers and arrays without axes.

    Attributes:
        node: what is being written.
        known: the numbers outside that are known.
        texts: the local of each number.
        numbers: those that are known.
        arguments: the arrays that come from outside.
        own_setup: lines that each thread has for itself.
        needed: the local that holds whether what is computed is of any use; "": it is.
        bounds: between which an int is known to lie.
    """

    def __init__(
        self,
        node: Node,
        windows: Mapping[Value, Strided],
        known: Mapping[Value, Any],
        settings: Settings,
    ) -> None:
        inside: dict[Value, Strided] = {}
        super().__init__(
            Segment([node], is_loop=True), ChainMap(inside, dict(windows)), set(), {}, settings
        )
        self.node = node
        self.depth = 0
        self.locals = 0
        self.known = known
        self.sizes: dict[Size, str] = {}
        self.size_locals: dict[str, str] = {}
        self.texts: dict[Value, str] = {}
        self.numbers: dict[Value, Any] = {}
        self.slots: dict[Value, str] = {}
        self.arguments: set[Value] = set()
        self.own_setup: list[str] = []
        self.needed = ""
        self.bounds: dict[Value, Interval] = {}

    # ---- lines

    def _line(self, text: str, node: Node) -> None:
        super()._line("    " * self.depth + text, node)

    def fresh(self) -> str:
        """The name of a new local."""
        self.locals += 1
        return f"t{self.locals - 1}"

    def assign(self, text: str, node: Node) -> str:
        """A new local that holds what the text says."""
        name = self.fresh()
        self._line(f"{name} = {text}", node)
        return name

    def _size(self, size: Size) -> str:
        """The local that holds a size: kernels may write anywhere, for all LLVM knows."""
        text = self.sizes.get(size)
        if text is None:
            given = text = super()._size(size)
            if given.startswith("n["):
                text = f"n{len(self.size_locals)}"
                self.size_locals[text] = given
            self.sizes[size] = text
        return text

    # ---- reading

    def is_number(self, value: Value) -> bool:
        """Whether a value is a local: a Python number, or an array without axes."""
        return isinstance(value.type, ScalarType) or not array_type(value.type).ndim

    def read(self, value: Value) -> str:
        """The text of a number."""
        if value in self.numbers:
            return self._literal(value.type, self.numbers[value])
        text = self.texts.get(value)
        if text is None:
            text = self.texts[value] = self._from_outside(value)
        return text

    def bind(self, value: Value, text: str) -> None:
        """A number is what the text says, whatever it was where its region was written before."""
        self.texts[value] = text
        self.numbers.pop(value, None)
        self.bounds.pop(value, None)

    def _literal(self, kind: Type, number: Any) -> str:
        if isinstance(kind, ArrayType):
            return number_operand(number, kind.dtype)
        if kind is INT and not _INT64.min <= number <= _INT64.max:
            raise CannotCompile(self.node, f"{number} is beyond 64 bits")
        return number_text(number)

    def _from_outside(self, value: Value) -> str:
        if isinstance(value.type, ScalarType):
            return super()._number(value, NUMBER_DTYPES[value.type])
        window = self.windows[value]
        name = self.fresh()
        pointer, offset = self._pointer(window.buffer), self._size(window.offset)
        load = f"load_any({pointer}, {offset})"
        is_bool = array_type(value.type).dtype.kind == "b"
        self.own_setup.append(f"    {name} = {load} != 0" if is_bool else f"    {name} = {load}")
        return name

    def load(self, pointer: str, index: str, kind: ArrayType) -> str:
        """The text of an element in memory."""
        text = f"load_any({pointer}, {index})"
        return f"{text} != 0" if kind.dtype.kind == "b" else text

    def store(self, pointer: str, index: str, text: str, kind: ArrayType, node: Node) -> None:
        """Write an element, whose text is of its dtype, to memory."""
        stored = f"uint8({text})" if kind.dtype.kind == "b" else text
        self._line(f"store_any({pointer}, {index}, {stored})", node)

    def _number(self, value: Value, dtype: str) -> str:
        """A number as a kernel takes it."""
        text, own = self.read(value), NUMBER_DTYPES[value.type]
        return text if own == dtype else f"{dtype}({text})"

    # ---- memory of numbers

    def slot(self, value: Value) -> str:
        """The local that points to memory for one number."""
        if value not in self.slots:
            self.slots[value] = name = f"q{len(self.slots)}"
            dtype = element_dtype(array_type(value.type).dtype)
            self.own_setup.append(f"    {name} = stack({dtype}, 1)")
        return self.slots[value]

    def spilled(self, value: Value) -> str:
        """Memory that holds a number, for a kernel to read."""
        slot = self.slot(value)
        self.store(slot, "0", self.read(value), array_type(value.type), self.node)
        return slot

    # ---- computing

    def check_type(self, value: Value, node: Node) -> None:
        """Compiled code can hold a value.

        Raises:
            CannotCompile: it cannot.
        """
        kind = value.type
        if kind in NUMBER_DTYPES or (isinstance(kind, ArrayType) and is_plain(kind.dtype)):
            return
        raise CannotCompile(node, f"%{value.name} is a {kind}")

    def compute(self, node: Node) -> None:
        """The lines of a node all of whose operands and results are numbers.

        Raises:
            CannotCompile: no text computes it.
        """
        operands = [self.read(value) for value in node.inputs]
        if node.outputs[0].type is INT and self._compute_int(node, operands):
            return
        texts = number_texts(node, operands, self.numbers, self.needed)
        if not texts:
            texts = [self._element(node)]
        for value, text in zip(node.outputs, texts, strict=True):
            self.texts[value] = text if text.isidentifier() else self.assign(text, node)

    def _compute_int(self, node: Node, operands: Sequence[str]) -> bool:
        """Find the bounds of an int, and write its line if it needs no check."""
        name, value = node.op.name, node.outputs[0]
        known = [self.bounds_of(operand) for operand in node.inputs]
        bounds = interval(name, known)
        self.bounds.pop(value, None)
        if bounds is None:
            return False
        self.bounds[value] = cut(name, bounds, known)
        if name not in UNCHECKED or not fits(bounds):
            return False
        kinds = [operand.type for operand in node.inputs]
        texts = [number_as(*each, INT) for each in zip(operands, kinds, strict=True)]
        self.texts[value] = self.assign(UNCHECKED[name].format(*texts), node)
        return True

    def bounds_of(self, value: Value) -> Interval:
        """Between which bounds a number lies, as an int."""
        if value in self.numbers and isinstance(self.numbers[value], int):
            return int(self.numbers[value]), int(self.numbers[value])
        return self.bounds.get(value, (0, 1) if value.type is BOOL else ANY)

    def _element(self, node: Node) -> str:
        """What a node computes as NumPy does, of arrays without axes."""
        if all(isinstance(value.type, ScalarType) for value in node.inputs):
            node = self._of_arrays(node)
        exact = self.settings.math == "libm"
        if loop_dtypes(node, self.numbers) is None or not scalar_text(node, self.numbers, exact):
            raise CannotCompile(node, f"`{node.op.name}` is not compiled for these numbers")
        return element_text(node, self.numbers, exact, self.operand)

    def _of_arrays(self, node: Node) -> Node:
        """The same node of what NumPy makes of Python's numbers."""
        inputs: list[Value] = []
        for value in node.inputs:
            made = Value(-1, array_type(value.type))
            self.texts[made] = cast(self.read(value), array_type(value.type).dtype)
            inputs.append(made)
        return Node(-1, node.op, inputs, node.attrs, node.outputs, node.loc, (node,))

    def operand(self, value: Value, dtype: np.dtype[Any]) -> str:
        """A number as an operand of this dtype; an int that does not fit ends the loop."""
        if value in self.numbers:
            number = self.numbers[value]
            if value.type is INT and dtype.kind in "iu":
                limits = np.iinfo(dtype)
                if not limits.min <= number <= limits.max:
                    raise CannotCompile(self.node, f"{number} does not fit {dtype}")
            return number_operand(number, dtype)
        text = self.read(value)
        if value.type is INT and dtype.kind in "iu":
            return cast(self.fitting(text, dtype), dtype)
        if isinstance(value.type, ArrayType) and value.type.dtype == dtype:
            return text
        is_bool = array_type(value.type).dtype.kind == "b"
        if is_bool and dtype.kind == "f":
            return f"({cast('1', dtype)} if {text} else {cast('0', dtype)})"
        return cast(text, dtype)

    def fitting(self, text: str, dtype: np.dtype[Any]) -> str:
        """An int64 that must fit an integer dtype."""
        limits = np.iinfo(dtype)
        low, high = max(limits.min, _INT64.min), min(limits.max, _INT64.max)
        if (low, high) == (_INT64.min, _INT64.max):
            return text
        return f"within({text}, {low}, {high})"

    def converted(self, value: Value, dtype: np.dtype[Any], node: Node) -> str:
        """A number as it is stored into an array of this dtype."""
        kind = value.type
        if kind is INT and dtype.kind in "iu":
            return self.operand(value, dtype)
        if kind is FLOAT and dtype.kind in "iu":
            return cast(self.fitting(f"int_of_float({self.read(value)})", dtype), dtype)
        source = value
        if isinstance(kind, ScalarType):
            source = Value(-1, array_type(kind))
            self.texts[source] = self.read(value)
        elif kind == ArrayType(dtype, ()):
            return self.read(value)
        elif value in self.numbers:
            self.numbers[source] = self.numbers[value]
        made = Value(-1, ArrayType(dtype, ()))
        step = Node(-1, get("cast"), [source], {"dtype": dtype}, [made], node.loc, (node,))
        return element_text(step, self.numbers, False, self.operand)


def is_about_numbers(graph: Graph) -> bool:
    """Whether a body computes nothing with axes; views of arrays may find the numbers."""
    return all(
        isinstance(value.type, ScalarType) or not value.shape
        for node in graph.nodes
        if not node.op.view
        for value in (*node.inputs, *node.outputs)
    ) and all(not value.shape for value in graph.outputs)
