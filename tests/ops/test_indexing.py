"""Indexing has NumPy's shapes: random indices, read and written, with numbers and with names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.nodes import node_of, run, same, types_of

from minigraph import ops
from minigraph.errors import DimensionError, ShapeError, UnsupportedError
from minigraph.ir import OPERAND, ArrayType, dim, type_of
from minigraph.ops import OPS, OutOfBoundsError, bind_getitem, bind_setitem, subscript

F4 = np.dtype("f4")
bounds = st.none() | st.integers(-7, 7)
slices = st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, 3, -1, -2, -5]))
integers = st.integers(-3, 2)
arrays = st.sampled_from(
    [
        np.array([0, -1]),
        np.array([[1], [2]]),
        np.array(1),
        np.array([], np.int64),
        np.array([1, 0], np.uint8),
        [0, 2],
    ]
)
masks = st.sampled_from(
    [np.array([True, False, True]), np.arange(9).reshape(3, 3) % 2 == 0, [False, True, True]]
)
entries = slices | integers | arrays | masks | st.just(None) | st.just(Ellipsis)
indices = st.lists(entries, max_size=4).map(tuple) | entries


def base() -> np.ndarray[Any, Any]:
    return np.arange(81).reshape(3, 3, 3, 3)


@given(index=indices)
@settings(max_examples=1500)
def test_reading_gives_numpys_elements(index: Any):
    x = base()
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises(IndexError):
            op, inputs, attrs = bind_getitem(x, index)
            run(node_of(op, types_of(list(map(held, inputs))), attrs), list(map(held, inputs)))
        return
    op, inputs, attrs = bind_getitem(x, index)
    inputs = list(map(held, inputs))
    node = node_of(op, types_of(inputs), attrs)
    (found,) = run(node, inputs)
    assert same(found, expected)
    assert node.output.type == type_of(expected)
    if not expected.size:
        return
    assert op.view == np.shares_memory(x, ops.evaluate_node(node, inputs)[0]) or not expected.ndim


def held(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, list) else x


@given(index=indices, value=st.sampled_from([7, np.array([1, 2, 3]), np.ones((2, 1, 1))]))
@settings(max_examples=1500)
def test_writing_leaves_numpys_array(index: Any, value: Any):
    expected = base()
    inputs, attrs = None, None
    try:
        expected[index] = value
    except (IndexError, ValueError) as error:
        with pytest.raises((IndexError, ValueError)):
            inputs, attrs = bind_setitem(base(), index, value)
            inputs = list(map(held, inputs))
            run(node_of(OPS["update"], types_of(inputs), attrs), inputs)
        assert isinstance(error, IndexError | ValueError)
        return
    inputs, attrs = bind_setitem(base(), index, value)
    inputs = list(map(held, inputs))
    (found,) = run(node_of(OPS["update"], types_of(inputs), attrs), inputs)
    assert same(found, expected)


@given(
    index=st.lists(slices | integers | st.none(), max_size=3).map(tuple),
    sizes=st.tuples(st.integers(1, 8), st.integers(1, 8)),
)
@settings(max_examples=1500)
def test_named_sizes_are_never_wrong(index: Any, sizes: tuple[int, int]):
    """What is decided for a name holds for every size; else it is an error."""
    named = ArrayType(F4, (dim("n"), dim("m") + 2))
    known = dict(zip("nm", sizes, strict=True))
    x = np.zeros((known["n"], known["m"] + 2), F4)
    try:
        op, _, attrs = bind_getitem(x, index)
        node = node_of(op, [named], attrs)
    except (DimensionError, OutOfBoundsError):
        return
    shape = tuple(ops.substitute(size, known) for size in node.output.type.shape)  # type: ignore[union-attr]
    try:
        assert shape == x[index].shape
    except IndexError:
        assert node.may_raise


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (slice(None, None, -1), "n"),
        (slice(None, None, 2), "((n+1)//2)"),
        (slice(None, dim("n") // 2), "(n//2)"),
        (slice(dim("n"), None), "0"),
    ],
)
def test_slices_of_a_named_size(index: Any, shape: str):
    node = node_of(OPS["slice"], [ArrayType(F4, (dim("n"),))], {"index": [index]})
    assert str(node.output.type) == f"f32[{shape}]"


def test_a_count_that_depends_on_the_size_is_an_error_with_its_name():
    with pytest.raises(DimensionError, match="named dimension n"):
        ops.infer(OPS["slice"], [ArrayType(F4, (dim("n"),))], {"index": [slice(None, 3)]})


def test_a_position_that_may_not_exist_may_raise():
    node = node_of(OPS["slice"], [ArrayType(F4, (dim("n"),))], {"index": [1]})
    assert node.may_raise and node.is_effect
    assert not node_of(OPS["slice"], [ArrayType(F4, (dim("n"),))], {"index": [0]}).may_raise
    assert not node_of(OPS["slice"], [ArrayType(F4, (3,))], {"index": [0]}).may_raise
    gather = node_of(OPS["gather"], types_of([base(), np.array([1])]), {"index": [OPERAND]})
    assert gather.may_raise
    attrs = {"index": [OPERAND], "safe": True}
    assert not node_of(OPS["gather"], types_of([base(), np.array([1])]), attrs).may_raise


def test_a_traced_mask_is_refused_for_reading_only():
    class Mask:
        shape, ndim, dtype = (3,), 1, np.dtype(bool)

    with pytest.raises(UnsupportedError, match="depends on data"):
        bind_getitem(base(), Mask())
    inputs, attrs = bind_setitem(base(), (Mask(), 0), 1)
    assert len(inputs) == 3 and attrs == {"index": [OPERAND, 0]}


def test_a_value_that_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="could not broadcast input array"):
        node_of(OPS["update"], types_of([base(), np.ones((2, 3))]), {"index": [0, 0]})
    with pytest.raises(OutOfBoundsError, match="did not match"):
        mask = np.ones(4, bool)
        node_of(OPS["update"], types_of([base(), 1, mask]), {"index": [OPERAND]})


def test_the_text_of_an_index():
    index = [0, slice(1, None, 2), None, Ellipsis, OPERAND, slice(None, dim("n"))]
    assert subscript(index, ["v3"]) == "0, 1::2, None, ..., v3, :n"
    assert subscript([], []) == "()"
