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

A result that is only there to be written to an argument is computed in the argument's memory where
that is legal (`written_directly`); it needs none of its own.

Cost: one sweep; free buffers are kept by type, and the one freed last is taken first.
"""

from __future__ import annotations

from collections.abc import Hashable

from minigraph.errors import DimensionError
from minigraph.ir import ArrayType, Dim, Graph, Node, Plan, Size, Value, decide_at_least
from minigraph.ops import writes_where_told

from .liveness import Liveness, liveness
from .order import C_ORDER, MemoryOrder
from .overwriting import overwritten, written_directly
from .recorder import REFUSALS, Recorder, difference
from .regions import may_share_memory


def plan(graph: Graph, recorder: Recorder) -> Plan:
    """Plan the memory of one call of the graph, whose nodes run in this order."""
    return _Planner(graph, recorder).run()


def plan_of(graph: Graph) -> Plan:
    """The plan of a graph, for who does not care for refusals."""
    return plan(graph, Recorder.after(graph))


class _Planner:
    """One sweep over a graph; a buffer is named by the value that owns it at the time."""

    def __init__(self, graph: Graph, recorder: Recorder) -> None:
        self.graph = graph
        self.recorder = recorder
        self.lives: Liveness = liveness(graph)
        self.end = len(graph.nodes)
        self.order = MemoryOrder(graph.inputs, recorder.options.strided)
        self.slot: dict[Value, int] = {}
        self.slot_bytes: list[Size] = []
        self.reuses: dict[Value, Value] = {}
        self.taken_at: dict[Value, int] = {}  # the position at which a buffer changes its owner
        self.in_place: set[Value] = set()
        self.overwritten: dict[Node, dict[Value, set[Value]]] = {}  # of each kernel
        self.why_not: dict[Value, str] = {}
        self.written = written_directly(graph, self.lives)
        self.ours: set[Value] = set()  # owners whose memory nothing else can see
        self.made: list[list[Value]] = [[] for _ in graph.nodes]  # owners, by their first position
        self.ends: list[list[Value]] = [[] for _ in graph.nodes]  # owners, by their last
        self.free: dict[Hashable, list[Value]] = {}
        self.all_free: dict[Value, None] = {}  # the same, in the order in which they became free

    def run(self) -> Plan:
        for position, node in enumerate(self.graph.nodes):
            self.order.add(node)
            for value in node.outputs:
                if self._is_in_argument(value):
                    continue
                if _owns_buffer(node, value):
                    self._place(position, node, value)
            for value in self.ends[position]:
                if value in self.ours and value not in self.taken_at:
                    self.free.setdefault(self._key(value), []).append(value)
                    self.all_free[value] = None
        account = _Account(self)
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
        )

    def _scratch(self) -> frozenset[int]:
        """The slots in C order whose memory nothing can see once the call is over."""
        seen = {
            slot
            for value, slot in self.slot.items()
            if self.lives.last_seen[value] == self.end or self.order.axes[value] != C_ORDER
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
            self.slot_bytes.append(_size_bytes(value))
            self._tell_why_not(position, node, value)
        else:
            self.slot[value] = self.slot[taken]
            self.reuses[value] = taken
            self.taken_at[taken] = position
        self.made[position].append(value)
        last = self.lives.last_seen[value]
        if last < self.end:
            self.ends[last].append(value)
        if not may_share_memory(node):
            self.ours.add(value)

    def _take(self, position: int, node: Node, value: Value) -> Value | None:
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
        owner = self.lives.root[operand]
        if value.type != operand.type:
            return "DTYPE"
        if owner not in self.ours:
            return "IS_INPUT"
        if owner is not operand or any(
            other is not operand and self.lives.root[other] is owner for other in node.inputs
        ):
            return "VIEW"
        last = self.lives.last_seen[owner]
        if last > position:
            return "IS_OUTPUT" if last == self.end else "MULTI_USE"
        if owner in self.taken_at:  # by another result of this node
            return "MULTI_USE"
        if not self._reads_before_it_writes(node, value, operand):
            return "BACKEND_CANNOT"
        return "" if self.order.axes[owner] == self.order.axes[value] else "LAYOUT"

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


class _Account:
    """The bytes that a plan needs.

    Attributes:
        naive: the sum of all buffers, if none were taken over or freed.
        after: the bytes allocated after each node; a buffer that will be taken over stays.
        peak: the most bytes allocated at once.
        lower: the most bytes of values that are needed at once.
    """

    def __init__(self, planner: _Planner) -> None:
        self.naive: Size = 0
        self.peak: Size = 0
        self.lower: Size = 0
        self.after: list[Size] = []
        allocated: Size = 0
        needed: Size = 0
        for made, ends in zip(planner.made, planner.ends, strict=True):
            least = needed
            for value in made:
                size = _size_bytes(value)
                self.naive += size
                needed += size
                if value not in planner.in_place:
                    least += size
                if value not in planner.reuses:
                    allocated += size
            self.peak = _upper(self.peak, allocated)
            self.lower = _larger(self.lower, least)
            for value in ends:
                size = _size_bytes(value)
                needed -= size
                if value not in planner.taken_at:
                    allocated -= size
            self.after.append(allocated)
        if not _is_at_least(self.naive, self.peak):
            self.peak = self.naive


# ---- what ops do with memory


def _owns_buffer(node: Node, value: Value) -> bool:
    """The value is an array with axes, in memory that was allocated for it."""
    return (
        isinstance(value.type, ArrayType)
        and value.type.ndim > 0
        and not node.op.view
        and node.op.name != "const"
    )


# ---- sizes, of which some may be named dimensions


def _size_bytes(value: Value) -> Size:
    assert isinstance(value.type, ArrayType)
    return value.type.size_bytes


def _is_at_least(a: Size, b: Size) -> bool:
    try:
        return decide_at_least(a, b)
    except DimensionError:
        return False


def _larger(a: Size, b: Size) -> Size:
    """The larger of two; of two that cannot be compared, the first."""
    return b if _is_at_least(b, a) else a


def _upper(a: Size, b: Size) -> Size:
    """The larger of two; of two that cannot be compared, a sum that neither exceeds."""
    difference = b - a
    if isinstance(difference, int):
        return a + max(difference, 0)
    for monomial, coefficient in difference.terms:
        if coefficient > 0:
            a += Dim(((monomial, coefficient),)) if monomial else coefficient
    return a
