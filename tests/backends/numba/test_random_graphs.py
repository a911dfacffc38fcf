"""Random graphs, compiled, against the interpreter: bits where NumPy's can be had, else errors."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest
from backends.numba.random_loops import evaluate_wide, loops, moderate, with_edges
from hypothesis import HealthCheck, given, settings
from passes.laws import arguments_of, bits, graphs, outcome

import minigraph as mg
from minigraph.ir import ArrayType, Graph
from minigraph.ops import evaluate

FEW = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
SUMS = ("sum", "mean", "matmul", "dot")


def run(compiled: mg.Compiled, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """What `passes.laws.outcome` tells of the interpreter."""
    arguments = copy.deepcopy(list(arguments))
    results: list[Any] = []
    failed, out = None, io.StringIO()
    with np.errstate(all="ignore"), redirect_stdout(out):
        try:
            results = list(compiled.run(*arguments))
        except Exception as error:
            failed = type(error)
    return failed, list(map(bits, results)), list(map(bits, arguments)), out.getvalue()


def adds_floats(graph: Graph) -> bool:
    """Whether the last bits depend on the order of a sum."""
    return any(
        node.op.name in SUMS
        and isinstance(node.outputs[0].type, ArrayType)
        and node.outputs[0].type.dtype.kind in "fc"
        for node in graph.nodes
    )


def chooses_zero(graph: Graph) -> bool:
    """Whether NumPy's choice of two zeros depends on where they stand in memory."""
    return any(node.op.name in ("fmin", "fmax") for node in graph.nodes)


def check_bits(graph: Graph, arguments_of: Callable[[Graph, int], list[Any]] = with_edges) -> None:
    compiled = mg.compile(graph, backend="numba", math="libm", strict=True)
    for seed in range(3):
        arguments = arguments_of(graph, seed)
        assert run(compiled, arguments) == outcome(graph, arguments), compiled.source("numba")


def check_errors(graph: Graph) -> None:
    """At most four times NumPy's own, and four units in the last place of the largest number."""
    compiled = mg.compile(graph, backend="numba", strict=True)
    for seed in range(2):
        arguments = moderate(graph, seed)
        with np.errstate(all="ignore"):
            found = compiled.run(*copy.deepcopy(arguments))
            expected = evaluate(graph, copy.deepcopy(arguments))
            exact, largest = evaluate_wide(graph, arguments)
        for one, other, wide in zip(found, expected, exact, strict=True):
            check_error(np.asarray(one), np.asarray(other), np.asarray(wide), largest, graph)


def check_error(one: Any, other: Any, wide: Any, largest: float, graph: Graph) -> None:
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    finite = np.isfinite(other) & (np.abs(wide) < np.finfo(one.dtype).max)
    np.testing.assert_array_equal(one[~finite], other[~finite])
    ours, numpys = (np.max(np.abs(x - wide)[finite], initial=0) for x in (one, other))
    unit = np.spacing(one.dtype.type(largest))
    assert not np.isfinite(unit) or ours <= 4 * numpys + 4 * unit, (ours, numpys, graph)


@given(graph=graphs())
@FEW
def test_graphs_of_all_ops(graph: Graph) -> None:
    if not adds_floats(graph) and not chooses_zero(graph):
        check_bits(graph, arguments_of)


@given(graph=loops(steps=12))
@FEW
def test_loops_have_the_interpreters_bits(graph: Graph) -> None:
    check_bits(graph)


@given(graph=loops(smooth=True, steps=12))
@FEW
def test_sums_and_functions_are_as_exact_as_numpys(graph: Graph) -> None:
    check_errors(graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "most"),
    [(check_bits, 17), (check_bits, 1100), (check_errors, 17), (check_errors, 1100)],
)
def test_many_loops(check: Callable[[Graph], None], most: int) -> None:
    smooth = check is check_errors

    @given(graph=loops(smooth=smooth, most=most, steps=25))
    @MANY
    def test(graph: Graph) -> None:
        check(graph)

    test()
