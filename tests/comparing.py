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


def outcome(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a call does that anybody can see."""
    args, kwargs = copy.deepcopy((args, kwargs))
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
