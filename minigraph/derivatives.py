"""Derivatives of functions: `grad`, `value_and_grad`, `vjp`, `jvp`, and what steers them.

All of them record.  Where a trace is running they record into it: the call, and then `backward`
over the nodes that it added.  Outside they are compiled as any function is (`jit`), so a gradient
is one program, in which forward and backward are optimised together.

An argument passes through the op `identity` first, so that another use of the same array, by a
closure say, counts as a constant.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.array import Array, is_tracked, unwrap, wrap
from minigraph.autograd import grad as eager_gradients
from minigraph.autograd import record
from minigraph.errors import DtypeError, OptionError, ShapeError, SignatureError, unknown
from minigraph.grad import add, backward, zeros
from minigraph.ir import ArrayType, Graph, Loc, ScalarType, Type, Value, type_of
from minigraph.jit import JitFunction, jit
from minigraph.mode import is_recording, is_training
from minigraph.ops import cotangent_type, get
from minigraph.trace import (
    ACTIVE,
    Leaves,
    Recording,
    TracedArray,
    enclose,
    free,
    region,
    renewed,
    signature_of,
    standing_for,
    take,
)

Slot = int | str
Wrt = Slot | Sequence[Slot]
NOWHERE: tuple[None, tuple[str, ...]] = (None, ())
"""The place of nodes that stand for nothing in the user's program."""


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

    gradient.__name__ = gradient.__qualname__ = f"{word}_{_name(function)}"
    made: JitFunction = jit(gradient)
    if isinstance(function, JitFunction):
        made.take_options(function)
    return made


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
        return _on_tape(function, how, args, kwargs)
    call = _Call(active, function, args, kwargs, how.slots)
    value, aux = how.parts(call.result, call.name, call.returned())
    output = call.number(value)
    type_ = cotangent_type(output.type)
    assert type_ is not None
    one = active.constant(type_.dtype.type(1), NOWHERE)
    return how.shown(value, aux, call.gradients({output: one}))


def _on_tape(
    function: Callable[..., Any], how: _How, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The same where nothing is compiled (`mg.eager`): run and recorded by the eager tape."""
    found, named = list(args), dict(kwargs)
    chosen: list[tuple[Leaves, list[Array]]] = []
    again, training = is_recording(), is_training()
    with record(train_mode=training):
        for slot in how.slots:
            holder, key = _place(function, found, named, slot)
            leaves = Leaves(holder[key])
            for thing in leaves.things:
                _check_float(type_of(unwrap(thing)), slot, _name(function), None)
            variables = [_variable(thing) for thing in leaves.things]
            holder[key] = leaves.closed(variables)
            chosen.append((leaves, variables))
        value, aux = how.parts(function(*found, **named), _name(function), None)
    if not isinstance(value, Array) or value.data_.ndim:
        raise ShapeError(
            f"{_name(function)} returns a {type(value).__name__} of shape {np.shape(unwrap(value))}"
            ", and a gradient is that of one number that depends on the arguments",
            instead=".sum() or .mean() of it",
        )
    every = [variable for _, variables in chosen for variable in variables]
    computed = iter(eager_gradients([value], every, create_graph=again))
    eager = again or any(
        isinstance(thing, Array) for leaves, _ in chosen for thing in leaves.things
    )
    gradients = [
        leaves.gradients([_like(next(computed), thing, again) for thing in leaves.things])
        for leaves, _ in chosen
    ]
    return how.shown(value if eager else value.data_[()], aux, gradients)


def _variable(thing: Any) -> Array:
    """An array in the place of an argument: its gradient is that of this use alone."""
    if is_tracked(thing):
        return np.positive(thing)
    made = Array(np.array(unwrap(thing)))
    made.attach_grad()
    return made


def _like(gradient: Array, thing: Any, again: bool) -> Any:
    """A gradient as its argument is: an array, a NumPy scalar or a float."""
    if again or isinstance(thing, Array):
        return gradient
    if isinstance(thing, np.ndarray):
        return gradient.data_
    return gradient.data_[()] if isinstance(thing, np.generic) else float(gradient)


class _Call:
    """A call that was recorded, in order to be differentiated.

    Attributes:
        result: what the function returned.
        chosen: the structures that are differentiated; inputs: for each the values of its leaves.
        nodes: what the call recorded.
    """

    def __init__(
        self,
        active: Recording,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        slots: Sequence[Slot],
    ) -> None:
        self.active = active
        self.name = _name(function)
        start = len(active.nodes)
        found = list(args)
        named = dict(kwargs)
        self.chosen: list[Leaves] = []
        self.inputs: list[list[Value]] = []
        replaced: list[tuple[Any, Any]] = []
        for slot in slots:
            holder, key = _place(function, found, named, slot)
            leaves = Leaves(holder[key])
            for at, value in enumerate(leaves.values(active)):
                what = slot if len(leaves.things) == 1 else f"{slot}, leaf {at},"
                _check_float(value.type, what, self.name, active.here())
            things = [renewed(active, thing, "identity") for thing in leaves.things]
            holder[key] = leaves.closed(things)
            replaced += zip(leaves.things, things, strict=True)
            self.chosen.append(leaves)
            self.inputs.append([thing.value_ for thing in things])
        self.result = function(*found, **named)
        for before, after in replaced:  # what the function wrote, the caller sees
            if isinstance(after, TracedArray) and after.storage_.version:
                before.assign_(after.storage_.value)
        self.nodes = active.nodes[start:]

    def returned(self, value: Value | None = None) -> Loc | None:
        """The user's line that made the result (the last that was recorded, if not known)."""
        for node in reversed(self.nodes):
            if value is None or value in node.outputs:
                return node.loc
        return self.active.here()

    def number(self, result: Any) -> Value:
        """The value of a result that is one floating-point number.

        Raises:
            ShapeError, DtypeError: it is none.
        """
        leaves = Leaves(result)
        if len(leaves.things) != 1 or leaves.things[0] is not result:
            raise ShapeError(
                f"{self.name} returns a {type(result).__name__}, and a gradient is that of one "
                "number",
                where=self.returned(),
                instead="return one number, has_aux=True for (number, the rest), or mg.vjp",
            )
        (value,) = leaves.values(self.active)
        if isinstance(value.type, ArrayType) and value.type.ndim:
            raise ShapeError(
                f"{self.name} returns {_a(value.type)}, and a gradient is that of one number",
                where=self.returned(value),
                instead=".sum() or .mean() of it, or mg.vjp for a gradient of your own",
            )
        if cotangent_type(value.type) is None:
            raise DtypeError(
                f"{self.name} returns {_a(value.type)}, which has no gradient",
                where=self.returned(value),
                instead=_as_float(value.type),
            )
        return value

    def gradients(self, cotangents: Mapping[Value, Value]) -> list[Any]:
        """The gradients of the chosen arguments, recorded now."""
        wanted = [value for values in self.inputs for value in values]
        found = iter(backward(self.active, self.nodes, cotangents, wanted))
        return [
            leaves.gradients(
                [
                    _gradient_like(self.active, next(found), value, thing)
                    for value, thing in zip(values, leaves.things, strict=True)
                ]
            )
            for leaves, values in zip(self.chosen, self.inputs, strict=True)
        ]


def _check_float(type_: Type, slot: Any, name: str, where: Loc | None) -> None:
    if cotangent_type(type_) is None:
        raise DtypeError(
            f"argument {slot} of {name} is {_a(type_)}, and only real floating-point numbers have "
            "a gradient",
            where=where,
            instead=_as_float(type_),
        )


def _place(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], slot: Slot
) -> tuple[Any, Any]:
    """Where an argument stands: (list or dict, key).

    Raises:
        OptionError: there is no such argument.
    """
    parameters = list(signature_of(function).parameters.values())
    named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if isinstance(slot, int):
        if -len(args) <= slot < len(args):
            return args, slot
        if not 0 <= slot < len(named):
            raise OptionError(f"wrt={slot}: there are {len(args)} arguments")
        slot = named[slot]
    if slot in kwargs:
        return kwargs, slot
    positional = [p.name for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    if slot in positional[: len(args)]:
        return args, positional.index(slot)
    default = next((p.default for p in parameters if p.name == slot), inspect.Parameter.empty)
    if default is inspect.Parameter.empty:
        raise unknown("argument", slot, [*named, *kwargs])
    kwargs[slot] = default
    return kwargs, slot


def _gradient_like(active: Recording, gradient: Value | None, value: Value, thing: Any) -> Any:
    """A gradient as the user sees it: zeros if there is none, a float for a float."""
    if gradient is None:
        gradient = zeros(active, value.type, NOWHERE)
    if isinstance(value.type, ScalarType):
        (gradient,) = active.emit(get("item"), (gradient,), {}, place=NOWHERE)
    return standing_for(active, gradient, thing)


def _a(type_: Type) -> str:
    return f"an {type_}" if str(type_)[0] in "aeiou" else f"a {type_}"


def _as_float(type_: Type) -> str:
    if isinstance(type_, ArrayType) and type_.dtype.kind == "c":
        return "its real and imaginary part as two arguments"
    return "x.astype(np.float64)" if isinstance(type_, ArrayType) else "a float such as 2.0"


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
    """
    active = ACTIVE.get()
    if active is not None:
        return _jvp(active, function, primals, tangents)
    return _kept(_pushforward, function)(tuple(primals), tuple(tangents))


def _pushforward(function: Callable[..., Any]) -> JitFunction:
    """`jvp` of one function, compiled."""

    def pushforward(primals: Any, tangents: Any) -> Any:
        active = ACTIVE.get()
        assert active is not None
        return _jvp(active, function, primals, tangents)

    return _wrapped(pushforward, function, f"jvp_{_name(function)}")


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
    forward, pullbacks = _kept(_pulled, function)
    value, kept, number = forward(*primals)
    return value, functools.partial(pullbacks[number], kept)


def _pulled(function: Callable[..., Any]) -> tuple[JitFunction, _Pullbacks]:
    """`vjp` of one function, compiled: (value, what its pullback needs, which pullback)."""
    pullbacks = _Pullbacks()

    def forward(*primals: Any) -> Any:
        active = ACTIVE.get()
        assert active is not None
        value, pullback = _vjp(active, function, primals)
        kept, number = pullbacks.add(active, value, pullback)
        return value, kept, number

    made = _wrapped(forward, function, f"vjp_{_name(function)}")
    pullbacks.jitted = made
    return made, pullbacks


class _Pullbacks:
    """The pullbacks of one function, one for each trace."""

    jitted: JitFunction

    def __init__(self) -> None:
        self._made: list[_Pullback] = []

    def add(
        self, active: Recording, value: Any, pullback: Callable[[Any], Any]
    ) -> tuple[tuple[Any, ...], int]:
        """Record a pullback as a graph of its own; what it needs of the trace, and its number."""
        results = Leaves(value)
        types = [cotangent_type(output.type) for output in results.values(active)]
        given = [type_ and active.ids.value(type_) for type_ in types]
        pairs = zip(given, results.things, strict=True)
        start = len(active.nodes)
        gradients = Leaves(pullback(results.gradients([_shown(active, g, x) for g, x in pairs])))
        outputs = gradients.values(active)
        nodes = take(active, start)
        cotangents = [g for g in given if g is not None]
        needed = free(active, nodes, outputs, cotangents)
        graph = region(active, "pullback", [*needed, *cotangents], nodes, outputs)
        self._made.append(_Pullback(self, graph, results, types, gradients))
        return tuple(standing_for(active, each) for each in needed), len(self._made) - 1

    def __getitem__(self, number: int) -> _Pullback:
        return self._made[number]


class _Pullback:
    """A compiled pullback: `(what the call kept, cotangent) -> gradients`."""

    def __init__(
        self,
        owner: _Pullbacks,
        graph: Graph,
        results: Leaves,
        types: Sequence[ArrayType | None],
        gradients: Leaves,
    ) -> None:
        self.owner = owner
        self.graph = graph
        self.results = results
        self.types = types
        self.gradients = gradients
        self.scalars = [
            isinstance(thing, TracedArray) and thing.scalar_ for thing in gradients.things
        ]
        for leaves in (results, gradients):  # the trace they come from is not kept alive
            leaves.things.clear()

    @functools.cached_property
    def run(self) -> Callable[..., tuple[Any, ...]]:
        """The program, made at the first call."""
        return self.owner.jitted.compiled(self.graph).run

    def __call__(self, kept: Sequence[Any], cotangent: Any) -> Any:
        given = [
            _cotangent(thing, type_)
            for thing, type_ in zip(
                self.results.matching(cotangent, "the cotangent"), self.types, strict=True
            )
            if type_ is not None
        ]
        found = self.run(*map(unwrap, kept), *given)
        eager = any(isinstance(thing, Array) for thing in kept)
        pairs = zip(found, self.scalars, strict=True)
        return self.gradients.closed([_returned(each, scalar, eager) for each, scalar in pairs])


def _returned(found: Any, scalar: bool, eager: bool) -> Any:
    """A result as NumPy gives it, or as an eager array."""
    if isinstance(found, float) and not isinstance(found, np.generic):
        return found
    if eager:
        return wrap(np.asarray(found))
    return np.asarray(found)[()] if scalar else np.asarray(found)


def _cotangent(given: Any, type_: ArrayType) -> np.ndarray[Any, Any]:
    """A cotangent as the program takes it.

    Raises:
        ShapeError: it has another shape.
    """
    if given is None:
        return np.zeros(type_.shape, type_.dtype)
    array = np.asarray(unwrap(given), type_.dtype)
    if array.shape != type_.shape:
        raise ShapeError(f"the cotangent of {_a(type_)} has its shape, not {array.shape}")
    return array


def _wrapped(made: Any, function: Callable[..., Any], name: str) -> JitFunction:
    """A function of ours that calls one of the user's, compiled as that is."""
    made.__signature__ = inspect.signature(made)
    made.__wrapped__ = function
    made.__name__ = made.__qualname__ = name
    jitted: JitFunction = jit(made)
    if isinstance(function, JitFunction):
        jitted.take_options(function)
    return jitted


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


_made: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def _kept(make: Callable[[Any], Any], function: Callable[..., Any]) -> Any:
    """What `make` makes of a function, made once for as long as the function lives."""
    try:
        known = _made.setdefault(function, {})
    except TypeError:  # it cannot be referred to weakly, or has no hash
        return make(function)
    if make not in known:
        known[make] = make(function)
    return known[make]


def _vjp(active: Recording, function: Callable[..., Any], primals: Sequence[Any]) -> Any:
    """`vjp` in a running trace."""
    call = _Call(active, function, primals, {}, range(len(primals)))
    results = Leaves(call.result)
    outputs = results.values(active)

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        given = _fitted(active, results, outputs, cotangents, "the cotangent")
        return tuple(call.gradients(_summed(active, zip(outputs, given, strict=True))))

    return call.result, pullback


def _jvp(
    active: Recording,
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, Any]:
    """`jvp` in a running trace: the gradients are linear in the cotangents; transposed again."""
    call = _Call(active, function, primals, {}, range(len(primals)))
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
        for tangent in _fitted(active, leaves, values, each, "a tangent")
    ]
    sums = _summed(active, zip(gradients, given, strict=True))
    found = dict(
        zip(cotangents, backward(active, nodes, sums, list(cotangents.values())), strict=True)
    )
    shown = [
        _gradient_like(active, found[value], value, thing) if value in found else None
        for value, thing in zip(outputs, results.things, strict=True)
    ]
    return call.result, results.gradients(shown)


def _shown(active: Recording, cotangent: Value | None, thing: Any) -> Any:
    """The cotangent of a result as the user sees it; None where there is none."""
    return None if cotangent is None else standing_for(active, cotangent, thing)


def _summed(
    active: Recording, pairs: Iterable[tuple[Value | None, Value | None]]
) -> dict[Value, Value]:
    """Cotangents by value, where a value may stand several times, or have none."""
    sums: dict[Value, Value] = {}
    for value, part in pairs:
        if value is not None and part is not None:
            sums[value] = add(active, sums[value], part, NOWHERE) if value in sums else part
    return sums


def _fitted(
    active: Recording, leaves: Leaves, values: Sequence[Value], given: Any, what: str
) -> list[Value | None]:
    """Cotangents or tangents that the user gives, one for each value; None where there is none.

    Raises:
        SignatureError: they have another structure; ShapeError: or another shape.
    """
    found: list[Value | None] = []
    for value, thing in zip(values, leaves.matching(given, what), strict=True):
        type_ = cotangent_type(value.type)
        if type_ is None or thing is None:
            found.append(None)
            continue
        (part,) = Leaves(thing).values(active)
        shape = part.type.shape if isinstance(part.type, ArrayType) else ()
        if shape != type_.shape:
            raise ShapeError(
                f"{what} of {_a(value.type)} has its shape, and is {_a(part.type)} here",
                where=active.here(),
            )
        if part.type != type_:
            (part,) = active.emit(get("cast"), (part,), {"dtype": type_.dtype})
        found.append(part)
    return found


# ---- what steers derivatives


def stop_gradient(x: Any) -> Any:
    """`x`, which counts as a constant in every derivative.

    Args:
        x: an array or a number, or a structure of them.
    """
    active = ACTIVE.get()
    if active is None:
        return x
    leaves = Leaves(x)
    things = [
        renewed(active, thing, "stop_gradient") if cotangent_type(value.type) else thing
        for thing, value in zip(leaves.things, leaves.values(active), strict=True)
    ]
    return leaves.closed(things)


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose derivative computes again what it needs, instead of keeping it.

    Kept are its arguments, and what it drew or read from the world: that is never done twice.

    Args:
        function: on arrays, numbers, and structures of them.
    """

    @functools.wraps(function, updated=())
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        active = ACTIVE.get()
        if active is None:
            return function(*args, **kwargs)
        start = len(active.nodes)
        result = function(*args, **kwargs)
        enclose(active, start, Leaves((result, args, kwargs)).values(active))
        return result

    return recomputed


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that brings its own derivative.

    Args:
        function: returns (result, backward); `backward` takes the cotangent of the result, in its
            structure, and returns the gradients of the positional arguments (None: no gradient).

            @mg.custom_gradient
            def clipped(x):
                return x, lambda g: np.clip(g, -1, 1)
    """

    @functools.wraps(function, updated=())
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        active = ACTIVE.get()
        if active is None:
            return _pair(function(*args, **kwargs), function, None)[0]
        return _custom(active, function, args, kwargs)

    return with_gradient


def _pair(returned: Any, function: Callable[..., Any], where: Loc | None) -> tuple[Any, Any]:
    if isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1]):
        return returned
    raise SignatureError(
        f"{_name(function)} under @mg.custom_gradient returns no pair",
        where=where,
        instead="return (result, function from its cotangent to the gradients of the arguments)",
    )


def _custom(
    active: Recording, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Record the function as it is, and its backward function in the region of a `call`.

    The call passes the results through; what the backward function reads besides goes in as well.
    """
    arguments = Leaves(tuple(args))
    things = [renewed(active, thing, "identity") for thing in arguments.things]
    inputs = [thing.value_ for thing in things]
    result, pull = _pair(function(*arguments.closed(things), **kwargs), function, active.here())
    results = Leaves(result)
    outputs = results.values(active)
    start = len(active.nodes)
    types = [cotangent_type(value.type) for value in outputs]
    cotangents = [type_ and active.ids.value(type_) for type_ in types]
    pairs = zip(cotangents, results.things, strict=True)
    shown = [_shown(active, g, thing) for g, thing in pairs]
    found = _each(pull(results.gradients(shown)), args)
    gradients = _fitted(active, arguments, inputs, found, "the gradient")
    nodes = take(active, start)
    passed = list(dict.fromkeys([*inputs, *outputs]))
    wanted = [(value, g) for value, g in zip(inputs, gradients, strict=True) if g is not None]
    given = [g for g in cotangents if g is not None]
    passed += free(active, nodes, [g for _, g in wanted], {*passed, *given})
    backward_graph = region(
        active,
        "backward",
        [*passed, *(active.ids.value(value.type) for value in outputs), *given],
        nodes,
        [g for _, g in wanted],
    )
    attrs = {
        "body": region(active, "body", passed, (), outputs),
        "backward": backward_graph,
        "wanted": tuple(passed.index(value) for value, _ in wanted),
    }
    values = active.emit(get("call"), passed, attrs, place=(active.here(), ()))
    pairs = zip(values, results.things, strict=True)
    return results.closed([standing_for(active, value, thing) for value, thing in pairs])


def _each(gradients: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """One gradient for each argument; of one argument it may stand alone."""
    if len(args) == 1 and not (isinstance(gradients, tuple) and len(gradients) == 1):
        return (gradients,)
    return gradients
