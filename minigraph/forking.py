"""`mg.fork` and `mg.wait`: a function whose result is asked for later.

    left = mg.fork(np.sort, x)
    right = np.sort(y)
    return mg.wait(left) + right

In Python the function runs on another thread.  While tracing it is recorded like any call: what
runs at the same time is then for the pass `parallel` to find, in all of the graph.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from minigraph.backends import start
from minigraph.errors import OptionError
from minigraph.mode import recording_now
from minigraph.trace import ACTIVE, is_users_file


class Future:
    """What `mg.fork` returns; `mg.wait` takes it, as often as one likes."""

    __slots__ = ("_place", "_result")

    def __init__(self, result: Callable[[], Any], place: str) -> None:
        self._result = result
        self._place = place

    def wait_(self) -> Any:
        """The result, or what the function raised, with the line that started it."""
        try:
            return self._result()
        except Exception as error:
            note = f"started by mg.fork at {self._place}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise

    def __repr__(self) -> str:
        return f"<future of mg.fork at {self._place}>"


def fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Begin a call whose result is asked for later.

    Args:
        function: any callable; what it writes to, nothing else may use before `mg.wait`.
        *args: what it is called with.
        **kwargs: the same, by name.

    Returns:
        What `mg.wait` takes.  While tracing, and while operations are recorded for `backward`, the
        call is done at once, by this thread.
    """
    if not callable(function):
        raise OptionError(
            f"mg.fork takes a function, not a {type(function).__name__}",
            instead="mg.fork(function, x), not mg.fork(function(x))",
        )
    call = partial(function, *args, **kwargs)
    if ACTIVE.get() is not None or recording_now():
        result = call()
        return Future(lambda: result, _place())
    return Future(start(call), _place())


def wait(future: Any) -> Any:
    """The result of what `mg.fork` began; what it raised is raised here.

    Args:
        future: what `mg.fork` returned, or a list or tuple of such.
    """
    if isinstance(future, list | tuple):
        return type(future)([wait(each) for each in future])
    if not isinstance(future, Future):
        raise OptionError(
            f"mg.wait takes what mg.fork returned, not a {type(future).__name__}",
            instead="mg.wait(mg.fork(function, x))",
        )
    return future.wait_()


def _place() -> str:
    """The user's line that is running."""
    frames = [f for f in traceback.extract_stack() if is_users_file(f.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown line"
