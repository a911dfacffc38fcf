"""The tape: eager operations that are recorded as they are computed.

A call of a NumPy function on arrays that carry a gradient runs on traced arrays; each node that the
tracer records is computed at once, so nothing runs twice.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.array import UNRECORDED, Array, Attached, unwrap, wrap
from minigraph.errors import UnsupportedError, written_leaf
from minigraph.ir import Node
from minigraph.memory import NUMBERS, Watch, wrote
from minigraph.mode import MODE, here
from minigraph.trace import ACTIVE, COMPARE

from .called import Called
from .gradients import Recorded, show
from .recording import DIRECT, recording_of_thread
from .steps import Step, check_known


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
        recording, active = recording_of_thread(), ACTIVE.get()
        if active not in (None, recording) or function in _COMPARISONS:
            return UNRECORDED
        if kwargs.get("out") is not None:
            return self._store_result(function, args, kwargs)
        if function is operator.getitem:
            args = args[0], _without_masks(args[0], args[1])
        token = recording.begin(self.watch)
        try:
            if function in DIRECT and not kwargs:
                made = recording.direct(function, DIRECT[function], args)
                if made is not None:
                    return made
            return recording.call(function, args, kwargs)
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
        recording = recording_of_thread()
        if ACTIVE.get() not in (None, recording):
            return False
        if isinstance(target.tracked_, Attached):
            raise written_leaf(here())
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

    def overwrite(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """A function that writes into its first argument, recorded.

        Returns:
            False if no argument carries a gradient (then nothing was written).

        Raises:
            UnsupportedError: it is not recorded.
        """
        if not any(map(_carries, args)) and not any(map(_carries, kwargs.values())):
            return False
        if function is not np.copyto or len(args) != 2 or kwargs:
            raise _unrecorded(function)
        _check_cast(args[1], args[0])
        args[0][...] = args[1]
        return True

    def _store_result(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A function that is told `out=`."""
        options = {name: value for name, value in kwargs.items() if name != "out"}
        out = kwargs["out"]
        target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        if not isinstance(target, Array) or options.get("where", True) is not True:
            raise _unrecorded(function)
        value = self.operate(function, args, options)
        if value is UNRECORDED:  # only what is overwritten carries a gradient
            value = wrap(np.asarray(function(*unwrap(args), **options)))
        _check_cast(value, target)
        target[...] = value
        return target

    # ---- compiled code ---------------------------------------------------------------------

    def call(self, program: Called, inputs: Sequence[Any], values: Sequence[Any]) -> list[Array]:
        """Put a call of a compiled program on the tape as one node.

        Args:
            program: what was called.
            inputs: arrays and numbers, in the order of its inputs.
            values: all outputs, as it has computed them.

        Returns:
            The results as arrays.
        """
        recording, place = recording_of_thread(), here()
        token = recording.begin(self.watch)
        try:
            sources = list(map(recording.operand, inputs, program.input_types))
            program = program.for_inputs([step.data[index] for step, index in sources])

            def node(step: Step) -> Node:
                ids = recording.ids
                outputs = map(ids.value, program.types)
                taken = [source.values[index] for source, index in step.inputs]
                return Node(ids.next(), _CALL, taken, program.attrs, outputs, place)

            step = recording.step(node, sources, program.types, values, program)
            return [show((step, index)) for index in range(program.attrs["results"])]
        finally:
            recording.end(token)


_CALL = ops.get("call")


def tape_of_thread() -> Tape:
    """The tape of the `record` scope that is running in this thread."""
    tape = MODE.get().tape
    assert isinstance(tape, Tape)
    return tape


def _unrecorded(function: Any) -> UnsupportedError:
    """The error for a way of writing that is not recorded."""
    return UnsupportedError(
        f"this way of writing with np.{getattr(function, '__name__', function)} is not recorded",
        where=here(),
        instead="x[index] = value, or the function without out=",
    )


def _check_cast(value: Any, target: Array) -> None:
    """NumPy stores a result into `out=` only if it stays of the same kind."""
    dtype = np.asarray(unwrap(value)).dtype
    if not np.can_cast(dtype, target.dtype, "same_kind"):
        raise TypeError(f"cannot cast from {dtype} to {target.dtype} in place")


def _carries(thing: Any) -> bool:
    """Whether an argument carries a gradient.

    Raises:
        RecordError: it does, but this name for its memory does not know.
    """
    if type(thing) is Array:
        tracked = thing.tracked_
        if tracked is not None:
            return type(tracked) is not Attached or tracked.req != "null"
        check_known(thing.data_)
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


_COMPARISONS = frozenset(getattr(operator, f"__{name}__") for name in COMPARE)  # no gradient
