"""How reductions accumulate.

A sum of floats is taken in blocks: within a block in any order, so that it vectorises, and the
blocks' sums in float64 (of float32) or with their rounding errors (of float64).  The error stays
that of NumPy's pairwise sums, or below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigraph.ir import Node

from .writing import Scope, Text, cast, dtype_of

BLOCK = 1024  # elements whose sum is taken in their own dtype: in vectors,
ONE_BY_ONE = 16  # or one after the other


class Reducer:
    """How one reduction starts and goes on.

    Attributes:
        node: the reduction; dtype: that of its accumulator; start: its first value, as text.
        is_sum: a sum of floats, whose rounding errors add up.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        result = dtype_of(node.output)
        self.is_float = result.kind == "f"
        self.is_sum = self.is_float and node.op.name in ("sum", "mean")
        self.dtype = _accumulator(node.op.name, result)
        start, integers, floats = _MEANINGS[node.op.name, result.kind == "b"]
        self._combine = floats if self.is_float else integers
        self._ordered = integers if node.op.name in ("sum", "mean", "prod") else self._combine
        self.start = cast(start(self.dtype), self.dtype)
        self.total_dtype = np.dtype(np.float64) if self.is_sum else self.dtype

    def combine(self, total: str, operand: str, *, ordered: bool = False) -> str:
        """The accumulator after one more operand (of its dtype); `ordered`: one after the other."""
        template = self._ordered if ordered else self._combine
        if self.dtype == np.int64 and self.node.op.name in ("sum", "prod"):  # these wrap around
            total, operand = f"uint64({total})", f"uint64({operand})"
        text = template.format(total, operand)
        return text if self.is_float else cast(text, self.dtype)

    def operand(self, scope: Scope) -> str:
        """The reduced value as an operand of `combine`."""
        value = self.node.inputs[0]
        if dtype_of(self.node.output).kind == "b" and dtype_of(value).kind != "b":
            return f"uint8({scope.read(value)} != 0)"
        same = self.dtype == dtype_of(value)
        return scope.read(value) if same else cast(scope.read(value), self.dtype)

    def result(self, total: str, count: str) -> str:
        """The reduction's result, from the accumulator or total."""
        found = cast(total, dtype_of(self.node.output))
        if self.node.op.name != "mean":
            return found
        return f"{found} / {cast(count, self.dtype)}"


def _accumulator(name: str, result: np.dtype[Any]) -> np.dtype[Any]:
    """A float32 product adds up the errors of all its factors, however they are grouped."""
    if result.kind == "b":
        return np.dtype(np.uint8)
    return np.dtype(np.float64) if name == "prod" and result == np.float32 else result


def _lowest(dtype: np.dtype[Any]) -> str:
    return "-inf" if dtype.kind == "f" else str(np.iinfo(dtype).min)


def _highest(dtype: np.dtype[Any]) -> str:
    return "inf" if dtype.kind == "f" else str(np.iinfo(dtype).max)


def _zero(dtype: np.dtype[Any]) -> str:
    return "0"


def _one(dtype: np.dtype[Any]) -> str:
    return "1"


_ANY = (_zero, "{0} | {1}", "")
_ALL = (_one, "{0} & {1}", "")
_SUM = (_zero, "{0} + {1}", "add_in_any_order({0}, {1})")

_MEANINGS = {  # (op, whether the result is bool) -> start, step of integers, step of floats
    ("sum", False): _SUM,
    ("mean", False): _SUM,
    ("prod", False): (_one, "{0} * {1}", "multiply_in_any_order({0}, {1})"),
    ("max", False): (_lowest, "max({0}, {1})", "larger({0}, {1})"),
    ("min", False): (_highest, "min({0}, {1})", "smaller({0}, {1})"),
    ("max", True): _ANY,
    ("any", True): _ANY,
    ("min", True): _ALL,
    ("all", True): _ALL,
}


class Totals:
    """The accumulators of the reductions of one loop; a sum's total stands apart from its block."""

    def __init__(self, text: Text, nodes: Sequence[Node]) -> None:
        self.text = text
        self.reducers = [Reducer(node) for node in nodes]
        self.blocked = any(reducer.is_sum for reducer in self.reducers)
        self.accumulators: list[str] = []
        self.totals: list[str] = []
        self.sum_dtype: str | None = None

    def begin(self) -> None:
        """Before the loop."""
        for number, reducer in enumerate(self.reducers):
            self.accumulators.append(f"a{self.text.locals}_{number}")
            self.totals.append(f"s{self.text.locals}_{number}")
            if reducer.is_sum:
                self.text.line(f"{self.totals[-1]}, {self.totals[-1]}e = 0.0, 0.0")
            else:
                self.text.line(f"{self.accumulators[-1]} = {reducer.start}")
        self.text.locals += 1

    def begin_block(self, in_vectors: bool) -> None:
        """Before the sums of a block: of floats that come one by one all in float64."""
        self.sum_dtype = None if in_vectors else "float64"
        for reducer, accumulator in zip(self.reducers, self.accumulators, strict=True):
            if reducer.is_sum:
                self.text.line(f"{accumulator} = {self.sum_dtype or reducer.dtype.name}(0)")

    def add(self, scope: Scope) -> None:
        """Take in one element."""
        for reducer, accumulator in zip(self.reducers, self.accumulators, strict=True):
            operand = reducer.operand(scope)
            if reducer.is_sum and self.sum_dtype:
                operand = f"{self.sum_dtype}({operand})"
            self.text.line(f"{accumulator} = {reducer.combine(accumulator, operand)}", reducer.node)

    def end_block(self) -> None:
        for number, reducer in enumerate(self.reducers):
            if reducer.is_sum:
                self._add_to_total(number, self.accumulators[number])

    def add_part(self, number: int, part: str) -> None:
        """Take in the result of a part."""
        reducer = self.reducers[number]
        if reducer.is_sum:
            self._add_to_total(number, part)
        else:
            name = self.accumulators[number]
            self.text.line(f"{name} = {reducer.combine(name, part)}", reducer.node)

    def _add_to_total(self, number: int, part: str) -> None:
        total = self.totals[number]
        if self.reducers[number].dtype == np.float32:
            self.text.line(f"{total} += float64({part})")
        else:
            self.text.line(f"{total}, {total}e = two_sum({total}, {total}e, {part})")

    def end(self) -> list[str]:
        """After the loop: the total of each reduction."""
        return [
            (total if reducer.dtype == np.float32 else f"settled({total}, {total}e)")
            if reducer.is_sum
            else accumulator
            for reducer, total, accumulator in zip(
                self.reducers, self.totals, self.accumulators, strict=True
            )
        ]


class Stacks:
    """Arrays on the stack with an element for each column of a panel."""

    def __init__(self, text: Text, width: int) -> None:
        self.text = text
        self.width = width
        self._places: dict[Any, tuple[str, str]] = {}

    def make(self, owner: Any, dtype: np.dtype[Any]) -> None:
        """An array for this owner."""
        name = f"b{len(self._places)}"
        self._places[owner] = name, self.text.new_scope()
        self.text.line(f"{name} = stack({dtype.name}, {self.width})")

    def has(self, owner: Any) -> bool:
        return owner in self._places

    def load(self, owner: Any) -> str:
        name, scope = self._places[owner]
        return f"load{scope}({name}, j)"

    def store(self, owner: Any, text: str) -> None:
        name, scope = self._places[owner]
        self.text.line(f"store{scope}({name}, j, {text})")
