"""Options of `jit` and `compile` for the Numba backend: passes, math, cache folders."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from comparing import describe

import minigraph as mg
from minigraph.backends.numba import cache
from minigraph.errors import OptionError

X = np.linspace(-2, 2, 24).reshape(4, 6)
W = np.linspace(-1, 1, 30).reshape(6, 5)


def model(x, w):
    h = np.maximum(x @ w, 0) * 2 + 1
    return np.tanh(h) / h.sum(axis=1, keepdims=True), (h * h).max(axis=0)


def plain(x):
    return np.sqrt(np.abs(x)) * 2 + np.abs(x)


# ---------------------------------------------------------------------------- passes


@pytest.mark.parametrize(
    "passes", [(), ("fold", "cse"), ("fuse",), ("fold", "cse", "fuse"), ("fuse", "cse", "dce")]
)
def test_passes_with_and_without_fusion(passes):
    jitted = mg.jit(model, backend="numba", passes=passes, strict=True)
    for _ in range(2):
        for found, expected in zip(jitted(X, W), model(X, W), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
    kernels = [node for node in jitted.graph().nodes if node.op.name == "kernel"]
    assert bool(kernels) == ("fuse" in passes)
    told = jitted.explain()
    assert "one compiled function" in told  # the product is compiled in any case
    assert ("in Python: " in told) == ("fuse" not in passes)


def test_a_program_of_python_nodes_only():
    jitted = mg.jit(lambda x: np.cumsum(np.sort(x, axis=0), axis=1), backend="numba", strict=True)
    assert np.array_equal(jitted(X), jitted.function(X))
    assert jitted.source("numba") == jitted.source()
    assert (jitted.source("llvm"), jitted.source("asm")) == ("", "")


def test_compile_takes_the_same_settings(tmp_path):
    graph = mg.trace(plain, X)
    for options in ({}, {"cache_dir": tmp_path}, {"math": "libm", "num_threads": 1}):
        compiled = mg.compile(graph, "numba", strict=True, **options)
        assert describe(compiled(X)) == describe(plain(X))
        transposed = X.T[:4, :4].repeat(2, 1)[:, :6]
        assert describe(compiled(transposed)) == describe(plain(transposed))
    assert list(tmp_path.rglob("*.bin"))


def test_a_compiled_graph_takes_arrays_of_any_order():
    compiled = mg.compile(mg.trace(plain, X), "numba", strict=True)
    for x in (np.asfortranarray(X), X[::-1], np.repeat(X, 2, 1)[:, ::2]):
        assert np.array_equal(compiled(x), plain(x))


# ---------------------------------------------------------------------------- math


def test_libm_has_numpys_own_bits():
    def curves(x):
        return np.tanh(x) * 2 + np.exp(x), np.sin(x) ** 2 - np.cos(x), np.log1p(np.abs(x)) / 3

    x = np.linspace(-30, 30, 1001)
    exact, vector = mg.jit(curves, math="libm", strict=True), mg.jit(curves, strict=True)
    assert describe(exact(x)) == describe(curves(x))
    for found, expected in zip(vector(x), curves(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    assert "tanh" not in exact.source("numba").partition("# compiled")[2]
    assert "tanh" in vector.source("numba").partition("# compiled")[2]


# ---------------------------------------------------------------------------- wrong values


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ({"math": "libn"}, "no math 'libn'", "did you mean 'libm'?"),
        ({"math": None}, "no math None", "vector, libm"),
        ({"math": ["libm"]}, "no math", "vector, libm"),
        ({"num_threads": 0}, "num_threads= is a number from 1 up, not 0", ""),
        ({"num_threads": "2"}, "num_threads= is a number from 1 up, not '2'", ""),
        ({"cache_dir": 3}, "cache_dir= is a folder, not 3", "off"),
        ({"cache_dir": True}, "cache_dir= is a folder, not True", "off"),
        ({"cache_dir": b"/tmp"}, "cache_dir= is a folder", "off"),
        ({"cachedir": "x"}, "no option 'cachedir'", "did you mean 'cache_dir'?"),
        ({"backend": "nunba"}, "no backend 'nunba'", "did you mean 'numba'?"),
    ],
)
def test_wrong_options(options, message, remedy):
    graph = mg.trace(plain, X)
    for use in (lambda: mg.jit(plain, **options), lambda: mg.compile(graph, **options)):
        with pytest.raises(OptionError) as error:
            use()
        assert message in str(error.value)
        assert remedy in error.value.instead


# ---------------------------------------------------------------------------- cache


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.bin"))


@pytest.mark.parametrize("form", [str, Path])
def test_cache_dir_is_where_compiled_code_is_kept(tmp_path, form):
    folder = tmp_path / "deep" / "down"
    jitted = mg.jit(plain, cache_dir=form(folder))
    jitted(X)
    assert kept(folder)
    assert f"compiled code: kept in {folder}" in jitted.explain()


def test_the_environment_says_where_compiled_code_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_CACHE", str(tmp_path))
    mg.jit(plain)(X)
    assert kept(tmp_path)


@pytest.mark.parametrize("off", ["", "0", "off", "OFF"])
def test_caching_can_be_switched_off(monkeypatch, off):
    monkeypatch.setenv("MINIGRAPH_CACHE", off)
    jitted = mg.jit(plain)
    assert np.array_equal(jitted(X), plain(X))
    assert "compiled code: nothing is kept on disk: that is switched off" in jitted.explain()
    jitted = mg.jit(plain, cache_dir=off)
    assert np.array_equal(jitted(X), plain(X))
    assert "switched off" in jitted.explain()


def test_a_folder_that_cannot_be_used_is_said_and_does_no_harm(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        jitted = mg.jit(plain, cache_dir=folder, strict=True)
        assert np.array_equal(jitted(X), plain(X))
        assert "compiled code: " in jitted.explain()
        assert "kept in" not in jitted.explain()


def test_a_new_shape_compiles_nothing_new(monkeypatch):
    jitted = mg.jit(model, strict=True)

    def check(rows: int, inner: int, columns: int) -> None:
        x, w = np.full((rows, inner), 1.5), np.full((inner, columns), 0.5)
        for found, expected in zip(jitted(x, w), model(x, w), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)

    check(40, 6, 50)
    monkeypatch.setattr(cache.Store, "_compile", never)
    for sizes in ((30, 5, 70), (41, 1, 33), (1, 100, 200)):
        check(*sizes)


def never(self, recipe, made) -> None:
    raise AssertionError(f"{recipe.name} is compiled")


def test_a_second_process_compiles_nothing(fresh_process, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGRAPH_CACHE", str(tmp_path))
    assert fresh_process(TWICE).split() == ["True", "True", "True"]
    before = kept(tmp_path)
    nothing_new = """
from minigraph.backends.numba import cache

def never(self, recipe, made):
    raise AssertionError("it is compiled")

cache.Store._compile = never
"""
    assert fresh_process(nothing_new + TWICE).split() == ["True", "True", "True"]
    assert kept(tmp_path) == before


TWICE = """
import numpy as np
import minigraph as mg

@mg.jit(strict=True)
def f(x, w):
    return np.tanh(x @ w) * 2, np.exp(x).sum(axis=1), np.cumsum(x * 2, axis=0) + 1

x, w = np.linspace(-1, 1, 900_000).reshape(900, 1000), np.ones((1000, 3)) / 1000
for found, expected in zip(f(x, w), f.function(x, w)):
    print(np.allclose(found, expected, rtol=1e-12))
"""


# ---------------------------------------------------------------------------- static shapes


def test_a_loop_of_maxima_has_a_length_that_llvm_does_not_know():
    """It would be unrolled before it is vectorised."""
    x = np.linspace(-2, 2, 5 * 64).reshape(5, 64)
    for reduction, known in ((np.max, False), (np.min, False), (np.sum, True)):
        f = mg.jit(lambda x, r=reduction: r(x * 2, axis=1), backend="numba", static_shape=True)
        np.testing.assert_allclose(f(x), reduction(x * 2, axis=1), atol=1e-10)
        assert bool(re.search(r"range\(.*64\)+:", f.source("numba"))) == known
