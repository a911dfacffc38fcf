from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ir.local import ADD, CHOOSE, CONST, F32, NEG, NOTE, TWICE, WRITE, graphs

from minigraph.ir import (
    FLOAT,
    INT,
    LEAF,
    Branch,
    Graph,
    Ids,
    Loc,
    Node,
    Op,
    Signature,
    Value,
    inner_first,
    type_of,
    verify,
    walk,
)


def constant(value: Any, **attrs: Any) -> Graph:
    out = Value(0, type_of(value))
    return Graph("f", [], [Node(0, CONST, [], {"value": value, **attrs}, [out])], [out])


def with_attrs(**attrs: Any) -> Graph:
    x, y = Value(0, FLOAT, "x"), Value(1, FLOAT)
    return Graph("f", [x], [Node(0, NEG, [x], attrs, [y])], [y])


def sum_of(
    names: Sequence[str | None] = ("a", "b", "c"),
    start: int = 0,
    loc: Loc | None = None,
    op: Op = ADD,
    reverse: bool = False,
    twice: bool = False,
    signature: Signature | None = None,
    name: str = "f",
) -> Graph:
    a, b, c = (Value(start + i, F32, hint) for i, hint in enumerate(names))
    inputs = [a, a] if twice else [b, a] if reverse else [a, b]
    signature = signature or Signature([("a", LEAF), ("b", LEAF)], (), LEAF)
    return Graph(name, [a, b], [Node(start, op, inputs, {}, [c], loc)], [c], signature)


def test_equality_ignores_ids_hints_places_and_the_name() -> None:
    one = sum_of()
    for other in (
        sum_of(start=40),
        sum_of(names=(None, "b.7", None)),
        sum_of(loc=Loc("f.py", 3)),
        sum_of(name="g"),
        one.canonical(),
    ):
        assert one == other and hash(one) == hash(other) and one.key() == other.key()


def point(keys: Sequence[str] = ("x", "y")) -> Signature:
    return Signature([("p", Branch(None, keys, [LEAF, LEAF], "Point"))], (), LEAF)


DIFFERENT = [
    sum_of(),
    sum_of(reverse=True),
    sum_of(twice=True),
    sum_of(op=Op("sub", "elementwise", ADD.infer)),
    sum_of(signature=point()),
    sum_of(signature=point(("x", "z"))),
    sum_of(signature=Signature([("a", LEAF)], ["b"], LEAF)),
    sum_of(signature=Signature([("a", LEAF)], ["self.b"], LEAF)),
    sum_of(signature=Signature([("a", LEAF), ("b", LEAF)], (), Branch(tuple, (0,), [LEAF]))),
    sum_of(signature=Signature([("a", LEAF), ("b", LEAF)], (), LEAF, program=True)),
    *(
        constant(value)
        for value in (
            0.0,
            -0.0,
            float("nan"),
            -float("nan"),
            0,
            False,
            1,
            True,
            1.0,
            1 + 0j,
            np.float64(1.0),
            np.array(1.0),
            np.array([1.0]),
            np.arange(100.0),
            np.arange(100.0).reshape(10, 10),
        )
    ),
    with_attrs(),
    with_attrs(axis=0),
    with_attrs(axis=0.0),
    with_attrs(axis=False),
    with_attrs(axis=(0,)),
    with_attrs(axis=[0]),
    with_attrs(other=0),
    with_attrs(dtype=np.dtype("f4")),
    with_attrs(dtype="float32"),
    with_attrs(then=sum_of()),
    with_attrs(then=sum_of(reverse=True)),
    with_attrs(otherwise=sum_of()),
    with_attrs(then=with_attrs(then=sum_of())),
    with_attrs(then=with_attrs(then=sum_of(reverse=True))),
]  # fmt: skip


def test_what_differs_is_not_equal() -> None:
    for i, a in enumerate(DIFFERENT):
        for j, b in enumerate(DIFFERENT):
            assert (a == b) == (i == j) == (a.key() == b.key()), (str(a), str(b))
    assert len(set(DIFFERENT)) == len(DIFFERENT)
    assert sum_of() != "f"


def test_regions_have_no_order() -> None:
    then, otherwise = sum_of(), sum_of(reverse=True)
    a = with_attrs(then=then, otherwise=otherwise)
    b = with_attrs(otherwise=otherwise, then=then)
    assert a == b and hash(a) == hash(b) and a.key() == b.key()
    assert a != with_attrs(then=otherwise, otherwise=then)


def test_types_of_inputs_and_results_count() -> None:
    def negated(type: Any) -> Graph:
        x, y = Value(0, FLOAT), Value(1, type)
        return Graph("f", [x], [Node(0, NEG, [x], {}, [y])], [y])

    assert negated(INT) != negated(FLOAT) and negated(INT) == negated(INT)

    def identity(type: Any) -> Graph:
        x = Value(0, type)
        return Graph("f", [x], [], [x])

    assert identity(INT) != identity(FLOAT) and identity(INT) == identity(INT)


@settings(max_examples=50)
@given(graphs())
def test_canonical(graph: Graph) -> None:
    canonical = graph.canonical()
    verify(canonical)
    assert canonical == graph and canonical.canonical() == graph
    for inner in inner_first(canonical):
        values = list(inner.values())
        assert [value.id for value in values] == list(range(len(values)))
        assert [node.id for node in inner.nodes] == list(range(len(inner.nodes)))
        assert not any(value.hint for value in values)
    for ours, theirs in zip(graph.nodes, canonical.nodes, strict=True):
        assert theirs.origin == (ours,) and theirs.loc is ours.loc


def test_canonical_texts_are_the_same() -> None:
    flat = Signature([("", LEAF), ("", LEAF)], (), LEAF)
    a, b = sum_of(start=10, signature=flat), sum_of(names=(None, "x", "y"), signature=flat)
    assert str(a.canonical()) == str(b.canonical())


def test_flat_signatures() -> None:
    x, y = Value(0, INT, "x"), Value(1, INT)
    assert str(Graph("f", [x, y], [], [x])).startswith("graph f(%x: int, %1: int)")
    assert str(Graph("f", [x], [], [])).splitlines()[1] == "  return None"
    assert str(Graph("f", [x], [], [x])).splitlines()[1] == "  return %x"
    assert str(Graph("f", [x], [], [x, x])).splitlines()[1] == "  return (%x, %x)"
    other = [Value(5, INT, "x"), Value(6, INT)]
    assert Graph("f", [x, y], [], [y]) == Graph("f", other, [], other[1:])


def nested() -> Graph:
    inner = with_attrs()
    middle = with_attrs(then=inner, otherwise=inner)
    x, y = Value(0, FLOAT, "x"), Value(1, FLOAT, "y")
    nodes = [
        Node(0, NEG, [x], {}, [y]),
        Node(1, CHOOSE, [y], {"then": middle, "otherwise": inner}, [Value(2, FLOAT, "z")]),
        Node(2, NOTE, [y, y], {}, []),
    ]
    return Graph("outer", [x], nodes, [y])


def test_walk_goes_through_regions_in_order() -> None:
    graph = nested()
    middle, inner = (region for _, region in graph.nodes[1].regions)
    assert list(walk(graph)) == [
        *graph.nodes[:2],
        *middle.nodes,
        *inner.nodes,
        *inner.nodes,
        *inner.nodes,
        graph.nodes[2],
    ]


def test_inner_first() -> None:
    graph = nested()
    middle, inner = (region for _, region in graph.nodes[1].regions)
    assert [id(found) for found in inner_first(graph)] == [id(inner), id(middle), id(graph)]


def test_shared_regions_cost_nothing() -> None:
    graph = with_attrs()
    for _ in range(60):  # 2**60 regions if each is counted where it stands
        graph = with_attrs(then=graph, otherwise=graph)
    again = graph.canonical()
    assert again == graph and hash(again) == hash(graph) and len(inner_first(graph)) == 61
    verify(again)


def test_producers_and_users() -> None:
    graph = nested()
    x, y, z = graph.values()
    assert graph.producers() == {y: graph.nodes[0], z: graph.nodes[1]}
    assert graph.users() == {x: [graph.nodes[0]], y: [graph.nodes[1], graph.nodes[2]], z: []}


def test_replace_keeps_what_is_not_named() -> None:
    graph = nested()
    shorter = graph.replace(nodes=graph.nodes[:1])
    assert shorter.nodes == graph.nodes[:1] and shorter.outputs == graph.outputs
    assert shorter.signature is graph.signature and shorter.nodes[0] is graph.nodes[0]
    assert graph.replace(outputs=graph.inputs).nodes == graph.nodes


def test_nodes() -> None:
    x, y = Value(0, INT, "x"), Value(1, INT, "y")
    node = Node(0, NEG, [x], {"a": 1}, [y], Loc("f.py", 1))
    assert node.output is y and node.origin == (node,) and not node.is_effect
    risky = Op("risky", "index", NEG.infer, raises=lambda node: "unsafe" in node.attrs)
    assert Node(0, risky, [x], {"unsafe": True}, [y]).is_effect
    assert not Node(0, risky, [x], {}, [y]).may_raise
    assert Node(0, WRITE, [x, y], {}, []).is_effect
    with pytest.raises(AssertionError):
        Node(0, TWICE, [x], {}, [x, y]).output  # noqa: B018


def test_constants() -> None:
    big = np.arange(10.0)
    graph = with_attrs(then=with_attrs(then=constant(big)))
    assert list(graph.constants.values()) == [big] or graph.constants.popitem()[1] is big
    assert constant(np.zeros(3)).constants == {}


def test_ids_are_never_given_twice() -> None:
    ids = Ids(5, ["y", "y.1", "z.1"])
    given = [ids.name(hint) for hint in ("x", "x", "y", "y.1", "x.4", "z", "z", "y")]
    assert given == ["x", "x.1", "y.2", "y.3", "x.2", "z", "z.2", "y.4"]
    assert [ids.next(), ids.next(), ids.value(INT).id, ids.value(INT, "x").id] == [5, 6, 7, 8]
    value = ids.value(FLOAT, "x")
    assert value.name == "x.4" and value.type is FLOAT and ids.value(INT).hint is None


@settings(max_examples=50)
@given(graphs())
def test_ids_after_a_graph(graph: Graph) -> None:
    ids = Ids.after(graph)
    names, numbers = set[str](), set[int]()
    for inner in inner_first(graph):
        names |= {value.name for value in inner.values()}
        numbers |= {value.id for value in inner.values()} | {node.id for node in inner.nodes}
    fresh = [ids.value(INT, hint) for hint in ("x", "y", "loss", "then", "x", "y")]
    assert not names & {value.name for value in fresh} and len({v.name for v in fresh}) == 6
    assert not numbers & {value.id for value in fresh} and len({v.id for v in fresh}) == 6


def test_names_of_values() -> None:
    assert Value(3, INT).name == "3" and Value(3, INT, "x").name == "x"
    assert repr(Value(3, F32, "x")) == "%x: f32[2,3]"
    assert str(Loc("a/b\\c.py", 7, caller=Loc("d.py", 1))) == "c.py:7"
