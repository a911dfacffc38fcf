"""Activations: functions of each element, and distributions along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigraph.errors import unknown
from minigraph.ops import special_ufunc
from minigraph.steering import stop_gradient

# ---- of each element --------------------------------------------------------------------------


def relu(x: Any) -> Any:
    """`max(x, 0)`, whose derivative at 0 is 0."""
    # `maximum` alone shares the gradient at a tie.  The rule `rectified` of `simplify` takes the
    # product away again, once the derivative is recorded.
    return np.maximum(x, 0) * (x > 0)


def leaky_relu(x: Any, slope: Any = 0.01) -> Any:
    """`x` where it is positive, elsewhere `slope * x`."""
    return np.where(x > 0, x, slope * x)


def prelu(x: Any, slope: Any) -> Any:
    """`leaky_relu` with a learned slope: one number, or one for each channel (axis 1)."""
    if slope.ndim == 1 and x.ndim > 2:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return leaky_relu(x, slope)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """`x` where it is positive, elsewhere `alpha * (exp(x) - 1)`."""
    # Where x is large, exp(x) is infinite: it must not be computed there, or its gradient is nan.
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x)))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def selu(x: Any) -> Any:
    """The scaled `elu` that keeps mean 0 and variance 1."""
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """`x` where it is positive, elsewhere `alpha * (exp(x / alpha) - 1)`."""
    return np.where(x > 0, x, alpha * np.expm1(np.where(x > 0, 0, x) / alpha))


def gelu(x: Any, approximation: str = "erf") -> Any:
    """`x` times the normal distribution function of it, exactly ("erf") or nearly ("tanh")."""
    if approximation == "erf":
        return 0.5 * x * (1 + special_ufunc("erf")(x * math.sqrt(0.5)))
    if approximation == "tanh":
        inner = math.sqrt(2 / math.pi) * x * (1 + 0.044715 * (x * x))
        return 0.5 * x * (1 + np.tanh(inner))
    raise unknown("approximation of gelu", approximation, ("erf", "tanh"))


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))`."""
    return special_ufunc("expit")(x)


def log_sigmoid(x: Any) -> Any:
    """`log(sigmoid(x))`."""
    return -softplus(-x)


def hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """`alpha * x + beta`, cut off at 0 and 1."""
    return np.clip(alpha * x + beta, 0, 1)


def silu(x: Any) -> Any:
    """`x * sigmoid(x)`."""
    return x * sigmoid(x)


def swish(x: Any, beta: Any = 1.0) -> Any:
    """`x * sigmoid(beta * x)`."""
    return x * sigmoid(beta * x)


def hard_swish(x: Any) -> Any:
    """`x * clip(x / 6 + 1 / 2, 0, 1)`."""
    return x * hard_sigmoid(x, 1 / 6, 0.5)


def softplus(x: Any) -> Any:
    """`log(1 + exp(x))`."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.absolute(x)))


def softsign(x: Any) -> Any:
    """`x / (1 + |x|)`."""
    return x / (1 + np.absolute(x))


def mish(x: Any) -> Any:
    """`x * tanh(softplus(x))`."""
    return x * np.tanh(softplus(x))


def tanh(x: Any) -> Any:
    """`np.tanh`."""
    return np.tanh(x)


# ---- along an axis ----------------------------------------------------------------------------


def softmax(x: Any, axis: int = -1, temperature: float | None = None) -> Any:
    """`exp(x)` divided by its sum along the axis."""
    powers = np.exp(_shifted(x, axis, temperature))
    return powers / powers.sum(axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int = -1, temperature: float | None = None) -> Any:
    """`log(softmax(x))`, which is finite also where the softmax is 0."""
    shifted = _shifted(x, axis, temperature)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def masked_softmax(x: Any, mask: Any, axis: int = -1, temperature: float | None = None) -> Any:
    """The softmax of the elements where the mask is True; 0 elsewhere, also if it is nowhere."""
    lowest = float(np.finfo(x.dtype).min)
    shifted = _shifted(np.where(mask, x, lowest), axis, temperature)
    powers = np.where(mask, np.exp(shifted), 0)
    total = powers.sum(axis=axis, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def masked_log_softmax(x: Any, mask: Any, axis: int = -1, temperature: float | None = None) -> Any:
    """`log(masked_softmax(x))`: -inf where the mask is False."""
    lowest = float(np.finfo(x.dtype).min)
    shifted = _shifted(np.where(mask, x, lowest), axis, temperature)
    total = np.where(mask, np.exp(shifted), 0).sum(axis=axis, keepdims=True)
    return np.where(mask, shifted - np.log(np.where(total == 0, 1, total)), -math.inf)


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Any:
    """`log(sum(exp(x)))` along the axis."""
    largest = stop_gradient(x.max(axis=axis, keepdims=True))
    found = np.log(np.exp(x - largest).sum(axis=axis, keepdims=True)) + largest
    return found if keepdims else found.squeeze(axis)


def _shifted(x: Any, axis: int, temperature: float | None) -> Any:
    """The largest element along the axis becomes 0, which changes no quotient of exponentials."""
    if temperature is not None:
        x = x / temperature
    return x - stop_gradient(x.max(axis=axis, keepdims=True))


# ---- by name ----------------------------------------------------------------------------------

ACTIVATIONS = {
    function.__name__: function
    for function in (
        elu, gelu, hard_sigmoid, hard_swish, leaky_relu, log_sigmoid, mish, relu, selu, sigmoid,
        silu, softplus, softsign, swish, tanh,
    )
} | {"softrelu": softplus}  # fmt: skip
"""The activations that go by a name, without parameters."""


def activation(name: str) -> Any:
    """The activation of this name.

    Raises:
        OptionError: there is none.
    """
    if name not in ACTIVATIONS:
        raise unknown("activation", name, sorted(ACTIVATIONS))
    return ACTIVATIONS[name]
