"""Backends: from a graph and its plan to a program that runs.

Each file (or folder) here that has `available`, `emit` and `load` is one, under its file's name:

    available() -> None, or why it cannot run here
    emit(graph, plan, settings) -> Program, as the user chose
    load(program) -> callable(*flat inputs) -> tuple of flat outputs

One may have

    LOWERING: the passes that it wants after all others

and one that fuses has this and also

    cannot_fuse(node, numbers, settings) -> why it cannot compute the node in a kernel, or ""
    views(program) -> further texts to show, each by name as a function that makes it
    explain(program) -> lines on what it does how
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from minigraph.errors import OptionError, unknown
from minigraph.ir import Graph, Node, Plan
from minigraph.ops import Numbers

from .names import Identifiers, identifier
from .program import Program, explain_failure
from .settings import DEFAULT_SETTINGS, Settings, cache_folder
from .threads import get_num_threads, run_together, set_num_threads, start

AUTO = ("numba", "python")
"""What "auto" tries, in this order."""


class Backend(Protocol):
    """What a backend's module offers."""

    def available(self) -> str | None: ...
    def emit(self, graph: Graph, plan: Plan | None = None, settings: Settings = ...) -> Program: ...
    def load(self, program: Program) -> Callable[..., tuple[Any, ...]]: ...


@runtime_checkable
class FusingBackend(Backend, Protocol):
    """What the module of a backend that fuses offers besides."""

    LOWERING: Sequence[str]

    def cannot_fuse(self, node: Node, numbers: Numbers, settings: Settings) -> str: ...
    def views(self, program: Program) -> Mapping[str, Callable[[], str]]: ...
    def explain(self, program: Program) -> list[str]: ...


def _found() -> dict[str, Backend]:
    modules = {
        entry.name: importlib.import_module(f"{__name__}.{entry.name}")
        for entry in pkgutil.iter_modules(__path__)
    }
    wanted = ("available", "emit", "load")
    return {
        name: cast(Backend, module)
        for name, module in sorted(modules.items())
        if all(hasattr(module, function) for function in wanted)
    }


BACKENDS = _found()


def names() -> list[str]:
    """The names of all backends, "auto" not among them."""
    return list(BACKENDS)


def availability() -> dict[str, str | None]:
    """For each backend None, or why it cannot run here."""
    return {name: backend.available() for name, backend in BACKENDS.items()}


def resolve(name: str) -> str:
    """The name of the backend that `name` means: "auto" is the fastest that runs here."""
    if name != "auto":
        return name
    return next(each for each in AUTO if each in BACKENDS and not BACKENDS[each].available())


def why(name: str) -> str:
    """Why the backend that `name` means was taken."""
    if name != "auto":
        return "asked for"
    reasons = {each: BACKENDS[each].available() for each in AUTO if each in BACKENDS}
    others = [f"{each} cannot run here: {reason}" for each, reason in reasons.items() if reason]
    return "; ".join(others) or "the fastest that runs here"


def get(name: str = "auto") -> Backend:
    """The backend of that name.

    Raises:
        OptionError: there is none, or it cannot run here.
    """
    backend = BACKENDS.get(resolve(name)) if isinstance(name, str) else None
    if backend is None:
        raise unknown("backend", name, ["auto", *BACKENDS])
    reason = backend.available()
    if reason is not None:
        raise OptionError(f"the backend {name!r} cannot run here: {reason}", instead='"auto"')
    return backend
