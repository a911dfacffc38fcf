"""Blocks and parameters as traced code sees them, and what their classes provide for it.

The tracer knows neither `minigraph.nn` nor `minigraph.array`: classes tell what they are.

A *block* is any object of the library that holds arrays and settings (a Block, a Trainer, an
optimiser).  Its class says `traced_block_ = True`, and an instance provides

    _version            An int, raised by every change that a trace may have seen: an attribute set
                        or deleted (`__class__` too), a child or parameter replaced, a list of
                        children or hooks changed, `_version` of a child or parameter raised, an
                        attribute of its class or of a base that is a block class set or deleted (a
                        metaclass with `__setattr__` walks over the live instances).  Data written
                        in place raises nothing.
    traced_parts_()     {text: part}, its direct blocks and parameters, by what a user writes after
                        its own name: {".hidden": child, ".layers[0]": child, ".weight": parameter}.
    traced_state_()     {name: value}, all else that its methods read.  Numbers, strings, None,
                        dtypes and tuples are compared by type and value, all else by identity.
    traced_covered_     A class attribute, names of its own dicts and lists (children, hooks, …)
                        whose every change raises `_version`; all other containers are compared at
                        each call.

A *parameter* says `traced_parameter_ = True` and provides `_version` (raised when its array is made
anew, or its gradient, and when an attribute changes), `name`, `grad_req`, and `_data`: its eager
array.

An *eager array* says `eager_array_ = True`; its slot `data_` holds the ndarray, and `grad` is its
gradient (an eager array) or None.

Code of the library is not rebuilt: it runs as it is, on traced arrays.  While a trace runs it asks

    seen(self)          for the object to call `forward` on.  For a class of the user's that is its
                        twin, whose methods are rebuilt; all else in `__call__` goes on with `self`.
    seen(function)      before it calls what the user gave: a hook, an activation, the function of a
                        Lambda.
    captured(array, owner)    in `Parameter.data()` and wherever it uses an array that it holds (the
                        state of an optimiser): the traced array that stands for it.
    captured_gradient(parameter)    in `Parameter.grad()`.
    printing()          a context in which `print` prints at once: around `hybrid_forward`.
    outside()           a context in which no trace runs: for giving a parameter its first values.

Outside of traces `seen` and `captured` give back what they were given, `captured_gradient` None.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from minigraph.errors import RAISED

from .arrays import TracedArray
from .groups import Group, parts_condition, state_condition
from .guards import Condition
from .inputs import traced_input
from .paths import Path
from .recording import ACTIVE
from .twins import original
from .users import is_users

if TYPE_CHECKING:
    from .reach import Reach


def seen(thing: Any, text: str = "") -> Any:
    """What the trace that runs sees in place of a block or function; outside of traces itself.

    Args:
        thing: the block or function.
        text: what messages call it, if nothing else has led to it so far.
    """
    active = ACTIVE.get()
    if active is None or active.reach is None:
        return thing
    name = text or getattr(thing, "__name__", None) or type(thing).__name__
    return active.reach.see(thing, Path.of_object(thing, name))


def captured(array: Any, owner: Any = None, name: str = "state") -> Any:
    """The traced array that stands for one which code of the library holds; outside itself.

    Args:
        array: an eager array or an ndarray.
        owner: its parameter, if it is a parameter's.
        name: what it is called in the graph, if it is no parameter's.
    """
    active = ACTIVE.get()
    if active is None or active.reach is None:
        return array
    return active.reach.blocks.capture(array, owner, name=name)


def captured_gradient(parameter: Any) -> Any:
    """The traced array that stands for a parameter's gradient; None outside of traces."""
    active = ACTIVE.get()
    if active is None or active.reach is None:
        return None
    return active.reach.blocks.capture(parameter._data.grad, parameter, ("grad",))


@contextmanager
def printing() -> Iterator[None]:
    """Inside, `print` shows what is traced as it stands, once, instead of being recorded."""
    active = ACTIVE.get()
    if active is None:
        yield
        return
    before, active.prints = active.prints, True
    try:
        yield
    finally:
        active.prints = before


@contextmanager
def outside() -> Iterator[None]:
    """Inside, no trace runs: eager code that is no part of what is traced."""
    active = ACTIVE.get()
    token, raised = ACTIVE.set(None), RAISED.set(None)
    try:
        yield
    finally:
        ACTIVE.reset(token)
        RAISED.reset(raised)
        if active is not None and active.reach is not None:
            active.reach.note_generators()


class Blocks:
    """The blocks that one trace has met, each in a group behind the version of the outermost.

    Attributes:
        groups: in the order they were met.
        parameters: all of their parameters, with their paths.
    """

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.guards = reach.recording.guards
        self.groups: list[Group] = []
        self.parameters: dict[int, tuple[Any, Path]] = {}
        self._known: dict[int, tuple[Any, Path]] = {}  # a block or parameter by id
        self._paths: dict[tuple[Any, ...], tuple[Group, Any]] = {}  # by the id of its path
        self._arrays: dict[int, tuple[Any, TracedArray]] = {}
        self.guards.behind = self._behind

    def see(self, thing: Any, path: Path) -> Any:
        """A block or parameter that was reached by `path`: itself, or a twin of the user's."""
        if id(thing) not in self._known:
            self._enter(thing, path)
        at = self._known[id(thing)][1]
        if path.id not in (at.id, self._paths[at.id][0].path.id):
            self.guards.identity(path, thing)
        kind = type(thing)
        if not is_block(thing) or not is_users(kind) or original(kind) is not kind:
            return thing  # one whose class is a twin was made while tracing
        return self.reach.classes.stand_in(thing, at)

    def _enter(self, thing: Any, path: Path) -> None:
        """A block that is reached from outside of all others, with all that is in it."""
        group = Group(path, thing)
        self.groups.append(group)
        self.guards.conditions.append(group.condition)
        pending = [(thing, Path.of_part(group.block, path.text))]
        while pending:
            part, at = pending.pop()
            self._known[id(part)] = (part, at)
            self._paths[at.id] = (group, part)
            if not is_block(part):
                self.parameters[id(part)] = (part, at)
                continue
            self.guards.type_is(at, type(part))
            parts = part.traced_parts_()
            group.conditions.append(parts_condition(at, parts))
            group.conditions.append(state_condition(at, _state(part), _state))
            inner = [
                (child, Path.of_part(weakref.ref(child), at.text + text))
                for text, child in parts.items()
            ]
            pending += [pair for pair in reversed(inner) if id(pair[0]) not in self._known]

    def _behind(self, path: Path, inside: bool) -> list[Condition] | None:
        """The conditions behind the version that covers what a path leads to."""
        steps: list[Path] = []
        at: Path | None = path
        while at is not None and at.id not in self._paths:
            steps.append(at)
            at = at.parent
        found = self._paths[at.id] if at is not None else self._by_object(steps[-1])
        if found is None:
            return None
        group, thing = found
        steps = steps if at is not None else steps[:-1]
        return group.conditions if _covers(thing, steps[::-1], inside) else None

    def _by_object(self, root: Path) -> tuple[Group, Any] | None:
        """The group for a path that begins at a block or parameter itself."""
        known = self._known.get(id(root.holder)) if root.kind == "object" else None
        return self._paths[known[1].id] if known is not None else None

    def capture(
        self, array: Any, owner: Any, steps: tuple[str, ...] = (), name: str = "state"
    ) -> TracedArray:
        """An array that code of the library holds: an input by reference, bound in the entry."""
        known = self._arrays.get(id(array))
        if known is not None:
            return known[1]
        recording = self.reach.recording
        eager = getattr(type(array), "eager_array_", False)
        if eager:
            recording.need_arrays(type(array))
        if owner is None:
            path = Path.of_object(array, name)
        else:
            if id(owner) not in self._known:
                self._enter(owner, Path.of_object(owner, owner.name))
            path = self._known[id(owner)][1]
            text = ".".join([path.text, *steps])
            for step in ("_data", *steps):
                path = path.attribute(step, text)
        path = path.attribute("data_", path.text) if eager else path
        data = array.data_ if eager else array
        made = traced_input(recording, data, path, hint=path.text.removeprefix("self."))
        if eager:
            recording.hold(made, array)
        if owner is not None:
            self.guards.array(path, data)
        self.guards.bound[path.id] = self._group_of(owner)
        self._arrays[id(array)] = (array, made)
        return made

    def gradient_of(self, array: Any) -> TracedArray:
        """What stands for the gradient of an array that was captured here."""
        for parameter, _ in self.parameters.values():
            if parameter._data is array:
                return self.capture(array.grad, parameter, ("grad",))
        return self.capture(array.grad, None)

    def unused(self) -> tuple[str, ...]:
        """The names of the parameters that nothing has read."""
        return tuple(
            path.text
            for parameter, path in self.parameters.values()
            if id(parameter._data) not in self._arrays and parameter.grad_req != "null"
        )

    def _group_of(self, owner: Any) -> Group | None:
        return None if owner is None else self._paths[self._known[id(owner)][1].id][0]

    def eager_array(self, array: Any) -> TracedArray | None:
        """What stands for an eager array that code of the library came across, if it is known."""
        known = self._arrays.get(id(array))
        if known is not None:
            return known[1]
        for parameter, _ in self.parameters.values():
            if parameter._data is array:
                return self.capture(array, parameter)
        return None


def is_block(thing: Any) -> bool:
    """A block, no parameter."""
    return is_block_class(type(thing))


def is_block_class(kind: type) -> bool:
    """Its instances are blocks."""
    return getattr(kind, "traced_block_", False)


def _state(block: Any) -> dict[str, Any]:
    """What a block's version stands for; what code of the user's reads has guards of its own."""
    state = dict(block.traced_state_())
    own = vars(block) if is_users(type(block)) else {}
    return {name: value for name, value in state.items() if name not in own}


def _covers(thing: Any, steps: list[Path], inside: bool) -> bool:
    """Every change of what these steps lead to raises the version of the block or parameter."""
    if not is_block(thing):
        return not steps or steps[0].key == "_data" or (len(steps) == 1 and not inside)
    kind = type(thing)
    # A base that is no block can change without the block's knowing.
    known = all(
        getattr(base, "traced_block_", False) or not is_users(base) for base in kind.__mro__
    )
    if not steps:
        return not inside or (known and not hasattr(kind, "__getattr__"))
    first = steps[0]
    if first.kind == "class":
        return known
    if first.key in getattr(kind, "traced_covered_", ()):
        return True
    if len(steps) == 1:
        return not inside and (first.key in vars(thing) or (known and _is_data(kind, first.key)))
    return known and len(steps) == 2 and steps[1].key == "__func__"


def _is_data(kind: type, name: str) -> bool:
    """A class has this attribute, and reading it runs no code of its own."""
    member = inspect.getattr_static(kind, name, None)
    return member is not None and (not hasattr(member, "__get__") or isinstance(member, _STATIC))


_STATIC = (types.FunctionType, classmethod, staticmethod, types.MemberDescriptorType)
