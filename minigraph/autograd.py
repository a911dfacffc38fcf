"""Gradients of eager code, in Gluon's terms.

x.attach_grad()
with autograd.record():
    loss = (x * x).sum()
loss.backward()
x.grad
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minigraph.mode import MODE, Mode, is_recording, is_training
from minigraph.trace import ACTIVE

__all__ = [
    "MODE",
    "Mode",
    "is_recording",
    "is_training",
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
    tape = None
    token = MODE.set(Mode(recording, training, tape, active))
    try:
        yield
    finally:
        MODE.reset(token)


def record(train_mode: bool = True) -> Any:
    """Inside this block, operations on arrays that carry a gradient are recorded.

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
