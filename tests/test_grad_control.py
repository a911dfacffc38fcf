"""Gradients through `if`, `while` and `scan`: graphs written as text, against differences."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from ops.gradients import cotangents, differences

from minigraph.grad import differentiable, joint, partition
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
