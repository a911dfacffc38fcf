"""The forward and the backward program of a joint graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from minigraph.ir import ArrayType, Graph, Ids, Node, Value, written_operands
from minigraph.ops import TRANSCENDENTAL
from minigraph.passes import is_effect


class Partition(NamedTuple):
    """Two programs that together do what a joint graph does.

    Attributes:
        forward: (inputs) -> (results, what is saved).
        backward: (inputs, outputs of `forward`, cotangents) -> gradients; most it leaves unread.
        saved: how many outputs of `forward` are no results.
    """

    forward: Graph
    backward: Graph
    saved: int

    @property
    def saved_values(self) -> tuple[Value, ...]:
        """The outputs of `forward` that are no results."""
        return self.forward.outputs[len(self.forward.outputs) - self.saved :]


def partition(
    joint: Graph, results: int, cotangents: int, passing: Collection[Value] = ()
) -> Partition:
    """Cut a joint graph in two.

    What does something to the world stays in the forward program, but for what depends on the
    cotangents.  The backward program reads inputs and results again, which costs nothing.  Of what
    else it needs, it computes again what takes little (see `_is_cheap`), and computes what nothing
    but it needs, where that saves memory.

    Args:
        joint: from `joint`, after any passes but lowerings.
        results: how many of its outputs the user asked for.
        cotangents: how many of its last inputs are cotangents.
        passing: inputs and results that are there no more: they have to be saved as others have.
    """
    count = len(joint.inputs) - cotangents
    late = _depending(joint, joint.inputs[count:])
    shown, gradients = joint.outputs[:results], joint.outputs[results:]
    behind = needed(late, gradients)
    read = [v for node in behind for v in node.inputs] + list(gradients)
    made_late = {value for node in behind for value in node.outputs} | set(joint.inputs[count:])
    across = dict.fromkeys(value for value in read if value not in made_late)
    early = [node for node in joint.nodes if node not in late]
    choice = _Choice(joint.inputs[:count], early, shown, set(needed(early, shown)), passing)
    saved = choice.saved(list(across))
    available = {*joint.inputs[:count], *shown}.difference(passing).union(saved)
    again = needed(early, [v for v in across if v not in available], available, effects=False)
    ids = Ids.after(joint)
    outputs = [*shown, *saved]
    forward = Graph(f"{joint.name}_forward", joint.inputs[:count], needed(early, outputs), outputs)
    taken: set[Value] = set()
    inputs: list[Value] = []
    for value in (*joint.inputs[:count], *outputs, *joint.inputs[count:]):
        inputs.append(ids.value(value.type) if value in taken else value)
        taken.add(value)
    rest = Graph(f"{joint.name}_backward", inputs, [*again, *behind], gradients)
    return Partition(forward, rest, len(saved))


def _depending(graph: Graph, sources: Sequence[Value]) -> dict[Node, None]:
    """The nodes that some of these values have influence on, in order."""
    reached = set(sources)
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.update(node.outputs)
            found[node] = None
    return found


def needed(
    nodes: Iterable[Node],
    wanted: Iterable[Value],
    available: Collection[Value] = (),
    *,
    effects: bool = True,
) -> list[Node]:
    """The nodes that compute the wanted values from the available ones, and those with effects."""
    values = set(wanted)
    found: list[Node] = []
    for node in reversed(list(nodes)):
        if (effects and is_effect(node)) or not values.isdisjoint(node.outputs):
            found.append(node)
            values.update(value for value in node.inputs if value not in available)
    return found[::-1]


MOST_ROOTS = 4
MOST_STEPS = 12
ASSUMED_SIZE = 64  # of a dimension that has a name


class _Choice:
    """Decides what to save.

    Attributes:
        forward: the nodes that the results need.
        roots: for each value that is cheap to compute, from which others that cannot be (inputs,
            which are there in any case, do not count); for any other, itself.
        steps: the nodes that would do so a second time, but for views and constants.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        nodes: Sequence[Node],
        shown: Sequence[Value],
        forward: Collection[Node],
        passing: Collection[Value],
    ) -> None:
        self.shown = set(shown).difference(passing)
        self.passing = passing
        self.forward = forward
        self.producer = {value: node for node in nodes for value in node.outputs}
        written = {value for node in nodes for value in written_operands(node)}
        self.roots: dict[Value, frozenset[Value]] = {
            value: frozenset((value,) if value in written or value in passing else ())
            for value in inputs
        }
        self.steps: dict[Value, frozenset[Node]] = dict.fromkeys(inputs, frozenset())
        for node in nodes:
            self._learn(node, written)

    def _learn(self, node: Node, written: AbstractSet[Value]) -> None:
        roots = frozenset[Value]().union(*(self.roots[value] for value in node.inputs))
        steps = frozenset[Node]().union(*(self.steps[value] for value in node.inputs))
        twice = node in self.forward  # else it is computed once in any case, now or then
        if twice and node.inputs and not node.op.view:
            steps |= {node}
        again = (_is_cheap(node) if twice else not is_effect(node)) and written.isdisjoint(roots)
        again = again and len(roots) <= MOST_ROOTS and len(steps) <= MOST_STEPS
        for value in node.outputs:
            self.roots[value] = roots if again else frozenset((value,))
            self.steps[value] = steps if again else frozenset()

    def saved(self, needed: Sequence[Value]) -> list[Value]:
        """The values that the forward program returns besides the results."""
        found: dict[Value, None] = {}
        open_: dict[Value, None] = {}
        for value in needed:
            value = self._base(value)
            if self.roots[value] == {value}:
                found[value] = None
            else:
                open_[value] = None
        for value in open_:
            missing = [v for v in self.roots[value] if v not in found and v not in self.shown]
            if not missing:
                continue
            twice = self.producer[value] in self.forward
            if sum(map(size_bytes, missing)) < size_bytes(value) + (not twice):
                found.update(dict.fromkeys(sorted(missing, key=lambda v: v.id)))
            else:
                found[value] = None
        self._share(found)
        kept = [value for value in found if value not in self.shown]
        return [value for value in kept if value in self.producer or value in self.passing]

    def _share(self, found: dict[Value, None]) -> None:
        """Save one root in place of several values that can all be computed from it.

        It has to save a quarter of their bytes, for it is one more array to write and to read.
        """
        alone: dict[Value, list[Value]] = {}  # by the one root that is missing for them
        for value in found:
            missing = [v for v in self.roots[value] if v not in found and v not in self.shown]
            if len(missing) == 1:
                alone.setdefault(missing[0], []).append(value)
        for root, values in alone.items():
            if size_bytes(root) <= 0.75 * sum(map(size_bytes, values)):
                for value in values:
                    del found[value]
                found[root] = None

    def _base(self, value: Value) -> Value:
        """What a view that is cheap to make looks into."""
        while value in self.producer and value not in self.shown:
            node = self.producer[value]
            if not node.op.view or len(node.inputs) != 1 or not _is_cheap(node):
                break
            value = node.inputs[0]
        return value


def _is_cheap(node: Node) -> bool:
    """Whether computing it again costs no more than reading what was saved."""
    if is_effect(node) or any(True for _ in node.regions):
        return False
    if node.op.kind == "elementwise":
        return node.op.name not in TRANSCENDENTAL
    return node.op.view or node.op.kind == "create" or node.op.name in ("const", "size")


def size_bytes(value: Value) -> int:
    """The memory that a value takes, with a guess for named dimensions."""
    if not isinstance(value.type, ArrayType):
        return 8
    size = value.type.size_bytes
    if isinstance(size, int):
        return size
    known = size.substitute(dict.fromkeys(size.names(), ASSUMED_SIZE))
    assert isinstance(known, int)
    return known
