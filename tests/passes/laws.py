"""What the tests of passes share: graphs from text, exact comparison, random graphs of real ops."""

from __future__ import annotations

import copy
import io
import random
import textwrap
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from hypothesis import strategies as st
from passes import structured

from minigraph.errors import MinigraphError
from minigraph.ir import (
    BOOL,
    FLOAT,
    INT,
    OPERAND,
    ArrayType,
    Graph,
    Ids,
    Node,
    ScalarType,
    Type,
    Value,
    parse_graph,
    parse_type,
    type_of,
    written_operands,
)
from minigraph.ops import OPS, evaluate, infer
from minigraph.passes import PASSES, Event, Recorder

EXACT = (
    *("fold", "fold_branches", "simplify", "propagate", "hoist", "prune"),
    *("cse", "dce", "drop_writes"),
)


def graph_of(text: str) -> Graph:
    return parse_graph(textwrap.dedent(text), OPS)


def run_pass(
    chosen: str | Callable[[Graph, Recorder], Graph], graph: Graph, **options: Any
) -> tuple[Graph, tuple[Event, ...]]:
    """The graph after one pass, and what the pass told."""
    recorder = Recorder(Ids.after(graph), **options)
    run = PASSES[chosen] if isinstance(chosen, str) else chosen
    return run(graph, recorder), recorder.take_events()


def after(chosen: str | Callable[[Graph, Recorder], Graph], text: str, **options: Any) -> Graph:
    return run_pass(chosen, graph_of(text), **options)[0]


def ops_of(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def refusals(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event.rule, event.code) for event in events if event.kind == "refuse"]


# ---- running


def outcome(graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """(class of the exception or None, results, arguments afterwards, the output), as bits."""
    arguments = copy.deepcopy(list(arguments))
    results: list[Any] = []
    failed, out = None, io.StringIO()
    with np.errstate(all="ignore"), warnings.catch_warnings(), redirect_stdout(out):
        warnings.simplefilter("ignore")
        try:
            results = evaluate(graph, arguments)
        except Exception as error:
            failed = type(error)
    # An argument may be returned as it is: what the caller holds after the call counts.
    return failed, list(map(bits, results)), list(map(bits, arguments)), out.getvalue()


def bits(held: Any) -> Any:
    """What makes two results the same: kind, dtype, shape and bytes, every NaN counting as one."""
    if isinstance(held, np.ndarray | np.generic):
        flat = np.array(held).reshape(-1)
        if flat.dtype.kind in "fc":
            parts = flat.view(flat.real.dtype)
            parts[np.isnan(parts)] = np.nan
        return (flat.dtype.str, np.shape(held), flat.tobytes())
    if isinstance(held, float | complex):
        return (type(held), bits(np.asarray(held)))
    return (type(held), held)


# ---- values with everything in them that rewriting gets wrong

EDGES: dict[str, list[Any]] = {
    "f": [
        *(0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, 3.0, -7.25),
        *(65504.0, 6e-8, 1e30, 1e-42, 5e-324),
    ],
    "c": [0j, complex(-0.0, 0.0), complex(np.inf, 1), complex(np.nan, -0.0), 1 + 2j, -3.5j],
    "i": [0, 1, -1, 2, 7, -128, 127, 100],
    "u": [0, 1, 2, 7, 255, 128],
    "b": [False, True],
}


def example(type_: Type, source: random.Random) -> Any:
    """A value of the type, of edge values."""
    if isinstance(type_, ScalarType):
        kind = {bool: "b", int: "i", float: "f", complex: "c"}[type_.python]
        return type_.python(source.choice(EDGES[kind]))
    assert isinstance(type_, ArrayType)
    shape = [size if isinstance(size, int) else 3 for size in type_.shape]
    kind = type_.dtype.kind
    edges = EDGES[kind]
    if kind in "iu":
        limits = np.iinfo(type_.dtype)
        edges = [*edges, int(limits.min), int(limits.max)]
        edges = [n for n in edges if limits.min <= n <= limits.max]
    with np.errstate(all="ignore"):
        count = int(np.prod(shape))
        filled = np.array([source.choice(edges) for _ in range(count)]).astype(type_.dtype)
    return filled.reshape(shape) if shape else filled.reshape(())[()]


# ---- random graphs

INPUT_TYPES = [
    *(parse_type(t) for t in ("f64[3]", "f64[2,3]", "f32[2,3]", "f16[3]", "i8[3]", "i64[2,3]")),
    *(parse_type(t) for t in ("u8[3]", "bool[3]", "c128[3]", "f64[]", "f64[3,2]", "f64[2,1,3]")),
    INT,
    FLOAT,
    BOOL,
]

CONSTANTS: list[Any] = [
    *(0, 1, -1, 2, 3, 300, 0.0, -0.0, 1.0, 0.5, 4.0, 0.1, float("nan"), True, False, 1 + 0j),
    *(np.float32(1), np.float64(-0.0), np.int8(1), np.int64(0), np.uint8(255), np.bool_(True)),
    *(np.ones(3), np.zeros((2, 3)), np.array([1, 2, 4.0]), np.array([True, True, True])),
    *(np.array([2, 2, 2], np.int8), np.ones((2, 3), np.float32), np.arange(6).reshape(2, 3)),
]

UNARY = (
    "negative positive absolute exp log sqrt floor ceil rint sign square invert logical_not "
    "conjugate isnan copy real"
).split()
BINARY = (
    "add subtract multiply divide floor_divide remainder maximum minimum fmax fmin pow power "
    "bitwise_and bitwise_or bitwise_xor left_shift right_shift equal less logical_and logical_or "
    "matmul add subtract multiply divide"
).split()
GROWING = ("pow", "left_shift", "multiply")  # Python ints of any length
DTYPES = [np.dtype(name) for name in ("f4", "f8", "i1", "i8", "u1", "?", "f2")]


class Builder:
    """Makes a graph node by node; what does not type-check is not made.

    Attributes:
        inputs: of the graph; targets: those that may be written to.
        pool: the values that may be read; root: for each value the one whose memory it shows.
        control: whether there are `if`s and loops; depth: how many graphs are around this one.
    """

    def __init__(
        self,
        source: random.Random,
        *,
        effects: bool = True,
        control: bool = False,
        around: Builder | None = None,
        types: Sequence[Type] | None = None,
    ) -> None:
        self.source = source
        self.ids = around.ids if around else Ids()
        self.effects = effects
        self.control = control
        self.depth = around.depth + 1 if around else 0
        if types is None:
            types = [source.choice(INPUT_TYPES) for _ in range(source.randint(1, 3))]
        self.inputs = [self.ids.value(type_) for type_ in types]
        self.targets = [] if around else list(self.inputs)
        self.pool = list(self.inputs)
        self.root = {value: value for value in self.inputs}
        self.nodes: list[Node] = []
        if not self.pool:
            self.node("const", value=5)

    def node(self, op: str, inputs: Sequence[Value] = (), **attrs: Any) -> tuple[Value, ...]:
        try:
            types = infer(OPS[op], [value.type for value in inputs], attrs)
        except (MinigraphError, TypeError, KeyError, IndexError):
            return ()
        outputs = [self.ids.value(type_) for type_ in types]
        node = Node(self.ids.next(), OPS[op], inputs, attrs, outputs)
        self.nodes.append(node)
        self.pool.extend(outputs)
        for value in outputs:
            self.root[value] = self.root[inputs[0]] if node.op.view and inputs else value
        for target in written_operands(node):
            self.forget(target)
        return node.outputs

    def forget(self, target: Value) -> None:
        """Nothing may read what lies in the memory of a target any more: it was written to."""
        self.pool = [value for value in self.pool if self.root[value] is not target]
        if not self.pool:
            self.node("const", value=5)

    def pick(self) -> Value:
        # What was made last is read more often, so that chains come about.
        return self.source.choice(self.pool[-6:] if self.source.random() < 0.7 else self.pool)

    def step(self) -> None:
        source, x = self.source, self.pick()
        ndim = x.type.ndim if isinstance(x.type, ArrayType) else 0
        shape = x.type.shape if isinstance(x.type, ArrayType) else ()
        choice = source.random()
        if choice < 0.15:
            value = source.choice(CONSTANTS)
            self.node("const", value=value)
        elif choice < 0.3:
            op = source.choice(UNARY)
            if op != "invert" or x.type is not FLOAT:
                self.node(op, [x])
        elif choice < 0.6:
            inputs = [x, x if source.random() < 0.2 else self.pick()]
            source.shuffle(inputs)
            op = source.choice(BINARY)
            if op not in GROWING or not all(isinstance(v.type, ScalarType) for v in inputs):
                self.node(op, inputs)
        elif choice < 0.65:
            self.node("cast", [x], dtype=source.choice(DTYPES))
        elif choice < 0.7:
            self.node("where", [self.pick(), x, x if source.random() < 0.3 else self.pick()])
        elif choice < 0.85:
            self.layout(x, ndim, shape)
        elif choice < 0.93:
            self.other(x, ndim)
        elif choice < 0.96 or not self.control or self.depth > 1:
            self.effect(x)
        else:
            structured.add(self)

    def layout(self, x: Value, ndim: int, shape: Sequence[Any]) -> None:
        source = self.source
        entry = [slice(None), slice(None, None, 2), slice(0, 3), slice(None, None, -1), 0]
        axes = list(range(ndim))
        source.shuffle(axes)
        total = int(np.prod(shape)) if shape else 1
        new = source.choice([(total,), (1, total), tuple(shape), (3, total // 3), (2, 3)])
        choices: list[tuple[str, dict[str, Any]]] = [
            ("transpose", {"axes": tuple(axes)}),
            ("reshape", {"shape": new}),
            ("expand_dims", {"axis": (source.randint(0, ndim),)}),
            ("squeeze", {"axis": tuple(a for a, size in enumerate(shape) if size == 1)}),
            ("broadcast_to", {"shape": source.choice([tuple(shape), (2, *shape), (2, 3)])}),
            ("slice", {"index": [source.choice(entry) for _ in range(source.randint(0, ndim))]}),
        ]
        op, attrs = source.choice(choices)
        self.node(op, [x], **attrs)

    def other(self, x: Value, ndim: int) -> None:
        source = self.source
        match source.randint(0, 5):
            case 0:
                self.node("sum", [x], **({"axis": (source.randrange(ndim),)} if ndim else {}))
            case 1:
                self.node("sum", [x])
            case 2:
                self.node("concatenate", [x, x], axis=0)
            case 3:
                self.node("size", [x], axis=0)
            case 4:
                numbers = [v for v in self.pool if v.type == parse_type("f64[]")]
                if numbers and isinstance(x.type, ArrayType) and x.type.dtype.kind == "f":
                    self.node("update", [x, source.choice(numbers)], index=[0])
            case _:
                self.node(source.choice(["zeros", "ones"]), shape=(2, 3))

    def effect(self, x: Value) -> None:
        if not self.effects:
            return
        if self.source.random() < 0.5:
            self.node("print", [x], parts=("x", OPERAND))
            return
        targets = [v for v in self.targets if isinstance(v.type, ArrayType) and v.type.ndim]
        if not targets:
            return
        target = self.source.choice(targets)
        values = [v for v in self.pool if v.type == target.type and self.root[v] is not target]
        if values:
            self.node("write", [target, self.source.choice(values)])

    def inner(self, types: Sequence[Type]) -> Builder:
        """What makes a region of inputs of these types."""
        return Builder(
            self.source, effects=self.effects, control=self.control, around=self, types=types
        )

    def of_type(self, type_: Type) -> Value:
        """One of the values that have a type; what was made last is likelier."""
        return self.source.choice([value for value in self.pool if value.type == type_][-3:])

    def grow(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def close(self, outputs: Sequence[Value]) -> Graph:
        return Graph("random", self.inputs, self.nodes, outputs)

    def graph(self, steps: int) -> Graph:
        self.grow(steps)
        return self.close([self.pick() for _ in range(self.source.randint(1, 3))])


@st.composite
def graphs(
    draw: st.DrawFn, *, effects: bool = True, control: bool = False, most: int = 25
) -> Graph:
    source = random.Random(draw(st.integers(0, 2**64)))
    return Builder(source, effects=effects, control=control).graph(draw(st.integers(1, most)))


def arguments_of(graph: Graph, seed: int = 0) -> list[Any]:
    source = random.Random(seed)
    found = [example(value.type, source) for value in graph.inputs]
    assert [type_of(each) for each in found] == [value.type for value in graph.inputs]
    return found
