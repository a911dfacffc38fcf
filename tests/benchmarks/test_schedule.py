"""Who is measured when, with runners that are no processes and a clock that is no clock."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.harness.contender import FEWEST, FULL, QUICK, Contender, Effort
from benchmarks.harness.display import Display
from benchmarks.harness.processes import Settings, TimedOut
from benchmarks.harness.results import Cell, Column, Results
from benchmarks.harness.schedule import GRACE_S, SHORT_S, Schedule, mixed
from benchmarks.workloads import WORKLOADS

SCALE = 0.02
FAST = {"load": 1.0, "prepare": 0.5, "warm": 0.1, "measure": 0.01, "finish": 0.01}


class Fake:
    """A process whose answers take as long as it is told, on the clock of the test."""

    ended = False

    def __init__(self, world: World, name: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.world, self.name, self.folder = world, name, folder
        self.takes = {**FAST, **world.takes.get(name, {})}
        self.pending: list[tuple[float, str, dict]] = []
        world.processes.append(self)

    def send(self, do: str, **request: object) -> None:
        self.world.call(f"send {do}")
        begun = max([self.world.now, *(each[0] for each in self.pending)])
        self.pending.append((begun + self.takes[do], do, request))

    def receive(self, timeout_s: float) -> dict:
        self.world.call("receive")
        at, do, request = self.pending[0]
        if at > self.world.now + max(0.0, timeout_s):
            self.world.now += max(0.0, timeout_s)
            raise TimedOut(f"no answer within {timeout_s:.3g} s")
        self.pending.pop(0)
        self.world.now = max(self.world.now, at)
        self.world.log.append((do, self.name, request.get("workload", "")))
        return getattr(self, do)(**request)

    def ask(self, do: str, timeout_s: float, **request: object) -> dict:
        self.send(do, **request)
        return self.receive(timeout_s)

    def load(self) -> dict:
        return {"versions": {}, "threads": "1", "import_s": 1.0}

    def prepare(self, workload: str, scale: float, digest: str) -> dict:
        outputs = WORKLOADS[workload].case(scale).expected()
        dtype = WORKLOADS[workload].dtype
        path = self.folder / "outputs.npz"
        np.savez(path, *(each.astype(dtype) for each in outputs))
        if self.name in self.world.broken:
            path.write_bytes(b"no arrays")
        return {"prepare_s": 0.1, "first_call_s": 0.5, "outputs": str(path)}

    def warm(self, limit_s: float) -> dict:
        return {"calls": 9, "call_s": self.takes.get("call", 0.001), "stable": True}

    def measure(self, lead: int, calls: int, samples: int) -> dict:
        return {"samples_s": [0.001] * samples}

    def finish(self) -> dict:
        return {"memory": {}, "details": {}}

    def stop(self) -> None:
        self.world.call("stop")

    def go_on(self) -> None:
        self.world.call("go on")

    def end(self) -> None:
        self.ended = True


class World:
    """A clock, all processes, and the calls that the schedule makes."""

    def __init__(self, takes: dict[str, dict[str, float]], interrupted_at: int = -1) -> None:
        self.takes, self.interrupted_at = takes, interrupted_at
        self.broken: set[str] = set()
        self.now, self.calls = 1000.0, 0
        self.processes: list[Fake] = []
        self.log: list[tuple[str, str, str]] = []

    def call(self, what: str) -> None:
        self.calls += 1
        if self.calls == self.interrupted_at:
            raise KeyboardInterrupt

    def schedule(
        self,
        folder: Path,
        effort: Effort,
        names: list[str],
        workloads: list[str],
        ablations: tuple[str, ...] = (),
    ) -> Schedule:
        results = Results("custom", "now", {}, 1, {}, SCALE)
        for name in (*names, *ablations):
            compiled = "NumPy" if name.startswith("compiler") else None
            results.runners[name] = Column("", "", baseline=compiled, ablation=name in ablations)
        results.cells = [Cell(each, name) for each in workloads for name in (*names, *ablations)]
        return Schedule(
            results,
            {name: WORKLOADS[name] for name in workloads},
            dict.fromkeys((*names, *ablations)),
            Settings(1),
            effort,
            folder,
            folder / "results.json",
            Display(Console(file=io.StringIO())),
            lambda name, runner, settings, at: Fake(self, name, at),
            lambda: self.now,
        )


def statuses(schedule: Schedule, name: str) -> list[str]:
    return [cell.status for cell in schedule.results.cells if cell.runner == name]


NAMES = ["plain a", "plain b", "compiler a", "compiler b", "compiler c"]
THREE = ["mlp-1", "mlp-32", "chain-1000"]


@pytest.mark.parametrize("effort", [FULL, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize("slow", ["load", "prepare", "warm", "measure", "finish"])
def test_the_budget_is_kept_when_all_answers_take_long(tmp_path: Path, effort: Effort, slow: str):
    world = World(dict.fromkeys(NAMES, {slow: 1e9}))
    schedule = world.schedule(tmp_path, effort, NAMES, THREE)
    schedule.run()
    first_s = 0.5
    allowed = effort.budget_s + len(NAMES) * (GRACE_S + 2 * effort.warm_s + 2 * first_s)
    assert world.now - 1000 <= allowed
    assert all(process.ended for process in world.processes)


@pytest.mark.parametrize("phase", ["warm", "measure"])
def test_who_hangs_has_timed_out_and_costs_the_others_nothing(tmp_path: Path, phase: str):
    world = World({"compiler b": {phase: 1e9}})
    schedule = world.schedule(tmp_path, FULL, NAMES, ["mlp-1"])
    schedule.run()
    for cell in schedule.results.cells:
        hangs = cell.runner == "compiler b"
        assert cell.status == ("timed out" if hangs else "measured")
        assert len(cell.samples_s) == (0 if hangs else FULL.rounds)


def test_long_calls_that_answer_keep_the_budget(tmp_path: Path):
    world = World({name: {"call": 4.0, "measure": 4.0} for name in NAMES})
    effort = Effort(budget_s=60)
    schedule = world.schedule(tmp_path, effort, NAMES, ["mlp-1"])
    schedule.run()
    assert world.now - 1000 <= effort.budget_s + FEWEST * GRACE_S
    assert {cell.status for cell in schedule.results.cells} <= {"measured", "not reached"}


def test_all_is_measured_where_there_is_time(tmp_path: Path):
    world = World({})
    schedule = world.schedule(tmp_path, FULL, NAMES, THREE)
    schedule.run()
    for cell in schedule.results.cells:
        assert cell.status == "measured" and len(cell.samples_s) == FULL.rounds
    assert not schedule.results.interrupted and schedule.out.exists()
    assert set(schedule.spent) >= {"imports", "first calls", "warming up", "rounds"}
    assert list(schedule.results.workloads) == THREE


def test_a_slow_compiler_loses_its_own_cells_alone(tmp_path: Path):
    world = World({"compiler b": {"prepare": 1e9}})
    schedule = world.schedule(tmp_path, FULL, NAMES, THREE)
    schedule.run()
    for name in NAMES:
        expected = "timed out" if name == "compiler b" else "measured"
        assert set(statuses(schedule, name)) == {expected}
    lost = schedule.results.cell("mlp-1", "compiler b")
    assert lost.message.startswith("first call: no answer within ")


def test_those_that_compile_come_last_and_in_an_order_that_changes(tmp_path: Path):
    world = World({})
    world.schedule(tmp_path, FULL, NAMES, THREE).run()
    orders = [
        [name for do, name, of in world.log if do == "prepare" and of == workload]
        for workload in THREE
    ]
    for order in orders:
        assert sorted(order[:2]) == NAMES[:2] and sorted(order[2:]) == NAMES[2:]
    assert len({tuple(order) for order in orders}) > 1


def test_who_comes_late_has_a_short_patience_at_least(tmp_path: Path):
    effort = Effort(budget_s=60, share=1.0)
    world = World({name: {"prepare": SHORT_S * 0.9} for name in NAMES})
    schedule = world.schedule(tmp_path, effort, NAMES, ["mlp-1"])
    schedule.run()
    assert {cell.status for cell in schedule.results.cells} == {"measured"}


def test_training_has_more_time_than_others(tmp_path: Path):
    limit_s = 9.0  # of 40 s; a half is more than that, but not a share of 0.8 of it
    world = World({"compiler a": {"prepare": limit_s}})
    effort = Effort(budget_s=40, share=1.0)
    schedule = world.schedule(tmp_path, effort, ["compiler a"], ["mlp-1", "mlp-training-sgd"])
    schedule.run()
    assert [cell.status for cell in schedule.results.cells] == ["timed out", "measured"]


def test_what_leaves_out_a_part_comes_after_all_others(tmp_path: Path):
    world = World({})
    schedule = world.schedule(tmp_path, FULL, ["plain a"], THREE, ("without fusion",))
    schedule.run()
    order = [name for do, name, _ in world.log if do == "prepare"]
    assert order == ["plain a"] * 3 + ["without fusion"] * 3


def test_slow_calls_have_turns_enough_to_be_told_apart(tmp_path: Path):
    world = World({"plain a": {"call": 1.5, "measure": 1.5}})
    schedule = world.schedule(tmp_path, FULL, NAMES, ["mlp-1"])
    schedule.run()
    assert schedule.results.cell("mlp-1", "plain a").statistics.samples == FEWEST


def test_little_time_means_fewer_rounds_for_all(tmp_path: Path):
    world = World({name: {"call": 0.1, "measure": 0.1} for name in NAMES})
    effort = Effort(budget_s=14, share=1, rounds=40, turns_s=4)
    schedule = world.schedule(tmp_path, effort, NAMES, ["mlp-1"])
    schedule.run()
    counts = {cell.statistics.samples for cell in schedule.results.cells}
    assert len(counts) == 1 and FEWEST <= counts.pop() < effort.rounds


def test_who_is_still_importing_is_kept_in_a_quick_run(tmp_path: Path):
    world = World({"plain b": {"load": 35.0}})
    schedule = world.schedule(tmp_path, QUICK, ["plain a", "plain b"], THREE)
    schedule.run()
    found = statuses(schedule, "plain b")
    assert found.count("measured") >= 1 and found.count("not reached") >= 1
    assert len(world.processes) == 2
    assert [do for do, name, _ in world.log if name == "plain b"].count("load") >= 1


def test_what_goes_wrong_in_the_harness_costs_one_cell(tmp_path: Path):
    world = World({})
    world.broken.add("plain b")
    schedule = world.schedule(tmp_path, FULL, NAMES, ["mlp-1"])
    schedule.run()
    for name in NAMES:
        assert statuses(schedule, name) == ["crashed" if name == "plain b" else "measured"]
    assert "in the harness" in schedule.results.cell("mlp-1", "plain b").message


@pytest.mark.parametrize("effort", [FULL, QUICK], ids=["full", "quick"])
def test_an_interruption_at_any_call_loses_no_process(tmp_path: Path, effort: Effort):
    names, workloads = ["plain a", "compiler a"], ["mlp-1", "mlp-32"]
    whole = World({})
    whole.schedule(tmp_path, effort, names, workloads).run()
    for number in range(1, whole.calls + 1):
        world = World({}, interrupted_at=number)
        schedule = world.schedule(tmp_path, effort, names, workloads)
        schedule.run()
        assert schedule.results.interrupted
        assert all(process.ended for process in world.processes)
        for cell in schedule.results.cells:
            assert (cell.status == "measured") == bool(cell.samples_s)


def test_turns_are_spread_over_the_rounds():
    contender = Contender(Cell("mlp-1", "a"), None, FULL)
    for turns in range(1, 13):
        contender.turns = turns
        for rounds in (5, 12):
            played = [contender.plays(number, rounds) for number in range(rounds)]
            assert played[0] and sum(played) == min(turns, rounds)


def test_kinds_come_mixed():
    order = mixed(list(WORKLOADS.values()))
    assert sorted(each.name for each in order) == sorted(WORKLOADS)
    half = order[: len({each.family for each in order})]
    assert len({each.family for each in half}) == len(half)
    assert {each.kind for each in order[:6]} == {"inference", "training", "loop"}
