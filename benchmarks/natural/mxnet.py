"""What a user of MXNet writes for each workload, in Gluon.

A function takes `F`, which is `mxnet.nd` where it is called on arrays, and `mxnet.sym` where a
hybridized block is turned into a graph.  What has parameters is a block; `with_parameters` gives it
those of a case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

Tensor = Any
Function = Callable[..., Any]

# ---- elements and rows -------------------------------------------------------------------------


def add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def fancy_func(F: Any, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g


def chain(F: Any, x: Tensor) -> Tensor:
    return 0.5 * x * (1 + F.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softmax(F: Any, x: Tensor) -> Tensor:
    return F.softmax(x)


def reduction(method: str, axis: int) -> Function:
    """The variance is written out: that of `moments` is wrong where it is hybridized."""

    def reduction(F: Any, x: Tensor) -> Tensor:
        if method == "var":
            centred = F.broadcast_sub(x, F.mean(x, axis=axis, keepdims=True))
            return F.mean(F.square(centred), axis=axis)
        return getattr(F, method)(x, axis=axis)

    return reduction


class LayerNorm(nn.HybridBlock):
    """The sum with a residual, normalised, through GELU (MXNet's own is not the one by tanh)."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(in_channels=units)

    def hybrid_forward(self, F: Any, x: Tensor, residual: Tensor) -> Tensor:
        return chain(F, self.norm(x + residual))


# ---- networks ----------------------------------------------------------------------------------


def with_parameters(block: Any, arrays: Mapping[str, Any]) -> Any:
    """The block, initialised; `arrays`: end of a parameter's name → what it is to be."""
    block.initialize()
    parameters = block.collect_params()
    for end, array in arrays.items():
        named(parameters, end).set_data(mx.nd.array(array))
    return block


def named(parameters: Any, end: str) -> Any:
    """The parameter whose name ends so."""
    (found,) = (each for name, each in parameters.items() if name.endswith(end))
    return found


def mlp(*widths: int) -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="")
    inputs = widths[:-1]
    for number, (width, units) in enumerate(zip(inputs, widths[1:], strict=True), 1):
        activation = "relu" if number < len(inputs) else None
        net.add(nn.Dense(units, activation, in_units=width, prefix=f"dense{number}_"))
    return net


def lstm(inputs: int, hidden: int) -> gluon.rnn.LSTM:
    return gluon.rnn.LSTM(hidden, input_size=inputs)


def gru(inputs: int, hidden: int) -> gluon.rnn.GRU:
    return gluon.rnn.GRU(hidden, input_size=inputs)


class Encoder(nn.HybridBlock):
    """Attention of several heads and two dense layers, each with a sum and a normalisation."""

    def __init__(self, units: int, inner: int, heads: int) -> None:
        super().__init__(prefix="")
        self.heads, self.units = heads, units
        with self.name_scope():
            for name in ("query", "key", "value", "output"):
                setattr(self, name, _linear(name, units, units))
            self.hidden = _linear("hidden", inner, units, activation="relu")
            self.last = _linear("last", units, inner)
            self.norm1 = nn.LayerNorm(in_channels=units, prefix="norm1_")
            self.norm2 = nn.LayerNorm(in_channels=units, prefix="norm2_")

    def hybrid_forward(self, F: Any, x: Tensor) -> Tensor:
        query, key, value = (self.split(F, each(x)) for each in (self.query, self.key, self.value))
        scores = F.batch_dot(query, key, transpose_b=True) / math.sqrt(self.units // self.heads)
        mixed = F.batch_dot(F.softmax(scores), value)
        mixed = F.reshape(mixed, shape=(-4, -1, self.heads, 0, 0))  # batch, heads, length, share
        mixed = F.reshape(F.transpose(mixed, axes=(0, 2, 1, 3)), shape=(0, 0, -3))
        h = self.norm1(x + self.output(mixed))
        return self.norm2(h + self.last(self.hidden(h)))

    def split(self, F: Any, x: Tensor) -> Tensor:
        """From (batch, length, units) to (batch x heads, length, a head's share)."""
        parts = F.reshape(x, shape=(0, 0, self.heads, -1))
        return F.reshape(F.transpose(parts, axes=(0, 2, 1, 3)), shape=(-3, 0, 0))


def _linear(name: str, units: int, inputs: int, **more: Any) -> nn.Dense:
    return nn.Dense(units, in_units=inputs, flatten=False, prefix=f"{name}_", **more)


# ---- programs on arrays ------------------------------------------------------------------------


def normal_cdf(F: Any, x: Tensor) -> Tensor:
    """Abramowitz and Stegun 26.2.17: six digits of the normal distribution."""
    k = 1 / (1 + 0.2316419 * F.abs(x))
    series = 1.330274429 * k - 1.821255978
    for term in (1.781477937, -0.356563782, 0.319381530):
        series = series * k + term
    tail = F.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)) * series * k
    return F.where(x < 0, tail, 1 - tail)


def black_scholes(F: Any, spot: Tensor, strike: Tensor, years: Tensor) -> Tensor:
    rate, volatility = 0.02, 0.3
    deviation = volatility * F.sqrt(years)
    d1 = (F.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * F.exp(-rate * years)
    return spot * normal_cdf(F, d1) - discounted * normal_cdf(F, d2)


def mandelbrot(steps: int) -> Function:
    def mandelbrot(F: Any, real: Tensor, imaginary: Tensor) -> Tensor:
        a, b = real, imaginary
        found = F.zeros_like(real)
        for _ in range(steps):
            a2, b2 = a * a, b * b
            found = found + (a2 + b2 <= 4)
            a, b = a2 - b2 + real, 2 * a * b + imaginary
        return found

    return mandelbrot


def heat(F: Any, u: Tensor) -> Tensor:
    inner = F.slice(u, begin=(1, 1), end=(-1, -1))
    below = F.slice(u, begin=(2, 1), end=(None, -1))
    above = F.slice(u, begin=(None, 1), end=(-2, -1))
    right = F.slice(u, begin=(1, 2), end=(-1, None))
    left = F.slice(u, begin=(1, None), end=(-1, -2))
    return inner + 0.1 * (below + above + right + left - 4 * inner)


def pairwise(F: Any, x: Tensor, y: Tensor) -> Tensor:
    differences = F.broadcast_sub(F.expand_dims(x, axis=1), F.expand_dims(y, axis=0))
    return F.sqrt(F.sum(F.square(differences), axis=2))


# ---- loops over numbers ------------------------------------------------------------------------


def sieve(limit: int) -> Tensor:
    """How many primes there are below `limit`; multiples are crossed out as a slice."""
    prime = mx.nd.ones(limit)
    prime[:2] = 0
    i = 2
    while i * i < limit:
        if prime[i].asscalar():
            prime[i * i :: i] = 0
        i += 1
    return prime.sum().astype("int32")
