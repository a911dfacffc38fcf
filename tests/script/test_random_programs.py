"""Random control flow: converted and compiled functions do what the originals do."""

from __future__ import annotations

import collections
import contextlib
import copy
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from script_programs import as_python, define, outcome, programs
from structured_programs import arguments, clip, damp, program

import minigraph as mg


@contextlib.contextmanager
def manager(thing: int) -> Iterator[None]:
    print("enter", thing)
    try:
        yield
    finally:
        print("leave")


def check(text: str, arguments: list[tuple[int, int]]) -> None:
    function = define(text, manager=manager)
    converted = as_python(function)
    for pair in arguments:
        assert outcome(converted, *pair) == outcome(function, *pair), text


def check_scripted(text: str, arguments: list[tuple[int, int]]) -> None:
    function = define(text, manager=manager)
    scripted = mg.script(function)
    for pair in arguments:
        found = outcome(scripted, *pair)
        assert "[MG" in found[0] or found == outcome(function, *pair), text


ARGUMENTS = st.lists(st.tuples(st.integers(-2, 9), st.integers(-2, 9)), min_size=1, max_size=4)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), ARGUMENTS)
def test_converted_is_the_same(text: str, arguments: list[tuple[int, int]]):
    check(text, arguments)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(programs(numbers=True), ARGUMENTS)
def test_scripted_is_the_same_or_an_error(text: str, arguments: list[tuple[int, int]]):
    check_scripted(text, arguments)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(programs(numbers=True), ARGUMENTS)
def test_scripted_is_the_same_or_an_error_for_many(text: str, arguments: list[tuple[int, int]]):
    check_scripted(text, arguments)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), ARGUMENTS)
def test_converted_is_the_same_for_many(text: str, arguments: list[tuple[int, int]]):
    check(text, arguments)


# ---- compiled ------------------------------------------------------------------------------------

MOST_REFUSED = 0.3
"""The share of programs that may end in an error of ours: otherwise too little is compared."""


def exactly(thing: Any) -> Any:
    """Type, dtype and bits."""
    if isinstance(thing, list | tuple):
        return type(thing), [exactly(each) for each in thing]
    if isinstance(thing, np.ndarray):
        return "array", thing.dtype, thing.shape, thing.tobytes()
    return type(thing), repr(thing)


def seen(function: Any, given: tuple[Any, ...]) -> Any:
    """What a call returns or raises, prints, and leaves in its arguments; None: it is refused."""
    caught: list[BaseException] = []

    def run() -> Any:
        try:
            return exactly(function(*given))
        except Exception as error:
            caught.append(error)
            raise

    with np.errstate(all="ignore"):
        found = outcome(run)
    if caught and isinstance(caught[0], mg.MinigraphError):
        return None
    return found, exactly(given)


def compared(text: str, calls: list[tuple[Any, ...]], backend: str) -> str:
    """Whether a program is right in all calls, or refused."""
    function = define(text, np=np, math=math, clip=clip, damp=damp)
    scripted = mg.script(function, backend=backend)
    for call in calls:
        expected = seen(function, copy.deepcopy(call))
        found = seen(scripted, copy.deepcopy(call))
        if found is None:
            return "refused"
        assert found == expected, f"{text}\n{call}"
    return "right"


def compare(count: int, backends: tuple[str, ...], depth: int) -> None:
    """Compare so many programs with eager Python, on one of the backends each."""
    counts: collections.Counter[str] = collections.Counter()
    unusual = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

    @settings(max_examples=count, suppress_health_check=unusual)
    @given(st.randoms(use_true_random=False))
    def each(source: random.Random) -> None:
        text = program(source, source.randint(1, depth))
        calls = [arguments(source), arguments(source)]
        counts[compared(text, calls, source.choice(backends))] += 1

    each()
    assert counts.total() >= count
    assert counts["refused"] <= MOST_REFUSED * counts.total(), counts


def test_compiled_is_the_same():
    compare(25, ("interpret", "python"), depth=2)


@pytest.mark.slow
def test_compiled_is_the_same_for_many():
    compare(2000, ("interpret", "python"), depth=3)


@pytest.mark.slow
def test_compiled_with_numba_is_the_same_for_many():
    compare(200, ("numba",), depth=2)
