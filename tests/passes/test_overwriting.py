"""Results that are computed in the memory of the argument that they are written to."""

from __future__ import annotations

from typing import Any

import pytest
from passes.laws import graph_of

from minigraph.ir import verify
from minigraph.ops import get
from minigraph.passes import Recorder, optimize, plan, plan_of
from minigraph.passes.overwriting import overwritten


def directly(text: str, **options: Any) -> dict[str, str]:
    graph = graph_of(text)
    verify(graph)
    found = plan(graph, Recorder.after(graph)) if not options else plan_of(graph)
    return {value.name: target.name for value, target in found.written.items()}


def step(
    between: str = "", result: str = "subtract %w, %1", after: str = "", out: str = "()"
) -> str:
    return f"""\
        graph f(%w: f32[4], %g: f32[4], %i: i64[4]) {{
          %r = const 0.5 : float
          %1 = multiply %g, %r : f32[4]
          %2 = {result} : f32[4]
          {between}
          write %w, %2
          {after}
          return {out}
        }}"""


def test_an_update_needs_no_memory_of_its_own() -> None:
    assert directly(step()) == {"2": "w"}
    found = plan_of(graph_of(step()))
    assert found.peak_bytes == found.naive_bytes == 16  # of %1
    assert "argument %w: %2 is computed there" in str(found)


@pytest.mark.parametrize(
    "text",
    [
        step(between="%3 = exp %w : f32[4]", out="%3"),  # reads the argument in between
        step(between="%v = slice %w {index=[1:]} : f32[3]\n%3 = exp %v : f32[3]", out="%3"),
        step(between="print %g {parts=(%,)}"),  # may fail, and then the argument must be as it was
        step(between="%3 = take %g, %i {axis=0} : f32[4]", out="%3"),
        step(out="%2"),  # is an output, too
        step(result="cumsum %1 {axis=0}"),  # makes a buffer of its own
        step(after="write %w, %1"),  # is written twice
    ],
    ids=["read", "view", "print", "raises", "output", "buffer", "twice"],
)
def test_what_is_not_computed_there(text: str) -> None:
    assert directly(text) == {}


def test_a_view_of_the_argument_is_read_elsewhere() -> None:
    text = """\
        graph f(%w: f32[4]) {
          %v = slice %w {index=[::-1]} : f32[4]
          %2 = add %w, %v : f32[4]
          write %w, %2
          return ()
        }"""
    assert directly(text) == {}


def test_other_types_and_numbers_are_written_afterwards() -> None:
    text = """\
        graph f(%w: f32[4], %t: f32[], %h: f16[4]) {
          %n = const 1 : int
          %1 = add %t, %n : f32[]
          write %t, %1
          %2 = add %h, %n : f16[4]
          write %h, %2
          %3 = add %1, %n : f32[]
          %4 = broadcast_to %3 {shape=(4,)} : f32[4]
          write %w, %4
          return ()
        }"""
    assert directly(text) == {}


# ---- kernels


def kernel_of(text: str) -> Any:
    fused = optimize(graph_of(text), ("fuse",)).graph
    (kernel,) = [node for node in fused.nodes if node.op is get("kernel")]
    return kernel


def results(kernel: Any, **options: Any) -> dict[str, set[str]]:
    found = overwritten(kernel, **options)
    return {value.name: {operand.name for operand in found.get(value, ())} for value in found}


def test_the_product_of_an_epilogue_overwrites_nothing_unless_it_is_apart() -> None:
    kernel = kernel_of("""\
        graph f(%w: f32[4,5], %g: f32[4,3], %x: f32[3,5]) {
          %1 = matmul %g, %x : f32[4,5]
          %2 = subtract %w, %1 : f32[4,5]
          return %2
        }""")
    assert results(kernel) == {}
    assert results(kernel, product_apart=True) == {"2": {"w"}}


def test_what_there_is_once_for_a_column_is_overwritten_by_its_successor() -> None:
    kernel = kernel_of("""\
        graph f(%x: f32[3,4], %b: f32[4]) {
          %1 = sum %x {axis=(0,)} : f32[4]
          %2 = subtract %b, %1 : f32[4]
          return %2
        }""")
    assert results(kernel) == {"2": {"b"}}


def test_it_may_be_read_in_each_row_if_all_rows_come_before() -> None:
    text = """\
        graph f(%x: f32[3,4], %b: f32[4]) {{
          %0 = multiply %x, %b : f32[3,4]
          %1 = sum %0 {{axis=(0,)}} : f32[4]
          %2 = subtract %b, %1 : f32[4]
          %3 = subtract %x, {other} : f32[3,4]
          return (%2, %3)
        }}"""
    assert results(kernel_of(text.format(other="%b"))) == {"2": {"b"}, "3": set()}
    assert results(kernel_of(text.format(other="%2"))) == {"2": set(), "3": set()}


def test_nor_what_lies_along_the_reduced_axis_of_a_square() -> None:
    kernel = kernel_of("""\
        graph f(%x: f32[4,4], %b: f32[4]) {
          %0 = multiply %x, %b : f32[4,4]
          %1 = sum %0 {axis=(1,)} : f32[4]
          %2 = exp %1 : f32[4]
          return %2
        }""")
    assert results(kernel) == {"2": set()}


def test_nor_what_is_read_after_the_result() -> None:
    kernel = kernel_of("""\
        graph f(%x: f32[3,4], %b: f32[4]) {
          %1 = sum %x {axis=(0,), keepdims=False} : f32[4]
          %2 = subtract %b, %1 : f32[4]
          %3 = subtract %x, %2 : f32[3,4]
          %4 = exp %3 : f32[3,4]
          %5 = sum %4 {axis=(0,)} : f32[4]
          %6 = multiply %5, %b : f32[4]
          return (%2, %6)
        }""")
    assert results(kernel) == {"2": set(), "6": {"b"}}
