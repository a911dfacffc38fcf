"""What Numba cannot compile, or not in time, runs in Python: one warning, or an error if strict."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import minigraph as mg
from minigraph.backends.numba import cache, runtime
from minigraph.errors import CompileError, CompileWarning

X = np.linspace(-2, 2, 12).reshape(3, 4)


def chain(x):
    y = x * 2 + 1
    z = np.tanh(y)  # the line that fails
    return z - 3


FAILING = next(
    number
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
    if line.endswith("# the line that fails")
)


@pytest.fixture
def no_tanh(monkeypatch):
    """Numba cannot make sense of what the text calls `tanh`."""
    monkeypatch.setitem(runtime._HELPERS, "tanh", object())


def caught(call, action="always"):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        result = call()
    return result, [str(w.message) for w in seen if w.category is CompileWarning], seen


@pytest.mark.usefixtures("no_tanh")
def test_a_kernel_that_does_not_compile_runs_in_python():
    jitted = mg.jit(chain)
    found, (text,), (warning,) = caught(lambda: jitted(X))
    assert np.array_equal(found, chain(X))
    assert "chain runs in Python: [MG018] Numba could not compile tanh" in text
    assert f"{__file__}:{FAILING}" in text
    assert "z = np.tanh(y)" in text
    assert warning.filename == __file__
    assert "backend: python (Numba could not compile tanh" in jitted.explain()
    assert jitted.source() == jitted.source("python")
    again, texts, _ = caught(lambda: jitted(X))
    assert np.array_equal(again, chain(X)) and texts == []


@pytest.mark.usefixtures("no_tanh")
def test_further_entries_that_fail_say_the_same_only_once():
    jitted = mg.jit(chain)
    _, texts, _ = caught(lambda: [jitted(np.ones(size)) for size in (3, 4, 5, 3, 4)], "default")
    assert len(texts) == 1
    assert len(jitted.cache_info()) == 3


@pytest.mark.usefixtures("no_tanh")
def test_the_program_for_other_memory_orders_falls_back_too():
    jitted = mg.jit(chain)
    with pytest.warns(CompileWarning):
        found = jitted(np.asfortranarray(X))
    assert np.array_equal(found, chain(X))


@pytest.mark.usefixtures("no_tanh")
@pytest.mark.parametrize("backend", ["auto", "numba"])
def test_strict_makes_it_an_error(backend):
    jitted = mg.jit(chain, strict=True, backend=backend)
    for _ in range(2):
        with pytest.raises(CompileError, match="could not compile tanh") as error:
            jitted(X)
        assert error.value.code == "MG018"
        assert error.value.where is not None and error.value.where.line == FAILING
    with pytest.raises(CompileError):
        mg.compile(mg.trace(chain, X), strict=True)
    with pytest.warns(CompileWarning):
        assert mg.compile(mg.trace(chain, X)).backend == "python"


def test_a_store_that_fails_is_no_reason_to_fail(monkeypatch):
    def make(self, recipe):
        raise MemoryError("no room for code")

    monkeypatch.setattr(cache.Store, "make", make)
    with pytest.warns(CompileWarning, match="multiply, add, tanh, subtract: no room for code"):
        assert np.array_equal(mg.jit(chain)(X), chain(X))


def test_a_segment_that_fails_is_told_without_a_kernel(monkeypatch):
    make = cache.Store.make

    def make_kernels(self, recipe):
        if recipe.name == "segment":
            raise MemoryError
        return make(self, recipe)

    monkeypatch.setattr(cache.Store, "make", make_kernels)
    with pytest.warns(CompileWarning, match="could not compile the program: MemoryError"):
        assert np.array_equal(mg.jit(chain)(X), chain(X))


# ---------------------------------------------------------------------------- long programs


def test_a_program_that_would_take_long_to_compile_is_not_compiled(monkeypatch):
    def long(x, w):
        for k in range(350):
            x = np.sqrt(np.abs(x * (k + 0.5) + 1))
            if k % 40 == 0:
                x = x @ w
        return x

    def make(self, recipe):
        raise AssertionError("it is compiled")

    x, w = np.ones((4, 4)), np.ones((4, 4)) / 4
    with monkeypatch.context() as patch:
        patch.setattr(cache.Store, "make", make)
        jitted = mg.jit(long)
        found, (text,), _ = caught(lambda: jitted(x, w))
        assert np.array_equal(found, long(x, w))
        assert "[MG018] compiling would take about" in text and "over 10 s" in text
        assert caught(lambda: jitted(x, w))[1] == []
        assert "backend: python (compiling would take" in jitted.explain()
        with pytest.raises(CompileError, match="would take about"):
            mg.jit(long, strict=True)(x, w)


def test_what_is_compiled_already_takes_no_time(monkeypatch):
    mg.jit(chain, strict=True)(X)
    monkeypatch.setattr(runtime, "LONGEST_S", -1)
    with pytest.raises(CompileError, match="would take about"):
        mg.jit(lambda x: np.exp(x) * 5 + x, strict=True)(X)
    monkeypatch.setattr(runtime, "LONGEST_S", 0)
    mg.jit(chain, strict=True)(X)


def test_the_prediction_counts_each_text_once():
    jitted = mg.jit(lambda x: np.sort(x * 2.5, axis=0) * 2.5)
    jitted(X)
    first, second = jitted.lower(X).program.segments.values()
    assert first.functions.keys() == second.functions.keys() == {"kernel0"}
    assert runtime.predicted_s([]) == 0
    alone, both = runtime.predicted_s([first]), runtime.predicted_s([first, second])
    assert 0.1 < alone < both < 1.5 * alone
    first.shared.add("kernel0")
    assert runtime.predicted_s([first, second]) > both + 0.1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("shown", [True, False])
def test_a_terminal_sees_how_far_a_long_first_call_is(monkeypatch, shown):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(runtime, "PROGRESS_S", 0 if shown else 100)
    factor = 7 if shown else 8
    jitted = mg.jit(lambda x: np.cumsum(x * factor, axis=0) * factor + (x @ x.T)[:, :1])
    jitted(X)
    written = sys.stderr.getvalue()
    if shown:
        assert "minigraph: compiled 1 of " in written
        assert written.endswith("\r\033[K")
    else:
        assert written == ""


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_no_progress_where_nobody_looks(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(runtime, "PROGRESS_S", 0)
    factor = 9 if stream is None else 10
    mg.jit(lambda x: x * factor - 1, strict=True)(X)
    assert stream is None or stream.getvalue() == ""


@pytest.mark.usefixtures("no_tanh")
def test_progress_is_wiped_after_a_failure(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(runtime, "PROGRESS_S", 0)
    with pytest.raises(CompileError):
        mg.jit(chain, strict=True)(X)
    assert sys.stderr.getvalue().endswith("\r\033[K")


# ---------------------------------------------------------------------------- no Numba

RUN = """
import warnings
import numpy as np
import minigraph as mg
from minigraph import backends

jitted = mg.jit(lambda x: np.tanh(x) * 2 + 1)
x = np.linspace(-1, 1, 5)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for size in (5, 4):
        assert np.array_equal(jitted(x[:size]), np.tanh(x[:size]) * 2 + 1)
print(len([w for w in seen if w.category.__name__ == "CompileWarning"]))
print(backends.availability()["numba"])
print(jitted.explain().rpartition("backend: ")[2])
try:
    mg.jit(lambda x: x, backend="numba")
except mg.MinigraphError as error:
    print(error)
"""


def test_without_numba_python_runs_everything(fresh_process):
    block = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"no module named {name}", name=name)

sys.meta_path.insert(0, Blocked())
"""
    told = fresh_process(block + RUN).splitlines()
    assert told[:2] == ["0", "numba cannot be imported"]
    assert told[2] == "python (numba cannot run here: numba cannot be imported)"
    assert "the backend 'numba' cannot run here: numba cannot be imported" in told[3]


def test_a_numba_that_cannot_be_imported_is_said_once(fresh_process, tmp_path):
    (tmp_path / "numba").mkdir()
    text = "raise ImportError('Numba needs NumPy 1.20 or less')"
    (tmp_path / "numba" / "__init__.py").write_text(text)
    told = fresh_process(RUN, first=(tmp_path,)).splitlines()
    why = "numba cannot be imported: Numba needs NumPy 1.20 or less"
    assert told[:2] == ["1", why]
    assert told[2] == f"python (numba cannot run here: {why})"
    assert why in told[3]


def test_where_numba_is_told_to_compile_nothing_python_runs(fresh_process, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    told = fresh_process(RUN + "import numba; print(backends.availability()['numba'])").splitlines()
    assert told[:2] == ["0", "NUMBA_DISABLE_JIT is set"]
    assert told[2] == "python (numba cannot run here: NUMBA_DISABLE_JIT is set)"
    assert told[-1] == "NUMBA_DISABLE_JIT is set"


def test_the_python_backend_needs_no_numba(fresh_process):
    source = """
import sys
import numpy as np
import minigraph as mg

jitted = mg.jit(lambda x: x * 2, backend="python")
jitted(np.ones(3))
jitted.explain()
print("numba" in sys.modules, "scipy" in sys.modules)
"""
    assert fresh_process(source).split() == ["False", "False"]


def test_a_fault_of_the_backend_is_no_error_of_the_program(monkeypatch):
    def write_kernel(*arguments, **options):
        raise AssertionError("does not fit")

    monkeypatch.setattr("minigraph.backends.numba.segments.write_kernel", write_kernel)
    with pytest.warns(CompileWarning, match="AssertionError: does not fit"):
        assert np.array_equal(mg.jit(lambda x: x * 2 + 1)(np.ones(3)), np.full(3, 3.0))
    with pytest.raises(CompileError, match="does not fit"):
        mg.jit(lambda x: x * 2 + 1, strict=True)(np.ones(3))
