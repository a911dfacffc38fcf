"""Nodes with regions: so far `kernel`, a group of nodes that a backend may run as one loop.

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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError
from minigraph.ir import ArrayType, Graph, Op, Type, decide_equal, parse_graph

from .evaluate import evaluate
from .registry import OPS, declare
from .samples import Sample, array, special

FORMS = ("map", "rows", "columns", "epilogue")


def _infer_kernel(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    body: Graph = attrs["body"]
    if attrs["form"] not in FORMS:
        raise DtypeError(f"{attrs['form']!r} is no form of a kernel", instead=", ".join(FORMS))
    if len(types) != len(body.inputs):
        raise ShapeError(f"the body has {len(body.inputs)} inputs, not {len(types)}")
    for type_, value in zip(types, body.inputs, strict=True):
        _check_operand(type_, value.type)
    return tuple(value.type for value in body.outputs)


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


def _kernel(xp: Any, *inputs: Any, form: str, body: Graph) -> Any:
    results = evaluate(body, inputs, xp, region=True)
    return results[0] if len(results) == 1 else tuple(results)


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
        _kernel,
        sample=_sample_kernel,
        doc="nodes that run as one loop",
    )
)
