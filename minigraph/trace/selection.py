"""`x[mask]` while tracing.

How many elements a mask selects depends on the data, so a selection is the whole array beside the
mask.  Elementwise operations go on it element by element, and `x[mask] = selection` with the same
mask stores it (`x[m] = -x[m]`, `x[m] *= 2`); what needs the selected elements alone is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import DtypeError, UnsupportedError
from minigraph.ir import ArrayType, Loc, Op, Value

from .operands import BINARY, Traced, cast, install_operators, operand
from .recording import Recording

INSTEAD = "np.where(mask, x, other), np.sum(x, where=mask), or x[mask] = value"


class TracedSelection(Traced):
    """The elements of an array that a mask selects.

    Attributes:
        whole_: the array of all elements; mask_: the mask, of its leading axes.
    """

    __slots__ = ("mask_", "place_", "whole_")
    whole_: Value
    mask_: Value

    def __init__(self, recording: Recording, whole: Value, mask: Value) -> None:
        self.recording_ = recording
        self.whole_ = whole
        self.mask_ = mask
        self.place_ = recording.here()

    @property
    def value_(self) -> Value:
        return self.refuse_("what is done with this", self.place_)

    def refuse_(self, what: str, where: Loc | None = None) -> Any:
        raise UnsupportedError(
            f"{what} needs the elements of x[mask], whose number depends on the data",
            where=where or self.recording_.here(),
            instead=INSTEAD,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.refuse_(f".{name}")

    def __len__(self) -> int:
        return self.refuse_("len()")

    def __bool__(self) -> bool:
        return self.refuse_("bool()")

    def __iter__(self) -> Any:
        return self.refuse_("a loop")

    def __getitem__(self, index: Any) -> Any:
        return self.refuse_("an index")

    def __setitem__(self, index: Any, value: Any) -> None:
        return self.refuse_("an index")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        op = ops.special_op(ufunc) or ops.RECORDED.get(ufunc.__name__)
        if method != "__call__" or kwargs or op is None:
            return self.refuse_(f"np.{ufunc.__name__}")
        return record_selection(op, inputs, {}, self)

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        return self.refuse_(f"np.{function.__name__}")

    def store_into_(self, base: Any) -> Value:
        """The contents of `base` with the selected elements replaced."""
        recording, type_ = self.recording_, base.type_
        mask = self.mask_
        assert isinstance(mask.type, ArrayType)
        missing = type_.ndim - mask.type.ndim
        if missing:
            shape = (*mask.type.shape, *(1,) * missing)
            (mask,) = recording.emit(ops.get("reshape"), (mask,), {"shape": shape})
        new = cast(recording, self.whole_, type_.dtype)
        return recording.emit(ops.get("where"), (mask, new, base.value_), {})[0]


def record_selection(
    op: Op, operands: Sequence[Any], attrs: Mapping[str, Any], like: TracedSelection
) -> TracedSelection:
    """An elementwise op of selections under one mask and of single numbers.

    Raises:
        UnsupportedError: other operands, or an op that may fail on elements outside the mask.
    """
    recording = like.recording_
    values: list[Value] = []
    for thing in operands:
        if isinstance(thing, TracedSelection):
            same = thing.mask_ is like.mask_ and thing.whole_.type.shape == like.whole_.type.shape  # type: ignore[union-attr]
            values.append(thing.whole_ if same else thing.value_)
        else:
            value = operand(recording, thing)
            if value.shape != ():
                like.refuse_(op.name)
            values.append(value)
    if op.kind != "elementwise":
        like.refuse_(op.name)
    (whole,) = recording.emit(op, values, attrs)
    if recording.nodes[-1].may_raise:
        like.refuse_(f"{op.name}, which may fail on elements outside the mask,")
    return TracedSelection(recording, whole, like.mask_)


def _binary(op_name: str, reflected: bool) -> Any:
    op = ops.get(op_name)

    def method(self: TracedSelection, other: Any) -> Any:
        return record_selection(op, [other, self] if reflected else [self, other], {}, self)

    return method


def _in_place(op_name: str) -> Any:
    op = ops.get(op_name)

    def method(self: TracedSelection, other: Any) -> Any:
        recording = self.recording_
        made = record_selection(op, [self, other], {}, self)
        old, new = self.whole_.type, made.whole_.type
        assert isinstance(old, ArrayType) and isinstance(new, ArrayType)
        if not np.can_cast(new.dtype, old.dtype, "same_kind"):
            raise DtypeError(
                f"cannot cast the result from {new.dtype} to {old.dtype} in place",
                where=recording.here(),
                instead="x[mask] = (x[mask] + y).astype(x.dtype)",
            )
        return TracedSelection(recording, cast(recording, made.whole_, old.dtype), self.mask_)

    return method


def _unary(op_name: str) -> Any:
    op = ops.get(op_name)
    return lambda self: record_selection(op, [self], {}, self)


install_operators(TracedSelection, _binary, _unary)
for _name, _op in BINARY.items():
    setattr(TracedSelection, f"__i{_name}__", _in_place(_op))
