"""What control flow cannot record: the messages show both places and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import (
    IterationError,
    JoinError,
    LoopError,
    MinigraphError,
    ShapeError,
    SignatureError,
    UndefinedError,
    UnsupportedError,
    WriteError,
)

X = np.arange(3.0)
LONG = np.arange(40.0)


def message(kind: type[MinigraphError], function: Callable[..., Any], *arguments: Any) -> str:
    """The text of the error, without folders."""
    with pytest.raises(kind) as caught:
        mg.trace(function, *arguments)
    assert type(caught.value) is kind
    folder = __file__.removesuffix("test_control_errors.py")
    return str(caught.value).replace(folder, "")


def two_types(x: Any) -> Any:
    def then() -> Any:
        y = x * 2
        return y

    def otherwise() -> Any:
        y = 0
        return y

    return mg.cond(x[0] > 1, then, otherwise, names=("y",))


def test_two_types_after_two_branches():
    line = two_types.__code__.co_firstlineno
    text = message(JoinError, two_types, X)
    assert text.splitlines()[:4] == [
        "[MG031] y is f64[3] after one branch and int after the other",
        f"  then:       f64[3]  test_control_errors.py:{line + 2}  y = x * 2",
        f"  otherwise:  int     test_control_errors.py:{line + 6}  y = 0",
        f"  where:   test_control_errors.py:{line + 9}",
    ]
    assert "instead: the same type, dtype and shape after both" in text


@pytest.mark.parametrize(
    ("then", "otherwise", "what"),
    [
        (lambda x: 1, lambda x: 1.0, "int after one branch and float"),
        (lambda x: x[0], lambda x: 1.0, "np.float64 after one branch and float"),
        (lambda x: x, lambda x: x[1:] * 1, "f64[3] after one branch and f64[2]"),
        (lambda x: "a", lambda x: "b", "'a' after one branch and 'b'"),
        (lambda x: None, lambda x: x, "None after one branch and f64[3]"),
        (lambda x: (x, x), lambda x: (x, x, x), "tuple of 2 after one branch and tuple of 3"),
        (lambda x: [x, x], lambda x: (x, x), "list of 2 after one branch and tuple of 2"),
        (np.sum, np.max, ""),
    ],
)
def test_things_that_do_not_meet(
    then: Callable[..., Any], otherwise: Callable[..., Any], what: str
):
    def f(x: Any) -> Any:
        return mg.cond(x[0] > 1, then, otherwise, x)

    if what:
        assert what in message(JoinError, f, X)
    else:
        mg.trace(f, X)


def grows(x: Any) -> Any:
    return mg.while_loop(lambda t: t < x[0], lambda t: t + x[1], 0, names=("total",))


def test_a_type_that_changes_from_turn_to_turn():
    line = grows.__code__.co_firstlineno + 1
    text = message(LoopError, grows, X)
    assert text.startswith(
        "[MG033] total is int at the beginning of a turn and np.float64 at its end\n"
        "  before the loop:  int\n"
        f"  after a turn:     np.float64  test_control_errors.py:{line}  return mg.while_loop("
    )
    assert "instead: total = np.float64(0) before the loop" in text.replace("0.0", "0")


def longer(x: Any) -> Any:
    return mg.while_loop(lambda t: t.sum() < 9, lambda t: np.append(t, 1.0), x, names=("t",))


def test_a_shape_that_changes_from_turn_to_turn():
    text = message(LoopError, longer, X)
    assert "t is f64[3] at the beginning of a turn and f64[4] at its end" in text
    assert "instead: begin with a f64[4], or write into a part of a larger array" in text


def appending(x: Any) -> Any:
    found: list[Any] = []
    mg.for_loop(x, lambda v, t: found.append(v) or t + v, 0.0, until=lambda t: t > 9)
    return found


def test_a_list_that_grows():
    text = message(LoopError, appending, LONG)
    assert "found is a list of 1 at the beginning of a turn and a list of 2 at its end" in text
    assert "mg.unroll(items)" in text


def one_appends(x: Any) -> Any:
    found: list[Any] = []
    mg.cond(x[0] > 0, lambda: found.append(x), lambda: None)
    return found


def test_a_list_that_one_branch_changes():
    text = message(JoinError, one_appends, X)
    assert "found holds different things after the two branches" in text
    assert "then:       list of 1" in text and "otherwise:  list of 0" in text


def keeps_what_is_inside(x: Any) -> Any:
    found = {}

    class Box:
        __slots__ = ("thing",)

    box = Box()

    def then() -> Any:
        box.thing = x * 2
        return 1

    mg.cond(x[0] > 0, then, lambda: 2)
    return box.thing, found


def test_a_value_from_inside():
    text = message(UnsupportedError, keeps_what_is_inside, X)
    assert "computed inside of a recorded branch or loop is used outside of it" in text
    assert "instead: return it from the function of the branch" in text


def one_is_another_name(x: Any) -> Any:
    y = x * 1
    z = mg.cond(x[0] > 0, lambda: y, lambda: y * 2)
    z[0] = 7
    return y


def test_arrays_that_may_share_memory():
    text = message(UnsupportedError, one_is_another_name, X)
    assert "another array was written that may share its memory" in text
    assert "instead: take a .copy() of the array before" in text


def writes_into_an_argument_or_not(m: Any) -> Any:
    last = mg.for_loop(m, lambda row, last: row, m[0])
    last[0] = 100
    return m


def test_an_argument_that_may_be_written():
    text = message(WriteError, writes_into_an_argument_or_not, np.ones((20, 3)))
    assert "whether an argument is written" in text


def test_an_iterator_from_outside():
    def f(x: Any) -> Any:
        items = iter([1, 2, 3])
        return mg.for_loop(x, lambda v, t: t + v * next(items), np.float64(0))

    assert "items is an iterator" in message(UnsupportedError, f, LONG)


def test_an_iterator_that_goes_on_inside():
    def f(x: Any) -> Any:
        pairs = enumerate(x)

        def body(v: Any, total: Any) -> Any:
            return mg.for_loop(pairs, lambda pair, t: t + pair[1], total)

        return mg.for_loop(x, body, np.float64(0))

    assert "an iterator goes on inside" in message(UnsupportedError, f, LONG)


def test_names_that_are_not_assigned():
    def f(x: Any) -> Any:
        (y,) = mg.cond(
            x[0] > 0, lambda y: (x * 2,), lambda y: (y,), mg.undefined("y"), names=("y",)
        )
        return y + 1

    text = message(UndefinedError, f, X)
    assert "y" in text and "is used, and not assigned on every way to this line" in text
    assert "y[0] is assigned" in text or "y is assigned" in text


def test_a_loop_of_unknown_length_in_python():
    def f(x: Any) -> Any:
        def body(i: Any, total: Any) -> Any:
            for j in reversed(range(i)):
                total = total + j
            return total

        return mg.for_loop(range(40), body, 0)

    assert "cannot be unrolled" in message(IterationError, f, X)


def test_wrong_signatures():
    assert "has 2 parts" in message(
        SignatureError, lambda x: mg.while_loop(lambda a, b: a < b, lambda a, b: a, (x[0], 1)), X
    )
    assert "returns (next carry, y)" in message(
        SignatureError, lambda x: mg.scan(lambda c, v: c, 0, x), X
    )
    assert "a scan over nothing" in message(
        SignatureError, lambda x: mg.scan(lambda c, v: (c, v), 0), X
    )
    assert "first axes of 3, 2" in message(
        ShapeError, lambda x: mg.scan(lambda c, v: (c, v[0]), 0, (x, x[1:])), X
    )
    with pytest.raises(SignatureError, match="without branches"):
        mg.switch(0, [])


def test_a_handler_around_a_branch_that_raises():
    def f(x: Any) -> Any:
        def fail() -> Any:
            raise ValueError("negative")

        try:
            return mg.cond(x[0] < 0, fail, lambda: x)
        except ValueError:
            return -x

    assert "the handler around is not recorded" in message(UnsupportedError, f, X)


def test_an_exception_that_programs_do_not_raise():
    class OwnError(Exception):
        pass

    def f(x: Any) -> Any:
        def fail() -> Any:
            raise OwnError("own")

        return mg.cond(x[0] < 0, fail, lambda: x)

    assert "OwnError is raised on some ways only" in message(UnsupportedError, f, X)


# ---- what control flow is given ----------------------------------------------------------------


def step(carry: Any, x: Any) -> Any:
    return carry + x, carry


NUMBER: Any = 4.0
GIVEN: dict[str, Callable[[Any], Any]] = {
    "mg.cond takes a function here, not an ndarray": lambda x: mg.cond(x[0] > 1, x * 2, -x),
    "mg.scan takes a function here, not a float": lambda x: mg.scan(NUMBER, step, x),
    "mg.for_loop takes a function here, not a float": lambda x: mg.for_loop(x, NUMBER, 0),
    "mg.fori_loop takes a function here, not an ndarray": lambda x: mg.fori_loop(0, 3, x, 1),
    "mg.foreach takes a function here, not an ndarray": lambda x: mg.foreach(x, step, 0.0),
    "mg.while_loop takes a function here, not a float": lambda x: mg.while_loop(NUMBER, step, x),
    "the body returns an int, and the state has 2 parts": lambda x: mg.while_loop(
        lambda i, s: i <= x.sum(), lambda i, s: s, (0, 0)
    ),
    "a scan applies returns (next carry, y), not a float64": lambda x: mg.scan(
        lambda c, v: v, x[0], x
    ),
    "has a first axis, and a float has none": lambda x: mg.scan(step, 0.0, [1.0, 2.0, 3.0]),
    "has a first axis, and an int has none": lambda x: mg.scan(step, 0.0, 5),
    "length=-3 is no number of turns": lambda x: mg.scan(step, 0.0, length=-3),
    "length=2.5 is no number of turns": lambda x: mg.scan(step, 0.0, length=NUMBER - 1.5),
    "max_iter=-3 is no number of turns": lambda x: mg.while_loop(
        lambda a: a.sum() < 3, lambda a: a + 1, x, max_iter=-3
    ),
    "the state is a list, which is one part": lambda x: mg.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, s), [0, 0]
    ),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("fact", GIVEN)
def test_what_is_given_is_checked_in_python_and_in_traces(fact: str, traced: bool):
    function = mg.jit(GIVEN[fact]) if traced else GIVEN[fact]
    with pytest.raises(MinigraphError) as caught:
        function(X)
    assert fact in caught.value.fact
    assert caught.value.instead


@pytest.mark.parametrize("around", [mg.jit, lambda function: function])
def test_a_condition_for_each_element_is_told_about_where(around: Any):
    def branch(x: Any) -> Any:
        return mg.cond(x > 3, lambda: 1, lambda: 2)

    def loop(x: Any) -> Any:
        return mg.while_loop(lambda y: y < 9, lambda y: y + 1, x)

    for function in branch, loop:
        with pytest.raises(ShapeError) as caught:
            around(function)(X)
        assert caught.value.fact == "the truth value of a test of shape (3,) is ambiguous"
        assert caught.value.instead.startswith("test.all() or test.any(); np.where(")
        assert caught.value.where is not None
        first = function.__code__.co_firstlineno
        assert first < caught.value.where.line <= first + 1


@pytest.mark.parametrize("around", [mg.jit, lambda function: function])
def test_a_body_that_returns_no_tuple_is_shown_one(around: Any):
    with pytest.raises(SignatureError) as caught:
        around(lambda x: mg.while_loop(lambda i: i < x[2], lambda i: i + 1, (0,)))(X)
    assert caught.value.fact == "the body returns an int, and the state has 1 part"
    assert caught.value.instead.startswith("return (i + n,)")


def test_a_body_that_changes_the_type():
    def f(x: Any) -> Any:
        return mg.while_loop(lambda i: i < x[2], lambda i: (i + 0.5,), (0,))

    assert "is int at the beginning of a turn and float at its end" in message(LoopError, f, X)
