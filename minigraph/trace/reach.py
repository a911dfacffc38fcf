"""What a traced function reaches by name, and how it sees it.

NumPy's protocols fire only on traced arguments; `np.ones(3)`, `rng.random()`, `print("x")` and
`config.rate` have none.  So the tracer runs a rebuilt copy of the function: the same code object
with recording globals and cells.  A name looked up there passes through `Reach.see`:

    np, print, a generator       the recording one
    an array                     an input of the graph (by reference)
    a number, a string, None     itself, guarded by value
    a list, dict, set            a copy of what is inside, seen likewise; changing it is an error
    a function, class, module    of the user: rebuilt in the same way; installed: itself, guarded
    any other object             a twin, whose attributes are seen likewise; changing it is an error

Nothing of the user's is changed.
"""

from __future__ import annotations

import argparse
import array
import builtins
import collections
import contextvars
import copy
import dis
import enum
import functools
import io
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from minigraph import ops
from minigraph.errors import (
    RAISED,
    DtypeError,
    RandomnessError,
    ScriptError,
    SourceError,
    StateError,
    UnsupportedError,
)
from minigraph.ir import FUNCTION, GENERATOR, Loc, Value, as_dtype

from .arrays import TracedArray
from .blocks import Blocks
from .builtin_names import (
    RecordedStream,
    RecordedSys,
    TypeQuestion,
    recording_builtins,
    recording_super,
)
from .called import FUNCTIONS, as_written, with_calls_apart
from .calls import NAME_OF, NUMPY, recorded
from .classes import Classes
from .containers import FrozenDict, FrozenList, FrozenNamespace, FrozenSet
from .effects import TracedGenerator, record_print
from .frozen import Frozen
from .guards import same_content
from .handlers import SEEN
from .inputs import traced_input
from .literals import forced
from .namespaces import RecordingGlobals
from .operands import Traced
from .paths import Path
from .recording import Recording, Storage
from .scalars import TracedDim
from .script import converted, is_converted
from .source import is_installed
from .twins import (
    TwinModule,
    refuse_write,
)
from .users import is_rebuildable, is_users, is_users_code
from .views import Layout

_MISSING = object()
_CONTAINERS = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    collections.deque,
    types.MappingProxyType,
    types.SimpleNamespace,
    argparse.Namespace,
)
_BUFFERS = (list, dict, set, tuple, frozenset, bytearray, array.array)
_PYTHONS_OWN = ("__builtins__", "__warningregistry__")
_VALUES = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))


class Reach:
    """How one recording sees the objects of the program (each object once)."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        recording.reach = self
        self._seen: dict[int, tuple[Any, Any, Path]] = {}  # id -> (object, what is seen, path)
        self._globals: dict[int, RecordingGlobals] = {}
        self._cells: dict[int, tuple[str, types.CellType, Any]] = {}
        self._kept: list[Any] = []  # cells, so that their ids stay taken
        self.classes = Classes(self)
        self._buffers: list[tuple[Any, Any, Path]] = []
        self.attributes: list[tuple[Any, dict[str, Any]]] = []  # of functions and twins
        self.generators: list[tuple[np.random.Generator, Any, Path]] = []
        self._traced_generators: dict[int, TracedGenerator] = {}
        self._functions: dict[tuple[int, int], tuple[Value, ops.PythonFunction]] = {}
        self.blocks = Blocks(self)

    # ---- objects ---------------------------------------------------------------------------

    def see(self, thing: Any, path: Path) -> Any:
        """What the traced code sees in place of `thing`, reached by `path`."""
        guards = self.recording.guards
        if isinstance(thing, Traced | TracedDim):
            return thing
        kind = type(thing)
        if kind in _VALUES or isinstance(thing, np.generic | enum.Enum | np.dtype):
            guards.equals(path, thing)
            return thing
        known = self._seen.get(id(thing))
        if known is not None:
            if known[2].id != path.id:
                guards.identity(path, thing)
            return known[1]
        seen = self._look(thing, path)
        self._seen[id(thing)] = (thing, seen, path)
        return seen

    def _look(self, thing: Any, path: Path) -> Any:
        for kinds, look in self._LOOKS:
            if isinstance(thing, kinds):
                return look(self, thing, path)
        if id(thing) in NAME_OF:
            return self._named(thing, path)
        return self._object(thing, path)

    def _array(self, thing: np.ndarray[Any, Any], path: Path) -> Any:
        if type(thing) is Frozen and not thing.flags.writeable:
            self.recording.guards.identity(path, thing)
            return self._constant(thing)
        return self.capture(thing, path)

    def _object(self, thing: Any, path: Path) -> Any:
        kind = type(thing)
        inner = getattr(kind, "traced_function_", None)
        if inner is not None:  # a jitted function: its body joins this trace
            self.recording.guards.identity(path, thing)
            self.recording.script |= getattr(thing, "script", False)
            function = inner(thing)
            return self.see(function, Path.of_object(function, path.text))
        if getattr(kind, "eager_array_", False):
            return self.capture_eager(thing, path)
        if getattr(kind, "traced_block_", False) or getattr(kind, "traced_parameter_", False):
            return self.blocks.see(thing, path)
        if is_rebuildable(kind):
            self.recording.guards.type_is(path, kind)
            self.recording.guards.identity(path.of_class().attribute("__mro__"), kind.__mro__)
            return self.classes.stand_in(thing, path)
        if isinstance(thing, np.random.RandomState | random.Random):
            raise RandomnessError(
                f"{path.text} is a {kind.__name__}, whose draws are not recorded",
                where=self.recording.here(),
                instead="rng = np.random.default_rng(seed)",
            )
        if kind is memoryview:
            raise UnsupportedError(
                f"{path.text} is a memoryview, whose contents may change unseen",
                where=self.recording.here(),
                instead="np.asarray(...) of it, outside",
            )
        if thing is sys.stdout or thing is sys.stderr:
            self.recording.guards.identity(path, thing)
            return RecordedStream(thing)
        if isinstance(thing, io.IOBase):
            raise UnsupportedError(
                f"{path.text} is a file: what is read or written would not be at each call",
                where=self.recording.here(),
                instead="read it outside, and pass the contents",
            )
        if isinstance(thing, Iterator):
            raise UnsupportedError(
                f"{path.text} is an iterator: each call would take the next of its items",
                where=self.recording.here(),
                instead="a list, or the items as an argument",
            )
        return self._opaque(thing, path)

    def _opaque(self, thing: Any, path: Path) -> Any:
        """An object that is left as it is; what it holds is compared where that can be told."""
        guards = self.recording.guards
        guards.identity(path, thing)
        if is_users(type(thing)) and hasattr(thing, "__dict__"):
            guards.equals_deeply(path.attribute("__dict__"), vars(thing))
        if isinstance(thing, contextvars.ContextVar | threading.local):
            raise UnsupportedError(
                f"{path.text} is a {type(thing).__name__}, whose value is not checked at each call",
                where=self.recording.here(),
                instead="read it outside, and pass the value",
            )
        if isinstance(thing, _BUFFERS):
            guards.equals_deeply(path, thing)
            seen = copy.copy(thing)  # what is done to it is found, and not done to the user's own
            self._buffers.append((seen, thing, path))
            return seen
        return thing

    def capture(
        self, array: np.ndarray[Any, Any], path: Path, hint: str | None = None
    ) -> TracedArray:
        """An array reached by name: an input of the graph, read anew at each call."""
        if type(array) is not np.ndarray:
            raise DtypeError(
                f"{path.text} is a {type(array).__name__}; only plain arrays are traced",
                where=self.recording.here(),
                instead="np.asarray(...)",
            )
        as_dtype(array.dtype)
        made = traced_input(self.recording, array, path, hint=hint)
        self.recording.guards.array(path, array)
        return made

    def capture_eager(self, array: Any, path: Path) -> TracedArray:
        """An eager array reached by name: its ndarray is the input."""
        known = self.blocks.eager_array(array)
        if known is not None:
            self.recording.guards.identity(path, array)
            return known
        self.recording.need_arrays(type(array))
        self.recording.eager = True
        self.recording.guards.type_is(path, type(array))
        made = self.capture(array.data_, path.attribute("data_"), path.text)
        self.recording.hold(made, array)
        return made

    def guard_request(self, source: Value, holder: Any) -> None:
        """What becomes of the gradient of an eager array stays the same."""
        path = self.recording.path_of(source).owner_of_data()
        self.recording.guards.equals(path.attribute("grad_req"), holder.grad_req)

    def guard_fresh(self, source: Value, holder: Any) -> bool:
        """Whether the gradient of an eager array was stored, and not used, before the call."""
        path = Path.of_object(holder, self.recording.path_of(source).owner_of_data().text)
        self.recording.guards.equals(path.attribute("fresh_grad"), holder.fresh_grad)
        return holder.fresh_grad

    def gradient(self, source: Value, holder: Any) -> TracedArray:
        """The traced array that stands for the gradient of an eager array from outside."""
        path = self.recording.path_of(source)
        known = self._seen.get(id(holder.grad))
        if known is not None:
            return known[1]
        if path.id in self.recording.guards.bound:
            return self.blocks.gradient_of(holder)
        assert path.parent is not None
        return self.see(holder.grad, path.parent.attribute("grad"))

    def _constant(self, array: Frozen) -> TracedArray:
        """A frozen array: a constant that cannot be written."""
        value = self.recording.constant(np.asarray(array))
        storage = Storage(value, writable=False)
        return TracedArray(self.recording, storage, (), Layout(array.shape, True))

    def generator(self, thing: np.random.Generator, path: Path) -> TracedGenerator:
        """A random generator: an input of the graph; its state is compared after tracing."""
        known = self._traced_generators.get(id(thing)) if path.kind == "object" else None
        if known is not None:
            return known
        value = self.recording.add_input(GENERATOR, path, path.text)
        if path.kind != "object":
            self.recording.guards.type_is(path, np.random.Generator)
        self.generators.append((thing, repr(thing.bit_generator.state), path))
        made = self._traced_generators[id(thing)] = TracedGenerator(self.recording, value)
        return made

    def function(self, thing: Callable[..., Any], owner: Any = None) -> Value:
        """A function that the program calls; `owner` is the object whose method it is."""
        key = id(thing), id(owner)
        if key not in self._functions:
            bound = thing if owner is None else types.MethodType(thing, owner)
            called = ops.PythonFunction(bound, self.recording.arrays)
            name = thing.__name__
            value = self.recording.add_input(FUNCTION, Path.of_object(called, name), name)
            self._functions[key] = value, called
        return self._functions[key][0]

    def note_generators(self) -> None:
        """What was drawn until now was no part of the trace."""
        self.generators = [
            (generator, repr(generator.bit_generator.state), path)
            for generator, _, path in self.generators
        ]

    def _container(self, thing: Any, path: Path) -> Any:
        if is_users(type(thing)) and not hasattr(thing, "_fields"):
            return self._opaque(thing, path)  # a class of the user's with methods of its own
        guards = self.recording.guards
        kind = type(thing)
        if isinstance(thing, set | frozenset):
            guards.equals(path, kind(thing))
            return FrozenSet(path, thing) if isinstance(thing, set) else thing
        if isinstance(thing, types.SimpleNamespace | argparse.Namespace):
            guards.type_is(path, kind)
            guards.keys(path.attribute("__dict__"), dict, tuple(vars(thing)))
            seen = {key: self.see(v, path.attribute(key)) for key, v in vars(thing).items()}
            return FrozenNamespace(path, seen)
        if isinstance(thing, dict | types.MappingProxyType):
            guards.keys(path, kind, tuple(thing))
            seen = {key: self.see(value, path.item(key)) for key, value in thing.items()}
            return FrozenDict(path, seen, kind)
        guards.length(path, kind, len(thing))
        items = [self.see(item, path.item(index)) for index, item in enumerate(thing)]
        if hasattr(kind, "_fields"):
            return kind(*items)
        return tuple(items) if isinstance(thing, tuple) else FrozenList(path, items, kind)

    def rebuilt_container(
        self, thing: Any, path: Path, keys: list[Any], children: list[Any]
    ) -> Any:
        """An argument's container around what is seen of its children; changing it is an error."""
        kind = type(thing)
        if kind is tuple:
            return tuple(children)
        if kind is list:
            return FrozenList(path, children)
        if kind is dict:
            return FrozenDict(path, dict(zip(keys, children, strict=True)))
        if issubclass(kind, tuple):
            return kind(*children)
        if is_rebuildable(kind):
            twin: Any = self.classes.twin_of(kind, path)
            kind = type(twin)(kind.__name__, (twin,), {"__setattr__": refuse_write})
            type.__setattr__(kind, "reach_", (self, type(thing), path))
        made = object.__new__(kind)
        for key, child in zip(keys, children, strict=True):
            object.__setattr__(made, key, child)
        return made

    # ---- functions -------------------------------------------------------------------------

    def _function(self, thing: Any, path: Path) -> Any:
        owner = getattr(thing, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType):
            return self._method_of_c(thing, self.see(owner, path.owner()), path)
        self.recording.guards.identity(path, thing)
        if thing is builtins.print:
            return record_print
        if id(thing) in FUNCTIONS:
            return FUNCTIONS[id(thing)]
        if id(thing) in NAME_OF:
            return recorded(thing, NAME_OF[id(thing)])
        if not isinstance(thing, types.FunctionType):
            return thing
        # The wrapper that a decorator of an installed package made holds the user's function.
        wraps = thing.__closure__ is not None and hasattr(thing, "__wrapped__")
        return self.rebuild(thing) if wraps or is_users_code(thing.__code__) else thing

    def rebuild(self, function: types.FunctionType) -> types.FunctionType:
        """A copy of the function with recording globals and cells."""
        known = self._seen.get(id(function))
        if known is not None:
            return known[1]
        free = function.__code__.co_freevars
        cells = tuple(map(self._empty_cell, function.__closure__ or (), free))
        code = self._with_calls_apart(self._code_of(function), function)
        named = dict(zip(free, cells, strict=True))
        made = types.FunctionType(
            code,
            self.globals_of(function),
            function.__name__,
            None,
            tuple(named[name] for name in code.co_freevars),
        )
        made.__qualname__ = function.__qualname__
        made.__module__ = function.__module__
        made.__doc__ = function.__doc__
        root = Path.of_object(function, function.__name__)
        self._seen[id(function)] = (function, made, root)
        for cell, own, name in zip(function.__closure__ or (), cells, free, strict=True):
            self._fill_cell(cell, own, name)
        for name, value in vars(function).items():
            vars(made)[name] = self.see(value, root.attribute(name))
        self.attributes.append((made, dict(vars(made))))
        if function.__defaults__:
            defaults = root.attribute("__defaults__")
            made.__defaults__ = tuple(
                self.see(value, defaults.item(i)) for i, value in enumerate(function.__defaults__)
            )
        if function.__kwdefaults__:
            path = root.attribute("__kwdefaults__")
            made.__kwdefaults__ = {
                name: self.see(value, path.item(name))
                for name, value in function.__kwdefaults__.items()
            }
        return made

    def _code_of(self, function: types.FunctionType) -> types.CodeType:
        """The code of a function, converted in a script where that is possible."""
        code = function.__code__
        if not self.recording.script or not is_users_code(code):
            return code
        token = RAISED.set(None)
        try:
            return converted(code).code
        except (ScriptError, SourceError) as error:
            place = (code.co_filename, code.co_firstlineno, code.co_name)
            self.recording.unconverted[place] = error.fact
            return code
        finally:
            RAISED.reset(token)

    def scripted(self, function: Any) -> Any:
        """What traced code gives to `mg.script`, converted; what is seen from now on is, too.

        Raises:
            SourceError: its text is not to be found.
            ScriptError: something in it is not converted.
        """
        self.recording.script = True
        if isinstance(function, types.MethodType):
            return types.MethodType(self.scripted(function.__func__), function.__self__)
        if not isinstance(function, types.FunctionType) or not is_users_code(function.__code__):
            return function
        namespace = function.__globals__
        if not isinstance(namespace, RecordingGlobals):
            return self.rebuild(function)
        written = as_written(function.__code__)
        if is_converted(written):
            return function
        code = with_calls_apart(converted(written).code, namespace.namespace)
        cells = dict(zip(written.co_freevars, function.__closure__ or (), strict=True))
        closure = tuple(cells[name] for name in code.co_freevars)
        made = types.FunctionType(code, namespace, None, function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        made.__doc__ = function.__doc__
        vars(made).update(vars(function))
        return made

    def _with_calls_apart(self, code: types.CodeType, function: Any) -> types.CodeType:
        """The code as recording globals can tell calls of classes from their other uses."""
        namespace = function.__globals__
        if isinstance(namespace, RecordingGlobals) or not is_users_code(function.__code__):
            return code
        return with_calls_apart(code, namespace)

    def globals_of(self, function: types.FunctionType) -> dict[str, Any]:
        """Recording globals of the function's module (one for each module)."""
        namespace = function.__globals__
        if isinstance(namespace, RecordingGlobals) or not is_users_code(function.__code__):
            return namespace
        made = self._globals.get(id(namespace))
        if made is None:
            made = self._globals[id(namespace)] = RecordingGlobals(self, namespace)
        return made

    def _empty_cell(self, cell: types.CellType, name: str) -> types.CellType:
        known = self._cells.get(id(cell))
        if known is None:
            known = self._cells[id(cell)] = (name, types.CellType(), _MISSING)
            self._kept.append(cell)
        return known[1]

    def _fill_cell(self, cell: types.CellType, made: types.CellType, name: str) -> None:
        if self._cells[id(cell)][2] is not _MISSING:
            return
        try:
            contents = cell.cell_contents
        except ValueError:  # not bound yet, as eagerly
            return
        # The cell of zero-argument super() holds the class itself.
        seen = contents if name == "__class__" else self.see(contents, Path.of_cell(cell, name))
        made.cell_contents = seen
        self._cells[id(cell)] = (name, made, seen)

    def _method(self, thing: types.MethodType, path: Path) -> Any:
        function = thing.__func__
        owner = self.see(thing.__self__, path.owner())
        if not isinstance(function, types.FunctionType):
            return self._method_of_c(thing, owner, path)
        self.recording.guards.identity(path.attribute("__func__"), function)
        rebuilt = self.rebuild(function) if is_users_code(function.__code__) else function
        return types.MethodType(rebuilt, owner)

    def _method_of_c(self, thing: Any, owner: Any, path: Path) -> Any:
        """A bound method written in C: of what is seen in its owner's place, if that differs."""
        self.recording.guards.equals_method(path, thing)
        return thing if owner is thing.__self__ else getattr(owner, thing.__name__)

    def _partial(self, thing: functools.partial[Any], path: Path) -> Any:
        function = self.see(thing.func, path.attribute("func"))
        args = [self.see(arg, path.attribute("args").item(i)) for i, arg in enumerate(thing.args)]
        keywords = {
            name: self.see(value, path.attribute("keywords").item(name))
            for name, value in thing.keywords.items()
        }
        return functools.partial(function, *args, **keywords)

    def _cached(self, thing: Any, path: Path) -> Any:
        """A function with a cache runs as it is: eagerly, too, it ran at the first call only."""
        self.recording.guards.identity(path, thing)

        @functools.wraps(thing)
        def function(*args: Any, **kwargs: Any) -> Any:
            why = f"the cache of {path.text}"
            plain = {name: forced(value, why) for name, value in kwargs.items()}
            return thing(*(forced(value, why) for value in args), **plain)

        return function

    # ---- modules and classes ----------------------------------------------------------------

    def _named(self, thing: Any, path: Path) -> Any:
        self.recording.guards.identity(path, thing)
        if thing is np:
            return NUMPY
        if id(thing) in SEEN:
            return SEEN[id(thing)]
        if id(thing) in FUNCTIONS:
            return FUNCTIONS[id(thing)]
        if isinstance(thing, types.ModuleType):
            if thing.__name__.startswith("numpy"):
                return recorded(thing, thing.__name__.removeprefix("numpy."))
            if thing is builtins:
                made = types.ModuleType("builtins")
                vars(made).update(recording_builtins(dict(vars(builtins))))
                return made
            if thing is sys:
                return RecordedSys("sys")
            file = getattr(thing, "__file__", None)
            made_by_hand = file is None and getattr(thing, "__spec__", None) is None
            installed = file is None or is_installed(file)
            if installed and not made_by_hand or thing.__name__.startswith("minigraph"):
                return thing
            return TwinModule(self, thing, path)
        if isinstance(thing, type):
            if thing is type:
                return TypeQuestion
            if thing is super:
                return functools.partial(recording_super, self)
            return self.classes.twin_of(thing, path) if is_rebuildable(thing) else thing
        return recorded(thing, NAME_OF[id(thing)]) if id(thing) in NAME_OF else thing

    # ---- at the end ------------------------------------------------------------------------

    def check_state(self) -> None:
        """Nothing outside was changed while tracing.

        Raises:
            StateError: a global or a cell was assigned.
        """
        for namespace in self._globals.values():
            for name in dict.keys(namespace):
                kept = namespace.cache.get(name, _MISSING)
                if name in _PYTHONS_OWN or dict.__getitem__(namespace, name) is kept:
                    continue  # also `W += x` on an array: it has been changed in place
                raise StateError(
                    f"the global {name} was assigned while tracing",
                    where=self._stored("STORE_GLOBAL", name),
                    instead="return the value, or write into an array that the global names",
                )
        self._check_holders()
        for name, made, seen in self._cells.values():
            self._check_cell(name, made, seen)

    def _check_holders(self) -> None:
        """Objects, containers and buffers hold what they held."""
        for owner, first in self.attributes:
            now: dict[str, Any] = owner if isinstance(owner, dict) else vars(owner)
            if list(now) != list(first) or any(now[key] is not first[key] for key in now):
                raise StateError(
                    "an attribute was assigned while tracing, past the object's own way"
                )
        for seen, thing, path in self._buffers:
            if not same_content(seen, thing):
                raise StateError(f"{path.text} was changed while tracing")
        for _, seen, path in self._seen.values():
            if type(seen) in (FrozenList, FrozenDict, FrozenSet) and seen.changed_:
                raise StateError(f"{path.text} was changed while tracing, past its own methods")

    def _check_cell(self, name: str, made: types.CellType, seen: Any) -> None:
        try:
            now = made.cell_contents
        except ValueError:
            now = _MISSING
        if now is not seen:
            raise StateError(
                f"the nonlocal variable {name} was assigned while tracing",
                where=self._stored("STORE_DEREF", name),
                instead="return the value, or write into an array that the variable names",
            )

    def _stored(self, instruction: str, name: str) -> Loc | None:
        """Where a traced function assigns a global or nonlocal variable."""
        pending = [f.__code__ for f, _, _ in self._seen.values() if hasattr(f, "__code__")]
        while pending:
            code = pending.pop()
            pending.extend(c for c in code.co_consts if isinstance(c, types.CodeType))
            for step in dis.get_instructions(code):
                if step.opname == instruction and step.argval == name:
                    position = step.positions
                    line = position.lineno if position else None
                    return Loc(code.co_filename, line or code.co_firstlineno)
        return None

    _LOOKS: ClassVar[tuple[tuple[Any, Callable[..., Any]], ...]] = (
        (np.ndarray, _array),
        (np.random.Generator, generator),
        (_CONTAINERS, _container),
        ((types.FunctionType, types.BuiltinFunctionType), _function),
        (types.MethodType, _method),
        (functools.partial, _partial),
        (functools._lru_cache_wrapper, _cached),
        ((type, types.ModuleType, np.ufunc), _named),
    )
