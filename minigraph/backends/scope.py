"""What the writer knows of the graph whose lines it writes: the function's, or a region's.

A name may be bound again once nothing reads the value that it stands for:

    while n != 1:       # %n and %n.2 of the body, and the loop's result, are all `n`
        n = n // 2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from minigraph.ir import Graph, Node, Plan, Value, is_loop

from .storage import takeovers


class Scope:
    """One graph while its lines are written.

    Attributes:
        graph: the graph; plan: its plan.
        takeovers: for each result that is computed in a dead value's buffer, that value.
        kept: the values whose buffers are taken over.
        written: the results that are computed in the memory of an argument, and that argument.
        own: the inputs whose names the lines may bind again; owned: whose memory they may write.
        wanted: for a value that is returned under a name, that name.
        holder: the value for which a name stands, where that changes.
    """

    def __init__(
        self,
        graph: Graph,
        plan: Plan | None,
        own: Iterable[Value] = (),
        owned: Iterable[Value] = (),
        wanted: Mapping[Value, str] | None = None,
        holder: Mapping[str, Value] | None = None,
    ) -> None:
        self.graph = graph
        self.plan = plan
        self.takeovers = {} if plan is None else takeovers(graph, plan, owned)
        self.kept = set(self.takeovers.values())
        self.written = {} if plan is None else plan.written
        self.own = set(own)
        self.wanted = dict(wanted or {})
        self.holder = dict(holder or {})

    @cached_property
    def position(self) -> dict[Node, int]:
        """Where each node stands."""
        return {node: at for at, node in enumerate(self.graph.nodes)}

    @cached_property
    def last_read(self) -> dict[Value, int]:
        """The position of the last node that reads each value; the return counts as one."""
        found = {value: at for at, node in enumerate(self.graph.nodes) for value in node.inputs}
        return found | dict.fromkeys(self.graph.outputs, len(self.graph.nodes))

    @cached_property
    def makers(self) -> dict[Value, Node]:
        return self.graph.producers()

    @cached_property
    def taker(self) -> dict[Value, Value]:
        """For each value whose buffer is taken over, by whom."""
        reuses = {} if self.plan is None else self.plan.reuses
        return {dead: value for value, dead in reuses.items()}

    @cached_property
    def becomes(self) -> dict[Value, str]:
        """For what a loop carries from its first turn on the name of that, if it has no other."""
        return {
            value: base_name(inner.hint)
            for node in self.graph.nodes
            if is_loop(node)
            for value, inner in zip(node.inputs, node.attrs["body"].inputs, strict=True)
            if inner.hint and (not value.hint or base_name(value.hint) == base_name(inner.hint))
        }

    def may_bind(self, name: str, value: Value) -> bool:
        """Whether the node that makes a value may bind a name that stands for another one so far.

        The lines of some nodes read operands after the first of them has bound the result.
        """
        held = self.holder.get(name)
        if held is None:
            return True
        node = self.makers[value]
        position, last = self.position[node], self.last_read.get(held, -1)
        taker = self.taker.get(held)
        if taker is not None:  # which will name the buffer
            last = max(last, self.position[self.makers[taker]])
        if last == position and (node.op.stores or node.op.kind in ("control", "random")):
            return node.op.stores and held not in node.inputs[1:]
        return last <= position

    def ends(self, value: Value, node: Node) -> bool:
        """Whether this node is the last to read a value, reads it once, and its buffer is free."""
        taker = self.taker.get(value)
        return (
            self.last_read[value] == self.position[node]
            and node.inputs.count(value) == 1
            and (taker is None or taker in node.outputs)
        )


def base_name(hint: str) -> str:
    """The user's name in the hint of a value: `y` of `y.1`."""
    return hint.split(".")[0]
