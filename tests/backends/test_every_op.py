"""Every sample of every op, in every dtype: the generated program computes what the op means."""

from __future__ import annotations

import copy
import zlib
from typing import Any

import numpy as np
import pytest
from backends.checks import assert_same_run, same, single

from minigraph import ops
from minigraph.errors import MinigraphError
from minigraph.ir import ArrayType, Op

DTYPES = [
    np.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "float16 float32 float64 complex64 complex128"
    ).split()
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
]
SAMPLED = [op for op in ops.OPS.values() if op.sample is not None]
PLAIN = [op for op in SAMPLED if op.kind != "control"]


def samples(op: Op, dtype: np.dtype[Any]) -> list[tuple[list[Any], dict[str, Any]]]:
    assert op.sample is not None
    rng = np.random.default_rng(zlib.crc32(f"{op.name} {dtype}".encode()))
    with np.errstate(all="ignore"):
        try:
            return [(list(inputs), dict(attrs)) for inputs, attrs in op.sample(rng, dtype)]
        except (MinigraphError, TypeError, ValueError):  # an op that does not take this dtype
            return []


def as_operand(held: Any) -> Any:
    return (
        held
        if type(held) in (bool, int, float, complex)
        else np.asanyarray(held)
        if isinstance(held, list | tuple)
        else held
    )


@pytest.mark.parametrize("op", SAMPLED, ids=lambda op: op.name)
def test_the_generated_line_is_the_ops_meaning(op: Op):
    ran = 0
    for dtype in DTYPES:
        for inputs, attrs in samples(op, dtype):
            inputs = [as_operand(each) for each in inputs]
            try:
                graph = single(op.name, inputs, attrs)
            except MinigraphError:
                continue
            assert_same_run(graph, inputs)
            ran += 1
    assert ran


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_only_a_view_shares_memory_with_its_inputs(op: Op):
    """What storage.py builds on: the result of an op that is no view may be written again."""
    for dtype in DTYPES:
        for inputs, attrs in samples(op, dtype):
            inputs = [as_operand(each) for each in inputs]
            try:
                node = single(op.name, inputs, attrs).nodes[0]
            except MinigraphError:
                continue
            arrays = [each for each in inputs if isinstance(each, np.ndarray)]
            before = copy.deepcopy(inputs)
            with np.errstate(all="ignore"):
                try:
                    results = ops.evaluate_node(node, inputs)
                except Exception:
                    continue
            others = arrays[1:] if op.view else arrays
            for value, result in zip(node.outputs, results, strict=True):
                assert not any(np.shares_memory(result, each) for each in others), (op, attrs)
                if isinstance(value.type, ArrayType) and value.type.ndim and not op.view:
                    assert isinstance(result, np.ndarray) and result.flags.writeable, (op, attrs)
            if op.effect != "write" and op.kind != "random":
                assert all(map(same, inputs, before)), (op, attrs)
