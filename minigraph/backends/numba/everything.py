"""Kernels that reduce all that there is: chunks make partial results, which are then combined."""

from __future__ import annotations

from collections.abc import Sequence

from minigraph.ir import product

from .keeping import Keeping
from .reducing import Totals
from .rows import reduce
from .space import Space, sequence
from .writing import Function, Kernel, NewText, Partial, Scope, compute_and_store

CHUNK = 65536  # elements of a chunk


def write_everything(space: Space, new_text: NewText) -> Kernel:
    """A kernel all of whose axes are reduced."""
    text = new_text()
    scope = Scope(text)
    loops = space.loops(range(len(space.shape)))
    behind = sequence(loops[1:])
    chunk = max(1, CHUNK // max(1, behind)) if isinstance(behind, int) else 1
    first, *sizes = [text.size(loop.extent) for loop in loops]
    step = text.size(chunk)
    text.open("for i in range(lo, hi):")
    scope.compute(space.between(0))
    totals = Totals(text, space.reductions)
    totals.begin()
    low = text.assign(f"i * {step}")
    high = text.assign(f"min({low} + {step}, {first})")
    bounds = [(low, high), *(("0", size) for size in sizes)]
    reduce(scope, loops, bounds, totals, space.stored_at(0), Keeping(space), 0)
    partials = [Partial(reducer.total_dtype.name) for reducer in totals.reducers]
    for reducer, place, total in zip(totals.reducers, partials, totals.end(), strict=True):
        pointer = text.pointer(place, place.dtype)
        text.line(f"store{text.new_scope()}({pointer}, i, {total})", reducer.node)
    main = Function(text)
    iterations = -(-loops[0].extent // chunk)
    return Kernel(main, iterations, space.work, _finish(space, new_text, partials))


def _finish(space: Space, new_text: NewText, partials: Sequence[Partial]) -> Function:
    """Combines the partial results of `hi` chunks, and computes what depends on them."""
    text = new_text()
    scope = Scope(text)
    count = text.size(product(space.shape))
    totals = Totals(text, space.reductions)
    totals.begin()
    text.open("for i in range(lo, hi):")
    for number, place in enumerate(partials):
        totals.add_part(number, f"load({text.pointer(place, place.dtype)}, i)")
    text.depth -= 1
    for reducer, total in zip(totals.reducers, totals.end(), strict=True):
        name = text.assign(reducer.result(total, count), reducer.node)
        scope.define(reducer.node.output, name)
    once = [value for value in space.body.outputs if not space.varies(value)]
    compute_and_store([scope], once)
    return Function(text)
