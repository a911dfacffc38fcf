"""The benchmark runs, on tiny sizes; how long it takes is not asked here."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from docs.pages import REPOSITORY


@pytest.fixture(scope="module")
def core() -> ModuleType:
    path = REPOSITORY / "benchmarks" / "core.py"
    spec = importlib.util.spec_from_file_location("benchmarks_core", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_row_is_measured(core: ModuleType):
    rows = [
        core.call_overhead(calls=10, rounds=2),
        core.compilation(nodes=20, rounds=2),
        core.long_chain(small=20, factor=3, rounds=1),
        core.importing(rounds=1),
    ]
    assert all(row.found_s > 0 for row in rows)
    lines = core.table(rows).splitlines()
    assert len(lines) == 2 + len(rows) and len(set(map(len, lines))) == 1
    assert str(core.np.__version__) in core.machine()


def test_the_verdict_follows_the_bound(core: ModuleType):
    def holds(compared: str, bound: float) -> bool:
        return core.Row("it", 1.0, 3.0, compared, bound).holds

    assert holds("ratio", 3.0) and not holds("ratio", 2.9)
    assert holds("difference", 2.0) and not holds("difference", 1.9)
    assert holds("time", 3.0) and not holds("time", 2.9)


@pytest.mark.parametrize(
    ("wall_s", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (3.21e-6, "3.21 µs"), (0, "0 µs")]
)
def test_durations_have_units(core: ModuleType, wall_s: float, text: str):
    assert core.seconds(wall_s) == text
