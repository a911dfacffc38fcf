"""How much memory this process takes, and took at its highest."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator

LINUX = sys.platform == "linux"


class Memory:
    """The resident memory of this process beyond what was there when this object was made.

    What was there is not counted: the import of a framework, and arguments.  Where a framework
    copies arguments into arrays of its own, the first call has both.

    Attributes:
        before_bytes: what was there.
        first_call_bytes: the highest beyond that while a workload was built and called for the
            first time, with the compiler.
        beyond_bytes: the highest beyond that while it was called later on.
        by: how that is found; "" where it cannot be.
    """

    def __init__(self) -> None:
        gc.collect()
        self.by, self._peak = _way()
        self.before_bytes = _status("VmRSS:") if LINUX else self._peak()
        self.first_call_bytes: int | None = None
        self.beyond_bytes: int | None = None

    @contextlib.contextmanager
    def watched(self, *, first_call: bool = False) -> Iterator[None]:
        """What is done in here counts; making arguments and saving results does not."""
        if LINUX:
            _begin_anew()
        try:
            yield
        finally:
            beyond = max(0, self._peak() - self.before_bytes)
            if first_call:
                self.first_call_bytes = max(beyond, self.first_call_bytes or 0)
            else:
                self.beyond_bytes = max(beyond, self.beyond_bytes or 0)

    def known(self) -> dict[str, int | str | None]:
        if not self.by:
            return {}
        return {
            "first_call_bytes": self.first_call_bytes,
            "beyond_bytes": self.beyond_bytes,
            "by": self.by,
        }


def resident_bytes() -> int:
    """What this process takes now; its highest so far, where the system does not tell."""
    return _status("VmRSS:") if LINUX else _way()[1]()


def give_back() -> None:
    """Let the system have what this process keeps and does not use, where the C library can."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _way():
    """The best way to the peak that there is here: what it is, and a function that returns it."""
    if LINUX:
        anew = "begun anew before each part" if _begin_anew() else "since the process began"
        return f"VmHWM, {anew}", lambda: _status("VmHWM:")
    try:
        import resource
    except ImportError:  # Windows
        return "", lambda: 0
    unit = 1 if sys.platform == "darwin" else 1024
    usage = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit  # noqa: E731
    return "ru_maxrss, since the process began", usage


def _begin_anew() -> bool:
    """Whether the system let the peak begin anew."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True


def _status(key: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
