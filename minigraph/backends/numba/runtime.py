"""Compiles the segments of a program, and supplies what its Python function calls."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import get_num_threads, types

from minigraph.errors import CompileError
from minigraph.ir import ArrayType, Node, Value

from ..settings import Settings, cache_folder
from ..threads import threads_now
from . import checked, intrinsics, products, scalars, transposing, vector_math
from .cache import Recipe, Store
from .numbers import NUMBER_DTYPES
from .segments import ALIGNMENT, Segment
from .writing import Function

_numba: Any = numba  # its type does not say all that is in it
_DTYPES = {
    name: getattr(types, name)
    for name in (
        "boolean int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
    )
}
_HELPERS: Mapping[str, Any] = {
    **scalars.FUNCTIONS,
    **checked.FUNCTIONS,
    **vector_math.FUNCTIONS,
    **intrinsics.HELPERS,
    **products.HELPERS,
    **transposing.HELPERS,
    **_DTYPES,
    "inf": float("inf"),
    "nan": float("nan"),
    "prange": numba.prange,
}
CALL_S = {"power": 0.07, "sin": 0.045, "cos": 0.045, "tan": 0.045, "erf": 0.025}
"""How long compiling a call of the longer functions takes (measured on one machine)."""

LONGEST_S = 10  # a program that would take longer to compile runs in Python
PROGRESS_S = 2  # a terminal sees how far a program has come that takes longer
_OPTIONS = {"error_model": "numpy", "nogil": True}


def compile_segments(
    segments: Mapping[str, Segment], settings: Settings
) -> dict[str, Callable[..., None]]:
    """The compiled functions of a program, by name.

    Raises:
        CompileError: one cannot be compiled, or all of them would take too long.
    """
    store = Store(cache_folder(settings.cache_dir))
    made: dict[str, Callable[..., None]] = {}
    recipes = {name: segment_recipe(segment) for name, segment in segments.items()}
    new = [segments[name] for name, recipe in recipes.items() if not store.is_kept(recipe)]
    expected_s = predicted_s(new)
    if expected_s > LONGEST_S:
        raise CompileError(
            f"compiling would take about {expected_s:.1f} s, which is over {LONGEST_S} s",
            instead='backend="python", or smaller functions',
        )
    with _progress(new, expected_s) as tell:
        for name, recipe in recipes.items():
            try:
                for kernel in recipe.helpers.values() if segments[name] in new else ():
                    if isinstance(kernel, Recipe):
                        store.make(kernel)
                        tell()
                made[name] = _quick_to_refuse(store.make(recipe))
            except Exception as error:
                raise _failure(store, segments[name], error) from error
    return made


def _quick_to_refuse(made: Any) -> Any:
    """A function that raises TypeError at once for arrays which it does not take.

    Numba would look for conversions and describe all types first, which takes longer than the
    copies that follow.
    """
    taken: tuple[Any, ...] = made.nopython_signatures[0].args
    given = [kind.copy(readonly=False) if isinstance(kind, types.Array) else kind for kind in taken]
    made.typingctx.install_possible_conversions(given, taken)
    made._search_new_conversions = _no_conversions
    made._explain_matching_error = _refuse
    return made


def _no_conversions(*arguments: Any) -> bool:
    return False


def _refuse(*arguments: Any) -> None:
    raise TypeError("an array is not in C order")


@contextmanager
def _progress(segments: Sequence[Segment], expected_s: float) -> Iterator[Callable[[], None]]:
    """On a terminal, how far a long compilation has come: call what this gives for each kernel."""
    total = sum(len(segment.functions) + len(segment.shared) for segment in segments)
    terminal = sys.stderr  # there is none in a program without a console
    shown = expected_s > PROGRESS_S and terminal is not None and terminal.isatty()
    done = 0

    def tell() -> None:
        nonlocal done
        done += 1
        if shown and terminal is not None:
            terminal.write(f"\rminigraph: compiled {done} of {total} kernels ")
            terminal.flush()

    try:
        yield tell
    finally:
        if shown and terminal is not None:
            terminal.write("\r\033[K")
            terminal.flush()


def _failure(store: Store, segment: Segment, error: Exception) -> CompileError:
    """What could not be compiled: a node of the first kernel that fails alone, or the segment."""
    for function in segment.functions.values():
        recipe = kernel_recipe(function)
        try:
            store.make(recipe)
        except Exception as failed:
            nodes = _nodes_at_fault(function, recipe, failed)
            words = ", ".join(dict.fromkeys(node.op.name for node in nodes))
            what = words if len(nodes) == 1 else f"the kernel of {words}"
            return CompileError(
                f"Numba could not compile {what}: {_in_short(failed)}",
                where=next((node.loc for node in nodes if node.loc), None),
                instead='backend="python"',
            )
    return CompileError(f"Numba could not compile the program: {_in_short(error)}")


def _nodes_at_fault(function: Function, recipe: Recipe, error: Exception) -> list[Node]:
    """The node of the line that an error names; all nodes if it names none."""
    place = getattr(error, "loc", None)
    if place is not None and recipe.digest in place.filename:
        found = [node for line, node in function.lines if line == place.line]
        if found:
            return found
    return [node for _, node in function.lines]


def _in_short(error: Exception) -> str:
    """The line of Numba's message that says what is wrong; the first says in which step."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = (line for line in lines if line and not line.startswith("Failed in "))
    return next(said, type(error).__name__)


def predicted_s(segments: Iterable[Segment]) -> float:
    """How long compiling takes, if nothing is in the cache (measured on one machine)."""
    functions: dict[tuple[str, ...], bool] = {}  # of a kernel -> whether it also runs in threads
    calls = 0
    for segment in segments:
        calls += segment.text.count("\n")
        for name, function in segment.functions.items():
            shared = functions.get(function.key, False) or name in segment.shared
            functions[function.key] = shared
    statements = sum(text.count("\n") for text, *_ in functions)
    calls_s = sum(_calls_s(text) for text, *_ in functions)
    shared = sum(functions.values())
    return 0.15 * len(functions) + 0.4 * shared + 0.0035 * statements + 0.004 * calls + calls_s


def _calls_s(text: str) -> float:
    """How long it takes to compile the vector math in a kernel."""
    words = re.findall(r"(\w+)\(", text)
    return sum(CALL_S.get(word, 0.015) for word in words if word in vector_math.FUNCTIONS)


def machine_text(segments: Mapping[str, Segment], form: str) -> str:
    """What LLVM made of the segments: its intermediate code ("llvm"), or assembly ("asm")."""
    store = Store(None)  # what is loaded from disk has no text
    parts: list[str] = []
    for segment in segments.values():
        made = store.make(segment_recipe(segment))
        texts = made.inspect_llvm() if form == "llvm" else made.inspect_asm()
        parts += texts.values()
    return "\n".join(parts)


def segment_recipe(segment: Segment) -> Recipe:
    """What it takes to compile a segment."""
    kernels: dict[str, Recipe] = {}
    for name, function in segment.functions.items():
        kernels[name] = kernel_recipe(function)
        if name in segment.shared:
            kernels[f"shared_{name}"] = _shared_recipe(function, kernels[name])
    arguments: list[Any] = [types.Array(types.int64, 1, "C")] * bool(segment.sizes)
    arguments += [types.int64] * segment.threads
    arguments += [types.Array(types.uint8, 1, "C")] * (segment.memory_bytes != 0)
    arguments += [_DTYPES[dtype] for _, dtype in segment.numbers]
    arguments += [_array_type(value, readonly=True) for value in segment.reads]
    arguments += [_array_type(value) for value in segment.writes]
    results = [_DTYPES[NUMBER_DTYPES[value.type]] for value in segment.results]
    result: Any = types.BaseTuple.from_types(results) if results[1:] else (*results, types.void)[0]
    signature = result(*arguments)
    return Recipe(segment.text, "segment", signature, {**_HELPERS, **kernels}, **_OPTIONS)


def kernel_recipe(function: Function) -> Recipe:
    """What it takes to compile a kernel."""
    signature = types.void(*_parameters(function))
    called = {name: kernel_recipe(inner) for name, inner in function.functions.items()}
    return Recipe(function.text, "kernel", signature, {**_HELPERS, **called}, **_OPTIONS)


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


def _array_type(value: Value, *, readonly: bool = False) -> Any:
    """An array in C order; `readonly`: one that may be written to is also taken."""
    assert isinstance(value.type, ArrayType)
    dtype = value.type.dtype
    element = types.boolean if dtype.kind == "b" else _DTYPES[dtype.name]
    return types.Array(element, value.type.ndim, "C", readonly=readonly)


# ---------------------------------------------------------------------------- memory and arrays


def new_memory(size_bytes: int) -> np.ndarray[Any, Any]:
    """Memory for what no call returns."""
    piece = np.empty(size_bytes + ALIGNMENT, np.uint8)
    start = -piece.ctypes.data % ALIGNMENT
    return piece[start : start + size_bytes]


def dense(*arrays: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays as compiled code takes them, those that are not in C order as copies."""
    return [np.asarray(array, order="C") for array in arrays]


def kept(settings: Settings) -> str:
    """Where compiled code is kept, or why it is not."""
    store = Store(cache_folder(settings.cache_dir))
    return store.why or f"kept in {store.folder}"


# ---------------------------------------------------------------------------- threads


def threads_of(settings: Settings) -> Callable[[], int]:
    """A function that tells how many threads a call of a program may use.

    It starts the threads, without which code from the cache cannot be loaded.  They are used only
    where several callers may enter them at once, as with TBB and OpenMP; Numba's own `workqueue`
    ends the process then.

    Raises:
        CompileError: there is no such layer as the user asks Numba for.
    """
    try:
        most: int = get_num_threads()
    except ValueError as error:
        raise CompileError(f"Numba cannot start threads: {error}") from error
    safe = _numba.threading_layer() in ("tbb", "omp")
    return partial(threads_now, settings.threads, most if safe else 1)
