"""PyTensor computes the families right, and shows its graph before and after."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from answering import one_of_each_family, texts_of_lines
from worker_process import Asked

COLUMN = "PyTensor"
SOON = "fancy_func fancy_func-1000 chain-1000 mlp-1".split()  # compiled in a few seconds
NOT_WRITTEN = "levenshtein sieve".split()
LATE = [
    each.name
    for each in one_of_each_family()
    if each.name not in SOON and each.name not in NOT_WRITTEN
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with Asked(COLUMN, tmp_path_factory.mktemp("pytensor")) as found:
        yield found


@pytest.mark.parametrize(
    "name", [*SOON, *(pytest.param(name, marks=pytest.mark.slow) for name in LATE)]
)
def test_it_agrees(running: Asked, name: str):
    assert running.wrong(name) == ""


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_what_is_not_written_says_why(running: Asked, name: str):
    assert "loop" in running.prepare(name)["not_written"]


def test_the_chain_is_one_node_after_its_rewrites(running: Asked):
    found = running.shown("chain-1000")
    before, after = found["forms"]
    assert (before["stage"], after["stage"]) == ("before", "after")
    assert before["nodes"] > after["nodes"] == 1
    assert "Tanh" in before["text"] and "Composite" in after["text"]
    texts = texts_of_lines(before["lines"], found["source"]["file"], before["text"])
    assert "Tanh" in texts["return 0.5 * x * (1 + xp.tanh(factor * (x + 0.044715 * x * x * x)))"]
    details = running.details()
    assert (details["nodes_before"], details["nodes_after"]) == (before["nodes"], 1)
