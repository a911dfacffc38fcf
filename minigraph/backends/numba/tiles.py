"""Products of matrices of moderate size, in tiles that are kept in registers.

BLAS copies both operands into an order of its own first, which pays only where each element is read
many times, and wakes its threads, for which the next parallel loop then waits.  A matrix that fits
into the second-level cache can be read as it lies: a tile of the result has its sums in registers,
and each step along the inner dimension adds a product to all of them.

- `multiply_in_tiles`: rows of the second operand in one piece.  A step reads a few vectors of such
  a row and multiplies them by one number each of the rows of the first operand, however that lies.
- `multiply_rows`: the second operand transposed, so that what is multiplied lies side by side in
  both.  A step takes a vector of each; the lanes are added up in the end.

What is left at the edges is read and written through masks, or computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .intrinsics import HELPERS as _INTRINSICS

_moved, _itemsize = _INTRINSICS["moved"], _INTRINSICS["itemsize"]

HAS_WIDE = llvmlite.binding.get_host_cpu_features().get("avx512f", False)
VECTOR_BYTES = 64 if HAS_WIDE else 32
WIDTH = 3  # vectors of a tile's row
TALL = 8 if HAS_WIDE else 4  # rows of a tile: all that registers have room for
LOW = 2  # of one where there are fewer
SIDE = 4 if HAS_WIDE else 2  # rows and columns of a tile whose sums are vectors
CHAINS = 8  # vectors of sums of a single dot product: each waits only for itself


class Vectors:
    """The vectors of the elements that a pointer points to, while code is written."""

    def __init__(self, context: Any, builder: Any, pointer: Any) -> None:
        element = context.get_value_type(pointer.dtype)
        self.builder = builder
        self.size_bytes = context.get_abi_sizeof(element)
        self.kind = ir.VectorType(element, VECTOR_BYTES // self.size_bytes)
        self.lanes = self.kind.count
        self.suffix = f"v{self.lanes}f{self.size_bytes * 8}"

    def at(self, pointer: Any, offset: Any) -> Any:
        """The address of the vector that begins so many elements further."""
        return self.builder.bitcast(self.builder.gep(pointer, [offset]), self.kind.as_pointer())

    def load(self, address: Any, mask: Any = None) -> Any:
        """A vector; the lanes that a mask leaves out are zero."""
        if mask is None:
            return self.builder.load(address, align=self.size_bytes)
        parameters = [self.kind.as_pointer(), ir.IntType(32), mask.type, self.kind]
        arguments = [address, ir.IntType(32)(self.size_bytes), mask, self.kind(None)]
        return self._call(f"llvm.masked.load.{self.suffix}.p0", self.kind, parameters, arguments)

    def store(self, value: Any, address: Any, mask: Any = None) -> None:
        if mask is None:
            self.builder.store(value, address, align=self.size_bytes)
            return
        parameters = [self.kind, self.kind.as_pointer(), ir.IntType(32), mask.type]
        arguments = [value, address, ir.IntType(32)(self.size_bytes), mask]
        self._call(f"llvm.masked.store.{self.suffix}.p0", ir.VoidType(), parameters, arguments)

    def first(self, count: Any) -> Any:
        """The mask of so many lanes."""
        numbers = ir.VectorType(count.type, self.lanes)
        order = ir.Constant(numbers, list(range(self.lanes)))
        return self.builder.icmp_signed("<", order, in_all_lanes(self.builder, count, numbers))

    def multiply_and_add(self, a: Any, b: Any, total: Any) -> Any:
        scaled = self.builder.fmul(a, b, flags=("contract",))
        return self.builder.fadd(scaled, total, flags=("contract",))

    def sum(self, vector: Any) -> Any:
        """The sum of the lanes."""
        element = self.kind.element
        name = f"llvm.vector.reduce.fadd.{self.suffix}"
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(element, [element, self.kind]), name
        )
        return self.builder.call(function, [element(0), vector], fastmath=("reassoc",))

    def _call(self, name: str, result: Any, parameters: Sequence[Any], arguments: Any) -> Any:
        kind = ir.FunctionType(result, parameters)
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, arguments)


class _Loop:
    """A loop being written, with values that each step passes on to the next.

    Its body stands between `while_less` and `repeat`; `now` holds the values of the step, and, once
    the loop is left, the last ones.
    """

    def __init__(self, builder: Any, start: Sequence[Any]) -> None:
        self.builder = builder
        before = builder.block
        self._head = builder.append_basic_block("loop")
        self._body = builder.append_basic_block("loop.body")
        self._end = builder.append_basic_block("loop.end")
        builder.branch(self._head)
        builder.position_at_end(self._head)
        self.now = [builder.phi(value.type) for value in start]
        for phi, value in zip(self.now, start, strict=True):
            phi.add_incoming(value, before)

    def while_less(self, a: Any, b: Any) -> None:
        self.builder.cbranch(self.builder.icmp_signed("<", a, b), self._body, self._end)
        self.builder.position_at_end(self._body)

    def repeat(self, following: Sequence[Any]) -> None:
        for phi, value in zip(self.now, following, strict=True):
            phi.add_incoming(value, self.builder.block)
        keep_from_unrolling(self.builder.module, self.builder.branch(self._head))
        self.builder.position_at_end(self._end)


def in_all_lanes(builder: Any, value: Any, vector: Any) -> Any:
    """A vector that has the value in each lane."""
    nothing, index = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(nothing, value, index(0))
    return builder.shuffle_vector(
        first, nothing, ir.Constant(ir.VectorType(index, vector.count), None)
    )


def keep_from_unrolling(module: Any, branch: Any) -> None:
    """Tell LLVM to leave a loop as it is."""
    never = module.add_metadata(["llvm.loop.unroll.disable"])
    loop = module.add_metadata([f"loop {len(module.metadata)}", never])
    loop.operands = (loop, never)  # a loop's name is a reference to itself
    branch.set_metadata("llvm.loop", loop)


# ---------------------------------------------------------------------------- columns side by side


def _tile(height: int, width: int) -> Any:
    """A function that computes a tile of so many rows and vectors of columns.

    A tile of one vector may have fewer columns than lanes: `columns_left` says how many.
    """

    @intrinsic
    def tile(
        typing_context: Any,
        inner: Any,
        columns: Any,
        columns_left: Any,
        row_step: Any,
        inner_step: Any,
        a: Any,
        b_step: Any,
        b: Any,
        out: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            inner, columns, columns_left, row_step, inner_step, a, b_step, b, out = arguments
            vectors, count = Vectors(context, builder, signature.args[5]), inner.type
            mask = vectors.first(columns_left) if width == 1 else None
            places = [count(number * vectors.lanes) for number in range(width)]
            rows = [builder.mul(row_step, count(number)) for number in range(height)]
            zeros = [vectors.kind(None)] * (height * width)
            loop = _Loop(builder, [count(0), a, b, *zeros])
            k, left, right, *totals = loop.now
            loop.while_less(k, inner)
            reads = [vectors.load(vectors.at(right, place), mask) for place in places]
            sums: list[Any] = []
            for number, row in enumerate(rows):
                factor = builder.load(builder.gep(left, [row]))
                factors = in_all_lanes(builder, factor, vectors.kind)
                before = totals[number * width : (number + 1) * width]
                for read, total in zip(reads, before, strict=True):
                    sums.append(vectors.multiply_and_add(factors, read, total))
            steps = [builder.gep(left, [inner_step]), builder.gep(right, [b_step])]
            loop.repeat([builder.add(k, count(1)), *steps, *sums])
            for number, total in enumerate(totals):
                start = builder.gep(out, [builder.mul(columns, count(number // width))])
                vectors.store(total, vectors.at(start, places[number % width]), mask)
            return context.get_dummy_value()

        sizes = (inner, columns, columns_left, row_step, inner_step)
        return types.void(*sizes, a, b_step, b, out), generate

    return tile


def _strip(height: int) -> Callable[..., None]:
    """A function that computes so many rows, from column 0 on."""
    wide, narrow = _tile(height, WIDTH), _tile(height, 1)

    @numba.njit(error_model="numpy")
    def strip(
        inner: Any,
        columns: Any,
        first: Any,
        row_step: Any,
        inner_step: Any,
        a: Any,
        b_step: Any,
        b: Any,
        out: Any,
    ) -> None:
        left = columns - first
        if left >= WIDTH * (VECTOR_BYTES // _itemsize(a)):
            wide(inner, columns, left, row_step, inner_step, a, b_step, b, out)
        else:
            narrow(inner, columns, left, row_step, inner_step, a, b_step, b, out)

    return strip


_tall, _low, _single = _strip(TALL), _strip(LOW), _strip(1)


@numba.njit(error_model="numpy")
def multiply_in_tiles(
    rows: Any,
    inner: Any,
    columns: Any,
    row_step: Any,
    inner_step: Any,
    a: Any,
    b_step: Any,
    b: Any,
    out: Any,
) -> None:
    """`out = a @ b` for rows of `b` that are each in one piece; the steps are those between
    elements of `a`, and between rows of `b`.

    The columns of a tile are multiplied by all rows before the next ones are read.
    """
    lanes = VECTOR_BYTES // _itemsize(a)
    first = 0
    while first < columns:
        panel = _moved(b, first)
        row = 0
        while row < rows:  # tiles that would go beyond the last row begin earlier
            if rows >= LOW:
                row = min(row, rows - (TALL if rows >= TALL else LOW))
            start, place = _moved(a, row * row_step), _moved(out, row * columns + first)
            if rows >= TALL:
                _tall(inner, columns, first, row_step, inner_step, start, b_step, panel, place)
                row += TALL
            elif rows >= LOW:
                _low(inner, columns, first, row_step, inner_step, start, b_step, panel, place)
                row += LOW
            else:
                _single(inner, columns, first, row_step, inner_step, start, b_step, panel, place)
                row += 1
        first += WIDTH * lanes if columns - first >= WIDTH * lanes else lanes


# ---------------------------------------------------------------------------- rows times rows


def _dots(height: int, width: int, chains: int = 1) -> Any:
    """A function for the dot products of so many rows of `a` with so many of `b`.

    Each has several sums (`chains`), which take turns.
    """

    @intrinsic
    def dots(
        typing_context: Any,
        inner: Any,
        columns: Any,
        a_step: Any,
        a: Any,
        b_step: Any,
        b: Any,
        out: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            inner, columns, a_step, a, b_step, b, out = arguments
            vectors, count = Vectors(context, builder, signature.args[3]), inner.type
            left = [builder.mul(a_step, count(number)) for number in range(height)]
            right = [builder.mul(b_step, count(number)) for number in range(width)]
            lanes = vectors.lanes

            def step(k: Any, totals: Sequence[Any], chains: int, mask: Any = None) -> list[Any]:
                """The sums after so many vectors more."""
                before = iter(totals)
                sums: list[Any] = []
                for chain in range(chains):
                    place = builder.add(k, count(chain * lanes))
                    rows, others = (
                        [vectors.load(vectors.at(p, builder.add(place, o)), mask) for o in offsets]
                        for p, offsets in ((a, left), (b, right))
                    )
                    for x in rows:
                        sums += [vectors.multiply_and_add(x, y, next(before)) for y in others]
                return sums

            def along(
                k: Any, totals: list[Any], chains: int, partly: bool = False
            ) -> tuple[Any, list[Any]]:
                """A loop over steps of so many vectors, or (`partly`) for the last few lanes."""
                loop = _Loop(builder, [k, *totals])
                k, *totals = loop.now
                whole = builder.sub(inner, count(chains * lanes - 1))
                loop.while_less(k, inner if partly else whole)
                mask = vectors.first(builder.sub(inner, k)) if partly else None
                sums = step(k, totals, chains, mask)
                loop.repeat([builder.add(k, count(chains * lanes)), *sums])
                return k, totals

            k, totals = count(0), [vectors.kind(None)] * (height * width * chains)
            if chains > 1:
                k, totals = along(k, totals, chains)
                while len(totals) > height * width:
                    half = len(totals) // 2
                    pairs = zip(totals[:half], totals[half:], strict=True)
                    totals = [builder.fadd(x, y) for x, y in pairs]
            k, totals = along(*along(k, totals, 1), 1, partly=True)
            for number, total in enumerate(totals):
                place = builder.gep(out, [count(number % width)])
                builder.store(vectors.sum(total), place)
                if number % width == width - 1:
                    out = builder.gep(out, [columns])
            return context.get_dummy_value()

        return types.void(inner, columns, a_step, a, b_step, b, out), generate

    return dots


_square, _flat, _pair = _dots(SIDE, SIDE), _dots(1, SIDE), _dots(1, 1, CHAINS)


@numba.njit(error_model="numpy")
def multiply_rows(
    rows: Any, inner: Any, columns: Any, a_step: Any, a: Any, b_step: Any, b: Any, out: Any
) -> None:
    """`out = a @ b.T` for rows of `a` and `b` that are each in one piece, these steps apart.

    A single row goes through `b` element after element, as it lies: so it is read fastest.
    """
    if rows == 1 or columns < SIDE:
        for row in range(rows):
            for column in range(columns):
                left, right = _moved(a, row * a_step), _moved(b, column * b_step)
                _pair(
                    inner, columns, a_step, left, b_step, right, _moved(out, row * columns + column)
                )
        return
    column = 0
    while column < columns:  # tiles that would go beyond the last column or row begin earlier
        column = min(column, columns - SIDE)
        right = _moved(b, column * b_step)
        row = 0
        while row < rows:
            if rows >= SIDE:
                row = min(row, rows - SIDE)
            left, place = _moved(a, row * a_step), _moved(out, row * columns + column)
            if rows >= SIDE:
                _square(inner, columns, a_step, left, b_step, right, place)
                row += SIDE
            else:
                _flat(inner, columns, a_step, left, b_step, right, place)
                row += 1
        column += SIDE
