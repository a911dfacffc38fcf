"""Functions of NumPy that ask about arrays, make them from anything, or depend on memory order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import (
    DtypeError,
    UnsupportedError,
)
from minigraph.ir import SCALARS, ScalarType, as_dtype

from .arrays import TracedArray, fit, record, stack_nested, wrap
from .calls import NUMPY, SPECIAL, call_op, call_ufunc, dtype_of
from .composites import COMPOSITES
from .effects import TracedGenerator
from .operands import Traced, has_traced, native_dtype, operand
from .recording import current
from .scalars import TracedDim, TracedScalar, dim_of
from .views import Layout


def as_array(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **_: Any) -> Any:
    """`np.asarray`: an array of numbers, lists and arrays, traced or not."""
    recording = current()
    if isinstance(a, TracedArray) and not a.scalar_:
        made: Any = a
    elif isinstance(a, Traced | TracedDim) or hasattr(type(a), "recorded_value_"):
        value = operand(recording, a)
        if isinstance(value.type, ScalarType):
            known = recording.peek(value)
            target = np.asarray(value.type.python(1) if known is None else known).dtype
            (value,) = recording.emit(ops.get("cast"), (value,), {"dtype": as_dtype(target)})
        # A reshape to no axes makes a 0-d array of a scalar.
        (value,) = recording.emit(ops.get("reshape"), (value,), {"shape": ()})
        made = wrap(recording, value, Layout((), True))
    elif getattr(type(a), "eager_array_", False):
        value = operand(recording, a)
        made = wrap(recording, value, Layout(value.shape, True))
    elif isinstance(a, list | tuple) and has_traced(a):
        made = stack_nested(recording, a)
    else:
        concrete = np.array(a, dtype=dtype)
        made = wrap(recording, recording.constant(concrete), Layout(concrete.shape, True))
    if copy is False and made is not a:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if dtype is not None and made.dtype != np.dtype(dtype):
        if (
            made.dtype.kind == "c"
            and np.dtype(dtype).kind != "c"
            and not isinstance(a, TracedArray)
        ):
            raise TypeError("float() argument must be a string or a real number, not 'complex'")
        return astype(made, dtype, order or "K")
    if copy and made is a:
        return made.copied_(order or "K")
    ordered = made.in_order_(order)
    if copy is False and ordered is not a:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return ordered


def _array(
    a: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0, **_: Any
) -> Any:
    made = as_array(a, dtype, order, copy=copy)
    while made.ndim < ndmin:
        made = made[None]
    return made


def _shape(a: Any) -> Any:
    return as_array(a).shape if has_traced(a) else np.shape(a)


def _size(a: Any, axis: Any = None) -> Any:
    made = as_array(a) if has_traced(a) else np.asarray(a)
    return made.size if axis is None else made.shape[axis]


def _types(args: Sequence[Any]) -> list[Any]:
    """Operands for dtype questions: each traced one replaced by something of its type."""
    found: list[Any] = []
    for thing in args:
        if isinstance(thing, TracedArray):
            found.append(np.empty((0,) * max(thing.ndim, 1), thing.dtype))
        elif isinstance(thing, Traced):
            python: Any = thing.__class__
            found.append(python(1))
        else:
            found.append(thing)
    return found


def _dtype_question(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(np, name)(*_types(args), **kwargs)


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    recording = current()
    if not isinstance(dst, TracedArray):
        raise UnsupportedError("np.copyto needs a traced target", where=recording.here())
    source = operand(recording, src)
    dtype = dtype_of(source)
    if not np.can_cast(dtype, dst.dtype, casting):
        raise DtypeError(
            f"cannot cast from {dtype} to {dst.dtype} according to the rule {casting!r}",
            where=recording.here(),
            instead="src.astype(...), or casting='unsafe'",
        )
    value = fit(recording, source, dst.type_)
    if where is not True:
        value = recording.emit(
            ops.get("where"), (operand(recording, where), value, dst.value_), {}
        )[0]
    dst.store_(value)


def astype(
    x: TracedArray,
    dtype: Any,
    order: Any = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    """The method; without `copy=` an array of that dtype is itself."""
    native_dtype(dtype, x.recording_)
    if not copy and not x.scalar_ and x.dtype == np.dtype(dtype):
        if order == "A" and x.ndim > 1:
            order = "K" if x.strided_().flags.forc else "C"
        return x.in_order_(order)
    made = call_op(current(), "astype", (x, dtype), {"casting": casting})
    return made if order == "K" or x.scalar_ else made.copied_(order)


def _astype_function(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    if not isinstance(x, TracedArray):
        raise AttributeError(f"'{x.__class__.__name__}' object has no attribute 'astype'")
    return astype(x, dtype, copy=copy)


def _pad(array: Any, pad_width: Any, *args: Any, **kwargs: Any) -> Any:
    if ops.ndim_of(array) == 0:
        np.broadcast_to(pad_width, (0, 2))  # raises where there are widths for axes
        return _array(array)
    return call_op(current(), "pad", (array, pad_width, *args), kwargs)


def _ordered(order: str) -> Callable[..., Any]:
    def function(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
        made = as_array(a, dtype, order)
        return made if made.ndim else made.reshape(1)

    return function


def _is_number(thing: Any) -> bool:
    return type(thing) in SCALARS or isinstance(thing, TracedScalar)


def _reshape(a: Any, /, shape: Any = None, order: Any = "C", *, copy: Any = None) -> Any:
    if copy is not None:
        raise UnsupportedError(
            "np.reshape with copy= is not recorded", where=current().here(), instead="x.copy()"
        )
    if order == "F":
        return as_array(a).reshape(shape, order="F")
    return call_op(current(), "reshape", (a, shape, order), {})


def _ravel(a: Any, order: Any = "C") -> Any:
    """One axis, without gaps: a copy where `reshape` might still be a view."""
    made = as_array(a)
    if order == "F":
        made = made.transpose()
    elif order != "C":
        raise UnsupportedError(
            f"ravel with order={order!r} is not recorded: it depends on memory layout",
            where=current().here(),
            instead="leave out order=",
        )
    return made.in_order_("C").reshape(-1)


def _new(name: str, place: int) -> Callable[..., Any]:
    """`np.zeros` and its like, also in Fortran order: `order` is the argument at `place`."""

    def create(shape: Any, *args: Any, order: Any = "C", **kwargs: Any) -> Any:
        before, after = args[: place - 1], args[place - 1 :]
        order = after[0] if after else order
        if order in ("C", "A", "K", None):
            return call_op(current(), name, (shape, *before), kwargs)
        sizes = ops.as_shape(shape)
        return call_op(current(), name, (sizes[::-1], *before), kwargs).transpose()

    return create


def _like(name: str, place: int) -> Callable[..., Any]:
    """`np.zeros_like` and its like: the new array lies in memory as the given one does."""

    def create(a: Any, *args: Any, order: Any = "K", shape: Any = None, **kwargs: Any) -> Any:
        before, after = args[: place - 1], args[place - 1 :]
        order, shape = (*after[:1], order)[0], (*after[2:3], shape)[0]
        options = {**kwargs, "shape": shape}
        if not isinstance(a, TracedArray) or a.scalar_ or shape is not None or order == "C":
            return COMPOSITES[name](NUMPY, a, *before, **options)
        axes = a.axes_in_memory_(order)
        made = COMPOSITES[name](NUMPY, a.transpose(axes), *before, **options)
        return made.transpose([axes.index(axis) for axis in range(a.ndim)]) if made.ndim else made

    return create


def array_copy(x: Any, order: Any = "C") -> Any:
    """The method, whose default is C order."""
    if x.scalar_:
        return record(ops.get("copy"), [x], {})
    return x.copied_(order)


def conjugate(x: TracedArray, *args: Any, **kwargs: Any) -> Any:
    """The method: an array of real numbers is its own conjugate."""
    if x.dtype.kind != "c" and not args and not kwargs:
        return x
    return call_ufunc("conjugate", (x, *args), kwargs)


def _default_rng(seed: Any = None) -> Any:
    if isinstance(seed, TracedGenerator):
        return seed  # as eagerly
    recording = current()
    inputs, attrs = ops.get("default_rng").bind(seed)  # type: ignore[misc]
    values = [operand(recording, thing) for thing in inputs]
    (value,) = recording.emit(ops.get("default_rng"), values, attrs)
    return TracedGenerator(recording, value)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(
            f"np.{name} changes how arrays are printed later, which is not recorded",
            where=current().here(),
            instead=f"np.{name} outside of the traced function",
        )

    return refuse


SPECIAL.update(
    {
        "array": _array,
        "printoptions": _refused("printoptions"),
        "set_printoptions": _refused("set_printoptions"),
        "asarray": as_array,
        "asanyarray": as_array,
        "ascontiguousarray": _ordered("C"),
        "asfortranarray": _ordered("F"),
        "copy": lambda a, order="K", subok=False: _array(a, order=order),
        "reshape": _reshape,
        "pad": _pad,
        "astype": _astype_function,
        "ravel": _ravel,
        "real": lambda val: val.real if _is_number(val) else call_op(current(), "real", (val,), {}),
        "imag": lambda val: val.imag if _is_number(val) else call_op(current(), "imag", (val,), {}),
        "zeros": _new("zeros", 2),
        "ones": _new("ones", 2),
        "empty": _new("empty", 2),
        "full": _new("full", 3),
        "zeros_like": _like("zeros_like", 2),
        "ones_like": _like("ones_like", 2),
        "empty_like": _like("empty_like", 2),
        "full_like": _like("full_like", 3),
        "shape": _shape,
        "ndim": lambda a: len(_shape(a)),
        "size": _size,
        "result_type": _dtype_question("result_type"),
        "can_cast": _dtype_question("can_cast"),
        "iscomplexobj": _dtype_question("iscomplexobj"),
        "isrealobj": _dtype_question("isrealobj"),
        "min_scalar_type": _dtype_question("min_scalar_type"),
        "isscalar": lambda a: (
            a.scalar_ if isinstance(a, TracedArray) else isinstance(a, Traced) or np.isscalar(a)
        ),
        "broadcast_shapes": lambda *shapes: ops.broadcast_shapes(
            [
                tuple(dim_of(s) for s in (shape if isinstance(shape, tuple) else (shape,)))  # type: ignore[misc]
                for shape in shapes
            ]
        ),
        "copyto": _copyto,
        "random.default_rng": _default_rng,
    }
)
