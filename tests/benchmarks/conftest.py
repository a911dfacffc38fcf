"""`from benchmarks import …` works in the tests of this folder.

That package is no part of what is installed, and the repository is not on the path.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"

spec = importlib.util.spec_from_file_location(
    "benchmarks", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
)
assert spec is not None and spec.loader is not None
sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["benchmarks"])


@pytest.fixture(autouse=True, scope="module")
def _path_of_processes() -> Iterator[None]:
    """Processes of these tests find it as users do, who stand in the repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FOLDER.parent))
        yield
