"""Lists that grow in recorded loops: afterwards they hold what they would hold as plain Python."""

# ruff: noqa: B023  # programs as people write them

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparing import same_as_eager

import minigraph as mg
from minigraph.errors import JoinError, LoopError, UnsupportedError
from minigraph.ir import verify

LONG = np.arange(40.0)
ROWS = np.arange(60.0).reshape(20, 3)
H = np.zeros(3)


def ops_of(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The ops at the top of the graph, without constants."""
    graph = mg.trace(function, *arguments)
    verify(graph)
    return [node.op.name for node in graph.nodes if node.op.name != "const"]


def recurrent(x: Any, h: Any) -> Any:
    outs: list[Any] = []

    def body(t: Any, h: Any) -> Any:
        h = x[t] * 0.5 + h
        outs.append(h)
        return h

    h = mg.for_loop(range(x.shape[0]), body, h)
    return np.stack(outs), h


def all_of_it(x: Any) -> Any:
    outs: list[Any] = []
    mg.for_loop(x, lambda row: outs.append(row * 2))
    total = outs[0] + outs[-1]
    for out in outs:
        total = total + out
    return len(outs), outs, outs[-2], total, outs[3:5]


def several(x: Any) -> Any:
    outs: list[Any] = []

    def body(row: Any) -> None:
        outs.append(row * 2)
        outs.extend([row + 1, row - 1])

    mg.for_loop(x, body)
    return np.array(outs), outs


def pairs(x: Any) -> Any:
    outs: list[Any] = []

    def body(row: Any, total: Any) -> Any:
        outs.append((row + total, {"total": total, "none": None, "seven": 7}))
        return total + row.sum()

    mg.for_loop(x, body, np.float64(0))
    return outs, np.stack([pair[0] for pair in outs])


@dataclasses.dataclass
class Turn:
    """What a turn gives."""

    row: Any
    at: int


def objects(x: Any) -> Any:
    outs: list[Any] = []
    mg.for_loop(enumerate(x), lambda pair: outs.append(Turn(pair[1] * 2, pair[0])))
    return outs


def numbers(x: Any, n: int) -> Any:
    ints: list[Any] = []
    floats: list[Any] = []
    bools: list[Any] = []
    scalars: list[Any] = []

    def body(i: Any) -> None:
        ints.append(i * n)
        floats.append(float(x[i]) / 2)
        bools.append(i % 3 == 0)
        scalars.append(x[i])

    mg.for_loop(range(40), body)
    arrays = [np.array(each) for each in (ints, floats, bools, scalars)]
    return ints, floats, bools, scalars, arrays, sum(ints), max(floats), ints[4] // 3, any(bools)


def after_a_first(x: Any, h: Any) -> Any:
    outs = [h]

    def body(row: Any, h: Any) -> Any:
        outs.append(h + row)
        return h + row

    mg.for_loop(x, body, h)
    outs.append(h - 1)
    return np.stack(outs), len(outs), np.concatenate(outs)


def joined(x: Any) -> Any:
    outs: list[Any] = []
    mg.for_loop(x, lambda row: outs.append(np.stack([row, row + 1])))
    return (
        np.stack(outs, 1),
        np.stack(outs, axis=-1),
        np.concatenate(outs),
        np.concatenate(outs, 1),
        np.vstack(outs),
        np.hstack(outs),
        np.asarray(outs),
        np.stack(outs[::-1]),
        np.stack(outs[1:]),
        np.stack(outs + outs),
    )


def written_later(x: Any) -> Any:
    outs: list[Any] = []
    mg.for_loop(x, lambda row: outs.append(row * 2))
    before = np.stack(outs)
    outs[3] += 1
    outs[4][0] = 7
    last = outs.pop()
    last *= 3
    outs.append(last)
    outs[0] = outs[1]
    outs[0] -= 1
    return before, np.stack(outs), last, len(outs)


def one_array(x: Any) -> Any:
    buffer = np.zeros(3)
    outs: list[Any] = []

    def body(row: Any) -> None:
        buffer[:] = buffer * 0.5 + row
        outs.append(buffer)

    mg.for_loop(x, body)
    buffer += 1
    return np.stack(outs), len(outs)


def nested(x: Any) -> Any:
    outs: list[Any] = []

    def body(i: Any) -> None:
        mg.for_loop(range(25), lambda j: outs.append(x[i] * j))

    mg.for_loop(range(20), body)
    return np.stack(outs), len(outs), outs[7], outs[-1]


def nested_lists(x: Any) -> Any:
    outs: list[Any] = []

    def body(i: Any) -> None:
        inner: list[Any] = []
        mg.for_loop(range(25), lambda j: inner.append(x[i] * j))
        outs.append(np.stack(inner))

    mg.for_loop(range(20), body)
    return np.stack(outs)


def in_both_branches(x: Any) -> Any:
    outs: list[Any] = []

    def body(row: Any) -> None:
        mg.cond(row[0] > 9, lambda: outs.append(row * 2), lambda: outs.append(-row))

    mg.for_loop(x, body)
    return np.stack(outs), outs


def in_the_state(x: Any) -> Any:
    def body(row: Any, outs: Any, total: Any) -> Any:
        outs += [row + total]
        return outs, total + 1

    outs, total = mg.for_loop(x, body, ([], np.float64(0)))
    return np.stack(outs), outs, total


def appended_twice(x: Any) -> Any:
    first: list[Any] = []
    second: list[Any] = []

    def body(row: Any) -> None:
        made = row * 2
        first.append(made)
        second.append(made)

    mg.for_loop(x, body)
    return np.stack(first), np.stack(second)


def of_a_helper(x: Any) -> Any:
    def fill(outs: Any, row: Any) -> None:
        outs.append(row + 1)

    outs: list[Any] = []
    mg.for_loop(x, lambda row: fill(outs, row))
    return np.stack(outs)


def with_a_type_that_settles(x: Any) -> Any:
    outs: list[Any] = []

    def body(v: Any, total: Any) -> Any:
        outs.append(total + v)
        return total + v

    total = mg.for_loop(x, body, 0)
    return np.array(outs), total, len(outs)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (recurrent, (ROWS, H)),
        (recurrent, (ROWS[:5], H)),
        (all_of_it, (ROWS,)),
        (all_of_it, (LONG,)),
        (several, (ROWS,)),
        (several, (LONG,)),
        (pairs, (ROWS,)),
        (objects, (ROWS,)),
        (numbers, (LONG, 3)),
        (after_a_first, (ROWS, H)),
        (joined, (ROWS,)),
        (written_later, (ROWS,)),
        (one_array, (ROWS,)),
        (nested, (ROWS,)),
        (nested_lists, (ROWS,)),
        (in_both_branches, (ROWS,)),
        (in_the_state, (ROWS,)),
        (appended_twice, (ROWS,)),
        (of_a_helper, (ROWS,)),
        (with_a_type_that_settles, (LONG,)),
    ],
)
def test_the_list_afterwards(function: Callable[..., Any], arguments: tuple[Any, ...]):
    same_as_eager(function, *arguments)


def test_stacked_again_it_is_the_stacked_array():
    assert ops_of(recurrent, ROWS, H) == ["scan"]
    assert ops_of(nested_lists, ROWS) == ["scan"]
    assert ops_of(lambda x: in_both_branches(x)[0], ROWS) == ["scan"]
    assert ops_of(lambda x: several(x)[0] * 1, LONG) == ["scan", "reshape", "multiply"]
    assert "slice" not in ops_of(after_a_first, ROWS, H)


def test_nested_it_is_one_array():
    assert ops_of(lambda x: nested(x)[0], ROWS) == ["scan", "reshape"]


def test_gradients():
    def loss(x: Any, h: Any) -> Any:
        outs, h = recurrent(x, h)
        return (outs * outs).sum() + h.sum()

    def unrolled(x: Any, h: Any) -> Any:
        total = h.sum() * 0
        for t in range(x.shape[0]):
            h = x[t] * 0.5 + h
            total = total + (h * h).sum()
        return total + h.sum()

    for found, expected in zip(
        mg.grad(loss, (0, 1))(ROWS, H), mg.grad(unrolled, (0, 1))(ROWS, H), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_number_that_does_not_fit():
    def large(n: int) -> Any:
        outs: list[Any] = []
        mg.for_loop(range(20), lambda i: outs.append(n**i))
        return outs

    assert mg.jit(large)(3) == large(3)
    with pytest.raises(OverflowError):
        mg.jit(large)(1000)


# ---- what is refused --------------------------------------------------------------------------


def message(error: type[Exception], function: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(error) as caught:
        mg.trace(function, *arguments)
    return str(caught.value)


def read_inside(x: Any) -> Any:
    outs = [x[0]]
    mg.for_loop(x, lambda row: outs.append(outs[-1] + row))
    return outs


def asked_inside(x: Any) -> Any:
    outs: list[Any] = []
    mg.for_loop(x, lambda row: outs.append(row * len(outs)))
    return outs


def pushed_inside(x: Any) -> Any:
    outs: list[Any] = []
    mg.for_loop(range(len(x)), lambda i: heapq.heappush(outs, 5))
    return outs


@pytest.mark.parametrize("function", [read_inside, asked_inside, pushed_inside])
def test_it_is_not_read_inside(function: Callable[..., Any]):
    few, many = np.ones((20, 3)), np.ones((300, 3))
    np.testing.assert_array_equal(mg.jit(function)(few), function(few))  # every turn in Python
    text = message(LoopError, function, many)
    assert "outs grows in this loop and is read or changed in it" in text
    assert "keep what the next turn needs in a name of its own" in text


def test_without_a_known_number_of_turns():
    def until(x: Any) -> Any:
        outs: list[Any] = []
        mg.for_loop(x, lambda v, t: outs.append(v) or t + v, 0.0, until=lambda t: t > 9)
        return outs

    def unknown(x: Any) -> Any:
        outs: list[Any] = []
        mg.while_loop(lambda t: t < 9, lambda t: outs.append(t) or t + x[1], x[0])
        return outs

    for function in (until, unknown):
        text = message(LoopError, function, LONG)
        assert "outs is a list of" in text and "at its end" in text
        assert "mg.unroll(items)" in text and "out[i] = y" in text


def test_in_one_branch_only():
    def some(x: Any) -> Any:
        outs: list[Any] = []
        mg.for_loop(x, lambda v: mg.cond(v > 3, lambda: outs.append(v), lambda: None))
        return outs

    text = message(JoinError, some, LONG)
    assert "outs" in text


def test_what_a_later_turn_writes():
    def rows_of_a_buffer(x: Any) -> Any:
        buffer = np.zeros((2, 3))
        outs: list[Any] = []

        def body(row: Any) -> None:
            buffer[0] += row
            outs.append(buffer[0])

        mg.for_loop(x, body)
        return np.stack(outs)

    def carried(x: Any) -> Any:
        outs: list[Any] = []

        def body(row: Any, h: Any) -> Any:
            h *= 0.5
            h = h + row
            outs.append(h)
            return h

        h = mg.for_loop(x, body, np.zeros(3))
        return np.stack(outs), h

    for function in (rows_of_a_buffer, carried):
        text = message(UnsupportedError, function, ROWS)
        assert "outs.append(x.copy())" in text
