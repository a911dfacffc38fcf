"""The decorator `jit`: compile a function at its first call of each signature.

And what a hybridized block is run by, `HybridFunction`.  Both are an `Engine`, which keeps entries;
here is what happens at each call.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.array import Array
from minigraph.compiled import Compiled, MemoryReport, depth_of_user
from minigraph.engine import (
    EAGER,
    CacheInfo,
    Engine,
    Options,
    are_nested_otherwise,
    has_array,
    structure_text,
    structures,
)
from minigraph.entry import MISS
from minigraph.errors import (
    OptionError,
    RetraceWarning,
    StaleError,
    StructureError,
    unknown,
)
from minigraph.mode import MODE, recording_now
from minigraph.trace import ACTIVE, ArraysNeeded, Frozen, Trace, bind, seen

__all__ = [
    "BoundJit",
    "CacheInfo",
    "HybridFunction",
    "JitFunction",
    "eager",
    "freeze",
    "is_eager",
    "jit",
]


def is_eager() -> bool:
    """Inside of `with eager():`."""
    return EAGER.get()


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Inside this block jitted functions run as ordinary Python."""
    token = EAGER.set(True)
    try:
        yield
    finally:
        EAGER.reset(token)


def freeze(array: np.ndarray[Any, Any]) -> Frozen:
    """An array that compiled code may treat as a constant: a read-only copy.

    Args:
        array: anything `np.asarray` takes.
    """
    return Frozen(array)


class JitFunction(Engine):
    """A function that is traced and compiled at its first call of each signature."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, function, updated=())
        super().__init__(function, getattr(function, "__name__", type(function).__name__), options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None and not EAGER.get():
            for call in self._calls[0]:
                result = call(*args, **kwargs)
                if result is not MISS:
                    return result
            return self.first_call(0, args, kwargs)
        return self.function(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled as what it is called, as functions are

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundJit(self, instance)

    def traced_function_(self) -> Callable[..., Any]:
        """The function itself: inside another trace its body is recorded."""
        return self.function

    def trace(self, arguments: Mapping[str, Any]) -> Trace:
        """Trace the function: on ndarrays, or on eager arrays where one takes part."""
        arrays = Array if any(map(has_array, arguments.values())) else None
        try:
            trace = self.trace_call(arguments, arrays)
        except ArraysNeeded:
            trace = self.trace_call(arguments, Array)
        if trace.arrays:
            self._guard_mode(trace)
        return trace

    def _guard_mode(self, trace: Trace) -> None:
        """An entry on eager arrays is for recording, or not."""
        recording = MODE.get().recording
        text = "the mode is recording" if recording else "the mode is not recording"
        trace.guards.mode(recording_now, recording, text)

    def wraps(self, trace: Trace, arguments: Mapping[str, Any]) -> bool:
        """Results are eager arrays where eager code would return such."""
        return trace.arrays and (trace.eager or super().wraps(trace, arguments))

    def __repr__(self) -> str:
        return f"<jitted {self.__qualname__}, {len(self.cache_info())} entries>"


class BoundJit:
    """A jitted method of one object."""

    def __init__(self, jitted: JitFunction, instance: Any) -> None:
        self.__self__ = instance
        self.__func__ = jitted

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def traced_function_(self) -> Callable[..., Any]:
        """The bound method itself."""
        return self.__func__.function.__get__(self.__self__)

    def lower(self, *args: Any, **kwargs: Any) -> Compiled:
        """As `JitFunction.lower`."""
        return self.__func__.lower(self.__self__, *args, **kwargs)

    def memory_report(self, *args: Any, **kwargs: Any) -> MemoryReport:
        """As `JitFunction.memory_report`."""
        return self.__func__.memory_report(*((self.__self__, *args) if args else ()), **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"


ON_STALE = ("retrace", "warn", "error")
MODE_NAMES = ("predicting", "training", "predicting, recorded", "training, recorded")
MANY_RETRACES = 8  # of one block, after which a warning comes in any case


class HybridFunction(Engine):
    """What runs a hybridized block.

    A block provides, besides what `trace/blocks.py` says, `forward` and
    `call_in_python(args, kwargs)`: a call in Python, which also runs while tracing.

    Args:
        block: the outermost block that is hybridized; all below it joins its programs.
        options: those of `mg.jit`, and `on_stale`: what to do when something that the code has read
            is not what it was: "retrace" (default), "warn" and retrace, or "error".

    Raises:
        OptionError: an unknown option (with the nearest).
    """

    MODES = len(MODE_NAMES)
    OPTIONS = (*Options.NAMES, "on_stale")

    def __init__(self, block: Any, options: Mapping[str, Any] | None = None) -> None:
        given = dict(options or {})
        for name in given:
            if name not in self.OPTIONS:
                raise unknown("option", name, self.OPTIONS)
        self.on_stale = given.get("on_stale", "retrace")
        if self.on_stale not in ON_STALE:
            raise unknown("on_stale", self.on_stale, ON_STALE)
        self.block = block
        self._told: set[str] = set()  # what was warned of once
        self._retraces = 0  # because something that the code reads had changed
        self._signature = _signature(block)
        name = type(block).__name__
        super().__init__(_call_of(block, name, self._signature), name, Options(given))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None and not EAGER.get():
            mode = MODE.get()
            index = mode.training + 2 * mode.recording
            try:
                for call in self._calls[index]:
                    result = call(*args, **kwargs)
                    if result is not MISS:
                        return result
            except TypeError:
                if self._signature == _signature(self.block):
                    raise
            return self.first_call(index, args, kwargs)
        return self.block.call_in_python(args, kwargs)

    def first_call(self, mode: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A call that no entry answered; `forward` may have other parameters by now."""
        signature = _signature(self.block)
        if signature != self._signature:
            with self._lock:
                self._signature = signature
                self.function = _call_of(self.block, self.name, signature)
                self.forget()
        return super().first_call(mode, args, kwargs)

    def mode(self) -> int:
        """Which set of entries the mode of this thread means."""
        mode = MODE.get()
        return mode.training + 2 * mode.recording

    def trace(self, arguments: Mapping[str, Any]) -> Trace:
        """Trace the block; inside, arrays are eager arrays."""

        def target(*args: Any, **kwargs: Any) -> Any:
            seen(self.block, "self")
            return self.function(*args, **kwargs)

        return self.trace_call(arguments, Array, target=target)

    def examine(self, trace: Trace) -> None:
        """Tell once of inputs and parameters that nothing uses."""
        unused = [
            *trace.notes,
            *(f"the parameter {name} is not used" for name in trace.unused),
        ]
        for fact in unused:
            if fact not in self._told:
                self._told.add(fact)
                warnings.warn(f"{self.name}: {fact}", stacklevel=depth_of_user())

    def reason(self, mode: int, arguments: Mapping[str, Any]) -> str:
        """Why the block is traced again; something that changed may be an error."""
        others = [MODE_NAMES[at] for at, entries in enumerate(self._entries) if entries]
        if not self._entries[mode] and others:
            return f"{MODE_NAMES[mode]}, and so far only {' and '.join(others)}"
        found = super().reason(mode, arguments)
        if not any(entry.is_stale(arguments) for entry in self._entries[mode]):
            return found
        reason = f"{self.name}: retraced because {found}"
        if self.on_stale == "error":
            raise StaleError(
                f"{self.name} was compiled when something else was true: {found}",
                instead='net.hybridize(on_stale="retrace"), which compiles it again',
            )
        if self.on_stale == "warn" and reason not in self._told:
            self._told.add(reason)
            warnings.warn(reason, RetraceWarning, stacklevel=depth_of_user())
        self._retraces += 1
        if self._retraces == MANY_RETRACES:
            warnings.warn(
                f"{self.name} was retraced {MANY_RETRACES} times because something that its code "
                f"reads had changed, now because {found}; what changes often is better an "
                "argument, or an array that is written in place",
                RetraceWarning,
                stacklevel=depth_of_user(),
            )
        return reason

    def not_traced(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The block raised while it was traced; a new structure of arguments may be why."""
        found = structures(bind(self.function, args, kwargs))
        known = [dict(entry.trace.graph.signature.params) for entry in self.entries()]
        if known and all(are_nested_otherwise(each, found) for each in known):
            raise StructureError(
                f"the arguments of {self.name}: expected {structure_text(known[0])}, got "
                f"{structure_text(found)}",
                instead="arguments nested as in the call that worked",
            ) from error
        return super().not_traced(error, args, kwargs)

    def __repr__(self) -> str:
        return f"<hybridized {self.name}, {len(self.cache_info())} entries>"


def _call_of(block: Any, name: str, signature: inspect.Signature) -> Callable[..., Any]:
    """A function that calls a block in Python, with the parameters of its `forward`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return block.call_in_python(args, kwargs)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _signature(block: Any) -> inspect.Signature:
    """The parameters of a call: those of `forward`, or of `hybrid_forward` without F and arrays."""
    if not getattr(type(block), "hybrid_", False):
        return inspect.signature(block.forward)
    own = set(block.params)
    found: list[inspect.Parameter] = []
    named = False  # what stands after an own parameter can only be given by name
    for each in list(inspect.signature(block.hybrid_forward).parameters.values())[1:]:
        if each.name in own:
            named = True
        elif named and each.kind is each.POSITIONAL_OR_KEYWORD:
            found.append(each.replace(kind=each.KEYWORD_ONLY))
        else:
            found.append(each)
    return inspect.Signature(found)


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function at its first call of each signature.

    Args:
        function: a function, method, lambda or partial on arrays, numbers, and structures of them.
        **options: `backend`: "auto" (default), or one that `minigraph doctor` lists.
            `passes`: names of passes in order.
            `static`: parameters that are specialised by value instead of traced.
            `dynamic`: axes that keep one entry for all sizes from 1 up: `{"x": {0: "batch"}}`, or
            `{"x": mg.Spec(("batch", 512), "float32")}`.
            `fast_math`: also rewrites that change the last bits, NaN or infinity.
            `verify`: check after each pass that the graph is sound and computes the same bits.
            `math`: "vector" (default): transcendental functions in vector instructions, at most
            4 ULP from exact; "libm": with NumPy's own bits.
            `num_threads`: the most threads that one call uses; see `mg.set_num_threads`.
            `cache_dir`: the folder of compiled code (default: MINIGRAPH_CACHE, or the user's).
            `strict`: a program that cannot be compiled is an error, instead of run in Python.
            `static_alloc`: memory that a call needs besides its results is kept for the next call.
            `static_shape`: implies that, and compiles all sizes in; other shapes are refused.
            `reuse_buffers`: False: each value gets memory of its own, to see what that gains.

    Raises:
        OptionError: an unknown option (with the nearest).
    """
    for name in options:
        if name not in Options.NAMES:
            raise unknown("option", name, Options.NAMES)
    if function is None:
        return functools.partial(jit, **options)
    if not callable(function):
        raise OptionError(f"jit takes a function, not a {type(function).__name__}")
    if isinstance(function, JitFunction):
        function = function.function
    return JitFunction(function, Options(options))
