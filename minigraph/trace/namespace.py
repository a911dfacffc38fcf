"""Recording NumPy: what `np` is while a function is traced, and NumPy's protocols on traced arrays.

Every way of calling NumPy ends in `call_function`: through the recording namespace (`np.ones(3)`,
where no argument is traced), through `__array_function__` and `__array_ufunc__` (from code that
holds the real functions), and through the methods of traced arrays.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import (
    DtypeError,
    MinigraphError,
    RandomnessError,
    ShapeError,
    UnsupportedError,
)
from minigraph.ir import GENERATOR, OPERAND, SCALARS, ArrayType, ScalarType, Value, as_dtype

from .arrays import TracedArray, fit, record, stack_nested, wrap
from .composites import COMPOSITES, nearest
from .indices import read_index
from .operands import Traced, cast, has_traced, native_dtype, operand
from .recording import ACTIVE, Recording, current
from .scalars import TracedDim, TracedScalar, dim_of
from .selection import TracedSelection
from .views import Layout


def call_function(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record `np.<name>(*args, **kwargs)`.

    Raises:
        UnsupportedError: the function or one of its arguments is not recorded.
    """
    recording = current()
    if any(arg is np._NoValue for arg in args):  # the defaults of np.sum and others, spelled out
        args, kwargs = _by_name(name, args, kwargs) or (args, kwargs)
    options = {key: value for key, value in kwargs.items() if value is not np._NoValue}
    out = options.pop("out", None)
    for asked in (*args[1:3], options.get("dtype")):
        if isinstance(asked, np.dtype) or (isinstance(asked, str) and asked[:1] in "<>"):
            native_dtype(asked, recording)
    if name in _SPECIAL:
        result = _SPECIAL[name](*args, **options)
    elif name in ops.RECORDED and ops.RECORDED[name].bind is None:
        result = call_ufunc(_ufunc_of(name), args, options)
    elif name in ops.RECORDED:
        result = _call_op(recording, name, args, options)
    elif name in COMPOSITES:
        result = COMPOSITES[name](NUMPY, *args, **options)
    else:
        result = _call_unrecorded(recording, name, args, kwargs)
        out = None
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if isinstance(out, TracedArray) and isinstance(result, TracedArray):
        _check_out(recording, name, out, result)
    return _store(recording, out, result)


def _check_out(recording: Recording, name: str, out: TracedArray, result: TracedArray) -> None:
    """Only elementwise functions stretch a result over `out=`; some do not cast it either.

    Raises:
        ShapeError, DtypeError: it does not fit.
    """
    elementwise = name in ops.RECORDED and ops.RECORDED[name].kind == "elementwise"
    if not elementwise and out.type_.shape != result.type_.shape:
        raise ShapeError(
            f"out= of np.{name} must have the shape of the result, {result.type_.shape}, "
            f"not {out.type_.shape}",
            where=recording.here(),
        )
    if name.removeprefix("ndarray.") in _UNCAST and out.dtype != result.dtype:
        raise DtypeError(
            f"out= of np.{name} must have the dtype of the result, {result.dtype}, not {out.dtype}",
            where=recording.here(),
        )


_UNCAST = ("argmax", "argmin", "choose", "dot", "einsum", "take")


def _ufunc_of(name: str) -> str:
    """The ufunc that a function or method is; `np.fix` and the like are those of their ops."""
    name = name.removeprefix("ndarray.")
    return name if isinstance(getattr(np, name, None), np.ufunc) else ops.RECORDED[name].name


def _store(recording: Recording, out: Any, result: Any) -> Any:
    """Write a result into `out=`, as NumPy does."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return result
    if isinstance(out, tuple):
        return tuple(
            value if target is None else _store(recording, target, value)
            for target, value in zip(out, result, strict=True)
        )
    if isinstance(out, TracedArray) and out.scalar_:
        raise TypeError("return arrays must be of ArrayType")
    if not isinstance(out, TracedArray):
        raise UnsupportedError(
            "out= must be an array that the traced function made or was given",
            where=recording.here(),
            instead="out=np.empty(...) made inside the function, or an argument",
        )
    if not isinstance(result, TracedArray):  # a Python number, or a selection (which refuses)
        value = operand(recording, result)
        result = wrap(recording, cast(recording, value, dtype_of(value)), Layout((), True))
    out.update_in_place_(result)
    return out


def dtype_of(value: Value) -> np.dtype[Any]:
    """The dtype of an operand; that of a Python number is the default one."""
    if isinstance(value.type, ScalarType):
        return np.asarray(value.type.python(1)).dtype
    assert isinstance(value.type, ArrayType)
    return value.type.dtype


def _call_op(
    recording: Recording, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    op = ops.RECORDED[name]
    assert op.bind is not None, op
    positional = list(args)
    if op.kind not in ("join", "create", "random"):
        for index in range(min(len(positional), 2 if op.kind in ("contract", "library") else 1)):
            if isinstance(positional[index], list | tuple) and has_traced(positional[index]):
                positional[index] = stack_nested(recording, positional[index])
    if op.kind == "reduce" and isinstance(kwargs.get("axis", (*args, None, None)[1]), list):
        raise TypeError("'list' object cannot be interpreted as an integer")
    try:
        inspect.signature(op.bind).bind(*positional, **kwargs)
    except TypeError as error:
        by_name = _by_name(name, positional, kwargs)
        if by_name is None:
            raise UnsupportedError(
                f"np.{name} is recorded, but not with these arguments: {error}",
                where=recording.here(),
            ) from None
        return call_function(name, *by_name)
    try:
        inputs, attrs = op.bind(*positional, **kwargs)
    except MinigraphError as error:
        raise recording.located(error) from None
    result = record(op, inputs, attrs, recording)
    named = _named_tuple(name) if isinstance(result, tuple) else tuple
    return result if named is tuple else named(*result)


def _by_name(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The same call with all but the first argument by name; None if that changes nothing."""
    if len(args) < 2:
        return None
    try:
        function: Any = operator.attrgetter(name)(np)
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except (AttributeError, TypeError, ValueError):
        return None
    first, *others = bound.items()
    return [first[1]], {
        key: value for key, value in others if value is not None and value is not np._NoValue
    }


@functools.cache
def _named_tuple(name: str) -> Any:
    """The class of the tuples that a function of np.linalg returns."""
    if not name.startswith("linalg."):
        return tuple
    return type(getattr(np.linalg, name.removeprefix("linalg."))(np.eye(1)))


def _call_unrecorded(
    recording: Recording, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A function without an op: possible on values that are known while tracing."""
    leaves = [*args, *kwargs.values()]
    if all(_is_known(recording, leaf) for leaf in leaves):
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part)
        concrete = [_concrete(recording, leaf, name) for leaf in args]
        return function(*concrete, **{k: _concrete(recording, v, name) for k, v in kwargs.items()})
    near = nearest(name)
    raise UnsupportedError(
        f"np.{name} is not recorded",
        where=recording.here(),
        instead=f"np.{near}" if near else "compute it outside of the traced function",
    )


def _is_known(recording: Recording, leaf: Any) -> bool:
    if isinstance(leaf, Traced):
        return recording.is_known(leaf.value_)  # type: ignore[attr-defined]
    if isinstance(leaf, TracedDim):
        return False
    if isinstance(leaf, list | tuple):
        return all(_is_known(recording, item) for item in leaf)
    return True


def _concrete(recording: Recording, leaf: Any, name: str) -> Any:
    if isinstance(leaf, Traced):
        return recording.force(leaf.value_, f"np.{name} is not recorded")  # type: ignore[attr-defined]
    if isinstance(leaf, list | tuple) and has_traced(leaf):
        return type(leaf)(_concrete(recording, item, name) for item in leaf)
    return leaf


def _is_array(thing: Any) -> bool:
    kinds = (np.ndarray, np.generic, list, tuple, TracedArray, TracedSelection)
    return isinstance(thing, kinds)


_IGNORED = (("casting", "same_kind"), ("order", "K"), ("subok", True), ("signature", None))


def call_ufunc(name: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record a ufunc call; `where=` keeps the old contents of `out=` elsewhere."""
    recording = current()
    options = dict(kwargs)
    out = options.pop("out", None)
    where = options.pop("where", True)
    dtype = options.pop("dtype", None)
    for ignorable, default in _IGNORED:
        if ignorable in options and options[ignorable] == default:
            del options[ignorable]
    if options:
        raise UnsupportedError(
            f"np.{name} is recorded, but not with {', '.join(options)}=", where=recording.here()
        )
    if name not in ops.RECORDED:
        return _call_unrecorded(recording, name, inputs, kwargs)
    attrs: dict[str, Any] = {} if dtype is None else {"dtype": as_dtype(dtype)}
    operands = list(inputs)
    if not any(_is_array(thing) for thing in operands):
        operands = [_asarray(thing) for thing in operands]  # np.add(1, 2) is an array operation
    result = record(ops.RECORDED[name], operands, attrs, recording)
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if where is not True:
        if not isinstance(target, TracedArray):
            raise UnsupportedError(
                f"np.{name} with where= leaves elements undefined without out=",
                where=recording.here(),
                instead="np.where(mask, result, other)",
            )
        assert isinstance(result, TracedArray)
        fitted = cast(recording, result.value_, target.dtype)
        result = record(
            ops.get("where"),
            [where, wrap(recording, fitted, result.layout_, result.scalar_), target],
            {},
            recording,
        )
    return _store(recording, out, result)


_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATE = {"add": "cumsum", "multiply": "cumprod"}


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs and their methods."""
    if ACTIVE.get() is None:
        current()  # raises: outside of tracing
    name = ufunc.__name__
    if method == "__call__":
        return call_ufunc(name, inputs, kwargs)
    options = {key: value for key, value in kwargs.items() if value is not None}
    if method == "reduce" and name in _REDUCE:
        options.setdefault("axis", kwargs.get("axis", 0) if "axis" in kwargs else 0)
        if kwargs.get("axis", 0) is None:
            options["axis"] = None
        return call_function(_REDUCE[name], inputs, options)
    if method == "accumulate" and not ops.ndim_of(inputs[0]):
        raise TypeError("cannot accumulate on a scalar")
    if method == "accumulate" and f"{name}.accumulate" in ops.RECORDED:
        return call_function(f"{name}.accumulate", inputs, options)
    if method == "accumulate" and name in _ACCUMULATE:
        options.setdefault("axis", 0)
        return call_function(_ACCUMULATE[name], inputs, options)
    if method == "outer" and not kwargs:
        left, right = (NUMPY.asarray(thing) for thing in inputs)
        spread = left.reshape(left.shape + (1,) * right.ndim)
        return call_ufunc(name, (spread, right), {})
    if method == "at" and name == "add" and len(inputs) == 3:
        return _add_at(*inputs)
    raise UnsupportedError(
        f"np.{name}.{method} is not recorded",
        where=current().here(),
        instead="np.add.at, np.add.reduce or the function that takes axis=",
    )


def _add_at(target: Any, index: Any, values: Any) -> None:
    if not isinstance(target, TracedArray):
        raise UnsupportedError("np.add.at needs a traced target", where=current().here())
    items, operands, _ = read_index(target, index)
    recording = current()
    (new,) = recording.emit(
        ops.get("scatter_add"),
        (target.value_, operand(recording, values), *operands),
        {"index": items},
    )
    target.assign_(new)


def array_function(
    self: Any, function: Any, kinds: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """NumPy's protocol for its other functions."""
    name = NAME_OF.get(id(function))
    if name is None:
        module = function.__module__.removeprefix("numpy").removeprefix(".")
        name = f"{module}.{function.__name__}" if module else function.__name__
    return call_function(name, args, kwargs)


# ---- functions that ask about arrays or make them from anything -----------------------------


def _asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **_: Any) -> Any:
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
        return _astype(made, dtype, order or "K")
    if copy and made is a:
        return made.copied_(order or "K")
    ordered = made.in_order_(order)
    if copy is False and ordered is not a:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return ordered


def _array(
    a: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0, **_: Any
) -> Any:
    made = _asarray(a, dtype, order, copy=copy)
    while made.ndim < ndmin:
        made = made[None]
    return made


def _shape(a: Any) -> Any:
    return _asarray(a).shape if has_traced(a) else np.shape(a)


def _size(a: Any, axis: Any = None) -> Any:
    made = _asarray(a) if has_traced(a) else np.asarray(a)
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


def _astype(
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
    made = _call_op(current(), "astype", (x, dtype), {"casting": casting})
    return made if order == "K" or x.scalar_ else made.copied_(order)


def _astype_function(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    if not isinstance(x, TracedArray):
        raise AttributeError(f"'{x.__class__.__name__}' object has no attribute 'astype'")
    return _astype(x, dtype, copy=copy)


def _pad(array: Any, pad_width: Any, *args: Any, **kwargs: Any) -> Any:
    if ops.ndim_of(array) == 0:
        np.broadcast_to(pad_width, (0, 2))  # raises where there are widths for axes
        return _array(array)
    return _call_op(current(), "pad", (array, pad_width, *args), kwargs)


def _ordered(order: str) -> Callable[..., Any]:
    def function(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
        made = _asarray(a, dtype, order)
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
        return _asarray(a).reshape(shape, order="F")
    return _call_op(current(), "reshape", (a, shape, order), {})


def _ravel(a: Any, order: Any = "C") -> Any:
    """One axis, without gaps: a copy where `reshape` might still be a view."""
    made = _asarray(a)
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
            return _call_op(current(), name, (shape, *before), kwargs)
        sizes = ops.as_shape(shape)
        return _call_op(current(), name, (sizes[::-1], *before), kwargs).transpose()

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


def _copy(x: Any, order: Any = "C") -> Any:
    """The method, whose default is C order."""
    if x.scalar_:
        return record(ops.get("copy"), [x], {})
    return x.copied_(order)


def _conjugate(x: TracedArray, *args: Any, **kwargs: Any) -> Any:
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


_SPECIAL: dict[str, Callable[..., Any]] = {
    "array": _array,
    "printoptions": _refused("printoptions"),
    "set_printoptions": _refused("set_printoptions"),
    "asarray": _asarray,
    "asanyarray": _asarray,
    "ascontiguousarray": _ordered("C"),
    "asfortranarray": _ordered("F"),
    "copy": lambda a, order="K", subok=False: _array(a, order=order),
    "reshape": _reshape,
    "pad": _pad,
    "astype": _astype_function,
    "ravel": _ravel,
    "real": lambda val: val.real if _is_number(val) else _call_op(current(), "real", (val,), {}),
    "imag": lambda val: val.imag if _is_number(val) else _call_op(current(), "imag", (val,), {}),
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


# ---- the namespace ---------------------------------------------------------------------------


class RecordingModule(types.ModuleType):
    """A module of NumPy whose functions are recorded when they are called while tracing."""

    def __init__(self, module: types.ModuleType, prefix: str) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["module_"] = module
        self.__dict__["prefix_"] = prefix

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["module_"], name)
        made = recorded(found, self.__dict__["prefix_"] + name)
        if not isinstance(found, types.ModuleType) or made is not found:
            self.__dict__[name] = made
        return made

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["module_"])


def recorded(thing: Any, name: str) -> Any:
    """What a member of NumPy is while tracing: a function that records, a module of such."""
    if isinstance(thing, types.ModuleType):
        if thing.__name__ in ("numpy.linalg", "numpy.random"):
            return RecordingModule(thing, thing.__name__.removeprefix("numpy.") + ".")
        return thing
    if name == "random.Generator" or isinstance(thing, type) or not callable(thing):
        return thing
    if name.startswith("random.") and name != "random.default_rng":
        return _global_random(name)

    if isinstance(thing, np.ufunc):
        return _RecordingUfunc(thing)

    def function(*args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None:
            return thing(*args, **kwargs)
        return call_function(name, args, kwargs)

    function.__name__ = name.rsplit(".", 1)[-1]
    function.__qualname__ = function.__name__
    function.__wrapped__ = thing  # type: ignore[attr-defined]
    return function


class _RecordingUfunc:
    """A ufunc whose calls are recorded also when no argument is traced."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None:
            return self.ufunc(*args, **kwargs)
        if len(args) > self.ufunc.nin:
            kwargs = {**kwargs, "out": tuple(args[self.ufunc.nin :])}
        return call_ufunc(self.ufunc.__name__, args[: self.ufunc.nin], kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("reduce", "accumulate", "outer", "at", "reduceat"):

            def method(*args: Any, **kwargs: Any) -> Any:
                if ACTIVE.get() is not None:  # NumPy comes back through the protocol
                    args = tuple(
                        _asarray(arg) if isinstance(arg, list | tuple) and has_traced(arg) else arg
                        for arg in args
                    )
                return getattr(self.ufunc, name)(*args, **kwargs)

            return method
        return getattr(self.ufunc, name)

    def __repr__(self) -> str:
        return repr(self.ufunc)


def _global_random(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RandomnessError(
            f"np.{name} draws from a hidden global state, which is not recorded",
            where=current().here(),
            instead="rng = np.random.default_rng(seed) outside, rng.normal(size=...) inside",
        )

    return refuse


NUMPY = RecordingModule(np, "")


def _names() -> dict[int, str]:
    """The dotted name of each NumPy function, by identity."""
    found: dict[int, str] = {}
    for prefix, module in (("linalg.", np.linalg), ("", np)):
        for name, thing in vars(module).items():  # `dir` would load NumPy's lazy submodules
            if callable(thing) and not isinstance(thing, type):
                found.setdefault(id(thing), prefix + name)
    for name in (*ops.RECORDED, *COMPOSITES):
        thing: Any = np
        for part in name.split("."):
            thing = getattr(thing, part, None)
        if thing is not None and not name.startswith("ndarray."):
            found[id(thing)] = name
    return found


NAME_OF = _names()


# ---- methods of arrays -------------------------------------------------------------------------


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
        "astype": _astype,
        "copy": _copy,
        "conj": _conjugate,
        "conjugate": _conjugate,
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


_install()


# ---- random generators -------------------------------------------------------------------------


class TracedGenerator(Traced):
    """A `np.random.Generator` whose draws are recorded, in order."""

    __slots__ = ("value_",)

    def __init__(self, recording: Recording, value: Value) -> None:
        assert value.type is GENERATOR
        self.recording_ = recording
        self.value_ = value

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return np.random.Generator

    def __getattr__(self, name: str) -> Any:
        if not hasattr(np.random.Generator, name):
            raise AttributeError(f"'Generator' object has no attribute '{name}'")
        if name in ops.DRAWS_IN_PLACE:
            return self._in_place(name)
        if name not in ops.DRAWS:
            raise UnsupportedError(
                f"Generator.{name} is not recorded",
                where=self.recording_.here(),
                instead="one of " + ", ".join(sorted(ops.DRAWS)),
            )

        def method(*args: Any, **kwargs: Any) -> Any:
            out = kwargs.pop("out", None)
            if isinstance(out, TracedArray):
                kwargs.setdefault("size", out.shape)
                dtype = np.dtype(kwargs.get("dtype", float))
                if dtype != out.dtype:
                    raise TypeError(f"Supplied output array has the wrong type. Expected {dtype}")
            inputs, attrs = ops.DRAWS[name](self, *args, **kwargs)
            result = record(ops.get("draw"), inputs, attrs, self.recording_)
            return _store(self.recording_, out, result)

        return method

    def _in_place(self, name: str) -> Callable[..., None]:
        """A method that changes its argument: the draw gives the new contents."""

        def method(x: Any, *args: Any, **kwargs: Any) -> None:
            if not isinstance(x, TracedArray):
                raise UnsupportedError(
                    f"Generator.{name} is recorded for arrays only", where=self.recording_.here()
                )
            inputs, attrs = ops.DRAWS_IN_PLACE[name](self, x, *args, **kwargs)
            x[...] = record(ops.get("draw"), inputs, attrs, self.recording_)

        return method


def record_print(
    *args: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = None
) -> None:
    """`print` while tracing: an effect of the program."""
    recording = current()
    attrs: dict[str, Any] = {}
    file = getattr(file, "stream_", file)
    if (sys.stdout, sys.stderr) != recording.streams:
        raise UnsupportedError(
            "print inside of a redirection that was made while tracing is not recorded",
            where=recording.here(),
            instead="contextlib.redirect_stdout around the call of the function",
        )
    if file is not None and file is not sys.stdout:
        if file is not sys.stderr:
            raise UnsupportedError(
                "print(file=...) is recorded for sys.stdout and sys.stderr only",
                where=recording.here(),
            )
        attrs["file"] = "stderr"
    if sep is not None and sep != " ":
        attrs["sep"] = str(sep)
    if end is not None and end != "\n":
        attrs["end"] = str(end)
    parts: list[Any] = []
    values: list[Value] = []
    for arg in args:
        if isinstance(arg, TracedDim):
            values.append(arg.recorded_value_)
        elif has_traced(arg) and not isinstance(arg, list | tuple):
            values.append(operand(recording, arg))
        elif isinstance(arg, np.ndarray | np.generic) or type(arg) in (int, float, complex, bool):
            values.append(recording.constant(arg))
        else:
            parts.append(str(arg))  # a container with a traced value inside raises here
            continue
        parts.append(OPERAND)
    recording.emit(ops.get("print"), values, {"parts": tuple(parts), **attrs})
