"""The command in a new process, and what the fixtures of `conftest.py` are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click.testing

import minigraph

Command = Callable[..., click.testing.Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]

COMMAND = (sys.executable, "-m", "minigraph")
TELLS_ABOUT_COLOUR = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS")


def new_process(
    *arguments: str, input: str = "", env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; `env` is added to the environment."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=input,
        env=environment(env or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


def start_process(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the command."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def environment(added: dict[str, str]) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if key not in TELLS_ABOUT_COLOUR}
    package = str(Path(minigraph.__file__).parents[1])
    return {**clean, "PYTHONPATH": package, "PYTHONIOENCODING": "utf-8", **added}
