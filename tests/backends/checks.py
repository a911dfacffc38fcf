"""What the tests of backends share: exact comparison, small graphs, plans."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np

from minigraph import backends, ops
from minigraph.ir import (
    Graph,
    Ids,
    Node,
    Plan,
    Value,
    parse_graph,
    type_of,
)
from minigraph.passes import Recorder, plan

PYTHON = backends.get("python")
INTERPRET = backends.get("interpret")


def graph_of(text: str) -> Graph:
    return parse_graph(text, ops.OPS)


def source(text: str, plan: Plan | None = None) -> str:
    return PYTHON.emit(graph_of(text), plan).source


def same(found: Any, expected: Any) -> bool:
    """The same kind of object with the same bytes (dtype, shape and sign of zero included)."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, np.ndarray | np.generic):
        return (found.dtype, found.shape, found.tobytes()) == (
            expected.dtype,
            expected.shape,
            expected.tobytes(),
        )
    if isinstance(found, np.random.Generator):
        return found.bit_generator.state == expected.bit_generator.state
    if isinstance(found, float | complex):
        return np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    return found == expected


def one_nan(held: Any) -> Any:
    """The value with every NaN replaced by the same one.

    `+` and `np.add` on two NumPy scalars that are NaN disagree about whose sign the sum gets.
    """
    if not isinstance(held, np.ndarray | np.inexact) or held.dtype.kind not in "fc":
        return held
    parts = np.array(held, copy=True).reshape(-1).view(held.real.dtype)
    parts[np.isnan(parts)] = np.nan
    found = parts.view(held.dtype).reshape(held.shape)
    return found[()] if isinstance(held, np.generic) else found


def same_order(found: Any, expected: Any) -> bool:
    """Arrays that lie in memory in the same order."""
    flags = ("C_CONTIGUOUS", "F_CONTIGUOUS")
    return not isinstance(found, np.ndarray) or all(
        found.flags[flag] == expected.flags[flag] for flag in flags
    )


def outcome(run: Any, inputs: Sequence[Any]) -> tuple[type | None, list[Any], str]:
    """The class of the exception or None, the results and the inputs afterwards, the output."""
    inputs = copy.deepcopy(list(inputs))
    results: tuple[Any, ...] = ()
    failed, out = None, io.StringIO()
    with np.errstate(all="ignore"), redirect_stdout(out), redirect_stderr(out):
        try:
            results = run(*inputs)
        except Exception as error:
            failed = type(error)
    return failed, [*results, *inputs], out.getvalue()


def assert_same_run(graph: Graph, inputs: Sequence[Any], plan: Plan | None = None) -> None:
    """The generated program computes what the evaluator computes, bit for bit."""
    program = PYTHON.emit(graph, plan)
    expected = outcome(INTERPRET.load(INTERPRET.emit(graph, plan)), inputs)
    found = outcome(PYTHON.load(program), inputs)
    message = f"\n{graph}\n{program.source}\n{found}\n{expected}"
    assert (found[0], found[2], len(found[1])) == (expected[0], expected[2], len(expected[1])), (
        message
    )
    for one, other in zip(found[1], expected[1], strict=True):
        assert same(one_nan(one), one_nan(other)) and same_order(one, other), message


def single(op_name: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> Graph:
    """A graph of one node."""
    op = ops.get(op_name)
    values = [Value(index, type_of(each)) for index, each in enumerate(inputs)]
    kinds = ops.infer(op, [value.type for value in values], attrs)
    outputs = [Value(len(values) + index, kind) for index, kind in enumerate(kinds)]
    return Graph("one", values, [Node(0, op, values, attrs, outputs)], outputs)


def plan_with(
    graph: Graph, dies: Iterable[Sequence[Value]], reuses: dict[Value, Value] | None = None
) -> Plan:
    return Plan(
        dies=list(dies),
        slot={},
        reuses=reuses or {},
        in_place=frozenset(),
        slot_bytes=[],
        peak_bytes=0,
        naive_bytes=0,
        lower_bytes=0,
        live_bytes=[0] * len(graph.nodes),
        why_not={},
    )


def plan_for(graph: Graph, inputs: Sequence[Any]) -> Plan:
    """The planner's plan for inputs that lie in memory as these do."""
    strided = [
        value
        for value, held in zip(graph.inputs, inputs, strict=True)
        if isinstance(held, np.ndarray) and not held.flags.c_contiguous
    ]
    return plan(graph, Recorder(Ids.after(graph), strided=strided))
