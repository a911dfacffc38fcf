"""What a user of minigraph writes with blocks, a tape and a trainer.

What needs none of these is NumPy, in `formulas.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import autograd, nn

Array = np.ndarray[Any, Any]
Step = Callable[..., Any]


def mlp(widths: Sequence[int]) -> Any:
    *hidden, last = widths
    net = nn.HybridSequential()
    for units in hidden:
        net.add(nn.Dense(units, activation="relu"))
    net.add(nn.Dense(last))
    return net


def predicting(net: Any) -> Step:
    def predict(x: Any) -> Any:
        return net(x)

    return predict


def differentiating(net: Any, reduction: str) -> Step:
    """The loss is the sum or the mean of squares; then the parameters have their gradients."""

    def step(x: Any) -> Any:
        with autograd.record():
            loss = getattr(net(x) ** 2, reduction)()
        loss.backward()
        return loss

    return step


def training(net: Any, loss: Any, optimizer: str, rate: float) -> Step:
    trainer = nn.Trainer(net.collect_params(), optimizer, {"learning_rate": rate})

    def step(x: Any, labels: Any) -> Any:
        with autograd.record():
            found = loss(net(x), labels).mean()
        found.backward()
        trainer.step(1)
        return found

    return step


# ---- networks with the parameters of a case ----------------------------------------------------


def network(family: str, parameters: Mapping[str, Array], **options: Any) -> tuple[Any, list[Any]]:
    """The network of a family, and its parameters in the order of the case."""
    net, order = _NETWORKS[family](parameters, **options)
    net.initialize()
    found = dict(zip(order, net.collect_params().values(), strict=True))
    for name, parameter in found.items():
        # A dense layer has its weight as (units, inputs).
        parameter.set_data(parameters[name].T if family == "mlp" else parameters[name])
    return net, [found[name] for name in parameters]


def _mlp(parameters: Mapping[str, Array]) -> tuple[Any, Sequence[str]]:
    return mlp([len(value) for value in parameters.values() if value.ndim == 1]), [*parameters]


def _lstm(parameters: Mapping[str, Array]) -> tuple[Any, Sequence[str]]:
    return nn.LSTM(parameters["w_hh"].shape[1]), [*parameters]


def _gru(parameters: Mapping[str, Array]) -> tuple[Any, Sequence[str]]:
    return nn.GRU(parameters["w_hh"].shape[1]), [*parameters]


def _encoder(parameters: Mapping[str, Array], heads: int) -> tuple[Any, Sequence[str]]:
    hidden, units = parameters["hidden_weight"].shape
    parts = ("query", "key", "value", "output", "norm1", "hidden", "last", "norm2")
    kinds = {"norm1": ("scale", "shift"), "norm2": ("scale", "shift")}
    order = [f"{part}_{kind}" for part in parts for kind in kinds.get(part, ("weight", "bias"))]
    return nn.TransformerEncoderBlock(units, heads, hidden), order


_NETWORKS: Mapping[str, Callable[..., tuple[Any, Sequence[str]]]] = {
    "mlp": _mlp,
    "lstm": _lstm,
    "gru": _gru,
    "encoder": _encoder,
}
