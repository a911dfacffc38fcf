"""A condition that must hold whenever the program runs."""

from __future__ import annotations

from typing import Any

from minigraph import ops

from .operands import Traced
from .recording import current
from .text import part, text, words


def check(condition: Any, kind: type[Exception], *message: Any) -> None:
    """Raise `kind("".join(message))` unless the condition holds.

    Args:
        condition: a truth value, or an array of one element.  A traced one is recorded, so that
            the compiled program raises when it runs.
        kind: one of the classes of `ops.ERRORS`.
        *message: texts, and what is shown between them, which may be traced too.

    Raises:
        Exception: of the class `kind`.
    """
    if not isinstance(condition, Traced):
        if not condition:
            raise kind("".join(map(str, message)))
        return
    recording = current()
    shown = text(*(each if type(each) is str else part(each) for each in message))
    (word,), values = words(recording, (shown,))
    attrs = {"error": kind.__name__, "message": word if type(word) is str else (word,)}
    inputs = (condition.value_, *values)  # type: ignore[attr-defined]  (as all that is traced has)
    recording.emit(ops.get("check"), inputs, attrs)
