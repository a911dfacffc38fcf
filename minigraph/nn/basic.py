"""The layers that most networks are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigraph.errors import ShapeError
from minigraph.mode import here

from . import functional as F
from .functional import check_rate
from .hybrid import HybridBlock, only_array
from .parameter import Parameter


class Dense(HybridBlock):
    """`activation(x @ weight.T + bias)`.

    Args:
        units: how many numbers come out.
        activation: the name of one ("relu"), or None.
        use_bias: add a bias.
        flatten: all axes but the first are one; else the layer works on the last axis.
        dtype: of the parameters.
        weight_initializer: of the weight, shape (units, in_units); None: the network's.
        bias_initializer: of the bias, shape (units,).
        in_units: how many numbers go in; 0: as many as there are at the first call.
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_units: int = 0,
    ) -> None:
        super().__init__()
        self.units = units
        self.flatten = flatten
        self.activation = activation
        self.weight = Parameter(
            "weight", (units, in_units), dtype, weight_initializer, allow_deferred_init=True
        )
        self.bias = Parameter("bias", units, dtype, bias_initializer) if use_bias else None
        self.activate = None if activation is None else F.activation(activation)

    def infer_shape(self, x: Any) -> None:
        if only_array(self, x).ndim < 2 and self.flatten:
            raise ShapeError(
                f"a Dense takes a batch, (batch, features), and the input has shape {x.shape}",
                where=here(),
                instead="x[None] for a batch of one; Dense(..., flatten=False) for one vector",
            )
        self.weight.shape = (self.units, math.prod(x.shape[1:]) if self.flatten else x.shape[-1])

    def forward(self, x: Any) -> Any:
        bias = None if self.bias is None else self.bias.data()
        try:
            x = F.dense(only_array(self, x), self.weight.data(), bias, self.flatten)
        except ShapeError as error:
            raise ShapeError(
                f"{self.weight.label()}: {error.fact}",
                where=error.where,
                instead="as many features as at the first call, or as in_units= says",
            ) from error
        return x if self.activate is None else self.activate(x)

    def extra_repr(self) -> str:
        assert self.weight.shape is not None
        sizes = f"{self.weight.shape[1] or '?'} -> {self.units}"
        return sizes if self.activation is None else f"{sizes}, {self.activation}"


class Flatten(HybridBlock):
    """(batch, ...) as (batch, the product of all others)."""

    def forward(self, x: Any) -> Any:
        return only_array(self, x).reshape((x.shape[0], -1))


class Dropout(HybridBlock):
    """While training, elements become 0 at random and the others larger to make up for it.

    Args:
        rate: how likely an element is dropped.
        axes: along these all elements are dropped or kept together.
    """

    def __init__(self, rate: float, axes: Sequence[int] = ()) -> None:
        super().__init__()
        check_rate(rate)
        self.rate = rate
        self.axes = tuple(axes)

    def forward(self, x: Any) -> Any:
        return F.dropout(x, self.rate, self.axes)

    def extra_repr(self) -> str:
        return f"{self.rate}" + (f", axes={self.axes}" if self.axes else "")


class Embedding(HybridBlock):
    """A learned vector for each integer from 0 up to `input_dim - 1`.

    Args:
        input_dim: how many vectors there are.
        output_dim: how long each is.
        dtype: of the vectors.
        weight_initializer: of the weight, shape (input_dim, output_dim); None: the network's.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Any = None,
    ) -> None:
        super().__init__()
        self.weight = Parameter("weight", (input_dim, output_dim), dtype, weight_initializer)

    def forward(self, x: Any) -> Any:
        return F.embedding(only_array(self, x), self.weight.data())

    def extra_repr(self) -> str:
        assert self.weight.shape is not None
        return "{} -> {}".format(*self.weight.shape)
