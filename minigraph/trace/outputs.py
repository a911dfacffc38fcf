"""The result of a traced call: outputs of the graph, and the structure around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigraph.errors import UnsupportedError
from minigraph.ir import LEAF, ArrayType, Branch, Static, Tree, Value, items

from .arrays import TracedArray
from .effects import TracedGenerator
from .literals import forced
from .operands import Traced, operand
from .recording import Recording
from .scalars import TracedDim
from .text import TracedText
from .twins import original


class Outputs:
    """The values of a result, in order."""

    def __init__(self, active: Recording) -> None:
        self.active = active
        self.values: list[Value] = []
        self.boxes: list[bool | None] = []

    def add(self, thing: Any, above: tuple[int, ...]) -> Tree:
        """The structure of a result; its leaves join `values`."""
        active = self.active
        if isinstance(thing, TracedGenerator):
            raise UnsupportedError("a traced function cannot return a random generator")
        if isinstance(thing, TracedText):
            raise UnsupportedError(
                "a traced function cannot return a text with values that are not known yet",
                where=active.here(),
                instead="return the values, and put the text together outside",
            )
        if isinstance(thing, Traced | TracedDim) or hasattr(type(thing), "recorded_value_"):
            scalar = isinstance(thing, TracedArray) and thing.scalar_
            return self._leaf(operand(active, thing), not scalar)
        if isinstance(thing, np.ndarray | np.generic):
            return self._leaf(active.constant(thing), isinstance(thing, np.ndarray))
        kind = original(thing.__class__)
        if is_container_class(kind) and id(thing) not in above:
            pairs = items(kind(thing) if kind in (list, dict) else thing)
            trees = [self.add(child, (*above, id(thing))) for _, child in pairs]
            return Branch(kind, [forced(key, _KEY) for key, _ in pairs], trees)
        if kind is slice:
            return Static(
                slice(*(forced(part, _KEY) for part in (thing.start, thing.stop, thing.step)))
            )
        if thing is None or kind in _PLAIN or isinstance(thing, type | np.dtype):
            return Static(original(thing))
        raise UnsupportedError(
            f"a traced function cannot return a {kind.__name__}",
            where=active.here(),
            instead="arrays, numbers, strings, None, and tuples, lists, dicts, dataclasses of them",
        )

    def _leaf(self, value: Value, box: bool) -> Tree:
        self.values.append(value)
        axes = value.type.ndim if isinstance(value.type, ArrayType) else None
        self.boxes.append(box if axes == 0 else None)
        return LEAF


_PLAIN = (bool, int, float, complex, str, bytes)
_KEY = "a key or a slice in the result"


def is_container_class(kind: type) -> bool:
    """Results of this class are opened."""
    return (
        kind in (tuple, list, dict)
        or hasattr(kind, "__dataclass_fields__")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )
