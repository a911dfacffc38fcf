"""Figures are drawn of what is in the results; how they look was looked at."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmark_results import NUMPY, OURS, TORCH, Document, cell, document, read, runner, workload
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness.results import Work
from benchmarks.reporting import plots

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.text import Text  # noqa: E402

from benchmarks.reporting import curves, looks, rows  # noqa: E402

ROOFS = {
    "threads": 2,
    "l2_bytes": 786_432,
    "l2_bytes_per_s": 4e11,
    "dram_bytes_per_s": 5e10,
    "float32_per_s": 2.4e11,
    "float64_per_s": 1.2e11,
    "matmul_per_s": 3e11,
}
WHOLE, WITHOUT = f"{OURS} whole", f"{OURS} without fusion"


def everything() -> Document:
    """Something for each figure: a gain, a loss, an overlap, a single sample, gaps."""
    details = {"planned_peak_bytes": 4_000, "unfused_bytes": 64_000, "fused_bytes": 8_000}
    cells = [
        cell("chain-1", OURS, 1e-6, details=details, first_call_s=1.5),
        cell("chain-1", NUMPY, 4e-6),
        cell("chain-1", WHOLE, 1.25e-6, details=details),
        cell("chain-1", WITHOUT, 2.5e-6),
        cell("chain-1", TORCH, 5e-6, first_call_s=1e-3),
        cell("chain-1", "torch.compile", 3e-6, first_call_s=9.0),
        cell("chain-2", OURS, 3e-6, details=details),
        cell("chain-2", NUMPY, 2e-6, memory=None),
        cell("chain-2", TORCH, None, status="crashed", message="it died"),
        cell("train", OURS, 1e-3, spread=0.3),
        cell("train", TORCH, 1.05e-3, spread=0.3),
        cell("count", OURS, 1e-3, samples_s=[[1e-3]]),
        cell("count", NUMPY, 1e-1),
    ]
    workloads = {
        "chain-2": workload("chain-2", size=100_000, dtype="float64"),
        "train": workload("train", kind="training"),
        "count": workload("count", kind="loop", operations=0),
    }
    columns = {
        OURS: runner(OURS, baseline=NUMPY),
        "torch.compile": runner("torch.compile", baseline=TORCH),
    }
    return document(cells, workloads, columns, roofs=ROOFS)


def drawn(known: Document) -> dict[str, Any]:
    results = read(known)
    return {each.name: each for each in (*rows.drawn(results), *curves.drawn(results))}


def test_all_figures_and_a_page_that_describes_them(tmp_path: Path):
    written = plots.write(read(everything()), tmp_path / "figures")
    assert [path.name for path in written] == [
        "speed-up-inference.svg",
        "speed-up-training.svg",
        "speed-up-loop.svg",
        "break-even.svg",
        "ablation.svg",
        "memory.svg",
        "sizes.svg",
        "roofline.svg",
        "README.md",
    ]
    *figures, index = written
    page = index.read_text(encoding="utf-8")
    for path in figures:
        assert re.search(rf"!\[[^\]]{{40,}}\]\({path.name}\)", page)
        ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert path.stat().st_size < 150_000
    assert "Measured 2026-11-30" in page
    assert "### Where minigraph numba loses" in page and "| chain-2 | NumPy 1.50 |" in page


def test_the_same_results_give_the_same_bytes(tmp_path: Path):
    once, again = (plots.write(read(everything()), tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    assert b"<dc:date>" not in once[0].read_bytes()


def test_what_the_descriptions_say_is_computed():
    found = drawn(everything())
    assert found["speed-up-inference"].alternative == (
        "Speed-up of minigraph numba on 2 workloads: against NumPy won 1, lost 1, no gain 0; "
        "against PyTorch won 1, lost 0, no gain 0."
    )
    assert "won 0, lost 0, no gain 1" in found["speed-up-training"].alternative
    assert "without fusion up to 2 times as long" in found["ablation"].alternative
    assert "minigraph numba from 1 µs to 3 µs" in found["sizes"].alternative
    assert "2 programs pay after some calls, 2 never" in found["break-even"].alternative
    pairs = "minigraph numba against NumPy, torch.compile against torch eager."
    assert pairs in found["break-even"].caption
    rate, roof = 9000 / 1.25e-6, 4e11 * 9000 / 8000
    share = 100 * rate / min(roof, ROOFS["float32_per_s"])
    assert f"chain-1 {share:.0f} %" in found["roofline"].alternative


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [cell("a", NUMPY, 1e-3)],
        [cell("a", OURS, None, status="missing"), cell("a", NUMPY, None, status="wrong")],
        [cell("a", OURS, 1e-3, samples_s=[[1e-3]], memory=None)],
    ],
)
def test_what_there_is_nothing_for_is_not_drawn(cells: list[Document], tmp_path: Path):
    known = document(cells, roofs=ROOFS)
    assert set(drawn(known)) <= {"memory"}
    assert plots.write(read(known), tmp_path)[-1].name == "README.md"


def test_without_matplotlib_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.CannotDraw, match=r"pip install 'minigraph\[bench\]'"):
        plots.write(read(everything()), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_page_of_somebody_else_is_not_written_over(tmp_path: Path):
    page = tmp_path / "README.md"
    page.write_text("my notes")
    with pytest.raises(plots.CannotDraw, match="none that was made here"):
        plots.write(read(everything()), tmp_path)
    assert page.read_text() == "my notes" and list(tmp_path.iterdir()) == [page]


def test_series_are_told_apart_without_colours():
    for names in (
        looks.LOOKS,
        [f"series {index}" for index in range(9)],
        [*looks.LOOKS, "one more"],
    ):
        markers = [look.marker for look in looks.looks_of(names).values()]
        assert len(set(markers)) == len(markers)


def test_noisy_points_are_hollow():
    with matplotlib.rc_context(dict(looks.STYLE)):
        figure = drawn(everything())["speed-up-training"].figure
    faces = {
        line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "^"
    }
    assert faces == {"white"}


def test_letters_are_large_enough_and_no_texts_overlap():
    with matplotlib.rc_context(dict(looks.STYLE)):
        for name, each in drawn(everything()).items():
            figure = each.figure
            figure.draw_without_rendering()
            assert figure.get_figwidth() <= looks.WIDTH
            texts = [text for text in texts_of(figure) if text.get_text() and text.get_visible()]
            assert all(text.get_fontsize() >= 9 for text in texts), name
            boxes = [Text.get_window_extent(text).shrunk(0.98, 0.9) for text in texts]  # no arrows
            for index, box in enumerate(boxes):
                over = [t.get_text() for t, b in zip(texts, boxes, strict=True) if b.overlaps(box)]
                assert over == [texts[index].get_text()], name
                inside = figure.bbox.padded(1)
                assert inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1), name


def texts_of(figure: Any) -> list[Any]:
    found = [text for each in figure.legends for text in each.get_texts()]
    for axes in figure.axes:
        found += [axes.xaxis.label, axes.yaxis.label, axes._left_title, *axes.texts]
        for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            found += [
                tick.label1
                for tick in axis.get_major_ticks()
                if min(limits) <= tick.get_loc() <= max(limits)
            ]
    return found


@given(st.lists(st.floats(-0.5, 1.5), max_size=12), st.floats(0.01, 0.3))
def test_labels_are_spread(wanted: list[float], gap: float):
    found = looks.spread(wanted, gap)
    assert len(found) == len(wanted)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in found)
    room = min(gap, 1 / max(1, len(wanted) - 1))
    placed = sorted(found)
    assert all(b - a >= room - 1e-9 for a, b in zip(placed, placed[1:], strict=False))
    pairs = [(w, f) for w, f in zip(wanted, found, strict=True)]
    assert all(f <= g for w, f in pairs for v, g in pairs if w < v)


def test_labels_that_have_room_stay():
    assert looks.spread([0.1, 0.9, 0.5], 0.1) == [0.1, 0.9, 0.5]
    assert looks.spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (256, "256"), (32_768, "33 K"), (1 << 22, "4.2 M"), (2e11, "200 G")],
)
def test_counts(number: float, text: str):
    assert looks.count(number) == text


def attainable(operations: float, moved_bytes: float, **more: Any) -> float:
    work = Work(**workload("a", operations=operations, **more))
    return curves.attainable(ROOFS, work, moved_bytes)


def test_the_roof_over_a_program():
    memory = attainable(1e9, 1e9)
    cache = attainable(500, 1000)
    assert (memory, cache) == (5e10, 2e11)
    assert attainable(10**12, 1e9) == 2.4e11
    assert attainable(10**12, 1e9, dtype="float64") == 1.2e11
    assert attainable(10**12, 1e9, products=True) == 3e11
