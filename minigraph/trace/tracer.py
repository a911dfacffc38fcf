"""From a Python callable to a Graph."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import (
    RandomnessError,
)
from minigraph.ir import (
    ArrayType,
    Dim,
    Graph,
    Loc,
    Node,
    Signature,
    Tree,
    Value,
)

from .arguments import Arguments
from .calling import bind, guard_defaults, spread
from .groups import Group
from .guards import Guards
from .outputs import Outputs
from .paths import Path
from .reach import Reach
from .recording import Gradients, Recording, recording


class Trace:
    """The result of tracing a call.

    Attributes:
        graph: what the call computes.
        guards: what must hold for the graph to be right for another call.
        paths: how each input of the graph is reached.
        writes: indices of the inputs that are written.
        strided: the inputs whose elements do not lie in C order.
        notes: things worth telling (an unused argument).
        boxes: for each output without axes whether NumPy gives a 0-d array (True) or a scalar
            (False); None for all others.  Graphs do not tell the two apart.
        arrays: traced arrays stood for eager ones.
        holders: the path of the eager array whose ndarray an input is, by the input's index.
        fresh: the paths of eager arrays whose gradients are asked for, stored or used; whether
            one is there afterwards that was not used.
        eager: results are eager arrays, whatever the arguments are: one was read by name, or
            operations were recorded.
        groups: the blocks that were met, with what is known of them.
        unused: the names of the parameters that no one has read, of the blocks that were met.
        paused: the nodes through which no gradient flows.
        tracked: the indices of the inputs that carry a gradient.
        stored: what is written into an input inside of a record: its index, the value and where.
    """

    arrays: bool = False
    holders: Mapping[int, Path]
    fresh: tuple[tuple[Path, bool], ...] = ()
    eager: bool = False
    groups: tuple[Group, ...] = ()
    unused: tuple[str, ...] = ()
    paused: frozenset[Node] = frozenset()
    tracked: tuple[int, ...] = ()
    stored: tuple[tuple[int, Value, Loc | None], ...] = ()

    def __init__(
        self,
        graph: Graph,
        guards: Guards,
        paths: Sequence[Path],
        writes: Sequence[int],
        strided: Sequence[Value],
        notes: Sequence[str],
        boxes: Sequence[bool | None],
    ) -> None:
        self.graph = graph
        self.guards = guards
        self.paths = tuple(paths)
        self.writes = tuple(writes)
        self.strided = tuple(strided)
        self.notes = tuple(notes)
        self.boxes = tuple(boxes)
        self.holders = {}


def trace_call(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    static: Sequence[str] = (),
    dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    arrays: Any = None,
    mode: Gradients | None = None,
    target: Callable[..., Any] | None = None,
) -> Trace:
    """Trace `function` for these arguments.

    Where numbers were drawn that no trace can see, it is traced once more before that is an error:
    another thread may have drawn them.

    Args:
        function: any Python callable.
        arguments: by parameter name; `*args` as a tuple, `**kwargs` as a dict.
        static: parameters that are not traced but specialised by value.
        dynamic: axes of named size, by parameter.
        arrays: the class of eager arrays, if traced arrays are to stand for such.
        mode: how gradients are recorded (None: they are not).
        target: what is called in place of `function`, which then gives name and parameters only.

    Raises:
        ArraysNeeded: an eager array takes part, and `arrays` is not given.
        MinigraphError: what the function does cannot be recorded (with the user's line).
        Anything that the function itself raises.
    """
    how = (function, arguments, static, dynamic or {}, arrays, mode, target)
    try:
        return _trace_once(*how)
    except RandomnessError:
        return _trace_once(*how)


def _trace_once(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    static: Sequence[str],
    dynamic: Mapping[str, Mapping[int, Any]],
    arrays: Any,
    mode: Gradients | None,
    target: Callable[..., Any] | None,
) -> Trace:
    active = Recording(arrays=arrays, mode=mode)
    reach = Reach(active)
    see = Arguments(active, reach, static, dynamic)
    name = getattr(function, "__name__", None) or type(function).__name__
    with watch_random(), recording(active):
        params = {key: see.argument(key, value) for key, value in arguments.items()}
        seen = target or reach.see(function, Path.of_object(function, name))
        if target is None:
            guard_defaults(active.guards, function, Path.of_object(function, name))
        positional, keywords = spread(function, params)
        result = seen(*positional, **keywords)
        outputs = Outputs(active)
        tree = outputs.add(result, ())
        active.flush()
        reach.check_state()
    for generator, state, path in reach.generators:
        if repr(generator.bit_generator.state) != state:
            raise RandomnessError(
                f"the generator {path.text} was drawn from where the tracer cannot see it",
                instead="draw from it in Python code that belongs to you, by name",
            )
    return _finish(active, see, name, outputs, tree)


def _finish(active: Recording, see: Arguments, name: str, outputs: Outputs, tree: Tree) -> Trace:
    """Assemble the graph, dropping captures that nothing uses."""
    used = {value for node in active.nodes for value in node.inputs} | set(outputs.values)
    leaves = set(see.leaves)
    inputs = [(v, path) for v, path in active.inputs if v in leaves]
    captures = [(v, path) for v, path in active.inputs if v not in leaves and v in used]
    for value, path in inputs + captures:
        if value in active.layouts and value in active.concrete:
            active.guards.layout(path, active.concrete[value])
        if value in active.writes and active.guards.bound.get(path.id, path) is not None:
            active.guards.writable(path)
    _guard_sizes(active, inputs)
    signature = Signature(see.params, [path.text for _, path in captures], tree)
    everything = inputs + captures
    graph = Graph(
        _graph_name(name),
        [value for value, _ in everything],
        active.nodes,
        outputs.values,
        signature,
    )
    notes = [f"the argument {path.text} is not used" for value, path in inputs if value not in used]
    written = [index for index, (value, _) in enumerate(everything) if value in active.writes]
    paths = [path for _, path in everything]
    strided = [value for value, _ in everything if value in active.strided]
    made = Trace(graph, active.guards, paths, written, strided, notes, outputs.boxes)
    made.holders = {
        index: path.owner_of_data()
        for index, (value, path) in enumerate(everything)
        if value in active.holders
    }
    _note_gradients(made, active, everything)
    active.guards.seal()
    return made


def _note_gradients(trace: Trace, active: Recording, inputs: Sequence[tuple[Value, Path]]) -> None:
    """What the trace has to do with gradients and parameters."""
    mode = active.mode
    paths = {value: path.owner_of_data() for value, path in inputs if value in active.holders}
    trace.fresh = tuple(
        (paths[storage.source], leaf.fresh)
        for storage, leaf in active.leaves.items()
        if leaf.fresh is not None and storage.source in paths
    )
    trace.arrays = active.arrays is not None
    trace.eager = active.eager or bool(active.taped)
    trace.groups = tuple(active.reach.blocks.groups)
    trace.unused = active.reach.blocks.unused()
    if mode is not None and mode.is_tracked is not None:
        trace.paused = frozenset(active.untaped)
        tracked = {value: mode.is_tracked(active.holders[value]) for value in paths}
        trace.tracked = tuple(at for at, (value, _) in enumerate(inputs) if tracked.get(value))
        trace.stored = tuple(
            (at, *active.stored[value])
            for at, (value, _) in enumerate(inputs)
            if value in active.stored
        )
        for value, path in paths.items():
            word = "carries a" if tracked[value] else "carries no"
            active.guards.answer(
                path, mode.is_tracked, tracked[value], f"{path.text} {word} gradient"
            )


def _guard_sizes(active: Recording, inputs: Sequence[tuple[Value, Path]]) -> None:
    """Named dimensions mean the same size wherever they stand."""
    read: dict[str, tuple[Path, int]] = {}
    pending: list[tuple[Path, int, Dim]] = []
    for value, path in inputs:
        for axis, size in enumerate(value.type.shape if isinstance(value.type, ArrayType) else ()):
            if isinstance(size, Dim):
                if size.is_name and str(size) not in read:
                    read[str(size)] = (path, axis)
                else:
                    pending.append((path, axis, size))
    for path, axis, size in pending:
        if size.names() <= set(read):
            active.guards.size(path, axis, size, read)


def _graph_name(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_") or "function"


@contextlib.contextmanager
def watch_random() -> Iterator[None]:
    """The global random states are the same afterwards.

    Raises:
        RandomnessError: they are not.
    """
    before = (random.getstate(), _numpy_state())
    yield
    if random.getstate() != before[0]:
        hidden = "the module random"
    elif _numpy_state() != before[1]:
        hidden = "np.random's global state"
    else:
        return
    raise RandomnessError(
        f"numbers were drawn from {hidden} while tracing; they would be the same at every call",
        instead="rng = np.random.default_rng(seed) outside, rng.normal(size=...) inside",
    )


def _numpy_state() -> tuple[bytes, int]:
    state: Any = np.random.get_state(legacy=False)
    return state["state"]["key"].tobytes(), state["state"]["pos"]


def trace(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Graph:
    """Record what `function` does with these arguments.

    Args:
        function: any Python callable on arrays, numbers, and nested tuples, lists, dicts and
            dataclasses of them.
        *args: arrays, numbers, structures, or `Spec`s that describe arrays.
        **kwargs: the same, by name.

    Returns:
        The graph; `str(graph)` is its text form.

    Raises:
        MinigraphError: something cannot be recorded; it names the line and what to write instead.
    """
    return trace_call(function, bind(function, args, kwargs)).graph
