"""How much memory this process takes, and took at its highest."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

LINUX = sys.platform == "linux"


class Memory:
    """The resident memory of this process beyond what the import of a framework took.

    Attributes:
        import_bytes: what was there when this object was made: after the import.
        peak_bytes: the highest since then, while `watched`.
        by: how that is found; "" where it cannot be.
    """

    def __init__(self) -> None:
        gc.collect()
        self.by, self._peak = _way()
        self.import_bytes = _status("VmRSS:") if LINUX else self._peak()
        self.peak_bytes = 0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """What is done in here counts; making arguments and saving results does not."""
        if LINUX:
            _begin_anew()
        try:
            yield
        finally:
            self.peak_bytes = max(self.peak_bytes, self._peak())

    def known(self) -> dict[str, int | str]:
        if not self.by:
            return {}
        return {
            "import_bytes": self.import_bytes,
            "peak_bytes": self.peak_bytes,
            "beyond_bytes": max(0, self.peak_bytes - self.import_bytes),
            "by": self.by,
        }


def _way():
    """The best way to the peak that there is here: what it is, and a function that returns it."""
    if LINUX:
        anew = "begun anew after the import" if _begin_anew() else "since the process began"
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
