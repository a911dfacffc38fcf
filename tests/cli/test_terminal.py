"""How it looks: plain text into pipes, colour on terminals, whatever the width and the encoding."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from cli.running import Command, Process, start_process

from minigraph import compile, parse, trace
from minigraph.passes import optimize, plan_of
from minigraph.viz import Terminal, differences, storage
from minigraph.viz.palette import slot_letters

ESCAPE = re.compile(r"\x1b\[[\d;]*m")


def test_a_pipe_gets_no_escapes_and_a_terminal_does(process: Process):
    piped = process("explain", "fancy_func.py").stdout
    assert "\x1b" not in piped
    coloured = process(
        "explain", "fancy_func.py", env={"FORCE_COLOR": "1", "COLUMNS": "100"}
    ).stdout
    assert "\x1b[36m%e" in coloured
    figures = re.compile(r"\d+\.\d\d")  # milliseconds
    assert figures.sub("", ESCAPE.sub("", coloured)) == figures.sub("", piped)


def test_no_color_is_honoured(command: Command):
    told = {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "100"}
    shown = command("explain", "fancy_func.py", env=told).output
    codes = {code for escape in ESCAPE.findall(shown) for code in escape[2:-1].split(";")}
    assert codes <= {"0", "1", "2", ""}  # bold and dim are no colours


def test_a_narrow_terminal_wraps_reasons_only(command: Command):
    told = {"FORCE_COLOR": "1", "COLUMNS": "60"}
    shown = command(
        "explain", "model.py:model.forward", "--args", "f64[2,4]", "--pass", "cse", env=told
    ).output
    lines = ESCAPE.sub("", shown).split("\n")
    assert max(map(len, lines[1:])) <= 60
    assert any(line.startswith(" " * 8) for line in lines)


def test_an_old_encoding_is_no_trouble(process: Process, folder: Path):
    (folder / "greek.py").write_text("α = 1\nβ = α * 2\nprint('β', β)\n", encoding="utf-8")
    done = process("explain", "greek.py", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\u03b2" in done.stdout
    assert "-- traced ---" in done.stdout


def test_a_reader_that_leaves_is_no_trouble(folder: Path):
    started = start_process("explain", "fancy_func.py")
    assert started.stdout is not None and started.stderr is not None
    started.stdout.close()
    assert "Traceback" not in started.stderr.read().decode()
    started.stderr.close()
    started.wait(timeout=60)


def test_help_lists_the_commands(command: Command):
    shown = command("--help").output
    for name in ("demo", "explain", "draw", "run", "doctor"):
        assert f"\n  {name} " in shown


def test_the_version(command: Command):
    assert command("--version").output.startswith("minigraph, version ")


def test_the_installed_command_is_this_one():
    project = Path(__file__).parents[2] / "pyproject.toml"
    module, _, name = tomllib.loads(project.read_text())["project"]["scripts"][
        "minigraph"
    ].partition(":")
    assert callable(getattr(import_module(module), name))


def test_importing_the_package_loads_neither_click_nor_rich(fresh_process: Callable[..., str]):
    found = fresh_process(
        "import sys, minigraph; print({'click', 'rich', 'pygments'} & set(sys.modules))"
    )
    assert found == "set()\n"


# ---------------------------------------------------------------------------- lines


def test_marks_follow_the_identity_of_values_and_not_their_text():
    def f(x):
        a = np.exp(x)
        b = np.exp(x)
        return a + b, x * 1

    history = optimize(trace(f, np.ones(3)))
    found = {
        (stage.name, each.mark, each.text.split(" = ")[0])
        for stage, before in history.steps()
        for each in differences(stage, before)
    }
    assert ("cse", "-", "%b") in found
    assert not any(mark == "+" for _, mark, _ in found)
    assert all(name != "%a" for _, _, name in found)
    whys = [c.why for stage, before in history.steps() for c in differences(stage, before)]
    assert all(whys)


def test_every_place_is_a_line_of_the_user():
    def f(x):
        return (x + x) * 1

    history = optimize(trace(f, np.ones(3)))
    line = f.__code__.co_firstlineno + 1
    places = {c.place for stage, before in history.steps() for c in differences(stage, before)}
    assert places == {f"@L{line}"}


def test_storage_tells_new_taken_viewed_and_freed():
    def f(x):
        a = np.ones((2, 3))
        b = a * x
        c = b.T
        return c.sum() + a.sum()

    graph = compile(trace(f, 2.0), "python", passes=()).graph()
    rows = {row.text.split(" ")[0]: row for row in storage(graph, plan_of(graph))}
    assert (rows["%a"].slot, rows["%a"].what) == ("A", "new, 48 bytes")
    why = "%a: the value is read again later"
    assert (rows["%b"].slot, rows["%b"].what) == ("B", f"new, 48 bytes ({why})")
    assert (rows["%c"].slot, rows["%c"].what) == ("B", "a view of %b")
    freed = [row.what for row in rows.values() if "frees" in row.what]
    assert freed == ["frees B", "frees A"]


def test_the_textbooks_buffers():
    def f():
        a = np.ones(10)
        b = np.ones(10) * 2
        c = b * a
        return c + 1

    graph = optimize(trace(f), ("cse", "dce")).graph
    plan = plan_of(graph)
    assert (plan.naive_bytes, plan.peak_bytes) == (320, 160)
    rows = storage(graph, plan)
    assert [row.slot for row in rows] == ["A", "B", "B", "B"]
    assert rows[-1].what.startswith("in place of ")


LOOP = """\
graph f(%x: f64[3], %n: int) {
  %y = negative %x : f64[3]
  %0 = const 0 : int
  %y.9, %i.9 = while %y, %0, %n {
    test=graph test(%y: f64[3], %i: int, %n: int) {
      %more = less %i, %n : bool
      return %more
    },
    body=graph body(%y: f64[3], %i: int, %n: int) {
      %1 = const 1 : int
      %z = exp %y : f64[3]
      %y.1 = multiply %z, %1 : f64[3]
      %i.1 = add %i, %1 : int
      return (%y.1, %i.1)
    }} : f64[3], int
  return %y.9
}"""


def test_the_memory_of_a_loop_has_its_own_rows():
    graph = parse(LOOP)
    rows = storage(graph, plan_of(graph))
    assert [(row.text, row.slot, row.what.split(" (")[0]) for row in rows] == [
        ("%y = negative %x : f64[3]", "A", "new, 24 bytes"),
        ("%y.9, %i.9 = while %y, %0, %n", "A", "in place of %y"),
        ("  body of %y.9, %i.9 = while %y, %0, %n", "", "needs 0 bytes more at most"),
        ("    %z = exp %y : f64[3]", "a", "in place of %y"),
        ("    %y.1 = multiply %z, %1 : f64[3]", "a", "in place of %z"),
    ]


def test_a_change_inside_of_a_loop_is_one_line():
    history = optimize(parse(LOOP))
    changes = [c for stage, before in history.steps() for c in differences(stage, before)]
    assert [change.text for change in changes if change.mark != "!"] == [
        "%y.9, %i.9 = while %y, %0, %n",
        "body: %y.1 = multiply %z, %1 : f64[3]",
    ]


def test_slots_have_names_however_many():
    assert [slot_letters(n) for n in (0, 25, 26, 27, 701, 702)] == [
        "A",
        "Z",
        "AA",
        "AB",
        "ZZ",
        "AAA",
    ]


def test_a_table_is_aligned():
    stream = io.StringIO()
    Terminal(stream).table([("a", "12"), ("long", "3")], ("name", "n"), right=(1,))
    assert stream.getvalue() == "  name   n\n  a     12\n  long   3\n"


def test_the_last_column_is_wrapped_below_itself():
    stream = io.StringIO()
    Terminal(stream).table([("a", "word " * 40)])
    lines = stream.getvalue().rstrip("\n").split("\n")
    assert len(lines) == 3 and all(len(line) <= 100 for line in lines)
    assert lines[1].startswith("     word")


@pytest.mark.parametrize("width", ["40", "79", "200"])
def test_every_width_shows_every_word(command: Command, width: str):
    told = {"FORCE_COLOR": "1", "COLUMNS": width}
    shown = ESCAPE.sub("", command("explain", "fancy_func.py", "--pass", "fold", env=told).output)
    assert shown.split().count("alone:") == 3
