"""Random graphs of what fuses well: loops of one to three axes, reductions, views, products."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from passes.laws import Builder, example

from minigraph.ir import (
    BOOL,
    FLOAT,
    INT,
    ArrayType,
    Dim,
    Graph,
    Ids,
    Node,
    Signature,
    Size,
    Type,
    Value,
    dim,
    product,
)
from minigraph.ops import OPS, evaluate_node

DTYPES = [np.dtype(name) for name in "f4 f8 f4 f8 i1 i4 i8 u1 u2 u8 ?".split()]
EXACT_UNARY = (
    "negative positive absolute sign square sqrt floor ceil rint trunc reciprocal invert copy "
    "logical_not isnan isinf exp tanh bitwise_count"
).split()
EXACT_BINARY = (
    "add subtract multiply divide floor_divide remainder fmod maximum minimum "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift equal less greater_equal "
    "logical_and logical_or logical_xor power"
).split()
SMOOTH_UNARY = "negative absolute square sin cos tanh exp expit arctan sqrt".split()
SMOOTH_BINARY = "add subtract multiply maximum minimum".split()
NUMBERS: list[Any] = [0, 1, -3, 2, 0.5, -0.0, True, np.float32(0.25), np.int8(3), np.float64(2)]


LARGEST = 1 << 18  # elements of one array; some arguments have eight times as many


class LoopBuilder(Builder):
    """Makes a graph over one shape, its rows and columns.

    Attributes:
        smooth: only floats, and no op that makes large differences of small ones.
    """

    def __init__(self, source: random.Random, *, smooth: bool, most: int) -> None:
        self.source = source
        self.ids = Ids()
        self.effects = False
        self.smooth = smooth
        self.float = source.choice(DTYPES[:2])
        extents = [1, 2, 3, 5, 8, most] if smooth or source.random() < 0.8 else [0, 1, 3]
        sizes: list[Size] = [source.choice(extents) for _ in range(source.randint(1, 3))]
        while math.prod(sizes) > LARGEST:
            sizes[sizes.index(most)] = 8
        self.named = not smooth and source.random() < 0.2
        if self.named:
            sizes[source.randrange(len(sizes))] = dim("n")
        self.shape = tuple(sizes)
        types = [self.type() for _ in range(source.randint(1, 4))]
        if self.named:  # whatever is read of the others, this one tells the size
            types[0] = ArrayType(self.float, self.shape)
        self.inputs = [self.ids.value(type_) for type_ in types]
        self.pool = list(self.inputs)
        self.root = {value: value for value in self.inputs}
        self.nodes: list[Node] = []

    def type(self) -> Type:
        """That of an argument: an array over (some axes of) the loops, or a number."""
        source = self.source
        if not self.smooth and source.random() < 0.15:
            return source.choice([INT, FLOAT, BOOL])
        dtype = self.float if self.smooth or source.random() < 0.4 else source.choice(DTYPES)
        choice = source.random()
        shape = list(self.shape)
        if choice < 0.3:
            shape = [size if source.random() < 0.5 else 1 for size in shape]
        elif choice < 0.4:
            shape = shape[1:]
        elif choice < 0.5:
            shape.reverse()
        elif choice < 0.6:
            shape = [size * 2 + 1 for size in shape]
        return ArrayType(dtype, tuple(shape))

    def step(self) -> None:
        source, x = self.source, self.pick()
        ndim = x.type.ndim if isinstance(x.type, ArrayType) else 0
        choice = source.random()
        if choice < 0.25:
            self.node(source.choice(SMOOTH_UNARY if self.smooth else EXACT_UNARY), [x])
        elif choice < 0.6:
            self.binary(x)
        elif choice < 0.7 and not self.smooth:
            self.mixed(x)
        elif choice < 0.85 and ndim:
            self.reduction(x, ndim)
        elif choice < 0.93:
            self.view(x, ndim)
        else:
            self.product(x)

    def binary(self, x: Value) -> None:
        source = self.source
        if source.random() < 0.25:
            self.node("const", value=source.choice(NUMBERS[4:5] if self.smooth else NUMBERS))
            y = self.pool[-1]
        else:
            y = source.choice(self.pool)
        pair = [x, y]
        source.shuffle(pair)
        if not all(isinstance(v.type, ArrayType) for v in pair) and not any(
            isinstance(v.type, ArrayType) for v in pair
        ):
            return
        self.node(source.choice(SMOOTH_BINARY if self.smooth else EXACT_BINARY), pair)

    def mixed(self, x: Value) -> None:
        source = self.source
        if source.random() < 0.5:
            self.node("cast", [x], dtype=source.choice(DTYPES))
        else:
            self.node("where", [self.pick(), x, source.choice(self.pool)])

    def reduction(self, x: Value, ndim: int) -> None:
        source = self.source
        assert isinstance(x.type, ArrayType)
        floats = x.type.dtype.kind == "f"
        names = ["max", "min", "any", "all"]
        if self.smooth:
            names = ["sum", "mean", "max", "min", "sum", "mean", "var", "std"]
        elif not floats:
            names += ["sum", "prod"]
        first = source.randrange(ndim)
        axes = source.choice(
            [(ndim - 1,), (0,), (first,), tuple(range(first, ndim)), tuple(range(ndim)), (0,)]
        )
        attrs = {"keepdims": True} if source.random() < 0.7 else {}
        name = source.choice(names)
        if name in ("max", "min"):
            if 0 in x.type.shape:  # NumPy raises
                return
            if floats:  # which of two zeros NumPy takes depends on where they stand
                self.node("const", value=0.0)
                self.node("add", [x, self.pool[-1]])
                x = self.pool[-1]
        self.node(name, [x], axis=axes, **attrs)

    def view(self, x: Value, ndim: int) -> None:
        source = self.source
        entry = [slice(None), slice(None, None, 2), slice(1, 3), slice(None, None, -1), None, 0]
        axes = list(range(ndim))
        source.shuffle(axes)
        index = [source.choice(entry) for _ in range(ndim)]
        shape = x.type.shape if isinstance(x.type, ArrayType) else ()
        choices: list[tuple[str, dict[str, Any]]] = [
            ("transpose", {"axes": tuple(axes)}),
            ("expand_dims", {"axis": (source.randint(0, ndim),)}),
            ("squeeze", {"axis": tuple(a for a, size in enumerate(shape) if size == 1)}),
            ("broadcast_to", {"shape": self.shape}),
            ("slice", {"index": index}),
            ("slice", {"index": [slice(1, None) for _ in range(ndim)]}),
            ("reshape", {"shape": (product(shape),)}),
        ]
        op, attrs = source.choice(choices)
        self.node(op, [x], **attrs)

    def product(self, x: Value) -> None:
        """A product with a new matrix (or vector)."""
        source = self.source
        if not isinstance(x.type, ArrayType) or x.type.ndim not in (1, 2):
            return
        if not self.smooth:  # sums
            return
        inner = x.type.shape[-1]
        columns = source.choice([self.shape[-1], 1, 4])
        transposed = source.random() < 0.3
        shape = (columns, inner) if transposed else (inner, columns)
        weights = self.ids.value(ArrayType(self.float, shape))
        self.inputs.append(weights)
        self.pool.append(weights)
        self.root[weights] = weights
        if transposed:
            self.node("transpose", [weights], axes=(1, 0))
        self.node("matmul", [x, self.pool[-1]])

    def graph(self, steps: int) -> Graph:
        for _ in range(steps):
            self.step()
        outputs = [self.pick() for _ in range(self.source.randint(1, 3))]
        read = {value for node in self.nodes for value in node.inputs} | {*outputs}
        read.update(self.inputs[: self.named])
        inputs = [value for value in self.inputs if value in read]
        return Graph("random", inputs, self.nodes, outputs, Signature.flat(inputs, outputs))


@st.composite
def loops(draw: st.DrawFn, *, smooth: bool = False, most: int = 17, steps: int = 20) -> Graph:
    """Graphs over one loop space.

    Args:
        draw: by hypothesis.
        smooth: floats only, and errors stay small.
        most: the largest extent of an axis.
        steps: the most nodes.
    """
    source = random.Random(draw(st.integers(0, 2**64)))
    return LoopBuilder(source, smooth=smooth, most=most).graph(draw(st.integers(1, steps)))


def with_edges(graph: Graph, seed: int) -> list[Any]:
    """Arguments of values with everything in them that goes wrong; a named size is 4."""
    source = random.Random(seed)
    return [example(_sized(value.type), source) for value in graph.inputs]


def _sized(type_: Type) -> Type:
    if not isinstance(type_, ArrayType):
        return type_
    shape = tuple(s.substitute({"n": 4}) if isinstance(s, Dim) else s for s in type_.shape)
    return ArrayType(type_.dtype, shape)


def moderate(graph: Graph, seed: int) -> list[np.ndarray[Any, Any]]:
    """Arguments of a smooth graph, of about 1."""
    rng = np.random.default_rng(seed)
    made: list[np.ndarray[Any, Any]] = []
    for value in graph.inputs:
        assert isinstance(value.type, ArrayType)
        numbers = rng.standard_normal([int(size) for size in value.type.shape])
        made.append(np.asarray(numbers).astype(value.type.dtype))
    return made


def evaluate_wide(graph: Graph, arguments: list[Any]) -> tuple[list[Any], float]:
    """The results in the next wider dtype, and the largest number on the way."""
    wider = {"float32": np.float64, "float64": np.longdouble}
    known: dict[Value, Any] = {}
    for value, given in zip(graph.inputs, arguments, strict=True):
        known[value] = np.asarray(given, wider[np.asarray(given).dtype.name])
    largest = 0.0
    for node in graph.nodes:
        results = evaluate_node(node, [known[value] for value in node.inputs])
        known.update(zip(node.outputs, results, strict=True))
        for result in results:
            largest = max(largest, float(np.max(np.abs(result), initial=0)))
    return [known[value] for value in graph.outputs], largest


assert set(EXACT_UNARY) | set(EXACT_BINARY) | set(SMOOTH_UNARY) <= OPS.keys()
