"""Dtypes and Python numbers: NumPy 2's rules come out of probing; Python's own stay Python's."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
import pytest
from ops.nodes import DTYPES, graph_of, node_of, run, same, types_of
from ops.test_calls import Recording

from minigraph import ops
from minigraph.errors import DtypeError, MinigraphError, OptionError, ShapeError
from minigraph.ir import (
    BOOL,
    COMPLEX,
    FLOAT,
    GENERATOR,
    INT,
    OPERAND,
    SCALARS,
    ArrayType,
    Node,
    Value,
    type_of,
)
from minigraph.ops import OPS


def dtype_of(name: str, *operands: Any, **attrs: Any) -> str:
    (found,) = ops.infer(OPS[name], types_of(operands), attrs)
    assert isinstance(found, ArrayType)
    return found.dtype.name


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("sum", "bool", "int64"),
        ("sum", "int8", "int64"),
        ("sum", "uint8", "uint64"),
        ("sum", "uint32", "uint64"),
        ("sum", "float16", "float16"),
        ("sum", "complex64", "complex64"),
        ("prod", "bool", "int64"),
        ("mean", "float16", "float16"),
        ("mean", "int8", "float64"),
        ("mean", "bool", "float64"),
        ("var", "complex64", "float32"),
        ("std", "int32", "float64"),
        ("max", "bool", "bool"),
        ("any", "complex128", "bool"),
        ("median", "float32", "float32"),
        ("nansum", "int8", "int64"),
    ],
)
def test_dtypes_of_reductions(name: str, dtype: str, expected: str):
    assert dtype_of(name, np.ones(3, dtype), axis=(0,)) == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_python_numbers_are_weak(dtype: np.dtype[Any]):
    x = np.ones(3, dtype)
    for number in (1, 1.0, 1j):
        for name in ("add", "multiply", "divide", "maximum", "where"):
            operands = [x > 0, x, number] if name == "where" else [x, number]
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(*operands)
            assert dtype_of(name, *operands) == expected.dtype.name


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("add", (True, True), 2),
        ("add", (2, 0.5), 2.5),
        ("divide", (1, 3), 1 / 3),
        ("floor_divide", (-7, 2), -4),
        ("remainder", (-7, 2), 1),
        ("divmod", (-7, 2), (-4, 1)),
        ("pow", (2, 100), 2**100),
        ("multiply", (2**70, 2**70), 2**140),
        ("bitwise_and", (True, False), False),
        ("bitwise_or", (True, 2), 3),
        ("invert", (True,), -2),
        ("negative", (True,), -1),
        ("absolute", (-2.5,), 2.5),
        ("less", (1, 2.5), True),
        ("equal", (1, 1j), False),
        ("left_shift", (1, 80), 1 << 80),
    ],
)
def test_python_numbers_compute_as_in_python(name: str, numbers: Any, expected: Any):
    node = node_of(OPS[name], types_of(numbers), {})
    results = run(node, numbers)
    assert same(results, expected if isinstance(expected, tuple) else (expected,))
    assert [SCALARS[type(result)] for result in results] == [v.type for v in node.outputs]


def test_a_power_of_ints_may_be_a_float():
    node = node_of(OPS["pow"], [INT, INT], {"result": FLOAT})
    assert node.output.type is FLOAT and run(node, [2, -1]) == (0.5,)


def test_bools_to_an_int_power_are_refused():
    """NumPy: `x ** 2` is int8 and `x ** 3` int64."""
    with pytest.raises(DtypeError, match="by the value of the exponent"):
        ops.infer(OPS["pow"], [ArrayType(np.dtype(bool), (3,)), INT], {})


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("less", (1j, 2)), ("floor_divide", (1j, 2)), ("bitwise_and", (1.5, 2)), ("invert", (1.5,))],
)
def test_what_python_does_not_define_is_refused(name: str, numbers: Any):
    with pytest.raises(DtypeError, match="Python does not define"):
        ops.infer(OPS[name], types_of(numbers), {})


def test_a_dtype_makes_numbers_arrays():
    node = node_of(OPS["add"], [INT, INT], {"dtype": np.dtype("f4")})
    assert node.output.type == ArrayType(np.dtype("f4"), ())
    assert same(run(node, [1, 2]), (np.float32(3),))


@pytest.mark.parametrize(
    ("name", "operands", "raises"),
    [
        ("add", (np.ones(2, "u1"), 3), True),
        ("add", (np.ones(2, "f4"), 3), False),
        ("add", (np.ones(2, "u1"), np.ones(2, "u1")), False),
        ("less", (np.ones(2, "u1"), 300), False),
        ("divide", (1, 2), True),
        ("divide", (np.ones(2), 0), False),
        ("power", (np.ones(2, "i4"), np.ones(2, "i4")), True),
        ("power", (np.ones(2), np.ones(2)), False),
        ("clip", (np.ones(2, "u1"), 0, 300), True),
    ],
)
def test_what_can_fail_on_data_says_so(name: str, operands: Any, raises: bool):
    assert node_of(OPS[name], types_of(operands), {}).may_raise is raises
    assert not node_of(OPS[name], types_of(operands), {"safe": True}).may_raise


def test_a_cast_of_numbers_and_arrays():
    cast, f4, u1 = OPS["cast"], np.dtype("f4"), np.dtype("u1")
    assert same(run(node_of(cast, [INT], {"dtype": f4}), [3]), (np.float32(3),))
    assert node_of(cast, [INT], {"dtype": u1}).may_raise
    with pytest.raises(OverflowError):
        run(node_of(cast, [INT], {"dtype": u1}), [300])
    with pytest.raises(DtypeError, match="complex"):
        ops.infer(cast, [COMPLEX], {"dtype": f4})
    with pytest.raises(DtypeError, match="same_kind"):
        cast.bind(np.ones(2), np.int64, casting="same_kind")  # type: ignore[misc]


def test_types_that_are_no_arrays_are_refused():
    for name in ("add", "sum", "reshape", "matmul", "where", "concatenate"):
        with pytest.raises(MinigraphError):
            ops.infer(OPS[name], [GENERATOR] * 3, {"axis": (0,), "shape": (1,)})


def test_an_unknown_op_is_named():
    with pytest.raises(OptionError, match="no op 'ad'"):
        ops.get("ad")


# ---- effects ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (("x =", np.ones(2), 3), {}),
        ((), {}),
        ((1.5, True, "{}"), {"sep": ", ", "end": "!"}),
    ],
)
def test_print_prints_what_print_prints(args: Any, options: dict[str, str]):
    expected, found = io.StringIO(), io.StringIO()
    print(*args, **options, file=expected)
    inputs = [x for x in args if not isinstance(x, str)]
    parts = tuple(x if isinstance(x, str) else OPERAND for x in args)
    node = node_of(OPS["print"], types_of(inputs), {"parts": parts, **options})
    with redirect_stdout(found):
        assert run(node, inputs) == ()
    assert found.getvalue() == expected.getvalue()


def test_print_writes_to_stderr_too():
    found = io.StringIO()
    with redirect_stderr(found):
        run(node_of(OPS["print"], [], {"parts": ("a", "b"), "file": "stderr"}), [])
    assert found.getvalue() == "a b\n" and sys.stderr is not found


def test_a_check_raises_its_error():
    node = node_of(OPS["check"], [BOOL], {})
    assert run(node, [True]) == ()
    with pytest.raises(AssertionError) as caught:
        run(node, [False])
    assert caught.value.args == ()
    with pytest.raises(ValueError, match="x is negative"):
        attrs = {"error": "ValueError", "message": "x is negative"}
        run(node_of(OPS["check"], [BOOL], attrs), [np.False_])
    with pytest.raises(DtypeError, match="cannot raise SystemExit"):
        ops.infer(OPS["check"], [BOOL], {"error": "SystemExit"})
    with pytest.raises(ShapeError, match="truth value"):
        ops.infer(OPS["check"], [ArrayType(np.dtype(bool), (2,))], {})


def test_a_write_changes_its_target():
    target, value = np.zeros(3), np.arange(3.0)
    ops.evaluate_node(node_of(OPS["write"], types_of([target, value]), {}), [target, value])
    assert target.tolist() == [0, 1, 2]
    with pytest.raises(DtypeError, match="cannot be written"):
        ops.infer(OPS["write"], types_of([target, value.astype("f4")]), {})


# ---- graphs -----------------------------------------------------------------------------------


def test_keyword_operands_come_last():
    x, mask, start = np.arange(6.0).reshape(2, 3), np.array([True, False, True]), np.float64(10)
    attrs = {"axis": (1,), "initial": OPERAND, "where": OPERAND}
    node = node_of(OPS["sum"], types_of([x, start, mask]), attrs)
    assert same(run(node, [x, start, mask]), (np.sum(x, axis=1, initial=10, where=mask),))
    positional, keywords = ops.call_arguments(node, [x, start, mask])
    assert len(positional) == 1 and list(keywords) == ["initial", "where", "axis"]


def test_a_graph_runs_node_by_node():
    x = Value(5, type_of(np.ones(3)))
    one = node_of(OPS["const"], [], {"value": 1.0})
    total = Node(1, OPS["add"], [x, one.output], {}, [Value(7, x.type)])
    graph = graph_of(total).replace([one, total])
    graph = type(graph)("g", [x], [one, total], [total.output, x])
    results = ops.evaluate(graph, [np.arange(3.0)])
    assert same(results, [np.arange(1.0, 4.0), np.arange(3.0)])


# ---- inference refuses what NumPy refuses -----------------------------------------------------


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("np.zeros((0, 3)).max(0)", ValueError),
        ("np.zeros(0).argmax()", ValueError),
        ("np.zeros((2, 3)).sum(2)", ValueError),
        ("np.zeros((2, 3)).sum((0, 0))", ValueError),
        ("np.zeros((2, 3)).max(where=np.ones((2, 3), bool))", ValueError),
        ("np.zeros((2, 3)).transpose(0)", ValueError),
        ("np.reshape(np.zeros(6), (4, 2))", ValueError),
        ("np.reshape(np.zeros(6), (-1, 4))", ValueError),
        ("np.reshape(np.zeros(6), (-1, -1))", ValueError),
        ("np.squeeze(np.zeros((2, 1)), 0)", ValueError),
        ("np.expand_dims(np.zeros(2), 3)", ValueError),
        ("np.broadcast_to(np.zeros(2), (3,))", ValueError),
        ("np.diagonal(np.zeros(3))", ValueError),
        ("np.concatenate([np.zeros((2, 3)), np.zeros((3, 2))])", ValueError),
        ("np.concatenate([np.float64(1), np.float64(2)])", ValueError),
        ("np.concatenate([])", ValueError),
        ("np.stack([np.zeros(2), np.zeros(3)])", ValueError),
        ("np.pad(np.zeros(2), -1)", ValueError),
        ("np.pad(np.zeros(2), 1, 'mirror')", ValueError),
        ("np.repeat(np.zeros(3), [1, 2])", ValueError),
        ("np.repeat(np.zeros(3), -1)", ValueError),
        ("np.take(np.zeros(3), [1], axis=1)", ValueError),
        ("np.take(np.zeros(3), np.array([1.5]))", TypeError),
        ("np.take(np.zeros((0, 2)), [0], axis=0)", IndexError),
        ("np.take_along_axis(np.zeros((2, 3)), np.zeros(3, int), 1)", ValueError),
        ("np.matmul(np.zeros((2, 3)), np.zeros((2, 3)))", ValueError),
        ("np.matmul(np.zeros((2, 3)), 2)", ValueError),
        ("np.dot(np.zeros((2, 3)), np.zeros((2, 3)))", ValueError),
        ("np.tensordot(np.zeros((2, 3)), np.zeros((2, 3)), 1)", ValueError),
        ("np.einsum('ij,jk->ik', np.zeros((2, 3)), np.zeros((2, 3)))", ValueError),
        ("np.einsum('ij->k', np.zeros((2, 3)))", ValueError),
        ("np.einsum('ijk', np.zeros((2, 3)))", ValueError),
        ("np.zeros(-1)", ValueError),
        ("np.zeros(1.5)", TypeError),
        ("np.zeros(2, 'x')", TypeError),
        ("np.arange(0, 3, 0)", ZeroDivisionError),
        ("np.linspace(0, 1, -1)", ValueError),
        ("np.sort(np.zeros(3), kind='bogus')", ValueError),
        ("np.sort(np.zeros(3), axis=1)", ValueError),
        ("np.partition(np.zeros(3), 5)", ValueError),
        ("np.convolve(np.zeros((2, 2)), np.zeros(2))", ValueError),
        ("np.split(np.zeros(3), 2)", ValueError),
        ("np.cross(np.zeros((2, 4)), np.zeros((2, 4)))", ValueError),
        ("np.linalg.inv(np.zeros((2, 3)))", ValueError),
        ("np.linalg.inv(np.zeros((2, 2), np.float16))", TypeError),
        ("np.moveaxis(np.zeros((2, 3)), 0, 5)", ValueError),
        ("np.cumsum(np.zeros(3), 1)", ValueError),
        ("np.subtract(np.ones(2, bool), np.ones(2, bool))", TypeError),
        ("np.astype(np.zeros(2), 'datetime64[s]')", TypeError),
    ],
)
def test_a_refusal_is_of_numpys_kind(line: str, error: type[Exception]):
    if "np.astype" not in line:
        with pytest.raises(error):
            eval(line, {"np": np})
    with pytest.raises(error) as caught:
        eval(line, {"np": Recording()})
    assert isinstance(caught.value, MinigraphError), caught.value
