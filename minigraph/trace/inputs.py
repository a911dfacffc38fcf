"""Arrays that come from outside, as inputs of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.ir import type_of

from .arrays import TracedArray
from .operands import native_dtype
from .paths import Path
from .recording import Recording, Storage
from .views import Layout


def traced_input(
    recording: Recording, array: Any, path: Path, type_: Any = None, hint: str | None = None
) -> TracedArray:
    """An array or NumPy scalar as an input of the graph."""
    if array is not None:
        native_dtype(array.dtype, recording, path.text)
    value = recording.add_input(type_ or type_of(array), path, hint or path.text)
    scalar = isinstance(array, np.generic)
    storage = Storage(value, None if scalar else value)
    if isinstance(array, np.ndarray) and type_ is None:
        storage.writable = bool(array.flags.writeable)
        layout = Layout.of_input(array, storage)
        recording.concrete[value] = array
        if array.ndim > 1 and not layout.c_order:
            recording.strided.add(value)
    else:
        layout = Layout(value.type.shape, True)  # type: ignore[union-attr]
    return TracedArray(recording, storage, (), layout, scalar)
