"""From a signature to a compiled entry: `compile`, `optimize`, and the decorator `jit`.

`jit` traces at the first call of each signature and keeps an *entry*: a compiled program and a
guard, one generated Python expression over the arguments and over everything the trace has read.
The first entry whose guard holds runs; when none does, the function is traced again.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import difflib
import functools
import inspect
import io
import linecache
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from minigraph import backends, ops
from minigraph.errors import MinigraphError, OptionError, SignatureError, UnsupportedError
from minigraph.ir import (
    SCALARS,
    ArrayType,
    Branch,
    Dim,
    Graph,
    Ids,
    Leaf,
    Plan,
    Static,
    Tree,
    Type,
    Value,
    parse_graph,
    type_of,
    unflatten,
)
from minigraph.ir import freeze as frozen_bits
from minigraph.passes import DEFAULT, History, Recorder, Stage, describe, explain, plan
from minigraph.passes import optimize as run_passes
from minigraph.trace import ACTIVE, Frozen, Names, Trace, bind, signature_of, trace_call

_EAGER: ContextVar[bool] = ContextVar("minigraph_eager", default=False)
_MISS: Any = object()
_LIMIT = 64  # entries of one function

Passes = Sequence[str | Callable[..., Any]]


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Inside this block jitted functions run as ordinary Python."""
    token = _EAGER.set(True)
    try:
        yield
    finally:
        _EAGER.reset(token)


def freeze(array: np.ndarray[Any, Any]) -> Frozen:
    """An array that compiled code may treat as a constant: a read-only copy.

    Args:
        array: anything `np.asarray` takes.
    """
    return Frozen(array)


def parse(text: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """Read a graph from its text form.

    Args:
        text: what `str(graph)` prints.
        constants: large constants by digest (`graph.constants`).

    Raises:
        TextError: it breaks the grammar; line and column are named.
    """
    return parse_graph(text, ops.OPS, constants or {})


def optimize(graph: Graph, passes: Passes = DEFAULT, *, fast_math: bool = False) -> Graph:
    """The graph after these passes.

    Raises:
        OptionError: there is no such pass.
    """
    return run_passes(graph, passes, fast_math=fast_math).graph


class Compiled:
    """A compiled graph: call it with the arguments it was traced for.

    Attributes:
        history: every stage with its events; plan: where values live; program: the generated
        source; run: the flat callable `(*inputs) -> tuple of outputs`.
    """

    def __init__(
        self,
        graph: Graph,
        backend: str,
        passes: Passes,
        fast_math: bool,
        verify: bool,
        strided: Sequence[Value] = (),
    ) -> None:
        chosen = backends.get(backend)
        self.backend: str = backends.resolve(backend)
        self.history: History = run_passes(
            graph, passes, fast_math=fast_math, debug=verify, strided=strided
        )
        recorder = Recorder(Ids.after(self.history.graph), strided=strided)
        self.plan: Plan = plan(self.history.graph, recorder)
        self._options = (backend, passes, fast_math, verify)
        self._strided: Compiled | None = None
        self.program = chosen.emit(self.history.graph, self.plan)
        self.run: Callable[..., tuple[Any, ...]] = chosen.load(self.program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        signature = self.history.graph.signature
        names = [name for name, _ in signature.params]
        if len(args) > len(names) or any(key not in names[len(args) :] for key in kwargs):
            raise SignatureError(f"{self.history.graph.name} takes ({', '.join(names)})")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        missing = [name for name in names if name not in given]
        if missing:
            raise SignatureError(f"{self.history.graph.name}: missing {', '.join(missing)}")
        if signature.captures:
            raise SignatureError(
                f"the graph reads {', '.join(signature.captures)}, which only @mg.jit can supply",
                instead="@mg.jit, or pass them as arguments",
            )
        leaves: list[Any] = []
        for name, tree in signature.params:
            _match(given[name], tree, name, leaves)
        graph = self.history.graph
        _check_types(graph, leaves)
        run = self.run if all(map(_is_dense, leaves)) else self._for_any_order().run
        return unflatten(signature.result, iter(run(*leaves)))

    def _for_any_order(self) -> Compiled:
        """The same program for arrays whose elements do not lie in C order."""
        if self._strided is None:
            graph = self.history.stages[0].graph
            arrays = [value for value in graph.inputs if isinstance(value.type, ArrayType)]
            self._strided = Compiled(graph, *self._options, strided=arrays)
        return self._strided

    # ---- views -----------------------------------------------------------------------------

    @property
    def stages(self) -> list[Stage]:
        """The traced graph, and the graph after each pass, with what each did and refused."""
        return self.history.stages

    def graph(self, stage: str = "optimized") -> Graph:
        """The graph at a stage: "traced", a pass's name (its last run), or "optimized".

        Raises:
            OptionError: there is no such stage.
        """
        return self.history.stage(stage).graph

    def source(self) -> str:
        """The generated program."""
        return self.program.source

    def explain(self) -> str:
        """What each pass did and why, and what it refused and why."""
        return explain(self.history)

    def memory_report(self, *arguments: Any) -> MemoryReport:
        """Bytes needed, as planned; with (flat) arguments also as measured by running once."""
        measured = _measure(self.run, arguments) if arguments else None
        return MemoryReport(self.plan, measured)

    def __str__(self) -> str:
        return f"{describe(self.history)}\n\n# {self.backend}\n{self.source()}"


class MemoryReport:
    """Bytes of the values that a program makes (inputs and constants are not counted).

    Attributes:
        planned: the peak under the plan; naive: without reuse; lower_bound: the most that is alive
        at once; measured: the peak that `tracemalloc` saw (None: not run).
    """

    def __init__(self, plan: Plan, measured: int | None) -> None:
        self.planned = plan.peak_bytes
        self.naive = plan.naive_bytes
        self.lower_bound = plan.lower_bytes
        self.measured = measured

    def __str__(self) -> str:
        rows = [
            ("without reuse", self.naive),
            ("planned", self.planned),
            ("lower bound", self.lower_bound),
            ("measured", "not run" if self.measured is None else self.measured),
        ]
        return "\n".join(f"{name:<14} {_bytes(size):>16}" for name, size in rows)


def _bytes(size: Any) -> str:
    return f"{size:,} bytes" if isinstance(size, int) else str(size)


def _measure(run: Callable[..., Any], arguments: Sequence[Any]) -> int:
    arguments = copy.deepcopy(list(arguments))
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        run(*copy.deepcopy(arguments))  # warm
        was_tracing = tracemalloc.is_tracing()
        if not was_tracing:
            tracemalloc.start()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        kept = run(*arguments)
        peak = tracemalloc.get_traced_memory()[1]
        del kept
        if not was_tracing:
            tracemalloc.stop()
    return peak - before


def compile(
    graph: Graph,
    backend: str = "auto",
    *,
    passes: Passes = DEFAULT,
    fast_math: bool = False,
    verify: bool = False,
) -> Compiled:
    """Optimise a graph and make it callable.

    Args:
        graph: from `trace`, `trace_program` or `parse`.
        backend: "auto", or one that `minigraph doctor` lists.
        passes: names (or functions) in order.
        fast_math: also rewrites that change results in the last bits or for NaN and infinity.
        verify: check the graph after each pass.

    Raises:
        OptionError: no such backend or pass.
    """
    return Compiled(graph, backend, passes, fast_math, verify)


def _is_dense(leaf: Any) -> bool:
    return not isinstance(leaf, np.ndarray) or leaf.ndim < 2 or leaf.flags.c_contiguous


def _match(value: Any, tree: Tree, path: str, leaves: list[Any]) -> None:
    """Collect the leaves of an argument, checking its structure."""
    if isinstance(tree, Leaf):
        leaves.append(value)
    elif isinstance(tree, Static):
        if Static(value) != tree:
            raise SignatureError(f"{path} must be {tree.text}, as it was when traced")
    else:
        _match_branch(value, tree, path, leaves)


def _match_branch(value: Any, tree: Branch, path: str, leaves: list[Any]) -> None:
    if type(value).__name__ != tree.name:
        raise SignatureError(f"{path} must be a {tree.name}, not a {type(value).__name__}")
    if tree.name in ("tuple", "list"):
        if len(value) != len(tree.keys):
            raise SignatureError(f"{path} must have {len(tree.keys)} items, not {len(value)}")
        pairs = list(enumerate(value))
    elif tree.name == "dict":
        if list(value) != list(tree.keys):
            raise SignatureError(f"{path} must have the keys {list(tree.keys)}")
        pairs = list(value.items())
    else:
        pairs = [(key, getattr(value, key)) for key in tree.keys]
    for (key, child), branch in zip(pairs, tree.children, strict=True):
        _match(child, branch, f"{path}[{key!r}]", leaves)


def _check_types(graph: Graph, leaves: Sequence[Any]) -> None:
    sizes: dict[str, int] = {}
    for value, leaf in zip(graph.inputs, leaves, strict=False):
        found = type_of(leaf)
        if not _fits(value.type, found, sizes):
            raise SignatureError(
                f"%{value.name} must be {value.type}, not {found}",
                instead="@mg.jit, which traces again for new types",
            )


def _fits(expected: Type, found: Type, sizes: dict[str, int]) -> bool:
    if not isinstance(expected, ArrayType) or not isinstance(found, ArrayType):
        return expected == found
    if expected.dtype != found.dtype or expected.ndim != found.ndim:
        return False
    for size, actual in zip(expected.shape, found.shape, strict=True):
        assert isinstance(actual, int)
        if isinstance(size, Dim) and size.is_name:
            if sizes.setdefault(str(size), actual) != actual:
                return False
        elif isinstance(size, Dim):
            if size.substitute(sizes) != actual:
                return False
        elif size != actual:
            return False
    return True


# ---- jit -----------------------------------------------------------------------------------------


class Entry:
    """One compiled signature of a jitted function.

    Attributes:
        compiled: the program; trace: what it was made from.
        call: the generated function; returns a marker when the guard does not hold.
        guard: the conditions as text.
        reason: why it was traced.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        trace: Trace,
        compiled: Compiled,
        reason: str,
        run_eagerly: Callable[..., Any],
    ) -> None:
        self.trace = trace
        self.compiled = compiled
        self.reason = reason
        self.signature = ", ".join(f"{value.name}: {value.type}" for value in trace.graph.inputs)
        self.call, self.guard, self._check = _generate(function, trace, compiled, run_eagerly)

    def difference(self, arguments: Mapping[str, Any]) -> str:
        """Which condition does not hold for these arguments."""
        return self._check(arguments)


class CacheInfo:
    """What a jitted function has compiled.

    Attributes:
        entries: (signature, why it was traced) of each, oldest first.
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
        lines = [f"{len(self.entries)} entries"]
        for index, (signature, reason) in enumerate(self.entries):
            lines.append(f"  {index}. ({signature})")
            lines.append(f"     {reason}")
        if self.eager_calls:
            lines.append(f"{self.eager_calls} calls ran eagerly: written arguments overlapped")
        if self.evicted:
            lines.append(f"{self.evicted} entries were dropped (at most {_LIMIT} are kept)")
        return "\n".join(lines)


class JitFunction:
    """A function that is traced and compiled at its first call of each signature."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        backend: str,
        passes: Passes,
        static: Sequence[str],
        dynamic: Mapping[str, Mapping[int, Any]],
        fast_math: bool,
        verify: bool,
    ) -> None:
        self.function = function
        self._options: dict[str, Any] = {
            "backend": backend,
            "passes": tuple(passes),
            "fast_math": fast_math,
            "verify": verify,
        }
        self._static = tuple(static)
        self._dynamic = dict(dynamic)
        self._entries: tuple[Entry, ...] = ()  # newest first
        self._calls: tuple[Callable[..., Any], ...] = ()
        self._lock = threading.RLock()
        self._log: list[tuple[str, str]] = []
        self._eager_calls = 0
        self._evicted = 0
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None and not _EAGER.get():
            for call in self._calls:
                result = call(*args, **kwargs)
                if result is not _MISS:
                    return result
            return self._first_call(args, kwargs)
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundJit(self, instance)

    @staticmethod
    def traced_function_(self: JitFunction) -> Callable[..., Any]:
        """The function itself: inside another trace its body is recorded."""
        return self.function

    # ---- compiling -------------------------------------------------------------------------

    def _first_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        arguments = bind(self.function, args, kwargs)
        with self._lock:
            entry = self._find(arguments) or self._add(arguments)
        if entry is None:  # the function itself raised while it was traced: let Python raise it
            result = self.function(*args, **kwargs)
            raise UnsupportedError(
                f"tracing {self.__name__} raised an error that calling it does not",
                instead="@mg.jit only functions whose code can run on traced values",
            ) from self._trace_error
        result = entry.call(*args, **kwargs)
        assert result is not _MISS, f"a fresh guard does not hold: {entry.difference(arguments)}"
        return result

    def _find(self, arguments: Mapping[str, Any]) -> Entry | None:
        return next((e for e in self._entries if not e.difference(arguments)), None)

    def _add(self, arguments: Mapping[str, Any]) -> Entry | None:
        reason = "first call"
        if self._entries:
            reason = self._entries[0].difference(arguments) or "another signature"
        entry = self._compile(arguments, reason)
        if entry is None:
            return None
        self._log.append((entry.signature, reason))
        kept = (entry, *self._entries)
        self._evicted += max(0, len(kept) - _LIMIT)
        self._entries = kept[:_LIMIT]
        self._calls = tuple(e.call for e in self._entries)
        return entry

    def _compile(self, arguments: Mapping[str, Any], reason: str) -> Entry | None:
        for name in (*self._static, *self._dynamic):
            if name not in arguments:
                known = list(arguments)
                raise OptionError(_unknown("parameter", name, known), instead=", ".join(known))
        try:
            trace = trace_call(self.function, arguments, static=self._static, dynamic=self._dynamic)
        except MinigraphError:
            raise
        except Exception as error:
            self._trace_error = error
            return None
        compiled = Compiled(trace.graph, **self._options, strided=trace.strided)
        if self._options["verify"]:
            _check_numbers(compiled, trace, arguments)
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
        if entry is None:
            raise self._trace_error
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
        """Generated source of the newest entry: "program" or "guard"."""
        entry = self._last()
        if what == "guard":
            return entry.guard
        if what not in ("program", entry.compiled.backend):
            known = ["program", "guard", entry.compiled.backend]
            raise OptionError(_unknown("source", what, known), instead=", ".join(known))
        return entry.compiled.source()

    def explain(self) -> str:
        """What each pass did and refused, for the newest entry."""
        return self._last().compiled.explain()

    def memory_report(self, *args: Any, **kwargs: Any) -> MemoryReport:
        """Bytes needed by the newest entry; with arguments also as measured by running once."""
        entry = self._last()
        if not args and not kwargs:
            return entry.compiled.memory_report()
        arguments = bind(self.function, args, kwargs)
        return entry.compiled.memory_report(*_flat_inputs(entry.trace, arguments))

    def cache_info(self) -> CacheInfo:
        """Each entry, what differed each time the function was traced again."""
        return CacheInfo(self._log, self._eager_calls, self._evicted)

    def __repr__(self) -> str:
        return f"<jitted {self.__qualname__}, {len(self._entries)} entries>"


class BoundJit:
    """A jitted method of one object."""

    def __init__(self, jitted: JitFunction, instance: Any) -> None:
        self.__self__ = instance
        self.__func__ = jitted

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    @staticmethod
    def traced_function_(self: BoundJit) -> Callable[..., Any]:
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


_OPTIONS = ("backend", "passes", "static", "dynamic", "fast_math", "verify")


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function at its first call of each signature.

    Args:
        function: a function, method, lambda or partial on arrays, numbers, and structures of them.
        **options: `backend`: "auto" (default), or one that `minigraph doctor` lists.
            `passes`: names of passes in order.
            `static`: parameters that are specialised by value instead of traced.
            `dynamic`: axes that keep one entry for all sizes: `{"x": {0: "batch"}}`.
            `fast_math`: also rewrites that change the last bits, NaN or infinity.
            `verify`: check after each pass that the graph is sound and computes the same bits.

    Raises:
        OptionError: an unknown option (with the nearest).
    """
    for name in options:
        if name not in _OPTIONS:
            raise OptionError(_unknown("option", name, _OPTIONS), instead=", ".join(_OPTIONS))
    if function is None:
        return functools.partial(jit, **options)
    if not callable(function):
        raise OptionError(f"jit takes a function, not a {type(function).__name__}")
    static = options.get("static", ())
    settings: dict[str, Any] = {
        "backend": options.get("backend", "auto"),
        "passes": options.get("passes", DEFAULT),
        "static": (static,) if isinstance(static, str) else static,
        "dynamic": options.get("dynamic", {}),
        "fast_math": options.get("fast_math", False),
        "verify": options.get("verify", False),
    }
    backends.get(settings["backend"])  # a wrong name is an error here, not at the first call
    if isinstance(function, JitFunction):
        function = function.function
    return JitFunction(function, **settings)


def _unknown(what: str, name: Any, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(name), known, 1)
    return f"there is no {what} {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


# ---- generated entries -------------------------------------------------------------------------

_ERRORS = "(AttributeError, IndexError, KeyError, NameError, TypeError, ValueError)"


def _generate(
    function: Callable[..., Any], trace: Trace, compiled: Compiled, run_eagerly: Any
) -> tuple[Callable[..., Any], str, Callable[[Mapping[str, Any]], str]]:
    """The entry function, its guard as text, and a check that names the failing condition."""
    signature = signature_of(function)
    names = Names(reserved=signature.parameters)
    conditions = trace.guards.expressions(names)
    guard = "\n    and ".join(conditions) or "True"
    inputs = [path.code(names) for path in trace.paths]
    head, forward = _parameters(signature, names)
    overlap = _overlap_test(trace, inputs, names)
    result = _result_code(trace.graph.signature.result, _leaf_codes(trace, names), names)
    miss, run = names.bind(_MISS, "miss"), names.bind(compiled.run, "run")
    lines = [
        f"def entry({head}):",
        "    try:",
        f"        if not ({guard}):",
        f"            return {miss}",
        f"    except {_ERRORS}:",
        f"        return {miss}",
    ]
    if overlap:
        lines += [
            f"    if {overlap}:",
            f"        return {names.bind(run_eagerly, 'eager')}({forward})",
        ]
    if result.count("_outputs") == 1 and result.startswith("_outputs["):
        lines.append(f"    return {run}({', '.join(inputs)}){result.removeprefix('_outputs')}")
    else:
        lines.append(f"    _outputs = {run}({', '.join(inputs)})")
        lines.append(f"    return {result}")
    namespace = _execute("\n".join(lines), names.bound, "guard of " + trace.graph.name)
    entry = namespace["entry"]
    with contextlib.suppress(AttributeError):
        entry.__name__ = entry.__qualname__ = function.__name__
    return entry, guard, functools.partial(_failing, trace, names, conditions, signature)


def _execute(source: str, bound: Mapping[str, Any], title: str) -> dict[str, Any]:
    filename = f"<minigraph {title} {id(bound):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = dict(bound)
    exec(builtins.compile(source, filename, "exec"), namespace)
    return namespace


def _failing(
    trace: Trace,
    names: Names,
    conditions: Sequence[str],
    signature: inspect.Signature,
    arguments: Mapping[str, Any],
) -> str:
    """The first condition that does not hold, described; "" if all hold."""
    namespace = {**names.bound, **arguments}
    for condition, code in zip(trace.guards.conditions, conditions, strict=True):
        try:
            holds = eval(code, namespace)
        except Exception:
            return f"{condition.path.text} is no longer what it was"
        if not holds:
            try:
                now = eval(condition.path.code(names), namespace)
            except Exception:
                return f"{condition.path.text} is no longer there"
            return condition.describe(now)
    return ""


def _parameters(signature: inspect.Signature, names: Names) -> tuple[str, str]:
    """The parameter list of the entry function, and the same as arguments of a call."""
    head: list[str] = []
    forward: list[str] = []
    kinds = inspect.Parameter
    star = False
    previous: Any = None
    for name, parameter in signature.parameters.items():
        if previous is kinds.POSITIONAL_ONLY and parameter.kind is not kinds.POSITIONAL_ONLY:
            head.append("/")
        previous = parameter.kind
        default = ""
        if parameter.default is not parameter.empty:
            default = "=" + names.bind(parameter.default, "default")
        if parameter.kind is kinds.VAR_POSITIONAL:
            star = True
            head.append("*" + name)
            forward.append("*" + name)
        elif parameter.kind is kinds.VAR_KEYWORD:
            head.append("**" + name)
            forward.append("**" + name)
        elif parameter.kind is kinds.KEYWORD_ONLY:
            if not star:
                head.append("*")
                star = True
            head.append(name + default)
            forward.append(f"{name}={name}")
        else:
            head.append(name + default)
            forward.append(name)
    if previous is kinds.POSITIONAL_ONLY:
        head.append("/")
    return ", ".join(head), ", ".join(forward)


def _overlap_test(trace: Trace, inputs: Sequence[str], names: Names) -> str:
    """Whether a written array shares memory with another input, or with itself."""
    if not trace.writes:
        return ""
    overlaps = names.bind(_overlaps, "overlaps")
    arrays = [
        index for index, value in enumerate(trace.graph.inputs) if isinstance(value.type, ArrayType)
    ]
    tests: list[str] = []
    for written in trace.writes:
        others = [inputs[index] for index in arrays if index != written]
        tests.append(f"{overlaps}({', '.join([inputs[written], *others])})")
    return " or ".join(tests)


def _overlaps(written: np.ndarray[Any, Any], *others: Any) -> bool:
    if written.ndim and 0 in written.strides and written.size > 1:
        return True
    return any(np.may_share_memory(written, other) for other in others)


def _leaf_codes(trace: Trace, names: Names) -> Iterator[str]:
    """Each output as NumPy gives it: without axes a scalar or a 0-d array."""
    for index, box in enumerate(trace.boxes):
        code = f"_outputs[{index}]"
        if box is None:
            yield code
        else:
            yield f"{names.bind(np.asarray, 'asarray')}({code})" if box else f"{code}[()]"


def _result_code(tree: Tree, leaves: Iterator[str], names: Names) -> str:
    if isinstance(tree, Leaf):
        return next(leaves)
    if isinstance(tree, Static):
        value = tree.value
        return repr(value) if value is None else names.bind(value, "static")
    children = [_result_code(child, leaves, names) for child in tree.children]
    if tree.kind is tuple:
        return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
    if tree.kind is list:
        return f"[{', '.join(children)}]"
    if tree.kind is dict:
        keys = [names.bind(key, "key") for key in tree.keys]
        pairs = zip(keys, children, strict=True)
        return "{" + ", ".join(f"{key}: {child}" for key, child in pairs) + "}"
    shallow = Branch(tree.kind, tree.keys, [Leaf()] * len(children))
    build = names.bind(functools.partial(unflatten, shallow), "build")
    return f"{build}(iter(({', '.join(children)},)))"


def _flat_inputs(trace: Trace, arguments: Mapping[str, Any]) -> list[Any]:
    names = Names()
    codes = [path.code(names) for path in trace.paths]
    return [eval(code, {**names.bound, **arguments}) for code in codes]


def _check_numbers(compiled: Compiled, trace: Trace, arguments: Mapping[str, Any]) -> None:
    """Run every stage with the interpreter on these arguments; all must give the same bits."""
    expected: Any = None
    for stage in compiled.stages:
        inputs = copy.deepcopy(_flat_inputs(trace, arguments))
        silent = io.StringIO()
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            try:
                outputs: Any = [_bits(value) for value in ops.evaluate(stage.graph, inputs)]
            except Exception as error:
                outputs = type(error)
        found = (outputs, silent.getvalue(), [_bits(v) for v in inputs if _is_data(v)])
        if expected is None:
            expected = found
        elif found != expected:
            raise MinigraphError(
                f"the pass {stage.name} changed what {trace.graph.name} computes",
                instead="leave it out of passes= and report it",
            )


def _bits(value: Any) -> Any:
    """A key of the bits; a NumPy scalar and a 0-d array count as the same."""
    return frozen_bits(np.asarray(value) if isinstance(value, np.generic) else value)


def _is_data(value: Any) -> bool:
    return type(value) in SCALARS or isinstance(value, np.ndarray | np.generic)
