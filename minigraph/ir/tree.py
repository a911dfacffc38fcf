"""Structures of arguments and results: nested tuples, lists, dicts, dataclasses, named tuples.

`flatten` takes a structure apart into its leaves and a `Tree`; `unflatten` puts new leaves in.
Leaves that are not data (None, bool, str, a class, any other object) stay inside the tree as
`Static`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minigraph.errors import SignatureError

from .attrs import class_of
from .literals import number_text


class Leaf:
    """The place of one value."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf)

    def __hash__(self) -> int:
        return hash(Leaf)


LEAF = Leaf()


class Static:
    """Something that is not data, kept as it is; `text` is its name in the text form.

    Two are equal if their texts are: a parsed graph has the text alone.
    """

    __slots__ = ("text", "value")

    def __init__(self, value: Any, text: str | None = None) -> None:
        self.value = value
        self.text = static_text(value) if text is None else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class Branch:
    """A container: its class, its keys (indices, dict keys or field names) and its children."""

    __slots__ = ("children", "keys", "kind", "name")

    def __init__(
        self, kind: type[Any] | None, keys: Sequence[Any], children: Sequence[Tree], name: str = ""
    ) -> None:
        self.kind = kind
        self.keys = tuple(keys)
        self.children = tuple(children)
        self.name = name or (kind.__name__ if kind is not None else "")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Branch)
            and self.name == other.name
            and [static_text(key) for key in self.keys] == [static_text(key) for key in other.keys]
            and self.children == other.children
        )

    def __hash__(self) -> int:
        return hash((self.name, self.children))


Tree = Leaf | Static | Branch


def static_text(value: Any) -> str:
    """How a static leaf or a key reads in the text form: a literal, or `<Name>` for an object."""
    if isinstance(value, Static):
        return value.text
    if type(value) in (bool, int, float, complex):
        return number_text(value)
    if value is None or type(value) in (str, bytes):
        return repr(value)
    name = getattr(value, "__qualname__", None)
    name = name if isinstance(name, str) else type(value).__qualname__
    return "<" + re.sub(r"[^\w.]", "", name.replace("<locals>.", "")) + ">"


def is_container(value: object) -> bool:
    """A structure that `flatten` opens."""
    kind = class_of(value)
    return kind in (tuple, list, dict) or _is_named_tuple(kind) or dataclasses.is_dataclass(kind)


def _is_named_tuple(kind: type[Any]) -> bool:
    return hasattr(kind, "_fields") and issubclass(kind, tuple)


def items(value: Any) -> list[tuple[Any, Any]]:
    """The (key, child) pairs of a container, in its own order."""
    kind = class_of(value)
    if kind is dict:
        return list(value.items())
    if _is_named_tuple(kind):
        return list(zip(kind._fields, value, strict=True))
    if kind in (tuple, list):
        return [(index, value[index]) for index in range(len(value))]
    return [
        (field.name, getattr(value, field.name))
        for field in dataclasses.fields(value)
        if hasattr(value, field.name)
    ]


DEEPEST = 100  # levels of containers within containers


def flatten(value: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], Tree]:
    """Take a structure apart.

    Args:
        value: the structure.
        is_leaf: says whether something that is no container is data.

    Raises:
        SignatureError: the structure contains itself, or is nested too deep.
    """
    leaves: list[Any] = []
    return leaves, _flatten(value, is_leaf, leaves, ())


def _flatten(
    value: Any, is_leaf: Callable[[Any], bool], leaves: list[Any], above: tuple[int, ...]
) -> Tree:
    if is_leaf(value):
        leaves.append(value)
        return LEAF
    if not is_container(value):
        return Static(value)
    if id(value) in above:
        raise SignatureError(f"a {type(value).__name__} that contains itself cannot be traced")
    if len(above) >= DEEPEST:
        raise SignatureError(f"a structure of more than {DEEPEST} levels cannot be traced")
    above = (*above, id(value))
    pairs = items(value)
    kind = class_of(value)
    return Branch(
        kind,
        [key for key, _ in pairs],
        [_flatten(child, is_leaf, leaves, above) for _, child in pairs],
    )


def unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    """Build the structure with the next leaves of the iterator.

    Raises:
        SignatureError: a class or a key of a parsed graph is not known here.
    """
    if isinstance(tree, Leaf):
        return next(leaves)
    if isinstance(tree, Static):
        return tree.value
    children = [unflatten(child, leaves) for child in tree.children]
    kind = tree.kind
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    if kind is dict:
        unknown = [key.text for key in tree.keys if isinstance(key, Static)]
        if unknown:
            raise SignatureError(f"the key {unknown[0]} of a parsed graph is not known here")
        return dict(zip(tree.keys, children, strict=True))
    if kind is None:
        raise SignatureError(f"the class {tree.name} of a parsed graph is not known here")
    if _is_named_tuple(kind):
        return kind(*children)
    made = object.__new__(kind)
    for key, child in zip(tree.keys, children, strict=True):
        object.__setattr__(made, key, child)
    return made


def leaf_count(tree: Tree) -> int:
    """The number of data leaves."""
    if isinstance(tree, Branch):
        return sum(leaf_count(child) for child in tree.children)
    return int(isinstance(tree, Leaf))


def leaf_paths(tree: Tree, root: str) -> list[str]:
    """How a user reaches each leaf: `p["w"][0].x`."""
    if isinstance(tree, Leaf):
        return [root]
    if isinstance(tree, Static):
        return []
    attributes = tree.kind not in (tuple, list, dict)
    return [
        path
        for key, child in zip(tree.keys, tree.children, strict=True)
        for path in leaf_paths(child, f"{root}.{key}" if attributes else f"{root}[{key!r}]")
    ]
