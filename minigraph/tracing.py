"""`mg.trace`: from a function to its graph, checked on request.

A graph is what the function did for one set of arguments.  What decides that it holds for others,
too, are the conditions under which it was recorded; they are the guard of a jitted function, and a
graph alone has none.  `check=True` calls the function again, on these arguments and on others near
them, and compares.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.array import Array, unwrap
from minigraph.engine import Options
from minigraph.entry import Entry
from minigraph.errors import CheckError, OptionError
from minigraph.ir import SCALARS, Graph, Loc, flatten, leaf_paths, unflatten
from minigraph.jit import JitFunction, eager
from minigraph.mode import here
from minigraph.trace import Spec, bind, spread
from minigraph.trace import trace as record


def trace(
    function: Callable[..., Any],
    *args: Any,
    check: bool = False,
    check_inputs: Sequence[Sequence[Any]] = (),
    rtol: float = 1e-5,
    **kwargs: Any,
) -> Graph:
    """Record what `function` does with these arguments.

    Args:
        function: any Python callable on arrays, numbers, and nested tuples, lists, dicts and
            dataclasses of them.
        *args: arrays, numbers, structures, or `Spec`s that describe arrays.
        check: call the function again, on copies of the arguments, on the same ones with their
            floating-point numbers negated, in reverse order and scaled, and on `check_inputs`; each
            time the graph must return, print and raise the same, and change the same arguments.
        check_inputs: further calls to check with, each the tuple of its positional arguments.
        rtol: how far numbers may be apart, relative to the larger one.
        **kwargs: as `args`, by name.

    Returns:
        The graph; `str(graph)` is its text form.

    Raises:
        MinigraphError: something cannot be recorded; it names the line and what to write instead.
        CheckError: the graph does something else than the function, or is right only under a
            condition that does not hold for other arguments.
        OptionError: the arguments of `check_inputs` are none that the function takes.
    """
    if not check:
        return record(function, *args, **kwargs)
    arguments = bind(function, args, kwargs)
    if any(isinstance(leaf, Spec) for leaf in flatten(arguments, _is_leaf)[0]):
        raise OptionError(
            "check=True calls the function, and a Spec has no numbers to call it with",
            instead="arrays as arguments, or check=False",
        )
    jitted = JitFunction(function, Options({"backend": "interpret"}))
    jitted.lower(*args, **kwargs)
    entry = jitted.entries()[0]
    others = [_bound(function, at, given) for at, given in enumerate(check_inputs)]
    for what, given in (*_variants(arguments), *(("check_inputs", each) for each in others)):
        _Check(entry, function, what, rtol).run(given)
    return record(function, *args, **kwargs)


def _bound(function: Callable[..., Any], at: int, given: Any) -> dict[str, Any]:
    """One element of `check_inputs`, by parameter name.

    Raises:
        OptionError: it is no tuple of arguments that the function takes.
    """
    if not isinstance(given, list | tuple):
        raise OptionError(
            f"check_inputs[{at}] is of type {type(given).__name__}, not the arguments of a call",
            where=here(),
            instead="check_inputs=[(x,), (y,)], a tuple for each call",
        )
    try:
        return bind(function, given, {})
    except TypeError as error:
        raise OptionError(
            f"check_inputs[{at}] does not hold the arguments of the function, but "
            f"{len(given)}: {error}",
            where=here(),
            instead="check_inputs=[(x,), (y,)], a tuple for each call",
        ) from error


def _variants(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The arguments, and others near them."""
    rng = np.random.default_rng(0)
    changes: dict[str, Callable[[Any], Any]] = {
        "these arguments": lambda x: x,
        "negated arguments": lambda x: -x,
        "reversed arguments": lambda x: np.flip(x) if np.ndim(x) else x,
        "scaled arguments": lambda x: x * rng.uniform(0.5, 1.5, np.shape(x)),
    }
    leaves, tree = flatten(dict(arguments), _is_leaf)
    for what, change in changes.items():
        changed = [_changed(leaf, change) for leaf in leaves]
        yield what, unflatten(tree, iter(changed))


def _is_leaf(thing: Any) -> bool:
    return isinstance(thing, Array | np.ndarray | np.generic | Spec) or type(thing) in SCALARS


def _kind(thing: Any) -> Any:
    """The name of an array's or NumPy scalar's dtype; the class of a Python number."""
    return thing.dtype.name if isinstance(thing, np.ndarray | np.generic) else type(thing)


def _changed(leaf: Any, change: Callable[[Any], Any]) -> Any:
    """A leaf with its floating-point numbers changed; others count and choose, and stay."""
    if isinstance(leaf, Array):
        made = copy.deepcopy(leaf)
        made[...] = _changed(leaf.data_, change)
        return made
    if type(leaf) is float:
        return float(change(leaf))
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind == "f":
        return np.asarray(change(leaf)).astype(leaf.dtype)[() if leaf.ndim else ...]
    return leaf


class _Check:
    """One comparison of an entry with its function."""

    def __init__(self, entry: Entry, function: Callable[..., Any], what: str, rtol: float) -> None:
        self.entry = entry
        self.function = function
        self.what = what
        self.rtol = rtol

    def run(self, arguments: Mapping[str, Any]) -> None:
        condition = self.entry.difference(arguments)
        if condition:
            raise CheckError(
                f"on {self.what} the graph does not hold: {condition}",
                instead="mg.jit(function), which records another graph then",
            )
        eagerly = _Outcome(self.function, self.function, arguments)
        recorded = _Outcome(self.entry.call, self.function, arguments)
        if eagerly.printed != recorded.printed:
            self._differ("printed", eagerly.printed, recorded.printed)
        if type(eagerly.raised) is not type(recorded.raised):
            self._differ("raised", eagerly.raised, recorded.raised)
        self._compare(eagerly.left, recorded.left, "left in its arguments")
        self._compare(eagerly.result, recorded.result, "returned")

    def _compare(self, eagerly: Any, recorded: Any, verb: str) -> None:
        ours, theirs = flatten(recorded, _is_leaf), flatten(eagerly, _is_leaf)
        if ours[1] != theirs[1]:
            self._differ(verb, theirs[1], ours[1])
        names = leaf_paths(ours[1], "")
        outputs = self.entry.trace.graph.outputs
        for at, (a, b) in enumerate(zip(theirs[0], ours[0], strict=True)):
            if self._are_close(unwrap(a), unwrap(b)):
                continue
            loc = None
            if verb == "returned" and at < len(outputs):
                node = self.entry.trace.graph.producers().get(outputs[at])
                loc = node.loc if node is not None else None
            self._differ(f"{verb} {names[at]}".rstrip(), a, b, loc)

    def _are_close(self, a: Any, b: Any) -> bool:
        """They are of one type and shape, and not further apart than rounding."""
        if _kind(a) != _kind(b) or np.shape(a) != np.shape(b):
            return False
        if a.__class__ is int:  # of any size
            return a == b
        near = np.isclose(a, b, self.rtol, 0.0, equal_nan=True)  # relative to the second
        return bool(np.all(near | np.isclose(b, a, self.rtol, 0.0, equal_nan=True)))

    def _differ(self, verb: str, eagerly: Any, recorded: Any, where: Loc | None = None) -> None:
        raise CheckError(
            f"on {self.what} the function {verb}: {eagerly!r}, and the graph: {recorded!r}",
            where=where,
            instead="what changes from call to call as an argument",
        )


class _Outcome:
    """What a call returned, raised, printed, and left in its arguments."""

    def __init__(
        self,
        call: Callable[..., Any],
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
    ) -> None:
        self.left = copy.deepcopy(dict(arguments))
        self.result: Any = None
        self.raised: Exception | None = None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), eager():
            try:
                positional, keywords = spread(function, self.left)
                self.result = call(*positional, **keywords)
            except Exception as error:
                self.raised = error
        self.printed = printed.getvalue()
