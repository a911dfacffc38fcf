"""`mg.trace(check=True)`: a graph against the function that it was recorded from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import CheckError, OptionError
from minigraph.tracing import _Check

X = np.array([0.5, -1.0, 2.0])


def test_a_graph_that_holds_is_returned(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, scale: float, *, power: int = 2) -> Any:
        print("sum", x.sum())
        x[0] = 1.0
        return np.tanh(x) * scale, {"power": x**power}

    given = X.copy()
    graph = mg.trace(f, given, 2.0, check=True, power=3)
    assert graph == mg.trace(f, given, 2.0, power=3)
    assert given.tolist() == X.tolist()
    assert capsys.readouterr().out == ""


def test_what_raises_eagerly_has_to_raise() -> None:
    def f(x: Any, at: Any) -> Any:
        return x[at]

    assert mg.trace(f, X, np.array([0, 2]), check=True, check_inputs=[(X, np.array([0, 7]))])


def test_a_condition_that_does_not_hold_for_others_is_an_error() -> None:
    def f(x: Any, rate: float) -> Any:
        return x * rate if rate > 0 else x

    with pytest.raises(CheckError, match="on negated arguments the graph does not hold: .*rate"):
        mg.trace(f, X, 2.0, check=True)


def test_check_inputs_of_another_shape_are_an_error() -> None:
    with pytest.raises(CheckError, match="on check_inputs the graph does not hold"):
        mg.trace(lambda x: x + 1, X, check=True, check_inputs=[(np.ones(4),)])


@pytest.mark.parametrize(
    ("given", "text"),
    [(X, "check_inputs.0. is of type ndarray"), ((X, X), "too many positional arguments")],
    ids=["no tuple", "too many"],
)
def test_check_inputs_that_are_no_arguments_are_an_error(given: Any, text: str) -> None:
    with pytest.raises(OptionError, match=text) as caught:
        mg.trace(lambda x: x + 1, X, check=True, check_inputs=[given])
    assert "check_inputs=[(x,), (y,)]" in str(caught.value)


class Hidden:
    """Counts where no trace can see it."""

    __slots__ = ("turns",)
    __module__ = "numpy"  # as a class of an installed package

    def __init__(self) -> None:
        self.turns = iter(range(1, 100))

    def __float__(self) -> float:
        return float(next(self.turns))


def test_what_no_trace_can_see_is_found() -> None:
    hidden = Hidden()

    def f(x: Any) -> Any:
        return np.exp(x) * float(hidden)

    with pytest.raises(CheckError) as caught:
        mg.trace(f, X, check=True)
    assert "on these arguments the function returned: array(" in str(caught.value)
    assert "np.exp(x) * float(hidden)" in str(caught.value)


def test_a_wrong_print_is_found() -> None:
    hidden = Hidden()

    def f(x: Any) -> Any:
        print(float(hidden))
        return x

    with pytest.raises(CheckError, match="the function printed: '2.0"):
        mg.trace(f, X, check=True)


def test_a_spec_has_no_numbers() -> None:
    with pytest.raises(OptionError, match="a Spec has no numbers"):
        mg.trace(lambda x: x, mg.Spec((3,), "float64"), check=True)


def test_eager_arrays_are_checked_too() -> None:
    assert mg.trace(lambda x: x * 2, mg.array(X), check=True)


def test_numbers_may_differ_by_rounding_only() -> None:
    assert mg.trace(lambda x: (x @ x, x.mean(), x.astype("f4") / 3), X, check=True)


def test_another_dtype_is_found() -> None:
    checked = _Check.__new__(_Check)
    checked.rtol = 1e-5
    for a, b in (
        (np.ones(2, "f4"), np.ones(2)),
        (1, 1.0),
        (1.0, np.float64(1.0)),
        (10**30, 10**29),
    ):
        assert checked._are_close(a, a) and not checked._are_close(a, b)
    assert checked._are_close(np.array([np.nan, 1.0, np.inf]), np.array([np.nan, 1.000001, np.inf]))
    assert not checked._are_close(np.float64(1e-9), np.float64(2e-9))
