"""Constant folding: the evaluator's results, and what is left to the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes.laws import after, graph_of, ops_of, outcome, refusals, run_pass

from minigraph.ir import Graph, Ids, Node, Op, Signature
from minigraph.ops import OPS
from minigraph.passes import optimize


def value_of(graph: Graph, name: str) -> Any:
    node = next(node for node in graph.nodes if any(v.name == name for v in node.outputs))
    assert node.op.name == "const", node
    return node.attrs["value"]


def binary(a: str, op: str, b: str, type_: str) -> Graph:
    return graph_of(f"""\
        graph f() {{
          %a = const {a}
          %b = const {b}
          %c = {op} %a, %b : {type_}
          return %c
        }}""")


def test_fancy_func_becomes_print_10() -> None:
    graph = optimize(
        graph_of("""\
        program main() {
          %a = const 1 : int
          %b = const 2 : int
          %c = const 3 : int
          %d = const 4 : int
          %e = add %a, %b : int
          %f = add %c, %d : int
          %g = add %e, %f : int
          print %g {parts=(%,)}
          return None
        }""")
    ).graph
    assert ops_of(graph) == ["const", "print"]
    assert graph.nodes[0].attrs["value"] == 10 and type(graph.nodes[0].attrs["value"]) is int
    assert outcome(graph, [])[3] == "10\n"


@pytest.mark.parametrize(
    ("a", "op", "b", "type_", "expected"),
    [
        ("2 : int", "pow", "100 : int", "int", 2**100),
        ("1 : int", "divide", "3 : int", "float", 1 / 3),
        ("200 : u8[]", "add", "100 : u8[]", "u8[]", np.uint8(44)),
        ("1.0 : f32[]", "divide", "0.0 : f32[]", "f32[]", np.float32(np.inf)),
        ("-0.0 : float", "multiply", "3 : int", "float", -0.0),
        ("1.5 : f32[]", "add", "2.5 : float", "f32[]", np.float32(4)),
        ("True : bool", "add", "True : bool", "int", 2),
    ],
)
def test_the_result_is_what_would_have_been_computed(
    a: str, op: str, b: str, type_: str, expected: Any
) -> None:
    found = value_of(run_pass("fold", binary(a, op, b, type_))[0], "c")
    assert type(found) is type(expected) and repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("a", "op", "b", "type_"),
    [
        ("1 : int", "divide", "0 : int", "float"),
        ("1 : int", "left_shift", "-1 : int", "int"),
        ("[1, 2] : i64[2]", "power", "[-1, 1] : i64[2]", "i64[2]"),
        ("[1, 2] : u8[2]", "add", "300 : int", "u8[2]"),
    ],
)
def test_what_raises_is_left_to_raise(a: str, op: str, b: str, type_: str) -> None:
    graph = binary(a, op, b, type_)
    folded, events = run_pass("fold", graph)
    assert folded is graph and refusals(events) == [("fold.raises", "RAISES")]
    assert outcome(optimize(graph).graph, [])[0] is outcome(graph, [])[0] is not None


def test_a_node_that_may_raise_folds_where_it_does_not() -> None:
    folded = after(
        "fold",
        "graph f() {\n %a = const 7 : int\n %b = const 2 : int\n %c = floor_divide %a, %b : int\n"
        " return %c\n}",
    )
    assert value_of(folded, "c") == 3


def test_a_large_result_is_not_folded() -> None:
    text = """\
        graph f() {
          %a = const 1.0 : f64[]
          %b = broadcast_to %a {shape=(1000, 1000)} : f64[1000,1000]
          return %b
        }"""
    graph = graph_of(text)
    folded, events = run_pass("fold", graph)
    assert folded is graph and refusals(events) == [("fold.limit", "SIZE_LIMIT")]
    folded, _ = run_pass("fold", graph, fold_limit_bytes=10**7)
    assert value_of(folded, "b").shape == (1000, 1000)


@pytest.mark.parametrize("op", ["pow", "left_shift"])
def test_a_huge_int_is_not_folded(op: str) -> None:
    graph = graph_of(
        f"graph f() {{\n %a = const 7 : int\n %b = const 1000000000000 : int\n"
        f" %c = {op} %a, %b : int\n return %c\n}}"
    )
    folded, events = run_pass("fold", graph)
    assert folded is graph and refusals(events) == [("fold.limit", "SIZE_LIMIT")]


def test_what_is_made_from_nothing_stays_and_is_folded_through() -> None:
    folded = after(
        "fold",
        """\
        graph f() {
          %a = ones {shape=(3,)} : f64[3]
          %two = const 2 : int
          %b = multiply %a, %two : f64[3]
          return (%a, %b)
        }""",
    )
    assert ops_of(folded) == ["ones", "const", "const"]
    assert value_of(folded, "b").tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="read-only"):
        value_of(folded, "b")[0] = 1


def test_the_size_of_an_axis_without_a_name_is_known() -> None:
    text = "graph f(%x: f64[3,n]) {{\n %a = size %x {{axis={axis}}} : int\n return %a\n}}"
    assert value_of(after("fold", text.format(axis=0)), "a") == 3
    assert ops_of(after("fold", text.format(axis=1))) == ["size"]


def test_named_sizes_are_not_folded() -> None:
    graph = graph_of("""\
        graph f(%x: f64[n]) {
          %a = zeros {shape=(<n>,)} : f64[n]
          %b = exp %a : f64[n]
          %c = add %x, %b : f64[n]
          return %c
        }""")
    assert run_pass("fold", graph)[0] is graph


def test_effects_are_not_folded_but_their_arguments_are() -> None:
    folded = after(
        "fold",
        """\
        graph f(%r: generator) {
          %a = const 1.0 : float
          %b = add %a, %a : float
          %d = draw %r, %a, %b {method="normal", size=(3,)} : f64[3]
          print %b {parts=(%,)}
          return %d
        }""",
    )
    assert ops_of(folded) == ["const", "const", "draw", "print"]


def test_several_results_become_several_constants() -> None:
    folded = after(
        "fold",
        """\
        graph f() {
          %a = const [7.5] : f64[1]
          %b, %c = modf %a : f64[1], f64[1]
          return (%b, %c)
        }""",
    )
    assert value_of(folded, "b").tolist() == [0.5] and value_of(folded, "c").tolist() == [7.0]


def test_it_goes_into_regions() -> None:
    body = graph_of(
        "graph g(%y: int) {\n %a = const 1 : int\n %b = add %a, %a : int\n return %b\n}"
    )
    call = Op("call_it", "control", lambda types, attrs: types[0], lambda xp, x, body: x)
    ids = Ids(50)
    x, y = ids.value(body.inputs[0].type), ids.value(body.inputs[0].type)
    node = Node(ids.next(), call, [x], {"body": body}, [y])
    graph = Graph("f", [x], [node], [y], Signature.flat([x], [y]))
    folded, events = run_pass("fold", graph)
    (outer,) = folded.nodes
    assert ops_of(outer.attrs["body"]) == ["const", "const"]
    assert outer.outputs == node.outputs and outer.origin == (node,) and len(events) == 1
    assert run_pass("fold", folded)[0] is folded
    assert OPS["add"] is body.nodes[1].op
