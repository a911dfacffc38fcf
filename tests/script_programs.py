"""Converted functions as plain Python, and programs of random control flow to try it with."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import textwrap
import types
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import minigraph as mg
from minigraph.trace.script import RESERVED, WORDS, converted

_numbers = itertools.count(1)


def define(text: str, name: str = "f", **names: Any) -> Callable[..., Any]:
    """A function from its text, which `linecache` knows as if it stood in a file."""
    filename = f"<test {next(_numbers)}>"
    text = textwrap.dedent(text)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"mg": mg, "__name__": "program", **names}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]


def as_python(function: Any) -> Any:
    """The function with its code converted, without a tracer."""
    code = converted(function.__code__).code
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    made = types.FunctionType(
        code,
        {**function.__globals__, RESERVED: WORDS},
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What a call returns or raises, and prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = repr(function(*args, **kwargs))
        except NameError as error:  # of a name in a cell, Python tells two kinds apart
            told = str(error)
            result = told if told.startswith("[MG") else "NameError"
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return result, printed.getvalue()


# ---- random programs -----------------------------------------------------------------------------

NAMES = ("a", "b", "c", "d")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2, numbers: bool = False) -> str:
    """An expression on ints that may fail, but does not grow without bound.

    Args:
        draw: chooses.
        depth: how deep it is nested.
        numbers: truth values become ints at once, so that all is of one type.
    """
    kind = draw(st.integers(0, 9)) if depth else draw(st.integers(0, 2))
    inner = expressions(depth - 1, numbers)
    truth = "(1 if {} else 0)" if numbers else "({})"
    if kind <= 1:
        return draw(st.sampled_from(NAMES))
    if kind == 2:
        return str(draw(st.integers(-3, 9)))
    if kind == 3:
        return f"({draw(inner)} if {draw(inner)} > {draw(inner)} else {draw(inner)})"
    if kind == 4:
        word = draw(st.sampled_from(("and", "or")))
        return f"({draw(inner)} {word} {draw(inner)})"
    if kind == 5:
        return truth.format(f"not {draw(inner)}")
    if kind == 6:
        return truth.format(f"{draw(inner)} < {draw(inner)} <= {draw(inner)}")
    if kind == 7:
        return f"({draw(inner)} % {draw(inner)})"
    if kind == 8:
        return truth.format(f"{draw(inner)} in ({draw(inner)}, {draw(inner)})")
    return f"({draw(inner)} {draw(st.sampled_from(('+', '-')))} {draw(inner)}) % 100"


class _Programs:
    """Draws the statements of one function."""

    def __init__(self, draw: st.DrawFn, numbers: bool) -> None:
        self.draw = draw
        self.expressions = expressions(numbers=numbers)
        self.counters = itertools.count(1)
        self.functions: list[str] = []

    def block(self, depth: int, loop: bool) -> list[str]:
        count = self.draw(st.integers(1, 3))
        lines = [line for _ in range(count) for line in self.statement(depth, loop)]
        return ["    " + line for line in lines]

    def statement(self, depth: int, loop: bool) -> list[str]:
        kind = self.draw(st.integers(0, 18 if depth else 8))
        name, value = self.draw(st.sampled_from(NAMES)), self.draw(self.expressions)
        if kind <= 7:
            return self.simple(kind, name, value, loop)
        if kind == 8:
            return self.function(name, value)
        if kind <= 12:
            return self.branch(value, depth, loop)
        if kind == 13:
            return [f"with manager({name}):", *self.block(depth - 1, loop)]
        if kind == 14:
            return self.attempt(depth, loop)
        return self.loop(name, value, depth)

    def simple(self, kind: int, name: str, value: str, loop: bool) -> list[str]:
        other = self.draw(st.sampled_from(NAMES))
        if kind <= 2:
            return [f"{name} = {value}"]
        if kind == 3:
            return [f"{name} += {value}"]
        if kind == 4:
            return [f"print({name}, {value})"]
        if kind == 5:
            jumps = ("break", "continue") if loop else (f"print({value})",)
            return [self.draw(st.sampled_from((*jumps, f"return {value}")))]
        if kind == 6:
            return [f"{name}, {other} = {value}, {name}"]
        return [self.draw(st.sampled_from((f"del {name}", f"assert {value}, {name}")))]

    def branch(self, value: str, depth: int, loop: bool) -> list[str]:
        lines = [f"if {value}:", *self.block(depth - 1, loop)]
        if self.draw(st.booleans()):
            if self.draw(st.booleans()):
                lines += [f"elif {self.draw(self.expressions)}:", *self.block(depth - 1, loop)]
            lines += ["else:", *self.block(depth - 1, loop)]
        return lines

    def function(self, name: str, value: str) -> list[str]:
        """A closure, made or called."""
        if self.functions and self.draw(st.booleans()):
            return [f"{name} = {self.draw(st.sampled_from(self.functions))}()"]
        made = f"g{next(self.counters)}"
        self.functions.append(made)
        return [f"{made} = lambda: {value}"]

    def attempt(self, depth: int, loop: bool) -> list[str]:
        lines = ["try:", *self.block(depth - 1, loop)]
        lines += ["except ZeroDivisionError:", *self.block(depth - 1, loop)]
        if self.draw(st.booleans()):
            lines += ["finally:", f"    print({self.draw(st.sampled_from(NAMES))})"]
        return lines

    def loop(self, name: str, value: str, depth: int) -> list[str]:
        draw = self.draw
        kind = draw(st.integers(0, 4))
        body = self.block(depth - 1, True)
        if kind == 0:
            head, before = f"for {name} in range({draw(st.integers(0, 4))}):", []
        elif kind == 1:
            other = draw(st.sampled_from(NAMES))
            head, before = f"for {name}, {other} in enumerate([{value}, 2, 7]):", []
        elif kind == 2:
            head, before = f"for {name} in [{value}, {value}]:", []
        else:
            counter = f"k{next(self.counters)}"
            head, before = f"while {counter} > 0 and {value}:", [f"{counter} = 4"]
            if kind == 4:
                head = f"while ({counter} := {counter} - 1) > 0:"
            else:
                body = [f"    {counter} -= 1", *body]
        lines = [*before, head, *body]
        if draw(st.booleans()):
            lines += ["else:", *self.block(depth - 1, False)]
        return lines


@st.composite
def programs(draw: st.DrawFn, depth: int = 3, numbers: bool = False) -> str:
    """The text of a function `f(a, b)` with random control flow; every loop ends.

    Args:
        draw: chooses.
        depth: how deep statements are nested.
        numbers: all variables hold ints from the beginning.
    """
    made = _Programs(draw, numbers)
    lines = ["    c, d = a - 1, b + 2"] if numbers else []
    lines += [line for _ in range(draw(st.integers(1, 4))) for line in made.block(depth, False)]
    return "\n".join(["def f(a, b):", *lines, f"    return {draw(made.expressions)}", ""])
