"""What a large graph is folded into: repeated stretches, or blocks of neighbouring nodes.

Nodes stand in order, so a repeated layer or an unrolled loop is a stretch of the sequence that
equals the stretch behind it when each node is described by its op, attrs, types and how far back
its inputs were made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, Value, freeze, inner_first

LONGEST_PERIOD = 600  # nodes in one repetition
LARGEST_KEYED = 4  # elements of a constant that must agree between repetitions


class Repeat(NamedTuple):
    """`count` repetitions of `period` nodes, from position `start` on."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.count

    @property
    def saved(self) -> int:
        """Nodes that need not be drawn."""
        return self.period * (self.count - 1)


def is_constant(node: Node) -> bool:
    """It stands for a value that is known while compiling."""
    return node.op.name == "const"


def steps(graph: Graph) -> list[Node]:
    """The nodes that compute; constants belong to their users."""
    return [node for node in graph.nodes if not is_constant(node)]


def count_steps(graph: Graph) -> int:
    """How often a node computes, regions included, each as often as a node holds it."""
    counts: dict[int, int] = {}
    for each in inner_first(graph):
        counts[id(each)] = sum(
            1 + sum(counts[id(region)] for _, region in node.regions) for node in steps(each)
        )
    return counts[id(graph)]


def find_repeats(graph: Graph) -> list[Repeat]:
    """Disjoint repeats among `steps(graph)`, in order: those first that save most nodes."""
    keys = _keys(graph)
    candidates: list[Repeat] = []
    for period in range(1, min(len(keys) // 2, LONGEST_PERIOD) + 1):
        same = np.concatenate([[False], keys[period:] == keys[:-period], [False]])
        starts = np.flatnonzero(same[1:] & ~same[:-1])
        lengths = np.flatnonzero(~same[1:] & same[:-1]) - starts
        # Short stretches repeat by chance: a few nodes must do so more than twice.
        least = period if period >= 8 else 2 * period
        for index in np.flatnonzero(lengths >= least):
            count = int(lengths[index]) // period + 1
            candidates.append(Repeat(int(starts[index]), period, count))
    taken = np.zeros(len(keys), bool)
    found: list[Repeat] = []
    for repeat in sorted(candidates, key=lambda each: (-each.saved, each.period, each.start)):
        if not taken[repeat.start : repeat.stop].any():
            taken[repeat.start : repeat.stop] = True
            found.append(repeat)
    return sorted(found)


def _keys(graph: Graph) -> np.ndarray:
    """For each step a number; equal numbers stand for steps that look the same from within."""
    constants: dict[Value, Node] = {}
    position: dict[Value, int] = {}
    numbers: dict[Hashable, int] = {}
    keys: list[int] = []
    for node in graph.nodes:
        if is_constant(node):
            constants.update(dict.fromkeys(node.outputs, node))
            continue
        inputs: list[Hashable] = []
        for value in node.inputs:
            if value in position:
                inputs.append(len(keys) - position[value])
            elif value in constants:
                inputs.append(_constant_key(constants[value]))
            else:
                inputs.append(value.type)
        types = tuple(value.type for value in node.outputs)
        key: Hashable = (node.op.name, _attrs_key(node), types, tuple(inputs))
        position.update(dict.fromkeys(node.outputs, len(keys)))
        keys.append(numbers.setdefault(key, len(numbers)))
    return np.array(keys, np.int64)


def _attrs_key(node: Node) -> Hashable:
    if not node.attrs:
        return None
    key = freeze(node.attrs)
    try:
        hash(key)
    except TypeError:
        return node
    return key


def _constant_key(node: Node) -> Hashable:
    value = node.attrs.get("value")
    kind = node.output.type
    large = isinstance(kind, ArrayType) and not (
        isinstance(kind.size, int) and kind.size <= LARGEST_KEYED
    )
    return kind if large else (kind, freeze(value))


def split(nodes: Sequence[Node], blocks: int) -> list[list[Node]]:
    """At most `blocks` blocks of neighbouring nodes: the user's functions where they fit."""
    largest = -(-len(nodes) // max(1, blocks // 2))
    runs: list[list[Node]] = []
    for node in nodes:
        if runs and function_of(runs[-1][-1]) == function_of(node):
            runs[-1].append(node)
        else:
            runs.append([node])
    pieces = [run[start : start + largest] for run in runs for start in range(0, len(run), largest)]
    if len(pieces) <= blocks:
        return pieces
    even = -(-len(nodes) // blocks)
    return [list(nodes[start : start + even]) for start in range(0, len(nodes), even)]


def function_of(node: Node) -> str:
    """The user's function that a node was written in, as far as it is known."""
    return node.loc.function if node.loc is not None else ""


def describe(nodes: Sequence[Node], width: int) -> str:
    """The most frequent ops, as many of three as fit: `43 add, 12 multiply, ...`."""
    counts = Counter(node.op.name for node in nodes).most_common()
    words = [f"{count} {name}" for name, count in counts[:3]]
    while True:
        text = ", ".join([*words, *(["..."] if len(words) < len(counts) else [])])
        if len(text) <= width or len(words) == 1:
            return text
        words.pop()


def name_of(nodes: Sequence[Node], width: int) -> str:
    """The function that all nodes come from, else the most frequent ops."""
    functions = {function_of(node) for node in nodes}
    if len(functions) == 1 and (name := functions.pop()):
        return name
    return describe(nodes, width)
