"""Losses as layers: one number for each sample of a batch.

All but the batch axis is averaged.  `weight` is a factor for all, `sample_weight` one for each
sample or element; it broadcasts to the elements: for scores of shape (64, 10), (64, 1) weighs each
sample.  `loss.mean().backward()` follows the mean over the batch; `loss.backward()` the sum, which
`Trainer.step(batch_size)` divides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError, unknown
from minigraph.mode import here
from minigraph.ops import normalize_axis

from . import functional as F
from .hybrid import HybridBlock


class Loss(HybridBlock):
    """Base of the losses.

    Args:
        weight: a factor for all; None: 1.
        batch_axis: the axis of samples.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__()
        self.weight = weight
        self.batch_axis = batch_axis

    def weigh(self, loss: Any, sample_weight: Any) -> Any:
        """Weigh each element, and average what belongs to one sample."""
        if sample_weight is not None:
            loss = loss * sample_weight
        if self.weight is not None:
            loss = loss * self.weight
        others = self._others(loss)
        if all(type(loss.shape[axis]) is int and loss.shape[axis] == 1 for axis in others):
            return loss.squeeze(axis=others)
        return loss.mean(axis=others)

    def _others(self, x: Any) -> tuple[int, ...]:
        """All axes but that of the batch."""
        batch_axis = normalize_axis(self.batch_axis, x.ndim)
        return tuple(axis for axis in range(x.ndim) if axis != batch_axis)

    def extra_repr(self) -> str:
        return f"batch_axis={self.batch_axis}, weight={self.weight}"


def like(label: Any, pred: Any) -> Any:
    """The label in the shape of the prediction.

    Raises:
        ShapeError: it has another number of elements.
        DtypeError: it is no array.
    """
    if not hasattr(label, "shape"):
        raise DtypeError(
            f"labels are an array, nothing of type {type(label).__name__}",
            where=here(),
            instead="one label for each example: np.full(len(pred), label)",
        )
    if label.shape == pred.shape:
        return label
    try:
        return label.reshape(pred.shape)
    except ValueError as error:
        raise ShapeError(
            f"a label of shape {label.shape} for predictions of shape {pred.shape}",
            where=here(),
            instead="as many labels as predictions",
        ) from error


class L2Loss(Loss):
    """Half the square of the difference."""

    def __init__(self, weight: float = 1.0, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        difference = pred - like(label, pred)
        return self.weigh(0.5 * (difference * difference), sample_weight)


class L1Loss(Loss):
    """The absolute difference."""

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self.weigh(np.absolute(pred - like(label, pred)), sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of yes or no, for labels between 0 and 1.

    Args:
        from_sigmoid: predictions are probabilities; else scores.
        weight: a factor for all.
        batch_axis: the axis of samples.
    """

    def __init__(
        self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0
    ) -> None:
        super().__init__(weight, batch_axis)
        self.from_sigmoid = from_sigmoid

    def forward(
        self, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None
    ) -> Any:
        """The loss; `pos_weight` weighs what the label says yes to, e.g. shape (1, classes)."""
        loss = F.binary_cross_entropy(pred, like(label, pred), pos_weight, self.from_sigmoid)
        return self.weigh(loss, sample_weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """Cross entropy of one class among several.

    Args:
        axis: of the classes.
        sparse_label: labels are the numbers of classes, of the shape of predictions without that
            axis; else distributions over the classes, of the shape of predictions.
        from_logits: predictions are already logarithms of probabilities.
        weight: a factor for all.
        batch_axis: the axis of samples.
        ignore_label: elements with this label count as 0.
        label_smoothing: this much of each label goes to all classes in equal shares.
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        *,
        ignore_label: int | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, batch_axis)
        self.axis = axis
        self.sparse_label = sparse_label
        self.from_logits = from_logits
        self.ignore_label = ignore_label
        self.label_smoothing = label_smoothing

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self.sparse_label:
            label = like(label, pred)
        loss = F.cross_entropy(
            pred,
            label,
            self.axis,
            True,
            sparse_label=self.sparse_label,
            from_logits=self.from_logits,
            ignore_label=self.ignore_label,
            label_smoothing=self.label_smoothing,
        )
        return self.weigh(loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence of the label from the prediction.

    Args:
        from_logits: predictions are logarithms of probabilities; else scores.
        axis: of the classes, for the softmax of scores.
        weight: a factor for all.
        batch_axis: the axis of samples.
    """

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
    ) -> None:
        super().__init__(weight, batch_axis)
        self.from_logits = from_logits
        self.axis = axis

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        logs = pred if self.from_logits else F.log_softmax(pred, self.axis)
        return self.weigh(F.kl_divergence(logs, like(label, pred)), sample_weight)


class HuberLoss(Loss):
    """Half the square of small differences over rho, |difference| - rho / 2 of large ones.

    Args:
        rho: from where a difference is large.
        weight: a factor for all.
        batch_axis: the axis of samples.
    """

    def __init__(self, rho: float = 1.0, weight: float | None = None, batch_axis: int = 0) -> None:
        super().__init__(weight, batch_axis)
        self.rho = rho

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self.weigh(F.huber(pred, like(label, pred), self.rho), sample_weight)


class _MarginLoss(Loss):
    """A loss that is 0 beyond a margin."""

    def __init__(
        self, margin: float = 1.0, weight: float | None = None, batch_axis: int = 0
    ) -> None:
        super().__init__(weight, batch_axis)
        self.margin = margin


class HingeLoss(_MarginLoss):
    """`max(0, margin - pred * label)`, for labels -1 and 1.

    Args:
        margin: from where a prediction is good enough.
        weight: a factor for all.
        batch_axis: the axis of samples.
    """

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self.weigh(F.hinge(pred, like(label, pred), self.margin), sample_weight)


class SquaredHingeLoss(HingeLoss):
    """`max(0, margin - pred * label)` squared, for labels -1 and 1."""

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.hinge(pred, like(label, pred), self.margin)
        return self.weigh(loss * loss, sample_weight)


class LogisticLoss(Loss):
    """`log(1 + exp(-pred * label))`, for labels -1 and 1, or 0 and 1.

    Args:
        weight: a factor for all.
        batch_axis: the axis of samples.
        label_format: "signed" (-1 and 1) or "binary" (0 and 1).
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed"
    ) -> None:
        super().__init__(weight, batch_axis)
        if label_format not in ("signed", "binary"):
            raise unknown("label_format", label_format, ("signed", "binary"))
        self.label_format = label_format

    def forward(self, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        label = like(label, pred)
        if self.label_format == "signed":
            label = (label + 1) * 0.5
        return self.weigh(F.binary_cross_entropy(pred, label), sample_weight)


class TripletLoss(_MarginLoss):
    """`max(0, |positive - pred|**2 - |negative - pred|**2 + margin)` of each sample's vectors.

    Args:
        margin: how much further the negative has to be.
        weight: a factor for all.
        batch_axis: the axis of samples.
    """

    def forward(self, pred: Any, positive: Any, negative: Any, sample_weight: Any = None) -> Any:
        near, far = like(positive, pred) - pred, like(negative, pred) - pred
        excess = (near * near - far * far).sum(axis=self._others(pred))
        return self.weigh(F.relu(excess + self.margin), sample_weight)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cosine where the label is 1; max(0, cosine - margin) where it is -1.

    Args:
        weight: a factor for all.
        batch_axis: the axis of samples.
        margin: how much of a cosine does not matter where vectors should differ.
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, margin: float = 0.0
    ) -> None:
        super().__init__(margin, weight, batch_axis)

    def forward(self, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """The loss of vectors along the last axis; the label has the shape without that axis."""
        cosine = F.cosine_similarity(like(input1, input2), input2)
        apart = F.relu(cosine - self.margin)
        label = like(label, cosine)
        return self.weigh(np.where(label == 1, 1 - cosine, apart), sample_weight)


class PoissonNLLLoss(Loss):
    """How unlikely a count is under a Poisson distribution.

    Args:
        weight: a factor for all.
        from_logits: predictions are logarithms of the mean; else the mean.
        batch_axis: the axis of samples.
        compute_full: add log(target!) as Stirling's formula has it, for targets above 1.
        epsilon: keeps the logarithm of a mean from -inf.
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(weight, batch_axis)
        self.from_logits = from_logits
        self.compute_full = compute_full
        self.epsilon = epsilon

    def forward(self, pred: Any, target: Any, sample_weight: Any = None) -> Any:
        loss = F.poisson_nll(
            pred, like(target, pred), self.from_logits, self.compute_full, self.epsilon
        )
        return self.weigh(loss, sample_weight)
