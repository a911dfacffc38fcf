"""Vector mathematics: how exact, which edge values, and that loops become vector instructions."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from minigraph.backends.numba.vector_math import FUNCTIONS  # noqa: E402

Array = Any
Long = np.longdouble
TYPES = {"float32": np.float32, "float64": np.float64}
WIDER = {"float32": np.float64, "float64": Long}
MOST_ULP = 4.0

needs_long_double = pytest.mark.skipif(
    np.finfo(Long).nmant <= 52, reason="no reference for float64: long double is no wider here"
)
dtypes = pytest.mark.parametrize(
    "dtype", ["float32", pytest.param("float64", marks=needs_long_double)]
)


def erf(x: Array) -> Array:
    """In the precision of x: a series of positive terms below 3, a continued fraction above."""
    y = np.minimum(abs(x), 30)
    near, far = np.minimum(y, 3), np.maximum(y, 3)
    term, series = near, near
    for k in range(1, 80):
        term = term * 2 * near * near / (2 * k + 1)
        series = series + term
    fraction = np.zeros_like(far)
    for k in range(80, 0, -1):
        fraction = k / (2 * (far + fraction))
    root_of_pi = np.sqrt(4 * np.arctan(x.dtype.type(1)))
    below = series * np.exp(-near * near) * 2 / root_of_pi
    above = 1 - np.exp(-far * far) / (far + fraction) / root_of_pi
    return np.copysign(np.where(y < 3, below, above), x)


REFERENCES: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "expit": lambda x: 1 / (1 + np.exp(-x)),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "erf": erf,
    "power": np.power,
    "cbrt": np.cbrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "hypot": np.hypot,
}


def arity(name: str) -> int:
    return len(FUNCTIONS[name].__signature__.parameters) - 1


@cache
def kernel(name: str, dtype: str) -> Any:
    """A loop over contiguous arrays that applies one function, compiled without any fast-math."""
    count = arity(name)
    loads = ", ".join(f"x{k}[i]" for k in range(count))
    parameters = ", ".join(f"x{k}" for k in range(count))
    text = (
        f"def loop({parameters}, out):\n"
        f"    for i in range(out.size):\n        out[i] = function({loads})\n"
    )
    space: dict[str, Any] = {"function": FUNCTIONS[name]}
    exec(text, space)
    array = getattr(numba, dtype)[::1]
    signature = numba.void(*[array] * (count + 1))
    return numba.njit(signature, error_model="numpy")(space["loop"])


def run(name: str, *arguments: Array) -> Array:
    out = np.empty_like(arguments[0])
    kernel(name, out.dtype.name)(*arguments, out)
    return out


def wide(name: str, *arguments: Array) -> Array:
    """What the function should be, in more bits than the arguments have."""
    with np.errstate(all="ignore"):
        return REFERENCES[name](*(x.astype(WIDER[x.dtype.name]) for x in arguments))


def ulps(result: Array, exact: Array) -> Array:
    """How far off `result` is, in units of the last place of its dtype."""
    info = np.finfo(result.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(result.dtype)
        unit = np.ldexp(
            exact.dtype.type(1),
            np.maximum(np.frexp(exact)[1] - 1 - info.nmant, info.minexp - info.nmant),
        )
        off = abs(result.astype(exact.dtype) - exact) / unit
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    # The largest number and infinity are neighbours.
    edge = (
        (abs(rounded) >= info.max)
        & (abs(result) >= info.max)
        & (np.sign(result) == np.sign(rounded))
    )
    return np.where(same | edge, 0, np.where(np.isnan(off), np.inf, off))


def inputs(dtype: str, seed: int, count: int = 4_000) -> Array:
    """Random bit patterns, and numbers where the functions bend, saturate and overflow."""
    random = np.random.default_rng(seed)
    info = np.finfo(dtype)
    bits = random.integers(0, 2**info.bits, count, dtype=f"uint{info.bits}").view(dtype)
    scales = [1e-3, 0.1, 1, 3, 10, 30, 100, 800]
    near = [random.uniform(-scale, scale, count // 4) for scale in scales]
    near_one = 1 + random.choice([-1, 1], count) * 10.0 ** random.uniform(-9, 0, count)
    whole = np.arange(-1100, 1100) / 2
    powers = np.ldexp(1.0, np.arange(info.minexp - info.nmant, info.maxexp))
    return np.concatenate([part.astype(dtype) for part in (bits, *near, near_one, whole, powers)])


def pairs(dtype: str, seed: int) -> tuple[Array, Array]:
    """Two of `inputs` at random; of like size; base and exponent of a moderate power."""
    random = np.random.default_rng(seed)
    x = inputs(dtype, seed)
    y = random.permutation(x)
    with np.errstate(all="ignore"):
        like = (x * random.uniform(-3, 3, x.size)).astype(dtype)
        logarithm = np.log2(abs(x.astype(WIDER[dtype])))
        highest = np.finfo(dtype).maxexp
        exponent = (random.uniform(-1.1 * highest, highest, x.size) / logarithm).astype(dtype)
    halves = random.integers(-20, 20, x.size).astype(dtype) / 2
    return (
        np.concatenate([x, x, x, abs(x), halves.astype(dtype)]),
        np.concatenate([y, like, halves.astype(dtype), exponent, y]),
    )


def assert_close(name: str, *arguments: Array) -> None:
    result, exact = run(name, *arguments), wide(name, *arguments)
    off = ulps(result, exact)
    if name.startswith("logaddexp"):
        # A sum of terms of opposite signs: as exact as the larger of them.
        with np.errstate(all="ignore"):
            term = np.maximum(abs(arguments[0]), abs(arguments[1]))
            near = abs(result - exact) <= MOST_ULP * np.spacing(term)
        off = np.where(near, 0, off)
    worst = int(off.argmax())
    where = tuple(x[worst] for x in arguments)
    assert off[worst] <= MOST_ULP, f"{name}{where} = {result[worst]!r}, not {exact[worst]!r}"


def test_every_function_has_a_reference() -> None:
    assert set(REFERENCES) == set(FUNCTIONS)


@dtypes
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if arity(name) == 1])
def test_accuracy(name: str, dtype: str) -> None:
    assert_close(name, inputs(dtype, seed=1))


@dtypes
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if arity(name) == 2])
def test_accuracy_of_two_arguments(name: str, dtype: str) -> None:
    assert_close(name, *pairs(dtype, seed=2))


@needs_long_double
def test_the_number_closest_to_a_multiple_of_half_pi() -> None:
    """The worst case of the reduction in float64 (Muller, "Elementary Functions", chapter 11)."""
    worst = np.ldexp(6381956970095103.0, 797)
    x = np.array([worst, -worst, np.nextafter(worst, 0), 1e22, 2.0**1023, 1e300])
    for name in ("sin", "cos", "tan"):
        assert_close(name, x)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if arity(name) == 1])
def test_accuracy_of_all_float32(name: str) -> None:
    stride = 61  # a prime: a different place in every binade
    for first in range(0, 2**32, 2**27):
        bits = np.arange(first, first + 2**27, stride, dtype=np.uint64)
        assert_close(name, bits.astype(np.uint32).view(np.float32))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges_are_those_of_numpy(name: str, dtype: str) -> None:
    """Zeros with their sign, infinities, NaN, the smallest and the largest numbers."""
    info = np.finfo(dtype)
    values = [0.0, 1.0, 2.0, math.inf, info.max, info.tiny, info.smallest_subnormal]
    x = np.array([*values, *(-value for value in values), math.nan], dtype)
    grid = np.meshgrid(*[x] * arity(name))
    arguments = [part.ravel() for part in grid]
    result = run(name, *arguments)
    with np.errstate(all="ignore"):
        expected = wide(name, *arguments).astype(dtype)
    special = ~np.isfinite(expected) | (expected == 0)
    number = special & ~np.isnan(expected)
    assert np.array_equal(result[special], expected[special], equal_nan=True)
    assert np.array_equal(np.signbit(result[number]), np.signbit(expected[number]))
    assert np.isfinite(result[~special]).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_denormal_results_are_gradual(dtype: str) -> None:
    tiny = np.finfo(dtype).tiny
    x = np.linspace(math.log(tiny) - 40, math.log(tiny) + 1, 3000).astype(dtype)
    for name in ("exp", "expit"):
        result = run(name, x)
        assert (np.diff(result) >= 0).all()
        assert result[0] == 0
        assert ((result > 0) & (result < tiny)).any()


@pytest.mark.parametrize("dtype", TYPES)
def test_what_saturates_stays_within(dtype: str) -> None:
    x = np.linspace(-50, 50, 100_001).astype(dtype)
    for name in ("tanh", "erf"):
        result = run(name, x)
        assert (abs(result) <= 1).all()
        assert result[0] == -1 and result[-1] == 1


@pytest.mark.parametrize("dtype", TYPES)
def test_whole_powers_of_two_are_exact(dtype: str) -> None:
    info = np.finfo(dtype)
    n = np.arange(info.minexp - info.nmant, info.maxexp)
    powers = np.ldexp(1.0, n).astype(dtype)
    assert np.array_equal(run("exp2", n.astype(dtype)), powers)
    assert np.array_equal(run("log2", powers), n.astype(dtype))


@pytest.mark.parametrize("name", ["exp", "power"])
@pytest.mark.parametrize("given", ["int64", "int32", "boolean", "complex128"])
def test_other_dtypes_are_an_error(name: str, given: str) -> None:
    function, count = FUNCTIONS[name], arity(name)
    apply = (lambda x: function(x)) if count == 1 else (lambda x: function(x, x))
    with pytest.raises(numba.core.errors.TypingError, match=f"`{name}` takes {count} float32 or"):
        numba.njit((getattr(numba, given),))(apply)


def test_mixed_dtypes_are_an_error() -> None:
    power = FUNCTIONS["power"]
    with pytest.raises(numba.core.errors.TypingError, match=r"not \(float32, float64\)"):
        numba.njit((numba.float32, numba.float64))(lambda x, y: power(x, y))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["exp", "power"])
def test_the_result_has_the_dtype_of_the_argument(name: str, dtype: str) -> None:
    function, type = FUNCTIONS[name], getattr(numba, dtype)
    apply = (lambda x: function(x)) if arity(name) == 1 else (lambda x: function(x, x))
    compiled = numba.njit((type,))(apply)
    assert compiled.overloads[(type,)].signature.return_type == type


def has_fused_vectors() -> bool:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return platform.machine().lower() in ("x86_64", "amd64") and features.get("fma", False)


@pytest.mark.skipif(not has_fused_vectors(), reason="looks for the names of x86 instructions")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_loop_becomes_vector_instructions(name: str, dtype: str) -> None:
    compiled = kernel(name, dtype)
    assembly = compiled.inspect_asm(compiled.signatures[0])
    wanted = r"vsqrt" if name == "rsqrt" else r"vfn?m(add|sub)\d+"
    assert re.search(wanted + r"p[sd]\s.*%[yz]mm", assembly)
    assert not re.search(r"callq\s+\w*(exp|log|pow|sin|cos|tan)", assembly)


def test_a_kernel_is_loaded_from_disk_in_a_new_process(
    fresh_process: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "stored_kernel.py").write_text(
        "import numba\n"
        "from minigraph.backends.numba.vector_math import FUNCTIONS\n"
        "exp = FUNCTIONS['exp']\n"
        "@numba.njit('float32(float32)', cache=True)\n"
        "def kernel(x):\n"
        "    return exp(x)\n"
    )
    program = (
        "import stored_kernel as s; print(s.kernel(0.0), sum(s.kernel.stats.cache_hits.values()))"
    )
    runs = [fresh_process(program, first=(tmp_path,)).split() for _ in range(2)]
    assert runs == [["1.0", "0"], ["1.0", "1"]]
