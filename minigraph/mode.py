"""Whether operations on arrays are recorded, and whether code trains or predicts.

The mode belongs to one thread (or task): it is found through a `ContextVar`.
"""

from __future__ import annotations

import itertools
import sys
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any, Protocol

from minigraph.ir import Loc
from minigraph.trace import ACTIVE, is_users_file


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


def here() -> Loc | None:
    """The user's line that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        key = id(frame.f_code), frame.f_lasti
        known = _PLACES.get(key)
        if known is None:
            if len(_PLACES) >= _KNOWN_PLACES:
                _PLACES.clear()
            known = _PLACES[key] = frame.f_code, _place(frame)
        if known[1] is not None:
            return known[1]
        frame = frame.f_back
    return None


def _place(frame: FrameType) -> Loc | None:
    """Where a frame is; None if it is none of the user's."""
    code = frame.f_code
    if not is_users_file(code.co_filename):
        return None
    positions = itertools.islice(code.co_positions(), frame.f_lasti // 2, None)
    line, end_line, column, end_column = next(positions)
    line = line or frame.f_lineno
    return Loc(code.co_filename, line, column, end_column if end_line == line else None)


_KNOWN_PLACES = 10_000
_PLACES: dict[tuple[int, int], tuple[CodeType, Loc | None]] = {}
"""By code (kept, so that its id stays taken) and instruction."""
