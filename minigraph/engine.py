"""What traces, compiles and keeps: the part that jitted functions and hybridized blocks share.

An `Engine` keeps an entry for each signature: a compiled program behind a guard.  The newest entry
whose guard holds runs; when none does, the function is traced again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from minigraph import backends
from minigraph.array import Array, is_tracked, wrap
from minigraph.backends import Settings
from minigraph.compiled import (
    SETTINGS,
    Compiled,
    MemoryReport,
    Passes,
    check_same_shapes,
    settings_of,
)
from minigraph.entry import MISS, Entry, Results, check_numbers, flat_inputs
from minigraph.errors import (
    MinigraphError,
    OptionError,
    RecordError,
    StateError,
    UnsupportedError,
    unknown,
)
from minigraph.grad import backward, differentiable, influenced, joint
from minigraph.ir import (
    SCALARS,
    Dim,
    Graph,
    Leaf,
    Loc,
    Plan,
    Static,
    Tree,
    Value,
    flatten,
    is_container,
    items,
)
from minigraph.mode import MODE, recording_now
from minigraph.passes import DEFAULT, History, Stage
from minigraph.passes import optimize as run_passes
from minigraph.tape import Called, tape_of_thread
from minigraph.trace import Gradients, Spec, Trace, bind, is_users_file, trace_call

EAGER: ContextVar[bool] = ContextVar("minigraph_eager", default=False)
LIMIT = 64  # entries of one function, in each mode
_TRIES = 3  # of tracing one call, before what it reads is said never to stay the same


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
            lines.append(f"{self.evicted} entries were dropped (at most {LIMIT} are kept)")
        return "\n".join(lines)

    __repr__ = __str__


class Options:
    """How functions are compiled.

    Attributes:
        static, dynamic, backend, passes, fast_math, verify: as for `mg.jit`.
        settings: those that the backend has besides.
    """

    NAMES = ("backend", "passes", "static", "dynamic", "fast_math", "verify", *SETTINGS)

    def __init__(self, given: Mapping[str, Any]) -> None:
        passes = given.get("passes")
        if passes is not None and not isinstance(passes, str | tuple | list):
            raise OptionError(
                f"passes= is a tuple of passes, not {passes!r}", instead='("cse", "dce")'
            )
        static, dynamic = given.get("static", ()), given.get("dynamic", {})
        if not isinstance(static, str | tuple | list):
            raise OptionError(f"static= names parameters, not {static!r}", instead='static=("n",)')
        if not isinstance(dynamic, Mapping):
            raise OptionError(
                f"dynamic= names axes of parameters, not {dynamic!r}",
                instead='dynamic={"x": {0: "batch"}}',
            )
        self.static: tuple[str, ...] = (static,) if isinstance(static, str) else tuple(static)
        self.dynamic = {name: _axes(spec) for name, spec in dynamic.items()}
        self.backend: str = given.get("backend", "auto")
        self.passes: Passes | None = tuple(passes) if isinstance(passes, list) else passes
        self.fast_math: bool = given.get("fast_math", False)
        self.verify: bool = given.get("verify", False)
        self.settings: Settings = settings_of({n: given[n] for n in SETTINGS if n in given})
        backends.get(self.backend)  # a wrong name is an error here, not at the first call

    def compile(self, graph: Graph, strided: Sequence[Value] = ()) -> Compiled:
        """Compile a graph."""
        return Compiled(
            graph,
            self.backend,
            self.passes,
            self.fast_math,
            self.verify,
            self.settings,
            strided=strided,
        )

    def optimize(self, graph: Graph) -> History:
        """The graph after the passes."""
        passes = DEFAULT if self.passes is None else self.passes
        return run_passes(graph, passes, fast_math=self.fast_math, debug=self.verify)


def options_of(function: Callable[..., Any]) -> Options:
    """How a function is compiled, if it is; else the defaults."""
    found = getattr(function, "options", None)
    return found if isinstance(found, Options) else Options({})


def _axes(spec: Spec | Mapping[int, Any]) -> Mapping[int, Any]:
    """The axes of named size."""
    if isinstance(spec, Spec):
        return {axis: size for axis, size in enumerate(spec.type.shape) if isinstance(size, Dim)}
    if not isinstance(spec, Mapping):
        raise OptionError(
            f"dynamic= names axes, not {spec!r}", instead='dynamic={"x": {0: "batch"}}'
        )
    return spec


class Recorded(NamedTuple):
    """How the calls of an entry are recorded.

    Attributes:
        compiled: the forward program; joint: forward and backward in one graph.
        record: puts a call on the tape.
    """

    compiled: Compiled
    joint: History
    record: Callable[..., Any]


class Engine:
    """A function with its entries.

    Attributes:
        function: what is compiled; name: what it is called in messages.
        options: how it is compiled.
    """

    MODES = 1  # sets of entries, each for calls of one mode
    script = False  # the function is converted before it is traced

    def __init__(self, function: Callable[..., Any], name: str, options: Options) -> None:
        self.function = function
        self.name = name
        self.options = options
        self._entries: list[tuple[Entry, ...]] = [()] * self.MODES  # newest first
        self._calls: list[tuple[Callable[..., Any], ...]] = [()] * self.MODES
        self._newest: Entry | None = None
        self._lock = threading.RLock()
        self._eager_calls = 0
        self._evicted = 0

    # ---- compiling -------------------------------------------------------------------------

    def first_call(self, mode: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A call that no entry answered."""
        try:
            arguments = bind(self.function, args, kwargs)
        except TypeError:
            return self.function(*args, **kwargs)  # raises, in Python's words
        entry = self._entry(mode, arguments)
        if not isinstance(entry, Entry):
            return self.not_traced(entry, args, kwargs)
        result = entry.call(*args, **kwargs)
        # Another thread may have changed something meanwhile.
        return self.first_call(mode, args, kwargs) if result is MISS else result

    def not_traced(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The function raised while it was traced: Python is to raise it."""
        self.function(*args, **kwargs)
        raise UnsupportedError(
            f"tracing {self.name} raised {type(error).__name__}: {error}; calling it does not",
            where=_users_line(error),
            instead="@mg.jit only functions whose code can run on traced values",
        ) from error

    def _entry(self, mode: int, arguments: Mapping[str, Any]) -> Entry | Exception:
        with self._lock:
            for entry in self._entries[mode]:
                if not entry.difference(arguments):
                    return entry
            return self._add(mode, arguments)

    def _add(self, mode: int, arguments: Mapping[str, Any]) -> Entry | Exception:
        """A new entry, or what the function raised while it was traced."""
        reason = self.reason(mode, arguments)
        changed = ""
        for _ in range(_TRIES):  # another thread may change what the function reads
            entry = self._compile(mode, arguments, reason)
            if not isinstance(entry, Entry):
                return entry
            changed = entry.difference(arguments)
            if not changed:
                return self._keep(mode, entry)
        raise StateError(
            f"{self.name} reads something that is new each time it is read: {changed}",
            instead="read it outside, and pass it as an argument",
        )

    def reason(self, mode: int, arguments: Mapping[str, Any]) -> str:
        """Why the function is traced (again)."""
        if not self._entries[mode]:
            return "first call"
        failures = [entry.failure(arguments) for entry in self._entries[mode]]
        return max(failures, key=lambda failure: failure[0])[1]  # of the entry that comes nearest

    def _keep(self, mode: int, entry: Entry) -> Entry:
        alive = [e for e in self._entries[mode] if not e.is_dead]
        kept = (entry, *alive)
        self._evicted += max(0, len(kept) - LIMIT)
        self._entries[mode] = kept[:LIMIT]
        self._calls[mode] = tuple(e.call for e in self._entries[mode])
        self._newest = entry
        return entry

    def forget(self) -> None:
        """Drop all entries."""
        self._entries = [()] * self.MODES
        self._calls = [()] * self.MODES

    def _compile(self, mode: int, arguments: Mapping[str, Any], reason: str) -> Entry | Exception:
        for name in (*self.options.static, *self.options.dynamic):
            if name not in arguments:
                raise unknown("parameter", name, list(arguments))
        try:
            trace = self.trace(arguments)
        except MinigraphError:
            raise
        except Exception as error:
            return error
        if self._entries[mode] and self.options.settings.static_shape:
            check_same_shapes(trace.graph, self._entries[mode][-1].trace.graph)
        self.examine(trace)
        found = self._recorded(trace)
        if found is not None:
            compiled, together, results = found.compiled, found.joint, Results(record=found.record)
        else:
            compiled, together = self.options.compile(trace.graph, trace.strided), None
            results = Results(wrap if self.wraps(trace, arguments) else None)
            if self.options.verify:
                check_numbers(compiled, trace, arguments)
        return Entry(self.function, trace, compiled, reason, self._run_eagerly, results, together)

    def trace(self, arguments: Mapping[str, Any]) -> Trace:
        """Trace the function for these arguments."""
        raise NotImplementedError

    def examine(self, trace: Trace) -> None:
        """Look at a new trace, before it is compiled."""

    def wraps(self, trace: Trace, arguments: Mapping[str, Any]) -> bool:
        """Results are eager arrays."""
        return MODE.get().recording or any(map(has_array, arguments.values()))

    def trace_call(self, arguments: Mapping[str, Any], arrays: Any, target: Any = None) -> Trace:
        """Trace the function for these arguments, in the mode as it is now."""
        recording = MODE.get().recording
        how = Gradients(
            recording_now,
            backward,
            carries_gradient if recording else None,
            keyed=self.MODES > 1,
        )
        return trace_call(
            self.function,
            arguments,
            static=self.options.static,
            dynamic=self.options.dynamic,
            arrays=arrays,
            mode=how,
            target=target,
            script=self.script,
        )

    def _recorded(self, trace: Trace) -> Recorded | None:
        """How calls are recorded; None: nothing is, or no gradient flows.

        Raises:
            RecordError: what is written would be missing in the record.
        """
        graph = trace.graph
        floats = differentiable(graph.outputs)
        wanted = [at for at in differentiable(graph.inputs) if at in trace.tracked]
        if wanted:
            _check_stored(trace, wanted)
        if not floats or not wanted:
            return None
        together = self.options.optimize(joint(graph, wanted, trace.paused))
        called = Called.of(graph, wanted, self.options.backend, together.graph)
        compiled = self.options.compile(called.body, trace.strided)

        def record(values: Sequence[Any], inputs: Sequence[Any]) -> list[Array]:
            return tape_of_thread().call(called, inputs, values)

        return Recorded(compiled, together, record)

    def _run_eagerly(self, *args: Any, **kwargs: Any) -> Any:
        self._eager_calls += 1
        return self.function(*args, **kwargs)

    # ---- what it knows ---------------------------------------------------------------------

    def mode(self) -> int:
        """Which set of entries the mode of this thread means."""
        return 0

    def lower(self, *args: Any, **kwargs: Any) -> Compiled:
        """Trace and compile for these arguments without running; `print` it to see every stage."""
        entry = self._entry(self.mode(), bind(self.function, args, kwargs))
        if not isinstance(entry, Entry):
            raise entry
        return entry.compiled

    def _last(self) -> Entry:
        if self._newest is None:
            raise OptionError(
                f"{self.name} has not been compiled yet",
                instead="call it once, or f.lower(*arguments)",
            )
        return self._newest

    @property
    def stages(self) -> list[Stage]:
        """The stages of the newest entry."""
        return self._last().compiled.stages

    @property
    def plan(self) -> Plan:
        """The memory plan of the newest entry."""
        return self._last().compiled.plan

    @property
    def joint(self) -> History:
        """Forward and backward of the newest entry in one graph, with its stages.

        Raises:
            OptionError: it has no gradient.
        """
        entry = self._last()
        if entry.joint is None:
            graph = entry.trace.graph
            for values, what in ((graph.outputs, "returns"), (graph.inputs, "reads")):
                if not differentiable(values):
                    raise OptionError(
                        f"{self.name} {what} no floating-point number, so it has no gradient and "
                        "no joint graph",
                        instead='graph("optimized"), or the joint graph of a function that '
                        "computes a loss from arrays of floating-point numbers",
                    )
            entry.joint = self.options.optimize(joint(graph))
        return entry.joint

    def graph(self, stage: str = "optimized") -> Graph:
        """A stage of the newest entry.

        Args:
            stage: "traced", a pass's name, "optimized", or "joint": forward and backward, optimised
                together (`joint.stages` has all of theirs).

        Raises:
            OptionError: there is no such stage.
        """
        if stage == "joint":
            return self.joint.graph
        known = [*dict.fromkeys(each.name for each in self.stages), "optimized", "joint"]
        if stage not in known:
            raise unknown("stage", stage, known)
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
        entries = [(entry.signature, entry.reason) for entry in reversed(self.entries())]
        return CacheInfo(entries, self._eager_calls, self._evicted)

    def entries(self) -> list[Entry]:
        """The entries of all modes, newest first."""
        kept = [entry for entries in self._entries for entry in entries]
        return sorted(kept, key=lambda entry: -entry.number)


def structures(arguments: Mapping[str, Any]) -> dict[str, Tree]:
    """How the arguments are nested, by name."""
    return {name: flatten(value, _is_leaf)[1] for name, value in arguments.items()}


def structure_text(trees: Mapping[str, Tree]) -> str:
    """The same, as a user writes it: `(x, [h, c])`."""
    return f"({', '.join(_tree_text(tree, name) for name, tree in trees.items())})"


def are_nested_otherwise(one: Mapping[str, Tree], other: Mapping[str, Tree]) -> bool:
    """An argument with data in it is nested in two ways; a None in place of one does not count."""
    pairs = [(tree, other[name]) for name, tree in one.items() if name in other]
    return any(a != b for a, b in pairs if not isinstance(a, Static) and not isinstance(b, Static))


def _is_leaf(thing: Any) -> bool:
    return isinstance(thing, Array | np.ndarray | np.generic) or type(thing) in SCALARS


def _tree_text(tree: Tree, name: str) -> str:
    if isinstance(tree, Leaf):
        return name
    if isinstance(tree, Static):
        return tree.text
    inner = [
        _tree_text(child, f"{name}[{key!r}]")
        for key, child in zip(tree.keys, tree.children, strict=True)
    ]
    if tree.name == "tuple":
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    return f"[{', '.join(inner)}]" if tree.name == "list" else f"{tree.name}({', '.join(inner)})"


def carries_gradient(array: Any) -> bool:
    """A gradient flows to an eager array, or through it."""
    return is_tracked(array) and array.grad_req != "null"


def _check_stored(trace: Trace, wanted: Sequence[int]) -> None:
    """A call is one step of the tape, with results: writes are not recorded.

    Raises:
        RecordError: an array is written that carries a gradient, or what is stored does.
    """
    graph = trace.graph
    sources = {graph.inputs[at] for at in wanted}
    nodes = [node for node in graph.nodes if node not in trace.paused]
    reached = influenced(nodes, sources)
    for at, value, where in trace.stored:
        if graph.inputs[at] in sources:
            fact = f"writes into {_name_of(trace, at)}, which is recorded"
        elif value in reached:
            fact = f"stores values that carry a gradient into {_name_of(trace, at)}"
        else:
            continue
        raise RecordError(
            f"compiled code {fact}; that would be missing in the gradient",
            where=where,
            instead="return the new values; or mg.stop_gradient of them, or "
            "`with autograd.pause():` around the write, if they are to have no gradient",
        )
    for at, value, where in trace.replaced:
        used = influenced(nodes, [value])
        if graph.inputs[at] in sources and not used.isdisjoint(graph.outputs):
            raise RecordError(
                f"compiled code writes into {_name_of(trace, at)} and uses it then; that would be "
                "missing in the gradient",
                where=where,
                instead="write it before the call, or after it",
            )


def _name_of(trace: Trace, at: int) -> str:
    """How the user reaches an input."""
    return trace.holders[at].text if at in trace.holders else trace.paths[at].text


def has_array(thing: Any) -> bool:
    """There is an eager array in an argument."""
    if type(thing) is Array:
        return True
    return is_container(thing) and any(has_array(child) for _, child in items(thing))


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
