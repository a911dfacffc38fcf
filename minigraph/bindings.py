"""Arrays bound in an entry: parameters, which no call has to look for.

They stand as globals of the entry's generated function, under names of their own.  When a block has
another version and is otherwise as it was, `refresh` reads them anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minigraph.compiled import overlaps
from minigraph.trace import Names, Path, Trace


class Bindings:
    """The bound arrays of one entry.

    Attributes:
        names: of the ndarray of an input, by the input's index; holders: of its eager array.
    """

    def __init__(self, trace: Trace, names: Names) -> None:
        self.names: dict[int, str] = {}
        self.holders: dict[int, str] = {}
        self._read: list[tuple[str, Path]] = []
        self._written: list[str] = []
        self._names = Names()
        self._namespace: dict[str, Any] = {}
        self._owners: frozenset[int] | None = frozenset()
        groups = set[Any]()
        for index, path in enumerate(trace.paths):
            if path.id not in trace.guards.bound:
                continue
            groups.add(trace.guards.bound[path.id])
            self.names[index] = self._bind(path, names, "array")
            if index in trace.holders:
                self.holders[index] = self._bind(trace.holders[index], names, "holder")
            if index in trace.writes:
                self._written.append(self.names[index])
        for group in groups - {None}:
            group.listen(self.refresh)
        self._arrays = list(self.names.values())

    def _bind(self, path: Path, names: Names, word: str) -> str:
        name = names.own(self._at(path), word)
        self._read.append((name, path))
        return name

    def _at(self, path: Path) -> Any:
        code = path.code(self._names)  # binds names
        return eval(code, dict(self._names.bound))

    def start(self, namespace: dict[str, Any]) -> None:
        """The globals of the generated function are these."""
        self._namespace = namespace
        self._note_owners()

    def refresh(self) -> str:
        """Bind what stands there now; says what is in the way, if something is."""
        found = {name: self._at(path) for name, path in self._read}
        if self.entangled(found):
            return "arrays that are written share memory now"
        self._namespace.update(found)
        self._note_owners()
        return ""

    # ---- shared memory -----------------------------------------------------------------------

    def entangled(self, found: Mapping[str, Any]) -> bool:
        """A bound array that is written shares memory with another bound one, or with itself."""
        return any(
            overlaps(found[name], *(found[other] for other in self._arrays if other != name))
            for name in self._written
        )

    def _note_owners(self) -> None:
        """Whose memory is written; None: not all of it belongs to an array."""
        arrays = [self._namespace[name] for name in self._written]
        owners = [array if array.base is None else array.base for array in arrays]
        own = all(map(_owns_memory, owners))
        self._owners = frozenset(map(id, owners)) if own else None

    def shares(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether an array from outside may share memory with a bound one that is written."""
        base = array.base
        owner = array if base is None else base
        if self._owners is not None and id(owner) not in self._owners and _owns_memory(owner):
            return False
        written = (self._namespace[name] for name in self._written)
        return any(np.may_share_memory(one, array) for one in written)


def _owns_memory(owner: Any) -> bool:
    return type(owner) is np.ndarray and owner.flags.owndata
