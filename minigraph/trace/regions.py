"""Nodes of a recording taken together as the region of one node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from minigraph import ops
from minigraph.errors import UnsupportedError
from minigraph.ir import Graph, Node, Value, walk

from .recording import Recording


def take(recording: Recording, start: int) -> list[Node]:
    """Take out the nodes recorded from `start` on; constants stay, others may use them."""
    taken = recording.nodes[start:]
    recording.nodes[start:] = [node for node in taken if node.op.name == "const"]
    return [node for node in taken if node.op.name != "const"]


def free(
    recording: Recording, nodes: Iterable[Node], results: Sequence[Value], bound: Collection[Value]
) -> list[Value]:
    """What nodes (and results) read that neither they make nor `bound` holds; no constants."""
    found: dict[Value, None] = {}
    made = set(bound)
    for node in nodes:
        found.update(dict.fromkeys(value for value in node.inputs if value not in made))
        made.update(node.outputs)
    found.update(dict.fromkeys(value for value in results if value not in made))
    return [value for value in found if recording.constant_number(value) is None]


def region(
    recording: Recording,
    name: str,
    inputs: Sequence[Value],
    nodes: Sequence[Node],
    outputs: Sequence[Value],
) -> Graph:
    """A graph of these nodes; the constants that it reads are in it."""
    made = {*inputs, *(value for node in nodes for value in node.outputs)}
    read = [value for node in nodes for value in node.inputs]
    constants = [
        Node(
            recording.ids.next(),
            ops.get("const"),
            (),
            {"value": recording.constant_number(value)},
            [value],
        )
        for value in dict.fromkeys([*read, *outputs])
        if value not in made
    ]
    return Graph(name, inputs, [*constants, *nodes], outputs)


def outermost(nodes: Sequence[Node], outputs: Iterable[Value]) -> list[Node]:
    """The nodes without the constants that only regions read: they have them, too."""
    inner = {
        value
        for node in nodes
        for _, body in node.regions
        for other in walk(body)
        if other.op.name == "const"
        for value in other.outputs
    }
    inner.difference_update(outputs, *(node.inputs for node in nodes))
    return [node for node in nodes if node.op.name != "const" or node.output not in inner]


def acts(node: Node) -> bool:
    """It does something to the world, itself or in a region."""
    inner = (other for _, body in node.regions for other in walk(body))
    return any(each.op.effect is not None for each in (node, *inner))


def enclose(recording: Recording, start: int, results: Sequence[Value]) -> None:
    """Make `call` nodes of what was recorded from `start` on.

    What does something to the world stays outside, so there is one call for each run of nodes
    between.  Their results are `results`, and what later ones of these nodes read; others become
    results when they are read first.
    """
    nodes = recording.nodes[start:]
    runs: list[list[Node]] = [[]]
    for node in nodes:
        if acts(node):
            runs += [[node], []]
        elif node.op.name != "const":
            runs[-1].append(node)
    needed = {*results, *(storage.value for storage in recording.dirty)}
    calls: dict[Node, Node] = {}  # by each node within
    made: list[Node] = []
    for run in reversed(runs):
        effects = any(map(acts, run))
        read = [value for node in run for value in node.inputs]
        if not effects and not needed.isdisjoint(value for node in run for value in node.outputs):
            call = _call(recording, run, needed)
            calls.update(dict.fromkeys(run, call))
            _Hidden(recording, call)
            run = [call]
        needed.update(read)
        made += reversed(run)
    constants = [node for node in nodes if node.op.name == "const"]
    recording.nodes[start:] = [*constants, *reversed(made)]
    _retape(recording, calls)


def _call(recording: Recording, nodes: Sequence[Node], needed: Collection[Value]) -> Node:
    outputs = [value for node in nodes for value in node.outputs if value in needed]
    inputs = free(recording, nodes, (), ())
    body = region(recording, "body", inputs, nodes, outputs)
    return Node(
        recording.ids.next(), ops.get("call"), inputs, {"body": body}, outputs, nodes[0].loc
    )


class _Hidden:
    """What a call computes and does not return."""

    def __init__(self, recording: Recording, call: Node) -> None:
        self.recording = recording
        self.call = call
        for node in call.attrs["body"].nodes:
            for value in node.outputs:
                if value not in call.outputs and node.op.name != "const":
                    recording.hidden[value] = partial(self.show, value)

    def show(self, value: Value) -> None:
        """Make a value a result, too."""
        before, recording = self.call, self.recording
        recording.hidden.pop(value)
        body: Graph = before.attrs["body"]
        if before not in recording.nodes:
            raise UnsupportedError(
                "a value that is computed inside of mg.checkpoint is used outside of it",
                where=recording.here(),
                instead="return it from the function",
            )
        self.call = Node(
            recording.ids.next(),
            before.op,
            before.inputs,
            {"body": Graph("body", body.inputs, body.nodes, [*body.outputs, value])},
            [*before.outputs, value],
            before.loc,
        )
        recording.exchange(before, [self.call])


def _retape(recording: Recording, calls: dict[Node, Node]) -> None:
    """What `backward` does not go through, it does not in a call either."""
    through = {call for node, call in calls.items() if node not in recording.untaped}
    recording.untaped.update(call for call in calls.values() if call not in through)
