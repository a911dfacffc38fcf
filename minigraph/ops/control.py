"""Nodes with regions: `kernel` and `call`; and `barrier`, which keeps nodes in their places.

A `kernel` is a group of nodes that a backend may run as one loop:

    %y = kernel %x {form='map', body=graph body(%x: f64[3]) {
      %a = exp %x                  : f64[3]
      %y = negative %a             : f64[3]
      return %y
    }} : f64[3]

means what its body means.  `form` names the loops that compute it:

    map        each element of the results by itself
    rows       reductions over the last axes of the loops, and what is computed before and after
    columns    the same over axes that others follow; of both the backend orders the loops as the
               elements lie in memory
    epilogue   a product of matrices, and then each of its elements by itself

A backend that fuses writes each result into a buffer of its own, in C order.

A `call` means what its body means, too; it is a group of nodes that are differentiated together:

    %y, %s = call %x {body=graph body(...) {...}, backward=graph ..., results=1, wanted=(0,)}

    results    how many of the body's outputs the caller asked for (default: all); the others are
               there for the backward graph
    backward   (inputs of the body, its outputs, cotangents of the float results) -> the gradients
               of the inputs that `wanted` names; what it does not need it leaves unread
    wanted     positions among the inputs; the others count as constants
    outside    positions of those by which no gradient may be asked for

Without `backward` nothing is kept for it but the inputs: what it needs is computed again.

A `barrier` is its first operand, and waits for the others.  Nothing is merged across it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError
from minigraph.ir import ArrayType, Graph, Op, Type, Value, decide_equal, parse_graph

from .derivation import Derivation, Term, cotangent_type
from .evaluate import evaluate
from .registry import OPS, declare
from .samples import Sample, array, special

FORMS = ("map", "rows", "columns", "epilogue")


def _infer_kernel(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    if attrs["form"] not in FORMS:
        raise DtypeError(f"{attrs['form']!r} is no form of a kernel", instead=", ".join(FORMS))
    return _infer_body(types, attrs["body"])


def _infer_body(types: Sequence[Type], body: Graph) -> tuple[Type, ...]:
    _check_operands(types, body.inputs, "body")
    return tuple(value.type for value in body.outputs)


def _check_operands(types: Sequence[Type], inputs: Sequence[Value], what: str) -> None:
    if len(types) != len(inputs):
        raise ShapeError(f"the {what} has {len(inputs)} inputs, not {len(types)}")
    for type_, value in zip(types, inputs, strict=True):
        _check_operand(type_, value.type)


def _check_operand(found: Type, wanted: Type) -> None:
    if not isinstance(found, ArrayType) or not isinstance(wanted, ArrayType):
        same = found == wanted
    else:
        same = (
            found.dtype == wanted.dtype
            and found.ndim == wanted.ndim
            and all(map(decide_equal, found.shape, wanted.shape))
        )
    if not same:
        raise ShapeError(f"the body needs a {wanted}, not a {found}")


def _run_body(xp: Any, *inputs: Any, body: Graph, **_: Any) -> Any:
    results = evaluate(body, inputs, xp, region=True)
    return results[0] if len(results) == 1 else tuple(results)


def _infer_call(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    body: Graph = attrs["body"]
    found = _infer_body(types, body)
    results: int = attrs.get("results", len(found))
    if not 0 <= results <= len(found):
        raise ShapeError(f"the body has {len(found)} outputs, and results={results}")
    backward: Graph | None = attrs.get("backward")
    if backward is not None:
        cotangents = [g for t in found[:results] if (g := cotangent_type(t)) is not None]
        _check_operands([*types, *found, *cotangents], backward.inputs, "backward graph")
        wanted: Sequence[int] = attrs["wanted"]
        if len(backward.outputs) != len(wanted):
            raise ShapeError(f"{len(backward.outputs)} gradients for {len(wanted)} inputs")
    return found


def _first_type(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    return types[0]


def _first(xp: Any, x: Any, *others: Any) -> Any:
    return x


def _derive_barrier(d: Derivation, *inputs: Term) -> tuple[Term | None, ...]:
    return (d.g, *[None] * (len(inputs) - 1))


def _sample_call(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 2, 3)
    rows = ArrayType(dtype, (2, 3))
    body = f"""graph body(%x: {rows}) {{
      %a = maximum %x, %x : {rows}
      %b = minimum %a, %x : {rows}
      return (%b, %a)
    }}"""
    return [([x], {"body": parse_graph(body, OPS), "results": 1})]


def _sample_barrier(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 2, 3)
    return [([x], {}), ([x, array(rng, dtype, 3)], {})]


def _sample_kernel(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x, bias = special(rng, dtype, 2, 3), array(rng, dtype, 3)
    rows, row = ArrayType(dtype, (2, 3)), ArrayType(dtype, (3,))
    moved = f"""graph body(%x: {rows}, %y: {row}) {{
      %a = maximum %x, %y : {rows}
      %b = minimum %a, %y : {rows}
      return (%a, %b)
    }}"""
    reduced = f"""graph body(%x: {rows}) {{
      %m = max %x {{axis=(1,), keepdims=True}} : {ArrayType(dtype, (2, 1))}
      %y = maximum %x, %m : {rows}
      return %y
    }}"""
    return [
        ([x, bias], {"form": "map", "body": parse_graph(moved, OPS)}),
        ([x], {"form": "rows", "body": parse_graph(reduced, OPS)}),
    ]


declare(
    Op(
        "kernel",
        "control",
        _infer_kernel,
        _run_body,
        sample=_sample_kernel,
        doc="nodes that run as one loop",
    )
)
declare(
    Op(
        "call",
        "control",
        _infer_call,
        _run_body,
        sample=_sample_call,
        doc="nodes that are differentiated together",
    )
)
declare(
    Op(
        "barrier",
        "layout",
        _first_type,
        _first,
        view=True,
        vjp=_derive_barrier,
        sample=_sample_barrier,
        doc="its first operand, once the others are there",
    )
)
