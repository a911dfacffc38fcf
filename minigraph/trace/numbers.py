"""Python's functions on numbers in traced code: `min`, `int`, `any` and the like, and `math`.

Of numbers that are not described these are Python's own.  Otherwise they record ops; an array
without axes counts as the number that it holds, as it does eagerly.
"""

from __future__ import annotations

import builtins
import math
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import ConcreteValueError, UnsupportedError
from minigraph.ir import (
    BOOL,
    SCALARS,
    ArrayType,
    ScalarType,
    Type,
    Value,
    as_dtype,
    decide_at_least,
    walk,
)

from .arrays import TracedArray, wrap
from .called import CALLED, FUNCTIONS
from .holders import Holder, reachable
from .loops import condition
from .operands import cast, operand
from .recording import ACTIVE, Recording, current
from .scalars import TracedDim, TracedScalar, dim_of
from .views import Layout

_MISSING: Any = object()
_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128"
).split()


def is_traced(thing: Any) -> bool:
    """A number or an array that is being described."""
    return isinstance(thing, TracedScalar | TracedDim | TracedArray)


def _tracing(*things: Any) -> bool:
    return ACTIVE.get() is not None and any(map(is_traced, things))


def as_number(thing: Any) -> Any:
    """What a function on Python's numbers makes of an operand: an array gives its one element.

    Raises:
        TypeError: it has axes.
    """
    if isinstance(thing, TracedArray):
        if thing.ndim:
            float(np.empty(tuple(2 for _ in thing.shape)))  # raises as NumPy does
        return thing.number_()
    if isinstance(thing, TracedDim):
        return TracedScalar(current(), thing.recorded_value_)
    return thing.item() if isinstance(thing, np.ndarray | np.generic) else thing


def record_number(name: str, *things: Any, **attrs: Any) -> Any:
    """Record an op on Python's numbers."""
    recording = current()
    values = [operand(recording, as_number(thing)) for thing in things]
    found = [TracedScalar(recording, v) for v in recording.emit(ops.get(name), values, attrs)]
    return found[0] if len(found) == 1 else tuple(found)


# ---- classes that are called --------------------------------------------------------------------


def _conversion(kind: type) -> Callable[..., Any]:
    """`int(x)` and `float(x)`."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != 1 or not _tracing(*args):
            return kind(*args, **kwargs)
        number = args[0] if isinstance(args[0], TracedDim) and kind is int else as_number(args[0])
        if number.__class__ is kind:
            return number
        if number.__class__ is complex:
            kind("1j")  # raises, as Python does of a complex number
        return record_number(f"to_{kind.__name__}", number)

    return function


def _truth(*args: Any) -> Any:
    """`bool(x)`."""
    if len(args) != 1 or not _tracing(*args):
        return bool(*args)
    recording = current()
    found = condition(recording, args[0])
    return found if isinstance(found, bool) else as_bool(recording, found)


def as_bool(recording: Recording, value: Value) -> TracedScalar:
    """A condition as Python's bool."""
    if value.type is not BOOL:
        (value,) = recording.emit(ops.get("item"), (value,), {})
    return TracedScalar(recording, value)


def _numpy_class(kind: Any) -> Callable[..., Any]:
    """`np.float32(x)` and its like: a NumPy scalar, or the array in another dtype."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != 1 or not _tracing(*args):
            return kind(*args, **kwargs)
        (thing,) = args
        if isinstance(thing, TracedArray) and thing.ndim:
            return thing.astype(kind)  # type: ignore[attr-defined]
        recording = current()
        value = cast(recording, operand(recording, thing), as_dtype(kind))
        return wrap(recording, value, Layout((), True), True)

    return function


CALLED.update({id(bool): _truth, id(int): _conversion(int), id(float): _conversion(float)})
CALLED.update((id(np.dtype(n).type), _numpy_class(np.dtype(n).type)) for n in _DTYPES)


# ---- choices ------------------------------------------------------------------------------------


def _type_of(thing: Any) -> Type | None:
    """The type by which it is told whether two things are of one type."""
    if isinstance(thing, TracedArray):
        return thing.type_
    if isinstance(thing, np.generic):
        return ArrayType(thing.dtype, ())
    return SCALARS.get(thing.__class__)


def choose(test: Any, first: Any, second: Any, what: str) -> Any:
    """One of two numbers, or NumPy scalars, of the same type.

    Raises:
        ConcreteValueError: they have different types, and which one it is is not known.
    """
    recording = current()
    holds = condition(recording, test)
    if isinstance(holds, bool):
        return first if holds else second
    kind = _type_of(first)
    if kind is None or kind != _type_of(second) or (isinstance(kind, ArrayType) and kind.ndim):
        if recording.is_known(holds):
            return first if recording.force(holds, what) else second
        raise ConcreteValueError(
            f"{what} gives one of two things of different types, and which one is not known",
            where=recording.here(),
            instead="numbers of one type, e.g. max(0.0, x) of a float x",
        )
    values = (holds, operand(recording, first), operand(recording, second))
    if isinstance(kind, ScalarType):
        return TracedScalar(recording, recording.emit(ops.get("select"), values, {})[0])
    (value,) = recording.emit(ops.get("where"), values, {})
    arrays = [x for x in (first, second) if isinstance(x, TracedArray) and not x.scalar_]
    made = wrap(recording, value, Layout((), True), not arrays)
    for array in (made, *arrays) if arrays else ():
        array.storage_.doubt = f"{what} gave one of two arrays, and which one is not known"
    return made


def _extreme(name: str, op: str) -> Callable[..., Any]:
    real: Any = getattr(builtins, name)

    def function(*args: Any, key: Any = None, default: Any = _MISSING) -> Any:
        given = {} if default is _MISSING else {"default": default}
        if ACTIVE.get() is None or (len(args) > 1 and given):
            return real(*args, key=key, **given)
        items = list(args[0] if len(args) == 1 else args)
        if not items or (key is None and not _tracing(*items)):
            return real(items, **given)
        keys = items if key is None else [key(item) for item in items]
        best, rank = items[0], keys[0]
        for item, other in zip(items[1:], keys[1:], strict=True):
            if key is None and (first := _decided(best, item)) is not None:
                best = rank = best if first == (name == "min") else item
                continue
            if key is None and _are_numbers(best, item):
                best = rank = record_number(op, best, item)
                continue
            better = other < rank if name == "min" else other > rank
            best = choose(better, item, best, f"{name}()")
            rank = best if key is None else choose(better, other, rank, f"{name}()")
        return best

    function.__name__ = function.__qualname__ = name
    return function


def _decided(a: Any, b: Any) -> bool | None:
    """Whether the first of two sizes is the smaller one, or they are equal; None: not known."""
    first, second = dim_of(a), dim_of(b)
    if first is None or second is None or not (type(a) is TracedDim or type(b) is TracedDim):
        return None
    if ops.decided(decide_at_least, second, first):
        return True
    return False if ops.decided(decide_at_least, first, second) else None


def _are_numbers(a: Any, b: Any) -> bool:
    """Two Python numbers of one type, one of them described."""
    kind = _type_of(a)
    return isinstance(kind, ScalarType) and kind == _type_of(b) and _tracing(a, b)


def _quantifier(name: str, op: str, decisive: bool) -> Callable[..., Any]:
    """`any` and `all`: `decisive` is the truth value that ends them."""
    real: Any = getattr(builtins, name)

    def function(items: Iterable[Any], /) -> Any:
        recording = ACTIVE.get()
        if recording is None:
            return real(items)
        values: list[Value] = []
        start = 0
        held: list[tuple[Holder, dict[Any, Any]]] = []
        for item in items:
            if values:
                _check_pure(recording, start, held, name)
            holds = condition(recording, item)
            if isinstance(holds, Value):
                values.append(as_bool(recording, holds).value_)
                start = len(recording.nodes)
                if len(values) == 1:
                    held = [(each, each.items()) for each in reachable(recording, _roots(items))]
            elif holds is decisive:
                return decisive
        if not values:
            return not decisive
        found = values[0]
        for value in values[1:]:
            (found,) = recording.emit(ops.get(op), (found, value), {})
        return TracedScalar(recording, found)

    function.__name__ = function.__qualname__ = name
    return function


def _roots(items: Iterable[Any]) -> list[tuple[str, Any]]:
    """What computes the items, and others see."""
    if isinstance(items, map):
        return [("the function", items.__reduce__()[1][0])]
    if not isinstance(items, types.GeneratorType) or items.gi_frame is None:
        return []
    code, variables = items.gi_code, items.gi_frame.f_locals
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = [name for name in (*code.co_freevars, *given) if name != ".0" and name in variables]
    return [(name, variables[name]) for name in names]


def _check_pure(
    recording: Recording, start: int, held: Sequence[tuple[Holder, dict[Any, Any]]], name: str
) -> None:
    """What computes an item after one that may have ended the search has no effect.

    Raises:
        UnsupportedError: it does or raises something, or changes what was held.
    """
    acts = [
        node
        for node in recording.nodes[start:]
        if node.is_effect or any(inner.is_effect for _, g in node.regions for inner in walk(g))
    ]
    changed = [each for each, before in held if each.differs(before)]
    if acts or changed:
        does = "does or raises something" if acts else f"changes {changed[0].name}"
        raise UnsupportedError(
            f"{name}() may end before this item, which {does}",
            where=acts[0].loc if acts else recording.here(),
            instead=f"{name}([...]) of a list, which is computed whole",
        )


def _length(thing: Any, /) -> Any:
    """`len`: an axis of named size keeps its name, and a range need not be known."""
    if thing.__class__ is range and type(thing) is not range:
        return record_number("range_length", thing.start, thing.stop, thing.step)
    if ACTIVE.get() is not None and isinstance(thing, TracedArray) and thing.ndim:
        return thing.shape[0]
    return len(thing)


def _sum(items: Iterable[Any], /, start: Any = 0) -> Any:
    """`sum`: of floats Python carries on what it has rounded away."""
    found = [start, *items]
    plain = all(isinstance(_type_of(item), ScalarType) for item in found)
    if plain and _tracing(*found) and any(item.__class__ is float for item in found):
        return record_number("sum_numbers", *found)
    return sum(found[1:], start)


def _power(base: Any, exp: Any, mod: Any = None) -> Any:
    """`pow`: with a modulus Python asks the first operand only."""
    if mod is None or not _tracing(base, exp, mod):
        return pow(base, exp, mod)
    return record_number("pow_modulo", base, exp, mod)


for _real, _function in (
    (pow, _power),
    (min, _extreme("min", "minimum")),
    (max, _extreme("max", "maximum")),
    (any, _quantifier("any", "bitwise_or", True)),
    (all, _quantifier("all", "bitwise_and", False)),
    (len, _length),
):
    FUNCTIONS[id(_real)] = _function
if sys.version_info >= (3, 12):
    FUNCTIONS[id(sum)] = _sum


# ---- the module math ----------------------------------------------------------------------------


def _of_math(name: str) -> Callable[..., Any]:
    real: Any = getattr(math, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not _tracing(*args):
            return real(*args, **kwargs)
        return record_number(f"math_{name}", *args)

    return function


def _rounding(name: str) -> Callable[..., Any]:
    real: Any = getattr(math, name)

    def function(x: Any, /) -> Any:
        if not _tracing(x):
            return real(x)
        number = x if isinstance(x, TracedDim) else as_number(x)
        return number if number.__class__ is int else record_number(f"math_{name}", number)

    return function


def _isclose(a: Any, b: Any, /, **tolerances: Any) -> Any:
    if not _tracing(a, b):
        return math.isclose(a, b, **tolerances)
    math.isclose(0, 0, **tolerances)  # raises if one is negative
    defaults = ops.get("math_isclose").defaults
    given = {name: float(number) for name, number in tolerances.items()}
    attrs = {name: number for name, number in given.items() if number != defaults[name]}
    return record_number("math_isclose", a, b, **attrs)


def _product(items: Iterable[Any], /, *, start: Any = 1) -> Any:
    for item in items:
        start = start * item
    return start


def _distance(p: Iterable[Any], q: Iterable[Any], /) -> Any:
    p, q = list(p), list(q)
    if len(p) != len(q) or not _tracing(*p, *q):
        return math.dist(p, q)
    return _MATH["hypot"](*(a - b for a, b in zip(p, q, strict=True)))


_MATH: dict[str, Callable[..., Any]] = {
    **{name: _of_math(name) for name in ops.mathematics.FUNCTIONS},
    **{name: _rounding(name) for name in ("ceil", "floor", "trunc")},
    "isclose": _isclose,
    "prod": _product,
    "dist": _distance,
}
RECORDED_MATH = types.ModuleType("math", math.__doc__)
RECORDED_MATH.__dict__.update(vars(math))
for _name, _function in _MATH.items():
    _function.__name__ = _function.__qualname__ = _name
    FUNCTIONS[id(getattr(math, _name))] = RECORDED_MATH.__dict__[_name] = _function
FUNCTIONS[id(math)] = RECORDED_MATH
