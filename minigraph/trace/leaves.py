"""Structures of traced values: taken apart into graph values, and put together of new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import SignatureError, UnsupportedError
from minigraph.ir import (
    LEAF,
    Branch,
    Leaf,
    ScalarType,
    Static,
    Tree,
    Value,
    items,
    leaf_count,
    unflatten,
)

from .arrays import TracedArray, wrap
from .operands import operand
from .recording import Recording, here
from .scalars import TracedDim, TracedScalar
from .twins import original
from .views import Layout, Step

_OPENED = (tuple, list, dict)
_DATA = (TracedArray, TracedScalar, TracedDim, np.ndarray, np.generic)


class Leaves:
    """The traced values in a structure.

    Attributes:
        things: arrays and numbers, in order; tree: the structure around them.
    """

    def __init__(self, structure: Any) -> None:
        self.things: list[Any] = []
        self.tree = self._open(structure, ())

    def values(self, recording: Recording) -> list[Value]:
        """Their values in the graph."""
        return [operand(recording, thing) for thing in self.things]

    def closed(self, things: Sequence[Any]) -> Any:
        """The structure with other things in it."""
        return unflatten(self.tree, iter(things))

    def gradients(self, things: Sequence[Any]) -> Any:
        """The same, with None for what is no data."""
        return unflatten(_without_statics(self.tree), iter(things))

    def matching(self, structure: Any, what: str) -> list[Any]:
        """The things at the same places in another structure; None where that has None.

        Raises:
            SignatureError: it is another structure.
        """
        found: list[Any] = []
        self._match(self.tree, structure, what, found)
        return found

    def _match(self, tree: Tree, thing: Any, what: str, found: list[Any]) -> None:
        if not isinstance(tree, Branch):
            found += [thing] if isinstance(tree, Leaf) else ()
            return
        if thing is None:
            found += [None] * leaf_count(tree)
            return
        kind = original(thing.__class__)
        pairs = items(kind(thing) if kind in (list, dict) else thing) if kind is tree.kind else ()
        if [key for key, _ in pairs] != list(tree.keys):
            raise SignatureError(
                f"{what} has the structure of {tree.name}({', '.join(map(str, tree.keys))})",
                where=here(),
            )
        for child, (_, part) in zip(tree.children, pairs, strict=True):
            self._match(child, part, what, found)

    def _open(self, thing: Any, above: tuple[int, ...]) -> Tree:
        if isinstance(thing, _DATA) or is_number(thing) or hasattr(type(thing), "eager_array_"):
            self.things.append(thing)
            return LEAF
        kind = original(thing.__class__)
        opened = kind in _OPENED or hasattr(kind, "__dataclass_fields__")
        if id(thing) in above:
            return Static(thing)
        if not opened and not (isinstance(kind, type) and issubclass(kind, tuple)):
            if isinstance(kind, type) and issubclass(kind, dict | list):
                self._refuse(thing, kind, (*above, id(thing)))
            return Static(thing)
        pairs = items(kind(thing) if kind in (list, dict) else thing)
        children = [self._open(child, (*above, id(thing))) for _, child in pairs]
        return Branch(kind, [key for key, _ in pairs], children)

    def _refuse(self, thing: Any, kind: type, above: tuple[int, ...]) -> None:
        """Arrays in another kind of dict or list would be overlooked.

        Raises:
            UnsupportedError: there are some.
        """
        known = len(self.things)
        for child in thing.values() if issubclass(kind, dict) else thing:
            self._open(child, above)
        if any(type(child) is not int for child in self.things[known:]):
            raise UnsupportedError(
                f"derivatives do not see the arrays in {_a_class(kind)}",
                where=here(),
                instead=f"a {'dict' if issubclass(kind, dict) else 'list'} of them",
            )
        del self.things[known:]


def _a_class(kind: type) -> str:
    """The name of a class with its article."""
    return f"an {kind.__name__}" if kind.__name__[0] in "AEIOUaeiou" else f"a {kind.__name__}"


def is_number(thing: Any) -> bool:
    """A Python number (a bool is none)."""
    return type(thing) in (int, float, complex)


def _without_statics(tree: Tree) -> Tree:
    if isinstance(tree, Static):
        return Static(None)
    if isinstance(tree, Branch):
        return Branch(tree.kind, tree.keys, [_without_statics(child) for child in tree.children])
    return tree


def standing_for(recording: Recording, value: Value, like: Any = None) -> Any:
    """A value of the graph as the user's code sees it, in memory of its own.

    Args:
        recording: the one that is running.
        value: what it is.
        like: an array or number in whose place it stands: a NumPy scalar stays one.
    """
    if isinstance(value.type, ScalarType):
        return TracedScalar(recording, value)
    scalar = like.scalar_ if isinstance(like, TracedArray) else isinstance(like, np.generic)
    layout = Layout(value.type.shape, True)  # type: ignore[union-attr]
    return wrap(recording, value, layout, scalar and not layout.shape)


def without_gradient(array: TracedArray) -> TracedArray:
    """A view of a traced array, through which no gradient flows and nothing is written."""
    recording = array.recording_
    (value,) = recording.emit(ops.get("stop_gradient"), (array.value_,), {})
    step = Step("stop_gradient", {}, (), array.type_)
    path = (*array.path_, step)
    return TracedArray(recording, array.storage_, path, array.layout_, value=value)


def renewed(recording: Recording, thing: Any, op: str) -> Any:
    """A traced array or number behind one more op: another value, in memory of its own.

    Arrays behind `stop_gradient` share memory.
    """
    if op == "stop_gradient" and isinstance(thing, TracedArray) and not thing.scalar_:
        return without_gradient(thing)
    (value,) = recording.emit(ops.get(op), (operand(recording, thing),), {})
    made = standing_for(recording, value, thing)
    if isinstance(thing, TracedArray):
        made.layout_ = thing.layout_
    return made


def write_back(originals: Sequence[Any], renewed_ones: Sequence[Any]) -> None:
    """What was written into arrays that stand for others is written into those."""
    for known, made in zip(originals, renewed_ones, strict=True):
        if isinstance(made, TracedArray) and made.storage_.version:
            known.assign_(made.storage_.value)
