"""Whole programs: traced, optimised and compiled, they print what Python prints."""

from __future__ import annotations

import contextlib
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import BranchError, OptionError, SizeError

TEXTBOOK = """\
def add(a, b):
    return a + b

def fancy_func(a, b, c, d):
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g

print(fancy_func(1, 2, 3, 4))
"""

# Small programs, each under its name.
SMALL = """\
### type of literal
print(type(3) is int, type(3.0) is float, type(3) == int)
### isinstance
print(isinstance(3, int), isinstance(3, float), isinstance(True, int))
### negative power
print(10 ** -2, 2 ** 10, (-8) ** 2, 0 ** 0)
### fraction power
print((-8.0) ** (1 / 3))
### overflow to inf
print(1e308 * 10, -1e308 * 10)
### big ints
print(2 ** 100, 3 ** 50 % 7, 10 ** 30 // 7)
### true division
print(1 / 3, 7 // 2, -7 // 2, 7 % -3, -7 % 3, 7.5 % 2)
### bits
print(5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 40, -1 >> 1)
### comparisons
print(1 < 2 < 3, 1 == 1.0, 2 != 2, not 1)
### bool arithmetic
print(True + 1, (1 < 2) + 1, 3 * False)
### branch
x = 3
if x * 2 > 5:
    print('big', x)
else:
    print('small', x)
### loop
s = 0
for i in range(10):
    s += i * 2
print(s)
### while
n = 27
k = 0
while n != 1:
    n = n // 2 if n % 2 == 0 else 3 * n + 1
    k += 1
print(k)
### f-string
x = 3
print(f'{x} {x:05d} {x / 7:.3f} {x!r}')
### percent
print('%d %5.2f' % (3, 2.5))
### repr
print(repr(3), str(2.5), repr([1, 2.0]))
### list
a = [1, 2, 3]
a[1] = 5
print(a, len(a), sum(a), max(a), sorted(a, reverse=True))
### index
a = 'hello'
print(a[1], a[-1], a[1:3], 'ab' * 3)
### dict
d = {1: 'a', 2.0: 'b'}
print(d[1], d[2], d.get(3, 4))
### hash
print(hash(3) == hash(3.0), {1, 1.0, True})
### tuple unpacking
a, (b, c) = 1, (2, 3)
print(a + b * c)
### default argument
def f(x, k=2):
    return x * k
print(f(3), f(3, k=4))
### closure
def make(n):
    def add(x):
        return x + n
    return add
print(make(3)(4))
### recursion
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
print(fact(20))
### lambda
print((lambda x: x ** 2)(7))
### generator
print(sum(i * i for i in range(5)), list(map(lambda v: v + 1, [1, 2])))
### class
class P:
    k = 2
    def __init__(self, x):
        self.x = x
    def twice(self):
        return self.x * self.k
print(P(4).twice())
### operator overload
class V:
    def __init__(self, x):
        self.x = x
    def __radd__(self, o):
        return ('r', o + self.x)
    def __add__(self, o):
        return ('l', self.x + o)
print(V(2) + 3, 3 + V(2))
### math
import math
print(math.sqrt(2), math.floor(2.7), math.gcd(12, 18), math.pi * 2)
### fractions
from fractions import Fraction
print(Fraction(1, 3) + 1, 2 * Fraction(1, 4))
### decimal
from decimal import Decimal
print(Decimal(1) / 3, 3 + Decimal('0.1'))
### complex
print((1 + 2j) * 3, abs(3 + 4j), (2j) ** 2)
### divmod
print(divmod(17, 5), divmod(-17, 5), divmod(7.5, 2))
### pow mod
print(pow(3, 200, 13), pow(2, 3))
### round
print(round(2.5), round(3.5), round(2.675, 2), round(1234, -2))
### int methods
print((10).bit_length(), (255).to_bytes(2, 'big'), 0.5.as_integer_ratio())
### int parse
print(int('12') + 1, float('1e3') * 2, int(3.9), float(2), bool(0), complex(1))
### augmented
x = 2
x **= 3
x -= 1
x <<= 2
print(x)
### walrus
if (n := 5 * 2) > 3:
    print(n)
### match
def f(x):
    match x:
        case 1: return 'one'
        case -2.5: return 'neg'
        case _: return 'other'
print(f(1), f(-2.5), f(3))
### try
try:
    1 / 0
except ZeroDivisionError as e:
    print('caught', e)
### try overflow
try:
    2.0 ** 10000
except OverflowError:
    print('too large')
### json
import json
print(json.dumps({'a': 1, 'b': [2.5, 3 * 2]}))
### copy
import copy
print(copy.deepcopy([1, 2.5]), copy.copy(3))
### pickle
import pickle
print(pickle.loads(pickle.dumps((3, 2.5))))
### itertools
import itertools
print(list(itertools.accumulate([1, 2, 3])))
### struct
import struct
print(struct.pack('<i', 5), struct.pack('<d', 0.5))
### string methods
print('x'.rjust(4), 'a,b'.split(',', 1), 'abc'.center(9, '*'))
### print options
print(1, 2.5, sep=', ', end='!\\n')
print()
print('a', 3 * 4, 'b')
### negative zero
print(-0.0, 0.0 * -1, 0 * -1.0)
### nan
x = float('nan')
print(x == x, x * 0.0, max(1.0, x))
### set and sorted
print(sorted({3, 1, 2}), 2 in {1, 2}, [1, 2, 3].index(2))
### global
n = 0
def f():
    global n
    n += 1
    return n
f()
print(f())
### nonlocal
def c():
    n = 0
    def f():
        nonlocal n
        n += 2
        return n
    return f
f = c()
f()
print(f())
### enumerate
for i, v in enumerate([1.5, 2.5], start=1):
    print(i * v)
### numpy
import numpy as np
a = np.ones(3) * 2
b = a + np.arange(3)
print(b, b.sum(), b.shape)
### numpy weak
import numpy as np
x = np.ones(2, np.float32)
print((x * 2.5).dtype, (x + 1).dtype)
### numpy branch
import numpy as np
a = np.arange(6).reshape(2, 3)
if a.sum() > 10:
    print('sum', a.sum(axis=0), a[1, ::-1])
### numpy write
import numpy as np
a = np.zeros(4)
a[1:3] = 5
a[0] += 2
print(a, a.T @ a)
### numpy constructor
import numpy as np
print(np.float32(2.5) * 2, np.array([1, 2, 3]).mean())
### from import
from numpy import ones, exp
print(exp(ones(2) * 0))
### index with literal
import numpy as np
a = np.arange(10)
i = 3
print(a[i], a[i * 2:], a[-1])
### int of array
import numpy as np
a = np.arange(3)
print(int(a.sum()) + 1, float(a[1]))
### iterate array
import numpy as np
for row in np.eye(2) * 3:
    print(row)
### stderr
import sys
print('to err', 3, file=sys.stderr)
print('out')
### name is main
if __name__ == '__main__':
    print('main', 1 + 1)
### doc and annotations
def f(x: int = 1) -> int:
    'doc'
    y: int = x + 1
    return y
print(f(), f.__doc__, f.__annotations__)
### slots
class A:
    __slots__ = ('x',)
a = A()
a.x = 3
print(a.x + 1)
### dataclass
from dataclasses import dataclass
@dataclass
class A:
    x: int = 3
print(A(), A(4).x * 2)
"""

PROGRAMS = {"textbook": TEXTBOOK} | {
    name: source for name, _, source in (part.partition("\n") for part in SMALL.split("### ")[1:])
}


def run_python(source: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        exec(compile(source, "<test>", "exec", dont_inherit=True), {"__name__": "__main__"})
    return out.getvalue(), err.getvalue()


def run_graph(graph: mg.Graph, **options: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    run = mg.compile(graph, **options)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run()
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("backend", ["interpret", "python"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_python_prints(name: str, backend: str) -> None:
    source = PROGRAMS[name]
    graph = mg.trace_program(source + "\n")
    assert run_graph(graph, backend=backend, verify=True) == run_python(source)
    assert run_graph(graph, backend=backend, passes=()) == run_python(source)
    assert mg.parse(str(graph), graph.constants) == graph


def test_the_textbook_program_becomes_print_10() -> None:
    graph = mg.trace_program(TEXTBOOK)
    names = {value.name for value in graph.values()}
    assert {"e", "f", "g"} <= names
    lines = {node.output.name: node.loc.line for node in graph.nodes if node.outputs and node.loc}
    assert (lines["e"], lines["f"], lines["g"]) == (5, 6, 7)
    assert len(graph.nodes) >= 5
    compiled = mg.compile(graph)
    assert compiled.source().strip() == "print(10)"


def test_a_literal_loop_is_unrolled_and_folded() -> None:
    source = "s = 0.5\nfor i in range(4):\n    s = s * 2 + i\nprint(s)\n"
    assert mg.compile(mg.trace_program(source)).source().strip() == "print(19.0)"


def test_nothing_is_printed_while_tracing(capsys: pytest.CaptureFixture[str]) -> None:
    graph = mg.trace_program("print('hello', 1 + 1)\n")
    assert capsys.readouterr().out == ""
    mg.compile(graph)()
    assert capsys.readouterr().out == "hello 2\n"


def test_random_draws_are_fresh_and_cannot_be_branched_on() -> None:
    source = "import numpy as np\nrng = np.random.default_rng(3)\nprint(rng.random(2) + 1)\n"
    graph = mg.trace_program(source)
    assert run_graph(graph) == run_python(source)
    with pytest.raises(BranchError, match="bool"):
        mg.trace_program(
            "import numpy as np\nif np.random.default_rng(3).random() > 0.5:\n    print(1)\n"
        )


def test_a_file_is_traced_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "my-prog.py"
    path.write_text(TEXTBOOK, encoding="utf-8")
    for source in (path, str(path)):
        graph = mg.trace_program(source)
        assert graph.name == "my_prog"
        assert str(graph.nodes[-1].loc) == "my-prog.py:10"
    with pytest.raises(OptionError, match="no file"):
        mg.trace_program(str(tmp_path / "none.py"))


def test_too_many_nodes_is_an_error_that_names_the_line() -> None:
    source = "s = 0\nfor i in range(200000):\n    s = s + 1\nprint(s)\n"
    with pytest.raises(SizeError) as caught:
        mg.trace_program(source)
    assert caught.value.where is not None and caught.value.where.line == 3
    assert "mg.jit" in str(caught.value)


def test_an_error_of_the_program_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        mg.trace_program("print(1 / 0)\n")
    with pytest.raises(SyntaxError):
        mg.trace_program("x = (\n")
    with pytest.raises(KeyError):
        mg.trace_program("d = {}\nd[3]\n")


def test_other_effects_happen_while_tracing(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    graph = mg.trace_program(f"with open({str(path)!r}, 'w') as f:\n    f.write('x' * 3)\n")
    assert path.read_text() == "xxx"
    path.unlink()
    mg.compile(graph)()
    assert not path.exists()


def test_recorded_numbers_after_the_trace_are_plain_numbers() -> None:
    kept: dict[str, Any] = {}
    import builtins

    builtins.__dict__["_kept_by_test"] = kept
    try:
        mg.trace_program("_kept_by_test['x'] = 3\n_kept_by_test['y'] = 2.5\n")
    finally:
        del builtins.__dict__["_kept_by_test"]
    assert kept["x"] + 1 == 4 and type(kept["x"] + 1) is int
    assert math.isclose(kept["y"] * 2, 5.0) and np.add(kept["x"], 1) == 4
