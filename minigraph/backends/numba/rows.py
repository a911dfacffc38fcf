"""Kernels whose innermost loops run along the reduced axes.

A row is read in as many loops as there are reductions that wait for each other.  What a later loop
needs is computed again if that is cheap, else kept in the row of an output that is written only
later (softmax keeps `exp` so).  Rows of a few elements are written out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from minigraph.ir import Node, Value

from .keeping import Keeping
from .reducing import BLOCK, ONE_BY_ONE, Reducer, Totals
from .space import Loop, Space, sequence
from .writing import (
    Function,
    Kernel,
    NewText,
    Scope,
    compute_and_store,
    compute_together,
    dtype_of,
)

FEW = 8  # elements of a row up to which it is written out


def write_rows(space: Space, new_text: NewText) -> Kernel:
    """A kernel that reads row by row."""
    outer, inner = space.loops(space.others), space.loops(space.reduced)
    length = sequence(inner)
    if isinstance(length, int) and 0 < length <= FEW:
        return _short_rows(space, outer, inner, new_text)
    text = new_text()
    outside = Scope(text)
    passes = [space.reduced_at(level) for level in range(space.passes)]
    size = text.length if any(map(_is_extreme, itertools.chain(*passes))) else text.size
    sizes = [size(loop.extent) for loop in inner]
    count = text.count(inner)
    text.open("for i in range(lo, hi):")
    row = outside.enter(outer, text.decode("i", outer))
    keeping = Keeping(space)
    for level in range(space.passes):
        row.compute(space.between(level))
        totals = Totals(text, space.reduced_at(level))
        stored = space.stored_at(level)
        if totals.reducers or stored:
            totals.begin()
            bounds = [("0", size) for size in sizes]
            reduce(row, inner, bounds, totals, stored, keeping, level)
            for reducer, total in zip(totals.reducers, totals.end(), strict=True):
                name = text.assign(reducer.result(total, count), reducer.node)
                row.define(reducer.node.output, name)
    once = [value for value in space.body.outputs if not space.varies(value)]
    compute_and_store([row], once)
    return Kernel(Function(text), sequence(outer), space.work)


def _is_extreme(node: Node) -> bool:
    """Whether it is the largest or smallest of floats, whose loop must not have a known length.

    LLVM unrolls a short one before it would vectorise it, and a chain of maxima stays a chain
    (a softmax over 64 elements: six times as long).
    """
    return node.op.name in ("max", "min") and dtype_of(node.output).kind == "f"


def _short_rows(
    space: Space, outer: Sequence[Loop], inner: Sequence[Loop], new_text: NewText
) -> Kernel:
    """Rows of a few elements: each is written out, and the loop is one over rows.

    What a row has is computed once and stays in locals, whatever reads it.  So few shapes are of
    this kind that the text may hold the length, which LLVM needs to vectorise over rows.
    """
    text = new_text()
    text.literal_steps = FEW
    outside = Scope(text)
    before, last = (outer[:-1], outer[-1:]) if len(outer) > 1 else (outer, [])
    size = text.size(last[0].extent) if last else ""
    text.open("for i in range(lo, hi):")
    row = outside.enter(before, text.decode("i", before), inline=not last)
    if last:
        text.open(f"for j in range({size}):")
        row = row.enter(last, ["j"], inline=True)
    places = itertools.product(*(range(int(loop.extent)) for loop in inner))
    elements = [row.enter(inner, list(map(str, place)), inline=True) for place in places]
    for level in range(space.passes):
        row.compute(space.between(level))
        for element in elements:
            element.known.update(row.known)
        for reducer in map(Reducer, space.reduced_at(level)):
            compute_together(elements, reducer.node.inputs)
            total, *rest = [reducer.operand(element) for element in elements]
            if reducer.is_sum:  # of negative zeros it is not one
                total = text.assign(reducer.combine(reducer.start, total, ordered=True))
            for operand in rest:
                total = text.assign(reducer.combine(total, operand, ordered=True), reducer.node)
            result = text.assign(reducer.result(total, str(len(elements))), reducer.node)
            row.define(reducer.node.output, result)
        compute_and_store(elements, space.stored_at(level))
    once = [value for value in space.body.outputs if not space.varies(value)]
    compute_and_store([row], once)
    return Kernel(Function(text), sequence(before), space.work)


def reduce(
    scope: Scope,
    loops: Sequence[Loop],
    bounds: Sequence[tuple[str, str]],
    totals: Totals,
    stored: Sequence[Value],
    keeping: Keeping,
    level: int,
) -> None:
    """The loops over the reduced axes; the innermost runs in blocks if it sums floats."""
    text = scope.text
    depth = text.depth
    for number, (loop, (low, high)) in enumerate(zip(loops[:-1], bounds, strict=False)):
        text.open(f"for j{number} in range({low}, {high}):")
        scope = scope.enter([loop], [f"j{number}"])
    low, high = bounds[-1]
    if totals.blocked:
        in_vectors = text.space.is_dense_along(loops[-1].axes[-1])
        block = BLOCK if in_vectors else ONE_BY_ONE
        text.open(f"for b in range({low}, {high}, {block}):")
        totals.begin_block(in_vectors)
        low, high = "b", f"min(b + {block}, {high})"
    text.open(f"for j in range({low}, {high}):")
    inside = scope.enter(loops[-1:], ["j"], inline=True)
    inside.kept = keeping.readable(level)
    inside.compute([*(reducer.node.inputs[0] for reducer in totals.reducers), *stored])
    totals.add(inside)
    keeping.store(inside, level)
    for value in stored:
        inside.store(value)
    if totals.blocked:
        text.depth -= 1
        totals.end_block()
    text.depth = depth
