"""What a user of TensorFlow writes for each workload; AutoGraph can translate all of it.

Functions of arrays alone stand here as they are called.  What has parameters is a function that
takes them and returns the user's function; weights are (inputs, units), as Keras has them.  They
are tensors, or variables where gradients are asked for: operations on them are faster than Keras's
layers, whose calls cost Python time.  Which recurrent layer is the fastest depends on how it is
compiled: see the runner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Tensor = Any
Function = Callable[..., Any]

# ---- elements and rows -------------------------------------------------------------------------


def add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def fancy_func(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g


def chain(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def softmax(x: Tensor) -> Tensor:
    return tf.nn.softmax(x)


def reduction(method: str, axis: int) -> Function:
    reduce = {"sum": tf.reduce_sum, "max": tf.reduce_max, "var": tf.math.reduce_variance}[method]

    def reduction(x: Tensor) -> Tensor:
        return reduce(x, axis)

    return reduction


def layer_norm(scale: Tensor, shift: Tensor) -> Function:
    """The sum with a residual, normalised, through GELU."""

    def layer_norm(x: Tensor, residual: Tensor) -> Tensor:
        return tf.nn.gelu(normalized(x + residual, scale, shift), approximate=True)

    return layer_norm


def normalized(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-5)


# ---- networks ----------------------------------------------------------------------------------


def mlp(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor) -> Function:
    def mlp(x: Tensor) -> Tensor:
        h = tf.nn.relu(tf.matmul(x, w1) + b1)
        h = tf.nn.relu(tf.matmul(h, w2) + b2)
        return tf.matmul(h, w3) + b3

    return mlp


def lstm_kernel(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Function:
    """By TensorFlow's kernel for all steps, which XLA does not have.

    Its successor, BlockLSTMV2, computes the same, but other gradients.
    """

    def lstm(x: Tensor) -> Tensor:
        steps, batch, _ = x.shape
        hidden = w_hh.shape[0]
        state, no_peephole = tf.zeros((batch, hidden)), tf.zeros(hidden)
        return tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(steps, tf.int64),
            x=x,
            cs_prev=state,
            h_prev=state,
            w=tf.concat([w_ih, w_hh], 0),
            wci=no_peephole,
            wcf=no_peephole,
            wco=no_peephole,
            b=b_ih + b_hh,
            forget_bias=0.0,
            cell_clip=0.0,
            use_peephole=False,
        ).h

    return lstm


def lstm_cells(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Function:
    """A loop in Python; the products with the inputs of all steps come first, as one."""

    def lstm(x: Tensor) -> Tensor:
        h = c = tf.zeros((x.shape[1], w_hh.shape[0]))
        states = []
        for given in tf.unstack(products(x, w_ih, b_ih + b_hh)):
            i, f, g, o = tf.split(given + tf.matmul(h, w_hh), 4, axis=1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            states.append(h)
        return tf.stack(states)

    return lstm


def gru_cells(w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Function:
    """A loop in Python; the products with the inputs of all steps come first, as one."""

    def gru(x: Tensor) -> Tensor:
        h = tf.zeros((x.shape[1], w_hh.shape[0]))
        states = []
        for given in tf.unstack(products(x, w_ih, b_ih)):
            given_r, given_z, given_n = tf.split(given, 3, axis=1)
            own_r, own_z, own_n = tf.split(tf.matmul(h, w_hh) + b_hh, 3, axis=1)
            r, z = tf.sigmoid(given_r + own_r), tf.sigmoid(given_z + own_z)
            n = tf.tanh(given_n + r * own_n)
            h = (1 - z) * n + z * h
            states.append(h)
        return tf.stack(states)

    return gru


GATES = {"lstm_kernel": (0, 2, 1, 3), "lstm": (0, 1, 2, 3), "gru": (1, 0, 2)}
"""In which order the kernel, or Keras, has the gates."""


def keras_layer(kind: str, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    """Keras's layer, given arrays of NumPy; its LSTM has the sum of the two biases."""
    layer = {"lstm": tf.keras.layers.LSTM, "gru": tf.keras.layers.GRU}[kind]
    made = layer(w_hh.shape[1], return_sequences=True)
    made.build((None, None, w_ih.shape[1]))
    w_ih, w_hh, b_ih, b_hh = (ordered(kind, each) for each in (w_ih, w_hh, b_ih, b_hh))
    biases = b_ih + b_hh if kind == "lstm" else np.stack([b_ih, b_hh])
    made.set_weights([w_ih.T, w_hh.T, biases])
    return made


def from_keras(kind: str, w_ih: Any, w_hh: Any, biases: Any) -> list[Any]:
    """Gradients of such a layer, as those of its arguments."""
    both = (biases, biases) if kind == "lstm" else biases
    return [ordered(kind, each) for each in (w_ih.T, w_hh.T, *both)]


def ordered(kind: str, array: Any) -> Any:
    """With the gates in that order, or back: each of the orders is its own inverse."""
    gates = np.split(array, len(GATES[kind]))
    return np.concatenate([gates[gate] for gate in GATES[kind]])


def products(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Of every vector along the last axis, by one product of matrices."""
    found = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), weight) + bias
    return tf.reshape(found, (*x.shape[:-1], weight.shape[1]))


def encoder(heads: int, **p: Tensor) -> Function:
    units = p["query_weight"].shape[0]

    def linear(name: str, x: Tensor) -> Tensor:
        return products(x, p[f"{name}_weight"], p[f"{name}_bias"])

    def split(name: str, x: Tensor) -> Tensor:
        found = tf.reshape(linear(name, x), (*x.shape[:2], heads, units // heads))
        return tf.transpose(found, (0, 2, 1, 3))

    def encoder(x: Tensor) -> Tensor:
        scores = tf.matmul(split("query", x), split("key", x), transpose_b=True)
        shares = tf.nn.softmax(scores / math.sqrt(units // heads))
        mixed = tf.transpose(tf.matmul(shares, split("value", x)), (0, 2, 1, 3))
        mixed = linear("output", tf.reshape(mixed, x.shape))
        h = normalized(x + mixed, p["norm1_scale"], p["norm1_shift"])
        inner = linear("last", tf.nn.relu(linear("hidden", h)))
        return normalized(h + inner, p["norm2_scale"], p["norm2_shift"])

    return encoder


# ---- training ----------------------------------------------------------------------------------


def gradients(forward: Function, variables: Sequence[Any], reduce: Function) -> Function:
    """The loss is the sum or mean of the squares; nothing is updated."""

    def step(x: Tensor) -> Sequence[Tensor]:
        with tf.GradientTape() as tape:
            loss = reduce(tf.square(forward(x)))
        return (loss, *tape.gradient(loss, variables))

    return step


def training(forward: Function, variables: Sequence[Any], update: Function) -> Function:
    def step(x: Tensor, labels: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, forward(x))
            loss = tf.reduce_mean(losses)
        update(tape.gradient(loss, variables))
        return loss

    return step


def descent(variables: Sequence[Any], rate: float) -> Function:
    """Stochastic gradient descent."""

    def update(gradients: Sequence[Tensor]) -> None:
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(rate * gradient)

    return update


def adam(variables: Sequence[Any], rate: float) -> Function:
    """By TensorFlow's own operation."""
    means, squares = ([tf.Variable(tf.zeros_like(v)) for v in variables] for _ in range(2))
    powers = tf.Variable(0.9), tf.Variable(0.999)

    def update(gradients: Sequence[Tensor]) -> None:
        states = zip(variables, means, squares, gradients, strict=True)
        for variable, mean, square, gradient in states:
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=mean.handle,
                v=square.handle,
                beta1_power=powers[0],
                beta2_power=powers[1],
                lr=rate,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-8,
                grad=gradient,
            )
        for power, decay in zip(powers, (0.9, 0.999), strict=True):
            power.assign(power * decay)

    return update


# ---- programs on arrays ------------------------------------------------------------------------


def normal_cdf(x: Tensor) -> Tensor:
    """Abramowitz and Stegun 26.2.17: six digits of the normal distribution."""
    k = 1 / (1 + 0.2316419 * tf.abs(x))
    series = 1.330274429
    for term in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        series = series * k + term
    tail = tf.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)) * series * k
    return tf.where(x < 0, tail, 1 - tail)


def black_scholes(spot: Tensor, strike: Tensor, years: Tensor) -> Tensor:
    rate, volatility = 0.02, 0.3
    deviation = volatility * tf.sqrt(years)
    d1 = (tf.math.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * tf.exp(-rate * years)
    return spot * normal_cdf(d1) - discounted * normal_cdf(d2)


def mandelbrot(steps: int) -> Function:
    def mandelbrot(real: Tensor, imaginary: Tensor) -> Tensor:
        a, b = real, imaginary
        found = tf.zeros_like(real)
        for _ in range(steps):
            a2, b2 = a * a, b * b
            found = found + tf.cast(a2 + b2 <= 4, found.dtype)
            a, b = a2 - b2 + real, 2 * a * b + imaginary
        return found

    return mandelbrot


def heat(u: Tensor) -> Tensor:
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return u[1:-1, 1:-1] + 0.1 * (around - 4 * u[1:-1, 1:-1])


def pairwise(x: Tensor, y: Tensor) -> Tensor:
    return tf.sqrt(tf.reduce_sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1))


# ---- loops over numbers ------------------------------------------------------------------------


def collatz(limit: Tensor) -> Tensor:
    """How many steps all numbers below `limit` together take to 1."""
    steps = tf.constant(0)
    for start in tf.range(1, limit):
        n = start
        while n != 1:
            n = tf.where(n % 2 == 0, n // 2, 3 * n + 1)
            steps += 1
    return steps


def newton(count: Tensor) -> Tensor:
    """Points at given distances from three others; each to convergence."""
    total = tf.constant(0.0, tf.float64)
    for k in tf.range(count):
        goal = 2.0 + 0.0001 * tf.cast(k, tf.float64)
        p = 9.0 + goal * goal + 1.0
        q = 1.0 + goal * goal + 4.0
        r = 4.0 + (goal - 5.0) * (goal - 5.0) + 1.0
        x = tf.constant(2.0, tf.float64)
        y = tf.constant(1.0, tf.float64)
        z = tf.constant(3.0, tf.float64)
        error = tf.constant(1.0, tf.float64)
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


def levenshtein(a: Tensor, b: Tensor) -> Tensor:
    """How many edits lead from one sequence to the other; one row of the table at a time."""
    columns = len(b)
    row = tf.range(columns + 1)
    for i in tf.range(len(a)):
        left = i + 1
        below = tf.TensorArray(tf.int32, columns + 1).write(0, left)
        for j in tf.range(columns):
            changed = row[j] + tf.cast(a[i] != b[j], tf.int32)
            left = tf.minimum(changed, tf.minimum(left, row[j + 1]) + 1)
            below = below.write(j + 1, left)
        row = below.stack()
    return row[columns]


def sieve(limit: int) -> Function:
    """Of arrays: an element of a tensor cannot be written."""

    def sieve() -> Tensor:
        numbers = tf.range(limit)
        prime = numbers > 1
        i = tf.constant(2)
        while i * i < limit:
            if prime[i]:
                prime &= (numbers % i != 0) | (numbers < i * i)
            i += 1
        return tf.reduce_sum(tf.cast(prime, tf.int32))

    return sieve
