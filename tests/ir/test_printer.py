from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ir.local import ADD, CHOOSE, CONST, DRAW, F32, NEG, NOTE, OPS, TWICE, WRITE, Pair, Point

from minigraph.ir import (
    BOOL,
    FLOAT,
    GENERATOR,
    INT,
    LEAF,
    OPERAND,
    ArrayType,
    Branch,
    Graph,
    Loc,
    Node,
    Signature,
    Static,
    Value,
    attr_text,
    dim,
    node_text,
    parse_graph,
    print_graph,
    type_of,
)

n = dim("n")


def fancy_func() -> Graph:
    """The textbook's program, as DESIGN shows it."""
    a, b, c, d, e, f, g = (Value(i, INT, name) for i, name in enumerate("abcdefg"))
    nodes = [
        Node(0, ADD, [a, b], {}, [e], Loc("here/fancy_func.py", 5)),
        Node(1, ADD, [c, d], {}, [f], Loc("here/fancy_func.py", 6)),
        Node(2, ADD, [e, f], {}, [g], Loc("C:\\here\\fancy_func.py", 7)),
    ]
    return Graph("fancy_func", [a, b, c, d], nodes, [g])


FANCY_FUNC = """\
graph fancy_func(%a: int, %b: int, %c: int, %d: int) {
  %e = add %a, %b              : int          # fancy_func.py:5
  %f = add %c, %d              : int          # fancy_func.py:6
  %g = add %e, %f              : int          # fancy_func.py:7
  return %g
}"""


def test_the_textbook() -> None:
    assert str(fancy_func()) == FANCY_FUNC
    assert print_graph(fancy_func(), locations=False).splitlines()[1:3] == [
        "  %e = add %a, %b              : int",
        "  %f = add %c, %d              : int",
    ]
    assert print_graph(fancy_func(), indent=4).splitlines()[3:] == [
        "      %g = add %e, %f              : int          # fancy_func.py:7",
        "      return %g",
        "    }",
    ]


def everything() -> Graph:
    """One of each thing that the grammar has."""
    x, w, rng = Value(0, F32, "x"), Value(1, F32, "w"), Value(2, GENERATOR, "rng")
    p, q, c = Value(3, FLOAT), Value(4, FLOAT, "q"), Value(5, BOOL, "c")
    low, high = Value(6, F32, "y"), Value(7, F32, "y.1")
    k, r, z = Value(8, FLOAT, "k"), Value(9, F32), Value(10, ArrayType(np.dtype("f8"), (n, 2 * n)))
    inner = Value(0, F32, "x")
    out = Value(1, F32, "out")
    then = Graph("then", [inner], [Node(0, NEG, [inner], {}, [out], Loc("f.py", 9))], [out])
    same = Graph("<lambda>", [inner], [], [inner])
    nodes = [
        Node(11, TWICE, [x], {}, [low, high], Loc("f.py", 3)),
        Node(12, CONST, [], {"value": 0.5}, [k]),
        Node(13, CHOOSE, [x], {"then": then, "on": ("c", 1), "otherwise": same}, [r]),
        Node(14, DRAW, [], {"of": z.type, "rest": [n - 1, np.dtype("f4"), INT]}, [z]),
        Node(15, NOTE, [low, k], {"parts": ("y", OPERAND), "end": "\n"}, []),
        Node(16, NOTE, [], {}, []),
        Node(17, WRITE, [w, high], {}, []),
    ]
    signature = Signature(
        [
            ("x", LEAF),
            (
                "p",
                Branch(
                    dict, ("a", 0), [LEAF, Branch(Pair, ("left", "right"), [LEAF, Static("s")])]
                ),
            ),
            ("flag", LEAF),
            ("mode", Static(Point)),
        ],
        ["self.w"],
        Branch(tuple, (0,), [Branch(Point, ("x", "y"), [LEAF, Branch(list, (), [])])]),
    )
    del rng
    return Graph("f", [x, p, q, c, w], nodes, [r], signature)


EVERYTHING = """\
graph f(%x: f32[2,3], p={'a': %3: float, 0: Pair(left=%q: float, right='s')}, flag=%c: bool, \
mode=<Point>) captures(%w: f32[2,3] = 'self.w') {
  %y, %y.1 = twice %x          : f32[2,3], f32[2,3]  # f.py:3
  %k = const 0.5               : float
  %9 = choose %x {then=graph then(%x: f32[2,3]) {
    %out = neg %x                : f32[2,3]     # f.py:9
    return %out
  }, on=('c', 1), otherwise=graph <lambda>(%x: f32[2,3]) {
    return %x
  }} : f32[2,3]
  %10 = draw {of=<f64[n,2*n]>, rest=[<n-1>, f32, py.int]} : f64[n,2*n]
  note %y, %k {parts=('y', %), end='\\n'}
  note
  write %w, %y.1
  return (Point(x=%9, y=[]),)
}"""


def test_everything() -> None:
    assert str(everything()) == EVERYTHING
    assert parse_graph(EVERYTHING, OPS) == everything()


def test_a_program() -> None:
    program = Graph("main", [], [Node(0, NOTE, [], {}, [])], [], Signature([], program=True))
    assert str(program) == "program main() {\n  note\n  return None\n}"


@pytest.mark.parametrize(
    ("attr", "text"),
    [
        (True, "True"),
        (None, "None"),
        (-0.0, "-0.0"),
        (2**63, "9223372036854775808"),
        ("it's", '"it\'s"'),
        (b"\n", r"b'\n'"),
        (..., "..."),
        (OPERAND, "%"),
        ((), "()"),
        ((1,), "(1,)"),
        ([(1, 2), []], "[(1, 2), []]"),
        (slice(None), ":"),
        (slice(1, None), "1:"),
        (slice(None, 2), ":2"),
        (slice(None, None, -1), "::-1"),
        (slice(1, n - 1, 2), "1:<n-1>:2"),
        ([slice(1, 2), None, OPERAND], "[1:2, None, %]"),
        (2 * n, "<2*n>"),
        (np.dtype("?"), "bool"),
        (np.dtype("c8"), "c64"),
        (BOOL, "py.bool"),
        (GENERATOR, "py.generator"),
        (F32, "<f32[2,3]>"),
        (object(), "<?object>"),
    ],
)
def test_attr_text(attr: Any, text: str) -> None:
    assert attr_text(attr) == text


@pytest.mark.parametrize(
    ("hint", "param", "text"),
    [
        ("x", "x", "%x: int"),
        (None, "", "%3: int"),
        (None, "3", "3=%3: int"),
        ("x", "", "=%x: int"),
        ("x.1", "x", "x=%x.1: int"),
        (None, "x", "x=%3: int"),
        ("args.0", "*args", "*args=%args.0: int"),
    ],
)
def test_the_name_of_a_parameter(hint: str | None, param: str, text: str) -> None:
    x = Value(3, INT, hint)
    graph = Graph("f", [x], [], [x], Signature([(param, LEAF)], (), LEAF))
    assert str(graph).splitlines()[0] == f"graph f({text}) {{"
    assert parse_graph(str(graph), OPS) == graph


def test_node_text() -> None:
    graph = fancy_func()
    assert node_text(graph.nodes[0]) == "%e = add %a, %b : int"
    assert node_text(everything().nodes[5]) == "note"
    value = Value(0, type_of(1.5), "k")
    assert node_text(Node(0, CONST, [], {"value": 1.5}, [value])) == "%k = const 1.5 : float"
