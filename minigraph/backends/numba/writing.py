"""Writes the text of one compiled function: its parameters, lines, and the values at each place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from minigraph.ir import ArrayType, Node, ScalarType, Size, Value
from minigraph.ops import Numbers, loop_dtypes, scalar_text

from ..settings import Settings
from .space import Loop, Space, sequence


class Partial:
    """The partial results of one reduction, an element for each chunk."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype


Buffer = Value | Partial

MOST_WRITTEN = 32
"""Buffers written by one kernel of which LLVM knows that they are apart: those from here on may
overlap any other, for all it knows."""

_PASSED = {bool: "boolean", int: "int64", float: "float64"}
"""As what compiled code takes Python's numbers."""

_MODULO = {"add": 2, "subtract": 2, "multiply": 2, "square": 1, "power": 1, "pow": 1}
"""Ops of int64 that wrap around, and how many operands are taken as unsigned for that.

Numba tells LLVM that sums and products of signed ints never overflow.
"""


class Text:
    """One function being written; it gets a parameter for each size, number and buffer it uses."""

    def __init__(self, space: Space, over: Mapping[Value, Value], settings: Settings) -> None:
        self.space = space
        self.over = over  # buffer of an input -> the output that is written over it
        self.exact = settings.math == "libm"  # only NumPy's own bits will do
        self.fixed = settings.static_shape  # sizes stand in the text
        self.scopes = 0
        self.scope_of: dict[Buffer, str] = {v: self.new_scope() for v in space.body.outputs}
        self.lines: list[tuple[str, Node | None]] = []
        self.depth = 1
        self.literal_steps = 1  # the largest step that stands in the text as a number
        self.locals = 0
        self.sizes: dict[str, Size] = {}
        self.scalars: dict[tuple[Value, str], str] = {}
        self.pointers: dict[Buffer, tuple[str, str]] = {}
        self.names: dict[Value, str] = {}
        self.steps: dict[tuple[Value, int], str] = {}

    def line(self, text: str, node: Node | None = None) -> None:
        self.lines.append(("    " * self.depth + text, node))

    def open(self, text: str) -> None:
        self.line(text)
        self.depth += 1

    def assign(self, expression: str, node: Node | None = None) -> str:
        """A new local that holds the expression."""
        name = f"t{self.locals}"
        self.locals += 1
        self.line(f"{name} = {expression}", node)
        return name

    def size(self, size: Size) -> str:
        """The parameter that holds a size, or the size itself."""
        if self.fixed and isinstance(size, int):
            return number_text(size)
        return self.length(size)

    def length(self, size: Size) -> str:
        """The parameter that holds a size, under `static_shape`, too."""
        name = f"n{len(self.sizes)}"
        self.sizes[name] = size
        return name

    def scalar(self, value: Value, dtype: np.dtype[Any]) -> str:
        """The parameter that holds a Python number; an int that is computed with as a float is one.

        A float is what NumPy makes of it, and fits whatever its size.
        """
        assert isinstance(value.type, ScalarType), value
        passed = _PASSED[value.type.python]
        if passed == "int64" and dtype.kind == "f":
            passed = "float64"
        return self.scalars.setdefault((value, passed), f"c{len(self.scalars)}")

    def new_scope(self) -> str:
        """A scope for a buffer that no other access touches: how its loads and stores end."""
        self.scopes += 1
        return str(self.scopes - 1) if self.scopes <= MOST_WRITTEN else "_any"

    def pointer(self, buffer: Buffer, dtype: str) -> str:
        """The parameter that points to a buffer."""
        if buffer not in self.pointers:
            self.pointers[buffer] = (f"v{len(self.pointers)}", dtype)
        return self.pointers[buffer][0]

    def memory(self, value: Value) -> tuple[str, str]:
        """The pointer to where a value stands, and the suffix of its loads and stores."""
        window = self.space.windows.get(value)
        owner = value if window is None else window.buffer
        owner = self.over.get(owner, owner)
        pointer = self.pointer(owner, element_dtype(dtype_of(owner)))
        return pointer, self.scope_of.get(owner, "")

    def stride(self, value: Value, loop: Loop, steps: Sequence[Size]) -> str:
        """A step along a loop in a value's buffer, as text: "", a number, or a parameter."""
        step = steps[loop.axes[-1]]
        if isinstance(step, int) and 0 <= step <= self.literal_steps:
            return str(step) if step else ""
        key = (self._same_place(value, steps), loop.axes[-1])
        if key not in self.steps:
            self.steps[key] = self.size(step)
        return self.steps[key]

    def _same_place(self, value: Value, steps: Sequence[Size]) -> Value:
        """The output whose elements are written over those of the value; else the value.

        Their steps are one parameter: so LLVM sees that what is stored is nothing that another
        element still loads, and vectorises.
        """
        window = self.space.windows.get(value)
        place = value if window is None else self.over.get(window.buffer, value)
        if place is value or self.space.steps_to(place) != list(steps):
            return value
        return place

    def decode(self, index: str, loops: Sequence[Loop]) -> list[str]:
        """The index of each of several loops that are run through as one."""
        names: list[str] = []
        for loop in reversed(loops[1:]):
            size = self.size(loop.extent)
            names.append(self.assign(f"{index} % {size}"))
            index = self.assign(f"{index} // {size}")
        return [index, *reversed(names)] if loops else []

    def count(self, loops: Sequence[Loop]) -> str:
        """The parameter that holds how many elements are reduced, where a mean needs it."""
        if any(node.op.name == "mean" for node in self.space.reductions):
            return self.size(sequence(loops))
        return ""


NewText = Callable[[], Text]


class Scope:
    """One place in the loops: where in memory each value stands, and the locals known there."""

    def __init__(self, text: Text) -> None:
        """The place outside of all loops."""
        self.text = text
        self.known: dict[Value, str] = {}
        self.kept: Mapping[Value, Value] = {}  # values to read back from the place of an output
        self.elsewhere: Mapping[Value, str] = {}  # values to load in another way
        self.steps: dict[Value, list[Size]] = {}
        self.index: dict[Value, str] = {}
        for value, window in text.space.in_memory():
            self.steps[value] = text.space.steps(value, window)
            self.index[value] = text.size(window.offset) if window.offset != 0 else ""

    def enter(self, loops: Sequence[Loop], names: Sequence[str], *, inline: bool = False) -> Scope:
        """The place inside of further loops whose variables have these names.

        Where `inline`, each element's index stands where it is used, else in a local.
        """
        inside = Scope.__new__(Scope)
        inside.text, inside.steps = self.text, self.steps
        inside.kept, inside.elsewhere = self.kept, self.elsewhere
        inside.known = dict(self.known)
        inside.index = {}
        locals_: dict[str, str] = {}
        for value, start in self.index.items():
            terms = [start] if start else []
            for loop, name in zip(loops, names, strict=True):
                stride = self.text.stride(value, loop, self.steps[value])
                if stride and name != "0":
                    terms.append(name if stride == "1" else f"{stride} * {name}")
            index = " + ".join(terms)
            if not inline and index != start and not index.isidentifier():
                index = locals_.get(index) or locals_.setdefault(index, self.text.assign(index))
            inside.index[value] = index
        return inside

    def define(self, value: Value, name: str) -> None:
        self.known[value] = name
        self.text.names.setdefault(value, name)

    def read(self, value: Value) -> str:
        """The local that holds a value; it is loaded if it stands in memory."""
        name = self.known.get(value)
        if name is None:
            if value in self.text.space.constants:
                return number_text(self.text.space.constants[value])
            loaded = self.elsewhere.get(value) or self._load(self.kept.get(value, value))
            name = self.text.assign(f"{loaded} != 0" if is_bool(value) else loaded)
            self.define(value, name)
        return name

    def _load(self, value: Value) -> str:
        pointer, scope = self.text.memory(value)
        return f"load{scope}({pointer}, {self.index[value] or 0})"

    def stored(self, value: Value) -> str:
        """A value as an element in memory."""
        return f"uint8({self.read(value)})" if is_bool(value) else self.read(value)

    def store(self, value: Value, place: Value | None = None) -> None:
        """Write a value to its place, or to that of another output."""
        pointer, scope = self.text.memory(place or value)
        index = self.index[place or value] or 0
        self.text.line(f"store{scope}({pointer}, {index}, {self.stored(value)})")

    def compute(self, wanted: Iterable[Value]) -> None:
        """The lines that compute these values, and first what they need."""
        compute_together([self], wanted)

    def is_here(self, value: Value) -> bool:
        """Whether the value need not be computed."""
        return value in self.known or value in self.kept or value in self.elsewhere

    def expression(self, node: Node) -> str:
        """What a node computes, for one element."""
        if node.op.view:  # it only moves axes
            return self.read(node.inputs[0])
        return element_text(node, self.text.space.constants, self.text.exact, self.operand)

    def operand(self, value: Value, dtype: np.dtype[Any]) -> str:
        """A value as an operand of this dtype."""
        if value in self.text.space.constants:
            return number_operand(self.text.space.constants[value], dtype)
        if isinstance(value.type, ScalarType):
            return cast(self.text.scalar(value, dtype), dtype)
        if is_bool(value) and dtype.kind == "f":  # a choice is faster than a conversion
            return f"({cast('1', dtype)} if {self.read(value)} else {cast('0', dtype)})"
        same = isinstance(value.type, ArrayType) and value.type.dtype == dtype
        return self.read(value) if same else cast(self.read(value), dtype)


def element_text(
    node: Node, numbers: Numbers, exact: bool, operand: Callable[[Value, np.dtype[Any]], str]
) -> str:
    """What an elementwise node computes of one element each.

    Args:
        node: one that kernels compute.
        numbers: the operands that are known.
        exact: with NumPy's own bits.
        operand: the text of an operand in a dtype.
    """
    dtypes = loop_dtypes(node, numbers)
    template = scalar_text(node, numbers, exact)
    assert dtypes is not None and template is not None, node
    operands = list(map(operand, node.inputs, dtypes[0]))
    if dtypes[0][0] == np.int64:
        unsigned = _MODULO.get(node.op.name, 0)
        operands[:unsigned] = [f"uint64({text})" for text in operands[:unsigned]]
    result = template.format(*operands)
    kind = dtype_of(node.output)
    return result if kind.kind == "f" and {*dtypes[0]} == {kind} else cast(result, kind)


def number_operand(number: Any, dtype: np.dtype[Any]) -> str:
    """A number that is known as an operand of this dtype."""
    as_float = dtype.kind == "f" and type(number) is int  # of any size
    return cast(number_text(float(number) if as_float else number), dtype)


def compute_together(scopes: Sequence[Scope], wanted: Iterable[Value]) -> None:
    """The lines that compute these values at several places, the same line of all in turn."""
    text = scopes[0].text
    pending = set(wanted)
    chosen: list[Node] = []
    for node in reversed(text.space.nodes):
        if node.output in pending and not scopes[0].is_here(node.output):
            chosen.append(node)
            pending.update(node.inputs)
    for node in reversed(chosen):
        for scope in scopes:
            scope.define(node.output, text.assign(scope.expression(node), node))


def compute_and_store(scopes: Sequence[Scope], outputs: Sequence[Value]) -> None:
    """The same, and the lines that write them to their places."""
    compute_together(scopes, outputs)
    for value in outputs:
        for scope in scopes:
            scope.store(value)


class Written(Protocol):
    """What a function is made of when its lines are written."""

    lines: list[tuple[str, Node | None]]
    sizes: dict[str, Size]
    scalars: dict[tuple[Value, str], str]
    pointers: dict[Buffer, tuple[str, str]]
    names: dict[Value, str]


NO_FUNCTIONS: Mapping[str, Function] = MappingProxyType({})


class Function:
    """One function of compiled text; it is called `kernel`.

    Attributes:
        text: the source.
        sizes: what to pass as integers after `lo` and `hi`, the steps of the outermost loop.
        scalars: then the Python numbers, each with the name of its dtype.
        pointers: then the buffers, each with the name of its elements' dtype.
        lines: (line, node of the body) for each line that computes one; lines count from 1.
        names: the local of each value.
        functions: the kernels that it calls, by name.
    """

    __slots__ = ("functions", "lines", "names", "pointers", "scalars", "sizes", "text")

    def __init__(self, text: Written, functions: Mapping[str, Function] = NO_FUNCTIONS) -> None:
        self.functions = functions
        pointers = [name for name, _ in text.pointers.values()]
        parameters = ["lo", "hi", *text.sizes, *text.scalars.values(), *pointers]
        lines = text.lines or [("    pass", None)]
        self.text = "\n".join(
            [f"def kernel({', '.join(parameters)}):", *(line for line, _ in lines)]
        )
        self.sizes = tuple(text.sizes.values())
        self.scalars = list(text.scalars)
        self.pointers = [(buffer, dtype) for buffer, (_, dtype) in text.pointers.items()]
        self.lines = [(number, node) for number, (_, node) in enumerate(lines, 2) if node]
        self.names = dict(text.names)

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same function as another one: its text and the dtypes that it takes."""
        own = (self.text, *(dtype for _, dtype in (*self.scalars, *self.pointers)))
        return own + tuple(word for f in self.functions.values() for word in f.key)


class Kernel:
    """The functions that compute one `kernel` node.

    Attributes:
        main: runs over `iterations`, which threads may share.
        finish: combines the partial results of all iterations; None: there are none.
        work: the cost of the whole, in simple operations on one element.
    """

    __slots__ = ("finish", "iterations", "main", "work")

    def __init__(
        self, main: Function, iterations: Size, work: Size, finish: Function | None = None
    ) -> None:
        self.main = main
        self.iterations = iterations
        self.work = work
        self.finish = finish


# ---------------------------------------------------------------------------- dtypes and numbers


def dtype_of(value: Value) -> np.dtype[Any]:
    """The dtype of an array."""
    assert isinstance(value.type, ArrayType), value
    return value.type.dtype


def is_bool(value: Value) -> bool:
    """Whether it is an array of bools."""
    return isinstance(value.type, ArrayType) and value.type.dtype.kind == "b"


def element_dtype(dtype: np.dtype[Any]) -> str:
    """The dtype of elements in memory: a bool is a byte there."""
    return "uint8" if dtype.kind == "b" else dtype.name


def cast(text: str, dtype: np.dtype[Any]) -> str:
    """An expression as an element of this dtype."""
    return f"{'boolean' if dtype.kind == 'b' else dtype.name}({text})"


def number_text(number: Any) -> str:
    """A number as text that means exactly it; infinities and NaN have names in kernels."""
    plain = number.item() if isinstance(number, np.generic | np.ndarray) else number
    text = repr(plain)
    return f"({text})" if text.startswith("-") else text
