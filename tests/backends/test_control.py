"""Control flow in generated Python: word for word, in which memory, and like the evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends.checks import INTERPRET, PYTHON, assert_same_run, graph_of, plan_for
from backends.controlled import controlled
from hypothesis import HealthCheck, given, settings

from minigraph.ir import Graph, Loc, Node, Value, verify
from minigraph.passes import plan_of

FEW, MANY = (
    settings(
        max_examples=count,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    for count in (50, 150)
)


@given(controlled())
@FEW
def test_a_random_graph_computes_what_the_evaluator_computes(case: tuple[Graph, list[Any]]):
    check(*case)


@pytest.mark.slow
@given(controlled())
@MANY
def test_many_random_graphs_compute_what_the_evaluator_computes(case: tuple[Graph, list[Any]]):
    check(*case)


def check(graph: Graph, inputs: list[Any]):
    verify(graph)
    assert_same_run(graph, inputs)
    plan = plan_for(graph, inputs)
    assert_same_run(graph, inputs, plan)
    assert plan.lower_bytes <= plan.peak_bytes <= plan.naive_bytes


@given(controlled())
@FEW
def test_outputs_share_memory_with_nothing(case: tuple[Graph, list[Any]]):
    graph, inputs = case
    program = PYTHON.emit(graph, plan_for(graph, inputs))
    run = PYTHON.load(program)
    with np.errstate(all="ignore"):
        results = run(*inputs)
    others = [
        each for each in (*inputs, *program.constants.values()) if isinstance(each, np.ndarray)
    ]
    for result in results:
        if isinstance(result, np.ndarray):
            assert not any(np.shares_memory(result, other) for other in others), program.source
            others.append(result)


# ---------------------------------------------------------------------------- word for word


def lines_of(text: str, *, planned: bool = False) -> list[str]:
    """The body of the generated function."""
    graph = graph_of(text)
    verify(graph)
    lines = PYTHON.emit(graph, plan_of(graph) if planned else None).source.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return [line.split("  #")[0].rstrip()[4:] for line in lines[start + 1 :]]


COLLATZ = """\
graph collatz(%n: int) {
  %0 = const 0 : int
  %n.9, %count.9 = while %n, %0 {
    test=graph test(%n: int, %count: int) {
      %1 = const 1 : int
      %more = not_equal %n, %1 : bool
      return %more
    },
    body=graph body(%n: int, %count: int) {
      %2 = const 2 : int
      %1 = const 1 : int
      %3 = const 3 : int
      %odd = remainder %n, %2 : int
      %is_odd = equal %odd, %1 : bool
      %n.1 = if %is_odd, %n, %3, %1, %2 {
        then=graph then(%n: int, %3: int, %1: int, %2: int) {
          %tripled = multiply %n, %3 : int
          %n.1 = add %tripled, %1 : int
          return %n.1
        },
        otherwise=graph otherwise(%n: int, %3: int, %1: int, %2: int) {
          %n.1 = floor_divide %n, %2 : int
          return %n.1
        }} : int
      %count.1 = add %count, %1 : int
      return (%n.1, %count.1)
    }} : int, int
  return %count.9
}"""


def test_a_loop_reads_as_a_person_would_have_written_it():
    assert lines_of(COLLATZ) == [
        "count = 0",
        "while n != 1:",
        "    odd = n % 2",
        "    is_odd = odd == 1",
        "    if is_odd:",
        "        tripled = n * 3",
        "        n = tripled + 1",
        "    else:",
        "        n = n // 2",
        "    count = count + 1",
        "return count",
    ]
    for n in (1, 27, 3**50):
        assert_same_run(graph_of(COLLATZ), [n])


def test_a_recurrence_over_arrays():
    text = """\
graph rnn(%h: f32[8], %xs: f32[4,8], %u: f32[8,8]) {
  %h.9, %hs = scan %h, %xs, %u {carried=1, scanned=1, length=4, reverse=REVERSE,
    body=graph body(%h: f32[8], %x: f32[8], %u: f32[8,8]) {
      %a = matmul %u, %h : f32[8]
      %b = add %x, %a : f32[8]
      %h.1 = tanh %b : f32[8]
      return (%h.1, %h.1)
    }} : f32[8], f32[4,8]
  return (%h.9, %hs)
}"""
    forward, backward = text.replace("REVERSE", "False"), text.replace("REVERSE", "True")
    assert lines_of(forward, planned=True) == [
        "hs = np.empty((4, 8), np.float32)",
        "for t in range(4):",
        "    x = xs[t]",
        "    a = u @ h",
        "    b = np.add(x, a, out=a)",
        "    del a",
        "    h = np.tanh(b, out=b)",
        "    hs[t] = h",
        "return h, hs",
    ]
    assert lines_of(backward)[1] == "for t in reversed(range(4)):"
    arrays = np.random.default_rng(0).normal(size=(13, 8)).astype("f4")
    for each in forward, backward:
        graph, inputs = graph_of(each), [arrays[0], arrays[1:5], arrays[5:]]
        assert_same_run(graph, inputs, plan_for(graph, inputs))


def test_elements_without_a_counter():
    text = """\
graph total(%s: f64[], %xs: f64[N], %ys: f64[N]) {
  %s.9 = scan %s, %xs, %ys {carried=1, scanned=2, length=LENGTH, reverse=REVERSE,
    body=graph body(%s: f64[], %x: f64[], %y: f64[]) {
      %z = multiply %x, %y : f64[]
      %s.1 = add %s, %z : f64[]
      return %s.1
    }} : f64[]
  return %s.9
}"""
    named = text.replace("LENGTH", "<n>").replace("N", "n")
    found = lines_of(named.replace("REVERSE", "False"))
    assert found[1] == "for x, y in zip(xs, ys):"
    assert found[2:] == ["    z = x * y", "    s = s + z", "return s.copy()"]
    turned = graph_of(named.replace("REVERSE", "True"))
    assert "for x, y in zip(xs[::-1], ys[::-1]):" in PYTHON.emit(turned).source
    for count in (0, 3):
        assert_same_run(turned, [np.float64(0.5), np.arange(float(count)), np.ones(count)])


def test_a_test_of_several_lines_and_a_limit():
    text = """\
graph halves(%x: f64[3], %n: int) {
  %x.9, %n.9 = while %x, %n {LIMITtest=graph test(%x: f64[3], %n: int) {
      %y = negative %x : f64[3]
      %z = multiply %y, %x : f64[3]
      print %n {parts=('n', %)}
      %s = sum %z {axis=(0,)} : f64[]
      %0 = const -1.0 : float
      %more = less %s, %0 : bool[]
      return %more
    },
    body=graph body(%x: f64[3], %n: int) {
      %half = const 0.5 : float
      %1 = const 1 : int
      %x.1 = multiply %x, %half : f64[3]
      %n.1 = add %n, %1 : int
      return (%x.1, %n.1)
    }} : f64[3], int
  return (%x.9, %n.9)
}"""
    assert lines_of(text.replace("LIMIT", ""), planned=True) == [
        "x = x.copy()",
        "while True:",
        "    y = -x",
        "    z = np.multiply(y, x, out=y)",
        "    del y",
        "    print('n', n)",
        "    s = np.sum(z, axis=(0,))",
        "    del z",
        "    more = s < (-1.0)",
        "    if not more:",
        "        break",
        "    x = np.multiply(x, 0.5, out=x)",
        "    n = n + 1",
        "return x, n",
    ]
    limited = text.replace("LIMIT", "limit=2, ")
    assert lines_of(limited)[1:3] == ["for turn in range(2):", "    y = -x"]
    short = COLLATZ.replace("while %n, %0 {", "while %n, %0 {limit=5,")
    assert lines_of(short)[1:4] == ["for turn in range(5):", "    if not n != 1:", "        break"]
    for each in text.replace("LIMIT", ""), limited, short:
        graph = graph_of(each)
        inputs = [np.array([4.0, 2.0, 1.0]), 0] if "halves" in each else [27]
        assert_same_run(graph, inputs, plan_for(graph, inputs))


def test_branches_without_lines_and_errors():
    text = """\
graph f(%c: bool, %x: f64[3]) {
  %1 = const True : bool
  %x.1 = add %x, %x : f64[3]
  %x.2 = if %c, %x.1 {then=graph then(%x: f64[3]) { return %x },
    otherwise=graph otherwise(%x: f64[3]) {
      %no = const False : bool
      check %no {error='ValueError', message='c must hold'}
      return %x
    }} : f64[3]
  return %x.2
}"""
    assert lines_of(text, planned=True) == [
        "x_1 = x + x",
        "if not c:",
        "    raise ValueError('c must hold')",
        "return x_1",
    ]
    for c in (True, False):
        assert_same_run(graph_of(text), [c, np.arange(3.0)], plan_of(graph_of(text)))


def test_nothing_follows_what_always_raises():
    text = """\
graph f(%n: int) {
  %n.9 = while %n {
    test=graph test(%n: int) {
      print %n {parts=(%,)}
      %no = const False : bool
      check %no {error='ValueError', message='never'}
      %m = add %n, %n : int
      %more = less %n, %m : bool
      return %more
    },
    body=graph body(%n: int) {
      return %n
    }} : int
  return %n.9
}"""
    assert lines_of(text) == [
        "while True:",
        "    print(n)",
        "    raise ValueError('never')",
        "return n",
    ]
    assert_same_run(graph_of(text), [1])


# ---------------------------------------------------------------------------- whose memory


def loop(carried: str, body: str, returned: str, head: str = "", scanned: str = "") -> str:
    """A graph that carries f64[3] arrays through four turns of these lines."""
    names = [name.split("=") for name in carried.split()]
    inner = ", ".join(f"%{name}: f64[3]" for name, _ in names)
    operands = ", ".join(f"%{operand}" for _, operand in names)
    results = ", ".join(f"%{name}.9" for name, _ in names)
    kinds = ", ".join("f64[3]" for _ in names)
    several = len(names) > 1
    return f"""\
graph f(%x: f64[3], %y: f64[3]) {{
  {head}
  {results} = scan {operands}, %y {{carried={len(names)}, scanned=0, length=4,
    body=graph body({inner}, %k: f64[3]) {{
      {body}
      return {f"({returned})" if several else returned}
    }}}} : {kinds}
  return {f"({results})" if several else results}
}}"""


IN_PLACE = "%v = const 2.0 : float\n%a.1 = update %a, %v {index=[0]} : f64[3]"

MEMORY = {
    # (carried=operand, lines of the body, what it returns, lines before) -> the generated lines
    "a store goes to what the loop carries, which is a copy of the argument": (
        loop("a=x", IN_PLACE, "%a.1"),
        ["a = x.copy()", "for _ in range(4):", "    a[0] = 2.0", "return a"],
    ),
    "or what was made before, and nothing reads afterwards": (
        loop("a=z", IN_PLACE, "%a.1", "%z = negative %x : f64[3]"),
        ["z = -x", "a = z", "del z", "for _ in range(4):", "    a[0] = 2.0", "return a"],
    ),
    "not what two values start with": (
        loop("a=z b=z", IN_PLACE, "%a.1, %b", "%z = negative %x : f64[3]"),
        ["z = -x", "a = z.copy()", "b = z.copy()", "del z"],
    ),
    "what is read after the store keeps its value": (
        loop("a=x b=y", IN_PLACE + "\n%b.1 = add %a, %b : f64[3]", "%a.1, %b.1"),
        [
            "a = x.copy()",
            "b = y",
            "for _ in range(4):",
            "    a_1 = np.array(a)",
            "    a_1[0] = 2.0",
            "    b = np.add(a, b, out=a)",
            "    a = a_1",
            "return a, b",
        ],
    ),
    "also through a view": (
        loop(
            "a=x b=y",
            "%r = slice %a {index=[::-1]} : f64[3]\n" + IN_PLACE + "\n%b.1 = add %b, %r : f64[3]",
            "%a.1, %b.1",
        ),
        [
            "a = x",
            "b = y.copy()",
            "for _ in range(4):",
            "    r = a[::-1]",
            "    a = np.array(a)",
            "    a[0] = 2.0",
            "    b = np.add(b, r, out=b)",
            "return a, b",
        ],
    ),
    "values change places": (
        loop("a=x b=y", IN_PLACE, "%b, %a.1"),
        [
            "a = x.copy()",
            "b = y.copy()",
            "for _ in range(4):",
            "    a[0] = 2.0",
            "    a, b = b, a",
            "return a, b",
        ],
    ),
    "what is returned twice is two arrays": (
        loop("a=x b=y", IN_PLACE, "%a.1, %a.1"),
        [
            "a = x.copy()",
            "b = y",
            "for _ in range(4):",
            "    a[0] = 2.0",
            "    b = a.copy()",
            "return a, b",
        ],
    ),
    "an operand that is returned is copied at each turn": (
        loop("a=x", IN_PLACE, "%k"),
        [
            "a = x.copy()",
            "for _ in range(4):",
            "    a[0] = 2.0",
            "    a = y.copy()",
            "return a",
        ],
    ),
    "a view of what is carried has gaps, or runs backward": (
        loop("a=x", "%r = slice %a {index=[::-1]} : f64[3]", "%r"),
        [
            "a = x.copy()",
            "for _ in range(4):",
            "    r = a[::-1]",
            "    a = r.copy()",
            "return a",
        ],
    ),
    "the buffer of the turn before is written again": (
        loop("a=x", "%t = add %a, %k : f64[3]\n%a.1 = exp %t : f64[3]", "%a.1"),
        [
            "a = x.copy()",
            "for _ in range(4):",
            "    t = np.add(a, y, out=a)",
            "    a = np.exp(t, out=t)",
            "return a",
        ],
    ),
    "what each turn makes anew needs no copy at the start": (
        loop("a=x", "%a.1 = sort %a {axis=0} : f64[3]", "%a.1"),
        ["a = x", "for _ in range(4):", "    a = np.sort(a, axis=0)", "return a"],
    ),
}


@pytest.mark.parametrize("case", MEMORY)
def test_whose_memory(case: str):
    text, expected = MEMORY[case]
    found = lines_of(text, planned=True)
    assert found[: len(expected)] == expected
    graph, inputs = graph_of(text), [np.array([3.0, 1.0, 2.0]), np.arange(3.0)]
    assert_same_run(graph, inputs, plan_for(graph, inputs))


def test_a_store_through_branches_and_inner_loops_copies_nothing():
    """The sieve: one array, whatever the depth."""
    text = """\
graph sieve(%limit: int) {
  %prime.0 = ones {shape=(1000,), dtype=bool} : bool[1000]
  %2 = const 2 : int
  %prime.9, %i.9 = while %prime.0, %2, %limit {
    test=graph test(%prime: bool[1000], %i: int, %limit: int) {
      %square = multiply %i, %i : int
      %more = less %square, %limit : bool
      return %more
    },
    body=graph body(%prime: bool[1000], %i: int, %limit: int) {
      %p = gather %prime, %i {index=[%]} : bool[]
      %prime.1 = if %p, %prime, %i, %limit {
        then=graph then(%prime: bool[1000], %i: int, %limit: int) {
          %j.0 = multiply %i, %i : int
          %prime.5, %j.5 = while %prime, %j.0, %i, %limit {
            test=graph test(%prime: bool[1000], %j: int, %i: int, %limit: int) {
              %more = less %j, %limit : bool
              return %more
            },
            body=graph body(%prime: bool[1000], %j: int, %i: int, %limit: int) {
              %no = const False : bool
              %prime.1 = update %prime, %no, %j {index=[%]} : bool[1000]
              %j.1 = add %j, %i : int
              return (%prime.1, %j.1)
            }} : bool[1000], int
          return %prime.5
        },
        otherwise=graph otherwise(%prime: bool[1000], %i: int, %limit: int) { return %prime }
      } : bool[1000]
      %1 = const 1 : int
      %i.1 = add %i, %1 : int
      return (%prime.1, %i.1)
    }} : bool[1000], int
  return %prime.9
}"""
    assert lines_of(text, planned=True) == [
        "prime = np.ones(shape=(1000,), dtype=np.bool)",
        "i = 2",
        "while i * i < limit:",
        "    p = prime[i]",
        "    if p:",
        "        j = i * i",
        "        while j < limit:",
        "            prime[j] = False",
        "            j = j + i",
        "    i = i + 1",
        "return prime",
    ]
    graph = graph_of(text)
    assert plan_of(graph).peak_bytes == 1000
    assert_same_run(graph, [1000], plan_of(graph))


def test_a_loop_without_turns_returns_a_fresh_array():
    text = """\
graph f(%x: f64[3], %n: int) {
  %x.9, %n.9 = while %x, %n {
    test=graph test(%x: f64[3], %n: int) { %no = const False : bool
      return %no },
    body=graph body(%x: f64[3], %n: int) { return (%x, %n) }} : f64[3], int
  return %x.9
}"""
    graph = graph_of(text)
    x = np.arange(3.0)
    for program in (PYTHON.emit(graph), PYTHON.emit(graph, plan_of(graph))):
        (result,) = PYTHON.load(program)(x, 0)
        assert result.tolist() == x.tolist() and not np.shares_memory(result, x)
    (number,) = PYTHON.load(PYTHON.emit(graph_of(text.replace("f64[3]", "f64[]"))))(
        np.array(2.0), 0
    )
    assert number == 2.0


def test_regions_whose_inputs_are_values_of_the_graph_around():
    graph = graph_of(MEMORY["an operand that is returned is copied at each turn"][0])
    (scan,) = graph.nodes
    body: Graph = scan.attrs["body"]
    known: dict[Value, Value] = dict(zip(body.inputs, scan.inputs, strict=True))
    nodes = [
        Node(n.id, n.op, [known.get(v, v) for v in n.inputs], n.attrs, n.outputs)
        for n in body.nodes
    ]
    same = Graph("body", scan.inputs, nodes, [known.get(v, v) for v in body.outputs])
    shared = Node(scan.id, scan.op, scan.inputs, {**scan.attrs, "body": same}, scan.outputs)
    graph = graph.replace([shared])
    assert_same_run(graph, [np.ones(3), np.arange(3.0)], plan_of(graph))


# ---------------------------------------------------------------------------- failures, one node


def test_a_failure_in_a_loop_names_the_users_line(tmp_path: Path):
    path = tmp_path / "user.py"
    path.write_text("def f(n):\n    while n != 1:\n        n = n // 0\n    return n\n")
    graph = graph_of(COLLATZ.replace("const 2", "const 0"))
    for node in graph.nodes:
        for _, region in node.regions:
            for inner in region.nodes:
                inner.loc = Loc(str(path), 2 if inner.op.name == "not_equal" else 3, function="f")
    program = PYTHON.emit(graph, plan_of(graph))
    with pytest.raises(ZeroDivisionError) as caught:
        PYTHON.load(program)(5)
    (note,) = caught.value.__notes__
    assert note.splitlines()[:3] == [
        f"while running {path}:3, in f",
        "    n = n // 0",
        "  node:      %odd = remainder %n, %2 : int",
    ]
    assert "  operands:  %n = 5, %2 = 0" in note
    lines = program.source.splitlines()
    test = next(number for number, line in enumerate(lines, 1) if "while" in line)
    found = program.find(test)
    assert found is not None and found.op.name == "not_equal" and found.loc is not None
    run = INTERPRET.load(INTERPRET.emit(graph))
    with pytest.raises(ZeroDivisionError) as caught:
        run(5)
    assert caught.value.__notes__[0].splitlines()[0] == f"while running {path}:3, in f"


def test_one_node_is_a_function_of_its_inputs():
    graph = graph_of(COLLATZ)
    node = graph.nodes[1]
    alone = Graph("while", dict.fromkeys(node.inputs), [node], node.outputs)
    assert PYTHON.load(PYTHON.emit(alone))(27, 0) == (1, 111)


def test_named_sizes_inside_of_regions():
    text = """\
graph f(%c: bool, %x: f32[batch,2]) {
  %y = if %c, %x {
    then=graph then(%x: f32[batch,2]) {
      %y = reshape %x {shape=(2, <batch>)} : f32[2,batch]
      return %y
    },
    otherwise=graph otherwise(%x: f32[batch,2]) {
      %y = zeros {shape=(2, <batch>), dtype=f32} : f32[2,batch]
      return %y
    }} : f32[2,batch]
  return %y
}"""
    assert lines_of(text)[0] == "batch = x.shape[0]"
    for c in (True, False):
        assert_same_run(graph_of(text), [c, np.ones((3, 2), "f4")], plan_of(graph_of(text)))
