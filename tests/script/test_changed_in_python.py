"""What a branch changes in Python's own containers and objects happens in that branch only."""

from __future__ import annotations

import array
import collections
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigraph as mg


class Listed(list[Any]):
    """A list with a variable of its own."""

    tag = 0.0

    def __setitem__(self, at: Any, thing: Any) -> None:
        self.tag += 1
        super().__setitem__(at, thing)


class Named(dict[str, Any]):
    pass


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self) -> None:
        self.first = 1


def listed(x):
    items = Listed([1.0, 2.0])
    if x > 0:
        items[0] = 5.0
        items[1] = 3.0
    else:
        items[0] = 7.0
    return x * items[0] + items.tag


def named(x):
    items = Named(a=1.0)
    if x > 0:
        items["a"] = 5.0
    return x * items["a"]


def named_in_a_loop(x):
    items = Named(a=1)
    while items["a"] < x:
        items["a"] *= 2
    return items["a"]


def numbers(x):
    letters, floats = bytearray(3), array.array("d", [1.0])
    if x > 0:
        letters[0], floats[0] = 5, 4.0
    return x * letters[0] + floats[0]


def numbers_around_a_loop(x):
    floats, total = array.array("d", [1.5, 2.5]), 0.0
    while total < x:
        total += floats[0]
    return total, floats[1]


def user_list(x):
    items = collections.UserList([1.0, 2.0])
    if x > 0:
        items[0] = 3.0
    return items[0]


def bound_append(x):
    out: list[Any] = []
    add = out.append
    if x > 0:
        add(1)
    else:
        add(2)
    return out


def bound_update(x):
    held: dict[str, Any] = {}
    update = held.update
    if x > 0:
        update(a=1)
    else:
        update(a=2)
    return held["a"]


def bound_store(x):
    out = [1]
    store = functools.partial(out.__setitem__, 0)
    if x > 0:
        store(5)
    return out


def slots(x):
    thing = Slotted()
    if x > 0:
        thing.first = 2
        thing.second = 3
    else:
        thing.second = 4
    return thing.first + thing.second


def slots_in_a_loop(x):
    thing = Slotted()
    while thing.first < x:
        thing.first *= 2
    return thing.first


@pytest.mark.parametrize(
    "function",
    [
        listed,
        named,
        named_in_a_loop,
        numbers,
        numbers_around_a_loop,
        user_list,
        bound_append,
        bound_update,
        bound_store,
        slots,
        slots_in_a_loop,
    ],
)
def test_equal_to_eager(function: Callable[[float], Any]):
    scripted = mg.script(function)
    for x in (3.0, -3.0, 50.0):
        assert scripted(x) == function(x)


def test_methods_of_what_a_call_is_given():
    held = np.zeros(1)

    def branch(x):
        out: list[Any] = []
        mg.cond(x[0] > 0, functools.partial(out.append, 1), functools.partial(out.append, 2))
        return out, x + held

    for first in (1.0, -1.0):
        x = np.array([first])
        assert mg.jit(branch)(x)[0] == branch(x)[0]
