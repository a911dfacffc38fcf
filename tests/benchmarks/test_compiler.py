"""What the compiler costs is measured, on tiny sizes; how long it takes is not asked here."""

from __future__ import annotations

import pytest

from benchmarks.compiler import core, costs


def test_every_row_is_measured():
    rows = [
        core.call_overhead(calls=10, rounds=2),
        core.compilation(nodes=20, rounds=2),
        core.long_chain(small=20, factor=3, rounds=1),
        core.text_form(small=20, factor=3, rounds=1),
        core.importing(rounds=1),
        costs.guard(rounds=2, sample_s=1e-5),
        costs.peak_memory(rounds=1, size=1 << 20),
        *costs.first_calls(rounds=1),
        *costs.activations(layers=3, width=32),
        costs.drawing(layers=1, rounds=1),
        costs.large_drawing(nodes=20, rounds=1),
    ]
    assert all(row.found > 0 for row in rows)
    printed = costs.table(rows)
    assert all(row.what in printed for row in rows)
    assert str(core.np.__version__) in printed


@pytest.mark.parametrize(
    ("compared", "bound"), [("ratio", 3.0), ("difference", 2.0), ("value", 3.0)]
)
def test_the_verdict_follows_the_bound(compared: str, bound: float):
    assert core.Row("it", 1.0, 3.0, compared, bound).holds
    assert not core.Row("it", 1.0, 3.0, compared, 0.97 * bound).holds


def test_durations_and_bytes_have_units():
    seconds = core.Row("it", 0.0123, 2.5, "difference", 3e-6)
    assert seconds.cells() == (
        *("it", "12.3 ms", "2.5 s", "203.25", "difference", "2.49 s", "3 µs", "NO"),
    )
    memory = core.Row("it", 2e6, 1e6, "ratio", 0.6, unit="byte")
    assert memory.cells() == ("it", "2.0 MB", "1.0 MB", "0.50", "ratio", "0.50", "0.60", "yes")
    assert core.Row("it", 0.0, 1e-3, "value", 1.0).cells()[1] == "-"


def test_a_program_that_fails_is_told():
    with pytest.raises(RuntimeError, match="a process ended with status 1. the reason"):
        costs._child("import sys; sys.exit('a line\\nthe reason')", cache="")
