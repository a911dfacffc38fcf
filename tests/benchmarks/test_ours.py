"""NumPy, Numba by hand and minigraph: each column computes each family right, and tells how."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from answering import answer, case_of, one_of_each_family, texts_of_lines

import minigraph as mg
from benchmarks import runners
from benchmarks.forms.traffic import traffic
from benchmarks.runners.base import NotWritten
from benchmarks.runners.minigraph import Minigraph
from benchmarks.workloads import WORKLOADS

QUICK = ("NumPy", "minigraph python", "minigraph interpret", "minigraph block")
COMPILED = (
    "minigraph numba",
    "minigraph hybridize",
    "minigraph hybridize static",
    "Numba njit",
    "Numba by hand",
)
FEW = {
    "minigraph numba": ("mlp-1", "chain-1000", "sieve"),
    "minigraph hybridize": ("mlp-1",),
    "Numba by hand": ("mlp-1", "chain-1000", "sieve"),
    "minigraph numba without fusion": ("mlp-1",),
    "minigraph numba without buffer reuse": ("mlp-1",),
}
"""What Numba compiles takes long."""


def pairs() -> Iterator[Any]:
    """A column and a workload."""
    for column in (*QUICK, *COMPILED, *Minigraph.ablations):
        for workload in one_of_each_family():
            if column in Minigraph.ablations and not workload.ablation:
                continue
            is_slow = column not in QUICK and workload.name not in FEW.get(column, ())
            is_slow |= workload.name == "encoder-training"
            marks = [pytest.mark.slow] if is_slow else []
            yield pytest.param(column, workload.name, marks=marks)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = mg.get_num_threads()
    yield
    mg.set_num_threads(before)


@functools.cache
def runner(column: str) -> Any:
    if "numba" in column.lower() or "hybridize" in column:
        pytest.importorskip("numba", reason="Numba is not installed")
    found = {**runners.columns(), **runners.ablations()}[column](column, 2)
    found.load()
    return found


def prepared(column: str, name: str) -> Any:
    """After a call."""
    made = runner(column).prepare(case_of(name))
    with made.around():
        made.run()
    return made


@pytest.mark.parametrize(("column", "name"), list(pairs()))
def test_the_answer_is_right(column: str, name: str):
    try:
        found = answer(runner(column), name)
    except NotWritten as reason:
        is_loop = WORKLOADS[name].kind == "loop"
        assert column not in ("minigraph numba", "minigraph python"), reason
        assert column != "minigraph interpret" or is_loop, reason
        return
    assert not found.wrong


@pytest.mark.parametrize(
    "name", ["mlp-1", "softmax", pytest.param("lstm-1", marks=pytest.mark.slow)]
)
def test_all_passes_by_name_are_the_default(name: str):
    by_default = prepared("minigraph numba", name).run.func.stages[-1].graph
    assert runner("minigraph numba").graph(case_of(name)) == str(by_default)


def test_a_pass_that_changes_nothing_is_not_measured_without():
    with pytest.raises(NotWritten, match="changes nothing"):
        runner("minigraph numba without hoisting").prepare(case_of("mlp-1"))


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "heat"])
def test_fusion_moves_fewer_bytes(name: str):
    fused = prepared("minigraph numba", name).details()
    assert fused["fused_bytes"] < fused["unfused_bytes"]
    assert fused["kernels"] == 1 and fused["nodes_before"] > 1
    (first, *_) = case_of(name).arguments
    assert 0 < fused["planned_peak_bytes"] <= 2 * first.nbytes
    without = prepared("minigraph numba without fusion", name).details()
    assert without["fused_bytes"] == without["unfused_bytes"] == fused["unfused_bytes"]


def test_bytes_are_those_of_operands_and_results():
    def function(x, y):
        h = x[:, :8] + y
        return h * 2

    x, y = np.ones((16, 16), np.float32), np.ones(8, np.float32)
    part, row = 16 * 8 * 4, 8 * 4
    assert traffic(mg.trace(function, x, y)) == (part + row + part) + (part + part)


def test_a_scan_moves_its_bytes_at_each_turn_and_a_while_nobody_knows():
    def scanned(x):
        return mg.scan(lambda h, row: (h + row, h), np.zeros(4), x)

    graph = mg.trace(scanned, np.ones((10, 4)))
    assert traffic(graph) >= 10 * 3 * 32
    assert traffic(mg.trace(mg.script(case_newton), 3)) is None


def case_newton(n):
    x = 1.0
    while x * x < n:
        x = x + 0.5
    return x


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("minigraph numba", "mlp-1"),
        ("minigraph numba", "sieve"),
        ("minigraph python", "encoder"),
        ("minigraph interpret", "lstm-training"),
    ],
)
def test_forms_have_text_and_lines(column: str, name: str):
    shown = prepared(column, name).forms()
    assert [form.stage for form in shown] == ["before", "after", "after"]
    assert all(form.text for form in shown)
    for form in shown[:2]:
        assert form.nodes
        assert form.lines


def test_a_line_of_the_user_leads_to_what_came_of_it():
    made = prepared("minigraph numba", "mlp-1")
    before, after, program = made.forms()
    file = made.source.__code__.co_filename
    line = "h = xp.maximum(x @ w1 + b1, 0)"
    for form, word in ((before, "maximum"), (after, "kernel"), (program, "product")):
        assert word in texts_of_lines(form.lines, file, form.text)[line]


def test_a_block_that_is_not_hybridized_tells_nothing():
    made = prepared("minigraph block", "mlp-1")
    assert made.details() == {} and made.forms() == []


def test_a_backend_that_there_is_not_is_missing():
    with pytest.raises(ImportError, match="no backend cupy"):
        Minigraph("minigraph cupy", 1).load()
