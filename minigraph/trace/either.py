"""Lists and dicts of which is not known which of two they are.

    p = s if x > 0 else t       one list after the branch, with what is in `s` or what is in `t`

It is made anew.  A later change would have to be seen in `s` or in `t`, so there must be none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigraph.errors import Place, UnsupportedError

from .kinds import children
from .recording import Recording


class Either:
    """Containers that stay as they are until the end of the trace.

    Args:
        name: what the user calls the one that is made.
        things: it, and those that it may be.
        where: the branch or loop.
    """

    def __init__(self, name: str, things: Sequence[Any], where: Place | None) -> None:
        self.name = name
        self.where = where
        self._held = [(thing, _items(thing)) for thing in things]

    def check(self) -> None:
        """Look whether nothing was exchanged in them.

        Raises:
            UnsupportedError: something was.
        """
        for thing, before in self._held:
            now = _items(thing)
            if list(now) != list(before) or any(now[key] is not before[key] for key in now):
                raise UnsupportedError(
                    f"{self.name} is one of two {type(thing).__name__}s, which of them depends on "
                    "data, and later one of them is changed",
                    where=self.where,
                    instead=f"take a copy for {self.name}, or change it inside of the branch",
                )


def either(recording: Recording, name: str, *things: Any) -> None:
    """From here to the end of the trace none of these containers may change."""
    recording.at_end.append(Either(name, things, recording.here()).check)


def _items(thing: Any) -> dict[Any, Any]:
    opened = children(thing)
    return dict(opened[1]) if opened is not None else {}
