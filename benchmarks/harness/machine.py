"""Where and with what a run was made, without naming the machine."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOPOLOGY = Path("/sys/devices/system/cpu")


def facts() -> dict[str, Any]:
    """For the results: processor, cores that may be used, memory, system, Python."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_bytes": _memory_bytes(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cores() -> int:
    """How many cores this process may run on; two logical ones of one core count once."""
    if hasattr(os, "sched_getaffinity"):
        return len(_by_core())
    return os.cpu_count() or 1


def processors() -> list[int]:
    """The logical processors this process may run on: one of each core, then all others."""
    groups = _by_core()
    first = [group[0] for group in groups]
    return first + sorted(each for group in groups for each in group[1:])


def _by_core() -> list[list[int]]:
    """The logical processors of each core; each its own, where the system does not tell."""
    groups: dict[str, list[int]] = {}
    for number in sorted(os.sched_getaffinity(0)):
        try:
            siblings = (TOPOLOGY / f"cpu{number}/topology/thread_siblings_list").read_text()
        except OSError:
            siblings = str(number)
        groups.setdefault(siblings, []).append(number)
    return list(groups.values())


def load() -> list[float]:
    """How many programs wanted to run in the last minute; nothing where it is not known."""
    return [os.getloadavg()[0]] if hasattr(os, "getloadavg") else []


def commit() -> tuple[str | None, bool | None]:
    """Of the repository: the commit, and whether files differ from it."""
    try:
        name = _git("rev-parse", "HEAD").strip()
        return name, bool(_git("status", "--porcelain", "--untracked-files=no").strip())
    except (OSError, subprocess.CalledProcessError):
        return None, None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _processor() -> str:
    with contextlib.suppress(OSError, StopIteration), open("/proc/cpuinfo") as lines:
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return platform.processor() or platform.machine()


def _memory_bytes() -> int | None:
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None
