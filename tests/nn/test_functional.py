"""The functions, on ndarrays, eager arrays and traced ones; against SciPy, and far out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

import minigraph as mg
from minigraph.array import Array
from minigraph.errors import OptionError, ShapeError
from minigraph.nn import functional as F

FLOATS = st.floats(-100, 100, width=32)
MATRICES = hnp.arrays(
    st.sampled_from(["float32", "float64"]), st.tuples(*[st.integers(1, 5)] * 2), elements=FLOATS
)


def close(found: Any, expected: Any, dtype: str = "float64") -> None:
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, expected, tolerance, tolerance)


# ---- against SciPy ----------------------------------------------------------------------------


@given(MATRICES, st.sampled_from([-1, 0, 1]))
def test_distributions(x: Any, axis: int):
    for ours, theirs in (
        (F.softmax, special.softmax),
        (F.log_softmax, special.log_softmax),
        (F.logsumexp, special.logsumexp),
    ):
        found = ours(x, axis)
        assert found.dtype == x.dtype
        close(found, theirs(x.astype("float64"), axis), x.dtype)


@given(MATRICES)
def test_elementwise(x: Any):
    exact = x.astype("float64")
    for ours, theirs in (
        (F.sigmoid, special.expit),
        (F.log_sigmoid, special.log_expit),
        (F.softplus, lambda x: np.logaddexp(x, 0)),
        (F.gelu, lambda x: x * special.ndtr(x)),
        (F.relu, lambda x: np.maximum(x, 0)),
    ):
        found = ours(x)
        assert found.dtype == x.dtype
        close(found, theirs(exact), x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_far_out(dtype: str):
    x = np.array([[-1e30, 0, 1e30], [1e4, 1e4, -1e4]], dtype)
    close(F.softmax(x), [[0, 0, 1], [0.5, 0.5, 0]], dtype)
    found = F.log_softmax(x)
    assert np.isfinite(found).all() and found[0, 2] == 0
    assert np.isfinite(F.cross_entropy(x, np.array([0, 2]))).all()
    assert np.isfinite(F.binary_cross_entropy(x, np.ones_like(x))).all()
    assert np.isnan(F.relu(np.array([np.nan], dtype))).all()
    assert F.relu(np.array([-np.inf, np.inf], dtype)).tolist() == [0, np.inf]


def test_temperature():
    x = np.array([1.0, 2.0, 4.0])
    close(F.softmax(x, temperature=2.0), special.softmax(x / 2))


# ---- masks ------------------------------------------------------------------------------------


def test_masked_softmax():
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = np.array([[True, False, True], [False, False, False]])
    found = F.masked_softmax(x, mask)
    close(found[0, [0, 2]], special.softmax(x[0, [0, 2]]))
    assert found[0, 1] == 0 and not found[1].any()
    logs = F.masked_log_softmax(x, mask)
    close(logs[0, [0, 2]], special.log_softmax(x[0, [0, 2]]))
    assert np.isneginf(logs[0, 1]) and np.isneginf(logs[1]).all()


def test_sequence_mask():
    x = np.arange(12.0).reshape(2, 3, 2)
    lengths = np.array([1, 3])
    found = F.sequence_mask(x, lengths, -1.0)
    assert (found[0, 1:] == -1).all() and (found[0, 0] == x[0, 0]).all()
    assert (found[1] == x[1]).all()
    turned = F.sequence_mask(x.transpose(1, 0, 2), lengths, -1.0, axis=0, batch_axis=1)
    assert (turned == found.transpose(1, 0, 2)).all()
    assert F.length_mask(lengths, 3).tolist() == [[True, False, False], [True] * 3]


def attention(query: Any, key: Any, value: Any, allowed: Any) -> Any:
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    return special.softmax(np.where(allowed, scores, -np.inf), -1) @ value


def test_attention():
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=(2, 3, n, 4)) for n in (3, 5, 5))
    mask = rng.random((3, 5)) > 0.3
    mask[:, 0] = True
    lengths = np.array([2, 5])
    causal = np.tri(3, 5, dtype=bool)
    valid = (np.arange(5) < lengths[:, None])[:, None, None]
    run = F.scaled_dot_product_attention
    close(run(query, key, value), attention(query, key, value, True))
    close(run(query, key, value, mask), attention(query, key, value, mask))
    close(run(query, key, value, causal=True), attention(query, key, value, causal))
    close(
        run(query, key, value, mask, lengths, causal=True),
        attention(query, key, value, mask & causal & valid),
    )
    added = np.where(mask, 0.0, -np.inf)
    close(run(query, key, value, added), attention(query, key, value, mask))
    nowhere = run(query, key, value, np.zeros((3, 5), bool))
    assert (nowhere == 0).all()


# ---- integers ---------------------------------------------------------------------------------


@given(st.data())
def test_pick(data: st.DataObject):
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * data.draw(st.integers(1, 3))))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    rest = np.delete(shape, axis)
    labels = rng.integers(0, shape[axis], rest).astype(data.draw(st.sampled_from(["i8", "f4"])))
    expected = np.take_along_axis(x, np.expand_dims(labels, axis).astype("i8"), axis)
    assert (F.pick(x, labels, axis, keepdims=True) == expected).all()
    assert (F.pick(x, labels, axis) == expected.squeeze(axis)).all()
    assert (F.pick(x, np.expand_dims(labels, axis), axis) == expected.squeeze(axis)).all()


def test_pick_by_other_modes():
    x = np.array([[1.0, 2.0, 3.0]])
    assert F.pick(x, np.array([7]), mode="clip") == [3]
    assert F.pick(x, np.array([-1]), mode="clip") == [1]
    assert F.pick(x, np.array([4]), mode="wrap") == [2]
    with pytest.raises(OptionError, match="did you mean 'clip'"):
        F.pick(x, np.array([7]), mode="clips")


def test_one_hot():
    found = F.one_hot(np.array([[0, 2]]), 3)
    assert found.dtype == "float32"
    assert found.tolist() == [[[1, 0, 0], [0, 0, 1]]]


def test_ignored_labels():
    x, labels = np.random.default_rng(0).normal(size=(4, 3)), np.array([0, -1, 2, -1])
    found = F.cross_entropy(x, labels, ignore_label=-1)
    close(found[[0, 2]], -special.log_softmax(x, 1)[[0, 2], [0, 2]])
    assert (found[[1, 3]] == 0).all()
    with pytest.raises(OptionError, match="ignore_label"):
        F.cross_entropy(x, x, sparse_label=False, ignore_label=-1)


WRONG_LABELS = {
    "cross_entropy": (lambda x, i: F.cross_entropy(x, i), (4, 5)),
    "pick": (lambda x, i: F.pick(x, i), (4, 5)),
    "embedding": (lambda x, i: F.embedding(i, x), (5, 3)),
    "one_hot": (lambda x, i: F.one_hot(i, 5) + x, (1, 5)),
}


@pytest.mark.parametrize("wrong", [5, -1])
@pytest.mark.parametrize("name", WRONG_LABELS)
def test_labels_out_of_range(name: str, wrong: int):
    function, shape = WRONG_LABELS[name]
    x, labels = np.ones(shape), np.array([0, 1, 4, 2])
    compiled = mg.jit(function)
    np.testing.assert_array_equal(compiled(x, labels), function(x, labels))
    labels[2] = wrong
    for run in (function, compiled):
        for wrapped in (np.asarray, Array):
            with pytest.raises(IndexError, match="must be at least 0 and below 5"):
                run(wrapped(x), wrapped(labels))


# ---- normalisation, clipping ------------------------------------------------------------------


def test_l2_normalize():
    x = np.random.default_rng(0).normal(size=(3, 4))
    close(F.l2_normalize(x, epsilon=0), x / np.linalg.norm(x, axis=-1, keepdims=True))
    assert (F.l2_normalize(np.zeros((2, 3))) == 0).all()


def test_clipping():
    arrays = [np.array([3.0, 0.0]), np.array([[4.0]])]
    assert F.global_norm(arrays) == 5
    clipped = F.clip_by_global_norm(arrays, 2.5)
    assert clipped[0].tolist() == [1.5, 0] and clipped[1].tolist() == [[2]]
    assert F.clip_by_global_norm(arrays, 9.0)[0].tolist() == [3, 0]
    assert F.clip_by_value(arrays[0], 1.0).tolist() == [1, 0]


def test_sinusoids():
    found = F.sinusoids(6, 4)
    places = np.arange(6)
    close(found[:, 0], np.sin(places))
    close(found[:, 3], np.cos(places / 100))


# ---- chance -----------------------------------------------------------------------------------


def test_dropout():
    mg.random.seed(0)
    x = np.ones((100, 100), "float32")
    assert F.dropout(x, 0.3) is x
    found = F.dropout(x, 0.3, training=True)
    assert found.dtype == "float32"
    assert set(np.unique(found)) == {0, np.float32(1 / 0.7)}
    assert abs((found == 0).mean() - 0.3) < 0.02
    rows = F.dropout(x, 0.3, axes=(1,), training=True)
    assert (rows == rows[:, :1]).all() and 0 < (rows == 0).mean() < 1
    mg.random.seed(0)
    assert (F.dropout(x, 0.3, training=True) == found).all()


def test_dropout_is_fresh_at_each_call_of_a_compiled_function():
    compiled = mg.jit(lambda x: F.dropout(x, 0.5, training=True))
    x = np.ones(50)
    mg.random.seed(3)
    first, second = compiled(x), compiled(x)
    assert (first != second).any()
    mg.random.seed(3)
    assert (F.dropout(x, 0.5, training=True) == first).all()


# ---- three kinds of arrays, and sizes with names ----------------------------------------------

RNG = np.random.default_rng(1)
X, IMAGE, LABELS = RNG.normal(size=(4, 6)), RNG.normal(size=(3, 4, 5)), np.array([0, 5, 2, 3])
W, B, LENGTHS = RNG.normal(size=(2, 6)), RNG.normal(size=2), np.array([1, 4, 2])
CALLS: dict[str, Any] = {
    **{name: (F.activation(name), X) for name in F.ACTIVATIONS},
    "softmax": (F.softmax, X),
    "log_softmax": (lambda x: F.log_softmax(x, 0), X),
    "logsumexp": (F.logsumexp, X),
    "masked_softmax": (lambda x: F.masked_softmax(x, x > 0), X),
    "masked_log_softmax": (lambda x: F.masked_log_softmax(x, x > 0), X),
    "prelu": (F.prelu, IMAGE, np.array([0.1, 0.2, 0.3, 0.4])),
    "linear": (F.linear, X, W, B),
    "dense": (F.dense, RNG.normal(size=(4, 3, 2)), W),
    "one_hot": (lambda i: F.one_hot(i, 6), LABELS),
    "pick": (F.pick, X, LABELS),
    "pick, clip": (lambda x, i: F.pick(x, i * 2, mode="clip"), X, LABELS),
    "pick, wrap": (lambda x, i: F.pick(x, i * 2, mode="wrap"), X, LABELS),
    "embedding": (F.embedding, LABELS, RNG.normal(size=(6, 2))),
    "sequence_mask": (F.sequence_mask, IMAGE, LENGTHS),
    "length_mask": (lambda x, n: F.length_mask(n, x.shape[1]), IMAGE, LENGTHS),
    "attention": (F.scaled_dot_product_attention, IMAGE, IMAGE, IMAGE),
    "attention, causal": (
        lambda x, n: F.scaled_dot_product_attention(x, x, x, None, n, causal=True),
        IMAGE,
        LENGTHS,
    ),
    "heads": (lambda x: F.merge_heads(F.split_heads(x, 2)), RNG.normal(size=(3, 5, 4))),
    "layer_norm": (F.layer_norm, X, RNG.normal(size=6), RNG.normal(size=6)),
    "layer_norm, axis 1": (lambda x: F.layer_norm(x, axis=1), IMAGE),
    "rms_norm": (F.rms_norm, X, RNG.normal(size=6)),
    "group_norm": (lambda x: F.group_norm(x, num_groups=2), IMAGE),
    "l2_normalize": (F.l2_normalize, X),
    "cross_entropy": (F.cross_entropy, X, LABELS),
    "cross_entropy, ignored": (
        lambda x, i: F.cross_entropy(x, i, ignore_label=5, label_smoothing=0.1),
        X,
        LABELS,
    ),
    "binary_cross_entropy": (F.binary_cross_entropy, X, X > 0),
    "huber": (F.huber, X, X * 2),
    "hinge": (F.hinge, X, np.sign(X)),
    "kl_divergence": (F.kl_divergence, X, np.abs(X)),
    "poisson_nll": (lambda x, y: F.poisson_nll(x, y, compute_full=True), X, np.abs(X) * 5),
    "cosine_similarity": (F.cosine_similarity, X, X + 1),
    "global_norm": (lambda x, y: F.global_norm([x, y]), X, W),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_kind_of_array(name: str):
    function, *arguments = CALLS[name]
    expected = np.asarray(function(*arguments))
    eager = function(*map(Array, arguments))
    assert type(eager) is Array and eager.dtype == expected.dtype
    np.testing.assert_array_equal(eager.asnumpy(), expected)
    compiled = mg.jit(function)(*arguments)
    assert compiled.dtype == expected.dtype
    close(compiled, expected)
    assert type(mg.jit(function)(*map(Array, arguments))) is Array


NAMED = sorted(set(CALLS) - {"global_norm"})


@pytest.mark.parametrize("name", NAMED)
def test_named_batches(name: str):
    """One entry serves every batch size."""
    function, *arguments = CALLS[name]
    batch = len(arguments[0])
    batched = [
        a
        for a in range(len(arguments))
        if len(arguments[a]) == batch and a in BATCHED.get(name, (0, 1, 2))
    ]
    parameters = "abc"[: len(arguments)]
    source = f"lambda {', '.join(parameters)}: function({', '.join(parameters)})"
    compiled = mg.jit(
        eval(source, {"function": function}),
        dynamic={parameters[index]: {0: "n"} for index in batched},
    )
    for size in (batch, 2):
        given = [a[:size] if at in batched else a for at, a in enumerate(arguments)]
        close(compiled(*given), function(*given))
    assert len(compiled.cache_info()) == 1


BATCHED = {"embedding": (0,), "prelu": (0,), "linear": (0,), "dense": (0,), "layer_norm": (0,)}


def test_named_lengths():
    compiled = mg.jit(
        lambda x: F.scaled_dot_product_attention(x, x, x, causal=True), dynamic={"x": {1: "t"}}
    )
    for length in (4, 7):
        x = np.random.default_rng(0).normal(size=(2, length, 3))
        close(compiled(x), F.scaled_dot_product_attention(x, x, x, causal=True))
    assert len(compiled.cache_info()) == 1


# ---- what is refused --------------------------------------------------------------------------


def test_wrong_use():
    x = np.ones((2, 6))
    with pytest.raises(OptionError, match="did you mean 'relu'"):
        F.activation("rleu")
    with pytest.raises(OptionError, match="approximation"):
        F.gelu(x, "exact")
    with pytest.raises(ShapeError, match="an input of 6 features meets a weight for 5"):
        F.linear(x, np.ones((3, 5)))
    with pytest.raises(ShapeError, match="6 channels do not fall into 4 equal groups"):
        F.group_norm(x, num_groups=4)
    with pytest.raises(OptionError, match="below 1"):
        F.dropout(x, 1.0)
    for function in (F.layer_norm, F.rms_norm, F.softmax):
        with pytest.raises(np.exceptions.AxisError):
            function(x, axis=2)
    with pytest.raises(np.exceptions.AxisError):
        F.pick(x, np.zeros(2, int), axis=2)
