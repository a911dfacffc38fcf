"""From the body of a `kernel` node to the text of loops.

    kernel %x, %y {form="map"}  over (n, m)        def kernel(lo, hi, v0, v1, v2):
      %t = multiply %x, %y                             for i in range(lo, hi):
      %u = tanh %t                        becomes          t0 = load(v0, i)
      return %u                                            t1 = load(v1, i)
                                                           t2 = t0 * t1
                                                           t3 = tanh(t2)
                                                           store0(v2, i, t3)

The text has one local for each node, and no name, size or place of the user's: equal kernels have
equal text, and a new shape is the same text with other arguments.  Loop axes whose elements lie
side by side in every buffer are one loop.  The outermost loop runs from `lo` to `hi`, so that
threads can share it.

- map: one loop nest, a statement for each node.
- a long chain: two elements at a time.
- rows: the reduced axes are the last ones, or elements lie side by side along them.  A row is read
  in as many loops as there are reductions that wait for each other.  What a later loop needs is
  computed again if that is cheap, else kept in the row of an output that is written only later
  (softmax keeps `exp` so).
- columns: other axes are the innermost ones.  A panel of columns is read row by row, with
  one accumulator on the stack for each column.
- a reduction of everything: chunks make partial results, and a second function combines them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from minigraph.ir import Graph, Node, Size, Value, product

from ..strided import Strided
from .reducing import BLOCK, ONE_BY_ONE, Reducer, Stacks, Totals
from .space import Loop, Space, sequence
from .writing import Function, Partial, Scope, Text, compute_together, dtype_of, element_dtype

CHUNK = 65536  # elements of a chunk of a reduction of everything
WIDTH = 1024  # columns of a panel
ON_STACK = 16  # arrays of that length that the stack of any thread has room for
ROWS = 4  # that a panel takes at a time: so an accumulator is loaded and stored once for them
LONG = 16  # nodes of a kernel from which it takes one row at a time
LONG_CHAIN = 40  # nodes of a map from which two elements are computed at a time
FEW = 8  # elements of a row up to which it is written out
COSTLY = 8  # what a transcendental function costs, in simple operations

NewText = Callable[[], Text]


class Kernel:
    """The functions that compute one `kernel` node.

    Attributes:
        main: runs over `iterations`, which threads may share.
        finish: combines the partial results of all iterations; None: there are none.
        work: the cost of the whole, in simple operations on one element.
    """

    __slots__ = ("finish", "iterations", "main", "work")

    def __init__(
        self, main: Function, iterations: Size, work: Size, finish: Function | None = None
    ) -> None:
        self.main = main
        self.iterations = iterations
        self.work = work
        self.finish = finish


def write_kernel(
    body: Graph,
    windows: Mapping[Value, Strided],
    over: Mapping[Value, Value],
    *,
    exact: bool = False,
) -> Kernel:
    """The functions that compute a body.

    Args:
        body: the region of a `kernel` node without a contraction.
        windows: where each input of the body lies, if not in a buffer of its own.
        over: the buffers that outputs are written over, each with its output.
        exact: compute only what has NumPy's own bits.
    """
    space = Space(body, windows)
    new_text = partial(Text, space, over, exact)
    if not space.reductions:
        return _map(space, new_text)
    if 0 < len(space.shape) == len(space.reduced):
        return _everything(space, new_text)
    return _rows(space, new_text) if _is_by_rows(space) else _columns(space, new_text)


def _is_by_rows(space: Space) -> bool:
    """Whether the innermost loops run along reduced axes, as in most buffers; else in the text."""
    panel = _others(space)[-1:]
    if not space.reduced or not panel or space.shape[panel[0]] == 1:
        return True
    outer = panel[0]
    by_rows = by_columns = 0
    for value, window in space.in_memory():
        step = space.steps(value, window)
        reduced = [step[axis] for axis in space.reduced]
        by_rows += 1 in reduced and step[outer] not in (0, 1)
        by_columns += step[outer] == 1 and 1 not in reduced and any(each != 0 for each in reduced)
    if any(node.op.name == "copy" for node in space.nodes):  # NumPy would read the copy
        by_rows = by_columns = 0
    return by_rows >= by_columns if by_rows or by_columns else space.reduced[-1] > outer


def _others(space: Space) -> list[int]:
    """The loop axes that are not reduced, in order; the last one has more than one step if any."""
    axes = [axis for axis in range(len(space.shape)) if axis not in space.reduced]
    last = max((n for n, axis in enumerate(axes, 1) if space.shape[axis] != 1), default=len(axes))
    return axes[last:] + axes[:last]


def _work(space: Space) -> Size:
    cost = sum(COSTLY if space.is_costly(node) else 1 for node in space.nodes)
    return product(space.shape) * (cost + len(space.body.inputs) + len(space.body.outputs))


# ---------------------------------------------------------------------------- map


def _map(space: Space, new_text: NewText) -> Kernel:
    text = new_text()
    outside = Scope(text)
    loops = space.loops(range(len(space.shape)))
    if len(loops) == 1 and len(space.nodes) >= LONG_CHAIN:
        return _long_map(space, loops, new_text)
    outer, inner = (loops[:-1], loops[-1:]) if len(loops) > 1 else (loops, [])
    sizes = [text.size(loop.extent) for loop in inner]
    text.open("for i in range(lo, hi):")
    scope = outside.enter(outer, _decode(text, "i", outer), inline=not inner)
    if inner:
        text.open(f"for j in range({sizes[0]}):")
        scope = scope.enter(inner, ["j"], inline=True)
    _compute_and_store([scope], space.body.outputs)
    return Kernel(Function(text, ranges=True), sequence(outer), _work(space))


def _long_map(space: Space, loops: Sequence[Loop], new_text: NewText) -> Kernel:
    """One loop over a long chain: two halves at once, for else each step waits for the one before.

    LLVM does not interleave steps of a loop that is so long.
    """
    text = new_text()
    outside = Scope(text)
    half = text.assign("(hi - lo) // 2")
    text.open(f"for i in range(lo, lo + {half}):")
    halves = [outside.enter(loops, [index], inline=True) for index in ("i", f"(i + {half})")]
    _compute_and_store(halves, space.body.outputs)
    text.depth -= 1
    text.open(f"for i in range(lo + {half} * 2, hi):")
    _compute_and_store([outside.enter(loops, ["i"], inline=True)], space.body.outputs)
    return Kernel(Function(text, ranges=True), sequence(loops), _work(space))


def _compute_and_store(scopes: Sequence[Scope], outputs: Sequence[Value]) -> None:
    compute_together(scopes, outputs)
    for value in outputs:
        for scope in scopes:
            scope.store(value)


def _decode(text: Text, index: str, loops: Sequence[Loop]) -> list[str]:
    """The index of each of several loops that are run through as one."""
    names: list[str] = []
    for loop in reversed(loops[1:]):
        size = text.size(loop.extent)
        names.append(text.assign(f"{index} % {size}"))
        index = text.assign(f"{index} // {size}")
    return [index, *reversed(names)] if loops else []


# ---------------------------------------------------------------------------- rows


def _rows(space: Space, new_text: NewText) -> Kernel:
    text = new_text()
    outside = Scope(text)
    outer, inner = space.loops(_others(space)), space.loops(space.reduced)
    length = sequence(inner)
    if isinstance(length, int) and 0 < length <= FEW:
        return _short_rows(space, outer, inner, new_text)
    sizes = [text.size(loop.extent) for loop in inner]
    count = _count(text, inner)
    text.open("for i in range(lo, hi):")
    row = outside.enter(outer, _decode(text, "i", outer))
    keeping = _Keeping(space)
    for level in range(keeping.loops):
        row.compute(_between(space, level))
        totals = Totals(text, _reduced_at(space, level))
        stored = _stored_at(space, level)
        if totals.reducers or stored:
            totals.begin()
            bounds = [("0", size) for size in sizes]
            _reduce(row, inner, bounds, totals, stored, keeping, level)
            for reducer, total in zip(totals.reducers, totals.end(), strict=True):
                name = text.assign(reducer.result(total, count), reducer.node)
                row.define(reducer.node.output, name)
    once = [value for value in space.body.outputs if not space.varies(value)]
    _compute_and_store([row], once)
    return Kernel(Function(text, ranges=True), sequence(outer), _work(space))


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
    row = outside.enter(before, _decode(text, "i", before), inline=not last)
    if last:
        text.open(f"for j in range({size}):")
        row = row.enter(last, ["j"], inline=True)
    places = itertools.product(*(range(int(loop.extent)) for loop in inner))
    elements = [row.enter(inner, list(map(str, place)), inline=True) for place in places]
    for level in range(1 + max([space.level[value] for value in space.body.outputs], default=0)):
        row.compute(_between(space, level))
        for element in elements:
            element.known.update(row.known)
        for reducer in map(Reducer, _reduced_at(space, level)):
            compute_together(elements, reducer.node.inputs)
            total, *rest = [reducer.operand(element) for element in elements]
            if reducer.is_sum:  # of negative zeros it is not one
                total = text.assign(reducer.combine(reducer.start, total, ordered=True))
            for operand in rest:
                total = text.assign(reducer.combine(total, operand, ordered=True), reducer.node)
            result = text.assign(reducer.result(total, str(len(elements))), reducer.node)
            row.define(reducer.node.output, result)
        _compute_and_store(elements, _stored_at(space, level))
    once = [value for value in space.body.outputs if not space.varies(value)]
    _compute_and_store([row], once)
    return Kernel(Function(text, ranges=True), sequence(before), _work(space))


def _reduce(
    scope: Scope,
    loops: Sequence[Loop],
    bounds: Sequence[tuple[str, str]],
    totals: Totals,
    stored: Sequence[Value],
    keeping: _Keeping,
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


def _count(text: Text, loops: Sequence[Loop]) -> str:
    """The parameter that holds how many elements are reduced, where a mean needs it."""
    if any(node.op.name == "mean" for node in text.space.reductions):
        return text.size(sequence(loops))
    return ""


def _between(space: Space, level: int) -> list[Value]:
    """What does not vary along the reduced axes and can be had after `level` loops over them."""
    return [
        node.output
        for node in space.nodes
        if node.op.kind != "reduce"
        and space.level[node.output] == level
        and not space.varies(node.output)
    ]


def _reduced_at(space: Space, level: int) -> list[Node]:
    return [node for node in space.reductions if space.level.get(node.inputs[0], 0) == level]


def _stored_at(space: Space, level: int) -> list[Value]:
    return [
        value for value in space.body.outputs if space.varies(value) and space.level[value] == level
    ]


class _Keeping:
    """The costly values that later loops read back instead of computing them again.

    Attributes:
        loops: how many loops over the reduced axes there are.
        place: for each value that is kept the output in whose place it stands; that may be itself.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.loops = 1 + max([space.level[value] for value in space.body.outputs], default=0)
        self.place: dict[Value, Value] = {}
        needed = self._needed()
        free = {value: None for value in space.body.outputs if space.varies(value)}
        for node in space.nodes:
            value = node.output
            loops = needed.get(value, [])
            if len(loops) < 2 or space.level[value] != loops[0]:
                continue
            if value in free:
                self.place[value] = value
            elif space.is_costly(node):
                place = next((o for o in free if self._can_stand_in(value, o, loops)), None)
                if place is not None:
                    self.place[value] = place
                    del free[place]

    def _needed(self) -> dict[Value, list[int]]:
        """The loops that need each value which varies along the reduced axes."""
        needed: dict[Value, list[int]] = {}
        for level in range(self.loops):
            wanted = {node.inputs[0] for node in _reduced_at(self.space, level)}
            wanted.update(_stored_at(self.space, level))
            for node in reversed(self.space.nodes):
                if node.output in wanted and self.space.varies(node.output):
                    needed.setdefault(node.output, []).append(level)
                    wanted.update(node.inputs)
        return needed

    def _can_stand_in(self, value: Value, output: Value, loops: Sequence[int]) -> bool:
        """Whether the output is of the same kind, and written no earlier than the last reading."""
        space = self.space
        return (
            output.type == value.type
            and space.axes[output] == space.axes[value]
            and space.level[output] >= loops[-1]
        )

    def readable(self, level: int) -> dict[Value, Value]:
        """What stands in memory before this loop."""
        return {v: place for v, place in self.place.items() if self.space.level[v] < level}

    def store(self, scope: Scope, level: int) -> None:
        """Keep what this loop is the first to compute."""
        for value, place in self.place.items():
            if place is not value and self.space.level[value] == level:
                scope.store(value, place)


# ---------------------------------------------------------------------------- everything


def _everything(space: Space, new_text: NewText) -> Kernel:
    text = new_text()
    scope = Scope(text)
    loops = space.loops(range(len(space.shape)))
    behind = sequence(loops[1:])
    chunk = max(1, CHUNK // max(1, behind)) if isinstance(behind, int) else 1
    first, *sizes = [text.size(loop.extent) for loop in loops]
    step = text.size(chunk)
    text.open("for i in range(lo, hi):")
    scope.compute(_between(space, 0))
    totals = Totals(text, space.reductions)
    totals.begin()
    low = text.assign(f"i * {step}")
    high = text.assign(f"min({low} + {step}, {first})")
    bounds = [(low, high), *(("0", size) for size in sizes)]
    _reduce(scope, loops, bounds, totals, _stored_at(space, 0), _Keeping(space), 0)
    partials = [Partial(reducer.total_dtype.name) for reducer in totals.reducers]
    for reducer, place, total in zip(totals.reducers, partials, totals.end(), strict=True):
        pointer = text.pointer(place, place.dtype)
        text.line(f"store{text.new_scope()}({pointer}, i, {total})", reducer.node)
    main = Function(text, ranges=True)
    iterations = -(-loops[0].extent // chunk)
    return Kernel(main, iterations, _work(space), _finish(space, new_text, partials))


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
    _compute_and_store([scope], once)
    return Function(text, ranges=True)


# ---------------------------------------------------------------------------- columns


def _columns(space: Space, new_text: NewText) -> Kernel:
    return _Columns(space, new_text).write()


class _Columns:
    """Panels of columns, each read row by row.

    What there is once for each column (accumulators, results of reductions, what is computed of
    them) stands in arrays on the stack while a panel is worked on.
    """

    def __init__(self, space: Space, new_text: NewText) -> None:
        self.space = space
        self.text = new_text()
        self.keeping = _Keeping(space)
        self.rows = space.loops(space.reduced)
        *self.outer, self.panel = space.loops(_others(space))
        self.count = ""
        self.reducers = [Reducer(node) for node in space.reductions]
        kept = [
            value
            for level in range(self.keeping.loops)
            for value in self._for_columns(level)
            if self._is_needed_later(value)
        ]
        self.width = WIDTH // -(-(len(self.reducers) + len(kept)) // ON_STACK)
        self.stacks = Stacks(self.text, self.width)
        for reducer in self.reducers:
            self.stacks.make(reducer.node, reducer.dtype)
        for value in kept:
            self.stacks.make(value, np.dtype(element_dtype(dtype_of(value))))

    def write(self) -> Kernel:
        text = self.text
        outside = Scope(text)
        panels = -(-self.panel.extent // self.width)
        rows = [text.size(loop.extent) for loop in self.rows]
        widest, columns = text.size(self.width), text.size(self.panel.extent)
        count = text.size(panels)
        self.count = _count(text, self.rows)
        text.open("for i in range(lo, hi):")
        first = text.assign(f"i % {count} * {widest}")
        text.line(f"width = min({widest}, {columns} - {first})")
        names = _decode(text, text.assign(f"i // {count}"), self.outer) if self.outer else []
        scope = outside.enter([*self.outer, self.panel], [*names, first])
        for level in range(self.keeping.loops):
            self._for_each_column(scope, level)
            here = [reducer for reducer in self.reducers if self._level_of(reducer) == level]
            stored = _stored_at(self.space, level)
            if here or stored:
                self._rows(scope, level, rows, here, stored)
        iterations = sequence(self.outer) * panels
        return Kernel(Function(text, ranges=True), iterations, _work(self.space))

    def _level_of(self, reducer: Reducer) -> int:
        return self.space.level.get(reducer.node.inputs[0], 0)

    def _for_columns(self, level: int) -> list[Value]:
        """What there is for each column after `level` loops."""
        results = [n.output for n in self.space.reductions if self.space.level[n.output] == level]
        return results + _between(self.space, level)

    def _is_needed_later(self, value: Value) -> bool:
        """Whether something reads it that is not computed together with it."""
        space = self.space
        return any(
            value in node.inputs
            and (space.varies(node.output) or space.level[node.output] > space.level[value])
            for node in space.nodes
        )

    def _for_each_column(self, scope: Scope, level: int) -> None:
        """Compute what there is for each column after `level` loops, and store the outputs."""
        values = self._for_columns(level)
        if not values:
            return
        text = self.text
        text.open("for j in range(width):")
        inside = self._enter(scope, [self.panel], ["j"], level)
        for node in self.space.reductions:
            if node.output in values:
                reducer = Reducer(node)
                result = reducer.result(self.stacks.load(node), self.count)
                inside.define(node.output, text.assign(result, node))
        inside.compute(values)
        for value in values:
            if self.stacks.has(value):
                self.stacks.store(value, inside.stored(value))
            if value in self.space.body.outputs:
                inside.store(value)
        text.depth -= 1

    def _rows(
        self,
        scope: Scope,
        level: int,
        rows: Sequence[str],
        reducers: Sequence[Reducer],
        stored: Sequence[Value],
    ) -> None:
        """One pass over the rows of the panel."""
        text = self.text
        if reducers:
            text.open("for j in range(width):")
            for reducer in reducers:
                self.stacks.store(reducer.node, reducer.start)
            text.depth -= 1
        depth = text.depth
        outer = [f"k{number}" for number in range(len(rows) - 1)]
        for index, size in zip(outer, rows, strict=False):
            text.open(f"for {index} in range({size}):")
        scope = scope.enter(self.rows[:-1], outer)
        at_once = ROWS if reducers and len(self.space.nodes) < LONG else 1
        bounds = f"0, {rows[-1]} - {at_once - 1}, {at_once}" if at_once > 1 else rows[-1]
        text.open(f"for k in range({bounds}):")
        ahead = ["k", *(f"(k + {number})" for number in range(1, at_once))]
        self._columns_of(scope, level, ahead, reducers, stored)
        text.depth -= 1
        if at_once > 1:
            text.open(f"for k in range({rows[-1]} // {at_once} * {at_once}, {rows[-1]}):")
            self._columns_of(scope, level, ["k"], reducers, stored)
        text.depth = depth

    def _columns_of(
        self,
        scope: Scope,
        level: int,
        rows: Sequence[str],
        reducers: Sequence[Reducer],
        stored: Sequence[Value],
    ) -> None:
        """The loop over the columns of the panel, for these rows."""
        text = self.text
        scopes = [scope.enter(self.rows[-1:], [row]) for row in rows]
        text.open("for j in range(width):")
        totals = [text.assign(self.stacks.load(reducer.node)) for reducer in reducers]
        for row in scopes:
            inside = self._enter(row, [self.panel], ["j"], level + 1)
            inside.kept = self.keeping.readable(level)
            inside.compute([*(reducer.node.inputs[0] for reducer in reducers), *stored])
            for number, reducer in enumerate(reducers):
                operand = reducer.operand(inside)
                combined = reducer.combine(totals[number], operand, ordered=True)
                totals[number] = text.assign(combined, reducer.node)
            self.keeping.store(inside, level)
            for value in stored:
                inside.store(value)
        for reducer, total in zip(reducers, totals, strict=True):
            self.stacks.store(reducer.node, total)
        text.depth -= 1

    def _enter(
        self, scope: Scope, loops: Sequence[Loop], names: Sequence[str], level: int
    ) -> Scope:
        """Inside the loop over columns; what earlier levels made is read off the stack."""
        inside = scope.enter(loops, names, inline=True)
        inside.elsewhere = {
            value: self.stacks.load(value)
            for earlier in range(level)
            for value in self._for_columns(earlier)
            if self.stacks.has(value)
        }
        return inside
