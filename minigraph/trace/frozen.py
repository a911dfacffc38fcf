"""`mg.freeze`: an array that compiled code may treat as a constant."""

from __future__ import annotations

from typing import Any

import numpy as np


class Frozen(np.ndarray):
    """A read-only copy of an array; what is computed from it is an ordinary array."""

    def __new__(cls, array: Any) -> Frozen:
        made = np.array(array).view(cls)
        made.flags.writeable = False
        return made

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def copy(self, order: Any = "C") -> np.ndarray[Any, Any]:
        """An ordinary, writable array."""
        return np.array(self, order=order, subok=False)
