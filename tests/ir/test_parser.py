from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ir.local import ADD, CHOOSE, CONST, OPS, graphs

from minigraph.errors import TextError
from minigraph.ir import (
    BOOL,
    INT,
    Branch,
    Graph,
    Node,
    Static,
    Value,
    dim,
    freeze,
    inner_first,
    parse_graph,
    verify,
)


def parse(text: str, constants: Any = None) -> Graph:
    return parse_graph(text, OPS, constants)


@given(graphs())
def test_round_trip(graph: Graph) -> None:
    text = str(graph)
    again = parse(text, graph.constants)
    assert again == graph and hash(again) == hash(graph) and again.key() == graph.key()
    verify(again)
    # What equality ignores is kept all the same: numbers and names (but for the locations).
    for ours, theirs in zip(inner_first(graph), inner_first(again), strict=True):
        assert ours.name == theirs.name
        assert [value.name for value in ours.values()] == [value.name for value in theirs.values()]
        assert [value.id for value in ours.values() if not value.hint] == [
            value.id for value in theirs.values() if not value.hint
        ]
        ids = [value.id for value in theirs.values()]
        assert len(set(ids)) == len(ids)
    assert [line.split("  #")[0].rstrip() for line in str(again).splitlines()] == [
        line.split("  #")[0].rstrip() for line in text.splitlines()
    ]


@settings(max_examples=50)
@given(graphs())
def test_canonical_round_trip(graph: Graph) -> None:
    canonical = graph.canonical()
    assert canonical == graph
    assert parse(str(canonical), graph.constants) == graph


def test_names_numbers_and_comments() -> None:
    graph = parse("""
        # before
        graph f(%a: int, %7: int) {   # a comment with %9 and 'quotes
          %b.1 = add %a, %7 : int     # f.py:3
          # a line of its own
          %3 = neg %b.1 : int
          return (%3, %b.1)
        }
        # after
    """)
    a, seven, b, three = graph.values()
    assert (a.hint, seven.hint, b.hint, three.hint) == ("a", None, "b.1", None)
    assert (seven.id, three.id) == (7, 3) and a.id > 7 and b.id > 7
    assert [name for name, _ in graph.signature.params] == ["a", ""]
    assert graph.nodes[0].origin == (graph.nodes[0],) and graph.nodes[0].loc is None


def test_structures() -> None:
    graph = parse("""graph f(p=Point(x=%a: int, y=<Color>), q={<Color>: (), 1: "x"}, r=None) {
        return Box()
    }""")
    (_, p), (_, q), (_, r) = graph.signature.params
    assert isinstance(p, Branch) and isinstance(q, Branch) and isinstance(r, Static)
    assert (p.kind, p.name, p.keys) == (None, "Point", ("x", "y"))
    assert p.children[1] == Static(None, "<Color>") and p.children[1].value is None  # type: ignore
    assert q.kind is dict and q.keys[1] == 1 and q.children[1].value == "x"  # type: ignore
    assert r.value is None
    result = graph.signature.result
    assert isinstance(result, Branch) and (result.name, result.children) == ("Box", ())


def test_attrs() -> None:
    graph = parse("""graph f(%x: int) {
        %y = neg %x {a=[1:, ::2, :<n-1>, %, ..., None, (1,)], b=nan, c=-0.0, d=f32, e=py.float,
                     f=<f32[n,2]>, g=<2*n>, h='\\u00e9\\'', i=b'\\x00', j=complex(0.0, -0.0),
                     k=inf, l=-inf, m=True, n=0x10, o=[[]], p=(), q=:} : int
        return %y
    }""")
    n = dim("n")
    attrs = graph.nodes[0].attrs
    index = attrs["a"]
    assert index[:3] == [slice(1, None), slice(None, None, 2), slice(None, n - 1)]
    assert repr(index[3:]) == "[%, Ellipsis, None, (1,)]"
    assert freeze(attrs["c"]) == freeze(-0.0) and freeze(attrs["j"]) == freeze(complex(0.0, -0.0))
    assert attrs["b"] != attrs["b"] and attrs["d"] is np.dtype("f4") and str(attrs["e"]) == "float"
    assert str(attrs["f"]) == "f32[n,2]" and attrs["g"] == 2 * n
    assert (attrs["h"], attrs["i"], attrs["n"], attrs["m"]) == ("é'", b"\0", 16, True)
    assert (attrs["k"], attrs["l"], attrs["o"], attrs["p"]) == (np.inf, -np.inf, [[]], ())
    assert attrs["q"] == slice(None)


def test_nothing_is_evaluated() -> None:
    for text in ("__import__('os')", "x.y()", "1+1", "[i for i in (1,)]", "f'{1}'"):
        with pytest.raises(TextError):
            parse(f"graph f(%x: int) {{\n %y = neg %x {{a={text}}} : int\n return %y\n}}")


ERRORS = [
    ("", 1, 1, "expected 'graph' or 'program', found the end of the text"),
    ("grap f() { return None }", 1, 1, "expected 'graph' or 'program', found 'grap'"),
    ("graph () { return None }", 1, 7, "expected the name of the graph"),
    ("graph f { return None }", 1, 9, "expected '(', found '{'"),
    ("graph f(%a int) { return None }", 1, 12, "expected ':', found 'int'"),
    ("graph f(%a: int %b: int) { return None }", 1, 17, "expected ',' or ')', found '%b'"),
    ("graph f(%a: int, %a: int) { return None }", 1, 18, "%a is defined a second time"),
    ("graph f(x) { return None }", 1, 9, "expected a parameter, found 'x'"),
    ("graph f(%a: i32) { return None }", 1, 13, "expected a type"),
    ("graph f(%a: f32[n//0]) { return None }", 1, 13, "expected a type"),
    ("graph f(%: int) { return None }", 1, 9, "expected a value such as %x"),
    ("graph f() captures(%w: int) { return None }", 1, 27, "expected '=', found ')'"),
    ("graph f() captures(%w: int = w) { return None }", 1, 30, "in quotes"),
    ("graph f() {\n}", 2, 1, "expected a node or 'return', found '}'"),
    ("graph f() {\n", 2, 1, "expected a node or 'return', found the end of the text"),
    ("graph f() {\n return %a\n}", 2, 9, "%a is not defined above"),
    ("graph f() {\n return (None)\n}", 2, 9, "ends with a comma"),
    ("graph f() {\n return None\n} graph", 3, 3, "expected the end of the text, found 'graph'"),
    ("graph f() {\n return None None\n}", 2, 14, "expected '}', found 'None'"),
    ("graph f() {\n return x.y\n}", 2, 9, "expected a value or a literal, found 'x.y'"),
    ("graph f() {\n return {1 2}\n}", 2, 12, "expected ':', found '2'"),
    ("graph f() {\n return Point(1)\n}", 2, 15, "expected the name of a field"),
    ("graph f(%a: int) {\n  %b = neg %a\n return %b\n}", 3, 2, "expected ':' and the type"),
    ("graph f(%a: int) {\n  %a = neg %a : int\n return %a\n}", 2, 3, "%a is defined a second"),
    ("graph f(%a: int) {\n  %b = neg %c : int\n return %b\n}", 2, 12, "%c is not defined above"),
    ("graph f(%a: int) {\n  %b = 3 %a : int\n return %b\n}", 2, 8, "expected an op, found '3'"),
    ("graph f(%a: int) {\n  %b neg %a : int\n return %b\n}", 2, 6, "expected '=', found 'neg'"),
    ("graph f(%a: int) {\n  %b = add %a %a : int\n return %b\n}", 2, 15, "expected ':' and the"),
    ("graph f(%a: int) {\n  %b = add %a, : int\n return %b\n}", 2, 16, "expected a value"),
    ("graph f(%a: int) {\n  note %a note %a\n return %b\n}", 2, 11, "the end of the line"),
    ("graph f(%a: int) {\n  %b, %b = twice %a : int, int\n return %b\n}", 2, 7, "second time"),
    ("graph f(%a: int) {\n  %b, %c = twice %a : int\n return %b\n}", 2, 23, "1 types for 2 values"),
    ("graph f(%a: int) {\n  %b = neg %a : int, int\n return %b\n}", 2, 17, "2 types for 1 values"),
    ("graph f() {\n  const 1\n return None\n}", 2, 9, "a constant is one value"),
    ("graph f() {\n  %b = const x : int\n return %b\n}", 2, 14, "expected a number or a list"),
    ("graph f() {\n  %b = const [1 2] : i64[2]\n return %b\n}", 2, 17, "expected ',' or ']'"),
    ("graph f() {\n  %b = const complex(1) : complex\n return %b\n}", 2, 23, "expected ','"),
    ("graph f() {\n  note {}\n return None\n}", 2, 9, "expected the name of an attr, found '}'"),
    ("graph f() {\n  note {a=1, a=2}\n return None\n}", 2, 14, "the attr a stands twice"),
    ("graph f() {\n  note {a=1 b=2}\n return None\n}", 2, 13, "expected ',' or '}', found 'b'"),
    ("graph f() {\n  note {a=x}\n return None\n}", 2, 11, "expected an attr, found 'x'"),
    ("graph f() {\n  note {a='x}\n return None\n}", 2, 11, "a string that does not end"),
    ("graph f() {\n  note {a='\\x'}\n return None\n}", 2, 11, "escape"),
    ("graph f() {\n  note {a=<n//0>}\n return None\n}", 2, 11, "not a dimension"),
    ("graph f() {\n  note {a=<f31[2]>}\n return None\n}", 2, 11, "not a type"),
    ("graph f() {\n  note {a=py.str}\n return None\n}", 2, 11, "not a type"),
    ("graph f() {\n  note {a=(1)}\n return None\n}", 2, 11, "ends with a comma"),
    ("graph f() {\n  note {a=graph g(%x: int) {\n return %y\n}}\n return None\n}", 3, 9, "%y is"),
    ("graph f() {\n  ä = 3\n return None\n}", 2, 3, "expected an op, found 'ä'"),
    ("graph f() {\n  note ~\n return None\n}", 2, 8, "found '~'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "fact"), ERRORS)
def test_errors_name_the_place(text: str, line: int, column: int, fact: str) -> None:
    with pytest.raises(TextError) as caught:
        parse(text)
    message = str(caught.value)
    assert f"line {line}, column {column}: " in message and fact in message, message
    # The line stands below with a caret under the column.
    shown, caret = message.splitlines()[1:3]
    assert shown[6:] == (text.splitlines() or [""])[line - 1 :][:1][0] if shown.strip() else True
    assert caret.index("^") - 6 == column - 1


def test_errors_offer_what_was_meant() -> None:
    with pytest.raises(TextError, match="did you mean 'twice'"):
        parse("graph f(%a: int) {\n %b = twcie %a : int\n return %b\n}")
    with pytest.raises(TextError, match="did you mean %weight"):
        parse("graph f(%weight: int) {\n return %wieght\n}")
    with pytest.raises(TextError) as caught:
        parse("graph f(%a: int) {\n %b = xyz %a : int\n return %b\n}")
    assert "did you mean" not in str(caught.value)


def test_a_long_line_is_cut() -> None:
    params = ", ".join(f"%v{i}: int" for i in range(5000))
    with pytest.raises(TextError) as caught:
        parse(f"graph f({params}, %x: what, {params}) {{ return None }}")
    message = str(caught.value)
    shown, caret = message.splitlines()[1:3]
    assert len(message) < 500 and shown[caret.index("^") :].startswith("what")


@pytest.mark.parametrize("bracket", ["(", "[", "{1: ", "P(x="])
def test_brackets_without_end(bracket: str) -> None:
    with pytest.raises(TextError, match="brackets within brackets"):
        parse("graph f() {\n return " + bracket * 50_000)
    if bracket in "([":
        with pytest.raises(TextError, match="brackets within brackets"):
            parse("graph f() {\n note {a=" + bracket * 50_000)
        with pytest.raises(TextError):
            parse("graph f() {\n %x = const " + bracket * 50_000)


def chain(count: int) -> Graph:
    x = Value(0, INT, "x")
    last, nodes = x, list[Node]()
    for i in range(count):
        y = Value(i + 1, INT)
        nodes.append(Node(i, ADD, [last, x], {}, [y]))
        last = y
    return Graph("f", [x], nodes, [last])


@pytest.mark.slow
def test_a_chain_of_100_000_nodes() -> None:
    graph = chain(100_000)
    again = parse(str(graph))
    verify(again)
    assert again == graph


def test_a_thousand_regions_one_within_the_other() -> None:
    x = Value(0, BOOL, "x")
    graph = Graph("inner", [x], [Node(0, CONST, [], {"value": 7}, [Value(1, INT)])], [x])
    for _ in range(1000):
        x, y = Value(0, BOOL, "x"), Value(1, BOOL, "y")
        graph = Graph("outer", [x], [Node(0, CHOOSE, [x], {"then": graph}, [y])], [y])
    again = parse(str(graph))
    assert again == graph and hash(again) == hash(graph) and again.key() == graph.key()
    assert again.canonical() == graph
    verify(again)


def test_a_parsed_region_stands_alone() -> None:
    with pytest.raises(TextError, match="%x is not defined above"):
        parse("""graph f(%x: bool) {
            %y = choose %x {then=graph t() {
                return %x
            }} : bool
            return %y
        }""")
