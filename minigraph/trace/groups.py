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
        condition: the check of each call.
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
        self.condition = Condition(path, self._code, self._describe)

    @property
    def is_dead(self) -> bool:
        """The block is no more: the conditions will never hold again."""
        return self.block() is None

    def _code(self, text: str, names: Names) -> str:
        version = f"._version == {names.bind(self, 'seen')}.version"
        if self.path.kind == "object":  # the entry itself holds it
            return f"({text}{version} or {names.bind(self.recheck, 'recheck')}({text}))"
        local = names.local(text)
        same = f"({local} := {text}) is {names.bind(self.block, 'block')}()"
        return f"{same} and ({local}{version} or {names.bind(self.recheck, 'recheck')}({local}))"

    def _describe(self, now: Any) -> str:
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
    tests = {name: _same_as(value) for name, value in state.items()}
    texts = {name: _text(value) for name, value in state.items()}

    def changed(now: Any) -> str:
        found = read(now)
        for name in dict.fromkeys([*tests, *found]):
            if name not in found:
                return f"{path.text}.{name} is gone"
            if name not in tests or not tests[name](found[name]):
                was = texts.get(name, "not there")
                return f"{path.text}.{name} is {_text(found[name])}, was {was}"
        return ""

    return Condition(
        path,
        lambda code, names: f"not {names.bind(changed, 'state')}({code})",
        changed,
    )


def _same_as(value: Any) -> Callable[[Any], bool]:
    """A test for the same plain value, a tuple of the same, or the same object."""
    if isinstance(value, _PLAIN):
        key = _key(value)
        return lambda now: _key(now) == key
    if type(value) is tuple:
        tests = [_same_as(item) for item in value]
        return lambda now: (
            type(now) is tuple
            and len(now) == len(tests)
            and all(test(item) for test, item in zip(tests, now, strict=True))
        )
    try:
        kept = weakref.ref(value)
    except TypeError:
        return lambda now: now is value
    return lambda now: now is kept()


_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.dtype, np.generic)


def _key(value: Any) -> tuple[type, str]:
    """Equal for equal plain values only: 0.0 is not -0.0, and NaN is itself."""
    return type(value), repr(value)


def _text(value: Any) -> str:
    plain = isinstance(value, _PLAIN) or (
        type(value) is tuple and all(isinstance(item, _PLAIN) for item in value)
    )
    return repr(value) if plain else f"another {type(value).__name__}"
