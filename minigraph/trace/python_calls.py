"""Calls of Python functions that are made when the program runs: `mg.ignore(returns=...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import OptionError, UnsupportedError
from minigraph.ir import OPERAND, SCALARS, ArrayType, Dim, ScalarType, Value, undecidable

from .arguments import Spec
from .arrays import wrap
from .operands import Traced, operand
from .recording import Recording, current
from .scalars import TracedDim, TracedScalar
from .twins import is_twin, twin_parts
from .views import Layout

_LITERALS = (type(None), str, bytes, bool, int, float, complex)


def record_python_call(
    function: Callable[..., Any],
    returns: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Record a call of a function, and give what stands for its results.

    Args:
        function: it; its first argument may be an object of the user's, whose method it is.
        returns: what it returns (see `structure_of`); or a function of the arguments' descriptions.
        args: its arguments.
        kwargs: those by keyword.

    Raises:
        UnsupportedError: an argument is neither data nor text, or a program is traced.
        OptionError: `returns` says something else.
    """
    recording = current()
    name = function.__name__
    if recording.reach is None:
        raise UnsupportedError(
            f"{name} is a Python function, which the graph of a whole program does not hold",
            where=recording.here(),
            instead="mg.ignore without returns=, which runs it once",
        )
    owner = None
    if args and is_twin(args[0]):
        _, owner, path = twin_parts(args[0])
        recording.guards.identity(path, owner)
        args = args[1:]
    values = [recording.reach.function(function, owner)]
    things = [*args, *kwargs.values()]
    attrs: dict[str, Any] = {"args": tuple(_structure(recording, x, name, values) for x in things)}
    if kwargs:
        attrs["names"] = tuple(kwargs)
    if callable(returns) and returns not in SCALARS:
        described = [_spec(thing) for thing in things]
        named = dict(zip(kwargs, described[len(args) :], strict=True))
        returns = returns(*described[: len(args)], **named)
    attrs["returns"] = structure_of(returns)
    _check_sizes(recording, attrs["returns"])
    outputs = recording.emit(ops.get("python_call"), values, attrs)
    return ops.filled(attrs["returns"], (_wrapped(recording, value) for value in outputs))


def structure_of(returns: Any) -> Any:
    """What a function was said to return, as the op has it.

    Args:
        returns: a `Spec`, `bool`, `int`, `float` or `complex`, None, or a tuple, list or dict of
            such.

    Raises:
        OptionError: it is something else.
    """
    kind = type(returns)
    if returns is None:
        return None
    if kind is Spec:
        return returns.type
    if kind is type and returns in SCALARS:
        return SCALARS[returns]
    if kind in (tuple, list):
        return (kind.__name__, *map(structure_of, returns))
    if kind is dict:
        parts = [part for key, child in returns.items() for part in (key, structure_of(child))]
        return ("dict", *parts)
    raise OptionError(
        f"returns= cannot be {returns!r}",
        instead='mg.Spec((3,), "float64"), int, float, bool, None; a tuple, list or dict of such',
    )


def _structure(recording: Recording, thing: Any, name: str, values: list[Value]) -> Any:
    """An argument as the op has it; what is computed becomes an operand."""
    kind = thing.__class__
    if type(thing) in _LITERALS:
        return thing
    if _is_data(thing):
        values.append(operand(recording, thing))
        return OPERAND
    if kind in (tuple, list):
        return (kind.__name__, *(_structure(recording, each, name, values) for each in thing))
    if kind is dict and all(type(key) in _LITERALS for key in thing):
        pairs = thing.items()
        parts = [p for k, each in pairs for p in (k, _structure(recording, each, name, values))]
        return ("dict", *parts)
    raise UnsupportedError(
        f"{name} is called when the program runs, and a {kind.__name__} is no argument of such a "
        "call",
        where=recording.here(),
        instead="numbers, arrays, texts, None, and tuples, lists and dicts of them",
    )


def _is_data(thing: Any) -> bool:
    return (
        isinstance(thing, Traced | TracedDim | np.ndarray | np.generic)
        or hasattr(type(thing), "recorded_value_")
        or hasattr(type(thing), "eager_array_")
    )


def _spec(thing: Any) -> Any:
    """What a function that describes results is told of an argument."""
    if isinstance(thing, TracedScalar | TracedDim):
        return thing.__class__
    if isinstance(thing, np.ndarray | np.generic) or hasattr(type(thing), "eager_array_"):
        shape = [size.dim if isinstance(size, TracedDim) else size for size in thing.shape]
        return Spec(shape, thing.dtype)
    if type(thing) in (tuple, list):
        return type(thing)(map(_spec, thing))
    return {k: _spec(each) for k, each in thing.items()} if type(thing) is dict else thing


def _check_sizes(recording: Recording, structure: Any) -> None:
    """The named dimensions of results are those of arguments.

    Raises:
        DimensionError: one is not.
    """
    for kind in ops.leaves_of(structure):
        for size in kind.shape if isinstance(kind, ArrayType) else ():
            if isinstance(size, Dim) and not recording.tells(size):
                raise recording.located(undecidable(size, "is not the extent of any input"))


def _wrapped(recording: Recording, value: Value) -> Any:
    if isinstance(value.type, ScalarType):
        return TracedScalar(recording, value)
    return wrap(recording, value, Layout(value.shape, True), not value.shape)
