"""Eager arrays give what ndarrays give: the same numbers, bit for bit, recorded or not."""

from __future__ import annotations

import copy
import operator
import pickle
import re
from typing import Any

import numpy as np
import pytest
from comparing import describe
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ops.test_calls import CALLS, WRITES, evaluate, operands

import minigraph as mg
from minigraph import autograd
from minigraph.errors import DtypeError, OptionError, RecordError, UnsupportedError

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def content(thing: Any) -> Any:
    """What counts about a result, whether of ndarrays or of arrays."""
    if isinstance(thing, mg.Array):
        return describe(np.asarray(thing.data_))
    if isinstance(thing, np.generic):
        return describe(np.asarray(thing))
    if isinstance(thing, list | tuple):
        return (type(thing).__name__, [content(item) for item in thing])
    return describe(thing)


CREATES = [line for line in CALLS if line.startswith("np.full(")]
"""NumPy makes an ndarray and does not ask the arguments."""


def held(thing: Any) -> bool:
    """No ndarray and no NumPy scalar is left in a result."""
    if isinstance(thing, list | tuple):
        return all(map(held, thing))
    return not isinstance(thing, np.ndarray | np.generic)


def outcome(function: Any, *args: Any) -> Any:
    """The result of a call, or the exception that it raises."""
    with np.errstate(all="ignore"):
        try:
            return content(function(*args))
        except Exception as error:
            return type(error), str(error).replace("minigraph.array.Array", "ndarray")


def eager(values: dict[str, Any]) -> dict[str, Any]:
    return {name: mg.array(value) for name, value in values.items()}


# ---------------------------------------------------------------------------- NumPy's functions


@pytest.mark.parametrize("line", CALLS)
def test_a_call_gives_what_numpy_gives(line: str):
    try:
        expected = evaluate(line, operands(), np)
    except AttributeError as error:
        pytest.skip(f"not in NumPy {np.__version__}: {error}")
    found = evaluate(line, eager(operands()), np)
    assert content(found) == content(expected)
    takes_arrays = any(re.search(rf"\b{name}\b", line) for name in operands())
    assert held(found) or not takes_arrays or line in CREATES


@pytest.mark.parametrize("line", [line for line in CALLS if line not in CREATES])
def test_a_recorded_call_gives_what_numpy_gives(line: str):
    try:
        expected = evaluate(line, operands(), np)
    except AttributeError as error:
        pytest.skip(f"not in NumPy {np.__version__}: {error}")
    values = eager(operands())
    for value in values.values():
        if value.dtype.kind == "f":
            value.attach_grad()
    with autograd.record():
        found = [evaluate(line, values, np) for _ in range(2)]  # traced, and by its recipe
    assert content(found[0]) == content(found[1]) == content(expected)


@pytest.mark.parametrize("line", WRITES)
def test_a_write_leaves_what_numpy_leaves(line: str):
    expected, found = operands(), eager(operands())
    evaluate(line, expected, np)
    evaluate(line, found, np)
    for name, value in expected.items():
        assert content(found[name]) == content(value), name


# ---------------------------------------------------------------------------- operators

DTYPES = "bool int8 int32 int64 uint8 float16 float32 float64 complex64".split()
BINARY = [
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor"),
    *("lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge"),
]
IN_PLACE = [
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"),
]
numbers = st.one_of(
    st.integers(-3, 5), st.floats(-3, 3), st.booleans(), st.just(2j), st.just(np.float32(1.5))
)
datasets = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(
        dtype,
        st.sampled_from([(), (3,), (2, 3), (2, 1)]),
        elements=arrays.from_dtype(
            np.dtype(dtype), min_value=-4, max_value=4, allow_nan=False, allow_infinity=False
        )
        if np.dtype(dtype).kind in "if"
        else None,
    )
)


@given(datasets, st.one_of(datasets, numbers), st.sampled_from(BINARY))
def test_an_operator_gives_what_numpy_gives(a: Any, b: Any, name: str):
    function = getattr(operator, name)
    expected = outcome(function, a, b)
    x, y = mg.array(a), mg.array(b) if isinstance(b, np.ndarray) else b
    assert outcome(function, x, y) == expected
    if isinstance(b, np.ndarray):
        assert outcome(function, x, b) == expected
    assert outcome(function, a, y) == expected
    assert outcome(function, b, x) == outcome(function, b, a)


@given(datasets, st.one_of(datasets, numbers), st.sampled_from(IN_PLACE))
def test_an_operator_in_place_leaves_what_numpy_leaves(a: Any, b: Any, name: str):
    function = getattr(operator, name)
    x, y = mg.array(a), mg.array(b) if isinstance(b, np.ndarray) else b
    alias, before = x, a.copy()
    assert outcome(function, x, y) == outcome(function, before, b)
    assert alias is x and content(x) == content(before)


@given(datasets, st.sampled_from(["neg", "pos", "invert", "abs"]))
def test_a_unary_operator_gives_what_numpy_gives(a: Any, name: str):
    function = getattr(operator, name)
    assert outcome(function, mg.array(a)) == outcome(function, a)


def test_products_of_matrices():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    x, y = mg.array(a), mg.array(b)
    for found in (x @ y, x @ b, a @ y):
        assert isinstance(found, mg.Array) and content(found) == content(a @ b)
    assert content(divmod(x, 2)) == content(divmod(a, 2))
    assert content(divmod(7.0, x + 1)) == content(divmod(7.0, a + 1))
    assert round(mg.array(2.567), 1) == 2.6 and round(mg.array(2.5)) == 2


def test_an_error_is_numpys():
    with pytest.raises(ValueError, match="could not be broadcast"):
        mg.array([1.0, 2.0]) + mg.array([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="unhashable"):
        hash(mg.array([1.0]))
    with pytest.raises(TypeError):
        mg.array([1.0]) + object()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(mg.array([1, 2]))


# ---------------------------------------------------------------------------- an array as an object


def test_an_array_is_no_ndarray_and_its_results_are_arrays():
    x = mg.array([[1.0, 2.0], [3.0, 4.0]])
    assert not isinstance(x, np.ndarray)
    for found in (x.sum(), x[0, 0], x.T, x[0], x.mean(0), np.exp(x), 2 * x, x.real, x.max()):
        assert type(found) is mg.Array
    assert x.shape == (2, 2) and x.dtype == np.float64 and len(x) == 2 and x.ndim == 2
    assert x.item(0) == 1.0 and x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_how_it_prints():
    assert repr(mg.array([1.0, 2.0], "float32")) == "array([1., 2.], dtype=float32)"
    assert str(mg.array([1, 2])) == "[1 2]"
    assert f"{mg.array(2.5).sum():.2f}" == "2.50"


def test_its_dtype_is_numpys():
    assert mg.array([1, 2]).dtype == np.int64 and mg.array([1.5]).dtype == np.float64
    assert mg.array([1, 2], "float32").dtype == np.float32
    assert mg.array(mg.array([1, 2])).dtype == np.int64
    assert content(mg.array([mg.array(1.0), mg.array(2.0)])) == content(np.array([1.0, 2.0]))


def test_copies_and_views():
    data = np.arange(4.0)
    x = mg.array(data)
    data[0] = 9
    assert x[0] == 0
    x[1:3] = 7
    assert content(x) == content(np.array([0.0, 7, 7, 3]))
    row = x[2:]
    row += 1
    assert x[2] == 8
    x.asnumpy()[:] = 0
    assert x[2] == 8
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 1
    for found in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.copy()):
        assert content(found) == content(x) and not np.shares_memory(found.data_, x.data_)
    assert np.shares_memory(x.detach().data_, x.data_)


def test_a_gradient_is_copied_with_its_array():
    x = mg.array([1.0, 2.0])
    x.attach_grad("add")
    x.grad[:] = 5
    for found in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert found.grad_req == "add" and found.grad.tolist() == [5, 5]
        found.grad[:] = 1
        assert x.grad.tolist() == [5, 5]


def test_other_libraries_share_the_memory():
    x = mg.array([1.0, 2.0])
    there = np.from_dlpack(x)
    x[0] = 5
    assert there.tolist() == [5, 2] and np.shares_memory(there, x.data_)
    x.attach_grad()
    with mg.autograd.record(), pytest.raises(RecordError, match="carries no gradient"):
        np.from_dlpack(x)


def test_writes():
    x = mg.array(np.zeros((2, 3)))
    x[0] = mg.array([1.0, 2.0, 3.0])
    x[mg.array([1]), mg.array([0, 2])] = 4
    x[x > 3] *= 2
    assert x.tolist() == [[1, 2, 3], [8, 0, 8]]
    out = mg.array(np.zeros(3))
    assert np.add(x[0], 1, out=out) is out and out.tolist() == [2, 3, 4]
    x.fill(1)
    np.copyto(x, mg.array([5.0, 6, 7]))
    assert x[1].tolist() == [5, 6, 7]
    x.shape = (3, 2)
    assert x.shape == (3, 2)
    x.T[0] = 0
    assert x[:, 0].tolist() == [0, 0, 0]
    np.add.at(x, (0, 0), 3)
    assert x[0, 0] == 3


def test_control_flow_in_python():
    x = mg.array([3.0, -1.0, 2.0])
    total = 0.0
    for item in x:
        total += float(item) if item > 0 else 0.0
    assert total == 5.0 and 2.0 in x and [1, 2, 3][mg.array(1)] == 2
    assert int(x[0]) == 3 and complex(x[1]) == -1


def test_numpy_functions_outside_of_the_table_work_as_well():
    x = mg.array([3.0, 1.0, 3.0])
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == [1, 3] and counts.tolist() == [1, 2]
    assert np.allclose(x, [3, 1, 3]) is True and np.shape(x) == (3,)
    assert type(np.linalg.svd(mg.array(np.eye(2)))).__name__ == "SVDResult"


def test_an_array_is_the_real_number_where_python_wants_one():
    assert np.zeros(mg.array(3)).shape == (3,) and list(range(mg.array(2))) == [0, 1]


# ---------------------------------------------------------------------------- attached gradients


def test_a_gradient_is_attached():
    x = mg.array([1.0, 2.0], "float32")
    assert x.grad is None and x.grad_req is None
    x.attach_grad()
    assert x.grad.tolist() == [0, 0] and x.grad.dtype == np.float32 and x.grad_req == "write"
    x.attach_grad("null")
    assert x.grad is None
    with pytest.raises(OptionError, match="did you mean 'write'"):
        x.attach_grad("wrte")
    with pytest.raises(DtypeError, match="int64"):
        mg.array([1, 2]).attach_grad()


def test_an_array_with_a_gradient_keeps_its_shape():
    x = mg.array([1.0, 2.0])
    x.attach_grad()
    with pytest.raises(RecordError, match="shape"):
        x.shape = (2, 1)


def test_an_ndarray_of_a_recorded_array_is_refused():
    x = mg.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        with pytest.raises(RecordError, match="carries no gradient"):
            np.array([x.sum(), x.sum()])
        assert x.asnumpy().tolist() == [1, 2]
    assert np.asarray(x).tolist() == [1, 2]


def test_a_function_that_is_not_recorded_says_so():
    x = mg.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record(), pytest.raises(UnsupportedError, match="np.unwrap is not recorded"):
        np.unwrap(x)
    with autograd.record():
        np.unwrap(x.detach())
