"""How many threads compiled code may use, and those on which parts of a program run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial
from typing import Any

from minigraph.errors import OptionError


class _Threads:
    """The state of this process.

    Attributes:
        limit: as set for all programs; None: as many as there are cores.
        forked: this process was forked off another one.  OpenMP does not survive that, so no kernel
            may start threads.
        own: of each thread whether it is one of the pool's.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self.forked = False
        self.own = threading.local()
        self._pool: ThreadPoolExecutor | None = None
        self._pool_size = 0
        self._lock = threading.Lock()

    def fork(self) -> None:
        self.forked = True

    def pool(self) -> ThreadPoolExecutor:
        """The threads besides the caller's; they start when they are needed first."""
        size = max(get_num_threads() - 1, 1)
        with self._lock:
            if self._pool is None or self._pool_size != size:
                if self._pool is not None:
                    self._pool.shutdown(wait=False)  # what was begun there ends there
                self._pool = ThreadPoolExecutor(
                    size, "minigraph", initializer=lambda: setattr(self.own, "inside", True)
                )
                self._pool_size = size
            return self._pool

    def may_run_together(self) -> bool:
        """The pool can be waited for: not after a fork, and not by one of its own threads."""
        return not self.forked and not getattr(self.own, "inside", False)


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


def run_together(parts: Sequence[Callable[[], Any]], own: int | None = None) -> list[Any]:
    """The results of functions of no arguments, run on as many threads as may be used.

    Args:
        parts: independent of each other.
        own: the program's own limit, if it has one.

    Raises:
        What the first one that fails raises, when all have ended.
    """
    count = threads_now(own, len(parts))
    if count == 1 or not _threads.may_run_together():
        return [part() for part in parts]
    lanes = [lambda lane=parts[at::count]: [part() for part in lane] for at in range(count)]
    futures = [_threads.pool().submit(copy_context().run, lane) for lane in lanes[1:]]
    try:
        done = [lanes[0]()]
    finally:
        wait(futures)
    done += [future.result() for future in futures]
    return [done[at % count][at // count] for at in range(len(parts))]


def start(part: Callable[[], Any]) -> Callable[[], Any]:
    """Run a function of no arguments, on another thread if there are several; what waits for it.

    What that gives returns what the function returns, or raises what it raises.
    """
    if get_num_threads() == 1 or not _threads.may_run_together():
        return _Done(part).result
    return _Started(part).result


class _Started:
    """A call on another thread; who asks for its result before it has begun does it at once.

    So nothing waits for ever, whoever waits for whom.
    """

    def __init__(self, part: Callable[[], Any]) -> None:
        self._call = partial(copy_context().run, part)
        self._future = _threads.pool().submit(self._call)
        self._lock = threading.Lock()
        self._done: _Done | None = None

    def result(self) -> Any:
        with self._lock:
            if self._done is None and self._future.cancel():
                self._done = _Done(self._call)
        return self._future.result() if self._done is None else self._done.result()


class _Done:
    """What a function has returned or raised."""

    def __init__(self, part: Callable[[], Any]) -> None:
        self._returned: Any = None
        self._raised: Exception | None = None
        try:
            self._returned = part()
        except Exception as error:
            self._raised = error

    def result(self) -> Any:
        if self._raised is not None:
            raise self._raised
        return self._returned


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
