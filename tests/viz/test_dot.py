"""The DOT text against the graph: each edge between the right boxes, each name shown as it is."""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from viz import graphs
from viz.graphs import HOSTILE, Maker
from viz.reading import Dot, read_dot, text

from minigraph import parse, trace
from minigraph.errors import OptionError
from minigraph.ir import OPERAND, Graph, Ids, Node, Plan, Signature, Value
from minigraph.passes import Event
from minigraph.viz import dot
from minigraph.viz.escape import cells, clip, visible

FLAT: dict[str, Callable[[], Graph]] = {
    "textbook": graphs.textbook,
    "layer": graphs.layer,
    "every kind": graphs.every_kind,
    "hostile": graphs.hostile,
    "equal labels": graphs.equal_labels,
    "transformer": lambda: graphs.transformer(3),
    "skips": lambda: graphs.skips(60),
    "empty": lambda: Graph("empty", [], [], []),
}


def expected(graph: Graph) -> Counter[tuple[str, str]]:
    """The edges of the IR, by the names that boxes have."""
    captured = graph.inputs[len(graph.inputs) - len(graph.signature.captures) :]
    leaves = {value: f"v{value.id}" for value in captured}
    boxes = {value: f"v{value.id}" for value in graph.inputs if value not in leaves}
    flows: Counter[tuple[str, str]] = Counter()

    def flow(value: Value, head: str) -> None:
        tail = f"{leaves[value]}_for_{head}" if value in leaves else boxes[value]
        flows[tail, head] += 1

    for node in graph.nodes:
        if node.op.name == "const":
            leaves[node.output] = f"n{node.id}"
            continue
        for value in node.inputs:
            flow(value, f"n{node.id}")
        boxes.update(dict.fromkeys(node.outputs, f"n{node.id}"))
    for index, value in enumerate(graph.outputs):
        flow(value, f"return{index}")
    return flows


def first_lines(drawn: Dot) -> dict[str, str]:
    return {name: text(attrs["label"]).split("\n")[0] for name, attrs in drawn.nodes.items()}


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("labels", ["changes", "all"])
def test_every_edge_of_the_graph_between_the_right_boxes(name: str, labels: str):
    graph = FLAT[name]()
    drawn = read_dot(dot(graph, labels=labels))
    assert drawn.data() == expected(graph)
    used = {end for tail, head, _ in drawn.edges for end in (tail, head)}
    assert used <= set(drawn.nodes)
    for node in graph.nodes:
        if node.op.name != "const":
            assert f"n{node.id}" in drawn.nodes


@pytest.mark.parametrize("name", FLAT)
def test_the_text_is_the_same_each_time(name: str):
    graph = FLAT[name]()
    assert dot(graph) == dot(graph)
    assert dot(FLAT[name]()) == dot(graph)


@pytest.mark.parametrize("name", FLAT)
def test_ids_are_unique_and_begin_with_the_prefix(name: str):
    drawn = read_dot(dot(FLAT[name](), prefix="cell-7"))
    parts = [*drawn.nodes.values(), *(attrs for _, _, attrs in drawn.edges)]
    ids = [attrs["id"] for attrs in [*parts, *drawn.clusters.values(), drawn.graph]]
    assert len(set(ids)) == len(ids)
    assert all(each == "cell-7" or each.startswith("cell-7-") for each in ids)


def test_hostile_names_are_shown_and_not_read():
    graph = graphs.hostile()
    lines = first_lines(read_dot(dot(graph)))
    for node, name in zip(graph.nodes, HOSTILE[1:], strict=True):
        assert lines[f"n{node.id}"] == f"%{clip(visible(name or node.output.name), 24)} add"


def test_a_shown_name_is_printable_and_short():
    for name in HOSTILE:
        assert visible(name).isprintable()
        assert visible(visible(name)) == visible(name)
    assert visible("new\nline") == r"new\nline" and visible("größe") == "größe"
    assert visible("\ud800") == r"\ud800" and visible("\u202e") == r"\u202e"
    assert clip("x" * 4096, 24) == "xxxxxxxxxxx...xxxxxxxxxx"
    assert len(dot(graphs.hostile())) < 60_000
    assert [cells(each) for each in ("abc", "größe", "日本", "e\u0301")] == [3, 5, 4, 1]


def test_shape_and_class_tell_the_kind():
    drawn = read_dot(dot(graphs.every_kind()))
    shapes = {attrs["class"].split()[2]: attrs["shape"] for attrs in drawn.nodes.values()
              if attrs["class"].startswith("op ")}  # fmt: skip
    assert shapes["matmul"] == "box3d" and shapes["sum"] == "invtrapezium"
    assert shapes["transpose"] == "parallelogram" and shapes["add"] == "box"
    by_look = {attrs["class"].split()[1]: attrs["shape"] for attrs in drawn.nodes.values()}
    assert by_look["input"] == "invhouse" and by_look["output"] == "house"
    assert by_look["capture"] == "cylinder" and by_look["constant"] == "note"
    (matmul,) = (attrs for attrs in drawn.nodes.values() if "matmul" in attrs["class"])
    assert matmul["class"] == "op contract matmul L1"


def test_types_stand_on_the_edges_where_they_change():
    graph = graphs.layer()
    drawn = read_dot(dot(graph))
    labels = [text(attrs.get("label", "")).strip() for _, _, attrs in drawn.edges]
    assert "f32[batch,8]" in labels and "f32[8,16]" in labels and "f32[batch]  x2" not in labels
    assert "f32[batch] x2" in labels
    everywhere = read_dot(dot(graph, labels="all"))
    data = [attrs for _, _, attrs in everywhere.edges if attrs["class"] == "data"]
    assert all("label" in attrs for attrs in data)
    nowhere = read_dot(dot(graph, labels="none"))
    assert {text(attrs["label"]) for _, _, attrs in nowhere.edges if "label" in attrs} == {" x2"}
    typed = [attrs["tooltip"] for _, _, attrs in drawn.edges if attrs["class"] == "data"]
    assert all(": " in each for each in typed) and any("bytes" in each for each in typed)


def test_the_width_of_an_edge_tells_the_bytes():
    make = Maker()
    value = make.input("f32[8]", "x")
    for size in (1 << 14, 1 << 18, 1 << 24):
        value = make.value("reshape", value, type_=f"f32[{size}]")
    drawn = read_dot(dot(make.graph(value)))
    assert [attrs.get("penwidth", "1") for _, _, attrs in drawn.edges] == ["1", "1.5", "2.2", "3"]


def test_constants_stand_beside_each_user_or_inside_or_once():
    make = Maker()
    x, two = make.input("f32[8]", "x"), make.const(2.0)
    big = make.const(np.zeros(100, np.float32), "f32[100]")
    a = make.value("subtract", x, two)
    b = make.value("subtract", two, a)
    graph = make.graph(make.value("add", b, big), name="f")
    beside = read_dot(dot(graph))
    copies = [name for name in beside.nodes if name.startswith(f"n{graph.nodes[0].id}_for")]
    assert len(copies) == 2
    assert text(beside.nodes[copies[0]]["label"]) == "2.0\n%1\nuse 1 of 2"
    inside = read_dot(dot(graph, leaves="inside"))
    assert text(inside.nodes[f"n{graph.nodes[3].id}"]["label"]) == "%7 subtract\n2.0 - %5\nline 4"
    assert [name for name in inside.nodes if "_for_" in name] == [
        f"n{graph.nodes[1].id}_for_n{graph.nodes[4].id}"
    ]
    shared = read_dot(dot(graph, leaves="shared"))
    assert not [name for name in shared.nodes if "_for_" in name]
    assert sum(shared.data().values()) == sum(beside.data().values())


def test_sharing_a_leaf_among_many_is_refused():
    make = Maker()
    x, two = make.input("f32[8]", "x"), make.const(2.0)
    values = [make.value("add", x, two) for _ in range(41)]
    with pytest.raises(OptionError, match="41 users"):
        dot(make.graph(*values), leaves="shared")


def test_operands_are_told_apart_where_their_order_matters():
    drawn = read_dot(dot(graphs.layer()))
    labels = [text(attrs["label"]).split("\n") for attrs in drawn.nodes.values()]
    assert ["%10 subtract", "%y - 1.5", "line 5"] in labels
    assert ["%h matmul", "%x, %w", "line 1"] in labels
    assert ["print", "'total', %total", "line 16"] in labels


def test_what_nothing_uses_is_drawn_as_such():
    make = Maker()
    x, unread = make.input("f32[8]", "x"), make.input("f32[4]", "unread")
    first = make.value("exp", x)
    make.value("exp", first, hint="last")
    make.const(3.0, hint="alone")
    drawn = read_dot(dot(make.graph(x)))
    labels = {name: text(attrs["label"]) for name, attrs in drawn.nodes.items()}
    assert labels[f"v{unread.id}"] == "%unread\nf32[4]\nnot used"
    assert sum("dead" in attrs["class"] for attrs in drawn.nodes.values()) == 3
    assert any(label == "3.0\n%alone\nnot used" for label in labels.values())


def test_effects_keep_their_order_visibly():
    graph = graphs.layer()
    first, second = (f"n{node.id}" for node in graph.nodes if node.op.name == "print")
    assert read_dot(dot(graph)).kinds("order") == {(first, second)}


def test_results_are_named_by_their_place():
    graph = graphs.layer()
    lines = first_lines(read_dot(dot(graph)))
    assert (lines["return0"], lines["return1"]) == ("return[0]", "return[1]")
    assert first_lines(read_dot(dot(graphs.textbook())))["return0"] == "return"


def test_constant_results_are_drawn_with_what_they_are():
    def drawn(function: Callable[..., object]) -> Dot:
        return read_dot(dot(trace(function, np.ones(2)), labels="none"))

    one = drawn(lambda x: {"y": x * 2, "k": 3, "deep": (None, "a \\ b")})
    lines = first_lines(one)
    found = {
        lines[head]: lines[tail] for tail, head in one.data() if head.startswith("return_static")
    }
    assert found == {
        "return['k']": "3",
        "return['deep'][0]": "None",
        "return['deep'][1]": repr("a \\ b"),
    }
    assert drawn(lambda x: 3).data() == Counter({("static0", "return_static0"): 1})
    assert not drawn(lambda x: None).data()
    many = drawn(lambda x: (x, [1] * 50))
    assert sum(name.startswith("static") for name in many.nodes) == 8
    assert "42 more constant results" in text(many.graph["label"])


def test_places_name_the_file_where_there_are_several(tmp_path: Path):
    (tmp_path / "other.py").write_text("def twice(x):\n    return x * 2\n")
    other = runpy.run_path(str(tmp_path / "other.py"))["twice"]

    def labels(function: Callable[..., object]) -> str:
        return " ".join(
            text(a["label"]) for a in read_dot(dot(trace(function, 1.5))).nodes.values()
        )

    alone = labels(lambda x: x + 1)
    assert "line " in alone and ".py:" not in alone
    both = labels(lambda x: other(x) + 1)
    assert "other.py:2" in both and "test_dot.py:" in both and "line " not in both


def test_a_value_that_nothing_defines_is_shown_not_hidden():
    make, other = Maker(), Maker()
    stranger = other.input("f32[8]", "stranger")
    drawn = read_dot(dot(make.graph(make.value("exp", stranger))))
    assert [each for each in drawn.nodes.values() if "not defined" in text(each["label"])]


# ---------------------------------------------------------------------------- regions


def test_regions_are_clusters_and_edges_cross_them_rightly():
    graph = graphs.regions()
    one, y, kernel, chosen, call = graph.nodes
    x, flag = graph.inputs
    drawn = read_dot(dot(graph))
    body = kernel.attrs["body"].nodes
    k = f"n{kernel.id}"
    assert f"cluster_{k}" in drawn.clusters
    for node in body[1:]:
        assert drawn.inside[f"{k}_n{node.id}"] == [f"cluster_{k}"]
    flows = drawn.data()
    # A kernel's region is wired to the outer values directly.
    assert flows[f"v{x.id}", f"{k}_n{body[1].id}"] == 1
    assert flows[f"n{y.id}", f"{k}_n{body[2].id}"] == 1
    assert flows[f"{k}_n{body[3].id}", f"n{chosen.id}_entry"] == 1
    assert flows[f"v{flag.id}", f"n{chosen.id}_entry"] == 1
    assert flows[f"n{one.id}_for_n{y.id}", f"n{y.id}"] == 1
    # An `if` has its regions between ports, within a double frame.
    i = f"n{chosen.id}"
    (a,) = chosen.attrs["then"].inputs
    then = chosen.attrs["then"].nodes[0]
    assert {f"cluster_{i}", f"cluster_{i}_frame"} <= set(drawn.clusters)
    assert flows[f"{i}_then_v{a.id}", f"{i}_then_n{then.id}"] == 1
    assert flows[f"{i}_then_n{then.id}", f"{i}_then_yield0"] == 1
    assert (f"{i}_entry", f"{i}_then_v{a.id}") in drawn.kinds("control")
    assert (f"{i}_then_yield0", f"{i}_exit") in drawn.kinds("control")
    # The `while` within the call takes the value of the `if` and gives that of the graph.
    loop = call.attrs["function"].nodes[0]
    assert flows[f"{i}_exit", f"n{call.id}_n{loop.id}_entry"] == 1
    assert flows[f"n{call.id}_n{loop.id}_exit", "return0"] == 1
    # Data goes back from what the body of the `while` returns to what it takes.
    assert sum(flows.values()) == 21


def test_a_loop_leads_back_from_each_carried_value_to_itself():
    graph = parse(LOOPS)
    repeat, along = graph.nodes
    drawn = read_dot(dot(graph))
    w, s = f"n{repeat.id}_body", f"n{along.id}_body"
    n, more = repeat.attrs["body"].inputs
    h = along.attrs["body"].inputs[0]
    assert set(drawn.kinds("back")) == {
        (f"{w}_yield0", f"{w}_v{n.id}"),
        (f"{w}_yield1", f"{w}_v{more.id}"),
        (f"{s}_yield0", f"{s}_v{h.id}"),
    }
    assert {f"cluster_n{repeat.id}_frame", f"cluster_n{along.id}_frame"} <= set(drawn.clusters)
    labels = {name: text(drawn.nodes[name]["label"]) for name in drawn.nodes if "yield" in name}
    assert labels == {
        f"n{repeat.id}_test_yield0": "go on?",
        f"{w}_yield0": "next %n",
        f"{w}_yield1": "next %more",
        f"{s}_yield0": "next %h",
        f"{s}_yield1": "row of %hs",
    }


LOOPS = """graph loops(%n: int, %more: bool, %x: f64[3]) {
  %m, %last = while %n, %more {test=graph test(%n: int, %more: bool) {
    return %more
  }, body=graph body(%n: int, %more: bool) {
    %next = negative %n : int
    return (%next, %more)
  }} : int, bool
  %h, %hs = scan %x, %x {carried=1, scanned=1, length=3, body=graph body(%h: f64[3], %e: f64[]) {
    %s = add %h, %e : f64[3]
    return (%s, %s)
  }} : f64[3], f64[3,3]
  return (%m, %hs)
}"""


def test_one_region_held_by_two_nodes_is_drawn_twice():
    inner = Maker()
    p = inner.input("f32[8]", "p")
    region = inner.graph(inner.value("exp", p), name="again")
    make = Maker(inner.ids)
    x = make.input("f32[8]", "x")
    first = make.value("call", x, function=region)
    graph = make.graph(make.value("call", first, function=region))
    drawn = read_dot(dot(graph))
    calls = [f"n{node.id}_n{region.nodes[0].id}" for node in graph.nodes]
    assert drawn.data() == Counter(
        [(f"v{x.id}", calls[0]), (calls[0], calls[1]), (calls[1], "return0")]
    )


def test_deep_regions_are_closed():
    ids, region = Maker().ids, None
    for _ in range(200):
        make = Maker(ids)
        x = make.input("f32[8]", "x")
        attrs = {} if region is None else {"function": region}
        region = make.graph(make.value("exp" if region is None else "call", x, **attrs))
    assert region is not None
    drawn = read_dot(dot(region))
    assert len(drawn.clusters) == 3
    assert any("196 nodes inside" in attrs["label"] for attrs in drawn.nodes.values())


def test_a_region_without_inputs_or_nodes():
    make, inner = Maker(), Maker()
    inner.node("print", [], [], {"parts": ("hello",)})
    empty = Maker(inner.ids).graph()
    flag = make.input("bool[]", "flag")
    make.node("if", [flag], [], {"then": inner.graph(), "orelse": empty})
    drawn = read_dot(dot(make.graph()))
    assert (f"n{make.nodes[0].id}_entry", drawn.edges[-1][1]) in drawn.kinds("control")


# ---------------------------------------------------------------------------- overlays


def remade(node: Node, inputs: list[Value], ids: Ids) -> Node:
    """The same computation of other inputs, with the same results."""
    return Node(ids.next(), node.op, inputs, node.attrs, node.outputs, node.loc, (node,))


def stages() -> tuple[Graph, Graph, dict[str, str]]:
    """A graph, the same after a merge and a new node, and the names of some boxes."""
    make = Maker()
    x = make.input("f64[10]", "x")
    a = make.value("exp", x, hint="a")
    b = make.value("exp", x, hint="b")
    c = make.value("add", a, b, hint="c")
    make.node("print", [c], [], {"parts": (OPERAND,)})
    before = make.graph(c)
    first, second, third, last = before.nodes
    merged = remade(third, [a, a], make.ids)
    extra = Maker(make.ids)
    new = extra.value("sort", c, hint="new")
    printed = remade(last, [new], make.ids)
    after = before.replace([first, merged, *extra.nodes, printed])
    names = {
        "a": f"n{first.id}",
        "b": f"gone_n{second.id}",
        "c": f"n{merged.id}",
        "new": f"n{extra.nodes[0].id}",
        "print": f"n{printed.id}",
    }
    return before, after, names


def test_a_stage_is_compared_by_identity():
    before, after, names = stages()
    events = [Event("replace", "cse.same", "merged into %a", before=[before.nodes[1]])]
    events.append(Event("refuse", "cse.same", "another dtype", [before.nodes[0]], code="DTYPE"))
    drawn = read_dot(dot(after, before=before, events=events))
    lines = first_lines(drawn)
    assert lines[names["a"]] == "%a exp"
    assert lines[names["b"]] == "- %b exp"
    assert lines[names["c"]] == "~ %c add"
    assert lines[names["new"]] == "+ %new sort"
    assert lines[names["print"]] == "~ print"
    assert "removed" in drawn.nodes[names["b"]]["class"]
    assert "merged into %a" in text(drawn.nodes[names["b"]]["label"])
    assert "merged into %a" in drawn.nodes[names["b"]]["tooltip"]
    assert "! DTYPE: another dtype" in text(drawn.nodes[names["a"]]["label"])
    unchanged = read_dot(dot(after, before=after))
    assert not [line for line in first_lines(unchanged).values() if line[0] in "+~-"]


def test_a_plan_gives_slots_letters():
    before, _, names = stages()
    a, b, c = (node.output for node in before.nodes[:3])
    plan = Plan(
        dies=[()] * 4, slot={a: 0, b: 1, c: 0}, reuses={c: a}, in_place=frozenset([c]),
        slot_bytes=[80, 80], peak_bytes=160, naive_bytes=240, lower_bytes=160,
        live_bytes=[80, 160, 80, 80], why_not={},
    )  # fmt: skip
    drawn = read_dot(dot(before, plan=plan))
    assert "slot A\n" in text(drawn.nodes[names["a"]]["label"])
    c_name = f"n{before.nodes[2].id}"
    assert "slot A in place\n" in text(drawn.nodes[c_name]["label"])
    assert drawn.nodes[c_name]["fillcolor"] == drawn.nodes[names["a"]]["fillcolor"]
    assert drawn.kinds("reuse") == {(names["a"], c_name)}


def test_a_legend_explains_the_shapes_that_occur():
    drawn = read_dot(dot(graphs.textbook(), legend=True))
    legend = {text(drawn.nodes[name]["label"]) for name in drawn.nodes if "legend" in name}
    assert legend == {"argument", "element by element", "result"}


# ---------------------------------------------------------------------------- options


def test_options_are_checked_with_the_nearest_name():
    graph = graphs.textbook()
    with pytest.raises(OptionError, match="no drawing option 'tittle'") as error:
        dot(graph, tittle="x")
    assert str(error.value.instead).startswith("did you mean 'title'? known are rankdir, ")
    with pytest.raises(OptionError, match="rankdir='UP'"):
        dot(graph, rankdir="UP")
    with pytest.raises(OptionError, match="prefix="):
        dot(graph, prefix='"><script>')
    for given in ("", "0a", "a b", "ä"):
        with pytest.raises(OptionError):
            dot(graph, prefix=given)


def test_options_reach_the_text():
    drawn = read_dot(dot(graphs.textbook(), rankdir="LR", title='a "title"'))
    assert drawn.graph["rankdir"] == "LR" and text(drawn.graph["label"]) == 'a "title"\n'
    dark = dot(graphs.textbook(), theme="dark")
    assert "#111827" in dark and 'bgcolor="#111827"' in dark and "#D6EAF8" not in dark


def test_an_odd_signature_is_no_obstacle():
    make = Maker()
    x = make.input("f32[8]", "x")
    graph = Graph("f", [x], make.nodes, [x, x], Signature([]))
    assert sum(read_dot(dot(graph)).data().values()) == 2
