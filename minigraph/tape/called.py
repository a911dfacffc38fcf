"""Compiled programs as the tape calls them: what each call of one needs, worked out once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from minigraph.grad import differentiable, joint, partition
from minigraph.ir import ArrayType, Graph, Node, Size, Type, Value
from minigraph.ops import named_sizes, substitute

KEPT_SIZES = 64  # of one program, the least recently used are dropped


class Called:
    """A program whose calls are nodes of a tape.

    On a tape every size is known: graphs with named dimensions have a version for each.

    Args:
        body: what it computes; among its outputs is what it saves for `backward`.
        backward: the gradients of the wanted inputs, as the op `call` says.
        results: how many of the outputs the caller gets.
        wanted: the inputs that have a gradient.
        backend: what runs it, and is to run its gradients.
    """

    __slots__ = ("_sized", "_static", "attrs", "backend", "body", "input_types", "types")

    def __init__(
        self,
        body: Graph,
        backward: Graph,
        results: int,
        wanted: Sequence[int],
        backend: str = "auto",
    ) -> None:
        self.body = body
        self.backend = backend
        self.attrs: Mapping[str, Any] = {
            "body": body,
            "backward": backward,
            "results": results,
            "wanted": tuple(wanted),
        }
        self.types = [value.type for value in body.outputs]
        self.input_types = [
            value.type if not isinstance(value.type, ArrayType) or value.type.is_static else None
            for value in body.inputs
        ]
        self._static = None not in self.input_types
        self._sized: OrderedDict[Any, Called] = OrderedDict()

    @classmethod
    def of(
        cls,
        graph: Graph,
        wanted: Sequence[int],
        backend: str = "auto",
        together: Graph | None = None,
    ) -> Called:
        """What the tape calls in a graph's place.

        Args:
            graph: what is to be computed.
            wanted: the inputs that have a gradient.
            backend: what runs it.
            together: the graph with its derivative, if that is made (and optimised) already.
        """
        results = len(graph.outputs)
        both = joint(graph, wanted) if together is None else together
        parts = partition(both, results, len(differentiable(graph.outputs)))
        return cls(parts.forward, parts.backward, results, wanted, backend)

    def for_inputs(self, inputs: Sequence[Any]) -> Called:
        """The program for inputs of these shapes; the same object each time."""
        if self._static:
            return self
        sizes = named_sizes([value.type for value in self.body.inputs], inputs)
        key = tuple(sorted(sizes.items()))
        found = self._sized.get(key)
        if found is None:
            body, backward = (
                with_sizes(graph, sizes) for graph in (self.body, self.attrs["backward"])
            )
            found = Called(
                body, backward, self.attrs["results"], self.attrs["wanted"], self.backend
            )
            self._sized[key] = found
            if len(self._sized) > KEPT_SIZES:
                self._sized.popitem(last=False)
        return found


def with_sizes(graph: Graph, sizes: Mapping[str, Size]) -> Graph:
    """The graph with other sizes in place of named dimensions, in its regions too."""
    now = {value: Value(value.id, _type(value.type, sizes), value.hint) for value in graph.values()}
    nodes = [
        Node(
            node.id,
            node.op,
            [now[value] for value in node.inputs],
            {
                name: with_sizes(attr, sizes)
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


def _type(type_: Type, sizes: Mapping[str, Size]) -> Type:
    if not isinstance(type_, ArrayType) or type_.is_static:
        return type_
    return ArrayType(type_.dtype, substitute(type_.shape, sizes))
