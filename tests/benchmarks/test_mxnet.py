"""MXNet's columns: each computes all workloads right, and shows its symbol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from worker_process import Asked

from benchmarks.runners.mxnet import HYBRID, IMPERATIVE, STATIC
from benchmarks.workloads import WORKLOADS

LOOPS = ("collatz", "newton", "levenshtein")


def test_a_hybridized_block_shows_its_symbol(tmp_path: Path):
    with Asked(STATIC, tmp_path) as asked:
        assert asked.all_wrong(["gru-training", "mlp-training-adam"]) == {}
        (form,) = asked.shown("mlp-1")["forms"]
    ops = [node["op"] for node in json.loads(form["text"])["nodes"] if node["op"] != "null"]
    assert ops == ["FullyConnected", "Activation"] * 2 + ["FullyConnected"]
    assert form["nodes"] == len(ops)


@pytest.mark.slow
@pytest.mark.parametrize("column", [IMPERATIVE, HYBRID, STATIC])
def test_all_workloads_agree(column: str, tmp_path: Path):
    with Asked(column, tmp_path) as asked:
        wrong = asked.all_wrong(WORKLOADS)
    missing = [*LOOPS] if column == IMPERATIVE else [*LOOPS, "sieve"]
    assert list(wrong) == missing
    assert all(each.startswith("not written") for each in wrong.values())
