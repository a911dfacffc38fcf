"""`minigraph demo` shows what it promises, in order, and nothing of it is prepared."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree
from collections.abc import Callable
from pathlib import Path

import click.testing
import numpy as np
import pytest
from cli.running import new_process

from minigraph import demo as demo_module
from minigraph.cli import main
from minigraph.demo import ARRAYS, TEXTBOOK, demo
from minigraph.errors import DrawingError
from minigraph.viz import Terminal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    return new_process("demo", cwd=folder)


@pytest.fixture(scope="module")
def shown(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout


def parts(shown: str) -> dict[str, str]:
    """The text below each heading, by the heading's words."""
    pieces = re.split(r"^── (.*?) ──.*$", shown, flags=re.MULTILINE)
    return {title: text.strip("\n") for title, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def part(shown: str, number: int) -> str:
    return next(text for title, text in parts(shown).items() if title.startswith(f"{number} "))


def test_it_ends_well(done: subprocess.CompletedProcess[str]):
    assert (done.returncode, done.stderr) == (0, "")


def test_the_picture_shows_the_recorded_graph(shown: str, folder: Path):
    assert "fancy_func.svg" in shown
    picture = (folder / "fancy_func.svg").read_text(encoding="utf-8")
    words = " ".join(xml.etree.ElementTree.fromstring(picture).itertext())
    assert all(name in words for name in ("%e", "%f", "%g", "add", "print"))


def test_the_textbook_becomes_print_10(shown: str):
    source = [line[6:] for line in part(shown, 1).split("\n")]
    assert "\n".join(source) + "\n" == TEXTBOOK
    recorded = part(shown, 2)
    assert recorded.startswith("program fancy_func() {")
    nodes = re.findall(r"^  .*# fancy_func\.py:(\d+)$", recorded, re.MULTILINE)
    assert len(nodes) >= 5
    for name, line in (("e", 6), ("f", 7), ("g", 8)):
        assert re.search(rf"^  %{name} = add %\w+, %\w+ .*# fancy_func\.py:{line}$", recorded, re.M)
    changed = part(shown, 3)
    assert re.search(r"^  ~ %e = .* -> const 3 +@L6  .*3$", changed, re.M)
    assert re.search(r"^  ~ %g = .* -> const 10 +@L8  .*10$", changed, re.M)
    assert re.search(r"^  - %e = const 3 : int +@L6 +\S+", changed, re.M)
    assert part(shown, 4) == "print(10)"
    assert part(shown, 5) == "10"


def test_the_arrays_lose_their_dead_and_their_repeated_line(shown: str):
    source = [line[6:] for line in part(shown, 6).split("\n")]
    assert "\n".join(source) + "\n" == ARRAYS
    changed = part(shown, 7)
    assert re.search(r"^cse  .*\n(?:  .*\n)*?  - %again = add .*%e", changed, re.M)
    assert re.search(r"^dce  .*\n(?:  .*\n)*?  - %unused = ", changed, re.M)


def test_buffers_are_reused_and_freed_where_the_plan_says(shown: str):
    plan = part(shown, 8)
    assert re.search(r"%e = add .* A +8,000,000  new, 8,000,000 bytes", plan)
    assert "in place of %f" in plan and "frees A" in plan
    program = part(shown, 9)
    assert "out=f" in program and "unused" not in program and "again" not in program


def test_the_numbers_are_compared(shown: str):
    rows = {
        line[2:24].strip(): [int(each.replace(",", "")) for each in line[24:].split()]
        for line in part(shown, 10).split("\n")
        if re.match(r"  (operations|bytes|peak)", line)
    }
    operations, planned, measured = (
        rows[name] for name in ("operations", "peak bytes, planned", "peak bytes, measured")
    )
    assert operations[0] > operations[1]
    assert planned[-1] <= measured[-1] < 1.01 * planned[-1] < measured[0]
    assert "1,000,000 of 1,000,000 elements are the same, bit for bit" in shown


def test_it_ends_with_three_commands_that_exist(shown: str):
    commands = re.findall(r"^  (.*?minigraph .*?)(?:   .*)?$", parts(shown)["Next, try"], re.M)
    assert len(commands) == 3
    for line in commands:
        words = shlex.split(line)
        assert words[words.index("minigraph") + 1] in main.commands
    assert shown.rstrip().split("\n")[-1].startswith(f"  {commands[-1]}")


def test_a_pipe_gets_plain_text(shown: str):
    assert "\x1b" not in shown
    assert all(line == line.rstrip() and len(line) <= 100 for line in shown.split("\n"))


def show(tmp_path: Path) -> str:
    stream = io.StringIO()
    demo(Terminal(stream), tmp_path / "out.dot")
    return stream.getvalue()


def test_nothing_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(demo_module, "SIZE", 1000)
    monkeypatch.setattr(demo_module, "TEXTBOOK", TEXTBOOK.replace("1, 2, 3, 4", "5, 6, 7, 8"))
    monkeypatch.setattr(demo_module, "ARRAYS", ARRAYS.replace("np.sqrt(g)", "unused + again * g"))
    shown = show(tmp_path)
    assert part(shown, 4) == "print(26)"
    assert capsys.readouterr().out == "26\n"
    assert "%unused = " not in part(shown, 7)
    assert "1,000 of 1,000 elements are the same" in shown


def test_the_next_commands_are_written_as_this_one_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(demo_module, "SIZE", 10)
    monkeypatch.setattr(sys, "argv", [".venv/bin/minigraph", "demo"])
    for path, name in (("", ".venv/bin/minigraph"), (str(tmp_path), "minigraph")):
        monkeypatch.setenv("PATH", path)
        (tmp_path / "minigraph").touch(mode=0o755)
        result = click.testing.CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "x.dot")])
        assert f"\n  {name} doctor" in result.output


def test_the_comparison_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo_module, "SIZE", 10)
    measured: Callable[..., tuple[np.ndarray, int]] = demo_module._measured

    def wrong(*arguments: object) -> tuple[np.ndarray, int]:
        result, peak = measured(*arguments)
        result[3] = np.nextafter(result[3], 9)
        return result, peak

    monkeypatch.setattr(demo_module, "_measured", wrong)
    assert "9 of 10 elements are the same" in show(tmp_path)


def test_without_a_picture_it_says_so_after_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fails(*arguments: object, **options: object) -> None:
        raise DrawingError("cannot draw")

    monkeypatch.setattr(demo_module, "SIZE", 10)
    monkeypatch.setattr(demo_module, "save", fails)
    stream = io.StringIO()
    with pytest.raises(DrawingError):
        demo(Terminal(stream), tmp_path / "out.svg")
    assert "minigraph doctor" in stream.getvalue()
