"""Compiles the segments of a program, and supplies what its Python function calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from numba import types

from minigraph.ir import ArrayType, Value

from ..settings import Settings
from . import intrinsics, products, scalars, vector_math
from .cache import Recipe, Store, folder_for
from .segments import ALIGNMENT, Segment
from .writing import Function, scalar_dtype

_DTYPES = {
    name: getattr(types, name)
    for name in (
        "boolean int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
    )
}
_HELPERS: Mapping[str, Any] = {
    **scalars.FUNCTIONS,
    **vector_math.FUNCTIONS,
    **intrinsics.HELPERS,
    **products.HELPERS,
    **_DTYPES,
    "inf": float("inf"),
    "nan": float("nan"),
    "prange": numba.prange,
}
_OPTIONS = {"error_model": "numpy", "nogil": True}


def compile_segments(
    segments: Mapping[str, Segment], settings: Settings
) -> dict[str, Callable[..., None]]:
    """The compiled functions of a program, by name.

    Raises:
        numba.core.errors.NumbaError: one cannot be compiled.
    """
    store = Store(folder_for(settings.cache_dir))
    return {name: store.make(segment_recipe(segment)) for name, segment in segments.items()}


def segment_recipe(segment: Segment) -> Recipe:
    """What it takes to compile a segment."""
    kernels: dict[str, Recipe] = {}
    for name, function in segment.functions.items():
        kernels[name] = kernel_recipe(function)
        if name in segment.shared:
            kernels[f"shared_{name}"] = _shared_recipe(function, kernels[name])
    arguments: list[Any] = [types.Array(types.int64, 1, "C")]
    arguments += [types.int64] * segment.threads
    arguments += [types.Array(types.uint8, 1, "C")] * (segment.memory_bytes != 0)
    arguments += [_DTYPES[scalar_dtype(value)] for value in segment.numbers]
    arguments += [_array_type(value) for value in (*segment.reads, *segment.writes)]
    signature = types.void(*arguments)
    return Recipe(segment.text, "segment", signature, {**_HELPERS, **kernels}, **_OPTIONS)


def kernel_recipe(function: Function) -> Recipe:
    """What it takes to compile a kernel."""
    signature = types.void(*_parameters(function))
    return Recipe(function.text, "kernel", signature, _HELPERS, **_OPTIONS)


def _shared_recipe(function: Function, kernel: Recipe) -> Recipe:
    """A function that runs a kernel in several threads, each over a part of its outermost loop."""
    head = function.text.partition("\n")[0]
    names = head[head.index("(") + 1 : -2].split(", ")[2:]
    text = "\n".join(
        [
            f"def shared({', '.join(['parts', 'all', *names])}):",
            "    for part in prange(parts):",
            "        lo, hi = all * part // parts, all * (part + 1) // parts",
            f"        kernel({', '.join(['lo', 'hi', *names])})",
        ]
    )
    signature = types.void(*_parameters(function))
    options = {**_OPTIONS, "parallel": True}
    return Recipe(text, "shared", signature, {**_HELPERS, "kernel": kernel}, **options)


def _parameters(function: Function) -> list[Any]:
    return [
        *[types.int64] * (2 + len(function.sizes)),
        *[_DTYPES[dtype] for _, dtype in function.scalars],
        *[types.CPointer(_DTYPES[dtype]) for _, dtype in function.pointers],
    ]


def _array_type(value: Value) -> Any:
    assert isinstance(value.type, ArrayType)
    dtype = value.type.dtype
    element = types.boolean if dtype.kind == "b" else _DTYPES[dtype.name]
    return types.Array(element, value.type.ndim, "C")


# ---------------------------------------------------------------------------- memory and arrays


class Memory:
    """Memory for what no call returns; a call takes a piece and gives it back."""

    def __init__(self) -> None:
        self._free: list[np.ndarray[Any, Any]] = []

    def take(self, size_bytes: int) -> np.ndarray[Any, Any]:
        """A piece of at least this size, for one call alone."""
        while self._free:
            try:
                piece = self._free.pop()
            except IndexError:  # another thread was faster
                break
            if piece.size >= size_bytes:
                return piece
        piece = np.empty(size_bytes + ALIGNMENT, np.uint8)
        return piece[-piece.ctypes.data % ALIGNMENT :]

    def give(self, piece: np.ndarray[Any, Any]) -> None:
        """Take back a piece."""
        self._free.append(piece)


def dense(*arrays: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays as compiled code takes them: in C order, aligned, not read-only."""
    return [
        array
        if type(array) is np.ndarray and array.flags.carray
        else np.array(array, order="C", subok=False)
        for array in arrays
    ]


# ---------------------------------------------------------------------------- threads


class _Threads:
    """How many threads calls may use.

    Attributes:
        limit: as set for all programs.
        forked: this process was forked off another one: OpenMP does not survive that, so no
            kernel may start threads.
    """

    def __init__(self) -> None:
        self.limit = numba.config.NUMBA_NUM_THREADS
        self.forked = False


_threads = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_threads, "forked", True))


def set_num_threads(count: int) -> None:
    """The most threads that a call uses from now on."""
    _threads.limit = count


def get_num_threads() -> int:
    """The most threads that a call uses."""
    return _threads.limit


def threads_of(settings: Settings) -> Callable[[], int]:
    """A function that tells how many threads a call of a program may use."""
    own = settings.threads
    if not _layer_is_safe():
        return lambda: 1
    if own is None:
        return lambda: 1 if _threads.forked else _threads.limit
    return lambda: 1 if _threads.forked else own


def _layer_is_safe() -> bool:
    """Whether several callers may start threads at once: not with Numba's own `workqueue`."""
    for name in ("tbbpool", "omppool"):
        try:
            __import__(f"numba.np.ufunc.{name}")
        except ImportError:
            continue
        return True
    return False
