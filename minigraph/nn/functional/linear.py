"""Products with weights."""

from __future__ import annotations

from typing import Any

from minigraph.errors import DimensionError, ShapeError
from minigraph.mode import here


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """`x @ weight.T + bias`.

    Args:
        x: (..., in_units).
        weight: (units, in_units).
        bias: (units,), or None.

    Raises:
        ShapeError: the last axis of x does not have in_units elements.
        DimensionError: that depends on a named dimension.
    """
    try:
        product = x @ weight.T
    except DimensionError:
        raise
    except ValueError as error:
        found = x.shape[-1] if x.ndim else "no"
        raise ShapeError(
            f"an input of {found} features meets a weight for {weight.shape[1]}: "
            f"the shapes are {x.shape} and {weight.shape}",
            where=here(),
        ) from error
    return product if bias is None else product + bias


def dense(x: Any, weight: Any, bias: Any = None, flatten: bool = True) -> Any:
    """`linear` of all axes but the first as one (`flatten`), or of the last axis."""
    return linear(x.reshape((x.shape[0], -1)) if flatten and x.ndim > 2 else x, weight, bias)
