"""A folder with programs in it, and the command run there: in this process, or in a new one."""

from __future__ import annotations

import sys
from pathlib import Path

import click.testing
import pytest
from cli.running import TELLS_ABOUT_COLOUR, Command, Process, new_process

from minigraph.cli import main

PROGRAMS = {
    "fancy_func.py": """\
def add(a, b):
    return a + b


def fancy_func(a, b, c, d):
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g


print(fancy_func(1, 2, 3, 4))
""",
    "model.py": """\
from dataclasses import dataclass

import numpy as np

print("the file runs")


@dataclass
class Layer:
    weights: np.ndarray
    bias: float = 1.0


class Model:
    def __init__(self):
        self.weights = np.arange(12.0).reshape(4, 3)

    def forward(self, x, scale=2.0):
        h = x @ self.weights
        return np.tanh(h) * scale + np.tanh(h)


model = Model()
numbers = np.ones(3)


def soften(x, layer: Layer):
    e = np.exp(x - x.max())
    return e / e.sum() * layer.weights + layer.bias


def shout(x, *, loud=1):
    print("x is", x)
    return x * loud


def branch(x):
    if x.sum() > 0:
        return x
    return -x


def fail(x):
    return x + {}["missing"]


if __name__ == "__main__":
    raise SystemExit("the file ran as a program")
""",
    "net.py": """\
import numpy as np

from minigraph import nn


class Net(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.output = nn.Dense(3)

    def forward(self, x, scale=1.0):
        return self.output(x) * scale


plain = Net()
plain.initialize("ones")
net = Net()
net.initialize("ones")
net.hybridize()
data = np.ones((2, 4), "float32")
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the test; it holds `PROGRAMS`."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`minigraph ARGUMENTS`, run in this process, as if its output went into a pipe."""
    for name in TELLS_ABOUT_COLOUR:
        monkeypatch.delenv(name, raising=False)

    mine = (str(folder), *PROGRAMS)  # files are named as they were given

    def run(
        *arguments: str, input: str | None = None, env: dict[str, str] | None = None
    ) -> click.testing.Result:
        before, path = set(sys.modules), list(sys.path)
        try:
            result = click.testing.CliRunner().invoke(main, arguments, input=input, env=env)
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(mine):
                    del sys.modules[name]
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def process(folder: Path) -> Process:
    """`minigraph ARGUMENTS` in a new process, its output in pipes."""
    return new_process
