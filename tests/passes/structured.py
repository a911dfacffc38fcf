"""Random `if`s and loops for random graphs: few turns, any carried values, effects inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minigraph.ir import BOOL, INT, ArrayType, Value, parse_type

if TYPE_CHECKING:
    from passes.laws import Builder

MOST_NODES = 6  # of one region
TRUTHS = (BOOL, parse_type("bool[]"))


def add(around: Builder) -> None:
    """Add an `if`, a `while` or a `scan` of what is there."""
    around.source.choice([_add_if, _add_while, _add_scan])(around)


def _some(around: Builder, least: int, most: int) -> list[Value]:
    return [around.pick() for _ in range(around.source.randint(least, most))]


def _condition(around: Builder) -> Value:
    """A truth that is there, a comparison, or one that is known."""
    source = around.source
    truths = [value for value in around.pool if value.type in TRUTHS]
    if truths and source.random() < 0.7:
        return source.choice(truths)
    numbers = [value for value in around.pool if value.type is INT]
    if numbers and source.random() < 0.7:
        return around.node("less", [source.choice(numbers), source.choice(numbers)])[0]
    truth: Any = source.random() < 0.5
    return around.node("const", value=np.bool_(truth) if source.random() < 0.3 else truth)[0]


def _target(around: Builder, given: Sequence[Value]) -> Value | None:
    """An argument that a region may write to: it sees it by this name only."""
    seen = {around.root[value] for value in given}
    free = [value for value in around.targets if value in around.pool and value not in seen]
    return around.source.choice(free) if free and around.source.random() < 0.4 else None


def _add_if(around: Builder) -> None:
    source = around.source
    condition, given = _condition(around), _some(around, 0, 3)
    target = _target(around, given)
    given += [] if target is None else [target]
    branches = [around.inner([value.type for value in given]) for _ in range(2)]
    for branch in branches:
        branch.targets = [] if target is None else branch.inputs[-1:]
        branch.grow(source.randint(0, MOST_NODES))
    then, otherwise = branches
    kinds = [v.type for v in then.pool if any(v.type == other.type for other in otherwise.pool)]
    kinds = source.sample(kinds, min(len(kinds), source.randint(0, 3)))
    regions = [branch.close([branch.of_type(kind) for kind in kinds]) for branch in branches]
    around.node("if", [condition, *given], then=regions[0], otherwise=regions[1])


def _add_while(around: Builder) -> None:
    source = around.source
    counters = [value for value in around.pool if value.type is INT]
    known = not counters or source.random() < 0.5
    first = around.node("const", value=0)[0] if known else source.choice(counters)
    carried, given = [first, *_some(around, 0, 3)], _some(around, 0, 2)
    target = _target(around, given)
    given += [] if target is None else [target]
    test, body = (around.inner([v.type for v in (*carried, *given)]) for _ in range(2))
    for region in (test, body):
        if target is not None:
            region.forget(region.inputs[-1])
    test.grow(source.randint(0, 2))
    (most,) = test.node("const", value=source.randint(0, 3))
    holds = test.node("less", [test.inputs[0], most])
    body.targets = [] if target is None else body.inputs[-1:]
    body.grow(source.randint(0, MOST_NODES))
    (one,) = body.node("const", value=1)
    (following,) = body.node("add", [body.inputs[0], one])
    left = [body.of_type(value.type) for value in carried[1:]]
    attrs: dict[str, Any] = {"test": test.close(holds), "body": body.close([following, *left])}
    if not known or source.random() < 0.2:
        attrs["limit"] = source.randint(0, 3)
    around.node("while", [*carried, *given], **attrs)


def _add_scan(around: Builder) -> None:
    source = around.source
    carried, given = _some(around, 0, 2), _some(around, 0, 2)
    arrays = [v for v in around.pool if isinstance(v.type, ArrayType) and v.type.ndim]
    scanned = source.choices(arrays, k=source.randint(0, 2)) if arrays else []
    length: Any = scanned[0].shape[0] if scanned else source.randint(0, 3)
    scanned = [value for value in scanned if value.shape[0] == length]
    target = _target(around, [*scanned, *given])
    given += [] if target is None else [target]
    elements = [ArrayType(v.type.dtype, v.shape[1:]) for v in scanned]  # type: ignore[union-attr]
    kinds = [*(v.type for v in carried), *elements, *(v.type for v in given)]
    body = around.inner(kinds)
    if target is not None:
        body.forget(body.inputs[-1])
        body.targets = body.inputs[-1:]
    body.grow(source.randint(0, MOST_NODES))
    left = [body.of_type(value.type) for value in carried]
    arrays = [value for value in body.pool if isinstance(value.type, ArrayType)]
    stacked = source.choices(arrays, k=source.randint(0, 2)) if arrays else []
    attrs: dict[str, Any] = {"carried": len(carried), "scanned": len(scanned), "length": length}
    if source.random() < 0.3:
        attrs["reverse"] = True
    around.node("scan", [*carried, *scanned, *given], body=body.close([*left, *stacked]), **attrs)
