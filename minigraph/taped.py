"""Derivatives where nothing is compiled (`mg.eager`): functions run, and the tape records them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from minigraph import autograd
from minigraph.array import Array, is_tracked, unwrap, wrap
from minigraph.differentiated import Slot, check_float, check_leaves, name_of, place_of
from minigraph.errors import ShapeError
from minigraph.ir import SCALARS, Loc, type_of
from minigraph.memory import written
from minigraph.mode import here, is_recording, is_training
from minigraph.trace import Leaves


class How(Protocol):
    """The options of a gradient: which arguments, what the result is, what is shown of it."""

    slots: tuple[Slot, ...]

    def parts(self, result: Any, name: str, where: Loc | None) -> tuple[Any, Any]: ...
    def shown(self, value: Any, aux: Any, gradients: Sequence[Any]) -> Any: ...


class _Taped:
    """A call of a function that was recorded, in order to be differentiated.

    Attributes:
        result: what the function returned.
        chosen: the structures that are differentiated; variables: for each what stood in its place
            when the call began.
        again: derivatives are recorded, too.
        eager: results are eager arrays; numbers: they are Python numbers, as all arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        slots: Sequence[Slot],
    ) -> None:
        found, named = list(args), dict(kwargs)
        passed: list[tuple[Any, Array, Array]] = []
        self.chosen: list[Leaves] = []
        self.variables: list[list[Array]] = []
        self.again = is_recording()
        with autograd.record(train_mode=is_training()):
            for slot in slots:
                holder, key = place_of(function, found, named, slot)
                leaves = Leaves(holder[key])
                check_leaves(leaves, slot, name_of(function), here())
                for thing in leaves.things:
                    check_float(type_of(unwrap(thing)), slot, name_of(function), here())
                variables = list(map(_variable, leaves.things))
                seen = list(map(_alias, variables))
                holder[key] = leaves.closed(seen)
                passed += zip(leaves.things, variables, seen, strict=True)
                self.chosen.append(leaves)
                self.variables.append(variables)
            self.result = function(*found, **named)
        for thing, variable, given in passed:
            if written(variable.data_, variable.tracked_.step.number) is not None:
                _write_back(thing, given if self.again else given.data_)
        things = [thing for leaves in self.chosen for thing in leaves.things]
        self.eager = self.again or any(isinstance(thing, Array) for thing in things)
        every = Leaves((tuple(args), dict(kwargs))).things
        self.numbers = all(type(thing) in SCALARS for thing in every)

    def gradients(self, heads: Sequence[Any], cotangents: Sequence[Any], keep: bool) -> list[Any]:
        """The gradients of the chosen arguments; heads that do not depend on them count nothing."""
        every = [variable for variables in self.variables for variable in variables]
        pairs = [
            (head, given) for head, given in zip(heads, cotangents, strict=True) if is_tracked(head)
        ]
        computed = iter(
            autograd.grad(
                [head for head, _ in pairs],
                every,
                [given for _, given in pairs],
                retain_graph=keep or self.again,
                create_graph=self.again,
            )
            if pairs
            else [wrap(np.zeros_like(variable.data_)) for variable in every]
        )
        return [
            leaves.gradients([_like(next(computed), thing, self.again) for thing in leaves.things])
            for leaves in self.chosen
        ]

    def shown(self, result: Any) -> Any:
        """A result as the caller sees it."""
        leaves = Leaves(result)
        return leaves.closed(list(map(self._shown, leaves.things)))

    def _shown(self, thing: Any) -> Any:
        if not isinstance(thing, Array) or self.again:
            return thing
        if self.eager:
            return thing.detach()
        return thing.item() if self.numbers else thing.data_[()]


def gradient(
    function: Callable[..., Any], how: How, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What `grad` and `value_and_grad` return."""
    call = _Taped(function, args, kwargs, how.slots)
    value, aux = how.parts(call.result, name_of(function), None)
    if isinstance(value, tuple | list | dict) or np.ndim(unwrap(value)):
        raise ShapeError(
            f"{name_of(function)} returns a {type(value).__name__} of shape "
            f"{np.shape(unwrap(value))}, and a gradient is that of one number",
            instead=".sum() or .mean() of it",
        )
    gradients = call.gradients([value], [None], keep=False)
    return how.shown(call.shown(value), call.shown(aux), gradients)


def vjp(function: Callable[..., Any], primals: Sequence[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """What `vjp` returns."""
    call = _Taped(function, primals, {}, range(len(primals)))
    results = Leaves(call.result)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        given = results.matching(cotangent, "the cotangent")
        pairs = [
            (head, each)
            for head, each in zip(results.things, given, strict=True)
            if each is not None
        ]
        heads, cotangents = [head for head, _ in pairs], [each for _, each in pairs]
        return tuple(call.gradients(heads, cotangents, keep=True))

    return call.shown(call.result), pullback


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """What `jvp` returns: gradients are linear in the cotangents, and pulled back themselves."""
    again = is_recording()
    with autograd.record(train_mode=is_training()):
        call = _Taped(function, primals, {}, range(len(primals)))
        results = Leaves(call.result)
        heads = list(filter(is_tracked, results.things))
        cotangents = [wrap(np.zeros_like(head.data_)) for head in heads]
        for cotangent in cotangents:
            cotangent.attach_grad()
        gradients = call.gradients(heads, cotangents, keep=True)
    pairs = [
        (gradient, tangent)
        for leaves, found, given in zip(call.chosen, gradients, tangents, strict=True)
        for gradient, tangent in zip(
            Leaves(found).things, leaves.matching(given, "a tangent"), strict=True
        )
        if is_tracked(gradient) and tangent is not None
    ]
    found = [wrap(np.zeros_like(head.data_)) for head in heads]
    if pairs:
        found = autograd.grad(
            [gradient for gradient, _ in pairs],
            cotangents,
            [tangent for _, tangent in pairs],
            retain_graph=True,
            create_graph=again,
        )
    call.again = again
    call.eager = again or any(isinstance(thing, Array) for thing in Leaves(tuple(primals)).things)
    computed = iter(found)
    pushed = [next(computed) if is_tracked(thing) else _zero(thing) for thing in results.things]
    return call.shown(call.result), call.shown(results.gradients(pushed))


def _zero(thing: Any) -> Any:
    """How a result changes that depends on nothing; None: it has no gradient."""
    data = unwrap(thing)
    if np.asarray(data).dtype.kind != "f":
        return None
    return 0.0 if isinstance(thing, float) else wrap(np.zeros_like(data))


def _variable(thing: Any) -> Array:
    """An array in the place of an argument: its gradient is that of this use alone."""
    if not is_tracked(thing) or thing.grad_req == "null":
        thing = wrap(np.array(unwrap(thing)))
        thing.attach_grad()
    return np.positive(thing)


def _alias(variable: Array) -> Array:
    """The same as the function gets it: what it writes leaves `variable` as it was recorded."""
    made = wrap(variable.data_)
    made.tracked_ = variable.tracked_
    return made


def _write_back(thing: Any, given: Any) -> None:
    """What the function wrote into an argument is written into the caller's array."""
    if isinstance(thing, Array):
        thing[...] = given
    elif isinstance(thing, np.ndarray):
        thing[...] = unwrap(given)


def _like(gradient: Array, thing: Any, again: bool) -> Any:
    """A gradient as its argument is: an array, a NumPy scalar or a float."""
    if again or isinstance(thing, Array):
        return gradient
    if isinstance(thing, np.ndarray):
        return gradient.data_
    return gradient.data_[()] if isinstance(thing, np.generic) else float(gradient)
