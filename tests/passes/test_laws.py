"""What every pass owes, on random graphs of real ops."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from passes.laws import EXACT, arguments_of, graphs, outcome, run_pass

from minigraph.ir import Graph, parse_graph, verify, walk
from minigraph.ops import OPS
from minigraph.passes import DEFAULT, LOWERINGS, PASSES, optimize

LAWS = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def test_the_default_pipeline_is_of_passes_found_by_file() -> None:
    assert set(DEFAULT) <= set(PASSES) == {*EXACT, *LOWERINGS}


@given(graph=graphs(control=True))
@LAWS
def test_the_text_of_regions_within_regions_is_read_back(graph: Graph) -> None:
    read = parse_graph(str(graph), OPS, graph.constants)
    assert read == graph and str(read) == str(graph)


@pytest.mark.parametrize("name", EXACT)
@given(graph=graphs(control=True))
@LAWS
def test_a_pass_keeps_what_the_graph_does(name: str, graph: Graph) -> None:
    verify(graph)
    text = str(graph)
    changed, _ = run_pass(name, graph)
    verify(changed, stage=name)
    for seed in range(3):
        arguments = arguments_of(graph, seed)
        assert outcome(changed, arguments) == outcome(graph, arguments)
    assert str(graph) == text


@pytest.mark.parametrize("name", EXACT)
@given(graph=graphs(control=True))
@LAWS
def test_a_second_run_changes_nothing(name: str, graph: Graph) -> None:
    once, _ = run_pass(name, graph)
    twice, _ = run_pass(name, once)
    assert twice is once


@pytest.mark.parametrize("name", EXACT)
@given(graph=graphs(control=True))
@LAWS
def test_a_pass_gives_the_same_text_and_events_each_time(name: str, graph: Graph) -> None:
    first, told_first = run_pass(name, graph)
    second, told_second = run_pass(name, graph)
    assert str(first) == str(second)
    assert list(map(repr, told_first)) == list(map(repr, told_second))


@pytest.mark.parametrize("name", EXACT)
@given(graph=graphs(control=True))
@LAWS
def test_identity_tells_what_changed(name: str, graph: Graph) -> None:
    changed, events = run_pass(name, graph)
    before = set(graph.nodes)
    told = {node for event in events if event.kind != "refuse" for node in event.before}
    left = set(changed.values())
    for node in changed.nodes:
        if node not in before:
            assert node.origin and set(node.origin) <= before
            for old in node.origin:
                same = (old.op, old.inputs, old.outputs, old.attrs) == (
                    *(node.op, node.inputs, node.outputs, node.attrs),
                )
                assert not same, "rebuilt although nothing changed"
    for node in graph.nodes:
        if node not in changed.nodes and left.isdisjoint(node.outputs) and node.outputs:
            assert node in told
    if changed is graph:
        assert not told


@given(graph=graphs(control=True))
@settings(LAWS, max_examples=100)
def test_the_pipeline_keeps_what_the_graph_does(graph: Graph) -> None:
    history = optimize(graph, debug=True)
    for seed in range(3):
        arguments = arguments_of(graph, seed)
        assert outcome(history.graph, arguments) == outcome(graph, arguments)
    again = optimize(history.graph)
    assert again.graph is history.graph
    assert not any(event.kind == "note" for event in history.events)


def effects(graph: Graph) -> list[tuple[str, object]]:
    """What the graph does to the world, in order, but for writes (one may cover another)."""
    return [
        (node.op.name, node.attrs.get("parts"))
        for node in walk(graph)
        if node.op.effect not in (None, "write")
    ]


@given(graph=graphs(control=True))
@LAWS
def test_fast_math_ends_and_makes_sound_graphs(graph: Graph) -> None:
    history = optimize(graph, fast_math=True, debug=True)
    assert optimize(history.graph, fast_math=True).graph is history.graph
    assert not any(event.kind == "note" for event in history.events)


@given(graph=graphs())
@LAWS
def test_fast_math_keeps_effects(graph: Graph) -> None:
    assert effects(optimize(graph, fast_math=True).graph) == effects(graph)
