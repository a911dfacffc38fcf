"""Gradients through `if`, `while` and `scan`: graphs written as text, against differences."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from ops.gradients import cotangents, differences

from minigraph.grad import checkpoints, differentiable, joint, partition, whiles
from minigraph.ir import Graph, Node, parse_graph, verify, walk
from minigraph.ops import OPS, evaluate
from minigraph.passes import optimize


def graph_of(text: str) -> Graph:
    graph = parse_graph(textwrap.dedent(text), OPS)
    verify(graph)
    return graph


def ops_of(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes if node.op.name != "const"]


def the(op: str, graph: Graph, which: int = 0) -> Node:
    return [node for node in graph.nodes if node.op.name == op][which]


def checked(graph: Graph, *inputs: Any, seconds: bool = True) -> Graph:
    """The optimised joint graph, once all laws hold.

    Results are those of the graph; gradients those of differences, before and after the passes and
    in two programs; second derivatives are those of the first ones.
    """
    made = joint(graph)
    verify(made)
    given = cotangents(graph, inputs)
    found = evaluate(made, [*inputs, *given])
    count = len(graph.outputs)
    for one, other in zip(evaluate(graph, inputs), found, strict=False):
        np.testing.assert_array_equal(one, other)
    for at, gradient in zip(differentiable(graph.inputs), found[count:], strict=True):
        expected = differences(graph, inputs, at, given)
        np.testing.assert_allclose(gradient, expected, 1e-5, 1e-7, err_msg=f"input {at}")
    better = optimize(made, debug=True).graph
    for one, other in zip(found, evaluate(better, [*inputs, *given]), strict=True):
        np.testing.assert_array_equal(one, other)
    parts = partition(better, count, len(given))
    verify(parts.forward)
    verify(parts.backward)
    forward = evaluate(parts.forward, inputs)
    backward = evaluate(parts.backward, [*inputs, *forward, *given])
    for one, other in zip(found, [*forward[:count], *backward], strict=True):
        np.testing.assert_array_equal(one, other)
    if seconds:
        gradients = Graph("gradients", made.inputs, made.nodes, made.outputs[count:])
        checked(gradients, *inputs, *given, seconds=False)
    return better


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


# ---- if

IF = """
    graph f(%c: bool, %x: f64[3], %w: f64[3]) {
      %y = if %c, %x, %w {then=graph then(%x: f64[3], %w: f64[3]) {
        %a = exp %x : f64[3]
        %b = multiply %a, %w : f64[3]
        %d = sin %b : f64[3]
        return %d
      }, otherwise=graph otherwise(%x: f64[3], %w: f64[3]) {
        %a = tanh %x : f64[3]
        %b = multiply %a, %x : f64[3]
        return %b
      }} : f64[3]
      %z = multiply %y, %w : f64[3]
      return %z
    }"""


@pytest.mark.parametrize("condition", [True, False])
def test_an_if(condition: bool):
    checked(graph_of(IF), condition, normal(3), normal(3, seed=1))


def test_branches_share_what_is_saved_where_the_types_are_the_same():
    made = joint(graph_of(IF))
    forward, backward = the("if", made), the("if", made, 1)
    assert len(forward.outputs) == 2  # the result, and exp x or tanh x
    assert not {"exp", "tanh", "sin"} & {node.op.name for node in walk(made) if node is backward}
    assert {"exp", "tanh"}.isdisjoint(
        node.op.name for _, region in backward.regions for node in region.nodes
    )


# ---- scan

SCAN = """
    graph f(%h0: f64[2,4], %xs: f64[5,2,4], %w: f64[4,4], %b: f64[4], %s: float) {
      %h, %t, %hs = scan %h0, %s, %xs, %w, %b {carried=2, scanned=1, length=5, body=graph body(
          %h: f64[2,4], %s: float, %x: f64[2,4], %w: f64[4,4], %b: f64[4]) {
        %m = matmul %h, %w : f64[2,4]
        %a = add %m, %x : f64[2,4]
        %c = add %a, %b : f64[2,4]
        %n = tanh %c : f64[2,4]
        %p = multiply %n, %s : f64[2,4]
        %k = const 0.9 : float
        %s1 = multiply %s, %k : float
        return (%n, %s1, STACKED)
      }REVERSE} : f64[2,4], float, f64[5,2,4]
      return (%h, %hs, %t)
    }"""


@pytest.mark.parametrize("stacked", ["%n", "%p", "%x"])
@pytest.mark.parametrize("reverse", ["", ", reverse=True"])
def test_a_scan(stacked: str, reverse: str):
    graph = graph_of(SCAN.replace("STACKED", stacked).replace("REVERSE", reverse))
    inputs = [normal(2, 4), normal(5, 2, 4, seed=1), normal(4, 4, seed=2), normal(4, seed=3), 0.7]
    checked(graph, *inputs)


def test_the_gradient_of_a_matrix_is_one_product_after_the_loop():
    graph = graph_of(SCAN.replace("STACKED", "%n").replace("REVERSE", ""))
    made = optimize(joint(graph)).graph
    backward = the("scan", made, 1)
    assert backward.attrs["carried"] == 2  # cotangents, and no sums
    assert ops_of(backward.attrs["body"]).count("matmul") == 1
    assert ops_of(made).count("matmul") == 1 and "sum" in ops_of(made)
    assert len(the("scan", made).outputs) == 3  # what is stacked tells all, nothing is saved


def test_sums_of_small_gradients_are_carried():
    text = """
        graph f(%h: f64[50], %s: f64[]) {
          %y = scan %h, %s {carried=1, scanned=0, length=3, body=graph body(
              %h: f64[50], %s: f64[]) {
            %a = multiply %h, %s : f64[50]
            %b = sin %a : f64[50]
            return %b
          }} : f64[50]
          return %y
        }"""
    made = checked(graph_of(text), normal(50), np.asarray(0.3))
    assert the("scan", made, 1).attrs["carried"] == 2


def test_a_vector_times_a_matrix():
    text = """
        graph f(%h: f64[3], %w: f64[3,3]) {
          %y, %s = scan %h, %w {carried=1, scanned=0, length=4, body=graph body(
              %h: f64[3], %w: f64[3,3]) {
            %m = matmul %h, %w : f64[3]
            %n = tanh %m : f64[3]
            %k = matmul %w, %n : f64[3]
            return (%n, %k)
          }} : f64[3], f64[4,3]
          return (%y, %s)
        }"""
    made = checked(graph_of(text), normal(3), normal(3, 3, seed=1))
    assert the("scan", made, 1).attrs["carried"] == 1
    assert ops_of(made).count("matmul") == 2


def test_what_is_stored_at_an_index_is_added_in_place():
    text = """
        graph f(%x: f64[5,2]) {
          %zero = const 0 : int
          %s0 = zeros {shape=(2,)} : f64[2]
          %n, %s = scan %zero, %s0, %x {carried=2, scanned=0, length=5, body=graph body(
              %n: int, %s: f64[2], %x: f64[5,2]) {
            %row = gather %x, %n {index=[%]} : f64[2]
            %a = multiply %row, %row : f64[2]
            %b = add %s, %a : f64[2]
            %one = const 1 : int
            %m = add %n, %one : int
            return (%m, %b)
          }} : int, f64[2]
          return %s
        }"""
    made = checked(graph_of(text), normal(5, 2))
    body = the("scan", made, 1).attrs["body"]
    assert "zeros" not in ops_of(body)
    assert not any(n.op.name == "add" and n.output.shape == (5, 2) for n in body.nodes)


NAMED = """
    graph f(%h0: f64[b,4], %xs: f64[n,b,4], %w: f64[4,4]) {
      %h, %hs = scan %h0, %xs, %w {carried=1, scanned=1, length=<n>, body=graph body(
          %h: f64[b,4], %x: f64[b,4], %w: f64[4,4]) {
        %m = matmul %h, %w : f64[b,4]
        %a = add %m, %x : f64[b,4]
        %n = tanh %a : f64[b,4]
        return (%n, %n)
      }} : f64[b,4], f64[n,b,4]
      return (%h, %hs)
    }"""


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_named_dimensions_and_no_turns(turns: int):
    inputs = [normal(2, 4), normal(turns, 2, 4, seed=1), normal(4, 4, seed=2)]
    checked(graph_of(NAMED), *inputs)


@pytest.mark.parametrize(
    "returned", ["%b, %c", "%b, %x", "%c, %b", "%x, %a", "%w, %c", "%b, %a", "%n, %m"]
)
def test_what_is_carried_changes_places(returned: str):
    text = f"""
        graph f(%a: f64[2], %b: f64[2], %xs: f64[4,2], %w: f64[2]) {{
          %d, %e, %s = scan %a, %b, %xs, %w {{carried=2, scanned=1, length=4, body=graph body(
              %a: f64[2], %b: f64[2], %x: f64[2], %w: f64[2]) {{
            %m = multiply %a, %b : f64[2]
            %n = multiply %m, %x : f64[2]
            %p = multiply %n, %w : f64[2]
            %c = sin %p : f64[2]
            %q = add %c, %a : f64[2]
            return ({returned}, %q)
          }}}} : f64[2], f64[2], f64[4,2]
          return (%d, %e, %s)
        }}"""
    inputs = [normal(2), normal(2, seed=1), normal(4, 2, seed=2), normal(2, seed=3)]
    checked(graph_of(text), *inputs)


# ---- while

WHILE = """
    graph f(%x: f64[2], %w: f64[2], %scale: float, %turns: int) {
      %zero = const 0 : int
      %n, %y, %s = while %zero, %x, %scale, %w, %turns {
      test=graph test(%n: int, %x: f64[2], %s: float, %w: f64[2], %turns: int) {
        %more = less %n, %turns : bool
        return %more
      }, body=graph body(%n: int, %x: f64[2], %s: float, %w: f64[2], %turns: int) {
        %one = const 1 : int
        %m = add %n, %one : int
        %a = multiply %x, %w : f64[2]
        %b = sin %a : f64[2]
        %c = multiply %b, %s : f64[2]
        %k = const 1.01 : float
        %t = multiply %s, %k : float
        return (%m, %c, %t)
      }LIMIT} : int, f64[2], float
      return (%y, %s)
    }"""


@pytest.mark.parametrize("turns", [0, 1, 5])
@pytest.mark.parametrize("limit", ["", ", limit=3", ", limit=7"])
def test_a_while(turns: int, limit: str):
    graph = graph_of(WHILE.replace("LIMIT", limit))
    checked(graph, normal(2), normal(2, seed=1), 1.3, turns)


@pytest.mark.parametrize("turns", [1, 2, 3, 8, 11])
def test_a_while_with_more_turns_than_states_are_kept(turns: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checkpoints, "ROOM_BYTES", 1)
    monkeypatch.setattr(checkpoints, "LEAST_ROOM", 3)
    graph = graph_of(WHILE.replace("LIMIT", ""))
    checked(graph, normal(2), normal(2, seed=1), 1.3, turns, seconds=turns < 9)


def test_a_while_that_ends_by_what_it_computes():
    """Newton's iteration: the derivative is that of the root."""
    text = """
        graph f(%a: f64[]) {
          %x = while %a, %a {test=graph test(%x: f64[], %a: f64[]) {
            %xx = multiply %x, %x : f64[]
            %d = subtract %xx, %a : f64[]
            %e = absolute %d : f64[]
            %t = const 1e-12 : float
            %more = greater %e, %t : bool[]
            return %more
          }, body=graph body(%x: f64[], %a: f64[]) {
            %q = divide %a, %x : f64[]
            %s = add %x, %q : f64[]
            %half = const 0.5 : float
            %y = multiply %s, %half : f64[]
            return %y
          }} : f64[]
          return %x
        }"""
    made = joint(graph_of(text))
    value, gradient = evaluate(made, [np.asarray(5.0), np.asarray(1.0)])
    np.testing.assert_allclose([value, gradient], [5**0.5, 0.5 / 5**0.5])
    checked(graph_of(text), np.asarray(5.0), seconds=False)


def test_nothing_flows():
    """What has no gradient on the way is left alone."""
    text = """
        graph f(%c: bool, %x: f64[2], %n: int) {
          %y = if %c, %x {then=graph then(%x: f64[2]) {
            %z = ones {shape=(2,)} : f64[2]
            return %z
          }, otherwise=graph otherwise(%x: f64[2]) {
            %z = floor %x : f64[2]
            return %z
          }} : f64[2]
          %s = scan %x {carried=1, scanned=0, length=2, body=graph body(%x: f64[2]) {
            %z = sign %x : f64[2]
            return %z
          }} : f64[2]
          %t = while %x, %n {
            test=graph test(%x: f64[2], %n: int) {
              %f = const False : bool
              return %f
            }, body=graph body(%x: f64[2], %n: int) {
              %z = floor %x : f64[2]
              return %z
            }} : f64[2]
          return (%y, %s, %t)
        }"""
    graph = graph_of(text)
    made = joint(graph)
    assert len([n for n in made.nodes if n.op.name in ("if", "scan", "while")]) == 4
    ones = np.ones(2)
    found = evaluate(made, [True, normal(2), 3, ones, ones, ones])
    assert np.array_equal(found[-1], ones)  # through the while, which has no turns


def test_what_an_argument_held_before_a_loop_wrote_to_it():
    text = """
        graph f(%x: f64[2], %a: f64[2]) {
          %b = sin %a : f64[2]
          %y = scan %b, %x, %a {carried=1, scanned=0, length=3, body=graph body(
              %h: f64[2], %x: f64[2], %a: f64[2]) {
            %m = multiply %h, %x : f64[2]
            write %a, %m
            return %m
          }} : f64[2]
          return %y
        }"""
    graph = graph_of(text)
    made = joint(graph)
    verify(made)
    better = optimize(made, debug=True).graph
    parts = partition(better, 1, 1)
    verify(parts.forward)
    verify(parts.backward)
    x, a, ones = normal(2), normal(2, seed=1), np.ones(2)
    expected = [np.sin(a) * x**3, 3 * np.sin(a) * x**2, np.cos(a) * x**3]
    for each in (made, better):
        memory = a.copy()
        for one, other in zip(evaluate(each, [x, memory, ones]), expected, strict=True):
            np.testing.assert_allclose(one, other)
        np.testing.assert_allclose(memory, expected[0])
    memory = a.copy()
    forward = evaluate(parts.forward, [x, memory])
    backward = evaluate(parts.backward, [x, memory, *forward, ones])
    for one, other in zip([forward[0], *backward], expected, strict=True):
        np.testing.assert_allclose(one, other)


def test_a_limit_too_high_to_keep_all(monkeypatch: pytest.MonkeyPatch):
    graph = graph_of(WHILE.replace("LIMIT", ", limit=7"))
    made = joint(graph)
    monkeypatch.setattr(whiles, "LIMITED_BYTES", 100)
    other = joint(graph)
    assert "if" not in ops_of(made) and "if" in ops_of(other)  # which chooses among states
    checked(graph, normal(2), normal(2, seed=1), 1.3, 5)
