"""Recipes: what the tracer made of a call, to be done again without it.

What NumPy's functions do to traced arrays depends on their types and on the other arguments alone.
So the nodes of one call are those of every call with the same key, on other arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigraph.array import Array
from minigraph.ir import Op, Type, freeze

from .steps import Source, Step


class Argument(NamedTuple):
    """An array among the arguments."""

    position: int


class Made(NamedTuple):
    """A result of an earlier node."""

    node: int
    index: int


class Constant(NamedTuple):
    """A number or an array that belongs to the function."""

    data: Any


Reference = Argument | Made | Constant


class Ingredient(NamedTuple):
    """One node of a recipe."""

    op: Op
    attrs: Mapping[str, Any]
    inputs: Sequence[Reference]
    types: Sequence[Type]


class Recipe(NamedTuple):
    """The nodes of a call, and its result with references in place of arrays."""

    nodes: Sequence[Ingredient]
    result: Any


class NoKeyError(Exception):
    """A call that is traced each time."""


_PLAIN = frozenset(
    (int, bool, float, complex, str, type(None), type(Ellipsis), type, type(np._NoValue))
)


def key_of_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    type_of: Callable[[Any], Type],
) -> Any:
    """Equal for calls with the same recipe.

    Raises:
        NoKeyError: the arguments do not say all.
    """
    if not _is_numpys(function):
        raise NoKeyError

    named = tuple((name, _key(thing, type_of)) for name, thing in kwargs.items()) if kwargs else ()
    return (function, *[_key(thing, type_of) for thing in args], named)


def _key(thing: Any, type_of: Callable[[Any], Type]) -> Any:
    kind = type(thing)
    if kind is Array or kind is np.ndarray:
        data = thing.data_ if kind is Array else thing
        if not data.flags.c_contiguous:
            raise NoKeyError
        return type_of(data)
    if kind is tuple or kind is list:
        return (kind, *[_key(item, type_of) for item in thing])
    if kind is slice:
        return (slice, *[_key(part, type_of) for part in (thing.start, thing.stop, thing.step)])
    if kind in _PLAIN or isinstance(thing, np.dtype | np.generic):
        return freeze(thing)
    raise NoKeyError


def _is_numpys(function: Any) -> bool:
    """NumPy's own functions, and the methods and attributes of arrays."""
    if isinstance(function, np.ufunc | operator.attrgetter):
        return True
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return True
    module = getattr(function, "__module__", None) or ""
    return module.partition(".")[0] == "numpy" or module in ("_operator", "minigraph.array")


def arrays_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The arrays among the arguments, in the order in which they are seen."""
    pending = [*reversed(list(kwargs.values())), *reversed(args)]
    while pending:
        thing = pending.pop()
        kind = type(thing)
        if kind is Array or kind is np.ndarray:
            yield thing
        elif kind is tuple or kind is list:
            pending.extend(reversed(thing))


def write_down(
    arguments: Sequence[Source],
    steps: Sequence[Step],
    result: Any,
    source_of: Callable[[Any], Source | None],
) -> Recipe | None:
    """The recipe of a call that was traced.

    Args:
        arguments: the arrays among its arguments.
        steps: what it recorded.
        result: what it returned.
        source_of: where an array in the result comes from; None for anything else.

    Returns:
        None where the result holds other things than arrays, or where one array stands in two
        places: the recipe would be that of calls with two arrays, too.
    """
    known: dict[tuple[int, int], Reference] = {}
    for position, (step, index) in enumerate(arguments):
        known[step.number, index] = Argument(position)
    if len(known) < len(arguments):
        return None
    for position, step in enumerate(steps):
        for index in range(len(step.values)):
            known[step.number, index] = Made(position, index)
    nodes: list[Ingredient] = []
    for step in steps:
        assert step.node is not None
        types = [value.type for value in step.values]
        inputs = [_reference(known, source) for source in step.inputs]
        nodes.append(Ingredient(step.node.op, step.node.attrs, inputs, types))
    try:
        return Recipe(nodes, _described(result, known, source_of))
    except NoKeyError:
        return None


def _reference(known: Mapping[tuple[int, int], Reference], source: Source) -> Reference:
    step, index = source
    return known.get((step.number, index)) or Constant(step.data[index])


def _described(
    thing: Any,
    known: Mapping[tuple[int, int], Reference],
    source_of: Callable[[Any], Source | None],
) -> Any:
    """A result with references in place of arrays."""
    source = source_of(thing)
    if source is not None:
        return _reference(known, source)
    if not isinstance(thing, list | tuple):
        raise NoKeyError
    items = [_described(item, known, source_of) for item in thing]
    kind = type(thing)
    return kind(items) if kind in (list, tuple) else kind(*items)
