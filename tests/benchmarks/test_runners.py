"""Which runners there are, without any framework imported."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import runners
from benchmarks.harness.checking import check
from benchmarks.workloads import WORKLOADS

OWN = """
from benchmarks.runners.base import Runner

class Own(Runner):
    variants = {"own": "one's own"}
    ablations = {"own without": "without something"}
"""


def test_columns_come_in_the_order_of_the_tables():
    names = list(runners.columns())
    known = [name for name in runners.ORDER if name in names]
    assert names[: len(known)] == known and {"minigraph numba", "NumPy"} <= set(known)


def test_no_framework_is_imported():
    program = (
        "import sys; from benchmarks import runners; runners.columns(); "
        "print([name for name in ('torch', 'jax', 'numba', 'minigraph') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=runners.FOLDER.parents[1],
    )
    assert done.stdout.strip() == "[]"


def test_a_folder_of_ones_own_joins_in(tmp_path: Path):
    (tmp_path / "own.py").write_text(OWN)
    *_, last = runners.columns(tmp_path).items()
    assert last[0] == "own" and last[1].variants == {"own": "one's own"}
    assert "own without" in runners.ablations(tmp_path)
    assert "own" not in runners.columns()


def test_two_columns_of_one_name_are_refused(tmp_path: Path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "other.py").write_text(OWN)
    with pytest.raises(ValueError, match="a column 'own'.*own_runners_other and own_runners_own"):
        runners.columns(tmp_path)


def test_a_wrong_name_is_answered_with_the_right_one():
    names = ["NumPy", "torch eager"]
    assert runners.meant("numpy", names) == "there is no 'numpy'; did you mean 'NumPy'?"
    assert runners.meant("zzz", names) == "there is no 'zzz'; there are NumPy, torch eager"


@pytest.mark.parametrize(("column", "class_"), runners.columns().items())
def test_what_is_refused_has_a_reason_and_needs_no_framework(column: str, class_: type):
    written = [each for each in WORKLOADS.values() if not class_.refuses(column, each)]
    assert written


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("bias", ["b1", "b2", "b3"])
def test_a_bias_that_is_never_updated_is_wrong(optimizer: str, bias: str):
    case = WORKLOADS[f"mlp-training-{optimizer}"].case()
    runner = runners.columns()["NumPy"]("NumPy", 1)

    def losses(kept: str) -> list[np.ndarray]:
        step = runner.prepare(case).run.func
        p = inspect.getclosurevars(step).nonlocals["loss_and_gradients"]
        parameters = inspect.getclosurevars(p).nonlocals["p"]
        found = []
        for _ in range(case.workload.calls):
            found.append(step(*case.arguments))
            if kept:
                parameters[kept][:] = case.parameters[kept]
        return [np.stack(found)]

    assert not check(case, losses(""), case.expected()).wrong
    assert check(case, losses(bias), case.expected()).wrong
