"""Which arrays share memory: a traced array is a base and a path of views into it.

A read applies the path to the base's present contents; a write puts the new contents back, step by
step.  Whether a `reshape` is a view depends on the memory layout.  The layout is followed where it
can be: a stand-in of one byte with the array's shape and strides takes part in each view, and NumPy
itself says whether a reshape of it needs a copy.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import WriteError
from minigraph.ir import OPERAND, ArrayType, Dim, Op, Value

from .recording import Recording, Storage


class Step:
    """One view: the layout or index op that makes it from the array before it."""

    __slots__ = ("attrs", "before", "op", "operands")

    def __init__(
        self, op: str, attrs: Mapping[str, Any], operands: Sequence[Value], before: ArrayType
    ) -> None:
        self.op = op
        self.attrs = attrs
        self.operands = tuple(operands)
        self.before = before


def apply(recording: Recording, value: Value, step: Step) -> Value:
    """The view of `value`."""
    return recording.emit(ops.get(step.op), (value, *step.operands), step.attrs)[0]


def put_back(recording: Recording, base: Value, step: Step, new: Value) -> Value:
    """The contents of `base` after its view has become `new`.

    Raises:
        WriteError: the view is read-only.
    """
    shape = step.before.shape
    if step.op == "slice":
        return recording.emit(ops.get("update"), (base, new), step.attrs, checked=True)[0]
    if step.op == "gather":
        return recording.emit(
            ops.get("update"), (base, new, *step.operands), step.attrs, checked=True
        )[0]
    if step.op == "transpose":
        axes = step.attrs["axes"]
        inverse = tuple(axes.index(axis) for axis in range(len(axes)))
        return recording.emit(ops.get("transpose"), (new,), {"axes": inverse})[0]
    if step.op in RESHAPES:
        return recording.emit(ops.get("reshape"), (new,), {"shape": shape})[0]
    if step.op == "stop_gradient":
        raise WriteError(
            "an array is written through another that is it without its gradient",
            where=recording.here(),
            instead="write into the array itself, or into a .copy() of x.detach()",
        )
    raise WriteError(
        f"the result of {step.op} is a read-only view",
        where=recording.here(),
        instead="write into a .copy() of it",
    )


class Layout:
    """What is known of an array's memory layout.

    Attributes:
        shape: the array's.
        c_order: the elements lie in C order without gaps (known also for named dimensions).
        depends: the storages of inputs whose layout this knowledge rests on.
    """

    __slots__ = ("_strided", "c_order", "depends", "shape")

    def __init__(
        self,
        shape: Sequence[Any],
        c_order: bool,
        depends: frozenset[Storage] = frozenset(),
        strided: Any = None,
    ) -> None:
        self.shape = tuple(shape)
        self.c_order = c_order
        self.depends = depends
        self._strided = strided

    @classmethod
    def of_input(cls, array: np.ndarray[Any, Any], storage: Storage) -> Layout:
        """The layout of a concrete array."""
        strides = tuple(stride // array.itemsize for stride in array.strides)
        return cls(
            array.shape,
            bool(array.flags.c_contiguous),
            frozenset((storage,)),
            _stand_in(array.shape, strides),
        )

    @property
    def strided(self) -> Any:
        """An array of no memory with this shape and these strides; None where not known."""
        if self._strided is None and self.c_order and not _named(self.shape):
            running, strides = 1, list[int]()
            for size in reversed(self.shape):
                strides.append(running)
                running *= max(int(size), 1)
            self._strided = _stand_in(self.shape, strides[::-1])
        return self._strided

    def view(self, step: Step, shape: Sequence[Any]) -> Layout:
        """The layout of a view of it."""
        if self.c_order and step.op in RESHAPES:
            return Layout(shape, True, self.depends)
        if self.strided is None or step.op not in (*RESHAPES, "transpose", "slice", "gather"):
            return Layout(shape, False, self.depends)
        if step.op in RESHAPES:
            viewed = self.strided.reshape(shape)
        elif step.op == "transpose":
            viewed = self.strided.transpose(step.attrs["axes"])
        else:
            index = tuple(0 if item is OPERAND else item for item in step.attrs["index"])
            viewed = np.asanyarray(self.strided[index])
        return Layout(shape, bool(viewed.flags.c_contiguous), self.depends, viewed)

    def reshape_is_view(self, shape: Sequence[Any]) -> bool | None:
        """Whether `reshape(shape)` shares memory; None: not known."""
        if self.c_order:
            return True
        if self.strided is None or _named(shape):
            return None
        reshaped = self.strided.view()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                reshaped.shape = tuple(shape)
        except AttributeError:
            return False
        return True


RESHAPES = ("reshape", "expand_dims", "squeeze", "ravel")


def _named(shape: Sequence[Any]) -> bool:
    return any(isinstance(size, Dim) for size in shape)


def _stand_in(shape: Sequence[int], strides: Sequence[int]) -> Any:
    return np.lib.stride_tricks.as_strided(
        np.zeros(1, np.int8), tuple(shape), tuple(strides), writeable=False
    )


def result_layout(op: Op, shape: Sequence[Any], operands: Sequence[Layout]) -> Layout:
    """The layout of a fresh result, given those of its array operands.

    What NumPy makes from nothing is in C order; an elementwise result is where its operands are.
    """
    if op.kind in ("create", "random") or op.name in ("matmul", "ravel", "reshape"):
        return Layout(shape, True)
    if len(shape) <= 1:
        return Layout(shape, True)
    if op.kind not in ("elementwise", "reduce", "join", "library", "cumulate"):
        return Layout(shape, False)
    depends: frozenset[Storage] = frozenset()
    for layout in operands:
        if layout.shape and not layout.c_order:
            return Layout(shape, False)
        if layout.depends is not depends:
            depends = layout.depends | depends if depends else layout.depends
    return Layout(shape, True, depends)
