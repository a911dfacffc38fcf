"""Every op, on every sample, in every dtype: what is declared agrees with what is computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.nodes import DTYPES, graph_of, node_of, run, samples, types_of

from minigraph import ops
from minigraph.errors import DimensionError, DtypeError, MinigraphError
from minigraph.ir import (
    GENERATOR,
    ArrayType,
    Op,
    ScalarType,
    Type,
    dim,
    freeze,
    parse_graph,
    type_of,
)
from minigraph.ops import OPS, RECORDED

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
]


def each_op(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)(test)


def substituted(type_: Type, sizes: dict[str, int]) -> Type:
    if isinstance(type_, ArrayType):
        return ArrayType(type_.dtype, [ops.substitute(size, sizes) for size in type_.shape])
    return type_


@each_op
def test_an_op_has_samples(op: Op):
    assert op.sample is not None and op.numpy is not None and op.doc
    assert any(list(samples(op, dtype)) for dtype in DTYPES)


@each_op
def test_inferred_types_are_those_of_the_results(op: Op, capsys: pytest.CaptureFixture[str]):
    ran = 0
    for dtype in DTYPES:
        for inputs, attrs in samples(op, dtype):
            what = f"{op.name} {attrs} of {types_of(inputs)}"
            try:
                node = node_of(op, types_of(inputs), attrs)
            except DtypeError:
                with pytest.raises(TypeError):
                    call_directly(op, inputs, attrs)
                continue
            try:
                results = run(node, inputs)
            except Exception as error:
                assert node.may_raise, f"{what} raises {error!r}"
                continue
            found = [type_of(result) for result in results]
            assert found == [value.type for value in node.outputs], what
            ran += 1
    assert ran


def call_directly(op: Op, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """The function on inputs for which no type is inferred, of whatever type the result is."""
    node = object.__new__(type(node_of(OPS["const"], [], {"value": 1})))
    node.op, node.attrs, node.outputs = op, attrs, (None,)  # type: ignore[assignment]
    node.inputs = tuple(node_of(OPS["const"], [], {"value": x}).output for x in inputs)
    return run(node, inputs)


@each_op
def test_attrs_are_plain_and_leave_out_defaults(op: Op):
    for dtype in DTYPES:
        for _, attrs in samples(op, dtype):
            hash(freeze(attrs))
            for name, default in op.defaults.items():
                assert name not in attrs or freeze(attrs[name]) != freeze(default), (name, attrs)


@each_op
def test_a_node_is_what_its_text_says(op: Op):
    for dtype in DTYPES:
        for inputs, attrs in samples(op, dtype):
            try:
                graph = graph_of(node_of(op, types_of(inputs), attrs))
            except DtypeError:
                continue
            assert parse_graph(str(graph), OPS, graph.constants) == graph, str(graph)


@each_op
def test_named_sizes_agree_with_numbers(op: Op):
    """Where named dimensions are decided, putting the numbers in gives the type for the numbers."""
    for dtype in (np.dtype("f4"), np.dtype("i4")):
        for inputs, attrs in samples(op, dtype):
            types = types_of(inputs)
            try:
                expected = ops.infer(op, types, attrs)
            except MinigraphError:
                continue
            for named, sizes in with_names(types):
                try:
                    found = ops.infer(op, named, attrs)
                except DimensionError:
                    continue
                assert tuple(substituted(t, sizes) for t in found) == expected, (named, attrs)


def with_names(types: list[Type]) -> list[tuple[list[Type], dict[str, int]]]:
    """The types with one extent after the other given a name, then all of them."""
    extents = sorted({s for t in types if isinstance(t, ArrayType) for s in t.shape if s > 1})  # type: ignore[operator]
    choices = [{extent} for extent in extents] + [set(extents)]
    found = []
    for chosen in itertools.islice(choices, 8):
        names = {extent: dim(f"n{extent}") for extent in chosen}
        named: list[Type] = [
            ArrayType(t.dtype, [names.get(size, size) for size in t.shape])
            if isinstance(t, ArrayType)
            else t
            for t in types
        ]
        found.append((named, {f"n{extent}": extent for extent in chosen}))
    return found


@each_op
def test_a_view_shares_memory_and_nothing_else_does(op: Op, capsys: pytest.CaptureFixture[str]):
    shared = False
    for inputs, attrs in samples(op, np.dtype("f8")):
        try:
            node = node_of(op, types_of(inputs), attrs)
            results = ops.evaluate_node(node, inputs)
        except Exception:
            continue
        arrays = [x for x in inputs if isinstance(x, np.ndarray)]
        touched = [
            index
            for index, x in enumerate(arrays)
            if any(np.shares_memory(result, x) for result in results if result is not None)
        ]
        assert not touched or (op.view and touched == [0]), attrs
        shared = shared or bool(touched)
    assert shared or not op.view or op.name == "imag"


@each_op
def test_python_numbers_stay_python_numbers(op: Op):
    if op.python is None:
        return
    for inputs, attrs in samples(op, np.dtype("f8")):
        types = types_of(inputs)
        if all(isinstance(t, ScalarType) for t in types):
            assert all(isinstance(t, ScalarType) for t in ops.infer(op, types, attrs))
            with pytest.raises(DtypeError, match="a generator|not a generator|needed"):
                ops.infer(op, [GENERATOR] * len(types), attrs)


def test_every_recorded_name_is_numpys():
    for name, op in RECORDED.items():
        assert op.bind is not None or isinstance(getattr(np, op.name, None), np.ufunc), name
        thing: Any = np
        for part in name.split("."):
            thing = getattr(thing, part, None)
        newer = {"astype", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "concat"}
        newer |= {"permute_dims", "pow", "bitwise_invert", "bitwise_left_shift"}
        newer |= {"bitwise_right_shift"}
        assert thing is not None or name in newer, name
