"""What Python does with its numbers besides operators: conversions, choices, rounding.

Operands and results are Python's bool, int and float, which have no axes and no dtype:

    %k = to_int %x                  : int        int(x)
    %y = select %c, %a, %b          : float      a if c else b
    %n = round_number %x            : int        round(x)

Each op means what Python's own function does, with its exceptions; where the type of the result
would depend on a value, the op does not exist (`min(1, 2.0)`).  `FAILURES` says on which operands
an op raises; ints are as large as memory allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError
from minigraph.ir import BOOL, FLOAT, INT, ArrayType, Node, Op, ScalarType, Type

from .derivation import SAME, ZERO, Derivation, Term
from .registry import declare
from .samples import Sample

Failures = Mapping[str, str]
"""When an op raises, by the kinds of its operands ("i", "f", "if"; bools count as ints); "" is for
all others.  The words are

    zero        the second operand is 0
    negative    the second operand is negative
    below       an operand is negative
    domain      the result would be NaN, and no operand is
    infinite    the result is infinite, and no operand is
    beyond      an operand is NaN or infinite
    large       an int operand is not in the range of floats
    still       the third operand is 0
    other       none of these: Python has to be asked
"""

FAILURES: dict[str, Failures] = {
    "divide": {"": "zero infinite large"},
    "floor_divide": {"": "zero large"},
    "remainder": {"": "zero large"},
    "divmod": {"": "zero large"},
    "left_shift": {"": "negative"},
    "right_shift": {"": "negative"},
    "pow": {"ii": "", "": "zero infinite large other"},
}
"""Of each op on Python numbers that can raise: when it does."""


def number_kinds(types: Sequence[Type], what: str) -> list[ScalarType]:
    """The operands' types, all real numbers of Python."""
    kinds: list[ScalarType] = []
    for kind in types:
        if kind not in (BOOL, INT, FLOAT):
            raise DtypeError(f"{what}: a real number of Python is needed here, not a {kind}")
        assert isinstance(kind, ScalarType)
        kinds.append(kind)
    return kinds


def meaning(python: Callable[..., Any]) -> Callable[..., Any]:
    """The same, called as functions on arrays are."""

    def run(xp: Any, *inputs: Any, **attrs: Any) -> Any:
        return python(*inputs, **attrs)

    return run


def sampled(*samples: Sequence[Any]) -> Callable[[Any, Any], list[Sample]]:
    """Operands for an op's own tests, as they stand."""

    def sample(rng: Any, dtype: Any) -> list[Sample]:
        return [(list(each), {}) for each in samples]

    return sample


# ---- conversions ------------------------------------------------------------------------------


def _conversion(result: ScalarType) -> Callable[..., Type]:
    def infer(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
        number_kinds(types, str(result))
        return result

    return infer


def has_float(node: Node) -> bool:
    """A float is among the operands: it may be NaN or infinite."""
    return any(value.type is FLOAT for value in node.inputs)


def has_int(node: Node) -> bool:
    """An int is among the operands: it may be beyond the range of floats."""
    return any(value.type is INT for value in node.inputs)


for _result, _fails, _failures in (
    (INT, has_float, "beyond"),
    (FLOAT, has_int, "large"),
):
    declare(
        Op(
            f"to_{_result}",
            "elementwise",
            _conversion(_result),
            meaning(_result.python),
            python=_result.python,
            raises=_fails,
            vjp=SAME if _result is FLOAT else ZERO,
            sample=sampled([2.5], [-2.5], [-0.0], [7], [0], [True], [math.nan]),
            doc=f"Python's {_result}(x) of a number",
        )
    )
    FAILURES[f"to_{_result}"] = {"": _failures}


# ---- choices ----------------------------------------------------------------------------------


def _infer_select(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    condition, x, y = types
    if condition != BOOL and condition != ArrayType(np.dtype(bool), ()):
        raise DtypeError(f"a choice needs one bool, not a {condition}", instead="x != 0")
    if not isinstance(x, ScalarType) or x != y:
        raise DtypeError(
            f"a choice is between two Python numbers of one type, not a {x} and a {y}",
            instead="np.where(condition, x, y) for arrays",
        )
    return x


def _select(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


declare(
    Op(
        "select",
        "elementwise",
        _infer_select,
        meaning(_select),
        python=_select,
        operator="{1} if {0} else {2}",
        vjp=lambda d, c, x, y: (None, d.where(c, d.g, 0), d.where(c, 0, d.g)),
        sample=sampled([True, 1, 2], [False, 2.5, -0.0], [np.bool_(True), True, False]),
        doc="x if condition else y, of Python numbers",
    )
)


# ---- rounding and modular powers --------------------------------------------------------------


def _infer_round(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x, *digits = number_kinds(types, "round")
    if len(digits) > 1 or FLOAT in digits:
        raise DtypeError("round() takes a number and, as an int, how many digits")
    return FLOAT if digits and x is FLOAT else INT


declare(
    Op(
        "round_number",
        "elementwise",
        _infer_round,
        meaning(round),
        python=round,
        raises=has_float,
        vjp=ZERO,
        sample=sampled([2.5], [-0.5], [2.671, 2], [1234, -2], [math.inf], [True]),
        doc="Python's round: halves to even, with one operand to an int",
    )
)
FAILURES["round_number"] = {"f": "beyond", "fi": "infinite", "": ""}


def _infer_sum(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    return FLOAT if FLOAT in number_kinds(types, "a sum") else INT


def _derive_sum(d: Derivation, *numbers: Term) -> tuple[Term, ...]:
    return (d.g,) * len(numbers)


def _sum(start: Any, *numbers: Any) -> Any:
    return sum(numbers, start)


declare(
    Op(
        "sum_numbers",
        "elementwise",
        _infer_sum,
        meaning(_sum),
        python=_sum,
        raises=has_int,
        vjp=_derive_sum,
        sample=sampled([0, 1.5, 2.25], [0, 1, True], [0.5]),
        doc="Python's sum(numbers, start); that of floats rounds once, from Python 3.12 on",
    )
)
FAILURES["sum_numbers"] = {"": "large"}


def _infer_integers(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    if FLOAT in number_kinds(types, "an int"):
        raise DtypeError("'float' object cannot be interpreted as an integer")
    return INT


declare(
    Op(
        "pow_modulo",
        "elementwise",
        _infer_integers,
        meaning(pow),
        python=pow,
        raises=True,
        sample=sampled([3, 200, 13], [3, -1, 7], [2, -1, 4], [2, 2, 0]),
        doc="Python's pow(x, y, modulus) of ints",
    )
)
FAILURES["pow_modulo"] = {"": "other"}


def _infer_range(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    if len(types) != 3:
        raise DtypeError("a range has a start, a stop and a step")
    return _infer_integers(types, attrs)


def _range_length(start: int, stop: int, step: int) -> int:
    """`len(range(start, stop, step))`, which may be beyond what `len` gives."""
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    return max(0, (stop - start + step - (1 if step > 0 else -1)) // step)


declare(
    Op(
        "range_length",
        "elementwise",
        _infer_range,
        meaning(_range_length),
        python=_range_length,
        raises=True,
        sample=sampled([0, 10, 3], [10, 0, -3], [5, 5, 1], [0, 9, 3], [7, 1, 2], [1, 2, 0]),
        doc="how many numbers range(start, stop, step) has",
    )
)
FAILURES["range_length"] = {"": "still"}

for _python in (int.bit_length, int.bit_count):
    declare(
        Op(
            _python.__name__,
            "elementwise",
            _infer_integers,
            meaning(_python),
            python=_python,
            operator=f"int.{_python.__name__}({{0}})",
            sample=sampled([5], [0], [-7], [True], [10**30]),
            doc=f"Python's int.{_python.__name__}",
        )
    )
