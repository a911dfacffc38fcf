"""Numbers that no trace knows, and what calls return, raise and print."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

import minigraph as mg
from minigraph.errors import MinigraphError


def unknown(flag: Any, *numbers: Any) -> Any:
    """The numbers, but no trace knows which they are."""
    return tuple(mg.cond(flag[0] > 0, lambda x=x: x, lambda x=x: type(x)()) for x in numbers)


def shown(thing: Any) -> Any:
    """The number with its type; bit for bit."""
    if isinstance(thing, tuple):
        return tuple(map(shown, thing))
    return type(thing), repr(thing)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a call returns or raises, and what it prints."""
    out = io.StringIO()
    result: Any
    with contextlib.redirect_stdout(out), np.errstate(all="ignore"):
        try:
            result = shown(function(*args))
        except MinigraphError:
            raise
        except Exception as error:
            result = type(error), str(error).split("\n")[0]
    return result, out.getvalue()
