"""Parameters: the arrays that a network learns.

A parameter is made without numbers.  `initialize` gives it some, at once if its shape is known;
else the layer that owns it completes the shape at the first call (`Block.infer_shape`).

    shape unknown ──initialize──▶ deferred ──shape──▶ has data
    shape known   ──initialize──────────────────────▶ has data

The array stays the same object until the parameter is cast: `set_data`, `initialize(
force_reinit=True)` and optimisers write into it, so that compiled networks see the new numbers.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from minigraph import autograd
from minigraph.array import GRAD_REQS, Array
from minigraph.compiled import depth_of_user
from minigraph.errors import (
    BlockError,
    DeferredInitializationError,
    ParameterError,
    StateError,
    UninitializedError,
    suggestion,
)
from minigraph.mode import here
from minigraph.trace import ACTIVE, captured, captured_gradient, outside

from .initializers import Constant as FirstValues
from .initializers import initializer_of

VERSIONS = itertools.count(1)
"""The versions of parameters and blocks: each change takes the next."""


class Parameter:
    """An array to be learned, with its gradient and how it is to be updated.

    Attributes:
        name: what it is called within its block.
        init: its own initializer; None: the one that the whole network is initialized with.
        lr_mult, wd_mult: factors on the learning rate and the weight decay of its updates.
        allow_deferred_init: `initialize` may come before the shape is known.
    """

    traced_parameter_ = True

    __slots__ = (
        "__weakref__",
        "_data",
        "_deferred",
        "_dtype",
        "_grad_req",
        "_parents",
        "_shape",
        "_version",
        "allow_deferred_init",
        "init",
        "lr_mult",
        "name",
        "wd_mult",
    )

    def __init__(
        self,
        name: str = "parameter",
        shape: int | Sequence[int | None] | None = None,
        dtype: Any = "float32",
        init: Any = None,
        *,
        grad_req: str = "write",
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        allow_deferred_init: bool = False,
    ) -> None:
        self._version = next(VERSIONS)
        self._parents: dict[int, weakref.ref[Any]] = {}  # by id: the blocks that hold it
        self._data: Array | None = None
        self._deferred: Any = None  # the initializer to use once the shape is known
        self._grad_req = _known_request(grad_req)
        self._shape = None if shape is None else _shape_of(shape)
        self._dtype = np.dtype(dtype)
        self.name = name
        self.init = init
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.allow_deferred_init = allow_deferred_init

    # ---- its array -------------------------------------------------------------------------

    def data(self) -> Array:
        """The array itself, the same object at each call; while tracing what stands for it.

        Raises:
            DeferredInitializationError: its shape is not known yet.
            UninitializedError: it was never initialized.
        """
        data = self._data
        if data is None:
            raise self._without_data()
        return data if ACTIVE.get() is None else captured(data, self)

    def _used_as_array(self, *_: Any, **__: Any) -> Any:
        raise BlockError(
            f"parameter {self.label()} is used as an array",
            where=here(),
            instead="parameter.data()",
        )

    __array__ = __getitem__ = __neg__ = __abs__ = _used_as_array
    __lt__ = __le__ = __gt__ = __ge__ = _used_as_array
    __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = __matmul__ = _used_as_array
    __iter__ = None
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __rmatmul__ = _used_as_array

    def list_data(self) -> list[Array]:
        """`[data()]`: Gluon's form for several devices."""
        return [self.data()]

    def grad(self) -> Array:
        """The gradient of the last `backward()`.

        Raises:
            ParameterError: it has none, by `grad_req="null"`.
        """
        data = self._data
        if data is None:
            raise self._without_data()
        gradient = data.grad
        if gradient is None:
            raise ParameterError(
                f"parameter {self.label()} has no gradient: its grad_req is 'null'",
                where=here(),
                instead='parameter.grad_req = "write"',
            )
        return gradient if ACTIVE.get() is None else captured_gradient(self)

    def list_grad(self) -> list[Array]:
        """`[grad()]`: Gluon's form for several devices."""
        return [self.grad()]

    def zero_grad(self) -> None:
        """Set the gradient to zero."""
        if self._data is not None and self._data.grad is not None:
            self.grad()[...] = 0

    def set_data(self, values: Any) -> None:
        """Write new values into the array; a parameter without data takes their shape.

        Raises:
            ParameterError: the shapes differ.
        """
        if self._data is None:
            refuse_in_trace(f"parameter {self.label()} is given its first values")
            self.shape = np.shape(values)
            self._make(FirstValues(values))
            return
        if np.shape(values) != self._shape:
            raise ParameterError(
                f"parameter {self.label()} has shape {self._shape}, the new values have "
                f"{np.shape(values)}",
                where=here(),
            )
        with autograd.pause():
            self.data()[...] = values

    # ---- from nothing to numbers -----------------------------------------------------------

    def initialize(
        self, init: Any = None, *, default_init: Any = None, force_reinit: bool = False
    ) -> None:
        """Give it its first values, now or as soon as its shape is known.

        Args:
            init: an initializer, or the name of one; it comes before the parameter's own.
            default_init: the one to use where neither is given.
            force_reinit: also if it has values already.

        Raises:
            ParameterError: the shape is not known, and must be.
            StateError: a trace runs, which would draw them once.
        """
        if self._data is not None and not force_reinit:
            warn_initialized([self.label()])
            return
        refuse_in_trace(f"parameter {self.label()} is initialized")
        own = init if init is not None else self.init
        chosen = initializer_of(own if own is not None else default_init)
        if self.is_shape_known:
            self._make(chosen)
        elif self.allow_deferred_init:
            self._deferred = chosen
            self._changed()
        else:
            raise ParameterError(
                f"parameter {self.label()} cannot be initialized: its shape {self._shape} is not "
                "known",
                where=here(),
                instead="say its whole shape, or allow_deferred_init=True",
            )

    @property
    def is_ready(self) -> bool:
        """It has its array."""
        return self._data is not None

    @property
    def is_deferred(self) -> bool:
        """It is to be initialized as soon as its shape is known."""
        return self._data is None and self._deferred is not None

    @property
    def is_shape_known(self) -> bool:
        """No axis is missing."""
        return self._shape is not None and 0 not in self._shape

    def finish(self) -> None:
        """Initialize it now if that was deferred; the shape must be known by now."""
        if self.is_deferred:
            if not self.is_shape_known:
                raise self._without_data()
            self._make(self._deferred)

    def state(self) -> tuple[Any, ...]:
        """What `restore` takes: its array, its shape, and the initializer that is deferred."""
        return self._data, self._shape, self._deferred

    def restore(self, state: tuple[Any, ...]) -> None:
        """Be as it was before a call that failed."""
        self._data, self._shape, self._deferred = state
        self._changed()

    def _make(self, initializer: Callable[[str, Array], Any]) -> None:
        assert self._shape is not None
        made = self._data
        if made is None:
            made = Array(np.zeros(self._shape, self._dtype))
        with outside(), autograd.pause():  # first values are no part of a trace that goes on
            initializer(self.name, made)
        if self._data is None:
            self._attach(made)
        else:
            self.zero_grad()

    def _attach(self, array: Array) -> None:
        if self._grad_req != "null":
            array.attach_grad(self._grad_req)
        self._data = array
        self._deferred = None
        self._changed()

    def _without_data(self) -> Exception:
        if self._deferred is not None:
            return DeferredInitializationError(
                f"parameter {self.label()} has no data yet: its shape {self._shape} is completed "
                "at the first call of the network",
                where=here(),
                instead="call the network on one batch first, or say the size (in_units=...); a "
                "layer of your own completes it in infer_shape(self, x)",
            )
        return UninitializedError(
            f"parameter {self.label()} has not been initialized",
            where=here(),
            instead="net.initialize(), or net.load_parameters(file), before the first call; layers "
            "are made in __init__, and not in forward",
        )

    # ---- what it is ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its extents, 0 where one is not known yet; None if nothing is known."""
        return self._shape

    @shape.setter
    def shape(self, shape: int | Sequence[int | None]) -> None:
        new, old = _shape_of(shape), self._shape
        if old is not None and (
            len(new) != len(old)
            or any(a != b for a, b in zip(new, old, strict=True) if 0 not in (a, b))
            or (self._data is not None and new != old)
        ):
            raise ParameterError(
                f"parameter {self.label()} has shape {old}, which {new} is not", where=here()
            )
        self._shape = new if old is None else tuple(map(max, new, old))

    def takes_shape(self, shape: Sequence[Any]) -> bool:
        """Values of this shape fit."""
        own = self._shape
        return own is None or (
            len(own) == len(shape) and all(a in (0, b) for a, b in zip(own, shape, strict=True))
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    def cast(self, dtype: Any) -> None:
        """Change the dtype: of the values (in a new array), or of those that will come.

        Raises:
            ParameterError: it has a gradient, which numbers of this dtype have not.
        """
        new = np.dtype(dtype)
        if new.kind != "f" and self._grad_req != "null":
            raise ParameterError(
                f"parameter {self.label()} has a gradient, which {new} cannot have",
                where=here(),
                instead='a floating-point dtype; or parameter.grad_req = "null" first',
            )
        self._dtype = new
        if self._data is not None:
            self._attach(Array(self._data.data_.astype(self._dtype)))

    @property
    def grad_req(self) -> str:
        """What becomes of a new gradient: "write", "add" or "null"."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, request: str) -> None:
        if _known_request(request) == self._grad_req:
            return
        self._grad_req = request
        if self._data is not None:
            self._attach(self._data if request != "null" else Array(self._data.data_))

    def label(self) -> str:
        """Its name as seen from the outermost block that holds it: "hidden.weight"."""
        names: list[str] = []
        part: Any = self
        above = _holder(self)
        done: set[int] = set()
        while above is not None and id(above) not in done:
            done.add(id(above))
            names.append(above._name_of(part))
            part, above = above, _holder(above)
        return ".".join(reversed(names)) or self.name

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name in ("lr_mult", "wd_mult"):  # compiled into training steps
            self._changed()

    def _changed(self) -> None:
        self._version = next(VERSIONS)
        for reference in self._parents.values():
            parent = reference()
            if parent is not None:
                parent._changed()

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.label()} (shape={self._shape}, dtype={self._dtype})"

    def __getstate__(self) -> dict[str, Any]:
        left = ("__weakref__", "_parents", "_version")
        return {name: getattr(self, name) for name in Parameter.__slots__ if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._parents = {}
        self._version = next(VERSIONS)
        for name, value in state.items():
            setattr(self, name, value)


class Constant(Parameter):
    """A parameter that is not learned: its values are given, and it has no gradient."""

    __slots__ = ()

    def __init__(self, value: Any, name: str = "constant") -> None:
        given = np.asarray(value)
        super().__init__(
            name,
            given.shape,
            given.dtype,
            init=FirstValues(given),
            grad_req="null",
        )


def refuse_in_trace(fact: str) -> None:
    """What a program would not do again is done outside.

    Raises:
        StateError: a trace runs.
    """
    active = ACTIVE.get()
    if active is not None and active.reach is not None:
        raise StateError(
            f"{fact} while tracing, which happens once, not at each call of what is compiled",
            where=here(),
            instead="do it outside of the compiled function, before its first call",
        )


def warn_initialized(names: Iterable[str]) -> None:
    """One warning for parameters that had been initialized before."""
    listed = ", ".join(names)
    warnings.warn(
        f"already initialized, and left as they are: {listed}; force_reinit=True initializes them "
        "again",
        stacklevel=depth_of_user(),
    )


def _holder(member: Any) -> Any:
    """The block that was the first to take this block or parameter and still holds it."""
    parents = [reference() for reference in member._parents.values()]
    return next((p for p in parents if p is not None and p._name_of(member)), None)


def _known_request(request: str) -> str:
    if request not in GRAD_REQS:
        raise ParameterError(
            f"there is no grad_req {request!r}",
            where=here(),
            instead=suggestion(request, GRAD_REQS),
        )
    return request


def _shape_of(shape: Any) -> tuple[int, ...]:
    """A shape with 0 for each axis that is not known (given as 0, -1 or None)."""
    try:
        axes: tuple[Any, ...] = tuple(shape) if np.ndim(shape) else (shape,)
        sizes = tuple(0 if axis is None or axis == -1 else index(axis) for axis in axes)
    except TypeError:
        sizes = (-1,)
    if any(size < 0 for size in sizes):
        raise ParameterError(
            f"{shape!r} is not the shape of a parameter",
            where=here(),
            instead="whole numbers; 0 or None for an axis that the first call completes",
        )
    return sizes
