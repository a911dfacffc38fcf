"""Elementwise ops: one line each.

The name is NumPy's.  `operator` is Python's spelling, `python` the meaning on Python numbers (only
where Python itself has that operation on numbers: `abs(-2)`, not `np.exp(2)`), `scalar` how one
element is computed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, UnsupportedError
from minigraph.ir import (
    FLOAT,
    INT,
    OPERAND,
    ArrayType,
    Node,
    Op,
    Scalar,
    ScalarType,
    Type,
)

from .bind import Bound, as_int, bind_two, shape_of
from .derivation import SAME, ZERO, Derivation, Term
from .registry import declare
from .rules import array_type, elementwise
from .samples import Sample, array, special
from .scalar import Numbers, is_beyond_ints, is_fixed, loop_dtypes

_operator: Any = operator  # typeshed leaves the parameters of some of its functions unknown


def _out_of_range(node: Node) -> bool:
    """A Python int may not fit the integer dtype it meets: NumPy raises OverflowError then."""
    inputs = [value.type for value in node.inputs]
    return INT in inputs and any(isinstance(t, ArrayType) and t.dtype.kind in "iu" for t in inputs)


def _scalars_raise(node: Node) -> bool:
    """Python's division raises on zero, where arrays give inf or a warning."""
    return all(isinstance(v.type, ScalarType) for v in node.inputs) or _out_of_range(node)


def _power_raises(node: Node) -> bool:
    """An integer to a negative integer power raises."""
    out = node.outputs[0].type
    return _scalars_raise(node) or (isinstance(out, ArrayType) and out.dtype.kind in "iu")


def _invert(x: int) -> int:
    """`~x`, of True too, where Python warns."""
    return ~(int(x) if x is True or x is False else x)


def _sample(
    meaning: np.ufunc, python: Callable[..., Any] | None
) -> Callable[[np.random.Generator, np.dtype[Any]], list[Sample]]:
    """Special values, broadcasting, no axes, Python numbers."""
    numbers = [[7, 2], [True, 3], [7, -2.0]]
    if python in (min, max):
        numbers = [[7, 2], [True, False], [7.0, -2.0]]
    elif "bit" in meaning.__name__ or "shift" in meaning.__name__:
        numbers = numbers[:2]

    def sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
        x = special(rng, dtype, 4, 3)
        operands = [
            [x, special(rng, dtype, 3)],
            [array(rng, dtype, 2, 1), array(rng, np.dtype("f4"), 3)],
            [array(rng, dtype), array(rng, dtype)],
            [x, 2],
            [2, x],
            [x, 2.5],
        ]
        found = operands + numbers if python is not None else [*operands, numbers[0]]
        return [(each, {}) for each in found]

    def sample_one(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
        operands = [special(rng, dtype, 4, 3), array(rng, dtype), array(rng, dtype, 0, 2), 3]
        ones = [-2.5, True] if python not in (None, _invert) else []
        return [([each], {}) for each in [*operands, *ones]]

    return sample if meaning.nin == 2 else sample_one


def _sample_power(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 4, 3)
    exponents = array(rng, dtype, 3, positive=True)
    operands = [[x, exponents], [x, 2], [x, 0.5], [2, exponents], [array(rng, dtype), 3]]
    return [(each, {}) for each in operands]


def _power(x: Any, y: Any) -> Any:
    return x**y


def _run_power(xp: Any, x: Any, y: Any) -> Any:
    return x**y


_infer_operator = elementwise(_power, _power)


def _infer_pow(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type | tuple[Type, ...]:
    base, exponent = types
    if isinstance(base, ArrayType) and base.dtype.kind == "b" and exponent is INT:
        raise DtypeError(
            "bools ** int: NumPy chooses the dtype by the value of the exponent",
            instead="x.astype(np.int64) ** 2",
        )
    return _infer_operator(types, attrs)


_EXACT_POWERS: dict[Any, str] = {
    -1: "reciprocal({0})",
    0: "like(1, {0})",
    0.5: "sqrt({0})",
    1: "{0}",
    2: "{0} * {0}",
}
"""What NumPy computes for an array to this power."""

_CLOSE_POWERS: dict[Any, str] = {
    -2: "reciprocal({0}) * reciprocal({0})",
    -0.5: "reciprocal_root({0})",
    1.5: "root_cubed({0})",
    3: "{0} * {0} * {0}",
    4: "({0} * {0}) * ({0} * {0})",
    5: "({0} * {0}) * ({0} * {0}) * {0}",
}
"""Products of at most four roundings, each of which is off by half an ULP."""


def _power_text(node: Node, numbers: Numbers, exact: bool) -> str | None:
    base, exponent = node.inputs
    assert isinstance(node.output.type, ArrayType)
    if node.output.type.dtype.kind in "iu":
        return "power_ints({0}, {1})"
    number = np.asarray(numbers[exponent]).item() if exponent in numbers else None
    if exact:  # of a base without axes NumPy computes every power with libm
        return _EXACT_POWERS.get(number) if shape_of(base.type) else None
    text = _EXACT_POWERS.get(number) or _CLOSE_POWERS.get(number)
    if text is None and is_fixed(exponent, node):
        text = "sqrt({0}) if {1} == 0.5 else power({0}, {1})"  # they differ at -0.0 and -inf
    return text or "power({0}, {1})"


def _compare(node: Node, numbers: Numbers, exact: bool) -> str:
    """The operator; what it gives for all elements if a Python int is beyond all of them."""
    python, operator, loop = node.op.python, node.op.operator, loop_dtypes(node, numbers)
    assert python is not None and operator is not None and loop is not None
    for value in node.inputs:
        if is_beyond_ints(value, numbers):
            return str(python(*(numbers.get(v, 0) for v in node.inputs)))
    kinds = loop[0][0].kind + loop[0][1].kind
    if kinds == "iu":
        return operator.format("order({0}, {1})", "0")
    return operator.format("0", "order({1}, {0})") if kinds == "ui" else operator


def _sample_pow(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    numbers: list[Sample] = [([2, 3], {}), ([2, -1], {"result": FLOAT}), ([-8.0, 3], {})]
    if dtype.kind == "b":
        return [([array(rng, dtype, 3), array(rng, np.dtype("f4"), 2, 1)], {}), *numbers]
    return [*_sample_power(rng, dtype), *numbers]


def _sample_ldexp(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    return [([special(rng, dtype, 4, 3), rng.integers(-3, 4, 3, dtype=np.int32)], {})]


OneInput = Callable[[Derivation, Term], Term | None]
TwoInputs = Callable[[Derivation, Term, Term], Sequence[Term | None]]


def ufunc(
    name: str,
    spelling: str | None = None,
    python: Callable[..., Any] | None = None,
    scalar: Scalar | None = None,
    *,
    raises: bool | Callable[[Node], bool] | None = None,
    commutative: bool = False,
    records: tuple[str, ...] = (),
    vjp: OneInput | TwoInputs | None = None,
    sample: Callable[..., list[Sample]] | None = None,
    doc: str = "",
) -> Op:
    """Declare an elementwise op whose meaning on arrays is `np.<name>`."""
    meaning: np.ufunc = getattr(np, name)
    if raises is None:
        raises = _out_of_range if meaning.nin == 2 else False
    return declare(
        Op(
            name,
            "elementwise",
            elementwise(meaning, python),
            name,
            python=python,
            raises=raises,
            commutative=commutative,
            operator=spelling,
            scalar=scalar,
            records=records or (name,),
            vjp=vjp,
            sample=sample or _sample(meaning, python),
            doc=doc or f"np.{name}",
        )
    )


def _vjp_divide(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    of_x = d.g / y
    return of_x, -of_x * d.out


def _vjp_power(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    """Of the base y·xʸ⁻¹, of the exponent xʸ·log x; 0 where 0·∞ would stand for it."""
    x = x.cast(d.out.dtype)  # of a Python number too, which raises where an array has an infinity
    base = d.where(y == 0, 1, x)
    of_base = d.g * y * base ** (y - 1)
    positive = d.where((x == 0) & (y >= 0), 1, x)
    return of_base, d.g * d.out * d.op("log", positive)


# Arithmetic
ufunc(
    "add",
    "{0} + {1}",
    operator.add,
    {"b": "{0} | {1}", "iuf": "{0} + {1}"},
    commutative=True,
    vjp=lambda d, x, y: (d.g, d.g),
)
ufunc("subtract", "{0} - {1}", operator.sub, "{0} - {1}", vjp=lambda d, x, y: (d.g, -d.g))
ufunc(
    "multiply",
    "{0} * {1}",
    operator.mul,
    {"b": "{0} & {1}", "iuf": "{0} * {1}"},
    commutative=True,
    vjp=lambda d, x, y: (d.g * y, d.g * x),
)
ufunc(
    "divide",
    "{0} / {1}",
    _operator.truediv,
    "{0} / {1}",
    raises=_scalars_raise,
    records=("divide", "true_divide"),
    vjp=_vjp_divide,
)
ufunc(
    "floor_divide",
    "{0} // {1}",
    _operator.floordiv,
    {"iu": "floor_divide_ints({0}, {1})", "f": "floor_divide({0}, {1})"},
    raises=_scalars_raise,
    vjp=ZERO,
)
ufunc(
    "remainder",
    "{0} % {1}",
    operator.mod,
    {"iu": "remainder_ints({0}, {1})", "f": "remainder({0}, {1})"},
    raises=_scalars_raise,
    records=("remainder", "mod"),
    vjp=lambda d, x, y: (d.g, -d.g * (x // y)),
)
ufunc(
    "power",
    scalar=_power_text,
    raises=_power_raises,
    records=("power", "pow"),
    vjp=_vjp_power,
    sample=_sample_power,
)
declare(
    Op(
        "pow",
        "elementwise",
        _infer_pow,
        _run_power,
        python=_power,
        raises=_power_raises,
        operator="{0} ** {1}",
        scalar=_power_text,
        records=("ndarray.__pow__",),
        bind=bind_two,
        vjp=_vjp_power,
        sample=_sample_pow,
        doc="the operator **, which on arrays has NumPy's shortcuts for small exponents",
    )
)
ufunc("float_power", scalar="power({0}, {1})", vjp=_vjp_power)
ufunc("negative", "-{0}", operator.neg, "-{0}", vjp=lambda d, x: -d.g)
ufunc("positive", "+{0}", operator.pos, "{0}", vjp=SAME)
ufunc(
    "absolute",
    "abs({0})",
    abs,
    {"bu": "{0}", "i": "-{0} if {0} < 0 else {0}", "f": "fabs({0})"},
    records=("absolute", "abs"),
    vjp=lambda d, x: d.g * d.op("sign", x),
)
ufunc("fabs", scalar="fabs({0})", vjp=lambda d, x: d.g * d.op("sign", x))
ufunc(
    "fmod",
    scalar={"iu": "fmod_ints({0}, {1})", "f": "fmod({0}, {1})"},
    vjp=lambda d, x, y: (d.g, -d.g * d.op("trunc", x / y)),
)
ufunc("sign", scalar={"iu": "({0} > 0) - ({0} < 0)", "f": "sign({0})"}, vjp=ZERO)
ufunc("reciprocal", scalar={"f": "reciprocal({0})"}, vjp=lambda d, x: -d.g * d.out * d.out)
ufunc("square", scalar="{0} * {0}", vjp=lambda d, x: d.g * (2 * x))
ufunc("sqrt", scalar="sqrt({0})", vjp=lambda d, x: d.g / (2 * d.out))
ufunc(
    "copysign",
    scalar="copysign({0}, {1})",
    vjp=lambda d, x, y: (d.op("sign", x) * d.op("sign", d.out) * d.g, None),
)
ufunc(
    "heaviside",
    scalar="heaviside({0}, {1})",
    vjp=lambda d, x, y: (None, d.where(x == 0, d.g, 0)),
)
ufunc("nextafter", vjp=lambda d, x, y: (d.g, None))
ufunc("gcd")
ufunc("lcm")
ufunc("ldexp", sample=_sample_ldexp, vjp=lambda d, x, n: (d.op("ldexp", d.g, n), None))

# Comparison and logic
ufunc("equal", "{0} == {1}", operator.eq, _compare, commutative=True, raises=False)
ufunc("not_equal", "{0} != {1}", operator.ne, _compare, commutative=True, raises=False)
ufunc("less", "{0} < {1}", operator.lt, _compare, raises=False)
ufunc("less_equal", "{0} <= {1}", operator.le, _compare, raises=False)
ufunc("greater", "{0} > {1}", operator.gt, _compare, raises=False)
ufunc("greater_equal", "{0} >= {1}", operator.ge, _compare, raises=False)
for _name, _symbol in ("logical_and", "&"), ("logical_or", "|"), ("logical_xor", "^"):
    _text = f"({{0}} != 0) {_symbol} ({{1}} != 0)"
    ufunc(_name, scalar=_text, commutative=True, raises=False)
ufunc("logical_not", scalar="{0} == 0")
ufunc("isnan", scalar={"biu": "False", "f": "{0} != {0}"})
ufunc("isinf", scalar={"biu": "False", "f": "isinf({0})"})
ufunc("isfinite", scalar={"biu": "True", "f": "isfinite({0})"})
ufunc("signbit", scalar="signbit({0})")


def _extreme(
    loses: str, ignores_nan: bool
) -> Callable[[Derivation, Term, Term], tuple[Term, Term]]:
    """The rule of what gives one of its operands: that one gets all, equal ones half each.

    Args:
        loses: the comparison that says that its first operand is not the one.
        ignores_nan: a NaN gets nothing where the other one is a number; else both get all.
    """

    def rule(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
        shared = d.where(x == y, d.g / 2, d.g)
        not_first, not_second = d.op(loses, x, y), d.op(loses, y, x)
        if ignores_nan:
            not_first = not_first | (d.op("isnan", x) & ~d.op("isnan", y))
            not_second = not_second | d.op("isnan", y)
        return d.where(not_first, 0, shared), d.where(not_second, 0, shared)

    return rule


for _name, _python, _loses, _ignores_nan in (
    ("maximum", max, "less", False),
    ("minimum", min, "greater", False),
    ("fmax", None, "less", True),
    ("fmin", None, "greater", True),
):
    ufunc(
        _name,
        None,
        _python,
        scalar=f"{_name}({{0}}, {{1}})",
        raises=_out_of_range,
        vjp=_extreme(_loses, _ignores_nan),
    )

# Bits
ufunc("bitwise_and", "{0} & {1}", _operator.and_, "{0} & {1}", commutative=True)
ufunc("bitwise_or", "{0} | {1}", _operator.or_, "{0} | {1}", commutative=True)
ufunc("bitwise_xor", "{0} ^ {1}", _operator.xor, "{0} ^ {1}", commutative=True)
ufunc(
    "invert",
    "~{0}",
    _invert,
    {"b": "not {0}", "iu": "~{0}"},
    records=("invert", "bitwise_not", "bitwise_invert"),
)
ufunc(
    "left_shift",
    "{0} << {1}",
    _operator.lshift,
    "left_shift({0}, {1})",
    raises=_scalars_raise,
    records=("left_shift", "bitwise_left_shift"),
)
ufunc(
    "right_shift",
    "{0} >> {1}",
    _operator.rshift,
    {"i": "right_shift({0}, {1})", "u": "right_shift_unsigned({0}, {1})"},
    raises=_scalars_raise,
    records=("right_shift", "bitwise_right_shift"),
)
if hasattr(np, "bitwise_count"):
    ufunc(
        "bitwise_count",
        scalar={"i": "count_bits_of_magnitude({0})", "u": "count_bits({0})"},
    )

# Rounding
for _name in "floor ceil rint trunc".split():
    _records = ("trunc", "fix") if _name == "trunc" else ()
    ufunc(_name, scalar={"biu": "{0}", "f": f"{_name}({{0}})"}, records=_records, vjp=ZERO)


def _bind_round(a: Any, decimals: Any = 0) -> Bound:
    digits = as_int(decimals)
    return [a], {"decimals": digits} if digits else {}


declare(
    Op(
        "round",
        "elementwise",
        elementwise(np.round),
        "round",
        defaults={"decimals": 0},
        scalar={"iu": "{0}", "f": "rint({0})"},
        records=("round", "around", "ndarray.round"),
        bind=_bind_round,
        vjp=ZERO,
        sample=lambda rng, dtype: [
            _bind_round(special(rng, dtype, 4, 3)),
            _bind_round(array(rng, dtype, 3), 1),
            _bind_round(array(rng, dtype)),
            _bind_round(array(rng, dtype, 3), -1),
        ],
        doc="np.round: halves to even",
    )
)

# Exponentials, trigonometry
_RULES: tuple[tuple[str, Callable[[Derivation, Term], Term]], ...] = (
    ("exp", lambda d, x: d.g * d.out),
    ("exp2", lambda d, x: d.g * d.out * math.log(2)),
    ("expm1", lambda d, x: d.g * (d.out + 1)),
    ("log", lambda d, x: d.g / x),
    ("log2", lambda d, x: d.g / (x * math.log(2))),
    ("log10", lambda d, x: d.g / (x * math.log(10))),
    ("log1p", lambda d, x: d.g / (1 + x)),
    ("cbrt", lambda d, x: d.g / (3 * d.out * d.out)),
    ("sin", lambda d, x: d.g * d.op("cos", x)),
    ("cos", lambda d, x: -d.g * d.op("sin", x)),
    ("tan", lambda d, x: d.g * (1 + d.out * d.out)),
    ("sinh", lambda d, x: d.g * d.op("cosh", x)),
    ("cosh", lambda d, x: d.g * d.op("sinh", x)),
    ("tanh", lambda d, x: d.g * (1 - d.out * d.out)),
    ("arcsin", lambda d, x: d.g / d.op("sqrt", 1 - x * x)),
    ("arccos", lambda d, x: -d.g / d.op("sqrt", 1 - x * x)),
    ("arctan", lambda d, x: d.g / (1 + x * x)),
    ("arcsinh", lambda d, x: d.g / d.op("sqrt", x * x + 1)),
    ("arccosh", lambda d, x: d.g / d.op("sqrt", x * x - 1)),
    ("arctanh", lambda d, x: d.g / (1 - x * x)),
    ("degrees", lambda d, x: d.g * (180 / math.pi)),
    ("rad2deg", lambda d, x: d.g * (180 / math.pi)),
    ("radians", lambda d, x: d.g * (math.pi / 180)),
    ("deg2rad", lambda d, x: d.g * (math.pi / 180)),
)
for _name, _rule in _RULES:
    _short = (f"a{_name[3:]}",) if _name.startswith("arc") else ()
    _kernel = {"rad2deg": "degrees", "deg2rad": "radians"}.get(_name, _name)
    ufunc(_name, scalar=f"{_kernel}({{0}})", records=(_name, *_short), vjp=_rule)


def _vjp_arctan2(d: Derivation, y: Term, x: Term) -> tuple[Term, Term]:
    scaled = d.g / (x * x + y * y)
    return scaled * x, -scaled * y


def _vjp_hypot(d: Derivation, x: Term, y: Term) -> tuple[Term, Term]:
    scaled = d.g / d.where(d.out == 0, 1, d.out)  # at the origin 0
    return scaled * x, scaled * y


ufunc("arctan2", scalar="arctan2({0}, {1})", records=("arctan2", "atan2"), vjp=_vjp_arctan2)
ufunc(
    "logaddexp",
    scalar="logaddexp({0}, {1})",
    vjp=lambda d, x, y: tuple(d.g * d.op("exp", each - d.out) for each in (x, y)),
)
ufunc(
    "logaddexp2",
    scalar="logaddexp2({0}, {1})",
    vjp=lambda d, x, y: tuple(d.g * d.op("exp2", each - d.out) for each in (x, y)),
)
ufunc("hypot", scalar="hypot({0}, {1})", vjp=_vjp_hypot)
ufunc(
    "conjugate",
    scalar="{0}",
    records=("conjugate", "conj", "ndarray.conj", "ndarray.conjugate"),
    vjp=SAME,
)


# Several results


def _vjp_divmod(d: Derivation, x: Term, y: Term) -> tuple[Term | None, Term | None]:
    rest = d.cotangents[1]
    return rest, None if rest is None else -rest * d.outputs[0]


def _vjp_frexp(d: Derivation, x: Term) -> Term:
    mantissa = d.cotangents[0]
    assert mantissa is not None  # the exponent is an integer
    return d.op("ldexp", mantissa, -d.outputs[1])


ufunc("divmod", None, divmod, raises=_scalars_raise, vjp=_vjp_divmod)
ufunc("modf", vjp=lambda d, x: d.cotangents[0])  # of the fraction
ufunc("frexp", vjp=_vjp_frexp)

# Choices


def _bind_where(condition: Any, x: Any = None, y: Any = None, /) -> Bound:
    if x is None or y is None:
        raise UnsupportedError(
            "np.where(condition) alone has a shape that depends on data",
            instead="np.where(condition, x, y)",
        )
    return [condition, x, y], {}


declare(
    Op(
        "where",
        "elementwise",
        elementwise(np.where),
        "where",
        raises=_out_of_range,
        scalar="{1} if {0} else {2}",
        records=("where",),
        bind=_bind_where,
        vjp=lambda d, c, x, y: (None, d.where(c, d.g, 0), d.where(c, 0, d.g)),
        sample=lambda rng, dtype: [
            _bind_where(rng.integers(0, 2, (4, 3)) == 1, special(rng, dtype, 4, 3), 0),
            _bind_where(special(rng, dtype, 3), special(rng, dtype, 4, 1), 1.5),
            _bind_where(array(rng, dtype), array(rng, dtype), array(rng, np.dtype("f4"), 2)),
            _bind_where(True, array(rng, dtype), array(rng, dtype)),
        ],
        doc="np.where(condition, x, y)",
    )
)


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    return np.clip(x, low, high)


def _run_clip(xp: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    return xp.clip(x, low, high)


_infer_clip = elementwise(_clip)


def _clip_text(node: Node, numbers: Numbers, exact: bool) -> str:
    bounds = node.inputs[1:]
    if len(bounds) == 1:
        return "minimum({0}, {1})" if "high" in node.attrs else "maximum({0}, {1})"
    if all(is_fixed(bound, node) for bound in bounds):
        return "clip_to_fixed({0}, {1}, {2})"  # of two zeros NumPy takes another one then
    return "minimum(maximum({0}, {1}), {2})"


def _bind_clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Bound:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is None and high is not None:
        return [a, high], {"high": OPERAND}
    return [a, *(x for x in (low, high) if x is not None)], {}


def _vjp_clip(d: Derivation, x: Term, *bounds: Term) -> tuple[Term, ...]:
    """On a bound, x gets the whole; where the bounds are crossed, the upper one does."""
    if len(bounds) == 1:
        (bound,) = bounds
        inside = x <= bound if "high" in d.attrs else x >= bound
        return d.where(inside, d.g, 0), d.where(inside, 0, d.g)
    low, high = bounds
    inside = (x >= low) & (x <= high)
    below = (x < low) & (low < high)
    above = (x > high) | (low > high)
    return d.where(inside, d.g, 0), d.where(below, d.g, 0), d.where(above, d.g, 0)


declare(
    Op(
        "clip",
        "elementwise",
        lambda types, attrs: _infer_clip(types, {}),
        _run_clip,
        raises=_out_of_range,
        scalar=_clip_text,
        records=("clip", "ndarray.clip"),
        bind=_bind_clip,
        vjp=_vjp_clip,
        sample=lambda rng, dtype: [
            _bind_clip(special(rng, dtype, 4, 3), 0, 5),
            _bind_clip(special(rng, dtype, 4, 3), array(rng, dtype, 3), array(rng, dtype, 4, 1)),
            _bind_clip(array(rng, dtype, 3), 1),
            _bind_clip(array(rng, dtype, 3), None, 2.5),
            _bind_clip(array(rng, dtype), array(rng, dtype), 7),
        ],
        doc="np.clip; a lower or an upper bound alone too",
    )
)


# What means something to the compiler only


def _infer_itself(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    array_type(types[0])
    return types[0]


def _copied(xp: Any, x: Any) -> Any:
    return xp.array(x)


def _itself(x: Any) -> Any:
    return x


for _name, _rule, _doc in (
    ("identity", SAME, "the same elements"),
    ("stop_gradient", ZERO, "the same elements, through which no gradient flows"),
):
    declare(
        Op(
            _name,
            "elementwise",
            _infer_itself,
            _copied,
            python=_itself,
            scalar="{0}",
            vjp=_rule,
            sample=lambda rng, dtype: [
                ([special(rng, dtype, 4, 3)], {}),
                ([array(rng, dtype)], {}),
                ([2.5], {}),
            ],
            doc=_doc,
        )
    )
