"""Compare a jitted function with the function itself: results, arguments, printed text, errors."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import minigraph as mg


def describe(thing: Any) -> Any:
    """Everything that counts about a value: structure, type, dtype, shape, bits."""
    if isinstance(thing, np.ndarray):
        return ("array", thing.dtype.str, thing.shape, _bits(thing))
    if isinstance(thing, np.generic):
        return ("numpy scalar", thing.dtype.str, _bits(np.asarray(thing)))
    if isinstance(thing, list | tuple):
        return (type(thing).__name__, [describe(item) for item in thing])
    if isinstance(thing, Mapping):
        return ("dict", [(key, describe(value)) for key, value in thing.items()])
    if hasattr(thing, "__dataclass_fields__"):
        return (type(thing), describe(vars(thing)))
    if isinstance(thing, float | complex):
        return (type(thing).__name__, repr(thing))
    return (type(thing), thing)


def _bits(array: np.ndarray[Any, Any]) -> Any:
    """The bytes; every NaN counts as the same."""
    if array.dtype.kind in "fc":
        array = np.array(array)
        array[np.isnan(array)] = np.nan
    return np.ascontiguousarray(array).tobytes()


def fresh(thing: Any) -> Any:
    """A deep copy in which arrays keep their axes, strides, flags and aliases."""
    memo: dict[int, Any] = {}
    pending: list[Any] = [thing]
    while pending:
        found = pending.pop()
        if type(found) is np.ndarray and id(found) not in memo:
            memo[id(found)] = _same_layout(found)
        elif isinstance(found, list | tuple):
            pending.extend(found)
        elif isinstance(found, Mapping):
            pending.extend(found.values())
        elif hasattr(found, "__dict__") and not isinstance(found, type):
            pending.append(vars(found))
    return copy.deepcopy(thing, memo)


def _same_layout(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of all the memory that the array looks into, seen with the same strides."""
    base = np.lib.array_utils.byte_bounds(array)
    memory = np.zeros(max(base[1] - base[0], 1), np.uint8)
    start = sum((n - 1) * -s for n, s in zip(array.shape, array.strides, strict=True) if s < 0)
    start = start if array.size else 0
    made = np.ndarray(array.shape, array.dtype, memory.data, start, array.strides)
    made[...] = array
    made.flags.writeable = array.flags.writeable
    return made


def outcome(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a call does that anybody can see."""
    args, kwargs = fresh((args, kwargs))
    text = io.StringIO()
    with contextlib.redirect_stdout(text), np.errstate(all="ignore"):
        try:
            result: Any = describe(function(*args, **kwargs))
        except mg.MinigraphError:
            raise
        except Exception as error:
            result = (type(error), str(error))
    return result, describe(args), describe(kwargs), text.getvalue()


def same_as_eager(
    function: Callable[..., Any], *args: Any, jitted: Any = None, **kwargs: Any
) -> None:
    """One call through each backend, twice, and the same without passes: all as eagerly."""
    expected = outcome(function, args, kwargs)
    if jitted is not None:
        assert outcome(jitted, args, kwargs) == expected
        return
    for options in ({"verify": True}, {"backend": "interpret"}, {"passes": ()}):
        compiled = mg.jit(function, **options)
        assert outcome(compiled, args, kwargs) == expected, options
        assert outcome(compiled, args, kwargs) == expected, options
        assert len(compiled.cache_info()) <= 1, str(compiled.cache_info())
