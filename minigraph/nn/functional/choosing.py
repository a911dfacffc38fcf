"""Choosing by integers: labels, indices, lengths.

An index out of range is an IndexError, eagerly and compiled; negative ones do not count from the
end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.errors import ShapeError, quote, unknown
from minigraph.mode import here
from minigraph.ops import normalize_axis
from minigraph.trace import NUMPY, check


def one_hot(indices: Any, depth: int, dtype: Any = "float32") -> Any:
    """A new last axis of this length, 1 at the index and 0 elsewhere."""
    indices = in_range(indices, depth, "an index of one_hot")
    return (indices[..., None] == NUMPY.arange(depth)).astype(dtype)


PICK_MODES = ("raise", "clip", "wrap")


def pick(x: Any, indices: Any, axis: int = -1, keepdims: bool = False, mode: str = "raise") -> Any:
    """The element of each line along the axis that the index names.

    Args:
        x: any shape.
        indices: the shape of x without that axis, or with length 1 there.
        axis: along which to pick.
        keepdims: keep the axis, with length 1.
        mode: for an index out of range: "raise", "clip" to the nearest, "wrap" around.

    Raises:
        IndexError: an index is out of range.
        ShapeError: the indices have another shape.
    """
    axis = normalize_axis(axis, x.ndim)
    size = x.shape[axis]
    indices = with_axis(indices, axis, x)
    if mode == "raise":
        indices = in_range(indices, size, "a label")
    elif mode == "clip":
        indices = np.clip(as_integers(indices), 0, size - 1)
    elif mode == "wrap":
        indices = as_integers(indices) % size
    else:
        raise unknown("mode of pick", mode, PICK_MODES)
    chosen = indices == along(NUMPY.arange(size), axis, x.ndim)
    return np.where(chosen, x, 0).sum(axis=axis, keepdims=keepdims)


def embedding(indices: Any, weight: Any) -> Any:
    """The rows of the weight that the indices name: (*indices.shape, *weight.shape[1:])."""
    indices = in_range(indices, weight.shape[0], "an index of the embedding")
    return np.take(weight, indices, axis=0, mode="clip")


def length_mask(lengths: Any, size: int) -> Any:
    """True at the first `lengths` positions of a new last axis of this length."""
    return NUMPY.arange(size) < lengths[..., None]


def sequence_mask(
    x: Any, lengths: Any, value: float = 0.0, axis: int = 1, batch_axis: int = 0
) -> Any:
    """Put `value` where a sequence has ended: position >= length.

    Args:
        x: sequences along `axis`, one for each position of `batch_axis`.
        lengths: of the sequences, shape (batch,).
        value: to put in.
        axis: of positions.
        batch_axis: of sequences.
    """
    axis = normalize_axis(axis, x.ndim)
    batch_axis = normalize_axis(batch_axis, x.ndim)
    positions = along(NUMPY.arange(x.shape[axis]), axis, x.ndim)
    return np.where(positions < along(lengths, batch_axis, x.ndim), x, value)


def as_integers(indices: Any) -> Any:
    """Indices as integers; Gluon's data sets have labels of float32."""
    return indices.astype("int64") if indices.dtype.kind == "f" else indices


def in_range(indices: Any, size: Any, what: str) -> Any:
    """The indices as integers, if each is at least 0 and below `size`."""
    indices = as_integers(indices)
    outside = (indices < 0) | (indices >= size)
    try:
        check(np.logical_not(outside.any()), IndexError, f"{what} is out of range{_range(size)}")
    except IndexError as error:  # at once, so it is known which one
        first, where = int(outside.argmax()), here()
        error.add_note(f"  the first: {indices.reshape(-1)[first]}, number {first} counted from 0")
        if where is not None:
            error.add_note("\n".join(quote(where)))
        raise
    return indices


def _range(size: Any) -> str:
    return f": it must be at least 0 and below {size}" if type(size) is int else ""


def with_axis(indices: Any, axis: int, x: Any, instead: str = "") -> Any:
    """Indices for each line of x along an axis, which they have with length 1.

    Args:
        indices: of the shape of x without the axis, or with length 1 there.
        axis: of x.
        x: what they choose from.
        instead: what to write where they have another shape.

    Raises:
        ShapeError: they have another shape.
    """
    axis = normalize_axis(axis, x.ndim)
    wanted = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    shape = getattr(indices, "shape", None)
    found = shape
    if shape is not None and len(shape) == x.ndim - 1:
        indices = np.expand_dims(indices, axis)
        found = indices.shape
    if found is None or len(found) != x.ndim or not all(map(may_equal, found, wanted)):
        without = (*x.shape[:axis], *x.shape[axis + 1 :])
        what = f"{type(indices).__name__}" if shape is None else f"array of shape {shape}"
        raise ShapeError(
            f"each line of {x.shape} along axis {axis} needs one index or label, and they are an "
            f"{what}",
            where=here(),
            instead=f"integers of shape {without}" + instead,
        )
    return indices


def may_equal(size: Any, other: Any) -> bool:
    """Two extents are the same, as far as they are known."""
    return type(size) is not int or type(other) is not int or size == other


def along(x: Any, axis: int, ndim: int) -> Any:
    """One axis as the axis `axis` among `ndim`, to broadcast with."""
    return x.reshape([-1 if at == axis else 1 for at in range(ndim)])
