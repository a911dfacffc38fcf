"""The globals of the user's modules as traced code sees them."""

from __future__ import annotations

import builtins
import functools
import types
from typing import TYPE_CHECKING, Any

from .builtin_names import recording_builtins, recording_super
from .called import CALLED, MARK
from .paths import Path
from .script import RESERVED, WORDS

if TYPE_CHECKING:
    from .reach import Reach

_MISSING = object()


class RecordingGlobals(dict[str, Any]):
    """The globals of a module as traced code sees them: every lookup passes through `Reach.see`.

    The dict itself is empty; what is stored in it was assigned while tracing.
    """

    def __init__(self, reach: Reach, namespace: dict[str, Any]) -> None:
        super().__init__()
        self.reach = reach
        self.namespace = namespace
        self.cache: dict[str, Any] = {RESERVED: WORDS}
        found = namespace.get("__builtins__", builtins)
        names = dict(vars(found) if isinstance(found, types.ModuleType) else found)
        names["super"] = functools.partial(recording_super, reach)
        dict.__setitem__(self, "__builtins__", recording_builtins(names))

    def __getitem__(self, name: str) -> Any:
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        found = self.cache.get(name, _MISSING)
        if found is _MISSING:
            found = self.cache[name] = self._find(name)
        return found

    def _find(self, name: str) -> Any:
        if name.endswith(MARK):
            found = self[name.removesuffix(MARK)]
            return CALLED.get(id(found), found)
        if name in self.namespace:
            return self.reach.see(self.namespace[name], Path.of_global(self.namespace, name))
        self.reach.recording.guards.absent(self.namespace, name)
        raise KeyError(name)  # Python goes on to the builtins, which record too

    def __contains__(self, name: object) -> bool:
        if dict.__contains__(self, name):
            return True
        if name in self.namespace:
            self[str(name)]  # seen, so that it stays
            return True
        self.reach.recording.guards.absent(self.namespace, str(name))
        return False

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default
