"""Every way of calling NumPy ends here, in `call_function`.

The ways are the recording namespace (`np.ones(3)`, where no argument is traced), NumPy's protocols
`__array_function__` and `__array_ufunc__` (from code that holds the real functions), and the
methods of traced arrays.
"""

from __future__ import annotations

import functools
import inspect
import operator
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
from minigraph.ir import ArrayType, Op, ScalarType, Value, as_dtype

from .arrays import TracedArray, record, stack_nested, wrap
from .called import CALLED, MARK
from .composites import COMPOSITES, nearest
from .indices import read_index
from .operands import Traced, cast, has_traced, native_dtype, operand
from .recording import ACTIVE, Recording, current
from .scalars import TracedDim
from .selection import TracedSelection
from .views import Layout

SPECIAL: dict[str, Callable[..., Any]] = {}
"""Functions that are neither an op nor a composite, by dotted name; `special.py` fills it."""


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
    if name in SPECIAL:
        result = SPECIAL[name](*args, **options)
    elif name in ops.RECORDED and ops.RECORDED[name].bind is None:
        result = call_ufunc(_ufunc_of(name), args, options)
    elif name in ops.RECORDED:
        result = call_op(recording, name, args, options)
    elif name in COMPOSITES:
        result = COMPOSITES[name](NUMPY, *args, **options)
    else:
        result = _call_unrecorded(recording, name, args, kwargs)
        out = None
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if isinstance(out, TracedArray) and isinstance(result, TracedArray):
        _check_out(recording, name, out, result)
    return store_out(recording, out, result)


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


def store_out(recording: Recording, out: Any, result: Any) -> Any:
    """Write a result into `out=`, as NumPy does."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return result
    if isinstance(out, tuple):
        memories = [target.storage_ for target in out if isinstance(target, TracedArray)]
        if len(set(map(id, memories))) < len(memories):
            raise UnsupportedError(
                "two results cannot be stored into one memory", where=recording.here()
            )
        return tuple(
            value if target is None else store_out(recording, target, value)
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


def call_op(recording: Recording, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record a function that is one op.

    Raises:
        UnsupportedError: not with these arguments.
    """
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
    if op.name == "einsum" and len(inputs) == 1 and isinstance(inputs[0], TracedArray):
        for array in (inputs[0], result):  # a permutation is a view in NumPy, a sum is not
            array.storage_.doubt = "np.einsum of one operand may be a view of it"
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
    recording: Recording,
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    function: Any = None,
) -> Any:
    """A function without an op (NumPy's if not given): possible on values known while tracing."""
    leaves = [*args, *kwargs.values()]
    if all(_is_known(recording, leaf) for leaf in leaves):
        function = function or operator.attrgetter(name)(np)
        concrete = [_concrete(recording, leaf, name) for leaf in args]
        return function(*concrete, **{k: _concrete(recording, v, name) for k, v in kwargs.items()})
    near = nearest(name) if function is None else None
    raise UnsupportedError(
        f"np.{name} is not recorded" if function is None else f"{name} is no function of NumPy",
        where=recording.here(),
        instead=f"np.{near}" if near else "compute it outside of the traced function",
    )


def _is_known(recording: Recording, leaf: Any) -> bool:
    if isinstance(leaf, Traced):
        return recording.is_known(operand(recording, leaf))
    if isinstance(leaf, TracedDim):
        return False
    if isinstance(leaf, list | tuple):
        return all(_is_known(recording, item) for item in leaf)
    return True


def _concrete(recording: Recording, leaf: Any, name: str) -> Any:
    if isinstance(leaf, Traced):
        return recording.force(operand(recording, leaf), f"np.{name} is not recorded")
    if isinstance(leaf, list | tuple) and has_traced(leaf):
        return type(leaf)(_concrete(recording, item, name) for item in leaf)
    return leaf


def _is_array(thing: Any) -> bool:
    kinds = (np.ndarray, np.generic, list, tuple, TracedArray, TracedSelection)
    return isinstance(thing, kinds) or hasattr(type(thing), "eager_array_")


_IGNORED = (("casting", "same_kind"), ("order", "K"), ("subok", True), ("signature", None))


def call_ufunc(
    name: str, inputs: Sequence[Any], kwargs: Mapping[str, Any], op: Op | None = None
) -> Any:
    """Record a ufunc call, as `op` if NumPy has none of that name.

    `where=` keeps the old contents of `out=` elsewhere.
    """
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
    op = op or ops.RECORDED.get(name)
    if op is None:
        return _call_unrecorded(recording, name, inputs, kwargs)
    attrs: dict[str, Any] = {} if dtype is None else {"dtype": as_dtype(dtype)}
    operands = list(inputs)
    if not any(_is_array(thing) for thing in operands):
        operands = [
            NUMPY.asarray(thing) for thing in operands
        ]  # np.add(1, 2) is an array operation
    result = record(op, operands, attrs, recording)
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
    return store_out(recording, out, result)


_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATE = {"add": "cumsum", "multiply": "cumprod"}


def _is_numpys(ufunc: np.ufunc) -> bool:
    """Whether it is NumPy's own, such as the `clip` that the function np.clip calls."""
    known = getattr(np, ufunc.__name__, None)
    return known is ufunc or (known is not None and not isinstance(known, np.ufunc))


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs and their methods."""
    if ACTIVE.get() is None:
        current()  # raises: outside of tracing
    name = ufunc.__name__
    special = ops.special_op(ufunc)
    if special is None and not _is_numpys(ufunc):
        return _call_unrecorded(current(), name, inputs, kwargs, getattr(ufunc, method))
    if method == "__call__":
        return call_ufunc(name, inputs, kwargs, special)
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


class RecordingModule(types.ModuleType):
    """A module of NumPy whose functions are recorded when they are called while tracing."""

    def __init__(self, module: types.ModuleType, prefix: str) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["module_"] = module
        self.__dict__["prefix_"] = prefix

    def __getattr__(self, name: str) -> Any:
        if name.endswith(MARK):
            return CALLED[id(getattr(self.__dict__["module_"], name.removesuffix(MARK)))]
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
    return functools.update_wrapper(function, thing, assigned=(), updated=())


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
                    args = tuple(map(_as_one, args))
                return getattr(self.ufunc, name)(*args, **kwargs)

            return method
        return getattr(self.ufunc, name)

    def __repr__(self) -> str:
        return repr(self.ufunc)


def _as_one(arg: Any) -> Any:
    """A list with traced values inside as one array."""
    return NUMPY.asarray(arg) if isinstance(arg, list | tuple) and has_traced(arg) else arg


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
