"""Schedules: PyTorch's numbers, for ints, arrays of counts and traced counts alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import OptionError
from minigraph.nn.schedules import (
    Constant,
    Cosine,
    MultiStep,
    Polynomial,
    Schedule,
    Step,
    WarmUp,
)

ALL = {
    "constant": Constant(0.3),
    "step": Step(0.3, every=5, factor=0.5),
    "multi-step": MultiStep(0.3, milestones=[3, 10], factor=0.1),
    "polynomial": Polynomial(0.3, updates=15, power=2.0),
    "cosine": Cosine(0.3, updates=15, final=0.01),
    "warm-up": WarmUp(0.0, Cosine(0.3, updates=10), updates=4),
}

COUNTS = np.arange(20)


@pytest.mark.parametrize(
    ("schedule", "name", "options"),
    [
        (ALL["constant"], "ConstantLR", {"factor": 1.0}),
        (ALL["step"], "StepLR", {"step_size": 5, "gamma": 0.5}),
        (ALL["multi-step"], "MultiStepLR", {"milestones": [3, 10], "gamma": 0.1}),
        (ALL["polynomial"], "PolynomialLR", {"total_iters": 15, "power": 2.0}),
        (
            WarmUp(0.06, Constant(0.3), updates=4),
            "LinearLR",
            {"start_factor": 0.2, "total_iters": 4},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_the_rates_are_those_of_pytorch(schedule: Schedule, name: str, options: dict[str, Any]):
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    other = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
    rates: list[float] = []
    for _ in COUNTS:
        rates.append(optimizer.param_groups[0]["lr"])
        other.step()
    np.testing.assert_allclose([schedule(int(count)) for count in COUNTS], rates, rtol=1e-12)


def test_a_cosine_begins_ends_and_has_its_middle():
    rates = Cosine(0.3, updates=10, final=0.1)(np.array([0, 5, 10, 99]))
    np.testing.assert_allclose(rates, [0.3, 0.2, 0.1, 0.1], rtol=1e-12)


def test_warming_up_goes_on_where_the_other_begins():
    schedule = WarmUp(0.1, Step(0.5, every=2, factor=0.1), updates=4)
    rates = schedule(np.arange(8))
    np.testing.assert_allclose(rates, [0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.05, 0.05], rtol=1e-12)


def test_a_step_stops_at_the_least():
    assert Step(1.0, every=1, factor=0.1, least=0.05)(9) == 0.05


@pytest.mark.parametrize("schedule", ALL.values(), ids=ALL)
def test_ints_arrays_and_traced_counts_agree(schedule: Schedule):
    one_by_one = [float(schedule(int(count))) for count in COUNTS]
    np.testing.assert_allclose(schedule(COUNTS), one_by_one, rtol=1e-15)
    compiled = mg.jit(lambda count: schedule(count))
    rates = [float(compiled(np.array(count))) for count in COUNTS]
    np.testing.assert_allclose(rates, one_by_one, rtol=1e-15)
    assert len(compiled.cache_info()) == 1


def test_a_schedule_keeps_its_own_milestones():
    milestones = [2, 4]
    schedule = MultiStep(1.0, milestones, factor=0.5)
    milestones[0] = 0
    assert schedule(1) == 1.0
    assert schedule == MultiStep(1.0, (2, 4), factor=0.5)
    assert repr(Cosine(0.1, 100)) == "Cosine(rate=0.1, updates=100, final=0.0)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(-1.0), "Constant: rate is -1.0"),
        (lambda: Constant(True), "rate is True"),
        (lambda: Step(0.1, every=0), "Step: every is 0"),
        (lambda: Cosine(0.1, updates=2.5), "Cosine: updates is 2.5"),
        (lambda: Polynomial(0.1, updates=-1), "updates is -1"),
        (lambda: WarmUp(0.0, 0.1, updates=3), r"not with 0.1\n.*WarmUp\(0.0, Constant\(0.1\)"),
    ],
)
def test_wrong_use_is_told(make: Any, message: str):
    with pytest.raises(OptionError, match=message):
        make()
