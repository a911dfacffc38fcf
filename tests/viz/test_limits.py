"""Graphs of any size: folded, as an overview, or a part; always fast, never silently cut."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import cast

import pytest
from viz import graphs
from viz.graphs import Maker
from viz.reading import Dot, read_dot, text

from minigraph.errors import OptionError
from minigraph.ir import Graph, Node
from minigraph.viz import dot, draw
from minigraph.viz.fold import Repeat, describe, find_repeats
from minigraph.viz.options import Options
from minigraph.viz.overview import MOST_ARROWS, MOST_BLOCKS, overview


def heading(drawn: Dot) -> str:
    return text(drawn.graph["label"])


def test_three_hundred_boxes_are_drawn_in_full():
    drawn = read_dot(dot(graphs.chain(298)))
    assert len(drawn.nodes) == 300 and heading(drawn) == "chain\n"


def test_repeats_are_drawn_once():
    drawn = read_dot(dot(graphs.transformer(12)))
    assert len(drawn.nodes) < 120
    assert "folded: " in heading(drawn) and "of 470 boxes" in heading(drawn)
    labels = [text(attrs["label"]) for attrs in drawn.clusters.values()]
    assert any(label.startswith("11 times, the first is shown | ") for label in labels)
    assert drawn.kinds("back")


def test_a_folded_edge_counts_what_it_stands_for():
    drawn = read_dot(dot(graphs.chain(400)))
    # x, add, multiply and the result; each repetition hands its value to the next.
    assert sum(1 for name in drawn.nodes) <= 6
    ((tail, head),) = drawn.kinds("back")
    assert drawn.data()[tail, head] in range(190 * 2, 200 * 2)


def test_what_repeats_is_found():
    assert find_repeats(graphs.chain(400)) == [Repeat(1, 2, 199)]
    assert find_repeats(graphs.chain(400, regular=False)) == []
    assert find_repeats(graphs.textbook()) == []
    make = Maker()
    value = make.input("f32[8]", "x")
    for _ in range(5):
        value = make.value("add", value, make.const(1.0))
        value = make.value("multiply", value, make.const(2.0))
        value = make.value("exp", value)
    (repeat,) = find_repeats(make.graph(value))
    assert (repeat.period, repeat.count) in [(3, 5), (3, 4)]


def test_repeats_with_other_constants_are_no_repeats():
    make = Maker()
    value = make.input("f32[8]", "x")
    for number in range(8):
        value = make.value("add", value, make.const(float(number)))
    assert find_repeats(make.graph(value)) == []


def test_a_few_hundred_boxes_that_do_not_repeat_are_drawn_without_types():
    drawn = read_dot(dot(graphs.chain(500, regular=False)))
    assert len(drawn.nodes) == 502
    assert not any("label" in attrs for _, _, attrs in drawn.edges)
    assert "502 boxes, without types" in heading(drawn)


def test_an_overview_says_what_it_stands_for():
    drawn = read_dot(dot(graphs.chain(2_500, regular=False)))
    assert len(drawn.nodes) < 80
    assert "overview: 2 500 nodes in" in heading(drawn)
    order = [name for name in drawn.nodes if name.startswith("b")]
    assert all((one, other) in drawn.data() for one, other in zip(order, order[1:], strict=False))


def test_words_of_an_overview_are_whole():
    names = ("a_rather_long_name", "another_long_name", "add", "exp")
    nodes = [SimpleNamespace(op=SimpleNamespace(name=name)) for name in (*names, *names[:2], "add")]
    shown = describe(cast("list[Node]", nodes), 30)
    assert shown == "2 a_rather_long_name, ..."
    assert describe(cast("list[Node]", nodes[2:4]), 30) == "1 add, 1 exp"
    assert describe([], 30) == ""


def test_an_overview_keeps_its_edges_few():
    picture = overview(graphs.skips(3_000), Options())
    assert len(picture.arrows) <= MOST_ARROWS
    counts = [arrow.count for arrow in picture.arrows]
    assert len([box for box in picture.root.boxes()]) <= MOST_BLOCKS and max(counts) > 1


def test_an_overview_of_many_arguments_and_results():
    make = Maker()
    inputs = [make.input("f32[8]") for _ in range(2_000)]
    outputs = [
        make.value("add", one, other) for one, other in zip(inputs, inputs[1:], strict=False)
    ]
    drawn = read_dot(dot(make.graph(*outputs)))
    labels = {text(attrs["label"]) for attrs in drawn.nodes.values()}
    assert {"2 000 arguments", "1 999 results"} <= labels


def test_blocks_are_the_users_functions_where_these_are_few():
    make = Maker()
    value = make.input("f32[8]", "x")
    for name in ("first", "second"):
        make.function = name
        for number in range(1_500):
            value = make.value("reshape", value, code=number * number)
    labels = [text(attrs["label"]) for attrs in read_dot(dot(make.graph(value))).nodes.values()]
    assert any(label.startswith("first 1-") for label in labels)
    assert any(label.startswith("second 1501-") for label in labels)


@pytest.mark.slow
def test_ten_thousand_nodes_make_a_small_drawing():
    graph = graphs.chain(10_000, regular=False)
    drawing = draw(graph)
    assert len(drawing.svg) < 300_000
    assert drawing.note.startswith("overview: 10 000 nodes in")


@pytest.mark.parametrize("regular", [True, False])
def test_ten_thousand_nodes_in_a_row_need_no_recursion(regular: bool):
    graph = graphs.chain(10_000, regular=regular)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        source = dot(graph)
    finally:
        sys.setrecursionlimit(limit)
    assert len(read_dot(source).nodes) < 100


@pytest.mark.slow
def test_a_transformer_of_twelve_layers_is_drawn_folded():
    graph = graphs.transformer(12)
    drawing = draw(graph)
    assert drawing.note.startswith("folded: ") and "quick" not in drawing.note


@pytest.mark.parametrize(
    ("length", "note"), [(400, "1 removed node not drawn"), (3_000, "what changed is not marked")]
)
def test_what_is_left_out_of_a_large_stage_is_said(length: int, note: str):
    before = graphs.chain(length, regular=False)
    after = before.replace(before.nodes[:-1], [before.nodes[-2].output])
    assert note in heading(read_dot(dot(after, before=before)))


def test_force_draws_everything():
    drawn = read_dot(dot(graphs.chain(2_500, regular=False), force=True))
    assert len(drawn.nodes) == 2_502


# ---------------------------------------------------------------------------- focus


def focused(graph: Graph, focus: str, radius: int) -> Dot:
    return read_dot(dot(graph, focus=focus, radius=radius))


def test_focus_draws_the_neighbourhood():
    graph = graphs.chain(10_000, regular=False)
    middle = graph.nodes[5_000].output
    drawn = focused(graph, f"%{middle.name}", 2)
    kept = [f"n{node.id}" for node in graph.nodes[4_999:5_003]]
    assert [name for name in drawn.nodes if name.startswith("n")] == kept
    assert heading(drawn) == f"chain\n4 of 10 000 nodes, near %{middle.name}\n"
    labels = [text(attrs["label"]) for attrs in drawn.nodes.values()]
    # What is cut off is named at both ends.
    assert f"... %{graph.nodes[4_998].output.name}" in labels
    assert any("... 1 more use" in label for label in labels)
    assert dot(graph, focus=middle, radius=2) == dot(graph, focus=f"%{middle.name}", radius=2)


def test_focus_on_an_input_and_on_a_value_in_a_region():
    graph = graphs.regions()
    assert len(focused(graph, "x", 1).nodes) < len(read_dot(dot(graph)).nodes)
    inner = graph.nodes[2].attrs["body"].nodes[3].output
    assert f"cluster_n{graph.nodes[2].id}" in focused(graph, f"%{inner.name}", 1).clusters


def test_focus_on_nothing_names_what_there_is():
    with pytest.raises(OptionError, match=r"has no value %ee") as error:
        dot(graphs.textbook(), focus="%ee")
    assert str(error.value.instead).startswith("did you mean '%e'? known are %a, %b, ")


def test_a_neighbourhood_that_is_too_large_is_refused():
    make = Maker()
    x = make.input("f32[8]", "x")
    values = [make.value("reshape", x, code=number) for number in range(3_000)]
    with pytest.raises(OptionError, match="has 6001 boxes"):
        dot(make.graph(*values), focus="x")
