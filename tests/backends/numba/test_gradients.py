"""Gradients as compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigraph as mg


def dense(x: Any, w: Any) -> Any:
    return np.tanh(np.sin(x @ w) * np.exp(-(x @ w)))


def deep(layer: Any) -> Any:
    def run(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = layer(x, w)
        return (x * x).sum()

    return run


def test_recomputing_is_one_compiled_function_and_needs_less_memory():
    x, w = np.random.default_rng(0).normal(size=(2, 32, 32)) / 6
    plain, saving = mg.grad(deep(dense), (0, 1)), mg.grad(deep(mg.checkpoint(dense)), (0, 1))
    for a, b in zip(plain(x, w), saving(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)
    assert saving.plan.peak_bytes < 0.8 * plain.plan.peak_bytes
    assert "segment1" not in saving.explain()


def test_an_argument_that_is_written():
    def scaled(x: Any) -> Any:
        x *= 2.0
        return (x * np.arange(3.0)).sum()

    x = np.ones(3)
    assert np.array_equal(mg.grad(scaled)(x), [0, 2, 4])
    assert np.array_equal(x, [2, 2, 2])


def test_a_gradient_of_the_users_own():
    @mg.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 1.0, lambda g: np.clip(g, -0.1, 0.1)

    x = np.array([1.0, 0.01, -3.0])
    assert np.array_equal(mg.grad(lambda x: (clipped(x) ** 2).sum())(x), [0.1, 0.02, -0.1])
