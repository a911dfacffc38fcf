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
from minigraph.ops import OPS as REAL_OPS


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
IF = Op("if", "control", lambda types, attrs: types[1])
TELL = Op("tell", "effect", NEG.infer, effect="print")
ONE_MORE = Signature([("a", LEAF)], ["w"])
TWO_RESULTS = Signature([("a", LEAF)], (), Branch(list, (0, 1), [LEAF] * 2))


def structured(node: str) -> Graph:
    """A graph of one `if` or loop, of ops as they are."""
    return parse_graph(
        f"graph f(%c: bool, %n: int, %x: f64[3], %y: f64[3], %xs: f64[2,3]) {{\n{node}\n"
        "  return None\n}",
        REAL_OPS,
    )


SAME = "graph g(%x: f64[3]) { return %x }"
TURN = "graph g(%n: int) { return %n }"
OVERWRITTEN = """\
  %z = while %x, %y {test=graph t(%a: f64[3], %b: f64[3]) {
    %more = const False : bool
    return %more
  }, body=graph g(%a: f64[3], %b: f64[3]) {
    LINE
    return %w
  }} : f64[3]"""
INNER = Graph("g", [a], [Node(0, NEG, [a], {}, [d])], [d])

BROKEN = [
    (
        "values_stay_inside",
        "%d is made inside of the `if`",
        graph(
            Node(0, IF, [a, a], {"then": INNER, "otherwise": INNER}, [b]),
            Node(1, NEG, [d], {}, [c]),
        ),
    ),
    (
        "values_stay_inside",
        "the output %d is made inside of the `if`",
        graph(Node(0, IF, [a, a], {"then": INNER, "otherwise": INNER}, [b]), outputs=[d]),
    ),
    (
        "regions_fit_operands",
        "the then graph has 1 inputs for 2 operands",
        structured(f"  %z = if %c, %x, %y {{then={SAME}, otherwise={SAME}}} : f64[3]"),
    ),
    (
        "regions_fit_operands",
        r"input 0 of the then graph is %x: f64\[3\], and operand 1 %n: int",
        structured(f"  %z = if %c, %n {{then={SAME}, otherwise={SAME}}} : f64[3]"),
    ),
    (
        "regions_fit_operands",
        r"operand 0 an element of %x: f64\[3\]",
        structured(f"  %z = scan %x {{body={SAME}, carried=0, scanned=1, length=3}} : f64[3,3]"),
    ),
    (
        "branches_agree",
        "one returns 1 values, the other one 0",
        structured(
            f"  %z = if %c, %x {{then={SAME}, otherwise=graph g(%x: f64[3]) {{ return None }}}}"
            " : f64[3]"
        ),
    ),
    (
        "branches_agree",
        "result 0 is a f64.3. in one, and a int in the other one",
        structured(
            "  %z = if %c, %x, %n {then=graph g(%x: f64[3], %n: int) { return %x }, "
            "otherwise=graph g(%x: f64[3], %n: int) { return %n }} : f64[3]"
        ),
    ),
    (
        "tests_are_bools",
        "%n is a int",
        structured(f"  %z = if %n, %x {{then={SAME}, otherwise={SAME}}} : f64[3]"),
    ),
    (
        "tests_are_bools",
        "%n is a int",
        structured(f"  %z = while %n {{test={TURN}, body={TURN}}} : int"),
    ),
    (
        "tests_are_bools",
        "the test returns 0 values",
        structured(
            f"  %z = while %n {{test=graph t(%n: int) {{ return None }}, body={TURN}}} : int"
        ),
    ),
    (
        "carried_types_stay",
        r"given %n: int, left %x: f64\[3\]",
        structured(
            "  %z = scan %n, %x {body=graph g(%n: int, %x: f64[3]) { return %x }, carried=1, "
            "scanned=0, length=2} : int"
        ),
    ),
    (
        "write_targets_are_inputs",
        "%a is not the same at each turn",
        structured(OVERWRITTEN.replace("LINE", "write %a, %b\n %w = negative %b : f64[3]")),
    ),
    (
        "loops_read_no_target",
        "%b is written to, and read by",
        structured(OVERWRITTEN.replace("LINE", "%w = negative %b : f64[3]\n write %b, %a")),
    ),
    (
        "targets_have_one_name",
        "%v lies in the memory of %x",
        structured(
            "  %v = reshape %x {shape=(1, 3)} : f64[1,3]\n"
            "  if %c, %x, %y, %v {then=graph g(%x: f64[3], %y: f64[3], %v: f64[1,3]) {\n"
            "    write %x, %y\n    print %v {parts=(%,)}\n    return None\n  },"
            " otherwise=graph g(%x: f64[3], %y: f64[3], %v: f64[1,3]) { return None }}"
        ),
    ),
    (
        "written_inputs_rest",
        "%x is read after the write to %x",
        structured(
            "  if %c, %x, %y {then=graph g(%x: f64[3], %y: f64[3]) { write %x, %y\n return None },"
            " otherwise=graph g(%x: f64[3], %y: f64[3]) { return None }}\n  print %x {parts=(%,)}"
        ),
    ),
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
