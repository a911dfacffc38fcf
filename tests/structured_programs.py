"""Random structured programs on numbers and small arrays, as people would write them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

INTS = ("a", "b", "i", "k")
FLOATS = ("u", "v")


def program(source: random.Random, depth: int = 3) -> str:
    """The text of a function `f(a, b, u, xs, ns)`; every loop in it ends.

    Args:
        source: what all choices are drawn from, `st.randoms()` for instance.
        depth: how deep branches and loops stand in each other.
    """
    return "\n".join([*_Program(source).function(depth), ""])


def arguments(source: random.Random) -> tuple[Any, ...]:
    """Arguments of such a function: two ints, a float, an array of floats and one of ints."""
    return (
        source.choice((0, 1, 3, 7, -2, 25, 12)),
        source.choice((0, 2, 5, -3, 8, 30)),
        source.choice((0.5, -1.25, 3.0, 0.0, -0.0, 10.5)),
        np.array([source.randint(-8, 8) / 2 for _ in range(4)]),
        np.array([source.randint(-4, 11) for _ in range(5)]),
    )


class _Program:
    """Writes one function."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.counters = itertools.count(1)
        self.mixed = self.chance(0.1)  # variables may change their type
        self.result = self.one(
            "a, b, k", "u, v, i", "a, u, w", "xs, k", "w, v", "float(ns[1]), seen, i"
        )

    def function(self, depth: int) -> list[str]:
        lines = ["    i, k, v = 1, a - b, u * 0.5", "    w = np.zeros(4)", "    seen = [0, 1.5]"]
        lines.append("    inner = lambda t: t + u if t < v else t - a")
        lines += self.block(depth, 0, self.source.randint(2, 5))
        return ["def f(a, b, u, xs, ns):", *lines, f"    return {self.result}"]

    def one(self, *things: str) -> str:
        return self.source.choice(things)

    def chance(self, share: float) -> bool:
        return self.source.randrange(100) < 100 * share

    def number(self) -> str:
        """What runs through an array of floats: a variable of its own, if types stay."""
        return self.one(*FLOATS) if self.mixed else "x"

    # ---- expressions -------------------------------------------------------------------------

    def integer(self, depth: int = 2) -> str:
        """An int, Python's or NumPy's; what grows is taken modulo something."""
        if not depth:
            return self.one(*INTS, *INTS, str(self.source.randint(-3, 9)))
        one, two = self.integer(depth - 1), self.integer(depth - 1)
        return self.choose(
            lambda: one,
            lambda: f"({one} + {two}) % 100",
            lambda: f"({one} - {two}) % 97",
            lambda: f"({one}) * ({two}) % 89",
            lambda: f"({one}) // ({two})",
            lambda: f"({one}) % ({two} | 1)",
            lambda: f"-({one})",
            lambda: f"min({one}, {two})",
            lambda: f"max({one}, {two}, 3)",
            lambda: f"abs({one} - {two})",
            lambda: f"int(ns[{self.index(5)}])",
            lambda: f"({one} if {self.condition(depth - 1)} else {two})",
            lambda: f"clip({one})",
            lambda: f"({one} & 7) ** ({two} & 3)",
            lambda: f"(({one}) ^ ({two}))",
            lambda: f"len(xs) + {one}",
            lambda: f"(({one}) << ({two} & 3))",
        )

    def floating(self, depth: int = 2) -> str:
        if not depth:
            return self.one(*FLOATS, *FLOATS, "0.25", "-1.5", "2.0")
        one, two = self.floating(depth - 1), self.floating(depth - 1)
        return self.choose(
            lambda: one,
            lambda: f"{one} * 0.5 + {two}",
            lambda: f"({one} - {two}) / 3",
            lambda: f"{one} / {self.integer(depth - 1)}",
            lambda: f"float({self.integer(depth - 1)})",
            lambda: f"float(xs[{self.index(4)}])",
            lambda: f"max({one}, {two}, 0.0)",
            lambda: f"abs({one})",
            lambda: f"({one} if {self.condition(depth - 1)} else {two})",
            lambda: f"{one} % 7.5",
            lambda: f"damp({one})",
            lambda: f"inner({one})",
            lambda: f"math.sqrt(abs({one}))",
            lambda: "float(w.sum())",
        )

    def element(self) -> str:
        """What is written into an array of floats."""
        return self.choose(
            self.floating, self.integer, lambda: f"xs[{self.index(4)}] * 2", lambda: "xs.max()"
        )

    def index(self, size: int) -> str:
        if self.chance(0.1):
            return self.integer(1)
        return self.one(str(self.source.randrange(size)), f"{self.one(*INTS)} % {size}", "-1")

    def condition(self, depth: int = 2) -> str:
        if not depth:
            return f"{self.one(*INTS)} {self.one('<', '>=', '==', '!=')} {self.integer(0)}"
        return self.choose(
            lambda: f"{self.integer(1)} {self.one('<', '<=', '>', '==')} {self.integer(1)}",
            lambda: f"{self.floating(1)} {self.one('<', '<=', '>', '!=')} {self.floating(1)}",
            lambda: f"({self.condition(depth - 1)} and {self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)} or {self.condition(depth - 1)})",
            lambda: f"not {self.condition(0)}",
            lambda: f"{self.integer(0)} < {self.integer(0)} <= {self.integer(0)}",
            lambda: f"xs[{self.index(4)}] > {self.floating(1)}",
            lambda: f"{self.one(*INTS)} in (1, 2, {self.integer(0)})",
            lambda: f"{self.one(*INTS)} != 0",
        )

    def choose(self, *ways: Callable[[], str]) -> str:
        return self.source.choice(ways)()

    # ---- statements --------------------------------------------------------------------------

    def block(self, depth: int, loops: int, count: int | None = None) -> list[str]:
        """Statements, one step further in; `loops` tells how many are around."""
        lines: list[str] = []
        for _ in range(count or self.source.choice((1, 1, 2, 2, 3))):
            lines += self.statement(depth, loops)
        return ["    " + line for line in lines]

    def statement(self, depth: int, loops: int) -> list[str]:
        kinds = [self.assign] * 5 + [self.tell] * 2 + [self.store] * 3 + [self.end]
        if loops:
            kinds += [self.jump] * 2
        found = self.source.choice(kinds)
        if depth and self.chance(0.5):
            return self.source.choice((self.branch, self.loop))(depth, loops)
        return found()

    def assign(self) -> list[str]:
        name, number = self.one(*INTS), self.one(*FLOATS)
        return [
            self.choose(
                lambda: f"{name} = {self.integer()}",
                lambda: f"{number} = {self.floating()}",
                lambda: f"{name} += {self.integer(1)}",
                lambda: f"{number} -= {self.floating(1)}",
                lambda: f"{number} *= 0.5",
                lambda: "a, b = b, a",
                lambda: f"i, k = k % 50, {self.integer(1)}",
                lambda: "u, v = v, u",
                lambda: f"{name} %= 31",
                lambda: f"late = {self.integer(1)}",
                *(self.mixing(name, number) if self.mixed else ()),
            )
        ]

    def mixing(self, name: str, number: str) -> Sequence[Callable[[], str]]:
        return (
            lambda: f"{name} = late",
            lambda: f"{number} = xs[{self.index(4)}]",
            lambda: f"{name} = ns[{self.index(5)}]",
            lambda: f"{number} = {self.integer(1)}",
        )

    def store(self) -> list[str]:
        return [
            self.choose(
                lambda: f"w[{self.index(4)}] = {self.element()}",
                lambda: f"w[{self.index(4)}] += {self.element()}",
                lambda: f"xs[{self.index(4)}] = {self.element()}",
                lambda: f"ns[{self.index(5)}] = {self.integer()}",
                lambda: f"seen[0] = {self.integer(1)}",
                lambda: f"seen[1] += {self.floating(1)}",
                lambda: "w[1:3] = xs[:2]",
                lambda: f"xs *= {self.one('0.5', 'v')}",
                lambda: "w = w + xs" if self.mixed else "w += xs",
            )
        ]

    def tell(self) -> list[str]:
        return [
            self.choose(
                lambda: f"print({self.integer(1)}, {self.floating(1)})",
                lambda: f'print(f"{{{self.one(*INTS)}}} and {{{self.one(*FLOATS)}:.3f}}")',
                lambda: f"print({self.one('xs', 'ns', 'w', 'seen', 'late')})",
                lambda: f'print("{self.one("here", "there")}", {self.condition(1)})',
                lambda: f'print(f"{{{self.integer(1)}:>4d}}|{{w[1]}}|{{{self.one(*INTS)}!r}}")',
            )
        ]

    def end(self) -> list[str]:
        name = self.one(*INTS)
        return self.source.choice(
            (
                [f"return {self.result}"],
                [f"return {name if self.mixed else self.result}"],
                [f'assert {self.condition(1)}, f"{name} is {{{name}}}"'],
                [f"if {self.condition(1)}:", f'    raise ValueError(f"no {{{name}}}", {name})'],
                [f"assert {self.condition(1)}"],
                ["pass"],
            )
        )

    def jump(self) -> list[str]:
        word = self.one("break", "continue", f"return {self.result}")
        return [f"if {self.condition(1)}:", f"    {word}"]

    def branch(self, depth: int, loops: int) -> list[str]:
        lines = [f"if {self.condition()}:", *self.block(depth - 1, loops)]
        while self.chance(0.25):
            lines += [f"elif {self.condition()}:", *self.block(depth - 1, loops)]
        if self.chance(0.5):
            lines += ["else:", *self.block(depth - 1, loops)]
        return lines

    def loop(self, depth: int, loops: int) -> list[str]:
        body = self.block(depth - 1, loops + 1)
        name, number = self.one(*INTS), self.one(*FLOATS)
        lines: list[str] = []
        kind = self.source.randrange(8)
        if kind <= 1:
            turns = f"left{next(self.counters)}"
            lines.append(f"{turns} = {self.one('4', '20', 'a % 9', 'b % 5')}")
            head = f"while {turns} > 0" + (f" and {self.condition(1)}:" if kind else ":")
            body = [f"    {turns} -= 1", *body]
        elif kind <= 4:
            size = self.one("3", "20", "a % 7", "b % 30", "2, k % 9", "k % 11, -1, -2")
            head = f"for {name} in range({size}):"
        elif kind == 5:
            number = self.number()
            head = f"for {number} in {self.one('xs', 'w', 'xs[1:]')}:"
        elif kind == 6:
            number = self.number()
            head = f"for {name}, {number} in enumerate({self.one('xs', 'xs[::-1]')}):"
        else:
            head = f"for {self.number()}, n in zip(xs, ns):"
        lines += [head, *body]
        if self.chance(0.15):
            lines += ["else:", *self.block(depth - 1, loops)]
        return lines


def clip(number: int) -> int:
    """What the programs call, on ints."""
    if number > 40:
        return 40
    return number


def damp(number: float) -> float:
    """The same on floats."""
    turns = 0
    while abs(number) > 2 and turns < 5:
        number = number / 3
        turns += 1
    return number + turns
