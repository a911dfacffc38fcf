"""Whether operations on arrays are recorded, and whether code trains or predicts.

The mode belongs to one thread (or task): it is found through a `ContextVar`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from minigraph.trace import ACTIVE, users_line


class Recorder(Protocol):
    """What the mode knows of a tape: it records a call, or says that there is nothing to record."""

    def operate(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def write(self, target: Any, index: Any, value: Any) -> bool: ...
    def overwrite(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool: ...


class Mode:
    """What `record`, `pause`, `train_mode` and `predict_mode` set; never changed once made.

    Attributes:
        recording: operations on arrays that carry a gradient are recorded.
        training: layers such as dropout behave as in training.
        tape: where eager operations are recorded (None: nowhere).
        made_in: the trace in which the mode was set (None: outside of any).
    """

    __slots__ = ("made_in", "recording", "tape", "training")

    def __init__(
        self,
        recording: bool = False,
        training: bool = False,
        tape: Recorder | None = None,
        made_in: Any = None,
    ) -> None:
        self.recording = recording
        self.training = training
        self.tape = tape
        self.made_in = made_in

    def __repr__(self) -> str:
        doing = "recording" if self.recording else "not recording"
        return f"<mode: {doing}, {'training' if self.training else 'predicting'}>"


MODE: ContextVar[Mode] = ContextVar("minigraph_mode", default=Mode())  # noqa: B039  (immutable)


def is_recording() -> bool:
    """Operations on arrays that carry a gradient are recorded."""
    return _read(recording_now, "recording")


def is_training() -> bool:
    """Code runs in training mode (dropout drops, batch normalisation uses the batch)."""
    return _read(_training, "training")


def recording_now() -> bool:
    """As `is_recording`, but a trace does not take note of it: what guards ask."""
    return MODE.get().recording


def _training() -> bool:
    return MODE.get().training


def _read(read: Any, what: str) -> bool:
    """One of the mode's flags; a trace that began in this mode must see the same at each call."""
    value = read()
    active = ACTIVE.get()
    if active is not None and active.reach is not None and MODE.get().made_in is not active:
        active.guards.mode(read, value, f"{what} mode is {'on' if value else 'off'}")
    return value


here = users_line
