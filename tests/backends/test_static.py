"""Memory that is kept between calls (`static_alloc`), and sizes in the text (`static_shape`)."""

from __future__ import annotations

import gc
import threading
import weakref
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from comparing import describe

import minigraph as mg
from minigraph import backends
from minigraph.errors import OptionError, SignatureError

BACKENDS = ["python", *(["numba"] if find_spec("numba") and find_spec("scipy") else [])]
RANDOM = np.random.default_rng(1)
W, V = RANDOM.normal(size=(6, 5)), RANDOM.normal(size=(5, 6))
X = RANDOM.normal(size=(4, 6))

each = pytest.mark.parametrize("backend", BACKENDS)
static = pytest.mark.parametrize("option", ["static_alloc", "static_shape"])


def layers_of(x: Any, w: Any, v: Any) -> Any:
    h = np.maximum(x @ w + 1, 0)
    h = np.sort(h, axis=1) * 2  # which Python runs
    h = np.tanh(h @ v)
    return h, (h - 1).sum(axis=0), (h * h).mean()


def layers(x: Any) -> Any:
    return layers_of(x, W, V)


@each
@static
def test_results_are_the_same_and_never_written_again(backend: str, option: str) -> None:
    plain, jitted = (
        mg.jit(layers, backend=backend),
        mg.jit(layers, backend=backend, **{option: True}),
    )
    results, copies = [], []
    for factor in (1, 2, 3, -1, 0.5, 7):
        results.append(jitted(X * factor))
        for found, expected in zip(results[-1], plain(X * factor), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
        copies.append(describe(results[-1]))
    assert [describe(result) for result in results] == copies


@each
@static
def test_explain_and_source_tell(backend: str, option: str) -> None:
    jitted = mg.jit(layers, backend=backend, **{option: True})
    jitted(X)
    assert "(static_alloc)" in jitted.explain()
    assert ("(static_shape)" in jitted.explain()) == (option == "static_shape")
    assert ".pop()" in jitted.source()
    plain = mg.jit(layers, backend=backend)
    plain(X)
    assert "(static_" not in plain.explain()


@each
def test_nothing_is_allocated_but_results(backend: str) -> None:
    many, few = np.ones((100, 1000)), np.ones((1000, 1))

    def wide(x: Any) -> Any:
        return ((np.tanh(x + 1) @ many) @ few * 2).sum(axis=0)

    x = np.ones((200, 100))
    plain, kept = (mg.jit(wide, backend=backend, static_alloc=on) for on in (False, True))
    assert describe(plain(x)) == describe(kept(x))
    assert kept.memory_report(x).measured < 20_000
    if backend == "python":
        assert plain.memory_report(x).measured > 1_000_000


@each
@pytest.mark.parametrize("tells", [False, True])
def test_what_a_loop_was_given_is_not_kept(backend: str, tells: bool) -> None:
    def stepped(x: Any, n: int) -> Any:
        s = np.tanh(x * 2 + 1)
        i = 0
        while i < n:
            s = np.sin(s) + 1
            if tells:
                print(end="")
            i = i + 1
        return s

    jitted = mg.script(stepped, backend=backend, static_alloc=True)
    results = [jitted(X * n, n) for n in range(4)]
    for n, result in enumerate(results):
        np.testing.assert_allclose(result, stepped(X * n, n), rtol=1e-13)


@each
def test_several_threads_at_once(backend: str) -> None:
    jitted = mg.jit(layers, backend=backend, static_alloc=True)
    jitted(X)
    failures: list[str] = []

    def work(number: int) -> None:
        x = X * number
        expected = describe(jitted(x))
        for _ in range(200):
            if describe(jitted(x)) != expected:
                failures.append(f"thread {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@each
def test_a_call_that_fails_leaves_the_next_one_alone(backend: str) -> None:
    def chosen(x: Any, index: Any) -> Any:
        h = np.exp(x @ W)
        return np.take(h, index, axis=0) + h[:1]

    jitted = mg.jit(chosen, backend=backend, static_alloc=True)
    expected = describe(chosen(X, np.array([1])))
    for _ in range(3):
        found = jitted(X, np.array([1]))
        np.testing.assert_allclose(found, chosen(X, np.array([1])), rtol=1e-12)
        with pytest.raises(IndexError):
            jitted(X, np.array([9]))
    assert expected


@each
def test_named_sizes(backend: str) -> None:
    options: dict[str, Any] = {"backend": backend, "dynamic": {"x": {0: "batch"}}}
    jitted = mg.jit(layers, static_alloc=True, **options)
    plain = mg.jit(layers, **options)
    for count in (4, 2, 9, 1, 4):
        x = RANDOM.normal(size=(count, 6))
        assert describe(jitted(x)) == describe(plain(x))
    assert len(jitted.cache_info()) == 1
    with pytest.raises(OptionError, match=r"static_shape= .*f64\[batch,6\]"):
        mg.jit(layers, static_shape=True, **options)(X)


@each
def test_other_shapes_are_refused(backend: str) -> None:
    jitted = mg.jit(layers, backend=backend, static_shape=True)
    jitted(X)
    with pytest.raises(SignatureError, match=r"x must be f64\[4,6\].*, not f64\[2,6\]"):
        jitted(X[:2].copy())
    assert describe(jitted(X)) == describe(mg.jit(layers, backend=backend)(X))
    compiled = mg.compile(mg.trace(layers_of, X, W, V), backend, static_shape=True)
    with pytest.raises(SignatureError, match=r"f64\[4,6\], not f64\[2,6\]"):
        compiled(X[:2].copy(), W, V)


@each
def test_memory_goes_with_the_program(backend: str) -> None:
    compiled = mg.compile(mg.trace(layers_of, X, W, V), backend, static_alloc=True)
    compiled(X, W, V)
    gone = weakref.ref(compiled.program)
    del compiled
    gc.collect()
    assert gone() is None


@static
def test_wrong_values(option: str) -> None:
    with pytest.raises(OptionError, match=f"{option}= is True or False, not 1"):
        mg.jit(layers, **{option: 1})


@pytest.mark.skipif(BACKENDS == ["python"], reason="Numba is not installed")
def test_sizes_stand_in_the_compiled_text() -> None:
    fixed, open_ = (
        mg.jit(layers, backend="numba", static_shape=on, strict=True) for on in (True, False)
    )
    fixed(X)
    open_(X)
    assert "range(0, n" in open_.source("numba") and "range(0, n" not in fixed.source("numba")
    assert "n[0]" in open_.source("numba") and "n[0]" not in fixed.source("numba")


def test_every_backend_takes_the_settings() -> None:
    for name in backends.names():
        if name not in ("null", "numba", "cupy"):
            assert describe(mg.jit(layers, backend=name, static_shape=True)(X)[1]) == describe(
                mg.jit(layers, backend=name)(X)[1]
            )


@each
def test_without_reuse_of_buffers_the_results_are_the_same(backend: str) -> None:
    plain = mg.jit(layers, backend=backend)
    without = mg.jit(layers, backend=backend, reuse_buffers=False)
    assert describe(without(X)) == describe(plain(X))
    assert plain.plan.reuses and not without.plan.reuses


@each
def test_loops_without_reuse_of_buffers(backend: str) -> None:
    def program(x: Any) -> Any:
        for _ in range(int(x.shape[0])):
            x = np.maximum(x * 0.5, x[::-1])
            x[0] = x.sum()
        return x

    results = [
        mg.script(program, backend=backend, reuse_buffers=flag)(X.copy()) for flag in (True, False)
    ]
    assert describe(results[0]) == describe(results[1])
