"""The meaning of a node and of a graph.

It is the oracle of every test, and what constant folding calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from minigraph.errors import SignatureError
from minigraph.ir import OPERAND, ArrayType, Dim, Graph, Node, ScalarType, Size, Type

from .rules import ANNOTATIONS, NO_ATTRS, items_of

Sizes = Mapping[str, int]
"""Extents by the names of dimensions."""


def evaluate_node(
    node: Node, inputs: Sequence[Any], xp: Any = numpy, sizes: Sizes = NO_ATTRS
) -> tuple[Any, ...]:
    """The results of one node.

    Args:
        node: what to compute.
        inputs: one array, NumPy scalar, Python number or generator for each of its inputs.
        xp: the array module, `numpy` or one with the same functions.
        sizes: the named dimensions that the attrs mention.

    Raises:
        Whatever NumPy (or Python, for Python numbers) raises.
    """
    op = node.op
    positional, keywords = call_arguments(node, inputs, sizes)
    scalars = all(isinstance(value.type, ScalarType) for value in node.inputs)
    if scalars and op.python is not None and "dtype" not in keywords:
        results = op.python(*positional, **keywords)
    elif op.kind == "control":
        assert callable(op.numpy), op
        results = op.numpy(xp, *positional, sizes=sizes, **keywords)
    elif isinstance(op.numpy, str):
        function = xp
        for part in op.numpy.split("."):
            function = getattr(function, part)
        results = function(*positional, **keywords)
    else:
        assert op.numpy is not None, op
        results = op.numpy(xp, *positional, **keywords)
    if len(node.outputs) == 1:
        return (results,)
    return tuple(results) if node.outputs else ()


def call_arguments(
    node: Node, inputs: Sequence[Any], sizes: Sizes = NO_ATTRS
) -> tuple[list[Any], dict[str, Any]]:
    """The positional and keyword arguments with which the op's function is called.

    An attr that is `%` stands for an operand that NumPy takes by keyword (`sum %x, %m {where=%}` is
    `np.sum(x, where=m)`): the last inputs, in the order of those attrs.
    """
    named = [name for name, attr in node.attrs.items() if attr is OPERAND]
    first_named = len(inputs) - len(named)
    keywords = dict(zip(named, inputs[first_named:], strict=True))
    for name, attr in node.attrs.items():
        if attr is not OPERAND and name not in ANNOTATIONS:
            keywords[name] = substitute(attr, sizes) if sizes else attr
    return list(inputs[:first_named]), keywords


def substitute(attr: Any, sizes: Mapping[str, Size]) -> Any:
    """The attr with numbers, or other sizes, in place of named dimensions."""
    if isinstance(attr, Dim):
        return attr.substitute(sizes)
    if isinstance(attr, ArrayType):
        return ArrayType(attr.dtype, substitute(attr.shape, sizes))
    items = items_of(attr)
    if items is not None:
        replaced = [substitute(item, sizes) for item in items]
        return replaced if type(attr) is list else tuple(replaced)
    if type(attr) is slice:
        part: Any = attr
        return slice(*(substitute(bound, sizes) for bound in (part.start, part.stop, part.step)))
    return attr


def named_sizes(
    types: Sequence[Type], arguments: Sequence[Any], *, partial: bool = False
) -> dict[str, int]:
    """The named dimensions of the inputs' types, read off the arguments' shapes.

    Args:
        types: of the inputs.
        arguments: one for each.
        partial: leave out the names that no shape tells (the whole of `n*m` tells neither).

    Raises:
        SignatureError: an argument does not have the shape that its type says.
    """
    sizes: dict[str, int] = {}
    pairs = [
        (size, int(extent))
        for type_, argument in zip(types, arguments, strict=True)
        if isinstance(type_, ArrayType) and not type_.is_static
        for size, extent in zip(type_.shape, argument.shape, strict=True)
        if isinstance(size, Dim)
    ]
    for size, extent in pairs:
        if size.is_name:
            sizes.setdefault(str(size), extent)
    for size, extent in pairs:
        name = _only_unknown(size, sizes)
        if name is not None:
            sizes[name] = _solve(size, name, extent, sizes)
    for size, extent in pairs:
        known = not partial or size.names() <= sizes.keys()
        if known and size.substitute(sizes) != extent:
            raise SignatureError(f"an extent of {size} is needed here, not {extent}")
    return sizes


def _only_unknown(size: Dim, sizes: Sizes) -> str | None:
    unknown = size.names() - set(sizes)
    return unknown.pop() if len(unknown) == 1 else None


def _solve(size: Dim, name: str, extent: int, sizes: Sizes) -> int:
    """The smallest `name` for which `size`, which does not fall as it grows, reaches `extent`."""
    low, high = 0, 1

    def below(value: int) -> bool:
        found = size.substitute({**sizes, name: value})
        assert isinstance(found, int)
        return found < extent

    while below(high) and high < 1 << 62:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if below(middle) else (low, middle)
    return low


def evaluate(
    graph: Graph, arguments: Sequence[Any], xp: Any = numpy, *, sizes: Sizes | None = None
) -> list[Any]:
    """Run a graph node by node.

    Args:
        graph: what to run.
        arguments: one for each of the graph's inputs.
        xp: the array module.
        sizes: for a region, the named dimensions that are known around it; its own arguments need
            not tell all.

    Returns:
        One result for each of the graph's outputs.
    """
    memory: dict[int, Any] = {}
    for value, argument in zip(graph.inputs, arguments, strict=True):
        memory[value.id] = argument
    types = [value.type for value in graph.inputs]
    known = {**(sizes or {}), **named_sizes(types, arguments, partial=sizes is not None)}
    for node in graph.nodes:
        results = evaluate_node(node, [memory[value.id] for value in node.inputs], xp, known)
        for value, result in zip(node.outputs, results, strict=True):
            memory[value.id] = result
    return [memory[value.id] for value in graph.outputs]
