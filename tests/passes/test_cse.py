"""Common subexpressions: what is merged, and what only looks alike."""

from __future__ import annotations

import pytest
from passes.laws import after, graph_of, ops_of, refusals, run_pass

from minigraph.ir import Graph, Ids, Node, Op, Signature
from minigraph.passes import REFUSALS


def merged(body: str, **options: bool) -> bool:
    """Whether the last two of the nodes in `body` are merged, given f64[3], f64[3] and i64[3]."""
    lines = "\n".join(f"  {line}" for line in body.split("\n"))
    values = ", ".join(line.split(" = ")[0] for line in body.split("\n")[-2:])
    graph = graph_of(
        f"graph f(%x: f64[3], %y: f64[3], %i: i64[3]) {{\n{lines}\n  return ({values})\n}}"
    )
    changed, events = run_pass("cse", graph, **options)
    assert (changed is graph) == (not any(event.kind == "replace" for event in events))
    return changed.outputs[0] is changed.outputs[1]


@pytest.mark.parametrize(
    "body",
    [
        "%a = add %x, %y : f64[3]\n%b = add %x, %y : f64[3]",
        "%a = add %i, %i : i64[3]\n%b = add %i, %i : i64[3]",
        "%j = invert %i : i64[3]\n%a = add %i, %j : i64[3]\n%b = add %j, %i : i64[3]",
        "%a = equal %x, %y : bool[3]\n%b = equal %y, %x : bool[3]",
        "%a = const 1 : int\n%b = const 1 : int",
        "%a = const nan : float\n%b = const nan : float",
        "%a = const [1.0, 2.0] : f64[2]\n%b = const [1.0, 2.0] : f64[2]",
        "%a = sum %x {axis=(0,)} : f64[]\n%b = sum %x {axis=(0,)} : f64[]",
        "%a = zeros {shape=(3,)} : f64[3]\n%b = zeros {shape=(3,)} : f64[3]",
        "%c = const 2 : int\n%a = floor_divide %i, %c : i64[3]\n%b = floor_divide %i, %c : i64[3]",
        "%c = const 2 : int\n%a = add %i, %c {safe=True} : i64[3]\n%b = add %i, %c : i64[3]",
    ],
)
def test_the_same_is_computed_once(body: str) -> None:
    assert merged(body)


@pytest.mark.parametrize(
    "body",
    [
        "%a = subtract %x, %y : f64[3]\n%b = subtract %y, %x : f64[3]",
        "%a = add %x, %y : f64[3]\n%b = add %y, %x : f64[3]",
        "%a = const 1 : int\n%b = const 1.0 : float",
        "%a = const 1 : int\n%b = const True : bool",
        "%a = const 0.0 : float\n%b = const -0.0 : float",
        "%a = const 1.0 : f32[]\n%b = const 1.0 : f64[]",
        "%a = const 1.0 : float\n%b = const 1.0 : f64[]",
        "%a = const [1.0, 2.0] : f64[2]\n%b = const [[1.0, 2.0]] : f64[1,2]",
        "%a = cast %x {dtype=f32} : f32[3]\n%b = cast %x {dtype=f16} : f16[3]",
        "%a = reshape %x {shape=(3, 1)} : f64[3,1]\n%b = reshape %x {shape=(1, 3)} : f64[1,3]",
    ],
)
def test_what_looks_alike_is_not_the_same(body: str) -> None:
    assert not merged(body)


def test_operands_may_be_exchanged_under_fast_math() -> None:
    assert merged("%a = add %x, %y : f64[3]\n%b = add %y, %x : f64[3]", fast_math=True)
    assert not merged(
        "%a = subtract %x, %y : f64[3]\n%b = subtract %y, %x : f64[3]", fast_math=True
    )


def test_effects_are_not_merged() -> None:
    graph = graph_of("""\
        graph f(%r: generator, %x: f64[3]) {
          %a = const 1.0 : float
          %u = draw %r, %a, %a {method="normal", size=(3,)} : f64[3]
          %v = draw %r, %a, %a {method="normal", size=(3,)} : f64[3]
          print %x {parts=(%,)}
          print %x {parts=(%,)}
          return (%u, %v)
        }""")
    changed, events = run_pass("cse", graph)
    assert changed is graph
    assert refusals(events) == [("cse.differs", "NOT_PURE"), ("cse.differs", "SIDE_EFFECT")]


@pytest.mark.parametrize(
    ("a", "b", "code", "why"),
    [
        (
            "cast %x {dtype=f32} : f32[3]",
            "cast %x {dtype=f16} : f16[3]",
            "DTYPE",
            "other dtype than %a: f16, not f32",
        ),
        (
            "cumsum %m {axis=0} : f64[2,2]",
            "cumsum %m {axis=1} : f64[2,2]",
            "ATTRS",
            "other axis than %a: 1, not 0",
        ),
        (
            "sum %m {axis=(0,)} : f64[2]",
            "sum %m {axis=(0, 1)} : f64[]",
            "SHAPE_MISMATCH",
            "other axis than %a: (0, 1), not (0,)",
        ),
        (
            "add %x, %y : f64[3]",
            "add %y, %x : f64[3]",
            "FLOAT_ORDER",
            "the operands of %a exchanged",
        ),
        ("const 0.0 : float", "const -0.0 : float", "ATTRS", "other value than %a: -0.0, not 0.0"),
    ],
)
def test_near_misses_are_told(a: str, b: str, code: str, why: str) -> None:
    graph = graph_of(f"""\
        graph f(%x: f64[3], %y: f64[3], %m: f64[2,2]) {{
          %a = {a}
          %b = {b}
          return (%a, %b)
        }}""")
    changed, (event,) = run_pass("cse", graph)
    assert changed is graph and (event.kind, event.code) == ("refuse", code) and why in event.why
    assert event.before == (graph.nodes[1], graph.nodes[0]) and code in REFUSALS


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("const 1 : int", "const 1.0 : float"),
        ("const 1 : int", "const True : bool"),
        ("const 1.0 : f32[]", "const 1.0 : f64[]"),
        ("sum %m {axis=(0,)} : f64[2]", "sum %m {axis=(1,), keepdims=True} : f64[2,1]"),
        ("subtract %x, %y : f64[3]", "subtract %y, %x : f64[3]"),
        ("exp %x : f64[3]", "exp %y : f64[3]"),
    ],
)
def test_what_differs_in_more_than_one_thing_is_no_near_miss(a: str, b: str) -> None:
    graph = graph_of(f"""\
        graph f(%x: f64[3], %y: f64[3], %m: f64[2,2]) {{
          %a = {a}
          %b = {b}
          return (%a, %b)
        }}""")
    assert run_pass("cse", graph)[1] == ()


def test_the_nearest_of_several_is_named() -> None:
    graph = graph_of("""\
        graph f(%m: f64[2,2]) {
          %a = sum %m {axis=(0,)} : f64[2]
          %b = sum %m {axis=(1,), keepdims=True} : f64[2,1]
          %c = sum %m {axis=(1,)} : f64[2]
          %d = sum %m {axis=(0,), keepdims=True} : f64[1,2]
          return (%a, %b, %c, %d)
        }""")
    found = [event.why for event in run_pass("cse", graph)[1]]
    assert found == [
        "other keepdims than %b: left out, not True",
        "other axis than %b: (0,), not (1,)",
    ]


def test_there_is_one_near_miss_for_each_node() -> None:
    lines = [f"%v{i} = reshape %x {{shape=({2**i}, {2 ** (6 - i)})}}" for i in range(7)]
    types = [f" : f64[{2**i},{2 ** (6 - i)}]" for i in range(7)]
    body = "\n".join(line + type_ for line, type_ in zip(lines, types, strict=True))
    graph = graph_of(f"graph f(%x: f64[64]) {{\n{body}\n return %x\n}}")
    assert len(run_pass("cse", graph)[1]) == 6


def test_readers_of_what_was_merged_keep_their_values() -> None:
    graph = graph_of("""\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = exp %x : f64[3]
          %c = sqrt %b : f64[3]
          %d = sqrt %x : f64[3]
          return (%c, %b, %d)
        }""")
    changed, events = run_pass("cse", graph)
    assert ops_of(changed) == ["exp", "sqrt", "sqrt"]
    assert changed.nodes[0] is graph.nodes[0] and changed.nodes[2] is graph.nodes[3]
    assert changed.nodes[1].outputs == graph.nodes[2].outputs
    assert changed.nodes[1].origin == (graph.nodes[2],)
    assert changed.outputs[1] is graph.nodes[0].output
    (event,) = (event for event in events if event.kind == "replace")
    assert event.before == (graph.nodes[1],) and event.after == (graph.nodes[0],)
    assert event.why == "same op, same inputs as %a"


def test_chains_are_merged_in_one_run() -> None:
    text = """\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = sqrt %a : f64[3]
          %c = exp %x : f64[3]
          %d = sqrt %c : f64[3]
          %e = multiply %b, %d : f64[3]
          return %e
        }"""
    assert ops_of(after("cse", text)) == ["exp", "sqrt", "multiply"]


def test_equal_regions_are_equal() -> None:
    def body() -> Graph:
        return graph_of(
            "graph g(%y: f64[3]) {\n %a = exp %y : f64[3]\n %b = exp %y : f64[3]\n"
            " return (%a, %b)\n}"
        )

    call = Op("call_it", "control", lambda types, attrs: (types[0], types[0]), lambda *a, **k: None)
    ids = Ids(50)
    x, *rest = (ids.value(body().inputs[0].type) for _ in range(5))
    nodes = [
        Node(ids.next(), call, [x], {"body": body()}, rest[:2]),
        Node(ids.next(), call, [x], {"body": body()}, rest[2:]),
    ]
    graph = Graph("f", [x], nodes, rest, Signature.flat([x], rest))
    changed, _ = run_pass("cse", graph)
    (node,) = changed.nodes
    assert ops_of(node.attrs["body"]) == ["exp"]
    assert changed.outputs == (*node.outputs, *node.outputs) and node.origin == (nodes[0],)
