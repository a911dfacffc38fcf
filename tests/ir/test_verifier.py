from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ir.local import ADD, CHOOSE, CONST, F32, IDLE, NEG, NOTE, OPS, TWICE, VIEW, WRITE, graphs

from minigraph.errors import MinigraphError, VerifyError
from minigraph.ir import (
    FLOAT,
    INT,
    LEAF,
    Branch,
    Graph,
    Loc,
    Node,
    Op,
    Signature,
    Value,
    parse_graph,
    verify,
)
from minigraph.ir.verifier import RULES


def value(id: int, hint: str | None = None, type: Any = F32) -> Value:
    return Value(id, type, hint)


a, b, c, d, e = (value(i, hint) for i, hint in enumerate("abcde"))
i = value(7, "i", INT)
neg_a = Node(10, NEG, [a], {}, [b])


def graph(*nodes: Node, inputs: Any = (a,), outputs: Any = (), signature: Any = None) -> Graph:
    return Graph("f", inputs, nodes, outputs, signature)


def attr(attr: Any, op: Op = NEG, name: Any = "axis") -> Graph:
    return graph(Node(0, op, [] if op is CONST else [a], {name: attr}, [b]))


class Color(enum.IntEnum):
    RED = 1


class Odd(np.ndarray):
    pass


def strict(types: Any, attrs: Any) -> Any:
    (only,) = types
    return only


STRICT = Op("strict", "elementwise", strict)
TELL = Op("tell", "effect", NEG.infer, effect="print")
ONE_MORE = Signature([("a", LEAF)], ["w"])
TWO_RESULTS = Signature([("a", LEAF)], (), Branch(list, (0, 1), [LEAF] * 2))

BROKEN = [
    ("defined_once", "%a is an input twice", graph(inputs=[a, a])),
    ("defined_once", "%b is defined above already", graph(neg_a, Node(11, NEG, [a], {}, [b]))),
    ("defined_once", "%b is defined above already", graph(neg_a, neg_a)),
    ("defined_once", "%a is defined above already", graph(Node(0, NEG, [a], {}, [a]))),
    ("defined_once", "%b is defined", graph(Node(0, TWICE, [a], {}, [b, b]))),
    ("defined_before_use", "nothing above defines %b", graph(Node(0, NEG, [b], {}, [c]))),
    ("defined_before_use", "%b", graph(Node(0, NEG, [b], {}, [c]), neg_a)),
    ("defined_before_use", "%b", graph(Node(0, NEG, [b], {}, [b]))),
    ("outputs_defined", "nothing defines the output %b", graph(outputs=[b])),
    ("signature_fits", "0 leaves of parameters and 0", graph(signature=Signature([]))),
    ("signature_fits", "1 leaves of parameters and 1", graph(signature=ONE_MORE)),
    (
        "signature_fits",
        "2 leaves of the result for 1 outputs",
        graph(outputs=[a], signature=TWO_RESULTS),
    ),
    ("ids_unique", "two inputs have the id 0", graph(inputs=[a, value(0, "z")])),
    ("ids_unique", "a value above has the id 0", graph(Node(0, NEG, [a], {}, [value(0, "z")]))),
    ("ids_unique", "a node above has the id 10", graph(neg_a, Node(10, NEG, [a], {}, [c]))),
    ("names_tell_apart", "called %a", graph(Node(0, NEG, [a], {}, [value(1, "a")]))),
    ("names_tell_apart", "hint '1' is not a name", graph(inputs=[value(0, "1")])),
    ("names_tell_apart", "is not a name", graph(inputs=[value(0, "x y")])),
    ("names_tell_apart", "is not a name", graph(Node(0, NEG, [a], {}, [value(1, "x\n")]))),
    ("attrs_plain", "holds a object", attr(object())),
    ("attrs_plain", "holds a ndarray", attr(np.zeros(2))),
    ("attrs_plain", "holds a float64", attr((1, [np.float64(1)]))),
    ("attrs_plain", "holds a Color", attr(Color.RED)),
    ("attrs_plain", "holds a type", attr(slice(None, float))),
    ("attrs_plain", "holds a dtype object", attr(np.dtype("O"))),
    ("attrs_plain", "holds a dict", attr({"x": 1})),
    ("attrs_plain", "holds a Graph", attr((graph(),))),
    ("attrs_plain", "not an identifier", attr(1, name="two words")),
    ("attrs_plain", "not an identifier", attr(1, name=3)),
    ("attrs_plain", "str is no array", attr("x", CONST, "value")),
    ("attrs_plain", "Odd is no array", attr(np.zeros(2).view(Odd), CONST, "value")),
    ("attrs_plain", "list is no array", attr([1], CONST, "value")),
    ("attrs_plain", "Color is no array", attr(Color.RED, CONST, "value")),
    ("results_or_effect", "idle has neither", graph(Node(0, IDLE, [a], {}, []))),
    ("write_targets_are_inputs", "%b is no input", graph(neg_a, Node(11, WRITE, [b, a], {}, []))),
    ("write_targets_are_inputs", "nothing is no input", graph(Node(11, WRITE, [], {}, []))),
    (
        "written_inputs_rest",
        "%a is read after the write to %a",
        graph(neg_a, Node(11, WRITE, [a, b], {}, []), Node(12, NEG, [a], {}, [c])),
    ),
    (
        "written_inputs_rest",
        "%c is read after the write to %a",
        graph(
            Node(0, VIEW, [a], {}, [b]),
            Node(1, VIEW, [b], {}, [c]),
            Node(2, WRITE, [a, d], {}, []),
            Node(3, NOTE, [c], {}, []),
            inputs=[a, d],
        ),
    ),
    (
        "written_inputs_rest",
        "%a is read",  # two inputs exchanged without a copy
        graph(Node(0, WRITE, [a, b], {}, []), Node(1, WRITE, [b, a], {}, []), inputs=[a, b]),
    ),
    (
        "written_inputs_rest",
        "%a is returned after the write",
        graph(Node(0, WRITE, [a, b], {}, []), inputs=[a, b], outputs=[a]),
    ),
    ("types_as_inferred", r"gives f32\[2,3\], not int", graph(Node(0, NEG, [a], {}, [i]))),
    ("types_as_inferred", "not none", graph(Node(0, TELL, [a], {}, []))),
    ("types_as_inferred", r"3\], f32\[2,3\], not f32", graph(Node(0, TWICE, [a], {}, [b]))),
    (
        "types_as_inferred",
        r"int and f32\[2,3\] do not fit",
        graph(Node(0, ADD, [i, a], {}, [b]), inputs=[i, a]),
    ),
    ("types_as_inferred", "does not take these inputs", graph(Node(0, STRICT, [a, a], {}, [b]))),
    ("types_as_inferred", "does not take these inputs", graph(Node(0, CONST, [], {}, [b]))),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "found", "broken"), BROKEN)
def test_a_broken_graph(rule: str, found: str, broken: Graph) -> None:
    with pytest.raises(VerifyError, match=found) as caught:
        verify(broken, stage="a pass")
    message = str(caught.value)
    assert message.startswith(f"[MG014] after a pass: graph f breaks the rule {rule}: ")


def test_every_rule_is_broken_once_and_has_a_sentence() -> None:
    assert {rule for rule, _, _ in BROKEN} == {rule.__name__ for rule in RULES}
    for rule in RULES:
        assert (rule.__doc__ or "").split("\n\n")[0].rstrip().endswith(".")


@settings(max_examples=50)
@given(graphs())
def test_whole_graphs_verify(made: Graph) -> None:
    verify(made)


def test_writes_in_order_verify() -> None:
    after = value(5, "a.1")
    verify(
        graph(
            Node(0, NEG, [a], {}, [after]),
            Node(1, WRITE, [a, after], {}, []),
            Node(2, WRITE, [a, after], {}, []),
            Node(3, NOTE, [after], {}, []),
            outputs=[after],
        )
    )


@pytest.mark.parametrize(("rule", "found", "broken"), BROKEN[::5])
def test_regions_are_verified(rule: str, found: str, broken: Graph) -> None:
    x, y = value(0, "x"), value(1, "y")
    inside: Graph = broken
    for _ in range(3):
        inside = Graph("g", [x], [Node(0, CHOOSE, [x], {"then": inside}, [y])], [y])
    with pytest.raises(VerifyError, match=found):
        verify(inside)


def test_a_region_sees_nothing_of_the_outside() -> None:
    inside = Graph("inside", [], [Node(0, NEG, [a], {}, [c])], [c])
    with pytest.raises(VerifyError, match="graph inside breaks the rule defined_before_use"):
        verify(graph(Node(1, CHOOSE, [a], {"then": inside}, [b])))


def test_the_error_shows_rule_node_place_and_text() -> None:
    broken = graph(neg_a, Node(11, ADD, [b, c], {}, [d], Loc("model.py", 7)), outputs=[d])
    with pytest.raises(VerifyError) as caught:
        verify(broken, stage="cse")
    assert (
        str(caught.value)
        == """\
[MG014] after cse: graph f breaks the rule defined_before_use: A value is defined before the nodes \
that read it, in the same graph.
  found:   nothing above defines %c
  node:    %d = add %b, %c : f32[2,3]
  graph:
      graph f(%a: f32[2,3]) {
        %b = neg %a : f32[2,3]
      > %d = add %b, %c : f32[2,3]
        return %d
      }
  where:   model.py:7
  more:    minigraph explain MG014"""
    )
    assert isinstance(caught.value, MinigraphError)


def test_of_a_large_graph_a_part_is_shown() -> None:
    nodes = [Node(i, NEG, [a], {}, [value(i + 1)]) for i in range(50_000)]
    nodes[30_000] = Node(30_000, NEG, [value(99_999, "missing")], {}, [value(30_001)])
    with pytest.raises(VerifyError, match="%missing") as caught:
        verify(graph(*nodes))
    message = str(caught.value)
    assert "... 29992 nodes" in message and "... 19991 nodes" in message
    assert message.count("= neg") == 18 and "> %30001 = neg %missing" in message


def test_a_parsed_graph_may_break_rules() -> None:
    text = "graph f(%x: int) {\n  %y = neg %x : float\n  return %y\n}"
    with pytest.raises(VerifyError, match="neg gives int, not float"):
        verify(parse_graph(text, OPS))


def test_types_are_compared_and_not_only_counted() -> None:
    x, y = value(0, "x", FLOAT), value(1, "y", FLOAT)
    verify(Graph("f", [x], [Node(0, NEG, [x], {}, [y])], [y]))
