"""Ops on arrays with named dimensions: one inference holds for all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.nodes import node_of, run, same

from minigraph import ops
from minigraph.errors import RAISED, DimensionError, ShapeError, SignatureError
from minigraph.ir import ArrayType, Dim, Graph, Node, Value, dim
from minigraph.ops import OPS, RECORDED, named_sizes

F4 = np.dtype("f4")
N, M = dim("n"), dim("m")


class Shaped:
    """An operand of which only the type is known."""

    def __init__(self, *shape: int | Dim, dtype: Any = F4) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype(dtype)


def integers(*shape: int | Dim) -> Shaped:
    return Shaped(*shape, dtype=np.int64)


X = Shaped(N, 4)
CASES: list[tuple[str, Callable[[Any], Any], tuple[Shaped, ...], str]] = [
    ("sum", lambda f: f(X, 1), (X,), "f32[n]"),
    ("sum", lambda f: f(X), (X,), "f32[]"),
    ("mean", lambda f: f(X, 0, keepdims=True), (X,), "f32[1,4]"),
    ("max", lambda f: f(X, 0), (X,), "f32[4]"),
    ("argmax", lambda f: f(X, 1), (X,), "i64[n]"),
    ("cumsum", lambda f: f(X), (X,), "f32[4*n]"),
    ("transpose", lambda f: f(X), (X,), "f32[4,n]"),
    ("reshape", lambda f: f(X, -1), (X,), "f32[4*n]"),
    ("reshape", lambda f: f(X, (N, 2, -1)), (X,), "f32[n,2,2]"),
    ("reshape", lambda f: f(X, (2, -1)), (X,), "f32[2,2*n]"),
    ("reshape", lambda f: f(Shaped(N, M), (M, N)), (Shaped(N, M),), "f32[m,n]"),
    ("expand_dims", lambda f: f(X, 1), (X,), "f32[n,1,4]"),
    ("broadcast_to", lambda f: f(Shaped(1, 4), (N, 4)), (Shaped(1, 4),), "f32[n,4]"),
    ("concatenate", lambda f: f([X, X]), (X, X), "f32[2*n,4]"),
    ("concatenate", lambda f: f([X, Shaped(M, 4)]), (X, Shaped(M, 4)), "f32[m+n,4]"),
    ("stack", lambda f: f([X, X], 1), (X, X), "f32[n,2,4]"),
    ("pad", lambda f: f(X, ((1, 2), (0, 0))), (X,), "f32[n+3,4]"),
    ("tile", lambda f: f(X, (2, 1)), (X,), "f32[2*n,4]"),
    ("tile", lambda f: f(Shaped(4), (N, 1)), (Shaped(4),), "f32[n,4]"),
    ("repeat", lambda f: f(X, 3, 0), (X,), "f32[3*n,4]"),
    ("repeat", lambda f: f(Shaped(4), N), (Shaped(4),), "f32[4*n]"),
    ("roll", lambda f: f(X, 1, 0), (X,), "f32[n,4]"),
    ("take", lambda f: f(X, integers(M), 1), (X, integers(M)), "f32[n,m]"),
    ("take_along_axis", lambda f: f(X, integers(N, 1), 1), (X, integers(N, 1)), "f32[n,1]"),
    ("matmul", lambda f: f(X, Shaped(4, M)), (X, Shaped(4, M)), "f32[n,m]"),
    ("matmul", lambda f: f(Shaped(4, N), X), (Shaped(4, N), X), "f32[4,4]"),
    ("dot", lambda f: f(X, Shaped(4)), (X, Shaped(4)), "f32[n]"),
    ("outer", lambda f: f(X, Shaped(M)), (X, Shaped(M)), "f32[4*n,m]"),
    ("einsum", lambda f: f("ij,kj->ik", X, X), (X, X), "f32[n,n]"),
    ("tensordot", lambda f: f(X, X, (0, 0)), (X, X), "f32[4,4]"),
    ("zeros", lambda f: f((N, 2)), (), "f64[n,2]"),
    ("full", lambda f: f((N,), Shaped(1)), (Shaped(1),), "f32[n]"),
    ("arange", lambda f: f(N), (), "i64[n]"),
    ("arange", lambda f: f(0, 2 * N, 3), (), "i64[((2*n+2)//3)]"),
    ("linspace", lambda f: f(Shaped(), Shaped(), N), (Shaped(), Shaped()), "f32[n]"),
    ("eye", lambda f: f(N), (), "f64[n,n]"),
    ("sort", lambda f: f(X, 0), (X,), "f32[n,4]"),
    ("argsort", lambda f: f(X, None), (X,), "i64[4*n]"),
    ("where", lambda f: f(Shaped(N, 1), X, Shaped()), (Shaped(N, 1), X, Shaped()), "f32[n,4]"),
    ("diagonal", lambda f: f(Shaped(N, N)), (Shaped(N, N),), "f32[n]"),
    ("linalg.inv", lambda f: f(Shaped(N, 3, 3)), (Shaped(N, 3, 3),), "f32[n,3,3]"),
    ("median", lambda f: f(X, 1), (X,), "f32[n]"),
    ("linalg.norm", lambda f: f(X, axis=1), (X,), "f32[n]"),
    ("searchsorted", lambda f: f(Shaped(4), X), (Shaped(4), X), "i64[n,4]"),
]


@pytest.mark.parametrize(("name", "call", "operands", "expected"), CASES)
def test_the_type_holds_for_every_size(
    name: str, call: Callable[[Any], Any], operands: tuple[Shaped, ...], expected: str
):
    op = RECORDED[name]
    inputs, attrs = call(op.bind)
    assert [x.shape for x in inputs] == [x.shape for x in operands]
    node = node_of(op, [ArrayType(x.dtype, x.shape) for x in operands], attrs)
    assert str(node.output.type) == expected
    for sizes in ({"n": 3, "m": 2}, {"n": 1, "m": 1}, {"n": 4, "m": 5}):
        rng = np.random.default_rng(1)
        values = [
            rng.integers(0, 1, ops.substitute(x.shape, sizes)).astype(x.dtype) for x in operands
        ]
        if name == "linalg.inv":
            values = [values[0] + np.eye(3, dtype=F4)]
        (found,) = run(node, values, sizes=sizes)
        assert found.shape == ops.substitute(node.output.type.shape, sizes)  # type: ignore[union-attr]
        assert found.dtype == node.output.type.dtype  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("add", [Shaped(N), Shaped(3)], DimensionError),
        ("add", [Shaped(N), Shaped(M)], DimensionError),
        ("add", [Shaped(N + 2), Shaped(N)], ShapeError),
        ("matmul", [X, Shaped(5, 2)], ShapeError),
        ("matmul", [X, Shaped(N, 2)], DimensionError),
    ],
)
def test_what_depends_on_the_size_is_an_error(name: str, arguments: list[Shaped], error: Any):
    with pytest.raises(error):
        ops.infer(OPS[name], [ArrayType(x.dtype, x.shape) for x in arguments], {})


def test_reshape_into_what_may_not_fit():
    with pytest.raises(DimensionError, match="named dimension"):
        RECORDED["reshape"].bind(X, (-1, 3))  # type: ignore[misc]
    with pytest.raises(DimensionError):
        RECORDED["reshape"].bind(X, (4,))  # type: ignore[misc]


def test_a_named_axis_is_never_empty():
    for name, raises in (("max", False), ("argmin", False), ("sum", False)):
        inputs, attrs = RECORDED[name].bind(X, 0)  # type: ignore[misc]
        assert node_of(OPS[name], [ArrayType(F4, X.shape)], attrs).may_raise is raises
        inputs, attrs = RECORDED[name].bind(X, 1)  # type: ignore[misc]
        assert not node_of(OPS[name], [ArrayType(F4, X.shape)], attrs).may_raise


def graph_of(*shapes: tuple[Any, ...]) -> Graph:
    inputs = [Value(index, ArrayType(F4, shape)) for index, shape in enumerate(shapes)]
    out = Value(90, ArrayType(F4, (inputs[0].type.size,)))  # type: ignore[union-attr]
    node = Node(91, OPS["reshape"], inputs[:1], {"shape": out.type.shape}, [out])
    return Graph("g", inputs, [node], [out])


def test_a_graph_runs_with_the_sizes_of_its_arguments():
    x = np.arange(12, dtype=F4).reshape(3, 4)
    (found,) = ops.evaluate(graph_of((N, 4)), [x])
    assert same(found, x.reshape(-1))
    (found,) = ops.evaluate(graph_of((N, M), (M,)), [x, x[0]])
    assert same(found, x.reshape(-1))


def test_arguments_that_do_not_fit_the_names_are_refused():
    with pytest.raises(SignatureError):
        ops.evaluate(graph_of((N, N)), [np.zeros((2, 3), F4)])


@pytest.mark.parametrize(
    ("shapes", "extents", "expected"),
    [
        ([(2 * N,)], [(6,)], {"n": 3}),
        ([(N + 1, M)], [(6, 2)], {"n": 5, "m": 2}),
        ([(N,), (N + M,)], [(6,), (8,)], {"n": 6, "m": 2}),
        ([(N * N,)], [(0,)], {"n": 0}),
    ],
)
def test_names_are_read_off_expressions(shapes: Any, extents: Any, expected: dict[str, int]):
    types = [ArrayType(F4, shape) for shape in shapes]
    assert named_sizes(types, [np.zeros(extent, F4) for extent in extents]) == expected


def test_an_expression_that_no_size_gives_is_refused():
    with pytest.raises(SignatureError):
        named_sizes([ArrayType(F4, (2 * N,))], [np.zeros(5, F4)])


def test_a_question_that_is_asked_in_passing_is_no_mistake():
    """While tracing, errors are collected so that no `except` swallows one; not this kind."""
    token = RAISED.set([])
    try:
        inputs, attrs = RECORDED["max"].bind(X)  # type: ignore[misc]
        assert not node_of(OPS["max"], [ArrayType(F4, X.shape)], attrs).may_raise
        assert node_of(OPS["slice"], [ArrayType(F4, X.shape)], {"index": [1]}).may_raise
        assert RAISED.get() == []
    finally:
        RAISED.reset(token)
