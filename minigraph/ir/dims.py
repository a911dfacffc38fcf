"""Named dimensions: sizes that are not known until the program runs.

A `Dim` is a polynomial with integer coefficients over names and floor divisions, kept in one normal
form (terms sorted, no zero coefficients), so equal sizes are equal objects: `n + n` is `2*n`,
`(2*n)//2` is `n`, `(n+3)//2` is `(n+1)//2 + 1`.  What the form cannot decide is an error, never a
guess.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import ceil, gcd
from typing import TypeVar

import numpy as np

from minigraph.errors import DimensionError, OptionError

T = TypeVar("T")


class Quotient:
    """The atom `numerator // denominator`, rounded down as Python's `//`."""

    __slots__ = ("denominator", "numerator", "text")

    def __init__(self, numerator: Dim | int, denominator: Dim | int) -> None:
        self.numerator = numerator
        self.denominator = denominator
        self.text = f"({_in_brackets(numerator)}//{_in_brackets(denominator)})"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _in_brackets(size: Dim | int) -> str:
    simple = size.is_name if isinstance(size, Dim) else size >= 0
    return str(size) if simple else f"({size})"


Atom = str | Quotient
Monomial = tuple[Atom, ...]


class Dim:
    """A named dimension or an expression of them; `mg.dim("batch")` makes one.

    Compares structurally (`==` says whether the normal forms are the same); `decide_equal` answers
    the mathematical question and raises `DimensionError` where it depends on the sizes.  `<`, `<=`,
    `>`, `>=` and `bool()` answer or raise, too.

    Attributes:
        terms: (atoms, coefficient) of each term, the highest degree first.
    """

    __slots__ = ("_text", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._text: str | None = None

    @property
    def is_name(self) -> bool:
        """One atom (a name, or a floor division, which prints in brackets) and nothing else."""
        return len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1

    def names(self) -> set[str]:
        """The names that the expression mentions."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    for part in (atom.numerator, atom.denominator):
                        found |= part.names() if isinstance(part, Dim) else set()
        return found

    def substitute(self, sizes: Mapping[str, int | Dim]) -> int | Dim:
        """The expression with names replaced by sizes (names not in `sizes` stay).

        Raises:
            ZeroDivisionError: a floor division whose denominator becomes zero.
        """
        total: int | Dim = 0
        for monomial, coefficient in self.terms:
            term: int | Dim = coefficient
            for atom in monomial:
                term = term * _atom_value(atom, sizes)
            total = total + term
        return total

    def build(
        self,
        name: Callable[[str], T],
        number: Callable[[int], T],
        combine: Callable[[str, T, T], T],
    ) -> T:
        """The expression in another arithmetic.

        Args:
            name: makes a name.
            number: makes a number.
            combine: makes "add", "multiply" or "floor_divide" of two.
        """

        def convert(size: int | Dim) -> T:
            return size.build(name, number, combine) if isinstance(size, Dim) else number(size)

        total: T | None = None
        for monomial, coefficient in self.terms:
            term: T | None = None if coefficient == 1 and monomial else number(coefficient)
            for atom in monomial:
                if isinstance(atom, str):
                    factor = name(atom)
                else:
                    factor = combine(
                        "floor_divide", convert(atom.numerator), convert(atom.denominator)
                    )
                term = factor if term is None else combine("multiply", term, factor)
            assert term is not None
            total = term if total is None else combine("add", total, term)
        assert total is not None
        return total

    def __str__(self) -> str:
        if self._text is None:
            parts: list[str] = []
            for monomial, coefficient in self.terms:
                factors = [str(atom) for atom in monomial]
                if abs(coefficient) != 1 or not factors:
                    factors.insert(0, str(abs(coefficient)))
                sign = "-" if coefficient < 0 else "+"
                parts.append(sign + "*".join(factors))
            self._text = "".join(parts).removeprefix("+")
        return self._text

    def __repr__(self) -> str:
        return f"Dim({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __add__(self, other: int | Dim) -> int | Dim:
        return _combine([(self, 1), (other, 1)]) if _is_size(other, self) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> int | Dim:
        return _combine([(self, -1)])

    def __sub__(self, other: int | Dim) -> int | Dim:
        return _combine([(self, 1), (other, -1)]) if _is_size(other, self) else NotImplemented

    def __rsub__(self, other: int) -> int | Dim:
        return _combine([(other, 1), (self, -1)]) if _is_size(other, self) else NotImplemented

    def __mul__(self, other: int | Dim) -> int | Dim:
        if not _is_size(other, self):
            return NotImplemented
        products: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = tuple(sorted(left + right, key=_rank))
                products[monomial] = products.get(monomial, 0) + a * b
        return _normal(products)

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Dim) -> int | Dim:
        return _floor_divide(self, other) if _is_size(other, self) else NotImplemented

    def __rfloordiv__(self, other: int) -> int | Dim:
        return _floor_divide(other, self) if _is_size(other, self) else NotImplemented

    def __mod__(self, other: int | Dim) -> int | Dim:
        return self - (self // other) * other if _is_size(other, self) else NotImplemented

    def __rmod__(self, other: int) -> int | Dim:
        return other - (other // self) * self if _is_size(other, self) else NotImplemented

    def __ge__(self, other: int | Dim) -> bool:
        return decide_at_least(self, other) if _is_size(other, self) else NotImplemented

    def __le__(self, other: int | Dim) -> bool:
        return decide_at_least(other, self) if _is_size(other, self) else NotImplemented

    def __lt__(self, other: int | Dim) -> bool:
        return not decide_at_least(self, other) if _is_size(other, self) else NotImplemented

    def __gt__(self, other: int | Dim) -> bool:
        return not decide_at_least(other, self) if _is_size(other, self) else NotImplemented

    def __bool__(self) -> bool:
        return not decide_equal(self, 0)

    def __index__(self) -> int:
        raise undecidable(self, "is needed as a number")


def dim(name: str) -> Dim:
    """The dimension called `name` (a Python identifier)."""
    if type(name) is not str or not name.isidentifier():
        raise OptionError(
            f"a dimension is named by an identifier, not {name!r}", instead='mg.dim("batch")'
        )
    return Dim((((name,), 1),))


def undecidable(size: int | Dim, question: str) -> DimensionError:
    """The error that says which names the answer to a question depends on."""
    names = ", ".join(sorted(size.names())) if isinstance(size, Dim) else ""
    return DimensionError(
        f"{size} {question}: the answer depends on the named dimension {names}",
        instead="leave the dimension static, or write the program so that it does not ask",
    )


def decide_equal(a: int | Dim, b: int | Dim) -> bool:
    """Whether two sizes are equal, for all values of the names (each at least 1).

    Sums of names are always decided; of products and floor divisions, what their signs and common
    factors show: `n` is never 0, `2*n` never 1, `2*n+3*m` never 6, but `n*m` may be 4 or not.

    Raises:
        DimensionError: equal for some sizes and different for others (or this is not known).
    """
    difference = _combine([(a, 1), (b, -1)])
    if isinstance(difference, int):
        return difference == 0
    if not _may_be_zero(_from_zero(difference)):
        return False
    raise undecidable(difference, f"is zero or not ({a} == {b})")


def decide_at_least(a: int | Dim, b: int | Dim) -> bool:
    """Whether `a >= b`, for all values of the names (each at least 1).

    Raises:
        DimensionError: true for some sizes and false for others (or this is not known).
    """
    difference = _combine([(a, 1), (b, -1)])
    if isinstance(difference, int):
        return difference >= 0
    lower, upper = lower_bound(difference), lower_bound(-difference)
    if lower is not None and lower >= 0:
        return True
    if upper is not None and upper > 0:
        return False
    raise undecidable(difference, f"is negative or not ({a} >= {b})")


def lower_bound(size: int | Dim) -> int | None:
    """A number that the size never falls below, taking every name as at least 1; None: unknown."""
    return _lowest(_from_zero(size))


def _from_zero(size: int | Dim) -> int | Dim:
    """The same in names that are at least 0: `n` becomes `n+1`."""
    if isinstance(size, int):
        return size
    return size.substitute({name: dim(name) + 1 for name in size.names()})


def _lowest(size: int | Dim) -> int | None:
    """A number that the size never falls below, taking every name as at least 0; None: unknown."""
    if isinstance(size, int):
        return size
    constant = Fraction(0)
    for monomial, coefficient in _without_floors(size).items():
        if not monomial:
            constant = coefficient
        elif coefficient < 0 or any(_may_be_negative(atom) for atom in monomial):
            return None
    return ceil(constant)  # sizes are whole numbers


def _without_floors(size: Dim) -> dict[Monomial, Fraction]:
    """A polynomial that is never larger: `-(a//b)` is at least `-a/b`."""
    found: dict[Monomial, Fraction] = {}
    pending = [(monomial, Fraction(coefficient)) for monomial, coefficient in size.terms]
    while pending:
        monomial, coefficient = pending.pop()
        atom = monomial[0] if len(monomial) == 1 else ""
        if coefficient < 0 and not isinstance(atom, str) and _is_positive(atom.denominator):
            below = coefficient / int(atom.denominator)
            pending.extend((term, below * count) for term, count in _terms(atom.numerator))
        else:
            found[monomial] = found.get(monomial, Fraction(0)) + coefficient
    return {monomial: coefficient for monomial, coefficient in found.items() if coefficient}


def _is_positive(size: int | Dim) -> bool:
    return isinstance(size, int) and size > 0


def product(sizes: Iterable[int | Dim]) -> int | Dim:
    """The number of elements of a shape."""
    total: int | Dim = 1
    for size in sizes:
        total = total * size
    return total


def _may_be_negative(atom: Atom) -> bool:
    if isinstance(atom, str):
        return False
    above, below = _lowest(atom.numerator), _lowest(atom.denominator)
    return above is None or above < 0 or below is None or below < 0


LARGEST_SEARCH = 1 << 16  # the largest number that is searched for as a sum of coefficients


def _may_be_zero(size: int | Dim) -> bool:
    """False only if no sizes (at least 0) make it zero; exact for sums of names.

    Each product of atoms is taken as an integer of its own, so what is impossible here is so.
    """
    if isinstance(size, int):
        return size == 0
    constant = sum(coefficient for monomial, coefficient in size.terms if not monomial)
    factors = [coefficient for monomial, coefficient in size.terms if monomial]
    if constant % gcd(*factors):
        return False
    if any(_may_be_negative(atom) for monomial, _ in size.terms for atom in monomial):
        return True
    if min(factors) < 0 < max(factors):
        return True
    # All of one sign: is `target` a sum of multiples of the factors (with counts at least 0)?
    target = -constant if factors[0] > 0 else constant
    if target < 0 or target > LARGEST_SEARCH:
        return target > 0
    reachable, mask = 1, (2 << target) - 1  # bit k: k is such a sum
    for factor in map(abs, factors):
        while factor <= target:
            reachable |= (reachable << factor) & mask
            factor *= 2
    return bool(reachable >> target & 1)


def _is_size(other: object, size: Dim) -> bool:
    """Whether `other` may stand beside a dimension; a fraction is refused with a reason."""
    if isinstance(other, float | complex | np.inexact):
        raise DimensionError(
            f"the named dimension {size} and {other!r}: dimensions are whole numbers",
            instead="compute with the size as a value (x.shape[0] of a traced array), or use //",
        )
    return isinstance(other, int | Dim | np.integer)


def _atom_value(atom: Atom, sizes: Mapping[str, int | Dim]) -> int | Dim:
    if isinstance(atom, str):
        return sizes[atom] if atom in sizes else dim(atom)
    above, below = (
        part.substitute(sizes) if isinstance(part, Dim) else part
        for part in (atom.numerator, atom.denominator)
    )
    return above // below


def _terms(size: int | Dim) -> tuple[tuple[Monomial, int], ...]:
    return size.terms if isinstance(size, Dim) else (((), operator.index(size)),)


def _combine(parts: Iterable[tuple[int | Dim, int]]) -> int | Dim:
    sums: dict[Monomial, int] = {}
    for size, factor in parts:
        for monomial, coefficient in _terms(size):
            sums[monomial] = sums.get(monomial, 0) + factor * coefficient
    return _normal(sums)


def _rank(atom: Atom) -> tuple[bool, str]:
    """Names first, then floor divisions."""
    return (isinstance(atom, Quotient), str(atom))


def _order(monomial: Monomial) -> tuple[int, list[tuple[bool, str]]]:
    """Highest degree first, then by atoms: an order that multiplication keeps."""
    return (-len(monomial), [_rank(atom) for atom in monomial])


def _normal(sums: Mapping[Monomial, int]) -> int | Dim:
    terms = [(monomial, coefficient) for monomial, coefficient in sums.items() if coefficient != 0]
    if not terms:
        return 0
    if len(terms) == 1 and not terms[0][0]:
        return terms[0][1]
    terms.sort(key=lambda term: _order(term[0]))
    return Dim(tuple(terms))


def _quotient(above: int | Dim, below: int | Dim) -> Dim:
    return Dim((((Quotient(above, below),), 1),))


def _floor_divide(above: int | Dim, below: int | Dim) -> int | Dim:
    if isinstance(below, Dim):
        exact = _exact_quotient(above, below)
        return _quotient(above, below) if exact is None else exact
    below = operator.index(below)
    if below == 0:
        raise ZeroDivisionError("floor division of a dimension by zero")
    if below < 0:
        above, below = -above, -below
    # Whole multiples of the divisor come out:  (q*b*x + r*x) // b  =  q*x + (r*x) // b.
    whole = _normal({m: c // below for m, c in _terms(above)})
    rest = {m: c % below for m, c in _terms(above) if c % below}
    # A factor of all but the constant goes:  (g*x + c) // (g*b)  =  (x + c//g) // b.
    common = gcd(below, *(c for m, c in rest.items() if m))
    under = _normal({m: c // common for m, c in rest.items()})
    below //= common
    if isinstance(under, int) or below == 1:
        return whole + under // below
    # Divisions one after the other are one:  (x//a + y) // b  =  (x + a*y) // (a*b).
    for monomial, coefficient in under.terms:
        inner = monomial[0] if len(monomial) == 1 and coefficient == 1 else None
        if isinstance(inner, Quotient) and isinstance(inner.denominator, int):
            a = inner.denominator
            others = under - Dim((((inner,), 1),))
            return whole + _floor_divide(inner.numerator + a * others, a * below)
    return whole + _quotient(under, below)


def _exact_quotient(above: int | Dim, below: Dim) -> int | Dim | None:
    """`above / below` by long division of polynomials; None where a rest remains."""
    (lead, scale), result = below.terms[0], dict[Monomial, int]()
    while isinstance(above, Dim) or above != 0:
        monomial, coefficient = _terms(above)[0]
        left = list(monomial)
        for atom in lead:
            if atom not in left:
                return None
            left.remove(atom)
        if coefficient % scale:
            return None
        result[tuple(left)] = coefficient // scale
        above = above - _normal({tuple(left): coefficient // scale}) * below
    return _normal(result)


_TOKEN = re.compile(r"\s*(//|[-+*()]|[0-9]+|[^\W\d]\w*)")
DEEPEST = 50  # brackets within brackets


def parse_dim(text: str) -> int | Dim:
    """Read back what `str(dim)` prints.

    Raises:
        ValueError: the text is not a sum of products of names, numbers and floor divisions.
    """
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s+", "", text) or not tokens or tokens.count("(") > DEEPEST:
        raise ValueError(f"not a dimension: {text!r}")
    tokens.append("")
    try:
        value, position = _parse_sum(tokens, 0)
    except ZeroDivisionError as error:
        raise ValueError(f"not a dimension (division by zero): {text!r}") from error
    if tokens[position] != "":
        raise ValueError(f"not a dimension: {text!r}")
    return value


def _parse_sum(tokens: list[str], at: int) -> tuple[int | Dim, int]:
    negative = tokens[at] == "-"
    value, at = _parse_product(tokens, at + 1 if negative else at)
    value = -value if negative else value
    while tokens[at] in ("+", "-"):
        right, after = _parse_product(tokens, at + 1)
        value = value + right if tokens[at] == "+" else value - right
        at = after
    return value, at


def _parse_product(tokens: list[str], at: int) -> tuple[int | Dim, int]:
    value, at = _parse_atom(tokens, at)
    while tokens[at] in ("*", "//"):
        right, after = _parse_atom(tokens, at + 1)
        value = value * right if tokens[at] == "*" else value // right
        at = after
    return value, at


def _parse_atom(tokens: list[str], at: int) -> tuple[int | Dim, int]:
    token = tokens[at]
    if token == "(":
        value, at = _parse_sum(tokens, at + 1)
        if tokens[at] != ")":
            raise ValueError("not a dimension: ')' is missing")
        return value, at + 1
    if token.isdigit():
        return int(token), at + 1
    if token.isidentifier():
        return dim(token), at + 1
    raise ValueError(f"not a dimension: unexpected {token!r}")
