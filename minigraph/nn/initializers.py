"""Initializers: the first values of parameters.

An initializer is called with the name of a parameter and its array, and writes into the array:

    class Halves(Initializer):
        def _init_weight(self, name, array):
            array[...] = 0.5

Random ones draw from `minigraph.random`'s generator, so `mg.random.seed(n)` makes them repeatable.
Any function of a name and an array is an initializer too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigraph.errors import OptionError, ShapeError, unknown
from minigraph.random import generator

Values = np.ndarray[Any, Any]
Shape = tuple[int, ...]


class Initializer:
    """Base of the initializers: override `values`, or `_init_weight`."""

    def __call__(self, name: str, array: Any) -> None:
        """Write the first values of the parameter `name` into its array."""
        self._init_weight(name, array)

    def _init_weight(self, name: str, array: Any) -> None:
        array[...] = self.values(array.shape, generator())

    def values(self, shape: Shape, rng: np.random.Generator) -> Any:
        """Values of this shape (or a number for all); what is random comes from `rng`."""
        raise NotImplementedError(
            f"{type(self).__name__} overrides neither `values` nor `_init_weight`"
        )


# ---- numbers ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Zero(Initializer):
    """0."""

    def values(self, shape: Shape, rng: np.random.Generator) -> float:
        return 0.0


@dataclass(frozen=True)
class One(Initializer):
    """1."""

    def values(self, shape: Shape, rng: np.random.Generator) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class Constant(Initializer):
    """A number, or an array of the parameter's shape."""

    value: Any = 0.0

    def values(self, shape: Shape, rng: np.random.Generator) -> Any:
        return self.value


@dataclass(frozen=True)
class LSTMBias(Initializer):
    """0, and `forget_bias` for the forget gate: the second of the four parts of an LSTM's bias."""

    forget_bias: float = 1.0

    def values(self, shape: Shape, rng: np.random.Generator) -> Values:
        if len(shape) != 1 or shape[0] % 4:
            raise ShapeError(
                f"LSTMBias is for the four parts of an LSTM's bias, and the shape is {shape}"
            )
        return np.repeat([0.0, self.forget_bias, 0.0, 0.0], shape[0] // 4)


# ---- of one scale -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Uniform(Initializer):
    """Uniform between -scale and scale."""

    scale: float = 0.07

    def values(self, shape: Shape, rng: np.random.Generator) -> Values:
        return rng.uniform(-self.scale, self.scale, shape)


@dataclass(frozen=True)
class Normal(Initializer):
    """Normal with mean 0 and standard deviation sigma."""

    sigma: float = 0.01

    def values(self, shape: Shape, rng: np.random.Generator) -> Values:
        return rng.normal(0.0, self.sigma, shape)


@dataclass(frozen=True)
class TruncNorm(Initializer):
    """Normal, but nothing further than two standard deviations from the mean."""

    mean: float = 0.0
    stdev: float = 0.01

    def values(self, shape: Shape, rng: np.random.Generator) -> Values:
        drawn = rng.standard_normal(shape)
        while (far := np.abs(drawn) > 2).any():
            drawn[far] = rng.standard_normal(np.count_nonzero(far))
        return self.mean + self.stdev * drawn


# ---- by the size of the layer -----------------------------------------------------------------


@dataclass(frozen=True)
class Orthogonal(Initializer):
    """A random matrix whose rows (or columns, if there are more rows) are orthogonal, times scale.

    The matrix has the first axis as rows and all others as columns.
    """

    scale: float = math.sqrt(2)

    def values(self, shape: Shape, rng: np.random.Generator) -> Values:
        if len(shape) < 2:
            raise ShapeError(f"Orthogonal needs at least two axes, and the shape is {shape}")
        rows, columns = shape[0], math.prod(shape[1:])
        orthogonal, upper = np.linalg.qr(
            rng.standard_normal((max(rows, columns), min(rows, columns)))
        )
        orthogonal *= np.sign(np.diagonal(upper))  # makes every orthogonal matrix equally likely
        matrix = orthogonal if rows >= columns else orthogonal.T
        return self.scale * matrix.reshape(shape)


FACTORS: dict[str, Callable[[float, float], float]] = {
    "in": lambda fan_in, fan_out: fan_in,
    "out": lambda fan_in, fan_out: fan_out,
    "avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
}


@dataclass(frozen=True)
class Xavier(Initializer):
    """Random with variance `magnitude / 3 / factor` (uniform) or `magnitude / factor` (gaussian).

    A parameter of shape (units, in_units, *kernel) has fan_in = in_units * product of kernel and
    fan_out = units * product of kernel.

    Attributes:
        rnd_type: "uniform" or "gaussian".
        factor_type: "in" (fan_in), "out" (fan_out) or "avg" (their mean).
        magnitude: 3 with "uniform" and "avg" is Glorot's and Bengio's own.
    """

    rnd_type: str = "uniform"
    factor_type: str = "avg"
    magnitude: float = 3.0

    def __post_init__(self) -> None:
        if self.rnd_type not in ("uniform", "gaussian"):
            raise unknown("rnd_type", self.rnd_type, ("uniform", "gaussian"))
        if self.factor_type not in FACTORS:
            raise unknown("factor_type", self.factor_type, tuple(FACTORS))

    def values(self, shape: Shape, rng: np.random.Generator) -> Values:
        if len(shape) < 2:
            raise ShapeError(
                f"{type(self).__name__} needs at least two axes, and the shape is {shape}",
                instead='init="uniform" for this parameter',
            )
        kernel = math.prod(shape[2:])
        factor = FACTORS[self.factor_type](shape[1] * kernel, shape[0] * kernel)
        scale = math.sqrt(self.magnitude / factor)
        if self.rnd_type == "uniform":
            return rng.uniform(-scale, scale, shape)
        return rng.normal(0.0, scale, shape)


class MSRAPrelu(Xavier):
    """Gaussian with variance 2 / (1 + slope**2) / factor, for layers before a (leaky) ReLU."""

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2 / (1 + slope**2))


class He(MSRAPrelu):
    """He's own: gaussian with variance 2 / fan_in, for layers before a ReLU."""

    def __init__(self, factor_type: str = "in", slope: float = 0.0) -> None:
        super().__init__(factor_type, slope)


# ---- by name ----------------------------------------------------------------------------------

INITIALIZERS: dict[str, Callable[[], Initializer]] = {
    "constant": Constant,
    "he": He,
    "msraprelu": MSRAPrelu,
    "normal": Normal,
    "one": One,
    "ones": One,
    "orthogonal": Orthogonal,
    "truncnorm": TruncNorm,
    "uniform": Uniform,
    "xavier": Xavier,
    "zero": Zero,
    "zeros": Zero,
}
"""The initializers that go by a name, with their defaults."""


def initializer_of(init: Any) -> Callable[[str, Any], Any]:
    """What `init=` stands for: an initializer, its name, or None for the default (`Uniform()`).

    Raises:
        OptionError: it is none of these.
    """
    if init is None:
        return Uniform()
    if isinstance(init, str):
        if init.lower() not in INITIALIZERS:
            raise unknown("initializer", init, sorted(INITIALIZERS))
        return INITIALIZERS[init.lower()]()
    if isinstance(init, type) and issubclass(init, Initializer):
        return init()
    if not callable(init):
        raise OptionError(
            f"{init!r} is no initializer",
            instead='a name ("xavier"), an Initializer, or a function of a name and an array',
        )
    return init
