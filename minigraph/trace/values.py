"""Traced values: what the user's code holds while it is being recorded.

`TracedArray` stands for an ndarray or a NumPy scalar, `TracedScalar` for a Python number among the
arguments, `TracedDim` for a size that has a name.  To `isinstance` each is what it stands for.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import (
    BranchError,
    ConcreteValueError,
    DimensionError,
    DtypeError,
    IterationError,
    MinigraphError,
    ShapeError,
    UnsupportedError,
    WriteError,
)
from minigraph.ir import (
    BOOL,
    INT,
    OPERAND,
    SCALARS,
    ArrayType,
    Dim,
    Loc,
    Op,
    ScalarType,
    Size,
    Value,
    decide_at_least,
    decide_equal,
    type_of,
)

from .recording import Recording, Storage, current
from .views import RESHAPES, Layout, Step, apply, put_back, result_layout

_KEEP = "keep the value in the graph with NumPy functions"


class Traced:
    """What all traced values share: their recording."""

    __slots__ = ("recording_",)
    recording_: Recording


def operand(recording: Recording, thing: Any) -> Value:
    """The IR value of anything that may stand in an array expression.

    Raises:
        DtypeError: it is no array and no number.
    """
    if isinstance(thing, Traced):
        return thing.value_  # type: ignore[attr-defined]
    if type(thing) in SCALARS or isinstance(thing, np.ndarray | np.generic):
        return recording.constant(thing)
    number = getattr(thing, "recorded_value_", None)
    if number is not None:
        return number
    if isinstance(thing, list | tuple):
        return stack_nested(recording, thing).value_
    if isinstance(thing, bool | int | float | complex):
        return recording.constant(thing.__class__.__mro__[-2](thing))
    raise DtypeError(
        f"a {type(thing).__name__} cannot take part in an array operation",
        where=recording.here(),
    )


def has_traced(thing: Any) -> bool:
    """A traced value, or a list or tuple with one inside."""
    if isinstance(thing, Traced) or hasattr(type(thing), "recorded_value_"):
        return True
    return isinstance(thing, list | tuple) and any(has_traced(item) for item in thing)


def stack_nested(recording: Recording, things: Sequence[Any]) -> TracedArray:
    """The array of a nested list: `np.array([x, 2.0])`."""
    if not has_traced(things):
        return wrap(recording, recording.constant(np.asarray(things)), Layout(np.shape(things), True))
    parts = [operand(recording, thing) for thing in things]
    found = [v.type.dtype if isinstance(v.type, ArrayType) else v.type.python for v in parts  # type: ignore[union-attr]
             if not isinstance(v.type, ScalarType)]
    weak = [v.type.python for v in parts if isinstance(v.type, ScalarType)]
    dtype = np.result_type(*found, *[python(1) for python in weak]) if found else np.asarray(
        [python(1) for python in weak]).dtype
    arrays = [cast(recording, value, dtype) for value in parts]
    (value,) = recording.emit(ops.get("stack"), arrays, {"axis": 0})
    return wrap(recording, value, Layout(_shape(value), True))


def cast(recording: Recording, value: Value, dtype: np.dtype[Any]) -> Value:
    """`value` as an array of `dtype` (itself if it is one)."""
    if isinstance(value.type, ArrayType) and value.type.dtype == dtype:
        return value
    return recording.emit(ops.get("cast"), (value,), {"dtype": dtype})[0]


def _shape(value: Value) -> tuple[Size, ...]:
    return value.type.shape if isinstance(value.type, ArrayType) else ()


# NumPy gives a scalar, not a 0-d array, where a result of these kinds has no axes.
_SCALAR_KINDS = ("elementwise", "reduce", "contract", "index", "cumulate", "library", "random")
_ARRAY_RESULTS = {"where", "copy", "cast", "update", "select", "choose"}


def gives_scalar(op: Op, operands: Sequence[Any]) -> bool:
    """Whether a 0-d result of the op is a NumPy scalar."""
    if op.name in ("copy", "cast", "real", "imag", "transpose", "squeeze"):
        return any(isinstance(thing, TracedArray) and thing.scalar_ for thing in operands)
    return op.kind in _SCALAR_KINDS and op.name not in _ARRAY_RESULTS


def record(
    op: Op, operands: Sequence[Any], attrs: dict[str, Any], recording: Recording | None = None
) -> Any:
    """Record an op on traced and concrete operands; wrap what comes out."""
    recording = recording or current()
    for thing in operands:
        if type(thing) is TracedSelection:
            return record_selection(op, operands, attrs, thing)
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
            result_layout(op, _shape(value), layouts),
            not _shape(value) and gives_scalar(op, operands),
        )
        for value in outputs
    ]
    if len(wrapped) == 1:
        return wrapped[0]
    return tuple(wrapped) if wrapped else None


def wrap(
    recording: Recording, value: Value, layout: Layout, scalar: bool = False
) -> TracedArray:
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
        self.scalar_ = scalar
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
        if self.seen_ != storage.version:
            value = storage.value
            for step in self.path_:
                value = apply(self.recording_, value, step)
            self.cached_ = value
            self.seen_ = storage.version
        return self.cached_

    # ---- memory ----------------------------------------------------------------------------

    def view_(self, op: str, attrs: dict[str, Any], operands: Sequence[Value] = ()) -> TracedArray:
        """A view of this array (or a copy, where NumPy must copy to reshape)."""
        recording = self.recording_
        step = Step(op, attrs, operands, self.type_)
        (value,) = recording.emit(ops.get(op), (self.value_, *operands), attrs)
        shape = _shape(value)
        shared = self.layout_.reshape_is_view(shape) if op in RESHAPES else True
        if op in RESHAPES:
            self._decided(shared)
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
        full_index = op in ("slice", "gather") and not shape and Ellipsis not in attrs["index"]
        return TracedArray(
            recording, storage, (*self.path_, step), layout, bool(full_index), value
        )

    def _decided(self, shared: bool | None) -> None:
        """A decision rests on the layout of inputs; it matters if the memory is written."""
        depends = self.layout_.depends
        if shared is None or not depends:
            return
        if self.storage_.version:
            for source in depends:
                self.recording_.depend_on_layout(source)
        self.storage_.layout_of |= depends

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
        self.assign_(fit(self.recording_, result.value_, out))
        return self

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

    @property
    def mT(self) -> TracedArray:
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

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
        if name.startswith("__") or not hasattr(np.ndarray, name):
            kind = "numpy.ndarray" if not self.scalar_ else self.type_.dtype.type.__name__
            raise AttributeError(f"'{kind}' object has no attribute '{name}'")
        raise UnsupportedError(
            f"ndarray.{name} is not recorded",
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
                return record(ops.get(op), [self, *operands], {"index": items}, recording)
            return self.view_(op, {"index": items}, operands)
        if kind == "mask":
            if len(items) != 1:
                raise UnsupportedError(
                    "the size of an array indexed by a mask depends on the data",
                    where=recording.here(),
                    instead=_SELECT_INSTEAD,
                )
            return TracedSelection(recording, self.value_, operands[0])
        wrapped = [self, *operands]
        (value,) = recording.emit(
            ops.get("gather"), [self.value_, *operands], {"index": items}
        )
        del wrapped
        scalar = not _shape(value) and Ellipsis not in items
        return wrap(recording, value, Layout(_shape(value), value.type.ndim <= 1), scalar)  # type: ignore[union-attr]

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
        new = operand(recording, value)
        checked = kind != "advanced" and not (kind == "basic" and operands)
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

    def _concrete(self, what: str) -> Any:
        return self.recording_.require(
            self.value_, ConcreteValueError, f"{what} needs the number itself", _KEEP
        )

    def __int__(self) -> int:
        return int(self._concrete("int()"))

    def __float__(self) -> float:
        return float(self._concrete("float()"))

    def __complex__(self) -> complex:
        return complex(self._concrete("complex()"))

    def __index__(self) -> int:
        if self.ndim or self.type_.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return operator.index(self._concrete("an index or a range"))

    def item(self, *args: Any) -> Any:
        return self._concrete(".item()").item(*args)

    def tolist(self) -> Any:
        return self._concrete(".tolist()").tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found = self._concrete("conversion to an ndarray (by a function that is not recorded)")
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
        return f"<traced %{self.cached_.name}: {self.type_}>"

    def __hash__(self) -> int:
        if not self.scalar_:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._concrete("hash()"))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.copy()

    def __round__(self, digits: int | None = None) -> Any:
        return self.round(digits or 0)


class TracedScalar(Traced):
    """A Python number that came in as an argument (or was computed from such).

    It carries its value: Python may ask for it, and then the value joins the guard.
    """

    __slots__ = ("value_",)
    value_: Value

    def __init__(self, recording: Recording, value: Value) -> None:
        self.recording_ = recording
        self.value_ = value

    @property
    def __class__(self) -> type:  # type: ignore[override]
        assert isinstance(self.value_.type, ScalarType)
        return self.value_.type.python

    def force_(self, why: str) -> Any:
        """The number; pins the arguments that it depends on."""
        return self.recording_.require(
            self.value_, BranchError, f"{why} needs the number itself", _KEEP
        )

    def __bool__(self) -> bool:
        return bool(self.force_("bool()"))

    def __int__(self) -> int:
        return int(self.force_("int()"))

    def __float__(self) -> float:
        return float(self.force_("float()"))

    def __complex__(self) -> complex:
        return complex(self.force_("complex()"))

    def __index__(self) -> int:
        return operator.index(self.force_("an index, a shape or a range"))

    def __hash__(self) -> int:
        return hash(self.force_("hash()"))

    def __format__(self, spec: str) -> str:
        return format(self.force_("formatting"), spec)

    def __str__(self) -> str:
        return str(self.force_("formatting"))

    def __repr__(self) -> str:
        return repr(self.force_("formatting"))

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.force_("round()"), digits)

    def __trunc__(self) -> int:
        return int(self.force_("trunc()"))

    def __floor__(self) -> int:
        return self.force_("floor()").__floor__()

    def __ceil__(self) -> int:
        return self.force_("ceil()").__ceil__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.force_(f".{name}"), name)

    def __copy__(self) -> TracedScalar:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedScalar:
        return self


class TracedDim:
    """A size with a name, of one axis of an array or computed from such.

    As a shape it stays symbolic; as a number it is the op `size`.
    """

    __slots__ = ("array_", "axis_", "dim")

    def __init__(self, array: TracedArray | None, axis: int, dim: Dim) -> None:
        self.array_ = array
        self.axis_ = axis
        self.dim = dim

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return int

    @property
    def recorded_value_(self) -> Value:
        """The size as a number of the graph."""
        recording = current()
        if self.array_ is not None:
            return recording.emit(ops.get("size"), (self.array_.value_,), {"axis": self.axis_})[0]
        return recording.size_of(self.dim)

    def _where(self) -> Loc | None:
        return current().here()

    def _decide(self, other: Any, decide: Any, a: Any, b: Any) -> Any:
        try:
            return decide(a, b)
        except DimensionError as error:
            error.where = self._where()
            raise

    def __eq__(self, other: object) -> bool:
        size = dim_of(other)
        if size is None:
            return NotImplemented
        return self._decide(other, decide_equal, self.dim, size)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __ge__(self, other: Any) -> bool:
        return self._decide(other, decide_at_least, self.dim, dim_of(other))

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __le__(self, other: Any) -> bool:
        return self._decide(other, decide_at_least, dim_of(other), self.dim)

    def __hash__(self) -> int:
        return hash(self.dim)

    def __bool__(self) -> bool:
        return self != 0

    def _undecided(self, what: str) -> Any:
        raise DimensionError(
            f"{what} needs the number, and {self.dim} stands for every size",
            where=self._where(),
            instead="leave this dimension static",
        )

    def __index__(self) -> int:
        return self._undecided("an index or a range")

    def __int__(self) -> int:
        return self._undecided("int()")

    def __float__(self) -> float:
        return self._undecided("float()")

    def __str__(self) -> str:
        return self._undecided("formatting")

    def __format__(self, spec: str) -> str:
        return self._undecided("formatting")

    def __repr__(self) -> str:
        return f"<traced size {self.dim}>"

    def __neg__(self) -> Any:
        return 0 - self


def dim_of(thing: Any) -> Size | None:
    """An int or a named size as a size; None for anything else."""
    if isinstance(thing, TracedDim):
        return thing.dim
    if type(thing) is int or isinstance(thing, np.integer):
        return int(thing)
    return None


def _dim_operator(function: Any, reflected: bool) -> Any:
    def apply_operator(self: TracedDim, other: Any) -> Any:
        size = dim_of(other)
        if size is not None and function in _SIZE_OPERATORS:
            found = function(size, self.dim) if reflected else function(self.dim, size)
            return TracedDim(None, 0, found) if isinstance(found, Dim) else found
        if isinstance(other, TracedArray | np.ndarray):
            return NotImplemented
        number = TracedScalar(current(), self.recorded_value_)
        if isinstance(other, TracedDim):
            other = TracedScalar(current(), other.recorded_value_)
        return function(other, number) if reflected else function(number, other)

    return apply_operator


_SIZE_OPERATORS = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)
_BINARY = {
    "add": ("add", operator.add),
    "sub": ("subtract", operator.sub),
    "mul": ("multiply", operator.mul),
    "truediv": ("divide", operator.truediv),
    "floordiv": ("floor_divide", operator.floordiv),
    "mod": ("remainder", operator.mod),
    "pow": ("pow", operator.pow),
    "and": ("bitwise_and", operator.and_),
    "or": ("bitwise_or", operator.or_),
    "xor": ("bitwise_xor", operator.xor),
    "lshift": ("left_shift", operator.lshift),
    "rshift": ("right_shift", operator.rshift),
}
_COMPARE = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}
_ARRAY_LIKE = (Traced, np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def _array_binary(op_name: str, reflected: bool) -> Any:
    op = ops.get(op_name)

    def method(self: TracedArray, other: Any) -> Any:
        if not isinstance(other, _ARRAY_LIKE) and not hasattr(type(other), "recorded_value_"):
            return NotImplemented
        return record(op, [other, self] if reflected else [self, other], {}, self.recording_)

    return method


def _array_in_place(op_name: str) -> Any:
    op = ops.get(op_name)

    def method(self: TracedArray, other: Any) -> Any:
        if not isinstance(other, _ARRAY_LIKE) and not hasattr(type(other), "recorded_value_"):
            return NotImplemented
        return self.update_in_place_(record(op, [self, other], {}, self.recording_))

    return method


def _array_unary(op_name: str) -> Any:
    op = ops.get(op_name)
    return lambda self: record(op, [self], {}, self.recording_)


def _scalar_binary(op_name: str, reflected: bool) -> Any:
    op = ops.get(op_name)

    def method(self: TracedScalar, other: Any) -> Any:
        if isinstance(other, TracedDim):
            other = TracedScalar(self.recording_, other.recorded_value_)
        if (
            not isinstance(other, TracedScalar)
            and type(other) not in SCALARS
            and not hasattr(type(other), "recorded_value_")
        ):
            return NotImplemented
        pair = [other, self] if reflected else [self, other]
        return record(op, pair, {}, self.recording_)

    return method


def _scalar_unary(op_name: str) -> Any:
    op = ops.get(op_name)
    return lambda self: record(op, [self], {}, self.recording_)


def _install() -> None:
    for python_name, (op_name, function) in _BINARY.items():
        for reflected, prefix in ((False, "__"), (True, "__r")):
            name = f"{prefix}{python_name}__"
            setattr(TracedArray, name, _array_binary(op_name, reflected))
            setattr(TracedScalar, name, _scalar_binary(op_name, reflected))
            setattr(TracedSelection, name, _selection_binary(op_name, reflected))
            setattr(TracedDim, name, _dim_operator(function, reflected))
        setattr(TracedArray, f"__i{python_name}__", _array_in_place(op_name))
    for python_name, op_name in _COMPARE.items():
        setattr(TracedArray, f"__{python_name}__", _array_binary(op_name, False))
        setattr(TracedScalar, f"__{python_name}__", _scalar_binary(op_name, False))
        setattr(TracedSelection, f"__{python_name}__", _selection_binary(op_name, False))
    for python_name, op_name in _UNARY.items():
        setattr(TracedArray, f"__{python_name}__", _array_unary(op_name))
        setattr(TracedScalar, f"__{python_name}__", _scalar_unary(op_name))
        setattr(TracedSelection, f"__{python_name}__", _scalar_unary(op_name))


def fit(recording: Recording, value: Value, out: ArrayType) -> Value:
    """A value stretched and cast to the type of the array it is stored into."""
    value = cast(recording, value, out.dtype)
    if _shape(value) != out.shape:
        if len(_shape(value)) > len(out.shape) or ops.broadcast_shapes(
            [_shape(value), out.shape]
        ) != out.shape:
            raise ShapeError(
                f"non-broadcastable output operand: {out} cannot hold {value.type}",
                where=recording.here(),
            )
        value = recording.emit(ops.get("broadcast_to"), (value,), {"shape": out.shape})[0]
        value = recording.emit(ops.get("copy"), (value,), {})[0]
    return value


def read_index(array: TracedArray, index: Any) -> tuple[list[Any], list[Value], str]:
    """An index in the form of the IR.

    Returns:
        The items (`OPERAND` for each array), the operands, and the kind of indexing: "basic" (a
        view), "advanced" (integer arrays), "mask" (boolean arrays).
    """
    recording = array.recording_
    items: list[Any] = []
    operands: list[Value] = []
    kind = "basic"
    for item in index if type(index) is tuple else (index,):
        if item is None or item is Ellipsis:
            items.append(item)
        elif type(item) is slice:
            items.append(slice(*(_bound(part) for part in (item.start, item.stop, item.step))))
        elif type(item) is int:
            items.append(item)
        elif hasattr(type(item), "recorded_value_") and isinstance(item, int):
            items.append(int(item)) if not isinstance(item, TracedDim) else _operand(
                items, operands, item.recorded_value_
            )
        elif isinstance(item, TracedScalar) and item.value_.type is INT:
            _operand(items, operands, item.value_)
        elif isinstance(item, np.integer) and not isinstance(item, Traced):
            items.append(int(item))
        elif isinstance(item, TracedArray) and item.scalar_ and item.dtype.kind in "iu":
            _operand(items, operands, item.value_)
        else:
            kind = _array_item(recording, item, items, operands, kind)
    if kind != "basic" and any(v.type is INT for v in operands):
        kind = "advanced" if kind != "mask" else kind
    return items, operands, kind


def _operand(items: list[Any], operands: list[Value], value: Value) -> None:
    items.append(OPERAND)
    operands.append(value)


def _array_item(
    recording: Recording, item: Any, items: list[Any], operands: list[Value], kind: str
) -> str:
    """An array in an index: integers, or a mask (spelled out as integers where it is known)."""
    if isinstance(item, float | str | bytes) or item.__class__ is float:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
            "boolean arrays are valid indices"
        )
    if isinstance(item, list) and not item:
        item = np.zeros(0, np.intp)
    value = operand(recording, item)
    if value.type is BOOL:
        value = recording.constant(np.asarray(recording.force(value, "a mask")))
    assert isinstance(value.type, ArrayType)
    if value.type.dtype.kind in "iu":
        _operand(items, operands, value)
        return "advanced" if kind != "mask" else kind
    if value.type.dtype.kind != "b":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if recording.is_known(value) and value.type.ndim:
        for positions in np.nonzero(recording.force(value, "a mask")):
            _operand(items, operands, recording.constant(positions))
        return "advanced" if kind != "mask" else kind
    _operand(items, operands, value)
    return "mask"


def _bound(part: Any) -> Any:
    """A bound of a slice as an int, a named size, or None."""
    if part is None:
        return None
    if isinstance(part, TracedDim):
        return part.dim
    return operator.index(part)


def known_type(thing: Any) -> bool:
    """Something whose type the IR has."""
    try:
        type_of(thing)
    except MinigraphError:
        return False
    return True


# ---- x[mask] ---------------------------------------------------------------------------------------
#
# How many elements a mask selects depends on the data, so a selection is the whole array beside the
# mask.  Elementwise operations go on it element by element, and `x[mask] = selection` with the same
# mask stores it (`x[m] = -x[m]`, `x[m] *= 2`); what needs the selected elements alone is refused.

_SELECT_INSTEAD = "np.where(mask, x, other), np.sum(x, where=mask), or x[mask] = value"


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
            instead=_SELECT_INSTEAD,
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
        op = ops.RECORDED.get(ufunc.__name__)
        if method != "__call__" or kwargs or op is None:
            return self.refuse_(f"np.{ufunc.__name__}")
        return record_selection(op, inputs, {}, self)

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        return self.refuse_(f"np.{function.__name__}")

    def store_into_(self, base: TracedArray) -> Value:
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
            if not isinstance(thing, TracedScalar) and getattr(value.type, "shape", ()) != ():
                like.refuse_(op.name)
            values.append(value)
    if op.kind != "elementwise":
        like.refuse_(op.name)
    (whole,) = recording.emit(op, values, attrs)
    if recording.nodes[-1].may_raise:
        like.refuse_(f"{op.name}, which may fail on elements outside the mask,")
    return TracedSelection(recording, whole, like.mask_)


def _selection_binary(op_name: str, reflected: bool) -> Any:
    op = ops.get(op_name)

    def method(self: TracedSelection, other: Any) -> Any:
        pair = [other, self] if reflected else [self, other]
        return record_selection(op, pair, {}, self)

    return method


_install()
