"""What passes take for granted about ops, asked of every op with its own samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from minigraph.errors import MinigraphError
from minigraph.ir import ArrayType, Ids, Node, Op, type_of
from minigraph.ops import OPS, evaluate_node, infer
from minigraph.passes.order import C_ORDER, MemoryOrder

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = [np.dtype(name) for name in ("f8", "f4", "i8", "?", "c16")]


def calls(op: Op) -> Iterator[tuple[Node, list[Any], list[Any]]]:
    """(node, operands, results) of the op's samples."""
    if op.sample is None or op.effect is not None:
        return
    for dtype in DTYPES:
        for inputs, attrs in samples(op, dtype):
            ids = Ids()
            values = [ids.value(type_of(each)) for each in inputs]
            try:
                types = infer(op, [value.type for value in values], attrs)
            except MinigraphError:
                continue
            node = Node(ids.next(), op, values, attrs, [ids.value(type_) for type_ in types])
            with np.errstate(all="ignore"):
                try:
                    results = list(evaluate_node(node, inputs))
                except (ArithmeticError, TypeError, ValueError, np.linalg.LinAlgError):
                    continue
            yield node, inputs, results


def samples(op: Op, dtype: np.dtype[Any]) -> list[tuple[list[Any], dict[str, Any]]]:
    assert op.sample is not None
    try:
        found = op.sample(np.random.default_rng(0), dtype)
    except (MinigraphError, TypeError, ValueError):
        return []
    return [
        ([np.asarray(x) if isinstance(x, list) else x for x in inputs], attrs)
        for inputs, attrs in found
    ]


NAMES = sorted(OPS)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_view_has_memory_of_its_own(name: str) -> None:
    for node, inputs, results in calls(OPS[name]):
        arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.ndim]
        for result in results:
            if name == "const" or not isinstance(result, np.ndarray) or not result.ndim:
                continue
            shared = any(np.shares_memory(result, x) for x in arrays)
            assert node.op.view or not shared, f"{node} {node.attrs} gives a view"
            assert node.op.view or result.flags.writeable, f"{node} {node.attrs} is read-only"
            if node.op.view and arrays:
                assert not any(np.shares_memory(result, x) for x in arrays[1:])


@pytest.mark.parametrize("name", NAMES)
def test_the_order_in_memory_is_as_said(name: str) -> None:
    for node, inputs, results in calls(OPS[name]):
        if not all(x.flags.c_contiguous for x in inputs if isinstance(x, np.ndarray)):
            continue
        order = MemoryOrder(node.inputs)
        order.add(node)
        for value, result in zip(node.outputs, results, strict=True):
            if (
                isinstance(value.type, ArrayType)
                and value.type.ndim
                and isinstance(result, np.ndarray)
            ):
                if order.is_c(value):
                    assert result.flags.c_contiguous, f"{node} {node.attrs} {result.strides}"
                elif order.axes[value] == C_ORDER:
                    assert (result + 0 if result.dtype != bool else ~result).flags.c_contiguous


# The evaluator leaves the results of a kernel in NumPy's order; who fuses writes them in C order.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "kernel"])
def test_the_order_of_one_operand_carries_over(name: str) -> None:
    for node, inputs, _ in calls(OPS[name]):
        arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.ndim > 1]
        if len(arrays) != 1 or node.op.view:
            continue
        turned = [np.asfortranarray(x) if x is arrays[0] else x for x in inputs]
        order = MemoryOrder(node.inputs, strided=node.inputs)
        order.add(node)
        with np.errstate(all="ignore"):
            results = evaluate_node(node, turned)
        for value, result in zip(node.outputs, results, strict=True):
            if not isinstance(value.type, ArrayType) or value.type.ndim < 2:
                continue
            (source,) = (v for v, x in zip(node.inputs, inputs, strict=True) if x is arrays[0])
            if order.axes[value] == order.axes[source]:
                assert result.flags.f_contiguous, f"{node} {node.attrs} {result.strides}"
            elif order.axes[value] == C_ORDER:
                assert result.flags.c_contiguous, f"{node} {node.attrs} {result.strides}"
