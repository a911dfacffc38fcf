"""What steers derivatives: constants, what is computed again, what brings a rule of its own.

While the eager tape records, what is computed again and what has a rule of its own are compiled, so
that each is one step of the tape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minigraph.array import Array
from minigraph.differentiated import fitted, name_of, shown
from minigraph.engine import Options, options_of
from minigraph.errors import SignatureError
from minigraph.ir import Loc
from minigraph.jit import JitFunction, is_eager
from minigraph.mode import is_recording
from minigraph.ops import cotangent_type, get
from minigraph.trace import (
    ACTIVE,
    Leaves,
    Recording,
    enclose,
    free,
    region,
    renewed,
    signature_of,
    standing_for,
    take,
    write_back,
)


def stop_gradient(x: Any) -> Any:
    """`x`, which counts as a constant in every derivative.

    Args:
        x: an array or a number, or a structure of them.
    """
    active = ACTIVE.get()
    leaves = Leaves(x)
    if active is None:
        eager = any(isinstance(thing, Array) for thing in leaves.things)
        return leaves.closed(list(map(_detached, leaves.things))) if eager else x
    things = [
        renewed(active, thing, "stop_gradient") if cotangent_type(value.type) else thing
        for thing, value in zip(leaves.things, leaves.values(active), strict=True)
    ]
    return leaves.closed(things)


def _detached(thing: Any) -> Any:
    return thing.detach() if isinstance(thing, Array) else thing


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

    return _Steered(recomputed, options_of(function))


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that brings its own derivative.

    Args:
        function: returns (result, backward); `backward` takes the cotangent of the result, in its
            structure, and returns the gradients of the arguments in order (None: no gradient).
            To ask for the gradient by an argument that is left out at the end, or by what the
            function reads from outside, is an error.

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

    return _Steered(with_gradient, options_of(function))


class _Steered:
    """A function that is more than its code where derivatives are recorded."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._options = options

    @functools.cached_property
    def _compiled(self) -> JitFunction:
        return JitFunction(self._function, self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is not None or not is_recording():
            return self._function(*args, **kwargs)
        if is_eager():
            return self._compiled.first_call(0, args, kwargs)
        return self._compiled(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def traced_function_(self) -> Callable[..., Any]:
        """What a trace sees of it."""
        return self._function


def _pair(returned: Any, function: Callable[..., Any], where: Loc | None) -> tuple[Any, Any]:
    if isinstance(returned, tuple) and len(returned) == 2 and callable(returned[1]):
        return returned
    raise SignatureError(
        f"{name_of(function)} under @mg.custom_gradient returns no pair",
        where=where,
        instead="return (result, function from its cotangent to the gradients of the arguments)",
    )


def _custom(
    active: Recording, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Record the function as it is, and its backward function in the region of a `call`.

    The call passes the results through; what the two functions read besides goes in as well.
    """
    bound = signature_of(function).bind(*args, **kwargs)
    args, kwargs = bound.args, bound.kwargs
    arguments = Leaves(tuple(args))
    things = [renewed(active, thing, "identity") for thing in arguments.things]
    inputs = [thing.value_ for thing in things]
    start = len(active.nodes)
    result, pull = _pair(function(*arguments.closed(things), **kwargs), function, active.here())
    write_back(arguments.things, things)
    results = Leaves(result)
    outputs = results.values(active)
    read = free(active, active.nodes[start:], outputs, inputs)
    outside = [value for value in read if cotangent_type(value.type) is not None]  # of floats
    start = len(active.nodes)
    types = [cotangent_type(value.type) for value in outputs]
    cotangents = [type_ and active.ids.value(type_) for type_ in types]
    pairs = zip(cotangents, results.things, strict=True)
    given = results.gradients([shown(active, g, thing) for g, thing in pairs])
    found = _each(pull(given), len(args))
    missing = [None] * (len(args) - len(found))
    gradients = fitted(active, arguments, inputs, (*found, *missing), "the gradient")
    outside += inputs[len(Leaves(args[: len(found)]).things) :]
    nodes = take(active, start)
    passed = list(dict.fromkeys([*inputs, *outputs, *outside]))
    wanted = [(value, g) for value, g in zip(inputs, gradients, strict=True) if g is not None]
    bound = [g for g in cotangents if g is not None]
    passed += free(active, nodes, [g for _, g in wanted], {*passed, *bound})
    backward_graph = region(
        active,
        "backward",
        [*passed, *(active.ids.value(value.type) for value in outputs), *bound],
        nodes,
        [g for _, g in wanted],
    )
    attrs = {
        "body": region(active, "body", passed, (), outputs),
        "backward": backward_graph,
        "wanted": tuple(passed.index(value) for value, _ in wanted),
        "outside": tuple(map(passed.index, outside)),
    }
    values = active.emit(get("call"), passed, attrs, place=(active.here(), ()))
    pairs = zip(values, results.things, strict=True)
    return results.closed([standing_for(active, value, thing) for value, thing in pairs])


def _each(gradients: Any, count: int) -> tuple[Any, ...]:
    """The gradients of the first arguments; that of one may stand alone."""
    alone = not isinstance(gradients, tuple) or (count == 1 and len(gradients) != 1)
    return (gradients,) if alone else gradients
