"""Algebraic simplification beside the table: refusals, arguments that are written, own rules."""

from __future__ import annotations

import numpy as np
import pytest
from passes.laws import after, graph_of, ops_of, outcome, refusals, run_pass

from minigraph.errors import OptionError
from minigraph.ir import Value, verify
from minigraph.passes import Match, Rule, optimize, simplify_with


def result(body: str, *, inputs: str = "%x: f64[2,3], %i: i8[3]", **options: bool) -> list[str]:
    """The ops that are left of some lines that compute `%r`, dead ones removed."""
    lines = "\n".join(f"  {line}" for line in body.split("\n"))
    graph = graph_of(f"graph f({inputs}) {{\n{lines}\n  return %r\n}}")
    verify(graph)
    changed, _ = run_pass("simplify", graph, **options)
    changed, _ = run_pass("dce", changed)
    verify(changed)
    return [op for op in ops_of(changed) if op != "const"]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("%c = const 1.0 : float\n%r = multiply %x, %c : f64[2,3]", []),
        ("%c = const [[1.0]] : f64[1,1]\n%r = multiply %c, %x : f64[2,3]", []),
        ("%c = const [[[1.0]]] : f64[1,1,1]\n%r = multiply %c, %x : f64[1,2,3]", ["multiply"]),
        ("%c = const 1 : i64[]\n%r = multiply %i, %c : i64[3]", ["multiply"]),
        ("%c = const 0.0 : float\n%r = add %x, %c : f64[2,3]", ["add"]),
        ("%c = const -0.0 : float\n%r = add %x, %c : f64[2,3]", []),
        ("%c = const -0.0 : float\n%r = subtract %x, %c : f64[2,3]", ["subtract"]),
        ("%c = const 1 : int\n%r = bitwise_and %i, %c : i8[3]", ["bitwise_and"]),
        ("%c = const True : bool\n%r = bitwise_and %i, %c : i8[3]", ["bitwise_and"]),
        ("%c = const True : bool\n%r = bitwise_or %i, %c : i8[3]", ["bitwise_or"]),
        ("%c = const 3.0 : float\n%r = divide %x, %c : f64[2,3]", ["divide"]),
        ("%c = const 8.0 : float\n%r = divide %x, %c : f64[2,3]", ["multiply"]),
        ("%c = const 5e-324 : float\n%r = divide %x, %c : f64[2,3]", ["divide"]),
        ("%c = const 0 : int\n%r = multiply %i, %c : i8[3]", ["full"]),
        ("%c = const 0 : int\n%r = multiply %x, %c : f64[2,3]", ["multiply"]),
        ("%r = subtract %x, %x : f64[2,3]", ["subtract"]),
        ("%r = subtract %i, %i : i8[3]", ["full"]),
        ("%a = exp %x : f64[2,3]\n%r = log %a : f64[2,3]", ["exp", "log"]),
        ("%a = square %x : f64[2,3]\n%r = sqrt %a : f64[2,3]", ["square", "sqrt"]),
        (
            "%c = const 100 : int\n%a = add %i, %c : i8[3]\n%r = add %a, %c : i8[3]",
            ["add"],
        ),
        (
            "%c = const 1e16 : float\n%a = add %x, %c : f64[2,3]\n%r = add %a, %c : f64[2,3]",
            ["add", "add"],
        ),
        (
            "%a = transpose %x {axes=(1, 0)} : f64[3,2]\n%b = copy %a : f64[3,2]\n"
            "%r = transpose %b {axes=(1, 0)} : f64[2,3]",
            [],
        ),
        (
            "%a = reshape %x {shape=(6,)} : f64[6]\n%b = expand_dims %a {axis=(0,)} : f64[1,6]\n"
            "%r = reshape %b {shape=(3, 2)} : f64[3,2]",
            ["reshape"],
        ),
        (
            "%a = cast %i {dtype=f32} : f32[3]\n%r = cast %a {dtype=f64} : f64[3]",
            ["cast"],
        ),
        (
            "%a = cast %x {dtype=f32} : f32[2,3]\n%r = cast %a {dtype=f64} : f64[2,3]",
            ["cast", "cast"],
        ),
        ("%c = const False : bool\n%r = where %c, %i, %i : i8[3]", []),
        ("%r = slice %x {index=[..., :]} : f64[2,3]", []),
        ("%r = slice %x {index=[::-1]} : f64[2,3]", ["slice"]),
    ],
)
def test_exact_by_default(body: str, left: list[str]) -> None:
    assert result(body) == left


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("%c = const 0.0 : float\n%r = add %x, %c : f64[2,3]", []),
        ("%c = const 0 : int\n%r = multiply %x, %c : f64[2,3]", ["full"]),
        ("%r = subtract %x, %x : f64[2,3]", ["full"]),
        ("%r = divide %x, %x : f64[2,3]", ["full"]),
        ("%a = exp %x : f64[2,3]\n%r = log %a : f64[2,3]", []),
        ("%c = const 3.0 : float\n%r = divide %x, %c : f64[2,3]", ["multiply"]),
        (
            "%c = const 1e16 : float\n%a = add %x, %c : f64[2,3]\n%r = add %a, %c : f64[2,3]",
            ["add"],
        ),
    ],
)
def test_fast_math_does_more(body: str, left: list[str]) -> None:
    assert result(body, fast_math=True) == left


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("%c = const 0.0 : float\n%r = add %x, %c : f64[2,3]", "FLOAT_ORDER"),
        ("%c = const 1 : i64[]\n%r = multiply %i, %c : i64[3]", "DTYPE"),
        ("%c = const [[1]] : i8[1,1]\n%r = multiply %i, %c : i8[1,3]", "SHAPE_MISMATCH"),
        (
            "%c = const 1.0 : float\n%a = slice %x {index=[:, ::2]} : f64[2,2]\n"
            "%r = multiply %a, %c : f64[2,2]",
            "LAYOUT",
        ),
    ],
)
def test_what_is_not_done_is_told(body: str, code: str) -> None:
    lines = "\n".join(f"  {line}" for line in body.split("\n"))
    graph = graph_of(f"graph f(%x: f64[2,3], %i: i8[3]) {{\n{lines}\n  return %r\n}}")
    changed, events = run_pass("simplify", graph)
    assert changed is graph and [got for _, got in refusals(events)] == [code]
    again, more = run_pass("simplify", graph)
    assert again is graph and len(more) == len(events)


def test_a_number_that_fits_cannot_raise() -> None:
    text = "graph f(%i: i8[3]) {{\n %c = const {n} : int\n %r = {op} %i, %c : i8[3]\n return %r\n}}"
    for op, number, safe in [
        ("add", 100, True),
        ("add", 128, False),
        ("add", -129, False),
        ("floor_divide", 0, True),
        ("power", 3, False),
    ]:
        changed = after("simplify", text.format(op=op, n=number))
        assert bool(changed.nodes[-1].attrs.get("safe")) is safe, (op, number)
        assert changed.nodes[-1].is_effect is not safe


def test_a_copy_of_an_argument_that_is_written_keeps_what_it_held() -> None:
    graph = graph_of("""\
        graph f(%x: i64[2]) {
          %zero = const 0 : int
          %one = const 1 : int
          %y = add %x, %zero : i64[2]
          %z = multiply %x, %one : i64[2]
          %c = copy %x : i64[2]
          %seven = full %one {shape=(2,)} : i64[2]
          write %x, %seven
          return (%y, %z, %c)
        }""")
    changed, events = run_pass("simplify", graph)
    assert [op for op in ops_of(changed) if op in ("add", "multiply", "copy")] == [
        *("add", "multiply", "copy"),
    ]
    assert {code for _, code in refusals(events)} == {"SIDE_EFFECT"}
    history = optimize(graph, debug=True)
    arguments = [np.array([1, 2])]
    assert outcome(history.graph, arguments) == outcome(graph, arguments)


def test_untouched_nodes_stay_and_readers_keep_their_values() -> None:
    graph = graph_of("""\
        graph f(%x: f64[3]) {
          %c = const 1.0 : float
          %a = multiply %x, %c : f64[3]
          %b = exp %a : f64[3]
          %d = sqrt %x : f64[3]
          return (%b, %d, %a)
        }""")
    changed, (event,) = run_pass("simplify", graph)
    const, b, d = changed.nodes
    assert const is graph.nodes[0] and d is graph.nodes[3]
    assert b.outputs == graph.nodes[2].outputs and b.origin == (graph.nodes[2],)
    assert changed.outputs[2] is graph.inputs[0]
    assert event.rule == "simplify.multiply_one" and event.before == (graph.nodes[1],)


# ---- rules of one's own


def test_a_rule_of_your_own() -> None:
    square = Rule(
        "square", "multiply(x, x)", "square(x)", "x · x = x²", "np.square is that product"
    )
    graph = graph_of("""\
        graph f(%x: f64[3], %y: f64[3]) {
          %a = multiply %x, %x : f64[3]
          %b = multiply %a, %y : f64[3]
          return %b
        }""")
    history = optimize(graph, (simplify_with([square]), "cse", "dce"), debug=True)
    assert ops_of(history.graph) == ["square", "multiply"]
    assert history.graph.nodes[0].outputs == graph.nodes[0].outputs
    assert [stage.name for stage in history.stages[:2]] == ["traced", "simplify_with"]
    (event,) = history.stages[1].events
    assert event.rule == "simplify_with.square" and event.why.startswith("x · x = x²")


def test_a_rule_may_compute_its_replacement() -> None:
    def product(match: Match) -> Value | None:
        exponent = match.number("C")
        return match.make("multiply", match["x"], match["x"]) if exponent == 2 else None

    rule = Rule("pow_two", "pow(x, C)", product, "x² = x · x", "as NumPy does it", total=True)
    text = (
        "graph f(%x: f64[3]) {{\n %c = const {n} : int\n %a = pow %x, %c : f64[3]\n return %a\n}}"
    )
    run = simplify_with([rule], "powers")
    assert ops_of(after(run, text.format(n=2))) == ["const", "multiply"]
    assert ops_of(after(run, text.format(n=3))) == ["const", "pow"]


def test_no_rule_removes_an_effect() -> None:
    rule = Rule("no_draw", "draw(r, x, ...)", "x", "", "")
    graph = graph_of("""\
        graph f(%r: generator, %x: f64[]) {
          %a = draw %r, %x {method="standard_gamma"} : f64[]
          return %a
        }""")
    changed, events = run_pass(simplify_with([rule]), graph)
    assert changed is graph and refusals(events) == [("simplify_with.no_draw", "SIDE_EFFECT")]


def test_rules_that_undo_each_other_are_stopped_and_told() -> None:
    rules = [
        Rule("there", "add(x, y)", "subtract(x, y)", "", ""),
        Rule("back", "subtract(x, y)", "add(x, y)", "", ""),
    ]
    graph = graph_of("graph f(%x: f64[3]) {\n %a = add %x, %x : f64[3]\n return %a\n}")
    _, events = run_pass(simplify_with(rules), graph)
    (note,) = (event for event in events if event.kind == "note")
    assert note.rule == "simplify_with.limit" and "%a" in note.why
    history = optimize(graph, (simplify_with(rules),))
    assert history.stages[-1].name == "pipeline" and history.stages[-1].events[0].kind == "note"


@pytest.mark.parametrize(
    "pattern", ["multiply(x, 1", "nonsense(x)", "multiply(x, [1])", "multiply(xs, 1)", "f.g(x)"]
)
def test_what_is_no_pattern_is_an_error(pattern: str) -> None:
    with pytest.raises(OptionError):
        simplify_with([Rule("r", pattern, "x", "", "")])
