"""Gradients of graphs, joint graphs, and their partition."""

from __future__ import annotations

import textwrap
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import pytest
from differentiable import cases, program
from hypothesis import HealthCheck, given, settings

import minigraph as mg
from minigraph.errors import UnsupportedError
from minigraph.grad import Partition, joint, partition
from minigraph.ir import ArrayType, Graph, Ids, Node, Value, parse_graph, verify
from minigraph.ops import OPS, evaluate, get
from minigraph.passes import optimize

LAWS = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def graph_of(text: str) -> Graph:
    graph = parse_graph(textwrap.dedent(text), OPS)
    verify(graph)
    return graph


def ops_of(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes if node.op.name != "const"]


def joint_of(text: str, wanted: list[int] | None = None) -> Graph:
    made = joint(graph_of(text), wanted)
    verify(made)
    return made


def differences(function: Any, arguments: list[Any], step: float = 1e-6) -> list[np.ndarray]:
    """Central differences of a function to one number."""
    found = []
    for at, argument in enumerate(arguments):
        gradient = np.zeros(np.shape(argument))
        for index in np.ndindex(np.shape(argument)):
            sides = []
            for move in (step, -step):
                moved = [np.array(each) for each in arguments]
                moved[at][index] += move
                sides.append(function(*moved))
            gradient[index] = (sides[0] - sides[1]) / (2 * step)
        found.append(gradient)
    return found


# ---- the sweep


def test_the_joint_graph_of_the_docstring():
    made = joint_of(
        """
        graph f(%x: f64[3]) {
          %y = sin %x : f64[3]
          return %y
        }"""
    )
    assert made == graph_of(
        """
        graph f_joint(%x: f64[3], %dy: f64[3]) {
          %y = sin %x : f64[3]
          %0 = cos %x : f64[3]
          %1 = multiply %dy, %0 : f64[3]
          return (%y, %1)
        }"""
    )


def test_cotangents_of_a_value_that_is_read_often_are_added():
    made = joint_of(
        """
        graph f(%x: f64[3]) {
          %y = multiply %x, %x : f64[3]
          %z = add %y, %x : f64[3]
          return %z
        }"""
    )
    x, dz = np.array([1.0, 2.0, -3.0]), np.array([1.0, 10.0, 100.0])
    assert np.array_equal(evaluate(made, [x, dz])[1], (2 * x + 1) * dz)


def test_an_output_that_stands_twice_has_two_cotangents():
    made = joint_of("graph f(%x: f64[3]) {\n  %y = exp %x : f64[3]\n  return (%y, %y, %x)\n}")
    ones = np.ones(3)
    found = evaluate(made, [np.zeros(3), ones, 2 * ones, 4 * ones])
    assert np.array_equal(found[-1], 7 * ones)


def test_only_what_is_asked_for_is_differentiated():
    made = joint_of(
        """
        graph f(%x: f64[3,4], %w: f64[4,2], %n: i64[3]) {
          %y = matmul %x, %w : f64[3,2]
          return %y
        }""",
        [1],
    )
    assert len(made.outputs) == 2 and made.outputs[1].type == made.inputs[1].type
    every = joint_of("graph f(%x: f64[3], %n: i64[3]) {\n  %y = sin %x : f64[3]\n  return %y\n}")
    assert len(every.outputs) == 2  # integers have no gradient


def test_nothing_leads_there():
    made = joint_of(
        "graph f(%x: f64[n,3], %y: f32[]) {\n  %z = floor %x : f64[n,3]\n  return %z\n}"
    )
    gradients = evaluate(made, [np.ones((2, 3)), np.float32(1), np.ones((2, 3))])[1:]
    assert [g.shape for g in gradients] == [(2, 3), ()] and gradients[1].dtype == np.float32
    assert not any(g.any() for g in gradients)


def test_what_has_no_rule_is_an_error_only_if_a_gradient_goes_through_it():
    def f(x: Any, y: Any) -> Any:
        return np.interp(x, [0.0, 1.0], [1.0, 2.0], period=3.0) + y, y

    graph = mg.trace(f, np.ones(3), np.ones(3))
    with pytest.raises(UnsupportedError, match="interp") as found:
        joint(graph)
    assert "test_grad.py" in str(found.value)
    joint(graph, [1])


def chain(length: int) -> Graph:
    """sin, and multiplied by what comes in, again and again."""
    ids = Ids()
    type_ = ArrayType(np.dtype(float), (2,))
    x = value = ids.value(type_)
    nodes = []
    for at in range(length):
        out = ids.value(type_)
        op, inputs = (get("sin"), [value]) if at % 2 else (get("multiply"), [value, x])
        nodes.append(Node(ids.next(), op, inputs, {}, [out]))
        value = out
    return Graph("chain", [x], nodes, [value])


@pytest.mark.parametrize("length", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_chain(length: int):
    """Nothing recurses, and nothing is done twice for each node."""
    made = joint(chain(length))
    assert len(made.nodes) > 2 * length
    found = partition(made, 1, 1)
    assert len(found.forward.nodes) >= length


def test_a_long_chain_in_numbers():
    made = joint(chain(1_000))
    x = np.array([0.5, 1.5])
    slope, value = np.ones(2), x
    for at in range(1_000):
        slope, value = (
            (slope * np.cos(value), np.sin(value)) if at % 2 else (slope * x + value, value * x)
        )
    np.testing.assert_allclose(evaluate(made, [x, np.ones(2)]), [value, slope])
    run_both(made, partition(made, 1, 1), [x], [np.ones(2)])


# ---- the laws


@given(case=cases())
@LAWS
def test_gradients_are_difference_quotients(case: Any):
    seed, steps, arguments = case
    function = program(seed, steps)
    graph = mg.trace(function, *arguments)
    made = joint(graph)
    verify(made)
    found = evaluate(made, [*arguments, np.float64(1)])[1:]
    for gradient, expected in zip(found, differences(function, arguments), strict=True):
        assert gradient.shape == expected.shape
        np.testing.assert_allclose(gradient, expected, rtol=2e-4, atol=2e-6)


@given(case=cases(most=20))
@LAWS
def test_two_programs_do_what_the_joint_graph_does(case: Any):
    seed, steps, arguments = case
    function = program(seed, steps)
    made = optimize(joint(mg.trace(function, *arguments))).graph
    found = partition(made, 1, 1)
    verify(found.forward)
    verify(found.backward)
    run_both(made, found, arguments, [np.float64(0.7)])


def run_both(made: Graph, found: Partition, arguments: list[Any], given: list[Any]) -> None:
    """The same bits from the joint graph and from its two parts."""
    count = len(made.outputs) - len(found.backward.outputs)
    expected = evaluate(made, [np.array(each) for each in arguments] + given)
    forward = evaluate(found.forward, arguments)
    assert len(forward) == count + found.saved
    backward = evaluate(found.backward, [*arguments, *forward, *given])
    for a, b in zip(expected, [*forward[:count], *backward], strict=True):
        np.testing.assert_array_equal(a, b)


# ---- partition


def partitioned(function: Any, *arguments: Any, results: int = 1) -> tuple[Graph, Partition]:
    graph = mg.trace(function, *arguments)
    made = optimize(joint(graph)).graph
    cotangents = len(made.inputs) - len(graph.inputs)
    found = partition(made, results, cotangents)
    verify(found.forward)
    verify(found.backward)
    return made, found


def read(graph: Graph) -> set[Value]:
    return {value for node in graph.nodes for value in node.inputs} | set(graph.outputs)


def test_inputs_are_read_again_and_not_saved():
    x, w = np.ones((3, 4)), np.ones((4, 2))
    _, found = partitioned(lambda x, w: x @ w, x, w)
    assert found.saved == 0
    assert {"x", "w"} <= {value.name for value in read(found.backward)}


def test_results_are_read_again_and_not_saved():
    _, found = partitioned(lambda x: np.exp(x), np.ones(3))
    assert found.saved == 0 and "exp" not in ops_of(found.backward)


def test_what_is_expensive_is_saved_and_what_is_cheap_is_computed_again():
    x, w = np.ones((3, 4)), np.ones((4, 2))

    def layer(x: Any, w: Any) -> Any:
        return np.tanh((x @ w) * 2.0 + 1.0).sum()

    made, found = partitioned(layer, x, w)
    assert found.saved == 1
    assert "tanh" not in ops_of(found.backward) and ops_of(found.backward).count("matmul") == 2
    run_both(made, found, [x, w], [np.float64(1)])


def test_a_mask_is_computed_again_from_what_is_saved_anyway():
    x, w = np.random.default_rng(0).normal(size=(2, 8, 8))
    made, found = partitioned(lambda x, w: np.maximum(x @ w, 0.0), x, w)
    saved = found.forward.outputs[1:]
    assert sum(value.type.size_bytes for value in saved) <= 8 * 64
    run_both(made, found, [x, w], [np.ones((8, 8))])


def test_a_long_cheap_chain_is_computed_again_in_pieces():
    def long(x: Any) -> Any:
        for _ in range(40):
            x = x * x + 0.1
        return x

    made, found = partitioned(long, np.ones(3) / 3)
    assert 3 <= found.saved <= 8 and len(found.backward.nodes) < len(made.nodes)
    run_both(made, found, [np.ones(3) / 3], [np.ones(3)])


def test_effects_stay_in_the_forward_program():
    rng = np.random.default_rng(0)

    def noisy(x: Any) -> Any:
        print("forward")
        return (x * rng.normal(size=3)).sum()

    graph = mg.trace(noisy, np.ones(3))
    made = optimize(joint(graph)).graph
    found = partition(made, 1, 1)
    assert "print" in ops_of(found.forward) and "draw" in ops_of(found.forward)
    assert not {"print", "draw"} & set(ops_of(found.backward))
    assert found.saved == 1
    arguments = [np.ones(3), np.random.default_rng(1)]
    with redirect_stdout(StringIO()) as out:
        value, drawn = evaluate(found.forward, arguments)
        (gradient,) = evaluate(found.backward, [*arguments, value, drawn, np.float64(1)])
    assert out.getvalue() == "forward\n"
    assert np.array_equal(gradient, np.random.default_rng(1).normal(size=3))


def test_the_backward_program_sees_what_an_argument_held_before_it_was_written():
    def writing(x: Any, state: Any) -> Any:
        y = np.sin(state) * x
        state += 1.0
        return y.sum()

    x, state = np.arange(3.0), np.arange(3.0)
    made, found = partitioned(writing, x, state)
    assert "write" in ops_of(found.forward) and "write" not in ops_of(found.backward)
    forward = evaluate(found.forward, [x, state])
    assert np.array_equal(state, np.arange(3.0) + 1)
    dx, dstate = evaluate(found.backward, [x, state, *forward, np.float64(1)])
    assert np.array_equal(dx, np.sin(np.arange(3.0)))
    assert np.array_equal(dstate, np.cos(np.arange(3.0)) * x)
    run_both(made, found, [x, np.arange(3.0)], [np.float64(1)])


def test_named_sizes():
    graph = graph_of(
        """
        graph f(%x: f64[n,4], %w: f64[4,m]) {
          %a = matmul %x, %w : f64[n,m]
          %b = tanh %a : f64[n,m]
          %y = mean %b {axis=(0, 1)} : f64[]
          return %y
        }"""
    )
    made = optimize(joint(graph), debug=True).graph
    found = partition(made, 1, 1)
    verify(found.backward)
    x, w = np.random.default_rng(0).normal(size=(5, 4)), np.ones((4, 2)) / 3
    run_both(made, found, [x, w], [np.float64(1)])
    expected = differences(lambda x, w: np.tanh(x @ w).mean(), [x, w])
    for gradient, other in zip(evaluate(made, [x, w, np.float64(1)])[1:], expected, strict=True):
        np.testing.assert_allclose(gradient, other, rtol=1e-5, atol=1e-8)


# ---- call


BODY = """
    graph f(%x: f64[3]) {
      %y, %s = call %x {body=graph body(%a: f64[3]) {
        %s = sin %a : f64[3]
        %b = multiply %a, %s : f64[3]
        return (%b, %s)
      }, backward=graph backward(%a: f64[3], %b: f64[3], %s: f64[3], %db: f64[3]) {
        %g = multiply %db, %s : f64[3]
        return %g
      }, results=1, wanted=(0,)} : f64[3], f64[3]
      return RESULT
    }"""


def test_a_call_is_differentiated_by_its_backward_graph():
    made = joint_of(BODY.replace("RESULT", "%y"))
    x = np.arange(3.0)
    assert np.array_equal(evaluate(made, [x, np.full(3, 2.0)])[1], 2 * np.sin(x))


def test_what_a_call_saved_is_differentiated_by_computing_again():
    made = joint_of(BODY.replace("RESULT", "%s"))
    x = np.arange(3.0)
    assert np.array_equal(evaluate(made, [x, np.ones(3)])[1], np.cos(x))


def test_a_call_without_backward_is_computed_again():
    text = BODY.replace("RESULT", "%y")
    at, end = text.index(", backward"), text.index("}, results")
    made = joint_of(text[:at] + text[end + 1 :].replace(", results=1, wanted=(0,)", ""))
    x = np.arange(3.0)
    expected = np.sin(x) + x * np.cos(x)
    assert np.array_equal(evaluate(made, [x, np.ones(3)])[1], expected)
    compiled = mg.compile(made, backend="python")
    assert "call" not in ops_of(compiled.graph()) and ops_of(compiled.graph()).count("sin") == 2
    assert np.array_equal(compiled(x, np.ones(3))[1], expected)


def test_the_gradients_of_rows_are_added_in_place():
    def rows(x: Any, at: Any) -> Any:
        h = 0.0
        for row in range(x.shape[0]):
            h = np.tanh(h + x[row]) * x[at]
        return h.sum() + (x * x).sum() + x[np.array([1, 1, 2])].sum()

    x = np.random.default_rng(0).normal(size=(6, 3))
    graph = mg.trace(rows, x, 2)
    made = optimize(joint(graph)).graph
    (found,) = evaluate(made, [x, 2, np.float64(1)])[1:]
    np.testing.assert_allclose(found, differences(lambda x: rows(x, 2), [x])[0], rtol=1e-5)
    whole = [n for n in made.nodes if n.op.name == "add" and n.output.type == graph.inputs[0].type]
    assert len(whole) == 2  # of x * x, whose gradient is nowhere zero


def test_one_root_is_saved_in_place_of_what_can_be_computed_from_it():
    x, w = np.random.default_rng(0).normal(size=(2, 8, 8))

    def layer(x: Any, w: Any) -> Any:
        h = x @ w + 1.0
        return np.where(h > 0, h * h, -h) @ w

    made, found = partitioned(layer, x, w)
    assert found.saved == 1 and ops_of(found.backward).count("matmul") == 4
    run_both(made, found, [x, w], [np.ones((8, 8))])


def test_what_only_the_backward_program_needs_is_computed_there():
    x, w = np.random.default_rng(0).normal(size=(2, 8, 8))
    made, found = partitioned(lambda x, w: np.sin(x @ w) @ w, x, w)
    assert found.saved == 2  # the product, and its sine, but not its cosine
    assert "cos" in ops_of(found.backward) and "cos" not in ops_of(found.forward)
    run_both(made, found, [x, w], [np.ones((8, 8))])


def pieces(x: Any) -> Any:
    a, b, c = x[:, :2], x[:, 2:3], x[:, 3:]
    return np.sin(a) * b + c * c


def test_the_gradients_of_pieces_are_put_side_by_side():
    x = np.random.default_rng(0).normal(size=(3, 5))
    made = optimize(joint(mg.trace(pieces, x))).graph
    assert ops_of(made).count("concatenate") == 1 and "update" not in ops_of(made)
    found = evaluate(made, [x, np.ones((3, 2))])[1]
    np.testing.assert_allclose(found, differences(lambda x: pieces(x).sum(), [x])[0], rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sin(x[:, :2]).sum() + (x[:, 3:] ** 2).sum(),
        lambda x: np.sin(x[:, :3]).sum() + (x[:, 2:] ** 2).sum(),
        lambda x: np.sin(x[:1]).sum() + (x[1:] ** 2).sum() * x[..., 4].sum(),
        lambda x: np.sin(x[:, ::2]).sum() + (x[:, 1::2] ** 2).sum() + (x[:, :2] * x[:, 2:4]).sum(),
        lambda x: np.exp(x[..., 0:5]).sum() + x[1, 1:3].sum() * x[1, 3:].sum(),
    ],
)
def test_pieces_that_leave_some_out_or_overlap(function: Any):
    x = np.random.default_rng(0).normal(size=(3, 5))
    found = evaluate(joint(mg.trace(function, x)), [x, np.float64(1)])[1]
    np.testing.assert_allclose(found, differences(function, [x])[0], rtol=1e-5, atol=1e-8)
