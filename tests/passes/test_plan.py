"""Memory: lifetimes, takeovers, what they need, and that nothing alive is ever overwritten."""

from __future__ import annotations

import copy
import importlib
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from passes.laws import arguments_of, bits, graph_of, graphs, refusals
from passes.test_docstrings import without_alignment

from minigraph.ir import ArrayType, Dim, Graph, Ids, Node, Plan, Value, verify
from minigraph.ops import evaluate, evaluate_node
from minigraph.passes import Recorder, liveness, optimize, plan, plan_of

pytestmark = pytest.mark.filterwarnings("ignore:Casting complex")
LAWS = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])

TEXTBOOK = """\
graph f() {
  %one = ones {shape=(10,)} : f64[10]
  %two = const 2 : int
  %b = multiply %one, %two : f64[10]
  %c = multiply %b, %one : f64[10]
  %k = const 1 : int
  %d = add %c, %k : f64[10]
  return %d
}"""


def planned(text: str, **options: Any) -> tuple[Plan, dict[str, Value], Recorder]:
    graph = graph_of(text)
    verify(graph)
    recorder = Recorder(Ids.after(graph), **options)
    return plan(graph, recorder), {value.name: value for value in graph.values()}, recorder


def names(plan: Plan) -> dict[str, str]:
    return {taker.name: taken.name for taker, taken in plan.reuses.items()}


# ---- the textbook


def test_the_textbook_program_needs_half() -> None:
    traced = graph_of("""\
        graph f() {
          %a = ones {shape=(10,)} : f64[10]
          %one = ones {shape=(10,)} : f64[10]
          %two = const 2 : int
          %b = multiply %one, %two : f64[10]
          %c = multiply %b, %a : f64[10]
          %k = const 1 : int
          %d = add %c, %k : f64[10]
          return %d
        }""")
    graph = optimize(traced, ("cse", "dce")).graph
    found = plan_of(graph)
    assert (found.naive_bytes, found.peak_bytes, found.lower_bytes) == (320, 160, 160)
    assert names(found) == {"c": "b", "d": "c"}
    assert found.live_bytes == (80, 80, 160, 80, 80, 80)
    assert found.slot_bytes == (80, 80)


def test_the_docstring_shows_it() -> None:
    doc = importlib.import_module("minigraph.passes.plan").__doc__ or ""
    (block,) = re.findall(r"^    graph .*?^    \}$", doc, re.DOTALL | re.MULTILINE)
    found = plan_of(graph_of(block))
    assert f"needs {found.naive_bytes} bytes" in doc and f"{found.peak_bytes} under" in doc
    assert without_alignment("%2 = multiply %0, %1 : f64[10]") in without_alignment(block)
    assert names(found) == {"3": "2", "5": "3"}


def test_without_reuse_each_value_has_memory_of_its_own() -> None:
    graph = graph_of(TEXTBOOK)
    found = plan(graph, Recorder.after(graph), reuse=False)
    assert not found.reuses and not found.in_place and not found.why_not
    assert found.slot_bytes == (80, 80, 80, 80)
    assert found.peak_bytes > plan_of(graph).peak_bytes


# ---- liveness


def test_a_view_keeps_its_base_alive() -> None:
    graph = graph_of("""\
        graph f(%x: f64[2,3]) {
          %a = exp %x : f64[2,3]
          %t = transpose %a {axes=(1, 0)} : f64[3,2]
          %b = sqrt %x : f64[2,3]
          %r = reshape %t {shape=(6,)} : f64[6]
          %c = negative %r : f64[6]
          return %c
        }""")
    values = {value.name: value for value in graph.values()}
    lives = liveness(graph)
    assert lives.root[values["r"]] is values["a"]
    assert lives.last_read[values["a"]] == 1 and lives.last_seen[values["a"]] == 4
    assert lives.last_read[values["b"]] == 2 and lives.last_read[values["c"]] == 5


# ---- takeovers and refusals


def test_a_dead_buffer_of_the_same_type_is_taken_over() -> None:
    found, _, _ = planned("""\
        graph f(%x: f64[3], %y: f64[3]) {
          %a = exp %x : f64[3]
          %b = matmul %a, %y : f64[]
          %c = sqrt %y : f64[3]
          return (%b, %c)
        }""")
    assert names(found) == {"c": "a"} and not found.in_place
    assert [[value.name for value in dies] for dies in found.dies] == [["x"], [], ["y", "a"]]
    assert found.peak_bytes == 24 == found.lower_bytes


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("%r = exp %x : f64[2,3]", "IS_INPUT"),
        (
            "%a = exp %x : f64[2,3]\n%r = sqrt %a : f64[2,3]\n%s = add %a, %r : f64[2,3]",
            "MULTI_USE",
        ),
        (
            "%a = exp %x : f64[2,3]\n%b = slice %a {index=[::-1]} : f64[2,3]\n"
            "%r = add %a, %b : f64[2,3]",
            "VIEW",
        ),
        (
            "%a = exp %x : f64[2,3]\n%b = slice %a {index=[::-1]} : f64[2,3]\n"
            "%r = sqrt %b : f64[2,3]",
            "VIEW",
        ),
        (
            "%c = const [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]] : f64[2,3]\n%r = sqrt %c : f64[2,3]",
            "IS_INPUT",
        ),
        (
            "%a = exp %x : f64[2,3]\n%s = sum %a {axis=(0,)} : f64[3]\n%r = isnan %x : bool[2,3]\n"
            "%t = isfinite %s : bool[3]\n%u = logical_or %t, %r : bool[2,3]",
            "DTYPE",
        ),
        (
            "%a = exp %x : f64[2,3]\n%s = sum %a {axis=(0,)} : f64[3]\n%r = sqrt %s : f64[3]\n"
            "%t = add %r, %s : f64[3]",
            "MULTI_USE",
        ),
        (
            "%a = exp %x : f64[2,3]\n%s = sum %a {axis=(0, 1)} : f64[]\n"
            "%t = transpose %x {axes=(1, 0)} : f64[3,2]\n"
            "%r = sqrt %t : f64[3,2]\n%z = add %r, %s : f64[3,2]",
            "IS_INPUT",
        ),
    ],
)
def test_why_a_value_gets_a_new_buffer(body: str, code: str) -> None:
    last = body.split("\n")[-1].split(" ")[0]
    kind = body.split("\n")[-1].split(": ")[-1]
    lines = "\n  ".join(body.split("\n"))
    found, values, recorder = planned(f"graph f(%x: f64[2,3]) {{\n  {lines}\n  return {last}\n}}")
    assert kind and values["r"] not in found.reuses
    assert f" bytes), new ({found.why_not[values['r']]})" in str(found)
    codes = {e.values[0].name: e.code for e in recorder.take_events() if e.kind == "refuse"}
    assert codes["r"] == code


def test_an_output_is_never_overwritten() -> None:
    found, values, recorder = planned("""\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = sqrt %a : f64[3]
          return (%a, %b)
        }""")
    assert not found.reuses and ("plan.new_buffer", "IS_OUTPUT") in refusals(recorder.take_events())
    assert all(values["a"] not in dies for dies in found.dies)


def test_matmul_takes_a_free_buffer_but_not_its_own_operand() -> None:
    found, values, _ = planned("""\
        graph f(%x: f64[3,3]) {
          %a = exp %x : f64[3,3]
          %b = matmul %a, %x : f64[3,3]
          %c = matmul %b, %x : f64[3,3]
          return %c
        }""")
    assert names(found) == {"c": "a"} and not found.in_place
    assert "b" in {value.name for value in found.why_not}
    assert found.slot[values["a"]] == found.slot[values["c"]] != found.slot[values["b"]]


def test_update_stores_into_a_dead_base() -> None:
    found, _, _ = planned("""\
        graph f(%v: f64[]) {
          %a = zeros {shape=(4,)} : f64[4]
          %b = update %a, %v {index=[0]} : f64[4]
          %c = update %b, %v {index=[1]} : f64[4]
          return %c
        }""")
    assert names(found) == {"b": "a", "c": "b"} and found.peak_bytes == 32


def test_update_of_a_view_of_itself_copies() -> None:
    found, _, _ = planned("""\
        graph f(%x: f64[4]) {
          %a = exp %x : f64[4]
          %v = slice %a {index=[::-1]} : f64[4]
          %b = update %a, %v {index=[:]} : f64[4]
          return %b
        }""")
    assert not found.reuses


def test_another_order_in_memory_is_not_taken_over() -> None:
    text = """\
        graph f(%x: f64[3,3]) {
          %a = exp %x : f64[3,3]
          %s = sum %a {axis=(0, 1)} : f64[]
          %t = transpose %x {axes=(1, 0)} : f64[3,3]
          %b = sqrt %t : f64[3,3]
          %c = add %b, %s : f64[3,3]
          return %c
        }"""
    found, _, recorder = planned(text)
    assert names(found) == {"c": "b"}
    assert {event.code for event in recorder.take_events()} == {"IS_INPUT"}
    # Of an input that is not in C order nothing is known.
    graph = graph_of(text)
    strided = Recorder(Ids.after(graph), strided=graph.inputs)
    assert names(plan(graph, strided)) == {"c": "b"}


def test_numbers_and_constants_have_no_buffers() -> None:
    found, _, _ = planned("""\
        graph f(%x: f64[], %n: int) {
          %a = exp %x : f64[]
          %c = const [1.0, 2.0] : f64[2]
          %m = add %n, %n : int
          return (%a, %c, %m)
        }""")
    assert not found.slot and found.naive_bytes == 0 == found.peak_bytes


def test_what_a_region_returns_lies_in_memory_of_its_own() -> None:
    """Or in that of an operand which nothing else needs."""
    found, _, _ = planned("""\
        graph f(%x: f64[3], %c: bool) {
          %a = exp %x : f64[3]
          %b = exp %x : f64[3]
          %r = if %c, %a, %b {
            then=graph then(%a: f64[3], %b: f64[3]) {
              %z = add %a, %b : f64[3]
              return %z
            },
            otherwise=graph otherwise(%a: f64[3], %b: f64[3]) {
              return %a
            }} : f64[3]
          %d = add %r, %b : f64[3]
          return %d
        }""")
    assert names(found) == {"r": "a", "d": "r"}
    assert {value.name for value in found.given} == {"a"}
    assert found.peak_bytes == 48 == found.lower_bytes
    (then, otherwise) = found.regions.values()
    assert names(then) == {"z": "a"} and not otherwise.reuses


def test_what_a_loop_carries_is_written_in_place() -> None:
    text = """\
        graph f(%n: int) {
          %x.0 = ones {shape=(1000,)} : f64[1000]
          %x.3, %y = scan %x.0, %x.0 {carried=1, scanned=1, length=1000,
            body=graph body(%x: f64[1000], %v: f64[]) {
              %0 = const 0 : int
              %x.1 = update %x, %v, %0 {index=[%]} : f64[1000]
              %x.2 = negative %x.1 : f64[1000]
              return (%x.2, %v)
            }} : f64[1000], f64[1000]
          return %y
        }"""
    found, _, _ = planned(text)
    assert not found.given and not found.reuses  # what is scanned is read at each turn
    (body,) = found.regions.values()
    assert names(body) == {"x.1": "x", "x.2": "x.1"} and body.peak_bytes == 0
    assert str(found).splitlines()[-3:] == [
        "body of %x.3, %y = scan %x.0, %x.0:",
        "  buffer 0: %x, %x.1, %x.2 (8000 bytes)",
        "  peak 0 bytes; without reuse 0, at least 0",
    ]
    assert found.peak_bytes == 24_000
    found, _, _ = planned(
        text.replace("scan %x.0, %x.0 {", "scan %x.0, %k {").replace(
            "(%n: int) {", "(%k: f64[1000]) {"
        )
    )
    assert {value.name for value in found.given} == {"x.0"} and names(found) == {"x.3": "x.0"}
    assert found.peak_bytes == 16_000 == found.lower_bytes


# ---- named sizes


def test_named_sizes_are_equal_in_their_normal_form() -> None:
    found, _, _ = planned("""\
        graph f(%x: f32[n,2], %y: f32[m]) {
          %a = exp %x : f32[n,2]
          %b = sqrt %a : f32[n,2]
          %s = sum %b {axis=(0,)} : f32[2]
          %c = exp %y : f32[m]
          return (%s, %c)
        }""")
    assert names(found) == {"b": "a"}
    assert [str(size) for size in (found.naive_bytes, found.peak_bytes)] == [
        "4*m+16*n+8",
        "4*m+8*n+8",
    ]


def test_peaks_of_named_sizes_are_ordered_for_every_size() -> None:
    graph = graph_of("""\
        graph f(%x: f32[n], %y: f32[m,n]) {
          %a = exp %x : f32[n]
          %b = sum %a {axis=(0,)} : f32[]
          %c = exp %y : f32[m,n]
          %d = add %c, %b : f32[m,n]
          %e = sum %d {axis=(0, 1)} : f32[]
          return %e
        }""")
    found = plan_of(graph)
    for n in (0, 1, 5, 100):
        for m in (0, 1, 7):
            sizes = {"n": n, "m": m}
            lower, peak, naive = (
                size.substitute(sizes) if isinstance(size, Dim) else size
                for size in (found.lower_bytes, found.peak_bytes, found.naive_bytes)
            )
            assert isinstance(lower, int) and isinstance(peak, int) and isinstance(naive, int)
            assert lower <= peak <= naive
            assert max(4 * n, 4 * m * n) <= peak


# ---- laws


@given(graph=graphs())
@LAWS
def test_no_two_values_use_a_slot_at_once(graph: Graph) -> None:
    found = plan_of(graph)
    lives = liveness(graph)
    made = {value: i for i, node in enumerate(graph.nodes) for value in node.outputs}
    last: dict[int, Value] = {}
    for value in sorted(found.slot, key=made.__getitem__):
        before = last.get(found.slot[value])
        assert found.reuses.get(value) is before
        if before is not None:
            assert before.type == value.type
            in_place = value in found.in_place
            assert lives.last_seen[before] <= made[value] - (not in_place)
            assert not in_place or before in graph.nodes[made[value]].inputs
        last[found.slot[value]] = value
    assert set(found.why_not).isdisjoint(found.reuses)


@given(graph=graphs())
@LAWS
def test_the_peaks_are_ordered_and_reached(graph: Graph) -> None:
    found = plan_of(graph)
    peak = most = 0
    for after in found.live_bytes:
        assert isinstance(after, int)
        most = max(most, after)
    peak = found.peak_bytes
    assert isinstance(found.lower_bytes, int) and isinstance(peak, int)
    assert isinstance(found.naive_bytes, int)
    assert found.lower_bytes <= peak <= found.naive_bytes and most <= peak
    assert found.naive_bytes == sum(
        value.type.size_bytes  # type: ignore[misc]
        for value in found.slot
        if isinstance(value.type, ArrayType)
    )


def run_by_plan(graph: Graph, found: Plan, arguments: list[Any]) -> list[Any]:
    """Run a graph as a backend may: names deleted, buffers taken over, dead memory overwritten."""
    held: dict[Value, Any] = dict(zip(graph.inputs, arguments, strict=True))
    ends: dict[int, list[Value]] = {}
    for value in found.slot:
        ends.setdefault(liveness(graph).last_seen[value], []).append(value)
    handed_on: set[Value] = set()
    memory: dict[Value, Any] = {}
    for position, node in enumerate(graph.nodes):
        inputs = [held[value] for value in node.inputs]
        result: Any
        if node.op.name == "kernel":
            result = kernel_results(
                node, inputs, [held.get(found.reuses.get(v)) for v in node.outputs]
            )
        elif node.outputs and node.outputs[0] in found.reuses:
            (value,) = node.outputs
            fresh = evaluate_node(node, copy.deepcopy(inputs))[0]
            buffer = held[found.reuses[value]]
            assert (buffer.shape, buffer.dtype, buffer.flags.writeable) == (
                *(fresh.shape, fresh.dtype, True),
            )
            if buffer.size > 1 and node.op.name != "update":
                assert order(buffer) == order(evaluate_node(node, inputs)[0])
            if node.op.name == "update":
                buffer[tuple(node.attrs["index"])] = inputs[1]
            else:
                name = node.op.numpy
                assert isinstance(name, str)
                getattr(np, name)(*inputs, out=buffer)
            result = (buffer,)
        else:
            result = evaluate_node(node, inputs)
        held.update(zip(node.outputs, result, strict=True))
        memory.update(zip(node.outputs, result, strict=True))
        handed_on.update(found.reuses[value] for value in node.outputs if value in found.reuses)
        for value in ends.get(position, ()):
            # Memory that nobody may look at any more holds nonsense from now on.
            if value not in handed_on and memory[value].flags.writeable:
                memory[value][...] = np.array(77).astype(memory[value].dtype)
        for value in found.dies[position]:
            del held[value]
    return [held[value] for value in graph.outputs]


def kernel_results(node: Node, inputs: list[Any], buffers: list[Any]) -> list[Any]:
    """The results of a kernel, in the buffers that the plan gives it."""
    results = list(evaluate_node(node, copy.deepcopy(inputs)))
    for index, buffer in enumerate(buffers):
        if buffer is not None:
            fresh = results[index]
            assert (buffer.shape, buffer.dtype) == (fresh.shape, fresh.dtype)
            buffer[...] = fresh
            results[index] = buffer
    return results


def order(array: np.ndarray[Any, Any]) -> list[int]:
    strides = [s for s, extent in zip(array.strides, array.shape, strict=True) if extent > 1]
    return list(np.argsort([-abs(s) for s in strides], kind="stable"))


@given(graph=graphs(effects=False))
@settings(LAWS, max_examples=250)
def test_a_run_by_the_plan_gives_what_a_run_without_gives(graph: Graph) -> None:
    found = plan_of(graph)
    for seed in range(2):
        arguments = arguments_of(graph, seed)
        with np.errstate(all="ignore"):
            try:
                expected = evaluate(graph, copy.deepcopy(arguments))
            except (ArithmeticError, ValueError):
                continue
            given_away = copy.deepcopy(arguments)
            results = run_by_plan(graph, found, given_away)
        assert list(map(bits, results)) == list(map(bits, expected))
        assert list(map(bits, given_away)) == list(map(bits, arguments))


# ---- kernels


FUSED = """\
graph f(%x: f64[2,3], %y: f64[2,3], %w: f64[3,3], %b: f64[3]) {
  %a = cumsum %x {axis=1} : f64[2,3]
  %c = cumsum %y {axis=1} : f64[2,3]
  BODY
}"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("%r = add %a, %b : f64[2,3]\n  return %r", {"r": "a"}),
        (
            "%r = add %a, %c : f64[2,3]\n  %s = subtract %a, %c : f64[2,3]\n  return (%r, %s)",
            {"r": "a", "s": "c"},
        ),
        ("%r = less %a, %b : bool[2,3]\n  return %r", {}),
        # Not where it is read at other places, or needed until a row is done, or later.
        ("%t = slice %a {index=[::-1]} : f64[2,3]\n  %r = add %a, %t : f64[2,3]\n  return %r", {}),
        (
            "%m = max %a {axis=(1,), keepdims=True} : f64[2,1]\n  %r = subtract %a, %m : f64[2,3]\n"
            "  return %r",
            {},
        ),
        (
            "%r = add %a, %b : f64[2,3]\n  %s = cumsum %r {axis=1} : f64[2,3]\n"
            "  %t = add %a, %s : f64[2,3]\n  return %t",
            {"t": "a"},
        ),
        # The product goes into the result before the other operands are read.
        ("%p = matmul %x, %w : f64[2,3]\n  %r = add %p, %a : f64[2,3]\n  return %r", {}),
        (
            "%p = matmul %x, %w : f64[2,3]\n  %q = sqrt %p : f64[2,3]\n"
            "  %r = add %q, %a : f64[2,3]\n  return (%q, %r)",
            {"r": "a"},
        ),
        ("%p = matmul %a, %w : f64[2,3]\n  %r = add %p, %a : f64[2,3]\n  return %r", {}),
    ],
)
def test_kernels_write_over_what_they_read_in_step(body: str, wanted: dict[str, str]) -> None:
    graph = optimize(
        graph_of(FUSED.replace("BODY", body)), (), lowering=("fuse",), debug=True
    ).graph
    found = plan_of(graph)
    assert {value.name: found.reuses[value].name for value in found.in_place} == wanted


def test_a_kernel_takes_free_buffers_and_lets_go_of_its_operands() -> None:
    graph = graph_of("""\
        graph f(%x: f64[2,3], %y: f64[2,2]) {
          %a = cumsum %x {axis=1} : f64[2,3]
          %b = sum %a {axis=(1,), keepdims=True} : f64[2,1]
          %c = matmul %y, %b : f64[2,1]
          %d = sort %c {axis=0} : f64[2,1]
          %e = subtract %x, %d : f64[2,3]
          return %e
        }""")
    graph = optimize(graph, (), lowering=("fuse",)).graph
    assert [node.op.name for node in graph.nodes] == [
        "cumsum",
        "kernel",
        "matmul",
        "sort",
        "kernel",
    ]
    values = {value.name: value for value in graph.values()}
    assert liveness(graph).last_seen[values["a"]] == 1
    found = plan_of(graph)
    assert names(found)["e"] == "a" and values["e"] not in found.in_place


@given(graph=graphs(effects=False))
@settings(LAWS, max_examples=150)
def test_a_run_of_kernels_by_the_plan_gives_what_a_run_without_gives(graph: Graph) -> None:
    graph = optimize(graph, lowering=("fuse",)).graph
    found = plan_of(graph)
    arguments = arguments_of(graph)
    with np.errstate(all="ignore"):
        try:
            expected = evaluate(graph, copy.deepcopy(arguments))
        except (ArithmeticError, ValueError):
            return
        results = run_by_plan(graph, found, copy.deepcopy(arguments))
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12)  # sums go by the order in memory
