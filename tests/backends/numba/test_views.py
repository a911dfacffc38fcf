"""What can be seen of a compiled program: its sources, machine code, and explanation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from comparing import describe

import minigraph as mg
from minigraph.backends.numba.listing import _named
from minigraph.errors import OptionError

X = np.linspace(-2, 2, 12).reshape(3, 4).astype(np.float32)


def layer(features, weights, bias):
    hidden = features @ weights + bias
    cube = hidden * hidden  # this line
    inner = hidden + 0.044715 * cube
    activated = hidden * np.tanh(inner)
    running = np.cumsum(activated, axis=1)
    return running * 2, activated.sum(axis=0)


CUBE = next(
    number
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
    if line.endswith("# this line")
)


@pytest.fixture(scope="module")
def layered():
    jitted = mg.jit(layer, backend="numba", strict=True)
    jitted(X, np.ones((4, 6), np.float32), np.ones(6, np.float32))
    return jitted


def test_the_program_is_the_python_that_is_called(layered):
    source = layered.source()
    assert source == layered.source("program")
    assert "def layer(features, weights, bias):" in source
    assert "np.cumsum" in source and "segment0(" in source
    assert "kernel" not in source


def test_the_guard(layered):
    assert "type(features) is" in layered.source("guard")
    ast.parse(f"({layered.source('guard')})", mode="eval")


def test_the_listing_has_the_users_names_and_lines(layered):
    listing = layered.source("numba")
    assert listing.startswith(layered.source())
    compile(listing, "listing", "exec")
    for name in ("features", "weights", "bias", "hidden", "cube", "inner", "activated"):
        assert re.search(rf"\b{name}\b", listing), name
    (line,) = [line for line in listing.splitlines() if re.match(r"\s+cube = ", line)]
    assert line.strip() == f"cube = hidden * hidden  # {Path(__file__).name}:{CUBE}"


def test_each_function_of_a_listing_has_a_name_of_its_own(layered):
    functions = [node for node in ast.parse(layered.source("numba")).body if hasattr(node, "args")]
    names = [function.name for function in functions]
    assert len(names) == len(set(names)) >= 4
    called = set(re.findall(r"\b(?:kernel|segment)\d+(?=\()", layered.source("numba")))
    assert called == set(names) - {"layer"}


def test_the_listing_is_stable(layered):
    again = mg.jit(layer, backend="numba")
    again(X, np.ones((4, 6), np.float32), np.ones(6, np.float32))
    assert again.source("numba") == layered.source("numba")


def test_names_of_the_user_that_mean_something_in_kernels():
    def confusing(load, t0, i, float64, n):
        tanh = load * 2 + t0
        t1 = tanh - i
        kernel = np.sqrt(t1 * t1 + float64)
        return kernel * n, (kernel + t1).sum(axis=0)

    arguments = [np.full((3, 4), number + 1.0) for number in range(5)]
    jitted = mg.jit(confusing, strict=True)
    for found, expected in zip(jitted(*arguments), confusing(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    for function in ast.parse(jitted.source("numba")).body[-1:]:
        names = [argument.arg for argument in function.args.args]
        assert len(names) == len(set(names))
        stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name)]
        assert {"load", "float64"} <= set(stored)  # as functions of kernels
    assert "load_1 = load(" in jitted.source("numba")


def test_a_name_of_the_user_never_takes_that_of_another_local():
    def value(hint):
        return type("Value", (), {"hint": hint})()

    values = {"t0": value("t1"), "t1": value(""), "t2": value("t2"), "v0": value("t0")}
    text = "def kernel(v0):\n    t0 = v0\n    t1 = t0\n    t2 = t1 + t0"
    assert _named(text, values, {"kernel": "kernel3"}, []).splitlines() == [
        "def kernel3(t0):",
        "    t1_1 = t0",
        "    t1 = t1_1",
        "    t2 = t1 + t1_1",
    ]


def test_llvm_and_assembly_have_vector_instructions():
    jitted = mg.jit(lambda x: np.tanh(x) * x + 1)
    jitted(np.ones(1000, np.float32))
    assert re.search(r"<\d+ x float>", jitted.source("llvm"))
    assembly = jitted.source("asm")
    assert re.search(r"%[yz]mm\d|\bv\d+\.4s\b", assembly)
    assert re.search(r"\bvfn?madd|\bfmla\b", assembly)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("numb", "numba"),
        ("gard", "guard"),
        ("assembly", ""),
        ("lvm", "llvm"),
        ("prog", "program"),
    ],
)
def test_unknown_sources_name_the_nearest(layered, wrong, near):
    with pytest.raises(OptionError, match=f"no source '{wrong}'") as error:
        layered.source(wrong)
    assert "guard, program, numba, llvm, asm" in error.value.instead
    assert ("did you mean" in error.value.instead) == bool(near)
    assert near in error.value.instead.partition("known are")[0]
    with pytest.raises(OptionError, match="no source"):
        layered.lower(X, np.ones((4, 6), np.float32), np.ones(6, np.float32)).source("guard")


def test_the_python_backend_has_no_machine_code():
    jitted = mg.jit(lambda x: x * 2, backend="python")
    jitted(X)
    assert jitted.source("python") == jitted.source()
    for name in ("numba", "llvm", "asm"):
        with pytest.raises(OptionError):
            jitted.source(name)


# ---------------------------------------------------------------------------- explain


def test_explain_says_what_runs_where(layered):
    told = layered.explain().rpartition("backend: ")[2].splitlines()
    assert told[0] == "numba (asked for)"
    assert told[1].strip().startswith("segment0: 1 kernel")
    (python,) = [line for line in told if "in Python:" in line]
    assert "cumsum" in python and Path(__file__).name in python
    assert told[-1].strip().startswith("compiled code: kept in ")


def test_explain_says_which_backend_was_taken_and_why():
    jitted, python = mg.jit(lambda x: x * 2 + 1), mg.jit(lambda x: x * 2 + 1, backend="python")
    jitted(X)
    python(X)
    assert "backend: numba (the fastest that runs here)" in jitted.explain()
    assert python.explain().endswith("backend: python (asked for)")


def test_explain_says_what_is_copied_at_each_call():
    jitted = mg.jit(lambda table, row: table * 2 + row)
    jitted(np.asfortranarray(X), X[0])
    told = "not in C order, so copied for compiled code at each call: table"
    assert told in jitted.explain()
    jitted(X, X[0])
    assert "not in C order" not in jitted.explain()


def test_explain_shows_the_fusion_and_why_pairs_are_apart(layered):
    told = layered.explain()
    assert "fuse, round 1: " in told
    assert "map over (3, 6)" in told or "epilogue over (3, 6)" in told
    assert "cumsum" in told.partition("backend: ")[0]


def test_the_report_of_memory(layered):
    report = layered.memory_report(X, np.ones((4, 6), np.float32), np.ones(6, np.float32))
    assert report.measured is not None and report.measured > 0


def test_a_long_chain_makes_no_arrays_between():
    def gelu(x):
        return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    jitted = mg.jit(gelu)
    x = np.linspace(-3, 3, 4_000_000).astype(np.float32)
    assert jitted(x).nbytes == x.nbytes
    assert jitted.memory_report(x).measured <= 1.01 * x.nbytes


def test_reshapes_that_only_add_or_drop_axes_of_one_element_are_read_as_they_lie():
    def function(x, y):
        stretched = np.broadcast_to(x.mean(), (6,)).reshape(6, 1)
        dropped = y[::2, :, None].reshape(3, 4).reshape(3, 1, 4)
        return stretched * y, dropped + y.T.reshape(1, 4, 6).reshape(4, 1, 6)[:3, :, :4]

    x, y = np.arange(7.0), np.arange(24.0).reshape(6, 4)
    jitted = mg.jit(function, strict=True)
    for found, expected in zip(jitted(x, y), function(x, y), strict=True):
        assert describe(found) == describe(expected)
    assert "in Python" not in jitted.explain()
