"""The pipeline, its history, and what a diff shows."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from passes.laws import EXACT, graph_of, ops_of, run_pass

from minigraph.errors import OptionError, VerifyError
from minigraph.ir import Graph, Ids, Node, Signature, parse_type
from minigraph.ops import OPS, evaluate
from minigraph.passes import DEFAULT, LOWERINGS, PASSES, Recorder, diff, optimize, plan_of

TEXT = """\
    graph fancy_func(%a: f64[3], %b: f64[3]) {
      %one = const 1.0 : float
      %two = const 2.0 : float
      %e = add %a, %b : f64[3]
      %dead = exp %e : f64[3]
      %f = add %a, %b : f64[3]
      %g = multiply %f, %one : f64[3]
      %k = add %one, %two : float
      %h = multiply %e, %g : f64[3]
      %r = subtract %h, %k : f64[3]
      return %r
    }"""


def test_stages_are_kept_in_order() -> None:
    graph = graph_of(TEXT)
    history = optimize(graph, debug=True)
    assert history.stages[0].graph is graph and history.stages[0].name == "traced"
    assert tuple(s.name for s in history.stages[1 : len(DEFAULT) + 1]) == DEFAULT
    assert all(stage.wall_s >= 0 for stage in history.stages)
    assert history.stage("optimized").graph is history.graph is history.stages[-1].graph
    assert history.stage("fold").round == 1
    for before, stage in zip(history.stages, history.stages[1:], strict=False):
        if stage.graph is before.graph:
            assert not [event for event in stage.events if event.kind != "refuse"]
    assert ops_of(history.graph) == ["add", "const", "multiply", "subtract"]
    assert str(optimize(graph).graph) == str(history.graph)


@pytest.mark.parametrize("name", DEFAULT)
def test_each_pass_can_be_switched_off(name: str) -> None:
    history = optimize(graph_of(TEXT), tuple(other for other in DEFAULT if other != name))
    assert name not in [stage.name for stage in history.stages]


def test_no_passes_at_all() -> None:
    graph = graph_of(TEXT)
    assert optimize(graph, ()).graph is graph


def test_a_function_is_a_pass() -> None:
    def reverse_names(graph: Graph, recorder: Recorder) -> Graph:
        return graph

    history = optimize(graph_of(TEXT), ("dce", reverse_names))
    assert [stage.name for stage in history.stages][:3] == ["traced", "dce", "reverse_names"]


def test_a_name_that_does_not_exist_gets_the_nearest() -> None:
    with pytest.raises(OptionError, match=r"no pass 'flod'(.|\n)*did you mean 'fold'"):
        optimize(graph_of(TEXT), ("flod",))
    with pytest.raises(OptionError, match=r"tuple of passes(.|\n)*passes=\('fold',\)"):
        optimize(graph_of(TEXT), "fold")
    with pytest.raises(OptionError, match=r"no stage 'folds'(.|\n)*did you mean 'fold'"):
        optimize(graph_of(TEXT)).stage("folds")


def test_passes_are_found_by_their_file() -> None:
    assert {*EXACT, *LOWERINGS} == set(PASSES)


def test_debug_names_the_pass_that_broke_the_graph() -> None:
    def break_it(graph: Graph, recorder: Recorder) -> Graph:
        return graph.replace(graph.nodes[1:])

    with pytest.raises(VerifyError, match="after break_it"):
        optimize(graph_of(TEXT), (break_it,), debug=True)


def test_a_pass_that_never_ends_is_stopped_and_told() -> None:
    def add_one(graph: Graph, recorder: Recorder) -> Graph:
        value = recorder.ids.value(parse_type("int"))
        node = Node(recorder.ids.next(), OPS["const"], (), {"value": 1}, [value])
        recorder.note("add_one", "for fun")
        return graph.replace([*graph.nodes, node])

    history = optimize(graph_of(TEXT), (add_one,))
    assert history.stages[-1].events[0].rule == "pipeline.rounds"


def test_rounds_go_on_while_passes_help_each_other() -> None:
    # The size is known after one round of folding, then the division is by a power of two.
    history = optimize(
        graph_of("""\
        graph f(%x: f64[4], %y: f64[4]) {
          %n = size %x {axis=0} : int
          %two = const 2 : int
          %m = multiply %n, %two : int
          %a = divide %x, %m : f64[4]
          %i = const 0.125 : float
          %b = multiply %x, %i : f64[4]
          %c = subtract %a, %b : f64[4]
          return %c
        }"""),
        debug=True,
    )
    assert ops_of(history.graph) == ["const", "multiply", "subtract"]
    assert len(set(history.graph.nodes[-1].inputs)) == 1


# ---- diff


def test_a_diff_goes_by_identity() -> None:
    graph = graph_of(TEXT)
    changed, events = run_pass("cse", graph)
    changed, more = run_pass("dce", changed)
    lines = [f"{d.mark} {d.text}  ({d.why})" for d in diff(graph, changed, (*events, *more))]
    assert lines == textwrap.dedent("""\
        - %dead = exp %e : f64[3]  (nobody reads it)
        - %f = add %a, %b : f64[3]  (same op, same inputs as %e)
        ~ %g = multiply %f, %one : f64[3] -> %g = multiply %e, %one : f64[3]  \
(operand changed: %f is %e now (same op, same inputs as %e))""").split("\n")
    assert diff(graph, graph) == []


def test_new_and_refused_nodes_are_marked() -> None:
    graph = graph_of("""\
        graph f(%x: f64[3]) {
          %c = const 4.0 : float
          %z = const 0.0 : float
          %a = divide %x, %c : f64[3]
          %b = add %a, %z : f64[3]
          return %b
        }""")
    changed, events = run_pass("simplify", graph)
    found = [(d.mark, d.text) for d in diff(graph, changed, events)]
    new = changed.nodes[2].output.name
    assert found == [
        ("+", f"%{new} = const 0.25 : float"),
        ("~", f"%a = divide %x, %c : f64[3] -> %a = multiply %x, %{new} : f64[3]"),
        ("!", "%b = add %a, %z : f64[3]"),
    ]
    refused = diff(graph, changed, events)[-1]
    assert refused.why.startswith("FLOAT_ORDER: ") and "fast_math=True" in refused.why


def test_nodes_without_results_are_followed_too() -> None:
    graph = graph_of("""\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = exp %x : f64[3]
          print %b {parts=(%,)}
          print %a {parts=(%,)}
          return None
        }""")
    changed, events = run_pass("cse", graph)
    assert [d.mark for d in diff(graph, changed, events)] == ["-", "~", "!"]


# ---- long graphs


def chain(count: int) -> Graph:
    """A chain in which each pass has something to do, all the way."""
    ids = Ids()
    x = ids.value(parse_type("f64[2]"))
    nodes: list[Node] = []
    last = x
    for number in range(count // 5):
        one, other, kept, doubled, total = (ids.value(x.type) for _ in range(5))
        constant = ids.value(parse_type("float"))
        nodes += [
            Node(ids.next(), OPS["const"], (), {"value": 1.0}, [constant]),
            Node(ids.next(), OPS["sin"], [last], {}, [one]),
            Node(ids.next(), OPS["sin"], [last], {}, [other]),
            Node(ids.next(), OPS["multiply"], [other, constant], {}, [kept]),
            Node(ids.next(), OPS["negative"], [one], {}, [doubled]),
            Node(ids.next(), OPS["add"], [one, kept], {}, [total]),
        ]
        last = total if number % 2 else kept
    return Graph("chain", [x], nodes, [last], Signature.flat([x], [last]))


def test_a_long_chain_compiles() -> None:
    graph = chain(20_000)
    history = optimize(graph)
    assert len(history.graph.nodes) < len(graph.nodes) / 2
    found = plan_of(history.graph)
    assert found.peak_bytes == found.lower_bytes == 16
    x = np.array([0.5, -1.0])
    assert evaluate(history.graph, [x])[0].tolist() == evaluate(graph, [x])[0].tolist()


def test_a_long_chain_of_constants_folds() -> None:
    ids = Ids()
    types = parse_type("int")
    first, one = ids.value(types), ids.value(types)
    nodes = [
        Node(ids.next(), OPS["const"], (), {"value": 0}, [first]),
        Node(ids.next(), OPS["const"], (), {"value": 1}, [one]),
    ]
    last = first
    for _ in range(20_000):
        value = ids.value(types)
        nodes.append(Node(ids.next(), OPS["add"], [last, one], {}, [value]))
        last = value
    graph = optimize(Graph("f", [], nodes, [last])).graph
    assert ops_of(graph) == ["const"] and graph.nodes[0].attrs["value"] == 20_000
