"""What is measured: each work once as a formula, with the bars that minigraph is held to.

A formula takes a namespace, `numpy`, `jax.numpy` or `torch`, and what is bound to the function (the
parameters of a network), and returns the function of the inputs.  Where PyTorch has a function of
its own for the work, `native` gives that in place of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray[Any, Any], ...]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Bar:
    """The most that minigraph may take, as a share of what the fastest of these peers takes."""

    at_most: float
    peers: tuple[str, ...]


@dataclass(frozen=True)
class Work:
    """One row of the comparison.

    Attributes:
        name: for the command line; title: for people.
        formula: from a namespace, and the bound arrays, to the function.
        inputs: the arguments, from a generator and a scale (1.0: as the title says).
        peers: who is measured, besides those of the bars.
        bound: the arrays that belong to the function, from a generator.
        native: the same in PyTorch's own words, from `torch` and the bound arrays as tensors.
        error: how far a result is from NumPy's; tolerance: the most it may be.
    """

    name: str
    title: str
    formula: Function
    inputs: Callable[[np.random.Generator, float], Arrays]
    bars: tuple[Bar, ...]
    peers: tuple[str, ...] = ()
    bound: Callable[[np.random.Generator], Arrays] = lambda rng: ()
    native: Function | None = None
    error: Callable[[Any, Any], float] = field(
        default=lambda found, wanted: relative(found, wanted)
    )
    tolerance: float = 1e-4

    @property
    def everybody(self) -> tuple[str, ...]:
        """Every peer once, those of the bars first."""
        return tuple(dict.fromkeys([p for bar in self.bars for p in bar.peers] + [*self.peers]))


def relative(found: Any, wanted: Any) -> float:
    """The largest difference, as a share of the largest number wanted."""
    return float(np.max(np.abs(found - wanted)) / np.max(np.abs(wanted)))


def share_that_differs(found: Any, wanted: Any) -> float:
    return float(np.mean(found != wanted))


# ---- a network ---------------------------------------------------------------------------------

WIDTHS = (512, 256, 128, 2)


def mlp(xp: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Function:
    def mlp(x: Any) -> Any:
        h = xp.maximum(x @ w1 + b1, 0)
        h = xp.maximum(h @ w2 + b2, 0)
        return h @ w3 + b3

    return mlp


def torch_mlp(torch: Any, *bound: Any) -> Function:
    layers: list[Any] = []
    for weight, bias in zip(bound[::2], bound[1::2], strict=True):
        inputs, outputs = weight.shape
        layer = torch.nn.Linear(inputs, outputs)
        layer.weight = torch.nn.Parameter(weight.T.contiguous())
        layer.bias = torch.nn.Parameter(bias)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def parameters(rng: np.random.Generator) -> Arrays:
    """Weight and bias of each layer, in turns."""
    arrays: list[Any] = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:], strict=False):
        arrays += [
            single(rng, inputs, outputs) / np.float32(math.sqrt(inputs)),
            single(rng, outputs),
        ]
    return tuple(arrays)


# ---- over elements and rows --------------------------------------------------------------------


def gelu(xp: Any) -> Function:
    factor = math.sqrt(2 / math.pi)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + xp.tanh(factor * (x + 0.044715 * x * x * x)))

    return gelu


def softmax(xp: Any) -> Function:
    def softmax(x: Any) -> Any:
        e = xp.exp(x - xp.amax(x, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)

    return softmax


def layer_norm(xp: Any, scale: Any, shift: Any) -> Function:
    activation = gelu(xp)

    def layer_norm(x: Any, residual: Any) -> Any:
        h = x + residual
        h = (h - h.mean(axis=1, keepdims=True)) / xp.sqrt(h.var(axis=1, keepdims=True) + 1e-5)
        return activation(h * scale + shift)

    return layer_norm


def torch_layer_norm(torch: Any, scale: Any, shift: Any) -> Function:
    functional = torch.nn.functional

    def layer_norm(x: Any, residual: Any) -> Any:
        h = functional.layer_norm(x + residual, scale.shape, scale, shift)
        return functional.gelu(h, approximate="tanh")

    return layer_norm


def reduction(method: str, axis: int) -> Function:
    def formula(xp: Any) -> Function:
        def reduction(x: Any) -> Any:
            return getattr(x, method)(axis=axis)

        return reduction

    return formula


# ---- programs ----------------------------------------------------------------------------------


def normal_cdf(xp: Any, x: Any) -> Any:
    """Abramowitz and Stegun 26.2.17: six digits of the normal distribution."""
    k = 1 / (1 + 0.2316419 * xp.abs(x))
    series = 1.330274429
    for term in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        series = series * k + term
    tail = xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)) * series * k
    return xp.where(x < 0, tail, 1 - tail)


def black_scholes(xp: Any) -> Function:
    rate, volatility = 0.02, 0.3

    def black_scholes(spot: Any, strike: Any, years: Any) -> Any:
        deviation = volatility * xp.sqrt(years)
        d1 = (xp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
        d2 = d1 - deviation
        discounted = strike * xp.exp(-rate * years)
        return spot * normal_cdf(xp, d1) - discounted * normal_cdf(xp, d2)

    return black_scholes


def mandelbrot(xp: Any) -> Function:
    def mandelbrot(real: Any, imaginary: Any) -> Any:
        a, b = real, imaginary
        steps = xp.zeros_like(real)
        for _ in range(20):
            a2, b2 = a * a, b * b
            steps = steps + (a2 + b2 <= 4)
            a, b = a2 - b2 + real, 2 * a * b + imaginary
        return steps

    return mandelbrot


def heat(xp: Any) -> Function:
    def heat(u: Any) -> Any:
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u[1:-1, 1:-1] + 0.1 * (around - 4 * u[1:-1, 1:-1])

    return heat


def pairwise(xp: Any) -> Function:
    def pairwise(x: Any, y: Any) -> Any:
        return xp.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1))

    return pairwise


# ---- inputs ------------------------------------------------------------------------------------


def single(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.normal(size=shape).astype(np.float32)


def scaled(size: int, scale: float) -> int:
    return max(4, round(size * scale))


def matrices(rows: int, columns: int, count: int = 1) -> Callable[..., Arrays]:
    """Float32; the rows are scaled."""
    return lambda rng, scale: tuple(single(rng, scaled(rows, scale), columns) for _ in range(count))


def options(rng: np.random.Generator, scale: float) -> Arrays:
    size = scaled(1_000_000, scale)
    return tuple(rng.uniform(low, high, size) for low, high in ((50, 150), (50, 150), (0.1, 2)))


def plane(rng: np.random.Generator, scale: float) -> Arrays:
    real, imaginary = np.meshgrid(
        np.linspace(-2, 0.6, scaled(1000, scale)), np.linspace(-1.2, 1.2, scaled(1000, scale))
    )
    return real, imaginary


def points(rng: np.random.Generator, scale: float) -> Arrays:
    return tuple(rng.normal(size=(scaled(1000, scale), 3)) for _ in range(2))


# ---- all of it ---------------------------------------------------------------------------------

TORCH = ("torch eager", "torch.jit.script", "torch.compile")
SMALL_BARS = (
    Bar(0.40, ("torch.jit.script",)),
    Bar(0.25, ("torch eager, with grad",)),
    Bar(0.30, ("torch eager",)),
    Bar(0.90, ("ONNX Runtime",)),
)
PROGRAM_BARS = (Bar(0.5, ("NumPy",)), Bar(1.0, ("torch.compile",)), Bar(1.0, ("JAX",)))


def _mlp(batch: int) -> Work:
    bars = SMALL_BARS if batch == 1 else (Bar(1.0, ("torch eager, with grad", *TORCH)),)
    return Work(
        f"mlp{batch}",
        f"MLP {'-'.join(map(str, WIDTHS))}, batch {batch}",
        mlp,
        lambda rng, scale: (single(rng, batch, WIDTHS[0]),),
        bars,
        (*TORCH, "torch eager, with grad", "ONNX Runtime", "JAX", "NumPy"),
        bound=parameters,
        native=torch_mlp,
    )


def _reduction(method: str, axis: int) -> Work:
    if method == "var":
        bars = (Bar(0.2, ("NumPy",)),)
    elif axis == 1:
        bars = (Bar(1.0, ("NumPy",)), Bar(1 / 0.85, ("reading memory",)))
    else:
        bars = (Bar(0.8, ("NumPy",)),)
    over = "rows" if axis == 1 else "columns"
    return Work(
        f"{method}-{over}",
        f"{method} over {over}, 4096x4096",
        reduction(method, axis),
        matrices(4096, 4096),
        bars,
        ("reading memory",),
    )


WORKS = (
    *(_mlp(batch) for batch in (1, 32, 256)),
    Work(
        "gelu",
        "tanh-GELU as written, 4 M",
        gelu,
        matrices(4096, 1024),
        (Bar(0.45, ("torch.compile",)), Bar(0.6, ("JAX",)), Bar(0.15, ("NumPy",))),
        TORCH,
    ),
    Work(
        "softmax",
        "softmax 4096x1024",
        softmax,
        matrices(4096, 1024),
        (Bar(1.0, (*TORCH, "torch.compile, as written")),),
        ("JAX", "NumPy"),
        native=lambda torch: lambda x: torch.softmax(x, 1),
    ),
    Work(
        "layer-norm",
        "layer_norm + residual + GELU 4096x1024",
        layer_norm,
        matrices(4096, 1024, 2),
        (Bar(0.7, TORCH),),
        ("JAX", "NumPy"),
        bound=lambda rng: (single(rng, 1024), single(rng, 1024)),
        native=torch_layer_norm,
    ),
    *(_reduction(method, axis) for axis in (1, 0) for method in ("sum", "mean", "max", "var")),
    Work("black-scholes", "Black-Scholes, 1 M float64", black_scholes, options, PROGRAM_BARS),
    Work(
        "mandelbrot",
        "Mandelbrot, 20 steps, 1 M float64",
        mandelbrot,
        plane,
        PROGRAM_BARS,
        error=share_that_differs,
        tolerance=1e-3,
    ),
    Work("heat", "heat stencil by slices, 2048x2048", heat, matrices(2048, 2048), PROGRAM_BARS),
    Work("pairwise", "pairwise distances, 1000x1000x3 float64", pairwise, points, PROGRAM_BARS),
)
