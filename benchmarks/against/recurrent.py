"""Recurrent networks: an LSTM and a GRU against PyTorch's own layers and cells in TorchScript."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import minigraph as mg
from minigraph import autograd, nn

from .comparing import Disagreement, Row, in_turns
from .peers import Call
from .works import single

STEPS, HIDDEN = 64, 128
TOLERANCE = 1e-4


def recurrent(*, backend: str = "auto", rounds: int = 15, sample_s: float = 0.002) -> list[Row]:
    """LSTM and GRU, 64 steps, hidden 128: forward at batch 1 and 32, and a step of training."""
    rows: list[Row] = []
    for kind in ("LSTM", "GRU"):
        for batch in (1, 32):
            rows += _forward(kind, batch, backend, rounds, sample_s)
        rows += _training(kind, backend, rounds, sample_s)
    return rows


def _layer(kind: str, **options: Any) -> tuple[Any, Any]:
    """Ours, and PyTorch's with the same parameters."""
    import torch

    theirs = getattr(torch.nn, kind)(HIDDEN, HIDDEN)
    ours = getattr(nn, kind)(HIDDEN, input_size=HIDDEN)
    ours.initialize()
    rng = np.random.default_rng(0)
    values = [single(rng, *each.shape) * 0.1 for each in theirs.parameters()]
    for parameter, value in zip(theirs.parameters(), values, strict=True):
        parameter.data = torch.from_numpy(value.copy())
    for parameter, value in zip(ours.collect_params().values(), values, strict=True):
        parameter.set_data(value)
    ours.hybridize(**options)
    return ours, theirs


def _forward(kind: str, batch: int, backend: str, rounds: int, sample_s: float) -> list[Row]:
    import torch

    ours, theirs = _layer(kind, backend=backend)
    x = single(np.random.default_rng(1), STEPS, batch, HIDDEN)
    given = torch.from_numpy(x)
    scripted = _cells(kind, theirs)

    def layer() -> Any:
        return theirs(given)[0]

    calls = {
        "minigraph": Call(functools.partial(ours, x)),
        f"torch.nn.{kind}": Call(layer, torch.no_grad),
        "TorchScript": Call(functools.partial(scripted, given), torch.no_grad),
    }
    wanted = np.asarray(ours(x))
    for name, call in calls.items():
        with call.around():
            found = np.asarray(call.run())
        if not np.allclose(found, wanted, atol=TOLERANCE):
            raise Disagreement(f"{kind}: {name} differs by {np.abs(found - wanted).max():.2g}")
    seconds = in_turns(calls, rounds, rest_s=0.03, sample_s=sample_s)
    title = f"{kind}, {STEPS} steps, hidden {HIDDEN}, batch {batch}"
    bars = {f"torch.nn.{kind}": 1.0, "TorchScript": 0.25 if batch == 1 else None}
    return [
        Row(title, name, seconds[name], seconds["minigraph"], bar) for name, bar in bars.items()
    ]


def _cells(kind: str, layer: Any) -> Any:
    """The layer as a loop over its cell, as TorchScript's users write it."""
    import torch

    class LSTMLoop(torch.nn.Module):
        def __init__(self, cell: Any) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = torch.zeros(x.size(1), x.size(2))
            c = torch.zeros(x.size(1), x.size(2))
            found = []
            for t in range(x.size(0)):
                h, c = self.cell(x[t], (h, c))
                found.append(h)
            return torch.stack(found)

    class GRULoop(torch.nn.Module):
        def __init__(self, cell: Any) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = torch.zeros(x.size(1), x.size(2))
            found = []
            for t in range(x.size(0)):
                h = self.cell(x[t], h)
                found.append(h)
            return torch.stack(found)

    cell = getattr(torch.nn, f"{kind}Cell")(HIDDEN, HIDDEN)
    for own, parameter in zip(cell.parameters(), layer.parameters(), strict=True):
        own.data = parameter.data
    return torch.jit.script(LSTMLoop(cell) if kind == "LSTM" else GRULoop(cell))


def _training(kind: str, backend: str, rounds: int, sample_s: float) -> list[Row]:
    """Forward and backward of the sum of squares, batch 32."""
    import torch

    ours, theirs = _layer(kind, backend=backend)
    x = single(np.random.default_rng(1), STEPS, 32, HIDDEN)
    samples, given = mg.array(x), torch.from_numpy(x)

    def our_step() -> Any:
        with autograd.record():
            found = (ours(samples) ** 2).sum()
        found.backward()
        return found

    def their_step() -> Any:
        theirs.zero_grad()
        found = (theirs(given)[0] ** 2).sum()
        found.backward()
        return found.detach()

    steps: dict[str, Callable[[], Any]] = {"minigraph": our_step, f"torch.nn.{kind}": their_step}
    losses = [float(step()) for step in steps.values()]
    if not np.isclose(*losses, rtol=1e-3):
        raise Disagreement(f"{kind}: other losses: {losses}")
    seconds = in_turns({name: Call(step) for name, step in steps.items()}, rounds, 0.03, sample_s)
    title = f"{kind}, {STEPS} steps, hidden {HIDDEN}, batch 32, forward and backward"
    return [Row(title, f"torch.nn.{kind}", seconds[f"torch.nn.{kind}"], seconds["minigraph"])]
