"""Whole runs through the command line, with good runners and with bad ones, on tiny sizes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import runners
from benchmarks.__main__ import main
from benchmarks.harness import results
from benchmarks.harness.contender import QUICK
from benchmarks.harness.processes import missing
from benchmarks.harness.running import INTERRUPTED

REPOSITORY = runners.FOLDER.parents[1]
HERE = Path(__file__).parent


def command(out: Path, *arguments: object, status: int = 0) -> str:
    """What a run prints; its results are in `out`."""
    program = [
        sys.executable,
        "-m",
        "benchmarks",
        "run",
        "--quick",
        "--scale",
        "0.02",
        "--out",
        out,
    ]
    done = subprocess.run(
        [*map(str, program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runners that go wrong."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(HERE / "strange_runners.py", folder)
    return folder


# ---- good runners --------------------------------------------------------------------------------


def test_the_whole_path(tmp_path: Path):
    known = runners.columns()
    wanted = ["minigraph numba", "minigraph python", "minigraph interpret", "NumPy", "torch eager"]
    names = [name for name in wanted if missing(known[name]) is None]
    chosen = [each for name in names for each in ("--runner", name)]
    workloads = ["mlp-1", "mlp-32", "softmax", "collatz"]
    chosen += [each for name in workloads for each in ("--only", name)]
    out = tmp_path / "results.json"
    printed = command(out, *chosen, "--threads", 1)
    found = results.load(out)
    assert found.kind == "custom" and found.scale == 0.02 and found.threads == 1
    assert found.started <= found.finished and not found.interrupted
    assert found.method["environment"]["OMP_NUM_THREADS"] == "1"
    assert {cell.status for cell in found.cells} <= {"measured", "not written"}
    for workload in workloads:
        for name in names:
            if workload == "collatz" and name in ("minigraph interpret", "torch eager"):
                continue
            cell = found.cell(workload, name)
            assert cell.status == "measured", cell
            assert 0 < len(cell.samples_s) <= QUICK.rounds
            assert cell.error <= found.workloads[workload].tolerance
            assert 0 <= cell.prepare_s <= cell.first_call_s
            assert cell.statistics.median_s > 0
    assert found.runners["minigraph python"].baseline == "NumPy"
    assert "NumPy" in found.runners["NumPy"].versions
    assert "1 threads for each" in printed and "mlp-32" in printed and "It took" in printed
    for arguments in (["report"], ["report", "--markdown"], ["bars"]):
        answer = CliRunner().invoke(main, [*arguments, str(out)])
        assert answer.exit_code <= int(arguments == ["bars"]), answer.output
        assert "mlp-1" in answer.output.replace("MLP 512-256-128-2, batch 1, per call", "mlp-1")
    drawings = tmp_path / "drawings"
    assert CliRunner().invoke(main, ["report", str(out), "--plots", str(drawings)]).exit_code == 0
    assert (drawings / "speed-up-inference.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "meant"), [("--only sofmax", "softmax"), ("--runner Nunpy", "NumPy")]
)
def test_names_that_there_are_not(arguments: str, meant: str):
    answer = CliRunner().invoke(main, ["run", *arguments.split()])
    assert answer.exit_code == 2 and f"did you mean '{meant}'?" in answer.output


def test_the_runner_of_the_readme(tmp_path: Path):
    text = (REPOSITORY / "benchmarks" / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "einsum.py").write_text(code)
    out = tmp_path / "results.json"
    chosen = ("--own", tmp_path / "own", "--runner", "NumPy einsum", "--only", "mlp-1")
    command(out, *chosen, "--only", "softmax")
    found = results.load(out)
    assert found.cell("mlp-1", "NumPy einsum").status == "measured"
    assert found.cell("softmax", "NumPy einsum").message == "no implementation of softmax"


def test_where_nothing_was_measured_earlier_results_stay(tmp_path: Path):
    out = tmp_path / "results.json"
    command(out, "--only", "mlp-1", "--runner", "NumPy")
    before = out.read_bytes()
    told = command(out, "--only", "mlp-1", "--runner", "NumPy", "--budget", 0, status=1)
    assert "Nothing was measured, and nothing changed in" in told and out.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("run --scale nan", "no finite number"),
        ("run --budget inf", "no finite number"),
        ("run --out .", "is a directory"),
        ("run --runner NumPy --without NumPy", "no runner is left"),
        ("run --only=", "a name is empty"),
        ("compare mlp-1 --html .", "is a directory"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anything_is_done(arguments: str, told: str):
    answer = CliRunner().invoke(main, arguments.split())
    assert answer.exit_code == 2 and told in " ".join(answer.output.split()), answer.output


@pytest.mark.parametrize("code", ["class:", "import no_such_module"])
def test_a_file_of_ones_own_that_cannot_be_loaded_is_named(tmp_path: Path, code: str):
    (tmp_path / "mine.py").write_text(code)
    for arguments in (["list"], ["run"]):
        answer = CliRunner().invoke(main, [*arguments, "--own", str(tmp_path)])
        assert answer.exit_code == 1 and "mine.py: " in answer.output.replace("\n", "")


# ---- runners that go wrong -----------------------------------------------------------------------

BAD = {
    "right": ("measured", ""),
    "wrong value": ("wrong", "0.01 away from the reference; 0.0001 is allowed"),
    "wrong shape": ("wrong", "a result of shape (2,) instead of (1, 2)"),
    "wrong dtype": ("wrong", "a result of dtype float64 instead of float32"),
    "nan": ("wrong", "2 of 2 numbers are not finite"),
    "no array": ("crashed", "TypeError: a result is no array of numbers: NoneType"),
    "two": ("wrong", "2 results instead of 1"),
    "not written": ("not written", "nobody wrote it"),
    **{
        f"raises in {phase}": ("crashed", "ValueError: it went wrong")
        for phase in ("load", "call", "measure")
    },
    **{
        f"exits in {phase}": ("crashed", "ended with status 3\nthese were its last words")
        for phase in ("load", "prepare", "warm", "measure")
    },
    "segfaults in call": ("crashed", "ended by SIGSEGV"),
    "raises in finish": ("measured", "ValueError: it went wrong (strange_runners.py:"),
    "exits in finish": ("measured", "ended with status 3\nthese were its last words"),
    "missing": ("missing", "what it needs is not there"),
    "not there": ("missing", "no_such_package is not installed"),
}


@pytest.fixture(scope="module")
def bad(strange: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[results.Results, str]:
    out = tmp_path_factory.mktemp("bad") / "results.json"
    chosen = [each for name in BAD for each in ("--runner", name)]
    more = ("--runner", "NumPy", "--only", "mlp-1", "--patience", 60, "--budget", 600)
    printed = command(out, *chosen, *more, "--own", strange)
    return results.load(out), printed


@pytest.mark.parametrize("name", BAD)
def test_who_goes_wrong_loses_one_cell(bad: tuple[results.Results, str], name: str):
    found, printed = bad
    cell = found.cell("mlp-1", name)
    status, message = BAD[name]
    assert (cell.status, cell.message[: len(message)]) == (status, message)
    assert bool(cell.samples_s) == (status == "measured")
    if status in ("wrong", "crashed", "timed out"):
        assert f"{name} {status}: {message.splitlines()[0]}" in " ".join(printed.split())


def test_others_are_measured_all_the_same(bad: tuple[results.Results, str]):
    for name in ("NumPy", "right"):
        cell = bad[0].cell("mlp-1", name)
        assert cell.status == "measured" and len(cell.samples_s) > 1 and cell.error < 1e-5
    assert bad[0].cell("mlp-1", "right").details["nodes"] == 3


def test_who_is_missing_is_said(bad: tuple[results.Results, str]):
    found, printed = bad
    assert "Left out: not there (no_such_package is not installed)" in printed
    assert found.runners["missing"].missing == "what it needs is not there"
    assert found.runners["right"].missing is None


# ---- interruptions, and time ---------------------------------------------------------------------


def test_an_interruption_keeps_what_was_measured(tmp_path: Path, strange: Path):
    out = tmp_path / "results.json"
    chosen = ("--only", "mlp-1", "--only", "mlp-32", "--runner", "NumPy", "--own", strange)
    printed = command(out, *chosen, "--runner", "interrupts in measure", status=INTERRUPTED)
    assert "Interrupted" in printed
    found = results.load(out)
    assert found.interrupted
    assert found.cell("mlp-1", "NumPy").status == "measured"
    assert {found.cell("mlp-32", name).status for name in found.runners} == {"not reached"}


def test_an_interruption_before_anything_was_measured(tmp_path: Path, strange: Path):
    out = tmp_path / "results.json"
    chosen = ("--only", "mlp-1", "--own", strange, "--runner", "interrupts in prepare")
    command(out, *chosen, status=INTERRUPTED)
    (cell,) = results.load(out).cells
    assert cell.status == "not reached"


def test_what_there_is_no_time_for_is_not_reached(tmp_path: Path):
    out = tmp_path / "results.json"
    command(out, "--only", "mlp", "--runner", "NumPy", "--budget", 0, status=1)
    found = results.load(out)
    assert {(cell.status, cell.message) for cell in found.cells} == {
        ("not reached", "no time left")
    }


def test_who_reads_what_is_printed_may_go_away(tmp_path: Path):
    out = tmp_path / "results.json"
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-m", "benchmarks", "run", "--quick", "--scale", "0.02"]
    chosen = ["--only", "mlp-1", "--runner", "NumPy", "--out", str(out)]
    done = subprocess.run([*program, *chosen], stdout=writing, cwd=REPOSITORY)
    os.close(writing)
    assert done.returncode == 0
    assert results.load(out).cell("mlp-1", "NumPy").status == "measured"


def test_what_was_refused_needs_no_process(tmp_path: Path):
    out = tmp_path / "results.json"
    command(out, "--only", "collatz", "--runner", "minigraph block", status=1)
    (cell,) = results.load(out).cells
    assert cell.status == "not written" and cell.message and cell.import_s is None
