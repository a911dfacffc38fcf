"""What `backward` does with what was recorded: from heads to the gradients of leaves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minigraph.array import Array, Attached, is_tracked, unwrap, wrap
from minigraph.errors import RecordError, ShapeError, SignatureError, freed, unrecorded
from minigraph.grad import backward as record_backward
from minigraph.mode import here

from .programs import run
from .steps import Source, Step, collect, with_inputs

if TYPE_CHECKING:
    from .recording import EagerRecording


class Recorded:
    """What an array that was recorded carries: its step, and which result it is."""

    __slots__ = ("index", "step")

    def __init__(self, step: Step, index: int) -> None:
        self.step = step
        self.index = index

    def backward(self, heads: Sequence[Array], grads: Sequence[Any], retain_graph: bool) -> None:
        """As `autograd.backward`."""
        backward(heads, grads, retain_graph)


def show(source: Source) -> Array:
    """The array of what was recorded."""
    step, index = source
    made = wrap(np.asarray(step.data[index]))
    if step.carries(index):
        made.tracked_ = Recorded(step, index)
    return made


def backward(heads: Sequence[Array], grads: Sequence[Any], retain_graph: bool) -> None:
    """Store the gradients of the sum of `heads * grads` by all arrays with a gradient attached."""
    sources, cotangents = _starts(heads, grads)
    steps = collect(sources)
    leaves = [(step, 0) for step in steps if step.leaf is not None]
    found = run(steps, sources, cotangents, leaves)
    totals: dict[int, tuple[Attached, Any]] = {}
    for (step, _), gradient in zip(leaves, found, strict=True):
        assert step.leaf is not None
        before = totals.get(id(step.leaf))
        totals[id(step.leaf)] = step.leaf, gradient if before is None else before[1] + gradient
    if not retain_graph:
        for step in steps:
            step.free()
    for leaf, gradient in totals.values():
        _store(leaf, gradient)


def _store(leaf: Attached, gradient: Any) -> None:
    """Store a gradient; where nobody holds the old ndarray, the new one takes its place."""
    assert leaf.grad is not None
    if leaf.req == "add":
        leaf.grad += gradient
    elif (
        type(gradient) is np.ndarray
        and gradient.base is None
        and gradient.flags.writeable
        and sys.getrefcount(leaf.grad.data_) == _ALONE
    ):
        leaf.grad.data_ = gradient
    else:
        leaf.grad[...] = gradient
    leaf.fresh = True


_probe = wrap(np.zeros(1))
_ALONE = sys.getrefcount(_probe.data_)  # of an ndarray that only its array holds


def gradients(
    heads: Sequence[Array],
    grads: Sequence[Any],
    variables: Sequence[Array],
    retain_graph: bool,
    recording: EagerRecording | None,
) -> list[Array]:
    """The gradients of the sum of `heads * grads` by some arrays, as new arrays.

    Args:
        heads: recorded arrays.
        grads: the gradient by each; None: ones.
        variables: arrays with a gradient attached, or recorded ones.
        retain_graph: keep what was recorded.
        recording: where the gradients are recorded in turn (None: nowhere).

    Raises:
        RecordError: a variable has no gradient attached and was not recorded.
    """
    sources, cotangents = _starts(heads, grads, recorded=recording is not None)
    steps = collect(sources)
    wanted = [_occurrences(variable, steps) for variable in variables]
    flat = [source for occurrences in wanted for source in occurrences]
    if recording is None:
        parts = iter(run(steps, sources, cotangents, flat))
    else:
        parts = iter(_run_recorded(recording, steps, sources, cotangents, flat))
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
    heads: Sequence[Array], grads: Sequence[Any], *, recorded: bool = False
) -> tuple[list[Source], list[Any]]:
    """Where to start, each place once, and the gradient there.

    What is recorded goes on from the gradients that are given; else these are ndarrays.

    Raises:
        RecordError: a head was not recorded; SignatureError, ShapeError: a gradient does not fit.
    """
    if len(heads) != len(grads):
        raise SignatureError(f"{len(heads)} arrays and {len(grads)} gradients", instead="one each")
    found: dict[tuple[int, int], tuple[Source, Any]] = {}
    for head, grad in zip(heads, grads, strict=True):
        tracked = head.tracked_ if isinstance(head, Array) else None
        if not isinstance(tracked, Recorded):
            raise unrecorded(here())
        step, index = source = tracked.step, tracked.index
        if step.freed:
            raise freed(step.place)
        if grad is None:
            given = np.ones_like(head.data_)
        elif recorded and is_tracked(grad):
            given = grad.astype(head.data_.dtype)
        else:
            given = np.asarray(unwrap(grad), head.data_.dtype)
        if given.shape != head.data_.shape:
            raise ShapeError(
                f"the gradient by an array of shape {head.data_.shape} has that shape, not "
                f"{given.shape}",
                where=here(),
            )
        before = found.get((step.number, index))
        found[step.number, index] = source, given if before is None else before[1] + given
    return [source for source, _ in found.values()], [given for _, given in found.values()]


def _run_recorded(
    recording: EagerRecording,
    steps: Sequence[Step],
    heads: Sequence[Source],
    cotangents: Sequence[Any],
    wanted: Sequence[Source],
) -> list[Any]:
    """As `run`, but recorded: the sweep runs on the recording itself."""
    token = recording.begin(steps[-1].watch)
    try:
        for step in with_inputs(steps):
            for index, value in enumerate(step.values):
                recording.steps[value] = (step, index)
        starts = {
            step.values[index]: recording.value(cotangent)
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
