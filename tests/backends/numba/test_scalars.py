"""The text of each elementwise op, compiled, gives the bits that NumPy gives.

All texts of one dtype are loops of one function, since compiling is what costs here: operands of
the loops' dtypes in, results out.
"""

from __future__ import annotations

import functools
import itertools
import platform
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ops.nodes import DTYPES, node_of, run, samples, types_of

from minigraph import ops
from minigraph.errors import MinigraphError
from minigraph.ir import Node, Op, ScalarType, Value
from minigraph.ops import OPS

numba = pytest.importorskip("numba")

from minigraph.backends.numba import scalars, vector_math  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

COMPUTED = [dtype for dtype in DTYPES if dtype.name in ops.scalar.FUSIBLE]
FUNCTIONS = {**scalars.FUNCTIONS, **vector_math.FUNCTIONS}
CONVERSIONS = {dtype.name: numba.from_dtype(dtype) for dtype in COMPUTED}
SLOW = {"int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float32"}
"""Dtypes whose texts are those of other ones, compiled alike."""

ELEMENTWISE = [op for op in OPS.values() if op.kind == "elementwise"]

Key = tuple[str, Any]
"""A text and the dtypes of its loop."""


def edges(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        small = np.arange(-9 if dtype.kind == "i" else 0, 10)
        shifts = [n for n in (31, 32, 63, 64, 100) if n <= limits.max]
        middle = limits.max // 2
        ends = [limits.min, limits.min + 1, middle, middle + 1, limits.max - 1, limits.max]
        return np.concatenate([small.astype(dtype), np.array(shifts + ends, dtype)])
    info = np.finfo(dtype)
    numbers = [0.0, -0.0, 0.3, 0.5, 1, 1.5, 2, 2.5, 3, 7, 1e3, np.inf, 2.0**31, 2.0**63]
    numbers += [info.max, info.tiny, info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg]
    found = np.array(numbers, dtype)
    return np.concatenate([found, -found, np.array([np.nan], dtype)])


def pairs(*dtypes: np.dtype[Any]) -> list[np.ndarray[Any, Any]]:
    """All combinations of special values, in long arrays: NumPy computes those in vectors."""
    each = np.array(list(itertools.product(*map(range, map(len, map(edges, dtypes))))))
    return [edges(dtype)[each[:, at]] for at, dtype in enumerate(dtypes)]


def operands_of(op: Op, dtype: np.dtype[Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    yield from samples(op, dtype)
    if op.name in ("cast", "copy", "identity", "round", "stop_gradient"):
        yield from (([edges(dtype)], {"dtype": other}) for other in COMPUTED if op.name == "cast")
    elif op.name == "where":
        yield pairs(np.dtype(bool), dtype, dtype), {}
    elif op.name == "clip":
        yield pairs(dtype, dtype, dtype), {}
        yield [edges(dtype), edges(dtype)[-2], edges(dtype)[0]], {}
    elif isinstance(getattr(np, op.name, None), np.ufunc) and getattr(np, op.name).nin == 1:
        yield [edges(dtype)], {}
    else:
        for other in {dtype, *map(np.dtype, ("i8", "u8", "f4"))}:
            yield pairs(dtype, other), {}
            yield pairs(other, dtype), {}


def known(node: Node, inputs: list[Any]) -> dict[Value, Any]:
    given = zip(node.inputs, inputs, strict=True)
    return {value: x for value, x in given if isinstance(value.type, ScalarType)}


@functools.cache
def cases() -> dict[str, dict[Key, list[tuple[Op, list[Any], Any]]]]:
    """By dtype and text: operands in the loop's dtypes, and what NumPy makes of them."""
    found: dict[str, dict[Key, list[tuple[Op, list[Any], Any]]]] = {}
    for op, dtype in itertools.product(ELEMENTWISE, DTYPES):
        for inputs, attrs in operands_of(op, dtype) if op.scalar is not None else ():
            try:
                node = node_of(op, types_of(inputs), attrs)
                (expected,) = run(node, inputs)
            except (MinigraphError, ValueError, OverflowError):
                continue
            text = ops.scalar_text(node, known(node, inputs), exact=True)
            loop = ops.loop_dtypes(node, known(node, inputs))
            if text is None or loop is None:
                continue
            with np.errstate(all="ignore"):
                operands = [
                    np.broadcast_to(np.asarray(x).astype(to), np.shape(expected)).ravel()
                    for x, to in zip(inputs, loop[0], strict=True)
                ]
            group = found.setdefault(loop[0][-1].name, {})
            group.setdefault((text, loop), []).append((op, operands, np.ravel(expected)))
    return found


def compiled(keys: list[Key]) -> Any:
    """A function of size, result and operands of each text in turn."""
    parameters, lines = ["sizes"], list[str]()
    for at, (text, (inputs, outputs)) in enumerate(keys):
        names = [f"x{at}_{index}" for index in range(len(inputs))]
        parameters += [f"out{at}", *names]
        element = text.format(*(f"{name}[i]" for name in names))
        lines += [f"    for i in range(sizes[{at}]):"]
        lines += [f"        out{at}[i] = {outputs[0].name}({element})"]
    scope = {**FUNCTIONS, **CONVERSIONS}
    exec("\n".join([f"def loops({', '.join(parameters)}):", *lines]), scope)
    return numba.njit(scope["loops"], error_model="numpy")


def compute(groups: dict[Key, list[list[Any]]]) -> list[np.ndarray[Any, Any]]:
    """The results of all texts, each on its operands one after the other."""
    arguments: list[Any] = []
    results = list[np.ndarray[Any, Any]]()
    for (_, (inputs, outputs)), calls in groups.items():
        operands = [np.concatenate(parts) for parts in zip(*calls, strict=True)]
        assert [x.dtype for x in operands] == list(inputs)
        results.append(np.empty(operands[0].size, outputs[0]))
        arguments += [results[-1], *operands]
    compiled(list(groups))(np.array([len(result) for result in results]), *arguments)
    return results


def settled(op: Op, operands: list[Any], result: Any) -> np.ndarray[Any, Any]:
    """Where NumPy itself has one answer, whether an element is in a vector or in the rest."""
    x, y = operands[0], operands[-1]
    if op.name in ("fmax", "fmin"):
        return ((x != 0) | (y != 0)) & ((x == x) | (y == y))
    if op.name in ("cast", "copy") and x.dtype.kind == "f" and result.dtype == np.uint32:
        return (x > -(2.0**31)) & (x < 2.0**32)
    return np.ones(result.shape, bool)


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype.name, marks=[pytest.mark.slow] if dtype.name in SLOW else [])
        for dtype in COMPUTED
    ],
)
def test_each_text_computes_what_numpy_does(dtype: str):
    groups = cases()[dtype]
    results = compute({key: [case[1] for case in group] for key, group in groups.items()})
    wrong = list[str]()
    for (key, group), result in zip(groups.items(), results, strict=True):
        at = 0
        for op, operands, expected in group:
            found = result[at : at + expected.size]
            at += expected.size
            bits = f"V{found.itemsize}"
            differ = (found.view(bits) != expected.view(bits)) & settled(op, operands, expected)
            for place in np.flatnonzero(differ)[:2]:
                given = ", ".join(repr(x[place]) for x in operands)
                wrong.append(
                    f"{op.name}: {key[0].format(*'xyz')} of {given} is {found[place]!r}, "
                    f"not {expected[place]!r}"
                )
    assert wrong == []


INTS = (-(2**70), -(2**63) - 1, -(2**63), -129, -1, 0, 3, 255, 300, 2**63 - 1, 2**63, 2**64, 2**70)
COMPARISONS = "equal not_equal less less_equal greater greater_equal".split()


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_ints_of_any_size_are_compared(dtype: str):
    x = edges(np.dtype(dtype))
    groups: dict[Key, list[list[Any]]] = {}
    expected: dict[Key, list[np.ndarray[Any, Any]]] = {}
    for name, number, swapped in itertools.product(COMPARISONS, INTS, (False, True)):
        inputs = [number, x] if swapped else [x, number]
        node = node_of(OPS[name], types_of(inputs), {})
        numbers = known(node, inputs)
        text, loop = ops.scalar_text(node, numbers, exact=True), ops.loop_dtypes(node, numbers)
        assert text is not None and loop is not None
        beyond = "{1}" not in text
        operands = [
            np.broadcast_to(np.asarray(0 if beyond and i is number else i, to), x.shape)
            for i, to in zip(inputs, loop[0], strict=True)
        ]
        groups.setdefault((text, loop), []).append(operands)
        expected.setdefault((text, loop), []).append(run(node, inputs)[0])
    for found, wanted in zip(compute(groups), expected.values(), strict=True):
        np.testing.assert_array_equal(found, np.concatenate(wanted))


def ulp(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The distance in units of the last place; 0 for equal edge values, large for others."""
    edge = ~np.isfinite(found) | ~np.isfinite(expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    steps = np.abs(found.astype(np.longdouble) - expected) / np.spacing(np.abs(expected))
    return np.where(edge, np.where(same, 0, np.inf), steps)


EXPONENTS = (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 5, 2.0, -2.0, 0.3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_known_exponents(dtype: str):
    x = edges(np.dtype(dtype))
    random = np.exp(np.random.default_rng(0).uniform(-30, 30, 3000)).astype(dtype)
    x = np.concatenate([x, random, -random])
    groups: dict[Key, list[list[Any]]] = {}
    exact = set[Key]()
    for exponent in EXPONENTS:
        node = node_of(OPS["pow"], types_of([x, exponent]), {})
        numbers = known(node, [x, exponent])
        text, loop = ops.scalar_text(node, numbers), ops.loop_dtypes(node, numbers)
        assert text is not None and loop is not None
        groups.setdefault((text, loop), []).append([x, np.full_like(x, exponent)])
        if ops.scalar_text(node, numbers, exact=True) is not None:
            exact.add((text, loop))
    assert len(exact) == 5
    for key, found in zip(groups, compute(groups), strict=True):
        expected = np.concatenate([each[0] ** float(each[1][0]) for each in groups[key]])
        at_most = 0 if key in exact else 4
        assert ulp(found, expected).max() <= at_most, key[0]
        assert key not in exact or found.tobytes() == expected.tobytes(), key[0]


def test_the_power_of_a_half_is_the_root_where_the_exponent_is_fixed():
    """NumPy takes it where the innermost loop meets one exponent: they differ at -0.0 and -inf."""
    x, half = edges(np.dtype("f8")), np.array(0.5)
    node = node_of(OPS["pow"], types_of([x, half]), {})
    text, loop = ops.scalar_text(node), ops.loop_dtypes(node)
    assert text is not None and loop is not None
    (found,) = compute({(text, loop): [[x, np.full_like(x, half)]]})
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x**half))
    np.testing.assert_array_equal(found, x**half)


VECTORS = [
    *(f"{name}({{0}}, {{1}})" for name in "maximum minimum fmax fmin copysign heaviside".split()),
    *(f"{name}({{0}})" for name in "sign rint floor isfinite fabs sqrt float_to_int32".split()),
    *("clip_to_fixed({0}, {1}, {1})", "{0} if {0} < {1} else {1}", "reciprocal_root({0})"),
    *("left_shift(int32({0}), int32({1}))", "float_to_uint8({0})", "degrees({0})"),
]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the assembly of x86-64")
@pytest.mark.parametrize("text", VECTORS)
def test_loops_become_vector_instructions(text: str):
    scope = {**FUNCTIONS, **CONVERSIONS}
    lines = [
        "def loop(out, x, y):",
        "    for i in range(out.size):",
        f"        out[i] = float32({text.format('x[i]', 'y[i]')})",
    ]
    exec("\n".join(lines), scope)
    loop = numba.njit(scope["loop"], error_model="numpy")
    loop.compile((numba.float32[::1],) * 3)
    (assembly,) = loop.inspect_asm().values()
    stored = re.compile(r"mov(?:up|ap|dq)\w+\s+%[xyz]mm\d+, [-\d]*\(%r\w+,%r\w+")
    assert stored.search(assembly), assembly


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transcendental_functions_are_close_to_numpys(dtype: str):
    """How exact they are is tested with them: here, that the texts call the right ones."""
    random = np.random.default_rng(0).uniform(-4, 4, 999).astype(dtype)
    groups: dict[Key, list[list[Any]]] = {}
    expected: dict[Key, np.ndarray[Any, Any]] = {}
    for name in sorted(ops.TRANSCENDENTAL - {"pow", "float_power"}):
        x = np.concatenate([edges(np.dtype(dtype)), random])
        both = not isinstance(getattr(np, name, None), np.ufunc) or getattr(np, name).nin == 1
        inputs = [x] if both else [x, np.roll(x, 7)]
        node = node_of(OPS[name], types_of(inputs), {})
        assert ops.scalar_text(node, exact=True) is None
        text, loop = ops.scalar_text(node), ops.loop_dtypes(node)
        assert text is not None and loop is not None
        groups[text, loop] = [inputs]
        expected[text, loop] = run(node, inputs)[0]
    for key, found in zip(groups, compute(groups), strict=True):
        off = ulp(found, expected[key])
        if key[0].startswith("logaddexp"):  # NumPy's own loses digits where the result is small
            off[np.abs(expected[key]) < 0.5] = 0
        assert off.max() <= 8, (key[0], [x[off.argmax()] for x in groups[key][0]])
