"""What a runner's process is: what it imports, where its threads run, what it tells."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering_apart import PATIENCE_S, prepare, process

from benchmarks import runners
from benchmarks.harness import machine, pinned, processes
from benchmarks.harness.processes import Process, Settings
from benchmarks.harness.worker import encoded
from benchmarks.runners.numpy import NumPy
from benchmarks.workloads import WORKLOADS

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
MB = 1_000_000


def test_numpy_and_the_standard_library_are_enough():
    code = """
import sys
class Others:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "benchmarks"}:
            raise ImportError(name)
sys.meta_path.insert(0, Others())
from benchmarks import runners
from benchmarks.harness import worker
print(len(runners.columns()))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=machine.ROOT)
    assert done.stdout.split() == [str(len(runners.columns()))], done.stderr


@ON_LINUX
def test_all_threads_run_on_the_cores_that_were_named(tmp_path: Path):
    """Those that BLAS makes when NumPy is imported, too: here there are more than cores."""
    code = """
import numpy
from pathlib import Path
for task in Path("/proc/self/task").iterdir():
    print(*[line for line in open(task / "status") if line.startswith("Cpus_allowed_list")])
"""
    (tmp_path / "telling.py").write_text(code)
    (core, *_) = machine.processors()
    command = pinned.command(sys.executable, [core], "telling")
    env = {"PYTHONPATH": f"{machine.ROOT}:{tmp_path}", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=machine.ROOT)
    assert {line.split()[1] for line in done.stdout.splitlines() if line} == {str(core)}, done


@ON_LINUX
def test_the_harness_pins_and_counts_threads(tmp_path: Path):
    with process("NumPy", NumPy, tmp_path) as found:
        prepare(found, "mlp-32")
        seen = found.ask("finish", PATIENCE_S)["details"]["threads_seen"]
        tasks = list(Path(f"/proc/{found.pid}/task").glob("*/status"))
        texts = [task.read_text() for task in tasks]
    assert len(tasks) == seen
    core = Settings(1).cores[0]
    assert all(f"Cpus_allowed_list:\t{core}\n" in text for text in texts)


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Process]:
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy(Path(__file__).with_name("strange_runners.py"), own)
    found = Process("large", runners.columns(own)["large"], Settings(1, own), tmp_path / "large")
    found.ask("load", PATIENCE_S)
    yield found
    found.end()


def memory(found: Process, name: str) -> dict[str, Any]:
    """With the sizes that are measured: an argument of 17 MB."""
    digest = WORKLOADS[name].case(1.0).digest
    found.ask("prepare", PATIENCE_S, workload=name, scale=1.0, digest=digest)
    found.ask("measure", PATIENCE_S, lead=0, calls=1, samples=2)
    return found.ask("finish", PATIENCE_S)["memory"]


@ON_LINUX
def test_memory_is_what_calls_need_without_arguments_and_what_is_saved(large: Process):
    known = memory(large, "chain-4194304")
    assert 49 * MB < known["first_call_bytes"] < 60 * MB
    assert 49 * MB < known["beyond_bytes"] < 60 * MB
    assert known["import_bytes"] > 0
    assert memory(large, "chain-4194304") == {}  # it is not the first any more


# ---- what surrounds it ---------------------------------------------------------------------------


def test_numbers_that_are_not_finite_are_an_error_of_their_own():
    assert json.loads(encoded({"details": {"nodes": 3}})) == {"details": {"nodes": 3}}
    answer = json.loads(encoded({"details": {"share": math.nan}}))
    assert "no JSON" in answer["error"] and "nan" in answer["trace"]


def test_a_users_packages_are_not_for_another_python(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setenv("CXXFLAGS", "-O0")
    here = processes._environment(sys.executable, {})
    apart = processes._environment("/another/python", {})
    assert here["PYTHONPATH"].endswith("/mine")
    assert apart["PYTHONPATH"] == str(machine.ROOT)
    assert "CXXFLAGS" not in here


def test_two_logical_processors_of_a_core_count_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    for number, text in siblings.items():
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(text + "\n")
    monkeypatch.setattr(machine, "TOPOLOGY", tmp_path)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert (machine.cores(), machine.processors()) == (2, [0, 1, 2, 3])
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {1, 2, 3}, raising=False)
    assert (machine.cores(), machine.processors()) == (2, [1, 2, 3])
    monkeypatch.setattr(machine, "TOPOLOGY", tmp_path / "nothing")
    assert machine.cores() == 3
