"""`from benchmarks import …` works in the tests of this folder.

That package is no part of what is installed, and the repository is not on the path.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"

spec = importlib.util.spec_from_file_location(
    "benchmarks", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
)
assert spec is not None and spec.loader is not None
sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["benchmarks"])
