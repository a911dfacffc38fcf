"""Bars are held against results; within noise nothing is said."""

from __future__ import annotations

import io

import pytest
from benchmark_results import NUMPY, OURS, TORCH, Document, cell, document, read
from rich.console import Console

from benchmarks import runners
from benchmarks.reporting import bars
from benchmarks.reporting.bars import BARS, Bar
from benchmarks.workloads import WORKLOADS

BAR = Bar("a", OURS, 0.5, (NUMPY, TORCH))


def judged(*cells: Document) -> bars.Judged:
    return bars.judge(BAR, read(document(cells)))


def shown(known: Document, *held: Bar, width: int = 200) -> tuple[int, str]:
    file = io.StringIO()
    console = Console(width=width, color_system=None, file=file)
    return bars.show(read(known), console, held), file.getvalue()


@pytest.mark.parametrize(
    ("ours_s", "spread", "verdict"),
    [
        (1.0, 0.01, "reached"),
        (1.99, 0.1, "within noise"),
        (2.01, 0.1, "within noise"),
        (3.0, 0.01, "missed"),
        (2.1, 0.0, "missed"),
        (2.0, 0.0, "reached"),
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


def test_all_are_shown_and_the_exit_status_tells_of_one_that_is_missed():
    cells = [cell("a", OURS, 1.0), cell("a", NUMPY, 4.0)]
    reached, missed = Bar("a", OURS, 0.5, (NUMPY,)), Bar("a", OURS, 0.1, (NUMPY,))
    unknown, elsewhere = Bar("a", OURS, 1.0, (TORCH,)), Bar("b", OURS, 1.0, (NUMPY,))
    status, text = shown(document(cells), reached, unknown, elsewhere)
    assert status == 0
    assert (
        "Of 2 bars: reached 1, reached of some 0, missed 0, within noise 0, not measured 1." in text
    )
    assert "1 more are of workloads that were not run" in text and "b:" not in text
    assert "not measured [1]" in text and "[1] torch eager: not run" in text
    status, text = shown(document(cells), reached, missed)
    assert status == 1
    row = next(line for line in text.splitlines() if "missed" in line)
    assert row.split() == "a: numba / NumPy 0.25 0.10 missed 0.25 to 0.25 1 s 4 s".split()
    for width in (60, 80):
        lines = shown(document(cells), reached, missed, unknown, width=width)[1].splitlines()
        assert all(len(line) <= width for line in lines)


def test_each_bar_is_of_workloads_and_columns_that_there_are():
    assert len(BARS) == len(set(BARS))
    for bar in BARS:
        workload = WORKLOADS[bar.workload]
        for name in (bar.ours, *bar.peers):
            assert name in runners.ORDER
            assert workload.is_for(name), (bar, name)
