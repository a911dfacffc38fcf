"""A node that compiled code gave up on, in Python."""

from __future__ import annotations

from typing import Any

from minigraph.ir import ArrayType, Graph, Node

from .. import python


class Again:
    """Runs a node in generated Python, which is written when it is first needed.

    Attributes:
        operands: what it takes: the node's inputs, and arrays of the program whose sizes may be
            mentioned.
    """

    def __init__(self, node: Node, graph: Graph) -> None:
        """`graph` is the one that the node stands in."""
        sized = (v for v in graph.inputs if isinstance(v.type, ArrayType) and not v.type.is_static)
        self.operands = list(dict.fromkeys([*node.inputs, *sized]))
        name = f"{node.op.name}_in_python"
        self._graph = Graph(name, self.operands, [node], node.outputs)
        self._run: Any = None

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        if self._run is None:
            self._run = python.load(python.emit(self._graph))
        return self._run(*operands)
