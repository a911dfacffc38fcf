"""The tape: what is recorded eagerly, and the gradients of it."""

from .called import Called, with_sizes
from .gradients import Recorded, backward, gradients
from .recording import recording_of_thread
from .tape import Tape, tape_of_thread

__all__ = [
    "Called",
    "Recorded",
    "Tape",
    "backward",
    "gradients",
    "recording_of_thread",
    "tape_of_thread",
    "with_sizes",
]
