"""Small programs that were once compiled to something else, against eager Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from script_programs import define, outcome

import minigraph as mg

EQUAL = {
    "an error in one branch, an array that goes on": """
        def f(a, b, xs):
            if a > 3:
                xs *= 1 // 0
            xs[b % 4] = xs[-1] * 2
    """,
    "a list that a loop may return": """
        def f(a, b, xs):
            seen = [0, 1.5]
            while a > 0 and xs[3] > 9:
                return seen
            seen[1] += float(b)
            return seen
    """,
    "a list that is changed where it is returned": """
        def f(a, b, xs):
            seen = {"a": 1.0}
            for x in xs:
                if x > a:
                    seen["a"] += b
                    return seen
                seen["a"] *= 2
            return seen
    """,
    "one of two lists, which stay": """
        def f(a, b, xs):
            s, t = [0, 1], [2, 3]
            if a > 3:
                p = s
            else:
                p = t
            return s, t, p[0] + b
    """,
    "a power of a number that a printing branch gives": """
        def f(a, b, xs):
            if a > 3:
                a = 1
                print(a)
            return 1 ** a & 3
    """,
}
LISTS = {
    "a branch": """
        def f(a, b, xs):
            s, t = [0, 1], [2, 3]
            if a > 3:
                p = s
            else:
                p = t
            p[0] = 9
            return s, t, p
    """,
    "a loop": """
        def f(a, b, xs):
            s, t = [0, 1], [2, 3]
            p, q = s, t
            for turn in range(a):
                p, q = q, p
            p[0] = 9
            return s, t, p
    """,
    "a loop that ends early": """
        def f(a, b, xs):
            s = [0, 1]
            for x in xs:
                if x > 1.5:
                    p = s
                    p[0] += 1
                    break
            else:
                p = [5, 6]
            p[1] += 1
            return p, s
    """,
}


def arguments(a: int) -> tuple[Any, ...]:
    return a, 2, np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("backend", ["interpret", "python"])
@pytest.mark.parametrize("text", EQUAL.values(), ids=EQUAL)
def test_equal(text: str, backend: str):
    function = define(text)
    scripted = mg.script(function, backend=backend)
    for a in (3, 9, 0, 4):
        given, wanted = arguments(a), arguments(a)
        assert outcome(scripted, *given) == outcome(function, *wanted)
        np.testing.assert_array_equal(given[-1], wanted[-1])


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_which_of_two_lists_is_changed_is_not_known(text: str):
    with pytest.raises(mg.MinigraphError, match="p is one of two lists") as caught:
        mg.script(define(text))(*arguments(3))
    assert "take a copy for p" in str(caught.value)
