"""Tables say what is in the results, and nothing else."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from typing import Any

import pytest
from benchmark_results import NUMPY, OURS, TORCH, Document, cell, document, read, runner, workload
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.reporting import tables, verdicts
from benchmarks.reporting.grids import TONES, Entry, Grid, Notes, Report, as_markdown
from benchmarks.reporting.verdicts import Ratio
from minigraph.measuring import Statistics, duration


def printed(found: Report, width: int = 200) -> str:
    file = io.StringIO()
    Console(width=width, color_system=None, file=file).print(found)
    return file.getvalue()


def line_of(text: str, beginning: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(beginning))


def both(known: Document) -> tuple[str, str]:
    results = read(known)
    markdown = f"{tables.heading(results)}\n\n{tables.markdown(results)}"
    return printed(tables.terminal(results)), markdown


# ---- what is said ------------------------------------------------------------------------------


def test_a_gain_a_loss_and_no_gain_are_told_alike():
    known = document(
        [
            cell("a", OURS, 1e-6),
            cell("a", NUMPY, 4e-6),
            cell("b", OURS, 3e-6),
            cell("b", NUMPY, 2e-6),
            cell("c", OURS, 1e-6, spread=0.2),
            cell("c", NUMPY, 1.1e-6, spread=0.2),
        ]
    )
    results = read(known)
    terminal, markdown = both(known)
    assert "1 µs" in line_of(terminal, "the work a") and "0.25  " in line_of(terminal, "the work a")
    for name, verdict in (("a", "won"), ("b", "lost"), ("c", "no gain")):
        assert verdict in line_of(terminal, f"the work {name}")
    assert "Of 3 workloads: won 1, lost 1, no gain 1, not compared 0." in terminal
    assert "| the work a | 1 µs | 0.25 |" in markdown
    assert "| the work b | 3 µs | **1.50** |" in markdown
    assert "| the work c | 1 µs~ | 0.91=~ |" in markdown
    assert "| NumPy | 1 / 1 / 1 |" in markdown
    rows = tables.Columns(results, ["a", "b", "c"], [NUMPY]).times("").rows
    assert [row[0].tone for _, row in rows] == ["gain", "loss", ""]
    assert [row[0].text for _, row in rows] == ["4 µs ×4.00", "2 µs ×0.67", "1.1 µs~ ×1.10="]


def test_what_was_not_measured_is_said_in_words_with_the_reason():
    statuses = ("wrong", "crashed", "timed out", "not written", "missing", "not reached")
    cells = [cell("a", OURS, 1e-3), cell("b", OURS, 1e-3)]
    for status in statuses:
        cells.append(cell("a", f"torch {status}", None, status=status, message=f"for\n {status}"))
        cells.append(cell("b", f"torch {status}", 2e-3))
    known = document(cells)
    terminal, markdown = both(known)
    row = line_of(terminal[terminal.index("Inference: medians") :], "the work a")
    for status in statuses:
        assert re.search(rf"{status} \[\d\]", row), status
        assert f"] for {status}" in terminal
        if status != "not written":
            assert re.search(rf"{status} \[\d\]", markdown) and f"] for {status}" in markdown


def test_a_column_without_anything_is_named_below():
    known = document(
        [
            cell("a", OURS, 1e-3),
            cell("a", "JAX jit", None, status="missing"),
            cell("a", TORCH, None, message="nobody has written it"),
        ],
        runners={"JAX jit": runner("JAX jit", missing="No module named 'jax'")},
    )
    for text in both(known):
        assert "No column of JAX jit: missing, No module named 'jax'." in text.replace("\\", "")
        assert "No column of torch eager: not written for any of these." in text


def test_kinds_are_apart():
    kinds = ("inference", "training", "loop")
    known = document(
        [cell(kind, column, 1e-3) for kind in kinds for column in (OURS, NUMPY)],
        {kind: workload(kind, kind=kind) for kind in kinds},
    )
    terminal, markdown = both(known)
    for title in ("Inference", "Training", "Loops of numbers"):
        assert f"{title}: {OURS} against the fastest other" in terminal
        assert f"### {title}\n" in markdown


def test_columns_that_leave_something_out_are_in_no_table():
    known = document([cell("a", OURS, 1e-3), cell("a", f"{OURS} without fusion", 2e-3)])
    assert not any("without fusion" in text for text in both(known))


def test_only_another_runner():
    for text in both(document([cell("a", NUMPY, 1e-3)])):
        assert "1 ms" in text and "minigraph numba" not in text


@pytest.mark.parametrize("cells", [[], [cell("a", OURS, None, status="missing")]])
def test_nothing_was_measured(cells: list[Document]):
    for text in both(document(cells)):
        assert text.startswith("Measured") and "nan" not in text.lower()


def test_workloads_whose_turn_did_not_come_are_named_once():
    late = cell("b", OURS, None, status="not reached", message="no time left")
    never = cell("b", TORCH, None, status="missing")
    known = document([cell("a", OURS, 1e-3), cell("a", NUMPY, None, status="wrong"), late, never])
    for text in both(known):
        assert "Not reached: b." in text and "the work b" not in text
    terminal, _ = both(known)
    assert "Of 1 workloads: won 0, lost 0, no gain 0, not compared 1." in terminal


def test_when_where_and_with_what():
    known = document(
        [cell("a", OURS, 1e-3)], interrupted=True, dirty=True, scale=0.5, commit="0123456789abcdef"
    )
    text = tables.heading(read(known))
    assert text == (
        "Measured 2026-11-30 (custom run, commit 0123456789 with changes). A Processor, 2 cores, "
        "Linux 6, Python 3.11.9; threads of each: 2. minigraph 1.2.3. Sizes times 0.5. The run was "
        "interrupted."
    )
    unknown = document([cell("a", OURS, 1e-3)], commit=None, dirty=None)
    assert tables.heading(read(unknown)).startswith("Measured 2026-11-30 (custom run). A Processor")


def test_first_calls_and_memory():
    details = {"planned_peak_bytes": 1_500}
    known = document(
        [
            cell("a", OURS, 1e-3, first_call_s=1.5, details=details),
            cell("a", NUMPY, 1e-3, memory=None),
        ]
    )
    _, markdown = both(known)
    first, highest, memory = re.split("### (?:First call|Memory)", markdown)[1:]
    assert "| the import, before it | 500 ms | 500 ms |" in first
    assert "| the work a | 1.5 s | 250 ms |" in first
    assert "| the import, before it | 90 MB | - |" in highest
    assert "| the work a | 9 MB | - |" in highest
    assert "| workload | planned by minigraph | minigraph numba | NumPy |" in memory
    assert "| the work a | 1.5 KB | 8 MB | - |" in memory


# ---- what is noise -----------------------------------------------------------------------------


def test_noise():
    steady = read(document([cell("a", OURS, 1.0)])).cells[0]
    assert verdicts.noise(steady) == ""
    one = read(document([cell("a", OURS, 1.0, samples_s=[[1.0]])])).cells[0]
    assert verdicts.noise(one) == "few samples"
    wide = read(document([cell("a", OURS, 1.0, spread=0.3)])).cells[0]
    assert verdicts.noise(wide) == "quartiles far apart"
    warming = {"calls": 10, "stable": False}
    never = read(document([cell("a", OURS, 1.0, warm_up=warming)])).cells[0]
    assert verdicts.noise(never) == "never steady while warming up"


@given(*[st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=9)] * 2)
def test_there_is_no_gain_exactly_where_ranges_overlap(ours: list[float], theirs: list[float]):
    mine, other = Statistics.of(ours), Statistics.of(theirs)
    ratio, inverse = Ratio.of(mine, other), Ratio.of(other, mine)
    assert ratio.lower <= ratio.value <= ratio.upper
    if not mine.overlaps(other):
        assert {ratio.verdict, inverse.verdict} <= {"won", "lost", "no gain"}
        assert (ratio.verdict == "won") == (inverse.verdict == "lost")
    elif mine.lower_s < other.upper_s and other.lower_s < mine.upper_s:
        assert ratio.verdict == inverse.verdict == "no gain"


# ---- no number is invented ---------------------------------------------------------------------

COLUMNS = (OURS, "minigraph python", NUMPY, TORCH, "JAX jit")
UNMEASURED = ("wrong", "crashed", "timed out", "not written", "missing", "not reached")
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@st.composite
def documents(draw: Any) -> Document:
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=4))
    columns = draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=5))
    cells = []
    for name, column in itertools.product(names, columns):
        status = draw(st.sampled_from(["measured"] * 8 + [*UNMEASURED, "absent"]))
        if status in UNMEASURED:
            cells.append(cell(name, column, None, status=status, message=f"why {status}"))
        elif status == "measured":
            spread = draw(st.sampled_from([0.0, 0.01, 0.5]))
            first_s = draw(st.floats(1e-6, 1e3))
            median_s = draw(st.floats(1e-9, 1e3))
            cells.append(cell(name, column, median_s, spread=spread, first_call_s=first_s))
    kinds = st.sampled_from(list(verdicts.KINDS))
    return document(cells, {name: workload(name, kind=draw(kinds)) for name in names})


@given(documents())
def test_each_number_comes_from_the_results(known: Document):
    results = read(known)
    texts = [tables.heading(results), "below 1"]
    there = [each for each in results.cells if each.status == "measured"]
    for each in there:
        texts += [duration(each.statistics.median_s), duration(each.first_call_s)]
        texts += [tables.amount(count) for count in each.memory.values()]
        texts += [duration(each.import_s)]
    for one, other in itertools.permutations(there, 2):
        if one.workload == other.workload:
            texts.append(tables.times(one.statistics.median_s / other.statistics.median_s))
    counts = range(max(len(results.workloads), len(UNMEASURED)) + 1)  # or a footnote's number
    allowed = {number for text in texts for number in NUMBER.findall(text)} | set(map(str, counts))
    for text in (printed(tables.terminal(results), 80), tables.markdown(results)):
        assert set(NUMBER.findall(" ".join(text.split()))) <= allowed


@given(documents())
def test_what_is_won_and_lost_adds_up(known: Document):
    results = read(known)
    for column in verdicts.peers(results):
        found = verdicts.tally(results, column, list(results.workloads))
        ours = verdicts.reference(results)
        both_there = [
            name
            for name in results.workloads
            if verdicts.measured(results, name, ours) and verdicts.measured(results, name, column)
        ]
        assert found.total() == len(both_there)
    assert tables.spoken(Counter()) == "won 0, lost 0, no gain 0"


# ---- how it is printed -------------------------------------------------------------------------


@given(documents(), st.sampled_from([60, 80, 120, 200]))
def test_it_fits_the_terminal(known: Document, width: int):
    text = printed(tables.terminal(read(known)), width)
    assert all(len(line) <= width for line in text.splitlines())
    results = read(known)
    for name in {each["workload"] for each in known["cells"]} - set(tables.not_reached(results)):
        assert line_of(text, name if width < 160 else f"the work {name}")


def test_a_wide_table_is_split_and_nothing_is_lost():
    head = ["row", *(f"column{index}" for index in range(9))]
    entries = [Entry(f"entry{index}", tone) for index, tone in enumerate(list(TONES) * 2 + [""])]
    text = printed(Report([Grid("title", head, [("name", entries)])]), 40)
    assert text.count("row") == text.count("name") > 1
    assert all(
        text.count(f"entry{index}") == text.count(f"column{index}") == 1 for index in range(9)
    )


def test_markdown_means_what_it_says():
    notes = Notes()
    number = notes.number("a | b")
    entries = [Entry("x|y", "loss", number), Entry("*")]
    text = as_markdown(Grid("title", ["row", "a_b", "c"], [("n", entries)], remarks=notes.lines()))
    assert text == (
        "### title\n\n| row | a\\_b | c |\n| --- | ---: | ---: |\n| n | **x\\|y** [1] | \\* |\n\n"
        "[1] a \\| b"
    )


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (8e6, "8 MB"), (2e9, "2 GB")]
)
def test_amounts(count: float, text: str):
    assert tables.amount(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00461, "0.0046"),
        (0.0199, "0.02"),
        (0.254, "0.25"),
        (1, "1.00"),
        (12.34, "12.3"),
        (1234, "1230"),
    ],
)
def test_ratios(value: float, text: str):
    assert tables.times(value) == text
