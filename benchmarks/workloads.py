"""The workloads: each once as data.  How a framework computes it stands in its runner.

A workload names its family (the method of the runners that builds it), makes its arguments and
parameters from a seed, and knows the right answer, computed by `references.py` in float64.  All
runners get the same bytes: the harness and each runner's process make them by themselves, and
compare digests.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import references

Array = np.ndarray[Any, Any]
Generator = np.random.Generator
SEED = 20_260_101


@dataclass(frozen=True)
class Case:
    """A workload with its numbers: what a runner is given.

    Attributes:
        workload: what it is a case of.
        arguments: of each call; arrays, or Python ints.
        parameters: what belongs to the function (weights, biases), by name.
        scale: of the sizes; see `Workload.make`.
    """

    workload: Workload
    arguments: tuple[Any, ...]
    parameters: Mapping[str, Array]
    scale: float = 1.0

    @property
    def options(self) -> Mapping[str, Any]:
        return self.workload.options

    @functools.cached_property
    def digest(self) -> str:
        """Equal where arguments and parameters are, bit for bit."""
        found = hashlib.sha256()
        for each in (*self.arguments, *self.parameters.values()):
            array = np.ascontiguousarray(each)
            found.update(f"{array.dtype.str}{array.shape}".encode())
            found.update(array.tobytes())
        return found.hexdigest()

    def directions(self) -> dict[str, Array]:
        """For each parameter, the direction along which gradients are compared."""
        rng = np.random.default_rng(SEED + 1)
        return {name: rng.normal(size=each.shape) for name, each in self.parameters.items()}

    def expected(self) -> tuple[Array, ...]:
        """The right answer, in float64 (counts as they are)."""
        arguments = [_double(each) for each in self.arguments]
        parameters = {name: _double(each) for name, each in self.parameters.items()}
        found = self.workload.reference(self, *arguments, **parameters)
        return tuple(map(np.asarray, found))

    def compared(self, found: Sequence[Array]) -> tuple[Array, ...]:
        """What of a runner's arrays is compared with `expected()`: gradients along a direction."""
        if not self.workload.gradients:
            return tuple(found)
        loss, *gradients = found
        along = [
            np.sum(np.asarray(gradient, np.float64) * direction)
            for gradient, direction in zip(gradients, self.directions().values(), strict=True)
        ]
        return (loss, *along)


@dataclass(frozen=True)
class Workload:
    """One row of the tables.

    Attributes:
        name: for the command line; title: for people.
        family: the method of the runners; size: what varies inside of the family (elements, or
            samples of a batch), for plots against the size.
        kind: "inference", "training" or "loop" (of numbers); they are reported apart.
        make: from a generator and a scale to arguments and parameters.  The scale is 1.0 where the
            title is to hold; tests shrink by it.
        reference: the case, its arguments and its parameters → the right answer.
        options: for the runners (`{"optimizer": "sgd"}`).
        dtype: of the results; "" where any integer will do.
        tolerance: the most that a result may differ, as a share of the largest number expected;
            where `counts`, the largest share of elements that may differ at all.
        calls: how many calls are compared; their results are stacked.
        gradients: the result is a loss and the gradients of all parameters, in their order.
        operations: of one call, as written; a function such as exp counts as one (0: not counted).
        products: whether most of them are those of products of matrices.
        quick: whether `--quick` runs it.
        ablation: whether the gain of each pass is measured on it.
    """

    name: str
    title: str
    family: str
    kind: str
    size: int
    make: Callable[[Generator, float], tuple[tuple[Any, ...], dict[str, Array]]]
    reference: Callable[..., Sequence[Any]]
    options: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    tolerance: float = 1e-4
    counts: bool = False
    calls: int = 1
    gradients: bool = False
    operations: int = 0
    products: bool = False
    quick: bool = False
    ablation: bool = False

    def case(self, scale: float = 1.0) -> Case:
        arguments, parameters = self.make(np.random.default_rng(SEED), scale)
        return Case(self, arguments, parameters, scale)

    @property
    def is_of_numbers(self) -> bool:
        """Whether it is about Python's numbers, or loops over single elements."""
        return self.kind == "loop" or not self.dtype


def _double(value: Any) -> Any:
    is_real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return value.astype(np.float64) if is_real else value


def _plain(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A reference that needs nothing of the case."""
    return lambda case, *arguments, **parameters: function(*arguments, **parameters, **options)


def _gradients(forward: Callable[..., Any], reduction: str, **options: Any) -> Callable[..., Any]:
    def reference(case: Case, x: Array, **parameters: Array) -> Any:
        function = functools.partial(forward, **options)
        return references.gradients(function, reduction, x, case.directions(), **parameters)

    return reference


# ---- arguments ---------------------------------------------------------------------------------


def single(rng: Generator, *shape: int, scale: float = 1.0) -> Array:
    """Normal numbers in float32."""
    return (rng.normal(size=shape) * scale).astype(np.float32)


def scaled(size: int, scale: float) -> int:
    return max(4, round(size * scale))


def _vectors(size: int, count: int = 1) -> Callable[..., Any]:
    return lambda rng, scale: (
        tuple(single(rng, scaled(size, scale)) for _ in range(count)),
        {},
    )


def _matrices(rows: int, columns: int, count: int = 1, **vectors: float) -> Callable[..., Any]:
    """Float32; the rows are scaled.  Each of `vectors` is a parameter, around that number."""

    def make(rng: Generator, scale: float) -> Any:
        arrays = tuple(single(rng, scaled(rows, scale), columns) for _ in range(count))
        return arrays, {
            name: around + single(rng, columns, scale=0.1) for name, around in vectors.items()
        }

    return make


def _numbers(*values: int) -> Callable[..., Any]:
    """Python ints; scaled where there is one only (a limit)."""

    def make(rng: Generator, scale: float) -> Any:
        limits = values if len(values) > 1 else (scaled(values[0], scale),)
        return limits, {}

    return make


def _layers(rng: Generator, widths: Sequence[int]) -> dict[str, Array]:
    """w1, b1, w2, …; a weight is (inputs, units)."""
    found: dict[str, Array] = {}
    for index, (inputs, units) in enumerate(zip(widths, widths[1:]), 1):  # noqa: B905
        found[f"w{index}"] = single(rng, inputs, units, scale=1 / math.sqrt(inputs))
        found[f"b{index}"] = single(rng, units, scale=0.1)
    return found


def _mlp_data(batch: int) -> Callable[..., Any]:
    def make(rng: Generator, scale: float) -> Any:
        return (single(rng, scaled(batch, scale) if batch > 1 else 1, 512),), _layers(rng, WIDTHS)

    return make


def _labelled(rng: Generator, scale: float) -> Any:
    batch = scaled(32, scale)
    return (
        (single(rng, batch, 512), rng.integers(0, CLASSES, batch)),
        _layers(rng, (*WIDTHS[:-1], CLASSES)),
    )


def _sequences(gates: int, batch: int) -> Callable[..., Any]:
    """X as (steps, batch, features); weights as (gates x hidden, features)."""

    def make(rng: Generator, scale: float) -> Any:
        shapes = {
            "w_ih": (gates * HIDDEN, HIDDEN),
            "w_hh": (gates * HIDDEN, HIDDEN),
            "b_ih": (gates * HIDDEN,),
            "b_hh": (gates * HIDDEN,),
        }
        arguments = (single(rng, scaled(STEPS, scale), batch, HIDDEN),)
        return arguments, {name: single(rng, *shape, scale=0.1) for name, shape in shapes.items()}

    return make


def _sentences(rng: Generator, scale: float) -> Any:
    """X as (batch, length, units); weights as (units, inputs)."""
    parameters: dict[str, Array] = {}
    shapes = {name: (128, 128) for name in ("query", "key", "value", "output")}
    for name, (units, inputs) in {**shapes, "hidden": (512, 128), "last": (128, 512)}.items():
        parameters[f"{name}_weight"] = single(rng, units, inputs, scale=1 / math.sqrt(inputs))
        parameters[f"{name}_bias"] = single(rng, units, scale=0.1)
    for name in ("norm1", "norm2"):
        parameters[f"{name}_scale"] = 1 + single(rng, 128, scale=0.1)
        parameters[f"{name}_shift"] = single(rng, 128, scale=0.1)
    return (single(rng, 8, scaled(64, scale), 128),), parameters


def _options(rng: Generator, scale: float) -> Any:
    size = scaled(1_000_000, scale)
    return tuple(rng.uniform(low, high, size) for low, high in ((50, 150), (50, 150), (0.1, 2))), {}


def _plane(rng: Generator, scale: float) -> Any:
    side = scaled(1000, math.sqrt(scale))
    return tuple(np.meshgrid(np.linspace(-2, 0.6, side), np.linspace(-1.2, 1.2, side))), {}


def _points(rng: Generator, scale: float) -> Any:
    return tuple(rng.normal(size=(scaled(1000, scale), 3)) for _ in range(2)), {}


def _words(rng: Generator, scale: float) -> Any:
    return tuple(rng.integers(0, 4, scaled(300, scale)) for _ in range(2)), {}


# ---- all of them -------------------------------------------------------------------------------

WIDTHS = (512, 256, 128, 2)
CLASSES, RATES = 10, {"sgd": 0.1, "adam": 1e-3}
STEPS, HIDDEN = 64, 128


def _mlp(batch: int, **more: Any) -> Workload:
    return Workload(
        f"mlp-{batch}",
        f"MLP {'-'.join(map(str, WIDTHS))}, batch {batch}, per call",
        "mlp",
        "inference",
        batch,
        _mlp_data(batch),
        _plain(references.mlp),
        operations=2 * batch * sum(a * b for a, b in zip(WIDTHS, WIDTHS[1:])),  # noqa: B905
        products=True,
        **more,
    )


def _chain(size: int, title: str, **more: Any) -> Workload:
    return Workload(
        f"chain-{size}",
        f"elementwise chain (GELU by tanh, as written), {title}",
        "chain",
        "inference",
        size,
        _vectors(size),
        _plain(references.chain),
        operations=9 * size,
        **more,
    )


def _recurrent(family: str, gates: int, batch: int) -> Workload:
    return Workload(
        f"{family}-{batch}",
        f"{family.upper()}, {STEPS} steps, hidden {HIDDEN}, batch {batch}",
        family,
        "inference",
        batch,
        _sequences(gates, batch),
        _plain(getattr(references, family)),
        operations=4 * gates * STEPS * batch * HIDDEN**2,
        products=True,
        ablation=(family, batch) == ("lstm", 1),
    )


def _recurrent_gradients(family: str, gates: int) -> Workload:
    return Workload(
        f"{family}-training",
        f"{family.upper()}, {STEPS} steps, hidden {HIDDEN}, batch 32, forward and backward",
        f"{family}_training",
        "training",
        32,
        _sequences(gates, 32),
        _gradients(getattr(references, family), "sum"),
        tolerance=1e-3,
        gradients=True,
    )


def _training(optimizer: str) -> Workload:
    options = {"optimizer": optimizer, "rate": RATES[optimizer]}
    return Workload(
        f"mlp-training-{optimizer}",
        f"training step, MLP 512-256-128-10, batch 32, {optimizer.upper()}",
        "mlp_training",
        "training",
        32,
        _labelled,
        _plain(references.mlp_training, steps=5, **options),
        options=options,
        tolerance=1e-4,  # a bias that is never updated shows from 2e-4 on
        calls=5,
        ablation=optimizer == "sgd",
        quick=optimizer == "sgd",
    )


def _reduction(method: str, axis: int) -> Workload:
    options = {"method": method, "axis": axis}
    over = "rows" if axis == 1 else "columns"
    return Workload(
        f"{method}-{over}",
        f"{method} over {over}, 4096x4096",
        "reduction",
        "inference",
        4096 * 4096,
        _matrices(4096, 4096),
        _plain(references.reduction, **options),
        options=options,
        operations=4096 * 4096,
        tolerance=1e-3,
    )


def _loop(family: str, title: str, make: Callable[..., Any], **more: Any) -> Workload:
    reference = _plain(getattr(references, family))
    return Workload(
        family, title, family, "loop", 1, make, reference, **{"dtype": "", "tolerance": 0.0, **more}
    )


WORKLOADS: Mapping[str, Workload] = {
    each.name: each
    for each in (
        _mlp(1, quick=True, ablation=True),
        _mlp(32),
        _mlp(256),
        Workload(
            "fancy_func",
            "fancy_func(1, 2, 3, 4) of numbers",
            "fancy_func",
            "inference",
            1,
            _numbers(1, 2, 3, 4),
            _plain(references.fancy_func),
            dtype="",
            tolerance=0.0,
            operations=3,
        ),
        *(
            Workload(
                f"fancy_func-{size}",
                f"fancy_func of arrays of {title}",
                "fancy_func",
                "inference",
                size,
                _vectors(size, 4),
                _plain(references.fancy_func),
                operations=3 * size,
                ablation=size > 1000,
            )
            for size, title in ((1000, "1 000"), (1_000_000, "1 M"))
        ),
        _chain(1000, "1 000"),
        _chain(32_768, "32 K"),
        _chain(1 << 20, "1 M"),
        _chain(1 << 22, "4 M", quick=True, ablation=True),
        Workload(
            "softmax",
            "softmax, 4096x1024",
            "softmax",
            "inference",
            4096 * 1024,
            _matrices(4096, 1024),
            _plain(references.softmax),
            operations=5 * 4096 * 1024,
            ablation=True,
        ),
        Workload(
            "layer_norm",
            "residual, layer norm and GELU, 4096x1024",
            "layer_norm",
            "inference",
            4096 * 1024,
            _matrices(4096, 1024, 2, scale=1.0, shift=0.0),
            _plain(references.layer_norm),
            operations=19 * 4096 * 1024,
            ablation=True,
        ),
        _recurrent("lstm", 4, 1),
        _recurrent("lstm", 4, 32),
        _recurrent("gru", 3, 1),
        _recurrent("gru", 3, 32),
        Workload(
            "encoder",
            "Transformer encoder block, 8x64x128, 8 heads",
            "encoder",
            "inference",
            8,
            _sentences,
            _plain(references.encoder, heads=8),
            options={"heads": 8},
            operations=8 * 64 * 2 * (4 * 128 * 128 + 2 * 128 * 512 + 2 * 64 * 128),
            products=True,
            ablation=True,
        ),
        Workload(
            "black_scholes",
            "Black-Scholes, 1 M float64",
            "black_scholes",
            "inference",
            1_000_000,
            _options,
            _plain(references.black_scholes),
            dtype="float64",
            tolerance=1e-9,
            operations=51 * 1_000_000,
            ablation=True,
        ),
        Workload(
            "heat",
            "heat stencil by slices, 2048x2048",
            "heat",
            "inference",
            2048 * 2048,
            _matrices(2048, 2048),
            _plain(references.heat),
            operations=7 * 2046 * 2046,
            ablation=True,
        ),
        Workload(
            "mandelbrot",
            "Mandelbrot, 20 steps, 1 M float64",
            "mandelbrot",
            "inference",
            1_000_000,
            _plane,
            _plain(references.mandelbrot, steps=20),
            options={"steps": 20},
            dtype="float64",
            tolerance=1e-3,
            counts=True,
            operations=20 * 10 * 1_000_000,
        ),
        Workload(
            "pairwise",
            "pairwise distances, 1000x1000x3 float64",
            "pairwise",
            "inference",
            1_000_000,
            _points,
            _plain(references.pairwise),
            dtype="float64",
            tolerance=1e-9,
            operations=9 * 1_000_000,
        ),
        *(_reduction(method, axis) for axis in (1, 0) for method in ("sum", "max", "var")),
        _training("sgd"),
        _training("adam"),
        _recurrent_gradients("lstm", 4),
        _recurrent_gradients("gru", 3),
        Workload(
            "encoder-training",
            "Transformer encoder block, 8x64x128, forward and backward",
            "encoder_training",
            "training",
            8,
            _sentences,
            _gradients(references.encoder, "mean", heads=8),
            options={"heads": 8},
            tolerance=1e-3,
            gradients=True,
        ),
        _loop("collatz", "Collatz lengths below 5 000", _numbers(5000), quick=True),
        _loop(
            "newton",
            "Newton's method, 5 000 points from distances",
            _numbers(5000),
            dtype="float64",
            tolerance=1e-9,
        ),
        _loop("levenshtein", "Levenshtein distance, 300 by 300", _words),
        _loop("sieve", "sieve below 200 000", _numbers(200_000)),
    )
}
