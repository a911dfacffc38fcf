"""Known branches: what is taken, what stays, and what effects remain."""

from __future__ import annotations

import numpy as np
import pytest
from passes.laws import after, graph_of, ops_of, outcome, refusals, run_pass

from minigraph.ir import verify
from minigraph.passes import optimize


def branch(condition: str, then: str, otherwise: str) -> str:
    return f"""\
        graph f(%x: f64[3], %c: bool) {{
          %k = const {condition}
          %y = if {"%k" if condition != "0 : int" else "%c"}, %x {{then=graph t(%x: f64[3]) {{
            {then}
          }}, otherwise=graph o(%x: f64[3]) {{
            {otherwise}
          }}}} : f64[3]
          return %y
        }}"""


EXP = "%a = exp %x : f64[3]\n return %a"
LOUD = "print %x {parts=('x', %)}\n return %x"


@pytest.mark.parametrize(
    ("condition", "ops"),
    [("True : bool", ["const", "exp"]), ("False : bool[]", ["const", "print"])],
)
def test_the_branch_that_is_taken_is_there_at_once(condition: str, ops: list[str]) -> None:
    assert ops_of(after("fold_branches", branch(condition, EXP, LOUD))) == ops


def test_branches_that_do_the_same_need_no_condition() -> None:
    graph, events = run_pass("fold_branches", graph_of(branch("0 : int", LOUD, LOUD)))
    assert ops_of(graph) == ["const", "print"]
    assert [event.rule for event in events] == ["fold_branches.equal"]
    assert ops_of(after("fold_branches", branch("0 : int", LOUD, EXP))) == ["const", "if"]


def test_branches_within_branches_are_taken_in_one_go() -> None:
    text = """\
        graph f(%x: f64[3]) {
          %k = const True : bool
          %y = if %k, %k, %x {then=graph t(%c: bool, %x: f64[3]) {
            %z = if %c, %x {then=graph t(%x: f64[3]) {
              %a = exp %x : f64[3]
              return %a
            }, otherwise=graph o(%x: f64[3]) { return %x }} : f64[3]
            return %z
          }, otherwise=graph o(%c: bool, %x: f64[3]) { return %x }} : f64[3]
          return %y
        }"""
    assert ops_of(after("fold_branches", text)) == ["const", "exp"]


def loop(first: str, test: str, limit: str = "None") -> str:
    return f"""\
        graph f(%x: f64[3], %n: int) {{
          %k = const {first} : int
          %i, %y = while %k, %x, %n {{test=graph t(%i: int, %x: f64[3], %n: int) {{
            {test}
            return %m
          }}, body=graph b(%i: int, %x: f64[3], %n: int) {{
            %j = add %i, %n : int
            %z = exp %x : f64[3]
            return (%j, %z)
          }}, limit={limit}}} : int, f64[3]
          return (%i, %y)
        }}"""


COUNTED = "%t = const 3 : int\n %m = less %i, %t : bool"


@pytest.mark.parametrize(
    ("first", "test", "limit", "ops"),
    [
        ("3", COUNTED, "None", ["const", "const", "less"]),
        ("2", COUNTED, "None", ["const", "while"]),
        ("2", COUNTED, "0", ["const"]),
        ("2", "%m = const False : bool", "None", ["const", "const"]),
        ("2", "%m = less %i, %n : bool", "5", ["const", "while"]),
        # The test is run once, and what it does is seen.
        ("9", "print %x {parts=(%,)}\n" + COUNTED, "None", ["const", "print", "const", "less"]),
        ("9", "%d = floor_divide %n, %n : int\n" + COUNTED, "7", ["const", "floor_divide"]),
    ],
)
def test_a_loop_that_has_no_turn_leaves_what_it_was_given(
    first: str, test: str, limit: str, ops: list[str]
) -> None:
    graph = graph_of(loop(first, test, limit))
    verify(graph)
    changed, _ = run_pass("fold_branches", graph)
    assert ops_of(changed)[: len(ops)] == ops
    for n in (1,) if "while" in ops_of(changed) else (0, 1):
        arguments = [np.arange(3.0), n]
        assert outcome(changed, arguments) == outcome(graph, arguments)


def scanned(length: int) -> str:
    return f"""\
        graph f(%h: f64[3], %xs: f64[{length},3]) {{
          %g, %ys = scan %h, %xs {{body=graph b(%h: f64[3], %x: f64[3]) {{
            %a = add %h, %x : f64[3]
            %t = add %a, %a : f64[3]
            return (%a, %t)
          }}, carried=1, scanned=1, length={length}}} : f64[3], f64[{length},3]
          return (%g, %ys)
        }}"""


@pytest.mark.parametrize(
    ("length", "ops"),
    [
        (0, ["zeros"]),
        (1, ["slice", "add", "add", "expand_dims", "copy"]),
        (2, ["scan"]),
    ],
)
def test_a_scan_of_no_element_or_of_one(length: int, ops: list[str]) -> None:
    graph = graph_of(scanned(length))
    changed, _ = run_pass("fold_branches", graph)
    verify(changed)
    assert ops_of(changed) == ops
    arguments = [np.arange(3.0), np.ones((length, 3))]
    assert outcome(changed, arguments) == outcome(graph, arguments)


def test_what_is_overwritten_later_is_kept() -> None:
    text = """\
        graph f(%x: f64[3], %v: f64[3]) {
          %k = const True : bool
          %y = if %k, %x {then=graph t(%x: f64[3]) {
            %z = slice %x {index=[::-1]} : f64[3]
            return %z
          }, otherwise=graph o(%x: f64[3]) { return %x }} : f64[3]
          write %x, %v
          return %y
        }"""
    graph = graph_of(text)
    changed = optimize(graph, debug=True).graph
    assert ops_of(changed) == ["slice", "copy", "write"]
    arguments = [np.arange(3.0), np.ones(3)]
    assert outcome(changed, arguments) == outcome(graph, arguments)


def test_a_loop_of_constants_is_left_to_the_program() -> None:
    text = """\
        graph f() {
          %k = const 0 : int
          %i = while %k {test=graph t(%i: int) {
            %t = const 1000000000000 : int
            %m = less %i, %t : bool
            return %m
          }, body=graph b(%i: int) {
            %o = const 1 : int
            %j = add %i, %o : int
            return %j
          }} : int
          return %i
        }"""
    graph, events = run_pass("fold", graph_of(text))
    assert ops_of(graph) == ["const", "while"]
    assert refusals(events) == [("fold.loop", "COST")]
    assert ops_of(optimize(graph).graph) == ["const", "while"]
