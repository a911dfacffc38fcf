"""The README is true: code prints what it says, commands exist, the table of ops is whole."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import scipy.special
from click.testing import CliRunner, Result
from conftest import package_folder
from docs import ops_table
from docs.pages import REPOSITORY, Block, assert_prints, blocks, page, run

import minigraph as mg
from minigraph.cli import main
from minigraph.ir import walk

README = "README.md"
ELSEWHERE = (
    r"python3 -m venv \.venv && \.venv/bin/pip install \. && \.venv/bin/minigraph demo",
    r"python -m pip install -e '\.\[test\]'",
    r"python -m pytest -q -n 2",
    r"python -m benchmarks (setup|run|report|compare|bars|list|compiler)( .*)?",
)
"""Commands that this test does not run: the install is what CI begins with, the others are CI."""


WHEN_USED = ("load", "nd", "nn", "sym", "testing")
"""Names of the package that `import minigraph` does not load."""

FILES = [block for block in blocks(README, "python") if block.filename]
assert FILES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the README's programs run, and leave their files."""
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def ran(folder: Path) -> dict[str, Any]:
    """What the README's programs define, after all of them ran one after the other."""
    found: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for block in blocks(README, "python"):
            run(block, found, folder)
    return found


@pytest.fixture
def namespace(ran: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The same for a test that runs in that folder."""
    monkeypatch.chdir(folder)
    return ran


def test_the_programs_print_what_they_say(namespace: dict[str, Any]):
    assert {"score", "choose", "anysize"} <= namespace.keys()


def test_every_block_is_of_a_known_kind():
    assert {block.language for block in blocks(README)} == {"python", "sh", "text"}


@pytest.fixture
def invoke(namespace: dict[str, Any]) -> Callable[[str], Result]:
    """A function that runs a `minigraph` command in the folder with the README's files."""

    def call(line: str) -> Result:
        before, _, command = line.rpartition(" | ")
        given = shlex.split(before)[-1] + "\n" if before else None
        assert not before or before.startswith("echo "), line
        program, *words = shlex.split(command)
        assert program in ("minigraph", ".venv/bin/minigraph"), line
        return CliRunner().invoke(main, words, input=given)

    return call


def test_the_commands_work(invoke: Callable[[str], Result]):
    ran = 0
    for block in blocks(README, "sh"):
        for line in block.text.splitlines():
            if any(re.fullmatch(known, line) for known in ELSEWHERE):
                continue
            done = invoke(line)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            ran += 1
    assert ran >= 8
    assert Path("cse.svg").stat().st_size


def test_the_demo_shows_what_is_quoted(invoke: Callable[[str], Result]):
    output = iter(invoke("minigraph demo").output.splitlines())
    quoted = [block for block in blocks(README, "text") if block.text.startswith("──")]
    assert quoted
    for line in "".join(block.text for block in quoted).splitlines():
        pattern = ".*".join(map(re.escape, line.split("...")))
        assert any(re.fullmatch(pattern, shown.rstrip()) for shown in output), line


@pytest.mark.parametrize("name", ["score", "collatz"])
def test_a_picture_is_of_its_program(name: str, namespace: dict[str, Any]):
    assert f"(examples/{name}.svg)" in page(README)
    path = REPOSITORY / f"examples/{name}.svg"
    shown = " ".join(ElementTree.parse(path).getroot().itertext())
    graph = namespace[name].graph
    graph = graph("traced") if callable(graph) else graph
    for node in walk(graph):
        for value in node.outputs:
            assert f"%{value.name}" in shown


def test_the_table_of_ops_is_what_the_registry_has():
    text = page(README)
    assert text == ops_table.written(text), "run: python tests/docs/ops_table.py"


def test_every_op_with_a_numpy_name_is_in_the_table():
    found = set(re.findall(r"`([\w.]+)`", ops_table.table()))
    missing = {
        name
        for name in (*ops_table.ops.RECORDED, *ops_table.COMPOSITES)
        if ops_table.exists(name) and name not in found
    }
    assert missing == set()
    draws = {f"random.{name}" for name in found if name.startswith("Generator.")}
    scipys = {name for name in found if name.startswith("scipy.")}
    assert all(hasattr(scipy.special, name.rpartition(".")[2]) for name in scipys)
    assert all(map(ops_table.exists, draws | {f for f in found - scipys if "Generator." not in f}))


@pytest.mark.parametrize("block", FILES, ids=lambda block: block.filename)
def test_a_file_runs_by_itself(block: Block, tmp_path: Path):
    assert block.filename is not None
    (tmp_path / block.filename).write_text(block.text, encoding="utf-8")
    assert_prints(printed_by(tmp_path, block.filename), block.text)


def test_the_first_file_runs_as_a_program_too(tmp_path: Path):
    block = FILES[0]
    (tmp_path / "score.py").write_text(block.text, encoding="utf-8")
    assert_prints(printed_by(tmp_path, "-m", "minigraph", "run", "score.py"), block.text)
    (tmp_path / "score.py").write_text(f"{block.text}score.graph()\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="score has not been compiled yet"):
        printed_by(tmp_path, "-m", "minigraph", "run", "score.py")


def printed_by(folder: Path, *arguments: str) -> str:
    """What a new Python process prints, which has to end well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package_folder().parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_every_link_leads_somewhere():
    for name in (README, "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page(name)):
            assert (REPOSITORY / target).exists(), f"{name}: {target}"


def test_the_folders_are_those_that_exist():
    named = set(re.findall(r"minigraph/(\w+)(?:/|\.py)", page(README)))
    there = {p.stem for p in (REPOSITORY / "minigraph").iterdir() if p.suffix in ("", ".py")}
    assert named <= there
    assert {"ir", "ops", "trace", "passes", "backends", "jit", "viz", "cli"} <= named


def test_the_names_of_the_api_are_those_that_exist():
    named = set(re.findall(r"\bmg\.(\w+)", page(README)))
    assert named <= {*mg.__all__, *WHEN_USED}
    kinds = {name for name in mg.__all__ if name[0].isupper()}
    assert {*mg.__all__, *WHEN_USED} - named - kinds == set()


def test_what_is_loaded_when_used_is_there():
    assert all(hasattr(mg, name) for name in WHEN_USED)


@pytest.mark.parametrize(
    ("module", "title"),
    [
        (mg.autograd, "`mg.autograd`"),
        (mg.nn.optimizers, "`optimizers`"),
        (mg.nn.schedules, "`schedules`"),
        (mg.nn.initializers, "`initializers`"),
        (mg.nn.metrics, "`metrics`"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_row_of_the_tables_holds_what_the_module_has(module: ModuleType, title: str):
    (row,) = re.findall(rf"^\| {title} \| (.*) \|$", page(README), re.MULTILINE)
    names = set(re.findall(r"`(\w+)`", row))
    assert names == public(module)


def test_the_tables_hold_all_of_nn():
    start, end = "### Networks\n", "\nNames and arguments"
    table = page(README).partition(start)[2].partition(end)[0]
    named = set(re.findall(r"`(\w+)`", table))
    assert set(mg.nn.__all__) - {"nd", "sym"} <= named
    rows = table.partition("| `optimizers`")[0]
    assert set(re.findall(r"`(\w+)`", rows)) <= {"mg", *mg.nn.__all__}
    assert all(hasattr(mg.nn.HybridBlock, name) for name in methods(table))
    functions = re.findall(r"`(\w+)`", table.partition("| `functional` | ")[2].partition("\n")[0])
    assert functions and set(functions) <= set(mg.nn.functional.__all__)


def methods(table: str) -> list[str]:
    """The methods of blocks that the table names."""
    row = table.partition("| of each block | ")[2].partition("\n")[0]
    return [*re.findall(r"`(\w+)`", row), *re.findall(r"`net\.(\w+)`", table)]


def public(module: ModuleType) -> set[str]:
    """What a module is there for: `__all__`, or its classes but for the base of them."""
    if hasattr(module, "__all__"):
        return set(module.__all__) - {"MODE", "Mode"}
    own = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and name[0] != "_"
    }
    return own - {"Metric", "Optimizer", "Schedule"}
