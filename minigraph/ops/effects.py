"""Constants, sizes, and what a program does to the world."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError
from minigraph.ir import INT, OPERAND, SCALARS, ArrayType, Op, Type, type_of

from .derivation import SAME
from .registry import declare
from .rules import AxisError, array_type, is_zero
from .samples import Sample, array, special
from .text import operands_of, words_of


def run_print(
    xp: Any,
    *inputs: Any,
    parts: tuple[Any, ...],
    sep: str = " ",
    end: str = "\n",
    file: str = "stdout",
) -> None:
    """`print` of the words that `parts` says, with the values in them."""
    print(*words_of(parts, inputs), sep=sep, end=end, file=getattr(sys, file))


def _infer_print(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    needed = operands_of(attrs["parts"])
    if needed != len(types):
        raise DtypeError(f"{needed} values are printed, and {len(types)} are given")
    return ()


def _run_write(xp: Any, target: Any, value: Any) -> None:
    xp.copyto(target, value)


def _infer_write(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    target, value = types
    if not (isinstance(target, ArrayType) and target == value):
        raise DtypeError(f"a {value} cannot be written into a {target}")
    return ()


def _constant(xp: Any, value: Any) -> Any:
    return xp.asarray(value) if isinstance(value, np.ndarray) else value


def _size(xp: Any, x: Any, axis: int) -> Any:
    return x.shape[axis]


def _infer_size(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x = array_type(types[0])
    if not 0 <= attrs["axis"] < x.ndim:
        raise AxisError(f"axis {attrs['axis']} is out of bounds for {x}")
    return INT


def _infer_item(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x = types[0]
    if not isinstance(x, ArrayType) or x.ndim:
        raise DtypeError(f"a {x} is not an array without axes")
    return SCALARS[type(x.dtype.type().item())]


def _item(xp: Any, x: Any) -> Any:
    return x.item()


ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        ArithmeticError,
        AssertionError,
        FloatingPointError,
        IndexError,
        KeyError,
        LookupError,
        NameError,
        NotImplementedError,
        OverflowError,
        RuntimeError,
        StopIteration,
        TypeError,
        UnboundLocalError,
        ValueError,
        ZeroDivisionError,
    )
}
"""The errors that a `check` can raise, by name."""


def run_check(
    xp: Any,
    condition: Any,
    *inputs: Any,
    error: str = "AssertionError",
    message: str | tuple[Any, ...] | None = None,
) -> None:
    """Raise `error(message)` unless the condition holds; of several words, `error(*words)`."""
    if not condition:
        raise ERRORS[error](*words_of(_words(message), inputs))


def _words(message: Any) -> Sequence[Any]:
    """The arguments of the error: a message may be one of them."""
    if message is None:
        return ()
    return (message,) if isinstance(message, str) else message


def _infer_check(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    if attrs.get("error", "AssertionError") not in ERRORS:
        raise DtypeError(f"a check cannot raise {attrs['error']}", instead=", ".join(ERRORS))
    needed = operands_of(_words(attrs.get("message")))
    if needed != len(types) - 1:
        raise DtypeError(f"the message has {needed} values, and {len(types) - 1} are given")
    condition = array_type(types[0], "a condition")
    if is_zero(condition.size - 1) is False:
        raise ShapeError(
            f"the truth value of {condition} is not defined", instead="x.any() or x.all()"
        )
    return ()


def _sample_print(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 2)
    return [
        ([x, 3], {"parts": ("x =", OPERAND, OPERAND)}),
        ([x], {"parts": (OPERAND,), "sep": "", "end": "", "file": "stderr"}),
        ([], {"parts": ()}),
        (
            [x[0], x, 2.5],
            {"parts": (("x: ", (OPERAND, "r", ""), "{}"), "=", ((OPERAND, "", ""),), OPERAND)},
        ),
        ([2.5, x[:1].reshape(())], {"parts": (((OPERAND, "", ".3f"), (OPERAND, "array", "")),)}),
        ([2.5, x[0]], {"parts": ((("<"), (OPERAND, "%5.1f", ""), "|", (OPERAND, "%s", "")),)}),
    ]


def _sample_check(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    return [
        ([np.ones((), dtype)], {}),
        ([True], {"error": "ValueError", "message": "x must be positive"}),
        ([np.zeros(1, dtype)], {"message": "x"}),
        ([False, 2.5], {"error": "ValueError", "message": (("not ", (OPERAND, "", ".2f")),)}),
        ([False, 3], {"error": "KeyError", "message": (OPERAND, "is missing")}),
    ]


declare(
    Op(
        "const",
        "create",
        lambda types, attrs: type_of(attrs["value"]),
        _constant,
        sample=lambda rng, dtype: [
            ([], {"value": special(rng, dtype, 3)}),
            ([], {"value": special(rng, dtype, 3)[0]}),
            ([], {"value": 2.5}),
        ],
        doc="a value that is known while compiling",
    )
)
declare(
    Op(
        "size",
        "layout",
        _infer_size,
        _size,
        operator="{0}.shape[{axis}]",
        sample=lambda rng, dtype: [([array(rng, dtype, 2, 3)], {"axis": 1})],
        doc="the extent of an axis, as a Python int",
    )
)
declare(
    Op(
        "item",
        "layout",
        _infer_item,
        _item,
        operator="{0}.item()",
        vjp=SAME,
        sample=lambda rng, dtype: [([array(rng, dtype)], {}), ([array(rng, dtype)[()]], {})],
        doc="an array without axes, as a number of Python",
    )
)
declare(
    Op(
        "print",
        "effect",
        _infer_print,
        run_print,
        effect="print",
        defaults={"sep": " ", "end": "\n", "file": "stdout"},
        sample=_sample_print,
        doc="print, in order",
    )
)
declare(
    Op(
        "check",
        "effect",
        _infer_check,
        run_check,
        effect="check",
        raises=True,
        defaults={"error": "AssertionError", "message": None},
        sample=_sample_check,
        doc="raise an error unless the condition holds",
    )
)
declare(
    Op(
        "write",
        "effect",
        _infer_write,
        _run_write,
        effect="write",
        sample=lambda rng, dtype: [([array(rng, dtype, 2, 3), array(rng, dtype, 2, 3)], {})],
        doc="store a new value into an argument's memory",
    )
)
