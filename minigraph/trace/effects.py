"""What has effects while tracing: random generators, and `print`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import (
    UnsupportedError,
)
from minigraph.ir import GENERATOR, Value

from .arrays import TracedArray, record
from .calls import store_out
from .operands import Traced
from .recording import Recording, current
from .text import TracedText, words


class TracedGenerator(Traced):
    """A `np.random.Generator` whose draws are recorded, in order."""

    __slots__ = ("value_",)

    def __init__(self, recording: Recording, value: Value) -> None:
        assert value.type is GENERATOR
        self.recording_ = recording
        self.value_ = value

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return np.random.Generator

    def __getattr__(self, name: str) -> Any:
        if not hasattr(np.random.Generator, name):
            raise AttributeError(f"'Generator' object has no attribute '{name}'")
        if name in ops.DRAWS_IN_PLACE:
            return self._in_place(name)
        if name not in ops.DRAWS:
            raise UnsupportedError(
                f"Generator.{name} is not recorded",
                where=self.recording_.here(),
                instead="one of " + ", ".join(sorted(ops.DRAWS)),
            )

        def method(*args: Any, **kwargs: Any) -> Any:
            out = kwargs.pop("out", None)
            if isinstance(out, TracedArray):
                kwargs.setdefault("size", out.shape)
                dtype = np.dtype(kwargs.get("dtype", float))
                if dtype != out.dtype:
                    raise TypeError(f"Supplied output array has the wrong type. Expected {dtype}")
            inputs, attrs = ops.DRAWS[name](self, *args, **kwargs)
            result = record(ops.get("draw"), inputs, attrs, self.recording_)
            return store_out(self.recording_, out, result)

        return method

    def _in_place(self, name: str) -> Callable[..., None]:
        """A method that changes its argument: the draw gives the new contents."""

        def method(x: Any, *args: Any, **kwargs: Any) -> None:
            if not isinstance(x, TracedArray):
                raise UnsupportedError(
                    f"Generator.{name} is recorded for arrays only", where=self.recording_.here()
                )
            inputs, attrs = ops.DRAWS_IN_PLACE[name](self, x, *args, **kwargs)
            x[...] = record(ops.get("draw"), inputs, attrs, self.recording_)

        return method


def record_print(
    *args: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = None
) -> None:
    """`print` while tracing: an effect of the program."""
    recording = current()
    if recording.prints:
        symbols = [_symbol(arg) if isinstance(arg, Traced) else arg for arg in args]
        return print(*symbols, sep=sep, end=end, file=file, flush=bool(flush))
    if any(isinstance(between, TracedText) for between in (sep, end)):
        raise UnsupportedError(
            "what print writes between and after has to be known", where=recording.here()
        )
    attrs: dict[str, Any] = {}
    file = getattr(file, "stream_", file)
    if (sys.stdout, sys.stderr) != recording.streams:
        raise UnsupportedError(
            "print inside of a redirection that was made while tracing is not recorded",
            where=recording.here(),
            instead="contextlib.redirect_stdout around the call of the function",
        )
    if file is not None and file is not sys.stdout:
        if file is not sys.stderr:
            raise UnsupportedError(
                "print(file=...) is recorded for sys.stdout and sys.stderr only",
                where=recording.here(),
            )
        attrs["file"] = "stderr"
    if sep is not None and sep != " ":
        attrs["sep"] = str(sep)
    if end is not None and end != "\n":
        attrs["end"] = str(end)
    parts, values = words(recording, args)
    recording.emit(ops.get("print"), values, {"parts": parts, **attrs})


def _symbol(thing: Any) -> str:
    """What `print` shows of a traced value where it prints while tracing."""
    value: Value = thing.value_
    return f"<Symbol {value.name}: {value.type}>"
