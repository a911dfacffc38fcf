"""The processes of runners, as the harness sees them: started, asked, stopped, gone on with, ended.

Each is in a group of its own, so that what it starts is stopped and ended with it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import environments
from ..runners.base import Runner
from . import machine, pinned

ROOT = Path(__file__).parents[2]
CAN_STOP = hasattr(signal, "SIGSTOP")
CLEARED = (
    "BLIS_ CXX DNNL_ GOMP_ JAX_ KMP_ LD_PRELOAD MALLOC_ MINIGRAPH_ MKL_ MXNET_ NUMBA_ OMP_ ONEDNN_ "
    "OPENBLAS_ PYTENSOR_ PYTHONDONTWRITE TF_ TORCH VECLIB_ XLA_"
).split()
"""Beginnings of variables that would change how a framework runs, or how many threads it takes."""


class Crashed(Exception):
    """A process ended by itself; the text has the end of its log."""


class TimedOut(Exception):
    """A process did not answer in time."""


class Failed(Exception):
    """A runner raised an exception; `trace` has its traceback."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace = trace


@dataclass(frozen=True)
class Settings:
    """What is equal for all processes.

    Attributes:
        threads: how many each framework may use.
        own: a folder with runners that are not in here.
        shared: a folder for what a compiler makes once for all workloads (None: a process's own).
    """

    threads: int
    own: Path | None = None
    shared: Path | None = None

    @property
    def cores(self) -> list[int]:
        """The cores that all run on; none where the system cannot hold a process to some."""
        if not hasattr(os, "sched_setaffinity"):
            return []
        return machine.processors()[: self.threads]

    def variables(self) -> dict[str, str]:
        """The environment variables that say how many threads there are, and the like."""
        threads = str(self.threads)
        counts = (
            "OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS NUMBA_NUM_THREADS NPROC "
            "TF_NUM_INTRAOP_THREADS"
        )
        return {
            **dict.fromkeys(counts.split(), threads),
            "JAX_PLATFORMS": "cpu",
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }


def caches(folder: Path, shared: Path) -> dict[str, str]:
    """Where compilers may keep what they made: a place where nothing is yet, so all begin cold.

    Inductor precompiles C++ headers into its folder, once a run.  That is all that workloads find
    of each other there: its caches of graphs are off, since two may have a graph in common.
    """
    return {
        "MINIGRAPH_CACHE": str(folder / "minigraph"),
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTENSOR_FLAGS": f"base_compiledir={folder / 'pytensor'}",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(shared / "inductor"),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TRITON_CACHE_DIR": str(folder / "triton"),
    }


def interpreter(framework: str) -> str:
    """The Python that a framework is run by: its environment's, else this one."""
    found = environments.interpreter(framework) if framework else None
    return str(found or sys.executable)


def missing(runner: type[Runner]) -> str | None:
    """Why a runner cannot run here, as far as that can be told without a process."""
    if interpreter(runner.framework) != sys.executable:
        return None
    if importlib.util.find_spec(runner.package) is not None:
        return None
    remedy = f"; python -m benchmarks setup --with {runner.framework}" if runner.framework else ""
    return f"{runner.package} is not installed{remedy}"


class Process:
    """A runner in a process of its own.

    Args:
        name: of the column.
        runner: its class.
        settings: equal for all.
        folder: for its log, results and caches.
    """

    def __init__(self, name: str, runner: type[Runner], settings: Settings, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.folder = folder
        self.log = folder / "log.txt"
        python = interpreter(runner.framework)
        command = pinned.command(python, settings.cores, "benchmarks.harness.worker")
        command += [name, "--threads", str(settings.threads), "--folder", str(folder)]
        if settings.own:
            command += ["--own", str(settings.own)]
        shared = settings.shared or folder
        with self.log.open("wb") as log:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(python, {**settings.variables(), **caches(folder, shared)}),
                cwd=ROOT,
                text=True,
                start_new_session=True,
            )
        self.ended = False
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """The system's number of it, and of its group."""
        return self._popen.pid

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def send(self, do: str, **request: Any) -> None:
        """Ask for something; `receive` has the answer."""
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):  # `receive` will tell that it is gone
            print(json.dumps({"do": do, **request}), file=self._popen.stdin, flush=True)

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The answer to what was asked for.

        Raises:
            Crashed: the process ended.
            Failed: there was an exception.
            TimedOut: there is no answer; the process is to be ended.
        """
        try:
            line = self._answers.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            raise TimedOut(f"no answer within {timeout_s:.3g} s") from None
        if line is None:
            raise Crashed(self._last_words())
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"], answer["trace"])
        return answer

    def ask(self, do: str, timeout_s: float, **request: Any) -> dict[str, Any]:
        """`send` and `receive`."""
        self.send(do, **request)
        return self.receive(timeout_s)

    def stop(self) -> None:
        """Take all processor time from it; `go_on` gives it back."""
        self._signal("SIGSTOP")

    def go_on(self) -> None:
        self._signal("SIGCONT")

    def end(self) -> None:
        """End it with all that it started, at once; on Windows, what it started stays."""
        self._signal("SIGKILL")
        self._popen.kill()
        self._popen.wait()
        self.ended = True

    def _signal(self, name: str) -> None:
        if CAN_STOP and not self.ended:
            with contextlib.suppress(OSError):  # it is gone; macOS does not permit it then
                os.killpg(self.pid, getattr(signal, name))

    def _last_words(self, lines: int = 5) -> str:
        status = self._popen.wait()
        how = f"status {status}" if status >= 0 else signal.Signals(-status).name
        said = self.log.read_text("utf-8", "replace").strip().splitlines()[-lines:]
        return "\n".join([f"ended by {how}" if status < 0 else f"ended with {how}", *said])


def _environment(python: str, changed: Mapping[str, str]) -> dict[str, str]:
    """A user's packages are for this Python, not for an environment's."""
    kept = {name: text for name, text in os.environ.items() if not _starts(name, CLEARED)}
    path = [str(ROOT)]
    if python == sys.executable and "PYTHONPATH" in os.environ:
        path.append(os.environ["PYTHONPATH"])
    return {**kept, **changed, "PYTHONPATH": os.pathsep.join(path)}


def _starts(name: str, beginnings: Sequence[str]) -> bool:
    return name.startswith(tuple(beginnings))
