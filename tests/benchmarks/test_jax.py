"""JAX's column: it computes each family right, and shows what was made of it."""

from __future__ import annotations

import functools

import pytest
from answering import answer, case_of, one_of_each_family, texts_of_lines

pytest.importorskip("jax", reason="JAX is not installed")

from benchmarks import formulas
from benchmarks.runners.base import Form
from benchmarks.runners.jax import Jax

COLUMN = "JAX jit"


@functools.cache
def runner() -> Jax:
    found = Jax(COLUMN, 1)
    found.load()
    return found


@pytest.fixture(autouse=True)
def precision_as_before():
    import jax

    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


def forms(name: str) -> list[Form]:
    prepared = runner().prepare(case_of(name))
    prepared.run()
    return list(prepared.forms())


@pytest.mark.parametrize("name", [each.name for each in one_of_each_family()])
def test_results_agree(name: str):
    assert answer(runner(), name).wrong == ""


def test_a_step_of_training_gives_its_state_away():
    prepared = runner().prepare(case_of("mlp-training-sgd"))
    losses = [float(prepared.run()) for _ in range(3)]
    assert losses == sorted(losses, reverse=True)
    assert "tf.aliasing_output" in prepared.forms()[1].text


def test_double_precision_is_for_workloads_that_ask_for_it():
    import jax

    for name, wanted in {"black_scholes": True, "chain-1000": False}.items():
        runner().prepare(case_of(name))
        assert jax.config.jax_enable_x64 is wanted


def test_the_forms_lie_under_the_users_lines():
    jaxpr, stablehlo, hlo = forms("mlp-1")
    assert [form.stage for form in (jaxpr, stablehlo, hlo)] == ["before", "before", "after"]
    line = "h = xp.maximum(x @ w1 + b1, 0)"
    for form, operation in ((jaxpr, "= max "), (stablehlo, "stablehlo.maximum"), (hlo, "maximum(")):
        found = texts_of_lines(form.lines, formulas.__file__, form.text)
        assert operation in found[line] and "loc(" not in form.text
    assert "dot_general" in texts_of_lines(jaxpr.lines, formulas.__file__, jaxpr.text)[line]


def test_a_fusion_counts_as_one_operation():
    jaxpr, _, hlo = forms("chain-1000")
    assert (jaxpr.nodes, hlo.nodes) == (9, 1)


def test_loops_show_their_bodies():
    jaxpr, _, hlo = forms("collatz")
    assert "while[" in jaxpr.text and "while(" in hlo.text
