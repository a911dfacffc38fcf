"""Traced arrays: what the user's code holds in place of an ndarray while it is being recorded.

To `isinstance` a traced array is an ndarray (or the NumPy scalar that it stands for).  It knows the
memory that it looks into and the views from there to here, so a write through any alias is seen by
all of them.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import (
    ConcreteValueError,
    DimensionError,
    DtypeError,
    IterationError,
    MinigraphError,
    ShapeError,
    UnsupportedError,
    WriteError,
)
from minigraph.ir import INT, OPERAND, ArrayType, Dim, Op, ScalarType, Value

from .indices import read_index
from .operands import BINARY, Traced, cast, has_traced, install_operators, operand
from .recording import ACTIVE, KEEP, Recording, Storage, current
from .rows import gathered
from .scalars import TracedDim, TracedScalar
from .selection import INSTEAD, TracedSelection, record_selection
from .source import called_by_an_op
from .views import RESHAPES, Layout, Step, apply, put_back, result_layout


def stack_nested(recording: Recording, things: Sequence[Any]) -> TracedArray:
    """The array of a nested list."""
    value = operand(recording, list(things))
    return wrap(recording, value, Layout(value.shape, True))


# NumPy gives a scalar, not a 0-d array, where a result of these kinds has no axes.
_SCALAR_KINDS = ("elementwise", "reduce", "contract", "index", "cumulate", "library", "random")
_ARRAY_RESULTS = {"where", "copy", "cast", "update", "select", "tensordot", "isin"}


def gives_scalar(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether a 0-d result of the op is a NumPy scalar."""
    if op.name in ("copy", "cast", "real", "imag", "transpose", "squeeze"):
        return any(isinstance(thing, TracedArray) and thing.scalar_ for thing in operands)
    if op.name in ("median", "nanmedian") and attrs.get("keepdims"):
        return False
    return op.kind in _SCALAR_KINDS and op.name not in _ARRAY_RESULTS


def record(
    op: Op, operands: Sequence[Any], attrs: dict[str, Any], recording: Recording | None = None
) -> Any:
    """Record an op on traced and concrete operands; wrap what comes out."""
    recording = recording or current()
    for thing in operands:
        if type(thing) is TracedSelection:
            return record_selection(op, operands, attrs, thing)
    if op.name in ("stack", "concatenate") and attrs.keys() <= {"axis"}:
        found = _joined(recording, op, operands, attrs.get("axis", 0))
        if found is not None:
            return found
    values = [operand(recording, thing) for thing in operands]
    if op.view and isinstance(operands[0], TracedArray) and not operands[0].scalar_:
        return operands[0].view_(op.name, attrs, values[1:])
    outputs = recording.emit(op, values, attrs)
    layouts = [thing.layout_ for thing in operands if isinstance(thing, TracedArray)]
    wrapped = [
        TracedScalar(recording, value)
        if isinstance(value.type, ScalarType)
        else wrap(
            recording,
            value,
            result_layout(op, value.shape, layouts),
            not value.shape and gives_scalar(op, operands, attrs),
        )
        for value in outputs
    ]
    if len(wrapped) == 1:
        return wrapped[0]
    return tuple(wrapped) if wrapped else None


def _joined(
    recording: Recording, op: Op, things: Sequence[Any], axis: int | None
) -> TracedArray | None:
    """The rows of arrays joined, without taking each one out; None: they have to be."""
    value = gathered(recording, things) if axis is not None else None
    if axis is None or value is None or (op.name == "concatenate" and len(value.shape) < 2):
        return None
    found = wrap(recording, value, Layout(value.shape, True))
    if axis:
        axes = [*range(1, axis + 1), 0, *range(axis + 1, found.ndim)]
        found = found.view_("transpose", {"axes": tuple(axes)}).copied_("C")
    if op.name == "stack":
        return found
    shape = found.type_.shape
    merged = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    return found.view_("reshape", {"shape": merged})


def wrap(recording: Recording, value: Value, layout: Layout, scalar: bool = False) -> TracedArray:
    """A fresh array (memory of its own)."""
    return TracedArray(recording, Storage(value), (), layout, scalar)


class TracedArray(Traced):
    """An array (or NumPy scalar) that is being described.

    Attributes:
        storage_: the memory it looks into; path_: the views from there to here.
        layout_: what is known of its memory layout.
        scalar_: it stands for a NumPy scalar.
    """

    __slots__ = ("cached_", "layout_", "path_", "scalar_", "seen_", "storage_", "type_")
    __array_priority__ = 1000.0

    def __new__(
        cls,
        recording: Recording,
        storage: Storage,
        path: tuple[Step, ...],
        layout: Layout,
        scalar: bool = False,
        value: Value | None = None,
    ) -> TracedArray:
        plain = TracedGeneric if scalar else TracedArray
        return object.__new__(plain if recording.arrays is None else Recording.traced_eager)

    def __init__(
        self,
        recording: Recording,
        storage: Storage,
        path: tuple[Step, ...],
        layout: Layout,
        scalar: bool = False,
        value: Value | None = None,
    ) -> None:
        value = storage.value if value is None else value
        assert isinstance(value.type, ArrayType)
        self.recording_ = recording
        self.storage_ = storage
        self.path_ = path
        self.layout_ = layout
        self.scalar_ = scalar and recording.arrays is None  # eager arrays have no scalars
        self.type_ = value.type
        self.cached_ = value
        self.seen_ = storage.version

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return self.type_.dtype.type if self.scalar_ else np.ndarray

    @property
    def value_(self) -> Value:
        """The present contents."""
        storage = self.storage_
        if self.seen_ != storage.version or (self.path_ and self.cached_ in self.recording_.hidden):
            value = storage.value
            for step in self.path_:
                value = apply(self.recording_, value, step)
            self.cached_ = value
            self.seen_ = storage.version
        return self.cached_

    # ---- memory ----------------------------------------------------------------------------

    def view_(
        self,
        op: str,
        attrs: dict[str, Any],
        operands: Sequence[Value] = (),
        *,
        checked: bool = False,
    ) -> TracedArray:
        """A view of this array (or a copy, where NumPy must copy to reshape).

        Args:
            op: what views it.
            attrs: of that op.
            operands: of that op, besides this array.
            checked: the operands are known not to make it fail.
        """
        recording = self.recording_
        step = Step(op, attrs, operands, self.type_)
        before = self.value_
        shared: bool | None = True
        if op in RESHAPES:
            shared = self._shares_memory(ops.get(op), attrs)
            if shared is False and self.storage_.source is not None:
                before = self.copied_("C").value_  # the argument's memory may be written later
        (value,) = recording.emit(ops.get(op), (before, *operands), attrs, checked=checked)
        shape = value.shape
        if shared is False:
            made = wrap(recording, value, Layout(shape, True))
            made.storage_.layout_of = self.layout_.depends
            return made
        if shared is None:
            made = wrap(recording, value, Layout(shape, False))
            doubt = "whether this array and a reshaped one share memory depends on its layout"
            made.storage_.doubt = self.storage_.doubt = doubt
            return made
        storage = self.storage_
        layout = self.layout_.view(step, shape)
        if op == "broadcast_to" or op == "diagonal":
            made = TracedArray(recording, storage, (*self.path_, step), layout, value=value)
            return made
        if op in ("slice", "gather") and not shape and Ellipsis not in attrs["index"]:
            return wrap(recording, value, Layout((), True), True)  # a scalar is no view
        return TracedArray(recording, storage, (*self.path_, step), layout, value=value)

    def _shares_memory(self, op: Op, attrs: dict[str, Any]) -> bool | None:
        """Whether a reshape is a view; None: not known."""
        if self.layout_.c_order:
            self._decided()
            return True
        with contextlib.suppress(MinigraphError):  # recording it says what is wrong, and where
            (type_,) = ops.infer(op, [self.type_], attrs)
            shared = self.layout_.reshape_is_view(
                type_.shape if isinstance(type_, ArrayType) else ()
            )
            if shared is not None:
                self._decided()
            return shared
        return None

    def _decided(self) -> None:
        """A decision rests on the layout of inputs; it matters if the memory is written."""
        depends = self.layout_.depends
        if self.storage_.version:
            for source in depends:
                self.recording_.depend_on_layout(source)
        self.storage_.layout_of |= depends

    def copied_(self, order: Any = "K") -> TracedArray:
        """A copy whose elements lie in C order, in Fortran order, or as they do here.

        Raises:
            UnsupportedError: the order depends on a memory layout that is not known.
        """
        if order == "A":
            fortran = self.strided_().flags.fnc
            order = "F" if fortran else "C"
        if order == "F":
            return self.transpose().copied_("C").transpose()
        attrs = {"order": "C"} if order == "C" and not self.layout_.c_order else {}
        made = record(ops.get("copy"), [self], attrs, self.recording_)
        if attrs:
            made.layout_ = Layout(self.type_.shape, True)
        return made

    def in_order_(self, order: Any) -> TracedArray:
        """This array if its elements lie in this order (None: any), else a copy.

        Raises:
            UnsupportedError: it is not known how they lie.
        """
        if order in (None, "K", "A"):
            return self
        if order == "F":
            turned = self.transpose()
            found = turned.in_order_("C")
            return self if found is turned else found.transpose()
        if self.layout_.c_order or self.strided_().flags.c_contiguous:
            self._decided()
            return self
        made = self.copied_("C")
        made.storage_.layout_of |= self.layout_.depends
        return made

    def axes_in_memory_(self, order: Any) -> list[int]:
        """The axes from the slowest to the fastest, for a new array in this order.

        Raises:
            UnsupportedError: it is not known how the elements lie.
        """
        axes = list(range(self.ndim))
        if order == "F":
            return axes[::-1]
        if self.layout_.c_order or self.ndim < 2 or order == "C":
            return axes
        found = self.strided_()
        if order == "A":
            return axes[::-1] if found.flags.fnc else axes
        made = np.empty_like(found)
        return sorted(axes, key=lambda axis: (-made.strides[axis], axis))

    def strided_(self) -> Any:
        """An array of no memory with the strides of this one; the trace now depends on them."""
        found = self.layout_.strided
        if found is None:
            raise UnsupportedError(
                "what this makes depends on a memory layout that is not known",
                where=self.recording_.here(),
                instead="leave out order=, or x.copy() first",
            )
        for source in self.layout_.depends:
            self.recording_.depend_on_layout(source)
        return found

    def assign_(self, value: Value) -> None:
        """Replace the contents of this array, seen by all that share its memory."""
        if self.scalar_:
            raise DtypeError(
                f"'{self.type_.dtype.type.__name__}' object does not support item assignment",
                where=self.recording_.here(),
            )
        recording = self.recording_
        befores = [self.storage_.value]
        for step in self.path_[:-1]:
            befores.append(apply(recording, befores[-1], step))
        for step, before in zip(reversed(self.path_), reversed(befores), strict=False):
            value = put_back(recording, before, step, value)
        recording.write(self.storage_, value)

    def update_in_place_(self, result: Any) -> TracedArray:
        """`self op= ...`: the result, cast to this dtype, replaces the contents.

        Raises:
            DtypeError: the cast would lose kind; ShapeError: the result is larger.
        """
        if self.scalar_ or not isinstance(result, TracedArray):
            return result
        out = self.type_
        if not np.can_cast(result.type_.dtype, out.dtype, "same_kind"):
            raise DtypeError(
                f"cannot cast the result from {result.type_.dtype} to {out.dtype} in place",
                where=self.recording_.here(),
                instead="x = x + y makes a new array; x.astype(...) converts first",
            )
        value = fit(self.recording_, result.value_, out)
        if self.layout_.c_order and result.layout_.c_order:
            self.assign_(value)
        else:
            self.store_(value)
        return self

    def store_(self, value: Value) -> None:
        """`assign_` of a value whose elements may lie in another order.

        They stay where this array has them: a later sum goes through them in that order.
        """
        if self.ndim > 1:
            attrs = {"index": [Ellipsis]}
            values = (self.value_, value)
            (value,) = self.recording_.emit(ops.get("update"), values, attrs, checked=True)
        self.assign_(value)

    # ---- attributes ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(
            TracedDim(self, axis, size) if isinstance(size, Dim) else size
            for axis, size in enumerate(self.type_.shape)
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type_.dtype

    @property
    def ndim(self) -> int:
        return self.type_.ndim

    @property
    def size(self) -> Any:
        total: Any = 1
        for size in self.shape:
            total = total * size
        return total

    @property
    def itemsize(self) -> int:
        return self.type_.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    @property
    def T(self) -> TracedArray:
        return self.transpose()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        size = self.type_.shape[0]
        if isinstance(size, Dim):
            raise DimensionError(
                f"len() of an axis of named size {size}",
                where=self.recording_.here(),
                instead="x.shape[0], which keeps the name",
            )
        return size

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        size = self.type_.shape[0]
        if isinstance(size, Dim):
            raise IterationError(
                f"a loop over an axis of named size {size} cannot be unrolled",
                where=self.recording_.here(),
                instead="an operation on the whole axis, or a static size",
            )
        return (self[index] for index in range(size))

    def __getattr__(self, name: str) -> Any:
        kind = self.type_.dtype.type if self.scalar_ else np.ndarray
        if not hasattr(kind, name) or (name.startswith("__") and not hasattr(Traced, name)):
            raise AttributeError(f"'numpy.{kind.__name__}' object has no attribute '{name}'")
        raise UnsupportedError(
            f"{kind.__name__}.{name} is not recorded",
            where=self.recording_.here(),
            instead="NumPy functions that the table of supported operations lists",
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in TracedArray.__slots__ or name == "recording_":
            object.__setattr__(self, name, value)
            return
        if name in ("real", "imag"):
            raise WriteError(
                f"writing to .{name} is not recorded",
                where=self.recording_.here(),
                instead="x = a + 1j * b",
            )
        raise UnsupportedError(
            f"setting ndarray.{name} is not recorded",
            where=self.recording_.here(),
            instead="x = x.reshape(...)" if name == "shape" else "",
        )

    # ---- indexing --------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        recording = self.recording_
        items, operands, kind = read_index(self, index)
        if kind == "basic":
            op = "gather" if operands else "slice"
            if self.scalar_:
                (value,) = recording.emit(ops.get(op), (self.value_, *operands), {"index": items})
                shape = value.shape
                return wrap(recording, value, Layout(shape, True), not items)
            return self.view_(op, {"index": items}, operands)
        if kind == "mask":
            if len(items) != 1:
                raise UnsupportedError(
                    "the size of an array indexed by a mask depends on the data",
                    where=recording.here(),
                    instead=INSTEAD,
                )
            return TracedSelection(recording, self.value_, operands[0])
        (value,) = recording.emit(ops.get("gather"), [self.value_, *operands], {"index": items})
        shape = value.shape
        scalar = not shape and Ellipsis not in items
        rows = self.layout_.c_order and all(item is OPERAND for item in items)
        return wrap(recording, value, Layout(shape, rows or len(shape) <= 1), scalar)

    def element_(self, at: Any) -> Any:
        """The element along the first axis at a number that is known to be one of its places."""
        if not isinstance(at, Traced):
            return self[at]
        return self.view_(
            "gather", {"index": [OPERAND]}, (operand(at.recording_, at),), checked=True
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        recording = self.recording_
        items, operands, kind = read_index(self, index)
        if self._is_own_view(value, items, operands, kind):
            return  # `x[i] += 1` has written already
        if type(value) is TracedSelection:
            if kind != "mask" or len(items) != 1 or operands[0] is not value.mask_:
                value.refuse_("storing it under another index")
            self.assign_(value.store_into_(self))
            return
        if (
            isinstance(value, TracedArray)
            and value.storage_ is self.storage_
            and value.ndim
            and _is_mask(index, self.ndim)
        ):
            raise UnsupportedError(
                "storing a view of an array under a mask of it: NumPy may read what it has written",
                where=recording.here(),
                instead="x[mask] = y.copy()",
            )
        new = operand(recording, value)
        checked = kind != "advanced" and not (kind == "basic" and operands)
        checked = checked and self._takes(new, items)
        if new.type is INT and self.type_.dtype.kind in "iu":
            number, bounds = recording.constant_number(new), np.iinfo(self.type_.dtype)
            checked = checked and number is not None and bounds.min <= number <= bounds.max
        (updated,) = recording.emit(
            ops.get("update"),
            (self.value_, new, *operands),
            {"index": items},
            checked=checked,
        )
        self.assign_(updated)

    def _takes(self, new: Value, items: Sequence[Any]) -> bool:
        """Storing the value cannot fail: a single number fits its dtype, an array its axes."""
        axes = len(new.shape)
        if not axes and not isinstance(new.type, ArrayType):
            assert isinstance(new.type, ScalarType)
            return np.can_cast(np.asarray(new.type.python(1)).dtype, self.type_.dtype, "same_kind")
        if not axes:
            return np.can_cast(new.type.dtype, self.type_.dtype, "same_kind")  # type: ignore[union-attr]
        return axes <= self.ndim - sum(type(item) is int for item in items)

    def _is_own_view(
        self, value: Any, items: list[Any], operands: Sequence[Value], kind: str
    ) -> bool:
        if not isinstance(value, TracedArray) or value.storage_ is not self.storage_:
            return False
        if kind != "basic" or len(value.path_) != len(self.path_) + 1:
            return False
        last = value.path_[-1]
        return (
            value.path_[:-1] == self.path_
            and last.op in ("slice", "gather")
            and repr(last.attrs["index"]) == repr(items)
            and last.operands == tuple(operands)
        )

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    # ---- what Python may only do with a definite number ---------------------------------------

    def __bool__(self) -> bool:
        size = self.type_.size
        if isinstance(size, int) and size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
                if size
                else "The truth value of an empty array is ambiguous. Use `array.size > 0`"
            )
        return self.recording_.truth(self.value_)

    def concrete_(self, what: str, instead: str = KEEP) -> Any:
        """The array itself, if it is known while tracing.

        Raises:
            ConcreteValueError: it is not.
        """
        return self.recording_.require(
            self.value_, ConcreteValueError, f"{what} needs the number itself", instead
        )

    def __int__(self) -> int:
        return int(self.concrete_("int()"))

    def __float__(self) -> float:
        return float(self.concrete_("float()"))

    def __complex__(self) -> complex:
        return complex(self.concrete_("complex()"))

    def __index__(self) -> int:
        if self.ndim or self.type_.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        number = self.concrete_(
            "an index, a shape or a range",
            "a Python int as the argument (its value is known while tracing), or static=(...)",
        )
        return operator.index(number)

    def number_(self) -> TracedScalar:
        """The one element as a number of Python; gradients of eager arrays end here."""
        recording, value = self.recording_, self.value_
        if value.shape:
            (value,) = recording.emit(ops.get("reshape"), (value,), {"shape": ()})
        if recording.arrays is not None:
            (value,) = recording.emit(ops.get("stop_gradient"), (value,), {})
        return TracedScalar(recording, recording.emit(ops.get("item"), (value,), {})[0])

    def item(self, *args: Any) -> Any:
        if args:
            index = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
            return (self[index] if len(index) > 1 else self.reshape(-1)[index]).item()
        if isinstance(self.type_.size, int) and self.type_.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.number_()

    def tolist(self) -> Any:
        return self.concrete_(".tolist()").tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found = self.concrete_("conversion to an ndarray (by a function that is not recorded)")
        return np.array(found, dtype=dtype)

    def __format__(self, spec: str) -> str:
        if not self.recording_.is_known(self.value_):
            raise ConcreteValueError(
                "formatting into a string needs the number itself",
                where=self.recording_.here(),
                instead='print("loss", x), which is recorded',
            )
        return format(self.recording_.force(self.value_, "formatting"), spec)

    def __str__(self) -> str:
        return self.__format__("")

    def __repr__(self) -> str:
        if ACTIVE.get() is self.recording_ and not called_by_an_op():
            return repr(self.concrete_("repr()"))
        return f"<traced %{self.cached_.name}: {self.type_}>"

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'numpy.ndarray'")

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.copy()

    @property
    def __round__(self) -> Any:
        if not self.scalar_:
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        return self._round

    def _round(self, digits: int | None = None) -> Any:
        return round(self.number_()) if digits is None else self.round(digits)


class TracedGeneric(TracedArray):
    """A NumPy scalar that is being described: it has no items, and cannot be written."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in _NOT_OF_SCALARS:
            kind = object.__getattribute__(self, "type_").dtype.type
            raise AttributeError(f"'numpy.{kind.__name__}' object has no attribute '{name}'")
        return object.__getattribute__(self, name)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            f"'numpy.{self.type_.dtype.type.__name__}' object does not support item assignment"
        )

    def __hash__(self) -> int:
        return hash(self.concrete_("hash()"))

    # A NumPy scalar has no length and no items: Python itself says so in NumPy's words.
    __len__ = None  # type: ignore[assignment]
    __iter__ = None  # type: ignore[assignment]
    __contains__ = None  # type: ignore[assignment]
    __matmul__ = None
    __rmatmul__ = None
    __imatmul__ = None


# What arrays have and NumPy scalars do not.
_NOT_OF_SCALARS = frozenset(
    name
    for name in dir(np.ndarray)
    if not hasattr(np.float64, name) and name not in ("__complex__", "__index__")
)


def fit(recording: Recording, value: Value, out: ArrayType) -> Value:
    """A value stretched and cast to the type of the array it is stored into."""
    value = cast(recording, value, out.dtype)
    if value.shape != out.shape:
        if (
            len(value.shape) > len(out.shape)
            or ops.broadcast_shapes([value.shape, out.shape]) != out.shape
        ):
            raise ShapeError(
                f"non-broadcastable output operand: {out} cannot hold {value.type}",
                where=recording.here(),
            )
        value = recording.emit(ops.get("broadcast_to"), (value,), {"shape": out.shape})[0]
        value = recording.emit(ops.get("copy"), (value,), {})[0]
    return value


def _is_mask(index: Any, ndim: int) -> bool:
    """A mask of every axis; NumPy stores under it without regard to shared memory."""
    found: Any = np.asarray(index) if isinstance(index, list) and not has_traced(index) else index
    return getattr(found, "dtype", None) == np.bool and found.ndim == ndim


_ARRAY_LIKE = (Traced, np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def _takes(other: Any) -> bool:
    kind = type(other)
    return (
        isinstance(other, _ARRAY_LIKE)
        or hasattr(kind, "recorded_value_")
        or hasattr(kind, "eager_array_")
    )


def _binary(op_name: str, reflected: bool) -> Any:
    op = ops.get(op_name)

    def method(self: TracedArray, other: Any) -> Any:
        if not _takes(other):
            return _equality(op_name, self, other)
        if self.scalar_ and op_name == "multiply" and isinstance(other, list | tuple):
            return _repeated(self, other)
        return record(op, [other, self] if reflected else [self, other], {}, self.recording_)

    return method


def _equality(op_name: str, self: TracedArray, other: Any) -> Any:
    """`==` and `!=` are for any two objects; NumPy goes element by element."""
    if op_name not in ("equal", "not_equal"):
        return NotImplemented
    if other is not None and not isinstance(other, str | bytes):
        raise UnsupportedError(
            f"comparing an array with a {type(other).__name__} is not recorded",
            where=self.recording_.here(),
            instead="`is`, or isinstance(...)",
        )
    if not self.ndim:
        plain = self.scalar_ and other is None
        return (bool if plain else np.bool)(op_name == "not_equal")
    attrs = {"shape": self.type_.shape, "dtype": np.dtype(bool)}
    return record(ops.get("full"), [op_name == "not_equal"], attrs, self.recording_)


def _repeated(self: TracedArray, items: list[Any] | tuple[Any, ...]) -> Any:
    """A sequence times a NumPy scalar is repeated, as by a Python int."""
    if self.type_.dtype.kind not in "iu":
        name = self.type_.dtype.type.__name__
        raise TypeError(f"can't multiply sequence by non-int of type 'numpy.{name}'")
    return items * operator.index(self)


def _in_place(op_name: str) -> Any:
    op = ops.get(op_name)

    def method(self: TracedArray, other: Any) -> Any:
        if not _takes(other):
            return NotImplemented
        return self.update_in_place_(record(op, [self, other], {}, self.recording_))

    return method


def _unary(op_name: str) -> Any:
    op = ops.get(op_name)
    return lambda self: record(op, [self], {}, self.recording_)


install_operators(TracedArray, _binary, _unary)
for _name, _op in {**BINARY, "matmul": "matmul"}.items():
    setattr(TracedArray, f"__i{_name}__", _in_place(_op))
for _name in ("matmul", "divmod"):
    setattr(TracedArray, f"__{_name}__", _binary(_name, False))
    setattr(TracedArray, f"__r{_name}__", _binary(_name, True))
