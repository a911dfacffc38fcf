"""The builtins as traced code sees them."""

from __future__ import annotations

import functools
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from minigraph.errors import StateError

from .called import CALLED, FUNCTIONS, MARK
from .calls import NUMPY
from .effects import record_print
from .paths import Path
from .recording import current
from .twins import SuperTwin, original

if TYPE_CHECKING:
    from .reach import Reach


def recording_builtins(names: dict[str, Any]) -> dict[str, Any]:
    """The builtins as traced code sees them."""
    recorded = {name: FUNCTIONS[id(x)] for name, x in names.items() if id(x) in FUNCTIONS}
    called = {name + MARK: CALLED[id(x)] for name, x in names.items() if id(x) in CALLED}
    return {
        **names,
        **recorded,
        **called,
        "print": record_print,
        "type": TypeQuestion,
        "__import__": functools.partial(_recording_import, names["__import__"]),
    }


def _recording_import(importer: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """`import` in traced code gives what a global of that module would be."""
    found = importer(name, *args, **kwargs)
    reach = current().reach
    if reach is None:
        if found is sys:
            return RecordedSys("sys")
        return NUMPY if found is np else FUNCTIONS.get(id(found), found)
    return reach.see(found, Path.of_object(found, name))


class RecordedStream:
    """`sys.stdout` in traced code: what is written to it is printed by the program."""

    def __init__(self, stream: Any) -> None:
        self.stream_ = stream

    def write(self, text: str) -> int:
        record_print(text, end="", file=self.stream_)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Printing does not wait."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream_, name)


class RecordedSys(types.ModuleType):
    """The module `sys` in traced code."""

    def __getattribute__(self, name: str) -> Any:
        found = getattr(sys, name)
        return RecordedStream(found) if name in ("stdout", "stderr") else found

    def __setattr__(self, name: str, value: Any) -> None:
        if current().reach is None and name not in ("stdout", "stderr"):
            return setattr(sys, name, value)  # a program runs once
        raise StateError(
            f"sys.{name} was assigned while tracing",
            where=current().here(),
            instead=f"assign sys.{name} outside of the traced code",
        )


class _TypeMeta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return type(*args, **kwargs)
        reach = current().reach
        return args[0].__class__ if reach is None else reach.classes.seen_class(args[0])

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, type)


class TypeQuestion(metaclass=_TypeMeta):
    """`type` in traced code: `type(x)` of a traced value is the class that it stands for."""


def recording_super(reach: Reach, *args: Any) -> Any:
    """`super()` in traced code: the parents' methods are rebuilt too."""
    if not args:
        frame = sys._getframe(1)
        code = frame.f_code
        owner = frame.f_locals["__class__"]
        args = (owner, frame.f_locals[code.co_varnames[0]])
    owner, instance = original(args[0]), args[1]
    return SuperTwin(reach, super(owner, instance), instance)
