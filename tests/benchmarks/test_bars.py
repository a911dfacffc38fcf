"""Bars are held against results; within noise nothing is said."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from benchmark_results import NUMPY, OURS, TORCH, Document, cell, document, read
from click.testing import CliRunner
from rich.console import Console

from benchmarks import runners
from benchmarks.__main__ import main
from benchmarks.reporting import bars
from benchmarks.reporting.bars import BARS, Bar
from benchmarks.reporting.grids import Report
from benchmarks.workloads import WORKLOADS

BAR = Bar("a", OURS, 0.5, (NUMPY, TORCH))


def judged(*cells: Document) -> bars.Judged:
    return bars.judge(BAR, read(document(cells)))


def shown(known: Document, *held: Bar, width: int = 200) -> str:
    file = io.StringIO()
    table = bars.table(bars.judged(read(known), held))
    Console(width=width, color_system=None, file=file).print(Report([table]))
    return file.getvalue()


@pytest.mark.parametrize(
    ("ours_s", "spread", "verdict"),
    [
        (1.0, 0.01, "reached"),
        (1.99, 0.1, "within noise"),
        (2.01, 0.1, "within noise"),
        (3.0, 0.01, "missed"),
        (2.1, 0.0, "missed"),
        (2.0, 0.0, "within noise"),
    ],
)
def test_the_range_decides(ours_s: float, spread: float, verdict: str):
    cells = cell("a", OURS, ours_s, spread=spread), cell("a", NUMPY, 4.0, spread=spread)
    found = judged(*cells, cell("a", TORCH, None, status="not written"))
    assert found.verdict == verdict and found.peer == NUMPY
    assert found.ratio is not None and found.ratio.value == pytest.approx(ours_s / 4)


@pytest.mark.parametrize("status", ["not reached", "timed out", "crashed", "missing", "wrong"])
def test_a_bar_is_not_reached_without_a_peer_that_may_be_the_strongest(status: str):
    absent = cell("a", TORCH, None, status=status)
    found = judged(cell("a", OURS, 1.0), cell("a", NUMPY, 4.0), absent)
    assert (found.verdict, found.why) == ("reached of some", f"{TORCH}: {status}")
    assert judged(cell("a", OURS, 3.0), cell("a", NUMPY, 4.0), absent).verdict == "missed"


def test_few_samples_tell_nothing():
    few = [
        cell("a", name, s, samples_s=[[s], [s]])
        for name, s in ((OURS, 1.0), (NUMPY, 9.0), (TORCH, 9.0))
    ]
    assert judged(*few).verdict == "within noise"


def test_the_fastest_of_the_peers_counts():
    found = judged(cell("a", OURS, 1.0), cell("a", NUMPY, 4.0), cell("a", TORCH, 1.5))
    assert (found.peer, found.verdict) == (TORCH, "missed")


def test_peers_that_were_not_measured_are_listed():
    found = judged(cell("a", OURS, 1.0), cell("a", TORCH, None, status="crashed"))
    assert found.verdict == "not measured" and found.ratio is None
    assert found.why == "NumPy: not run, torch eager: crashed"


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ("wrong", "missed"),
        ("crashed", "missed"),
        ("timed out", "missed"),
        ("missing", "not measured"),
        ("not reached", "not measured"),
    ],
)
def test_what_minigraph_fails_at_is_missed(status: str, verdict: str):
    found = judged(cell("a", OURS, None, status=status), cell("a", NUMPY, 4.0))
    assert (found.verdict, found.why) == (verdict, f"{OURS}: {status}")
    assert judged(cell("a", NUMPY, 4.0)).why == f"{OURS}: not run"


def test_all_are_shown():
    cells = [cell("a", OURS, 1.0), cell("a", NUMPY, 4.0)]
    reached, missed = Bar("a", OURS, 0.5, (NUMPY,)), Bar("a", OURS, 0.1, (NUMPY,))
    unknown, elsewhere = Bar("a", OURS, 1.0, (TORCH,)), Bar("b", OURS, 1.0, (NUMPY,))
    text = shown(document(cells), reached, unknown, elsewhere)
    assert (
        "Of 2 bars: reached 1, reached of some 0, missed 0, within noise 0, not measured 1." in text
    )
    assert "b:" not in text
    assert "b: numba" in shown(document(cells, kind="full"), reached, elsewhere)
    assert "not measured [1]" in text and "[1] torch eager: not run" in text
    text = shown(document(cells), reached, missed)
    row = next(line for line in text.splitlines() if "missed" in line)
    assert row.split() == "a: numba / NumPy 0.25 0.10 missed 0.25 to 0.25 1 s 4 s".split()
    for width in (60, 80):
        lines = shown(document(cells), reached, missed, unknown, width=width).splitlines()
        assert all(len(line) <= width for line in lines)


@pytest.mark.parametrize(("ours_s", "status"), [(1e-6, 0), (1e-1, 1)])
def test_the_exit_status_tells_of_one_that_is_missed(ours_s: float, status: int, tmp_path: Path):
    bar = BARS[0]
    cells = [cell(bar.workload, bar.ours, ours_s), cell(bar.workload, bar.peers[0], 1e-3)]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(document(cells)))
    for options, sign in (((), bar.workload), (("--markdown",), f"| {bar.workload}: ")):
        found = CliRunner().invoke(main, ["bars", str(path), *options])
        assert found.exit_code == status, found.output
        assert sign in found.output


def test_each_bar_is_of_workloads_and_columns_that_there_are():
    assert len(BARS) == len(set(BARS))
    for bar in BARS:
        assert bar.workload in WORKLOADS
        assert {bar.ours, *bar.peers} <= {*runners.ORDER}
