"""Gradients of what was recorded: one compiled backward graph for all tapes of the same kind.

Steps of the same ops and types, linked in the same way, have the same *key*.  For each key the
backward graph is made and compiled once, as a function of what the steps have kept.  Numbers are
kept like arrays, so other numbers make no other key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigraph.compiled import Compiled
from minigraph.grad import backward, needed
from minigraph.ir import Graph, Node
from minigraph.memory import any_written
from minigraph.trace import Recording

from .called import Called
from .steps import Source, Step, with_inputs

KEPT_PROGRAMS = 128  # the least recently used are dropped


class Immediate(Recording):
    """A recording of what runs at once: what it raises, it raises now."""

    def _is_caught(self, node: Node) -> bool:
        return False


class Program:
    """The compiled backward graph of one key.

    Attributes:
        graph: from what was kept, then the heads' gradients, to the gradients of the leaves.
        kept: for each of its first inputs the position of the step and which of its results.
        produced: for each leaf the position of its gradient among the results, None if it is zero.
    """

    def __init__(
        self,
        graph: Graph,
        kept: Sequence[tuple[int, int]],
        heads: Sequence[int],
        produced: Sequence[int | None],
        steps: Sequence[Step],
    ) -> None:
        self.graph = graph
        self.kept = tuple(kept)
        self.heads = tuple(heads)
        self.produced = tuple(produced)
        self._backend = _backend(steps)
        self._compiled: dict[tuple[bool, ...], Compiled] = {}

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        dense = tuple(
            [type(each) is not np.ndarray or each.flags.c_contiguous for each in arguments]
        )
        compiled = self._compiled.get(dense)
        if compiled is None:
            strided = [
                value for value, flag in zip(self.graph.inputs, dense, strict=True) if not flag
            ]
            compiled = Compiled(self.graph, self._backend, strided=strided)
            self._compiled[dense] = compiled
        return compiled.run(*arguments)


def _backend(steps: Sequence[Step]) -> str:
    """What runs the gradients: what ran the compiled calls; without such, plain Python."""
    keys = [step.key for step in steps if step.computed]
    backends = {key.backend for key in keys if isinstance(key, Called)}
    if len(backends) > 1:
        return "auto"
    return backends.pop() if backends else "python"


_programs: OrderedDict[Any, Program] = OrderedDict()
_lock = threading.Lock()


def run(
    steps: Sequence[Step],
    heads: Sequence[Source],
    cotangents: Sequence[Any],
    wanted: Sequence[Source],
) -> list[Any]:
    """The gradients of the wanted values: arrays of their own, zeros where nothing leads there."""
    everything = with_inputs(steps)
    key = _key(everything, heads, wanted)
    with _lock:
        program = _programs.get(key)
        if program is None:
            program = _programs[key] = _program(steps, everything, heads, wanted)
            while len(_programs) > KEPT_PROGRAMS:
                _programs.popitem(last=False)
        else:
            _programs.move_to_end(key)
    kept: list[Any] = []
    written = any_written()
    for at, index in program.kept:
        if written:
            everything[at].check(index)
        kept.append(everything[at].data[index])
    results = program(*kept, *(cotangents[at] for at in program.heads))
    return [
        np.zeros_like(step.data[index]) if at is None else results[at]
        for at, (step, index) in zip(program.produced, wanted, strict=True)
    ]


def _key(everything: Sequence[Step], heads: Sequence[Source], wanted: Sequence[Source]) -> Any:
    """Equal for steps of the same ops on the same types, linked in the same way."""
    position = {step.number: at for at, step in enumerate(everything)}

    def positions(sources: Sequence[Source]) -> tuple[tuple[int, int], ...]:
        return tuple([(position[step.number], index) for step, index in sources])

    parts = [
        (step.key, positions(step.inputs)) if step.active and step.computed else tuple(step.types)
        for step in everything
    ]
    return tuple(parts), positions(heads), positions(wanted)


def _program(
    steps: Sequence[Step],
    everything: Sequence[Step],
    heads: Sequence[Source],
    wanted: Sequence[Source],
) -> Program:
    """Record the backward graph."""
    place_of = {
        value: (at, index)
        for at, step in enumerate(everything)
        for index, value in enumerate(step.values)
    }
    builder = Immediate()
    starts = [step.values[index] for step, index in heads]
    cotangents = [builder.ids.value(value.type) for value in starts]
    found = backward(
        builder,
        [step.node for step in steps if step.node is not None],
        dict(zip(starts, cotangents, strict=True)),
        [step.values[index] for step, index in wanted],
    )
    outputs = [value for value in found if value is not None]
    nodes = needed(builder.nodes, outputs)
    read = dict.fromkeys([*outputs, *(value for node in nodes for value in node.inputs)])
    kept = [value for value in read if value in place_of]
    given = [at for at, value in enumerate(cotangents) if value in read]
    graph = Graph(
        "backward", [*kept, *(cotangents[at] for at in given)], nodes, outputs
    ).canonical()
    results = iter(range(len(outputs)))
    produced = [None if value is None else next(results) for value in found]
    return Program(graph, [place_of[value] for value in kept], given, produced, steps)
