"""How far predictions are from what they should be; one number for each element, nothing averaged.

The losses of `minigraph.nn` are these, weighted and averaged over all but the batch axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.errors import OptionError

from .activations import log_softmax, relu, softplus
from .choosing import as_integers, pick, with_axis


def cross_entropy(
    x: Any,
    labels: Any,
    axis: int = -1,
    keepdims: bool = False,
    *,
    sparse_label: bool = True,
    from_logits: bool = False,
    ignore_label: int | None = None,
    label_smoothing: float = 0.0,
) -> Any:
    """`-log(softmax(x))` at the label.

    Args:
        x: scores of the classes along `axis`.
        labels: integers of the shape of x without the axis; with `sparse_label=False` a
            distribution over the classes, of the shape of x.
        axis: of the classes; it is not there in the result.
        keepdims: it is there, with length 1.
        sparse_label: labels are integers.
        from_logits: x is already log(softmax(...)).
        ignore_label: where the label is this one, the loss is 0.
        label_smoothing: this much of each label goes to all classes in equal shares.

    Raises:
        IndexError: a label is no class.
        ShapeError: labels have another shape.
    """
    if ignore_label is not None and not sparse_label:
        raise OptionError("ignore_label= needs labels that are integers (sparse_label=True)")
    logs = x if from_logits else log_softmax(x, axis)
    ignored = None
    if not sparse_label:
        loss = -(logs * labels).sum(axis=axis, keepdims=True)
    else:
        labels = with_axis(
            labels, axis, x, "; sparse_label=False for distributions over the classes"
        )
        labels = as_integers(labels)
        if ignore_label is not None:
            ignored = labels == ignore_label
            labels = np.where(ignored, 0, labels)
        loss = -pick(logs, labels, axis, keepdims=True)
    if label_smoothing:
        everywhere = logs.mean(axis=axis, keepdims=True)
        loss = (1 - label_smoothing) * loss - label_smoothing * everywhere
    if ignored is not None:
        loss = np.where(ignored, 0, loss)
    return loss if keepdims else loss.squeeze(axis)


def binary_cross_entropy(
    x: Any, labels: Any, pos_weight: Any = None, from_sigmoid: bool = False
) -> Any:
    """`-labels * log(p) - (1 - labels) * log(1 - p)` with p = sigmoid(x), or x itself.

    Args:
        x: scores, or probabilities with `from_sigmoid=True`.
        labels: between 0 and 1.
        pos_weight: a factor for the first summand.
        from_sigmoid: x is a probability.
    """
    if from_sigmoid:
        positive = np.log(x + 1e-12) * labels
        positive = positive if pos_weight is None else positive * pos_weight
        return -(positive + np.log(1 - x + 1e-12) * (1 - labels))
    if pos_weight is None:
        return softplus(x) - x * labels
    return x - x * labels + (1 + (pos_weight - 1) * labels) * softplus(-x)


def huber(x: Any, labels: Any, rho: float = 1.0) -> Any:
    """Half the square of small differences over rho; |difference| - rho / 2 of large ones."""
    distance = np.absolute(x - labels)
    return np.where(distance > rho, distance - 0.5 * rho, distance * distance * (0.5 / rho))


def hinge(x: Any, labels: Any, margin: float = 1.0) -> Any:
    """`max(0, margin - x * labels)` for labels -1 and 1."""
    return relu(margin - x * labels)


def kl_divergence(logs: Any, labels: Any) -> Any:
    """`labels * (log(labels) - logs)`: of distributions."""
    return labels * (np.log(labels + 1e-12) - logs)


def poisson_nll(
    x: Any,
    labels: Any,
    from_logits: bool = True,
    compute_full: bool = False,
    epsilon: float = 1e-8,
) -> Any:
    """-log of the probability of a count under a Poisson distribution of mean exp(x), or x.

    Without `compute_full` what does not depend on x is left out; with it, log(labels!) is put in
    as Stirling's formula has it, for labels above 1.
    """
    loss = np.exp(x) - labels * x if from_logits else x - labels * np.log(x + epsilon)
    if not compute_full:
        return loss
    counts = np.where(labels > 1, labels, 1)
    factorial = counts * np.log(counts) - counts + 0.5 * np.log(2 * np.pi * counts)
    return loss + np.where(labels > 1, factorial, 0)


def cosine_similarity(x: Any, y: Any, axis: int = -1, epsilon: float = 1e-12) -> Any:
    """The cosine of the angle between two vectors that lie along the axis."""
    lengths = [np.sqrt((z * z).sum(axis=axis) + epsilon) for z in (x, y)]
    return (x * y).sum(axis=axis) / (lengths[0] * lengths[1])
