"""TensorFlow's columns: each computes all workloads right, and shows what was made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from worker_process import Asked

from benchmarks.runners.tensorflow import EAGER, FUNCTION, XLA
from benchmarks.workloads import WORKLOADS

LOOPS = ("collatz", "newton", "levenshtein")


def test_a_graph_is_fused_under_the_users_lines(tmp_path: Path):
    with Asked(FUNCTION, tmp_path) as asked:
        assert asked.all_wrong(["mlp-1", "mlp-training-adam"]) == {}
        before, after = asked.shown("mlp-32")["forms"]
    assert (before["nodes"], before["stage"], after["stage"]) == (9, "before", "after")
    assert after["text"].count("_FusedMatMul") == after["nodes"] == 3
    products = {"MatMul": before, "_FusedMatMul": after}
    for op, form in products.items():
        texts = form["text"].split("\n")
        made = [[texts[at - 1] for at in numbers] for numbers in form["lines"].values()]
        assert len(made) == 3 and all(any(f" = {op}(" in each for each in of) for of in made)


@pytest.mark.slow
def test_hlo_has_the_users_lines(tmp_path: Path):
    with Asked(XLA, tmp_path) as asked:
        before, after = asked.shown("mlp-32")["forms"]
    assert after["nodes"] < before["nodes"]
    for form in (before, after):
        assert form["language"] == "hlo" and form["text"].startswith("HloModule")
        assert len(form["lines"]) == 3 and "source_file" not in form["text"]


@pytest.mark.slow
@pytest.mark.parametrize("column", [EAGER, FUNCTION, XLA])
def test_all_workloads_agree(column: str, tmp_path: Path):
    with Asked(column, tmp_path) as asked:
        wrong = asked.all_wrong(WORKLOADS)
    if column != EAGER:
        assert wrong == {}
    else:
        assert list(wrong) == list(LOOPS)
        assert all(each.startswith("not written") for each in wrong.values())
