"""Graphs to draw, made by hand: of ops of every kind, of any size, with names of any sort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.ir import OPERAND, Graph, Ids, Loc, Node, Op, Signature, Value, parse_type


def _op(name: str, kind: str, **given: Any) -> Op:
    return Op(name, kind, lambda types, attrs: types[0], **given)


OPS = {
    op.name: op
    for op in (
        _op("add", "elementwise", commutative=True, operator="{0} + {1}"),
        _op("subtract", "elementwise", operator="{0} - {1}"),
        _op("multiply", "elementwise", commutative=True, operator="{0} * {1}"),
        _op("maximum", "elementwise", commutative=True),
        _op("exp", "elementwise"),
        _op("sum", "reduce"),
        _op("max", "reduce"),
        _op("cumsum", "cumulate"),
        _op("reshape", "layout", view=True),
        _op("transpose", "layout", view=True),
        _op("concatenate", "join"),
        _op("gather", "index"),
        _op("matmul", "contract"),
        _op("max_pool", "window"),
        _op("const", "create"),
        _op("ones", "create"),
        _op("normal", "random", effect="random"),
        _op("sort", "library"),
        _op("split", "layout"),
        _op("print", "effect", effect="print"),
        _op("write", "effect", effect="write"),
        _op("kernel", "control"),
        _op("call", "control"),
        _op("if", "control"),
        _op("while", "control"),
    )
}


class Maker:
    """Makes the nodes of one graph, one line of `file` after the other."""

    def __init__(self, ids: Ids | None = None, *, file: str = "/home/user/program.py") -> None:
        self.ids = ids or Ids()
        self.file = file
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.function = ""

    def input(self, type_: str, hint: str | None = None) -> Value:
        self.inputs.append(Value(self.ids.next(), parse_type(type_), hint))
        return self.inputs[-1]

    def node(
        self,
        op: str,
        inputs: Sequence[Value] = (),
        types: Sequence[str] = (),
        attrs: Mapping[str, Any] | None = None,
        hints: Sequence[str | None] = (),
    ) -> Node:
        outputs = [
            Value(self.ids.next(), parse_type(text), hint)
            for text, hint in zip(types, [*hints, *[None] * len(types)], strict=False)
        ]
        loc = Loc(self.file, len(self.nodes) + 1, function=self.function)
        made = Node(self.ids.next(), OPS[op], inputs, attrs or {}, outputs, loc)
        self.nodes.append(made)
        return made

    def value(
        self, op: str, *inputs: Value, type_: str = "", hint: str | None = None, **attrs: Any
    ) -> Value:
        return self.node(op, inputs, [type_ or str(inputs[0].type)], attrs, [hint]).output

    def const(self, value: Any, type_: str = "float", hint: str | None = None) -> Value:
        return self.node("const", (), [type_], {"value": value}, [hint]).output

    def graph(
        self, *outputs: Value, name: str = "f", captures: Mapping[Value, str] | None = None
    ) -> Graph:
        captures = captures or {}
        inputs = [value for value in self.inputs if value not in captures]
        flat = Signature.flat(inputs, outputs)
        signature = Signature(flat.params, list(captures.values()), flat.result)
        return Graph(name, [*inputs, *captures], self.nodes, outputs, signature)


def textbook() -> Graph:
    make = Maker(file="/home/user/fancy_func.py")
    a, b, c, d = (make.input("int", hint) for hint in "abcd")
    e = make.value("add", a, b, hint="e")
    f = make.value("add", c, d, hint="f")
    return make.graph(make.value("add", e, f, hint="g"), name="fancy_func")


def layer() -> Graph:
    """A layer with a captured weight, constants of several sorts, a dead node and two prints."""
    make = Maker(file="/home/user/layer.py")
    x = make.input("f32[batch,8]", "x")
    w = make.input("f32[8,16]", "w")
    h = make.value("matmul", x, w, type_="f32[batch,16]", hint="h")
    half = make.const(0.5)
    y = make.value("multiply", h, half, hint="y")
    z = make.value("subtract", y, make.const(np.float32(1.5), "f32[]"))
    r = make.value("maximum", z, make.const(0.0), hint="r")
    make.value("exp", r, hint="unused")
    total = make.value("sum", r, type_="f32[batch]", hint="total", axis=1)
    twice = make.value("add", total, total, hint="twice")
    scaled = make.value("multiply", twice, half)
    shifted = make.value("add", scaled, make.const(np.arange(3, dtype=np.float32), "f32[3]"))
    big = make.const(np.ones((4, 4), np.float32), "f32[4,4]", hint="table")
    out = make.value("gather", shifted, big, type_="f32[batch,4]", hint="out", index=[OPERAND])
    make.node("print", [total], [], {"parts": ("total", OPERAND)})
    make.node("print", [twice], [], {"parts": ("twice", OPERAND)})
    return make.graph(out, r, name="layer", captures={w: "model.w"})


def every_kind() -> Graph:
    make = Maker(file="/home/user/kinds.py")
    x = make.input("f64[4,6]", "x")
    w = make.input("f64[6,6]", "w")
    values = [make.value("matmul", x, w)]
    values.append(make.value("add", values[0], make.const(1.0)))
    values.append(make.value("cumsum", values[1], axis=1))
    values.append(make.value("transpose", values[2], type_="f64[6,4]", axes=(1, 0)))
    values.append(make.value("concatenate", values[3], values[3], type_="f64[12,4]", axis=0))
    values.append(make.value("gather", values[4], type_="f64[3,4]", index=[slice(0, 3), ...]))
    values.append(make.value("max_pool", values[5], type_="f64[2,2]", size=(2, 2)))
    values.append(make.value("sort", values[6], axis=-1))
    ones = make.value("ones", type_="f64[2,2]", shape=(2, 2))
    rng = make.input("generator", "rng")
    noise = make.value("normal", rng, type_="f64[2,2]", hint="noise", size=(2, 2))
    values.append(make.value("add", values[7], ones))
    values.append(make.value("subtract", values[8], noise))
    parts = make.node("split", [values[9]], ["f64[1,2]", "f64[1,2]"], {"axis": 0}, ["p", "q"])
    last = make.value("sum", parts.outputs[1], type_="f64[]", hint="total")
    make.node("print", [last], [], {"parts": ("total", OPERAND)})
    make.node("write", [x, values[1]])
    return make.graph(parts.outputs[0], last, name="every_kind", captures={w: "model.w"})


def regions() -> Graph:
    """A fused kernel, an `if`, and a `while` within a call."""
    make = Maker(file="/home/user/regions.py")
    x, flag = make.input("f32[8]", "x"), make.input("bool[]", "flag")
    inner = Maker(make.ids)
    p, q = inner.input("f32[8]", "p"), inner.input("f32[8]", "q")
    t = inner.value("multiply", p, inner.const(2.0))
    u = inner.value("exp", inner.value("subtract", t, q))
    y = make.value("add", x, make.const(1.0), hint="y")
    fused = make.node(
        "kernel", [x, y], ["f32[8]"], {"body": inner.graph(u, name="k0"), "form": "loop"}, ["fused"]
    )
    then, other = Maker(make.ids), Maker(make.ids)
    a = then.input("f32[8]", "a")
    b = other.input("f32[8]", "b")
    other.node("print", [b], [], {"parts": ("no", OPERAND)})
    branches = {
        "then": then.graph(then.value("exp", a), name="then"),
        "orelse": other.graph(b, name="orelse"),
    }
    chosen = make.node("if", [flag, fused.output], ["f32[8]"], branches, ["chosen"])
    again = Maker(make.ids)
    i = again.input("f32[8]", "i")
    test, body = Maker(make.ids), Maker(make.ids)
    j, k = test.input("f32[8]", "j"), body.input("f32[8]", "k")
    loop = again.node(
        "while",
        [i],
        ["f32[8]"],
        {
            "test": test.graph(test.value("sum", j, type_="f32[]"), name="test"),
            "body": body.graph(body.value("multiply", k, k), name="body"),
        },
    )
    call = make.node(
        "call", [chosen.output], ["f32[8]"], {"function": again.graph(loop.output, name="again")}
    )
    return make.graph(call.output, name="regions")


def chain(length: int, *, regular: bool = True) -> Graph:
    """One op after the other; an irregular one never repeats itself for long."""
    make = Maker()
    value = make.input("f32[8]", "x")
    random = np.random.default_rng(0)
    for index in range(length):
        if regular:
            value = make.value(("add", "multiply")[index % 2], value, value)
        else:
            value = make.value("reshape", value, code=int(random.integers(1 << 30)))
    return make.graph(value, name="chain")


def transformer(layers: int) -> Graph:
    """Attention and a feed-forward part in each layer; scale, mask and epsilon are shared."""
    make = Maker(file="/home/user/transformer.py")
    x = make.input("f32[64,32]", "x")
    captures: dict[Value, str] = {}

    def weight(name: str) -> Value:
        value = make.input("f32[32,32]", name)
        captures[value] = f"model.{name}"
        return value

    scale, epsilon = make.const(0.125), make.const(1e-5)
    mask = make.const(np.zeros((64, 64), np.float32), "f32[64,64]", hint="mask")

    def norm(value: Value) -> Value:
        make.function = "norm"
        mean = make.value("sum", value, type_="f32[64,1]", axis=-1, keepdims=True)
        centred = make.value("subtract", value, mean)
        variance = make.value(
            "sum", make.value("multiply", centred, centred), type_="f32[64,1]", axis=-1
        )
        return make.value(
            "multiply", centred, make.value("exp", make.value("add", variance, epsilon))
        )

    for number in range(layers):
        y = norm(x)
        make.function = "attention"
        q, k, v = (make.value("matmul", y, weight(f"{part}{number}")) for part in "qkv")
        turned = make.value("transpose", k, type_="f32[32,64]", axes=(1, 0))
        scores = make.value("multiply", make.value("matmul", q, turned, type_="f32[64,64]"), scale)
        masked = make.value("add", scores, mask)
        top = make.value("max", masked, type_="f32[64,1]", axis=-1)
        raised = make.value("exp", make.value("subtract", masked, top))
        total = make.value("sum", raised, type_="f32[64,1]", axis=-1)
        weights = make.value("multiply", raised, total)
        mixed = make.value("matmul", weights, v, type_="f32[64,32]")
        x = make.value("add", x, make.value("matmul", mixed, weight(f"o{number}")))
        y = norm(x)
        make.function = "feed_forward"
        up = make.value("maximum", make.value("matmul", y, weight(f"u{number}")), make.const(0.0))
        x = make.value("add", x, make.value("matmul", up, weight(f"d{number}")))
    return make.graph(x, name="transformer", captures=captures)


def skips(length: int, seed: int = 0) -> Graph:
    """Each node takes two values from anywhere before it: what layout engines find hardest."""
    make = Maker()
    values = [make.input("f32[8]", "x")]
    random = np.random.default_rng(seed)
    for _ in range(length):
        first, second = random.integers(len(values), size=2)
        values.append(make.value("add", values[first], values[second]))
    return make.graph(values[-1], name="skips")


HOSTILE = (
    "x1:x2", "A::B", 'say "hi"', "tail\\", "<b>", "a,b", "node", "größe", "new\nline", "x" * 4096,
    "\\N", "\\l\\r\\n", "&lt;", "&#92;", "{a|b}", "</svg><script>alert(1)</script>", "\0",
    "\u202eevil", "\u2028", "日本語", "🙂", "", "-->", "]]>", "a b", "%", "edge", "digraph",
    "\ud800", "'", "`", "#", "${x}", "%(x)s",
)  # fmt: skip


def hostile() -> Graph:
    """Values, attrs, functions and a graph whose names mean something to DOT, XML or HTML."""
    make = Maker(file='/home/user/"<&>\\.py')
    first = value = make.input("f32[8]", HOSTILE[0])
    for name in HOSTILE[1:]:
        make.function = name
        value = make.value("add", value, first, hint=name, words=name)
    return make.graph(value, name='<&"\\graph\n', captures={})


def equal_labels() -> Graph:
    make = Maker()
    x = make.input("f32[8]", "x")
    one, two = make.value("exp", x, hint="y"), make.value("exp", x, hint="y")
    return make.graph(one, two)
