"""Gradients of eager code, in Gluon's terms.

x.attach_grad()
with autograd.record():
    loss = (x * x).sum()
loss.backward()
x.grad
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from minigraph.array import Array
from minigraph.errors import OptionError
from minigraph.mode import MODE, Mode, here, is_recording, is_training
from minigraph.tape import Tape, gradients, recording_of_thread
from minigraph.tape import backward as compute
from minigraph.trace import ACTIVE, traced_backward, traced_gradients

__all__ = [
    "MODE",
    "Mode",
    "backward",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "train_mode",
]


@contextmanager
def _mode(recording: bool | None, training: bool | None) -> Iterator[None]:
    """Inside this block the mode is this one; None: as it was."""
    before, active = MODE.get(), ACTIVE.get()
    recording = before.recording if recording is None else recording
    training = before.training if training is None else training
    tape = before.tape or Tape() if recording and active is None else None
    token = MODE.set(Mode(recording, training, tape, active))
    try:
        yield
    finally:
        MODE.reset(token)


def record(train_mode: bool = True) -> Any:
    """Inside this block, operations on arrays that carry a gradient are recorded.

    What they take besides is kept as it is now: an `ndarray` is copied, an `mg.Array` is not.

    Args:
        train_mode: code runs as in training.
    """
    return _mode(True, train_mode)


def pause(train_mode: bool = False) -> Any:
    """Inside this block nothing is recorded.

    Args:
        train_mode: code runs as in training.
    """
    return _mode(False, train_mode)


def train_mode() -> Any:
    """Inside this block code runs as in training; whether it is recorded stays as it is."""
    return _mode(None, True)


def predict_mode() -> Any:
    """Inside this block code runs as in prediction; whether it is recorded stays as it is."""
    return _mode(None, False)


def backward(
    heads: Array | Sequence[Array], head_grads: Any = None, retain_graph: bool = False
) -> None:
    """Compute the gradients of several arrays at once; see `Array.backward`.

    Args:
        heads: one array, or several.
        head_grads: the gradient by each (None: ones).
        retain_graph: keep what was recorded, for a further `backward`.
    """
    arrays, grads = _paired(heads, head_grads)
    if ACTIVE.get() is not None:
        traced_backward(arrays, grads, retain_graph=retain_graph)
    else:
        compute(arrays, grads, retain_graph)


def grad(
    heads: Array | Sequence[Array],
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> Any:
    """The gradients by some arrays as new arrays; attached gradients stay as they are.

    Args:
        heads: one array, or several.
        variables: arrays with a gradient attached, or recorded ones; parameters stand for theirs.
        head_grads: the gradient by each head (None: ones).
        retain_graph: keep what was recorded (None: as `create_graph`).
        create_graph: the gradients are recorded, too, for derivatives of higher order.

    Returns:
        One array, or a list if `variables` is a list.

    Raises:
        OptionError: a variable is no array.
    """
    arrays, grads = _paired(heads, head_grads)
    alone = isinstance(variables, Array) or _is_parameter(variables)
    wanted = [_array_of(thing) for thing in ([variables] if alone else variables)]
    keep = create_graph if retain_graph is None else retain_graph
    if ACTIVE.get() is not None:
        made = traced_gradients(arrays, grads, wanted, retain_graph=keep, create_graph=create_graph)
        return made[0] if alone else made
    recording = recording_of_thread() if create_graph else None
    found = gradients(arrays, grads, wanted, keep, recording)
    return found[0] if alone else found


def _is_parameter(thing: Any) -> bool:
    return getattr(type(thing), "traced_parameter_", False)


def _array_of(variable: Any) -> Array:
    """A variable, or the array of a parameter."""
    array = variable.data() if _is_parameter(variable) else variable
    if not isinstance(array, Array):
        raise OptionError(
            f"gradients are taken by arrays, not by a {type(variable).__name__}",
            where=here(),
            instead="a list of mg.Arrays or parameters: net.collect_params().values()",
        )
    return array


def _paired(heads: Any, head_grads: Any) -> tuple[list[Array], list[Any]]:
    """Heads and their gradients as lists."""
    if isinstance(heads, Array):
        return [heads], [head_grads]
    arrays = list(heads)
    return arrays, [None] * len(arrays) if head_grads is None else list(head_grads)


def mark_variables(
    variables: Array | Sequence[Array],
    gradients: Array | Sequence[Array],
    grad_reqs: str | Sequence[str] = "write",
) -> None:
    """Attach gradients that lie in given arrays.

    Args:
        variables: the arrays.
        gradients: for each the array that `backward` stores into.
        grad_reqs: "write", "add" or "null", for all or for each.

    Raises:
        OptionError: not as many gradients as arrays, or of another shape.
    """
    arrays = [variables] if isinstance(variables, Array) else list(variables)
    grads = [gradients] if isinstance(gradients, Array) else list(gradients)
    reqs = [grad_reqs] * len(arrays) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(arrays) == len(grads) == len(reqs):
        raise OptionError(f"{len(arrays)} arrays, {len(grads)} gradients and {len(reqs)} grad_reqs")
    for array, gradient, req in zip(arrays, grads, reqs, strict=True):
        if gradient.shape != array.shape or gradient.dtype != array.dtype:
            raise OptionError(
                f"the gradient of {array.dtype}{list(array.shape)} cannot be stored into "
                f"{gradient.dtype}{list(gradient.shape)}"
            )
        array.attach_to_(gradient, req)
