"""Graphs made callable: `optimize`, `compile`, and what can be seen of a compilation."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigraph import backends, ops
from minigraph.backends import DEFAULT_SETTINGS, FusingBackend, Program, Settings
from minigraph.errors import (
    CompileError,
    CompileWarning,
    MinigraphError,
    OptionError,
    SignatureError,
    unknown,
)
from minigraph.ir import (
    ArrayType,
    Branch,
    Dim,
    Graph,
    Ids,
    Leaf,
    Node,
    Plan,
    Static,
    Tree,
    Type,
    Value,
    parse_graph,
    type_of,
    unflatten,
)
from minigraph.ir import verify as verify_graph
from minigraph.passes import (
    DEFAULT,
    History,
    Recorder,
    Stage,
    cannot_fuse,
    describe,
    explain,
    has_calls,
    plan,
)
from minigraph.passes import optimize as run_passes
from minigraph.trace import is_users_file

Passes = Sequence[str | Callable[..., Any]]

FALLBACK = "python"
"""The backend that runs what another one cannot compile."""


def parse(text: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """Read a graph from its text form.

    Args:
        text: what `str(graph)` prints.
        constants: large constants by digest (`graph.constants`).

    Raises:
        TextError: it breaks the grammar; line and column are named.
        VerifyError: it breaks a rule of the IR.
    """
    if not isinstance(text, str):
        raise OptionError(f"a graph is read from text, not from a {type(text).__name__}")
    graph = parse_graph(text, ops.OPS, constants or {})
    verify_graph(graph, stage="parse")
    return graph


def optimize(graph: Graph, passes: Passes = DEFAULT, *, fast_math: bool = False) -> Graph:
    """The graph after these passes.

    Raises:
        OptionError: there is no such pass.
    """
    return run_passes(graph, passes, fast_math=fast_math).graph


class Compiled:
    """A compiled graph: call it with the arguments it was traced for.

    Attributes:
        backend: the name of the one that runs it; reason: why that one.
        history: every stage with its events; plan: where values live; program: the generated
        source; run: the flat callable `(*inputs) -> tuple of outputs`.
    """

    history: History
    plan: Plan
    program: Program
    run: Callable[..., tuple[Any, ...]]

    def __init__(
        self,
        graph: Graph,
        backend: str = "auto",
        passes: Passes | None = None,
        fast_math: bool = False,
        verify: bool = False,
        settings: Settings = DEFAULT_SETTINGS,
        strided: Sequence[Value] = (),
    ) -> None:
        backends.get(backend)
        if settings.static_shape:
            _check_all_sizes_fixed(graph)
        self.backend = backends.resolve(backend)
        self.reason = backends.why(backend)
        self._options = (backend, passes, fast_math, verify, settings)
        self._settings = settings
        self._strided: Compiled | None = None
        self._strided_inputs = tuple(strided)
        try:
            self._build(graph, strided)
        except CompileError as error:
            if settings.strict:
                raise
            self.backend, self.reason = FALLBACK, error.fact
            text = f"{graph.name} runs in Python: {error}"
            warnings.warn(text, CompileWarning, stacklevel=depth_of_user())
            self._build(graph, strided)

    def _build(self, graph: Graph, strided: Sequence[Value]) -> None:
        """Optimise, plan, write and load, for the chosen backend."""
        _, passes, fast_math, verify, settings = self._options
        chosen = backends.get(self.backend)
        fuses = isinstance(chosen, FusingBackend)
        lowering: tuple[str, ...] = getattr(chosen, "LOWERING", ()) if passes is None else ()
        if settings.threads == 1:
            lowering = tuple(name for name in lowering if name != "parallel")
        self.history = run_passes(
            graph,
            DEFAULT if passes is None else passes,
            fast_math=fast_math,
            debug=verify,
            strided=strided,
            lowering=("inline", *lowering, "open_barriers") if has_calls(graph) else lowering,
            cannot_fuse=partial(_cannot_fuse, chosen, settings) if fuses else cannot_fuse,
        )
        recorder = Recorder(Ids.after(self.history.graph), strided=strided)
        self.plan = plan(self.history.graph, recorder, reuse=settings.reuse_buffers)
        try:
            self.program = chosen.emit(self.history.graph, self.plan, settings)
            self.run = chosen.load(self.program)
        except MinigraphError:
            raise
        except Exception as error:  # a fault of ours: the program runs all the same
            if not fuses:
                raise
            raise CompileError(
                f"the {self.backend} backend failed: {type(error).__name__}: {error}"
            ) from error

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
        _check_writes(graph, leaves)
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

    def source(self, what: str = "program") -> str:
        """The generated program; of a backend that compiles also what `sources` names.

        Raises:
            OptionError: there is no such text.
        """
        views = self._views()
        if what in views:
            return views[what]()
        if what not in self.sources:
            raise unknown("source", what, self.sources)
        return self.program.source

    @property
    def sources(self) -> list[str]:
        """What `source` can show."""
        return list(dict.fromkeys(["program", self.backend, *self._views()]))

    def _views(self) -> Mapping[str, Callable[[], str]]:
        chosen = backends.get(self.backend)
        return chosen.views(self.program) if isinstance(chosen, FusingBackend) else {}

    def explain(self) -> str:
        """What each pass did and refused, and why; which backend runs it, and what how."""
        head = f"backend: {self.backend} ({self.reason})"
        return "\n".join([explain(self.history), head, *(f"  {line}" for line in self.how())])

    def how(self) -> list[str]:
        """What the backend runs how: compiled, in Python, from which folder."""
        chosen = backends.get(self.backend)
        fuses = isinstance(chosen, FusingBackend)
        lines = chosen.explain(self.program) if fuses else []
        if self._settings.static_shape:
            lines.append("compiled for these sizes alone (static_shape)")
        if self.program.kept_bytes != 0:
            size = _bytes(self.program.kept_bytes)
            lines.append(f"memory kept between calls: {size} (static_alloc)")
        if self._strided_inputs and fuses:
            names = ", ".join(value.name for value in self._strided_inputs)
            lines.append(f"not in C order, so copied for compiled code at each call: {names}")
        return lines

    def memory_report(self, *arguments: Any) -> MemoryReport:
        """Bytes needed, as planned; with (flat) arguments also as measured by running once."""
        measured = _measure(self.run, arguments) if arguments else None
        return MemoryReport(self.plan, measured)

    def __repr__(self) -> str:
        graph = self.history.graph
        return f"<compiled {graph.name}, {len(graph.nodes)} nodes, {self.backend}>"

    def __str__(self) -> str:
        return f"{describe(self.history)}\n\n# {self.backend}\n{self.source()}"


class MemoryReport:
    """Bytes of the values that a program makes (inputs and constants are not counted).

    What is measured is what one more call allocates.  That may be less than the lower bound: the
    scratch memory of compiled code is kept from call to call, and so is not allocated again.  It
    may be more, by what Python itself needs.

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
        lines = [f"{name:<14} {_bytes(size):>16}" for name, size in rows]
        if self.measured is not None:
            lines.append("measured: what one more call allocates, without the scratch memory that")
            lines.append("compiled code keeps from earlier calls")
        return "\n".join(lines)

    __repr__ = __str__


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
    passes: Passes | None = None,
    fast_math: bool = False,
    verify: bool = False,
    **settings: Any,
) -> Compiled:
    """Optimise a graph and make it callable.

    Args:
        graph: from `trace`, `trace_program` or `parse`.
        backend: "auto", or one that `minigraph doctor` lists.
        passes: names (or functions) in order.
        fast_math: also rewrites that change results in the last bits or for NaN and infinity.
        verify: check the graph after each pass.
        **settings: `math`, `num_threads`, `cache_dir`, `strict`, `static_alloc`, `static_shape`,
            `reuse_buffers`, as for `mg.jit`.

    Raises:
        OptionError: no such backend, pass or setting.
        CompileError: under `strict`, the backend could not compile the program.
    """
    if not isinstance(graph, Graph):
        raise OptionError(
            f"compile takes a graph, not a {type(graph).__name__}",
            instead="mg.jit(function), or mg.compile(mg.trace(function, *arguments))",
        )
    return Compiled(graph, backend, passes, fast_math, verify, settings_of(settings))


FLAGS = {"strict": False, "static_alloc": False, "static_shape": False, "reuse_buffers": True}
SETTINGS = ("math", "num_threads", "cache_dir", *FLAGS)


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings for backends among a user's options.

    Raises:
        OptionError: an unknown one, or a value that it cannot have.
    """
    for name in options:
        if name not in SETTINGS:
            raise unknown("option", name, SETTINGS)
    math, threads = options.get("math", "vector"), options.get("num_threads")
    if math not in ("vector", "libm"):
        raise unknown("math", math, ["vector", "libm"])
    if threads is not None and (type(threads) is not int or threads < 1):
        raise OptionError(f"num_threads= is a number from 1 up, not {threads!r}")
    folder = options.get("cache_dir")
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise OptionError(f"cache_dir= is a folder, not {folder!r}", instead='a path, or "off"')
    flags = {name: options.get(name, default) for name, default in FLAGS.items()}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise OptionError(f"{name}= is True or False, not {flag!r}")
    return Settings(math, threads, folder, **flags)


def _check_all_sizes_fixed(graph: Graph) -> None:
    """No input has a dimension that is only a name.

    Raises:
        OptionError: one has.
    """
    for value in graph.inputs:
        if isinstance(value.type, ArrayType) and not value.type.is_static:
            raise OptionError(
                f"static_shape= compiles all sizes in, and %{value.name} is a {value.type}",
                instead="static_alloc=True, or sizes instead of names",
            )


def check_same_shapes(graph: Graph, first: Graph) -> None:
    """The inputs of a graph have the shapes of those of the same name in an earlier one.

    Raises:
        SignatureError: one has not.
    """
    types = {v.name: v.type for v in first.inputs if isinstance(v.type, ArrayType)}
    for value in graph.inputs:
        expected = types.get(value.name)
        if expected is None or not isinstance(value.type, ArrayType):
            continue
        if value.type.shape != expected.shape:
            raise SignatureError(
                f"{value.name} must be {expected}, as in the first call, not {value.type}: "
                "static_shape= compiled the sizes in",
                instead="static_alloc=True without static_shape=, or a function for each shape",
            )


def depth_of_user() -> int:
    """How many calls up the user's own code is, for a warning that points there."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not is_users_file(frame.f_code.co_filename):
        depth, frame = depth + 1, frame.f_back
    return depth


def _cannot_fuse(
    backend: FusingBackend, settings: Settings, node: Node, numbers: ops.Numbers
) -> str:
    """Why a node cannot be computed in a kernel: in general, or with this backend."""
    return cannot_fuse(node, numbers) or backend.cannot_fuse(node, numbers, settings)


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
    """The arguments have the types of the graph's inputs, named dimensions included.

    Raises:
        SignatureError, DtypeError: they have not.
    """
    for value, leaf in zip(graph.inputs, leaves, strict=True):
        if not _fits(value.type, type_of(leaf)):
            raise _misfit(f"%{value.name} must be {value.type}, not {type_of(leaf)}")
    sizes = ops.named_sizes([value.type for value in graph.inputs], leaves)
    empty = [name for name, size in sizes.items() if size < 1]
    if empty:
        raise _misfit(
            f"the named dimension {empty[0]} is at least 1, and here it is {sizes[empty[0]]}"
        )


def _misfit(fact: str) -> SignatureError:
    return SignatureError(fact, instead="@mg.jit, which traces again for new types")


def _fits(expected: Type, found: Type) -> bool:
    """The same but for extents that have a name."""
    if not isinstance(expected, ArrayType) or not isinstance(found, ArrayType):
        return expected == found
    return (
        expected.dtype == found.dtype
        and expected.ndim == found.ndim
        and all(
            isinstance(a, Dim) or a == b for a, b in zip(expected.shape, found.shape, strict=True)
        )
    )


def overlaps(written: np.ndarray[Any, Any], *others: Any) -> bool:
    """Whether a written array may share memory with another one, or with itself."""
    if not written.flags.forc and _overlaps_itself(written):
        return True
    return any(np.may_share_memory(written, other) for other in others)


def _overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """Whether two elements may share memory: a step along an axis does not pass all inside it."""
    if array.size == 0:
        return False
    steps = zip(array.strides, array.shape, strict=True)
    passed = array.itemsize
    for step, size in sorted((abs(step), size) for step, size in steps if size > 1):
        if step < passed:
            return True
        passed += step * (size - 1)
    return False


def _check_writes(graph: Graph, leaves: Sequence[Any]) -> None:
    """What the graph writes is memory of its own.

    Raises:
        SignatureError: it is not; the graph was traced for arrays that share nothing.
    """
    written = {node.inputs[0] for node in graph.nodes if node.op.name == "write"}
    pairs = [
        (v, leaf)
        for v, leaf in zip(graph.inputs, leaves, strict=True)
        if isinstance(leaf, np.ndarray)
    ]
    for value, leaf in pairs:
        if value in written and overlaps(leaf, *(other for v, other in pairs if v is not value)):
            raise SignatureError(
                f"%{value.name} is written to, and shares memory with another argument (or itself)",
                instead="@mg.jit, which runs such a call eagerly, or pass a .copy()",
            )
