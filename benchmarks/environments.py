"""One virtual environment per framework: `python -m benchmarks setup`.

The frameworks cannot live in one (MXNet wants an old NumPy), and what one brings along must not
change another.  `requirements/<framework>.txt` pins what goes into each.  An environment counts
from the moment its marker is written, the very last step; without one, or with one for other
requirements or another Python, it is made anew.  So a setup that was interrupted is just started
again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements"
FOLDER = HERE.parent / ".benchmarks" / "environments"
FRAMEWORKS = ("torch", "tensorflow", "jax", "mxnet", "onnxruntime", "pytensor")

NEWEST_PYTHON = {"mxnet": (3, 11)}  # that a framework has wheels for
INDEXES = {"torch": "https://download.pytorch.org/whl/cpu"}  # preferred, where it can be reached
LIMIT_S = 3600  # of one step; pip itself waits and tries again much earlier
LINES_SHOWN = 12  # of the log, of a failure

Told = Callable[[str], None]


class Failure(Exception):
    """An environment that could not be made; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """What became of one environment: "installed", "there already", "failed", "interrupted"."""

    framework: str
    status: str
    detail: str
    took_s: float = 0.0


@dataclass(frozen=True)
class Environment:
    """Where a framework lives, and what makes it complete."""

    framework: str

    @property
    def folder(self) -> Path:
        return FOLDER / self.framework

    @property
    def requirements(self) -> Path:
        return REQUIREMENTS / f"{self.framework}.txt"

    @property
    def log(self) -> Path:
        return FOLDER / f"{self.framework}.log"

    @property
    def marker(self) -> Path:
        return self.folder / "complete.json"

    @property
    def python(self) -> Path:
        inside = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
        return self.folder.joinpath(*inside)

    @property
    def wanted_python(self) -> tuple[int, int]:
        """The Python that runs minigraph, or the newest that the framework has wheels for."""
        here = (sys.version_info[0], sys.version_info[1])
        return min(here, NEWEST_PYTHON.get(self.framework, here))

    def wanted(self) -> dict[str, str]:
        """What a marker has to say."""
        return {
            "requirements": hashlib.sha256(self.requirements.read_bytes()).hexdigest(),
            "python": _dotted(self.wanted_python),
        }

    def packages(self) -> dict[str, str] | None:
        """The versions of all that is installed; None where the environment is not complete."""
        try:
            marker = json.loads(self.marker.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        is_current = all(marker.get(key) == value for key, value in self.wanted().items())
        return marker["packages"] if is_current and self.python.exists() else None

    def summary(self, packages: dict[str, str]) -> str:
        """The versions of what the requirements name."""
        lines = self.requirements.read_text("utf-8").splitlines()
        names = [line.split("==")[0] for line in lines if "==" in line]
        versions = [f"{name} {packages[name]}" for name in names]
        return ", ".join([*versions, f"Python {_dotted(self.wanted_python)}"])


def interpreter(framework: str) -> Path | None:
    """The Python of a framework's environment; None where that is not there or not complete."""
    environment = Environment(framework)
    return environment.python if environment.packages() is not None else None


# ---- making one --------------------------------------------------------------------------------


def make(environment: Environment, tell: Told, index: str | None = None) -> dict[str, str]:
    """Make an environment from nothing, and mark it as complete at the very end.

    Args:
        environment: which.
        tell: is told what is being done.
        index: where to look for packages besides PyPI.

    Returns:
        The versions of what is installed.

    Raises:
        Failure: a step failed.
    """
    tell("removing what was there")
    environment.log.parent.mkdir(parents=True, exist_ok=True)
    environment.log.write_bytes(b"")
    environment.marker.unlink(missing_ok=True)  # before anything of it becomes untrue
    if environment.folder.exists():
        shutil.rmtree(environment.folder)

    tell("making the virtual environment")
    base, python = find_python(environment.wanted_python), str(environment.python)
    _step([base, "-m", "venv", str(environment.folder)], environment, tell)
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    patience = ["--timeout", "60", "--retries", "8"]
    extra = ["--extra-index-url", index] if index else []
    _step([*pip, *patience, *extra, "-r", str(environment.requirements)], environment, tell)
    tell(f"importing {environment.framework}")
    _step([python, "-c", f"import {environment.framework}"], environment, tell)

    packages = _installed(environment)
    marker = {**environment.wanted(), "packages": packages}
    unfinished = environment.marker.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(marker, indent=1, sort_keys=True) + "\n", "utf-8")
    unfinished.replace(environment.marker)
    return packages


def find_python(version: tuple[int, int]) -> str:
    """The path of a Python of that version.

    Raises:
        Failure: there is none.
    """
    dotted = _dotted(version)
    launcher = ["py", f"-{dotted}"] if os.name == "nt" else [f"python{dotted}"]
    for command in ([sys.executable], launcher):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            code = "import sys; print(*sys.version_info[:2], sys.executable)"
            found = subprocess.run(
                [*command, "-c", code], capture_output=True, text=True, check=True, timeout=60
            )
            major, minor, path = found.stdout.strip().split(" ", 2)
            if (int(major), int(minor)) == version:
                return path
    raise Failure(f"it needs Python {dotted}, and there is no {' '.join(launcher)} here")


def preferred_index(framework: str) -> str | None:
    """Where to look besides PyPI; None where there is no such place, or it cannot be reached."""
    index = INDEXES.get(framework)
    return index if index and reachable(index) else None


def reachable(index: str) -> bool:
    try:
        with urllib.request.urlopen(f"{index}/", timeout=15):
            return True
    except OSError:
        return False


def _step(command: Sequence[str], environment: Environment, tell: Told) -> None:
    """Run a command, its output going to the log; tell the log's last line meanwhile."""
    with environment.log.open("ab") as log:
        log.write(f"$ {' '.join(command)}\n".encode())
        log.flush()
        with _ending(
            subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        ) as running:
            give_up = time.monotonic() + LIMIT_S
            while running.poll() is None:
                tell(_last_lines(environment.log, 1))
                if time.monotonic() > give_up:
                    raise Failure(f"no end after {LIMIT_S} s\n{_last_lines(environment.log)}")
                time.sleep(0.1)
    if running.returncode != 0:
        raise Failure(_last_lines(environment.log))


@contextlib.contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block, however that is left."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _last_lines(log: Path, count: int = LINES_SHOWN) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join([line.strip() for line in lines if line.strip()][-count:])


def _installed(environment: Environment) -> dict[str, str]:
    command = [str(environment.python), "-m", "pip", "list", "--format", "json"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    names = {
        re.sub(r"[-_.]+", "-", each["name"]).lower(): each for each in json.loads(found.stdout)
    }
    return {name: each["version"] for name, each in names.items()}


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


# ---- all of them -------------------------------------------------------------------------------


def setup(frameworks: Sequence[str] = FRAMEWORKS, console: Console | None = None) -> int:
    """Make the environments that are not complete; say what became of each.

    Returns:
        The exit code: 0 only where all that were asked for are complete.
    """
    console = console or Console()
    unknown = [name for name in frameworks if name not in FRAMEWORKS]
    if unknown:
        console.print(f"unknown: {', '.join(unknown)}; there are {', '.join(FRAMEWORKS)}")
        return 1
    outcomes = _outcomes(list(dict.fromkeys(frameworks)), console)
    console.print(_table(outcomes))
    for each in outcomes:
        if each.status == "failed":
            log = Environment(each.framework).log
            console.print(f"\n{each.framework}: {each.detail}\nAll of it: {log}", markup=False)
    return int(any(each.status in ("failed", "interrupted") for each in outcomes))


def _outcomes(frameworks: Sequence[str], console: Console) -> list[Outcome]:
    found: list[Outcome] = []
    columns: tuple[Any, ...] = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.fields[framework]:12}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console) as progress:
        try:
            for framework in frameworks:
                task = progress.add_task("", total=1, framework=framework)

                def tell(line: str, task: Any = task) -> None:
                    progress.update(task, description=line[:70])

                found.append(_outcome(Environment(framework), tell))
                progress.update(task, completed=1, description=found[-1].status)
        except KeyboardInterrupt:
            left = frameworks[len(found) :]
            found += [Outcome(name, "interrupted", "run setup again to go on") for name in left]
    return found


def _outcome(environment: Environment, tell: Told) -> Outcome:
    framework, start = environment.framework, time.monotonic()
    packages = environment.packages()
    if packages is not None:
        return Outcome(framework, "there already", environment.summary(packages))
    try:
        index = preferred_index(framework)
        packages = make(environment, tell, index)
    except (Failure, OSError, subprocess.SubprocessError) as error:
        return Outcome(framework, "failed", str(error), time.monotonic() - start)
    took_s = time.monotonic() - start
    detail = environment.summary(packages)
    if framework in INDEXES and index is None:
        detail += f"; from PyPI: {INDEXES[framework]} could not be reached"
    return Outcome(framework, "installed", detail, took_s)


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(title=f"Environments in {FOLDER}", title_justify="left")
    for column in ("framework", "what became of it", "versions, or why not", "took"):
        table.add_column(column)
    for each in outcomes:
        last = each.detail.splitlines()[-1:] or [""]
        took = f"{each.took_s:.0f} s" if each.took_s else ""
        table.add_row(each.framework, each.status, last[0], took)
    return table
