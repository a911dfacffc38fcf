"""Networks that learn: a step of training, a call of a block, and the memory of activations.

All start with the same parameters.  Before anything is timed, the losses of the first steps are
compared.
"""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import minigraph as mg
from minigraph import autograd, nn

from .comparing import Disagreement, Row, in_turns
from .encoder import encoder
from .peers import Call
from .works import WIDTHS, single

CLASSES, BATCH, RATE = 10, 32, {"sgd": 0.1, "adam": 1e-3}
STEPS = 5  # whose losses are compared
Arrays = list[np.ndarray[Any, Any]]
Step = Callable[[], Any]


def _data() -> tuple[Any, Any, Arrays]:
    """Samples, labels, and the parameters: weights as (units, inputs), and biases."""
    rng = np.random.default_rng(0)
    widths = (*WIDTHS[:-1], CLASSES)
    parameters: Arrays = []
    for inputs, units in zip(widths, widths[1:], strict=False):
        parameters.append(single(rng, units, inputs) / np.float32(np.sqrt(inputs)))
        parameters.append(np.zeros(units, np.float32))
    return single(rng, BATCH, widths[0]), rng.integers(0, CLASSES, BATCH), parameters


def _network(parameters: Arrays, **options: Any) -> nn.HybridSequential:
    net = nn.HybridSequential()
    *hidden, last = (len(weight) for weight in parameters[::2])
    for units in hidden:
        net.add(nn.Dense(units, activation="relu"))
    net.add(nn.Dense(last))
    net.initialize()
    net(np.zeros((1, parameters[0].shape[1]), np.float32))
    for parameter, array in zip(net.collect_params().values(), parameters, strict=True):
        parameter.set_data(array)
    if options:
        net.hybridize(**options)
    return net


# ---- a step of training ------------------------------------------------------------------------


def whole_step(optimizer: str, backend: str) -> Step:
    """Forward, loss, backward and update as one program."""
    x, y, parameters = _data()
    net, loss = _network(parameters), nn.SoftmaxCrossEntropyLoss()
    trainer = nn.Trainer(net.collect_params(), optimizer, {"learning_rate": RATE[optimizer]})

    @mg.jit(backend=backend)
    def step(x: Any, y: Any) -> Any:
        with autograd.record():
            found = loss(net(x), y).mean()
        found.backward()
        trainer.step(1)
        return found

    return functools.partial(step, mg.array(x), mg.array(y))


def hybridized_step(optimizer: str, backend: str) -> Step:
    """The same as Gluon's users write it: a hybridized network, a tape, a trainer."""
    x, y, parameters = _data()
    net, loss = _network(parameters, backend=backend), nn.SoftmaxCrossEntropyLoss()
    loss.hybridize(backend=backend)
    trainer = nn.Trainer(net.collect_params(), optimizer, {"learning_rate": RATE[optimizer]})
    samples, labels = mg.array(x), mg.array(y)

    def step() -> Any:
        with autograd.record():
            found = loss(net(samples), labels)
        found.backward()
        trainer.step(BATCH)
        return found.mean()

    return step


def torch_step(optimizer: str) -> Step:
    import torch

    x, y, parameters = _data()
    net = _torch_network(parameters)
    algorithm = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    rule = algorithm(net.parameters(), lr=RATE[optimizer])
    loss = torch.nn.CrossEntropyLoss()
    samples, labels = torch.from_numpy(x), torch.from_numpy(y)

    def step() -> Any:
        rule.zero_grad()
        found = loss(net(samples), labels)
        found.backward()
        rule.step()
        return found.detach()

    return step


def _torch_network(parameters: Arrays) -> Any:
    import torch

    layers: list[Any] = []
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data, layer.bias.data = map(torch.from_numpy, (weight.copy(), bias.copy()))
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def jax_step(optimizer: str) -> Step:
    """Plain gradient descent, which needs no library besides JAX."""
    import jax
    import jax.numpy as jnp

    assert optimizer == "sgd"
    x, y, parameters = _data()

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        *hidden, (weight, bias) = zip(parameters[::2], parameters[1::2], strict=True)
        for w, b in hidden:
            x = jnp.maximum(x @ w.T + b, 0)
        scores = jax.nn.log_softmax(x @ weight.T + bias)
        return -jnp.take_along_axis(scores, y[:, None], 1).mean()

    def update(parameters: Any, x: Any, y: Any) -> Any:
        found, gradients = jax.value_and_grad(loss)(parameters, x, y)
        pairs = zip(parameters, gradients, strict=True)
        return found, [each - RATE["sgd"] * gradient for each, gradient in pairs]

    compiled = jax.jit(update, donate_argnums=0)
    state, samples, labels = [jnp.asarray(each) for each in parameters], *map(jnp.asarray, (x, y))

    def step() -> Any:
        nonlocal state
        found, state = compiled(state, samples, labels)
        return jax.block_until_ready(found)

    return step


def training(*, backend: str = "auto", rounds: int = 15, sample_s: float = 0.002) -> list[Row]:
    """A step of training of an MLP, batch 32: softmax cross entropy, SGD and Adam."""
    return [
        *_steps("sgd", {"torch eager": 0.8, "JAX": 0.9}, backend, rounds, sample_s),
        *_steps("adam", {"torch eager": 0.8}, backend, rounds, sample_s),
    ]


def _steps(
    optimizer: str, bars: Mapping[str, float], backend: str, rounds: int, sample_s: float
) -> list[Row]:
    made: dict[str, Callable[[], Step]] = {
        "one program": functools.partial(whole_step, optimizer, backend),
        "hybridized": functools.partial(hybridized_step, optimizer, backend),
        "torch eager": functools.partial(torch_step, optimizer),
        "JAX": functools.partial(jax_step, optimizer),
    }
    steps: dict[str, Step] = {}
    for name in ("one program", "hybridized", *bars):
        try:
            steps[name] = made[name]()
        except ImportError:
            continue
    losses = {name: [float(step()) for _ in range(STEPS)] for name, step in steps.items()}
    for name, found in losses.items():
        if not np.allclose(found, losses["one program"], rtol=1e-4):
            raise Disagreement(f"{name} has other losses: {found}, {losses['one program']}")
    calls = {name: Call(step) for name, step in steps.items()}
    seconds = in_turns(calls, rounds, rest_s=0.03, sample_s=sample_s)
    title = f"training step, MLP, batch {BATCH}, {optimizer}"
    return [
        Row(f"{title}, {way}", name, seconds[name], seconds[way], at_most)
        for way in ("one program", "hybridized")
        for name, at_most in bars.items()
        if name in seconds
    ]


# ---- a call of a block -------------------------------------------------------------------------


def blocks(*, backend: str = "auto", rounds: int = 15, sample_s: float = 0.001) -> list[Row]:
    """The MLP at batch 1 as a block, imperative and hybridized."""
    _, _, parameters = _data()
    parameters[-2:] = [parameters[-2][:2], parameters[-1][:2]]
    x = single(np.random.default_rng(1), 1, WIDTHS[0])
    array = mg.array(x)
    calls = {
        "imperative": Call(functools.partial(_network(parameters), array)),
        "hybridized": Call(functools.partial(_network(parameters, backend=backend), array)),
        "static": Call(
            functools.partial(_network(parameters, backend=backend, static_shape=True), array)
        ),
    }
    try:
        import torch
    except ImportError:
        pass
    else:
        net = _torch_network(parameters)
        tensor = torch.from_numpy(x)
        calls["torch eager"] = Call(functools.partial(net, tensor))
        calls["torch.jit.script"] = Call(functools.partial(torch.jit.script(net), tensor))
    seconds = in_turns(calls, rounds, rest_s=0.03, sample_s=sample_s)
    bars = (
        ("imperative", "torch eager", 1.5),
        ("hybridized", "torch.jit.script", 0.45),
        ("static", "torch.jit.script", 0.45),
    )
    return [
        Row(f"MLP as a block, batch 1, {way}", name, seconds[name], seconds[way], at_most)
        for way, name, at_most in bars
        if name in seconds
    ]


# ---- memory of activations ---------------------------------------------------------------------


def activations(*, backend: str = "auto", layers: int = 10, width: int = 512) -> list[Row]:
    """Memory for the activations of an MLP of ten layers at inference, batch 256.

    Measured with the Python backend, whose every array `tracemalloc` sees; the plan is one for all.
    """
    rng = np.random.default_rng(0)
    parameters: Arrays = []
    for _ in range(layers):
        parameters += [single(rng, width, width), np.zeros(width, np.float32)]
    x = mg.array(single(rng, 256, width))
    net = _network(parameters)
    imperative = _peak_bytes(functools.partial(net, x))
    net.hybridize(backend="python")
    hybridized = _peak_bytes(functools.partial(net, x))
    net.hybridize(backend=backend)
    net(x)
    title, unit = f"activations of {layers} layers", "byte"
    planned = net.memory_report().planned
    return [
        Row(f"{title}, measured", "imperative", imperative, hybridized, 0.6, unit=unit),
        Row(f"{title}, planned", "imperative", imperative, planned, 0.6, unit=unit),
    ]


def _peak_bytes(call: Step) -> int:
    """The most memory that is allocated at once during a call."""
    kept = [call()]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept.append(call())
    after = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return after - before


TRAINING: dict[str, Callable[..., list[Row]]] = {
    "training": training,
    "blocks": blocks,
    "encoder": encoder,
    "activations": activations,
}
