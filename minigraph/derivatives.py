"""Derivatives of functions: `grad`, `value_and_grad`, `vjp`, `jvp`.

All of them record.  Where a trace is running they record into it: the call, and then `backward`
over the nodes that it added.  Outside they are compiled as any function is (`jit`), so a gradient
is one program, in which forward and backward are optimised together.

An argument passes through the op `identity` first, so that another use of the same array, by a
closure say, counts as a constant.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minigraph import taped
from minigraph.differentiated import (
    NOWHERE,
    Call,
    Slot,
    fitted,
    gradient_like,
    name_of,
    summed,
)
from minigraph.engine import options_of
from minigraph.errors import OptionError, SignatureError, unknown
from minigraph.grad import backward, zeros
from minigraph.ir import Loc, Value
from minigraph.jit import JitFunction, is_eager
from minigraph.mode import here
from minigraph.ops import cotangent_type, get
from minigraph.passes import LOWERINGS, History
from minigraph.pullbacks import Pullbacks
from minigraph.trace import ACTIVE, Leaves, Recording, signature_of

Wrt = Slot | Sequence[Slot]
KEPT_FUNCTIONS = 64  # whose `vjp` or `jvp` stays compiled; the least recently used are dropped


# ---- grad and value_and_grad


def grad(function: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False) -> JitFunction:
    """The function that computes the gradient of `function`, which returns one number.

    Args:
        function: on arrays, numbers, and structures of them; jitted or not.
        wrt: the argument to differentiate: its index, its name, or a tuple of such.
        has_aux: `function` returns (number, anything else), and so does the gradient.

    Returns:
        A compiled function with the same parameters.  A gradient has the structure of its argument;
        that of a Python float is a float.

    Raises:
        OptionError: there is no such argument.
    """
    return _compiled(function, _How(wrt, has_aux, with_value=False), "grad")


def value_and_grad(
    function: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False
) -> JitFunction:
    """As `grad`, but (value, gradient), or ((value, anything else), gradient) for `has_aux`."""
    return _compiled(function, _How(wrt, has_aux, with_value=True), "value_and_grad")


class _How:
    """The options of one gradient."""

    def __init__(self, wrt: Wrt, has_aux: bool, *, with_value: bool) -> None:
        self.wrt = wrt
        self.has_aux = has_aux
        self.with_value = with_value
        self.slots: tuple[Slot, ...] = (wrt,) if isinstance(wrt, int | str) else tuple(wrt)
        for slot in self.slots:
            if not isinstance(slot, int | str) or isinstance(slot, bool):
                raise OptionError(
                    f"wrt= names arguments, not {slot!r}", instead='wrt=0, wrt=(0, 1) or wrt="w"'
                )

    def parts(self, result: Any, name: str, where: Loc | None) -> tuple[Any, Any]:
        """The number to differentiate, and what comes with it.

        Raises:
            SignatureError: it is no pair, as `has_aux` says.
        """
        if not self.has_aux:
            return result, None
        if not isinstance(result, tuple) or len(result) != 2:
            raise SignatureError(
                f"{name} returns a {type(result).__name__}, and has_aux=True says that it returns "
                "(number, anything else)",
                where=where,
            )
        return result

    def shown(self, value: Any, aux: Any, gradients: Sequence[Any]) -> Any:
        """What was asked for."""
        found = gradients[0] if isinstance(self.wrt, int | str) else tuple(gradients)
        if self.with_value:
            return ((value, aux), found) if self.has_aux else (value, found)
        return (found, aux) if self.has_aux else found


def _compiled(function: Callable[..., Any], how: _How, word: str) -> JitFunction:
    """A jitted function that records the gradient."""
    if not callable(function):
        raise OptionError(f"{word} takes a function, not a {type(function).__name__}")
    _check_names(function, how.slots)

    @functools.wraps(function, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return _gradient(function, how, args, kwargs)

    gradient.__name__ = gradient.__qualname__ = f"{word}_{name_of(function)}"
    return Derivative(gradient, options_of(function))


class Derivative(JitFunction):
    """A jitted gradient."""

    @property
    def joint(self) -> History:
        """Forward and backward in one graph, which is what this function is."""
        return History([stage for stage in self.stages if stage.name not in LOWERINGS])

    def not_traced(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What the user's function raises in Python alone is no matter of its gradient."""
        derivative: Any = self.function  # a function made by `functools.wraps` of the user's
        derivative.__wrapped__(*args, **kwargs)
        return super().not_traced(error, args, kwargs)


def _check_names(function: Callable[..., Any], slots: Sequence[Slot]) -> None:
    parameters = signature_of(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for slot in slots:
        if isinstance(slot, str) and slot not in parameters:
            raise unknown("argument", slot, list(parameters))


def _gradient(
    function: Callable[..., Any], how: _How, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    active = ACTIVE.get()
    if active is None:
        return taped.gradient(function, how, args, kwargs)
    call = Call(active, function, args, kwargs, how.slots)
    value, aux = how.parts(call.result, call.name, call.returned())
    output = call.number(value)
    type_ = cotangent_type(output.type)
    assert type_ is not None
    one = active.constant(type_.dtype.type(1), NOWHERE)
    return how.shown(value, aux, call.gradients({output: one}))


# ---- vjp and jvp


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """A function's value, and how it changes where its arguments change by the tangents.

    Args:
        function: on arrays, numbers, and structures of them.
        primals: its arguments, all of floating-point numbers.
        tangents: one for each, of its structure (None: it does not change).

    Returns:
        (value, tangent of the value).

    Raises:
        SignatureError: there are not as many tangents as arguments.
    """
    given = [type(thing) in (tuple, list) for thing in (primals, tangents)]
    if not all(given) or len(primals) != len(tangents):
        raise SignatureError(
            f"the primals and tangents of {name_of(function)} are no tuples of equal lengths",
            where=here(),
            instead="mg.jvp(f, (x, y), (dx, dy)), one tangent for each argument",
        )
    active = ACTIVE.get()
    if active is not None:
        return _jvp(active, function, primals, tangents)
    if is_eager():
        return taped.jvp(function, primals, tangents)
    make = _pushforward if _has_hash(function) else _pushforward.__wrapped__
    return make(function)(tuple(primals), tuple(tangents))


@functools.lru_cache(KEPT_FUNCTIONS)
def _pushforward(function: Callable[..., Any]) -> JitFunction:
    """`jvp` of one function, compiled."""

    def pushforward(primals: Any, tangents: Any) -> Any:
        active = ACTIVE.get()
        if active is None:  # it raised while it was traced, and is to raise in Python
            return function(*primals)
        return _jvp(active, function, primals, tangents)

    return _wrapped(pushforward, function, f"jvp_{name_of(function)}")


def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A function's value, and its pullback: from the cotangent of the value to the gradients.

    Args:
        function: on arrays, numbers, and structures of them.
        *primals: its arguments, all of floating-point numbers.

    Returns:
        (value, pullback); `pullback(cotangent)`, with the structure of the value (None where
        nothing depends on it), returns a tuple of gradients, one for each argument.  It can be
        called any number of times; nothing that the function did is done again.
    """
    active = ACTIVE.get()
    if active is not None:
        return _vjp(active, function, primals)
    if is_eager():
        return taped.vjp(function, primals)
    forward, pullbacks = (_pulled if _has_hash(function) else _pulled.__wrapped__)(function)
    value, kept, number = forward(*primals)
    return value, functools.partial(pullbacks[number], kept)


@functools.lru_cache(KEPT_FUNCTIONS)
def _pulled(function: Callable[..., Any]) -> tuple[JitFunction, Pullbacks]:
    """`vjp` of one function, compiled: (value, what its pullback needs, which pullback)."""
    pullbacks = Pullbacks(options_of(function))

    def forward(*primals: Any) -> Any:
        active = ACTIVE.get()
        if active is None:  # it raised while it was traced, and is to raise in Python
            return function(*primals)
        value, pullback = _vjp(active, function, primals)
        kept, number = pullbacks.add(active, value, pullback)
        return value, kept, number

    return _wrapped(forward, function, f"vjp_{name_of(function)}"), pullbacks


def _has_hash(function: Callable[..., Any]) -> bool:
    """What is made of a function can be found again."""
    try:
        hash(function)
    except TypeError:
        return False
    return True


def _wrapped(made: Any, function: Callable[..., Any], name: str) -> JitFunction:
    """A function of ours that calls one of the user's, compiled as that is."""
    made.__signature__ = inspect.signature(made)
    made.__wrapped__ = function
    made.__name__ = made.__qualname__ = name
    return JitFunction(made, options_of(function))


def _vjp(active: Recording, function: Callable[..., Any], primals: Sequence[Any]) -> Any:
    """`vjp` in a running trace."""
    call = Call(active, function, primals, {}, range(len(primals)))
    results = Leaves(call.result)
    outputs = results.values(active)

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        given = fitted(active, results, outputs, cotangents, "the cotangent")
        return tuple(call.gradients(summed(active, zip(outputs, given, strict=True))))

    return call.result, pullback


def _jvp(
    active: Recording,
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, Any]:
    """`jvp` in a running trace: the gradients are linear in the cotangents; transposed again."""
    call = Call(active, function, primals, {}, range(len(primals)))
    results = Leaves(call.result)
    outputs = results.values(active)
    cotangents: dict[Value, Value] = {}
    for value in outputs:
        type_ = cotangent_type(value.type)
        if type_ is not None and value not in cotangents:
            zero = zeros(active, value.type, NOWHERE)
            (cotangents[value],) = active.emit(get("identity"), (zero,), {}, place=NOWHERE)
    start = len(active.nodes)
    inputs = [value for values in call.inputs for value in values]
    gradients = backward(active, call.nodes, cotangents, inputs)
    nodes = active.nodes[start:]
    given = [
        tangent
        for leaves, values, each in zip(call.chosen, call.inputs, tangents, strict=True)
        for tangent in fitted(active, leaves, values, each, "a tangent")
    ]
    sums = summed(active, zip(gradients, given, strict=True))
    found = dict(
        zip(cotangents, backward(active, nodes, sums, list(cotangents.values())), strict=True)
    )
    shown = [
        gradient_like(active, found[value], value, thing) if value in found else None
        for value, thing in zip(outputs, results.things, strict=True)
    ]
    return call.result, results.gradients(shown)
