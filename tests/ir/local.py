"""A few ops that exist in these tests only, and random graphs of them."""

from __future__ import annotations

import dataclasses
import struct
from collections import namedtuple
from typing import Any

import numpy as np
from hypothesis import strategies as st

from minigraph.errors import ShapeError
from minigraph.ir import (
    BOOL,
    COMPLEX,
    FLOAT,
    GENERATOR,
    INT,
    LEAF,
    OPERAND,
    ArrayType,
    Branch,
    Graph,
    Ids,
    Leaf,
    Loc,
    Node,
    Op,
    Signature,
    Static,
    Value,
    dim,
    leaf_count,
    type_of,
)


def first_type(types: Any, attrs: Any) -> Any:
    return types[0]


def same_types(types: Any, attrs: Any) -> Any:
    a, b = types
    if a != b:
        raise ShapeError(f"{a} and {b} do not fit")
    return a


ADD = Op("add", "elementwise", same_types, commutative=True)
NEG = Op("neg", "elementwise", first_type)
VIEW = Op("view", "layout", first_type, view=True)
CONST = Op("const", "create", lambda types, attrs: type_of(attrs["value"]))
TWICE = Op("twice", "elementwise", lambda types, attrs: (types[0], types[0]))
NOTE = Op("note", "effect", lambda types, attrs: (), effect="print")
DRAW = Op("draw", "random", lambda types, attrs: attrs["of"], effect="random")
WRITE = Op("write", "effect", lambda types, attrs: (), effect="write")
CHOOSE = Op("choose", "control", lambda types, attrs: types[0])
IDLE = Op("idle", "effect", lambda types, attrs: ())  # no result and no effect: never right
OPS = {
    op.name: op for op in (ADD, NEG, VIEW, CONST, TWICE, NOTE, DRAW, WRITE, CHOOSE, IDLE)
}  # fmt: skip

F32 = ArrayType(np.dtype("f4"), (2, 3))


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


Pair = namedtuple("Pair", "left right")

# ---- strategies

DTYPES = [
    np.dtype(name)
    for name in "bool i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
]  # fmt: skip

floats = st.floats() | st.sampled_from([0.0, -0.0, float("inf"), float("-inf")]) | (
    # Any bits at all: NaNs with a sign and a payload among them.
    st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
)  # fmt: skip
complexes = st.builds(complex, floats, floats)
integers = st.integers() | st.sampled_from([2**63, 2**64 - 1, -(2**63), 2**5000, -(2**5000)])
numbers = st.booleans() | integers | floats | complexes
names = st.sampled_from(["x", "y", "loss", "größe", "self.w", "then", "inf", "graph", "return"])


@st.composite
def arrays(draw: Any) -> Any:
    """Any bytes of any dtype: scalars, arrays without axes, empty ones, large ones."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = int(np.prod(shape))
    if dtype.kind == "b":
        content = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        array = np.array(content, dtype).reshape(shape)
    else:
        size = count * dtype.itemsize
        array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype).reshape(shape)
        if dtype.kind in "fc" and count and draw(st.booleans()):
            array = np.full(shape, draw(st.sampled_from([0.1, -0.0, np.nan, -np.inf])), dtype)
    return array[()] if not shape and draw(st.booleans()) else array


@st.composite
def dims(draw: Any, depth: int = 2) -> Any:
    """Sizes built by every operation that dimensions have."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.integers(-4, 6) | st.sampled_from("nmk").map(dim))
    a, b = draw(dims(depth - 1)), draw(dims(depth - 1))
    sign = draw(st.sampled_from(["+", "-", "*", "//", "%"]))
    if sign in ("//", "%"):
        if b == 0:
            return a
        return a // b if sign == "//" else a % b
    return a + b if sign == "+" else a - b if sign == "-" else a * b


sizes = st.integers(0, 4) | dims().filter(lambda size: not isinstance(size, int))
array_types = st.builds(
    ArrayType, st.sampled_from(DTYPES), st.lists(sizes, max_size=3).map(tuple)
)  # fmt: skip
types = st.sampled_from([BOOL, INT, FLOAT, COMPLEX, GENERATOR]) | array_types

bounds = st.none() | st.integers(-5, 5) | st.just(OPERAND) | st.just(dim("n") - 1)
plain = st.recursive(
    numbers
    | st.none()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from([Ellipsis, OPERAND, INT, GENERATOR, dim("n"), 3 * dim("n") + 1, *DTYPES])
    | array_types
    | st.builds(slice, bounds, bounds, bounds),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
attr_names = st.sampled_from(["axis", "shape", "mode", "else_", "value"])
statics = st.none() | st.booleans() | st.text(max_size=4) | numbers | st.sampled_from([int, Point])


@st.composite
def trees(draw: Any, leaves: int, depth: int = 3) -> Any:
    """A structure with so many leaves."""
    if leaves == 1 and (depth == 0 or draw(st.booleans())):
        return LEAF
    if leaves == 0 and (depth == 0 or draw(st.booleans())):
        return Static(draw(statics))
    if depth == 0:
        return Branch(list, range(leaves), [LEAF] * leaves)
    cut = draw(st.integers(0, leaves))
    children = [draw(trees(cut, depth - 1)), draw(trees(leaves - cut, depth - 1))]
    kind = draw(st.sampled_from([tuple, list, dict, Point, Pair]))
    if kind is tuple and leaves == 1 and draw(st.booleans()):
        return Branch(tuple, (0,), [draw(trees(1, depth - 1))])
    keys: Any = {
        dict: draw(st.sampled_from([("w", "b"), (0, True), (1.5, None), ("w", Point)])),
        Point: ("x", "y"),
        Pair: ("left", "right"),
    }.get(kind, (0, 1))
    return Branch(kind, keys, children)


@st.composite
def signatures(draw: Any, inputs: list[Value], outputs: list[Value]) -> Signature | None:
    if draw(st.integers(0, 3)) == 0:
        return None
    params: list[Any] = []
    left = len(inputs)
    captures = draw(st.integers(0, left))
    left -= captures
    while left or (len(params) < 2 and draw(st.booleans())):
        tree = draw(trees(draw(st.integers(0, left))))
        same = isinstance(tree, Leaf) and draw(st.booleans())
        own = inputs[len(inputs) - captures - left].hint or "" if same else None
        name = own if own is not None else draw(names | st.sampled_from(["", "7", "*args"]))
        params.append((name, tree))
        left -= leaf_count(tree)
    paths = [draw(st.sampled_from(["w", "self.layers[0].w", "d['a']"])) for _ in range(captures)]
    return Signature(params, paths, draw(trees(len(outputs))), draw(st.booleans()))


@st.composite
def graphs(draw: Any, depth: int = 2) -> Graph:
    """A graph that verifies."""
    ids = Ids(draw(st.integers(0, 5)))

    def value(type: Any) -> Value:
        return ids.value(type, draw(st.none() | names))

    inputs = [value(draw(types)) for _ in range(draw(st.integers(0, 3)))]
    values, nodes = list(inputs), list[Node]()

    def add(op: Op, operands: Any, attrs: Any, *types: Any) -> None:
        outputs = [value(type) for type in types]
        loc = draw(st.sampled_from([None, Loc("folder/file.py", 3)]))
        nodes.append(Node(ids.next(), op, operands, attrs, outputs, loc))
        values.extend(outputs)

    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.integers(0, 6))
        attrs = draw(st.dictionaries(attr_names, plain, max_size=2))
        if kind == 0 or not values:
            constant = draw(numbers | arrays())
            add(CONST, [], {"value": constant}, type_of(constant))
            continue
        if kind == 1:
            type = draw(types)
            add(DRAW, [], {**attrs, "of": type}, type)
            continue
        a = draw(st.sampled_from(values))
        if kind == 2:
            b = draw(st.sampled_from([other for other in values if other.type == a.type]))
            add(ADD, [a, b], attrs, a.type)
        elif kind == 3:
            add(TWICE, [a], attrs, a.type, a.type)
        elif kind == 4:
            add(NOTE, draw(st.lists(st.sampled_from(values), max_size=2)), attrs)
        elif kind == 5 and depth:
            then, otherwise = draw(graphs(depth - 1)), draw(graphs(depth - 1))
            add(CHOOSE, [a], {"then": then, **attrs, "otherwise": otherwise}, a.type)
        else:
            add(NEG, [a], attrs, a.type)
    outputs = draw(st.lists(st.sampled_from(values), max_size=3)) if values else []
    name = draw(st.sampled_from(["f", "<lambda>", "Model.forward", "two words", "inf", "graph"]))
    return Graph(name, inputs, nodes, outputs, draw(signatures(inputs, outputs)))
