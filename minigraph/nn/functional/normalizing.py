"""Normalisation: to mean 0 and variance 1, or to length 1, along some axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.autograd import is_training
from minigraph.errors import ShapeError
from minigraph.mode import here
from minigraph.ops import normalize_axis
from minigraph.steering import stop_gradient

from .choosing import along


def layer_norm(
    x: Any, gamma: Any = None, beta: Any = None, axis: int = -1, epsilon: float = 1e-5
) -> Any:
    """`(x - mean) / sqrt(variance + epsilon)` along one axis, times gamma, plus beta."""
    axis = normalize_axis(axis, x.ndim)
    return _scaled(_standardized(x, axis, epsilon), gamma, beta, axis)


def rms_norm(x: Any, gamma: Any = None, axis: int = -1, epsilon: float = 1e-6) -> Any:
    """`x / sqrt(mean of squares + epsilon)` along one axis, times gamma."""
    axis = normalize_axis(axis, x.ndim)
    squares = np.mean(x * x, axis=axis, keepdims=True)
    return _scaled(x * (1 / np.sqrt(squares + epsilon)), gamma, None, axis)


def group_norm(
    x: Any, gamma: Any = None, beta: Any = None, num_groups: int = 1, epsilon: float = 1e-5
) -> Any:
    """`layer_norm` over each group of channels together with all that follows.

    Args:
        x: (batch, channels, ...).
        gamma: a factor for each channel, shape (channels,).
        beta: a summand for each channel.
        num_groups: a divisor of the number of channels.
        epsilon: what is added to the variance.

    Raises:
        ShapeError: the channels do not fall into that many equal groups.
    """
    batch, channels = x.shape[:2]
    if channels % num_groups:
        raise ShapeError(
            f"{channels} channels do not fall into {num_groups} equal groups", where=here()
        )
    groups = _standardized(x.reshape((batch, num_groups, -1)), 2, epsilon)
    return _scaled(groups.reshape(x.shape), gamma, beta, 1)


def batch_norm(
    x: Any,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    *,
    axis: int = 1,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    use_global_stats: bool = False,
    training: bool | None = None,
) -> Any:
    """Normalise each channel by the statistics of the batch, or by those that ran along.

    While training, `running = momentum * running + (1 - momentum) * batch` is written into the
    running statistics; the variance is that of the batch itself (divided by n, not by n - 1).

    Args:
        x: channels along `axis`.
        gamma: a factor for each channel, or None.
        beta: a summand for each channel, or None.
        running_mean: shape (channels,); written in place.
        running_var: shape (channels,); written in place.
        axis: of channels.
        momentum: how much of the running statistics stays at each step.
        epsilon: what is added to the variance.
        use_global_stats: take the running statistics also while training, and leave them.
        training: None: as `autograd.is_training()` says.
    """
    axis = normalize_axis(axis, x.ndim)
    training = is_training() if training is None else training
    if training and not use_global_stats:
        others = tuple(at for at in range(x.ndim) if at != axis)
        mean = x.mean(axis=others, keepdims=True)
        centered = x - mean
        variance = np.mean(centered * centered, axis=others, keepdims=True)
        for running, batch in ((running_mean, mean), (running_var, variance)):
            found = stop_gradient(batch).reshape(running.shape)
            running[...] = momentum * running + (1 - momentum) * found
    else:
        centered = x - along(running_mean, axis, x.ndim)
        variance = along(running_var, axis, x.ndim)
    return _scaled(centered * (1 / np.sqrt(variance + epsilon)), gamma, beta, axis)


def l2_normalize(x: Any, axis: int = -1, epsilon: float = 1e-10) -> Any:
    """`x / sqrt(sum of squares + epsilon)` along the axis."""
    return x * (1 / np.sqrt((x * x).sum(axis=axis, keepdims=True) + epsilon))


def _standardized(x: Any, axis: int, epsilon: float) -> Any:
    centered = x - x.mean(axis=axis, keepdims=True)
    variance = np.mean(centered * centered, axis=axis, keepdims=True)
    return centered * (1 / np.sqrt(variance + epsilon))


def _scaled(x: Any, gamma: Any, beta: Any, axis: int) -> Any:
    """Times gamma and plus beta (either may be None), which lie along one axis."""
    last = axis == x.ndim - 1
    if gamma is not None:
        x = x * (gamma if last else along(gamma, axis, x.ndim))
    if beta is not None:
        x = x + (beta if last else along(beta, axis, x.ndim))
    return x
