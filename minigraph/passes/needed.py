"""What is needed, seen through regions: from what a graph returns and does backwards.

A result of an `if` needs the output of both graphs that it comes from; an output of a region needs
what computes it there, and in the end the operands of the node that holds it.  A carried value is
needed if its last state is, or if a turn needs it for something else that is needed.
"""

from __future__ import annotations

from minigraph.ir import (
    Graph,
    Node,
    Value,
    carried_count,
    first_operand,
    is_structured,
    operands,
    running_regions,
)

from .regions import is_effect


class Scope:
    """A graph at the place where it stands: as a whole, or as a region of a node.

    A graph may be a region of two nodes, and be needed in part by one of them only.

    Attributes:
        needed: the values that are; live: the nodes that are, in the order in which they were found
            to be.
        regions: for each live `if` or loop its regions, by name.
        holder: the node of whose regions this is one, and the scope of that.
    """

    def __init__(self, graph: Graph, holder: tuple[Scope, Node] | None = None) -> None:
        self.graph = graph
        self.holder = holder
        self.needed: set[Value] = set()
        self.live: dict[Node, None] = {}
        self.regions: dict[Node, dict[str, Scope]] = {}
        self.made_by = {value: node for node in graph.nodes for value in node.outputs}
        self.given = {value: at for at, value in enumerate(graph.inputs)}


def needed(graph: Graph) -> Scope:
    """The scope of a whole graph, all of whose own nodes count, and within it those of regions."""
    return _Search(graph).run()


class _Search:
    """One search: each value of each scope is looked at once."""

    def __init__(self, graph: Graph) -> None:
        self.scope = Scope(graph)
        self.values: list[tuple[Scope, Value]] = []
        self.scopes: list[Scope] = [self.scope]

    def run(self) -> Scope:
        graph = self.scope.graph
        read = set(graph.outputs).union(*(node.inputs for node in graph.nodes))
        for value in graph.outputs:
            self._need(self.scope, value)
        for node in graph.nodes:  # the dead ones stay, and so does what they read
            if not is_structured(node):
                self._live(self.scope, node)
            elif read.isdisjoint(node.outputs) and not is_effect(node):
                for value in node.inputs:
                    self._need(self.scope, value)
        while self.scopes or self.values:
            if self.scopes:
                scope = self.scopes.pop()
                for node in scope.graph.nodes:
                    if is_effect(node):
                        self._live(scope, node)
            else:
                scope, value = self.values.pop()
                node = scope.made_by.get(value)
                if node is not None:
                    self._live(scope, node)
                    self._result(scope, node, node.outputs.index(value))
                elif scope.holder is not None:
                    self._operand(*scope.holder, scope.given[value])
        return self.scope

    def _need(self, scope: Scope, value: Value) -> None:
        if value not in scope.needed:
            scope.needed.add(value)
            self.values.append((scope, value))

    def _live(self, scope: Scope, node: Node) -> None:
        """A node that is needed; what of an `if` or a loop is needed is found bit by bit."""
        if node in scope.live:
            return
        scope.live[node] = None
        if not is_structured(node):
            for value in node.inputs:
                self._need(scope, value)
            return
        inner = {name: Scope(region, (scope, node)) for name, region in running_regions(node)}
        scope.regions[node] = inner
        self.scopes += inner.values()
        for value in node.inputs[: first_operand(node)]:
            self._need(scope, value)
        if "test" in inner:
            self._need(inner["test"], inner["test"].graph.outputs[0])

    def _result(self, scope: Scope, node: Node, at: int) -> None:
        """A result of an `if` or loop is needed: the outputs of regions that it comes from."""
        for name, inner in scope.regions.get(node, {}).items():
            if name != "test":
                self._need(inner, inner.graph.outputs[at])
        if at < carried_count(node):
            self._need(scope, node.inputs[at])

    def _operand(self, scope: Scope, node: Node, at: int) -> None:
        """A region needs what it is given at a position: that operand, and what a turn hands on."""
        self._need(scope, operands(node)[at])
        if at < carried_count(node):
            body = scope.regions[node]["body"]
            self._need(body, body.graph.outputs[at])
