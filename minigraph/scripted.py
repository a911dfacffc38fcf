"""Script: Python's `if`, `while` and `for` that depend on data become part of the graph.

    @mg.script
    def collatz(n):
        turns = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            turns += 1
        return turns

A scripted function is a jitted one whose code, and that of the functions it calls, is converted
before it is traced (`trace/script/`).  `print(mg.to_code(collatz))` shows what runs.
"""

from __future__ import annotations

import functools
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from minigraph.engine import Options
from minigraph.errors import ConcreteValueError, OptionError, unknown
from minigraph.ir import Graph
from minigraph.jit import BoundJit, HybridFunction, JitFunction
from minigraph.passes import optimize
from minigraph.trace import (
    ACTIVE,
    converted,
    forced,
    original,
    record_python_call,
    structure_of,
    to_text,
)


class _Scripted:
    """What scripted functions and blocks show of themselves."""

    script = True
    _last: Callable[[], Any]
    lower: Callable[..., Any]
    name: str

    @property
    def graph(self) -> Graph:
        """The graph of the newest entry as it was traced."""
        return self._last().trace.graph

    @property
    def inlined_graph(self) -> Graph:
        """The same with its groups of nodes opened; loops and branches stay."""
        return optimize(self.graph, ("inline",)).graph

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that runs for these arguments, optimised."""
        return self.lower(*args, **kwargs).graph()

    @property
    def code(self) -> str:
        """The converted function as Python; what `mg.to_code` gives."""
        return to_code(self)

    @property
    def schema(self) -> str:
        """Parameters and results of the newest entry, with their types."""
        graph = self.graph
        params = ", ".join(f"{value.name}: {value.type}" for value in graph.inputs)
        results = ", ".join(str(value.type) for value in graph.outputs)
        several = len(graph.outputs) != 1
        return f"{self.name}({params}) -> {f'({results})' if several else results}"


class ScriptFunction(_Scripted, JitFunction):  # type: ignore[misc]  # `graph` is an attribute here
    """A function that is converted, traced and compiled at its first call of each signature."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        active = ACTIVE.get()
        if active is not None and active.reach is not None:
            function = active.reach.scripted(function)
        super().__init__(function, options)
        code = _code_of(function)
        if code is not None and active is None:  # what a program defines was converted with it
            converted(code)  # while the caller holds the text; and what is refused is refused now

    def __repr__(self) -> str:
        return f"<scripted {self.__qualname__}, {len(self.cache_info())} entries>"


class ScriptBlock(_Scripted, HybridFunction):  # type: ignore[misc]  # `graph` is an attribute here
    """A block that runs converted, traced and compiled; its attributes are those of the block."""

    def __getattr__(self, name: str) -> Any:
        if name == "block":
            raise AttributeError(name)
        found = getattr(self.block, name)
        if getattr(found, "exported_", False):
            return script(found)
        return found

    def __repr__(self) -> str:
        return f"<scripted {self.name}, {len(self.cache_info())} entries>"


def script(function: Any = None, **options: Any) -> Any:
    """Compile a function or a block; `if`, `while` and `for` on data become part of the graph.

    What is compiled shows itself by attributes, as `.graph` of the newest entry, `.inlined_graph`,
    `.code` and `.schema`; `.graph_for(*args)` is the optimised graph.  Of what `mg.jit` makes,
    `.graph()` is a method.

    Args:
        function: a function, method or lambda whose text can be found, or a block.
        **options: those of `mg.jit`; of a block also `on_stale`.

    Raises:
        ScriptError: something in it is not converted: file, line, and what to write.
        SourceError: its text is not to be found.
        OptionError: an unknown option (with the nearest).
    """
    if function is None:
        return functools.partial(script, **options)
    if getattr(type(function), "traced_block_", False):
        return ScriptBlock(function, options)
    for name in options:
        if name not in Options.NAMES:
            raise unknown("option", name, Options.NAMES)
    if isinstance(function, BoundJit):
        function = function.traced_function_()
    if isinstance(function, JitFunction):
        function = function.function
    if not callable(function) or isinstance(function, type):
        raise OptionError(f"script takes a function or a block, not {function!r}")
    return ScriptFunction(function, Options(options))


def to_code(function: Any) -> str:
    """The converted function as Python, each line with the line of the text that it comes from.

    Args:
        function: a function, method, lambda or block, scripted or not.

    Raises:
        ScriptError, SourceError: as for `mg.script`.
    """
    if isinstance(function, HybridFunction):
        function = function.block
    code = _code_of(function)
    if code is None:
        raise OptionError(f"{function!r} is no Python function, so it has no code to convert")
    return to_text(code)


def _code_of(function: Any) -> types.CodeType | None:
    """The code behind a callable, if it is Python."""
    if getattr(type(function), "traced_block_", False):
        hybrid = getattr(type(function), "hybrid_", False)
        function = type(function).hybrid_forward if hybrid else type(function).forward
    while True:
        if isinstance(function, types.FunctionType):
            return function.__code__
        if isinstance(function, JitFunction):
            function = function.function
        elif isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__func__"):
            function = function.__func__
        else:
            function = vars(type(function)).get("__call__")
            if not isinstance(function, types.FunctionType):  # of what is written in C, it has one
                return None


# ---- what is left out ----------------------------------------------------------------------------


class _Marked(ABC):
    """A function with a mark for the tracer; outside of traces it is the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ACTIVE.get() is None:
            return self.function(*args, **kwargs)
        return self.traced(*args, **kwargs)

    @abstractmethod
    def traced(self, *args: Any, **kwargs: Any) -> Any:
        """A call while tracing."""


class _Ignored(_Marked):
    """Runs while tracing or, if what it returns is said, as part of the program."""

    def __init__(self, function: Callable[..., Any], returns: Any) -> None:
        super().__init__(function)
        self.returns = returns

    def traced(self, *args: Any, **kwargs: Any) -> Any:
        if self.returns is not _NOT_SAID:
            return record_python_call(self.function, self.returns, args, kwargs)
        name = self.function.__name__
        why = f"{name}, which is marked with mg.ignore and runs in Python while tracing,"
        try:
            plain = {key: _plain(value, why) for key, value in kwargs.items()}
            return self.function(*(_plain(value, why) for value in args), **plain)
        except ConcreteValueError as error:
            error.instead = "say what it returns: mg.ignore(returns=...); or leave mg.ignore out"
            raise


class _Unused(_Marked):
    def traced(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.function.__name__} is marked with mg.unused, and was called")


def _plain(thing: Any, why: str) -> Any:
    """An argument as Python knows it, with all that is inside."""
    if type(thing) in (list, tuple):
        return type(thing)(_plain(each, why) for each in thing)
    if type(thing) is dict:
        return {key: _plain(each, why) for key, each in thing.items()}
    return original(forced(thing, why))


_NOT_SAID: Any = object()


def ignore(function: Any = None, *, returns: Any = _NOT_SAID) -> Any:
    """Leave a function out of graphs: it stays a Python function.

        @mg.ignore(returns=mg.Spec((3,), "float64"))
        def measure(x): ...

    With `returns` each run of the program calls it, in order with what else the program does.  It
    gets copies of arrays, which it cannot write, and what it returns is copied and has to be as
    said; no gradient flows through it.  Without, it runs once while tracing: it is given the
    numbers themselves, so they have to be known then, and what it returns is a constant of the
    program.  Outside of traces it is the function as it was.

    Args:
        function: the function; none: what is returned is a decorator.
        returns: what it returns: a `Spec`, `bool`, `int`, `float`, `complex` or None, or a tuple,
            list or dict of such; or a function that gives this from `Spec`s of the arguments (of a
            number its class): `lambda x: mg.Spec(x.shape, x.dtype)`.

    Raises:
        OptionError: `returns` is something else.
    """
    if function is None:
        return functools.partial(ignore, returns=returns)
    if returns is not _NOT_SAID and (isinstance(returns, type) or not callable(returns)):
        structure_of(returns)
    return _Ignored(function, returns)


def unused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that compiled code never comes to: there it raises RuntimeError."""
    return _Unused(function)


def export(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a block, besides `forward`, that `mg.script(block)` compiles too."""
    function.exported_ = True  # type: ignore[attr-defined]
    return function


def is_scripting() -> bool:
    """Converted code is running: True in what `mg.script` compiles, False in plain Python."""
    active = ACTIVE.get()
    return active is not None and active.script
