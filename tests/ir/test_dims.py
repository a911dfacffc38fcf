from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ir.local import dims

from minigraph.errors import DimensionError, OptionError
from minigraph.ir import Dim, decide_at_least, decide_equal, dim, lower_bound, product
from minigraph.ir.dims import parse_dim

n, m, k = dim("n"), dim("m"), dim("k")
sizes_of_names = st.fixed_dictionaries({name: st.integers(1, 9) for name in "nmk"})
coefficients = st.integers(-4, 4)
sums = st.builds(lambda p, q, r, c: p * n + q * m + r * k + c, *([coefficients] * 3), coefficients)


def at(size: int | Dim, sizes: dict[str, int]) -> Any:
    """The size as a number; None where it divides by zero."""
    try:
        return size.substitute(sizes) if isinstance(size, Dim) else size
    except ZeroDivisionError:
        return None


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (n + n, "2*n"),
        (n - n + 3, "3"),
        ((2 * n) // 2, "n"),
        ((2 * n + 1) // 2, "n"),
        ((n + 3) // 2, "((n+1)//2)+1"),
        ((n - 3) // 2 + 1, "((n+1)//2)-1"),
        (-n // 2, "-n+(n//2)"),
        (n // -2, "-n+(n//2)"),
        ((4 * n) // 6, "((2*n)//3)"),
        (n // 2 // 3, "(n//6)"),
        ((n // 2 + 1) // 3, "((n+2)//6)"),
        (m * n, "m*n"),
        (n * m + 2 * m - 1, "m*n+2*m-1"),
        ((n * m) // m, "n"),
        ((n * m + n) // (m + 1), "n"),
        ((n * n - m * m) // (n - m), "m+n"),
        (n // m, "(n//m)"),
        ((n + 1) // (m + 1), "((n+1)//(m+1))"),
        (5 // n, "(5//n)"),
        (n % 2, "n-2*(n//2)"),
        (7 % n, "-n*(7//n)+7"),
        (0 * n, "0"),
        (product([n, 2, m]), "2*m*n"),
        (product([]), "1"),
    ],
)  # fmt: skip
def test_normal_form(size: int | Dim, text: str) -> None:
    assert str(size) == text
    assert parse_dim(text) == size


def test_equal_sizes_are_equal_objects() -> None:
    assert n + m == m + n and hash(n + m) == hash(m + n)
    assert (n + 3) // 2 == (n + 1) // 2 + 1
    assert n * (m + 1) == n * m + n
    assert n != m and n != 1 and dim("n") == n


SIGNS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}


@given(dims(), dims(), st.sampled_from(sorted(SIGNS)), sizes_of_names)
def test_agrees_with_integers(a: Any, b: Any, sign: str, sizes: dict[str, int]) -> None:
    left, right = at(a, sizes), at(b, sizes)
    if left is None or right is None or (sign in ("//", "%") and (right == 0 or b == 0)):
        return
    assert at(SIGNS[sign](a, b), sizes) == SIGNS[sign](left, right)


@given(dims())
def test_text_round_trip(size: int | Dim) -> None:
    assert parse_dim(str(size)) == size
    assert hash(parse_dim(str(size))) == hash(size)


@given(dims())
def test_substituting_names_by_themselves_changes_nothing(size: int | Dim) -> None:
    if isinstance(size, Dim):
        assert size.substitute({}) == size
        assert size.substitute({"n": n, "m": m, "k": k}) == size


@given(dims(), sizes_of_names)
def test_substitution_by_steps(size: int | Dim, sizes: dict[str, int]) -> None:
    one_by_one: int | Dim = size
    for name, number in sizes.items():
        try:
            one_by_one = at(one_by_one, {name: number})
        except DimensionError:  # pragma: no cover - substitution asks no questions
            raise AssertionError from None
        if one_by_one is None:
            return
    assert one_by_one == at(size, sizes) or at(size, sizes) is None


@given(dims(), sizes_of_names)
def test_build_says_the_same(size: int | Dim, sizes: dict[str, int]) -> None:
    signs = {"add": "+", "multiply": "*", "floor_divide": "//"}
    if isinstance(size, Dim) and at(size, sizes) is not None:
        text = size.build(
            str, lambda number: f"({number})", lambda sign, a, b: f"({a}{signs[sign]}{b})"
        )
        assert eval(text, {}, sizes) == at(size, sizes)


@given(dims(), dims(), dims())
def test_laws(a: Any, b: Any, c: Any) -> None:
    assert a + b == b + a and a * b == b * a
    assert (a + b) + c == a + (b + c) and (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a - a == 0 and a - b == -(b - a)


@given(sums, st.integers(1, 6), st.integers(1, 6))
def test_divisions_one_after_the_other(a: Any, p: int, q: int) -> None:
    assert a // p // q == a // (p * q)
    assert (a + p) // p == a // p + 1
    assert (q * a) // (q * p) == a // p


@given(dims(), sizes_of_names)
def test_lower_bound_is_below(size: int | Dim, sizes: dict[str, int]) -> None:
    bound, number = lower_bound(size), at(size, sizes)
    assert bound is None or number is None or bound <= number


def answers(question: Any, a: Any, b: Any, up_to: int) -> set[bool]:
    found = set()
    for sizes in itertools.product(range(1, up_to + 1), repeat=3):
        named = dict(zip("nmk", sizes, strict=True))
        left, right = at(a, named), at(b, named)
        if left is not None and right is not None:
            found.add(question(left, right))
    return found


def on_grid(size: int | Dim) -> np.ndarray[Any, Any]:
    """A sum of names at all sizes up to 34.

    `a` and `b` differ by `p*n + q*m + r*k + c` with each coefficient from -8 to 8.  In counts from
    0 (`n` is `n'+1`) that is zero where `p*n' + q*m' + r*k'` is some t from -32 to 32.  If it is so
    anywhere, then where no count exceeds the largest of |p|, |q|, |r| and |t|.  If it is positive
    or negative anywhere, then where all counts are 0, or one of them 33 or less and the others 0.
    """
    axes = dict(zip("nmk", np.ogrid[1:35, 1:35, 1:35], strict=True))
    total = np.zeros((34, 34, 34), int)
    for monomial, coefficient in size.terms if isinstance(size, Dim) else (((), size),):
        total += coefficient * (axes[str(monomial[0])] if monomial else 1)
    return total


@pytest.mark.parametrize(
    ("decide", "question"), [(decide_equal, operator.eq), (decide_at_least, operator.ge)]
)
@example(a=-3, b=4 * k + 4 * m - n + 4)  # equal where n is 15 and no smaller
@given(a=sums, b=sums)
def test_sums_raise_exactly_when_both_answers_occur(
    decide: Any, question: Any, a: Any, b: Any
) -> None:
    seen = set(np.unique(question(on_grid(a), on_grid(b))).tolist())
    if len(seen) == 2:
        with pytest.raises(DimensionError):
            decide(a, b)
    else:
        assert decide(a, b) is seen.pop()


@pytest.mark.parametrize(
    ("decide", "question"), [(decide_equal, operator.eq), (decide_at_least, operator.ge)]
)
@given(a=dims(), b=dims())
def test_an_answer_holds_for_all_sizes(decide: Any, question: Any, a: Any, b: Any) -> None:
    try:
        answer = decide(a, b)
    except DimensionError:
        return
    assert answers(question, a, b, 5) <= {answer}


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (n, n, True),
        (2 * n - n, n, True),
        (n + 1, 0, False),
        (n + 1, n, False),
        (n * m + 1, 0, False),
        (2 * n, 1, False),
        (2 * n * m, 2 * k + 1, False),
        (2 * n + 3 * m, 1, False),
        (n, 0, False),
        (n * m, 0, False),
        (n * m, 4, None),
        (2 * n + 3 * m, 6, False),
        (2 * n + 3 * m, 7, None),
        (n, m, None),
        (n * m, n, None),
        (n // 2, 3, None),
        (2 * n, 4, None),
        (n, 3_000_000_000, None),
        (np.int64(3), 3, True),
    ],
)
def test_decide_equal(a: Any, b: Any, equal: bool | None) -> None:
    if equal is None:
        with pytest.raises(DimensionError):
            decide_equal(a, b)
    else:
        assert decide_equal(a, b) is equal and decide_equal(b, a) is equal


def test_the_error_names_the_dimensions() -> None:
    with pytest.raises(DimensionError, match=r"batch == 3.*named dimension batch$|batch-3"):
        decide_equal(dim("batch"), 3)
    with pytest.raises(DimensionError, match="needed as a number"):
        range(n)


def test_comparisons_and_truth() -> None:
    assert n >= 1 and n + 1 > n and n - 1 < n and n < n + m and not n < 0
    assert bool(n) and bool(n + 1) and bool(2 * n - 1)
    for undecided in (lambda: n > 3, lambda: n < m, lambda: bool(n - 1)):
        with pytest.raises(DimensionError):
            undecided()


@pytest.mark.parametrize("other", [0.5, 2.0, 1j, np.float32(2)])
@pytest.mark.parametrize("sign", [*SIGNS.values(), operator.ge])
def test_fractions_are_refused(other: Any, sign: Any) -> None:
    with pytest.raises(DimensionError, match="whole numbers"):
        sign(n, other)


def test_numpy_integers_are_integers() -> None:
    assert n * np.int64(2) == 2 * n and type((n * np.int64(2)).terms[0][1]) is int
    assert np.int64(2) + n == n + 2


@pytest.mark.parametrize("name", ["", "1n", "a b", "n-1", 3, None])
def test_names_are_identifiers(name: Any) -> None:
    with pytest.raises(OptionError):
        dim(name)


@pytest.mark.parametrize(
    "text", ["", "n n", "n+", "(n", "n)", "n//0", "n/2", "1.5", "n**2", "(" * 5000 + "n", "a b"]
)
def test_not_a_dimension(text: str) -> None:
    with pytest.raises(ValueError, match="not a dimension"):
        parse_dim(text)


def test_division_by_zero() -> None:
    for divide in (lambda: n // 0, lambda: n % 0, lambda: (3 // n).substitute({"n": 0})):
        with pytest.raises(ZeroDivisionError):
            divide()


def test_names() -> None:
    assert (n * m + (k + 1) // (n + 2)).names() == {"n", "m", "k"}
    assert (5 // n).names() == {"n"}
