"""Independent parts: which are found, which are not, and that the rest stays in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph import backends
from minigraph.ir import Graph, verify
from minigraph.ops import evaluate
from minigraph.passes import Recorder
from minigraph.passes.parallel import LEAST_NS, parallel

LONG = 500_000


def run(graph: Graph) -> tuple[Graph, str]:
    recorder = Recorder.after(graph)
    after = parallel(graph, recorder)
    verify(after)
    return after, "; ".join(event.why for event in recorder.take_events())


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def same(a: Graph, b: Graph, *arguments: Any) -> None:
    copies = [np.array(argument) for argument in arguments]
    for x, y in zip(evaluate(a, arguments), evaluate(b, copies), strict=True):
        np.testing.assert_array_equal(x, y)
    for x, y in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(x, y)


def long(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.normal(size=LONG)


def test_two_towers_with_a_common_foot(rng: np.random.Generator) -> None:
    def towers(x: Any) -> Any:
        foot = x * 2.0
        left, right = np.sort(foot), np.sort(-foot)
        left = left - left.max()
        return np.exp(left) / np.exp(left).sum() + right

    x = long(rng)
    graph = mg.trace(towers, x)
    after, why = run(graph)
    (node,) = [node for node in after.nodes if node.op.name == "parallel"]
    sizes = [len(part.nodes) for _, part in node.regions]
    assert sizes == [7, 2] and "2 independent parts" in why
    assert names(after) == ["const", "multiply", "parallel", "add"]
    same(graph, after, x)


def test_results_count_as_read_together(rng: np.random.Generator) -> None:
    x, y, z = long(rng), long(rng), long(rng)
    graph = mg.trace(lambda x, y, z: (np.sort(x), np.sort(y), np.sort(z)), x, y, z)
    after, why = run(graph)
    assert names(after) == ["parallel"] and "3 independent parts" in why
    same(graph, after, x, y, z)


def test_a_constant_goes_where_it_is_read(rng: np.random.Generator) -> None:
    x, y = long(rng), long(rng)
    graph = mg.trace(lambda x, y: np.sort(x * 2.0) + np.sort(y * 2.0), x, y)
    after, _ = run(graph)
    assert names(after) == ["parallel", "add"]
    same(graph, after, x, y)


def test_what_is_short_stays_and_says_so() -> None:
    graph = mg.trace(lambda x, y: np.sort(x) + np.sort(y), np.ones(500), np.ones(500))
    after, why = run(graph)
    assert after is graph
    assert "the shorter of two independent parts takes" in why and str(LEAST_NS // 1000) in why


def test_explain_says_what_runs_in_parallel_and_why_not(rng: np.random.Generator) -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sort(x) + np.sort(y)

    for backend in ("python", "numba"):
        if backends.availability()[backend]:
            continue
        compiled = mg.jit(f, backend=backend)
        short, x, y = np.ones(500), long(rng), long(rng)
        np.testing.assert_array_equal(compiled(short, short), f(short, short))
        assert "\nparallel: the shorter of two independent parts takes" in compiled.explain()
        np.testing.assert_array_equal(compiled(x, y), f(x, y))
        assert "2 independent parts, of about" in compiled.explain()
        assert "run_together([part, part_1])" in compiled.source()
        alone = mg.jit(f, backend=backend, num_threads=1)
        alone(x, y)
        assert "run_together" not in alone.source()


def test_a_chain_has_no_parts(rng: np.random.Generator) -> None:
    graph = mg.trace(lambda x: np.sort(np.exp(np.sort(x))), long(rng))
    after, why = run(graph)
    assert after is graph and not why


def test_what_may_raise_or_print_keeps_its_place(rng: np.random.Generator) -> None:
    def f(x: Any, y: Any, at: Any) -> Any:
        a = np.sort(x)[at]
        print("between")
        return a + np.sort(y)[at]

    at = np.arange(LONG)
    graph = mg.trace(f, long(rng), long(rng), at)
    after, _ = run(graph)
    assert after is graph


def test_effects_stay_in_order(
    rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    def f(x: Any, y: Any) -> Any:
        print("first", x[0])
        a = np.sort(x)
        print("second", a[0])
        b = np.sort(y)
        print("third", b[0])
        return a + b

    x, y = long(rng), long(rng)
    graph = mg.trace(f, x, y)
    after, _ = run(graph)
    assert "parallel" in names(after)
    evaluate(graph, [x, y])
    expected = capsys.readouterr().out
    evaluate(after, [x, y])
    assert capsys.readouterr().out == expected


def test_what_reads_a_written_argument_stays_before_the_write(rng: np.random.Generator) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        a = np.sort(x)
        x[0] = 7.0
        return a, np.sort(x), np.sort(y), np.sort(z)

    x, y, z = long(rng), long(rng), long(rng)
    graph = mg.trace(f, x, y, z)
    after, _ = run(graph)
    assert "parallel" in names(after)
    same(graph, after, x, y, z)


def test_groups_that_would_wait_for_each_other_are_not_both_made(rng: np.random.Generator) -> None:
    def f(x: Any, y: Any, u: Any, v: Any) -> Any:
        b, c = np.sort(x), np.sort(y)
        a, d = np.sort(c + u), np.sort(b + v)
        return (a * b).sum(), (c * d).sum()

    given = [long(rng) for _ in range(4)]
    graph = mg.trace(f, *given)
    after, _ = run(graph)
    same(graph, after, *given)


def test_a_second_run_changes_nothing(rng: np.random.Generator) -> None:
    graph = mg.trace(lambda x, y: np.sort(x) + np.sort(y), long(rng), long(rng))
    after, _ = run(graph)
    assert run(after)[0] is after


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_many_groups_at_once() -> None:
    def f(x: Any) -> Any:
        for turn in range(300):
            x = np.sort(x + turn) + np.sort(x - turn)
        return x

    graph = mg.trace(f, mg.Spec((LONG,), "float64"))
    after, _ = run(graph)
    assert names(after).count("parallel") == 300
