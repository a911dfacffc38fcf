"""Timing for users: what is called, how often, and what is said of it; never how long it took."""

from __future__ import annotations

import gc
import math
import re

import numpy as np
import pytest

import minigraph as mg
from minigraph import measuring
from minigraph.benchmark import Measurement
from minigraph.errors import OptionError
from minigraph.measuring import Statistics, WarmUp, calls_for, duration, take_samples, warm_up


def measurement(name: str, *samples_s: float, first_s: float = 0.0, stable: bool = True):
    return Measurement(name, first_s, WarmUp(10, samples_s[0], stable), samples_s, 1)


# ---- the context manager -------------------------------------------------------------------------


def test_a_block_prints_as_the_textbook(capsys: pytest.CaptureFixture[str]):
    with mg.Benchmark("Without hybridize") as found:
        assert found.seconds is None
    assert re.fullmatch(r"Without hybridize: 0\.\d{4} sec\n", capsys.readouterr().out)
    assert found.seconds is not None and found.seconds >= 0
    with mg.Benchmark():
        pass
    assert capsys.readouterr().out.startswith("Done: ")


def test_an_exception_passes_and_the_time_is_printed(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(ZeroDivisionError), mg.Benchmark("it"):
        _ = 1 / 0
    assert capsys.readouterr().out.startswith("it: ")


# ---- measuring -----------------------------------------------------------------------------------


def test_a_function_is_measured_with_its_arguments():
    seen: list[object] = []

    @mg.jit
    def double(x: object) -> object:
        return x * 2

    def called(x: np.ndarray, *, more: int) -> object:
        seen.append((x, more))
        return double(x)

    x = np.ones(3)
    found = mg.bench(called, x, more=2)
    assert len(seen) == 1 + found.warm_up.calls + len(found.samples_s) * found.calls_per_sample
    assert all(each[0] is x and each[1] == 2 for each in seen)
    assert found.first_s > 0 and found.statistics.median_s > 0
    assert str(found).startswith("called: ") and "first call" in str(found)


def test_what_the_function_raises_passes_and_what_is_no_function_is_an_error():
    with pytest.raises(KeyError):
        mg.bench({}.__getitem__, "missing")
    with pytest.raises(OptionError, match=r"mg\.bench\(f, x\), not mg\.bench\(f\(x\)\)"):
        mg.bench(np.ones(3).sum())


def test_the_collector_is_off_while_samples_are_taken_and_on_again_after():
    found: list[bool] = []
    assert gc.isenabled()
    take_samples(lambda: found.append(gc.isenabled()), 2, 3)
    assert found == [False] * 6 and gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        take_samples(lambda: 1 / 0, 1, 1)
    assert gc.isenabled()


def scripted_clock(monkeypatch: pytest.MonkeyPatch, durations: list[float]):
    """A function whose calls take these seconds, the last of them for ever, by the clock's word."""
    now, left = [0.0], durations.copy()
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: now[0])

    def run() -> None:
        now[0] += left.pop(0) if len(left) > 1 else left[0]

    return run


def test_warming_up_ends_when_the_speed_is_steady(monkeypatch: pytest.MonkeyPatch):
    run = scripted_clock(monkeypatch, [0.5, 0.1, 0.05, 0.02])
    found = warm_up(run)
    assert found.stable and found.call_s == pytest.approx(0.02)
    assert found.calls == 5


def test_short_calls_are_steady_when_several_groups_agree(monkeypatch: pytest.MonkeyPatch):
    run = scripted_clock(monkeypatch, [0.005, 0.001])
    found = warm_up(run)
    assert found.stable and found.call_s == pytest.approx(0.001)
    assert found.calls == 1 + 2 + 3 * 10


@pytest.mark.parametrize("call_s", [0.1, 0.5, 2.0])
def test_two_equal_calls_are_enough_where_they_are_long(
    monkeypatch: pytest.MonkeyPatch, call_s: float
):
    found = warm_up(scripted_clock(monkeypatch, [call_s]), limit_s=0.2)
    assert found == WarmUp(2, call_s, True)


def test_two_long_calls_that_differ_are_not_steady(monkeypatch: pytest.MonkeyPatch):
    found = warm_up(scripted_clock(monkeypatch, [2.0, 1.0]), limit_s=0.2)
    assert found == WarmUp(2, 1.5, False)


def test_warming_up_ends_after_a_while_all_the_same(monkeypatch: pytest.MonkeyPatch):
    run = scripted_clock(monkeypatch, [0.1, 0.2] * 100)
    found = warm_up(run)
    assert not found.stable and 10 <= found.calls <= 20


@pytest.mark.parametrize(("call_s", "calls"), [(0.0, 100_000), (1e-3, 5), (1.0, 1), (1e-6, 5000)])
def test_a_sample_has_as_many_calls_as_fit(call_s: float, calls: int):
    assert calls_for(call_s, 0.005) == calls


# ---- what may be said ----------------------------------------------------------------------------


def test_quartiles():
    found = Statistics.of([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (found.lower_s, found.median_s, found.upper_s, found.samples) == (2.0, 3.0, 4.0, 5)
    assert Statistics.of([2.0]) == Statistics(2.0, 2.0, 2.0, 1)


def test_no_gain_where_the_ranges_overlap():
    slow = measurement("slow", 3.0, 4.0, 5.0, 6.0, 7.0)
    fast = measurement("fast", 1.0, 1.0, 2.0, 3.0, 3.0)
    between = measurement("between", 1.0, 2.5, 3.5, 4.5, 6.0)
    assert fast.against(slow) == "fast is 2.5 times faster than slow"
    assert slow.against(fast) == "slow is 2.5 times slower than fast"
    assert "no gain" in between.against(slow) and "no gain" in fast.against(between)


@pytest.mark.parametrize("few", [1, 4])
def test_a_few_samples_are_told_apart_from_nothing(few: int):
    slow, fast = measurement("slow", *[4.0] * few), measurement("fast", *[1.0] * 60)
    for this, other in ((slow, fast), (fast, slow), (slow, slow)):
        assert this.statistics.overlaps(other.statistics)
        assert this.against(other).endswith("too few samples to tell them apart")
    enough = Statistics.of([4.0] * measuring.FEW)
    assert not enough.overlaps(fast.statistics) and not enough.is_few


def test_what_is_no_measurement_is_not_compared():
    with pytest.raises(OptionError, match=r"against\(mg\.bench\(g, x\)\)"):
        measurement("f", 1.0).against(np.tanh)


def test_when_the_first_call_has_paid():
    eager = measurement("eager", *[3.0] * 5, first_s=3.0)
    compiled = measurement("compiled", *[1.0] * 5, first_s=100.0)
    assert compiled.break_even(eager) == 49
    assert compiled.against(eager).endswith("the first call has paid after 49 more")
    assert eager.break_even(compiled) == 0.0
    assert measurement("never", 4.0, first_s=9.0).break_even(eager) == math.inf


def test_an_unsteady_speed_is_told():
    assert "not steady" in str(measurement("f", 1.0, stable=False))
    assert "not steady" not in str(measurement("f", 1.0))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.0, "2 s"),
        (0.0123, "12.3 ms"),
        (4.5e-6, "4.5 µs"),
        (7e-9, "7 ns"),
        (0.0, "0 ns"),
        (9.996e-4, "1 ms"),
        (1234.0, "1230 s"),
    ],
)
def test_durations(seconds: float, text: str):
    assert duration(seconds) == text
