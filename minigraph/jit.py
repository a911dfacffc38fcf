"""The decorator `jit`: compile a function at its first call of each signature.

`jit` keeps an *entry* for each signature: a compiled program and a guard, one generated Python
expression over the arguments and over everything the trace has read.  The newest entry whose guard
holds runs; when none does, the function is traced again.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from minigraph import backends
from minigraph.backends import Settings
from minigraph.compiled import (
    SETTINGS,
    Compiled,
    MemoryReport,
    Passes,
    check_same_shapes,
    settings_of,
)
from minigraph.entry import MISS, Entry, check_numbers, flat_inputs
from minigraph.errors import MinigraphError, OptionError, StateError, UnsupportedError, unknown
from minigraph.ir import (
    Dim,
    Graph,
    Loc,
    Plan,
)
from minigraph.passes import Stage
from minigraph.trace import ACTIVE, Frozen, Spec, bind, is_users_file, trace_call

_EAGER: ContextVar[bool] = ContextVar("minigraph_eager", default=False)
_LIMIT = 64  # entries of one function
_TRIES = 3  # of tracing one call, before what it reads is said never to stay the same


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Inside this block jitted functions run as ordinary Python."""
    token = _EAGER.set(True)
    try:
        yield
    finally:
        _EAGER.reset(token)


def is_eager() -> bool:
    """Inside of `with eager():`."""
    return _EAGER.get()


def freeze(array: np.ndarray[Any, Any]) -> Frozen:
    """An array that compiled code may treat as a constant: a read-only copy.

    Args:
        array: anything `np.asarray` takes.
    """
    return Frozen(array)


class CacheInfo:
    """What a jitted function has compiled.

    Attributes:
        entries: (signature, why it was traced) of each that is kept, oldest first.
        eager_calls: calls that ran as ordinary Python because written arguments overlapped.
        evicted: entries that were dropped because there were too many.
    """

    def __init__(self, entries: Sequence[tuple[str, str]], eager_calls: int, evicted: int) -> None:
        self.entries = list(entries)
        self.eager_calls = eager_calls
        self.evicted = evicted

    @property
    def retraces(self) -> list[str]:
        """What differed each time the function was traced again."""
        return [reason for _, reason in self.entries[1:]]

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        lines = ["1 entry" if len(self.entries) == 1 else f"{len(self.entries)} entries"]
        for index, (signature, reason) in enumerate(self.entries):
            lines.append(f"  {index}. ({signature})")
            lines.append(f"     {reason}")
        if self.eager_calls:
            lines.append(f"{self.eager_calls} calls ran eagerly: written arguments overlapped")
        if self.evicted:
            lines.append(f"{self.evicted} entries were dropped (at most {_LIMIT} are kept)")
        return "\n".join(lines)

    __repr__ = __str__


class JitFunction:
    """A function that is traced and compiled at its first call of each signature."""

    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        backend: str,
        passes: Passes | None,
        static: Sequence[str],
        dynamic: Mapping[str, Mapping[int, Any]],
        fast_math: bool,
        verify: bool,
        settings: Settings,
    ) -> None:
        self.function = function
        self._options: dict[str, Any] = {
            "backend": backend,
            "passes": passes if passes is None or isinstance(passes, str) else tuple(passes),
            "fast_math": fast_math,
            "verify": verify,
            "settings": settings,
        }
        self._static = tuple(static)
        self._dynamic = dict(dynamic)
        self._entries: tuple[Entry, ...] = ()  # newest first
        self._calls: tuple[Callable[..., Any], ...] = ()
        self._lock = threading.RLock()
        self._eager_calls = 0
        self._evicted = 0
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None and not _EAGER.get():
            for call in self._calls:
                result = call(*args, **kwargs)
                if result is not MISS:
                    return result
            return self._first_call(args, kwargs)
        return self.function(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled as what it is called, as functions are

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundJit(self, instance)

    def traced_function_(self) -> Callable[..., Any]:
        """The function itself: inside another trace its body is recorded."""
        return self.function

    def take_options(self, other: JitFunction) -> None:
        """Compile as another jitted function is compiled."""
        self._options, self._static, self._dynamic = other._options, other._static, other._dynamic

    def compiled(self, graph: Graph) -> Compiled:
        """A graph compiled as this function is."""
        return Compiled(graph, **self._options)

    # ---- compiling -------------------------------------------------------------------------

    def _first_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            arguments = bind(self.function, args, kwargs)
        except TypeError:
            return self.function(*args, **kwargs)  # raises, in Python's words
        with self._lock:
            entry = self._find(arguments) or self._add(arguments)
        if not isinstance(entry, Entry):  # the function raised while traced: let Python raise it
            self.function(*args, **kwargs)
            raise UnsupportedError(
                f"tracing {self.__name__} raised {type(entry).__name__}: {entry}; calling it "
                "does not",
                where=_users_line(entry),
                instead="@mg.jit only functions whose code can run on traced values",
            ) from entry
        result = entry.call(*args, **kwargs)
        return self(*args, **kwargs) if result is MISS else result  # changed by another thread

    def _find(self, arguments: Mapping[str, Any]) -> Entry | None:
        return next((e for e in self._entries if not e.difference(arguments)), None)

    def _add(self, arguments: Mapping[str, Any]) -> Entry | Exception:
        """A new entry, or what the function raised while it was traced."""
        reason = "first call"
        if self._entries:
            reason = self._entries[0].difference(arguments) or "another signature"
        changed = ""
        for _ in range(_TRIES):  # another thread may change what the function reads
            entry = self._compile(arguments, reason)
            if not isinstance(entry, Entry):
                return entry
            changed = entry.difference(arguments)
            if not changed:
                return self._keep(entry)
        raise StateError(
            f"{self.__name__} reads something that is new each time it is read: {changed}",
            instead="read it outside, and pass it as an argument",
        )

    def _keep(self, entry: Entry) -> Entry:
        kept = (entry, *self._entries)
        self._evicted += max(0, len(kept) - _LIMIT)
        self._entries = kept[:_LIMIT]
        self._calls = tuple(e.call for e in self._entries)
        return entry

    def _compile(self, arguments: Mapping[str, Any], reason: str) -> Entry | Exception:
        for name in (*self._static, *self._dynamic):
            if name not in arguments:
                known = list(arguments)
                raise unknown("parameter", name, known)
        try:
            trace = trace_call(self.function, arguments, static=self._static, dynamic=self._dynamic)
        except MinigraphError:
            raise
        except Exception as error:
            return error
        if self._entries and self._options["settings"].static_shape:
            check_same_shapes(trace.graph, self._entries[-1].trace.graph)
        compiled = Compiled(trace.graph, **self._options, strided=trace.strided)
        if self._options["verify"]:
            check_numbers(compiled, trace, arguments)
        return Entry(self.function, trace, compiled, reason, self._run_eagerly)

    def _run_eagerly(self, *args: Any, **kwargs: Any) -> Any:
        self._eager_calls += 1
        return self.function(*args, **kwargs)

    # ---- what it knows ---------------------------------------------------------------------

    def lower(self, *args: Any, **kwargs: Any) -> Compiled:
        """Trace and compile for these arguments without running; `print` it to see every stage."""
        arguments = bind(self.function, args, kwargs)
        with self._lock:
            entry = self._find(arguments) or self._add(arguments)
        if not isinstance(entry, Entry):
            raise entry
        return entry.compiled

    def _last(self) -> Entry:
        if not self._entries:
            raise OptionError(
                f"{self.__name__} has not been compiled yet",
                instead="call it once, or f.lower(*arguments)",
            )
        return self._entries[0]

    @property
    def stages(self) -> list[Stage]:
        """The stages of the newest entry."""
        return self._last().compiled.stages

    @property
    def plan(self) -> Plan:
        """The memory plan of the newest entry."""
        return self._last().compiled.plan

    def graph(self, stage: str = "optimized") -> Graph:
        """A stage of the newest entry: "traced", a pass's name, or "optimized"."""
        return self._last().compiled.graph(stage)

    def source(self, what: str = "program") -> str:
        """Generated source of the newest entry.

        Args:
            what: "program": the Python that is called; "guard"; or the backend's name: all of its
                text, with the user's names.  The Numba backend also has "llvm" and "asm".
        """
        entry = self._last()
        sources = ["guard", *entry.compiled.sources]
        if what not in sources:
            raise unknown("source", what, sources)
        return entry.guard if what == "guard" else entry.compiled.source(what)

    def explain(self) -> str:
        """What each pass did and refused, for the newest entry."""
        return self._last().compiled.explain()

    def memory_report(self, *args: Any, **kwargs: Any) -> MemoryReport:
        """Bytes needed by the newest entry; with arguments also as measured by running once."""
        entry = self._last()
        if not args and not kwargs:
            return entry.compiled.memory_report()
        arguments = bind(self.function, args, kwargs)
        return entry.compiled.memory_report(*flat_inputs(entry.trace, arguments))

    def cache_info(self) -> CacheInfo:
        """Each entry, what differed each time the function was traced again."""
        entries = [(entry.signature, entry.reason) for entry in reversed(self._entries)]
        return CacheInfo(entries, self._eager_calls, self._evicted)

    def __repr__(self) -> str:
        return f"<jitted {self.__qualname__}, {len(self._entries)} entries>"


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


def _axes(spec: Spec | Mapping[int, Any]) -> Mapping[int, Any]:
    """The axes of named size."""
    if isinstance(spec, Spec):
        return {axis: size for axis, size in enumerate(spec.type.shape) if isinstance(size, Dim)}
    if not isinstance(spec, Mapping):
        raise OptionError(
            f"dynamic= names axes, not {spec!r}", instead='dynamic={"x": {0: "batch"}}'
        )
    return spec


def _users_line(error: Exception) -> Loc | None:
    """The innermost line of the user's that an exception went through."""
    found: Loc | None = None
    step = error.__traceback__
    while step is not None:
        filename = step.tb_frame.f_code.co_filename
        if is_users_file(filename):
            found = Loc(filename, step.tb_lineno)
        step = step.tb_next
    return found


_OPTIONS = ("backend", "passes", "static", "dynamic", "fast_math", "verify", *SETTINGS)


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

    Raises:
        OptionError: an unknown option (with the nearest).
    """
    for name in options:
        if name not in _OPTIONS:
            raise unknown("option", name, _OPTIONS)
    if function is None:
        return functools.partial(jit, **options)
    if not callable(function):
        raise OptionError(f"jit takes a function, not a {type(function).__name__}")
    static, dynamic = options.get("static", ()), options.get("dynamic", {})
    if not isinstance(static, str | tuple | list):
        raise OptionError(f"static= names parameters, not {static!r}", instead='static=("n",)')
    if not isinstance(dynamic, Mapping):
        raise OptionError(
            f"dynamic= names axes of parameters, not {dynamic!r}",
            instead='dynamic={"x": {0: "batch"}}',
        )
    passes = options.get("passes")
    if passes is not None and not isinstance(passes, str | tuple | list):
        raise OptionError(f"passes= is a tuple of passes, not {passes!r}", instead='("cse", "dce")')
    settings: dict[str, Any] = {
        "backend": options.get("backend", "auto"),
        "passes": passes,
        "static": (static,) if isinstance(static, str) else static,
        "dynamic": {name: _axes(spec) for name, spec in dynamic.items()},
        "fast_math": options.get("fast_math", False),
        "verify": options.get("verify", False),
        "settings": settings_of({name: options[name] for name in SETTINGS if name in options}),
    }
    backends.get(settings["backend"])  # a wrong name is an error here, not at the first call
    if isinstance(function, JitFunction):
        function = function.function
    return JitFunction(function, **settings)
