"""Recordings whose nodes are computed as soon as they are recorded."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Token
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.array import Array, Attached, unwrap
from minigraph.errors import DtypeError, ShapeError
from minigraph.ir import SCALARS, ArrayType, Node, Op, Type, Value, type_of
from minigraph.memory import Watch
from minigraph.mode import here
from minigraph.ops import evaluate_node
from minigraph.trace import (
    ACTIVE,
    BINARY,
    UNARY,
    Layout,
    Recording,
    Storage,
    TracedArray,
    TracedScalar,
)

from .gradients import show
from .programs import Immediate
from .recipes import (
    Argument,
    Made,
    NoKeyError,
    Recipe,
    Reference,
    arrays_of,
    key_of_call,
    write_down,
)
from .steps import Source, Step, check_known

_REMEMBERED_TYPES = 4096
_REMEMBERED_RECIPES = 1024


class EagerRecording(Immediate):
    """A recording whose nodes are computed at once; it keeps nothing from one call to the next.

    Attributes:
        steps: of the values of the call that is running.
        watch: what its steps hold.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[Value, Source] = {}
        self.watch: Watch | None = None
        self._arguments: list[Source] = []
        self._made: list[Step] = []
        self._recipes: dict[Any, Recipe] = {}
        self._types: dict[Any, Any] = {}

    # ---- what comes in and goes out --------------------------------------------------------

    def source(self, thing: Any) -> Source:
        """Where an operand comes from; a node may take it.

        Raises:
            RecordedWriteError: its memory was written since it was recorded.
            RecordError: its gradient would miss what was written into it.
        """
        step, index = found = self.operand(thing)
        self.steps[step.values[index]] = found
        return found

    def operand(self, thing: Any, type_: Type | None = None) -> Source:
        """As `source`, for a call that is its own node; the type may be known."""
        if type(thing) is not Array:  # nobody would notice a write into an ndarray
            data = thing.copy("K") if isinstance(thing, np.ndarray) else thing
            return self._come_in(data, type_), 0
        tracked = thing.tracked_
        if tracked is None:
            return self._come_in(thing.data_, type_), 0
        if type(tracked) is Attached:
            check_known(thing.data_)
            leaf = tracked if tracked.req != "null" else None
            return self._come_in(thing.data_, type_, leaf), 0
        step, index = tracked.step, tracked.index
        if step.freed:
            data = list(step.types)  # the others are not there any more
            data[index] = thing.data_
            return Step(None, (), step.types, data, True, None), index
        step.check(index, "it is used again")
        return step, index

    def _come_in(self, data: Any, type_: Type | None = None, leaf: Attached | None = None) -> Step:
        types = (type_ or self._type_of(data),)
        return Step(None, (), types, [data], leaf is not None, self.watch, leaf)

    def seen(self, thing: Any) -> Any:
        """An argument as the tracer sees it."""
        if type(thing) is Array or isinstance(thing, np.ndarray):
            step, index = source = self.source(thing)
            self._arguments.append(source)
            data = step.data[index]
            layout = Layout(data.shape, data.flags.c_contiguous, strided=data)
            return TracedArray(self, Storage(step.values[index]), (), layout)
        kind = type(thing)
        if kind is tuple or kind is list:
            return kind([self.seen(item) for item in thing])
        if kind is slice:
            return unwrap(thing)
        return thing

    def shown(self, result: Any) -> Any:
        """A result as the user sees it."""
        if isinstance(result, TracedArray):
            return show(self.steps[result.value_])
        if isinstance(result, TracedScalar):
            step, index = self.steps[result.value_]
            return step.data[index]
        kind = type(result)
        if kind is list:
            return [self.shown(item) for item in result]
        if isinstance(result, tuple):
            items = [self.shown(item) for item in result]
            return tuple(items) if kind is tuple else kind(*items)
        return result

    def begin(self, watch: Watch | None) -> Token[Recording | None] | None:
        """Record from here on; None if that is so already (a function that NumPy calls back)."""
        if ACTIVE.get() is self:
            return None
        self.watch = watch
        return ACTIVE.set(self)

    def end(self, token: Token[Recording | None] | None) -> None:
        """The end of what `begin` began: the call is forgotten."""
        if token is None:
            return
        ACTIVE.reset(token)
        self.watch = None
        self.nodes.clear()
        self.steps.clear()
        self._arguments.clear()
        self._made.clear()
        self._known.clear()
        self._producer.clear()
        self.untaped.clear()

    # ---- nodes -----------------------------------------------------------------------------

    def value(self, thing: Any) -> Value:
        """What an operand is in terms of the graph."""
        step, index = self.source(thing)
        return step.values[index]

    def eager_value(self, array: Array) -> Value:
        return self.value(array)

    def constant(self, concrete: Any, place: Any = None) -> Value:
        step = self._come_in(concrete)
        (value,) = step.values
        self.steps[value] = step, 0
        self._known[value] = concrete
        return value

    def constant_number(self, value: Value) -> Any:
        return None if isinstance(value.type, ArrayType) else self._known.get(value)

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Any = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        place = place or (here(), ())
        values = super().emit(op, inputs, attrs, place=place, checked=checked)
        node = self.nodes.pop()
        sources = [self.steps[value] for value in inputs]
        for step, index in sources:
            step.check(index)
        data = [step.data[index] for step, index in sources]
        types = [value.type for value in values]
        step = self.step(node, sources, types, evaluate_node(node, data))
        self._made.append(step)
        for index, value in enumerate(values):
            self.steps[value] = (step, index)
            if value in self._known:
                self._known[value] = step.data[index]
        return values

    def step(
        self,
        node: Node | Callable[[Step], Node],
        sources: Sequence[Source],
        types: Sequence[Type],
        results: Iterable[Any],
        key: Any = None,
    ) -> Step:
        """A node and its results.

        Args:
            node: what was computed, or what makes it.
            sources: where its inputs come from.
            types: of the results.
            results: one for each output.
            key: stands for its op and attrs, where something shorter does.
        """
        active = any(step.carries(index) for step, index in sources)
        data = [np.asarray(each) if isinstance(each, np.generic) else each for each in results]
        return Step(node, sources, types, data, active, self.watch, key=key)

    def call(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call a function of NumPy: by its recipe, or traced."""
        try:
            key = key_of_call(function, args, kwargs, self._type_of)
        except NoKeyError:
            return self.shown(self._traced(function, args, kwargs))
        recipe = self._recipes.get(key)
        if recipe is not None:
            return self._follow(recipe, [self.source(a) for a in arrays_of(args, kwargs)])
        seen, made = len(self._arguments), len(self._made)
        result = self._traced(function, args, kwargs)
        shown = self.shown(result)
        recipe = write_down(self._arguments[seen:], self._made[made:], result, self._source_of)
        if recipe is not None:
            if len(self._recipes) >= _REMEMBERED_RECIPES:
                self._recipes.clear()
            self._recipes[key] = recipe
        return shown

    def _traced(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """What a function returns for traced arrays."""
        seen = [self.seen(arg) for arg in args]
        return function(*seen, **{name: self.seen(arg) for name, arg in kwargs.items()})

    def _source_of(self, thing: Any) -> Source | None:
        return self.steps[thing.value_] if isinstance(thing, TracedArray) else None

    def _follow(self, recipe: Recipe, arguments: Sequence[Source]) -> Any:
        """Do again on these arrays what a recipe says."""
        place, made = here(), list[Step]()
        for op, attrs, references, types in recipe.nodes:
            sources = [self._found(reference, arguments, made) for reference in references]
            inputs = [step.values[index] for step, index in sources]
            outputs = [self.ids.value(type_) for type_ in types]
            node = Node(self.ids.next(), op, inputs, attrs, outputs, place)
            results = evaluate_node(node, [step.data[index] for step, index in sources])
            made.append(self.step(node, sources, types, results))
        return self._served(recipe.result, arguments, made)

    def _found(
        self, reference: Reference, arguments: Sequence[Source], made: Sequence[Step]
    ) -> Source:
        """What a reference of a recipe means."""
        if type(reference) is Made:
            return made[reference.node], reference.index
        if type(reference) is Argument:
            return arguments[reference.position]
        return self._come_in(reference.data), 0  # type: ignore[union-attr]

    def _served(self, result: Any, arguments: Sequence[Source], made: Sequence[Step]) -> Any:
        """The result of a recipe as the user sees it."""
        if isinstance(result, Reference):
            return show(self._found(result, arguments, made))
        items = [self._served(item, arguments, made) for item in result]
        kind = type(result)
        return kind(items) if kind in (list, tuple) else kind(*items)

    def direct(self, function: Callable[..., Any], op: Op, args: Sequence[Any]) -> Array | None:
        """Record an op of arrays of floats and numbers that has no attrs; None: it is not so."""
        if not all(map(_is_floats, args)):
            return None
        try:
            sources = [self.source(arg) for arg in args]
            inputs = [step.values[index] for step, index in sources]
            type_ = self._result_type(op, inputs)
            result = function(*[step.data[index] for step, index in sources])
            node = Node(self.ids.next(), op, inputs, _NO_ATTRS, (self.ids.value(type_),), here())
            return show((self.step(node, sources, (type_,), (result,)), 0))
        except (ShapeError, DtypeError):
            return None  # the other way finds it, too, and says where

    # ---- types, each worked out once -------------------------------------------------------

    def _type_of(self, data: Any) -> Type:
        scalar = SCALARS.get(type(data))
        if scalar is not None:
            return scalar
        if not hasattr(data, "dtype"):
            return type_of(data)
        return self._known_type((data.dtype, data.shape), lambda: type_of(data))

    def _result_type(self, op: Op, inputs: Sequence[Value]) -> Type:
        types = [value.type for value in inputs]
        return self._known_type((op.name, *types), lambda: ops.infer(op, types, {})[0])

    def _known_type(self, key: Any, find: Callable[[], Type]) -> Type:
        found = self._types.get(key)
        if found is None:
            if len(self._types) >= _REMEMBERED_TYPES:
                self._types.clear()
            found = self._types[key] = find()
        return found


_NO_ATTRS: dict[str, Any] = {}


def _is_floats(arg: Any) -> bool:
    kind = type(arg)
    if kind is Array:
        return arg.data_.dtype.kind == "f"
    return kind is float or kind is int or (kind is np.ndarray and arg.dtype.kind == "f")


def _direct() -> dict[Any, Op]:
    """The ops of operators and ufuncs that have no options."""
    found: dict[Any, Op] = {}
    for name, op in {**BINARY, **UNARY, "matmul": "matmul"}.items():
        found[getattr(operator, f"__{name}__")] = ops.get(op)
    for name, op in ops.RECORDED.items():
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.nout == 1 and op.numpy == name:
            found[ufunc] = op
    return found


DIRECT = _direct()
"""Operators and ufuncs that are one op without options."""


_threads = threading.local()


def recording_of_thread() -> EagerRecording:
    """The recording of this thread."""
    found = getattr(_threads, "recording", None)
    if found is None:
        found = _threads.recording = EagerRecording()
    return found
