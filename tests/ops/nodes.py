"""Nodes made from concrete operands, and exact comparison."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import MinigraphError
from minigraph.ir import Graph, Node, Op, Type, Value, type_of

DTYPES = [
    np.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float16 float32 float64 complex64 complex128"
    ).split()
]


def operand(thing: Any) -> Any:
    return np.asarray(thing) if isinstance(thing, list | tuple) else thing


def samples(op: Op, dtype: np.dtype[Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """The op's samples; operands of wrong dtype may already be refused while binding."""
    assert op.sample is not None
    rng = np.random.default_rng(zlib.crc32(f"{op.name} {dtype}".encode()))
    with np.errstate(all="ignore"):
        try:
            found = op.sample(rng, dtype)
        except (MinigraphError, TypeError):
            return
    for inputs, attrs in found:
        yield [operand(x) for x in inputs], attrs


def node_of(op: Op, types: Sequence[Type], attrs: Mapping[str, Any]) -> Node:
    inputs = [Value(index, type_) for index, type_ in enumerate(types)]
    outputs = [
        Value(len(inputs) + index, type_) for index, type_ in enumerate(ops.infer(op, types, attrs))
    ]
    return Node(0, op, inputs, attrs, outputs)


def graph_of(node: Node) -> Graph:
    return Graph("g", node.inputs, [node], node.outputs)


def run(node: Node, inputs: Sequence[Any], **options: Any) -> tuple[Any, ...]:
    """The results, computed from copies of the inputs."""
    with np.errstate(all="ignore"):
        return ops.evaluate_node(node, copy.deepcopy(list(inputs)), **options)


def types_of(inputs: Sequence[Any]) -> list[Type]:
    return [type_of(x) for x in inputs]


def same(found: Any, expected: Any) -> bool:
    """The same bytes, dtype and shape; a NumPy scalar and a 0-d array count as the same."""
    if isinstance(expected, tuple | list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, np.ndarray | np.generic):
        return (
            isinstance(found, np.ndarray | np.generic)
            and found.dtype == expected.dtype
            and found.shape == expected.shape
            and found.tobytes() == expected.tobytes()
        )
    if isinstance(expected, float | complex):
        same_kind = type(found) is type(expected)
        return same_kind and np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    return type(found) is type(expected) and found == expected
