"""Metrics: numbers worked out by hand, in batches of any size, and what does not fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import OptionError, ShapeError
from minigraph.nn import metrics
from minigraph.nn.metrics import (
    F1,
    MAE,
    MSE,
    RMSE,
    Accuracy,
    CompositeMetric,
    CrossEntropy,
    Loss,
    Metric,
    Perplexity,
    TopKAccuracy,
)

LABELS = np.array([0, 1, 2, 1])
SCORES = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.5, 0.3, 0.2], [0.5, 0.4, 0.1]])
NUMBERS = np.array([1.0, 2.0, 3.0, 5.0])
GUESSES = np.array([1.0, 3.0, 3.0, 2.0])
LOGS = -np.log([0.7, 0.6, 0.2, 0.4])

CASES: list[tuple[Metric, Any, Any, float]] = [
    (Accuracy(), LABELS, SCORES, 0.5),
    (Accuracy(), LABELS, SCORES.argmax(1), 0.5),
    (TopKAccuracy(2), LABELS, SCORES, 0.75),
    (TopKAccuracy(9), LABELS, SCORES, 1.0),
    (F1(), [1, 0, 1, 1], np.array([1, 1, 0, 1]), 2 / 3),
    (F1("macro"), LABELS, SCORES, (2 / 4 + 2 / 3 + 0) / 3),
    (F1("micro"), LABELS, SCORES, 0.5),
    (MAE(), NUMBERS, GUESSES, 1.0),
    (MSE(), NUMBERS, GUESSES, 2.5),
    (MSE(), NUMBERS, GUESSES[:, None], 2.5),
    (RMSE(), NUMBERS, GUESSES, math.sqrt(2.5)),
    (CrossEntropy(), LABELS, SCORES, LOGS.mean()),
    (CrossEntropy(ignore_label=2), LABELS, SCORES, LOGS[[0, 1, 3]].mean()),
    (Perplexity(), LABELS, SCORES, math.exp(LOGS.mean())),
    (Loss(), None, NUMBERS, 2.75),
]


@pytest.mark.parametrize(("metric", "labels", "predictions", "value"), CASES)
def test_the_value(metric: Metric, labels: Any, predictions: Any, value: float):
    metric.reset()
    assert math.isnan(metric.get()[1])
    metric.update(labels, predictions)
    name, found = metric.get()
    assert name == metric.name
    assert type(found) is float and found == pytest.approx(value)
    assert repr(metric) == f"{type(metric).__name__}({name}={found:.6g})"


@pytest.mark.parametrize(("metric", "labels", "predictions", "value"), CASES)
def test_batches_count_by_their_length(metric: Metric, labels: Any, predictions: Any, value: float):
    metric.reset()
    for part in (slice(0, 3), slice(3, 4)):
        chosen = None if labels is None else mg.array(labels[part])
        metric.update(chosen, mg.array(predictions[part]))
    assert metric.get()[1] == pytest.approx(value)


def test_several_outputs():
    metric = Accuracy()
    metric.update([LABELS, LABELS], [SCORES, SCORES[:, [0, 2, 1]]])
    assert metric.count == 8 and metric.get()[1] == 3 / 8
    with pytest.raises(ShapeError, match="2 labels for 1 predictions"):
        metric.update([LABELS, LABELS], [SCORES])


@pytest.mark.parametrize("average", ["binary", "macro", "micro"])
def test_f1_is_that_of_scikit_learn(average: Any):
    scikit = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    size = 2 if average == "binary" else 5
    labels, found = rng.integers(0, size, 50), rng.integers(0, size, 50)
    metric = F1(average)
    metric.update(labels, found)
    assert metric.get()[1] == pytest.approx(scikit.f1_score(labels, found, average=average))


def test_a_probability_of_zero_costs_no_infinity():
    metric = CrossEntropy(epsilon=1e-3)
    metric.update(np.array([1]), np.array([[1.0, 0.0]]))
    assert metric.get()[1] == pytest.approx(-math.log(1e-3))


def test_a_composite_metric_gives_lists():
    metric = metrics.create(["acc", Loss()])
    assert isinstance(metric, CompositeMetric)
    metric.add("top_k_accuracy")
    metric.update(LABELS, SCORES)
    assert metric.get() == (
        ["accuracy", "loss", "top_1_accuracy"],
        [0.5, pytest.approx(1 / 3), 0.5],
    )
    metric.reset()
    assert all(map(math.isnan, metric.get()[1]))


@pytest.mark.parametrize("name", metrics.METRICS)
def test_every_name_makes_a_metric(name: str):
    assert isinstance(metrics.create(name), Metric)
    assert type(metrics.create(name.upper().replace("_", "-"))) is type(metrics.create(name))


@pytest.mark.parametrize(
    ("metric", "labels", "predictions", "message"),
    [
        (Accuracy(), np.zeros(3), SCORES, r"labels of shape \(3,\) .* shape \(4, 3\)"),
        (MSE(), np.zeros(3), np.zeros(4), r"shape \(3,\) do not fit predictions of shape \(4,\)"),
        (CrossEntropy(), LABELS + 1, SCORES, "labels run from 1 to 3, for 3 classes"),
        (CrossEntropy(), LABELS, LABELS, "a score for each class"),
        (TopKAccuracy(), LABELS - 1, SCORES, "labels run from -1 to 1"),
        (F1(), np.array([-1, 0]), np.array([1, 0]), "a number from 0 up"),
    ],
)
def test_what_does_not_fit_is_told(metric: Metric, labels: Any, predictions: Any, message: str):
    with pytest.raises(ShapeError, match=message):
        metric.update(labels, predictions)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.create("acuracy"), r"no metric 'acuracy'\n.*did you mean 'accuracy'\?"),
        (lambda: metrics.create(3), "no metric 3"),  # type: ignore[arg-type]
        (lambda: TopKAccuracy(0), "top_k is 0"),
        (lambda: F1("makro"), r"no average 'makro'\n.*did you mean 'macro'\?"),
        (lambda: CrossEntropy(epsilon=-1.0), "epsilon is -1.0"),
    ],
)
def test_wrong_use_is_told(make: Any, message: str):
    with pytest.raises(OptionError, match=message):
        make()
