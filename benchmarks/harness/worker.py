"""The process of a runner: it does what the harness asks, one request after another.

    python -m benchmarks.harness.worker RUNNER --threads N

Requests and answers are lines of JSON on what were its standard input and output when it began.
What a framework prints itself goes to the standard error, which the harness keeps for when the
process dies.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import importlib.util
import inspect
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .. import runners
from ..runners.base import NotWritten, Prepared, Runner, outputs_of
from ..workloads import WORKLOADS
from .memory import Memory, give_back, resident_bytes

Answer = dict[str, Any]


def _measuring() -> ModuleType:
    """`minigraph.measuring`, without minigraph: that would be in every framework's memory."""
    path = Path(__file__).parents[2] / "minigraph" / "measuring.py"
    spec = importlib.util.spec_from_file_location("benchmarks.measuring", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measuring = _measuring()


class Worker:
    """One method for each request."""

    memory: Memory
    import_bytes: int
    prepared: Prepared | None = None
    loaded: Answer | None = None
    workloads = 0

    def __init__(self, runner: Runner, folder: Path) -> None:
        self.runner = runner
        self.folder = folder

    def load(self) -> Answer:
        """Once; what is asked again is answered as before."""
        if self.loaded is None:
            start = time.perf_counter()
            try:
                self.runner.load()
            except ImportError as error:
                return {"missing": str(error)}
            self.loaded = {
                "import_s": time.perf_counter() - start,
                "versions": dict(self.runner.versions()),
                "threads": self.runner.threads_used(),
            }
            gc.collect()
            gc.freeze()  # what was imported stays: it need not be looked through before each turn
            self.import_bytes = resident_bytes()
        return self.loaded

    def prepare(self, workload: str, scale: float, digest: str) -> Answer:
        self.prepared = None  # of the workload before
        self.workloads += 1
        case = WORKLOADS[workload].case(scale)
        if case.digest != digest:
            raise AssertionError(f"NumPy {np.__version__} makes other arguments than the harness's")
        self.memory = Memory()
        with self.memory.watched(first_call=True):
            start = time.perf_counter()
            try:
                self.prepared = self.runner.prepare(case)
            except NotWritten as reason:
                return {"not_written": str(reason)}
            prepare_s = time.perf_counter() - start
        with self.prepared.around():
            with self.memory.watched(first_call=True):
                start = time.perf_counter()
                first = self.prepared.run()
                first_call_s = prepare_s + time.perf_counter() - start
            outputs = outputs_of(self.prepared, case.workload.calls, first)
        path = self.folder / "outputs.npz"
        np.savez(path, *outputs)
        del first, outputs
        give_back()  # or what was needed to save them would count as what calls need
        return {"prepare_s": prepare_s, "first_call_s": first_call_s, "outputs": str(path)}

    def warm(self, limit_s: float) -> Answer:
        with self._calls():
            return dataclasses.asdict(measuring.warm_up(self.prepared.run, limit_s=limit_s))

    def measure(self, lead: int, calls: int, samples: int) -> Answer:
        """Samples; `lead` calls before them fill caches that others used."""
        with self._calls():
            for _ in range(lead):
                self.prepared.run()
            return {"samples_s": measuring.take_samples(self.prepared.run, calls, samples)}

    @contextlib.contextmanager
    def _calls(self) -> Any:
        with self.memory.watched(), self.prepared.around():
            yield

    def finish(self) -> Answer:
        """What was found besides durations.

        In a process that has run another workload before, what that has left behind would be taken
        for what was there, so nothing is said of memory.
        """
        memory = self.memory.known() if self.workloads == 1 else {}
        if memory:
            memory["import_bytes"] = self.import_bytes
        details = {**self.prepared.details(), **threads_seen()}
        return {"memory": memory, "details": details}

    def forms(self) -> Answer:
        forms = [dataclasses.asdict(form) for form in self.prepared.forms()]
        return {"source": _source(self.prepared.source), "forms": forms}


def _source(written: Any) -> Mapping[str, Any] | None:
    """The text of a function or class, and where it stands."""
    if written is None:
        return None
    lines, first = inspect.getsourcelines(written)
    return {"text": "".join(lines), "file": inspect.getsourcefile(written), "line": first}


def answered(method: Callable[..., Answer], request: Mapping[str, Any]) -> Answer:
    """What is answered; an exception costs only what was asked for."""
    try:
        return method(**request)
    except Exception as error:
        last_line = traceback.format_exception_only(type(error), error)[-1].strip()
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        return {"error": f"{last_line} ({where})", "trace": traceback.format_exc()}


def threads_seen() -> Answer:
    """How many threads this process has, the main one and idle ones too, where that is told."""
    tasks = Path("/proc/self/task")
    return {"threads_seen": len(list(tasks.iterdir()))} if tasks.exists() else {}


def encoded(answer: Answer) -> str:
    """As JSON, which has no numbers that are not finite."""
    try:
        return json.dumps(answer, default=lambda number: number.item(), allow_nan=False)
    except (ValueError, TypeError, AttributeError) as error:
        return json.dumps({"error": f"an answer that is no JSON: {error}", "trace": repr(answer)})


def _private_channel() -> tuple[Any, Any]:
    """Standard input and output as they are now; from then on, others get nothing of them."""
    incoming, outgoing = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return incoming, outgoing


def _end_with_the_harness() -> None:
    """On Linux, be killed where the harness is: a process that was stopped would stay for ever."""
    if sys.platform == "linux":
        import ctypes

        set_signal_of_parents_death = 1
        ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGKILL)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness.worker")
    parser.add_argument("runner")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--folder", type=Path, default=Path("."), help="for results")
    parser.add_argument("--own", type=Path, help="a folder with runners of one's own")
    options = parser.parse_args(argv)
    _end_with_the_harness()
    incoming, outgoing = _private_channel()
    known = {**runners.columns(options.own), **runners.ablations(options.own)}
    runner = known[options.runner](options.runner, options.threads)
    worker = Worker(runner, options.folder)
    for line in incoming:
        request = json.loads(line)
        answer = answered(getattr(worker, request.pop("do")), request)
        print(encoded(answer), file=outgoing)


if __name__ == "__main__":
    main()
