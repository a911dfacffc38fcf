"""Containers that the traced function reaches by name: they read as ever, and refuse to change.

A change would happen once, while tracing, and not at the calls of the compiled program.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from typing import Any

from minigraph.errors import StateError

from .paths import Path
from .recording import current


def _refusing(names: str) -> Callable[[type], type]:
    """A class decorator: these methods of a container raise StateError."""

    def decorate(cls: type) -> type:
        for name in names.split():

            def refuse(self: Any, *args: Any, _name: str = name, **kwargs: Any) -> Any:
                if _name == "__setitem__" and _same_item(self, *args):
                    return  # `d["w"] -= x` on an array: it has been changed in place
                raise StateError(
                    f"{self.path_.text} was changed while tracing (.{_name})",
                    where=current().here(),
                    instead="return the value, or keep it in an array and write into that",
                )

            setattr(cls, name, refuse)
        return cls

    return decorate


def _identical(a: Collection[Any], b: Collection[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _same_item(container: Any, key: Any, value: Any) -> bool:
    try:
        return container[key] is value
    except (KeyError, IndexError, TypeError):
        return False


@_refusing(
    "append extend insert pop remove clear sort reverse __setitem__ __delitem__ __iadd__ __imul__",
)
class FrozenList(list[Any]):
    """A list that refuses to change."""

    __class__ = property(lambda self: self.kind_)  # type: ignore[assignment]

    def __init__(self, path: Path, items: list[Any], kind: type = list) -> None:
        super().__init__(items)
        self.path_ = path
        self.kind_ = kind
        self.first_ = tuple(items)

    @property
    def changed_(self) -> bool:
        """Something went past the methods and changed it."""
        return not _identical(self, self.first_)

    def __reduce__(self) -> Any:
        return (list, (list(self),))


@_refusing("update pop popitem clear setdefault __setitem__ __delitem__ __ior__")
class FrozenDict(dict[Any, Any]):
    """A dict that refuses to change."""

    __class__ = property(lambda self: self.kind_)  # type: ignore[assignment]

    def __init__(self, path: Path, items: dict[Any, Any], kind: type = dict) -> None:
        super().__init__(items)
        self.path_ = path
        self.kind_ = kind
        self.first_ = dict(items)

    @property
    def changed_(self) -> bool:
        """Something went past the methods and changed it."""
        return list(self) != list(self.first_) or not _identical(
            self.values(), self.first_.values()
        )

    def __reduce__(self) -> Any:
        return (dict, (dict(self),))


@_refusing(
    "add update pop remove discard clear __ior__ __iand__ __isub__ __ixor__ "
    "difference_update intersection_update symmetric_difference_update",
)
class FrozenSet(set[Any]):
    """A set that refuses to change."""

    __class__ = property(lambda self: set)  # type: ignore[assignment]

    def __init__(self, path: Path, items: set[Any]) -> None:
        super().__init__(items)
        self.path_ = path
        self.first_ = frozenset(items)

    @property
    def changed_(self) -> bool:
        """Something went past the methods and changed it."""
        return set(self) != set(self.first_)

    def __reduce__(self) -> Any:
        return (set, (set(self),))


class FrozenNamespace(types.SimpleNamespace):
    """A namespace that refuses to change."""

    def __init__(self, path: Path, values: dict[str, Any]) -> None:
        super().__init__(**values)
        self.__dict__["path_"] = path

    def __setattr__(self, name: str, value: Any) -> None:
        raise StateError(
            f"the attribute {self.path_.text}.{name} was assigned while tracing",
            where=current().here(),
            instead="return the value, or keep it in an array and write into that",
        )

    __delattr__ = __setattr__  # type: ignore[assignment]
