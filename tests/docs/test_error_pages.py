"""The pages of errors (`minigraph explain MG019`) are true: their programs fail where they say so.

A line of a program that ends in `# MG019` raises that error, at once or, in a function, when that
is called; all other lines run.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from minigraph.errors import MinigraphError, pages

BEGIN = """\
import math
import numpy as np
import minigraph as mg
from minigraph import autograd, nn
x = np.ones((2, 64), np.float32)
"""

AROUND = {
    "MG001": ("", "mg.jit(f)(x)"),
    "MG002": ("", "mg.jit(f)(x)"),
    "MG003": ("", "f(x)"),
    "MG004": ("x = mg.array(x)", "f(x)"),
    "MG009": ("", "f(x)"),
    "MG010": ("", "assert (f(x) != f(x)).any()"),
    "MG019": ("x, w = mg.array([1.0, 2.0]), mg.array([3.0, 4.0])", "assert (w.grad == x).all()"),
    "MG020": (
        "w = mg.array([1.0, 2.0])\nw.attach_grad()\n"
        "with autograd.record():\n    y = w * w\n    first, second = y.sum(), y.mean()",
        "",
    ),
    "MG021": ("x = mg.array([1.0, 2.0])\nx.attach_grad()", ""),
    "MG022": ("", ""),
    "MG023": ("", "net(x)\nnet.weight.data()"),
    "MG024": ("", ""),
    "MG026": ("net = nn.HybridSequential()\nnet.output = nn.Dense(3)", "del net.output"),
    "MG027": (
        "net, y = nn.Dense(3), np.array([0, 1])\nnet.initialize()\n"
        "loss_function = nn.SoftmaxCrossEntropyLoss()\n"
        "trainer = nn.Trainer(net.collect_params(), 'sgd')\n",
        "loss.backward()\ntrainer.step(len(x))",
    ),
    "MG030": (
        "class Cell(nn.HybridBlock):\n"
        "    def forward(self, x, state):\n"
        "        h, c = state\n"
        "        return x + h + c\n"
        "net, h, c = Cell().hybridize(), x[0], x[1]",
        "",
    ),
    "MG031": ("", "f(x)"),
    "MG032": ("", "f(x)"),
    "MG033": ("", "f(x)"),
    "MG034": ("", "mg.script(f)"),
    "MG035": ("words = ['def', 'f(x):', 'return', 'x']", ""),
}
"""Code → what stands before its programs, and after each."""


def programs(page: str) -> list[str]:
    """The indented parts of a page."""
    found = re.findall(r"(?:^    .*\n|^\n)+", f"{page}\n", re.MULTILINE)
    return [textwrap.dedent(part).strip("\n") + "\n" for part in found if part.strip()]


def test_every_page_with_a_program_is_here():
    assert [code for code, (_, page) in pages().items() if programs(page)] == list(AROUND)


@pytest.mark.parametrize("code", AROUND)
def test_programs_fail_where_they_say_so(code: str, tmp_path: Path):
    before, after = AROUND[code]
    names: dict[str, Any] = {"__name__": "page"}
    exec(BEGIN + before, names)
    _, page = pages()[code]
    for number, source in enumerate(programs(page)):
        path = tmp_path / f"page_{number}.py"
        path.write_text(source, encoding="utf-8")
        later = False
        for statement in ast.parse(source).body:
            lines = source.splitlines()[statement.lineno - 1 : statement.end_lineno]
            marked = f"# {code}" in "\n".join(lines)
            later |= marked and isinstance(statement, ast.FunctionDef)
            run(statement, path, names, code if marked and not later else None)
        rest = ast.parse(after).body
        for statement in rest:
            run(statement, path, names, code if later and statement is rest[-1] else None)


def run(statement: ast.stmt, path: Path, names: dict[str, Any], code: str | None) -> None:
    """Run one statement of a program; it raises the error of this code, or none."""
    compiled = compile(ast.Module([statement], []), str(path), "exec")
    if code is None:
        exec(compiled, names)
    else:
        with pytest.raises(MinigraphError) as caught:
            exec(compiled, names)
        assert caught.value.code == code
