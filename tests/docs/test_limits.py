"""What tracing cannot see, and what differs: one test for each item of that list in the README.

Each shows eager NumPy and the compiled function side by side.  Where one of these begins to fail
because the two agree, that is good news: the item goes.
"""

from __future__ import annotations

import array
import contextlib
import enum
import functools
import math
import os
import pprint
import re
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs.pages import page

import minigraph as mg
from minigraph import autograd, nn
from minigraph.errors import (
    BranchError,
    ChildError,
    ConcreteValueError,
    DtypeError,
    RecordError,
    UnsupportedError,
)

X = np.arange(3.0)


def both(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function as it is, and compiled."""
    return function, mg.jit(function)


OF_THE_LIMITS = (
    "test_numbers_of_traced_arrays",
    "test_how_arrays_are_printed",
    "test_branches_in_hybridized_blocks",
    "test_plain_blocks_in_hybrid_ones",
    "test_gradients_of_complex_numbers",
    "test_gradients_of_gradients",
    "test_exported_networks_predict",
    "test_ndarrays_given_to_blocks_that_run_in_python",
)


def test_every_item_has_a_test():
    start, end = "## What tracing cannot see", "## Limits"
    section = page("README.md").partition(start)[2].partition(end)[0]
    items = re.findall(r"^- \*\*(.*?)\.\*\*", section, re.MULTILINE)
    assert len(items) == section.count("\n- ") and items
    named = {"test_" + re.sub(r"\W+", "_", item.lower()) for item in items}
    tests = {name for name in globals() if name.startswith("test_")}
    assert tests == named | {"test_every_item_has_a_test", *OF_THE_LIMITS}


# ---- Python that is not yours ----------------------------------------------------------------


def test_values_that_other_code_reads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RATE", "2")
    eager, compiled = both(lambda x: x * float(os.environ["RATE"]))
    assert compiled(X)[1] == 2
    monkeypatch.setenv("RATE", "3")
    assert (eager(X)[1], compiled(X)[1]) == (3, 2)

    eager, compiled = both(lambda x: x + time.perf_counter_ns())
    assert eager(0) != eager(0) and compiled(0) == compiled(0)

    # What the function itself reads by name is noticed.
    rates = {"fast": [2.0]}
    compiled = mg.jit(lambda x: x * rates["fast"][0])
    assert compiled(X)[1] == 2
    rates["fast"][0] = 3.0
    assert compiled(X)[1] == 3


def test_effects_of_other_code(capsys: pytest.CaptureFixture[str]):
    def noisy(x: Any) -> Any:
        pprint.pprint("written")
        print("printed")
        sys.stdout.write("followed")  # as `print` does, so it is recorded like it
        return x

    eager, compiled = both(noisy)
    for function, once in ((eager, False), (compiled, True)):
        function(X), function(X), function(X)
        output = capsys.readouterr().out
        assert output.count("printed") == output.count("followed") == 3
        assert output.count("written") == (1 if once else 3)


def test_functions_that_other_code_wraps():
    rates = [2.0]

    @functools.lru_cache
    def rate() -> float:
        return rates[0]

    eager, compiled = both(lambda x: x * rate())
    assert compiled(X)[1] == 2
    rates[0] = 3.0
    rate.cache_clear()
    assert (eager(X)[1], compiled(X)[1]) == (3, 2)


def test_objects_written_in_c():
    class Holder:
        rate = 2.0

    holder = Holder()
    weak = weakref.ref(holder)
    eager, compiled = both(lambda x: x * weak().rate)  # type: ignore[union-attr]
    assert compiled(X)[1] == 2
    holder.rate = 3.0
    assert (eager(X)[1], compiled(X)[1]) == (3, 2)

    for plain in ([2.0], array.array("d", [2.0])):
        compiled = mg.jit(lambda x, plain=plain: x * plain[0])
        assert compiled(X)[1] == 2
        plain[0] = 3.0
        assert compiled(X)[1] == 3


def test_attributes_of_unusual_classes():
    class Speed(enum.Enum):
        FAST = 1

    Speed.FAST.rate = 2.0  # type: ignore[attr-defined]
    eager, compiled = both(lambda x: x * Speed.FAST.rate)  # type: ignore[attr-defined]
    assert compiled(X)[1] == 2
    Speed.FAST.rate = 3.0  # type: ignore[attr-defined]
    assert (eager(X)[1], compiled(X)[1]) == (3, 2)

    class Plain:
        rate = 2.0

    compiled = mg.jit(lambda x: x * Plain.rate)
    assert compiled(X)[1] == 2
    Plain.rate = 3.0
    assert compiled(X)[1] == 3


def test_special_methods_added_later():
    class Slow:
        rate = 2.0

    class Fast:
        rate = 3.0

    class Mine(Slow):
        pass

    mine, other = Mine(), Mine()
    eager, compiled = both(lambda x: x if mine else -x)
    assert compiled(X)[1] == 1
    Mine.__bool__ = lambda self: False  # type: ignore[attr-defined]
    assert (eager(X)[1], compiled(X)[1]) == (-1, 1)

    eager, compiled = both(lambda x: x if mine == other else -x)
    assert compiled(X)[1] == -1
    Mine.__eq__ = lambda self, other: True  # type: ignore[method-assign,assignment]
    assert (eager(X)[1], compiled(X)[1]) == (1, -1)

    eager, compiled = both(lambda x: x * Mine.rate)  # what is replaced is noticed
    assert compiled(X)[1] == 2
    Slow.rate = 4.0
    assert (eager(X)[1], compiled(X)[1]) == (4, 4)
    Mine.__bases__ = (Fast,)
    assert (eager(X)[1], compiled(X)[1]) == (3, 3)


def test_attributes_written_past_a_block():
    class Net(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.rate, self.settings = 1.0, {"rate": 1.0}

        def forward(self, x: Any) -> Any:
            return x * self.rate * self.settings["rate"]

    net = Net().hybridize()
    assert net(X)[1] == 1
    vars(net)["rate"] = 2.0
    with mg.eager():
        eager = net(X)
    assert (eager[1], net(X)[1]) == (2, 1)
    net.settings["rate"] = 3.0
    assert net(X)[1] == 6
    net.rate = 4.0
    assert net(X)[1] == 12


def test_code_replaced_in_place():
    def inner(x: Any) -> Any:
        return x * 2

    eager, compiled = both(lambda x: inner(x))
    assert compiled(X)[1] == 2
    inner.__code__ = (lambda x: x * 3).__code__
    assert (eager(X)[1], compiled(X)[1]) == (3, 2)

    inner = lambda x: x * 4  # noqa: E731
    assert (eager(X)[1], compiled(X)[1]) == (4, 4)


# ---- what Python does once -------------------------------------------------------------------


def test_names_in_class_statements_and_eval():
    def by_class(x: Any) -> Any:
        class Local:
            start = X[1]

        return x + Local.start

    for function in (by_class, eval("lambda x: eval('X + 1')", {"X": X})):
        eager, compiled = both(function)
        eager(X)
        with pytest.raises(mg.MinigraphError):
            compiled(X)


def test_prints_in_hybrid_forward(capsys: pytest.CaptureFixture[str]):
    class Net(nn.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            print("given", F)
            return F.exp(x)

    net = Net()
    net(X), net(X)
    assert capsys.readouterr().out == "given <module 'minigraph.nd'>\n" * 2
    net.hybridize()
    net(X), net(X)
    assert capsys.readouterr().out == "given <module 'minigraph.sym'>\n"


def test_whole_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "out.txt"
    program = mg.trace_program(f"""
with open({str(path)!r}, "a") as file:
    file.write("x")
print("done")
""")
    assert (path.read_text(), capsys.readouterr().out) == ("x", "")
    compiled = mg.compile(program)
    compiled(), compiled()
    assert (path.read_text(), capsys.readouterr().out) == ("x", "done\ndone\n")


# ---- what differs although it is seen --------------------------------------------------------


def test_fresh_results():
    for function in (lambda x: x, lambda x: x[:2], lambda x: x.reshape(3, 1)):
        eager, compiled = both(function)
        x = X.copy()
        assert np.array_equal(eager(x), compiled(x))
        assert np.shares_memory(eager(x), x) and not np.shares_memory(compiled(x), x)
    eager, compiled = both(lambda x: (x + 1,) * 2)
    first, second = eager(X)
    assert first is second
    first, second = compiled(X)
    assert not np.shares_memory(first, second)
    eager, compiled = both(lambda a, b: a is b)
    assert eager(X, X) and not compiled(X, X)
    eager, compiled = both(lambda n: ((n > 2) is True, n > 2))
    assert (eager(3), compiled(3)) == ((True, True), (False, True))


def test_memory_layout_of_results():
    eager, compiled = both(lambda x: x[::2])
    assert (eager(X).strides, compiled(X).strides) == ((16,), (8,))
    eager, compiled = both(lambda x: np.broadcast_to(x, (2, 3)))
    assert np.array_equal(eager(X), compiled(X))
    assert eager(X).strides != compiled(X).strides
    eager, compiled = both(lambda x: x + 1)
    columns = np.ones((2, 3), order="F")
    assert eager(columns).flags.f_contiguous and compiled(columns).flags.c_contiguous
    with pytest.raises(mg.MinigraphError):  # nothing can be made to depend on it
        mg.jit(lambda x: x if x.flags.c_contiguous else -x)(X)


def test_floating_point_warnings():
    def inside(x: Any) -> Any:
        with np.errstate(divide="raise"):
            return 1 / x

    eager, compiled = both(inside)
    with pytest.raises(FloatingPointError):
        eager(X)
    with np.errstate(divide="raise"):
        assert compiled(X)[0] == np.inf
    in_python = mg.jit(inside, backend="python")
    with np.errstate(divide="ignore"):
        assert in_python(X)[0] == np.inf
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):  # in force at the call
        in_python(X)

    eager, compiled = both(lambda: np.ones(1) / np.zeros(1))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        eager()
    with warnings.catch_warnings(), contextlib.suppress(RuntimeWarning):
        warnings.simplefilter("error")
        assert compiled()[0] == np.inf


def test_last_bits_of_functions():
    x = np.random.default_rng(0).normal(size=10_000)
    differ = False
    for function in (np.exp, np.tanh, np.sin, lambda x: np.abs(x) ** 1.7):
        eager, compiled = both(function)
        ulp = np.abs(compiled(x) - eager(x)) / np.spacing(np.abs(eager(x)))
        assert ulp.max() <= 5  # NumPy's own is not exact either
        differ = differ or bool(ulp.any())
        same = mg.jit(function, math="libm")
        assert np.array_equal(same(x), eager(x))
    assert differ
    for function in (lambda x: np.sqrt(np.abs(x)), np.floor, lambda x: x / 3 - x * x):
        eager, compiled = both(function)  # exact in both
        assert eager(x).tobytes() == compiled(x).tobytes()


def test_sums_of_floats():
    x = np.random.default_rng(0).normal(size=(30, 10_000))
    eager, compiled = both(lambda x: x.sum(axis=1))
    assert not np.array_equal(eager(x), compiled(x))
    for row, total in zip(x, compiled(x), strict=True):
        assert abs(total - math.fsum(row)) < 1e-12
    eager, compiled = both(lambda a, b: a @ b)
    assert np.allclose(eager(x, x.T), compiled(x, x.T), rtol=1e-12, atol=1e-9)
    eager, compiled = both(lambda n: n.sum(axis=1))  # sums of integers are exact
    assert np.array_equal(eager(x.astype(int)), compiled(x.astype(int)))


def test_frozen_arrays():
    base = np.ones(3)
    weights = mg.freeze(base)
    eager, compiled = both(lambda x: x * weights)
    assert compiled(X)[1] == 1
    base[:] = 2
    assert (eager(X)[1], compiled(X)[1]) == (1, 1)
    with pytest.raises(ValueError, match="read-only"):
        weights[:] = 3
    weights.flags.writeable = True
    weights[:] = 3
    assert (eager(X)[1], compiled(X)[1]) == (3, 1)


# ---- limits: what is an error ----------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [1, 2, 3][int(x[0])],
        lambda x: list(map(float, x)),
        lambda x: x.tolist(),
        lambda x: str(x),
        lambda x: f"{x}",
        lambda x: f"{x[0]:.3f}",
    ],
)
def test_numbers_of_traced_arrays(function: Callable[[Any], Any]):
    eager, compiled = both(function)
    eager(X)
    with pytest.raises((ConcreteValueError, UnsupportedError)):
        compiled(X)

    eager, compiled = both(lambda x: (float(x[0]), int(x[0]), x[0].item(), min(x), round(x[0])))
    assert compiled(X) == eager(X)

    scale = np.float64(3.0)
    eager, compiled = both(lambda x, n: (x * float(n) + int(scale), f"{n} of {x.shape[0]}"))
    for n in (2, 5):
        assert np.array_equal(eager(X, n)[0], compiled(X, n)[0])
        assert eager(X, n)[1] == compiled(X, n)[1]


def test_how_arrays_are_printed():
    def setting(x: Any) -> Any:
        np.set_printoptions(precision=8)
        return x

    def within(x: Any) -> Any:
        with np.printoptions(precision=3):
            print(x)
        return x

    for function in (setting, within):
        eager, compiled = both(function)
        eager(X)
        with pytest.raises(UnsupportedError):
            compiled(X)


def test_branches_in_hybridized_blocks():
    class Either(nn.HybridBlock):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    block = Either()
    assert np.array_equal(block(-X), X)
    block.hybridize()
    with pytest.raises(BranchError):
        block(-X)
    block.hybridize(False)
    assert np.array_equal(block(-X), X)


def test_plain_blocks_in_hybrid_ones():
    with pytest.raises(ChildError):
        nn.HybridSequential(nn.Lambda(np.tanh))
    net = nn.Sequential(nn.Lambda(np.tanh), nn.HybridLambda(np.tanh))
    with pytest.warns(UserWarning, match="each on its own"):
        net.hybridize()
    assert np.allclose(net(X), np.tanh(np.tanh(X)))


def test_gradients_of_complex_numbers():
    with pytest.raises(DtypeError):
        mg.grad(lambda z: (z * z).real)(1j)
    with pytest.raises(DtypeError):
        mg.array([1j]).attach_grad()


def test_gradients_of_gradients():
    x = mg.array(2.0)
    x.attach_grad()
    with autograd.record():
        (slope,) = autograd.grad(x**3, [x], create_graph=True)
        square = slope * slope
    square.backward()
    assert x.grad == 2 * 12 * 12
    with autograd.record():
        y = x**3
        y.backward(retain_graph=True)
        with pytest.raises(RecordError):
            x.grad.backward()


def test_exported_networks_predict(tmp_path: Path):
    net = nn.HybridSequential(nn.BatchNorm(), nn.Dropout(0.5))
    net.initialize()
    x = X.reshape(1, 3).astype("float32")
    net.export(tmp_path / "net.zip", x)
    loaded = mg.load(tmp_path / "net.zip")
    predicted = net(x)
    with autograd.train_mode():
        for _ in range(2):
            assert np.allclose(loaded(x), predicted)
        assert not np.allclose(net(x), predicted)


def test_ndarrays_given_to_blocks_that_run_in_python():
    net = nn.HybridSequential(nn.Dense(1, use_bias=False))
    net.initialize()
    weight = next(iter(net.collect_params().values()))
    found: list[float] = []
    for hybridized in (False, True):
        net.hybridize(hybridized)
        x = np.ones((1, 3), "float32")
        with autograd.record():
            y = net(x).sum()
        x[...] = 100
        y.backward()
        found.append(float(weight.grad()[0, 0]))
    assert found == [100, 1]


def test_small_print():
    def caught(x: Any) -> Any:
        try:
            return x + np.ones(4)
        except ValueError as error:
            return str(error)

    eager, compiled = both(caught)
    assert eager(X).startswith("operands") and compiled(X).startswith("[MG006] operands")

    eager, compiled = both(lambda x: np.dtype(x))
    with pytest.raises(TypeError):
        eager(X)
    assert compiled(X) == np.float64

    eager, compiled = both(lambda x: np.linalg.vector_norm(x, keepdims=True))
    number = np.float64(2.0)
    assert eager(number) == compiled(number)
    assert type(eager(number)) is np.float64 and type(compiled(number)) is np.ndarray

    first, second = np.array([0x7FF8000000000001, 0x7FF8000000000002]).view(np.float64)
    eager, compiled = both(lambda a, b: (a + b, b + a))
    for function in (eager, compiled):
        assert np.isnan(function(np.full(3, first), np.full(3, second))).all()

    zeros = np.array([[-0.0, 0.0], [0.0, -0.0]])
    eager, compiled = both(lambda x: (x.max(axis=1), x.min(axis=1)))
    for function in (eager, compiled):
        assert all((each == 0).all() for each in function(zeros))
    highest, lowest = compiled(zeros)
    assert not np.signbit(highest).any() and np.signbit(lowest).all()
