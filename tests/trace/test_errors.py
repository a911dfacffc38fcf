"""Each mistake gets its own error, at the user's line, and says what to write."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import errors

X = np.array([1.0, 2.0, 3.0])
RNG = np.random.default_rng(0)
LOG: list[Any] = []
COUNT = 0


class Holder:
    last: Any = None


HOLDER = Holder()


def branch(x: Any) -> Any:
    if x.sum() > 0:  # here
        return x
    return -x


def boolean(x: Any) -> Any:
    return x if x[0] and x[1] else -x  # here


def hashed(x: Any) -> Any:
    return {2.0: 1}[x[0]]  # here


def passed_on(x: Any) -> Any:
    return list(map(float, x))  # here


def listed(x: Any) -> Any:
    return x.tolist()  # here


def count(x: Any) -> Any:
    return [0 for _ in range(x.astype(int)[0])]  # here


def formatted(x: Any) -> Any:
    return f"{x.sum():.3f}"  # here


def no_function(x: Any) -> Any:
    return np.unique(x)  # here


def no_method(x: Any) -> Any:
    return x.tobytes()  # here


def shapes(x: Any) -> Any:
    return x + np.ones(4)  # here


def product(x: Any) -> Any:
    return x @ np.ones((4, 2))  # here


def objects(x: Any) -> Any:
    return np.add(x, "a")  # here


def masked(x: Any) -> Any:
    return x[x > 1]  # here


def appended(x: Any) -> Any:
    LOG.append(x)  # here
    return x


def counted(x: Any) -> Any:
    global COUNT
    COUNT += 1  # here
    return x


def attribute(x: Any) -> Any:
    HOLDER.last = x  # here
    return x


def legacy_random(x: Any) -> Any:
    return x + np.random.normal(size=3)  # here


def unknown_option(x: Any) -> Any:
    return np.sum(x, like=x, axiss=0)  # here


CASES = {
    branch: (errors.BranchError, "np.where"),
    boolean: (errors.BranchError, "np.where"),
    hashed: (errors.ConcreteValueError, "graph"),
    passed_on: (errors.ConcreteValueError, "graph"),
    listed: (errors.ConcreteValueError, "graph"),
    count: (errors.ConcreteValueError, "graph"),
    formatted: (errors.ConcreteValueError, "print"),
    no_function: (errors.UnsupportedError, "unique"),
    no_method: (errors.UnsupportedError, "tobytes"),
    shapes: (errors.ShapeError, "(3,) and (4,)"),
    product: (errors.ShapeError, "3"),
    objects: (errors.DtypeError, "str"),
    masked: (errors.UnsupportedError, "np.where"),
    appended: (errors.StateError, "LOG"),
    counted: (errors.StateError, "COUNT"),
    attribute: (errors.StateError, "HOLDER.last"),
    legacy_random: (errors.RandomnessError, "default_rng"),
    unknown_option: (errors.UnsupportedError, "sum"),
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_error_names_the_line_and_the_remedy(function: Any) -> None:
    kind, text = CASES[function]
    with pytest.raises(kind) as caught:
        mg.jit(function)(X)
    error = caught.value
    assert text in str(error)
    assert error.where is not None and error.where.file == __file__
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert "# here" in lines[error.where.line - 1], lines[error.where.line - 1]
    assert error.code in errors.pages() and f"explain {error.code}" in str(error)


def test_nothing_of_the_users_was_changed() -> None:
    for function in (appended, counted, attribute):
        with pytest.raises(errors.StateError):
            mg.jit(function)(X)
    assert LOG == [] and COUNT == 0 and HOLDER.last is None


def test_nonlocal_and_argument_containers() -> None:
    total = 0

    def outer(x: Any) -> Any:
        nonlocal total
        total += 1
        return x

    with pytest.raises(errors.StateError, match="total"):
        mg.jit(outer)(X)
    assert total == 0

    def push(x: Any, items: Any) -> Any:
        items.append(x)
        return x

    with pytest.raises(errors.StateError, match="items"):
        mg.jit(push)(X, [])

    def put(x: Any, table: Any) -> Any:
        table["y"] = x
        return x

    with pytest.raises(errors.StateError, match="table"):
        mg.jit(put)(X, {"x": 1.0})


def test_an_escaped_tracer_says_so() -> None:
    class Meta(type):
        pass

    class Box(metaclass=Meta):  # left as it is while tracing, so it can carry a value out
        __slots__ = ("value",)

    box = Box()

    def f(x: Any) -> Any:
        box.value = x * 2
        return x

    mg.jit(f)(X)
    with pytest.raises(errors.TracerLeakError, match="after its trace had ended") as caught:
        _ = box.value + 1
    assert caught.value.where is not None and caught.value.where.file == __file__
    assert "return the value" in str(caught.value)


def test_hidden_randomness_is_found_after_tracing() -> None:
    with pytest.raises(errors.RandomnessError, match="module random"):
        mg.jit(lambda x: x * random.random())(X)

    class Meta(type):
        pass

    class Hidden(metaclass=Meta):  # neither a twin nor compared: what it holds is not seen
        __slots__ = ("rng",)

    hidden = Hidden()
    hidden.rng = RNG

    def f(x: Any) -> Any:
        return x + RNG.normal() + hidden.rng.normal(size=3)

    with pytest.raises(errors.RandomnessError, match="RNG"):
        mg.jit(f)(X)


def test_what_another_thread_draws_is_no_error() -> None:
    traced = 0

    class Meta(type):
        pass

    class Opaque(metaclass=Meta):
        __slots__ = ()

        def __len__(self) -> int:  # runs as it is, while tracing
            nonlocal traced
            traced += 1
            if traced == 1:
                thread = threading.Thread(target=np.random.uniform)
                thread.start()
                thread.join()
            return 3

    opaque = Opaque()
    np.testing.assert_array_equal(mg.jit(lambda x: x * len(opaque))(X), X * 3)
    assert traced == 2


def test_a_bound_method_of_a_generator_is_recorded() -> None:
    rng, reference = np.random.default_rng(5), np.random.default_rng(5)
    draw = rng.normal
    jitted = mg.jit(lambda x: x + draw(size=3))
    for _ in range(2):
        np.testing.assert_array_equal(jitted(X), X + reference.normal(size=3))


def test_named_length_cannot_be_iterated() -> None:
    def f(x: Any) -> Any:
        return [row * 2 for row in x]

    with pytest.raises(errors.IterationError, match="batch"):
        mg.trace(f, mg.Spec(("batch", 2), "float32"))


def test_ambiguous_truth_is_numpys_own_error() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        mg.jit(lambda x: 1 if x > 0 else 2)(X)


def test_options_are_checked_with_a_suggestion() -> None:
    with pytest.raises(errors.OptionError, match="backend"):
        mg.jit(branch, backnd="python")
    with pytest.raises(errors.OptionError, match="python"):
        mg.jit(branch, backend="pyhton")
    with pytest.raises(errors.OptionError, match="cse"):
        mg.jit(shapes, passes=("csee",))(np.ones(4))
    with pytest.raises(errors.OptionError, match="y"):
        mg.jit(shapes, static=("y",))(X)
    with pytest.raises(errors.OptionError):
        mg.jit(3)


def test_dtypes_that_cannot_be() -> None:
    for bad in (np.array(["a"]), np.array([None]), np.array(["2020-01-01"], "M8[D]")):
        with pytest.raises(errors.DtypeError):
            mg.jit(lambda x: x)(bad)
    with pytest.raises(errors.DtypeError, match="matrix"):
        mg.jit(lambda x: x)(np.matrix([[1.0]]))


def test_an_exception_of_the_user_is_the_users() -> None:
    class MyError(Exception):
        pass

    def f(x: Any) -> Any:
        raise MyError("mine")

    with pytest.raises(MyError, match="mine"):
        mg.jit(f)(X)


def test_a_runtime_error_names_the_users_line() -> None:
    def f(x: Any, i: Any) -> Any:
        y = np.take(x, i)
        return y * 2

    jitted = mg.jit(f)
    jitted(X, np.array([0, 1]))
    with pytest.raises(IndexError) as caught:
        jitted(X, np.array([0, 7]))
    notes = "\n".join(caught.value.__notes__)
    assert "test_errors.py" in notes and "np.take(x, i)" in notes and "f64[3]" in notes


def test_what_numpy_refuses_is_not_computed() -> None:
    for function in (
        lambda x: np.diff(x, prepend=None),
        lambda x: np.clip(None, 0, 1),
        lambda x: np.divmod(x, 2, out=(x, x)),
        lambda x: np.nan_to_num(x, nan=1j),
    ):
        with pytest.raises((TypeError, errors.MinigraphError)):
            mg.jit(function)(X.copy())
