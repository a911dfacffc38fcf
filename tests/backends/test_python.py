"""The source that the python backend writes, word for word."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from backends.checks import PYTHON, assert_same_run, graph_of, plan_with, source

from minigraph import ops
from minigraph.errors import OptionError
from minigraph.ir import Graph, Node, Op, Plan, Value, dim, parse_type

FANCY = """\
graph fancy_func(%a: f64[4], %b: f64[4]) {
  %e = add %a, %b : f64[4]
  %f = exp %e : f64[4]
  %g = multiply %f, %b : f64[4]
  return %g
}"""


def by_name(graph: Graph) -> dict[str, Value]:
    return {value.name: value for value in graph.values()}


def planned(text: str, dies: list[str], reuses: dict[str, str]) -> tuple[Graph, Plan]:
    graph = graph_of(text)
    value = by_name(graph)
    return graph, plan_with(
        graph,
        [[value[name] for name in names.split()] for names in dies],
        {value[new]: value[old] for new, old in reuses.items()},
    )


def test_a_program_that_prints_a_constant_is_one_print():
    text = """\
program textbook() {
  %0 = const 10 : int
  print %0 {parts=(%,)}
  return None
}"""
    program = PYTHON.emit(graph_of(text))
    assert program.source == "print(10)"
    out = io.StringIO()
    with redirect_stdout(out):
        assert PYTHON.load(program)() == ()
    assert out.getvalue() == "10\n"


def test_a_program_is_flat_statements():
    text = """\
program textbook() {
  %0 = const 1 : int
  %a = add %0, %0 : int
  %b = multiply %a, %a : int
  print %a, %b {parts=('a\\n"', %, %), sep='-'}
  print %b {parts=(%,), file='stderr', end=''}
  return None
}"""
    program = PYTHON.emit(graph_of(text))
    assert (
        program.source
        == """\
import sys

a = 1 + 1  # int
b = a * a  # int
print('a\\n"', a, b, sep='-')
print(b, end='', file=sys.stderr)"""
    )
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        PYTHON.load(program)()
    assert (out.getvalue(), err.getvalue()) == ('a\n"-2-4\n', "4")


def test_a_function():
    assert (
        source(FANCY)
        == """\
# fancy_func(a: f64[4], b: f64[4]) -> f64[4]
import numpy as np


def fancy_func(a, b):
    e = a + b      # f64[4]
    f = np.exp(e)  # f64[4]
    g = f * b      # f64[4]
    return g"""
    )


def test_names_are_deleted_at_their_last_use():
    graph, plan = planned(FANCY, ["", "e a", "f b"], {})
    assert (
        PYTHON.emit(graph, plan).source
        == """\
# fancy_func(a: f64[4], b: f64[4]) -> f64[4]
import numpy as np


def fancy_func(a, b):
    e = a + b      # f64[4]
    f = np.exp(e)  # f64[4]
    del e
    g = f * b      # f64[4]
    return g"""
    )


def test_a_dead_buffer_is_written_again():
    graph, plan = planned(FANCY, ["", "e", "f"], {"f": "e", "g": "f"})
    program = PYTHON.emit(graph, plan)
    assert program.source.splitlines()[5:] == [
        "    e = a + b                     # f64[4]",
        "    f = np.exp(e, out=e)          # f64[4]",
        "    del e",
        "    g = np.multiply(f, b, out=f)  # f64[4]",
        "    return g",
    ]
    assert_same_run(graph, [np.arange(4.0), np.ones(4)], plan)


def test_a_buffer_that_is_reused_later_keeps_its_name_until_then():
    text = """\
graph later(%a: f64[4]) {
  %x = add %a, %a : f64[4]
  %s = sum %x {axis=(0,)} : f64[]
  %y = multiply %s, %a : f64[4]
  %z = negative %y : f64[4]
  return %z
}"""
    graph, plan = planned(text, ["", "x", "s", "y"], {"y": "x"})
    assert PYTHON.emit(graph, plan).source.splitlines()[6:] == [
        "    s = np.sum(x, axis=(0,))      # f64[]",
        "    y = np.multiply(s, a, out=x)  # f64[4]",
        "    del x",
        "    z = -y                        # f64[4]",
        "    return z",
    ]
    assert_same_run(graph, [np.arange(4.0)], plan)


def test_update_is_a_copy_and_a_store():
    text = """\
graph put(%x: f64[3,4], %i: i64[2]) {
  %y = add %x, %x : f64[3,4]
  %0 = const 1.5 : float
  %y.1 = update %y, %0, %i {index=[%, 1:3]} : f64[3,4]
  return (%y, %y.1)
}"""
    assert source(text).splitlines()[5:] == [
        "    y = x + x          # f64[3,4]",
        "    y_1 = np.array(y)  # f64[3,4]",
        "    y_1[i, 1:3] = 1.5",
        "    return y, y_1",
    ]


def test_update_of_a_dead_base_is_done_in_it():
    text = """\
graph put(%x: f64[3,4]) {
  %y = add %x, %x : f64[3,4]
  %0 = const 1.5 : float
  %y.1 = update %y, %0 {index=[0]} : f64[3,4]
  %z = negative %y.1 : f64[3,4]
  return %z
}"""
    graph, plan = planned(text, ["", "", "y", "y.1"], {"y.1": "y"})
    assert PYTHON.emit(graph, plan).source.splitlines()[2:] == [
        "    y = x + x  # f64[3,4]",
        "    y[0] = 1.5",
        "    z = -y     # f64[3,4]",
        "    return z",
    ]
    for inputs in ([np.ones((3, 4))], [np.asfortranarray(np.ones((3, 4)))]):
        assert_same_run(graph, inputs, plan)


def test_an_index_reads_as_python():
    text = """\
graph look(%x: f64[4,5], %i: i64[2]) {
  %a = slice %x {index=[1:3, ::-1]} : f64[2,5]
  %b = slice %x {index=[..., None, 2]} : f64[4,1]
  %c = gather %x, %i {index=[%, :]} : f64[2,5]
  return (%a, %b, %c)
}"""
    assert source(text).splitlines()[2:] == [
        "    a = x[1:3, ::-1]     # f64[2,5]",
        "    b = x[..., None, 2]  # f64[4,1]",
        "    c = x[i, :]          # f64[2,5]",
        '    return a.copy("K"), b.copy("K"), c',
    ]


def test_outputs_are_fresh():
    text = """\
graph alias(%x: f64[3]) {
  %k = const [1.0, 2.0] : f64[2]
  %y = add %x, %x : f64[3]
  %v = slice %y {index=[1:]} : f64[2]
  %n = const 3 : int
  return (%x, %k, %y, %v, %y, %n)
}"""
    program = PYTHON.emit(graph_of(text))
    assert program.source.splitlines()[-1] == (
        "    return x.copy(), k.copy(), y, v.copy(), y.copy(), 3"
    )
    x = np.arange(3.0)
    results = PYTHON.load(program)(x)
    arrays = [x, program.constants["k"], *results[:5]]
    for index, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[:index])


def test_a_write_stores_into_the_argument():
    text = """\
graph count(%x: f64[2]) {
  %one = const 1.0 : float
  %x.1 = add %x, %one : f64[2]
  write %x, %x.1
  return %x.1
}"""
    program = PYTHON.emit(graph_of(text))
    assert "    x[...] = x_1" in program.source.splitlines()
    x = np.zeros(2)
    (result,) = PYTHON.load(program)(x)
    assert x.tolist() == [1.0, 1.0]
    assert not np.shares_memory(x, result)


def test_named_dimensions_are_read_off_the_shapes():
    text = """\
graph flat(%x: f32[batch,2*n], %y: f32[batch,3*m+1]) {
  %a = reshape %x {shape=(<2*batch*n>,)} : f32[2*batch*n]
  %b = slice %y {index=[:, :<m>]} : f32[batch,m]
  return (%a, %b)
}"""
    assert source(text).splitlines()[5:] == [
        "    batch = x.shape[0]                     # int",
        "    m = sizes_of([x, y])['m']              # int",
        "    n = sizes_of([x, y])['n']              # int",
        "    a = np.reshape(x, shape=(2*batch*n,))  # f32[2*batch*n]",
        "    b = y[:, :m]                           # f32[batch,m]",
        '    return a.copy(), b.copy("K")',
    ]
    assert_same_run(graph_of(text), [np.ones((2, 6), "f4"), np.ones((2, 4), "f4")])


def test_an_unknown_node_of_control_is_refused():
    kind = parse_type("f64[2]")
    x, y = Value(0, kind, "x"), Value(1, kind, "y")
    control = Op("forever", "control", lambda types, attrs: kind)
    graph = Graph("loop", [x], [Node(0, control, [x], {}, [y])], [y])
    with pytest.raises(OptionError, match="forever"):
        PYTHON.emit(graph)


def test_nothing_to_do():
    assert source("graph nothing() {\n  return None\n}") == (
        "# nothing() -> None\ndef nothing():\n    return"
    )
    assert PYTHON.load(PYTHON.emit(graph_of("graph nothing() {\n  return None\n}")))() == ()


def test_a_dimension_named_like_a_word_of_the_language_or_a_value():
    text = """\
graph flat(%n: f32[class,2,n]) {
  %a = reshape %n {shape=(<2*n>, <class>)} : f32[2*n,class]
  return %a
}"""
    assert source(text).splitlines()[5:-1] == [
        "    class_ = n.shape[0]                       # int",
        "    n_1 = n.shape[2]                          # int",
        "    a = np.reshape(n, shape=(2*n_1, class_))  # f32[2*n,class]",
    ]
    assert_same_run(graph_of(text), [np.ones((2, 2, 4), "f4")])


def test_a_dimension_that_no_argument_shows():
    kind = parse_type("f32[n]")
    x, y = Value(0, parse_type("f32[m]"), "x"), Value(1, kind, "y")
    node = Node(0, ops.get("reshape"), [x], {"shape": (dim("n"),)}, [y])
    with pytest.raises(OptionError, match="dimension n "):
        PYTHON.emit(Graph("lost", [x], [node], [y]))


DRAWN = """\
graph sample(%rng: generator, %x: f32[4], %ok: bool) {
  %0 = const 0.0 : float
  %1 = const -1.5 : float
  %a = draw %rng, %0, %1 {method='normal', size=(2,)} : f64[2]
  %b = draw %rng, %x {method='shuffle'} : f32[4]
  %c = cast %b {dtype=f64} : f64[4]
  check %ok {error='ValueError', message="not 'ok'"}
  return (%a, %b, %c)
}"""


def test_draws_casts_and_checks_read_as_python():
    assert source(DRAWN).splitlines()[5:] == [
        "    a = rng.normal(0.0, -1.5, size=(2,))  # f64[2]",
        "    b = np.array(x)                       # f32[4]",
        "    rng.shuffle(b)",
        "    c = b.astype(np.float64)              # f64[4]",
        "    if not ok:",
        "        raise ValueError(\"not 'ok'\")",
        "    return a, b, c",
    ]
    run = PYTHON.load(PYTHON.emit(graph_of(DRAWN.replace("-1.5", "1.5"))))
    rng = np.random.default_rng
    with pytest.raises(ValueError, match="not 'ok'"):
        run(rng(0), np.ones(4, "f4"), False)
    for ok in (True, np.True_):
        assert_same_run(graph_of(DRAWN.replace("-1.5", "1.5")), [rng(0), np.ones(4, "f4"), ok])


def test_a_long_chain_compiles():
    kind = parse_type("f64[2]")
    values = [Value(number, kind) for number in range(20_001)]
    nodes = [
        Node(number, ops.get("negative"), [values[number]], {}, [values[number + 1]])
        for number in range(20_000)
    ]
    graph = Graph("chain", values[:1], nodes, values[-1:])
    dies = [[value] for value in values[:-1]]
    plan = plan_with(graph, dies, dict(zip(values[2:], values[1:], strict=False)))
    (result,) = PYTHON.load(PYTHON.emit(graph, plan))(np.array([1.0, 2.0]))
    assert result.tolist() == [1.0, 2.0]


def test_numbers_are_computed_as_the_op_says():
    """Of Python numbers: by what the op means in Python, unless a dtype asks for an array."""
    double = Op("double", "elementwise", lambda types, attrs: types[0], python=lambda x: 2 * x)
    x, y = Value(0, parse_type("int"), "x"), Value(1, parse_type("int"), "y")
    graph = Graph("f", [x], [Node(0, double, [x], {}, [y])], [y])
    program = PYTHON.emit(graph)
    assert "y = ops.double(x)" in program.source
    assert PYTHON.load(program)(2**100) == (2**101,)
    text = "graph f(%a: int) {\n  %b = add %a, %a {dtype=f32} : f32[]\n  return %b\n}"
    assert "np.add(a, a, dtype=np.float32)" in PYTHON.emit(graph_of(text)).source
    assert_same_run(graph_of(text), [3])
