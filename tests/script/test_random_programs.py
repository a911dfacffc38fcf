"""Random control flow: converted functions, run as plain Python, do what the originals do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from script_programs import as_python, define, outcome, programs

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


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), ARGUMENTS)
def test_converted_is_the_same(text: str, arguments: list[tuple[int, int]]):
    check(text, arguments)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(programs(numbers=True), ARGUMENTS)
def test_scripted_is_the_same_or_an_error(text: str, arguments: list[tuple[int, int]]):
    check_scripted(text, arguments)


@pytest.mark.slow
@settings(max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
@given(programs(numbers=True), ARGUMENTS)
def test_scripted_is_the_same_or_an_error_for_many(text: str, arguments: list[tuple[int, int]]):
    check_scripted(text, arguments)


@pytest.mark.slow
@settings(max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
@given(programs(), ARGUMENTS)
def test_converted_is_the_same_for_many(text: str, arguments: list[tuple[int, int]]):
    check(text, arguments)
