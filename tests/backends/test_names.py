"""Hostile names become harmless identifiers, each a different one."""

from __future__ import annotations

import builtins
import keyword
import unicodedata

import numpy as np
import pytest
from backends.checks import PYTHON, assert_same_run
from hypothesis import given, settings
from hypothesis import strategies as st

from minigraph import ops
from minigraph.backends.names import Identifiers, identifier
from minigraph.backends.scope import Scope
from minigraph.backends.writer import Writer
from minigraph.errors import OptionError
from minigraph.ir import Graph, Node, Value, parse_type

HOSTILE = [
    "lambda", "None", "print", "float", "np", "ops", "sys", "nan", "inf", "self", "_", "__debug__",
    "__class__", "y.1", "y", "y_1", "<lambda>", "2x", "x y", "a'b", 'a"b', "a\nimport os", "a#b",
    "α", "ﬁ", "fi", "²", "x²", "e\u0301", "\u202e", "", "match", "'); boom(); ('", "v3", "{0}",
    "_explain", "_failure", "error", "K", "\\", "x" * 300,
]  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("y.1", "y_1"),
        ("<lambda>", "lambda_"),
        ("print", "print_"),
        ("α", "α"),
        ("p['w'][0].x", "p_w_0_x"),
        ("2x", "v2x"),
        ("__debug__", "debug__"),
        ("class", "class_"),
        ("np", "np_"),
        ("", "v"),
    ],
)
def test_a_name_stays_close_to_the_wish(wish: str, name: str):
    assert Identifiers().fresh(wish) == name


def test_equal_wishes_are_counted():
    names = Identifiers()
    assert [names.fresh("y") for _ in range(3)] == ["y", "y_1", "y_2"]
    assert names.fresh("y.1") == "y_1_1"
    assert [names.fresh("sum") for _ in range(2)] == ["sum_", "sum__1"]
    assert [names.fresh("_") for _ in range(3)] == ["_", "v_1", "v_2"]


@given(st.lists(st.text(max_size=8)))
@settings(max_examples=40)
def test_names_are_identifiers_all_different_and_stable(wishes: list[str]):
    names = Identifiers()
    found = [names.fresh(wish) for wish in wishes + HOSTILE]
    assert len(set(found)) == len(found)
    for name in found:
        assert name.isidentifier() and not keyword.iskeyword(name)
        assert not hasattr(builtins, name) and not name.startswith("__")
        assert unicodedata.normalize("NFKC", name) == name == identifier(name)


def test_a_graph_of_hostile_names_runs_and_runs_nothing_else():
    kind = parse_type("f64[3]")
    x = Value(0, kind, "__import__('os')")
    values, nodes = [x], []
    array = Value(1, kind, "nan")
    nodes.append(Node(1, ops.get("const"), [], {"value": np.arange(3.0)}, [array]))
    values.append(array)
    for hint in HOSTILE + HOSTILE:
        value = Value(len(values), kind, hint or None)
        nodes.append(Node(len(values), ops.get("add"), [values[-1], array], {}, [value]))
        values.append(value)
    message = Node(999, ops.get("print"), [], {"parts": ("'\n\"\\{x}\r\u2028",)}, [])
    graph = Graph("f(x):\n  raise SystemExit #", [x], [*nodes, message], [values[-1]])
    assert_same_run(graph, [np.zeros(3)])
    program = PYTHON.emit(graph)
    assert len(program.source.splitlines()) == len(program.source.split("\n"))
    assert program.filename.isprintable()


def test_a_function_named_like_one_of_its_values():
    kind = parse_type("f64[3]")
    x, y = Value(0, kind, "f"), Value(1, kind, "f")
    graph = Graph("f", [x], [Node(0, ops.get("negative"), [x], {}, [y])], [y])
    assert_same_run(graph, [np.arange(3.0)])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("print", 0, {"parts": (), "file": "stdout, boom()"}),
        ("check", 1, {"error": "boom() or ValueError"}),
        ("draw", 1, {"method": "__class__"}),
        ("draw", 1, {"method": "normal(boom())"}),
        ("sum", 1, {"axis": (0,), "keepdims=boom(), x": 1}),
        ("sum", 1, {"axis": (0,), "lambda": 1}),
    ],
)
def test_an_attr_that_is_no_name_is_refused(op: str, inputs: int, attrs: dict[str, object]):
    kind = parse_type("f64[3]")
    values = [Value(0, kind, "x")][:inputs]
    graph = Graph("f", values, [Node(0, ops.get(op), values, attrs, [])], [])
    with pytest.raises(OptionError, match="is no name"):
        PYTHON.emit(graph)


def test_lines_are_where_they_were_after_an_error_inside_of_a_block():
    x = Value(0, parse_type("f64[2]"))
    node = Node(0, ops.get("negative"), [x], {}, [Value(1, x.type)])
    writer = Writer(Graph("f", [x], [node], node.outputs), None)
    around = writer.scope
    inner = Scope(writer.graph, None, ())
    with (
        pytest.raises(OptionError),
        writer.block(node),
        writer.inside(inner, ["inner"]),
    ):
        raise OptionError("no text")
    writer.line("after", node)
    assert writer.code == ["after"]
    assert writer.scope is around and writer.text[x] != "inner"
