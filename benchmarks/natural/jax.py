"""What a user of JAX writes for the workloads that are more than a formula of NumPy.

Functions take parameters as a dict, then the arguments; the others stand in `formulas.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Parameters = dict[str, jax.Array]

# ---- rows --------------------------------------------------------------------------------------


def softmax(parameters: Parameters, x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x, axis=1)


def normalized(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def layer_norm(p: Parameters, x: jax.Array, residual: jax.Array) -> jax.Array:
    return jax.nn.gelu(normalized(x + residual, **p), approximate=True)


# ---- networks ----------------------------------------------------------------------------------


def lstm(p: Parameters, x: jax.Array) -> jax.Array:
    """The product with the inputs for all steps at once, then a scan."""
    given = x @ p["w_ih"].T + p["b_ih"] + p["b_hh"]
    w_hh = p["w_hh"].T

    def step(state: Any, given: jax.Array) -> Any:
        h, c = state
        i, f, g, o = jnp.split(given + h @ w_hh, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], w_hh.shape[0]), x.dtype)
    _, states = lax.scan(step, (zeros, zeros), given)
    return states


def gru(p: Parameters, x: jax.Array) -> jax.Array:
    """The product with the inputs for all steps at once, then a scan."""
    given = x @ p["w_ih"].T + p["b_ih"]
    w_hh = p["w_hh"].T

    def step(h: jax.Array, given: jax.Array) -> Any:
        given_r, given_z, given_n = jnp.split(given, 3, axis=1)
        own_r, own_z, own_n = jnp.split(h @ w_hh + p["b_hh"], 3, axis=1)
        r = jax.nn.sigmoid(given_r + own_r)
        z = jax.nn.sigmoid(given_z + own_z)
        n = jnp.tanh(given_n + r * own_n)
        h = (1 - z) * n + z * h
        return h, h

    zeros = jnp.zeros((x.shape[1], w_hh.shape[0]), x.dtype)
    _, states = lax.scan(step, zeros, given)
    return states


def encoder(p: Parameters, x: jax.Array, heads: int) -> jax.Array:
    batch, length, units = x.shape

    def dense(name: str, x: jax.Array) -> jax.Array:
        return x @ p[f"{name}_weight"].T + p[f"{name}_bias"]

    def norm(name: str, x: jax.Array) -> jax.Array:
        return normalized(x, p[f"{name}_scale"], p[f"{name}_shift"])

    shape = (batch, length, heads, units // heads)
    query, key, value = (dense(name, x).reshape(shape) for name in ("query", "key", "value"))
    mixed = jax.nn.dot_product_attention(query, key, value).reshape(x.shape)
    h = norm("norm1", x + dense("output", mixed))
    return norm("norm2", h + dense("last", jax.nn.relu(dense("hidden", h))))


# ---- training ----------------------------------------------------------------------------------


def mlp_loss(p: Parameters, x: jax.Array, labels: jax.Array) -> jax.Array:
    h = jax.nn.relu(x @ p["w1"] + p["b1"])
    h = jax.nn.relu(h @ p["w2"] + p["b2"])
    scores = jax.nn.log_softmax(h @ p["w3"] + p["b3"])
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def sgd(rate: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """From parameters to a state, and a step to the loss and the next state."""

    def step(p: Parameters, x: jax.Array, labels: jax.Array) -> Any:
        loss, gradients = jax.value_and_grad(mlp_loss)(p, x, labels)
        return loss, jax.tree.map(lambda each, gradient: each - rate * gradient, p, gradients)

    return lambda p: p, step


def adam(rate: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """From parameters to a state, and a step to the loss and the next state."""

    def start(p: Parameters) -> Any:
        zeros = jax.tree.map(jnp.zeros_like, p)
        return p, zeros, jax.tree.map(jnp.zeros_like, p), jnp.float32(0)

    def step(state: Any, x: jax.Array, labels: jax.Array) -> Any:
        p, first, second, count = state
        loss, gradients = jax.value_and_grad(mlp_loss)(p, x, labels)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        by_first, by_second = 1 / (1 - 0.9**count), 1 / (1 - 0.999**count)

        def moved(each: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            return each - rate * (m * by_first) / (jnp.sqrt(v * by_second) + 1e-8)

        return loss, (jax.tree.map(moved, p, first, second), first, second, count)

    return start, step


# ---- loops over numbers ------------------------------------------------------------------------


def collatz(limit: jax.Array) -> jax.Array:
    """How many steps all numbers below `limit` together take to 1."""

    def goes_on(state: Any) -> jax.Array:
        n, _ = state
        return n != 1

    def step(state: Any) -> Any:
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    def of_one(start: jax.Array, steps: jax.Array) -> jax.Array:
        _, steps = lax.while_loop(goes_on, step, (start, steps))
        return steps

    return lax.fori_loop(1, limit, of_one, jnp.zeros_like(limit))


def newton(count: jax.Array) -> jax.Array:
    """Points at given distances from three others; each to convergence."""

    def of_one(k: jax.Array, total: jax.Array) -> jax.Array:
        goal = 2.0 + 0.0001 * k
        p = 9.0 + goal * goal + 1.0
        q = 1.0 + goal * goal + 4.0
        r = 4.0 + (goal - 5.0) * (goal - 5.0) + 1.0

        def step(state: Any) -> Any:
            x, y, z, _ = state
            a, b, c, d = x - 4.0, z - 1.0, x - 1.0, y - 5.0
            f = 0.5 * (x * x + y * y + z * z - p)
            g = 0.5 * (a * a + y * y + b * b - q)
            h = 0.5 * (c * c + d * d + z * z - r)
            m1, m2, m3 = y * z - b * d, b * c - a * z, a * d - y * c
            n1, n2, n3 = z * d - y * z, x * z - z * c, y * c - x * d
            o1, o2, o3 = y * b - z * y, z * a - x * b, x * y - y * a
            scale = 1.0 / (x * m1 + y * m2 + z * m3)
            u = (m1 * f + n1 * g + o1 * h) * scale
            v = (m2 * f + n2 * g + o2 * h) * scale
            w = (m3 * f + n3 * g + o3 * h) * scale
            return x - u, y - v, z - w, (u * u + v * v + w * w) / (p + q)

        begin = (jnp.array(2.0), jnp.array(1.0), jnp.array(3.0), jnp.array(1.0))
        x, y, z, _ = lax.while_loop(lambda state: state[3] > 1e-20, step, begin)
        return total + x + y + z

    return lax.fori_loop(0, count, of_one, jnp.array(0.0))


def levenshtein(a: jax.Array, b: jax.Array) -> jax.Array:
    """One row of the table at a time, from left to right."""

    def next_row(row: jax.Array, given: Any) -> Any:
        first, letter = given
        changed = row[:-1] + (b != letter)
        without_left = jnp.minimum(changed, row[1:] + 1)

        def along(left: jax.Array, at_most: jax.Array) -> Any:
            found = jnp.minimum(left + 1, at_most)
            return found, found

        _, rest = lax.scan(along, first, without_left)
        return jnp.concatenate([first[None], rest]), None

    lengths = jnp.arange(len(b) + 1)
    row, _ = lax.scan(next_row, lengths, (jnp.arange(1, len(a) + 1), a))
    return row[-1]


def sieve(limit: int) -> jax.Array:
    """How many primes there are below `limit`, which is static: arrays have fixed sizes."""

    def without_multiples(i: jax.Array, prime: jax.Array) -> jax.Array:
        def strike(state: Any) -> Any:
            j, prime = state
            return j + i, prime.at[j].set(False)

        begin = (jnp.where(prime[i], i * i, limit), prime)
        _, prime = lax.while_loop(lambda state: state[0] < limit, strike, begin)
        return prime

    prime = jnp.arange(limit) >= 2
    return lax.fori_loop(2, math.isqrt(limit) + 1, without_multiples, prime).sum()
