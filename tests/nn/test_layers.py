"""Layers: eagerly and compiled the same; shapes that are completed; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nn.cases import LAYERS, LOSSES, Draw, forward_and_backward, prepared

import minigraph as mg
from minigraph import autograd, nn
from minigraph.array import Array
from minigraph.errors import OptionError, ShapeError

ALL = {**LAYERS, **LOSSES}
SIZES = st.integers(1, 5)


# ---- eager and compiled -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=6)
@given(
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 99),
    n=SIZES,
    t=SIZES,
    c=SIZES,
)
def test_hybridized_is_eager(name: str, dtype: str, seed: int, n: int, t: int, c: int):
    draw = Draw(seed, dtype)
    arguments = ALL[name].arguments(draw, n, t, c)
    eager = prepared(ALL[name], arguments, dtype, seed)
    hybrid = prepared(ALL[name], arguments, dtype, seed)
    hybrid.hybridize()
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    expected, found = eager(*arguments), hybrid(*arguments)
    assert type(found) is np.ndarray and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, tolerance, tolerance)
    if not np.issubdtype(expected.dtype, np.floating):
        return
    head = draw.normal(*expected.shape)
    expected = forward_and_backward(eager, arguments, head)
    found = forward_and_backward(hybrid, arguments, head)
    assert list(found) == list(expected)
    for key, values in expected.items():
        assert found[key].dtype == values.dtype == dtype
        scale = tolerance * max(1, abs(values).max(initial=0))
        np.testing.assert_allclose(found[key], values, tolerance, scale, err_msg=key)


def test_dropout():
    layer = nn.Dropout(0.4)
    x = np.ones((50, 40), "float32")
    for _ in range(2):
        assert (layer(x) == x).all()
        mg.random.seed(1)
        with autograd.train_mode():
            found, other = layer(x), layer(x)
        assert abs((found == 0).mean() - 0.4) < 0.05 and (found != other).any()
        mg.random.seed(1)
        assert layer(x) is not None
        with autograd.train_mode():
            assert (layer(x) == found).all()
        array = Array(x)
        array.attach_grad()
        with autograd.record():
            result = layer(array)
        result.backward()
        assert (array.grad.asnumpy() == result.asnumpy()).all()
        layer.hybridize()


def test_batch_norm_keeps_statistics_only_while_training():
    x = np.random.default_rng(0).normal(2.0, 3.0, (8, 4, 5)).astype("float32")
    layers = [nn.BatchNorm(momentum=0.5), nn.BatchNorm(momentum=0.5).hybridize()]
    for layer in layers:
        layer.initialize()
        layer(x)
        assert (layer.running_mean.data().asnumpy() == 0).all()
        mean, variance = np.zeros(4), np.ones(4)
        kept = layer.running_mean.data()
        for step in range(3):
            with autograd.train_mode():
                found = layer(x + step)
            np.testing.assert_allclose(found.mean((0, 2)), 0, atol=1e-5)
            mean = 0.5 * mean + 0.5 * (x + step).mean((0, 2))
            variance = 0.5 * variance + 0.5 * x.var((0, 2))
        assert layer.running_mean.data() is kept
        np.testing.assert_allclose(kept, mean, rtol=1e-5)
        np.testing.assert_allclose(layer.running_var.data(), variance, rtol=1e-4)
        expected = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
        np.testing.assert_allclose(layer(x), expected, rtol=1e-3, atol=1e-4)
        assert list(layer.collect_params()) == ["gamma", "beta", "running_mean", "running_var"]
        assert layer.running_mean.grad_req == "null"


# ---- shapes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_are_completed_at_the_first_call(name: str):
    arguments = LAYERS[name].arguments(Draw(0, "float32"), 3, 4, 5)
    layer = LAYERS[name].make()
    layer.initialize()
    result = layer(*arguments)
    assert all(p.is_ready for p in layer.collect_params().values())
    assert np.isfinite(result).all()
    assert repr(layer).startswith(type(layer).__name__ + "(")


def test_dense():
    dense = nn.Dense(3, "relu")
    assert repr(dense) == "Dense(? -> 3, relu)"
    dense.initialize()
    assert dense(np.ones((2, 4, 5), "float32")).shape == (2, 3)
    assert repr(dense) == "Dense(20 -> 3, relu)"
    assert dense.weight.shape == (3, 20) and dense.bias.shape == (3,)
    last = nn.Dense(
        3, flatten=False, in_units=5, weight_initializer="ones", bias_initializer="ones"
    )
    last.initialize()
    assert (last(np.ones((2, 4, 5))) == 6).all()
    assert list(nn.Dense(3, use_bias=False).collect_params()) == ["weight"]


def test_norms_without_scale_or_center():
    layer = nn.LayerNorm(scale=False)
    layer.initialize()
    layer(np.ones((2, 3)))
    assert list(layer.collect_params()) == ["beta"]


def test_attention_over_memory_of_other_features():
    layer = nn.MultiHeadAttention(6, 3)
    layer.initialize()
    rng = np.random.default_rng(0)
    query, memory = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 5, 7))
    mask = rng.random((2, 4, 5)) > 0.5
    assert layer(query, memory).shape == (2, 4, 6)
    alone = layer(query, memory, None, mask)
    heads = np.repeat(mask[:, None], 3, 1)
    np.testing.assert_allclose(layer(query, memory, memory, heads), alone)


def test_causal_blocks_do_not_look_ahead():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 6, 8))
    changed = x.copy()
    changed[:, 4:] += 1
    for block in (nn.TransformerEncoderBlock(8, 2, causal=True), nn.TransformerDecoderBlock(8, 2)):
        block.initialize(nn.initializers.Normal(0.5))
        more = (
            () if isinstance(block, nn.TransformerEncoderBlock) else (rng.normal(size=(1, 3, 8)),)
        )
        before, after = block(x, *more), block(changed, *more)
        np.testing.assert_allclose(before[:, :4], after[:, :4])
        assert (before[:, 4:] != after[:, 4:]).any()


def test_valid_lengths():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 8))
    changed = x.copy()
    changed[0, 3:] += 1
    block = nn.TransformerEncoderBlock(8, 2)
    block.initialize(nn.initializers.Normal(0.5))
    lengths = np.array([3, 5])
    before, after = block(x, None, lengths), block(changed, None, lengths)
    np.testing.assert_allclose(before[0, :3], after[0, :3])
    np.testing.assert_allclose(before[1], after[1])


def test_positions():
    layer = nn.PositionalEncoding(4, max_length=6)
    layer.initialize()
    x = np.zeros((2, 5, 4), "float32")
    np.testing.assert_allclose(layer(x)[1], nn.functional.sinusoids(5, 4), rtol=1e-6)
    assert layer.weight.grad_req == "null"
    learned = nn.PositionalEncoding(4, max_length=6, learned=True)
    learned.initialize()
    assert (learned(x)[0] == learned.weight.data().asnumpy()[:5]).all()


# ---- what is refused --------------------------------------------------------------------------


def test_wrong_shapes():
    net = nn.HybridSequential(nn.Dense(4), nn.Dense(3, in_units=5))
    net.initialize()
    x = np.ones((2, 7), "float32")
    for _ in range(2):
        with pytest.raises(ShapeError, match="an input of 4 features meets a weight for 5"):
            net(x)
        assert not net[0].weight.is_ready  # nothing is half initialized
        net.hybridize()


def test_wrong_use():
    with pytest.raises(OptionError, match="10 units do not fall into 3 equal heads"):
        nn.MultiHeadAttention(10, 3)
    with pytest.raises(OptionError, match="7 units do not fall into 2 equal heads"):
        nn.TransformerEncoderBlock(7, 2)
    with pytest.raises(OptionError, match="did you mean 'relu'"):
        nn.Dense(3, "rellu")
    with pytest.raises(OptionError, match="below 1"):
        nn.Dropout(1.5)
    x = np.ones((2, 30, 4), "float32")
    layers: list[tuple[Any, Any, str]] = [
        (nn.PositionalEncoding(4, 20), ShapeError, "30 vectors, and there are 20 positions"),
        (nn.LayerNorm(axis=3), np.exceptions.AxisError, "axis 3"),
        (nn.GroupNorm(7), ShapeError, "30 channels do not fall into 7"),
        (nn.Embedding(3, 2), IndexError, "at least 0 and below 3"),
    ]
    for layer, kind, text in layers:
        layer.initialize()
        with pytest.raises(kind, match=text):
            layer(np.array([3]) if isinstance(layer, nn.Embedding) else x)
    with pytest.raises(ShapeError, match=r"\(batch, length, units\), not \(30, 4\)"):
        nn.MultiHeadAttention(4, 2).initialize()(x[0])


def test_a_shape_error_names_the_layer():
    net = nn.HybridSequential(nn.Dense(4), nn.HybridSequential(nn.Dense(3, in_units=5)))
    net.initialize()
    with pytest.raises(
        ShapeError, match=r"1\.0\.weight: an input of 4 features meets a weight for 5"
    ):
        net(np.ones((2, 3)))
    for block, others in (
        (nn.TransformerEncoderBlock(8, 2), ()),
        (nn.TransformerDecoderBlock(8, 2), (np.ones((2, 4, 8)),)),
    ):
        block.initialize()
        with pytest.raises(ShapeError, match="of 8 units, and the sequence has 9 features"):
            block(np.ones((2, 5, 9)), *others)
