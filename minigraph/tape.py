"""The tape: eager operations that are recorded as they are computed.

A call of a NumPy function on arrays that carry a gradient runs on traced arrays; each node that the
tracer records is computed at once, so nothing runs twice.  Operators and ufuncs of arrays of floats
take a shorter way to the same nodes.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Token
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.array import UNRECORDED, WRITERS, Array, Leaf, unrecorded, unwrap, wrap
from minigraph.backward import Immediate
from minigraph.backward import gradients as computed_gradients
from minigraph.errors import DtypeError, RecordError, ShapeError, SignatureError, UnsupportedError
from minigraph.grad import backward as record_backward
from minigraph.ir import GENERATOR, SCALARS, ArrayType, Graph, Node, Op, Type, Value, type_of
from minigraph.memory import NUMBERS, Watch, is_adopted, wrote
from minigraph.mode import MODE, here
from minigraph.ops import evaluate_node, is_float
from minigraph.steps import Source, Step, collect, freed, with_inputs
from minigraph.trace import (
    ACTIVE,
    BINARY,
    COMPARE,
    UNARY,
    Layout,
    Recording,
    Storage,
    TracedArray,
    TracedScalar,
)

_REMEMBERED_TYPES = 4096


class Recorded:
    """What an array that was recorded carries: its step, and which result it is."""

    __slots__ = ("index", "step")

    def __init__(self, step: Step, index: int) -> None:
        self.step = step
        self.index = index

    def backward(self, heads: Sequence[Array], grads: Sequence[Any], retain_graph: bool) -> None:
        """As `autograd.backward`."""
        backward(heads, grads, retain_graph)


class _Recording(Immediate):
    """A recording whose nodes are computed at once; it keeps nothing from one call to the next.

    Attributes:
        steps: of the values of the call that is running.
        watch: what its steps hold.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[Value, Source] = {}
        self.watch: Watch | None = None
        self._types: dict[Any, Any] = {}

    # ---- what comes in and goes out --------------------------------------------------------

    def source(self, thing: Any) -> Source:
        """Where an operand comes from.

        Raises:
            RecordedWriteError: its memory was written since it was recorded.
        """
        if type(thing) is not Array:
            return self._come_in(thing)
        tracked = thing.tracked_
        if tracked is None:
            return self._come_in(thing.data_)
        if type(tracked) is Leaf:
            return self._come_in(thing.data_, tracked if tracked.req != "null" else None)
        step, index = found = tracked.step, tracked.index
        if step.freed:
            made = Step(None, (), step.values, list(step.values), True, None)
            made.data[index] = thing.data_
            found = made, index
        else:
            step.check(index, "it is used again")
        self.steps[step.values[index]] = found
        return found

    def _come_in(self, data: Any, leaf: Leaf | None = None) -> Source:
        value = self.ids.value(self._type_of(data))
        found = Step(None, (), (value,), [data], leaf is not None, self.watch, leaf), 0
        self.steps[value] = found
        return found

    def seen(self, thing: Any) -> Any:
        """An argument as the tracer sees it."""
        if type(thing) is Array or isinstance(thing, np.ndarray):
            step, index = self.source(thing)
            data = step.data[index]
            layout = Layout(data.shape, data.flags.c_contiguous, strided=data)
            return TracedArray(self, Storage(step.values[index]), (), layout)
        kind = type(thing)
        if kind is tuple or kind is list:
            return kind([self.seen(item) for item in thing])
        if kind is slice:
            return unwrap(thing)
        return thing

    def shown(self, result: Any) -> Any:
        """A result as the user sees it."""
        if isinstance(result, TracedArray):
            return show(self.steps[result.value_])
        if isinstance(result, TracedScalar):
            step, index = self.steps[result.value_]
            return step.data[index]
        kind = type(result)
        if kind is list:
            return [self.shown(item) for item in result]
        if isinstance(result, tuple):
            items = [self.shown(item) for item in result]
            return tuple(items) if kind is tuple else kind(*items)
        return result

    def begin(self, watch: Watch | None) -> Token[Recording | None] | None:
        """Record from here on; None if that is so already (a function that NumPy calls back)."""
        if ACTIVE.get() is self:
            return None
        self.watch = watch
        return ACTIVE.set(self)

    def end(self, token: Token[Recording | None] | None) -> None:
        """The end of what `begin` began: the call is forgotten."""
        if token is None:
            return
        ACTIVE.reset(token)
        self.watch = None
        self.nodes.clear()
        self.steps.clear()
        self._known.clear()
        self._producer.clear()

    # ---- nodes -----------------------------------------------------------------------------

    def eager_value(self, array: Array) -> Value:
        step, index = self.source(array)
        return step.values[index]

    def constant(self, concrete: Any, place: Any = None) -> Value:
        step, _ = self._come_in(concrete)
        (value,) = step.values
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
        place = place or (here(), ())
        values = super().emit(op, inputs, attrs, place=place, checked=checked)
        node = self.nodes.pop()
        sources = [self.steps[value] for value in inputs]
        data = [step.data[index] for step, index in sources]
        step = self.step(node, sources, evaluate_node(node, data))
        for index, value in enumerate(values):
            self.steps[value] = (step, index)
            if value in self._known:
                self._known[value] = step.data[index]
        return values

    def step(self, node: Node, sources: Sequence[Source], results: Iterable[Any]) -> Step:
        """A node and its results."""
        active = any(step.active and is_float(step.values[index].type) for step, index in sources)
        data = [np.asarray(each) if isinstance(each, np.generic) else each for each in results]
        return Step(node, sources, node.outputs, data, active, self.watch)

    def direct(self, function: Callable[..., Any], op: Op, args: Sequence[Any]) -> Array | None:
        """Record an op of arrays of floats and numbers that has no attrs; None: it is not so."""
        if not all(map(_is_floats, args)):
            return None
        try:
            sources = [self.source(arg) for arg in args]
            inputs = [step.values[index] for step, index in sources]
            type_ = self._result_type(op, inputs)
            result = function(*[step.data[index] for step, index in sources])
            node = Node(self.ids.next(), op, inputs, _NO_ATTRS, (self.ids.value(type_),), here())
            return show((self.step(node, sources, (result,)), 0))
        except (ShapeError, DtypeError):
            return None  # the other way finds it, too, and says where

    # ---- types, each worked out once -------------------------------------------------------

    def _type_of(self, data: Any) -> Type:
        scalar = SCALARS.get(type(data))
        if scalar is not None:
            return scalar
        if isinstance(data, np.random.Generator):
            return GENERATOR
        return self._known_type((data.dtype, data.shape), lambda: type_of(data))

    def _result_type(self, op: Op, inputs: Sequence[Value]) -> Type:
        types = [value.type for value in inputs]
        return self._known_type((op.name, *types), lambda: ops.infer(op, types, {})[0])

    def _known_type(self, key: Any, find: Callable[[], Type]) -> Type:
        found = self._types.get(key)
        if found is None:
            if len(self._types) >= _REMEMBERED_TYPES:
                self._types.clear()
            found = self._types[key] = find()
        return found


_NO_ATTRS: dict[str, Any] = {}


def _is_floats(arg: Any) -> bool:
    kind = type(arg)
    if kind is Array:
        return arg.data_.dtype.kind == "f"
    return kind is float or kind is int or (kind is np.ndarray and arg.dtype.kind == "f")


_threads = threading.local()


def _recording() -> _Recording:
    """The recording of this thread."""
    found = getattr(_threads, "recording", None)
    if found is None:
        found = _threads.recording = _Recording()
    return found


class Tape:
    """Records the operations of one `record` scope."""

    def __init__(self) -> None:
        self.watch = Watch()

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
        recording, active = _recording(), ACTIVE.get()
        if active not in (None, recording) or function in _COMPARISONS:
            return UNRECORDED
        if function in WRITERS or kwargs.get("out") is not None:
            return self._write_result(function, args, kwargs)
        if function is operator.getitem:
            args = args[0], _without_masks(args[0], args[1])
        token = recording.begin(self.watch)
        try:
            if function in _DIRECT and not kwargs:
                made = recording.direct(function, _DIRECT[function], args)
                if made is not None:
                    return made
            seen = [recording.seen(arg) for arg in args]
            named = {name: recording.seen(arg) for name, arg in kwargs.items()}
            return recording.shown(function(*seen, **named))
        finally:
            recording.end(token)

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
        recording = _recording()
        if ACTIVE.get() not in (None, recording):
            return False
        if isinstance(target.tracked_, Leaf):
            raise RecordError(
                "an array with a gradient attached is written while recording",
                where=here(),
                instead="`with autograd.pause():` around the write, or a new array",
            )
        token = recording.begin(self.watch)
        try:
            traced = recording.seen(target)
            traced[recording.seen(_without_masks(target, index))] = recording.seen(value)
            step, position = recording.steps[traced.value_]
        finally:
            recording.end(token)
        wrote(target.data_, adopted=True)
        target.data_[unwrap(index)] = unwrap(value)
        step.data[position] = target.data_
        step.since = next(NUMBERS)
        target.tracked_ = Recorded(step, position) if step.active else None
        return True

    def _write_result(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A function that writes into an argument."""
        options = dict(kwargs)
        out = options.pop("out", None)
        target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if function is np.copyto and len(args) == 2 and not kwargs:
            target, value = args
        elif isinstance(target, Array) and options.get("where", True) is True:
            value = self.operate(function, args, options)
            if value is UNRECORDED:  # only what is overwritten carries a gradient
                value = wrap(np.asarray(function(*unwrap(args), **options)))
        else:
            raise UnsupportedError(
                f"this way of writing with np.{getattr(function, '__name__', function)} is not "
                "recorded",
                where=here(),
                instead="x[index] = value, or the function without out=",
            )
        if not np.can_cast(np.asarray(unwrap(value)).dtype, target.dtype, "same_kind"):
            raise TypeError(f"cannot cast from {value.dtype} to {target.dtype} in place")
        target[...] = value
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
            body: what it computes; among its outputs is what it saves for `backward`.
            backward: the gradients of the wanted inputs, as the op `call` says.
            results: how many of the outputs the caller gets.
            inputs: arrays and numbers, in the order of the body's inputs.
            values: all outputs, as the program has computed them.
            wanted: the inputs that have a gradient.

        Returns:
            The results as arrays.
        """
        recording = _recording()
        token = recording.begin(self.watch)
        try:
            sources = [recording.source(thing) for thing in inputs]
            node = Node(
                recording.ids.next(),
                ops.get("call"),
                [step.values[index] for step, index in sources],
                {"body": body, "backward": backward, "results": results, "wanted": tuple(wanted)},
                [recording.ids.value(type_of(value)) for value in values],
                here(),
            )
            step = recording.step(node, sources, values)
            return [show((step, index)) for index in range(results)]
        finally:
            recording.end(token)


def tape_of_thread() -> Tape:
    """The tape of the `record` scope that is running in this thread."""
    tape = MODE.get().tape
    assert isinstance(tape, Tape)
    return tape


def show(source: Source) -> Array:
    """The array of what was recorded."""
    step, index = source
    made = wrap(np.asarray(step.data[index]))
    if step.active and is_float(step.values[index].type):
        made.tracked_ = Recorded(step, index)
    return made


def _carries(thing: Any) -> bool:
    """Whether an argument carries a gradient.

    Raises:
        RecordError: it does, but this name for its memory does not know.
    """
    if type(thing) is Array:
        tracked = thing.tracked_
        if tracked is not None:
            return type(tracked) is not Leaf or tracked.req != "null"
        if is_adopted(thing.data_):
            raise RecordError(
                "recorded values were written into the memory of this array through another view "
                "of it",
                where=here(),
                instead="take the view after the write, or write into a .copy()",
            )
        return False
    kind = type(thing)
    return (kind is tuple or kind is list) and any(map(_carries, thing))


def _without_masks(array: Any, index: Any) -> Any:
    """The same index with the positions that masks select: how many is known, the array is here."""
    items = [unwrap(item) for item in (index if type(index) is tuple else (index,))]
    items = [np.asarray(item) if type(item) is list else item for item in items]
    masks = [isinstance(item, np.ndarray) and item.dtype == bool and item.ndim for item in items]
    if not any(masks):
        return index
    np.broadcast_to(np.int8(0), array.shape)[tuple(items)]  # raises what NumPy raises
    found: list[Any] = []
    for item, mask in zip(items, masks, strict=True):
        found.extend(np.nonzero(item) if mask else (item,))
    return tuple(found)


def _direct() -> dict[Any, Op]:
    """The ops of operators and ufuncs that have no options."""
    found: dict[Any, Op] = {}
    for name, op in {**BINARY, **UNARY, "matmul": "matmul"}.items():
        found[getattr(operator, f"__{name}__")] = ops.get(op)
    for name, op in ops.RECORDED.items():
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.nout == 1 and op.numpy == name:
            found[ufunc] = op
    return found


_DIRECT = _direct()
_COMPARISONS = frozenset(getattr(operator, f"__{name}__") for name in COMPARE)  # no gradient


# ---- gradients


def backward(heads: Sequence[Array], grads: Sequence[Any], retain_graph: bool) -> None:
    """Store the gradients of the sum of `heads * grads` by all arrays with a gradient attached."""
    sources, cotangents = _starts(heads, grads)
    steps = collect(sources)
    leaves = [(step, 0) for step in steps if step.leaf is not None]
    found = computed_gradients(steps, sources, cotangents, leaves)
    totals: dict[int, tuple[Leaf, Any]] = {}
    for (step, _), gradient in zip(leaves, found, strict=True):
        assert step.leaf is not None
        before = totals.get(id(step.leaf))
        totals[id(step.leaf)] = step.leaf, gradient if before is None else before[1] + gradient
    for leaf, gradient in totals.values():
        _store(leaf, gradient)
    if not retain_graph:
        for step in steps:
            step.free()


def _store(leaf: Leaf, gradient: Any) -> None:
    assert leaf.grad is not None
    data = leaf.grad.data_
    wrote(data)
    if leaf.req == "add":
        data += gradient
    else:
        data[...] = gradient
    leaf.fresh = True


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
    wanted = [_occurrences(variable, steps) for variable in variables]
    compute = _recorded_gradients if create_graph else computed_gradients
    flat = [source for occurrences in wanted for source in occurrences]
    parts = iter(compute(steps, sources, cotangents, flat))
    found: list[Array] = []
    for variable, occurrences in zip(variables, wanted, strict=True):
        total: Any = np.zeros_like(variable.data_)
        for at, _ in enumerate(occurrences):
            total = next(parts) if at == 0 else total + next(parts)
        found.append(total if isinstance(total, Array) else wrap(np.array(total)))
    if not retain_graph:
        for step in steps:
            step.free()
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


def _starts(
    heads: Sequence[Array], grads: Sequence[Any]
) -> tuple[list[Source], list[np.ndarray[Any, Any]]]:
    """Where to start, each place once, and the gradient there.

    Raises:
        RecordError: a head was not recorded; SignatureError, ShapeError: a gradient does not fit.
    """
    if len(heads) != len(grads):
        raise SignatureError(f"{len(heads)} arrays and {len(grads)} gradients", instead="one each")
    found: dict[Value, tuple[Source, Any]] = {}
    for head, grad in zip(heads, grads, strict=True):
        tracked = head.tracked_ if isinstance(head, Array) else None
        if not isinstance(tracked, Recorded):
            raise unrecorded(head)
        step, index = source = tracked.step, tracked.index
        if step.freed:
            raise freed(step)
        given = np.ones_like(head.data_)
        if grad is not None:
            given = np.asarray(unwrap(grad), head.data_.dtype)
        if given.shape != head.data_.shape:
            raise ShapeError(
                f"the gradient by an array of shape {head.data_.shape} has that shape, not "
                f"{given.shape}",
                where=here(),
            )
        before = found.get(step.values[index])
        found[step.values[index]] = source, given if before is None else before[1] + given
    return [source for source, _ in found.values()], [given for _, given in found.values()]


def _recorded_gradients(
    steps: Sequence[Step],
    heads: Sequence[Source],
    cotangents: Sequence[Any],
    wanted: Sequence[Source],
) -> list[Any]:
    """As `computed_gradients`, but recorded: the sweep runs on the recording itself."""
    recording = _recording()
    token = recording.begin(steps[-1].watch)
    try:
        for step in with_inputs(steps):
            for index, value in enumerate(step.values):
                step.check(index, "the gradient needs it as it was")
                recording.steps[value] = (step, index)
        starts = {
            step.values[index]: recording.constant(cotangent)
            for (step, index), cotangent in zip(heads, cotangents, strict=True)
        }
        found = record_backward(
            recording,
            [step.node for step in steps if step.node is not None],
            starts,
            [step.values[index] for step, index in wanted],
        )
        return [
            np.zeros_like(step.data[index]) if value is None else show(recording.steps[value])
            for value, (step, index) in zip(found, wanted, strict=True)
        ]
    finally:
        recording.end(token)
