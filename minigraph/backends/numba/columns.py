"""Kernels whose innermost loops run along axes that are not reduced.

A panel of columns is read row by row, with one accumulator on the stack for each column.  Several
rows are taken at a time, in order: so an accumulator is loaded and stored once for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minigraph.ir import Value

from ..threads import get_num_threads
from .keeping import Keeping
from .reducing import Reducer, Stacks
from .space import Loop, Space, sequence
from .writing import Function, Kernel, NewText, Scope, dtype_of, element_dtype

WIDTH = 2048  # columns of a panel
NARROW = 256  # the same where there are few: so that each thread has a panel
ON_STACK = 8  # arrays of that length that the stack of any thread has room for
ROWS = 4  # that a panel takes at a time
LONG = 16  # nodes of a kernel from which it takes one row at a time


class Columns:
    """Panels of columns, each read row by row.

    What there is once for each column (accumulators, results of reductions, what is computed of
    them) stands in arrays on the stack while a panel is worked on.
    """

    def __init__(self, space: Space, new_text: NewText) -> None:
        self.space = space
        self.text = new_text()
        self.keeping = Keeping(space)
        self.rows = space.loops(space.reduced)
        *self.outer, self.panel = space.loops(space.others)
        self.count = ""
        self.reducers = [Reducer(node) for node in space.reductions]
        kept = [
            value
            for level in range(self.space.passes)
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
        width = self._panel_width()
        panels = -(-self.panel.extent // width)
        rows = [text.size(loop.extent) for loop in self.rows]
        widest, columns = text.size(width), text.size(self.panel.extent)
        count = text.size(panels)
        self.count = text.count(self.rows)
        text.open("for i in range(lo, hi):")
        first = text.assign(f"i % {count} * {widest}")
        text.line(f"width = min({widest}, {columns} - {first})")
        names = text.decode(text.assign(f"i // {count}"), self.outer) if self.outer else []
        scope = outside.enter([*self.outer, self.panel], [*names, first])
        for level in range(self.space.passes):
            self._for_each_column(scope, level)
            if self._reducers_at(level) or self.space.stored_at(level):
                self._rows(scope, level, rows)
        iterations = sequence(self.outer) * panels
        return Kernel(Function(text), iterations, self.space.work)

    def _panel_width(self) -> int:
        """How many columns a panel has."""
        columns = self.panel.extent
        if not isinstance(columns, int):
            return self.width
        return min(self.width, max(NARROW, -(-columns // get_num_threads())))

    def _reducers_at(self, level: int) -> list[Reducer]:
        """The reductions of loop `level`."""
        nodes = self.space.reduced_at(level)
        return [reducer for reducer in self.reducers if reducer.node in nodes]

    def _for_columns(self, level: int) -> list[Value]:
        """What there is for each column after `level` loops."""
        results = [n.output for n in self.space.reductions if self.space.level[n.output] == level]
        return results + self.space.between(level)

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
        for reducer in self.reducers:
            node = reducer.node
            if node.output in values:
                result = reducer.result(self.stacks.load(node), self.count)
                inside.define(node.output, text.assign(result, node))
        inside.compute(values)
        for value in values:
            if self.stacks.has(value):
                self.stacks.store(value, inside.stored(value))
            if value in self.space.body.outputs:
                inside.store(value)
        text.depth -= 1

    def _rows(self, scope: Scope, level: int, rows: Sequence[str]) -> None:
        """One pass over the rows of the panel, of which there are so many along each loop."""
        text, reducers = self.text, self._reducers_at(level)
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
        self._columns_of(scope, level, ahead)
        text.depth -= 1
        if at_once > 1:
            text.open(f"for k in range({rows[-1]} // {at_once} * {at_once}, {rows[-1]}):")
            self._columns_of(scope, level, ["k"])
        text.depth = depth

    def _columns_of(self, scope: Scope, level: int, rows: Sequence[str]) -> None:
        """The loop over the columns of the panel, for these rows."""
        text, reducers, stored = self.text, self._reducers_at(level), self.space.stored_at(level)
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
