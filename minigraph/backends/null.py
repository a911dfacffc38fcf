"""Runs nothing: for testing the compiler alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigraph.errors import OptionError
from minigraph.ir import Graph, Plan

from .names import identifier
from .program import Program
from .settings import DEFAULT_SETTINGS, Settings


def available() -> str | None:
    """Why this backend cannot run here: it always can emit."""
    return None


def emit(graph: Graph, plan: Plan | None = None, settings: Settings = DEFAULT_SETTINGS) -> Program:
    """A program without a text."""
    return Program(identifier(graph.name), "", (), {}, graph, plan)


def load(program: Program) -> Callable[..., tuple[Any, ...]]:
    """Nothing to load.

    Raises:
        OptionError: always.
    """
    raise OptionError(
        f"the null backend compiles and runs nothing ({program.name})", instead='backend="python"'
    )
