"""The module `math` as ops: `math_sqrt %x` is `math.sqrt(x)` of a number of Python.

`FUNCTIONS` says of each what it returns, when it raises and how it is differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minigraph.errors import DtypeError
from minigraph.ir import BOOL, FLOAT, INT, Node, Op, ScalarType, Type

from .derivation import ZERO, Derivation, Term
from .numbers import FAILURES, has_float, has_int, meaning, number_kinds, sampled
from .registry import declare, get

Rule = Callable[..., Any]


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
        kinds = number_kinds(types, f"math.{name}")
        if not least <= len(kinds) <= most:
            raise DtypeError(f"math.{name} of {len(kinds)} numbers")
        if FLOAT in (kinds if function.integers else kinds[1:] if name == "ldexp" else ()):
            raise DtypeError("'float' object cannot be interpreted as an integer")
        return function.result

    return infer


def _raises(failures: str, integers: bool) -> bool | Callable[[Node], bool]:
    """It does if the words say so, and if an int is too large for a float."""
    if failures == "beyond":
        return has_float
    return bool(failures) or (False if integers else has_int)


for _name, _function in FUNCTIONS.items():
    _python: Callable[..., Any] = getattr(math, _name)
    FAILURES[f"math_{_name}"] = {"": _function.failures}
    declare(
        Op(
            f"math_{_name}",
            "elementwise",
            _infer_function(_name, _function),
            meaning(_python),
            python=_python,
            raises=_raises(_function.failures, _function.integers),
            defaults={"rel_tol": 1e-09, "abs_tol": 0.0} if _name == "isclose" else None,
            vjp=_function.rule,
            sample=sampled(*_function.samples),
            doc=f"math.{_name}",
        )
    )
