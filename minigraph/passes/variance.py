"""`var` and `std` in the ops by which NumPy computes them, so that they can be parts of kernels.

    %v = var %x {axis=(1,)}

is the mean of squared distances to the mean,

    %0 = mean %x {axis=(1,), keepdims=True}
    %1 = subtract %x, %0
    %2 = square %1
    %v = mean %2 {axis=(1,)}

bit for bit.  With `ddof=` the last mean is a sum over fewer elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigraph.ir import ArrayType, Graph, Node, Value, product
from minigraph.ops import get, infer

from .cse import cse
from .dce import dead_nodes
from .fusible import cannot_loop
from .recorder import Recorder


def without_variances(graph: Graph, recorder: Recorder) -> Graph:
    """The graph with each `var` and `std` expanded of which all parts can be in kernels."""
    dead = dead_nodes(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        made = _expanded(node, recorder) if node.op.name in _ROOT and node not in dead else []
        numbers = {n.output: n.attrs["value"] for n in made if n.op.name == "const"}
        cannot_fuse = recorder.options.cannot_fuse
        if any(cannot_loop(n) or cannot_fuse(n, numbers) for n in made if n.inputs):
            made = []
        if made:
            why = "as NumPy computes it: from the squared distances to the mean"
            recorder.replaced(node, made, f"fuse.{node.op.name}", why)
        nodes += made or [node]
    if len(nodes) == len(graph.nodes):
        return graph
    return cse(graph.replace(nodes), recorder)  # the mean may be there already


_ROOT = {"var": False, "std": True}


def _expanded(node: Node, recorder: Recorder) -> list[Node]:
    """The nodes that compute a variance; none where that takes more than these."""
    if not isinstance(node.inputs[0].type, ArrayType):
        return []
    attrs = dict(node.attrs)
    given = attrs.pop("ddof", 0)
    count = _count(node)
    if len(node.inputs) != 1 or (given and count is None):
        return []
    made = _Nodes(node, recorder)
    (x,) = node.inputs
    mean = made.add("mean", [x], {**attrs, "keepdims": True})
    distance = made.add("subtract", [x, mean])
    square = made.add("square", [distance])
    if not given:
        result = made.add("mean", [square], attrs)
    else:
        total = made.add("sum", [square], attrs)
        number = made.add("const", [], {"value": max(count - given, 0)})
        result = made.add("divide", [total, number])
    if _ROOT[node.op.name]:
        made.add("sqrt", [result])
    return made.ending_in(node.output)


def _count(node: Node) -> Any:
    """How many elements go into one result; None where that depends on named dimensions."""
    assert isinstance(node.inputs[0].type, ArrayType)
    axes: tuple[int, ...] = node.attrs["axis"]
    count = product(node.inputs[0].type.shape[axis] for axis in axes)
    return count if isinstance(count, int) else None


class _Nodes:
    """Nodes that together stand in the place of another one."""

    def __init__(self, node: Node, recorder: Recorder) -> None:
        self.node = node
        self.recorder = recorder
        self.made: list[Node] = []

    def add(self, op: str, inputs: Sequence[Value], attrs: Any = None) -> Value:
        """The result of a new node."""
        attrs = attrs or {}
        (type_,) = infer(get(op), [value.type for value in inputs], attrs)
        output = self.recorder.ids.value(type_)
        self.made.append(
            self.recorder.remake(
                self.node, op=get(op), inputs=inputs, attrs=attrs, outputs=[output]
            )
        )
        return output

    def ending_in(self, value: Value) -> list[Node]:
        """The nodes, the last of which makes this value."""
        *others, last = self.made
        if last.output.type != value.type:
            return []
        return [*others, self.recorder.remake(last, outputs=[value])]
