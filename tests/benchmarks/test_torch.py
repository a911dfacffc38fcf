"""PyTorch's columns: each computes each family right, and shows what was made of it."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from answering import answer, case_of, one_of_each_family, texts_of_lines

pytest.importorskip("torch", reason="PyTorch is not installed")

from benchmarks.runners.base import Form, NotWritten
from benchmarks.runners.torch import CELLS, COMPILE, EAGER, FREEZE, SCRIPT, WITH_GRAD, Torch

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")

MODULES = "mlp-1 layer_norm lstm-1 gru-1 encoder"


@functools.cache
def runner(column: str) -> Torch:
    found = Torch(column, 1)
    found.load()
    return found


@pytest.fixture(autouse=True)
def threads_as_before():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def forms(column: str, name: str) -> dict[str, Form]:
    prepared = runner(column).prepare(case_of(name))
    with prepared.around():
        for _ in range(3):
            prepared.run()
        return {form.title: form for form in prepared.forms()}


def lines_of(form: Form) -> dict[str, str]:
    return texts_of_lines(form.lines, runner(SCRIPT).natural.__file__, form.text)


@pytest.mark.parametrize(
    "name", [each.name for each in one_of_each_family() if each.dtype and each.size > 1]
)
def test_eager_agrees(name: str):
    assert answer(runner(EAGER), name).wrong == ""


@pytest.mark.parametrize("name", [each.name for each in one_of_each_family()])
def test_scripts_agree(name: str):
    assert answer(runner(SCRIPT), name).wrong == ""


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (EAGER, "mlp-1 lstm-1 gru-1"),
        (WITH_GRAD, "mlp-1"),
        (CELLS, "lstm-1 gru-1 lstm-training gru-training"),
        (FREEZE, MODULES),
    ],
)
def test_other_columns_agree(column: str, names: str):
    for name in names.split():
        assert answer(runner(column), name).wrong == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", "mlp-1 chain-1000 layer_norm encoder lstm-1 mlp-training-sgd encoder-training".split()
)
def test_torch_compile_agrees(name: str):
    assert answer(runner(COMPILE), name).wrong == ""


@pytest.mark.parametrize(
    ("column", "name", "why"),
    [
        (WITH_GRAD, "softmax", "with the MLP"),
        (CELLS, "mlp-1", "no recurrent layer"),
        (FREEZE, "mlp-training-sgd", "cannot learn"),
        (FREEZE, "chain-1000", "no parameters"),
        (EAGER, "collatz", "no tensor"),
        (COMPILE, "fancy_func", "no tensor"),
    ],
)
def test_what_is_not_written_says_why(column: str, name: str, why: str):
    with pytest.raises(NotWritten, match=why):
        runner(column).prepare(case_of(name))


def test_inference_takes_no_notes_for_gradients():
    def result(column: str) -> Any:
        prepared = runner(column).prepare(case_of("mlp-1"))
        with prepared.around():
            return prepared.run()

    assert result(WITH_GRAD).requires_grad and not result(EAGER).requires_grad


def test_the_threads_are_those_asked_for():
    assert runner(EAGER).threads_used() == "torch.get_num_threads() 1"


def test_the_graphs_of_a_script_lie_under_the_users_lines():
    before, after = forms(SCRIPT, "fancy_func-1000").values()
    assert (before.stage, after.stage, before.nodes, after.nodes) == ("before", "after", 3, 3)
    for form in (before, after):
        found = lines_of(form)
        assert "%e.1 : Tensor = aten::add(%a.1, %b.1" in found["e = add(a, b)"]
        assert found["return a + b"].count("aten::add") == 3


def test_freezing_shows_in_the_graph():
    before, after = forms(FREEZE, "mlp-1").values()
    assert "prim::GetAttr" in before.text and "prim::GetAttr" not in after.text
    assert "aten::relu" in lines_of(after)["h = torch.relu(self.first(x))"]


def test_a_training_step_and_a_loop_show_their_graphs():
    for name in ("mlp-training-sgd", "collatz"):
        assert [form.stage for form in forms(SCRIPT, name).values()] == ["before", "after"]


def test_eager_has_nothing_to_show():
    assert forms(EAGER, "mlp-1") == {}


@pytest.mark.slow
def test_torch_compile_shows_its_graph_and_code():
    found = forms(COMPILE, "fancy_func-1000")
    graph, code = found["FX graph"], found["Inductor's code"]
    assert (graph.nodes, code.nodes) == (3, 1)
    assert 'g: "f32[10]" = e + f' in lines_of(graph)["return a + b"]
    assert "cpp_fused_add" in code.text
