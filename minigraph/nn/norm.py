"""Layers that normalise."""

from __future__ import annotations

from typing import Any

from minigraph.ops import normalize_axis

from . import functional as F
from .hybrid import HybridBlock, only_array
from .parameter import Parameter


class _Norm(HybridBlock):
    """A factor gamma and a summand beta for each position along `axis`, of deferred shape."""

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.axis = axis
        self.epsilon = epsilon

        def channels(name: str, init: Any) -> Parameter:
            return Parameter(name, in_channels, dtype, init, allow_deferred_init=True)

        self.gamma = channels("gamma", gamma_initializer) if scale else None
        self.beta = channels("beta", beta_initializer) if center else None

    def infer_shape(self, x: Any) -> None:
        channels = only_array(self, x).shape[normalize_axis(self.axis, x.ndim)]
        for parameter in self.params.values():
            parameter.shape = channels

    def _scaling(self) -> tuple[Any, Any]:
        """The arrays of gamma and beta, or None."""
        gamma, beta = self.gamma, self.beta
        return (
            None if gamma is None else gamma.data(),
            None if beta is None else beta.data(),
        )

    def extra_repr(self) -> str:
        known = [p.shape[0] for p in self.params.values() if p.shape and p.shape[0]]
        channels = [f"channels={known[0]}"] if known else []
        return ", ".join([f"axis={self.axis}", f"epsilon={self.epsilon}", *channels])


class LayerNorm(_Norm):
    """`(x - mean) / sqrt(variance + epsilon) * gamma + beta`, of each line along one axis.

    Args:
        axis: along which mean and variance are taken.
        epsilon: keeps the root from 0.
        center: add a learned beta.
        scale: multiply by a learned gamma.
        beta_initializer: of beta.
        gamma_initializer: of gamma.
        in_channels: the length of the axis; 0: as at the first call.
        dtype: of the parameters.
    """

    def forward(self, x: Any) -> Any:
        return F.layer_norm(x, *self._scaling(), self.axis, self.epsilon)


class RMSNorm(_Norm):
    """`x / sqrt(mean of squares + epsilon) * gamma`, of each line along one axis.

    Args:
        axis: along which the mean is taken.
        epsilon: keeps the root from 0.
        scale: multiply by a learned gamma.
        gamma_initializer: of gamma.
        in_channels: the length of the axis; 0: as at the first call.
        dtype: of gamma.
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-6,
        scale: bool = True,
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(axis, epsilon, False, scale, None, gamma_initializer, in_channels, dtype)

    def forward(self, x: Any) -> Any:
        gamma, _ = self._scaling()
        return F.rms_norm(x, gamma, self.axis, self.epsilon)


class GroupNorm(_Norm):
    """Layer normalisation over each group of channels together with all that follows.

    Args:
        num_groups: into how many groups the channels (axis 1) fall.
        epsilon: keeps the root from 0.
        center: add a learned beta for each channel.
        scale: multiply by a learned gamma for each channel.
        beta_initializer: of beta.
        gamma_initializer: of gamma.
        in_channels: the number of channels; 0: as at the first call.
        dtype: of the parameters.
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(
            1, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, dtype
        )
        self.num_groups = num_groups

    def forward(self, x: Any) -> Any:
        return F.group_norm(x, *self._scaling(), self.num_groups, self.epsilon)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {super().extra_repr()}"


class BatchNorm(_Norm):
    """Each channel with the mean and variance of the batch (training) or of all batches so far.

    While training, `running = momentum * running + (1 - momentum) * batch` is written into
    `running_mean` and `running_var`.  As in Gluon the variance is divided by n, also there.

    Args:
        axis: of the channels.
        momentum: how much of the running statistics stays at each step.
        epsilon: keeps the root from 0.
        center: add a learned beta.
        scale: multiply by a learned gamma.
        use_global_stats: use the running statistics while training too, and leave them.
        beta_initializer: of beta.
        gamma_initializer: of gamma.
        running_mean_initializer: of the running mean.
        running_variance_initializer: of the running variance.
        in_channels: the number of channels; 0: as at the first call.
        dtype: of the parameters.
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(
            axis, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, dtype
        )
        self.momentum = momentum
        self.use_global_stats = use_global_stats

        def running(name: str, init: Any) -> Parameter:
            return Parameter(
                name, in_channels, dtype, init, grad_req="null", allow_deferred_init=True
            )

        self.running_mean = running("running_mean", running_mean_initializer)
        self.running_var = running("running_var", running_variance_initializer)

    def forward(self, x: Any) -> Any:
        return F.batch_norm(
            x,
            *self._scaling(),
            self.running_mean.data(),
            self.running_var.data(),
            axis=self.axis,
            momentum=self.momentum,
            epsilon=self.epsilon,
            use_global_stats=self.use_global_stats,
        )
