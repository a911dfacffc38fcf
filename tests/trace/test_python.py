"""Python around the arrays: what runs while tracing gives what it gives eagerly, or an error.

Each program is a module of its own with a function `f`; steps between the calls change the module.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from comparing import outcome, same_as_eager

import minigraph as mg
from minigraph.errors import MinigraphError

V = np.array([3.0, 1.0, 2.0])
X = np.arange(6.0).reshape(2, 3)
_numbers = itertools.count()


def module(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"np": np, "mg": mg, "__name__": "the_user"}
    code = compile(source, f"<module {next(_numbers)}>", "exec", dont_inherit=True)
    exec(code, namespace)
    return namespace


def lines(*text: str) -> str:
    return "\n".join(text) + "\n"


# ---- one program, called twice -----------------------------------------------------------------

AS_EAGERLY: dict[str, tuple[str, list[Any]]] = {
    "decorators": (
        lines(
            "import functools",
            "def twice(function):",
            "    @functools.wraps(function)",
            "    def inner(*args, **kwargs): return function(*args, **kwargs) * 2",
            "    return inner",
            "@twice",
            "def f(a, k=1): return a + k",
        ),
        [V],
    ),
    "a cached function": (
        lines(
            "import functools",
            "@functools.lru_cache(maxsize=None)",
            "def table(n): return np.arange(n) * 0.5",
            "def f(a, n): return a * table(n) + table(3)",
        ),
        [V, 3],
    ),
    "a context manager": (
        lines(
            "import contextlib",
            "@contextlib.contextmanager",
            "def doubled(a): yield a * 2",
            "def f(a):",
            "    with doubled(a) as b, np.errstate(all='ignore'): return b / 0",
        ),
        [V],
    ),
    "errors of shapes and indices are caught": (
        lines(
            "def f(a):",
            "    out = []",
            "    for attempt in (lambda: a + np.ones(7), lambda: a[10], lambda: a.reshape(5)):",
            "        try: out.append(attempt())",
            "        except (ValueError, IndexError): out.append(a - 1)",
            "        finally: a[0] = 5",
            "    return out",
        ),
        [V],
    ),
    "a division that fails is caught": (
        lines(
            "import contextlib",
            "def f(a, n):",
            "    try: r = 1 / n",
            "    except ZeroDivisionError: r = -1.0",
            "    with contextlib.suppress(ZeroDivisionError): a = a + 1 / n",
            "    return a * r",
        ),
        [V, 0],
    ),
    "an error that the function raises": (
        lines("def f(a):", "    a[0] = 9", "    print(a.sum())", "    raise KeyError('x')"),
        [V],
    ),
    "recursion and generators": (
        lines(
            "def power(a, n): return a if n == 0 else power(a, n - 1) * 2",
            "def rows(a):",
            "    for row in a: yield row * 2",
            "def f(a): return power(a, 3), list(rows(a)), sum(r[0] for r in a), next(rows(a))",
        ),
        [X],
    ),
    "unpacking": (
        lines(
            "def f(a, *rest, k=2, **named):",
            "    first, *others = a",
            "    (p, q, r), s = a",
            "    return first, others, p * k, s, rest, {**named, 'a': a}, [*a, *range(2)]",
        ),
        [X, 1, V],
    ),
    "containers made inside": (
        lines(
            "def f(a):",
            "    c = {'x': a + 1}",
            "    c.setdefault('y', []).append(a)",
            "    c['z'] = c.pop('x') * 2",
            "    items = [a, 3]",
            "    items[0] = items[1]; items += [a]; del items[1]",
            "    return c, items",
        ),
        [V],
    ),
    "classes": (
        lines(
            "class Layer:",
            "    rate = 2.0",
            "    def __init__(self, w): self.w = w",
            "    def __call__(self, a): return a @ self.w",
            "    def __add__(self, other): return Layer(self.w + other.w)",
            "    def __getitem__(self, i): return self.w[i]",
            "    def __len__(self): return 3",
            "    def __iter__(self): return iter(self.w)",
            "    def __eq__(self, other): return isinstance(other, Layer)",
            "    def __enter__(self): return self",
            "    def __exit__(self, *error): return False",
            "    @property",
            "    def double(self): return self.w * self.rate",
            "    @classmethod",
            "    def of(cls, w): return cls(w)",
            "    @staticmethod",
            "    def plus(w): return w + 1",
            "class Deep(Layer):",
            "    def __init__(self, w, k):",
            "        super().__init__(w)",
            "        self.k = k",
            "    def __call__(self, a): return super().__call__(a) * self.k",
            "layer = Layer(np.array([1.0, 2.0, 3.0]))",
            "def f(a):",
            "    made, deep = Layer.of(a), Deep(a, 2)",
            "    with layer as same: z = same.double",
            "    return (layer(a), z, Layer.plus(a), (layer + made).w, layer[0], len(layer),",
            "            list(layer), layer == made, deep(a), isinstance(deep, Layer),",
            "            type(made) is Layer, type(deep).__name__)",
        ),
        [V],
    ),
    "abstract classes and slots": (
        lines(
            "import abc",
            "class Base(abc.ABC):",
            "    @abc.abstractmethod",
            "    def go(self, a): ...",
            "class One(Base):",
            "    __slots__ = ('k',)",
            "    def __init__(self, k): self.k = k",
            "    def go(self, a): return a * self.k",
            "one = One(2.0)",
            "def f(a): return one.go(a), One(a).go(a), isinstance(one, Base)",
        ),
        [V],
    ),
    "data classes and named tuples": (
        lines(
            "import dataclasses",
            "from collections import namedtuple",
            "@dataclasses.dataclass",
            "class D:",
            "    w: object",
            "    n: int = 2",
            "    def go(self, a): return a * self.w + self.n",
            "T = namedtuple('T', 'x y')",
            "t = T(1.0, np.ones(3))",
            "def f(a):",
            "    d = D(a, 3)",
            "    d.n = 5",
            "    e = dataclasses.replace(d, w=a + 1)",
            "    return e.go(a), dataclasses.asdict(d), a * t.x + t.y, t._replace(x=a).x",
        ),
        [V],
    ),
    "match": (
        lines(
            "def f(a, p, mode='y'):",
            "    match p:",
            "        case {'w': w, **rest}: b = w, rest",
            "        case [w, *rest]: b = w, rest",
            "    match mode:",
            "        case 'x': return a, b",
            "        case _: return -a, b",
        ),
        [V, {"w": V, "k": 2}],
    ),
    "imports inside": (
        lines(
            "def f(a):",
            "    import numpy as N, math",
            "    from numpy import sin",
            "    from numpy.linalg import norm",
            "    return N.ones(3) + sin(a) + norm(a) + math.pi",
        ),
        [V],
    ),
    "functions in containers": (
        lines(
            "import functools, operator",
            "table = {'a': np.sin, 'b': lambda q: q + 1}",
            "add = functools.partial(np.add, 2.0)",
            "def f(a, g):",
            "    both = functools.reduce(np.add, [a, a]), operator.methodcaller('sum')(a)",
            "    each = [h(a) for h in table.values()], [*map(np.cos, [a])]",
            "    return add(np.ones(3)), g(a), both, each",
        ),
        [V, np.sin],
    ),
    "the same array twice": ("def f(a, b):\n    a += 1\n    b *= 2\n    return a, b\n", [V, V]),
    "print in its ways": (
        lines(
            "import builtins, sys",
            "p = print",
            "def f(a):",
            "    p('x', a[0]); a[0] = 9; builtins.print(a[0], flush=True)",
            "    print(*a, sep=',', end='|')",
            "    print('n', None, [1], {'k': 2}, file=sys.stdout)",
            "    sys.stdout.write('end\\n')",
            "    list(map(print, a))",
        ),
        [V],
    ),
    "results that are keys and slices": (
        "def f(n): return {n: 1, (n, 'x'): n}, slice(n), [slice(None, n)]\n",
        [2],
    ),
    "python numbers": (
        lines(
            "import math",
            "def f(n): return (",
            "    n // 2, n % 3, n ** 2, -n, n / 3, n == 2, n > 1, abs(n), divmod(n, 2),",
            "    pow(n, 2), round(n), int(n), float(n), complex(n), str(n), f'{n:.2f}',",
            "    math.sqrt(n), divmod(7, n),",
            "    max(n, 1), min(n, 1), [0] * int(n), n in (2, 3), hash(n), {2: 5}[n], sum([n, n]),",
            "    isinstance(n, int), type(n) is float, n.real, n.conjugate(), np.float32(n),",
            "    np.sqrt(n), np.real(n), np.isreal(n), np.array([n, 1]), np.add(n, 1))",
        ),
        [2],
    ),
    "numpy scalars": (
        lines(
            "from collections.abc import Iterable, Sized",
            "def f(s): return (",
            "    isinstance(s, Iterable), isinstance(s, Sized), isinstance(s, float),",
            "    hasattr(s, 'dot'), hasattr(s, '__len__'), s[()], s[...], s[None], s == None,",
            "    s != 'x', round(s, 1), s.reshape(1), np.array([s, 2]), np.stack([s, 2.5]))",
        ),
        [np.float32(2.5)],
    ),
    "questions about arrays": (
        lines(
            "def f(a): return (",
            "    isinstance(a, np.ndarray), isinstance(a, (list, float)), a is a, a is None,",
            "    a == None, a != None, hasattr(a, 'foo'), getattr(a, 'ndim', 0), len(a),",
            "    callable(a), type(a) is np.ndarray, a.__class__, np.isscalar(a), a.dtype.kind)",
        ),
        [V],
    ),
    "a function of NumPy itself": ("f = np.sum\n", [X]),
    "wrong arguments": ("def f(a, b): return a + b\n", [V]),
    "rows under a mask": (
        "def f(a):\n    a[a[:, 0] > 1] = a[0]\n    a[[True, False]] += a[1]\n    return a\n",
        [X],
    ),
    "round of an array": ("def f(a): return round(a)\n", [V]),
    "what cannot fail in a try": (
        "def f(a):\n    try: return float(a[0])\n    except Exception: return 0.0\n",
        [V],
    ),
    "a repr in a print": (
        "def f(a): print([a], (a[0],), {'x': a[:1], 2: [a[1] > 0]}, (a[0].item(), [a[0] + 1]))\n",
        [V],
    ),
    "scalar times list": ("def f(s): return s * [1, 2]\n", [np.float64(2.0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_EAGERLY)
def test_as_eagerly(name: str) -> None:
    source, arguments = AS_EAGERLY[name]
    for options in ({"verify": True}, {"backend": "interpret"}):
        eager, compiled = module(source)["f"], mg.jit(module(source)["f"], **options)
        for _ in range(2):
            assert outcome(compiled, arguments, {}) == outcome(eager, arguments, {})


# ---- what changes between the calls ------------------------------------------------------------

CHANGES: dict[str, tuple[str, list[str]]] = {
    "a number": (
        "k = 2.0\ndef f(a): return a * k\n",
        ["k = 3.0", "k = 3", "k = np.float32(2)", "k = np.ones(3)", "k = [1, 2, 3]", "k = True",
         "k = 1", "k = 0.0", "k = -0.0", "k = float('nan')", "del k", "k = 2.0"],
    ),
    "containers": (
        "d = {'w': 1.0, 'l': [1, 2]}\ndef f(a): return a * d['w'] + d['l'][0] + len(d['l'])\n",
        ["d['w'] = 2.0", "d['l'].append(3)", "d['l'][0] = 9", "d['z'] = 1",
         "d = {'w': 5, 'l': [0]}"],
    ),
    "functions": (
        "def g(a, k=1): return a + k\ndef f(a): return g(a)\n",
        ["def g(a, k=1): return a + 2", "g.__defaults__ = (4,)", "g = np.sin", "g = lambda a: a"],
    ),
    "own defaults": ("def f(a, k=2.0): return a * k\n", ["f.__defaults__ = (3.0,)"]),
    "a partial": (
        "import functools\nf = functools.partial(lambda a, k: a * k, k=2.0)\n",
        ["f.keywords['k'] = 3.0"],
    ),
    "classes and objects": (
        lines(
            "class B:",
            "    k = 1",
            "    def m(self, a): return a * self.k",
            "class C(B): pass",
            "c = C()",
            "def f(a): return c.m(a), C().m(a)",
        ),
        ["B.k = 2", "c.k = 3", "B.m = lambda self, a: a - self.k", "c.m = lambda a: a + 100",
         "del c.m", "C.m = lambda self, a: a * 4", "c = C()", "C.k = np.ones(3)"],
    ),
    "a property": (
        lines(
            "class C: p = property(lambda s: s.q * 2)",
            "c = C()",
            "c.q = 1.0",
            "def f(a): return a * c.p",
        ),
        ["c.q = 2.0", "C.p = property(lambda s: s.q * 5)", "C.p = 7.0"],
    ),
    "arrays": (
        "w = np.ones(3)\nv = w\ndef f(a):\n    w[0] += 1\n    return a * v\n",
        ["w[1] = 5", "v = np.ones(3)", "v = w[:]", "w = np.zeros(3)", "v = np.ones((2, 3), 'f4')"],
    ),
    "absent names": (
        lines(
            "def f(a):",
            "    try: b = a * K",
            "    except NameError: b = a",
            "    return b, 'Z' in globals(), abs(a), sum(a)",
        ),
        ["K = 2.0", "Z = 1", "abs = lambda q: q * 2", "def sum(q): return q * 5", "del K, abs"],
    ),
    "absent attributes and keys": (
        lines(
            "class C: pass",
            "c, d = C(), {}",
            "def f(a): return a * getattr(c, 'k', 1.0) + hasattr(c, 'z'), d.get('k', 1), 'z' in d",
        ),
        ["c.k = 2.0", "c.z = 1", "d['k'] = 2.0", "d['z'] = 1", "del c.k", "C.k = 5.0"],
    ),
    "a module made by hand": (
        "import types\nm = types.ModuleType('m')\nm.k = 2.0\ndef f(a): return a * m.k\n",
        ["m.k = 3.0", "m.k = np.ones(3)"],
    ),
    "a cell": (
        lines(
            "def make():",
            "    k = 1.0",
            "    def change(z):",
            "        nonlocal k",
            "        k = z",
            "    def f(a): return a * k",
            "    return f, change",
            "f, change = make()",
        ),
        ["change(2.0)", "change(np.ones(3))", "change(None)"],
    ),
    "branches": (
        "flag = True\ndef f(a):\n    return a if flag else -a\n",
        ["flag = False", "flag = 1", "flag = []", "flag = [0]"],
    ),
    "draws": (
        lines(
            "rng = np.random.default_rng(3)",
            "def f(a): return rng.random(out=a), rng.normal(a), rng.choice(3)",
        ),
        ["rng = np.random.default_rng(4)", "rng.normal()"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_noticed(name: str) -> None:
    source, steps = CHANGES[name]
    eager, compiled = module(source), module(source)
    functions = eager["f"], mg.jit(compiled["f"])
    for step in ("pass", *steps):
        exec(step, eager)
        exec(step, compiled)
        for _ in range(2):
            assert outcome(functions[1], [V], {}) == outcome(functions[0], [V], {}), step


# ---- what is refused ----------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, list[Any]]] = {
    "a counter": ("n = 0\ndef f(a):\n    global n\n    n += 1\n    return a * n\n", [V]),
    "a list that grows": ("log = []\ndef f(a):\n    log.append(1)\n    return a * len(log)\n", [V]),
    "a default that grows": ("def f(a, m=[]):\n    m.append(1)\n    return a * len(m)\n", [V]),
    "an attribute": (
        "class C: n = 0\nc = C()\ndef f(a):\n    c.n += 1\n    return a * c.n\n",
        [V],
    ),
    "an iterator": ("i = iter([1.0, 2.0])\ndef f(a): return a * next(i)\n", [V]),
    "a branch": ("def f(a):\n    return a if a.sum() > 1 else -a\n", [V]),
    "a string": ("def f(a): return f'{a}'\n", [V]),
    "a repr": ("def f(a): return repr(a), [a].__repr__()\n", [V]),
    "a lost error": (
        "def f(a):\n    try: return int(a[0])\n    except Exception: return 0\n",
        [V],
    ),
    "a failure that would be caught": (
        "def f(a, i):\n    try: return a[i]\n    except IndexError: return a\n",
        [V, np.array([1])],
    ),
    "a seed that is an array": ("def f(a): return np.random.default_rng(a).random()\n", [V]),
    "foreign byte order": ("def f(a): return a.dtype\n", [V.astype(">f8")]),
    "foreign byte order inside": ("def f(a): return a.astype('>f4')\n", [V]),
    "a memoryview": ("m = memoryview(b'abc')\ndef f(a): return a * m[0]\n", [V]),
    "a redirection": ("import io, sys\ndef f(a): sys.stdout = io.StringIO()\n", [V]),
    "a cast in place under a mask": ("def f(a):\n    a[a > 1] += 1.5\n", [np.arange(3)]),
    "a view of itself under a mask": (
        "def f(a):\n    a[np.array([[True, False, True], [False, False, True]])] = a[0]\n",
        [X],
    ),
    "comparing with an object": ("def f(a): return a == object\n", [V]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    source, arguments = REFUSED[name]
    with pytest.raises(MinigraphError) as caught:
        mg.jit(module(source)["f"])(*arguments)
    assert caught.value.fact


def test_a_failure_is_raised_in_order() -> None:
    def f(a: Any, i: Any) -> Any:
        print("before")
        a[0] = 2
        b = a[i]
        a[1] = 3
        print("after")
        return b

    same_as_eager(f, V, np.array([1]))
    same_as_eager(f, V, np.array([7]))
