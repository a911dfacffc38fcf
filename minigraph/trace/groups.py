"""Groups of guards behind a version.

Every change of a block raises its `_version`.  So what a trace has found out about a block, its
descendants and their parameters need not be asked at each call: the guard compares one number.

    net._version == seen.version or recheck(net)

When the number has changed, `recheck` looks at everything behind it.  If all is as it was, the new
number is remembered; else the first difference is why the function is traced again.

The ndarrays of parameters are bound in the entry: no call looks for them.  `recheck` binds them
anew, so that a parameter may be given another array of the same type.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .guards import Condition
from .paths import Names, Path


class Group:
    """What is known of one block that a trace reached from outside of all others.

    Attributes:
        path: how it is reached; block: itself, weakly.
        version: the last one for which all conditions are known to hold.
        conditions: what must hold while the block has another version.
    """

    def __init__(self, path: Path, block: Any) -> None:
        self.path = path
        self.block: Any = weakref.ref(block)
        self.version: int = block._version
        self.conditions: list[Condition] = []
        self._failed = ""
        self._names = Names()
        self._listeners: list[Callable[[], str]] = []
        self._lock = threading.Lock()

    # ---- as a condition of the entry ---------------------------------------------------------

    def code(self, text: str, names: Names) -> str:
        """The check of each call."""
        version = f"._version == {names.bind(self, 'seen')}.version"
        if self.path.kind == "object":  # the entry itself holds it
            return f"({text}{version} or {names.bind(self.recheck, 'recheck')}({text}))"
        local = names.local(text)
        same = f"({local} := {text}) is {names.bind(self.block, 'block')}()"
        return f"{same} and ({local}{version} or {names.bind(self.recheck, 'recheck')}({local}))"

    def describe(self, now: Any) -> str:
        """What differs."""
        if now is not self.block():
            return f"{self.path.text} is another object now"
        return self._failed or f"{self.path.text} changed"

    def recheck(self, block: Any) -> bool:
        """Whether all conditions hold; then this version is as good as the last one."""
        with self._lock:
            version = block._version
            self._failed = self._difference()
            for rebind in self._listeners if not self._failed else ():
                self._failed = self._failed or rebind()
            if not self._failed:
                self.version = version
            return not self._failed

    def _difference(self) -> str:
        for condition in self.conditions:
            text = condition.path.code(self._names)
            try:
                holds = eval(condition.code(text, self._names), dict(self._names.bound))
            except Exception:
                return f"{condition.path.text} is no longer what it was"
            if not holds:
                try:
                    return condition.describe(eval(text, self._names.bound))
                except Exception:
                    return f"{condition.path.text} is no longer there"
        return ""

    def listen(self, rebind: Callable[[], str]) -> None:
        """What else to do once all conditions hold; it may say what is in the way."""
        self._listeners.append(rebind)


def parts_condition(path: Path, parts: Mapping[str, Any]) -> Condition:
    """The block has the same children and parameters in the same places."""
    seen = {text: weakref.ref(part) for text, part in parts.items()}

    def changed(block: Any) -> str:
        return _changed_part(seen, block.traced_parts_(), path.text)

    return Condition(
        path, lambda code, names: f"not {names.bind(changed, 'parts')}({code})", changed
    )


def _changed_part(seen: Mapping[str, Any], now: Mapping[str, Any], owner: str) -> str:
    of = "" if owner == "self" else f" of {owner}"
    for text, part in now.items():
        word = "parameter" if getattr(part, "traced_parameter_", False) else "child"
        name = f"{word} {text.removeprefix('.')!r}{of}"
        if text not in seen:
            return f"{name} was added"
        if seen[text]() is not part:
            return f"{name} was replaced"
    gone = next((text for text in seen if text not in now), None)
    if gone is not None:
        return f"child {gone.removeprefix('.')!r}{of} was removed"
    return "" if list(seen) == list(now) else f"the children{of} stand in another order"


def state_condition(
    path: Path, state: Mapping[str, Any], read: Callable[[Any], Mapping[str, Any]]
) -> Condition:
    """The settings of a block of the library are what they were."""
    seen = {name: _Held(value) for name, value in state.items()}

    def changed(now: Any) -> str:
        found = read(now)
        for name in dict.fromkeys([*seen, *found]):
            if name not in found or name not in seen or not seen[name].is_same(found[name]):
                was = seen[name].text if name in seen else "missing"
                return f"{path.text}.{name} is {_text(found.get(name, 'gone'))}, was {was}"
        return ""

    return Condition(
        path,
        lambda code, names: f"not {names.bind(changed, 'state')}({code})",
        changed,
    )


class _Held:
    """A setting as it was: a plain value, or an object, which is not kept alive."""

    __slots__ = ("kept", "text")

    def __init__(self, value: Any) -> None:
        self.text = _text(value)
        self.kept: Any = ("value", plain_key(value))
        if self.kept[1] is None:
            try:
                self.kept = ("weak", weakref.ref(value))
            except TypeError:
                self.kept = ("object", value)

    def is_same(self, now: Any) -> bool:
        kind, kept = self.kept
        if kind == "value":
            return plain_key(now) == kept
        return (kept() if kind == "weak" else kept) is now


_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.dtype, np.generic)


def plain_key(value: Any) -> Any:
    """A key that is equal for equal plain values only; None for what is compared by identity."""
    if isinstance(value, _PLAIN):
        return (type(value), repr(value))
    if type(value) is tuple:
        keys = [plain_key(item) for item in value]
        return None if None in keys else (tuple, tuple(keys))
    return None


def _text(value: Any) -> str:
    return repr(value) if plain_key(value) is not None else f"another {type(value).__name__}"
