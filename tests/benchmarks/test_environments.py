"""Setup with a Python that only pretends: nothing is installed, and no network is asked."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import environments
from benchmarks.environments import FRAMEWORKS, Environment, Failure, find_python, interpreter

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the Python that pretends is a script")

PRETENDER = """#!PYTHON -IS
import pathlib, shutil, sys, time
here, state, words = pathlib.Path(__file__).resolve(), pathlib.Path("STATE"), sys.argv[1:]
with (state / "calls").open("a") as calls:
    print(*words, file=calls)
does = (state / "does").read_text()
if words[:2] == ["-m", "venv"]:
    (pathlib.Path(words[2]) / "bin").mkdir(parents=True)
    shutil.copy(here, pathlib.Path(words[2]) / "bin" / "python")
elif words[:3] == ["-m", "pip", "install"]:
    print("Collecting it", flush=True)
    if does == "fail":
        sys.exit("ERROR: no matching distribution for it")
    if does == "hang":
        time.sleep(600)
elif words[:3] == ["-m", "pip", "list"]:
    print('[{"name": "Jax_Lib", "version": "1.0"}, {"name": "numpy", "version": "2.0"}]')
elif words[0] == "-c" and does == "broken":
    sys.exit("ImportError: it cannot be imported")
"""


class Place:
    """Folders of a test, and what the pretender is to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requirements = folder / "requirements"
        self.requirements.mkdir()
        for name in FRAMEWORKS:
            self.require(name, "# pinned\njax-lib==1.0\nnumpy==2.0\n")
        self.python = folder / "pretender"
        script = PRETENDER.replace("PYTHON", sys.executable).replace("STATE", str(folder))
        self.python.write_text(script)
        self.python.chmod(0o755)
        self.does("install")

    def require(self, name: str, text: str) -> None:
        (self.requirements / f"{name}.txt").write_text(text)

    def does(self, what: str) -> None:
        (self.folder / "does").write_text(what)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def setup(self, *names: str) -> tuple[int, str]:
        (self.folder / "calls").unlink(missing_ok=True)
        said = io.StringIO()
        status = environments.setup(names, Console(file=said, width=200))
        return status, said.getvalue()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    found = Place(tmp_path)
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "environments")
    monkeypatch.setattr(environments, "REQUIREMENTS", found.requirements)
    monkeypatch.setattr(environments, "find_python", lambda version: str(found.python))
    monkeypatch.setattr(environments, "reachable", lambda index: False)
    return found


def test_an_environment_is_made_and_found(place: Place):
    assert interpreter("jax") is None
    status, said = place.setup("jax")
    assert status == 0 and "installed" in said and "jax-lib 1.0, numpy 2.0, Python 3." in said
    assert interpreter("jax") == Environment("jax").python
    assert Environment("jax").packages() == {"jax-lib": "1.0", "numpy": "2.0"}
    assert interpreter("torch") is None
    assert [line for line in place.calls if line.startswith("-c")] == ["-c import jax"]


def test_what_is_there_is_left_as_it_is(place: Place):
    place.setup("jax")
    status, said = place.setup("jax")
    assert status == 0 and "there already" in said and place.calls == []


@pytest.mark.parametrize("what", ["requirements", "Python", "marker", "interpreter"])
def test_what_no_longer_fits_is_made_anew(place: Place, what: str, monkeypatch: pytest.MonkeyPatch):
    place.setup("jax")
    environment = Environment("jax")
    (environment.folder / "leftover").touch()
    if what == "requirements":
        place.require("jax", "jax-lib==1.0\n")
    elif what == "Python":
        monkeypatch.setitem(environments.NEWEST_PYTHON, "jax", (3, 1))
    elif what == "marker":
        environment.marker.write_text(environment.marker.read_text()[:-20])
    else:
        environment.python.unlink()
    assert interpreter("jax") is None
    status, said = place.setup("jax")
    assert status == 0 and "installed" in said and interpreter("jax") is not None
    assert not (environment.folder / "leftover").exists()


def test_a_failure_costs_only_its_own_environment(place: Place):
    place.setup("jax")
    place.does("fail")
    status, said = place.setup("torch", "jax")
    assert status == 1 and "failed" in said and "there already" in said
    assert "Collecting it" in said and "no matching distribution" in said
    assert str(Environment("torch").log) in said.replace("\n", "")
    assert interpreter("torch") is None and interpreter("jax") is not None
    place.does("install")
    assert place.setup("torch")[0] == 0 and interpreter("torch") is not None


def test_a_failed_renewal_leaves_nothing_that_counts(place: Place):
    place.setup("jax")
    place.require("jax", "numpy==2.0\n")
    place.does("fail")
    place.setup("jax")
    place.require("jax", "# pinned\njax-lib==1.0\nnumpy==2.0\n")
    assert interpreter("jax") is None


def test_what_cannot_be_imported_is_not_complete(place: Place):
    place.does("broken")
    status, said = place.setup("jax")
    assert status == 1 and "cannot be imported" in said and interpreter("jax") is None


def test_an_interrupt_marks_nothing_and_ends_pip(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.does("hang")
    started: list[environments.subprocess.Popen[bytes]] = []
    popen = environments.subprocess.Popen

    def starting(*arguments: object, **options: object) -> object:
        started.append(popen(*arguments, **options))
        return started[-1]

    def interrupt(seconds: float) -> None:
        if "Collecting" in Environment("torch").log.read_text():
            raise KeyboardInterrupt

    monkeypatch.setattr(environments.subprocess, "Popen", starting)
    monkeypatch.setattr(environments.time, "sleep", interrupt)
    status, said = place.setup("torch", "jax")
    assert status == 1 and said.count("interrupted") >= 2
    assert interpreter("torch") is None and all(each.poll() is not None for each in started)
    assert not any("jax" in line for line in place.calls)


def test_a_step_without_end_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.does("hang")
    monkeypatch.setattr(environments, "LIMIT_S", 0.5)
    status, said = place.setup("jax")
    assert status == 1 and "no end after" in said


def test_torch_is_looked_for_among_the_builds_for_cpus_first(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    _, said = place.setup("torch")
    assert not any("--extra-index-url" in line for line in place.calls)
    assert "from PyPI" in said and "could not be reached" in said
    Environment("torch").marker.unlink()
    monkeypatch.setattr(environments, "reachable", lambda index: True)
    _, said = place.setup("torch", "jax")
    assert "from PyPI" not in said
    (found,) = [line for line in place.calls if "--extra-index-url" in line]
    assert "https://download.pytorch.org/whl/cpu" in found and "torch.txt" in found


def test_a_name_that_is_none_is_refused(place: Place):
    status, said = place.setup("torch", "numpy")
    assert status == 1 and "unknown: numpy" in said and place.calls == []


def test_mxnet_has_the_newest_python_that_it_can(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(environments.sys, "version_info", (3, 13, 0))
    assert Environment("mxnet").wanted_python == (3, 11)
    assert Environment("torch").wanted_python == (3, 13)


def test_a_python_is_found_or_missed_by_name():
    version = sys.version_info[:2]
    assert Path(find_python(version)).exists()
    with pytest.raises(Failure, match="needs Python 3.1, and there is no python3.1 here"):
        find_python((3, 1))


def test_each_framework_is_pinned():
    for name in FRAMEWORKS:
        lines = Environment(name).requirements.read_text().splitlines()
        pinned = [line for line in lines if line and not line.startswith("#")]
        assert pinned and all(line.count("==") == 1 for line in pinned)
        assert any(line.startswith("numpy==") for line in pinned)


def test_the_marker_says_what_was_installed(place: Place):
    place.setup("jax")
    marker = json.loads(Environment("jax").marker.read_text())
    assert marker["packages"] == {"jax-lib": "1.0", "numpy": "2.0"}
    assert set(marker) == {"packages", "python", "requirements"}
