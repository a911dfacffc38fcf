"""Every layer and loss with arguments for it, and what comes out of one forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigraph as mg
from minigraph import autograd, nn
from minigraph.array import Array

Values = np.ndarray[Any, Any]


class Draw:
    """Arguments at random, of one dtype."""

    def __init__(self, seed: int, dtype: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype

    def normal(self, *shape: int) -> Values:
        return self.rng.normal(size=shape).astype(self.dtype)

    def uniform(self, *shape: int) -> Values:
        return self.rng.uniform(0.05, 0.95, shape).astype(self.dtype)

    def integers(self, below: int, *shape: int) -> Values:
        return self.rng.integers(0, below, shape)

    def signs(self, *shape: int) -> Values:
        return self.rng.choice([-1.0, 1.0], shape).astype(self.dtype)

    def distributions(self, *shape: int) -> Values:
        powers = np.exp(self.rng.normal(size=shape))
        return (powers / powers.sum(-1, keepdims=True)).astype(self.dtype)


@dataclass
class Case:
    """A block and its arguments.

    Attributes:
        make: the block, with parameters of float32.
        arguments: for a batch of n sequences of length t with c features each.
        training: also what a training step computes is determined.
    """

    make: Callable[[], nn.Block]
    arguments: Callable[[Draw, int, int, int], Sequence[Values | None]]


THEIR_NAMES = {
    "i2h_weight": "weight_ih",
    "h2h_weight": "weight_hh",
    "i2h_bias": "bias_ih",
    "h2h_bias": "bias_hh",
}
"""What PyTorch calls the parameters of recurrent layers."""


def scores(draw: Draw, n: int, t: int, c: int) -> Sequence[Values]:
    return [draw.normal(n, c)]


def sequences(draw: Draw, n: int, t: int, c: int) -> Sequence[Values]:
    return [draw.normal(n, t, c)]


def pairs(draw: Draw, n: int, t: int, c: int) -> Sequence[Values]:
    return [draw.normal(n, c), draw.normal(n, c)]


def ending(draw: Draw, n: int, t: int, c: int) -> Sequence[Values | None]:
    """Sequences of which some end before the array does."""
    return [draw.normal(n, t, c), None, draw.integers(t, n) + 1]


def units(x: int) -> int:
    """Features that fall into two heads and two groups."""
    return 2 * x


LAYERS = {
    "Dense": Case(lambda: nn.Dense(4), sequences),
    "Dense, last axis": Case(lambda: nn.Dense(4, "tanh", flatten=False), sequences),
    "Dense, no bias": Case(lambda: nn.Dense(3, "relu", use_bias=False), scores),
    **{
        f"Activation {name}": Case(lambda name=name: nn.Activation(name), scores)
        for name in sorted(nn.functional.ACTIVATIONS)
    },
    "LeakyReLU": Case(lambda: nn.LeakyReLU(0.1), scores),
    "PReLU": Case(lambda: nn.PReLU(), sequences),
    "ELU": Case(lambda: nn.ELU(1.5), scores),
    "SELU": Case(lambda: nn.SELU(), scores),
    "GELU": Case(lambda: nn.GELU(), scores),
    "GELU, tanh": Case(lambda: nn.GELU("tanh"), scores),
    "SiLU": Case(lambda: nn.SiLU(), scores),
    "Swish": Case(lambda: nn.Swish(2.0), scores),
    "Dropout": Case(lambda: nn.Dropout(0.5), scores),
    "Dropout, axes": Case(lambda: nn.Dropout(0.5, axes=(1,)), sequences),
    "Flatten": Case(lambda: nn.Flatten(), sequences),
    "Embedding": Case(lambda: nn.Embedding(7, 3), lambda draw, n, t, c: [draw.integers(7, n, t)]),
    "LayerNorm": Case(lambda: nn.LayerNorm(), sequences),
    "LayerNorm, axis 1": Case(lambda: nn.LayerNorm(axis=1), sequences),
    "LayerNorm, plain": Case(lambda: nn.LayerNorm(center=False, scale=False), sequences),
    "RMSNorm": Case(lambda: nn.RMSNorm(), sequences),
    "GroupNorm": Case(lambda: nn.GroupNorm(2), lambda draw, n, t, c: [draw.normal(n, units(c), t)]),
    "BatchNorm": Case(lambda: nn.BatchNorm(), sequences),
    "BatchNorm, global": Case(lambda: nn.BatchNorm(use_global_stats=True), scores),
    "MultiHeadAttention": Case(
        lambda: nn.MultiHeadAttention(4, 2),
        lambda draw, n, t, c: [
            draw.normal(n, t, c),
            draw.normal(n, t + 1, c),
            None,
            None,
            draw.integers(t + 1, n) + 1,
        ],
    ),
    "MultiHeadAttention, causal": Case(
        lambda: nn.MultiHeadAttention(4, 2, causal=True),
        lambda draw, n, t, c: [draw.normal(n, t, c), None, None, draw.normal(t, t) > -1],
    ),
    "PositionalEncoding": Case(
        lambda: nn.PositionalEncoding(4, 20), lambda draw, n, t, c: [draw.normal(n, t, 4)]
    ),
    "PositionalEncoding, learned": Case(
        lambda: nn.PositionalEncoding(4, 20, learned=True),
        lambda draw, n, t, c: [draw.normal(n, t, 4)],
    ),
    "TransformerEncoderBlock": Case(
        lambda: nn.TransformerEncoderBlock(4, 2, 6), lambda draw, n, t, c: [draw.normal(n, t, 4)]
    ),
    "TransformerEncoderBlock, pre": Case(
        lambda: nn.TransformerEncoderBlock(4, 1, activation="gelu", pre_norm=True),
        lambda draw, n, t, c: [draw.normal(n, t, 4)],
    ),
    "TransformerDecoderBlock": Case(
        lambda: nn.TransformerDecoderBlock(4, 2, 6),
        lambda draw, n, t, c: [draw.normal(n, t, 4), draw.normal(n, t + 1, 4)],
    ),
    "RNN": Case(lambda: nn.RNN(3), sequences),
    "RNN, tanh": Case(lambda: nn.RNN(3, 2, "tanh", "NTC", bidirectional=True), sequences),
    "LSTM": Case(lambda: nn.LSTM(3), sequences),
    "LSTM, deep": Case(lambda: nn.LSTM(2, 3, "NTC", bidirectional=True), sequences),
    "LSTM, lengths": Case(lambda: nn.LSTM(3, 2, "NTC", bidirectional=True), ending),
    "GRU": Case(lambda: nn.GRU(3, layout="NTC"), sequences),
    "GRU, deep": Case(lambda: nn.GRU(2, 2, bidirectional=True), sequences),
    "GRU, lengths": Case(lambda: nn.GRU(3, 1, "NTC", bidirectional=True), ending),
}

LOSSES = {
    "L2Loss": Case(lambda: nn.L2Loss(), pairs),
    "L1Loss": Case(lambda: nn.L1Loss(weight=0.5), pairs),
    "L1Loss, weighed samples": Case(
        lambda: nn.L1Loss(),
        lambda draw, n, t, c: [*pairs(draw, n, t, c), draw.uniform(n, 1)],
    ),
    "SigmoidBCELoss": Case(
        lambda: nn.SigmoidBCELoss(),
        lambda draw, n, t, c: [draw.normal(n, c), draw.uniform(n, c)],
    ),
    "SigmoidBCELoss, from sigmoid": Case(
        lambda: nn.SigmoidBCELoss(from_sigmoid=True),
        lambda draw, n, t, c: [draw.uniform(n, c), draw.uniform(n, c)],
    ),
    "SigmoidBCELoss, pos_weight": Case(
        lambda: nn.SigmoidBCELoss(),
        lambda draw, n, t, c: [draw.normal(n, c), draw.uniform(n, c), None, draw.uniform(1, c)],
    ),
    "SoftmaxCELoss": Case(
        lambda: nn.SoftmaxCELoss(),
        lambda draw, n, t, c: [draw.normal(n, c), draw.integers(c, n)],
    ),
    "SoftmaxCELoss, axis 1": Case(
        lambda: nn.SoftmaxCELoss(axis=1, ignore_label=0),
        lambda draw, n, t, c: [draw.normal(n, c, t), draw.integers(c, n, t)],
    ),
    "SoftmaxCELoss, smooth": Case(
        lambda: nn.SoftmaxCELoss(label_smoothing=0.1),
        lambda draw, n, t, c: [draw.normal(n, t, c), draw.integers(c, n, t)],
    ),
    "SoftmaxCELoss, dense": Case(
        lambda: nn.SoftmaxCELoss(sparse_label=False),
        lambda draw, n, t, c: [draw.normal(n, c), draw.distributions(n, c)],
    ),
    "SoftmaxCELoss, from logits": Case(
        lambda: nn.SoftmaxCELoss(from_logits=True),
        lambda draw, n, t, c: [np.log(draw.distributions(n, c)), draw.integers(c, n)],
    ),
    "KLDivLoss": Case(
        lambda: nn.KLDivLoss(from_logits=False),
        lambda draw, n, t, c: [draw.normal(n, c), draw.distributions(n, c)],
    ),
    "KLDivLoss, from logits": Case(
        lambda: nn.KLDivLoss(),
        lambda draw, n, t, c: [np.log(draw.distributions(n, c)), draw.distributions(n, c)],
    ),
    "HuberLoss": Case(lambda: nn.HuberLoss(0.7), pairs),
    "HingeLoss": Case(
        lambda: nn.HingeLoss(), lambda draw, n, t, c: [draw.normal(n, c), draw.signs(n, c)]
    ),
    "SquaredHingeLoss": Case(
        lambda: nn.SquaredHingeLoss(0.5),
        lambda draw, n, t, c: [draw.normal(n, c), draw.signs(n, c)],
    ),
    "LogisticLoss": Case(
        lambda: nn.LogisticLoss(), lambda draw, n, t, c: [draw.normal(n, c), draw.signs(n, c)]
    ),
    "LogisticLoss, binary": Case(
        lambda: nn.LogisticLoss(label_format="binary"),
        lambda draw, n, t, c: [draw.normal(n, c), (draw.signs(n, c) + 1) / 2],
    ),
    "TripletLoss": Case(
        lambda: nn.TripletLoss(), lambda draw, n, t, c: [draw.normal(n, c) for _ in range(3)]
    ),
    "CosineEmbeddingLoss": Case(
        lambda: nn.CosineEmbeddingLoss(margin=0.1),
        lambda draw, n, t, c: [*pairs(draw, n, t, c), draw.signs(n)],
    ),
    "PoissonNLLLoss": Case(
        lambda: nn.PoissonNLLLoss(),
        lambda draw, n, t, c: [draw.normal(n, c), draw.integers(9, n, c).astype(draw.dtype)],
    ),
    "PoissonNLLLoss, full": Case(
        lambda: nn.PoissonNLLLoss(from_logits=False, compute_full=True),
        lambda draw, n, t, c: [draw.uniform(n, c), draw.integers(9, n, c).astype(draw.dtype)],
    ),
}


def prepared(case: Case, arguments: Sequence[Values | None], dtype: str, seed: int = 0) -> nn.Block:
    """The block with all parameters at random, of that dtype."""
    block = case.make()
    block.initialize()
    block.cast(dtype)
    block(*arguments)  # completes the shapes
    rng = np.random.default_rng(seed)
    for parameter in block.collect_params().values():
        if not isinstance(parameter, nn.Constant):
            parameter.set_data(rng.uniform(0.1, 1, parameter.shape).astype(dtype))
    return block


def forward_and_backward(
    block: Any, arguments: Sequence[Values | None], head: Values | None = None
) -> Mapping[str, Values]:
    """The result, and the gradients of float arguments and parameters, of a training step."""
    given = [None if x is None else Array(x.copy()) for x in arguments]
    for array in given:
        if array is not None and array.dtype.kind == "f":
            array.attach_grad()
    mg.random.seed(0)
    with autograd.record():
        result = block(*given)
    result.backward(None if head is None else Array(head))
    found = {"result": result.asnumpy()}
    for index, array in enumerate(given):
        if array is not None and array.grad is not None:
            found[f"argument {index}"] = array.grad.asnumpy()
    for name, parameter in block.collect_params().items():
        found[name] = (
            parameter.data() if parameter.grad_req == "null" else parameter.grad()
        ).asnumpy()
    return found
