"""Layers and losses, compiled by Numba, give what Python gives: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from nn.cases import LAYERS, LOSSES, Draw, forward_and_backward, prepared

ALL = {**LAYERS, **LOSSES}
QUICK = {"Dense, no bias", "SoftmaxCELoss"}


def _marked(name: str) -> object:
    return name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [_marked(name) for name in ALL])
def test_compiled_is_eager(name: str):
    draw = Draw(3, "float32")
    arguments = ALL[name].arguments(draw, 3, 4, 4)
    eager, hybrid = (prepared(ALL[name], arguments, "float32") for _ in range(2))
    hybrid.hybridize(backend="numba")
    expected = eager(*arguments)
    np.testing.assert_allclose(hybrid(*arguments), expected, 1e-5, 1e-5)
    head = draw.normal(*expected.shape)
    expected = forward_and_backward(eager, arguments, head)
    found = forward_and_backward(hybrid, arguments, head)
    assert list(found) == list(expected)
    for key, values in expected.items():
        scale = 1e-4 * max(1, abs(values).max())
        np.testing.assert_allclose(found[key], values, 1e-4, scale, err_msg=key)
