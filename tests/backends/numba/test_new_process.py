"""What a new process finds in the cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = """
import numpy as np
import minigraph as mg
from minigraph.backends.numba.cache import Store

made = []
compile_ = Store._compile
Store._compile = lambda self, recipe, function: made.append(recipe) or compile_(
    self, recipe, function
)

@mg.jit(strict=True)
def scaled(x):
    return np.tanh(x * 0.5) + x.max(axis=1, keepdims=True)

x = np.arange(1 << 21, dtype=np.float32).reshape(1024, -1)
assert np.allclose(scaled(x), np.tanh(x * 0.5) + x.max(axis=1, keepdims=True))
print(len(made), "shared_kernel0" in scaled.source("numba"))
"""


@pytest.mark.parametrize("layer", [pytest.param("omp", marks=pytest.mark.slow), "workqueue"])
def test_kernels_in_threads_are_loaded_and_not_compiled(
    fresh_process: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    layer: str,
) -> None:
    """Code from the cache calls the threading layer by an address that must be known by then."""
    monkeypatch.setenv("MINIGRAPH_CACHE", str(tmp_path))
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    first = fresh_process(SOURCE).split()
    assert int(first[0]) > 0 and first[1] == "True"
    monkeypatch.setenv("NUMBA_THREADING_LAYER", layer)
    assert fresh_process(SOURCE).split() == ["0", "True"]
