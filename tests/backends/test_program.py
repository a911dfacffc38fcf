"""Programs are found by tracebacks, and their failures name the user's line."""

from __future__ import annotations

import gc
import linecache
import traceback
from pathlib import Path

import numpy as np
import pytest
from backends.checks import INTERPRET, PYTHON, graph_of

from minigraph import backends, ops
from minigraph.errors import OptionError
from minigraph.ir import Graph, Loc, Node, Value, parse_type

TEXT = """\
graph f(%a: f64[3], %error: f64[3]) {
  %0 = const [1.0, 2.0, 3.0] : f64[3]
  %e = add %a, %0 : f64[3]
  %g = multiply %e, %error : f64[3]
  return %g
}"""


def located(path: Path) -> Graph:
    """The graph of TEXT whose last node stands on line 2 of a file."""
    path.write_text("def f(a, error):\n    g = (a + 1) * error\n    return g\n")
    graph = graph_of(TEXT)
    last = graph.nodes[-1]
    loc = Loc(str(path), 2, function="f")
    return graph.replace(
        [*graph.nodes[:-1], Node(last.id, last.op, last.inputs, {}, last.outputs, loc)]
    )


def test_lines_lead_to_nodes_and_back():
    graph = graph_of(TEXT)
    program = PYTHON.emit(graph)
    lines = program.source.splitlines()
    found = {lines[number - 1].split(" = ")[0].strip(): node for number, node in program.lines}
    assert found == {"e": graph.nodes[1], "g": graph.nodes[2]}
    assert [program.find(number) for number, _ in program.lines] == list(graph.nodes[1:])
    assert program.find(1) is None and program.find(10**6) is None
    assert program.names[graph.nodes[1].output] == "e"


def test_the_source_stands_in_linecache_while_the_program_lives():
    program = PYTHON.emit(graph_of(TEXT))
    name, other = program.filename, PYTHON.emit(graph_of(TEXT)).filename
    assert name != other and name.startswith("<minigraph f ")
    linecache.checkcache()
    assert linecache.getlines(name) == program.source.splitlines(keepends=True)
    run = PYTHON.load(program)
    del program
    gc.collect()
    assert linecache.getlines(name)
    del run
    gc.collect()
    assert not linecache.getlines(name)


def test_a_failure_names_the_users_line_and_shows_the_generated_one(tmp_path: Path):
    path = tmp_path / "user.py"
    program = PYTHON.emit(located(path))
    run = PYTHON.load(program)
    with pytest.raises(ValueError, match="broadcast") as caught:
        run(np.ones(3), np.ones(4))
    (note,) = caught.value.__notes__
    line = next(number for number, node in program.lines if node.outputs[0].hint == "g")
    assert (
        note
        == f"""\
while running {path}:2, in f
    g = (a + 1) * error
  node:      %g = multiply %e, %error : f64[3]
  operands:  %e: f64[3], %error: f64[4]
  generated: g = e * error  # f64[3]
             {program.filename}:{line}"""
    )
    (entry,) = [
        entry
        for entry in traceback.extract_tb(caught.value.__traceback__)
        if entry.filename == program.filename
    ]
    assert (entry.lineno, entry.name) == (line, "f")
    assert entry.line == program.source.splitlines()[line - 1].strip()
    shown = entry._original_line if hasattr(entry, "_original_line") else None
    assert shown is None or shown[entry.colno : entry.end_colno] == "e * error"


def test_the_evaluators_failures_are_explained_too(tmp_path: Path):
    path = tmp_path / "user.py"
    run = INTERPRET.load(INTERPRET.emit(located(path)))
    with pytest.raises(ValueError, match="broadcast") as caught:
        run(np.ones(3), np.ones(4))
    (note,) = caught.value.__notes__
    assert note.splitlines()[2:] == [
        "  node:      %g = multiply %e, %error : f64[3]",
        "  operands:  %e: f64[3], %error: f64[4]",
    ]


def test_the_operands_of_numbers_and_of_a_failing_program():
    text = """\
program p() {
  %0 = const 1 : int
  %1 = const 0 : int
  %q = add %0, %1 : int
  %r = divide %q, %1 : float
  return None
}"""
    run = PYTHON.load(PYTHON.emit(graph_of(text)))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            run()
        (note,) = caught.value.__notes__
        assert "  operands:  %q = 1, %1 = 0" in note.splitlines()


def test_a_note_is_given_once_and_only_to_what_failed_inside():
    program = PYTHON.emit(graph_of(TEXT))
    run = PYTHON.load(program)
    with pytest.raises(ValueError) as caught:
        run(np.ones(3), np.ones(4))
    backends.explain_failure(caught.value, program)
    assert len(caught.value.__notes__) == 1
    outside = ValueError("elsewhere")
    backends.explain_failure(outside, program)
    assert not hasattr(outside, "__notes__")
    with pytest.raises(TypeError) as wrong_call:
        run(np.ones(3))
    assert not hasattr(wrong_call.value, "__notes__")


def test_a_line_that_failed_halfway_still_knows_its_operands():
    kind = parse_type("f64[3]")
    a, b = Value(0, kind, "_failure"), Value(1, kind, "print")
    graph = Graph("f", [a], [Node(0, ops.get("negative"), [a], {}, [b])], [b])
    with pytest.raises(TypeError) as caught:
        PYTHON.load(PYTHON.emit(graph))("text")
    assert "  operands:  %_failure: str" in caught.value.__notes__[0].splitlines()


def test_backends_are_found_by_file():
    assert set(backends.names()) >= {"interpret", "null", "python"}
    assert backends.availability()["python"] is None
    assert backends.get("python") is PYTHON
    assert backends.resolve("auto") in ("numba", "python")
    with pytest.raises(OptionError, match="no backend 'pyhton'") as caught:
        backends.get("pyhton")
    assert caught.value.instead.startswith("did you mean 'python'? known are auto, ")
    with pytest.raises(OptionError):
        backends.get(None)  # type: ignore[arg-type]


def test_a_backend_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(PYTHON, "available", lambda: "no snakes here")
    assert backends.availability()["python"] == "no snakes here"
    with pytest.raises(OptionError, match="no snakes here"):
        backends.get("python")


def test_the_null_backend_compiles_and_does_not_run():
    null = backends.get("null")
    program = null.emit(graph_of(TEXT), None)
    assert program.source == ""
    with pytest.raises(OptionError, match="runs nothing"):
        null.load(program)


def test_the_interpreter_shows_the_graph():
    graph = graph_of(TEXT)
    program = INTERPRET.emit(graph)
    assert program.source == str(graph)
    assert [program.find(line) for line in (2, 3, 4)] == list(graph.nodes)
    (result,) = INTERPRET.load(program)(np.ones(3), np.ones(3))
    assert result.tolist() == [2.0, 3.0, 4.0]
