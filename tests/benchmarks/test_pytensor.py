"""PyTensor computes the families right, and shows its graph before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from answering import one_of_each_family, texts_of_lines
from answering_apart import PATIENCE_S, answer, prepare, process

from benchmarks.harness.processes import Process
from benchmarks.runners.pytensor import PyTensor

COLUMN = "PyTensor"
SOON = "fancy_func fancy_func-1000 chain-1000 mlp-1".split()  # compiled in a few seconds
NOT_WRITTEN = "levenshtein sieve".split()
LATE = [
    each.name
    for each in one_of_each_family(COLUMN)
    if each.name not in SOON and each.name not in NOT_WRITTEN
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with process(COLUMN, PyTensor, tmp_path_factory.mktemp("pytensor")) as found:
        yield found


@pytest.mark.parametrize(
    "name", [*SOON, *(pytest.param(name, marks=pytest.mark.slow) for name in LATE)]
)
def test_it_agrees(running: Process, name: str):
    assert answer(running, name).wrong == ""


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_what_is_not_written_says_why(running: Process, name: str):
    assert "loop" in prepare(running, name)["not_written"]


def test_the_chain_is_one_node_after_its_rewrites(running: Process):
    prepare(running, "chain-1000")
    found: dict[str, Any] = running.ask("forms", PATIENCE_S)
    before, after = found["forms"]
    assert (before["stage"], after["stage"]) == ("before", "after")
    assert before["nodes"] > after["nodes"] == 1
    assert "Tanh" in before["text"] and "Composite" in after["text"]
    lines = {int(line): numbers for line, numbers in before["lines"].items()}
    texts = texts_of_lines(lines, found["source"]["file"], before["text"])
    assert "Tanh" in texts["return 0.5 * x * (1 + xp.tanh(factor * (x + 0.044715 * x * x * x)))"]
    details = running.ask("finish", PATIENCE_S)["details"]
    assert (details["nodes_before"], details["nodes_after"]) == (before["nodes"], 1)
