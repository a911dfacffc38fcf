"""Gradients of small graphs: by the rules, and by central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.grad import GraphBuilder, differentiable, joint
from minigraph.ir import Graph, Ids, Value, type_of
from minigraph.ops import evaluate


def gradient_graph(graph: Graph, wanted: Sequence[int] | None = None) -> Graph:
    """`(inputs, cotangents of the outputs that have one) -> gradients of the wanted inputs`."""
    both = joint(graph, wanted)
    return Graph("gradient", both.inputs, both.nodes, both.outputs[len(graph.outputs) :])


def cotangents(graph: Graph, inputs: Sequence[Any], seed: int = 0) -> list[Any]:
    """Random numbers, one for each element of the outputs that have gradients."""
    rng = np.random.default_rng(seed)
    found = [np.asarray(result) for result in evaluate(graph, inputs)]
    results = [found[at] for at in differentiable(graph.outputs)]
    return [np.asarray(rng.uniform(0.5, 1.5, r.shape).astype(r.dtype)) for r in results]


def weighted(graph: Graph, inputs: Sequence[Any], given: Sequence[Any]) -> float:
    """The sum of all results times their cotangents: what `gradient_graph` differentiates."""
    found = evaluate(graph, inputs)
    results = [np.asarray(found[at]) for at in differentiable(graph.outputs)]
    return sum(float((r * g).sum()) for r, g in zip(results, given, strict=True))


def differences(
    graph: Graph, inputs: Sequence[Any], at: int, given: Sequence[Any], step: float = 1e-6
) -> np.ndarray[Any, Any]:
    """The gradient of one input by central differences."""
    x = np.array(inputs[at], dtype=float)
    found = np.zeros(x.shape)

    def moved(place: Any, by: float) -> Any:
        other = x.copy()
        other[place] += by
        return other if isinstance(inputs[at], np.ndarray | np.generic) else float(other)

    for place in np.ndindex(x.shape):
        high, low = (
            weighted(graph, [*inputs[:at], moved(place, by), *inputs[at + 1 :]], given)
            for by in (step, -step)
        )
        found[place] = (high - low) / (2 * step)
    return found


def recorded(function: Callable[..., Value], *inputs: Any) -> Graph:
    """The graph of `function(op, *values)`, where `op(name, *values, **attrs)` adds a node."""
    ids = Ids()
    values = [ids.value(type_of(x)) for x in inputs]
    builder = GraphBuilder(Graph("f", values, [], values))

    def op(name: str, *operands: Any, **attrs: Any) -> Value:
        known = [x if isinstance(x, Value) else builder.constant(x) for x in operands]
        return builder.emit(ops.get(name), known, attrs)[0]

    result = function(op, *values)
    return Graph("f", values, builder.nodes, [result])


def gradients(function: Callable[..., Value], *inputs: Any) -> list[Any]:
    """Of the sum of what the function gives (see `recorded`), for each input that has one."""
    graph = recorded(function, *inputs)
    with np.errstate(all="ignore"):
        (result,) = evaluate(graph, inputs)
        return evaluate(gradient_graph(graph), [*inputs, np.ones_like(result)])


def gradient(name: str, *inputs: Any, **attrs: Any) -> list[Any]:
    """Of the sum of the result of one op, for each input that has a gradient."""
    return gradients(lambda op, *values: op(name, *values, **attrs), *inputs)
