"""Buffers that are written again hold what a fresh one would, in the same memory order."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from backends.checks import (
    PYTHON,
    assert_same_run,
    graph_of,
    plan_for,
    plan_with,
    same,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from minigraph import ops
from minigraph.backends.storage import takeovers
from minigraph.errors import MinigraphError
from minigraph.ir import ArrayType, Graph, Node, Value, outputs_to_copy, type_of, verify
from minigraph.ops import ufunc_of
from minigraph.passes import liveness

LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "reversed": lambda x: x[::-1].copy()[::-1] if x.ndim else x,
}


# ---------------------------------------------------------------------------- random graphs

UNARY = "negative exp tanh sqrt abs_ sign square floor logical_not isnan reciprocal".split()
BINARY = "add subtract multiply divide maximum minimum less equal arctan2 hypot matmul".split()
ATTRS: list[tuple[str, dict[str, Any]]] = [
    ("slice", {"index": [slice(1, None)]}),
    ("slice", {"index": [..., slice(None, None, -1)]}),
    ("slice", {"index": [0]}),
    ("slice", {"index": [None]}),
    ("transpose", {"axes": (1, 0)}),
    ("transpose", {"axes": (2, 0, 1)}),
    ("reshape", {"shape": (12,)}),
    ("reshape", {"shape": (4, 3)}),
    ("reshape", {"shape": (3, 2, 2)}),
    ("broadcast_to", {"shape": (3, 4)}),
    ("sum", {"axis": (0,)}),
    ("sum", {"axis": (0,), "keepdims": True}),
    ("max", {"axis": (0, 1)}),
    ("cumsum", {"axis": 0}),
    ("cast", {"dtype": np.dtype("float32")}),
    ("copy", {}),
]
CONSTANTS = [2, 0.5, True, np.float32(1.5), np.arange(4.0), np.asfortranarray(np.ones((3, 4)))]
INPUTS = [
    np.linspace(-1, 2, 12).reshape(3, 4),
    np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4),
    np.arange(12).reshape(3, 4),
    np.linspace(0, 1, 12).reshape(3, 2, 2),
    np.array([1.0, -0.0, np.nan, np.inf]),
    np.array(3.0),
    np.float64(-2.5),
    3,
    -0.5,
]


@st.composite
def programs(draw: st.DrawFn) -> tuple[Graph, list[Any]]:
    """A random graph, and inputs in several memory orders for it."""
    inputs: list[Any] = []
    for held in draw(st.lists(st.sampled_from(INPUTS), min_size=1, max_size=4)):
        layout = draw(st.sampled_from(list(LAYOUTS)))
        inputs.append(LAYOUTS[layout](held) if isinstance(held, np.ndarray) else held)
    values = [Value(number, type_of(held)) for number, held in enumerate(inputs)]
    params, nodes = list(values), list[Node]()
    for _ in range(draw(st.integers(1, 14))):
        kind = draw(st.integers(0, 9))
        attrs: dict[str, Any] = {}
        recent = st.integers(1, min(len(values), 6))
        operands = [values[-draw(recent)]]
        if kind < 3:
            name = draw(st.sampled_from(UNARY)).replace("abs_", "absolute")
        elif kind < 6:
            name = draw(st.sampled_from(BINARY))
            operands.append(values[-draw(recent)])
        elif kind < 8:
            name, attrs = draw(st.sampled_from(ATTRS))
        elif kind < 9:
            name, attrs = "update", {"index": draw(st.sampled_from([[0], [..., slice(1, 2)]]))}
            operands.append(values[-draw(recent)])
        else:
            name, attrs, operands = "const", {"value": draw(st.sampled_from(CONSTANTS))}, []
        op = ops.get(name)
        try:
            kinds = ops.infer(op, [value.type for value in operands], attrs)
        except (MinigraphError, TypeError, ValueError, IndexError):
            continue
        outputs = [Value(len(values) + number, kind) for number, kind in enumerate(kinds)]
        nodes.append(Node(len(nodes), op, operands, attrs, outputs))
        values.extend(outputs)
    results = draw(st.lists(st.sampled_from(values[-4:]), min_size=1, max_size=3))
    return Graph("random", params, nodes, results), inputs


@given(programs())
@settings(max_examples=300)
def test_a_random_graph_computes_what_the_evaluator_computes(case: tuple[Graph, list[Any]]):
    graph, inputs = case
    verify(graph)
    assert_same_run(graph, inputs)
    assert_same_run(graph, inputs, plan_for(graph, inputs))


@given(programs())
@settings(max_examples=200)
def test_nothing_reads_a_buffer_that_waits_to_be_taken_over(case: tuple[Graph, list[Any]]):
    """It is poisoned from the last use of its memory on; the results are the same."""
    graph, inputs = case
    plan = plan_for(graph, inputs)
    program = PYTHON.emit(graph, plan)
    last_line = {node: number - 1 for number, node in program.lines}
    lines = program.source.split("\n")
    ends = liveness(graph).last_seen
    for taker, dead in takeovers(graph, plan).items():
        position = next(at for at, node in enumerate(graph.nodes) if taker in node.outputs)
        if ends[dead] < position:
            lines[last_line[graph.nodes[ends[dead]]]] += f"\n    {program.names[dead]}.fill(1)"
    poisoned = re.sub(r"(  # .*)\n", r"\n", "\n".join(lines))
    with np.errstate(all="ignore"):
        try:
            expected = PYTHON.load(program)(*inputs)
        except Exception:
            return
        namespace = dict(program.constants)
        exec(compile(poisoned, "poisoned", "exec"), namespace)
        found = namespace[program.name](*inputs)
    found = found if len(graph.outputs) > 1 else (found,)
    assert all(map(same, found, expected)), f"{poisoned}\n{found}\n{expected}"


@given(programs())
@settings(max_examples=100)
def test_outputs_share_memory_with_nothing(case: tuple[Graph, list[Any]]):
    graph, inputs = case
    program = PYTHON.emit(graph, plan_for(graph, inputs))
    with np.errstate(all="ignore"):
        try:
            results = PYTHON.load(program)(*inputs)
        except Exception:
            return
    constants = [node.attrs["value"] for node in graph.nodes if node.op.name == "const"]
    others = [each for each in (*inputs, *constants) if isinstance(each, np.ndarray)]
    for result in results:
        if isinstance(result, np.ndarray):
            assert not any(np.shares_memory(result, other) for other in others), program.source
            others.append(result)


# ---------------------------------------------------------------------------- what plans may ask

CHAIN = """\
graph chain(%x: f64[3,4], %y: f64[3,4]) {
  %a = exp %x : f64[3,4]
  %b = multiply %a, %y : f64[3,4]
  %c = add %b, %y : f64[3,4]
  %s = sum %c {axis=(0, 1)} : f64[]
  return (%c, %s)
}"""


@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_results_lie_as_the_evaluators_do(first: str, second: str):
    graph = graph_of(CHAIN)
    values = np.random.default_rng(0).normal(size=(3, 4))
    inputs = [LAYOUTS[first](values), LAYOUTS[second](values)]
    plan = plan_for(graph, inputs)
    if first == second == "C":
        assert PYTHON.emit(graph, plan).source.count("out=") == 2
    assert_same_run(graph, inputs, plan)


def test_only_a_buffer_of_the_same_type_is_taken_over():
    text = """\
graph other(%x: f64[4]) {
  %a = exp %x : f64[4]
  %b = isnan %a : bool[4]
  %c = sum %x {axis=(0,)} : f64[]
  %d = exp %c : f64[]
  %e = sort %x {axis=0} : f64[4]
  %v = slice %e {index=[::-1]} : f64[4]
  %f = negative %v : f64[4]
  return (%b, %d, %f)
}"""
    graph = graph_of(text)
    a, b, c, d, e, v, f = (node.output for node in graph.nodes)
    plan = plan_with(graph, [()] * 7, {b: a, d: c, e: a, f: v})
    assert takeovers(graph, plan) == {}
    assert takeovers(graph, plan_with(graph, [()] * 7, {f: e})) == {f: e}


@pytest.mark.parametrize(
    "op",
    [op for op in ops.OPS.values() if ufunc_of(op) and op.kind == "elementwise"],
    ids=lambda op: op.name,
)
def test_a_ufunc_stores_the_same_bits_into_its_operand(op: Any):
    """SIMD loops may treat overlapping memory differently; not where it is the same memory."""
    rng = np.random.default_rng(3)
    function = ufunc_of(op)
    assert function is not None
    for dtype in "?bhilBHILfdFD":  # not float16: storage.py leaves it out
        for size in (1, 7, 64, 1003):
            operands = [rng.integers(0, 2, size).astype(dtype) for _ in range(function.nin)]
            if dtype not in "?":
                operands = [rng.normal(scale=4, size=size).astype(dtype) for _ in operands]
            with np.errstate(all="ignore"):
                try:
                    expected = function(*operands)
                except (TypeError, ValueError):
                    continue
                if function.nout != 1:
                    continue
                for index, operand in enumerate(operands):
                    if operand.dtype == expected.dtype:
                        mine = [each.copy() for each in operands]
                        assert same(function(*mine, out=mine[index]), expected), (op, dtype)


def test_which_outputs_are_copied():
    graph = graph_of("""\
graph f(%x: f64[4], %n: int) {
  %y = negative %x : f64[4]
  %v = slice %x {index=[1:]} : f64[3]
  %w = slice %y {index=[1:]} : f64[3]
  %u = slice %w {index=[1:]} : f64[2]
  %k = const 1.5 : f64[]
  return (%x, %n, %v, %u, %w, %y, %k)
}""")
    assert outputs_to_copy(graph) == [True, False, True, False, True, True, False]
    assert isinstance(graph.outputs[0].type, ArrayType)
