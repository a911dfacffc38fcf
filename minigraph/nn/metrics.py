"""Metrics: what is counted while training and testing, over as many batches as one likes.

    metric = Accuracy()
    for x, y in loader:
        metric.update(y, net(x))
    name, value = metric.get()

Each sums over all that it was given, so that a short last batch counts by its length.  Labels and
predictions are arrays of any kind, or lists with an array for each output of a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph.errors import OptionError, ShapeError, unknown

from .schedules import is_number

Numbers = np.ndarray[Any, Any]


class Metric:
    """Base of the metrics: the mean of what `measure` says.

    Attributes:
        name: as `get` gives it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self.total = 0.0
        self.count = 0

    def update(self, labels: Any, predictions: Any) -> None:
        """Count a batch.

        Raises:
            ShapeError: labels and predictions do not fit together.
        """
        for label, prediction in pairs(labels, predictions):
            total, count = self.measure(label, prediction)
            self.total += float(total)
            self.count += int(count)

    def measure(self, labels: Numbers, predictions: Numbers) -> tuple[Any, int]:
        """The sum over a batch, and over how many."""
        raise NotImplementedError(f"{type(self).__name__} is a metric without measure")

    def value(self) -> float:
        """The metric so far; NaN before the first batch."""
        return self.total / self.count if self.count else math.nan

    def get(self) -> tuple[Any, Any]:
        """The name and the value so far."""
        return self.name, self.value()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}={self.value():.6g})"


def pairs(labels: Any, predictions: Any) -> list[tuple[Numbers, Numbers]]:
    """Labels and predictions as arrays, one pair for each output.

    Raises:
        ShapeError: there are more of the one than of the other.
    """
    several = isinstance(labels, list | tuple) and isinstance(predictions, list | tuple)
    if not several or not any(map(np.ndim, labels)):  # plain numbers are one array
        labels, predictions = [labels], [predictions]
    if len(labels) != len(predictions):
        raise ShapeError(f"there are {len(labels)} labels for {len(predictions)} predictions")
    return [(np.asarray(a), np.asarray(b)) for a, b in zip(labels, predictions, strict=True)]


def classes(labels: Numbers, predictions: Numbers, axis: int) -> tuple[Numbers, Numbers]:
    """The class of each example, as labelled and as predicted, where scores become classes.

    Raises:
        ShapeError: they do not fit together.
    """
    found = predictions.argmax(axis) if predictions.ndim > labels.ndim else predictions
    if found.shape != labels.shape:
        raise ShapeError(
            f"labels of shape {labels.shape} do not fit predictions of shape {predictions.shape}",
            instead="predictions with one more axis (a score for each class), or of the same shape",
        )
    return labels.astype(np.int64).ravel(), found.astype(np.int64).ravel()


def scores(labels: Numbers, predictions: Numbers) -> tuple[Numbers, Numbers]:
    """The class of each example, and a row of scores for it.

    Raises:
        ShapeError: they do not fit together, or a label names no column.
    """
    if predictions.ndim != labels.ndim + 1 or predictions.shape[:-1] != labels.shape:
        raise ShapeError(
            f"labels of shape {labels.shape} do not fit predictions of shape {predictions.shape}",
            instead="predictions with one more axis: a score for each class",
        )
    wanted = labels.astype(np.int64).ravel()
    size = predictions.shape[-1]
    if wanted.size and (wanted.min() < 0 or wanted.max() >= size):
        raise ShapeError(f"labels run from {wanted.min()} to {wanted.max()}, for {size} classes")
    return wanted, predictions.reshape(-1, size)


class Accuracy(Metric):
    """The share of examples whose class is predicted.

    Args:
        axis: of the predictions; along it lie the scores of the classes.
        name: as `get` gives it.
    """

    def __init__(self, axis: int = -1, name: str = "accuracy") -> None:
        super().__init__(name)
        self.axis = axis

    def measure(self, labels: Numbers, predictions: Numbers) -> tuple[Any, int]:
        wanted, found = classes(labels, predictions, self.axis)
        return np.count_nonzero(wanted == found), wanted.size


class TopKAccuracy(Metric):
    """The share of examples whose class is among the `top_k` with the highest scores."""

    def __init__(self, top_k: int = 1, name: str | None = None) -> None:
        if not isinstance(top_k, int) or top_k < 1:
            raise OptionError(f"top_k is {top_k!r}", instead="a whole number from 1 up")
        super().__init__(name or f"top_{top_k}_accuracy")
        self.top_k = top_k

    def measure(self, labels: Numbers, predictions: Numbers) -> tuple[Any, int]:
        wanted, rows = scores(labels, predictions)
        best = np.argsort(-rows, axis=1, kind="stable")[:, : self.top_k]
        return np.count_nonzero(best == wanted[:, None]), wanted.size


class F1(Metric):
    """The harmonic mean of precision and recall.

    Args:
        average: "binary": of class 1; "macro": the mean over all classes; "micro": of all classes
            counted together.
        axis: of the predictions; along it lie the scores of the classes.
        name: as `get` gives it.
    """

    AVERAGES = ("binary", "macro", "micro")

    def __init__(self, average: str = "binary", axis: int = -1, name: str = "f1") -> None:
        if average not in self.AVERAGES:
            raise unknown("average", average, self.AVERAGES)
        super().__init__(name)
        self.average = average
        self.axis = axis

    def reset(self) -> None:
        """Forget all batches."""
        self.counts = np.zeros((3, 0), np.int64)  # correct, labelled, predicted: of each class

    def update(self, labels: Any, predictions: Any) -> None:
        """Count a batch."""
        for label, prediction in pairs(labels, predictions):
            wanted, found = classes(label, prediction, self.axis)
            if min(wanted.min(initial=0), found.min(initial=0)) < 0:
                raise ShapeError("a class is a number from 0 up")
            size = max(wanted.max(initial=1), found.max(initial=1), self.counts.shape[1] - 1) + 1
            grown = np.pad(self.counts, ((0, 0), (0, size - self.counts.shape[1])))
            batch = [
                np.bincount(c, minlength=size) for c in (wanted[wanted == found], wanted, found)
            ]
            self.counts = grown + np.stack(batch)

    def value(self) -> float:
        """The metric so far: 0 where nothing is correct, NaN before the first batch."""
        if not self.counts.size:
            return math.nan
        correct, labelled, predicted = self.counts
        if self.average == "micro":
            return float(2 * correct.sum() / (labelled + predicted).sum())
        each = 2 * correct / np.maximum(labelled + predicted, 1)
        if self.average == "binary":
            return float(each[1])
        return float(each[labelled + predicted > 0].mean())


class MAE(Metric):
    """The mean of the absolute errors."""

    def __init__(self, name: str = "mae") -> None:
        super().__init__(name)

    def measure(self, labels: Numbers, predictions: Numbers) -> tuple[Any, int]:
        return np.abs(errors(labels, predictions)).sum(), labels.size


class MSE(Metric):
    """The mean of the squared errors."""

    def __init__(self, name: str = "mse") -> None:
        super().__init__(name)

    def measure(self, labels: Numbers, predictions: Numbers) -> tuple[Any, int]:
        return np.square(errors(labels, predictions)).sum(), labels.size


class RMSE(MSE):
    """The root of the mean of the squared errors."""

    def __init__(self, name: str = "rmse") -> None:
        super().__init__(name)

    def value(self) -> float:
        return math.sqrt(super().value())


def errors(labels: Numbers, predictions: Numbers) -> Numbers:
    """Prediction minus label, in float64; a column of predictions may stand for a vector.

    Raises:
        ShapeError: they do not fit together.
    """
    if labels.size != predictions.size or labels.shape[:1] != predictions.shape[:1]:
        raise ShapeError(
            f"labels of shape {labels.shape} do not fit predictions of shape {predictions.shape}"
        )
    return predictions.astype(np.float64) - labels.astype(np.float64).reshape(predictions.shape)


class CrossEntropy(Metric):
    """The mean of `-log(p)`, where `p` is the probability that is predicted for the label.

    Args:
        epsilon: the least probability, so that a mistake costs no infinity.
        ignore_label: examples with this label do not count.
        name: as `get` gives it.
    """

    def __init__(
        self,
        epsilon: float = 1e-12,
        ignore_label: int | None = None,
        name: str = "cross_entropy",
    ) -> None:
        if not is_number(epsilon) or not 0 <= epsilon < 1:
            raise OptionError(f"epsilon is {epsilon!r}", instead="a number from 0 up, less than 1")
        super().__init__(name)
        self.epsilon = epsilon
        self.ignore_label = ignore_label

    def measure(self, labels: Numbers, predictions: Numbers) -> tuple[Any, int]:
        if self.ignore_label is not None:
            counts = labels != self.ignore_label
            labels, predictions = labels[counts], predictions[counts]
        wanted, rows = scores(labels, predictions)
        chosen = rows[np.arange(wanted.size), wanted].astype(np.float64)
        return -np.log(np.maximum(chosen, self.epsilon)).sum(), wanted.size


class Perplexity(CrossEntropy):
    """The exponential of the cross-entropy: among how many equal choices one would be as unsure."""

    def __init__(
        self,
        epsilon: float = 1e-12,
        ignore_label: int | None = None,
        name: str = "perplexity",
    ) -> None:
        super().__init__(epsilon, ignore_label, name)

    def value(self) -> float:
        return float(np.exp(super().value()))


class Loss(Metric):
    """The mean of the losses, which stand where others take predictions; labels are not read."""

    def __init__(self, name: str = "loss") -> None:
        super().__init__(name)

    def update(self, labels: Any, predictions: Any) -> None:
        """Count the losses of a batch."""
        for losses in predictions if isinstance(predictions, list | tuple) else [predictions]:
            values = np.asarray(losses, np.float64)
            self.total += float(values.sum())
            self.count += values.size


class CompositeMetric(Metric):
    """Several metrics that count the same batches; `get` gives a list of each.

    Args:
        metrics: metrics, or their names.
        name: of all together.
    """

    def __init__(self, metrics: Sequence[Metric | str] = (), name: str = "composite") -> None:
        self.metrics = [create(metric) for metric in metrics]
        super().__init__(name)

    def add(self, metric: Metric | str) -> None:
        """One more."""
        self.metrics.append(create(metric))

    def reset(self) -> None:
        """Forget all batches."""
        for metric in self.metrics:
            metric.reset()

    def update(self, labels: Any, predictions: Any) -> None:
        """Count a batch."""
        for metric in self.metrics:
            metric.update(labels, predictions)

    def get(self) -> tuple[list[str], list[float]]:
        """The names and the values so far."""
        return [metric.name for metric in self.metrics], [m.value() for m in self.metrics]

    def __repr__(self) -> str:
        return f"CompositeMetric({', '.join(map(repr, self.metrics))})"


METRICS: dict[str, Callable[..., Metric]] = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "top_k_accuracy": TopKAccuracy,
    "f1": F1,
    "mae": MAE,
    "mse": MSE,
    "rmse": RMSE,
    "cross_entropy": CrossEntropy,
    "ce": CrossEntropy,
    "perplexity": Perplexity,
    "loss": Loss,
    "composite": CompositeMetric,
}
"""The metrics by name."""


def create(metric: str | Metric | Sequence[str | Metric], **options: Any) -> Metric:
    """The metric of this name (or the one that is given itself); a list makes a composite one.

    Args:
        metric: one of `METRICS`, in any case; `-` is read as `_`.
        **options: what its class takes.

    Raises:
        OptionError: there is no such metric.
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, list | tuple):
        return CompositeMetric(metric, **options)
    name = metric.lower().replace("-", "_") if isinstance(metric, str) else ""
    if name not in METRICS:
        raise unknown("metric", metric, list(METRICS))
    return METRICS[name](**options)
