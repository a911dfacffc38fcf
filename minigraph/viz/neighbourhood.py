"""The part of a graph around one value: what `focus=` draws."""

from __future__ import annotations

from minigraph.errors import OptionError, suggestion
from minigraph.ir import Graph, Node, Value, walk

from .escape import clip, visible
from .fold import is_constant


def neighbourhood(graph: Graph, start: Value, radius: int) -> set[Node]:
    """The nodes at most `radius` arrows from the value, in either direction, and their constants.

    Constants lead nowhere: two nodes that both add 1 are no neighbours.
    """
    producers, users = graph.producers(), graph.users()
    reached = {node for node in [producers.get(start)] if node is not None}
    reached.update(users[start])
    rim = reached
    for _ in range(radius - 1):
        near: set[Node] = set()
        for node in rim:
            near.update(producers[value] for value in node.inputs if value in producers)
            near.update(user for value in node.outputs for user in users[value])
        rim = {node for node in near - reached if not is_constant(node)}
        reached |= rim
    constants = {
        producers[value]
        for node in reached
        for value in node.inputs
        if value in producers and is_constant(producers[value])
    }
    return reached | constants


def find_value(graph: Graph, wanted: str | Value) -> Value:
    """The value meant by `%name` or `%number`; for one inside a region, a result of its node.

    Raises:
        OptionError: there is no such value.
    """
    name = wanted.name if isinstance(wanted, Value) else wanted.removeprefix("%")
    for value in graph.values():
        if value is wanted or (isinstance(wanted, str) and value.name == name):
            return value
    for node in graph.nodes:
        for _, region in node.regions:
            for inner in walk(region):
                for value in inner.outputs:
                    if node.outputs and (value is wanted or value.name == name):
                        return node.outputs[0]
    for value in graph.values():
        if isinstance(wanted, str) and str(value.id) == name:
            return value
    known = [clip(visible(f"%{value.name}"), 24) for value in graph.values()][:1000]
    raise OptionError(
        f"the graph {clip(visible(graph.name), 40)} has no value %{clip(visible(name), 40)}",
        instead=suggestion(f"%{name}", known, most=10),
    )
