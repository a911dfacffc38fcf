"""The benchmarks run, on tiny sizes; how long it takes is not asked here."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.package import benchmark


core = benchmark("core")
works = benchmark("against.works")
peers = benchmark("against.peers")
comparing = benchmark("against.comparing")
costs = benchmark("against.costs")
against = benchmark("against.__main__")

WORKS = {work.name: work for work in works.WORKS}
FRAMEWORKS = [name for name in peers.PEERS if name != "NumPy"]

# ---- what the compiler costs ---------------------------------------------------------------------


def test_every_row_is_measured():
    rows = [
        core.call_overhead(calls=10, rounds=2),
        core.compilation(nodes=20, rounds=2),
        core.long_chain(small=20, factor=3, rounds=1),
        core.importing(rounds=1),
    ]
    assert all(row.found_s > 0 for row in rows)
    lines = core.table(core.HEAD, [row.cells() for row in rows]).splitlines()
    assert len(lines) == 2 + len(rows) and len(set(map(len, lines))) == 1
    assert str(core.np.__version__) in core.machine()


def test_the_verdict_follows_the_bound():
    def holds(compared: str, bound: float) -> bool:
        return core.Row("it", 1.0, 3.0, compared, bound).holds

    assert holds("ratio", 3.0) and not holds("ratio", 2.9)
    assert holds("difference", 2.0) and not holds("difference", 1.9)
    assert holds("time", 3.0) and not holds("time", 2.9)


@pytest.mark.parametrize(
    ("wall_s", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (3.21e-6, "3.21 µs"), (0, "0 µs")]
)
def test_durations_have_units(wall_s: float, text: str):
    assert core.seconds(wall_s) == text


# ---- against other frameworks --------------------------------------------------------------------


@pytest.mark.parametrize("name", WORKS)
def test_a_work_is_compared(name: str):
    work = WORKS[name]
    rows = comparing.compare(
        work,
        backend="python",
        rounds=2,
        scale=0.02,
        rest_s=0.0,
        sample_s=1e-5,
        without=FRAMEWORKS,
    )
    assert {row.what for row in rows} == {work.title}
    measured = [row for row in rows if row.theirs is not None]
    assert all(row.theirs > 0 and row.ours > 0 for row in measured)
    assert [row.against for row in measured] == ["NumPy"] * len(measured)
    assert {row.against for row in rows if row.note == "left out"} == set(work.everybody) - {
        "NumPy"
    }


def test_a_framework_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jax", None)  # importing it raises ImportError
    rest = [name for name in FRAMEWORKS if name != "JAX"]
    rows = comparing.compare(
        WORKS["heat"], backend="python", rounds=1, scale=0.01, rest_s=0, sample_s=0, without=rest
    )
    (missing,) = [row for row in rows if row.against == "JAX"]
    assert missing.theirs is None and missing.note == "jax is not installed"
    assert missing.reached is None


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch):
    def twice(work, inputs, bound):
        return peers.Call(lambda: 2 * work.formula(np, *bound)(*inputs))

    monkeypatch.setitem(peers.PEERS, "JAX", twice)
    rest = [name for name in FRAMEWORKS if name != "JAX"]
    with pytest.raises(comparing.Disagreement, match="heat: JAX is 1 away from NumPy"):
        comparing.compare(WORKS["heat"], backend="python", scale=0.01, without=rest)


def test_what_a_call_and_a_compilation_cost():
    (guard,) = costs.guard(backend="python", rounds=2, sample_s=1e-5)
    assert guard.ours > 0 and guard.theirs > 0 and guard.compared == "difference"
    assert all(row.ours > 0 for row in costs.compiling(backend="python", rounds=1))
    (memory,) = costs.memory(backend="python", rounds=1, size=1 << 20)
    assert memory.unit == "byte" and memory.theirs in (8 << 20, None)


def test_the_verdict_follows_the_bar():
    def reached(compared: str, at_most: float | None) -> bool | None:
        return comparing.Row("it", "that", 2.0, 3.0, at_most, compared).reached

    assert reached("ratio", 1.5) and reached("ratio", 1.4) is False
    assert reached("value", 3.0) and reached("value", 2.9) is False
    assert reached("difference", 1.0) and reached("difference", 0.9) is False
    assert reached("ratio", None) is None


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    row = comparing.Row("it", "that", 2.0, 3.0, 1.0)
    monkeypatch.setitem(costs.COSTS, "guard", lambda backend: [row])
    found = tmp_path / "rows.json"
    assert against.main(["--list"]) == 0
    assert set(WORKS) <= set(capsys.readouterr().out.split())
    assert against.main(["--only", "guard", "--backend", "python", "--json", str(found)]) == 1
    assert "| it   | that    | 2 s    | 3 s       | 1.50  | 1.00    | NO" in capsys.readouterr().out
    (known,) = json.loads(found.read_text())["rows"]
    assert known == {**dataclasses.asdict(row), "reached": False}


def test_a_work_that_fails_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def fails(backend: str):
        costs._child("import sys; sys.exit('a line\\nthe reason')", cache="")

    monkeypatch.setitem(costs.COSTS, "guard", fails)
    monkeypatch.setitem(costs.COSTS, "memory", lambda backend: [comparing.Row("it", "", None, 1.0)])
    assert against.main(["--only", "guard", "--only", "memory", "--backend", "python"]) == 1
    *_, failed, other = capsys.readouterr().out.splitlines()
    assert "a process ended with status 1. the reason" in failed and "| it " in other
