"""A block of a Transformer's encoder, imperative and hybridized: a prediction, and its gradients.

Both frameworks start with the same parameters, and their results are compared before anything is
timed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import minigraph as mg
from minigraph import autograd, nn

from .comparing import Disagreement, Row, in_turns
from .peers import Call
from .works import single

BATCH, LENGTH, UNITS, HEADS, HIDDEN = 8, 64, 128, 8, 512
Step = Callable[[], Any]


def _block(**options: Any) -> Any:
    block: Any = nn.TransformerEncoderBlock(UNITS, HEADS, HIDDEN)
    block.initialize()
    block(np.zeros((1, 1, UNITS), np.float32))
    rng = np.random.default_rng(0)
    for name, parameter in block.collect_params().items():
        if name.endswith("weight"):
            parameter.set_data(single(rng, *parameter.shape) / np.float32(np.sqrt(UNITS)))
    if options:
        block.hybridize(**options)
    return block


def _torch_layer(block: Any) -> Any:
    """PyTorch's layer with a block's parameters."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(UNITS, HEADS, HIDDEN, dropout=0.0, batch_first=True)
    ours = {
        name: torch.from_numpy(parameter.data().asnumpy())
        for name, parameter in block.collect_params().items()
    }
    state = layer.state_dict()
    for kind in ("weight", "bias"):
        parts = [ours[f"attention.{part}.{kind}"] for part in ("query", "key", "value")]
        state[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
        state[f"self_attn.out_proj.{kind}"] = ours[f"attention.output.{kind}"]
        state[f"linear1.{kind}"] = ours[f"feed_forward.hidden.{kind}"]
        state[f"linear2.{kind}"] = ours[f"feed_forward.output.{kind}"]
    layer.load_state_dict(state)
    return layer


def _learning(block: Any, x: Any) -> Step:
    def step() -> Any:
        with autograd.record():
            loss = (block(x) ** 2).mean()
        loss.backward()
        return loss

    return step


def _torch_steps(block: Any, x: Any) -> tuple[Step, Step]:
    import torch

    learning, predicting = _torch_layer(block).train(), _torch_layer(block).eval()
    tensor = torch.from_numpy(x)

    def predict() -> Any:
        with torch.no_grad():
            return predicting(tensor)

    def step() -> Any:
        learning.zero_grad()
        loss = (learning(tensor) ** 2).mean()
        loss.backward()
        return loss.detach()

    return predict, step


def encoder(*, backend: str = "auto", rounds: int = 15, sample_s: float = 0.01) -> list[Row]:
    """8 sequences of 64; 128 units, 8 heads, 512 hidden units: forward, and both ways."""
    x = single(np.random.default_rng(1), BATCH, LENGTH, UNITS)
    array = mg.array(x)
    ways = {"imperative": _block(), "hybridized": _block(backend=backend)}
    predictions: dict[str, Step] = {
        way: functools.partial(block, array) for way, block in ways.items()
    }
    steps: dict[str, Step] = {way: _learning(block, array) for way, block in ways.items()}
    with contextlib.suppress(ImportError):
        predictions["torch eager"], steps["torch eager"] = _torch_steps(ways["imperative"], x)
    size = f"encoder block {BATCH}x{LENGTH}x{UNITS}"
    return [
        *_rows(f"{size}, prediction", predictions, 1.0, rounds, sample_s),
        *_rows(f"{size}, gradients", steps, 1.0, rounds, sample_s),
    ]


def _rows(
    title: str, steps: dict[str, Step], at_most: float, rounds: int, sample_s: float
) -> list[Row]:
    found = {name: np.asarray(step()) for name, step in steps.items()}
    for name, result in found.items():
        if not np.allclose(result, found["imperative"], rtol=1e-3, atol=1e-4):
            raise Disagreement(f"{title}: {name} has another result")
    calls = {name: Call(step) for name, step in steps.items()}
    seconds = in_turns(calls, rounds, rest_s=0.05, sample_s=sample_s)
    return [
        Row(f"{title}, hybridized", name, seconds[name], seconds["hybridized"], at_most)
        for name in ("imperative", "torch eager")
        if name in seconds
    ]
