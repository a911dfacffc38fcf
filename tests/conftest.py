"""What all tests share. Helper modules in this folder are imported by their bare name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first call of an example compiles, the next ones do not.
settings.register_profile("here", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def package_folder() -> Path:
    """The folder of the `minigraph` under test, found without importing it."""
    spec = find_spec("minigraph")
    assert spec is not None and spec.submodule_search_locations, "minigraph is not installed"
    return Path(next(iter(spec.submodule_search_locations))).resolve()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long ones first, so that of several processes none works alone at the end."""
    items.sort(key=lambda item: "for_many" not in item.name)


def pytest_report_header() -> str:
    return f"minigraph: {package_folder()}"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled code goes to a folder of this run, not to the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def default_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mg.jit` compiles to Python, at once; the tests of the Numba backend override this."""
    from minigraph import backends

    monkeypatch.setattr(backends, "AUTO", ("python",))


@pytest.fixture
def fresh_process() -> Callable[..., str]:
    """A function that runs Python source in a new process, with the same `minigraph` on its path.

    It returns what the source printed; `first` are folders to search before all others.
    """

    def run(source: str, *, first: tuple[Path, ...] = ()) -> str:
        path = os.pathsep.join(str(folder) for folder in (*first, package_folder().parent))
        done = subprocess.run(
            [sys.executable, "-c", source],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
