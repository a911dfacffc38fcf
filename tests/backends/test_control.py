"""Control flow in generated Python: word for word, in which memory, and like the evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from backends.checks import PYTHON, assert_same_run, plan_for
from backends.controlled import controlled
from hypothesis import HealthCheck, given, settings

from minigraph.ir import Graph, verify

MANY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@given(controlled())
@MANY
def test_a_random_graph_computes_what_the_evaluator_computes(case: tuple[Graph, list[Any]]):
    graph, inputs = case
    verify(graph)
    assert_same_run(graph, inputs)
    plan = plan_for(graph, inputs)
    assert_same_run(graph, inputs, plan)
    assert plan.lower_bytes <= plan.peak_bytes <= plan.naive_bytes


@given(controlled())
@MANY
def test_outputs_share_memory_with_nothing(case: tuple[Graph, list[Any]]):
    graph, inputs = case
    program = PYTHON.emit(graph, plan_for(graph, inputs))
    run = PYTHON.load(program)
    with np.errstate(all="ignore"):
        results = run(*inputs)
    others = [
        each for each in (*inputs, *program.constants.values()) if isinstance(each, np.ndarray)
    ]
    for result in results:
        if isinstance(result, np.ndarray):
            assert not any(np.shares_memory(result, other) for other in others), program.source
            others.append(result)
