"""Composites: on named sizes, in their refusals, and what is offered where one is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.nodes import node_of, same
from ops.test_calls import Recording

from minigraph import ops
from minigraph.errors import DimensionError, MinigraphError, ShapeError, UnsupportedError
from minigraph.ir import INT, ArrayType, dim
from minigraph.ops import RECORDED
from minigraph.trace.composites import COMPOSITES, INSTEAD, nearest

N = dim("n")


class Typed:
    """An array of which only the type is known; functions on it give such arrays again."""

    def __init__(self, type_: ArrayType) -> None:
        self.shape, self.ndim, self.dtype = type_.shape, type_.ndim, type_.dtype

    def __getitem__(self, index: Any) -> Typed:
        return typed(*ops.bind_getitem(self, index))


def typed(op: Any, inputs: list[Any], attrs: dict[str, Any]) -> Typed:
    types = [ArrayType(x.dtype, x.shape) if isinstance(x, Typed) else INT for x in inputs]
    return Typed(node_of(op, types, attrs).output.type)  # type: ignore[arg-type]


class Types:
    """`np` on types."""

    def __getattr__(self, name: str) -> Any:
        if name == "asarray":
            return lambda x: x
        if name in COMPOSITES and name not in RECORDED:
            return lambda *args, **kwargs: COMPOSITES[name](self, *args, **kwargs)
        op = RECORDED[name]
        if op.bind is None:
            return lambda *args: typed(op, list(args), {})
        return lambda *args, **kwargs: typed(op, *op.bind(*args, **kwargs))  # type: ignore[misc]


def shapes(found: Any) -> list[str]:
    found = found if isinstance(found, tuple | list) else [found]
    return [ops.shape_text(x.shape) for x in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("np.split(x, 2)", ["(n, 4)", "(n, 4)"]),
        ("np.array_split(x, 2, 1)", ["(2*n, 2)", "(2*n, 2)"]),
        ("np.array_split(x, [1], 1)", ["(2*n, 1)", "(2*n, 3)"]),
        ("np.split(x, [n])", ["(n, 4)", "(n, 4)"]),
        ("np.moveaxis(x, 0, 1)", ["(4, 2*n)"]),
        ("np.vstack([x, x])", ["(4*n, 4)"]),
        ("np.ravel(x)", ["(8*n,)"]),
        ("np.flip(x)", ["(2*n, 4)"]),
        ("np.rot90(x)", ["(4, 2*n)"]),
        ("np.triu(x)", ["(2*n, 4)"]),
        ("np.zeros_like(x)", ["(2*n, 4)"]),
        ("np.broadcast_arrays(x, x)", ["(2*n, 4)", "(2*n, 4)"]),
        ("np.kron(x, x)", ["(4*n**2, 16)"]),
        ("np.diff(x, axis=1)", ["(2*n, 3)"]),
        ("np.meshgrid(x[:, 0], x[:, 1], indexing='ij', copy=False)", ["(2*n, 2*n)"] * 2),
    ],
)
def test_a_composite_keeps_named_sizes(line: str, expected: list[str]):
    x = Typed(ArrayType(np.dtype("f4"), (2 * N, 4)))
    found = shapes(eval(line, {"np": Types(), "x": x, "n": N}))
    assert found == [text.replace("4*n**2", str(4 * N * N)) for text in expected]


def test_parts_of_a_size_that_may_not_divide_are_refused():
    x = Typed(ArrayType(np.dtype("f4"), (N,)))
    for name in ("split", "array_split"):
        with pytest.raises(DimensionError, match="n"):
            getattr(Types(), name)(x, 2)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("np.split(np.ones(3), 2)", ShapeError),
        ("np.hsplit(np.array(1.0), 1)", ShapeError),
        ("np.vsplit(np.ones(3), 1)", ShapeError),
        ("np.dsplit(np.ones((2, 2)), 1)", ShapeError),
        ("np.fliplr(np.ones(3))", ShapeError),
        ("np.rot90(np.ones((2, 2)), 1, (0, 0))", ShapeError),
        ("np.moveaxis(np.ones((2, 2)), (0, 0), (0, 1))", ShapeError),
        ("np.diag(np.ones((1, 1, 1)))", ShapeError),
        ("np.select([np.ones(2)], [1])", TypeError),
        ("np.diff(np.array(1.0))", ShapeError),
        ("np.diff(np.ones(2), -1)", ShapeError),
        ("np.matrix_transpose(np.ones(2))", ShapeError),
        ("np.nan_to_num(np.ones(2, complex))", UnsupportedError),
        ("np.linalg.outer(np.ones((2, 2)), np.ones(2))", ShapeError),
        ("np.ravel(np.ones((2, 2)), 'K')", UnsupportedError),
    ],
)
def test_a_refusal_says_why(line: str, error: type[Exception]):
    with pytest.raises(error) as caught:
        eval(line.replace("np.array(1.0)", "number"), {"np": Recording(), "number": np.array(1.0)})
    assert isinstance(caught.value, MinigraphError)


def test_what_is_offered_is_recorded():
    for name, other in INSTEAD.items():
        assert name not in RECORDED and name not in COMPOSITES, name
        special = {"asarray", "add.at"}  # the tracer's own, and a method
        assert other in RECORDED or other in COMPOSITES or other in special, other


def test_the_nearest_name_is_found():
    assert nearest("nonzero") == "where"
    assert nearest("argmaxx") == "argmax"
    assert nearest("linalg.eig") == "linalg.eigh"
    assert nearest("random.normal") == "random.default_rng"
    assert nearest("busday_count") is None


def test_no_name_is_both_an_op_and_a_composite():
    assert not set(RECORDED) & set(COMPOSITES)
    assert same(np.float64(1), np.float64(1)) and not same(0.0, -0.0)
