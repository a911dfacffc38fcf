"""Never stale: what the trace has read is checked at each call, and a change retraces."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import gc
import types
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from comparing import describe, same_as_eager

import minigraph as mg
from minigraph.errors import SignatureError, StateError

X = np.array([1.0, 2.0])
SCALE = 2.0
TABLE: dict[str, Any] = {"k": [1.0, (2, 3)], "name": "a"}
WEIGHT = np.array([10.0, 20.0])


def helper(x: Any) -> Any:
    return x * SCALE


def calls(jitted: Any, function: Any, *args: Any) -> None:
    assert describe(jitted(*args)) == describe(function(*args))


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__(__name__) if __name__ in __import__("sys").modules else None
    namespace = test_globals.__globals__

    def f(x: Any) -> Any:
        return helper(x) + TABLE["k"][0] + WEIGHT

    del module
    jitted = mg.jit(f)
    calls(jitted, f, X)
    for scale in (3.0, 3, np.float32(3), True, -0.0, 0.0, float("nan"), 2.0):
        monkeypatch.setitem(namespace, "SCALE", scale)
        calls(jitted, f, X)
    monkeypatch.setitem(namespace, "helper", lambda x: x - 1)
    calls(jitted, f, X)
    entries = len(jitted.cache_info())
    calls(jitted, f, X)
    assert len(jitted.cache_info()) == entries


def test_containers_are_compared_by_content() -> None:
    table: dict[str, Any] = {"k": [1.0, 2.0], "s": {1, 2}}

    def f(x: Any) -> Any:
        return x * sum(table["k"]) + len(table["s"]) + len(table)

    jitted = mg.jit(f)
    calls(jitted, f, X)
    changes: list[Any] = [
        lambda: table["k"].append(5.0),
        lambda: table.update(z=1),
        lambda: table["s"].add(9),
        lambda: table["k"].__setitem__(0, 1),
        lambda: table.__setitem__("k", (1, 2.0, 5.0)),
    ]
    for change in changes:
        change()
        calls(jitted, f, X)
    assert len(jitted.cache_info()) == 1 + len(changes)
    table["k"] = (1, 2.0, 5.0)  # equal content: nothing new
    calls(jitted, f, X)
    assert len(jitted.cache_info()) == 1 + len(changes)


Point = collections.namedtuple("Point", "a b")


@pytest.mark.parametrize(
    "make",
    [
        lambda k: types.SimpleNamespace(k=k, w=np.ones(2)),
        lambda k: argparse.Namespace(k=k, w=np.ones(2)),
        lambda k: Slotted(k, np.ones(2)),
        lambda k: Point(k, np.ones(2)),
        lambda k: collections.OrderedDict(k=k, w=np.ones(2)),
        lambda k: collections.deque([k, np.ones(2)]),
        lambda k: Listed([k, 1.0]),
    ],
)
def test_objects_that_hold_data(make: Any) -> None:
    holder = [make(2.0)]

    def read(thing: Any) -> Any:
        if isinstance(thing, dict):
            return thing["k"], thing["w"]
        return tuple(thing) if isinstance(thing, tuple | list | collections.deque) else (
            thing.k, thing.w
        )  # fmt: skip

    def f(x: Any) -> Any:
        k, w = read(holder[0])
        return x * k + w

    jitted = mg.jit(f)
    calls(jitted, f, X)
    if not isinstance(holder[0], Listed):
        read(holder[0])[1][0] = 7.0  # an array is read by reference
        calls(jitted, f, X)
        assert len(jitted.cache_info()) == 1
    holder[0] = make(3.0)
    calls(jitted, f, X)
    if isinstance(holder[0], Listed):
        holder[0][0] = 9.0
        calls(jitted, f, X)


class Slotted:
    __slots__ = ("k", "w")

    def __init__(self, k: float, w: Any) -> None:
        self.k, self.w = k, w


class Listed(list[float]):
    pass


def test_closures() -> None:
    k, table = 2.0, [1.0, 10.0]

    def f(x: Any) -> Any:
        return x * k + table[0]

    jitted = mg.jit(f)
    calls(jitted, f, X)
    k = 5.0
    calls(jitted, f, X)
    table[0] = 100.0
    calls(jitted, f, X)
    k, table[0] = 2.0, 1.0
    calls(jitted, f, X)
    info = jitted.cache_info()
    assert len(info) == 3
    assert info.retraces == ["k is 5.0, was 2.0", "table[0] is 100.0, was 1.0"]


class Model:
    rate = 0.5

    def __init__(self) -> None:
        self.training = True
        self.weight = np.array([1.0, 2.0])
        self.layers = [np.array([3.0, 4.0])]
        self.options = types.SimpleNamespace(bias=1.0)

    @property
    def scale(self) -> float:
        return self.rate * 2

    def extra(self, x: Any) -> Any:
        return x + np.ones(2) if self.training else x

    def forward(self, x: Any) -> Any:
        return self.extra(x * self.weight + self.layers[0]) * self.scale


def test_attributes_of_objects() -> None:
    model = Model()
    jitted = mg.jit(model.forward)
    calls(jitted, model.forward, X)
    for training in (False, True, False, True):
        model.training = training
        calls(jitted, model.forward, X)
    assert len(jitted.cache_info()) == 2
    model.weight = np.array([7.0, 8.0])  # arrays are read by reference
    model.weight[0] = -1.0
    model.layers[0][:] = 0.5
    calls(jitted, model.forward, X)
    assert len(jitted.cache_info()) == 2
    model.rate = 4.0
    calls(jitted, model.forward, X)
    model.layers.append(np.zeros(1))
    calls(jitted, model.forward, X)
    model.weight = model.weight.astype(np.float32)
    calls(jitted, model.forward, X)
    model.extra = lambda x: x * 0  # type: ignore[method-assign]
    calls(jitted, model.forward, X)


def test_class_attributes_and_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    jitted = mg.jit(model.forward)
    calls(jitted, model.forward, X)
    monkeypatch.setattr(Model, "rate", 9.0)
    calls(jitted, model.forward, X)
    monkeypatch.setattr(Model, "extra", lambda self, x: x * 100)
    calls(jitted, model.forward, X)


def test_an_attribute_that_appears() -> None:
    model = Model()

    def f(x: Any) -> Any:
        return x * getattr(model, "bonus", 1.0) + (5 if hasattr(model, "more") else 0)

    jitted = mg.jit(f)
    calls(jitted, f, X)
    model.bonus = 3.0  # type: ignore[attr-defined]
    calls(jitted, f, X)
    model.more = None  # type: ignore[attr-defined]
    calls(jitted, f, X)
    del model.bonus  # type: ignore[attr-defined]
    calls(jitted, f, X)


def test_objects_among_the_arguments_share_an_entry() -> None:
    def f(model: Any, x: Any) -> Any:
        return model.forward(x) + model.weight

    jitted = mg.jit(f)
    one, two = Model(), Model()
    two.weight = np.array([5.0, 6.0])
    calls(jitted, f, one, X)
    calls(jitted, f, two, X)
    assert len(jitted.cache_info()) == 1
    two.training = False
    calls(jitted, f, two, X)
    calls(jitted, f, one, X)
    assert len(jitted.cache_info()) == 2


def test_true_is_not_one_is_not_one_point_zero() -> None:
    def f(x: Any, k: Any) -> Any:
        return x + 100 if isinstance(k, bool) else x * k

    jitted = mg.jit(f)
    x = np.array([1, 2], np.int32)
    for k in (True, 1, 1.0, np.True_, True, 0, False, -0.0, 0.0, np.float64(1), np.int8(1), 1j):
        calls(jitted, f, x, k)


def test_strings_and_none_are_specialised() -> None:
    def f(x: Any, mode: Any = None) -> Any:
        return x if mode is None else x * len(mode)

    jitted = mg.jit(f)
    for mode in (None, "a", "ab", None, "a"):
        calls(jitted, f, X, mode)
    assert len(jitted.cache_info()) == 3


def test_python_numbers_are_traced_and_not_baked() -> None:
    def f(x: Any, k: Any) -> Any:
        return x * k + k / 3

    jitted = mg.jit(f)
    for k in (1, 2, 3, 2**62, 1.5, 2.5, float("inf")):
        calls(jitted, f, X, k)
    assert len(jitted.cache_info()) == 2  # one for int, one for float


def test_a_forced_number_joins_the_guard() -> None:
    def f(x: Any, n: Any, k: Any) -> Any:
        for _ in range(n):
            x = x * 2
        return x if k > 0 else -x

    jitted = mg.jit(f)
    for n, k in ((1, 2.0), (1, 2.0), (2, 2.0), (2, -1.0), (1, 2.0)):
        calls(jitted, f, X, n, k)
    info = jitted.cache_info()
    assert len(info) == 3
    assert "n is 2, was 1" in info.retraces[0] and "needed" in info.retraces[0]


@dataclasses.dataclass
class Config:
    scale: float
    offsets: Any


def test_structures_of_arguments() -> None:
    def f(batch: Any, config: Any) -> Any:
        return {"y": batch["x"] * config.scale, "z": (batch["m"][0], config)}

    jitted = mg.jit(f)
    batch = {"x": X, "m": [np.ones(2), 3]}
    for config in (Config(2.0, X), Config(3.0, X), Config(3, X), Config(2.0, [X, X])):
        calls(jitted, f, batch, config)
    assert len(jitted.cache_info()) == 3
    calls(jitted, f, {"m": batch["m"], "x": X}, Config(2.0, X))  # another order of keys


def test_static_arguments() -> None:
    def f(x: Any, axes: Any, n: Any) -> Any:
        return x.sum(axis=tuple(axes)) * n

    x = np.arange(6.0).reshape(2, 3)
    jitted = mg.jit(f, static=("axes", "n"))
    axes = [0]
    calls(jitted, f, x, axes, 2)
    axes[0] = 1
    calls(jitted, f, x, axes, 2)
    calls(jitted, f, x, [1], 2)
    calls(jitted, f, x, [1], 3)
    assert len(jitted.cache_info()) == 3


def test_guard_is_shown_as_source() -> None:
    jitted = mg.jit(lambda x: x * SCALE)
    jitted(X)
    text = jitted.source("guard")
    assert "x.shape == (2,)" in text and "['SCALE']" in text


def test_keyword_arguments_and_defaults() -> None:
    def f(x: Any, /, y: Any = 2.0, *rest: Any, z: Any = 1, **more: Any) -> Any:
        return x * y + sum(rest) + z + sum(more.values())

    same_as_eager(f, X)
    same_as_eager(f, X, 3.0, 4, 5.0, z=2, w=X)
    same_as_eager(f, X, z=X, y=1)
    with pytest.raises(TypeError, match="x"):
        mg.jit(f)(x=X)


def test_equal_names_in_different_places_are_told_apart() -> None:
    one: dict[str, Any] = {"K": 2.0}
    two: dict[str, Any] = {"K": 3.0}
    exec("def f(x):\n    return x * K\n", one)
    exec("def f(x):\n    return x + K\n", two)
    first, second = one["f"], two["f"]

    def f(x: Any) -> Any:
        return first(x) + second(x)

    jitted = mg.jit(f)
    calls(jitted, f, X)
    two["K"] = 10.0
    calls(jitted, f, X)
    one["K"] = 20.0
    calls(jitted, f, X)


def test_named_dimensions_agree_wherever_they_stand() -> None:
    def f(x: Any, y: Any) -> Any:
        return x + y

    for dynamic in (
        {"x": {0: "n"}, "y": {0: "n"}},
        {"x": mg.Spec(("n",), "float64"), "y": mg.Spec((mg.dim("n"),), "float64")},
    ):
        jitted = mg.jit(f, dynamic=dynamic)
        for size in (3, 4, 1):
            calls(jitted, f, np.ones(size), np.arange(float(size)))
        assert len(jitted.cache_info()) == 1
        with pytest.raises(SignatureError, match="n is 3"):
            jitted(np.ones(3), np.ones(4))


def test_class_members_of_every_kind_that_are_replaced() -> None:
    class Base:
        k = 2.0

        def go(self, x: Any) -> Any:
            return x + 1

    class Other:
        def go(self, x: Any) -> Any:
            return -x

    class Kind(Base):
        @staticmethod
        def static(x: Any) -> Any:
            return x * 2

        @classmethod
        def of_class(cls, x: Any) -> Any:
            return x * cls.k

        @property
        def rate(self) -> float:
            return 5.0

        def go(self, x: Any) -> Any:
            return super().go(x) * 2

    class Derived(Kind):
        pass

    thing = Derived()

    def f(x: Any) -> Any:
        made = Kind().go(x) + Kind.static(x) + Kind.of_class(x)
        return made + thing.go(x) + thing.static(x) + thing.of_class(x) * thing.rate

    jitted = mg.jit(f)
    calls(jitted, f, X)
    changes: list[Any] = [
        lambda: setattr(Kind, "static", staticmethod(lambda x: x - 7)),
        lambda: setattr(Kind, "of_class", classmethod(lambda cls, x: x - 9)),
        lambda: setattr(Base, "go", lambda self, x: x * 100),
        lambda: setattr(Base, "k", 4.0),
        lambda: setattr(Kind, "rate", property(lambda self: 8.0)),
        lambda: setattr(Derived, "rate", 9.0),
        lambda: setattr(Derived, "static", staticmethod(lambda x: x + 1)),
        lambda: setattr(Kind, "__bases__", (Other,)),
    ]
    for change in changes:
        change()
        calls(jitted, f, X)


def test_attributes_whose_names_are_no_identifiers() -> None:
    model = types.SimpleNamespace()
    plain = Slotless()
    for holder in (model, plain):
        setattr(holder, "my key", 2.0)
        setattr(holder, "class", 3.0)

        def f(x: Any, holder: Any = holder) -> Any:
            return x * getattr(holder, "my key") * getattr(holder, "class")

        jitted = mg.jit(f)
        calls(jitted, f, X)
        setattr(holder, "my key", 5.0)
        calls(jitted, f, X)
        assert len(jitted.cache_info()) == 2


class Slotless:
    pass


def test_what_is_new_at_each_reading_is_an_error() -> None:
    class Fickle:
        def __getattr__(self, name: str) -> Any:
            return object()

    fickle = Fickle()

    def f(x: Any) -> Any:
        return x if fickle.anything is None else x * 2

    jitted = mg.jit(f)
    with pytest.raises(StateError, match=r"fickle\.anything"):
        jitted(X)
    assert len(jitted.cache_info()) == 0


class Layer:
    def __init__(self) -> None:
        self.w = np.arange(6.0).reshape(2, 3)

    @mg.jit
    def scaled(self, x: Any) -> Any:
        return (x * self.w).sum(axis=0)


def test_arrays_behind_objects_are_known_by_identity_and_shape() -> None:
    """The same object needs no second look but at its shape; nothing is kept alive."""
    layer, jitted = Layer(), Layer.scaled
    for w in (layer.w, np.ones((2, 3))):
        layer.w = w
        np.testing.assert_array_equal(layer.scaled(2.0), (2.0 * w).sum(axis=0))
    assert len(jitted.cache_info()) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        layer.w.shape = (3, 2)
    assert layer.scaled(2.0).shape == (2,)
    assert len(jitted.cache_info()) == 2
    dead = weakref.ref(layer.w)
    layer.w = w = np.ones((2, 3))
    gc.collect()
    assert dead() is None


def test_dataclasses_that_were_made() -> None:
    made = dataclasses.make_dataclass("Made", [("rate", float)])(2.0)
    jitted = mg.jit(lambda x: x * made.rate)
    np.testing.assert_array_equal(jitted(X), X * 2.0)
    made.rate = 3.0
    np.testing.assert_array_equal(jitted(X), X * 3.0)
