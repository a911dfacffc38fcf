"""Graphs whose named dimensions have become numbers: on a tape every size is known."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from minigraph.ir import ArrayType, Graph, Node, Type, Value
from minigraph.ops import named_sizes, substitute

KEPT = 64  # pairs of graphs, the least recently used are dropped

_known: OrderedDict[Any, tuple[Graph, Graph, tuple[Graph, Graph]]] = OrderedDict()


def with_sizes(body: Graph, backward: Graph, inputs: Sequence[Any]) -> tuple[Graph, Graph]:
    """A graph and its backward graph for inputs of these shapes; the same objects each time."""
    types = [value.type for value in body.inputs]
    if all(not isinstance(type_, ArrayType) or type_.is_static for type_ in types):
        return body, backward
    sizes = named_sizes(types, inputs)
    key = (id(body), id(backward), *sorted(sizes.items()))
    found = _known.get(key)
    if found is None:
        made = _substituted(body, sizes), _substituted(backward, sizes)
        found = _known[key] = (body, backward, made)  # the first two keep their ids taken
        if len(_known) > KEPT:
            _known.popitem(last=False)
    return found[2]


def _substituted(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with numbers in place of named dimensions, in its regions too."""
    now = {value: Value(value.id, _type(value.type, sizes), value.hint) for value in graph.values()}
    nodes = [
        Node(
            node.id,
            node.op,
            [now[value] for value in node.inputs],
            {
                name: _substituted(attr, sizes)
                if isinstance(attr, Graph)
                else substitute(attr, sizes)
                for name, attr in node.attrs.items()
            },
            [now[value] for value in node.outputs],
            node.loc,
            (node,),
        )
        for node in graph.nodes
    ]
    inputs, outputs = ([now[value] for value in ends] for ends in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, nodes, outputs, graph.signature)


def _type(type_: Type, sizes: Mapping[str, int]) -> Type:
    if not isinstance(type_, ArrayType) or type_.is_static:
        return type_
    return ArrayType(type_.dtype, substitute(type_.shape, sizes))
