"""From a Python callable to a Graph."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from .exceptions import Unreachable
from .groups import Group
from .guards import Guards
from .outputs import Outputs
from .paths import Path
from .reach import Reach
from .recording import ArraysNeeded, Gradients, Recording, recording
from .regions import outermost


@dataclass(frozen=True, eq=False)
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
        replaced: the same of what is written outside of a record.
    """

    graph: Graph
    guards: Guards
    paths: tuple[Path, ...]
    writes: tuple[int, ...]
    strided: tuple[Value, ...]
    notes: tuple[str, ...]
    boxes: tuple[bool | None, ...]
    arrays: bool
    holders: Mapping[int, Path]
    fresh: tuple[tuple[Path, bool], ...]
    eager: bool
    groups: tuple[Group, ...]
    unused: tuple[str, ...]
    paused: frozenset[Node]
    tracked: tuple[int, ...]
    stored: tuple[tuple[int, Value, Loc | None], ...]
    replaced: tuple[tuple[int, Value, Loc | None], ...]


def trace_call(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    static: Sequence[str] = (),
    dynamic: Mapping[str, Mapping[int, Any]] | None = None,
    arrays: Any = None,
    mode: Gradients | None = None,
    target: Callable[..., Any] | None = None,
    script: bool = False,
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
        script: functions of the user's are converted (`trace/script/`) before they run.

    Raises:
        ArraysNeeded: an eager array takes part, and `arrays` is not given.
        MinigraphError: what the function does cannot be recorded (with the user's line).
        Anything that the function itself raises.
    """
    how = (function, arguments, static, dynamic or {}, arrays, mode, target, script)
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
    script: bool,
) -> Trace:
    active = Recording(arrays=arrays, mode=mode, script=script)
    reach = Reach(active)
    see = Arguments(active, reach, static, dynamic)
    name = getattr(function, "__name__", None) or type(function).__name__
    with watch_random(), recording(active):
        params = {key: see.argument(key, value) for key, value in arguments.items()}
        seen = target or reach.see(function, Path.of_object(function, name))
        if target is None:
            guard_defaults(active.guards, function, Path.of_object(function, name))
        positional, keywords = spread(function, params)
        try:
            result = seen(*positional, **keywords)
        except Unreachable:
            result = None
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
        outermost(active.nodes, outputs.values),
        outputs.values,
        signature,
    )
    unused = [path.text for value, path in inputs if value not in used]
    holders = {
        at: path.owner_of_data()
        for at, (value, path) in enumerate(everything)
        if value in active.holders
    }
    places = {value: at for at, (value, _) in enumerate(everything)}
    made = Trace(
        graph=graph,
        guards=active.guards,
        paths=tuple(path for _, path in everything),
        writes=tuple(at for value, at in places.items() if value in active.writes),
        strided=tuple(value for value, _ in everything if value in active.strided),
        notes=tuple(f"the argument {text} is not used" for text in unused),
        boxes=tuple(outputs.boxes),
        arrays=active.arrays is not None,
        holders=holders,
        fresh=_fresh_gradients(active, everything, holders),
        eager=active.eager or bool(active.taped),
        groups=tuple(active.reach.blocks.groups),
        unused=active.reach.blocks.unused(),
        paused=frozenset(active.untaped),
        tracked=_tracked(active, everything, holders),
        stored=tuple(
            (at, *active.stored[value]) for value, at in places.items() if value in active.stored
        ),
        replaced=tuple(
            (places[source], value, where)
            for source, value, where in active.replaced
            if source in places
        ),
    )
    active.guards.seal()
    return made


Inputs = Sequence[tuple[Value, Path]]


def _fresh_gradients(
    active: Recording, inputs: Inputs, holders: Mapping[int, Path]
) -> tuple[tuple[Path, bool], ...]:
    """The eager arrays whose gradients are asked for, stored or used, as the trace leaves them."""
    paths = {inputs[at][0]: path for at, path in holders.items()}
    return tuple(
        (paths[storage.source], leaf.fresh)
        for storage, leaf in active.leaves.items()
        if leaf.fresh is not None and storage.source in paths
    )


def _tracked(active: Recording, inputs: Inputs, holders: Mapping[int, Path]) -> tuple[int, ...]:
    """The inputs that carry a gradient, each guarded."""
    ask = active.mode.is_tracked if active.mode is not None else None
    if ask is None:
        return ()
    found: list[int] = []
    for at, path in holders.items():
        tracked = ask(active.holders[inputs[at][0]])
        found += [at] if tracked else ()
        word = "carries a" if tracked else "carries no"
        active.guards.answer(path, ask, tracked, f"{path.text} {word} gradient")
    return tuple(found)


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
    arguments = bind(function, args, kwargs)
    try:
        return trace_call(function, arguments).graph
    except ArraysNeeded as needed:
        return trace_call(function, arguments, arrays=needed.kind).graph
