"""What a user of PyTorch writes for each workload; all of it can be scripted.

Networks take the parameters of a case as tensors.  What has a function or a layer in PyTorch is
that function or layer; the rest is written as the workload's formula says.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

# ---- elements and rows -------------------------------------------------------------------------


def add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def fancy_func(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g


def chain(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=1)


class LayerNorm(nn.Module):
    """The sum with a residual, normalised, through GELU."""

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(len(scale))
        set_parameters(self.norm, scale, shift)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return functional.gelu(self.norm(x + residual), approximate="tanh")


def reduction(x: Tensor, method: str, axis: int) -> Tensor:
    if method == "max":
        return torch.amax(x, axis)
    if method == "var":
        return torch.var(x, axis, correction=0)
    return torch.sum(x, axis)


# ---- networks ----------------------------------------------------------------------------------


def set_parameters(module: nn.Module, *tensors: Tensor) -> None:
    """Give a module parameters, in their order."""
    for parameter, tensor in zip(module.parameters(), tensors, strict=True):
        parameter.data = tensor.clone()


def dense(weight: Tensor, bias: Tensor) -> nn.Linear:
    """From a weight that is (inputs, units), as the case has it."""
    layer = nn.Linear(*weight.shape)
    set_parameters(layer, weight.T.contiguous(), bias)
    return layer


class MLP(nn.Module):
    """Written out, which is no slower than nn.Sequential, and tells its lines to compilers."""

    def __init__(self, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor):
        super().__init__()
        self.first = dense(w1, b1)
        self.second = dense(w2, b2)
        self.last = dense(w3, b3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        h = torch.relu(self.second(h))
        return self.last(h)


class LSTM(nn.Module):
    """PyTorch's own layer, of which all hidden states are asked."""

    def __init__(self, *parameters: Tensor) -> None:
        super().__init__()
        self.layer = nn.LSTM(parameters[0].shape[1], parameters[1].shape[1])
        set_parameters(self.layer, *parameters)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.layer(x)
        return states


class GRU(nn.Module):
    """PyTorch's own layer, of which all hidden states are asked."""

    def __init__(self, *parameters: Tensor) -> None:
        super().__init__()
        self.layer = nn.GRU(parameters[0].shape[1], parameters[1].shape[1])
        set_parameters(self.layer, *parameters)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.layer(x)
        return states


class LSTMOfCells(nn.Module):
    """A loop over a cell, as one writes it who wants to change the cell."""

    def __init__(self, *parameters: Tensor) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(parameters[0].shape[1], parameters[1].shape[1])
        set_parameters(self.cell, *parameters)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.cell.hidden_size)
        c = torch.zeros(x.size(1), self.cell.hidden_size)
        states = []
        for step in x.unbind(0):
            h, c = self.cell(step, (h, c))
            states.append(h)
        return torch.stack(states)


class GRUOfCells(nn.Module):
    """A loop over a cell, as one writes it who wants to change the cell."""

    def __init__(self, *parameters: Tensor) -> None:
        super().__init__()
        self.cell = nn.GRUCell(parameters[0].shape[1], parameters[1].shape[1])
        set_parameters(self.cell, *parameters)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.cell.hidden_size)
        states = []
        for step in x.unbind(0):
            h = self.cell(step, h)
            states.append(h)
        return torch.stack(states)


def encoder(heads: int, **parameters: Tensor) -> nn.TransformerEncoderLayer:
    units, hidden = parameters["query_weight"].shape[0], parameters["hidden_weight"].shape[0]
    layer = nn.TransformerEncoderLayer(units, heads, hidden, dropout=0.0, batch_first=True)
    state = {}
    for kind in ("weight", "bias"):
        parts = [parameters[f"{name}_{kind}"] for name in ("query", "key", "value")]
        state[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
        state[f"self_attn.out_proj.{kind}"] = parameters[f"output_{kind}"]
        state[f"linear1.{kind}"] = parameters[f"hidden_{kind}"]
        state[f"linear2.{kind}"] = parameters[f"last_{kind}"]
    for name in ("norm1", "norm2"):
        state[f"{name}.weight"] = parameters[f"{name}_scale"]
        state[f"{name}.bias"] = parameters[f"{name}_shift"]
    layer.load_state_dict(state)
    return layer


def optimizer(module: nn.Module, optimizer: str, rate: float) -> torch.optim.Optimizer:
    """Adam by one kernel for all parameters; for SGD that is no faster than the default."""
    if optimizer == "adam":
        return torch.optim.Adam(module.parameters(), lr=rate, fused=True)
    return torch.optim.SGD(module.parameters(), lr=rate)


def encoder_gradients(layer: nn.TransformerEncoderLayer) -> list[Tensor]:
    """In the order of a case's parameters."""
    attention = layer.self_attn
    parts = zip(attention.in_proj_weight.grad.chunk(3), attention.in_proj_bias.grad.chunk(3))  # noqa: B905
    found = [each for pair in parts for each in pair]
    for module in (attention.out_proj, layer.linear1, layer.linear2, layer.norm1, layer.norm2):
        found += [module.weight.grad, module.bias.grad]
    return found


# ---- programs on arrays ------------------------------------------------------------------------


def normal_cdf(x: Tensor) -> Tensor:
    """Abramowitz and Stegun 26.2.17: six digits of the normal distribution."""
    k = 1 / (1 + 0.2316419 * torch.abs(x))
    series = 1.330274429 * k - 1.821255978
    series = series * k + 1.781477937
    series = series * k - 0.356563782
    series = series * k + 0.319381530
    tail = torch.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)) * series * k
    return torch.where(x < 0, tail, 1 - tail)


def black_scholes(spot: Tensor, strike: Tensor, years: Tensor) -> Tensor:
    rate = 0.02
    volatility = 0.3
    deviation = volatility * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * torch.exp(-rate * years)
    return spot * normal_cdf(d1) - discounted * normal_cdf(d2)


def mandelbrot(real: Tensor, imaginary: Tensor, steps: int) -> Tensor:
    a = real
    b = imaginary
    found = torch.zeros_like(real)
    for _ in range(steps):
        a2 = a * a
        b2 = b * b
        found = found + (a2 + b2 <= 4)
        b = 2 * a * b + imaginary
        a = a2 - b2 + real
    return found


def heat(u: Tensor) -> Tensor:
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return u[1:-1, 1:-1] + 0.1 * (around - 4 * u[1:-1, 1:-1])


def pairwise(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(x, y)


# ---- loops over numbers ------------------------------------------------------------------------


def add_numbers(a: int, b: int) -> int:
    return a + b


def fancy_func_of_numbers(a: int, b: int, c: int, d: int) -> int:
    e = add_numbers(a, b)
    f = add_numbers(c, d)
    g = add_numbers(e, f)
    return g


def collatz(limit: int) -> int:
    """How many steps all numbers below `limit` together take to 1."""
    steps = 0
    for start in range(1, limit):
        n = start
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
    return steps


def newton(count: int) -> float:
    """Points at given distances from three others; each to convergence."""
    total = 0.0
    for k in range(count):
        goal = 2.0 + 0.0001 * k
        p = 9.0 + goal * goal + 1.0
        q = 1.0 + goal * goal + 4.0
        r = 4.0 + (goal - 5.0) * (goal - 5.0) + 1.0
        x = 2.0
        y = 1.0
        z = 3.0
        error = 1.0
        while error > 1e-20:
            a = x - 4.0
            b = z - 1.0
            c = x - 1.0
            d = y - 5.0
            f = 0.5 * (x * x + y * y + z * z - p)
            g = 0.5 * (a * a + y * y + b * b - q)
            h = 0.5 * (c * c + d * d + z * z - r)
            m1 = y * z - b * d
            m2 = b * c - a * z
            m3 = a * d - y * c
            n1 = z * d - y * z
            n2 = x * z - z * c
            n3 = y * c - x * d
            o1 = y * b - z * y
            o2 = z * a - x * b
            o3 = x * y - y * a
            scale = 1.0 / (x * m1 + y * m2 + z * m3)
            u = (m1 * f + n1 * g + o1 * h) * scale
            v = (m2 * f + n2 * g + o2 * h) * scale
            w = (m3 * f + n3 * g + o3 * h) * scale
            x = x - u
            y = y - v
            z = z - w
            error = (u * u + v * v + w * w) / (p + q)
        total += x + y + z
    return total


def levenshtein(a: list[int], b: list[int]) -> int:
    """One row of the table at a time, on lists, which TorchScript reads and writes fastest."""
    row = [j for j in range(len(b) + 1)]
    for i in range(len(a)):
        corner = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            best = min(row[j], row[j + 1]) + 1
            if a[i] != b[j]:
                corner += 1
            best = min(best, corner)
            corner = row[j + 1]
            row[j + 1] = best
    return row[len(b)]


def sieve(limit: int) -> int:
    """On a list, which TorchScript reads and writes fastest."""
    prime = [True for _ in range(limit)]
    prime[0] = False
    prime[1] = False
    i = 2
    while i * i < limit:
        if prime[i]:
            for j in range(i * i, limit, i):
                prime[j] = False
        i += 1
    found = 0
    for each in prime:
        if each:
            found += 1
    return found
