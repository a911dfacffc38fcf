"""Every example is short, runs in a process of its own, and prints what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import package_folder
from docs.pages import REPOSITORY, assert_prints, promised

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


def test_they_are_numbered_from_one():
    assert [path.name[:3] for path in EXAMPLES] == [f"{i:02}_" for i in range(1, len(EXAMPLES) + 1)]
    assert len(EXAMPLES) >= 8


SLOW = (
    "09_train_digits_mlp",
    "10_train_digits_transformer",
    "11_whole_step",
    "12_character_lstm",
)
"""They compile and train for long."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path.stem in SLOW else [], id=path.stem)
        for path in EXAMPLES
    ],
)
def test_an_example_prints_what_it_says(path: Path, tmp_path: Path):
    source = path.read_text(encoding="utf-8")
    if "sklearn" in source:
        pytest.importorskip("sklearn", reason="scikit-learn has the images")
    assert len(source.splitlines()) < 80
    assert promised(source), "an example shows what it prints"
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package_folder().parent)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert_prints(done.stdout, source)
    for left in tmp_path.iterdir():
        assert f'save("{left.name}")' in source, "an example leaves nothing else behind"
