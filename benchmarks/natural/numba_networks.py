"""Networks by hand in Numba: BLAS by `np.dot` into memory of their own, and loops around it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange

from .numba import f32, fast, normalize_row, shared, sigmoid, softmax_row, tanh


@fast
def add_row(h: Any, b: Any) -> None:
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            h[i, j] += b[j]


@fast
def add_row_relu(h: Any, b: Any) -> None:
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            h[i, j] = max(h[i, j] + b[j], f32(0))


@fast
def row_times(x: Any, w: Any, out: Any) -> None:
    """One row times a matrix, four of its rows at a time: less to do than a call of BLAS."""
    out[:] = f32(0)
    for k in range(0, x.size - 3, 4):
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(out.size):
            out[j] += a * w[k, j] + b * w[k + 1, j] + c * w[k + 2, j] + d * w[k + 3, j]
    for k in range(x.size // 4 * 4, x.size):
        for j in range(out.size):
            out[j] += x[k] * w[k, j]


@fast
def times(x: Any, w: Any, out: Any) -> None:
    if len(x) == 1:
        row_times(x[0], w, out[0])
    else:
        np.dot(x, w, out)


@fast
def mlp(
    x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, first: Any, second: Any
) -> Any:
    """`first` and `second` are memory for the hidden layers."""
    out = np.empty((len(x), w3.shape[1]), x.dtype)
    times(x, w1, first)
    add_row_relu(first, b1)
    times(first, w2, second)
    add_row_relu(second, b2)
    times(second, w3, out)
    add_row(out, b3)
    return out


# ---- recurrent layers --------------------------------------------------------------------------


@fast
def lstm(x: Any, w_in: Any, w_own: Any, bias: Any) -> Any:
    """Weights are (features, gates x hidden); `bias` is the sum of both."""
    steps, batch, features = x.shape
    hidden = w_own.shape[0]
    given = np.dot(x.reshape(steps * batch, features), w_in).reshape(steps, batch, 4 * hidden)
    own = np.empty((batch, 4 * hidden), x.dtype)
    c = np.zeros((batch, hidden), x.dtype)
    out = np.empty((steps, batch, hidden), x.dtype)
    h = c
    for t in range(steps):
        times(h, w_own, own)
        for n in range(batch):
            for j in range(hidden):
                i = sigmoid(own[n, j] + given[t, n, j] + bias[j])
                f = sigmoid(own[n, hidden + j] + given[t, n, hidden + j] + bias[hidden + j])
                k = 2 * hidden + j
                g = tanh(own[n, k] + given[t, n, k] + bias[k])
                k += hidden
                o = sigmoid(own[n, k] + given[t, n, k] + bias[k])
                c[n, j] = f * c[n, j] + i * g
                out[t, n, j] = o * tanh(c[n, j])
        h = out[t]
    return out


@fast
def gru(x: Any, w_in: Any, w_own: Any, b_in: Any, b_own: Any) -> Any:
    """Weights are (features, gates x hidden)."""
    steps, batch, features = x.shape
    hidden = w_own.shape[0]
    given = np.dot(x.reshape(steps * batch, features), w_in).reshape(steps, batch, 3 * hidden)
    own = np.empty((batch, 3 * hidden), x.dtype)
    out = np.empty((steps, batch, hidden), x.dtype)
    h = np.zeros((batch, hidden), x.dtype)
    for t in range(steps):
        times(h, w_own, own)
        for n in range(batch):
            for j in range(hidden):
                r = sigmoid(given[t, n, j] + b_in[j] + own[n, j] + b_own[j])
                k = hidden + j
                z = sigmoid(given[t, n, k] + b_in[k] + own[n, k] + b_own[k])
                k += hidden
                new = tanh(given[t, n, k] + b_in[k] + r * (own[n, k] + b_own[k]))
                out[t, n, j] = (f32(1) - z) * new + z * h[n, j]
        h = out[t]
    return out


# ---- an encoder --------------------------------------------------------------------------------


@shared
def attention(projected: Any, bias: Any, batch: int, length: int, heads: int) -> Any:
    """`projected` has queries, keys and values side by side: (batch x length, 3 x units)."""
    units = projected.shape[1] // 3
    size = units // heads
    factor = f32(1 / math.sqrt(size))
    mixed = np.zeros((batch * length, units), projected.dtype)
    for part in prange(batch * heads):
        first, at = part // heads * length, part % heads * size
        keys = np.empty((size, length), projected.dtype)
        values = np.empty((length, size), projected.dtype)
        for j in range(length):
            for d in range(size):
                k, v = units + at + d, 2 * units + at + d
                keys[d, j] = projected[first + j, k] + bias[k]
                values[j, d] = projected[first + j, v] + bias[v]
        scores = np.empty(length, projected.dtype)
        for i in range(length):
            scores[:] = f32(0)
            for d in range(size):
                q = (projected[first + i, at + d] + bias[at + d]) * factor
                for j in range(length):
                    scores[j] += q * keys[d, j]
            softmax_row(scores, scores)
            row = mixed[first + i, at : at + size]
            for j in range(length):
                for d in range(size):
                    row[d] += scores[j] * values[j, d]
    return mixed


@shared
def add_and_normalize(out: Any, bias: Any, residual: Any, scale: Any, shift: Any) -> None:
    for i in prange(out.shape[0]):
        row = out[i]
        for j in range(row.size):
            row[j] += bias[j] + residual[i, j]
        normalize_row(row, scale, shift)


@fast
def encoder(
    x: Any, heads: int, inputs: Any, output: Any, hidden: Any, last: Any, norm1: Any, norm2: Any
) -> Any:
    """Each layer is (weight, bias), a weight (inputs, units); `inputs` is the first three."""
    batch, length, units = x.shape
    rows = x.reshape(batch * length, units)
    mixed = attention(np.dot(rows, inputs[0]), inputs[1], batch, length, heads)
    h = np.dot(mixed, output[0])
    add_and_normalize(h, output[1], rows, norm1[0], norm1[1])
    inner = np.dot(h, hidden[0])
    add_row_relu(inner, hidden[1])
    out = np.dot(inner, last[0])
    add_and_normalize(out, last[1], h, norm2[0], norm2[1])
    return out.reshape(x.shape)


# ---- training ----------------------------------------------------------------------------------


@fast
def column_sums(x: Any) -> Any:
    out = np.zeros(x.shape[1], x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]
    return out


@fast
def where_positive(gradient: Any, h: Any) -> None:
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            gradient[i, j] = gradient[i, j] if h[i, j] > f32(0) else f32(0)


@fast
def loss_and_scores(scores: Any, labels: Any) -> Any:
    """The mean of the cross entropy; its derivative in place of the scores."""
    total = 0.0
    n = f32(len(labels))
    for i in range(len(labels)):
        softmax_row(scores[i], scores[i])
        total -= math.log(scores[i, labels[i]])
        scores[i, labels[i]] -= f32(1)
        for j in range(scores.shape[1]):
            scores[i, j] /= n
    return f32(total / len(labels))


@njit
def loss_and_gradients(
    x: Any, labels: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any
) -> Any:
    h1 = np.dot(x, w1)
    add_row_relu(h1, b1)
    h2 = np.dot(h1, w2)
    add_row_relu(h2, b2)
    d3 = np.dot(h2, w3)
    add_row(d3, b3)
    loss = loss_and_scores(d3, labels)
    d2 = np.dot(d3, w3.T)
    where_positive(d2, h2)
    d1 = np.dot(d2, w2.T)
    where_positive(d1, h1)
    weights = (np.dot(x.T, d1), np.dot(h1.T, d2), np.dot(h2.T, d3))
    return loss, weights, (column_sums(d1), column_sums(d2), column_sums(d3))


@fast
def descend(p: Any, gradient: Any, rate: Any) -> None:
    """Of flat arrays."""
    for i in range(p.size):
        p[i] -= rate * gradient[i]


@fast
def descend_adam(p: Any, gradient: Any, mean: Any, square: Any, rate: Any, step: int) -> None:
    root = math.sqrt(1 - 0.999**step)
    factor, epsilon = f32(rate * root / (1 - 0.9**step)), f32(1e-8 * root)
    for i in range(p.size):
        g = gradient[i]
        mean[i] += f32(0.1) * (g - mean[i])
        square[i] += f32(0.001) * (g * g - square[i])
        p[i] -= factor * mean[i] / (np.sqrt(square[i]) + epsilon)


@njit
def step_sgd(x: Any, labels: Any, weights: Any, biases: Any, rate: float) -> Any:
    (w1, w2, w3), (b1, b2, b3) = weights, biases
    loss, dw, db = loss_and_gradients(x, labels, w1, b1, w2, b2, w3, b3)
    for i in range(3):
        descend(weights[i].reshape(-1), dw[i].reshape(-1), f32(rate))
        descend(biases[i], db[i], f32(rate))
    return loss


@njit
def step_adam(
    x: Any, labels: Any, weights: Any, biases: Any, rate: float, state: Any, step: int
) -> Any:
    """`state`: means and mean squares of the weights' gradients, then of those of the biases."""
    (w1, w2, w3), (b1, b2, b3) = weights, biases
    means, squares, bias_means, bias_squares = state
    loss, dw, db = loss_and_gradients(x, labels, w1, b1, w2, b2, w3, b3)
    for i in range(3):
        p, g = weights[i].reshape(-1), dw[i].reshape(-1)
        descend_adam(p, g, means[i].reshape(-1), squares[i].reshape(-1), rate, step)
        descend_adam(biases[i], db[i], bias_means[i], bias_squares[i], rate, step)
    return loss
