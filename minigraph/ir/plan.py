"""Where values live: a side table to a graph, read by backends only.

Storage is no part of the IR.  A *slot* is a buffer that several values use one after the other; a
*root* is the value whose memory a view looks into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .dims import Dim
from .graph import Graph, Node, Value
from .types import ArrayType


class Plan:
    """The result of the planner.

    Attributes:
        dies: for each node (by position) the values whose names may be deleted after it.
        slot: the slot of each value that owns a planned buffer.
        reuses: for a value that is written into an existing buffer, the (dead) value whose buffer
            it takes over: its slot is the same.
        in_place: the values whose buffer is taken from one of their own node's inputs.
        slot_bytes: the size of each slot.
        peak_bytes: the most bytes alive at once under this plan, inputs not counted.
        naive_bytes: the sum of all buffers, without reuse.
        lower_bytes: the most bytes of values alive at one step: no plan for this order needs less.
        live_bytes: bytes alive after each node.
        why_not: for a value that got a new buffer although another was free, the reason.
        written: for a value that is computed in the memory of an argument, that argument: the
            `write` of the one to the other has nothing left to do.
        scratch: the slots that no result of the call shows and whose elements lie in C order: who
            wants to may keep them for the next call.
        given: the operands whose memory the regions of the last node that reads them may write, and
            return as the memory of a result.
        regions: the plans of the regions of nodes, by the node and the name of the attr.
        Sizes are ints, or `Dim`s where dimensions are named.
    """

    __slots__ = (
        "dies",
        "given",
        "in_place",
        "live_bytes",
        "lower_bytes",
        "naive_bytes",
        "peak_bytes",
        "regions",
        "reuses",
        "scratch",
        "slot",
        "slot_bytes",
        "why_not",
        "written",
    )

    def __init__(
        self,
        *,
        dies: Sequence[Sequence[Value]],
        slot: Mapping[Value, int],
        reuses: Mapping[Value, Value],
        in_place: frozenset[Value],
        slot_bytes: Sequence[int | Dim],
        peak_bytes: int | Dim,
        naive_bytes: int | Dim,
        lower_bytes: int | Dim,
        live_bytes: Sequence[int | Dim],
        why_not: Mapping[Value, str],
        written: Mapping[Value, Value] | None = None,
        scratch: frozenset[int] = frozenset(),
        given: frozenset[Value] = frozenset(),
        regions: Mapping[tuple[Node, str], Plan] | None = None,
    ) -> None:
        self.dies = tuple(tuple(values) for values in dies)
        self.slot = dict(slot)
        self.reuses = dict(reuses)
        self.in_place = in_place
        self.slot_bytes = tuple(slot_bytes)
        self.peak_bytes = peak_bytes
        self.naive_bytes = naive_bytes
        self.lower_bytes = lower_bytes
        self.live_bytes = tuple(live_bytes)
        self.why_not = dict(why_not)
        self.written = dict(written or {})
        self.scratch = scratch
        self.given = given
        self.regions = dict(regions or {})

    def __str__(self) -> str:
        """One line for each buffer: who uses it, in order, why it is a new one; then the bytes."""
        users: dict[int, list[Value]] = {}
        for value, slot in self.slot.items():
            users.setdefault(slot, []).append(value)
        lines: list[str] = []
        for slot, values in sorted(users.items()):
            names = ", ".join(f"%{value.name}" for value in values)
            why = self.why_not.get(values[0])
            size = f"({self.slot_bytes[slot]} bytes)"
            lines.append(f"buffer {slot}: {names} {size}" + (f", new ({why})" if why else ""))
        for value, target in self.written.items():
            lines.append(f"argument %{target.name}: %{value.name} is computed there")
        lines.append(
            f"peak {self.peak_bytes} bytes; without reuse {self.naive_bytes}, "
            f"at least {self.lower_bytes}"
        )
        for (node, name), plan in self.regions.items():
            if plan.slot or plan.regions:
                lines.append(f"{name} of {node!r}:")
                lines += (f"  {line}" for line in str(plan).split("\n"))
        return "\n".join(lines)

    __repr__ = __str__


def storage_roots(graph: Graph) -> dict[Value, Value]:
    """The value in whose memory each value lies: a view leads to its base, any other to itself."""
    root: dict[Value, Value] = {value: value for value in graph.inputs}
    for node in graph.nodes:
        for value in node.outputs:
            root[value] = value
            if node.op.view and node.inputs and not is_element(node):
                root[value] = root.get(node.inputs[0], node.inputs[0])
    return root


def is_element(node: Node) -> bool:
    """Whether a view picks one element, which is a number of its own, and so is no view."""
    index = node.attrs.get("index")
    type_ = node.outputs[0].type
    axes = type_.ndim if isinstance(type_, ArrayType) else 0
    return not axes and index is not None and not any(item is ... for item in index)
