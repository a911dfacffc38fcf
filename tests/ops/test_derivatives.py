"""The derivative rule of every op: on every sample, against central differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ops.gradients import cotangents, differences, gradient_graph
from ops.nodes import graph_of, node_of, same, samples, types_of
from ops.test_registry import with_names

from minigraph.errors import DimensionError, UnsupportedError
from minigraph.grad import differentiable
from minigraph.ir import FLOAT, ArrayType, Graph, Op
from minigraph.ops import OPS, ZERO, cotangent_type, evaluate, special
from minigraph.ops.derivation import is_complex
from minigraph.ops.samples import SPECIAL
from minigraph.passes import optimize

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
]

F8, F4 = np.dtype("f8"), np.dtype("f4")

NO_RULE = {
    "kernel": "made by the compiler, behind all derivatives",
    "parallel": "made by the compiler, behind all derivatives",
    "call": "differentiated by the sweep: it has a graph of its own for that",
    "if": "differentiated by the sweep, through its graphs",
    "while": "differentiated by the sweep, through its graphs",
    "scan": "differentiated by the sweep, through its graph",
    "math_gamma": "it needs the digamma function",
    "math_lgamma": "it needs the digamma function",
}
"""The ops without a rule, though numbers with gradients go in and out."""

REFUSED = {
    "pad": "modes that compute statistics",
    "interp": "period=",
    "qr": "columns of Q beyond those of the matrix",
    "svd": "singular vectors beyond those of the matrix",
    "update": "a mask beside other indices",
    "draw": "elements drawn from an array",
}
"""The ops whose rule refuses some of the samples, and which."""

SYMMETRIC = {"cholesky", "eigh", "eigvalsh"}
"""They read one triangle; their gradient is as if they read both."""


DOMAINS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x,
    lambda x: abs(x) + 0.1,
    lambda x: 0.1 + 0.8 * abs(np.sin(x)),
    lambda x: abs(x) + 1.2,
)
"""Where an op may be defined: everywhere, on positive numbers, between 0 and 1, above 1."""


def cases(op: Op, dtype: np.dtype[Any]) -> Iterator[tuple[Graph, list[Any], dict[str, Any]]]:
    """The samples with gradients to ask for, moved to where all results are finite."""
    for inputs, attrs in samples(op, dtype):
        for domain in DOMAINS:
            moved = [within(x, domain) for x in inputs]
            try:
                graph = graph_of(node_of(op, types_of(moved), attrs))
                results = evaluate(graph, moved)
            except Exception:
                continue
            types = [value.type for value in (*graph.inputs, *graph.outputs)]
            if any(is_complex(each) for each in types):
                break
            if all(np.isfinite(np.asarray(result)).all() for result in results):
                if differentiable(graph.inputs) and differentiable(graph.outputs):
                    yield graph, moved, attrs
                break


def within(x: Any, domain: Callable[[Any], Any]) -> Any:
    """Numbers of a domain, of the same type; special ones, some of them equal, become others."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        return domain(x) if isinstance(x, float) else x
    others = np.linspace(-2.1, 1.9, x.size).reshape(x.shape)
    special = np.isin(x, SPECIAL) | ~np.isfinite(x)
    return np.asarray(domain(np.where(special, others, x))).astype(x.dtype)


with np.errstate(all="ignore"):
    WITH_GRADIENTS = [op for op in OPS.values() if op.effect is None and any(cases(op, F8))]
each_op = pytest.mark.parametrize("op", WITH_GRADIENTS, ids=lambda op: op.name)
RULED = [op for op in WITH_GRADIENTS if op.vjp is not None]
each_rule = pytest.mark.parametrize("op", RULED, ids=lambda op: op.name)


@each_op
def test_an_op_through_which_gradients_could_flow_has_a_rule(op: Op):
    assert (op.vjp is None) == (op.name in NO_RULE)


def derived(op: Op, graph: Graph) -> Graph | None:
    """The graph of the gradients; None where the rule refuses, as it may."""
    try:
        return gradient_graph(graph)
    except UnsupportedError:
        assert op.name in REFUSED, graph
        return None


def arrays(graph: Graph) -> list[Any]:
    return [value for value in graph.values() if isinstance(value.type, ArrayType)]


def is_exact(graph: Graph) -> bool:
    """Nothing is rounded so much that differences tell nothing."""
    return all(value.type.dtype not in (np.float16, F4) for value in arrays(graph))


@each_rule
def test_gradients_are_those_of_central_differences(op: Op):
    ran = 0
    for graph, inputs, attrs in cases(op, F8):
        back = derived(op, graph)
        if back is None or not is_exact(graph):
            continue
        given = cotangents(graph, inputs)
        for at, found in zip(
            differentiable(graph.inputs), evaluate(back, [*inputs, *given]), strict=True
        ):
            expected = differences(graph, inputs, at, given)
            if op.name in SYMMETRIC:
                expected = (expected + np.swapaxes(expected, -1, -2)) / 2
            if op.name == "stop_gradient":
                expected = np.zeros_like(expected)
            smooth = np.isfinite(expected) & (abs(expected) < 1e4)  # no pole, no jump
            message = f"{op.name} {attrs} of {types_of(inputs)}, input {at}"
            np.testing.assert_allclose(
                np.asarray(found)[smooth], expected[smooth], 1e-4, 1e-5, err_msg=message
            )
            ran += 1
    assert ran


@each_rule
def test_a_gradient_has_the_type_of_its_input(op: Op):
    for dtype in (np.dtype("f2"), F4, F8):
        for graph, inputs, _ in cases(op, dtype):
            back = derived(op, graph)
            if back is None:
                continue
            types = [cotangent_type(graph.inputs[at].type) for at in differentiable(graph.inputs)]
            assert [value.type for value in back.outputs] == types
            found = evaluate(back, [*inputs, *cotangents(graph, inputs)])
            assert [np.asarray(each).dtype for each in found] == [t.dtype for t in types if t]


@each_rule
def test_numbers_of_a_rule_are_weak(op: Op):
    """A gradient of float32 is computed in float32."""
    for graph, _, attrs in cases(op, F4):
        mine = {str(v.type.dtype) for v in arrays(graph) if v.type.dtype.kind == "f"}
        back = derived(op, graph)
        if back is None or mine != {"float32"} or "dtype" in attrs:
            continue
        if any(value.type == FLOAT for value in graph.values()):
            continue  # whose cotangent is a float64
        read = set(back.outputs)
        for node in reversed(back.nodes):
            if not read.isdisjoint(node.outputs):
                read.update(node.inputs)
        wide = [v for v in arrays(back) if v.type.dtype == F8 and v in read]
        assert not wide, f"{back}"


@each_rule
def test_named_sizes_give_the_gradients_of_numbers(op: Op):
    """Where a named dimension is decided going forward, it is going back."""
    for graph, inputs, attrs in cases(op, F8):
        if derived(op, graph) is None:
            continue
        given = cotangents(graph, inputs)
        expected = evaluate(gradient_graph(graph), [*inputs, *given])
        for named, _ in with_names(types_of(inputs)):
            try:
                other = graph_of(node_of(op, named, attrs))
                evaluate(other, inputs)
            except Exception:
                continue
            try:
                back = derived(op, other)
            except DimensionError:
                assert op.name in UNDECIDED, f"{other}"
                continue
            assert back is not None
            for found, one in zip(evaluate(back, [*inputs, *given]), expected, strict=True):
                np.testing.assert_allclose(found, one, 1e-12)


UNDECIDED = {"norm": "of singular values: which axis is the shorter one"}
"""Ops whose rule has to know sizes that going forward need not be known, and why."""


@each_rule
def test_passes_keep_gradients(op: Op):
    for graph, inputs, _ in cases(op, F4):
        back = derived(op, graph)
        if back is None:
            continue
        operands = [*inputs, *cotangents(graph, inputs)]
        optimized = optimize(back, debug=True, lowering=("fuse",)).graph
        for found, one in zip(evaluate(optimized, operands), evaluate(back, operands), strict=True):
            assert same(np.asarray(found), np.asarray(one)), f"{back}{optimized}"


SMOOTH = (
    "add subtract multiply divide power float_power negative positive reciprocal square "
    "exp exp2 expm1 log log2 log10 log1p cbrt sqrt sin cos tan sinh cosh tanh arcsin arccos arctan "
    "arcsinh arccosh arctanh arctan2 logaddexp logaddexp2 hypot erf expit sinc remainder fmod "
    "where maximum clip absolute sum mean var std prod norm average nansum nanmean nanvar nanprod "
    "max min ptp median quantile cumsum cumprod cummax sort partition "
    "matmul dot vdot vecdot inner outer tensordot einsum inv det slogdet solve cholesky eigvalsh "
    "matrix_power pinv svd qr eigh transpose reshape broadcast_to slice diagonal gather update "
    "scatter_add take take_along_axis choose concatenate stack pad tile repeat roll interp "
    "convolve correlate linspace logspace geomspace"
).split()
"""The ops whose rules are themselves differentiated by rules."""


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives_are_those_of_the_first_ones(name: str):
    if name in special.RULES:
        pytest.importorskip("scipy.special", reason="SciPy is not installed")
    op, ran = OPS[name], 0
    for graph, inputs, attrs in cases(op, F8):
        back = derived(op, graph)
        if back is None or not is_exact(back) or not all(v.type.size for v in arrays(graph)):
            continue
        operands = [*inputs, *cotangents(graph, inputs)]
        if not all(np.isfinite(np.asarray(x)).all() for x in evaluate(back, operands)):
            continue
        second, given = gradient_graph(back), cotangents(back, operands)
        wanted = differentiable(back.inputs)
        for at, found in zip(wanted, evaluate(second, [*operands, *given]), strict=True):
            expected = differences(back, operands, at, given)
            if name in SYMMETRIC and at == 0:
                expected = (expected + np.swapaxes(expected, -1, -2)) / 2
            smooth = np.isfinite(expected) & (abs(expected) < 1e4)
            message = f"{name} {attrs} of {types_of(inputs)}, input {at}"
            np.testing.assert_allclose(
                np.asarray(found)[smooth], expected[smooth], 1e-4, 1e-4, err_msg=message
            )
            ran += 1
    assert ran


def test_complex_numbers_are_refused():
    graph = graph_of(node_of(OPS["real"], types_of([np.ones(3, complex)]), {}))
    with pytest.raises(UnsupportedError, match="complex"):
        gradient_graph(Graph("g", graph.inputs, graph.nodes, graph.outputs), [0])


def test_zero_is_the_rule_of_what_is_constant_piece_by_piece():
    constant = {op.name for op in OPS.values() if op.vjp is ZERO}
    expected = "floor ceil rint trunc round sign floor_divide stop_gradient imag".split()
    expected += "round_number math_ulp to_int".split()
    assert constant == set(expected)
