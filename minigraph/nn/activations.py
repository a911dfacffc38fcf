"""Activations as layers."""

from __future__ import annotations

from typing import Any

from . import functional as F
from .hybrid import HybridBlock
from .initializers import Constant
from .parameter import Parameter


class Activation(HybridBlock):
    """An activation by its name: "relu", "sigmoid", "tanh", "softrelu", ..."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.activation = activation
        self.activate = F.activation(activation)

    def forward(self, x: Any) -> Any:
        return self.activate(x)

    def extra_repr(self) -> str:
        return self.activation


class LeakyReLU(HybridBlock):
    """`x` where it is positive, elsewhere `alpha * x`."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return F.leaky_relu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"{self.alpha}"


class PReLU(HybridBlock):
    """`x` where it is positive, elsewhere `alpha * x` with an alpha that is learned.

    Args:
        alpha_initializer: of alpha; None: 0.25.
        in_channels: 1, or the length of axis 1, for an alpha of each channel.
        dtype: of alpha.
    """

    def __init__(
        self,
        alpha_initializer: Any = None,
        in_channels: int = 1,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        init = Constant(0.25) if alpha_initializer is None else alpha_initializer
        self.alpha = Parameter("alpha", in_channels, dtype, init)

    def forward(self, x: Any) -> Any:
        return F.prelu(x, self.alpha.data())


class ELU(HybridBlock):
    """`x` where it is positive, elsewhere `alpha * (exp(x) - 1)`."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return F.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"{self.alpha}"


class SELU(HybridBlock):
    """The scaled ELU that keeps mean 0 and variance 1."""

    def forward(self, x: Any) -> Any:
        return F.selu(x)


class GELU(HybridBlock):
    """`x` times the normal distribution function of it.

    Args:
        approximation: "erf" (exact) or "tanh" (nearly).
    """

    def __init__(self, approximation: str = "erf") -> None:
        super().__init__()
        self.approximation = approximation

    def forward(self, x: Any) -> Any:
        return F.gelu(x, self.approximation)

    def extra_repr(self) -> str:
        return self.approximation


class SiLU(HybridBlock):
    """`x * sigmoid(x)`."""

    def forward(self, x: Any) -> Any:
        return F.silu(x)


class Swish(HybridBlock):
    """`x * sigmoid(beta * x)`."""

    def __init__(self, beta: float = 1.0) -> None:
        super().__init__()
        self.beta = beta

    def forward(self, x: Any) -> Any:
        return F.swish(x, self.beta)

    def extra_repr(self) -> str:
        return f"{self.beta}"
