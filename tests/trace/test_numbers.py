"""Python's numbers whose value is not known while tracing: as Python computes them, or an error."""

from __future__ import annotations

import functools
import itertools
import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import outcome, unknown

import minigraph as mg
from minigraph import errors

INTS = (0, 1, -1, 7, -7, 10**20)
FLOATS = (0.0, -0.0, 2.5, -2.5, 3.0, 1e308, math.inf, -math.inf, math.nan)
BOOLS = (True, False)
FLAG = np.ones(1)


def compiled(expression: str, names: str) -> Callable[..., Any]:
    """A function of a flag and numbers, which it does not know, that returns an expression."""
    source = f"def f(flag, {', '.join(names)}):\n"
    source += f"    {', '.join(names)}, = unknown(flag, {', '.join(names)})\n"
    source += f"    return {expression}\n"
    filename = f"<numbers {expression}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = {"math": math, "np": np, "unknown": unknown}
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)
    return namespace["f"]


ONE = """
-a | +a | abs(a) | bool(a) | round(a) | round(a, 1) | round(a, -1) | a.real | a.imag
a ** 2 | a ** 3 | a ** -1 | a * 0 | a / 3 | 7 / a | a // 3 | 7 // a | a % 3 | -7 % a
divmod(a, 4) | divmod(4.0, a) | a - 1.5 | a * 2.5 | a + True | True - a
a == 2 | a < 2 | a != a | a is a | isinstance(a, int) | type(a) is float
int(a) | float(a) | np.float64(a) | np.float32(a) | np.int64(a) | np.int8(a) | np.bool_(a)
max(a, a) | min(a, a) | any([a]) | all([a, True]) | any(x > 1 for x in (a, a))
sum([a, a]) | a.conjugate() | math.sqrt(a) | math.floor(a) | math.ceil(a) | math.trunc(a)
math.exp(a) | math.log(a) | math.log(a, 2) | math.log2(a) | math.log10(a) | math.log1p(a)
math.isnan(a) | math.isfinite(a) | math.isinf(a) | math.frexp(a) | math.modf(a) | math.fabs(a)
math.gamma(a) | math.erf(a) | math.hypot(a, 2) | math.copysign(1, a) | math.ldexp(a, 2)
math.isclose(a, 1.0, rel_tol=0.5) | math.degrees(a) | math.atan2(a, 2.0) | math.fmod(a, 2)
math.pow(a, 2) | math.tan(a) | math.asin(a) | math.acosh(a) | math.cosh(a) | math.cbrt(a)
math.prod([a, 2, a]) | math.dist([a, 1], [2, a]) | math.nextafter(a, 1)
print(a) | print(a, [a], (a,), {'k': a}, sep=';') | print('x' + str(a), repr(a))
print(format(a, '>8'), end='!')
"""
ONE_INT = """
~a | a & 3 | a | 8 | a ^ 5 | a << 2 | a >> 1 | 1 << abs(a) % 70 | math.gcd(a, 12)
math.isqrt(a) | math.lcm(a, 4) | pow(a, 3, 7) | pow(a, -1, 7) | pow(3, a, 7) | a.bit_length()
math.comb(a, 2) | math.perm(a, 2) | max(a, 3, 5) | min([a, 2, a]) | max(a, 2, key=lambda x: -x)
min(a, 3, key=abs) | a.numerator | 3 ** (a % 5) | print(format(a, '5d'))
"""
ONE_FLOAT = """
max(a, -0.0) | min(a, float('nan')) | max(float('nan'), a) | min(0.0, a) | max([a, 2.0, a])
2.0 ** a | abs(a) ** 0.5 | a.is_integer() | print(format(a, '.3f'), format(a, '+.2e'))
"""
TWO = """
a + b | a - b | a * b | a / b | a // b | a % b | divmod(a, b)
a < b | a <= b | a == b | a != b | a > b | math.atan2(a, b) | math.pow(a, b) | math.fmod(a, b)
math.remainder(a, b) | math.copysign(a, b) | math.hypot(a, b) | math.isclose(a, b) | math.log(a, b)
"""
TWO_EQUAL = "max(a, b) | min(a, b) | any([a > b, b > a]) | min((a, b), key=lambda x: -x)"
TWO_INT = """
a & b | a ^ b | (a % 9) << (b % 70) | a >> b | math.gcd(a, b) | pow(a, b, 5) | a ** (b % 7)
round(a, b) | math.comb(a % 50, b % 9)
"""


def cases() -> list[Any]:
    pairs = [(x, y) for x, y in itertools.product(INTS + FLOATS[:4], FLOATS[:5] + INTS[:4])]
    groups: tuple[tuple[str, str, Any], ...] = (
        (ONE, "a", [(x,) for x in INTS + FLOATS + BOOLS]),
        (ONE_INT, "a", [(x,) for x in INTS]),
        (ONE_FLOAT, "a", [(x,) for x in FLOATS]),
        (TWO, "ab", [*itertools.product(INTS, INTS), *itertools.product(FLOATS, FLOATS), *pairs]),
        (TWO_EQUAL, "ab", [*itertools.product(INTS, INTS), *itertools.product(FLOATS, FLOATS)]),
        (TWO_INT, "ab", [*itertools.product(INTS, INTS), (True, 3), (7, True)]),
    )
    return [
        pytest.param(expression.strip(), names, values, id=expression.strip())
        for text, names, values in groups
        for line in text.strip().splitlines()
        for expression in line.split(" | ")
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("expression", "names", "values"), cases())
def test_as_python_computes(expression: str, names: str, values: list[Any]) -> None:
    f = compiled(expression, names)
    for how in (mg.jit(f, verify=True), mg.jit(f, backend="interpret"), mg.script(f)):
        for numbers in values:
            try:
                expected = outcome(f, FLAG, *numbers)
                assert outcome(how, FLAG, *numbers) == expected, numbers
            except errors.DtypeError:  # of these types it raises whatever they are
                with pytest.raises(TypeError):
                    f(FLAG, *numbers)


ALL_OF_TWO = (
    "(a + b, a - b, a * b, a < b, a <= b, a == b, a != b, max(a, b), min(a, b), -a, abs(b), "
    "round(a, 2), math.isclose(a, b))"
)
DIVIDED = "(a / b, a // b, a % b, divmod(a, b))"
AS_INTS = "(a & b, a | b, a ^ b, a << (b & 63), a >> (b & 63), math.gcd(a, b), a.bit_length())"
floats = st.floats(allow_nan=True, allow_infinity=True)
PROPERTIES = [
    (ALL_OF_TWO, st.integers(), st.integers()),
    (ALL_OF_TWO.replace("max(a, b), min(a, b), ", ""), st.integers(), floats),
    (ALL_OF_TWO, floats, floats),
    (DIVIDED, st.integers(), st.integers()),
    (DIVIDED, floats, st.integers()),
    (DIVIDED, floats, floats),
    (AS_INTS, st.integers(), st.integers()),
]


@pytest.mark.parametrize("at", range(len(PROPERTIES)))
@given(data=st.data())
def test_any_numbers(at: int, data: st.DataObject) -> None:
    expression, first, second = PROPERTIES[at]
    eager, jitted = bundle(expression)
    a, b = data.draw(first), data.draw(second)
    assert outcome(jitted, FLAG, a, b) == outcome(eager, FLAG, a, b)


@functools.cache
def bundle(expression: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    f = compiled(expression, "ab")
    return f, mg.jit(f)


# ---- results whose type depends on a value ------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "number"),
    [("2 ** a", -1), ("a ** 0.5", -2.0), ("a ** 0.5", -4), ("(-2.0) ** a", 0.5)],
)
def test_a_power_of_another_type_is_an_error(expression: str, number: Any) -> None:
    f = compiled(expression, "a")
    jitted = mg.jit(f)
    good = abs(number) if "a **" in expression else 2.0 if isinstance(number, float) else 2
    assert outcome(jitted, FLAG, good) == outcome(f, FLAG, good)
    with pytest.raises(ValueError, match="results of one type only"):
        jitted(FLAG, number)


def test_zero_to_a_negative_power_is_pythons_error() -> None:
    with pytest.raises(ZeroDivisionError):
        mg.jit(compiled("a ** b", "ab"))(FLAG, 0, -1)


REFUSED = {
    "max(a, 2.0)": (7, errors.ConcreteValueError, "max(0.0, x)"),
    "min(a, 1)": (2.5, errors.ConcreteValueError, "max(0.0, x)"),
    "[1, 2, 3][a]": (1, errors.ConcreteValueError, "np.array(items)[i]"),
    "{a: 1}": (1, errors.ConcreteValueError, "np.array(items)[i]"),
    "f'{a}'": (1.5, errors.ConcreteValueError, "@mg.script"),
    "list(map(float, [a]))": (1, errors.ConcreteValueError, "int(x) or float(x)"),
    "complex(a)": (1, errors.ConcreteValueError, "keep"),
    "not a": (1, errors.BranchError, "np.where"),
    "a < 2 < a": (1, errors.BranchError, "np.where"),
    "sorted([a, 1])": (1, errors.BranchError, "np.where"),
    "[0] * a": (1, errors.ConcreteValueError, "np.array"),
    "len(str(a))": (1, errors.UnsupportedError, "print"),
    "repr(a).upper()": (1, errors.UnsupportedError, "print"),
    "len('x' + str(a))": (1, errors.UnsupportedError, "print"),
    "str(a) == '1'": (1, errors.UnsupportedError, "print"),
    "any(1 / x > 0 for x in (a, a))": (1, errors.UnsupportedError, "any([...])"),
}


@pytest.mark.parametrize("expression", REFUSED)
def test_what_needs_the_number_is_an_error_that_teaches(expression: str) -> None:
    number, kind, words = REFUSED[expression]
    with pytest.raises(kind) as caught:
        mg.jit(compiled(expression, "a"))(FLAG, number)
    assert words in str(caught.value)
    assert caught.value.where is not None


def test_a_text_with_such_numbers_cannot_be_returned() -> None:
    with pytest.raises(errors.UnsupportedError, match="return"):
        mg.jit(compiled("'x' + str(a)", "a"))(FLAG, 1)


# ---- sizes that have a name ---------------------------------------------------------------------


def of_sizes(x: Any) -> Any:
    n = x.shape[0]
    print("n " + str(n), [n, (n,)], n, repr(n))
    made = np.zeros(max(n, 0)), np.ones(int(n)), np.ones(min(n, n + 1)), np.ones(abs(len(x)))
    numbers = max(n, 3), min(n, 1), float(n), divmod(n, 4), math.floor(n), round(n), math.sqrt(n)
    others = n / 2, any([n > 0]), sum([n, n]), -n, ~n, bool(n + 1), min(n, 4) + 1, np.float32(n)
    return [a.shape for a in made], numbers, others, n**2, 2**n, max(n, 2.5) if n < 0 else 1


def test_sizes_that_have_a_name() -> None:
    jitted = mg.jit(of_sizes, dynamic={"x": {0: "n"}})
    for extent in (1, 2, 5):
        x = np.ones(extent)
        assert outcome(jitted, x) == outcome(of_sizes, x)
    assert len(jitted.cache_info().entries) == 1


# ---- numbers that are arguments -----------------------------------------------------------------


def of_arguments(n: Any, x: Any) -> Any:
    parts = min(n, 3), max(n, 2), int(n), float(n), round(n), math.sqrt(abs(n)), math.floor(n)
    return parts, any([n > 1]), np.float32(n), math.gcd(int(n), 12), x * n


def test_functions_of_arguments_need_no_new_entry() -> None:
    jitted = mg.jit(of_arguments)
    for n in (2, 5, -7):
        assert repr(jitted(n, np.ones(2))) == repr(of_arguments(n, np.ones(2)))
    assert len(jitted.cache_info().entries) == 1


# ---- arrays without axes ------------------------------------------------------------------------


def of_elements(x: Any) -> Any:
    a, b = x[0], x[1]
    numbers = float(a), int(b), bool(a), a.item(), x.item(1), x[:1].item(), round(a), round(b, 1)
    chosen = max(a, b), min(x), max(a, b, key=lambda v: -v), max([x[1], a, b])
    more = any(x > 1 for x in (a, b)), all([a, b]), any([]), sum(x), math.sqrt(abs(a)), len(x)
    return numbers, chosen, more, math.floor(b), np.float64(a), np.int16(b), np.bool_(a), x.max()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("backend", ["python", "interpret"])
def test_arrays_without_axes(dtype: str, backend: str) -> None:
    jitted = mg.jit(of_elements, backend=backend)
    for numbers in ([2.5, 3.5], [0, 1], [7, 7]):
        x = np.array(numbers).astype(dtype)
        assert outcome(jitted, x) == outcome(of_elements, x)


def test_which_of_two_arrays_without_axes_it_is_is_not_known() -> None:
    def f(x: Any) -> Any:
        a, b = np.asarray(x[0]), np.asarray(x[1])
        larger = max(a, b)
        larger[...] = 0
        return a, b

    with pytest.raises(errors.WriteError, match="which"):
        mg.jit(f)(np.ones(2))


# ---- gradients ----------------------------------------------------------------------------------


def of_floats(x: Any) -> Any:
    a, b = float(x[0]), x[1].item()
    total = max(a, b) * math.sin(a) + min(a, 0.0) * math.exp(b) + math.hypot(a, b, 2.0)
    (chosen,) = (mg.cond(x[2] > 0, lambda: (a * 2,), lambda: (b,)),)[0]
    return total * math.sqrt(b) + abs(a) ** 1.5 + math.log(b, 3) + chosen + round(a, 1) * 0


def test_gradients() -> None:
    x = np.array([-1.3, 2.4, 1.0])
    found = mg.grad(of_floats)(x)
    for at in range(2):
        step = np.zeros(3)
        step[at] = 1e-6
        expected = (of_floats(x + step) - of_floats(x - step)) / 2e-6
        assert abs(found[at] - expected) < 1e-5


def of_ranges(x: Any, n: int) -> Any:
    first = range(1, n, 2)
    print(f"{len(first)} numbers")
    return len(first), len(range(n)), len(range(n, 0, -3)), len(range(3, n))


def test_the_length_of_a_range_needs_no_new_entry() -> None:
    scripted = mg.script(of_ranges)
    for n in (7, 2, -1):
        assert outcome(scripted, FLAG, n) == outcome(of_ranges, FLAG, n)


@pytest.mark.filterwarnings("ignore")
def test_powers_that_stay_real() -> None:
    infinite = math.inf
    power, root = (mg.script(compiled(text, "ab")) for text in ("a ** b", "a ** 0.5"))
    for a, b in (
        (-infinite, 0.5),
        (-infinite, -0.5),
        (-2.0, infinite),
        (-0.5, -infinite),
        (-2.0, math.nan),
        (-2.0, 3.0),
        (2, infinite),
        (-2, infinite),
        (2.0, 0.5),
    ):
        assert repr(power(FLAG, a, b)) == repr(a**b)
    assert root(FLAG, -infinite, 0.0) == infinite
    for a, b in ((-2.0, 0.5), (-2, 0.5)):
        with pytest.raises(ValueError, match="fractional power is complex"):
            power(FLAG, a, b)


def test_a_search_that_changes_something() -> None:
    """It would end before the later items: what they change in Python cannot be undone then."""

    def generated(x: Any) -> Any:
        log: list[int] = []
        found = any(log.append(i) or x > i for i in range(3))
        return found, log

    def mapped(x: Any) -> Any:
        log: list[int] = []

        def ask(i: int) -> Any:
            log.append(i)
            return x > i

        return all(map(ask, range(3))), log

    def own(x: Any) -> Any:
        def numbers() -> Any:
            seen: list[int] = []
            for i in range(3):
                seen.append(i)
                yield x > len(seen)

        return any(numbers())

    for function in (generated, mapped):
        with pytest.raises(errors.UnsupportedError, match="may end before this item, .* changes"):
            mg.script(function)(1.5)
    assert [mg.script(own)(x) for x in (0.5, 2.5)] == [False, True]
