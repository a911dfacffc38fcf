"""Dead code and dead writes: what stays, what goes, and why."""

from __future__ import annotations

import pytest
from passes.laws import after, graph_of, ops_of, run_pass

from minigraph.ir import Graph, Ids, Node, Op, Signature
from minigraph.passes import optimize


def test_dead_chains_go_and_each_node_says_why() -> None:
    graph = graph_of("""\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = sqrt %a : f64[3]
          %c = negative %b : f64[3]
          return %x
        }""")
    changed, events = run_pass("dce", graph)
    assert not changed.nodes
    assert [(event.kind, event.rule, event.why) for event in events] == [
        ("remove", "dce.unused", "its last reader %b is dead"),
        ("remove", "dce.unused", "its last reader %c is dead"),
        ("remove", "dce.unused", "nobody reads it"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        'print %x {parts=("x", %)}',
        "write %x, %y",
        '%u = draw %r {method="random", size=(3,)} : f64[3]',
        "%d = floor_divide %n, %n : int",
        "%d = add %i, %n : i8[3]",
        "%g = gather %x, %i {index=[%]} : f64[3]",
    ],
)
def test_effects_and_what_may_raise_stay(line: str) -> None:
    graph = graph_of(f"""\
        graph f(%x: f64[3], %y: f64[3], %r: generator, %n: int, %i: i8[3]) {{
          {line}
          return %n
        }}""")
    assert run_pass("dce", graph)[0] is graph


def test_what_cannot_raise_goes() -> None:
    text = """\
        graph f(%i: i8[3]) {
          %c = const 100 : int
          %a = add %i, %c : i8[3]
          return %i
        }"""
    assert ops_of(after("dce", text)) == ["const", "add"]
    assert not optimize(graph_of(text)).graph.nodes
    too_large = graph_of(text.replace("100", "200"))
    assert ops_of(optimize(too_large).graph) == ["const", "add"]


def test_one_needed_result_keeps_the_node() -> None:
    text = """\
        graph f(%x: f64[3]) {
          %a, %b = modf %x : f64[3], f64[3]
          return %b
        }"""
    assert after("dce", text).nodes


def test_a_region_with_an_effect_keeps_its_node() -> None:
    call = Op("call_it", "control", lambda types, attrs: types[0], lambda *a, **k: None)

    def with_body(body: Graph) -> Graph:
        ids = Ids(50)
        x, y = ids.value(body.inputs[0].type), ids.value(body.inputs[0].type)
        node = Node(ids.next(), call, [x], {"body": body}, [y])
        return Graph("f", [x], [node], [x], Signature.flat([x], [x]))

    loud = with_body(graph_of("graph g(%y: int) {\n  print %y {parts=(%,)}\n  return %y\n}"))
    assert run_pass("dce", loud)[0] is loud
    quiet = with_body(graph_of("graph g(%y: int) {\n  %a = negative %y : int\n  return %y\n}"))
    assert not run_pass("dce", quiet)[0].nodes


# ---- writes


def writes(body: str) -> list[str]:
    """The values that are still written, in order."""
    lines = "\n".join(f"  {line}" for line in body.split("\n"))
    graph = graph_of(
        f"graph f(%x: f64[3], %y: f64[3], %i: i64[3], %n: int) {{\n"
        f"  %a = exp %i : f64[3]\n  %b = sqrt %i : f64[3]\n{lines}\n  return %n\n}}"
    )
    changed, events = run_pass("drop_writes", graph)
    dropped = [event.before[0] for event in events]
    assert [n for n in graph.nodes if n not in dropped] == list(changed.nodes)
    return [
        f"{node.inputs[0].name}={node.inputs[1].name}"
        for node in changed.nodes
        if node.op.name == "write"
    ]


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("write %x, %a\nwrite %x, %b", ["x=b"]),
        ("write %x, %a\nwrite %x, %b\nwrite %x, %a", ["x=a"]),
        ("write %x, %a\n%c = negative %a : f64[3]\nwrite %x, %c", ["x=c"]),
        ("write %x, %a\nwrite %y, %b\nwrite %x, %b", ["y=b", "x=b"]),
        ("write %x, %a\nprint %n {parts=(%,)}\nwrite %x, %b", ["x=a", "x=b"]),
        ("write %x, %a\n%d = floor_divide %n, %n : int\nwrite %x, %b", ["x=a", "x=b"]),
        ("write %x, %a\nwrite %y, %a", ["x=a", "y=a"]),
    ],
)
def test_a_write_that_is_covered_before_anybody_looks_is_dropped(
    body: str, kept: list[str]
) -> None:
    assert writes(body) == kept


def test_what_only_a_dropped_write_needed_goes_too() -> None:
    text = """\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = sqrt %x : f64[3]
          write %x, %a
          write %x, %b
          return None
        }"""
    assert ops_of(optimize(graph_of(text), debug=True).graph) == ["sqrt", "write"]
