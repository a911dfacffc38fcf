"""Fusion: what becomes one kernel, what does not and why, and that nothing else changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from passes.laws import Builder, arguments_of, bits, graph_of, ops_of, outcome, run_pass

import minigraph as mg
from minigraph.ir import ArrayType, Graph, Ids, Node, Value, parse_graph, parse_type, verify, walk
from minigraph.ops import OPS, evaluate, place
from minigraph.passes import DEFAULT, Event, explain, optimize, plan_of
from minigraph.passes.refusals import SIZE_LIMIT

LAWS = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
CODES = (
    "MULTI_USE SHAPE_MISMATCH DTYPE REDUCTION_BARRIER ORDER_CYCLE SIDE_EFFECT IS_OUTPUT "
    "BACKEND_CANNOT SIZE_LIMIT COST"
).split()


def fused(text: str, **options: Any) -> tuple[Graph, dict[str, str]]:
    """The graph after fusion, and the code of each pair that is apart, as `operand>reader`."""
    graph = graph_of(text)
    verify(graph)
    changed, events = run_pass("fuse", graph, **options)
    check_kernels(changed)
    assert_apart_pairs_are_told(graph, changed, events)
    return changed, apart(events)


def apart(events: Sequence[Event]) -> dict[str, str]:
    found: dict[str, str] = {}
    for event in events:
        if event.kind == "refuse" and event.rule == "fuse.apart":
            *outputs, operand = event.values
            reader = outputs[0].name if outputs else event.before[0].op.name
            found[f"{operand.name}>{reader}"] = event.code
    return found


def kernels(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op.name == "kernel"]


def shapes_of(graph: Graph) -> list[tuple[str, list[str]]]:
    """(form, ops of the body) of each kernel, and the other nodes."""
    return [
        (node.attrs["form"], ops_of(node.attrs["body"]))
        if node.op.name == "kernel"
        else (node.op.name, [])
        for node in graph.nodes
    ]


# ---- what a kernel is


def check_kernels(graph: Graph) -> None:
    verify(graph, stage="fuse")
    assert parse_graph(str(graph), OPS, graph.constants) == graph
    for node in kernels(graph):
        check_kernel(node)


def check_kernel(kernel: Node) -> None:
    """The contract with backends."""
    body: Graph = kernel.attrs["body"]
    assert len(body.nodes) <= SIZE_LIMIT and body.nodes and body.outputs
    assert len(set(body.inputs)) == len(body.inputs)
    assert len(set(body.outputs)) == len(body.outputs)
    made = {value for node in body.nodes for value in node.outputs}
    assert set(body.outputs) <= made
    windows, numbers, computing = set(body.inputs), set[Value](), list[Node]()
    products = [node for node in body.nodes if node.op.name in ("matmul", "dot")]
    assert (kernel.attrs["form"] == "epilogue") == bool(products)
    for node in body.nodes:
        if node.op.name == "const":
            assert np.ndim(node.attrs["value"]) == 0
            numbers.add(node.output)
        elif node.op.view and node.inputs[0] in windows:
            windows.add(node.output)
        elif node in products:
            assert not computing and windows.issuperset(node.inputs)
            assert any(value.type == node.output.type for value in body.outputs)
            assert node.output not in body.outputs
        else:
            assert node.op.kind in ("elementwise", "reduce") or node.op.name in (
                "expand_dims squeeze broadcast_to slice".split()
            )
            assert not node.is_effect
            computing.append(node)
    assert len(products) <= 1 and computing
    check_loops(kernel.attrs["form"], computing, body.outputs)


def check_loops(form: str, nodes: Sequence[Node], outputs: Sequence[Value]) -> None:
    shapes = [
        value.type.shape
        for node in nodes
        for value in (*node.inputs, *node.outputs)
        if isinstance(value.type, ArrayType)
    ]
    loop = max(shapes, key=lambda shape: (len(shape), sum(size != 1 for size in shape)))
    axes: dict[Value, tuple[int | None, ...]] = {}
    reduced: set[tuple[int | None, ...]] = set()
    late: set[Value] = set()
    for node in nodes:
        placed = place(node, axes, loop)
        assert placed is not None, node
        axes.update(placed)
        if node.op.kind == "reduce":
            reduced.add(tuple(axes[node.inputs[0]][dim] for dim in node.attrs["axis"]))
        if node.op.kind == "reduce" or not late.isdisjoint(node.inputs):
            late.add(node.output)
    every = tuple(range(len(loop)))
    gone = next(iter(reduced), ())
    kept = tuple(axis for axis in every if axis not in gone)
    assert len(reduced) <= 1 and None not in gone
    if gone:
        first, last = gone[0], gone[-1]
        assert first is not None and gone == every[first : first + len(gone)]
        assert form == ("rows" if last == every[-1] else "columns")
    else:
        assert form in ("map", "epilogue")
    for value in (*outputs, *late):
        span = tuple(axis for axis in axes[value] if axis is not None)
        assert span == every or (gone and span == kept)
        assert kept or not loop or value not in late or not span, "a second look at everything"


def assert_apart_pairs_are_told(before: Graph, after: Graph, events: Sequence[Event]) -> None:
    """Each value and reader are in one kernel, or a code of the closed list says why not."""
    told = {
        (event.before[0], value)
        for event in events
        if event.kind == "refuse" and event.code in CODES
        for value in event.values
    }
    homes: dict[Value | Node, set[Node]] = {}
    for kernel in kernels(after):
        for node in kernel.attrs["body"].nodes:
            for held in (*node.outputs, node, *node.origin):
                homes.setdefault(held, set()).add(kernel)
    producers = before.producers()
    merged = {node for event in events if event.rule == "cse.same" for node in event.before}
    filled = {node for event in events if event.rule == "fuse.fill" for node in event.before}
    for node in before.nodes:
        for value in node.inputs:
            if value not in producers or producers[value].op.name == "const":
                continue
            if producers[value].op.kind == "create" and node in filled:
                continue
            reader = node.outputs[0] if node.outputs else node
            together = homes.get(reader, set()) | homes.get(node, set())
            if not together.isdisjoint(homes.get(value, ())):
                continue
            assert (node, value) in told or not merged.isdisjoint((node, producers[value])), node


# ---- elementwise chains


def test_a_chain_is_one_kernel() -> None:
    graph, codes = fused("""\
        graph f(%x: f32[n,m], %w: f32[m], %k: f32[]) {
          %two = const 2.0 : float
          %a = multiply %x, %two : f32[n,m]
          %b = add %a, %w : f32[n,m]
          %c = divide %b, %k : f32[n,m]
          return %c
        }""")
    assert shapes_of(graph) == [("map", ["const", "multiply", "add", "divide"])]
    (kernel,) = graph.nodes
    assert [value.name for value in kernel.inputs] == ["x", "w", "k"] and not codes
    assert kernel.outputs == graph.outputs


def test_what_is_needed_outside_is_a_result() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = sqrt %a : f64[3]
          %s = cumsum %a {axis=0} : f64[3]
          return (%b, %s)
        }""")
    assert shapes_of(graph) == [("map", ["exp", "sqrt"]), ("cumsum", [])]
    assert [value.name for value in graph.nodes[0].outputs] == ["a", "b"]
    assert codes == {"a>s": "BACKEND_CANNOT"}


def test_one_node_alone_is_a_kernel_too() -> None:
    graph, _ = fused("graph f(%x: f64[3]) {\n  %a = exp %x : f64[3]\n  return %a\n}")
    assert shapes_of(graph) == [("map", ["exp"])]


def test_numbers_without_axes_are_computed_where_they_are_needed() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[3], %k: f64[]) {
          %a = exp %k : f64[]
          %b = multiply %x, %a : f64[3]
          return %b
        }""")
    assert shapes_of(graph) == [("map", ["exp", "multiply"])] and not codes


@pytest.mark.parametrize(
    ("more", "result", "code"),
    [("%c = sinh %a : f64[2,1]", "%c", "MULTI_USE"), ("", "%a", "IS_OUTPUT")],
)
def test_what_others_need_is_not_moved_into_larger_loops(more: str, result: str, code: str) -> None:
    graph, codes = fused(f"""\
        graph f(%x: f64[2,3], %k: f64[2,1]) {{
          %a = exp %k : f64[2,1]
          %b = multiply %x, %a : f64[2,3]
          {more}
          return (%b, {result})
        }}""")
    assert codes == {"a>b": code} and len(graph.nodes) == 2


def test_nothing_is_computed_again_for_each_row() -> None:
    _, codes = fused("""\
        graph f(%x: f64[2,3], %w: f64[3]) {
          %a = exp %w : f64[3]
          %b = multiply %x, %a : f64[2,3]
          return %b
        }""")
    assert codes == {"a>b": "COST"}


def test_once_for_each_row_is_fine() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3], %k: f64[2,1]) {
          %a = exp %k : f64[2,1]
          %b = multiply %x, %a : f64[2,3]
          return %b
        }""")
    assert shapes_of(graph) == [("map", ["exp", "multiply"])] and not codes


def test_of_a_filled_array_only_the_number_is_read() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %z = zeros {shape=(2, 3)} : f64[2,3]
          %o = ones {shape=(4, 2, 3)} : f64[4,2,3]
          %a = add %x, %z : f64[2,3]
          %b = add %a, %o : f64[4,2,3]
          %c = pow %x, %z : f64[2,3]
          return (%b, %c)
        }""")
    assert sorted(ops_of(graph)) == [*["kernel"] * 3, "ones", "zeros"]
    assert codes == {"z>c": "BACKEND_CANNOT", "o>b": "BACKEND_CANNOT", "a>b": "COST"}
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %z = zeros {shape=(2, 3)} : f64[2,3]
          %a = add %x, %z : f64[2,3]
          return %a
        }""")
    assert shapes_of(graph) == [("map", ["const", "add"])] and not codes


# ---- views


def test_views_of_inputs_are_read_where_they_look() -> None:
    graph, codes = fused("""\
        graph f(%u: f64[6,6], %v: f64[4]) {
          %n = slice %u {index=[:-2, 1:-1]} : f64[4,4]
          %s = slice %u {index=[2:, 1:-1]} : f64[4,4]
          %t = transpose %n {axes=(1, 0)} : f64[4,4]
          %w = broadcast_to %v {shape=(4, 4)} : f64[4,4]
          %a = add %t, %s : f64[4,4]
          %b = subtract %a, %w : f64[4,4]
          return %b
        }""")
    assert shapes_of(graph) == [
        ("map", ["slice", "slice", "transpose", "broadcast_to", "add", "subtract"])
    ]
    assert not codes


def test_a_view_of_what_was_computed_reads_it_in_the_next_kernel() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[4,4]) {
          %a = exp %x : f64[4,4]
          %t = transpose %a {axes=(1, 0)} : f64[4,4]
          %b = add %a, %t : f64[4,4]
          return %b
        }""")
    assert shapes_of(graph) == [("map", ["exp"]), ("map", ["transpose", "add"])]
    assert codes == {"a>b": "SHAPE_MISMATCH", "a>t": "SHAPE_MISMATCH"}


def test_moving_axes_of_what_was_computed_stays_inside() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %s = sum %x {axis=(1,)} : f64[2]
          %e = slice %s {index=[:, None]} : f64[2,1]
          %w = broadcast_to %e {shape=(2, 3)} : f64[2,3]
          %y = divide %x, %w : f64[2,3]
          return %y
        }""")
    assert shapes_of(graph) == [("rows", ["sum", "slice", "broadcast_to", "divide"])]
    assert not codes


def test_a_view_that_is_returned_stays() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %a = exp %x : f64[2,3]
          %t = transpose %a {axes=(1, 0)} : f64[3,2]
          %r = reshape %a {shape=(6,)} : f64[6]
          %b = sqrt %r : f64[6]
          return (%t, %b)
        }""")
    assert [name for name, _ in shapes_of(graph)] == ["map", "transpose", "reshape", "map"]
    assert codes == {"a>t": "COST", "a>r": "SHAPE_MISMATCH", "r>b": "SHAPE_MISMATCH"}


def test_named_sizes_that_no_operand_tells() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[n], %k: f64[1]) {
          %b = broadcast_to %k {shape=(<m>, <n>)} : f64[m,n]
          %a = exp %b : f64[m,n]
          %c = cumsum %a {axis=0} : f64[m,n]
          return %c
        }""")
    assert "exp" in ops_of(graph) and codes["a>c"] == "BACKEND_CANNOT"


def test_an_operand_need_not_tell_each_name_in_its_shape() -> None:
    def function(x: Any) -> Any:
        flat = x.reshape(-1)
        return np.exp(flat - flat.max()), x[1:] - x[:-1]

    traced = mg.trace(function, mg.Spec((mg.dim("n"), mg.dim("m")), "float64"))
    graph = optimize(traced, lowering=("fuse",), debug=True).graph
    check_kernels(graph)
    x = np.random.default_rng(0).normal(size=(3, 4))
    assert list(map(bits, evaluate(graph, [x]))) == list(map(bits, function(x)))


def test_the_end_of_a_named_axis_is_not_known() -> None:
    graph, _ = fused("""\
        graph f(%x: f64[n], %y: f64[n]) {
          %a = slice %x {index=[1:]} : f64[n-1]
          %b = slice %y {index=[::-1]} : f64[n]
          %c = exp %a : f64[n-1]
          %d = exp %b : f64[n]
          return (%c, %d)
        }""")
    assert shapes_of(graph) == [("slice", []), ("map", ["slice", "exp"]), ("map", ["exp"])]


# ---- reductions


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


def batch_norm(x: Any) -> Any:
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


def distances(a: Any, b: Any) -> Any:
    return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "shapes", "form"),
    [
        (softmax, [("n", 5)], "rows"),
        (softmax, [("n", 3, 5)], "rows"),
        (layer_norm, [("n", 5), (5,), (5,)], "rows"),
        (batch_norm, [("n", 5)], "columns"),
        (distances, [(4, 3), (6, 3)], "rows"),
    ],
)
def test_as_written_in_numpy_it_is_one_kernel(
    function: Callable[..., Any], shapes: list[Any], form: str, dtype: str
) -> None:
    specs = [
        mg.Spec([mg.dim(s) if isinstance(s, str) else s for s in shape], dtype) for shape in shapes
    ]
    traced = mg.trace(function, *specs)
    history = optimize(traced, debug=True, lowering=("fuse",))
    assert [node.attrs["form"] for node in history.graph.nodes] == [form]
    check_kernels(history.graph)
    assert not apart(list(history.events))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=[7 if s == "n" else s for s in shape]) for shape in shapes]
    arrays = [array.astype(dtype) for array in arrays]
    (found,) = evaluate(history.graph, arrays)
    assert bits(found) == bits(function(*arrays))


def test_reductions_of_one_operand_read_it_once() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %a = sum %x {axis=(1,)} : f64[2]
          %b = max %x {axis=(1,)} : f64[2]
          %c = sum %x {axis=(0,)} : f64[3]
          %d = exp %x : f64[2,3]
          return (%a, %b, %c, %d)
        }""")
    assert shapes_of(graph) == [("columns", ["sum"]), ("rows", ["sum", "max", "exp"])]
    assert not codes


def test_after_a_reduction_of_everything_only_numbers_follow() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %a = exp %x : f64[2,3]
          %s = sum %a {axis=(0, 1)} : f64[]
          %t = sqrt %s : f64[]
          %y = divide %a, %t : f64[2,3]
          return %y
        }""")
    assert shapes_of(graph) == [("rows", ["exp", "sum", "sqrt"]), ("map", ["divide"])]
    assert codes == {"a>y": "REDUCTION_BARRIER", "t>y": "REDUCTION_BARRIER"}


def test_everything_is_not_reduced_twice() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %m = mean %x {axis=(0, 1), keepdims=True} : f64[1,1]
          %w = broadcast_to %m {shape=(2, 3)} : f64[2,3]
          %s = sum %w {axis=(0, 1)} : f64[]
          return %s
        }""")
    assert shapes_of(graph) == [("rows", ["mean"]), ("rows", ["broadcast_to", "sum"])]
    assert codes == {"m>w": "REDUCTION_BARRIER"}


def test_reductions_along_other_axes_are_other_kernels() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3]) {
          %a = exp %x : f64[2,3]
          %r = sum %a {axis=(1,)} : f64[2]
          %c = sum %a {axis=(0,)} : f64[3]
          %t = sum %r {axis=(0,)} : f64[]
          return (%c, %t)
        }""")
    assert shapes_of(graph) == [("rows", ["exp", "sum"]), ("columns", ["sum"]), ("rows", ["sum"])]
    assert codes == {"a>c": "REDUCTION_BARRIER", "r>t": "REDUCTION_BARRIER"}


def test_a_row_is_not_taken_for_a_column() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[3,3]) {
          %s = sum %x {axis=(1,)} : f64[3]
          %y = subtract %x, %s : f64[3,3]
          return %y
        }""")
    assert len(kernels(graph)) == 2 and codes == {"s>y": "SHAPE_MISMATCH"}


def test_scattered_axes_are_left_to_numpy() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3,4]) {
          %a = exp %x : f64[2,3,4]
          %s = sum %a {axis=(0, 2)} : f64[3]
          return %s
        }""")
    assert [name for name, _ in shapes_of(graph)] == ["map", "sum"]
    assert codes == {"a>s": "BACKEND_CANNOT"}


@pytest.mark.parametrize(
    "call", ["axis=0", "axis=1", "keepdims=True", "axis=0, ddof=1", "ddof=1.5"]
)
@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?"])
def test_variances_are_those_of_numpy(name: str, call: str, dtype: str) -> None:
    function = eval(f"lambda x: np.{name}(x, {call})", {"np": np})
    x = np.random.default_rng(1).normal(scale=50, size=(33, 17)).astype(dtype)
    traced = mg.trace(function, x)
    (kernel, *more) = optimize(traced, debug=True, lowering=("fuse",)).graph.nodes
    assert name not in [node.op.name for node in walk(optimize(traced, lowering=("fuse",)).graph)]
    assert kernel.op.name == "kernel" and len(more) <= 1
    (found,) = evaluate(optimize(traced, lowering=("fuse",)).graph, [x])
    assert bits(found) == bits(function(x))


def test_a_variance_of_which_a_part_has_no_loop_stays() -> None:
    text = """\
        graph f(%x: f64[n,3], %z: c128[2,3]) {
          %a = var %x {axis=(0,), ddof=1} : f64[3]
          %b = var %z {axis=(0,)} : f64[3]
          return (%a, %b)
        }"""
    assert ops_of(fused(text)[0]) == ["var", "var"]


# ---- products


def test_an_epilogue_follows_a_product() -> None:
    graph, codes = fused("""\
        graph f(%x: f32[n,4], %w: f32[3,4], %b: f32[3], %r: f32[n,3]) {
          %t = transpose %w {axes=(1, 0)} : f32[4,3]
          %p = matmul %x, %t : f32[n,3]
          %a = add %p, %b : f32[n,3]
          %zero = const 0 : int
          %h = maximum %a, %zero : f32[n,3]
          %y = add %h, %r : f32[n,3]
          return %y
        }""")
    assert shapes_of(graph) == [
        ("epilogue", ["transpose", "matmul", "add", "const", "maximum", "add"])
    ]
    assert not codes


@pytest.mark.parametrize(
    ("more", "result", "pair", "code"),
    [
        ("%y = exp %p : f32[2,3]", "(%y, %p)", "p>y", "IS_OUTPUT"),
        (
            "%y = exp %p : f32[2,3]\n%s = cumsum %p {axis=0} : f32[2,3]",
            "(%y, %s)",
            "p>y",
            "MULTI_USE",
        ),
        ("%zero = const 0.0 : float\n%y = less %p, %zero : bool[2,3]", "%y", "p>y", "DTYPE"),
        (
            "%a = add %p, %r : f32[2,3]\n%y = sum %a {axis=(1,)} : f32[2]",
            "%y",
            "p>a",
            "REDUCTION_BARRIER",
        ),
        (
            "%q = matmul %x, %w : f32[2,3]\n%y = add %p, %q : f32[2,3]",
            "%y",
            "q>y",
            "BACKEND_CANNOT",
        ),
    ],
)
def test_why_a_product_stays_by_itself(more: str, result: str, pair: str, code: str) -> None:
    graph, codes = fused(f"""\
        graph f(%x: f32[2,4], %w: f32[4,3], %r: f32[2,3]) {{
          %p = matmul %x, %w : f32[2,3]
          {more}
          return {result}
        }}""")
    assert "matmul" in ops_of(graph) and codes[pair] == code


def test_what_a_product_reads_in_part_is_read_so_by_all() -> None:
    graph, _ = fused("""\
        graph f(%x: f64[2,2]) {
          %t = transpose %x {axes=(1, 0)} : f64[2,2]
          %s = slice %t {index=[::-1]} : f64[2,2]
          %p = matmul %t, %s : f64[2,2]
          %y = add %p, %s : f64[2,2]
          return %y
        }""")
    assert shapes_of(graph) == [
        ("transpose", []),
        ("slice", []),
        ("epilogue", ["transpose", "matmul", "add"]),
    ]


def test_a_product_reads_all_of_its_operands() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[2,3], %w: f64[3,4]) {
          %a = exp %x : f64[2,3]
          %s = slice %w {index=[::-1]} : f64[3,4]
          %p = matmul %a, %s : f64[2,4]
          %y = sqrt %p : f64[2,4]
          return %y
        }""")
    assert [name for name, _ in shapes_of(graph)] == ["map", "slice", "epilogue"]
    assert codes == {"a>p": "REDUCTION_BARRIER", "s>p": "REDUCTION_BARRIER"}


# ---- order


def test_a_kernel_waits_for_nobody_who_waits_for_it() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %s = cumsum %a {axis=0} : f64[3]
          %b = add %a, %s : f64[3]
          return %b
        }""")
    assert shapes_of(graph) == [("map", ["exp"]), ("cumsum", []), ("map", ["add"])]
    assert codes == {
        "a>s": "BACKEND_CANNOT",
        "s>b": "BACKEND_CANNOT",
        "a>b": "ORDER_CYCLE",
    }


def test_a_kernel_may_wait_for_something_else() -> None:
    graph, _ = fused("""\
        graph f(%x: f64[3], %y: f64[3]) {
          %a = exp %x : f64[3]
          %s = cumsum %y {axis=0} : f64[3]
          %b = add %a, %s : f64[3]
          return %b
        }""")
    assert shapes_of(graph) == [("cumsum", []), ("map", ["exp", "add"])]


def test_effects_keep_their_order_and_what_may_raise_stays() -> None:
    graph, codes = fused("""\
        graph f(%x: f64[3], %i: i64[3], %j: i64[3]) {
          %a = exp %x : f64[3]
          print %a {parts=('a', %)}
          %p = power %i, %j : i64[3]
          %b = sqrt %a : f64[3]
          %q = add %p, %i : i64[3]
          print %b {parts=('b', %)}
          return %q
        }""")
    assert [name for name, _ in shapes_of(graph)] == ["map", "print", "power", "map", "print"]
    assert codes == {"a>print": "SIDE_EFFECT", "b>print": "SIDE_EFFECT", "p>q": "SIDE_EFFECT"}


def test_an_argument_is_read_before_it_is_written() -> None:
    graph, _ = fused("""\
        graph f(%x: f64[3], %y: f64[3]) {
          %a = exp %x : f64[3]
          %b = sqrt %y : f64[3]
          write %x, %b
          %c = add %a, %b : f64[3]
          write %y, %c
          return %c
        }""")
    assert ops_of(graph) == ["kernel", "write", "write"]


def test_who_writes_to_an_argument_again_does_not_come_before_the_first_write() -> None:
    branch = """(%y: f64[3], %x: f64[3]) {
            write %x, %y
            return %y
          }"""
    graph, _ = fused(f"""\
        graph f(%c: bool, %x: f64[3]) {{
          %a = sin %x : f64[3]
          write %x, %a
          %b = if %c, %a, %x {{then=graph t{branch}, otherwise=graph o{branch}}} : f64[3]
          return %b
        }}""")
    assert ops_of(graph) == ["kernel", "write", "if"]


# ---- limits


def chain(count: int, op: str = "sin") -> Graph:
    ids = Ids()
    x = ids.value(parse_type("f64[2]"))
    last, nodes = x, list[Node]()
    for _ in range(count):
        value = ids.value(x.type)
        nodes.append(Node(ids.next(), OPS[op], [last], {}, [value]))
        last = value
    return Graph("chain", [x], nodes, [last])


def test_a_kernel_has_a_limited_length() -> None:
    graph = chain(SIZE_LIMIT + 1)
    changed, events = run_pass("fuse", graph)
    check_kernels(changed)
    assert [len(node.attrs["body"].nodes) for node in changed.nodes] == [SIZE_LIMIT, 1]
    assert list(apart(events).values()) == ["SIZE_LIMIT"]
    assert outcome(changed, [np.ones(2)]) == outcome(graph, [np.ones(2)])


@pytest.mark.parametrize("length", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_chain_fuses(length: int) -> None:
    graph = chain(length)
    changed, events = run_pass("fuse", graph)
    assert len(changed.nodes) == length // SIZE_LIMIT
    assert len(events) == 2 * len(changed.nodes) - 1
    assert len(plan_of(changed).slot_bytes) == 1


def test_the_backend_says_what_it_cannot() -> None:
    text = """\
        graph f(%x: f64[3]) {
          %a = exp %x : f64[3]
          %b = sqrt %a : f64[3]
          return %b
        }"""
    graph, codes = fused(
        text, cannot_fuse=lambda node, _: "too hot" if node.op.name == "exp" else ""
    )
    assert ops_of(graph) == ["exp", "kernel"] and codes == {"a>b": "BACKEND_CANNOT"}
    graph, codes = fused(text.replace("f64", "f16"))
    assert ops_of(graph) == ["exp", "sqrt"] and codes == {"a>b": "BACKEND_CANNOT"}
    complex_ = text.replace("f64", "c128")
    assert ops_of(fused(complex_)[0]) == ["exp", "sqrt"]


# ---- events


def test_an_event_for_each_kernel_says_what_it_saves() -> None:
    _, events = run_pass(
        "fuse",
        graph_of("""\
        graph f(%x: f64[n,4]) {
          %a = exp %x : f64[n,4]
          %s = sum %a {axis=(1,), keepdims=True} : f64[n,1]
          %y = divide %a, %s : f64[n,4]
          return %y
        }"""),
    )
    (event,) = events
    assert event.kind == "replace" and event.rule == "fuse.kernel"
    assert event.why == "rows over (n, 4): 3 ops, saves 112*n bytes of traffic"
    assert [node.output.name for node in event.before] == ["a", "s", "y"]
    assert set(event.after[0].origin) == set(event.before)


def test_the_table_has_a_line_for_each_kernel_and_each_pair() -> None:
    def function(x: Any) -> Any:
        h = np.exp(x)
        return h - np.cumsum(h, axis=0), h.var(axis=1)

    history = optimize(mg.trace(function, mg.Spec((4, 3), "float64")), lowering=("fuse",))
    lines = [line.partition("  #")[0].split(": ") for line in explain(history).split("\n")]
    (first,) = (at for at, line in enumerate(lines) if line[0].startswith("fuse"))
    assert [line[1:] for line in lines[first + 1 : first + 7]] == [
        ["as NumPy computes it", "from the squared distances to the mean"],
        ["rows over (4, 3)", "5 ops, saves 640 bytes of traffic"],
        ["map over (4, 3)", "1 op"],
        ["BACKEND_CANNOT", "`cumsum` is no loop over single elements"],
        ["ORDER_CYCLE", "what is in between would have to run in the middle of the kernel"],
        ["BACKEND_CANNOT", "`cumsum` is no loop over single elements"],
    ]
    assert [line[0].strip()[0] for line in lines[first + 1 : first + 7]] == list("~++!!!")


# ---- the pipeline


def test_lowerings_run_last_and_once() -> None:
    traced = mg.trace(lambda x: np.exp(x) + np.exp(x), mg.Spec((3,), "float64"))
    for history in (
        optimize(traced, lowering=("fuse",), debug=True),
        optimize(traced, ("fuse", *DEFAULT), debug=True),
        optimize(traced, (*DEFAULT, "fuse"), lowering=("fuse",), debug=True),
    ):
        names = [stage.name for stage in history.stages]
        assert names.count("fuse") == 1 and names[-1] == "fuse"
        assert shapes_of(history.graph) == [("map", ["exp", "add"])]
    again = optimize(history.graph, lowering=("fuse",), debug=True)
    assert again.graph is history.graph


def test_the_python_backend_runs_kernels() -> None:
    traced = mg.trace(layer_norm, *(mg.Spec(s, "float32") for s in ((4, 5), (5,), (5,))))
    arrays = [np.random.default_rng(0).random(s, np.float32) for s in ((4, 5), (5,), (5,))]
    compiled = mg.compile(traced, backend="python", passes=(*DEFAULT, "fuse"))
    assert "kernel(" in compiled.source()
    assert bits(compiled(*arrays)) == bits(layer_norm(*arrays))


# ---- laws


class FusibleBuilder(Builder):
    """Graphs with much in them that can be fused, in few shapes."""

    TYPES = "f64[2,3] f32[2,3] f64[2,1] f64[3] f32[3] f64[] i64[2,3] f64[3,2] f64[2,2,3]".split()

    def __init__(self, source: random.Random) -> None:
        effects = source.random() < 0.3
        types = [parse_type(source.choice(self.TYPES)) for _ in range(source.randint(1, 3))]
        super().__init__(source, effects=effects, types=types)

    def step(self) -> None:
        source, x = self.source, self.pick()
        ndim = x.type.ndim if isinstance(x.type, ArrayType) else 0
        choice = source.random()
        if choice < 0.3:
            self.node(
                source.choice("add subtract multiply maximum divide".split()), [x, self.pick()]
            )
        elif choice < 0.45:
            self.node(source.choice("exp sqrt negative square sign".split()), [x])
        elif choice < 0.65 and ndim:
            axes = source.choice([(-1,), (0,), tuple(range(ndim)), (ndim - 2, ndim - 1)])
            axes = tuple(sorted({axis % ndim for axis in axes if axis >= -ndim}))
            attrs: dict[str, Any] = {"axis": axes}
            if source.random() < 0.6:
                attrs["keepdims"] = True
            self.node(source.choice("sum max mean min any var std prod".split()), [x], **attrs)
        elif choice < 0.75 and ndim:
            index: list[Any] = [source.choice([slice(None), slice(None, None, -1)])]
            if source.random() < 0.6:
                index = source.choice([[None], [slice(None), None], [..., None]])
            self.node("slice", [x], index=index)
        elif choice < 0.8 and ndim == 2:
            self.node("transpose", [x], axes=(1, 0))
            self.node(source.choice(["matmul", "dot"]), [x, self.pool[-1]])
        else:
            super().step()


@st.composite
def fusible_graphs(draw: st.DrawFn) -> Graph:
    source = random.Random(draw(st.integers(0, 2**64)))
    builder = (FusibleBuilder if source.random() < 0.8 else Builder)(source)
    return builder.graph(draw(st.integers(1, 40)))


@given(graph=fusible_graphs())
@LAWS
def test_fusion_keeps_what_the_graph_does(graph: Graph) -> None:
    graph, _ = run_pass("cse", graph)
    text = str(graph)
    changed, events = run_pass("fuse", graph)
    check_kernels(changed)
    for seed in range(2):
        arguments = arguments_of(graph, seed)
        assert outcome(changed, arguments) == outcome(graph, arguments)
    assert str(graph) == text
    again, _ = run_pass("fuse", changed)
    assert again is changed
    assert_apart_pairs_are_told(graph, changed, events)


@given(graph=fusible_graphs())
@LAWS
def test_fusion_after_the_pipeline_keeps_what_the_graph_does(graph: Graph) -> None:
    history = optimize(graph, lowering=("fuse",), debug=True)
    check_kernels(history.graph)
    arguments = arguments_of(graph)
    assert outcome(history.graph, arguments) == outcome(graph, arguments)
    again, _ = run_pass("fuse", history.graph)
    assert again is history.graph


@given(graph=fusible_graphs())
@LAWS
def test_fusion_gives_the_same_text_and_events_each_time(graph: Graph) -> None:
    first, told_first = run_pass("fuse", graph)
    second, told_second = run_pass("fuse", graph)
    assert str(first) == str(second)
    assert list(map(repr, told_first)) == list(map(repr, told_second))
    before = set(graph.nodes)
    told = {node for event in told_first if event.kind != "refuse" for node in event.before}
    left = set(first.values())
    for node in first.nodes:
        assert node in before or (node.origin and set(node.origin) <= before)
    for node in graph.nodes:
        if node not in first.nodes and node.outputs and left.isdisjoint(node.outputs):
            assert node in told
