"""Optimisers: what one update does to one parameter, in NumPy terms.

An optimiser is a description that never changes.  What changes are arrays, given to it and written
in place: the parameter, its state, the learning rate.  So the same lines run eagerly, compiled by a
`Trainer`, and inside a user's `mg.jit` over a whole training step.

With `g` the gradient, scaled by 1 / batch size, then clipped, the formulas and the defaults are
PyTorch's.  Where those of Gluon (2.0) differ:

    SGD      Gluon keeps `m = momentum * m - rate * g` and adds `m`; here the rate stands outside of
             the momentum.  The same while the rate stays, different once it changes.
             By default its rate is 0.01.
    AdaGrad  By default its epsilon is 1e-6.
    RMSProp  Gluon has momentum when centered only, then with the rate inside as in SGD, and with
             epsilon under the root.  By default rate 0.001, rho 0.9, momentum 0.9.
    Adam     Gluon adds epsilon to the root of the variance before the correction of its bias (the
             paper's "epsilon hat"); here after it.
    AdamW    As Adam; the corrections of the bias are in the rate by which Gluon decays, too, which
             it does after the update.  By default its decay is 0 and epsilon 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from minigraph.errors import OptionError, unknown

from . import functional as F
from .schedules import is_number, not_negative

Array = Any
"""An ndarray, or the traced one of a compiled step."""

State = dict[str, Array]
"""What an optimiser remembers of one parameter, by name; written in place."""


@dataclass(frozen=True)
class Optimizer:
    """Base of the optimisers: a frozen dataclass with `state` and `update`.

    Args:
        learning_rate: a number to begin with, or a schedule (a function of the updates done).
        wd: weight decay, added to the gradient as `wd * weight`.
        clip_gradient: each element of a gradient is cut to `-clip_gradient ... clip_gradient`.
        clip_global_norm: all gradients together are scaled down to at most this norm.
    """

    learning_rate: float | Callable[[Any], Any] = 0.001
    wd: float = 0.0
    clip_gradient: float | None = None
    clip_global_norm: float | None = None

    NOT_NEGATIVE: ClassVar[tuple[str, ...]] = ()
    """Further fields that are numbers from 0 up."""

    FRACTIONS: ClassVar[tuple[str, ...]] = ()
    """Fields that are numbers from 0 up to, but not including, 1."""

    def __post_init__(self) -> None:
        if not callable(self.learning_rate):
            not_negative(self, "learning_rate")
        not_negative(self, "wd", *self.NOT_NEGATIVE)
        for name in ("clip_gradient", "clip_global_norm"):
            if getattr(self, name) is not None:
                not_negative(self, name)
        for name in self.FRACTIONS:
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < 1:
                raise OptionError(
                    f"{type(self).__name__}: {name} is {value!r}",
                    instead="a number from 0 up, less than 1",
                )

    @property
    def schedule(self) -> Callable[[Any], Any] | None:
        """The learning rate as a function of the updates done, if it is one."""
        return self.learning_rate if callable(self.learning_rate) else None

    def state(self, weight: np.ndarray[Any, Any]) -> State:
        """What is remembered of a parameter, before its first update."""
        return {}

    def update(self, weight: Array, gradient: Array, state: State, rate: Array, wd: float) -> None:
        """One update of one parameter, in place.

        Args:
            weight: the parameter.
            gradient: scaled and clipped; of the same shape and dtype.
            state: as `state` made it.
            rate: the learning rate of this parameter: f64[].
            wd: the weight decay of this parameter.
        """
        raise NotImplementedError(f"{type(self).__name__} is an optimiser without update")

    def update_all(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array],
        states: Sequence[State],
        factors: Sequence[tuple[float, float]],
        rate: Array,
        scale: Any,
    ) -> None:
        """One update of several parameters, in place.

        Args:
            weights: the parameters.
            gradients: as they were computed.
            states: of each parameter.
            factors: of the learning rate and of the weight decay, for each parameter.
            rate: the learning rate: f64[].
            scale: of the gradients: 1 / batch size.
        """
        gradients = [gradient * scale for gradient in gradients]
        if self.clip_gradient is not None:
            gradients = [F.clip_by_value(gradient, self.clip_gradient) for gradient in gradients]
        if self.clip_global_norm is not None:
            clipped = F.clip_by_global_norm(gradients, self.clip_global_norm)
            gradients = [as_of(g, clip) for g, clip in zip(gradients, clipped, strict=True)]
        for weight, gradient, state, (rate_factor, wd_factor) in zip(
            weights, gradients, states, factors, strict=True
        ):
            self.update(weight, gradient, state, rate * rate_factor, self.wd * wd_factor)


def as_of(array: Array, other: Array) -> Array:
    """Another array, or a number, in the dtype of an array."""
    return other.astype(array.dtype)


def decayed(weight: Array, gradient: Array, wd: float) -> Array:
    """`g + wd * w`: the gradient of the loss with `wd / 2 * |w|²` added to it."""
    return gradient + wd * weight if wd else gradient


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent.

        m = momentum * m + g
        w = w - rate * m                     (nesterov: g + momentum * m instead of m)

    Args:
        momentum: how much of the last step goes into this one; 0: nothing is remembered.
        nesterov: look ahead by the momentum.
    """

    momentum: float = 0.0
    nesterov: bool = False

    NOT_NEGATIVE = ("momentum",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise OptionError("SGD: nesterov looks ahead by the momentum, which is 0")

    def state(self, weight: np.ndarray[Any, Any]) -> State:
        return {"momentum": np.zeros_like(weight)} if self.momentum else {}

    def update(self, weight: Array, gradient: Array, state: State, rate: Array, wd: float) -> None:
        step = decayed(weight, gradient, wd)
        if self.momentum:
            momentum = state["momentum"]
            momentum[...] = self.momentum * momentum + step
            step = step + self.momentum * momentum if self.nesterov else momentum
        weight -= as_of(weight, rate) * step


@dataclass(frozen=True)
class AdaGrad(Optimizer):
    """Each element's rate falls with the squares of all its gradients so far.

    s = s + g * g
    w = w - rate * g / (sqrt(s) + epsilon)
    """

    learning_rate: float | Callable[[Any], Any] = 0.01
    epsilon: float = 1e-10

    NOT_NEGATIVE = ("epsilon",)

    def state(self, weight: np.ndarray[Any, Any]) -> State:
        return {"squares": np.zeros_like(weight)}

    def update(self, weight: Array, gradient: Array, state: State, rate: Array, wd: float) -> None:
        gradient = decayed(weight, gradient, wd)
        squares = state["squares"]
        squares += gradient * gradient
        weight -= as_of(weight, rate) * gradient / (np.sqrt(squares) + self.epsilon)


@dataclass(frozen=True)
class RMSProp(Optimizer):
    """AdaGrad that forgets: a running mean of the squares.

    s = rho * s + (1 - rho) * g * g
    a = rho * a + (1 - rho) * g          (centered only, else 0)
    m = momentum * m + g / (sqrt(s - a * a) + epsilon)
    w = w - rate * m
    """

    learning_rate: float | Callable[[Any], Any] = 0.01
    rho: float = 0.99
    momentum: float = 0.0
    epsilon: float = 1e-8
    centered: bool = False

    NOT_NEGATIVE = ("epsilon", "momentum")
    FRACTIONS = ("rho",)

    def state(self, weight: np.ndarray[Any, Any]) -> State:
        names = ["squares"]
        names += ["mean"] if self.centered else []
        names += ["momentum"] if self.momentum else []
        return {name: np.zeros_like(weight) for name in names}

    def update(self, weight: Array, gradient: Array, state: State, rate: Array, wd: float) -> None:
        gradient = decayed(weight, gradient, wd)
        squares = state["squares"]
        squares[...] = self.rho * squares + (1.0 - self.rho) * gradient * gradient
        variance = squares
        if self.centered:
            mean = state["mean"]
            mean[...] = self.rho * mean + (1.0 - self.rho) * gradient
            variance = squares - mean * mean
        step = gradient / (np.sqrt(variance) + self.epsilon)
        if self.momentum:
            momentum = state["momentum"]
            momentum[...] = self.momentum * momentum + step
            step = momentum
        weight -= as_of(weight, rate) * step


@dataclass(frozen=True)
class Adam(Optimizer):
    """Running means of the gradient and of its square, corrected for having begun at 0.

    t = t + 1
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    w = w - rate / (1 - beta1**t) * m / (sqrt(v) / sqrt(1 - beta2**t) + epsilon)
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    NOT_NEGATIVE = ("epsilon",)
    FRACTIONS = ("beta1", "beta2")

    def state(self, weight: np.ndarray[Any, Any]) -> State:
        return {
            "count": np.zeros((), np.int64),
            "mean": np.zeros_like(weight),
            "variance": np.zeros_like(weight),
        }

    def update(self, weight: Array, gradient: Array, state: State, rate: Array, wd: float) -> None:
        gradient = decayed(weight, gradient, wd)
        count, mean, variance = state["count"], state["mean"], state["variance"]
        count += 1
        mean += (1.0 - self.beta1) * (gradient - mean)
        variance[...] = self.beta2 * variance + (1.0 - self.beta2) * gradient * gradient
        step = rate / (1.0 - self.beta1**count)
        correction = np.sqrt(1.0 - self.beta2**count)
        root = np.sqrt(variance) / as_of(weight, correction) + self.epsilon
        weight -= as_of(weight, step) * mean / root


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam whose weight decay goes past the means: first `w = w - rate * wd * w`."""

    wd: float = 0.01

    def update(self, weight: Array, gradient: Array, state: State, rate: Array, wd: float) -> None:
        if wd:
            weight *= as_of(weight, 1.0 - rate * wd)
        super().update(weight, gradient, state, rate, 0.0)


OPTIMIZERS: dict[str, type[Optimizer]] = {
    "sgd": SGD,
    "adagrad": AdaGrad,
    "rmsprop": RMSProp,
    "adam": Adam,
    "adamw": AdamW,
}
"""The optimisers by name."""


def create(name: str | Optimizer, options: Mapping[str, Any] | None = None) -> Optimizer:
    """The optimiser of this name (or the one that is given itself).

    Args:
        name: one of `OPTIMIZERS`, in any case.
        options: its fields; also Gluon's `lr_scheduler` for a learning rate that is a schedule.

    Raises:
        OptionError: there is no such optimiser or option, or a number is out of range.
    """
    if isinstance(name, Optimizer):
        if options:
            raise OptionError(
                f"options were given beside an optimiser that has its own: {', '.join(options)}",
                instead=f"{type(name).__name__}({next(iter(options))}=...)",
            )
        return name
    kind = OPTIMIZERS.get(name.lower()) if isinstance(name, str) else None
    if kind is None:
        raise unknown("optimizer", name, list(OPTIMIZERS))
    given = dict(options or {})
    if "lr_scheduler" in given:
        if "learning_rate" in given:
            raise OptionError("lr_scheduler and learning_rate are two learning rates")
        given["learning_rate"] = given.pop("lr_scheduler")
    known = [field.name for field in fields(kind)]
    for option in given:
        if option not in known:
            raise unknown(f"option of {kind.__name__}", option, known)
    return kind(**given)
