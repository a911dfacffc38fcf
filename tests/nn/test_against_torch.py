"""Layers and losses give PyTorch's numbers and gradients for the same parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nn.cases import LAYERS, LOSSES, THEIR_NAMES, Draw, forward_and_backward, prepared

import minigraph as mg
from minigraph import autograd, nn

torch = pytest.importorskip("torch", reason="PyTorch is what is compared with")
T: Any = torch.nn.functional


def _attention(p: Any, prefix: str, query: Any, key: Any, **options: Any) -> Any:
    """PyTorch's own attention, on projections that are stacked in one weight."""
    names = [f"{prefix}{name}" for name in ("query", "key", "value")]
    result, _ = T.multi_head_attention_forward(
        query.transpose(0, 1),
        key.transpose(0, 1),
        key.transpose(0, 1),
        p[f"{names[0]}.weight"].shape[0],
        2,
        torch.cat([p[f"{name}.weight"] for name in names]),
        torch.cat([p[f"{name}.bias"] for name in names]),
        None,
        None,
        False,
        0.0,
        p[f"{prefix}output.weight"],
        p[f"{prefix}output.bias"],
        need_weights=False,
        **options,
    )
    return result.transpose(0, 1)


def _stacked(p: Any, ours: str, theirs: str) -> dict[str, Any]:
    """The parameters of one attention by PyTorch's names."""
    found = {}
    for kind in ("weight", "bias"):
        parts = [p[f"{ours}.{name}.{kind}"] for name in ("query", "key", "value")]
        found[f"{theirs}.in_proj_{kind}"] = torch.cat(parts)
        found[f"{theirs}.out_proj.{kind}"] = p[f"{ours}.output.{kind}"]
    return found


def _normed(p: Any, pairs: dict[str, str]) -> dict[str, Any]:
    return {
        f"{theirs}.{name}": p[f"{ours}.{parameter}"]
        for ours, theirs in pairs.items()
        for name, parameter in (("weight", "gamma"), ("bias", "beta"))
    }


def _fed_forward(p: Any) -> dict[str, Any]:
    return {
        f"{theirs}.{kind}": p[f"feed_forward.{ours}.{kind}"]
        for ours, theirs in (("hidden", "linear1"), ("output", "linear2"))
        for kind in ("weight", "bias")
    }


def _encoder(p: Any, x: Any, heads: int, hidden: int, **options: Any) -> Any:
    layer = torch.nn.TransformerEncoderLayer(
        4, heads, hidden, dropout=0.0, batch_first=True, dtype=x.dtype, **options
    )
    parameters = {
        **_stacked(p, "attention", "self_attn"),
        **_fed_forward(p),
        **_normed(p, {"attention_norm": "norm1", "feed_forward_norm": "norm2"}),
    }
    return torch.func.functional_call(layer, parameters, (x,))


def _decoder(p: Any, x: Any, memory: Any) -> Any:
    layer = torch.nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0, batch_first=True, dtype=x.dtype)
    norms = {
        "attention_norm": "norm1",
        "cross_attention_norm": "norm2",
        "feed_forward_norm": "norm3",
    }
    parameters = {
        **_stacked(p, "attention", "self_attn"),
        **_stacked(p, "cross_attention", "multihead_attn"),
        **_fed_forward(p),
        **_normed(p, norms),
    }
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return torch.func.functional_call(layer, parameters, (x, memory, later))


def _recurrent(p: Any, x: Any, states: Any = None, lengths: Any = None, **options: Any) -> Any:
    """PyTorch's recurrent layer with these parameters; lengths are packed."""
    kind = options.pop("kind")
    hidden_size = p["l0_h2h_weight"].shape[1]
    layers = sum(name.startswith("l") for name in p) // 4
    layer = kind(
        x.shape[-1],
        hidden_size,
        layers,
        bidirectional="r0_i2h_weight" in p,
        dtype=x.dtype,
        **options,
    )
    parameters = {}
    for name, values in p.items():
        place, _, rest = name.partition("_")
        reverse = "_reverse" if place.startswith("r") else ""
        parameters[f"{THEIR_NAMES[rest]}_l{place[1:]}{reverse}"] = values
    if lengths is None:
        return torch.func.functional_call(layer, parameters, (x, states))[0]
    R = torch.nn.utils.rnn
    packed = R.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    outputs, _ = torch.func.functional_call(layer, parameters, (packed, states))
    return R.pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])[0]


def _layer(kind: Any, **options: Any) -> Any:
    return functools.partial(_recurrent, kind=kind, **options)


def _batch_norm(p: Any, x: Any, training: bool) -> Any:
    if not training:
        running = p["running_mean"], p["running_var"]
        return T.batch_norm(x, *running, p["gamma"], p["beta"])
    return T.batch_norm(x, None, None, p["gamma"], p["beta"], training=True)


def _per_sample(loss: Any) -> Any:
    return loss.flatten(1).mean(1) if loss.ndim > 1 else loss


def _none(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return _per_sample(function(*args, reduction="none", **options))


LAYERS_OF_TORCH: dict[str, Callable[..., Any]] = {
    "Dense": lambda p, x: T.linear(x.flatten(1), p["weight"], p["bias"]),
    "Dense, last axis": lambda p, x: torch.tanh(T.linear(x, p["weight"], p["bias"])),
    "Dense, no bias": lambda p, x: torch.relu(T.linear(x, p["weight"])),
    "Activation elu": lambda p, x: T.elu(x),
    "Activation gelu": lambda p, x: T.gelu(x),
    "Activation hard_sigmoid": lambda p, x: torch.clamp(0.2 * x + 0.5, 0, 1),
    "Activation hard_swish": lambda p, x: T.hardswish(x),
    "Activation leaky_relu": lambda p, x: T.leaky_relu(x),
    "Activation log_sigmoid": lambda p, x: T.logsigmoid(x),
    "Activation mish": lambda p, x: T.mish(x),
    "Activation relu": lambda p, x: torch.relu(x),
    "Activation selu": lambda p, x: T.selu(x),
    "Activation sigmoid": lambda p, x: torch.sigmoid(x),
    "Activation silu": lambda p, x: T.silu(x),
    "Activation softplus": lambda p, x: T.softplus(x),
    "Activation softrelu": lambda p, x: T.softplus(x),
    "Activation softsign": lambda p, x: T.softsign(x),
    "Activation swish": lambda p, x: T.silu(x),
    "Activation tanh": lambda p, x: torch.tanh(x),
    "LeakyReLU": lambda p, x: T.leaky_relu(x, 0.1),
    "PReLU": lambda p, x: T.prelu(x, p["alpha"]),
    "ELU": lambda p, x: T.elu(x, 1.5),
    "SELU": lambda p, x: T.selu(x),
    "GELU": lambda p, x: T.gelu(x),
    "GELU, tanh": lambda p, x: T.gelu(x, approximate="tanh"),
    "SiLU": lambda p, x: T.silu(x),
    "Swish": lambda p, x: x * torch.sigmoid(2 * x),
    "Embedding": lambda p, x: T.embedding(x, p["weight"]),
    "LayerNorm": lambda p, x: T.layer_norm(x, x.shape[-1:], p["gamma"], p["beta"]),
    "LayerNorm, axis 1": lambda p, x: T.layer_norm(
        x.transpose(1, 2), x.shape[1:2], p["gamma"], p["beta"]
    ).transpose(1, 2),
    "LayerNorm, plain": lambda p, x: T.layer_norm(x, x.shape[-1:]),
    "RMSNorm": lambda p, x: T.rms_norm(x, x.shape[-1:], p["gamma"], 1e-6),
    "GroupNorm": lambda p, x: T.group_norm(x, 2, p["gamma"], p["beta"]),
    "BatchNorm": lambda p, x: _batch_norm(p, x, True),
    "BatchNorm, global": lambda p, x: _batch_norm(p, x, False),
    "MultiHeadAttention": lambda p, query, key, *_: _attention(
        p,
        "",
        query,
        key,
        key_padding_mask=torch.arange(key.shape[1]) >= _[-1][:, None],
    ),
    "MultiHeadAttention, causal": lambda p, x, key, value, mask: _attention(
        p, "", x, x, attn_mask=~(mask & torch.ones_like(mask).tril())
    ),
    "TransformerEncoderBlock": lambda p, x: _encoder(p, x, 2, 6),
    "TransformerEncoderBlock, pre": lambda p, x: _encoder(
        p, x, 1, 16, activation="gelu", norm_first=True
    ),
    "TransformerDecoderBlock": _decoder,
    "RNN": _layer(torch.nn.RNN, nonlinearity="relu"),
    "RNN, tanh": _layer(torch.nn.RNN, batch_first=True),
    "LSTM": _layer(torch.nn.LSTM),
    "LSTM, deep": _layer(torch.nn.LSTM, batch_first=True),
    "LSTM, lengths": _layer(torch.nn.LSTM, batch_first=True),
    "GRU": _layer(torch.nn.GRU, batch_first=True),
    "GRU, deep": _layer(torch.nn.GRU),
    "GRU, lengths": _layer(torch.nn.GRU, batch_first=True),
}

LOSSES_OF_TORCH: dict[str, Callable[..., Any]] = {
    "L2Loss": lambda p, x, y: _none(T.mse_loss, x, y) / 2,
    "L1Loss": lambda p, x, y: _none(T.l1_loss, x, y) / 2,
    "L1Loss, weighed samples": lambda p, x, y, w: _none(T.l1_loss, x, y) * w[:, 0],
    "SigmoidBCELoss": lambda p, x, y: _none(T.binary_cross_entropy_with_logits, x, y),
    "SigmoidBCELoss, from sigmoid": lambda p, x, y: _none(T.binary_cross_entropy, x, y),
    "SigmoidBCELoss, pos_weight": lambda p, x, y, _, w: _none(
        T.binary_cross_entropy_with_logits, x, y, pos_weight=w
    ),
    "SoftmaxCELoss": lambda p, x, y: _none(T.cross_entropy, x, y),
    "SoftmaxCELoss, axis 1": lambda p, x, y: _none(T.cross_entropy, x, y, ignore_index=0),
    "SoftmaxCELoss, smooth": lambda p, x, y: _none(
        T.cross_entropy, x.transpose(1, 2), y, label_smoothing=0.1
    ),
    "SoftmaxCELoss, dense": lambda p, x, y: _none(T.cross_entropy, x, y),
    "SoftmaxCELoss, from logits": lambda p, x, y: _none(T.nll_loss, x, y),
    "KLDivLoss": lambda p, x, y: _none(T.kl_div, T.log_softmax(x, -1), y),
    "KLDivLoss, from logits": lambda p, x, y: _none(T.kl_div, x, y),
    "HuberLoss": lambda p, x, y: _none(T.huber_loss, x, y, delta=0.7) / 0.7,
    "HingeLoss": lambda p, x, y: torch.relu(1 - x * y).mean(1),
    "SquaredHingeLoss": lambda p, x, y: (torch.relu(0.5 - x * y) ** 2).mean(1),
    "LogisticLoss": lambda p, x, y: T.softplus(-x * y).mean(1),
    "LogisticLoss, binary": lambda p, x, y: _none(T.binary_cross_entropy_with_logits, x, y),
    "TripletLoss": lambda p, x, y, z: torch.relu(((x - y) ** 2).sum(1) - ((x - z) ** 2).sum(1) + 1),
    "CosineEmbeddingLoss": lambda p, x, y, s: _none(T.cosine_embedding_loss, x, y, s, margin=0.1),
    "PoissonNLLLoss": lambda p, x, y: _none(T.poisson_nll_loss, x, y),
    "PoissonNLLLoss, full": lambda p, x, y: _none(
        T.poisson_nll_loss, x, y, log_input=False, full=True
    ),
}

ALL = {**LAYERS, **LOSSES}
OF_TORCH = {**LAYERS_OF_TORCH, **LOSSES_OF_TORCH}
LAST_PREDICTION = {
    "CosineEmbeddingLoss": 1,
    "HuberLoss": 1,
    "L1Loss": 1,
    "L2Loss": 1,
    "MultiHeadAttention": 1,
    "TransformerDecoderBlock": 1,
    "TripletLoss": 2,
}
"""The last argument by which PyTorch gives a gradient, where it is not the first."""

OWN_WAYS = {
    "Dropout",
    "Dropout, axes",
    "Flatten",
    "PositionalEncoding",
    "PositionalEncoding, learned",
}


def test_all_are_compared():
    assert set(OF_TORCH) == set(ALL) - OWN_WAYS


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OF_TORCH)
def test_values_and_gradients(name: str, dtype: str):
    draw = Draw(1, dtype)
    arguments = ALL[name].arguments(draw, 3, 5, 4)
    block = prepared(ALL[name], arguments, dtype)
    before = {key: p.data().asnumpy() for key, p in block.collect_params().items()}
    shape = block(*arguments).shape
    head = draw.normal(*shape)
    found = forward_and_backward(block, arguments, head)

    learned = {
        key: torch.tensor(values, requires_grad=block.collect_params()[key].grad_req == "write")
        for key, values in before.items()
    }
    given = [None if x is None else torch.tensor(x) for x in arguments]
    for index, tensor in enumerate(given):
        if index <= LAST_PREDICTION.get(name, 0) and tensor.is_floating_point():
            tensor.requires_grad_()
    result = OF_TORCH[name](learned, *given)
    result.backward(torch.tensor(head))
    expected = {"result": result, **{key: t.grad for key, t in learned.items()}}
    expected |= {f"argument {i}": t.grad for i, t in enumerate(given) if t is not None}

    tolerance = {"float32": 1e-4, "float64": 1e-10}[dtype]
    assert found["result"].dtype == dtype
    for key, values in expected.items():
        if values is not None:
            assert found[key].dtype == dtype
            np.testing.assert_allclose(
                found[key], values.detach().numpy(), tolerance, tolerance, err_msg=key
            )


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("relu", torch.relu),
        ("leaky_relu", T.leaky_relu),
        ("elu", T.elu),
        ("selu", T.selu),
        ("softplus", T.softplus),
        ("softsign", T.softsign),
        ("sigmoid", torch.sigmoid),
        ("log_sigmoid", T.logsigmoid),
        ("silu", T.silu),
        ("gelu", T.gelu),
        ("mish", T.mish),
        ("tanh", torch.tanh),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_far_out_and_at_zero(name: str, theirs: Any, dtype: str):
    x = np.array([-1e30, -800, -90, -20, -1, -0.0, 0.0, 1, 20, 90, 800, 1e30], dtype)
    found = forward_and_backward(nn.Activation(name), [x])
    given = torch.tensor(x, requires_grad=True)
    result = theirs(given)
    result.sum().backward()
    # Near 0 only the distance counts: one of 1e-35 matters to nobody.
    np.testing.assert_allclose(found["result"], result.detach(), 2e-6, 1e-7)
    np.testing.assert_allclose(found["argument 0"], given.grad, 2e-6, 1e-7)


def test_running_statistics():
    """PyTorch divides the running variance by n - 1, Gluon (and minigraph) by n."""
    rng = np.random.default_rng(0)
    ours, theirs = nn.BatchNorm(), torch.nn.BatchNorm1d(3)
    ours.initialize()
    n = 4 * 5
    variance = np.ones(3)
    for _ in range(5):
        x = rng.normal(size=(4, 3, 5)).astype("float32")
        with autograd.train_mode():
            np.testing.assert_allclose(
                ours(x), theirs(torch.tensor(x)).detach(), rtol=1e-4, atol=1e-5
            )
        variance = 0.9 * variance + 0.1 * x.var((0, 2))
    np.testing.assert_allclose(ours.running_mean.data(), theirs.running_mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.running_var.data(), variance, rtol=1e-5)
    unbiased = (theirs.running_var.numpy() - 0.9**5) * (n - 1) / n + 0.9**5
    np.testing.assert_allclose(ours.running_var.data(), unbiased, rtol=1e-5)


class Classifier(nn.HybridBlock):
    """Normalised features, attention over a sequence, the mean over positions, scores."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm(axis=2)
        self.block = nn.TransformerEncoderBlock(4, 2, 6)
        self.output = nn.Dense(3)

    def forward(self, x: Any) -> Any:
        return self.output(self.block(self.norm(x)).mean(axis=1))


def _classify(p: Any, x: Any) -> Any:
    block = {key.removeprefix("block."): value for key, value in p.items()}
    norm = T.batch_norm(
        x.transpose(1, 2), None, None, p["norm.gamma"], p["norm.beta"], training=True
    )
    mean = _encoder(block, norm.transpose(1, 2), 2, 6).mean(1)
    return T.linear(mean, p["output.weight"], p["output.bias"])


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize(
    ("optimizer", "rate"),
    [("sgd", 0.05), pytest.param("adam", 0.005, marks=pytest.mark.slow)],
)
def test_a_hundred_training_steps(optimizer: str, rate: float, hybrid: bool):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(16, 5, 4)), rng.integers(0, 3, 16)
    mg.random.seed(0)
    net = Classifier()
    net.initialize(nn.initializers.Xavier())
    net.cast("float64")
    net(x)
    loss = nn.SoftmaxCELoss()
    learned = {
        name: torch.tensor(p.data().asnumpy(), requires_grad=True)
        for name, p in net.collect_params().items()
        if p.grad_req == "write"
    }
    theirs = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    steps = theirs(learned.values(), lr=rate)
    trainer = nn.Trainer(net.collect_params(), optimizer, {"learning_rate": rate})
    if hybrid:
        net.hybridize()
        loss.hybridize()
    ours_lost, theirs_lost = [], []
    for _ in range(100):
        with autograd.record():
            lost = loss(net(x), labels)
        lost.backward()
        trainer.step(len(x))
        ours_lost.append(float(lost.mean()))
        steps.zero_grad()
        total = T.cross_entropy(_classify(learned, torch.tensor(x)), torch.tensor(labels))
        total.backward()
        steps.step()
        theirs_lost.append(float(total))
    np.testing.assert_allclose(ours_lost, theirs_lost, rtol=1e-8)
    assert ours_lost[-1] < ours_lost[0]
    for name, parameter in net.collect_params().items():
        if name in learned:
            expected = learned[name].detach().numpy()
            np.testing.assert_allclose(parameter.data(), expected, 1e-6, 1e-7, err_msg=name)
