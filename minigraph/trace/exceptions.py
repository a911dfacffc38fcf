"""Exceptions that the code of a recorded branch or loop raises: they become checks."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from minigraph import ops
from minigraph.errors import MinigraphError, UnsupportedError
from minigraph.ir import Loc

from .handlers import is_caught
from .recording import Recording
from .source import is_users_file
from .text import error_words
from .undefined import NEVER


class Unreachable(BaseException):
    """Every way to here ends in an exception that is recorded; no handler is to see this."""


def attempt(recording: Recording, function: Callable[..., Any], *args: Any) -> Any:
    """What the function returns; NEVER if it raises, which is recorded.

    Raises:
        MinigraphError: what the function does cannot be recorded.
    """
    try:
        return function(*args)
    except MinigraphError:
        raise
    except Unreachable:
        return NEVER
    except Exception as error:
        record_raise(recording, error)
        return NEVER


def record_raise(recording: Recording, error: Exception) -> None:
    """Record a check that never holds.

    Raises:
        UnsupportedError: it is none that compiled programs raise, or a handler waits for it.
    """
    name, where = type(error).__name__, raised_at(error.__traceback__) or recording.here()
    if is_caught():
        raise UnsupportedError(
            f"{name} is raised on some ways only, and the handler around is not recorded",
            where=where,
            instead="take the branch out of the `try`, or choose with np.where",
        ) from error
    if ops.ERRORS.get(name) is not type(error):
        raise UnsupportedError(
            f"{name} is raised on some ways only, and compiled programs do not raise it",
            where=where,
            instead="one of " + ", ".join(ops.ERRORS),
        ) from error
    message, values = error_words(recording, error, where)
    attrs = {"error": name, **message}
    inputs = (recording.constant(False), *values)
    recording.emit(ops.get("check"), inputs, attrs, place=(where, ()))


def raised_at(traceback: TracebackType | None) -> Loc | None:
    """The user's line that raised."""
    found: Loc | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_users_file(code.co_filename):
            found = Loc(code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
