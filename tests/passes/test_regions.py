"""What goes through regions: `propagate`, `prune`, `hoist`, and the other passes inside of them."""

from __future__ import annotations

import numpy as np
import pytest
from passes.laws import after, arguments_of, graph_of, ops_of, outcome, refusals, run_pass

from minigraph.ir import Graph, Node, verify, walk
from minigraph.passes import DEFAULT, explain, optimize


def inside(graph: Graph, name: str) -> list[str]:
    """The ops of a region of the first node that has one of that name."""
    return next(ops_of(region) for n in graph.nodes for at, region in n.regions if at == name)


def optimized(text: str, without: str = "") -> Graph:
    """The graph after the pipeline; it does the same, and one more time changes nothing."""
    graph = graph_of(text)
    verify(graph)
    passes = tuple(name for name in DEFAULT if name != without)
    found = optimize(graph, passes, debug=True).graph
    assert optimize(found, passes).graph is found
    for seed in range(2):
        arguments = arguments_of(graph, seed)
        assert outcome(found, arguments) == outcome(graph, arguments)
    return found


def turns(body: str, left: str, *, given: str = "%k, %x, %w", kinds: str = "int, f64[3]") -> str:
    """A loop of three turns that carries a count and an array, and is given another one."""
    head = "(%i: int, %x: f64[3], %w: f64[3])"
    return f"""\
        graph f(%x: f64[3], %w: f64[3], %n: int) {{
          %k = const 0 : int
          %c, %y = while {given} {{test=graph t{head} {{
            %t = const 3 : int
            %m = less %i, %t : bool
            return %m
          }}, body=graph b{head} {{
            %o = const 1 : int
            %j = add %i, %o : int
            {body}
            return (%j, {left})
          }}}} : {kinds}
          return (%c, %y)
        }}"""


# ---- propagate and prune


def test_constants_fold_inside() -> None:
    text = """\
        graph f(%c: bool, %x: f64[3]) {
          %k = const 2 : int
          %y = if %c, %k, %x {then=graph t(%k: int, %x: f64[3]) {
            %e = multiply %k, %k : int
            %a = multiply %x, %e : f64[3]
            return %a
          }, otherwise=graph o(%k: int, %x: f64[3]) { return %x }} : f64[3]
          return %y
        }"""
    found = optimized(text)
    assert ops_of(found) == ["if"] and inside(found, "then") == ["const", "multiply"]
    (constant, _) = dict(found.nodes[0].regions)["then"].nodes
    assert constant.attrs["value"] == 4 and len(found.nodes[0].inputs) == 2
    assert len(optimized(text, "propagate").nodes[-1].inputs) == 3


def test_the_condition_is_known_in_its_branches() -> None:
    text = """\
        graph f(%c: bool, %x: f64[3]) {
          %y = if %c, %c, %x {then=graph t(%d: bool, %x: f64[3]) {
            %z = if %d, %x {then=graph t(%x: f64[3]) {
              %a = exp %x : f64[3]
              return %a
            }, otherwise=graph o(%x: f64[3]) { return %x }} : f64[3]
            return %z
          }, otherwise=graph o(%d: bool, %x: f64[3]) { return %x }} : f64[3]
          return %y
        }"""
    assert inside(optimized(text), "then") == ["exp"]


def test_what_a_loop_carries_in_vain_goes() -> None:
    # %w is handed on as it was given; %x is needed for itself only once its last state is not.
    found = optimized(turns("%z = add %x, %w : f64[3]", "%z"))
    assert len(found.nodes[-1].inputs) == 3
    unread = turns("%z = add %x, %w : f64[3]", "%z").replace("return (%c, %y)", "return %c")
    found = optimized(unread)
    assert len(found.nodes[-1].inputs) == 1 and inside(found, "body") == ["const", "add"]
    assert len(optimized(unread, "prune").nodes[-1].inputs) == 3


def test_what_never_changes_is_no_result() -> None:
    found = optimized(turns("print %x {parts=(%,)}", "%x"))
    loop = found.nodes[-1]
    assert len(loop.outputs) == 1 and found.outputs[1] is found.inputs[0]


def test_what_is_written_to_later_is_a_result_all_the_same() -> None:
    text = turns("print %x {parts=(%,)}", "%x").replace(
        "return (%c, %y)\n        }", "write %x, %w\n return (%c, %y)\n        }"
    )
    found = optimized(text)
    assert len(next(n for n in found.nodes if n.op.name == "while").outputs) == 2


def test_dead_values_through_loops_within_loops() -> None:
    text = """\
        graph f(%x: f64[3], %u: f64[3]) {
          %a, %b = scan %x, %u {body=graph b(%x: f64[3], %u: f64[3]) {
            %c, %d = scan %x, %u {body=graph b(%x: f64[3], %u: f64[3]) {
              %e = exp %u : f64[3]
              %g = sin %x : f64[3]
              return (%g, %e)
            }, carried=2, scanned=0, length=2} : f64[3], f64[3]
            return (%c, %d)
          }, carried=2, scanned=0, length=2} : f64[3], f64[3]
          return %a
        }"""
    found = optimized(text)
    assert [n.op.name for n in walk(found)] == ["scan", "scan", "sin"]
    assert [len(n.inputs) for n in walk(found)] == [1, 1, 1]


def test_a_loop_without_effects_that_nobody_needs_is_dropped() -> None:
    endless = turns("", "%x").replace("%m = less %i, %t : bool", "%m = const True : bool")
    graph = graph_of(endless.replace("return (%c, %y)", "return %n"))
    assert not optimize(graph, debug=True).graph.nodes


@pytest.mark.parametrize("line", ["print %w {parts=(%,)}", "%q = floor_divide %i, %i : int"])
def test_a_loop_that_prints_or_may_raise_stays(line: str) -> None:
    text = turns(line, "%x").replace("return (%c, %y)", "return %n")
    found = optimize(graph_of(text), debug=True).graph
    assert ops_of(found) == ["const", "while"]
    for seed in range(3):
        arguments = arguments_of(graph_of(text), seed)
        assert outcome(found, arguments) == outcome(graph_of(text), arguments)


# ---- hoist


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("%e = exp %w : f64[3]\n %z = add %x, %e : f64[3]", ["exp"]),
        # Taken along, but no reason by itself: views and constants.
        ("%v = slice %w {index=[::-1]} : f64[3]\n %z = add %x, %v : f64[3]", []),
        (
            "%v = slice %w {index=[::-1]} : f64[3]\n %e = exp %v : f64[3]\n"
            " %z = add %x, %e : f64[3]",
            ["slice", "exp"],
        ),
        ("%h = const 0.5 : float\n %e = multiply %w, %h : f64[3]\n %z = add %x, %e : f64[3]",
         ["const", "multiply"]),
        # It may raise, and the loop may have no turn.
        ("%g = gather %w, %i {index=[%]} : f64[]\n %z = add %x, %g : f64[3]", []),
        ("print %w {parts=(%,)}\n %z = add %x, %w : f64[3]", []),
    ],
)  # fmt: skip
def test_what_goes_before_a_loop(body: str, before: list[str]) -> None:
    text = turns(body, "%z")
    found = optimized(text)
    at = ops_of(found).index("while")
    assert sorted(ops_of(found)[:at]) == sorted(["const", *before])
    assert ops_of(optimized(text, "hoist"))[:2] == ["const", "while"]


RAISING = "%d = floor_divide %n, %n : int\n %e = multiply %w, %d : f64[3]"


def raising(length: int | str, first: str = "") -> str:
    return f"""\
        graph f(%x: f64[3], %xs: f64[{length},3], %w: f64[3], %n: int) {{
          %y = scan %x, %xs, %w, %n {{body=graph b(%x: f64[3], %r: f64[3], %w: f64[3], %n: int) {{
            {first}
            {RAISING}
            %z = add %x, %e : f64[3]
            return %z
          }}, carried=1, scanned=1, length={length if length != "n" else "<n>"}}} : f64[3]
          return %y
        }}"""


def test_what_may_raise_goes_before_a_loop_that_is_certain_to_run_and_begins_with_it() -> None:
    certain = raising(2)
    assert ops_of(after("hoist", certain)) == ["floor_divide", "multiply", "scan"]
    for text in (raising("n"), raising(2, "print %w {parts=(%,)}")):
        found, events = run_pass("hoist", graph_of(text))
        assert ops_of(found) == ["scan"]
        assert ("hoist.stays", "SIDE_EFFECT") in refusals(events)
    graph = graph_of(certain)
    for n in (0, 2):
        arguments = [np.ones(3), np.ones((2, 3)), np.ones(3), n]
        assert outcome(after("hoist", certain), arguments) == outcome(graph, arguments)


def test_out_of_loops_within_loops_in_one_go() -> None:
    text = """\
        graph f(%x: f64[3], %w: f64[3]) {
          %a = scan %x, %w {body=graph b(%x: f64[3], %w: f64[3]) {
            %c = scan %x, %w {body=graph b(%x: f64[3], %w: f64[3]) {
              %e = exp %w : f64[3]
              %g = add %x, %e : f64[3]
              return %g
            }, carried=1, scanned=0, length=2} : f64[3]
            return %c
          }, carried=1, scanned=0, length=2} : f64[3]
          return %a
        }"""
    assert ops_of(after("hoist", text)) == ["exp", "scan"]
    assert [n.op.name for n in walk(optimized(text))] == ["exp", "scan", "scan", "add"]


# ---- the others


def test_equal_loops_are_one_whatever_their_names() -> None:
    def scan(name: str) -> str:
        return f"""%{name} = scan %x {{body=graph b(%{name}: f64[3]) {{
            %{name}.1 = exp %{name} : f64[3]
            return %{name}.1
          }}, carried=1, scanned=0, length=2}} : f64[3]"""

    text = f"graph f(%x: f64[3]) {{\n{scan('a')}\n{scan('b')}\nreturn (%a, %b)\n}}"
    found = after("cse", text)
    assert ops_of(found) == ["scan"] and found.outputs[0] is found.outputs[1]
    other = text.replace("%b.1 = exp", "%b.1 = sin")
    assert ops_of(after("cse", other)) == ["scan", "scan"]


def test_what_is_an_operand_is_not_computed_inside() -> None:
    text = """\
        graph f(%c: bool, %x: f64[3]) {
          %e = exp %x : f64[3]
          %y = if %c, %x, %e {then=graph t(%x: f64[3], %e: f64[3]) {
            %g = exp %x : f64[3]
            %z = add %g, %e : f64[3]
            return %z
          }, otherwise=graph o(%x: f64[3], %e: f64[3]) { return %x }} : f64[3]
          return %y
        }"""
    found, events = run_pass("cse", graph_of(text))
    assert inside(found, "then") == ["add"]
    assert [event.rule for event in events] == ["cse.operand"]
    optimized(text)


def test_branches_that_print_are_never_one() -> None:
    line = "if %c, %x {then=graph t(%x: f64[3]) { print %x {parts=(%,)}\n return None }, " + (
        "otherwise=graph o(%x: f64[3]) { return None }}"
    )
    text = f"graph f(%c: bool, %x: f64[3]) {{\n{line}\n{line}\nreturn None\n}}"
    assert len(optimized(text).nodes) == 2


WRITING = """\
    graph f(%c: bool, %x: f64[3], %v: f64[3]) {
      %s = exp %x : f64[3]
      %k = const 0 : int
      %i, %y = while %k, %x, %x {test=graph t(%i: int, %a: f64[3], %x: f64[3]) {
        %t = const 3 : int
        %m = less %i, %t : bool
        return %m
      }, body=graph b(%i: int, %a: f64[3], %x: f64[3]) {
        %o = const 1 : int
        %j = add %i, %o : int
        %b = negative %a : f64[3]
        write %x, %b
        LINE
        return (%j, %b)
      }} : int, f64[3]
      write %x, %y
      return %s
    }"""


def test_writes_inside_are_dropped_if_nothing_looks() -> None:
    found = optimized(WRITING.replace("LINE", ""))
    assert [n.op.name for n in walk(found)].count("write") == 1
    looks = optimized(WRITING.replace("LINE", "print %i {parts=(%,)}"))
    assert [n.op.name for n in walk(looks)].count("write") == 2


def test_what_reads_an_argument_comes_before_a_loop_that_writes_to_it() -> None:
    graph = graph_of(WRITING.replace("LINE", "print %i {parts=(%,)}"))
    fused = optimize(graph, debug=True, lowering=("fuse",)).graph
    order = [_label(node) for node in fused.nodes]
    assert order.index("kernel") < order.index("while")
    arguments = [True, np.arange(3.0), np.ones(3)]
    assert outcome(fused, arguments) == outcome(graph, arguments)


def _label(node: Node) -> str:
    return node.op.name


def test_kernels_are_made_inside_and_never_across() -> None:
    body = "%e = exp %x : f64[3]\n %z = multiply %e, %e : f64[3]"
    graph = graph_of(
        turns(body, "%z").replace(
            "return (%c, %y)", "%q = exp %y : f64[3]\n %r = sin %q : f64[3]\n return (%c, %r)"
        )
    )
    fused = optimize(graph, debug=True, lowering=("fuse",)).graph
    assert ops_of(fused) == ["const", "while", "kernel"]
    assert inside(fused, "body") == ["const", "add", "kernel"]


def test_a_sum_of_what_may_lie_in_another_order_keeps_its_copy() -> None:
    text = """\
        graph f(%c: bool, %x: f64[2,3]) {
          %t = transpose %x {axes=(1, 0)} : f64[3,2]
          %y = if %c, %t {then=graph t(%t: f64[3,2]) {
            %d = copy %t {order="C"} : f64[3,2]
            %s = sum %d {axis=(0, 1)} : f64[]
            return %s
          }, otherwise=graph o(%t: f64[3,2]) {
            %s = sum %t {axis=(0, 1)} : f64[]
            return %s
          }} : f64[]
          return %y
        }"""
    assert inside(optimized(text), "then") == ["copy", "sum"]
    plain = text.replace("transpose %x {axes=(1, 0)}", "reshape %x {shape=(3, 2)}")
    assert "copy" not in [n.op.name for n in walk(optimized(plain))]


def test_a_call_within_a_loop_is_inlined() -> None:
    body = """%z = call %x, %w {body=graph g(%x: f64[3], %w: f64[3]) {
        %e = add %x, %w : f64[3]
        return %e
      }} : f64[3]"""
    graph = graph_of(turns(body, "%z"))
    assert "add" in inside(run_pass("inline", graph)[0], "body")


@pytest.mark.slow
def test_many_regions_take_time_in_proportion() -> None:
    """A thousand branches within each other's reach: each pass looks at each value once."""
    lines = ["%y0 = exp %x : f64[3]"]
    for at in range(1000):
        lines.append(
            f"%y{at + 1} = if %c, %y{at} {{then=graph t(%a: f64[3]) {{ %b = sin %a : f64[3]\n"
            f" return %b }}, otherwise=graph o(%a: f64[3]) {{ return %a }}}} : f64[3]"
        )
    text = "graph f(%c: bool, %x: f64[3]) {\n" + "\n".join(lines) + "\nreturn %y1000\n}"
    assert len(optimize(graph_of(text)).graph.nodes) == 1001


def test_what_is_told_of_regions_is_one_line_each() -> None:
    text = turns("%e = exp %w : f64[3]\n %z = add %x, %e : f64[3]", "%z")
    lines = explain(optimize(graph_of(text))).splitlines()
    assert "  ~ %c, %y = while %k, %x, %w -> %c, %y = while %k, %x, %w, %e.1" in lines
    assert "  - body: %e = exp %w : f64[3]" in lines
