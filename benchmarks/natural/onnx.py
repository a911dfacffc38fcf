"""What a user of ONNX writes for each workload: models of its operators.

What has an operator of its own is that operator.  A weight that is given as (units, inputs) is
stored the other way round, as exporters do.
"""

from __future__ import annotations

import math

import numpy as np

from .onnx_model import Array, Model, Value

# ---- elements and rows -------------------------------------------------------------------------


def softmax(model: Model, x: Value) -> Value:
    return model.node("Softmax", x, axis=-1)


def layer_norm(model: Model, x: Value, residual: Value, *, scale: Array, shift: Array) -> Value:
    h = normalized(model, x + residual, scale, shift)
    return model.node("Gelu", h, approximate="tanh")


def normalized(model: Model, x: Value, scale: Array, shift: Array) -> Value:
    return model.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)


def reduction(model: Model, x: Value, *, method: str, axis: int) -> Value:
    """There is no operator for a variance; that of the squares reads what is left of the mean."""
    if method != "var":
        return getattr(x, method)(axis)
    axes = model.constant([axis], np.int64)
    centred = x - model.node("ReduceMean", x, axes)
    return model.node("ReduceMean", centred * centred, axes, keepdims=0)


# ---- networks ----------------------------------------------------------------------------------


def mlp(
    model: Model, x: Value, *, w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array
) -> Value:
    h = model.node("Relu", model.node("Gemm", x, w1, b1))
    h = model.node("Relu", model.node("Gemm", h, w2, b2))
    return model.node("Gemm", h, w3, b3)


def lstm(model: Model, x: Value, **parameters: Array) -> Value:
    """ONNX has the gates in the order input, output, forget, cell."""
    return _recurrent(model, "LSTM", x, (0, 3, 1, 2), **parameters)


def gru(model: Model, x: Value, **parameters: Array) -> Value:
    """ONNX has the gates in the order update, reset, new."""
    return _recurrent(model, "GRU", x, (1, 0, 2), linear_before_reset=1, **parameters)


def _recurrent(
    model: Model,
    op: str,
    x: Value,
    order: tuple[int, ...],
    *,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array,
    b_hh: Array,
    **attributes: int,
) -> Value:
    def ordered(array: Array) -> Array:
        gates = np.split(array, len(order))
        return np.concatenate([gates[gate] for gate in order])

    hidden = w_hh.shape[1]
    weights = ordered(w_ih)[None], ordered(w_hh)[None]
    biases = np.concatenate([ordered(b_ih), ordered(b_hh)])[None]
    states = model.node(op, x, *weights, biases, hidden_size=hidden, **attributes)
    only_direction = model.constant([1], np.int64)
    return model.node("Squeeze", states, only_direction)


def encoder(model: Model, x: Value, *, heads: int, **p: Array) -> Value:
    units = len(p["query_bias"])
    shape = (0, -1, heads, units // heads)  # the first axis stays

    def linear(name: str, h: Value) -> Value:
        return h @ p[f"{name}_weight"].T + p[f"{name}_bias"]

    query = linear("query", x).reshape(*shape).transpose(0, 2, 1, 3)
    key = linear("key", x).reshape(*shape).transpose(0, 2, 3, 1)
    value = linear("value", x).reshape(*shape).transpose(0, 2, 1, 3)
    shares = softmax(model, query @ key / math.sqrt(units // heads))
    mixed = (shares @ value).transpose(0, 2, 1, 3).reshape(0, -1, units)
    h = normalized(model, x + linear("output", mixed), p["norm1_scale"], p["norm1_shift"])
    inner = linear("last", model.node("Relu", linear("hidden", h)))
    return normalized(model, h + inner, p["norm2_scale"], p["norm2_shift"])
