"""The file of results: there and back, its schema, and what is computed from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.harness.results import (
    STATUSES,
    Cell,
    Column,
    Results,
    Unreadable,
    Warming,
    Work,
    load,
    validate,
)


def cell(runner: str, call_s: float, first_call_s: float, spread: float = 0.0) -> Cell:
    """Measured, with three samples around `call_s`."""
    return Cell(
        "mlp-1",
        runner,
        "measured",
        error=1e-7,
        prepare_s=0.001,
        first_call_s=first_call_s,
        import_s=0.5,
        warm_up=Warming(100, True),
        samples_s=[
            [call_s - spread, call_s - spread / 2, call_s],
            [call_s + spread / 2, call_s + spread],
        ],
        memory={"import_bytes": 1, "first_call_bytes": 3, "beyond_bytes": 2},
        details={"kernels": 3},
    )


@pytest.fixture
def results() -> Results:
    machine = dict(processor="", cores=2, memory_bytes=None, system="Linux", python="3.11")
    method = dict(rounds=3, samples=3, sample_s=0.002, others_stopped=True, environment={})
    found = Results("quick", "2026-01-01T00:00:00+00:00", machine, 2, method)
    found.runners["NumPy"] = Column("", "as it is", {"NumPy": "2.4"}, "2")
    found.runners["torch.compile"] = Column("torch", "compiled", baseline="torch eager")
    found.runners["torch eager"] = Column("torch", "not compiled", missing="it is not there")
    found.workloads["mlp-1"] = Work("MLP", "mlp", "inference", 1, 10, True, "float32", 1e-4)
    found.cells = [cell("NumPy", 1.0, 1.0), Cell("mlp-1", "torch eager", "missing", "not there")]
    return found


def test_there_and_back(results: Results, tmp_path: Path):
    path = tmp_path / "folder" / "results.json"
    results.save(path)
    results.save(path)
    assert load(path) == results
    assert [each.name for each in path.parent.iterdir()] == ["results.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda known: known.update(schema=2), "$.schema: 1 was expected"),
        (lambda known: known.pop("threads"), "'threads' is a required property"),
        (lambda known: known["cells"][0].update(status="good"), "$.cells[0].status"),
        (lambda known: known["cells"][0].update(samples_s=[]), "$.cells[0].samples_s"),
        (lambda known: known["cells"][1].update(samples_s=[[1.0]]), "$.cells[1].samples_s"),
        (lambda known: known["cells"][0].update(more=1), "'more' was unexpected"),
    ],
)
def test_what_is_no_result_is_refused(results: Results, tmp_path: Path, change, said: str):
    path = tmp_path / "results.json"
    results.save(path)
    known = json.loads(path.read_text())
    change(known)
    path.write_text(json.dumps(known))
    with pytest.raises(Unreadable) as refused:
        load(path)
    assert said in str(refused.value)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path):
    path = tmp_path / "results.json"
    with pytest.raises(Unreadable, match="cannot be read"):
        load(path)
    path.write_text("{")
    with pytest.raises(Unreadable, match="cannot be read"):
        load(path)


def test_every_status_is_in_the_schema(results: Results):
    results.cells = [Cell("mlp-1", "NumPy", status) for status in STATUSES if status != "measured"]
    known = json.loads(json.dumps({"schema": 1, **vars(results)}, default=vars))
    validate(known)


def test_statistics_are_over_all_samples():
    found = cell("NumPy", 1.0, 1.0, spread=0.5).statistics
    assert (found.median_s, found.lower_s, found.upper_s, found.samples) == (1.0, 0.75, 1.25, 5)


@pytest.mark.parametrize(
    ("call_s", "first_call_s", "calls"),
    [
        (0.5, 1.0, 1),  # faster from the beginning
        (0.5, 0.2, 1),
        (0.5, 2.0, 3),  # one second later after the first; after the third both took 3 seconds
        (0.5, 2.1, 4),
        (1.0, 1.0, None),
        (2.0, 0.1, None),  # never: it is slower
    ],
)
def test_break_even(results: Results, call_s: float, first_call_s: float, calls: int | None):
    compiled = cell("torch.compile", call_s, first_call_s)
    assert compiled.break_even(results.cells[0]) == calls
    if calls:
        ours, theirs = first_call_s + (calls - 1) * call_s, 1.0 + (calls - 1) * 1.0
        assert ours <= theirs + 1e-9


def test_break_even_is_never_where_the_two_are_not_told_apart():
    assert cell("a", 0.9, 2.0, spread=0.3).break_even(cell("b", 1.0, 1.0, spread=0.3)) is None


def test_break_even_is_with_the_baseline(results: Results):
    compiled = cell("torch.compile", 0.5, 2.0)
    results.cells.append(compiled)
    assert results.break_even(compiled) is None  # the baseline is missing
    assert results.break_even(results.cells[0]) is None  # it has none
    results.cells[1] = cell("torch eager", 2.0, 2.0)
    assert results.break_even(compiled) == 1
