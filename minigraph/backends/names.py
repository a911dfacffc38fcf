"""The user's names, made into Python identifiers that mean nothing else."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Iterable

RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "np", "sys", "ops"})


class Identifiers:
    """Gives each wish an identifier of its own: `y.1` is `y_1`, `<lambda>` is `lambda_`."""

    __slots__ = ("_next", "_taken")

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken: set[str] = {*RESERVED, *taken}
        self._next: dict[str, int] = {}

    def fresh(self, wish: str) -> str:
        """An identifier like `wish` that was not given before and is no word of the language."""
        base = name = identifier(wish)
        if name in RESERVED:
            base = name = name + "_"
        # A counter for each name: asking for the same one n times takes n steps, not n squared.
        number = self._next.get(base, 0)
        stem = base if base.strip("_") else "v"  # `__1` would mean something to Python
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._next[base] = number
        self._taken.add(name)
        return name


def identifier(wish: str) -> str:
    """An identifier like `wish`, unchanged by Python's own normalisation.

    Letters of all scripts stay.  Names with two leading underscores mean something to Python
    (`__debug__` cannot be assigned), so these lose them.
    """
    if wish.isascii() and wish.isidentifier() and not wish.startswith("__"):
        return wish
    plain = unicodedata.normalize("NFKC", wish)
    name = "".join(c if f"_{c}".isidentifier() else " " for c in plain)
    name = "_".join(name.split()).lstrip("_") or "v"
    if not name.isidentifier():
        name = f"v{name}"
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        name = "".join(c if c.isascii() else "_" for c in name)
    return name
