"""`mg.to_code`: what it shows, and that what it shows does what the function did."""

# ruff: noqa: E501  # what is shown is as wide as it is

from __future__ import annotations

import re
import textwrap
from typing import Any

import numpy as np
import pytest
from script_programs import define, outcome

import minigraph as mg

SHOWN: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "a branch that returns takes the rest into the other one": (
        """\
        def f(x):
            if x > 0:
                return x
            y = x * 2
            return y
        """,
        """\
        def f(x):                                   # line 1
            def then():                             # line 2
                return x                            # line 3
            def otherwise():                        # line 2
                y = x * 2                           # line 4
                return y                            # line 5
            return mg.cond(x > 0, then, otherwise)  # line 2
        """,
        [(1,), (-1,)],
    ),
    "what a branch binds and is read later": (
        """\
        def f(x, y):
            if x > y:
                t = x
                x = y
                y = t
            elif x == y:
                y = 0
            return x, y
        """,
        """\
        def f(x, y):                                          # line 1
            def then(x, y):                                   # line 2
                t = x                                         # line 3
                x = y                                         # line 4
                y = t                                         # line 5
                return (x, y)                                 # line 5
            def otherwise(x, y):                              # line 2
                def then_2(y):                                # line 6
                    y = 0                                     # line 7
                    return y                                  # line 7
                def otherwise_2(y):                           # line 6
                    return y                                  # line 6
                y = mg.cond(x == y, then_2, otherwise_2, y)   # line 6
                return (x, y)                                 # line 6
            x, y = mg.cond(x > y, then, otherwise, x, y)      # line 2
            return (x, y)                                     # line 8
        """,
        [(1, 2), (2, 1), (2, 2)],
    ),
    "a while": (
        """\
        def f(n):
            turns = 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                turns += 1
            return turns
        """,
        """\
        def f(n):                                             # line 1
            turns = 0                                         # line 2
            def test(n, turns):                               # line 3
                return n != 1                                 # line 3
            def body(n, turns):                               # line 3
                n = n // 2 if n % 2 == 0 else 3 * n + 1       # line 4
                turns += 1                                    # line 5
                return (n, turns)                             # line 5
            n, turns = mg.while_loop(test, body, (n, turns))  # line 3
            return turns                                      # line 6
        """,
        [(1,), (7,)],
    ),
    "a for with break and else": (
        """\
        def f(xs):
            for x in xs:
                if x < 0:
                    break
            else:
                x = 100
            return x
        """,
        """\
        def f(xs):                                           # line 1
            stopped = False                                  # line 2
            def body(item, x, stopped):                      # line 2
                x = item                                     # line 2
                def then(stopped):                           # line 3
                    stopped = True                           # line 4
                    return stopped                           # line 4
                def otherwise(stopped):                      # line 3
                    return stopped                           # line 3
                stopped = mg.cond(x < 0, then, otherwise, stopped)  # line 3
                return (x, stopped)                          # line 3
            x, stopped = mg.for_loop(xs, body, (None, stopped), until=lambda x, stopped: stopped)  # line 2
            def then_2(x):                                   # line 2
                x = 100                                      # line 6
                return x                                     # line 6
            def otherwise_2(x):                              # line 2
                return x                                     # line 2
            x = mg.cond(not stopped, then_2, otherwise_2, x)  # line 2
            return x                                         # line 7
        """,
        [([1, -2, 3],), ([1, 2],), ([],)],
    ),
    "a return in a loop": (
        """\
        def f(xs, low):
            for at, x in enumerate(xs):
                if x > low:
                    return at
            return -1
        """,
        """\
        def f(xs, low):                              # line 1
            returned = False                         # line 2
            def body(item, returned, result):        # line 2
                at, x = item                         # line 2
                def then(returned, result):          # line 3
                    result = at                      # line 4
                    returned = True                  # line 4
                    return (returned, result)        # line 4
                def otherwise(returned, result):     # line 3
                    return (returned, result)        # line 3
                returned, result = mg.cond(x > low, then, otherwise, returned, result)  # line 3
                return (returned, result)            # line 3
            returned, result = mg.for_loop(enumerate(xs), body, (returned, None), until=lambda returned, result: returned)  # line 2
            def then_2():                            # line 2
                return result                        # line 2
            def otherwise_2():                       # line 2
                return -1                            # line 5
            return mg.cond(returned, then_2, otherwise_2)  # line 2
        """,
        [([1, 5, 9], 3), ([1], 3), ([], 0)],
    ),
    "a variable that a function made by the user reads": (
        """\
        def f(x):
            made = []
            for i in range(3):
                made.append(lambda: x * i)
            return made[0](), made[2]()
        """,
        """\
        def f(x):                                     # line 1
            made = []                                 # line 2
            def body(item, i_now):                    # line 3
                nonlocal i                            # line 3
                i = i_now                             # line 3
                i = item                              # line 3
                made.append(lambda: x * i)            # line 4
                return i                              # line 4
            i = mg.for_loop(range(3), body, None)     # line 3
            return (made[0](), made[2]())             # line 5
        """,
        [(3,)],
    ),
    "a name that one branch alone assigns": (
        """\
        def f(x):
            if x > 0:
                y = x
            return y
        """,
        """\
        def f(x):                                # line 1
            def then():                          # line 2
                y = x                            # line 3
                return y                         # line 3
            def otherwise():                     # line 2
                return mg.undefined('y')         # line 2
            y = mg.cond(x > 0, then, otherwise)  # line 2
            return y                             # line 4
        """,
        [(1,)],
    ),
    "a match on plain values": (
        """\
        def f(kind, x):
            match kind:
                case "double" | "twice":
                    x = x * 2
                case None:
                    return 0
            return x
        """,
        """\
        def f(kind, x):                                                         # line 1
            returned = False                                                    # line 3
            def then(x, returned):                                              # line 3
                x = x * 2                                                       # line 4
                return (x, returned, None)                                      # line 4
            def otherwise(x, returned):                                         # line 3
                def then_2(returned):                                           # line 5
                    result = 0                                                  # line 6
                    returned = True                                             # line 6
                    return (returned, result)                                   # line 6
                def otherwise_2(returned):                                      # line 5
                    return (returned, None)                                     # line 5
                returned, result = mg.cond(kind is None, then_2, otherwise_2, returned)  # line 5
                return (x, returned, result)                                    # line 5
            x, returned, result = mg.cond(kind == 'double' or kind == 'twice', then, otherwise, x, returned)  # line 3
            def then_3():                                                       # line 3
                return result                                                   # line 3
            def otherwise_3():                                                  # line 3
                return x                                                        # line 7
            return mg.cond(returned, then_3, otherwise_3)                       # line 3
        """,
        [("double", 3), ("twice", 4), (None, 5), ("other", 6)],
    ),
}


def _bare(text: str) -> list[str]:
    """The lines, with their comments close to them."""
    return [re.sub(r" +#", "  #", line) for line in text.splitlines()]


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown(name: str):
    text, shown, _ = SHOWN[name]
    found = mg.to_code(define(text))
    assert _bare(found) == _bare(textwrap.dedent(shown)), found
    for line in found.splitlines():
        assert "  # line " in line


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_runs(name: str):
    text, _, calls = SHOWN[name]
    function = define(text)
    namespace: dict[str, Any] = {"mg": mg, "np": np}
    exec(mg.to_code(function), namespace)
    for arguments in calls:
        assert outcome(namespace["f"], *arguments) == outcome(function, *arguments)


def test_the_lines_are_those_of_the_file():
    def function(x: Any) -> Any:
        if x > 0:
            x = -x
        return x

    first = function.__code__.co_firstlineno
    lines = [int(line.rpartition(" ")[2]) for line in mg.to_code(function).splitlines()]
    assert (
        lines[0] == first
        and lines[-1] == first + 3
        and sorted(set(lines)) == [first + at for at in range(4)]
    )


def test_code_of_scripted_functions_and_methods():
    class Holder:
        def method(self, x: Any) -> Any:
            return x if x > 0 else -x

    shown = mg.to_code(Holder().method)
    assert "return x if x > 0 else -x" in shown
    assert mg.to_code(mg.script(Holder().method)) == shown
    assert mg.script(Holder().method).code == shown


def test_a_name_that_is_bound_only_where_no_way_leads_stays_local():
    def function(a):
        read = lambda: unbound  # noqa: E731  # pyright: ignore
        return read()
        unbound = a

    assert "unbound: None" in mg.to_code(function)
    with pytest.raises(NameError, match="free variable"):
        mg.script(function)(1)
