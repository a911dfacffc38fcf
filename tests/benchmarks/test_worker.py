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
from worker_process import Asked

from benchmarks import runners
from benchmarks.harness import machine, pinned, processes
from benchmarks.harness.processes import Settings
from benchmarks.harness.worker import encoded

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
    with Asked("NumPy", tmp_path) as asked:
        asked.prepare("mlp-32")
        seen = asked.details()["threads_seen"]
        tasks = list(Path(f"/proc/{asked.process.pid}/task").glob("*/status"))
        texts = [task.read_text() for task in tasks]
    assert len(tasks) == seen
    core = Settings(1).cores[0]
    assert all(f"Cpus_allowed_list:\t{core}\n" in text for text in texts)


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Asked]:
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy(Path(__file__).with_name("strange_runners.py"), own)
    with Asked("large", tmp_path, own) as asked:
        yield asked


def memory(asked: Asked, name: str) -> dict[str, Any]:
    """With the sizes that are measured: an argument of 17 MB."""
    asked.prepare(name, scale=1.0)
    asked.ask("measure", lead=0, calls=1, samples=2)
    return asked.ask("finish")["memory"]


@ON_LINUX
def test_memory_is_what_calls_need_without_arguments_and_what_is_saved(large: Asked):
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
