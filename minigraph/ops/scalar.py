"""Elementwise ops one element at a time: in which dtypes, and by which text.

NumPy converts the operands of an elementwise op to the dtypes of one of the loops it has been
compiled with, and computes there.  A fused kernel does the same:

    %z = divide %x, %y : f64[3]     of %x: i32[3], %y: f32[3]
    loop_dtypes     (float64, float64) -> float64
    scalar_text     "{0} / {1}"     of two float64, with the result converted to float64

The text is the op's `scalar`.  Names in it are functions that the backends have.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from minigraph.ir import INT, ArrayType, Node, ObjectType, Op, ScalarType, Value

from .special import special_ufunc

Numbers = Mapping[Value, Any]
"""Operands that are known: Python numbers, NumPy scalars, arrays without axes."""

Loop = tuple[tuple[np.dtype[Any], ...], tuple[np.dtype[Any], ...]]
"""The dtypes of the operands and of the results, as computed."""

NONE_KNOWN: Numbers = MappingProxyType({})

FUSIBLE = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
)
"""Dtypes of which an element is computed as NumPy does."""

TRANSCENDENTAL = frozenset(
    (
        "exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 sin cos tan sinh cosh tanh "
        "arcsin arccos arctan arctan2 arcsinh arccosh arctanh "
        "pow power float_power cbrt hypot erf expit"
    ).split()
)
"""Ops of which a kernel may compute other last bits than NumPy does."""

_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_UNDERSTOOD = {"safe", "dtype", "high", "order"}  # attrs with which the meaning is still this one


def loop_dtypes(node: Node, numbers: Numbers = NONE_KNOWN) -> Loop | None:
    """The dtypes in which NumPy computes the node; None: it is not computed element by element.

    Args:
        node: of any op.
        numbers: the operands that are known, for comparisons with a Python int of any size.
    """
    types = [value.type for value in node.inputs]
    if (
        node.op.scalar is None
        or len(node.outputs) != 1
        or not all(name in _UNDERSTOOD for name in node.attrs)
        or any(isinstance(t, ObjectType) for t in types)
        or not any(isinstance(t, ArrayType) for t in types)
    ):
        return None
    keys: list[np.dtype[Any] | type] = [
        t.dtype if isinstance(t, ArrayType) else t.python
        for t in types
        if isinstance(t, ArrayType | ScalarType)
    ]
    if node.op.name in _COMPARISONS and INT in types:
        at = types.index(INT)
        keys[at] = _int_dtype(keys[1 - at], numbers.get(node.inputs[at]))
    out = node.output.type
    assert isinstance(out, ArrayType)
    loop = _loop(node.op, tuple(keys), node.attrs.get("dtype"), "high" in node.attrs)
    if loop is None or loop[1] != (out.dtype,):
        return None
    given = [t.dtype for t in types if isinstance(t, ArrayType)]
    return loop if all(d.name in FUSIBLE for d in (*given, *loop[0], *loop[1])) else None


def scalar_text(node: Node, numbers: Numbers = NONE_KNOWN, exact: bool = False) -> str | None:
    """How one element of the node's result is computed; None: not by kernels.

    Args:
        node: of any op.
        numbers: the operands that are known; the text may depend on them.
        exact: only if the result is NumPy's, bit for bit.

    Returns:
        A template over the operands, which have the dtypes of the loop; its value is to be
        converted to the dtype of the result.
    """
    loop = loop_dtypes(node, numbers)
    scalar = node.op.scalar
    if loop is None or scalar is None:
        return None
    if callable(scalar):
        return scalar(node, numbers, exact)
    if exact and node.op.name in TRANSCENDENTAL:
        return None
    if isinstance(scalar, str):
        return scalar
    kind = loop[0][0].kind
    return next((text for kinds, text in scalar.items() if kind in kinds), None)


def cast_text(node: Node, numbers: Numbers, exact: bool) -> str:
    """The text of `cast` and `copy`."""
    loop = loop_dtypes(node)
    assert loop is not None
    (source,), (target,) = loop
    if source.kind == "f" and target.kind in "iu":
        return f"float_to_{target.name}({{0}})"
    return "{0} != 0" if target.kind == "b" else "{0}"


def is_fixed(operand: Value, node: Node) -> bool:
    """It is one number along the last axis of the result, where NumPy's innermost loops run."""
    result = node.output.type
    if not isinstance(operand.type, ArrayType) or not isinstance(result, ArrayType):
        return True
    shape = operand.type.shape
    return not shape or (shape[-1] == 1 and result.shape[-1] != 1)


def is_beyond_ints(value: Value, numbers: Numbers) -> bool:
    """It is known to be a Python int that is neither an int64 nor a uint64."""
    return value.type is INT and value in numbers and not -(2**63) <= numbers[value] < 2**64


def _int_dtype(other: np.dtype[Any] | type, number: int | None) -> np.dtype[Any] | type:
    """The dtype as which a Python int is compared with an array: here it need not fit the other."""
    if not isinstance(other, np.dtype) or other.kind not in "biu":
        return int
    unsigned = number is not None and number >= 2**63
    return np.dtype(np.uint64 if unsigned else np.int64)


@lru_cache(maxsize=4096)
def _loop(
    op: Op, keys: tuple[np.dtype[Any] | type, ...], dtype: np.dtype[Any] | None, high: bool
) -> Loop | None:
    """The loop for operands of these dtypes, or classes of Python numbers.

    Args:
        op: an elementwise op with one result.
        keys: for each operand its dtype or class.
        dtype: the `dtype=` of the call.
        high: the second of two operands of `clip` is the upper bound.
    """
    if op.name in ("cast", "copy", "identity", "stop_gradient"):
        (found,) = map(_default, keys)
        return (found,), (dtype or found,)
    if op.name == "where":
        common = np.result_type(*(_weak(key) for key in keys[1:]))
        return (np.dtype(bool), common, common), (common,)
    if op.name == "round":
        (found,) = map(_default, keys)
        return (found,), (found,)
    if op.name == "clip":
        keys = (_default(keys[0]), *keys[1:])
        ufunc = np.minimum if high else np.maximum
        if len(keys) == 3:
            common = np.result_type(*(_weak(key) for key in keys))
            return (common,) * 3, (common,)
    elif op.name == "pow":
        ufunc = np.power
    elif hasattr(np, op.name):
        ufunc = getattr(np, op.name)
    else:
        ufunc = special_ufunc(op.name)
    assert isinstance(ufunc, np.ufunc) and ufunc.nout == 1, op
    operands = tuple(np.dtype(bool) if key is bool else key for key in keys)
    signature = (*(None,) * ufunc.nin, dtype)
    try:
        *inputs, output = ufunc.resolve_dtypes((*operands, None), signature=signature)
    except TypeError:
        return None
    return tuple(inputs), (output,)


def _default(key: np.dtype[Any] | type) -> np.dtype[Any]:
    return np.dtype(key)


def _weak(key: np.dtype[Any] | type) -> Any:
    return key(1) if isinstance(key, type) else key
