"""From a Python callable to a Graph."""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import (
    OptionError,
    RandomnessError,
    SignatureError,
    UnsupportedError,
)
from minigraph.ir import (
    LEAF,
    SCALARS,
    ArrayType,
    Branch,
    Dim,
    Graph,
    Node,
    Signature,
    Static,
    Tree,
    Value,
    as_dtype,
    is_container,
    items,
    type_of,
)

from .arrays import TracedArray
from .blocks import is_block
from .effects import TracedGenerator
from .groups import Group
from .guards import Guards
from .inputs import traced_input
from .literals import forced
from .operands import Traced, operand
from .paths import Path
from .reach import Reach
from .recording import Mode, Recording, recording
from .scalars import TracedDim, TracedScalar
from .twins import original


class Spec:
    """An array that is described and not given: `mg.Spec(("batch", 512), "float32")`.

    Args:
        shape: ints, `mg.dim(...)`, or names of dimensions.
        dtype: anything `np.dtype` takes.
    """

    __slots__ = ("type",)

    def __init__(self, shape: Sequence[int | str | Dim] | int | Dim, dtype: Any) -> None:
        sizes = shape if isinstance(shape, tuple | list) else (shape,)
        self.type = ArrayType(
            as_dtype(dtype),
            [_size(size) for size in sizes],
        )

    def __repr__(self) -> str:
        return f"Spec({self.type})"


def _size(size: Any) -> int | Dim:
    from_name = Dim((((size,), 1),)) if isinstance(size, str) and size.isidentifier() else size
    if isinstance(from_name, Dim):
        return from_name
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise SignatureError(
            f"a shape holds sizes and named dimensions, not {size!r}",
            instead='mg.Spec((mg.dim("batch"), 512), "float32")',
        )
    return int(size)


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
    """

    arrays: bool = False
    holders: Mapping[int, Path]
    fresh: tuple[tuple[Path, bool], ...] = ()
    eager: bool = False
    groups: tuple[Group, ...] = ()
    unused: tuple[str, ...] = ()
    paused: frozenset[Node] = frozenset()
    tracked: tuple[int, ...] = ()

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
    mode: Mode | None = None,
    target: Callable[..., Any] | None = None,
) -> Trace:
    """Trace `function` for these arguments.

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
    active = Recording(arrays=arrays, mode=mode)
    reach = Reach(active)
    see = _Arguments(active, reach, static, dynamic or {})
    name = getattr(function, "__name__", None) or type(function).__name__
    with watch_random(), recording(active):
        params = {key: see.argument(key, value) for key, value in arguments.items()}
        seen = target or reach.see(function, Path.of_object(function, name))
        if target is None:
            _guard_defaults(active.guards, function, Path.of_object(function, name))
        positional, keywords = _spread(function, params)
        result = seen(*positional, **keywords)
        outputs = _Outputs(active)
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


def _finish(active: Recording, see: _Arguments, name: str, outputs: _Outputs, tree: Tree) -> Trace:
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


class _Arguments:
    """Turns arguments into graph inputs, and notes what the guard must check of them."""

    def __init__(
        self,
        active: Recording,
        reach: Reach,
        static: Sequence[str],
        dynamic: Mapping[str, Mapping[int, Any]],
    ) -> None:
        self.active = active
        self.reach = reach
        self.static = set(static)
        self.dynamic = dynamic
        self.params: list[tuple[str, Tree]] = []
        self.leaves: list[Value] = []
        self._sizes: dict[str, int] = {}
        self._applied: set[str] = set()  # parameters whose axes were named

    def argument(self, name: str, value: Any) -> Any:
        path = Path.argument(name)
        if name in self.static:
            self.active.guards.equals_deeply(path, value)
            self.params.append((name, Static(value)))
            return value
        seen, tree = self._see(value, path, name)
        self.params.append((name, tree))
        if name in self.dynamic and name not in self._applied and self.dynamic[name]:
            raise OptionError(
                f"dynamic=: {name} is a {type(value).__name__}, and only an array has axes"
            )
        return seen

    def _see(self, value: Any, path: Path, root: str) -> tuple[Any, Tree]:
        guards, active = self.active.guards, self.active
        kind = type(value)
        if isinstance(value, Spec):
            made = traced_input(active, None, path, value.type)
            active.name_sizes(made.value_)
            self.leaves.append(made.value_)
            return made, LEAF
        if kind in (int, float, complex):
            guards.type_is(path, kind)
            scalar = active.add_input(SCALARS[kind], path, path.text, value)
            self.leaves.append(scalar)
            return TracedScalar(active, scalar), LEAF
        if kind is np.ndarray or isinstance(value, np.generic):
            return self._array(value, path, root), LEAF
        if kind is np.random.Generator:
            made_generator = self.reach.generator(value, path)
            self.leaves.append(made_generator.value_)
            return made_generator, LEAF
        if getattr(kind, "eager_array_", False):
            active.need_arrays()
            guards.type_is(path, kind)
            made = self._array(value.data_, path.attribute("data_"), root, path)
            active.hold(made, value)
            return made, LEAF
        if isinstance(value, Traced | TracedDim):
            return value, Static(None, "<traced>")
        if is_container(value):
            return self._container(value, path, root)
        seen = self.reach.see(value, path)
        if is_block(value):  # a graph does not keep it alive
            return seen, Static(None, f"<{kind.__name__}>")
        return seen, Static(value)

    def _array(self, value: Any, path: Path, root: str, holder: Path | None = None) -> TracedArray:
        """An ndarray; `holder` is the path of the eager array that it belongs to."""
        active = self.active
        named = dict(self.dynamic.get(root, {})) if (holder or path).text == root else {}
        self._applied.update((root,) if named else ())
        for axis, size in named.items():
            if type(axis) is not int or not -value.ndim <= axis < value.ndim:
                raise OptionError(f"dynamic=: {root} has {value.ndim} axes and no axis {axis!r}")
            if not isinstance(size, str | Dim):
                raise OptionError(
                    f"dynamic=: axis {axis} of {root} needs a name, not {size!r}",
                    instead=f'{{"{root}": {{{axis}: "n"}}}}',
                )
        dims = {axis % value.ndim: _size(size) for axis, size in named.items()} if named else {}
        dims = {
            axis: size for axis, size in dims.items() if value.shape[axis]
        }  # 0 is its own entry
        type_ = type_of(value)
        assert isinstance(type_, ArrayType)
        if dims:
            sizes = [dims.get(axis, size) for axis, size in enumerate(type_.shape)]
            self._check_sizes(path, sizes, value.shape)
            type_ = ArrayType(type_.dtype, sizes)
            made = traced_input(active, None, path, type_, (holder or path).text)
            active.name_sizes(made.value_)
        else:
            made = traced_input(active, value, path, hint=(holder or path).text)
        active.guards.array(path, value, dims, new=holder is not None)
        self.leaves.append(made.value_)
        return made

    def _check_sizes(self, path: Path, sizes: Sequence[Any], shape: Sequence[int]) -> None:
        """The actual sizes agree with the names given to them so far."""
        for axis, (size, actual) in enumerate(zip(sizes, shape, strict=True)):
            if isinstance(size, Dim) and size.is_name:
                known = self._sizes.setdefault(str(size), actual)
                if known != actual:
                    raise SignatureError(
                        f"the dimension {size} is {known}, but {path.text} has extent {actual} on "
                        f"axis {axis}",
                        instead="another name for that axis",
                    )

    def _container(self, value: Any, path: Path, root: str) -> tuple[Any, Tree]:
        kind = type(value)
        guards = self.active.guards
        attributes = kind not in (tuple, list, dict)
        pairs = items(value)
        if kind is dict:
            guards.keys(path, kind, tuple(key for key, _ in pairs))
        elif attributes:
            guards.type_is(path, kind)
        else:
            guards.length(path, kind, len(pairs))
        seen: list[Any] = []
        trees: list[Tree] = []
        for key, child in pairs:
            step = path.attribute(key) if attributes else path.item(key)
            made, tree = self._see(child, step, root)
            seen.append(made)
            trees.append(tree)
        branch = Branch(kind, [key for key, _ in pairs], trees)
        return self.reach.rebuilt_container(value, path, [key for key, _ in pairs], seen), branch


class _Outputs:
    """The values of a result, in order."""

    def __init__(self, active: Recording) -> None:
        self.active = active
        self.values: list[Value] = []
        self.boxes: list[bool | None] = []

    def add(self, thing: Any, above: tuple[int, ...]) -> Tree:
        """The structure of a result; its leaves join `values`."""
        active = self.active
        if isinstance(thing, TracedGenerator):
            raise UnsupportedError("a traced function cannot return a random generator")
        if isinstance(thing, Traced | TracedDim) or hasattr(type(thing), "recorded_value_"):
            scalar = isinstance(thing, TracedArray) and thing.scalar_
            return self._leaf(operand(active, thing), not scalar)
        if isinstance(thing, np.ndarray | np.generic):
            return self._leaf(active.constant(thing), isinstance(thing, np.ndarray))
        kind = original(thing.__class__)
        if is_container_class(kind) and id(thing) not in above:
            pairs = items(kind(thing) if kind in (list, dict) else thing)
            trees = [self.add(child, (*above, id(thing))) for _, child in pairs]
            return Branch(kind, [forced(key, _KEY) for key, _ in pairs], trees)
        if kind is slice:
            return Static(
                slice(*(forced(part, _KEY) for part in (thing.start, thing.stop, thing.step)))
            )
        if thing is None or kind in _PLAIN or isinstance(thing, type | np.dtype):
            return Static(original(thing))
        raise UnsupportedError(
            f"a traced function cannot return a {kind.__name__}",
            where=active.here(),
            instead="arrays, numbers, strings, None, and tuples, lists, dicts, dataclasses of them",
        )

    def _leaf(self, value: Value, box: bool) -> Tree:
        self.values.append(value)
        axes = value.type.ndim if isinstance(value.type, ArrayType) else None
        self.boxes.append(box if axes == 0 else None)
        return LEAF


_PLAIN = (bool, int, float, complex, str, bytes)
_KEY = "a key or a slice in the result"


def is_container_class(kind: type) -> bool:
    """Results of this class are opened."""
    return (
        kind in (tuple, list, dict)
        or hasattr(kind, "__dataclass_fields__")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def _spread(
    function: Callable[..., Any], params: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by name as positional and keyword arguments of the call."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for name, parameter in signature_of(function).parameters.items():
        if name not in params:
            continue
        value = params[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords.update(value)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords[name] = value
        else:
            positional.append(value)
    return positional, keywords


_signatures: weakref.WeakKeyDictionary[Any, tuple[Any, inspect.Signature]] = (
    weakref.WeakKeyDictionary()
)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a callable; `(*args, **kwargs)` where Python does not know it."""
    if type(function) is not types.FunctionType:
        with contextlib.suppress(TypeError, ValueError):
            return inspect.signature(function)
        return inspect.signature(lambda *args, **kwargs: None)
    defaults = function.__defaults__
    known = _signatures.get(function)
    if known is None or known[0] is not defaults or function.__kwdefaults__:
        known = _signatures[function] = (defaults, inspect.signature(function))
    return known[1]


def _guard_defaults(guards: Guards, function: Any, path: Path) -> None:
    """What the call does not give is still what it was when the entry was made."""
    if isinstance(function, types.FunctionType):
        for name in ("__defaults__", "__kwdefaults__"):
            guards.identity(path.attribute(name), getattr(function, name))
        for name, value in (function.__kwdefaults__ or {}).items():
            guards.identity(path.attribute("__kwdefaults__").item(name), value)
    elif isinstance(function, functools.partial):
        for name, value in function.keywords.items():
            guards.identity(path.attribute("keywords").item(name), value)


def bind(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by parameter name, defaults filled in.

    Raises:
        TypeError: as the call itself would raise.
    """
    bound = signature_of(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


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
