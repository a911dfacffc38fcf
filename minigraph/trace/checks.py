"""A condition that must hold whenever the program runs."""

from __future__ import annotations

from typing import Any

from minigraph import ops

from .operands import Traced
from .recording import current


def check(condition: Any, kind: type[Exception], message: str) -> None:
    """Raise `kind(message)` unless the condition holds.

    Args:
        condition: a truth value, or an array of one element.  A traced one is recorded, so that
            the compiled program raises when it runs.
        kind: one of the classes of `ops.ERRORS`.
        message: the same at every call, so that compiled and eager code say the same.

    Raises:
        Exception: of the class `kind`.
    """
    if isinstance(condition, Traced):
        attrs = {"error": kind.__name__, "message": message}
        current().emit(ops.get("check"), (condition.value_,), attrs)  # type: ignore[attr-defined]
    elif not condition:
        raise kind(message)
