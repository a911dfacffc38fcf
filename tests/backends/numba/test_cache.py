"""Compiled functions on disk: what is found again, what is rebuilt, what is not trusted."""

from __future__ import annotations

import gc
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("numba")

import numba
import numpy as np
from numba import types

from minigraph.backends.numba import cache
from minigraph.backends.numba.cache import Store

FLOATS = types.float64[::1]
SIGNATURE = (FLOATS, FLOATS)


@numba.njit(error_model="numpy")
def shifted(x):
    return x + 1


def source(factor: int) -> str:
    return dedent(f"""\
        def kernel(x, out):
            for i in range(x.size):
                out[i] = shifted(x[i]) * {factor}
        """)


def make(store: Store, factor: int = 3):
    """A small kernel, and the proof that it is the right one."""
    kernel = store.function(source(factor), "kernel", SIGNATURE, {"shifted": shifted}, nogil=True)
    out = np.zeros(3)
    kernel(np.arange(3.0), out)
    assert out.tolist() == [factor, 2 * factor, 3 * factor]
    return kernel


def forget() -> None:
    """Collect what nobody holds: the next store has to look on disk."""
    gc.collect()
    assert not cache._functions


def counts(store: Store) -> tuple[int, int, int]:
    return store.hits, store.misses, store.shared


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.rglob(f"*{suffix}"))


# ---------------------------------------------------------------------------- found again


def test_functions_are_shared_in_a_process(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    kernel = make(store)
    assert make(other) is kernel
    assert counts(store) == (0, 1, 0)
    assert counts(other) == (0, 0, 1)


def test_a_function_is_loaded_from_disk(tmp_path):
    make(Store(tmp_path))
    forget()
    store = Store(tmp_path)
    make(store)
    assert counts(store) == (1, 0, 0)
    (path,) = files(tmp_path, ".py")
    assert path.read_text() == source(3)


def test_another_text_is_another_function(tmp_path):
    store = Store(tmp_path)
    make(store, 3)
    make(store, 4)
    assert counts(store) == (0, 2, 0)


def test_memory_alone_will_do():
    store = Store(None)
    kernel = make(store)
    assert make(store) is kernel
    assert store.folder is None
    assert "switched off" in store.why


# ---------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: bytes(32) + data[32:],
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: b"cos\nsystem\n(S'false'\ntR.",
    ],
    ids=["empty", "short", "cut", "checksum", "bit", "foreign"],
)
def test_damaged_entries_are_rebuilt(tmp_path, damage):
    make(Store(tmp_path))
    (path,) = files(tmp_path, ".bin")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    forget()
    store = Store(tmp_path)
    make(store)
    assert counts(store) == (0, 1, 0)
    forget()
    store = Store(tmp_path)
    make(store)
    assert counts(store) == (1, 0, 0)


def test_an_entry_does_not_pass_for_another(tmp_path):
    store = Store(tmp_path)
    make(store, 3)
    (three,) = files(tmp_path, ".bin")
    data = three.read_bytes()
    make(store, 4)
    (four,) = set(files(tmp_path, ".bin")) - {three}
    four.write_bytes(data)
    forget()
    store = Store(tmp_path)
    make(store, 4)
    assert counts(store) == (0, 1, 0)
