"""What Python does with its numbers besides operators: conversions, choices, the module `math`.

Operands and results are Python's bool, int and float, which have no axes and no dtype:

    %k = to_int %x                  : int        int(x)
    %y = select %c, %a, %b          : float      a if c else b
    %r = math_sqrt %x               : float      math.sqrt(x)

Each op means what Python's own function does, with its exceptions; where the type of the result
would depend on a value, the op does not exist (`min(1, 2.0)`).  `FAILURES` says on which operands
an op raises; ints are as large as memory allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigraph.errors import DtypeError
from minigraph.ir import BOOL, FLOAT, INT, ArrayType, Node, Op, ScalarType, Type

from .derivation import SAME, ZERO, Derivation, Term
from .registry import declare, get
from .samples import Sample

Rule = Callable[..., Any]
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


def _kinds(types: Sequence[Type], what: str) -> list[ScalarType]:
    """The operands' types, all real numbers of Python."""
    kinds: list[ScalarType] = []
    for kind in types:
        if kind not in (BOOL, INT, FLOAT):
            raise DtypeError(f"{what}: a real number of Python is needed here, not a {kind}")
        assert isinstance(kind, ScalarType)
        kinds.append(kind)
    return kinds


def _meaning(python: Callable[..., Any]) -> Callable[..., Any]:
    """The same, called as functions on arrays are."""

    def run(xp: Any, *inputs: Any, **attrs: Any) -> Any:
        return python(*inputs, **attrs)

    return run


def _sampled(*samples: Sequence[Any]) -> Callable[[Any, Any], list[Sample]]:
    def sample(rng: Any, dtype: Any) -> list[Sample]:
        return [(list(each), {}) for each in samples]

    return sample


# ---- conversions ------------------------------------------------------------------------------


def _conversion(result: ScalarType) -> Callable[..., Type]:
    def infer(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
        _kinds(types, str(result))
        return result

    return infer


def _has_float(node: Node) -> bool:
    return any(value.type is FLOAT for value in node.inputs)


def _has_int(node: Node) -> bool:
    return any(value.type is INT for value in node.inputs)


for _result, _fails, _failures in (
    (INT, _has_float, "beyond"),
    (FLOAT, _has_int, "large"),
):
    declare(
        Op(
            f"to_{_result}",
            "elementwise",
            _conversion(_result),
            _meaning(_result.python),
            python=_result.python,
            raises=_fails,
            vjp=SAME if _result is FLOAT else ZERO,
            sample=_sampled([2.5], [-2.5], [-0.0], [7], [0], [True], [math.nan]),
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
        _meaning(_select),
        python=_select,
        operator="{1} if {0} else {2}",
        vjp=lambda d, c, x, y: (None, d.where(c, d.g, 0), d.where(c, 0, d.g)),
        sample=_sampled([True, 1, 2], [False, 2.5, -0.0], [np.bool_(True), True, False]),
        doc="x if condition else y, of Python numbers",
    )
)


# ---- rounding and modular powers --------------------------------------------------------------


def _infer_round(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    x, *digits = _kinds(types, "round")
    if len(digits) > 1 or FLOAT in digits:
        raise DtypeError("round() takes a number and, as an int, how many digits")
    return FLOAT if digits and x is FLOAT else INT


declare(
    Op(
        "round_number",
        "elementwise",
        _infer_round,
        _meaning(round),
        python=round,
        raises=_has_float,
        vjp=ZERO,
        sample=_sampled([2.5], [-0.5], [2.671, 2], [1234, -2], [math.inf], [True]),
        doc="Python's round: halves to even, with one operand to an int",
    )
)
FAILURES["round_number"] = {"f": "beyond", "fi": "infinite", "": ""}


def _infer_integers(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    if FLOAT in _kinds(types, "an int"):
        raise DtypeError("'float' object cannot be interpreted as an integer")
    return INT


declare(
    Op(
        "pow_modulo",
        "elementwise",
        _infer_integers,
        _meaning(pow),
        python=pow,
        raises=True,
        sample=_sampled([3, 200, 13], [3, -1, 7], [2, -1, 4], [2, 2, 0]),
        doc="Python's pow(x, y, modulus) of ints",
    )
)
FAILURES["pow_modulo"] = {"": "other"}

for _python in (int.bit_length, int.bit_count):
    declare(
        Op(
            _python.__name__,
            "elementwise",
            _infer_integers,
            _meaning(_python),
            python=_python,
            operator=f"int.{_python.__name__}({{0}})",
            sample=_sampled([5], [0], [-7], [True], [10**30]),
            doc=f"Python's int.{_python.__name__}",
        )
    )


# ---- the module math --------------------------------------------------------------------------


def _of(name: str) -> Rule:
    """The rule of NumPy's function: it holds for numbers, too."""
    rule = get(name).vjp
    assert rule is not None, name
    return rule


def _derive_log(d: Derivation, x: Term, *base: Term) -> tuple[Term, ...]:
    if not base:
        return (d.g / x,)
    scale = d.op("log", base[0].cast(d.g.dtype))
    return d.g / (x * scale), -d.g * d.out / (base[0] * scale)


def _derive_hypot(d: Derivation, *xs: Term) -> tuple[Term, ...]:
    scaled = d.g / d.where(d.out == 0, 1, d.out)  # at the origin 0
    return tuple(scaled * x for x in xs)


def _derive_error(sign: int) -> Rule:
    def rule(d: Derivation, x: Term) -> Term:
        return d.g * (sign * 2 / math.sqrt(math.pi)) * d.op("exp", -x * x)

    return rule


def _derive_remainder(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    return d.g, -d.g * d.op("rint", x.cast(d.g.dtype) / y)


class _Function(NamedTuple):
    """A function of `math`.

    Attributes:
        result: what it returns.
        failures: see `FAILURES`.
        rule: its derivative.
        samples: operands for its tests.
        counts: how many operands it takes.
        integers: they are ints.
    """

    result: ScalarType | tuple[ScalarType, ...]
    failures: str
    rule: Rule | None
    samples: Sequence[Sequence[Any]]
    counts: tuple[int, int] = (1, 1)
    integers: bool = False


_ONE = ([0.5], [-0.5], [2.5], [1], [0], [True], [1000.0], [math.inf], [math.nan])
_TWO = ([0.5, -2.0], [2.5, 1.5], [0, 0], [2, 3], [1.5, math.nan])
_INTS = ([12, 18], [7, 3], [0, True], [-4, 6])
_MANY = (0, 64)

_FLOATS: Mapping[str, tuple[str, Rule | None]] = {
    "acos": ("domain", _of("arccos")),
    "acosh": ("domain", _of("arccosh")),
    "asin": ("domain", _of("arcsin")),
    "asinh": ("", _of("arcsinh")),
    "atan": ("", _of("arctan")),
    "atanh": ("domain infinite", _of("arctanh")),
    "cbrt": ("", _of("cbrt")),
    "cos": ("domain", _of("cos")),
    "cosh": ("infinite", _of("cosh")),
    "degrees": ("", _of("degrees")),
    "erf": ("", _derive_error(1)),
    "erfc": ("", _derive_error(-1)),
    "exp": ("infinite", _of("exp")),
    "exp2": ("infinite", _of("exp2")),
    "expm1": ("infinite", _of("expm1")),
    "fabs": ("", _of("fabs")),
    "gamma": ("domain infinite", None),
    "lgamma": ("domain infinite", None),
    "log10": ("domain infinite", _of("log10")),
    "log1p": ("domain infinite", _of("log1p")),
    "log2": ("domain infinite", _of("log2")),
    "radians": ("", _of("radians")),
    "sin": ("domain", _of("sin")),
    "sinh": ("infinite", _of("sinh")),
    "sqrt": ("domain", _of("sqrt")),
    "tan": ("domain", _of("tan")),
    "tanh": ("", _of("tanh")),
    "ulp": ("", ZERO),
}

FUNCTIONS: Mapping[str, _Function] = {
    **{name: _Function(FLOAT, *row, (*_ONE, [10**400])) for name, row in _FLOATS.items()},
    "log": _Function(FLOAT, "domain infinite", _derive_log, (*_ONE, *_TWO, [8, 2]), (1, 2)),
    "atan2": _Function(FLOAT, "", _of("arctan2"), _TWO, (2, 2)),
    "copysign": _Function(FLOAT, "", _of("copysign"), _TWO, (2, 2)),
    "fmod": _Function(FLOAT, "domain", _of("fmod"), _TWO, (2, 2)),
    "hypot": _Function(FLOAT, "", _derive_hypot, (*_TWO, [3.0, 4, -12.0]), _MANY),
    "nextafter": _Function(FLOAT, "", _of("nextafter"), _TWO, (2, 2)),
    "pow": _Function(FLOAT, "domain infinite", _of("power"), (*_TWO, [-8.0, 1 / 3]), (2, 2)),
    "remainder": _Function(FLOAT, "domain", _derive_remainder, _TWO, (2, 2)),
    "ldexp": _Function(FLOAT, "infinite", _of("ldexp"), ([0.75, 3], [1.0, 5000]), (2, 2)),
    "frexp": _Function((FLOAT, INT), "", _of("frexp"), _ONE),
    "modf": _Function((FLOAT, FLOAT), "", _of("modf"), _ONE),
    "ceil": _Function(INT, "beyond", None, _ONE),
    "floor": _Function(INT, "beyond", None, _ONE),
    "trunc": _Function(INT, "beyond", None, _ONE),
    "isfinite": _Function(BOOL, "", None, _ONE),
    "isinf": _Function(BOOL, "", None, _ONE),
    "isnan": _Function(BOOL, "", None, _ONE),
    "isclose": _Function(BOOL, "", None, (*_TWO, [1.0, 1 + 1e-12]), (2, 2)),
    "comb": _Function(INT, "below", None, _INTS, (2, 2), integers=True),
    "factorial": _Function(INT, "below", None, ([5], [0], [-1]), integers=True),
    "gcd": _Function(INT, "", None, (*_INTS, [4, 6, 10]), _MANY, integers=True),
    "isqrt": _Function(INT, "below", None, ([17], [0], [-1]), integers=True),
    "lcm": _Function(INT, "", None, (*_INTS, [4, 6, 10]), _MANY, integers=True),
    "perm": _Function(INT, "below", None, (*_INTS, [5]), (1, 2), integers=True),
}
"""The functions of `math` that are ops, `math_<name>`."""


def _infer_function(name: str, function: _Function) -> Callable[..., Any]:
    least, most = function.counts

    def infer(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        kinds = _kinds(types, f"math.{name}")
        if not least <= len(kinds) <= most:
            raise DtypeError(f"math.{name} of {len(kinds)} numbers")
        if FLOAT in (kinds if function.integers else kinds[1:] if name == "ldexp" else ()):
            raise DtypeError("'float' object cannot be interpreted as an integer")
        return function.result

    return infer


def _raises(failures: str, integers: bool) -> bool | Callable[[Node], bool]:
    """It does if the words say so, and if an int is too large for a float."""
    if failures == "beyond":
        return _has_float
    return bool(failures) or (False if integers else _has_int)


for _name, _function in FUNCTIONS.items():
    _python: Callable[..., Any] = getattr(math, _name)
    FAILURES[f"math_{_name}"] = {"": _function.failures}
    declare(
        Op(
            f"math_{_name}",
            "elementwise",
            _infer_function(_name, _function),
            _meaning(_python),
            python=_python,
            raises=_raises(_function.failures, _function.integers),
            defaults={"rel_tol": 1e-09, "abs_tol": 0.0} if _name == "isclose" else None,
            vjp=_function.rule,
            sample=_sampled(*_function.samples),
            doc=f"math.{_name}",
        )
    )
