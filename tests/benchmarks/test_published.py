"""What is published was made from the results that lie beside it, and nothing is left out."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks import runners
from benchmarks.harness import results
from benchmarks.harness.results import Results
from benchmarks.reporting import bars, tables, verdicts
from benchmarks.reporting.grids import as_markdown

BENCHMARKS = runners.FOLDER.parent
FOLDER = BENCHMARKS / "results"
README = BENCHMARKS.parent / "README.md"
PICTURE = re.compile(r"!\[[^\]]+\]\((benchmarks/results/)?([\w-]+\.svg)\)")


@cache
def measured() -> Results:
    return results.load(FOLDER / "results.json")


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_it_is_of_a_whole_run():
    found = measured()
    assert (found.kind, found.interrupted, found.dirty) == ("full", False, False)
    assert not tables.not_reached(found)


def test_the_page_beside_the_results_has_all_tables():
    page = text(FOLDER / "README.md")
    assert tables.heading(measured()) in page
    assert tables.markdown(measured()) in page
    assert as_markdown(bars.table(bars.judged(measured()))) in page
    assert {name for _, name in PICTURE.findall(page)} == {p.name for p in FOLDER.glob("*.svg")}


def test_the_readme_has_the_tables_of_each_kind():
    page = text(README)
    assert tables.heading(measured()) in page
    for kind, names in tables.by_kind(measured()).items():
        assert as_markdown(tables.shares(measured(), kind, names)) in page
    shown = [name for folder, name in PICTURE.findall(page) if folder]
    assert shown and all((FOLDER / name).exists() for name in shown)


def reasons() -> dict[str, str]:
    """Workload → the row of the table that says why it is lost, and to whom."""
    rows = re.findall(r"^\| (`[^|]*`) \|(.*)\|$", text(BENCHMARKS / "README.md"), re.M)
    return {name: row for names, row in rows for name in re.findall(r"`([^`]+)`", names)}


def test_each_loss_has_its_reason_and_nothing_else_has():
    found = reasons()
    for workload in measured().workloads:
        lost = verdicts.lost(measured(), workload)
        assert bool(lost) == (workload in found), (workload, lost)
        assert [peer for peer in lost if peer not in found[workload]] == [], workload


@pytest.mark.parametrize("path", [README, BENCHMARKS / "README.md", FOLDER / "README.md"])
def test_no_place_was_left_open(path: Path):
    assert "@@" not in text(path)
