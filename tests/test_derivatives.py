"""Derivatives of functions: `grad`, `value_and_grad`, `vjp`, `jvp`, and what steers them."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from differentiable import cases, program
from hypothesis import HealthCheck, given, settings

import minigraph as mg
from minigraph import derivatives, pullbacks
from minigraph.errors import (
    DtypeError,
    OptionError,
    ShapeError,
    SignatureError,
    UnsupportedError,
)
from minigraph.testing import check_grad

LAWS = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)

X = np.random.default_rng(0).normal(size=(4, 3))
W = np.random.default_rng(1).normal(size=(3, 5))


def loss(x: Any, w: Any, scale: Any = 1.0) -> Any:
    return (np.sin(x @ w) * scale).sum()


DX = np.cos(X @ W) @ W.T
DW = X.T @ np.cos(X @ W)


def cube(x: Any) -> Any:
    return x**3


# ---- grad


def test_an_argument_by_index_by_name_and_several():
    np.testing.assert_allclose(mg.grad(loss)(X, W), DX)
    np.testing.assert_allclose(mg.grad(loss, 1)(X, W), DW)
    np.testing.assert_allclose(mg.grad(loss, -1)(X, W, 1.0), np.sin(X @ W).sum())
    np.testing.assert_allclose(mg.grad(loss, "w")(X, w=W), DW)
    dx, dw = mg.grad(loss, ("x", 1))(X, W)
    np.testing.assert_allclose(dx, DX)
    np.testing.assert_allclose(dw, DW)
    (only,) = mg.grad(loss, (0,))(X, W)
    np.testing.assert_allclose(only, DX)


def test_a_default_is_an_argument_too():
    found = mg.grad(loss, "scale")(X, W)
    assert type(found) is float
    np.testing.assert_allclose(found, np.sin(X @ W).sum())


def test_a_float_has_a_float():
    for found in (mg.grad(cube)(2.0), mg.grad(mg.grad(cube))(2.0)):
        assert type(found) is float and found == 12.0
    assert type(mg.grad(cube)(np.float32(2))) is np.float32
    assert mg.grad(mg.grad(mg.grad(cube)))(2.0) == 6.0


def test_a_weak_float_does_not_widen_others():
    x = np.ones(3, np.float32)
    found = mg.grad(lambda x, scale: (x * scale * 0.5).sum())(x, 2.0)
    assert found.dtype == np.float32


def test_the_value_too():
    value, (dx, dw) = mg.value_and_grad(loss, (0, 1))(X, W)
    assert value == loss(X, W)
    np.testing.assert_allclose(dx, DX)
    np.testing.assert_allclose(dw, DW)


def test_something_besides_the_number():
    def both(x: Any) -> Any:
        y = np.exp(x)
        return y.sum(), {"y": y}

    found, aux = mg.grad(both, has_aux=True)(X)
    assert np.array_equal(found, np.exp(X)) and np.array_equal(aux["y"], np.exp(X))
    (value, aux), found = mg.value_and_grad(both, has_aux=True)(X)
    assert value == np.exp(X).sum() and np.array_equal(aux["y"], np.exp(X))
    with pytest.raises(SignatureError, match="has_aux=True says"):
        mg.grad(lambda x: x.sum(), has_aux=True)(X)


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    name: str = "layer"


class Pair(NamedTuple):
    first: Any
    second: Any


def test_a_gradient_has_the_structure_of_its_argument():
    def f(p: Any) -> Any:
        layer, pair = p["layer"], p["rest"][0]
        return (layer.w * layer.b).sum() + pair.first * pair.second.sum() + p["rest"][1][0]

    given = {"layer": Layer(np.ones(2), np.full(2, 3.0)), "rest": [Pair(2.0, np.ones(2)), (1.0,)]}
    found = mg.grad(f)(given)
    assert list(found) == ["layer", "rest"]
    assert type(found["layer"]) is Layer and found["layer"].name is None
    assert np.array_equal(found["layer"].w, [3, 3]) and np.array_equal(found["layer"].b, [1, 1])
    pair, (one,) = found["rest"]
    assert type(pair) is Pair and pair.first == 2.0 and np.array_equal(pair.second, [2, 2])
    assert one == 1.0 and type(found["rest"]) is list


def test_nothing_depends_on_the_argument():
    found = mg.grad(lambda x, y: y.sum())(X, W)
    assert np.array_equal(found, np.zeros_like(X))
    assert mg.grad(lambda x, y: y.sum())(2.0, W) == 0.0


def test_another_use_of_the_same_array_is_a_constant():
    y = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(mg.grad(lambda x: (x * y).sum())(y), y)
    assert np.array_equal(mg.grad(lambda x, z: (x * z).sum())(y, y), y)


def test_it_is_a_jitted_function():
    g = mg.grad(loss)
    g(X, W)
    g(X, W)
    assert len(g.cache_info()) == 1
    g(X[:2], W)
    assert len(g.cache_info()) == 2
    assert "cos" in g.source() and "grad_loss" in g.source()
    assert "cos" in str(g.graph("traced")) and g.stages and "backend" in g.explain()
    assert "cos" in str(g.graph("joint"))
    np.testing.assert_allclose(g.lower(X, W)(X, W, 1.0), DX)


def test_forward_and_backward_are_optimised_together():
    g = mg.value_and_grad(lambda x: np.exp(x).sum())
    g(X)
    assert str(g.graph()).count("exp") == 1


def test_jit_and_grad_in_any_order():
    for found in (
        mg.jit(mg.grad(loss))(X, W),
        mg.grad(mg.jit(loss))(X, W),
        mg.jit(lambda x, w: mg.grad(loss)(x, w) * 1.0)(X, W),
        mg.grad(functools.partial(loss, w=W))(X),
    ):
        np.testing.assert_allclose(found, DX)


def test_the_options_of_a_jitted_function_count():
    g = mg.grad(mg.jit(loss, backend="interpret"))
    g(X, W)
    assert "backend: interpret" in g.explain()
    dynamic = mg.grad(mg.jit(loss, dynamic={"x": {0: "n"}}))
    for rows in (2, 3, 4):
        np.testing.assert_allclose(dynamic(X[:rows], W), DX[:rows])
    assert len(dynamic.cache_info()) == 1


def test_methods_and_objects():
    class Model:
        def __init__(self) -> None:
            self.w = W

        @mg.jit
        def loss(self, x: Any) -> Any:
            return loss(x, self.w)

        def __call__(self, x: Any) -> Any:
            return loss(x, self.w)

    model = Model()
    np.testing.assert_allclose(mg.grad(model.loss)(X), DX)
    np.testing.assert_allclose(mg.grad(model)(X), DX)
    model.w = 2 * W
    np.testing.assert_allclose(mg.grad(model)(X), 2 * np.cos(2 * X @ W) @ W.T)


def test_what_the_function_does_happens_once(capsys: pytest.CaptureFixture[str]):
    rng = np.random.default_rng(3)
    drawn = []

    def noisy(x: Any, state: Any) -> Any:
        noise = rng.normal(size=3)
        print("called")
        state += 1.0
        x *= 2.0
        return (x * noise).sum(), noise

    g = mg.grad(noisy, has_aux=True)
    for call in (1, 2):
        x, state = np.ones(3), np.zeros(2)
        found, noise = g(x, state)
        assert np.array_equal(found, 2 * noise)
        assert np.array_equal(x, [2, 2, 2]) and np.array_equal(state, [1, 1])
        drawn.append(noise)
        assert capsys.readouterr().out.count("called") == 1, call
    reference = np.random.default_rng(3)
    for noise in drawn:
        assert np.array_equal(noise, reference.normal(size=3))


def test_control_flow_of_python_numbers():
    def power(x: Any, n: int) -> Any:
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    assert mg.grad(power)(2.0, 5) == 80.0
    assert mg.grad(power)(2.0, 3) == 12.0


def test_a_hessian_by_rows():
    def f(x: Any) -> Any:
        return (x[0] ** 2 * x[1] + np.sin(x[1])) * x[2]

    def row(x: Any, at: int) -> Any:
        return mg.grad(f)(x)[at]

    x = np.array([1.0, 2.0, 3.0])
    hessian = np.stack([mg.grad(row)(x, at) for at in range(3)])
    expected = [[12, 6, 4], [6, -3 * np.sin(2), 1 + np.cos(2)], [4, 1 + np.cos(2), 0]]
    np.testing.assert_allclose(hessian, expected, atol=1e-12)


def test_eager_arrays_have_eager_gradients():
    x = mg.array(X)
    found = mg.grad(loss)(x, W)
    assert type(found) is mg.Array
    np.testing.assert_allclose(found.asnumpy(), DX)
    value, found = mg.value_and_grad(loss, 1)(x, mg.array(W))
    assert type(value) is mg.Array and type(found) is mg.Array


def test_without_compiling():
    with mg.eager():
        np.testing.assert_allclose(mg.grad(loss)(X, W), DX)
        assert mg.grad(mg.grad(cube))(2.0) == 12.0
        value, found = mg.value_and_grad(lambda p: (p["a"] ** 2).sum() * p["b"])(
            {"a": np.arange(3.0), "b": 2.0}
        )
        assert value == 10.0 and np.array_equal(found["a"], [0, 4, 8]) and found["b"] == 5.0
        assert type(mg.grad(loss)(mg.array(X), W)) is mg.Array
        with pytest.raises(ShapeError, match="one number"):
            mg.grad(lambda x: x * 2)(X)


def test_vjp_and_jvp_without_compiling():
    def both(d: Any) -> Any:
        return d["a"] ** 2 * d["b"], 3

    primals, tangents = {"a": np.arange(3.0), "b": 2.0}, {"a": np.ones(3), "b": None}

    def computed() -> Any:
        value, pullback = mg.vjp(both, primals)
        return (
            *(value, pullback((np.ones(3), None)), pullback((np.full(3, 2.0), None))),
            mg.jvp(both, (primals,), (tangents,)),
            mg.jvp(mg.grad(cube), (2.0,), (1.0,)),
            mg.grad(lambda x: mg.jvp(np.sin, (x,), (np.ones(3),))[1].sum())(np.arange(3.0)),
            (mg.vjp(lambda x: 3.0, 2.0)[1](1.0), mg.jvp(lambda x: 3.0, (2.0,), (1.0,))),
            (mg.grad(lambda x: x)(2.0), mg.jvp(lambda x: x, (2.0,), (1.0,))),
        )

    expected = computed()
    with mg.eager():
        found = computed()
    for left, right in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        np.testing.assert_allclose(left, right)


@pytest.mark.parametrize("array", [np.array, mg.array])
def test_writing_into_an_argument_without_compiling(array: Any):
    def first(x: Any) -> Any:
        x[0] = 5.0
        return (x * x).sum()

    def late(x: Any) -> Any:
        y = (x + 1) * 2
        x[:1] = y[1:] * x[1]
        return (x + y).sum()

    def computed(f: Any) -> Any:
        written = [array([1.0, 2.0]) for _ in range(3)]
        value, pullback = mg.vjp(f, written[1])
        tangent = mg.jvp(f, (written[2],), (array([1.0, 10.0]),))
        return mg.grad(f)(written[0]), value, pullback(1.0), tangent, written

    for f in (first, late):
        expected = computed(f)
        with mg.eager():
            found = computed(f)
        for left, right in zip(tree_leaves(found), tree_leaves(expected), strict=True):
            assert type(left) is type(right)
            np.testing.assert_allclose(np.asarray(left), np.asarray(right))


def test_numbers_stay_numbers_without_compiling():
    def computed() -> Any:
        return (
            mg.value_and_grad(lambda a: a * a)(3.0),
            mg.jvp(lambda a: a * a, (3.0,), (1.0,)),
            mg.value_and_grad(lambda a, x: (a * x).sum())(3.0, np.ones(2)),
            mg.value_and_grad(lambda a: (a * a, a > 1), has_aux=True)(3.0),
        )

    expected = tree_leaves(computed())
    with mg.eager():
        found = tree_leaves(computed())
    assert found == expected and list(map(type, found)) == list(map(type, expected))


def tree_leaves(thing: Any) -> list[Any]:
    if isinstance(thing, tuple | list):
        return [leaf for item in thing for leaf in tree_leaves(item)]
    if isinstance(thing, dict):
        return tree_leaves(list(thing.values()))
    return [] if thing is None else [thing]


def test_pullbacks_are_recorded():
    x, head = mg.array([1.0, 2.0]), mg.array([1.0, 3.0])
    x.attach_grad()
    head.attach_grad()
    with mg.autograd.record():
        value, pullback = mg.vjp(lambda x: x * x, x)
        total = (value * pullback(head)[0]).sum()  # 2 x^3 head
    total.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * np.array([1.0, 4.0]) * head.asnumpy())
    np.testing.assert_allclose(head.grad.asnumpy(), [2.0, 16.0])
    _, pullback = mg.vjp(lambda x: x**3, np.array([1.0, 2.0]))
    with mg.autograd.record():
        total = (pullback(head)[0] ** 2).sum()
    total.backward()
    np.testing.assert_allclose(head.grad.asnumpy(), [18.0, 864.0])


def test_functions_and_pullbacks_are_kept_while_they_are_used(monkeypatch: pytest.MonkeyPatch):
    def made(at: int) -> Any:
        def f(x: Any) -> Any:
            return x * at

        mg.vjp(f, 1.0)
        mg.jvp(f, (1.0,), (1.0,))
        return weakref.ref(f)

    first = made(0)
    assert first() is not None
    for at in range(derivatives.KEPT_FUNCTIONS):
        made(at)
    gc.collect()
    assert first() is None

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any:
            return x * x

    assert mg.vjp(Unhashable(), 3.0)[1](1.0) == (6.0,)
    monkeypatch.setattr(pullbacks, "KEPT", 2)
    found = [mg.vjp(np.sin, np.ones(size))[1] for size in range(1, 6)]
    for size, pullback in enumerate(found, 1):
        np.testing.assert_allclose(pullback(np.ones(size))[0], np.cos(np.ones(size)))


# ---- errors


@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_no_data_has_no_gradient(compiled: bool):
    def differentiated(data: Any) -> Any:
        if compiled:
            return mg.grad(lambda d: 3.0)(data)
        with mg.eager():
            return mg.grad(lambda d: 3.0)(data)

    for data in (None, "x"):
        with pytest.raises(DtypeError, match="is no data"):
            differentiated(data)
    assert differentiated({}) == {}


@pytest.mark.parametrize("compiled", [True, False])
def test_arrays_in_other_kinds_of_dicts_are_not_overlooked(compiled: bool):
    other = collections.OrderedDict(a=X)

    def run(function: Any, *args: Any, **options: Any) -> Any:
        with contextlib.nullcontext() if compiled else mg.eager():
            return mg.value_and_grad(function, **options)(*args)

    for structure in (other, {"b": other}, [collections.defaultdict(list, a=[X])]):
        with pytest.raises(UnsupportedError, match="do not see the arrays in a"):
            run(lambda s: 3.0, structure)
    with pytest.raises(UnsupportedError, match="OrderedDict"):
        run(lambda x: (x.sum(), collections.OrderedDict(y=x * 2)), X, has_aux=True)
    with pytest.raises(UnsupportedError, match="OrderedDict"):
        mg.stop_gradient(collections.OrderedDict(a=mg.array(X)))
    sizes = collections.OrderedDict(count=3)
    assert run(lambda s: (s["x"] * s["sizes"]["count"]).sum(), {"x": X, "sizes": sizes})[1] == {
        "x": pytest.approx(np.full_like(X, 3.0)),
        "sizes": None,
    }


def test_tangents_that_do_not_fit():
    for primals, tangents in (((X,), ()), (X, X), ((X, X), (X,))):
        with pytest.raises(SignatureError, match="tuples of equal lengths"):
            mg.jvp(np.sin, primals, tangents)


@pytest.mark.parametrize("derivative", [mg.vjp, lambda f, x: mg.jvp(f, (x,), (x,))])
def test_what_a_function_raises_is_raised(derivative: Any):
    def fails(x: Any) -> Any:
        raise KeyError("nothing there")

    with pytest.raises(KeyError, match="nothing there"):
        derivative(fails, np.ones(2))


def test_errors_that_teach():
    with pytest.raises(ShapeError, match=r"returns a f64\[4,3\]") as found:
        mg.grad(lambda x: x * 2.0)(X)
    assert "mg.vjp" in str(found.value) and "test_derivatives.py" in str(found.value)
    with pytest.raises(ShapeError, match="returns a tuple") as found:
        mg.grad(lambda x: (x.sum(), x))(X)
    assert "has_aux" in str(found.value)
    with pytest.raises(DtypeError, match=r"argument 0 of <lambda> is an i64\[3\]") as found:
        mg.grad(lambda x: x.sum())(np.arange(3))
    assert "astype" in str(found.value)
    with pytest.raises(DtypeError, match="an int") as found:
        mg.grad(cube)(2)
    assert "2.0" in str(found.value)
    with pytest.raises(DtypeError, match="leaf 1"):
        mg.grad(lambda p: p["a"] * p["n"])({"a": 1.0, "n": 2})
    with pytest.raises(DtypeError, match=r"returns an i64\[\]"):
        mg.grad(lambda x: x.sum().astype(int))(X)
    with pytest.raises(DtypeError, match="c128") as found:
        mg.grad(lambda x: x.real.sum())(X + 1j)
    assert "imaginary" in str(found.value)
    with pytest.raises(UnsupportedError, match="period") as found:
        mg.grad(lambda x: np.interp(x, [0.0, 1.0], [1.0, 2.0], period=3.0).sum())(X)
    assert "test_derivatives.py" in str(found.value)


def test_arguments_that_do_not_exist():
    with pytest.raises(OptionError, match="no argument 'scael'") as found:
        mg.grad(loss, "scael")
    assert "did you mean 'scale'" in str(found.value)
    with pytest.raises(OptionError, match="wrt=7"):
        mg.grad(loss, 7)(X, W)
    with pytest.raises(OptionError, match="wrt= names arguments"):
        mg.grad(loss, (1.5,))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="takes a function"):
        mg.grad(3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no argument 'b'"):
        mg.grad(lambda **named: named["a"], "b")(a=1.0)


# ---- vjp and jvp


def outputs(x: Any, w: Any) -> Any:
    return {"y": np.tanh(x @ w), "s": (x * 2.0).sum()}


def test_a_pullback():
    value, pullback = mg.vjp(outputs, X, W)
    assert np.array_equal(value["y"], np.tanh(X @ W))
    dx, dw = pullback({"y": np.ones((4, 5)), "s": 1.0})
    slope = 1 - np.tanh(X @ W) ** 2
    np.testing.assert_allclose(dx, slope @ W.T + 2)
    np.testing.assert_allclose(dw, X.T @ slope)
    dx, dw = pullback({"y": None, "s": 3.0})
    assert np.array_equal(dx, np.full((4, 3), 6.0)) and not dw.any()


def test_a_pullback_remembers_the_arguments():
    x = X.copy()
    _, pullback = mg.vjp(lambda x: (x * x).sum(), x)
    x[...] = 0
    np.testing.assert_allclose(pullback(1.0)[0], 2 * X)


def test_a_pullback_does_nothing_again(capsys: pytest.CaptureFixture[str]):
    rng = np.random.default_rng(0)

    def noisy(x: Any) -> Any:
        print("called")
        return x * rng.normal(size=3)

    for _ in range(2):
        value, pullback = mg.vjp(noisy, np.ones(3))
        for _ in range(2):
            assert np.array_equal(pullback(np.ones(3))[0], value)
    assert capsys.readouterr().out == "called\ncalled\n"


def test_cotangents_that_do_not_fit():
    _, pullback = mg.vjp(outputs, X, W)
    with pytest.raises(ShapeError, match="the cotangent"):
        pullback({"y": np.ones(5), "s": 1.0})
    with pytest.raises(SignatureError, match="the cotangent has the structure"):
        pullback([1.0, 2.0])
    with pytest.raises(ShapeError, match="a tangent"):
        mg.jvp(np.sin, (X,), (np.ones(2),))


def test_a_tangent():
    t, u = np.ones_like(X), 2 * np.ones_like(W)
    value, tangent = mg.jvp(outputs, (X, W), (t, u))
    assert np.array_equal(value["y"], np.tanh(X @ W))
    np.testing.assert_allclose(tangent["y"], (1 - value["y"] ** 2) * (t @ W + X @ u))
    assert tangent["s"] == 24.0
    assert mg.jvp(cube, (2.0,), (1.0,)) == (8.0, 12.0)
    _, tangent = mg.jvp(outputs, (X, W), (None, u))
    np.testing.assert_allclose(tangent["y"], (1 - value["y"] ** 2) * (X @ u))


def test_a_value_that_is_the_argument_itself():
    value, tangent = mg.jvp(lambda x: (x, x), (X,), (X,))
    assert np.array_equal(tangent[0], X) and np.array_equal(tangent[1], X)
    assert np.array_equal(value[0], X)
    assert np.array_equal(mg.vjp(lambda x: (x, x), X)[1]((X, X))[0], 2 * X)


def test_in_a_trace():
    @mg.jit
    def hessian_times(x: Any, v: Any) -> Any:
        return mg.jvp(mg.grad(lambda x: (x**3).sum()), (x,), (v,))[1]

    np.testing.assert_allclose(hessian_times(X, X), 6 * X * X)

    @mg.jit
    def both(x: Any) -> Any:
        y, pullback = mg.vjp(np.sin, x)
        return y, pullback(np.ones_like(x))[0]

    y, dx = both(X)
    assert np.array_equal(y, np.sin(X)) and np.array_equal(dx, np.cos(X))


@given(case=cases(most=10))
@LAWS
def test_the_dot_product_identity(case: Any):
    seed, steps, arguments = case
    function = program(seed, steps)
    rng = np.random.default_rng(0)
    tangents = tuple(rng.normal(size=np.shape(each)) for each in arguments)

    def vector(*args: Any) -> Any:
        return function(*args) * np.array([1.0, 2.0])

    value, tangent = mg.jvp(vector, arguments, tangents)
    again, pullback = mg.vjp(vector, *arguments)
    cotangent = rng.normal(size=2)
    np.testing.assert_allclose(value, again)
    right = sum(np.sum(t * g) for t, g in zip(tangents, pullback(cotangent), strict=True))
    np.testing.assert_allclose(np.sum(tangent * cotangent), right, rtol=1e-9, atol=1e-9)


def test_pullbacks_and_tangents_of_eager_arrays():
    value, pullback = mg.vjp(lambda x: np.sin(x), mg.array(X))
    (found,) = pullback(mg.array(np.ones_like(X)))
    assert type(value) is mg.Array and type(found) is mg.Array
    np.testing.assert_allclose(found.asnumpy(), np.cos(X))
    value, tangent = mg.jvp(np.sin, (mg.array(X),), (mg.array(X),))
    assert type(tangent) is mg.Array
    np.testing.assert_allclose(tangent.asnumpy(), np.cos(X) * X)


# ---- against others


@given(case=cases(most=10))
@settings(LAWS, max_examples=5)
def test_as_jax(case: Any):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    seed, steps, arguments = case
    every = tuple(range(len(arguments)))
    expected = jax.grad(program(seed, steps, jax.numpy), every)(*arguments)
    found = mg.grad(program(seed, steps), every)(*arguments)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def test_as_torch():
    torch = pytest.importorskip("torch")

    def ours(x: Any, w: Any, b: Any) -> Any:
        h = np.maximum(x @ w + b, 0.0 * b)
        z = h - h.max(axis=1, keepdims=True)
        e = np.exp(z)
        return -(np.log(e / e.sum(axis=1, keepdims=True)) * h).mean()

    b = np.linspace(-1, 1, 5)
    tensors = [torch.tensor(each, requires_grad=True) for each in (X, W, b)]
    x, w, bias = tensors
    h = torch.maximum(x @ w + bias, 0.0 * bias)
    z = h - h.amax(dim=1, keepdim=True)
    e = torch.exp(z)
    (-(torch.log(e / e.sum(dim=1, keepdim=True)) * h).mean()).backward()
    found = mg.grad(ours, (0, 1, 2))(X, W, b)
    for gradient, tensor in zip(found, tensors, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=1e-10, atol=1e-12)


# ---- what steers derivatives


def test_what_counts_as_a_constant():
    assert np.array_equal(mg.grad(lambda x: (mg.stop_gradient(x) * x).sum())(X), X)
    assert mg.grad(lambda x: mg.stop_gradient({"a": x, "b": 1})["a"] + 0 * x)(2.0) == 0.0
    assert mg.stop_gradient(X) is X


def dense(x: Any, w: Any) -> Any:
    return np.tanh(np.sin(x @ w) * np.exp(-(x @ w)))


def deep(layer: Any, count: int = 8) -> Any:
    def run(x: Any, w: Any) -> Any:
        for _ in range(count):
            x = layer(x, w)
        return (x * x).sum()

    return run


def test_recomputing_gives_the_same_and_needs_less_memory():
    x, w = (np.random.default_rng(0).normal(size=(64, 64)) / 8 for _ in range(2))
    plain = mg.grad(deep(dense), (0, 1))
    saving = mg.grad(deep(mg.checkpoint(dense)), (0, 1))
    for a, b in zip(plain(x, w), saving(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)
    before, after = plain.plan.peak_bytes, saving.plan.peak_bytes
    assert after < 0.6 * before
    assert saving.memory_report(x, w).measured < 0.7 * plain.memory_report(x, w).measured
    assert not any(node.op.name == "call" for node in saving.graph().nodes)


def test_recomputing_does_nothing_again(capsys: pytest.CaptureFixture[str]):
    rng = np.random.default_rng(5)

    @mg.checkpoint
    def dropping(x: Any) -> Any:
        print("called")
        kept = rng.random(3) < 0.5
        y = np.sin(x) * kept
        return np.exp(y) * x

    found = mg.grad(lambda x: dropping(x).sum())(np.arange(1.0, 4.0))
    assert capsys.readouterr().out == "called\n"
    x, kept = np.arange(1.0, 4.0), np.random.default_rng(5).random(3) < 0.5
    y = np.sin(x) * kept
    np.testing.assert_allclose(found, np.exp(y) * (1 + x * np.cos(x) * kept))
    assert np.array_equal(dropping(np.zeros(3)), np.zeros(3))


def test_recomputing_what_a_closure_reads_and_twice():
    @mg.checkpoint
    def layer(x: Any) -> Any:
        return np.sin(x @ w) * x

    w = np.eye(3) * 2

    def f(v: Any) -> Any:
        return np.sum(mg.checkpoint(lambda x: np.tanh(x * v) * x)(np.ones(3)))

    check_grad(lambda x: layer(layer(x)).sum(), X)
    np.testing.assert_allclose(mg.grad(f)(0.5), 3 * (1 - np.tanh(0.5) ** 2))
    second = mg.grad(lambda x: mg.grad(lambda x: (layer(x) * x).sum())(x).sum())
    plain = mg.grad(lambda x: mg.grad(lambda x: (np.sin(x @ w) * x * x).sum())(x).sum())
    np.testing.assert_allclose(second(X), plain(X))


def test_a_gradient_of_the_users_own():
    @mg.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 1.0, lambda g: np.clip(g, -0.1, 0.1)

    x = np.array([1.0, 0.01, -3.0])
    assert np.array_equal(clipped(x), x)
    found = mg.grad(lambda x: (clipped(x) ** 2).sum())
    assert np.array_equal(found(x), [0.1, 0.02, -0.1])
    assert np.array_equal(mg.jit(found)(x), [0.1, 0.02, -0.1])
    assert not any(node.op.name == "call" for node in found.graph().nodes)


def test_a_gradient_of_the_users_own_twice():
    @mg.custom_gradient
    def strange(x: Any) -> Any:
        y = x * x * x
        return y, lambda g: g * (3 * x * x + 7 * y)

    assert mg.grad(strange)(2.0) == 12 + 7 * 8
    assert mg.grad(mg.grad(strange))(2.0) == 12 + 7 * 12
    assert mg.jvp(strange, (2.0,), (1.0,))[1] == 68


def test_several_arguments_and_results_of_the_users_own():
    @mg.custom_gradient
    def both(x: Any, p: Any, n: int) -> Any:
        h = x * p["w"]
        return (h, h.sum()), lambda g: (g[0] * 2, {"w": g[1] + 0 * p["w"]}, None)

    def f(x: Any, w: Any) -> Any:
        a, b = both(x, {"w": w}, 3)
        return a.sum() + 5 * b

    dx, dw = mg.grad(f, (0, 1))(np.ones(2), np.ones(2))
    assert np.array_equal(dx, [2, 2]) and np.array_equal(dw, [5, 5])


def test_a_gradient_of_the_users_own_that_is_recomputed():
    @mg.custom_gradient
    def doubled(x: Any) -> Any:
        y = np.sin(x)
        return y, lambda g: 2 * g * np.cos(x) + 0 * y

    layer = mg.checkpoint(lambda x: np.exp(doubled(x)))
    found = mg.grad(lambda x: layer(x).sum())(X)
    np.testing.assert_allclose(found, 2 * np.cos(X) * np.exp(np.sin(X)))


def test_what_a_function_with_its_own_gradient_writes():
    @mg.custom_gradient
    def counted(x: Any, calls: Any) -> Any:
        calls += 1.0
        return x * 2.0, lambda g: (g * 2.0, None)

    calls = np.zeros(1)
    assert np.array_equal(mg.grad(lambda x: counted(x, calls).sum())(np.ones(2)), [2, 2])
    assert calls[0] == 1.0


def test_what_a_function_with_its_own_gradient_reads_from_outside():
    @mg.custom_gradient
    def scaled(x: Any, s: Any = 1.0) -> Any:
        return x * s, lambda g: g * s

    def closed(w: Any, stop: bool = False) -> Any:
        factor = mg.stop_gradient(w) if stop else w

        @mg.custom_gradient
        def product(x: Any) -> Any:
            return x * factor, lambda g: g * factor

        return product(np.ones(2)).sum()

    @mg.custom_gradient
    def both(x: Any, s: Any) -> Any:
        return x * s, lambda g: (g * s, (g * x).sum())

    def by_name(x: Any, s: Any) -> Any:
        return scaled(x, s=s).sum()

    assert np.array_equal(mg.grad(by_name)(np.ones(2), 3.0), [3, 3])
    assert np.array_equal(mg.grad(lambda x: scaled(x).sum())(np.ones(2)), [1, 1])
    assert np.array_equal(mg.grad(closed)(np.ones(2), stop=True), [0, 0])
    assert mg.grad(lambda x, s: both(x, s=s).sum(), 1)(np.ones(2), 3.0) == 2
    with pytest.raises(UnsupportedError, match="brings none by") as found:
        mg.grad(by_name, 1)(np.ones(2), 3.0)
    assert "scaled(x, s=s)" in str(found.value)
    with pytest.raises(UnsupportedError, match="brings none by"):
        mg.grad(closed)(np.ones(2))
    with pytest.raises(UnsupportedError, match="brings none by"):
        on_tape(lambda w: closed(w), np.ones(2))
    assert np.array_equal(on_tape(lambda x: scaled(x, s=3.0).sum(), np.ones(2)), [3, 3])
    assert np.array_equal(on_tape(lambda x: scaled(x).sum(), np.ones(2)), [1, 1])


def test_wrong_gradients_of_the_users_own():
    with pytest.raises(SignatureError, match="returns no pair"):
        mg.custom_gradient(lambda x: x)(X)
    short = mg.custom_gradient(lambda x: (x * 1.0, lambda g: g[0]))
    with pytest.raises(ShapeError, match="the gradient of"):
        mg.grad(lambda x: short(x).sum())(X)


def test_the_rules_of_a_layer_against_differences():
    def layer(x: Any, p: Any) -> Any:
        h = x @ p["w"] + p["b"]
        mean = h.mean(axis=-1, keepdims=True)
        scaled = (h - mean) / np.sqrt(((h - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-3)
        return np.where(scaled > 0.05, scaled, np.expm1(scaled))

    check_grad(layer, X, {"w": W, "b": np.linspace(-1, 1, 5)}, rtol=1e-4)


# ---- check_grad


def test_check_grad_shows_the_worst_element():
    @mg.custom_gradient
    def wrong(x: Any) -> Any:
        return x * x, lambda g: g * x

    with pytest.raises(AssertionError, match=r"3 of 4 elements differ.*\n.*gradient by x\[1, 1\]"):
        check_grad(wrong, np.arange(4.0).reshape(2, 2))
    with pytest.raises(DtypeError, match="no argument"):
        check_grad(cube, 3)
    check_grad(lambda x, n: x**n, np.float32(1.5), 3)
    check_grad(lambda p: p["a"] * p["b"][0], {"a": 2.0, "b": [X, "text", None]})


# ---- on the eager tape


def on_tape(function: Any, x: Any) -> Any:
    given = mg.array(x)
    given.attach_grad()
    with mg.autograd.record():
        y = function(given)
    y.backward()
    return given.grad.asnumpy()


@mg.custom_gradient
def tripled(x: Any) -> Any:
    return x * 1.0, lambda g: 3 * g


@pytest.mark.parametrize("compiled", [True, False])
def test_the_tape_knows_what_steers_derivatives(compiled: bool):
    def run() -> None:
        assert np.array_equal(on_tape(lambda x: tripled(x).sum(), X), np.full((4, 3), 3.0))
        layer = mg.checkpoint(lambda x: np.tanh(np.sin(x) * x))
        expected = mg.grad(lambda x: np.tanh(np.sin(x) * x).sum())(X)
        np.testing.assert_allclose(on_tape(lambda x: layer(x).sum(), X), expected)
        stopped = on_tape(lambda x: (mg.stop_gradient(x) * x).sum(), X)
        assert np.array_equal(stopped, X)

    if compiled:
        run()
    else:
        with mg.eager():
            run()
            assert np.array_equal(mg.grad(lambda x: tripled(x).sum())(X), np.full((4, 3), 3.0))


def test_the_tape_runs_them_as_the_function_is_compiled():
    @mg.checkpoint
    @mg.jit(backend="interpret", fast_math=True)
    def layer(x: Any) -> Any:
        return np.sin(x) * x

    assert np.array_equal(on_tape(lambda x: layer(x).sum(), X).shape, X.shape)
    options = layer._compiled.options
    assert options.backend == "interpret" and options.fast_math


def test_methods_with_a_gradient_of_their_own():
    class Scale:
        factor = 2.0

        @mg.custom_gradient
        def apply(self, x: Any) -> Any:
            return x * self.factor, lambda g: (None, g * 10)

        @mg.checkpoint
        def twice(self, x: Any) -> Any:
            return np.sin(x) * self.factor

    scale = Scale()
    assert np.array_equal(scale.apply(X), 2 * X)
    assert np.array_equal(mg.grad(lambda x: scale.apply(x).sum())(X), np.full((4, 3), 10.0))
    np.testing.assert_allclose(mg.grad(lambda x: scale.twice(x).sum())(X), 2 * np.cos(X))


def test_what_is_recomputed_can_be_seen_from_outside():
    def f(x: Any) -> Any:
        kept = []

        @mg.checkpoint
        def layer(x: Any) -> Any:
            y = np.sin(x)
            kept.append(y * 2)
            return np.exp(y) * x

        z = layer(layer(x)).sum()
        return z + (kept[0] * kept[1]).sum(), kept[1]

    def plain(x: Any) -> Any:
        a = np.exp(np.sin(x)) * x
        return (np.exp(np.sin(a)) * a).sum() + (4 * np.sin(x) * np.sin(a)).sum()

    found, kept = mg.grad(f, has_aux=True)(X)
    np.testing.assert_allclose(found, mg.grad(plain)(X))
    np.testing.assert_allclose(kept, 2 * np.sin(np.exp(np.sin(X)) * X))


def test_mistakes_in_the_function_are_those_of_python():
    for derivative in (mg.grad, mg.value_and_grad):
        with pytest.raises(AttributeError, match="'float' object has no attribute 'sum'"):
            derivative(lambda w: (w * 2).sum())(1.0)
