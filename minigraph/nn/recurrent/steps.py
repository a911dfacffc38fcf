"""The equations of recurrent layers, and how they run over a sequence.

Each step takes the input's product p = W x + b, of all steps computed at once, and the state h (of
an LSTM also c), with the product q = U h of the step itself:

    rnn     h' = activation(p + q)
    lstm    i, f, g, o = the four parts of p + q
            c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
            h' = sigmoid(o) * tanh(c')
    gru     r = sigmoid of the first parts of p + q,  z = sigmoid of the second
            n = tanh(third part of p + r * third part of q)
            h' = (1 - z) * n + z * h

The order of the parts is that of Gluon, cuDNN and PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigraph.jit import JitFunction, jit
from minigraph.trace import NUMPY, scan

from .. import functional as F
from ..functional import along

States = tuple[Any, ...]
"""The state of a cell: h, or h and c; of shape (batch, hidden_size) each."""


def rnn_relu(inner: Any, outer: Any, states: States) -> States:
    """The next state of a plain network with `relu`."""
    return (F.relu(inner + outer),)


def rnn_tanh(inner: Any, outer: Any, states: States) -> States:
    """The next state of a plain network with `tanh`."""
    return (np.tanh(inner + outer),)


def lstm(inner: Any, outer: Any, states: States) -> States:
    """The next states of long short-term memory."""
    _, c = states
    i, f, g, o = map(np.add, _parts(inner, 4), _parts(outer, 4))
    c = F.sigmoid(f) * c + F.sigmoid(i) * np.tanh(g)
    return F.sigmoid(o) * np.tanh(c), c


def gru(inner: Any, outer: Any, states: States) -> States:
    """The next state of gated recurrent units."""
    (h,) = states
    inner_r, inner_z, inner_n = _parts(inner, 3)
    outer_r, outer_z, outer_n = _parts(outer, 3)
    z = F.sigmoid(inner_z + outer_z)
    n = np.tanh(inner_n + F.sigmoid(inner_r + outer_r) * outer_n)
    return ((1 - z) * n + z * h,)


def _parts(x: Any, count: int) -> list[Any]:
    """The last axis in equal parts."""
    size = x.shape[-1] // count
    return [x[..., at * size : (at + 1) * size] for at in range(count)]


class Equations(NamedTuple):
    """What one kind of network computes.

    Attributes:
        step: (p, q, states) -> the next states.
        parts: of the products, each of hidden_size numbers.
        states: how many arrays a state is.
        biases_add: both biases are added to the same numbers, and so can be before the loop.
    """

    step: Callable[[Any, Any, States], States]
    parts: int
    states: int
    biases_add: bool


EQUATIONS = {
    "relu": Equations(rnn_relu, 1, 1, True),
    "tanh": Equations(rnn_tanh, 1, 1, True),
    "lstm": Equations(lstm, 4, 2, True),
    "gru": Equations(gru, 3, 1, False),
}


class Weights(NamedTuple):
    """Of one direction of one layer: (parts * hidden_size, features or hidden_size), and biases."""

    i2h_weight: Any
    h2h_weight: Any
    i2h_bias: Any
    h2h_bias: Any


def one_step(kind: str, x: Any, states: Sequence[Any], weights: Weights) -> States:
    """The states after one step of a batch x: (batch, features); the first is what comes out."""
    inner = F.linear(x, weights.i2h_weight, weights.i2h_bias)
    outer = F.linear(states[0], weights.h2h_weight, weights.h2h_bias)
    return EQUATIONS[kind].step(inner, outer, tuple(states))


def over_sequence(
    kind: str,
    x: Any,
    states: States,
    weights: Weights,
    lengths: Any = None,
    reverse: bool = False,
) -> tuple[Any, States]:
    """All steps of a sequence, from the last one to the first if `reverse`.

    Args:
        kind: a key of `EQUATIONS`.
        x: (length, batch, features).
        states: with which it begins.
        weights: of this direction.
        lengths: (batch,), or None: all are as long as x.  After the end of a sequence the output is
            0 and the state stays; in reverse it is the first one until there.
        reverse: begin at the end.

    Returns:
        The outputs, (length, batch, hidden_size), and the states at the end.
    """
    length, batch, features = x.shape
    equations = EQUATIONS[kind]
    bias, later = weights.i2h_bias, weights.h2h_bias
    if equations.biases_add:
        bias, later = bias + later, None
    inner = F.linear(x.reshape((-1, features)), weights.i2h_weight, bias)
    inner = inner.reshape((length, batch, weights.i2h_weight.shape[0]))
    dtype = np.result_type(inner.dtype, *(state.dtype for state in states))

    def step(states: States, inner: Any) -> tuple[Any, States]:
        states = equations.step(inner, F.linear(states[0], weights.h2h_weight, later), states)
        return states[0], states

    begin = tuple(state.astype(dtype) for state in states)
    return step_by_step(step, (inner,), begin, lengths, reverse)


compiled_over_sequence: JitFunction = jit(over_sequence, dynamic={"x": {0: "length"}})
"""The same, compiled also where nothing else is: it is one step of the tape, as in every library
whose loops do not run in Python.  Inside of `mg.eager()` it runs in Python all the same."""


def step_by_step(
    step: Callable[..., tuple[Any, States]],
    xs: tuple[Any, ...],
    states: States,
    lengths: Any = None,
    reverse: bool = False,
) -> tuple[Any, States]:
    """`step(states, *xs) -> (output, states)` on the elements of arrays, until sequences end.

    Args:
        step: of a whole batch; all of its arrays have the batch as first axis.
        xs: arrays (length, batch, ...).
        states: with which it begins.
        lengths: as in `over_sequence`.
        reverse: begin at the end.

    Returns:
        The outputs stacked along a new first axis, and the states at the end.
    """
    if lengths is None:

        def free(states: States, xs: tuple[Any, ...]) -> tuple[States, Any]:
            output, states = step(states, *xs)
            return states, output

        states, outputs = scan(free, states, xs, reverse=reverse)
        return outputs, states

    def bounded(states: States, item: tuple[Any, ...]) -> tuple[States, Any]:
        position, *xs = item
        output, after = step(states, *xs)
        runs = position < lengths

        def chosen(new: Any, old: Any) -> Any:
            return np.where(along(runs, 0, new.ndim), new, old)

        return tuple(map(chosen, after, states)), chosen(output, 0)

    positions = NUMPY.arange(xs[0].shape[0])
    states, outputs = scan(bounded, states, (positions, *xs), reverse=reverse)
    return outputs, states
