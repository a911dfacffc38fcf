"""The worked examples of CONTRIBUTING.md, in a copy of the package to which they are added."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import package_folder
from docs.pages import REPOSITORY, Block, assert_prints, blocks, page

PAGE = "CONTRIBUTING.md"
_ADDED = re.compile(r"# (minigraph/[\w/]+\.py)\n")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """A function that runs a program with the copy of the package; it returns what that printed."""
    folder = tmp_path_factory.mktemp("contributing")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package_folder(), folder / "minigraph", ignore=ignored)
    for block in blocks(PAGE, "python"):
        if added := _ADDED.match(block.text):
            with (folder / added[1]).open("a", encoding="utf-8") as file:
                file.write("\n" + block.text.removeprefix(added[0]))

    def run(source: str, name: str = "program.py") -> str:
        (folder / name).write_text(source, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, name],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


PROGRAMS = [block for block in blocks(PAGE, "python") if not _ADDED.match(block.text)]


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: f"line {block.line}")
def test_a_program_prints_what_it_says(python: Callable[..., str], block: Block):
    assert_prints(python(block.text, block.filename or "program.py"), block.text)


def test_one_of_each_kind_is_added():
    added = [_ADDED.match(block.text) for block in blocks(PAGE, "python")]
    folders = [match[1].split("/")[1] for match in added if match]
    assert folders == ["ops", "passes", "backends", "nn", "nn", "nn"]


def test_the_pass_does_what_its_docstring_says(python: Callable[..., str]):
    check = """
import textwrap
from minigraph import ops
from minigraph.ir import parse_graph, verify
from minigraph.passes import PASSES, Recorder
import minigraph.passes.halve as module

texts = ["graph f" + part.split("}")[0] + "}" for part in module.__doc__.split("graph f")[1:]]
before, after = (parse_graph(textwrap.dedent(text), ops.OPS) for text in texts)
found = PASSES["halve"](before, Recorder.after(before))
verify(found)
assert found == after, found
assert PASSES["halve"](found, Recorder.after(found)) is found
print("same")
"""
    assert python(check).strip() == "same"


def test_the_halves_are_exact(python: Callable[..., str]):
    check = """
import numpy as np
rng = np.random.default_rng(0)
edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 3.0, -3.0]
x, y = (each.ravel() for each in np.meshgrid(edges, edges))
np.seterr(all="ignore")
for dtype in "float16 float32 float64".split():
    a, b = x.astype(dtype), y.astype(dtype)
    assert np.divmod(a, b)[0].tobytes() == np.floor_divide(a, b).tobytes(), dtype
    assert np.divmod(a, b)[1].tobytes() == np.remainder(a, b).tobytes(), dtype
    assert np.modf(a)[1].tobytes() == np.trunc(a).tobytes(), dtype
for dtype in "int8 uint8 int64".split():
    a, b = (rng.integers(0, 9, 99).astype(dtype) for _ in range(2))
    assert np.divmod(a, b)[0].tobytes() == np.floor_divide(a, b).tobytes(), dtype
    assert np.divmod(a, b)[1].tobytes() == np.remainder(a, b).tobytes(), dtype
print("same")
"""
    assert python(check).strip() == "same"


def test_the_added_files_are_in_style(tmp_path: Path):
    for block in blocks(PAGE, "python"):
        added = _ADDED.match(block.text)
        if added and "passes" not in added[1] and "backends" not in added[1]:
            continue
        path = tmp_path / (added[1].rpartition("/")[2] if added else f"line_{block.line}.py")
        path.write_text(block.text.removeprefix(added[0]) if added else block.text)
        config = str(REPOSITORY / "pyproject.toml")
        ruff = [sys.executable, "-m", "ruff"]
        done = subprocess.run(
            [*ruff, "check", "--no-cache", "--config", config, *(["--ignore", "D1,I001"]), path],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_commands_can_be_read_and_are_those_of_ci():
    ci = page(".ci/run")
    for block in blocks(PAGE, "sh"):
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
        for module in re.findall(r"-m (\w+)", block.text):
            assert f"-m {module}" in ci, module


def test_the_folders_of_tests_are_those_that_exist():
    row = re.search(r"\| (`tests/ir`[^|]*) \|", page(PAGE))
    assert row
    named = {name.removeprefix("tests/") for name in re.findall(r"`([\w/]+)`", row[1])} | {"docs"}
    there = {
        path.name
        for path in (REPOSITORY / "tests").iterdir()
        if path.is_dir() and not path.name.startswith(("_", "."))
    }
    assert named == there
