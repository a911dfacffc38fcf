"""The plan of memory: when each buffer is free again, and which value takes it over.

    graph f() {
      %0 = ones {shape=(10,)} : f64[10]
      %1 = const 2.0           : float
      %2 = multiply %0, %1     : f64[10]      # a new buffer: %0 is read again
      %3 = multiply %2, %0     : f64[10]      # takes over the buffer of %2
      %4 = const 1.0           : float
      %5 = add %3, %4          : f64[10]      # takes over the same buffer
      return %5
    }

needs 320 bytes if every value has a buffer of its own, and 160 under the plan.

Legality: a buffer is taken over only if this call allocated it (never one of an input or a
constant), only after the last read of its memory by any name (views lead to the value whose memory
they show), and only for a value of the same dtype, the same shape (named dimensions in their normal
form) and the same order of elements in memory, so that later sums add up in the same order.
*In place*, a value takes the buffer of an operand that dies at its own node: elementwise ops may,
for they read an element before they write it, if they read that buffer by its owner's name alone.
The result goes there by `out=`, so the op must be a NumPy ufunc, `matmul` or `dot` (or `update`,
which stores into its first operand instead of a copy), or a kernel, whose results go wherever they
are wanted, and in place where it computes each element by itself.  What other ops return is a
buffer like any other once it dies.  Values without axes have no buffers: NumPy passes them as
scalars.

Regions have plans of their own (`Plan.regions`).  The memory of what a loop carries belongs to the
loop, and so does the memory of an operand of an `if` that is *given*: this call allocated it, and
nothing reads it after the node, by any name, or twice at it.  In a region such an input is a buffer
like one that was allocated there, and a result may lie in it:

    %x.1 = update %x, %v, %i {index=[%]} : bool[1000]     # of a carried %x: in place, no copy
    %h.1 = add %h, %y                    : f32[8]         # into the buffer of the turn before

Only what is returned once, and is no view of an operand, can be handed on without a copy: see
`ir/sharing.py`.  A loop whose operand is not given copies it before its first turn.

A result that is only there to be written to an argument is computed in the argument's memory where
that is legal (`written_directly`); it needs none of its own.

Cost: one sweep; free buffers are kept by type, and the one freed last is taken first.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from minigraph.ir import (
    Graph,
    Node,
    Plan,
    Size,
    Value,
    carried_count,
    has_axes,
    is_loop,
    is_structured,
    operands,
    results_to_copy,
    running_regions,
    storage_roots,
)
from minigraph.ops import writes_where_told

from .account import Account, Inside, larger, size_bytes, upper
from .liveness import Liveness, liveness
from .order import C_ORDER, MemoryOrder
from .overwriting import overwritten, written_directly
from .recorder import REFUSALS, Recorder, difference


def plan(graph: Graph, recorder: Recorder, *, reuse: bool = True) -> Plan:
    """Plan the memory of one call of the graph, whose nodes run in this order.

    Args:
        graph: what is called.
        recorder: takes what was refused.
        reuse: whether a buffer may be taken over; else each value gets one of its own.
    """
    order = MemoryOrder(graph.inputs, recorder.options.strided)
    return _Planner(graph, recorder, order, reuse=reuse).run()


def plan_of(graph: Graph) -> Plan:
    """The plan of a graph, for who does not care for refusals."""
    return plan(graph, Recorder.after(graph))


class _Planner:
    """One sweep over a graph; a buffer is named by the value that owns it at the time.

    Args:
        graph: a function or a region.
        recorder: takes what was refused.
        order: how the inputs lie in memory.
        owned: the inputs of a region whose memory it may write.
        reuse: whether a buffer may be taken over.
    """

    def __init__(
        self,
        graph: Graph,
        recorder: Recorder,
        order: MemoryOrder,
        owned: Sequence[Value] = (),
        *,
        reuse: bool,
    ) -> None:
        self.graph = graph
        self.recorder = recorder
        self.reuse = reuse
        self.lives: Liveness = liveness(graph)
        self.end = len(graph.nodes)
        self.order = order
        self.slot: dict[Value, int] = {}
        self.slot_bytes: list[Size] = []
        self.reuses: dict[Value, Value] = {}
        self.taken_at: dict[Value, int] = {}  # the position at which a buffer changes its owner
        self.in_place: set[Value] = set()
        self.overwritten: dict[Node, dict[Value, set[Value]]] = {}  # of each kernel
        self.why_not: dict[Value, str] = {}
        self.written = written_directly(graph, self.lives) if reuse else {}
        self.ours: set[Value] = set()  # owners whose memory nothing else can see
        self.made: list[list[Value]] = [[] for _ in graph.nodes]  # owners, by their first position
        self.ends: list[list[Value]] = [[] for _ in graph.nodes]  # owners, by their last
        self.free: dict[Hashable, list[Value]] = {}
        self.all_free: dict[Value, None] = {}  # the same, in the order in which they became free
        self.given: set[Value] = set()
        self.regions: dict[tuple[Node, str], Plan] = {}
        self.handed_on: dict[Value, Value] = {}  # a result of regions -> the operand it lies in
        self.inside: dict[Node, Inside] = {}
        for value in owned:
            self.slot[value] = len(self.slot_bytes)
            self.slot_bytes.append(size_bytes(value))
            self.ours.add(value)
            if self.lives.last_seen[value] < 0:
                self._free(value)
            elif self.lives.last_seen[value] < self.end:
                self.ends[self.lives.last_seen[value]].append(value)
        self.borrowed = frozenset(self.slot.values())

    def run(self) -> Plan:
        for position, node in enumerate(self.graph.nodes):
            self.order.add(node)
            if is_structured(node) or node.op.name == "call":
                self._plan_regions(position, node)
            for value in node.outputs:
                if self._is_in_argument(value):
                    continue
                if _owns_buffer(node, value):
                    self._place(position, node, value)
            for value in self.ends[position]:
                if value in self.ours and value not in self.taken_at:
                    self._free(value)
        account = Account(
            self.graph.nodes,
            self.made,
            self.ends,
            self._size,
            self.reuses,
            self.in_place,
            self.inside,
        )
        return Plan(
            dies=self._dies(),
            slot=self.slot,
            reuses=self.reuses,
            in_place=frozenset(self.in_place),
            slot_bytes=self.slot_bytes,
            peak_bytes=account.peak,
            naive_bytes=account.naive,
            lower_bytes=account.lower,
            live_bytes=account.after,
            why_not=self.why_not,
            written=self.written,
            scratch=self._scratch(),
            given=frozenset(self.given),
            regions=self.regions,
        )

    def _free(self, value: Value) -> None:
        self.free.setdefault(self._key(value), []).append(value)
        self.all_free[value] = None

    def _size(self, value: Value) -> Size:
        """The bytes that a value takes here: none in memory that was there before."""
        return 0 if self.slot[value] in self.borrowed else size_bytes(value)

    def _scratch(self) -> frozenset[int]:
        """The slots in C order whose memory nothing can see once the call is over."""
        seen = {
            slot
            for value, slot in self.slot.items()
            if self.lives.last_seen[value] == self.end
            or self.order.axes[value] != C_ORDER
            or value in self.given
        }
        return frozenset(range(len(self.slot_bytes))) - seen

    def _is_in_argument(self, value: Value) -> bool:
        """Whether a result is computed in the memory of an argument."""
        target = self.written.get(value)
        if target is not None and self.order.axes[target] != self.order.axes[value]:
            del self.written[value]
        return value in self.written

    def _place(self, position: int, node: Node, value: Value) -> None:
        """Give a value a buffer: that of an operand, a free one, or a new one."""
        taken = self._take(position, node, value)
        if taken is None:
            self.slot[value] = len(self.slot_bytes)
            self.slot_bytes.append(size_bytes(value))
            if self.reuse:
                self._tell_why_not(position, node, value)
        else:
            self.slot[value] = self.slot[taken]
            self.reuses[value] = taken
            self.taken_at[taken] = position
        self.made[position].append(value)
        last = self.lives.last_seen[value]
        if last < self.end:
            self.ends[last].append(value)
        self.ours.add(value)

    # ---- regions

    def _plan_regions(self, position: int, node: Node) -> None:
        """Plan the regions of a node, and find the operands that it can have."""
        values, count, loops = operands(node), carried_count(node), is_loop(node)
        given = [value for value in values if self._can_give(position, node, value)]
        if loops:
            given = [value for value in given if value in values[:count]]
            self.handed_on.update((node.outputs[values.index(value)], value) for value in given)
        inside = Inside(0, 0, 0, given, loops=loops)
        for name, region in running_regions(node):
            if loops:
                carried = region.inputs[:count] if name == "body" else ()
                owned = [inner for inner in carried if has_axes(inner)]
            else:
                pairs = zip(values, region.inputs, strict=True)
                owned = [inner for value, inner in pairs if value in given]
            order = self.order.inside(node, name)
            found = _Planner(region, self.recorder, order, owned, reuse=self.reuse).run()
            self.regions[node, name] = found
            results = region.outputs[:count] if loops and name == "body" else region.outputs
            copied = results_to_copy(region, results, owned)
            copies = sum(size_bytes(v) for v, own in zip(results, copied, strict=True) if own)
            inside = inside._replace(
                naive=upper(inside.naive, found.naive_bytes + copies),
                peak=upper(inside.peak, found.peak_bytes + copies),
                lower=larger(inside.lower, found.lower_bytes),
            )
            if not loops:
                self._hand_on(node, region, found)
        self.given.update(given)
        self.inside[node] = inside

    def _can_give(self, position: int, node: Node, operand: Value) -> bool:
        """Whether the regions of a node may write the memory of an operand."""
        return (
            self.reuse
            and has_axes(operand)
            and node.inputs.count(operand) == 1
            and not self._why_not_ours(position, node, operand)
        )

    def _hand_on(self, node: Node, region: Graph, plan: Plan) -> None:
        """Note which results of a region lie in the memory of operands."""
        root = storage_roots(region)
        lies_in = {
            plan.slot[inner]: value
            for value, inner in zip(operands(node), region.inputs, strict=True)
            if inner in plan.slot
        }
        for result, inner in zip(node.outputs, region.outputs, strict=True):
            operand = lies_in.get(plan.slot.get(root[inner], -1))
            if operand is not None and operand.type == result.type:
                self.handed_on.setdefault(result, operand)

    # ---- buffers

    def _take(self, position: int, node: Node, value: Value) -> Value | None:
        if not self.reuse:
            return None
        operand = self.handed_on.get(value)
        if operand is not None and operand not in self.taken_at:
            self.in_place.add(value)
            return operand
        if not writes_where_told(node):
            return None
        for operand in node.inputs:
            if not self._objection(position, node, value, operand):
                self.in_place.add(value)
                return operand
        free = None if node.op.stores else self.free.get(self._key(value))
        if not free:
            return None
        taken = free.pop()
        del self.all_free[taken]
        return taken

    def _objection(self, position: int, node: Node, value: Value, operand: Value) -> str:
        """The code why `value` cannot be written over `operand`; "" if it can."""
        if value.type != operand.type:
            return "DTYPE"
        why = self._why_not_ours(position, node, operand)
        if why:
            return why
        if not self._reads_before_it_writes(node, value, operand):
            return "BACKEND_CANNOT"
        return "" if self.order.axes[operand] == self.order.axes[value] else "LAYOUT"

    def _why_not_ours(self, position: int, node: Node, operand: Value) -> str:
        """The code why the memory of an operand is not this node's to write; "" if it is."""
        owner = self.lives.root[operand]
        if owner not in self.ours:
            return "IS_INPUT"
        if owner is not operand or any(
            other is not operand and self.lives.root[other] is owner for other in node.inputs
        ):
            return "VIEW"
        last = self.lives.last_seen[owner]
        if last > position:
            return "IS_OUTPUT" if last == self.end else "MULTI_USE"
        # By another result of this node.
        return "MULTI_USE" if owner in self.taken_at else ""

    def _reads_before_it_writes(self, node: Node, value: Value, operand: Value) -> bool:
        """Whether a node needs nothing of an operand once its result stands in the same place."""
        if node.op.name == "kernel":
            if node not in self.overwritten:
                self.overwritten[node] = overwritten(node)
            return operand in self.overwritten[node].get(value, ())
        return node.op.kind == "elementwise" or (node.op.stores and operand is node.inputs[0])

    def _tell_why_not(self, position: int, node: Node, value: Value) -> None:
        """Say why a value got a new buffer: of one of its operands, or of one that was free."""
        if not writes_where_told(node):
            if self.free.get(self._key(value)):
                why = f"{node.op.name} returns a buffer of its own"
                self._refuse(node, value, None, "BACKEND_CANNOT", why)
            return
        for operand in dict.fromkeys(node.inputs):
            code = self._objection(position, node, value, operand)
            if code != "DTYPE":
                self._refuse(node, value, operand, code, f"%{operand.name}: {REFUSALS[code]}")
                return
        if self.all_free:
            other = next(reversed(self.all_free))
            why = f"only others are free, such as %{other.name}: {other.type}"
            code = "LAYOUT" if value.type == other.type else difference(value.type, other.type)
            self._refuse(node, value, other, code, why)

    def _refuse(self, node: Node, value: Value, other: Value | None, code: str, why: str) -> None:
        self.why_not[value] = why
        self.recorder.refused(node, other, code, why, rule="plan.new_buffer")

    def _key(self, value: Value) -> Hashable:
        return (value.type, self.order.axes[value])

    def _dies(self) -> list[list[Value]]:
        """The names that end after each node; a buffer keeps its name until it is taken over."""
        dies: list[list[Value]] = [[] for _ in self.graph.nodes]
        for value in self.graph.values():
            position = self.taken_at.get(value, self.lives.last_read[value])
            if 0 <= position < self.end:
                dies[position].append(value)
        return dies


# ---- what ops do with memory


def _owns_buffer(node: Node, value: Value) -> bool:
    """The value is an array with axes, in memory that was allocated for it."""
    return has_axes(value) and not node.op.view and node.op.name != "const"
