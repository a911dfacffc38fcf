"""The tape: eager operations that are recorded as they are computed, and their gradients.

A call of a NumPy function on arrays that carry a gradient runs on traced arrays; each node that the
tracer records is computed at once, so nothing runs twice.  What is recorded is linked from its
results backwards (`Step`), so what no array leads to any more is gone.

`backward` collects the steps between its heads and the arrays with a gradient attached.  Steps of
the same ops and types have the same *key*; for each key the backward graph is made and compiled
once, as a function of what was kept while recording.  Numbers are kept like arrays: another number
is no other key.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.array import UNRECORDED, WRITERS, Array, Leaf, unrecorded, unwrap, wrap, wrote_into
from minigraph.compiled import Compiled
from minigraph.errors import (
    FreedError,
    RecordedWriteError,
    RecordError,
    ShapeError,
    SignatureError,
    UnsupportedError,
)
from minigraph.grad import backward as record_backward
from minigraph.ir import ArrayType, Graph, Loc, Node, Op, Value, freeze, type_of
from minigraph.memory import ADOPTED, MEMORIES, Memory, memory_of, owner_of, wrote
from minigraph.mode import here
from minigraph.ops import evaluate_node, get, is_float
from minigraph.trace import ACTIVE, Layout, Recording, Storage, TracedArray, TracedScalar

KEPT_PROGRAMS = 128  # compiled backward graphs, the least recently used are dropped
_numbers = itertools.count()


class Step:
    """A node that was recorded and computed, or an array or a number that came in.

    Attributes:
        node: what was computed (None: it came in).
        inputs: for each input of the node, the step and which of its results.
        values: the results in terms of the graph; data: the same as arrays and numbers.
        active: a gradient goes through it.
        leaf: where the gradient of what came in is stored, if anywhere.
        number: steps with higher numbers were recorded later.
        place: where.
    """

    __slots__ = (
        "_key",
        "active",
        "data",
        "freed",
        "inputs",
        "leaf",
        "memories",
        "node",
        "number",
        "place",
        "values",
    )

    def __init__(
        self,
        node: Node | None,
        inputs: Sequence[Source],
        values: Sequence[Value],
        data: Sequence[Any],
        *,
        active: bool,
        leaf: Leaf | None = None,
        place: Loc | None = None,
    ) -> None:
        self.node = node
        self.inputs = tuple(inputs)
        self.values = tuple(values)
        self.data = list(data)
        self.active = active
        self.leaf = leaf
        self.place = place
        self.number = next(_numbers)
        self.freed = False
        self._key: Any = None
        self.memories = [_watch(each) if isinstance(each, np.ndarray) else None for each in data]

    def written(self, index: int) -> tuple[bool, Loc | None]:
        """Whether the memory of a result was written since, and where."""
        memory = self.memories[index]
        if memory is None or len(memory[0].writes) == memory[1]:
            return False, None
        found = memory[0].written(self.data[index], memory[1])
        return (False, None) if found is None else (True, found[2])

    def replace(self, index: int, data: np.ndarray[Any, Any]) -> None:
        """A result lies in other memory from now on."""
        self.data[index] = data
        self.memories[index] = _watch(data)

    @property
    def key(self) -> Any:
        """Its op and attrs."""
        if self._key is None:
            assert self.node is not None
            attrs = {
                name: id(attr) if isinstance(attr, Graph) else attr
                for name, attr in self.node.attrs.items()
            }
            self._key = (self.node.op.name, freeze(attrs))
        return self._key

    def free(self) -> None:
        """Drop what was kept for `backward`."""
        self.freed = True
        self.inputs, self.data, self.memories = (), [], []


Source = tuple[Step, int]


def _watch(data: np.ndarray[Any, Any]) -> tuple[Memory, int]:
    memory = memory_of(data)
    return memory, len(memory.writes)


class Recorded:
    """What an array that was recorded carries: its step, and which result it is."""

    __slots__ = ("index", "step")

    def __init__(self, step: Step, index: int) -> None:
        self.step = step
        self.index = index

    def backward(self, heads: Sequence[Array], grads: Sequence[Any], retain_graph: bool) -> None:
        """As `autograd.backward`."""
        backward(heads, grads, retain_graph)


# ---- recording


class _Recording(Recording):
    """A recording whose nodes are computed at once; it keeps nothing from one call to the next.

    Attributes:
        steps: of the values of the call that is running.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[Value, Source] = {}

    def come_in(self, data: Any, *, active: bool, leaf: Leaf | None = None) -> Step:
        """An array or a number from outside."""
        value = self.ids.value(type_of(data))
        step = Step(None, (), (value,), (data,), active=active, leaf=leaf)
        self.steps[value] = (step, 0)
        return step

    def constant(self, concrete: Any, place: Any = None) -> Value:
        (value,) = self.come_in(concrete, active=False).values
        self._known[value] = concrete
        return value

    def constant_number(self, value: Value) -> Any:
        return None if isinstance(value.type, ArrayType) else self._known.get(value)

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Any = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        values = super().emit(op, inputs, attrs, place=place, checked=checked)
        node = self.nodes.pop()
        sources = [self.steps[value] for value in inputs]
        results = evaluate_node(node, [step.data[index] for step, index in sources])
        self.enter(node, sources, [_boxed(result) for result in results])
        for value, result in zip(values, results, strict=True):
            if value in self._known:
                self._known[value] = result
        return values

    def enter(self, node: Node, sources: Sequence[Source], results: Sequence[Any]) -> Step:
        """A node with its results."""
        active = any(step.active and is_float(step.values[index].type) for step, index in sources)
        step = Step(node, sources, node.outputs, results, active=active, place=node.loc)
        self.steps.update((value, (step, index)) for index, value in enumerate(node.outputs))
        return step

    def clear(self) -> None:
        """Forget the call that has ended."""
        self.nodes.clear()
        self.steps.clear()
        self._known.clear()
        self._producer.clear()


def _boxed(result: Any) -> Any:
    """A result as an array, so that it has memory of its own to look at; Python numbers stay."""
    return np.asarray(result) if isinstance(result, np.generic) else result


class Tape:
    """Records the operations of one thread."""

    def __init__(self) -> None:
        self.recording = _Recording()

    # ---- calls -----------------------------------------------------------------------------

    def operate(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call a NumPy function, operator or method and record it.

        Returns:
            Its result; `UNRECORDED` if no argument carries a gradient (then nothing was called).

        Raises:
            UnsupportedError: the function is not recorded.
        """
        if not any(map(_carries, args)) and not any(map(_carries, kwargs.values())):
            return UNRECORDED
        if ACTIVE.get() is not None:
            return UNRECORDED
        if function in WRITERS or kwargs.get("out") is not None:
            return self._write_result(function, args, kwargs)
        recording = self.recording
        token = ACTIVE.set(recording)
        try:
            seen = [self._seen(arg) for arg in args]
            named = {name: self._seen(arg) for name, arg in kwargs.items()}
            return self._shown(function(*seen, **named))
        finally:
            ACTIVE.reset(token)
            recording.clear()

    def _seen(self, thing: Any) -> Any:
        """An argument as the tracer sees it."""
        if isinstance(thing, Array | np.ndarray):
            return self._traced(self.source(thing))
        kind = type(thing)
        if kind is tuple or kind is list:
            return kind([self._seen(item) for item in thing])
        if kind is slice:
            return slice(unwrap(thing.start), unwrap(thing.stop), unwrap(thing.step))
        return thing

    def _traced(self, source: Source) -> TracedArray:
        step, index = source
        data = step.data[index]
        layout = Layout(data.shape, data.flags.c_contiguous, strided=data)
        return TracedArray(self.recording, Storage(step.values[index]), (), layout)

    def source(self, thing: Any) -> Source:
        """Where an operand comes from.

        Raises:
            RecordedWriteError: its memory was written since it was recorded.
        """
        if not isinstance(thing, Array):
            return self.recording.come_in(thing, active=False), 0
        tracked = thing.tracked_
        if not isinstance(tracked, Recorded):
            return self.recording.come_in(thing.data_, active=tracked is not None, leaf=tracked), 0
        step, index = tracked.step, tracked.index
        if step.freed:
            made = self.recording.come_in(thing.data_, active=True)
            made.freed = True
            return made, 0
        written, place = step.written(index)
        if written:
            raise _written(step, place, "it is used again")
        self.recording.steps[step.values[index]] = (step, index)
        return step, index

    def _shown(self, result: Any) -> Any:
        """A result as the user sees it."""
        if isinstance(result, TracedArray):
            return self.shown(result.value_)
        if isinstance(result, TracedScalar):
            step, index = self.recording.steps[result.value_]
            return step.data[index]
        kind = type(result)
        if kind is list:
            return [self._shown(item) for item in result]
        if isinstance(result, tuple):
            items = [self._shown(item) for item in result]
            return tuple(items) if kind is tuple else kind(*items)
        return result

    def shown(self, value: Value) -> Array:
        """The array of a value."""
        step, index = self.recording.steps[value]
        made = wrap(np.asarray(step.data[index]))
        if step.active and is_float(value.type):
            made.tracked_ = Recorded(step, index)
        return made

    # ---- writes ----------------------------------------------------------------------------

    def write(self, target: Array, index: Any, value: Any) -> bool:
        """`target[index] = value`, recorded.

        Returns:
            False if neither carries a gradient (then nothing was written).

        Raises:
            RecordError: the target has a gradient attached.
        """
        if not _carries(target) and not _carries(value):
            return False
        if ACTIVE.get() is not None:
            return False
        if isinstance(target.tracked_, Leaf):
            raise RecordError(
                "an array with a gradient attached is written while recording",
                where=here(),
                instead="`with autograd.pause():` around the write, or a new array",
            )
        recording = self.recording
        token = ACTIVE.set(recording)
        try:
            traced = self._traced(self.source(target))
            traced[self._seen(index)] = self._seen(value)
            step, position = recording.steps[traced.value_]
        finally:
            ACTIVE.reset(token)
            recording.clear()
        wrote(target.data_)
        target.data_[unwrap(index)] = unwrap(value)
        step.replace(position, target.data_)
        target.tracked_ = Recorded(step, position) if step.active else None
        ADOPTED.add(memory_of(target.data_))
        return True

    def _write_result(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A function that writes into an argument."""
        options = dict(kwargs)
        out = options.pop("out", None)
        targets = out if isinstance(out, tuple) else (out,)
        arrays = all(isinstance(target, Array) for target in targets)
        if function is np.copyto and len(args) == 2 and not kwargs:
            target, value = args
        elif arrays and len(targets) == 1 and options.get("where", True) is True:
            (target,) = targets
            made = self.operate(function, args, options)
            value = self.operate(np.asarray, (args[0],), {}) if made is UNRECORDED else made
            if made is UNRECORDED:
                raise _unrecorded_write(function)
        else:
            raise _unrecorded_write(function)
        if not np.can_cast(value.dtype, target.dtype, "same_kind"):
            raise TypeError(f"cannot cast from {value.dtype} to {target.dtype} in place")
        if not self.write(target, Ellipsis, value):
            wrote_into(target)
            target.data_[...] = unwrap(value)
        return None if function is np.copyto else target

    # ---- compiled code ---------------------------------------------------------------------

    def call(
        self,
        body: Graph,
        backward: Graph,
        results: int,
        inputs: Sequence[Any],
        values: Sequence[Any],
        wanted: Sequence[int],
    ) -> list[Array]:
        """Put a compiled program on the tape as one node.

        Args:
            body: what it computes, what it saves for `backward` among its outputs.
            backward: the gradients of the wanted inputs, as the op `call` says.
            results: how many of the outputs the caller gets.
            inputs: arrays and numbers, in the order of the body's inputs.
            values: all outputs, as the program has computed them.
            wanted: the inputs that have a gradient.

        Returns:
            The results as arrays.
        """
        recording = self.recording
        try:
            sources = [self.source(thing) for thing in inputs]
            data = [_boxed(value) for value in values]
            node = Node(
                recording.ids.next(),
                get("call"),
                [step.values[index] for step, index in sources],
                {"body": body, "backward": backward, "results": results, "wanted": tuple(wanted)},
                [recording.ids.value(type_of(value)) for value in data],
                here(),
            )
            recording.enter(node, sources, data)
            return [self.shown(value) for value in node.outputs[:results]]
        finally:
            recording.clear()


def _carries(thing: Any) -> bool:
    """Whether an argument carries a gradient.

    Raises:
        RecordError: it does, but this name for its memory does not know.
    """
    if isinstance(thing, Array):
        if thing.tracked_ is None:
            if len(ADOPTED) and MEMORIES.get(id(owner_of(thing.data_))) in ADOPTED:
                raise RecordError(
                    "recorded values were written into the memory of this array through another "
                    "view of it",
                    where=here(),
                    instead="take the view after the write, or write into a .copy()",
                )
            return False
        leaf = thing.tracked_
        return not isinstance(leaf, Leaf) or leaf.req != "null"
    kind = type(thing)
    if kind is tuple or kind is list:
        return any(map(_carries, thing))
    return False


def _unrecorded_write(function: Any) -> UnsupportedError:
    name = getattr(function, "__name__", str(function))
    return UnsupportedError(
        f"this way of writing with np.{name} is not recorded",
        where=here(),
        instead="x[index] = value, or the function without out=",
    )


def _written(step: Step, place: Loc | None, why: str) -> RecordedWriteError:
    made = "" if step.place is None else f", recorded at {step.place.file}:{step.place.line},"
    return RecordedWriteError(
        f"an array{made} was written since, and {why}",
        where=place,
        instead="write into a .copy() of it, or after `backward`",
    )


_tapes = threading.local()


def tape_of_thread() -> Tape:
    """The tape of this thread."""
    found = getattr(_tapes, "tape", None)
    if found is None:
        found = _tapes.tape = Tape()
    return found


# ---- backward


class Program:
    """The compiled backward graph of one key.

    Attributes:
        graph: from what was kept, then the heads' gradients, to the gradients of the leaves.
        kept: for each of its first inputs the position of the step and which of its results.
        produced: for each leaf the position of its gradient among the results, None if it is zero.
    """

    def __init__(
        self,
        graph: Graph,
        kept: Sequence[tuple[int, int]],
        heads: Sequence[int],
        produced: Sequence[int | None],
        steps: Sequence[Step],
    ) -> None:
        self.graph = graph
        self.kept = tuple(kept)
        self.heads = tuple(heads)
        self.produced = tuple(produced)
        self._nodes = [step.node for step in steps]  # graphs in attrs are known by identity
        compiled_calls = any(node is not None and node.op.name == "call" for node in self._nodes)
        self._backend = "auto" if compiled_calls else "python"
        self._compiled: dict[tuple[bool, ...], Compiled] = {}

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        dense = tuple(
            not isinstance(argument, np.ndarray) or argument.flags.c_contiguous
            for argument in arguments
        )
        compiled = self._compiled.get(dense)
        if compiled is None:
            strided = [
                value for value, flag in zip(self.graph.inputs, dense, strict=True) if not flag
            ]
            compiled = Compiled(self.graph, self._backend, strided=strided)
            self._compiled[dense] = compiled
        return compiled.run(*arguments)


_programs: OrderedDict[Any, Program] = OrderedDict()
_lock = threading.Lock()


def backward(heads: Sequence[Array], grads: Sequence[Any], retain_graph: bool) -> None:
    """Store the gradients of the sum of `heads * grads` by all arrays with a gradient attached."""
    sources, cotangents = _starts(heads, grads)
    steps = collect(sources)
    leaves = [
        (step, 0)
        for step in steps
        if step.leaf is not None and step.leaf.req != "null" and step.active
    ]
    found = _gradients(steps, sources, cotangents, leaves)
    totals: dict[int, tuple[Leaf, Any]] = {}
    for (step, _), gradient in zip(leaves, found, strict=True):
        assert step.leaf is not None
        _, before = totals.get(id(step.leaf), (None, None))
        totals[id(step.leaf)] = (step.leaf, gradient if before is None else before + gradient)
    for leaf, gradient in totals.values():
        _store(leaf, gradient)
    if not retain_graph:
        _free(steps)


def _free(steps: Sequence[Step]) -> None:
    for step in steps:
        step.free()


def gradients(
    heads: Sequence[Array],
    grads: Sequence[Any],
    variables: Sequence[Array],
    retain_graph: bool,
    create_graph: bool,
) -> list[Array]:
    """The gradients of the sum of `heads * grads` by some arrays, as new arrays.

    Raises:
        RecordError: a variable has no gradient attached and was not recorded.
    """
    sources, cotangents = _starts(heads, grads)
    steps = collect(sources)
    found: list[Array] = []
    wanted = [_occurrences(variable, steps) for variable in variables]
    flat = [source for sources_of_one in wanted for source in sources_of_one]
    compute = _recorded_gradients if create_graph else _gradients
    parts = iter(compute(steps, sources, cotangents, flat))
    for variable, occurrences in zip(variables, wanted, strict=True):
        total: Any = None
        for _ in occurrences:
            part = next(parts)
            total = part if total is None else total + part
        if total is None:
            total = np.zeros_like(variable.data_)
        found.append(total if isinstance(total, Array) else wrap(np.array(total)))
    if not retain_graph:
        _free(steps)
    return found


def _occurrences(variable: Array, steps: Sequence[Step]) -> list[Source]:
    """Where an array stands among the steps."""
    tracked = variable.tracked_
    if isinstance(tracked, Recorded):
        return [(step, tracked.index) for step in steps if step is tracked.step]
    if tracked is None:
        raise RecordError(
            "the gradient by an array that has no gradient attached and was not recorded",
            where=here(),
            instead="x.attach_grad() before it is used",
        )
    return [(step, 0) for step in steps if step.leaf is tracked]


def _recorded_gradients(
    steps: Sequence[Step],
    heads: Sequence[Source],
    cotangents: Sequence[Any],
    wanted: Sequence[Source],
) -> list[Any]:
    """The gradients of the wanted values as recorded arrays: the sweep itself is recorded."""
    tape = tape_of_thread()
    recording = tape.recording
    try:
        for step in _with_inputs(steps):
            for index, value in enumerate(step.values):
                written, place = step.written(index)
                if written:
                    raise _written(step, place, "the gradient needs it as it was")
                recording.steps[value] = (step, index)
        starts = {
            step.values[index]: recording.come_in(cotangent, active=False).values[0]
            for (step, index), cotangent in zip(heads, cotangents, strict=True)
        }
        found = record_backward(
            recording,
            [step.node for step in steps if step.node is not None],
            starts,
            [step.values[index] for step, index in wanted],
        )
        return [
            np.zeros_like(step.data[index]) if value is None else tape.shown(value)
            for value, (step, index) in zip(found, wanted, strict=True)
        ]
    finally:
        recording.clear()


def _store(leaf: Leaf, gradient: Any) -> None:
    assert leaf.grad is not None
    data = leaf.grad.data_
    if MEMORIES:
        wrote(data)
    if leaf.req == "add":
        np.add(data, gradient, out=data, casting="same_kind")
    else:
        data[...] = gradient
    leaf.fresh = True


def _starts(
    heads: Sequence[Array], grads: Sequence[Any]
) -> tuple[list[Source], list[np.ndarray[Any, Any]]]:
    """Where to start, each once, and the gradient there.

    Raises:
        RecordError: a head was not recorded; SignatureError, ShapeError: a gradient does not fit.
    """
    if len(heads) != len(grads):
        raise SignatureError(f"{len(heads)} arrays and {len(grads)} gradients", instead="one each")
    found: dict[int, tuple[Source, Any]] = {}
    for head, grad in zip(heads, grads, strict=True):
        tracked = head.tracked_ if isinstance(head, Array) else None
        if not isinstance(tracked, Recorded):
            raise unrecorded(head)
        if tracked.step.freed:
            raise _freed(tracked.step)
        if grad is None:
            given = np.ones_like(head.data_)
        else:
            given = np.asarray(unwrap(grad), head.data_.dtype)
            if given.shape != head.data_.shape:
                raise ShapeError(
                    f"the gradient of an array of shape {head.data_.shape} has the same shape, not "
                    f"{given.shape}",
                    where=here(),
                )
        value = tracked.step.values[tracked.index]
        _, before = found.get(id(value), (None, None))
        source = (tracked.step, tracked.index)
        found[id(value)] = (source, given if before is None else before + given)
    return [source for source, _ in found.values()], [given for _, given in found.values()]


def collect(heads: Sequence[Source]) -> list[Step]:
    """The steps through which a gradient reaches the heads, in the order they were recorded.

    Raises:
        FreedError: one of them is freed.
    """
    found: dict[int, Step] = {}
    pending = [step for step, _ in heads]
    while pending:
        step = pending.pop()
        if step.number in found or not step.active:
            continue
        if step.freed:
            raise _freed(step)
        found[step.number] = step
        pending.extend(source for source, _ in step.inputs)
    return [found[number] for number in sorted(found)]


def _freed(step: Step) -> FreedError:
    return FreedError(
        "backward through operations whose record is freed: an earlier backward went through them",
        where=step.place,
        instead="first.backward(retain_graph=True), autograd.backward([first, second]), or "
        "x.detach() for what comes from an earlier step",
    )


def _gradients(
    steps: Sequence[Step],
    heads: Sequence[Source],
    cotangents: Sequence[Any],
    wanted: Sequence[Source],
) -> list[Any]:
    """The gradients of the wanted values: arrays, zeros where nothing leads there."""
    key = key_of(steps, heads, wanted)
    with _lock:
        program = _programs.get(key)
        if program is None:
            program = _programs[key] = _program(steps, heads, wanted)
            while len(_programs) > KEPT_PROGRAMS:
                _programs.popitem(last=False)
        else:
            _programs.move_to_end(key)
    everything = _with_inputs(steps)
    kept: list[Any] = []
    for at, index in program.kept:
        step = everything[at]
        written, place = step.written(index)
        if written:
            raise _written(step, place, "the gradient needs it as it was")
        kept.append(step.data[index])
    results = program(*kept, *(cotangents[at] for at in program.heads))
    return [
        np.zeros_like(step.data[index]) if at is None else results[at]
        for at, (step, index) in zip(program.produced, wanted, strict=True)
    ]


def _with_inputs(steps: Sequence[Step]) -> list[Step]:
    """The steps, after what came in from outside of them."""
    found: dict[int, Step] = {}
    for step in steps:
        for source, _ in step.inputs:
            found.setdefault(source.number, source)
        found.setdefault(step.number, step)
    return list(found.values())


def key_of(steps: Sequence[Step], heads: Sequence[Source], wanted: Sequence[Source]) -> Any:
    """Equal for steps of the same ops on the same types, linked in the same way."""
    everything = _with_inputs(steps)
    position = {step.number: at for at, step in enumerate(everything)}
    recorded = {step.number for step in steps if step.node is not None}

    def positions(sources: Sequence[Source]) -> tuple[tuple[int, int], ...]:
        return tuple((position[step.number], index) for step, index in sources)

    parts = [
        (step.key, positions(step.inputs))
        if step.number in recorded
        else tuple(value.type for value in step.values)
        for step in everything
    ]
    return tuple(parts), positions(heads), positions(wanted)


def _program(steps: Sequence[Step], heads: Sequence[Source], wanted: Sequence[Source]) -> Program:
    """Record the backward graph."""
    place_of = {
        value: (at, index)
        for at, step in enumerate(_with_inputs(steps))
        for index, value in enumerate(step.values)
    }
    builder = Recording()
    starts = [step.values[index] for step, index in heads]
    cotangents = [builder.ids.value(value.type) for value in starts]
    gradients = record_backward(
        builder,
        [step.node for step in steps if step.node is not None],
        dict(zip(starts, cotangents, strict=True)),
        [step.values[index] for step, index in wanted],
    )
    outputs = [value for value in gradients if value is not None]
    nodes, read = _needed(builder.nodes, outputs)
    kept = [value for value in read if value in place_of]
    given = [at for at, value in enumerate(cotangents) if value in read]
    graph = Graph(
        "backward", [*kept, *(cotangents[at] for at in given)], nodes, outputs
    ).canonical()
    results = iter(range(len(outputs)))
    produced = [None if value is None else next(results) for value in gradients]
    return Program(graph, [place_of[value] for value in kept], given, produced, steps)


def _needed(
    nodes: Sequence[Node], outputs: Sequence[Value]
) -> tuple[list[Node], dict[Value, None]]:
    """The nodes that some outputs depend on (or that have effects), and all values these read."""
    read = dict.fromkeys(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if node.is_effect or any(value in read for value in node.outputs):
            kept.append(node)
            read.update(dict.fromkeys(node.inputs))
    return kept[::-1], read
