"""Attention."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from minigraph.errors import ShapeError
from minigraph.mode import here
from minigraph.trace import NUMPY

from .activations import masked_softmax, softmax
from .choosing import length_mask
from .noise import dropout


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    valid_length: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    dropout_rate: float = 0.0,
    training: bool | None = None,
) -> Any:
    """`softmax(query @ key.T * scale) @ value`.

    Args:
        query: (..., queries, features).
        key: (..., keys, features).
        value: (..., keys, value features).
        mask: of bools, True where a query may look at a key; or of numbers that are added to the
            scores.  It broadcasts to (..., queries, keys).  A query that may look nowhere gets 0.
        valid_length: (batch,), of the first axis; no query looks at keys from there on.
        causal: a query looks at keys of its own position and before only.
        scale: None: 1 / sqrt(features).
        dropout_rate: the probability with which a weight is dropped while training.
        training: None: as `autograd.is_training()` says.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query * scale) @ np.swapaxes(key, -1, -2)
    masks = []
    if mask is not None and mask.dtype.kind == "b":
        masks.append(mask)
    elif mask is not None:
        scores = scores + mask
    if valid_length is not None:
        valid = length_mask(valid_length, scores.shape[-1])
        masks.append(np.expand_dims(valid, tuple(range(1, scores.ndim - 1))))
    if causal:
        masks.append(causal_mask(*scores.shape[-2:]))
    if masks:
        weights = masked_softmax(scores, functools.reduce(operator.and_, masks))
    else:
        weights = softmax(scores)
    if dropout_rate:
        weights = dropout(weights, dropout_rate, training=training)
    return weights @ value


def causal_mask(queries: int, keys: int) -> Any:
    """True where a query (row) may look at a key (column): at its own position and before."""
    return NUMPY.arange(queries)[:, None] >= NUMPY.arange(keys)


def split_heads(x: Any, heads: int) -> Any:
    """(batch, length, units) as (batch, heads, length, units / heads)."""
    if x.ndim != 3:
        raise ShapeError(
            f"an attention takes arrays of shape (batch, length, units), not {x.shape}",
            where=here(),
            instead="x[None] for one sequence alone",
        )
    batch, length, units = x.shape
    return x.reshape((batch, length, heads, units // heads)).transpose((0, 2, 1, 3))


def merge_heads(x: Any) -> Any:
    """(batch, heads, length, features) as (batch, length, heads * features)."""
    batch, heads, length, features = x.shape
    return x.transpose((0, 2, 1, 3)).reshape((batch, length, heads * features))


def sinusoids(length: int, units: int) -> Any:
    """A vector for each position: the sines and cosines of its angle on ever slower clocks.

    Returns:
        Shape (length, units): sines at even places, cosines at odd ones.
    """
    places = np.arange(units)
    angles = np.arange(length)[:, None] / 10_000 ** (places // 2 * 2 / units)
    return np.where(places % 2 == 0, np.sin(angles), np.cos(angles))
