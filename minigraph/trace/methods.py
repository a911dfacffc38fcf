"""The methods and protocols of traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigraph import ops

from .arrays import TracedArray
from .calls import NUMPY, array_function, array_ufunc, call_function
from .composites import COMPOSITES
from .eager import TracedEager
from .operands import Traced
from .recording import Recording
from .scalars import TracedDim
from .special import array_copy, astype, conjugate


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call_function(name, (self, *args), kwargs)

    method.__name__ = name.rsplit(".", 1)[-1]
    return method


def _fill(self: TracedArray, value: Any) -> None:
    self[...] = value


def _install() -> None:
    special: dict[str, Callable[..., Any]] = {
        "fill": _fill,
        "astype": astype,
        "copy": array_copy,
        "conj": conjugate,
        "conjugate": conjugate,
    }
    functions = (*ops.RECORDED, *COMPOSITES)
    for name in dir(np.ndarray):
        if name.startswith("__") or name in TracedArray.__dict__:
            continue
        found = next((n for n in (f"ndarray.{name}", name) if n in functions), None)
        if name in special:
            setattr(TracedArray, name, special[name])
        elif found is not None and callable(getattr(np.ndarray, name)):
            setattr(TracedArray, name, _method(found))
        elif found is not None:  # an attribute such as .real
            setattr(TracedArray, name, property(_method(found)))
    protocols = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
    for kind in (Traced, TracedArray, TracedDim):
        for protocol, function in protocols.items():
            setattr(kind, protocol, function)
    TracedArray.__array_namespace__ = lambda self, api_version=None: NUMPY  # type: ignore[attr-defined]
    Recording.traced_eager = TracedEager


_install()
