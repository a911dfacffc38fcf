"""`vjp` outside of a trace: the call is one compiled program, its pullback another."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph.array import Array, is_tracked, unwrap, wrap
from minigraph.differentiated import a_type, shown
from minigraph.engine import LIMIT, Options
from minigraph.errors import ShapeError
from minigraph.grad import differentiable
from minigraph.ir import ArrayType, Graph
from minigraph.mode import is_recording
from minigraph.ops import cotangent_type
from minigraph.tape import Called, tape_of_thread
from minigraph.trace import Leaves, Recording, TracedArray, free, region, standing_for, take

KEPT = 4 * LIMIT  # more than there are entries: a call may be traced several times


class Pullbacks:
    """The pullbacks of one function, one for each trace."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._made: dict[int, Pullback] = {}
        self._numbers = itertools.count()

    def add(
        self, active: Recording, value: Any, pullback: Callable[[Any], Any]
    ) -> tuple[tuple[Any, ...], int]:
        """Record a pullback as a graph of its own; what it needs of the trace, and its number."""
        results = Leaves(value)
        types = [cotangent_type(output.type) for output in results.values(active)]
        given = [type_ and active.ids.value(type_) for type_ in types]
        pairs = zip(given, results.things, strict=True)
        start = len(active.nodes)
        gradients = Leaves(pullback(results.gradients([shown(active, g, x) for g, x in pairs])))
        outputs = gradients.values(active)
        nodes = take(active, start)
        cotangents = [g for g in given if g is not None]
        needed = free(active, nodes, outputs, cotangents)
        graph = region(active, "pullback", [*needed, *cotangents], nodes, outputs)
        number = next(self._numbers)
        self._made[number] = Pullback(self.options, graph, results, types, gradients)
        if len(self._made) > KEPT:
            del self._made[min(self._made)]
        return tuple(standing_for(active, each) for each in needed), number

    def __getitem__(self, number: int) -> Pullback:
        return self._made[number]


class Pullback:
    """A compiled pullback: `(what the call kept, cotangent) -> gradients`."""

    def __init__(
        self,
        options: Options,
        graph: Graph,
        results: Leaves,
        types: Sequence[ArrayType | None],
        gradients: Leaves,
    ) -> None:
        self.options = options
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
        return self.options.compile(self.graph).run

    @functools.cached_property
    def recorded(self) -> tuple[Callable[..., tuple[Any, ...]], Called]:
        """The program of calls that the tape records, and what it puts there."""
        wanted = differentiable(self.graph.inputs)
        called = Called.of(self.graph, wanted, self.options.backend)
        return self.options.compile(called.body).run, called

    def __call__(self, kept: Sequence[Any], cotangent: Any) -> Any:
        given = [
            _cotangent(thing, type_)
            for thing, type_ in zip(
                self.results.matching(cotangent, "the cotangent"), self.types, strict=True
            )
            if type_ is not None
        ]
        if is_recording() and any(map(is_tracked, [*kept, *given])):
            run, called = self.recorded
            inputs = [*kept, *given]
            found = tape_of_thread().call(called, inputs, run(*map(unwrap, inputs)))
            return self.gradients.closed(found)
        found = self.run(*map(unwrap, kept), *map(unwrap, given))
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


def _cotangent(given: Any, type_: ArrayType) -> Any:
    """A cotangent as the program takes it.

    Raises:
        ShapeError: it has another shape.
    """
    if given is None:
        return np.zeros(type_.shape, type_.dtype)
    if is_tracked(given) and is_recording():
        array = given if given.dtype == type_.dtype else given.astype(type_.dtype)
    else:
        array = np.asarray(unwrap(given), type_.dtype)
    if array.shape != type_.shape:
        raise ShapeError(f"the cotangent of {a_type(type_)} has its shape, not {array.shape}")
    return array
