"""The text in a pass's docstring is its first golden test."""

from __future__ import annotations

import importlib
import re
import textwrap

import pytest
from passes.laws import graph_of, outcome, run_pass

from minigraph.ir import Graph, verify
from minigraph.passes import LOWERINGS, PASSES

_BLOCK = re.compile(r"^    graph .*?^    \}$", re.DOTALL | re.MULTILINE)


def blocks(name: str) -> list[str]:
    """The IR text in the docstring of a file of passes."""
    module = importlib.import_module(f"minigraph.passes.{name}")
    return [textwrap.dedent(block) for block in _BLOCK.findall(module.__doc__ or "")]


def without_alignment(text: str) -> str:
    return re.sub(r" +", " ", text)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_before_becomes_after(name: str) -> None:
    before, after = blocks(name)
    graph = graph_of(before)
    verify(graph)
    changed, _ = run_pass(name, graph)
    if name == "simplify":  # "dead nodes removed": and its new constant has a number of its own
        changed, _ = run_pass("dce", changed)
    else:
        assert without_alignment(str(changed)) == without_alignment(after)
    assert changed == graph_of(after)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_legality_and_cost_are_stated(name: str) -> None:
    doc = importlib.import_module(f"minigraph.passes.{name}").__doc__ or ""
    assert "\nLegality:" in doc and "\nCost:" in doc
    function = PASSES[name]
    assert function.__doc__


def test_a_graph_that_needs_nothing_is_returned_as_it_is() -> None:
    graph = graph_of("graph f(%x: f64[3]) {\n  %y = exp %x : f64[3]\n  return %y\n}")
    for name in set(PASSES) - set(LOWERINGS):
        same, events = run_pass(name, graph)
        assert isinstance(same, Graph) and same is graph and not events
    assert outcome(graph, [1.0])[0] is None
