"""ONNX Runtime computes each family right, and shows the model before and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import one_of_each_family, texts_of_lines
from worker_process import Asked

from benchmarks import formulas

COLUMN = "ONNX Runtime"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with Asked(COLUMN, tmp_path_factory.mktemp("onnxruntime")) as found:
        yield found


def forms(running: Asked, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    found = running.shown(name)
    return found["source"], found["forms"]


@pytest.mark.parametrize(
    "name", [each.name for each in one_of_each_family() if each.kind == "inference"]
)
def test_it_agrees(running: Asked, name: str):
    assert running.wrong(name) == ""


@pytest.mark.parametrize("name", ["lstm-32", "gru-32", "mlp-32"])
def test_it_agrees_on_batches(running: Asked, name: str):
    assert running.wrong(name) == ""


@pytest.mark.parametrize(("name", "why"), [("mlp-training-sgd", "training"), ("sieve", "Loop")])
def test_what_is_not_written_says_why(running: Asked, name: str, why: str):
    assert why in running.prepare(name)["not_written"]


def test_fused_nodes_lie_under_the_users_lines(running: Asked):
    source, (before, after) = forms(running, "mlp-1")
    assert (before["stage"], before["nodes"]) == ("before", 5)
    assert (after["stage"], after["nodes"]) == ("after", 3)
    line = 'h = model.node("Relu", model.node("Gemm", x, w1, b1))'
    assert texts_of_lines(before["lines"], source["file"], before["text"])[line].split("\n") == [
        "gemm0 = Gemm (x0, c0, c1)",
        "relu1 = Relu (gemm0)",
    ]
    fused = texts_of_lines(after["lines"], source["file"], after["text"])[line]
    assert "FusedGemm" in fused and "\n" not in fused
    details = running.details()
    assert (details["nodes_before"], details["nodes_after"]) == (5, 3)


def test_a_formula_is_its_own_source(running: Asked):
    source, (before, _) = forms(running, "heat")
    assert Path(source["file"]).name == Path(formulas.__file__).name
    around = "around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]"
    texts = texts_of_lines(before["lines"], source["file"], before["text"])
    assert texts[around].count("Slice") == 4 and texts[around].count("Add") == 3


def test_large_parameters_are_not_spelt_out(running: Asked):
    _, found = forms(running, "mlp-1")
    assert all(len(form["text"]) < 5000 for form in found)
