"""How many threads compiled code may use."""

from __future__ import annotations

import os

from minigraph.errors import OptionError


class _Threads:
    """The state of this process.

    Attributes:
        limit: as set for all programs; None: as many as there are cores.
        forked: this process was forked off another one.  OpenMP does not survive that, so no kernel
            may start threads.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self.forked = False

    def fork(self) -> None:
        self.forked = True


_threads = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.fork)


def set_num_threads(count: int) -> None:
    """The most threads that one call of a compiled function uses from now on.

    BLAS, which computes products of matrices, keeps its own setting.

    Raises:
        OptionError: no number from 1 up.
    """
    if type(count) is not int or count < 1:
        raise OptionError(f"the number of threads is 1 or more, not {count!r}")
    _threads.limit = count


def get_num_threads() -> int:
    """The most threads that one call of a compiled function uses."""
    return _threads.limit or _cores()


def threads_now(own: int | None, most: int) -> int:
    """How many threads a program may use at this moment.

    Args:
        own: the program's own limit, if it has one.
        most: how many there are.
    """
    return 1 if _threads.forked else min(own or _threads.limit or most, most)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
