"""The eager array: NumPy's, whose operations can be recorded.

`mg.Array` holds an `ndarray` and answers NumPy's protocols, operators, methods and attributes.
Its results are arrays of the same class, also where NumPy gives a scalar.  While the mode has a
tape, operations on arrays that carry a gradient go through the tape, all others straight to NumPy.
"""

from __future__ import annotations

import copy
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from minigraph.errors import DtypeError, RecordError, unknown, unrecorded
from minigraph.memory import wrote
from minigraph.mode import MODE, here
from minigraph.trace import ACTIVE, NUMPY, has_traced

UNRECORDED: Any = object()  # what a tape answers when no operand carries a gradient
GRAD_REQS = ("write", "add", "null")


class Attached:
    """What an array with a gradient attached carries.

    Attributes:
        grad: the gradient's array; req: "write", "add" or "null".
        fresh: `backward` has stored a gradient since an optimiser last used it.
    """

    __slots__ = ("fresh", "grad", "req")

    def __init__(self, grad: Array | None, req: str) -> None:
        self.grad = grad
        self.req = req
        self.fresh = False


if TYPE_CHECKING:
    from typing import Any as Base  # methods and operators are installed by table
else:
    Base = object


class Array(Base):
    """An array of numbers whose operations can be recorded and differentiated.

    Attributes:
        data_: the ndarray.
        tracked_: `Attached` if a gradient is attached, what a tape knows of it if it was recorded,
            else None.
    """

    __slots__ = ("__weakref__", "data_", "tracked_")
    __hash__ = None  # type: ignore[assignment]  # none, as an ndarray's: == is by element

    eager_array_ = True  # how lower layers tell it
    data_: np.ndarray[Any, Any]
    tracked_: Any

    def __init__(self, data: Any) -> None:
        self.data_ = data.data_ if type(data) is Array else np.asarray(data)
        self.tracked_ = None

    # ---- NumPy's protocols -----------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is not None and has_traced([*inputs, *kwargs.values()]):
            return NotImplemented
        if method == "__call__":
            return _call(ufunc, inputs, kwargs)
        function = getattr(ufunc, method)
        return (_write if method == "at" else _call)(function, inputs, kwargs)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if ACTIVE.get() is not None and has_traced([*args, *kwargs.values()]):
            return NotImplemented
        if function in _WRITERS or (function is np.nan_to_num and not _copies(*args, **kwargs)):
            return _write(function, args, kwargs)
        if len(args) > 2:
            args, kwargs = _with_named_out(function.__name__, args, kwargs)
        return _call(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._check_leaving()
        if copy or (dtype is not None and np.dtype(dtype) != self.data_.dtype):
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return np.array(self.data_, dtype)
        view = self.data_.view()
        view.flags.writeable = False
        return view

    def __dlpack__(self, **options: Any) -> Any:
        """The memory for another library, such as `torch.from_dlpack(x)`."""
        self._check_leaving()
        return self.data_.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data_.__dlpack_device__()

    def _check_leaving(self) -> None:
        """What becomes an array of another kind is recorded nowhere.

        Raises:
            RecordError: it ought to be.
        """
        if MODE.get().tape is not None and self.tracked_ is not None:
            raise RecordError(
                "a recorded array is turned into an ndarray, which carries no gradient",
                where=here(),
                instead="np.stack and other NumPy functions of the array itself, or x.asnumpy()",
            )

    # ---- Python's protocols ----------------------------------------------------------------

    def __getitem__(self, index: Any) -> Array:
        tape = MODE.get().tape
        if tape is not None:
            made = tape.operate(operator.getitem, (self, index), {})
            if made is not UNRECORDED:
                return made
        if type(index) not in _PLAIN_INDEX:
            if ACTIVE.get() is not None and has_traced(index):
                return NUMPY.asarray(self)[index]
            index = unwrap(index)
        made = self.data_[index]
        return wrap(made if type(made) is np.ndarray else np.asarray(made))

    def __setitem__(self, index: Any, value: Any) -> None:
        tape = MODE.get().tape
        if tape is not None and tape.write(self, index, value):
            return
        index = unwrap(index)
        wrote(self.data_, index)
        self.data_[index] = unwrap(value)

    def fill(self, value: Any) -> None:
        """Store a number into all elements."""
        self[...] = value

    def __len__(self) -> int:
        return len(self.data_)

    def __iter__(self) -> Iterator[Array]:
        if not self.data_.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[index] for index in range(len(self.data_)))

    def __contains__(self, item: Any) -> bool:
        return unwrap(item) in self.data_

    def __bool__(self) -> bool:
        return bool(self.data_)

    def __int__(self) -> int:
        return int(self.data_)

    def __float__(self) -> float:
        return float(self.data_)

    def __complex__(self) -> complex:
        return complex(self.data_)

    def __index__(self) -> int:
        return operator.index(self.data_)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item()) if digits is None else self.round(digits)

    def __format__(self, spec: str) -> str:
        return format(self.data_, spec)

    def __str__(self) -> str:
        return str(self.data_)

    def __repr__(self) -> str:
        return repr(self.data_)

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        """A copy of the array; a gradient attached to it is attached to the copy, too."""
        made = self.copy()
        memo[id(self)] = made
        if type(self.tracked_) is Attached:
            made.attach_to_(copy.deepcopy(self.tracked_.grad, memo), self.tracked_.req)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        leaf = self.tracked_ if type(self.tracked_) is Attached else None
        return _rebuild, (self.data_, *((leaf.req, leaf.grad) if leaf else ()))

    # ---- numbers ---------------------------------------------------------------------------

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """A copy as an ndarray."""
        return self.data_.copy()

    def detach(self) -> Array:
        """The same memory as an array that carries no gradient."""
        return wrap(self.data_)

    # ---- gradients -------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write") -> None:
        """Give the array a gradient of its own, zeros at first; `backward` stores into it.

        Args:
            grad_req: "write" replaces it at each `backward`, "add" adds to it, "null": none.

        Raises:
            DtypeError: the array holds no floats.
        """
        self.attach_to_(None, grad_req)

    def attach_to_(self, grad: Array | None, req: str) -> None:
        """Attach a gradient that lies in a given array (None: a new one)."""
        if req not in GRAD_REQS:
            raise unknown("grad_req", req, GRAD_REQS)
        if self.data_.dtype.kind != "f":
            raise DtypeError(
                f"gradients are of floating-point arrays, and this one holds {self.data_.dtype}",
                where=here(),
                instead="x.astype(np.float32) first",
            )
        if grad is None and req != "null":
            grad = wrap(np.zeros_like(self.data_))
        self.tracked_ = Attached(grad, req)

    @property
    def grad(self) -> Any:
        """The attached gradient (None: there is none)."""
        return self.tracked_.grad if type(self.tracked_) is Attached else None

    @property
    def grad_req(self) -> str | None:
        """How `backward` stores the gradient (None: none is attached)."""
        return self.tracked_.req if type(self.tracked_) is Attached else None

    @property
    def fresh_grad(self) -> bool:
        """`backward` has stored a gradient since this was last set to False."""
        return type(self.tracked_) is Attached and self.tracked_.fresh

    @fresh_grad.setter
    def fresh_grad(self, fresh: bool) -> None:
        if type(self.tracked_) is Attached:
            self.tracked_.fresh = fresh

    def backward(self, head_gradient: Any = None, retain_graph: bool = False) -> None:
        """Compute the gradients of this array by all recorded arrays with a gradient attached.

        Args:
            head_gradient: the gradient by this array (None: ones, the gradient of its sum).
            retain_graph: keep what was recorded, for a further `backward`.

        Raises:
            RecordError: the array was not recorded, or its tape is freed.
        """
        tracked = self.tracked_
        if tracked is None or type(tracked) is Attached:
            raise unrecorded(here())
        tracked.backward([self], [head_gradient], retain_graph)


def is_tracked(thing: Any) -> bool:
    """An eager array that has a gradient attached or lies on a tape."""
    return type(thing) is Array and thing.tracked_ is not None


_new = object.__new__


def wrap(data: np.ndarray[Any, Any]) -> Array:
    """An array around an ndarray, without copying."""
    made = _new(Array)
    made.data_ = data
    made.tracked_ = None
    return made


def wrap_all(result: Any) -> Any:
    """What a function of NumPy returned, with arrays in place of ndarrays and NumPy scalars."""
    kind = type(result)
    if kind is np.ndarray:
        return wrap(result)
    if isinstance(result, np.ndarray | np.generic):
        return wrap(np.asarray(result))
    if kind is list:
        return [wrap_all(item) for item in result]
    if isinstance(result, tuple):
        items = [wrap_all(item) for item in result]
        return tuple(items) if kind is tuple else kind(*items)
    return result


def unwrap(thing: Any) -> Any:
    """An argument with ndarrays in place of arrays."""
    kind = type(thing)
    if kind in _NUMBERS:
        return thing
    if kind is Array:
        return thing.data_
    if kind is tuple or kind is list:
        return kind([unwrap(item) for item in thing])
    if kind is slice and (thing.start is not None or thing.stop is not None):
        return slice(unwrap(thing.start), unwrap(thing.stop), unwrap(thing.step))
    return thing


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy on arrays."""
    tape = MODE.get().tape
    if tape is not None:
        made = tape.operate(function, args, kwargs)
        if made is not UNRECORDED:
            return made
    if kwargs:
        return _call_named(function, args, kwargs)
    result = function(*[arg.data_ if type(arg) is Array else unwrap(arg) for arg in args])
    return wrap(result) if type(result) is np.ndarray else wrap_all(result)


def _call_named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same with arguments by name, `out=` among them."""
    out = kwargs.get("out")
    if out is None:
        return wrap_all(function(*map(unwrap, args), **unwrap_named(kwargs)))
    targets = out if isinstance(out, tuple) else (out,)
    for target in targets:
        wrote_into(target)
    result = function(*map(unwrap, args), **unwrap_named(kwargs))
    if isinstance(result, tuple):
        pairs = zip(targets, result, strict=False)
        return tuple(wrap_all(new) if old is None else old for old, new in pairs)
    return targets[0]


def _write(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy that writes into its first argument."""
    tape = MODE.get().tape
    if tape is not None and tape.overwrite(function, args, kwargs):
        return None
    target = args[0] if args else next(iter(kwargs.values()))
    wrote_into(target)
    result = function(*map(unwrap, args), **unwrap_named(kwargs))
    return target if result is not None else None


def _copies(x: Any, copy: Any = True, *args: Any, **kwargs: Any) -> bool:
    """What `np.nan_to_num` is told."""
    return bool(copy)


@functools.cache
def _place_of_out(name: str) -> int | None:
    """Where a function of NumPy, or the method of that name, takes `out=` by position."""
    try:
        parameters = inspect.signature(getattr(np, name)).parameters
    except (AttributeError, TypeError, ValueError):
        return None
    out = parameters.get("out")
    if out is None or out.kind is out.KEYWORD_ONLY:
        return None
    return list(parameters).index("out")


def _with_named_out(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with `out=` by name."""
    place = _place_of_out(name)
    if place is None or place >= len(args) or args[place] is None:
        return args, kwargs
    if len(args) > place + 1:  # what follows keeps its place
        return (*args[:place], None, *args[place + 1 :]), {**kwargs, "out": args[place]}
    return args[:place], {**kwargs, "out": args[place]}


def wrote_into(target: Any) -> None:
    """Take note that an array's memory changes."""
    if type(target) is Array:
        wrote(target.data_)


# ---------------------------------------------------------------------------- by table

_PLAIN_INDEX = frozenset((int, type(None), type(Ellipsis), np.ndarray))
_WRITERS = frozenset((np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask))

_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = ("neg", "pos", "abs", "invert")
_NUMBERS = frozenset((int, float, bool, complex))


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Array, Any], Any]:
    """`self op other`."""

    def method(self: Array, other: Any) -> Any:
        tape = MODE.get().tape
        if tape is not None:
            made = tape.operate(function, (self, other), {})
            if made is not UNRECORDED:
                return made
        if type(other) is Array:
            made = function(self.data_, other.data_)
        elif type(other) in _NUMBERS or ACTIVE.get() is None:
            made = function(self.data_, unwrap(other))
        elif has_traced(other):
            return function(NUMPY.asarray(self), other)
        else:
            made = function(self.data_, unwrap(other))
        return wrap(made) if type(made) is np.ndarray else wrap_all(made)

    return method


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Array, Any], Any]:
    """`other op self`, where `other` is no array."""

    def method(self: Array, other: Any) -> Any:
        tape = MODE.get().tape
        if tape is not None:
            made = tape.operate(function, (other, self), {})
            if made is not UNRECORDED:
                return made
        if ACTIVE.get() is not None and has_traced(other):
            return function(other, NUMPY.asarray(self))
        result = function(unwrap(other), self.data_)
        return wrap(result) if type(result) is np.ndarray else wrap_all(result)

    return method


def _in_place(function: Callable[[Any, Any], Any], plain: Any) -> Callable[[Array, Any], Any]:
    """`self op= other`: the memory is written."""

    def method(self: Array, other: Any) -> Array:
        tape = MODE.get().tape
        if tape is not None:
            made = tape.operate(plain, (self, other), {})
            if made is not UNRECORDED and _fits(made, self):
                self[...] = made
                return self
        wrote(self.data_)
        function(self.data_, other.data_ if type(other) is Array else unwrap(other))
        return self

    return method


def _fits(made: Array, target: Array) -> bool:
    """Whether NumPy stores this result in place."""
    return made.shape == target.shape and np.can_cast(made.dtype, target.dtype, "same_kind")


def _unary(function: Callable[[Any], Any]) -> Callable[[Array], Any]:
    def method(self: Array) -> Any:
        if MODE.get().tape is not None:
            return _call(function, (self,), {})
        return wrap_all(function(self.data_))

    return method


def _method(name: str) -> Callable[..., Any]:
    """A method of ndarrays."""
    function = getattr(np.ndarray, name)

    def on_any(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, name)(*args, **kwargs)

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1:
            (_, *rest), kwargs = _with_named_out(name, (self, *args), kwargs)
            args = tuple(rest)
        tape = MODE.get().tape
        if tape is not None:
            made = tape.operate(on_any, (self, *args), kwargs)
            if made is not UNRECORDED:
                return made
        if ACTIVE.get() is not None and has_traced([*args, *kwargs.values()]):
            return on_any(NUMPY.asarray(self), *args, **kwargs)
        if kwargs:
            return _call_named(function, (self, *args), kwargs)
        result = function(self.data_, *map(unwrap, args)) if args else function(self.data_)
        return wrap(result) if type(result) is np.ndarray else wrap_all(result)

    method.__name__ = name
    method.__doc__ = function.__doc__
    return method


def _plain_method(name: str) -> Callable[..., Any]:
    """A method of ndarrays whose result is no array, or which writes into this one."""
    function = getattr(np.ndarray, name)

    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        if name in _METHODS_THAT_WRITE:
            tape = MODE.get().tape
            if tape is not None:
                tape.overwrite(function, (self, *args), kwargs)  # raises if it would be recorded
            wrote_into(self)
        return function(self.data_, *unwrap(args), **unwrap_named(kwargs))

    method.__name__ = name
    method.__doc__ = function.__doc__
    return method


def unwrap_named(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name with ndarrays in place of arrays."""
    return {name: unwrap(value) for name, value in kwargs.items()}


def _attribute(name: str) -> property:
    """An attribute of ndarrays that is a view."""
    read = operator.attrgetter(name)

    def get(self: Array) -> Any:
        return _call(read, (self,), {})

    def assign(self: Array, value: Any) -> None:
        if MODE.get().tape is not None and (is_tracked(self) or is_tracked(value)):
            raise RecordError(
                f"writing to .{name} of a recorded array is not recorded",
                where=here(),
                instead=f"make the array anew, or x.detach().{name} = ...",
            )
        wrote_into(self)
        setattr(self.data_, name, unwrap(value))

    return property(get, assign)


def _elements() -> property:
    """The attribute `flat`; read-only where a gradient is at stake."""

    def get(self: Array) -> Any:
        if MODE.get().tape is not None and self.tracked_ is not None:
            raise RecordError(
                "what is read from .flat is not recorded",
                where=here(),
                instead="x.reshape(-1), and x[index] = value",
            )
        data = self.data_.view()
        data.flags.writeable = data.flags.writeable and self.tracked_ is None
        return data.flat

    return property(get, _attribute("flat").fset)


def _plain_attribute(name: str) -> property:
    """An attribute of ndarrays that is no array."""

    def assign(self: Array, value: Any) -> None:
        if self.tracked_ is not None:
            raise RecordError(
                f"the {name} of an array that carries a gradient cannot be set",
                where=here(),
                instead="x = x.reshape(...) or x.astype(...), which make another array",
            )
        setattr(self.data_, name, value)

    return property(lambda self: getattr(self.data_, name), assign)


_METHODS_THAT_WRITE = frozenset(("partition", "put", "resize", "setfield", "sort"))
_PLAIN_METHODS = frozenset(
    ("dump", "dumps", "item", "setflags", "tobytes", "tofile", "tolist", *_METHODS_THAT_WRITE)
)
_VIEWS = frozenset(("T", "mT", "real", "imag"))


def _install() -> None:
    for name in _BINARY:
        function = getattr(operator, f"__{name}__")
        setattr(Array, f"__{name}__", _binary(function))
        setattr(Array, f"__r{name}__", _reflected(function))
        in_place = _in_place(getattr(operator, f"__i{name}__"), function)
        setattr(Array, f"__i{name}__", in_place)
    for name in _COMPARE:
        setattr(Array, f"__{name}__", _binary(getattr(operator, f"__{name}__")))
    for name in _UNARY:
        setattr(Array, f"__{name}__", _unary(getattr(operator, f"__{name}__")))
    others = {
        "__divmod__": _binary(divmod),
        "__rdivmod__": _reflected(divmod),
        "flat": _elements(),
    }
    for name, member in others.items():
        setattr(Array, name, member)
    for name in dir(np.ndarray):
        if name.startswith("_") or name in Array.__dict__:
            continue
        if not callable(getattr(np.ndarray, name)):
            make: Any = _attribute if name in _VIEWS else _plain_attribute
        else:
            make = _plain_method if name in _PLAIN_METHODS else _method
        setattr(Array, name, make(name))


_install()


def _rebuild(data: np.ndarray[Any, Any], req: str = "", grad: Array | None = None) -> Array:
    """The array that was pickled."""
    made = wrap(data)
    if req:
        made.attach_to_(grad, req)
    return made


def array(obj: Any, dtype: Any = None) -> Array:
    """A new array of anything that `np.array` takes, with NumPy's dtypes."""
    if ACTIVE.get() is not None and has_traced(obj):
        return NUMPY.array(obj, dtype)
    tape = MODE.get().tape
    if tape is not None:
        made = tape.operate(NUMPY.array, (obj, dtype), {})
        if made is not UNRECORDED:
            return made
    return wrap(np.array(unwrap(obj), dtype))
