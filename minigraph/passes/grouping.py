"""Which nodes go into one kernel.

Nodes are taken in order.  Each joins the groups that compute its operands (and makes them one), as
far as that is legal; else it begins a group of its own.

Groups must not wait for each other in a circle.  To know that without searching, each group (and
each node outside of groups) has a *level*, and whoever reads a result has a higher one than whoever
made it.  A group may rise as long as it stays below its readers.

A node joins only if the loop axes of all values stay those that `ops.place` gives, in loops over
the largest shape in the group.  A group whose loops are smaller is moved into larger ones if nobody
else reads its values, which are then computed once for each step of the outer loops.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence

from minigraph.ir import ArrayType, Graph, Node, Shape, Value
from minigraph.ops import Axes, extent, largest

from . import refusals
from .dce import dead_nodes
from .fusible import cannot_loop, follow_each_other, is_product
from .groups import (
    Group,
    Seat,
    Step,
    above,
    clash,
    placed_in,
    reduced_axes,
    root_of,
    span,
    within,
)
from .recorder import CannotFuse
from .refusals import SIZE_LIMIT, Refusal
from .regions import does_something, is_effect
from .sources import Sources, read_before_written


class Grouping:
    """The groups of a graph's nodes.

    Attributes:
        graph: the graph; position: the place of each node in it.
        sources: its views and numbers.
        objections: for each node that is in no group, why.
    """

    def __init__(self, graph: Graph, cannot_fuse: CannotFuse) -> None:
        self.graph = graph
        self.position = {node: index for index, node in enumerate(graph.nodes)}
        self.objections: dict[Node, Refusal] = {}
        self._dead = dead_nodes(graph)
        self.sources = Sources(graph, self._dead)
        self._cannot_fuse = cannot_fuse
        self._outputs = set(graph.outputs)
        self._refusals: dict[tuple[Value, Node], Refusal] = {}
        self._step: dict[Value, Step] = {}
        self._last_effect: Step | None = None
        self._read_before = read_before_written(graph)
        for node in graph.nodes:
            if not self.sources.is_followed(node):
                self._add(node)

    # ---- what there is

    def step(self, value: Value) -> Step | None:
        """What makes a value: a group, a node by itself, or None (inputs and constants)."""
        step = self._step.get(value)
        return root_of(step) if isinstance(step, Group) else step

    def group(self, node: Node) -> Group | None:
        """The group of a node that computes something."""
        step = self.step(node.outputs[0]) if len(node.outputs) == 1 else None
        return step if isinstance(step, Group) and node in step.nodes else None

    def groups(self) -> list[Group]:
        """All groups, in the order of their first nodes."""
        found = (self.group(node) for node in self.graph.nodes)
        return list(dict.fromkeys(group for group in found if group is not None))

    def escapes(self, value: Value, group: Group, reader: Node | None = None) -> str:
        """`IS_OUTPUT` or `MULTI_USE` if others than the group and one more reader need a value."""
        pending = [value]
        while pending:
            value = pending.pop()
            if value in self._outputs:
                return "IS_OUTPUT"
            for node in self.sources.readers.get(value, ()):
                if self.sources.is_window(node):
                    pending.append(node.output)
                elif node is not reader and node not in group.nodes:
                    return "MULTI_USE"
        return ""

    def why_apart(self, value: Value, node: Node, maker: Node) -> Refusal:
        """Why a node is not in the kernel of the node that made (the base of) its operand."""
        if is_product(node):
            return refusals.OPERAND
        found = (
            self.objections.get(node)
            or self._refusals.get((value, node))
            or self.objections.get(maker)
        )
        if found is None:
            assert self.sources.moved(value) is None, (value, node)
            return refusals.ELSEWHERE
        return found

    # ---- one node after the other

    def _add(self, node: Node) -> None:
        refusal = self._objection(node)
        if refusal is not None:
            self._leave(node, refusal)
        elif is_product(node):
            self._begin_product(node)
        elif node.op.kind == "reduce":
            self._add_reduction(node)
        else:
            self._add_elementwise(node)

    def _objection(self, node: Node) -> Refusal | None:
        """Why a node can be in no kernel."""
        if does_something(node):
            return Refusal("SIDE_EFFECT", f"`{node.op.name}` does something to the world")
        if node.may_raise:
            return Refusal("SIDE_EFFECT", f"`{node.op.name}` may raise here: it keeps its place")
        if node in self._dead:
            return refusals.UNREAD
        if node.op.name == "reshape":
            return refusals.RENUMBERED
        if node.op.view:
            return refusals.MOVES_NOTHING
        why = cannot_loop(node) or self._cannot_fuse(node, self.sources.known)
        return Refusal("BACKEND_CANNOT", why) if why else None

    def _leave(self, node: Node, refusal: Refusal) -> None:
        """Leave a node by itself."""
        self.objections[node] = refusal
        before = self._made_by(node.inputs)
        for reader in self._read_before.get(node, ()):
            before.update(self._made_by(reader.outputs))
        effect = is_effect(node)
        if effect and self._last_effect is not None:
            before[self._last_effect] = None
        step = Step(above(before))
        for each in before:
            each.precedes(step.level)
        self._step.update(dict.fromkeys(node.outputs, step))
        if effect:
            self._last_effect = step

    def _made_by(self, values: Iterable[Value]) -> dict[Step, None]:
        """The steps that make what these values are or show."""
        steps = (self.step(self.sources.base(value)) for value in values)
        return {step: None for step in steps if step is not None}

    def _begin(self, node: Node, loop: Shape, axes: Mapping[Value, Axes]) -> Group:
        """A group of one node."""
        before = self._made_by(node.inputs)
        group = Group(above(before), loop)
        for each in before:
            each.precedes(group.level)
        self._enter(node, group, axes)
        return group

    def _enter(self, node: Node, group: Group, axes: Mapping[Value, Axes]) -> None:
        group.nodes.update(dict.fromkeys(self.sources.parts(node)))
        group.axes.update(axes)
        self._step[node.output] = group

    # ---- reductions

    def _add_reduction(self, node: Node) -> None:
        (operand,) = node.inputs
        moved = self.sources.moved(operand)
        group = None if moved is None else self.step(moved)
        if isinstance(group, Group):
            refusal = self._reduce_in(node, group)
            if refusal is None:
                return
            self._tell(node, [operand], refusal)
        loop = largest(self._shapes(node))
        placed = self._placed(node, {}, loop)
        reduced = () if placed is None else reduced_axes(node, placed)
        if placed is None or len(reduced) != len(node.attrs["axis"]):
            self._leave(node, refusals.MISFIT)
            return
        group = self._begin(node, loop, placed)
        group.reduced = reduced
        group.late.add(node.output)

    def _reduce_in(self, node: Node, group: Group) -> Refusal | None:
        """Let a reduction join the group of its operand, or say why not."""
        placed = self._placed(node, group.axes, group.loop, group)
        if placed is None or not within(self._shapes(node, group), group.loop):
            return refusals.MISFIT
        reduced = reduced_axes(node, placed)
        if not reduced or len(reduced) != len(node.attrs["axis"]):
            return refusals.MISFIT
        if group.reduced not in ((), reduced) or len(span(placed[node.inputs[0]])) < len(
            group.loop
        ):
            return refusals.OTHER_AXES
        if len(reduced) == len(group.loop) and self.sources.base(node.inputs[0]) in group.late:
            return refusals.WHOLE
        if not follow_each_other(reduced):
            return refusals.SCATTERED
        if any(not set(inner).isdisjoint(reduced) for inner in group.inner):
            return refusals.AGAIN
        if self._size(node, [group]) > SIZE_LIMIT:
            return refusals.TOO_LONG
        if group.product is not None:
            self._evict_product(group, refusals.REDUCED)
        self._enter(node, group, placed)
        group.reduced = reduced
        group.late.add(node.output)
        return None

    # ---- elementwise nodes

    def _add_elementwise(self, node: Node) -> None:
        candidates = self._candidates(node)
        shapes = self._shapes(node)
        loops = dict.fromkeys([largest(shapes), *(group.loop for group in candidates)])
        for loop in sorted(loops, key=extent, reverse=True) if candidates else ():
            if within(shapes, loop) and self._join(node, candidates, loop):
                return
        loop = largest(shapes)
        placed = self._placed(node, {}, loop)
        if placed is None:
            self._leave(node, refusals.MISFIT)
        else:
            self._begin(node, loop, placed)

    def _candidates(self, node: Node) -> dict[Group, list[Value]]:
        """The groups that compute operands, each with those operands."""
        found: dict[Group, list[Value]] = {}
        elsewhere: list[Value] = []
        for value in dict.fromkeys(node.inputs):
            moved = self.sources.moved(value)
            group = None if moved is None else self.step(moved)
            if isinstance(group, Group):
                found.setdefault(group, []).append(value)
            elif moved is None:
                elsewhere.append(value)
        for step in self._made_by(elsewhere):
            if isinstance(step, Group) and step in found:
                self._tell(node, found.pop(step), refusals.ELSEWHERE)
        return found

    def _join(self, node: Node, candidates: Mapping[Group, list[Value]], loop: Shape) -> bool:
        """Let a node join as many of the groups that compute its operands as fit."""
        seats: list[Seat] = []
        for group in candidates:
            seat = self._seat(group, node, loop)
            for other in seats:
                if isinstance(seat, Seat):
                    seat = clash(seat, other) or seat
            if isinstance(seat, Seat):
                seats.append(seat)
            else:
                self._tell(node, candidates[group], seat)
        while seats:
            refusal = self._try(node, seats, loop)
            if refusal is None:
                return True
            out = min(seats, key=_limit) if refusal is refusals.CYCLE else seats[-1]
            seats.remove(out)
            self._tell(node, candidates[out.group], refusal)
        return False

    def _tell(self, node: Node, values: Iterable[Value], refusal: Refusal) -> None:
        for value in values:
            self._refusals.setdefault((value, node), refusal)

    def _seat(self, group: Group, node: Node, loop: Shape) -> Seat | Refusal:
        """A group in loops that may be larger than its own.

        In larger loops it is no group of its own any more, so nobody but `node` may read it.
        """
        if group.loop == loop:
            return Seat(group, group.axes, group.inner)
        if group.reduced:
            return refusals.LARGER
        if group.product is not None or extent(group.loop) >= extent(loop):
            return refusals.MISFIT
        for each in group.computing:
            code = self.escapes(each.output, group, node)
            if code:
                return Refusal(code, "others need it, too, and the loops of the reader are larger")
        seat = Seat(group, {}, set())
        for each in sorted(group.nodes, key=self.position.__getitem__):
            if each.op.name == "const" or (
                each.op.view and not self.is_inside(each.output, [group])
            ):
                continue
            placed = placed_in(each, seat.axes, loop)
            if placed is None:
                return refusals.AGAIN if loop[-len(group.loop) :] == group.loop else refusals.MISFIT
            seat.axes.update(placed)
            axes = span(seat.axes[each.output])
            if axes != tuple(range(len(axes))):
                return refusals.AGAIN
            if len(axes) < len(loop):
                seat.inner.add(axes)
        return seat

    def _try(self, node: Node, seats: Sequence[Seat], loop: Shape) -> Refusal | None:
        """Make one group of several and a node, or say why not."""
        groups = [seat.group for seat in seats]
        known = seats[0].axes if len(seats) == 1 else ChainMap(*(seat.axes for seat in seats))
        placed = self._placed(node, known, loop, *groups)
        if placed is None or not within(self._shapes(node, *groups), loop):
            return refusals.MISFIT
        reduced = next((group.reduced for group in groups if group.reduced), ())
        kept = tuple(axis for axis in range(len(loop)) if axis not in reduced)
        varies = span(placed[node.output])
        full = len(varies) == len(loop)
        if not full and not (reduced and varies == kept):
            return refusals.AGAIN
        late = any(self.sources.base(v) in group.late for v in node.inputs for group in groups)
        if late and full and reduced and not kept:
            return refusals.WHOLE
        if self._size(node, groups) > SIZE_LIMIT:
            return refusals.TOO_LONG
        before = self._made_by(node.inputs)
        for group in groups:
            before.pop(group, None)
        level = max(above(before), *(group.level for group in groups))
        if any(group.limit <= level for group in groups):
            return refusals.CYCLE
        for step in before:
            step.precedes(level)
        group = self.merge(seats, loop, level)
        self._enter(node, group, placed)
        if late:
            group.late.add(node.output)
        return None

    def merge(self, seats: Sequence[Seat], loop: Shape, level: float) -> Group:
        """Make one group of several; the smaller ones go into the largest."""
        products = [seat.group for seat in seats if seat.group.product is not None]
        if any(seat.group.reduced for seat in seats):
            for each in products:
                self._evict_product(each, refusals.REDUCED)
        for each in products[1:]:
            if each.product is not None:
                self._evict_product(each, refusals.ONE_PRODUCT)
        first, *others = sorted(seats, key=_size, reverse=True)
        group = first.group
        group.axes, group.inner, group.loop, group.level = first.axes, first.inner, loop, level
        for seat in others:
            other = seat.group
            group.axes.update(seat.axes)
            group.inner |= seat.inner
            group.nodes.update(other.nodes)
            group.late |= other.late
            group.reduced = group.reduced or other.reduced
            group.product = group.product or other.product
            group.precedes(other.limit)
            other.into = group
        return group

    # ---- where nodes lie in the loops

    def _placed(
        self, node: Node, known: MutableMapping[Value, Axes], loop: Shape, *groups: Group
    ) -> dict[Value, Axes] | None:
        """The axes of a node's result and operands; None: they do not fit."""
        found: dict[Value, Axes] = {}
        for value in node.inputs:
            if value in self.sources.windows and self.is_inside(value, groups):
                for move in self.sources.windows[value]:
                    placed = placed_in(move, ChainMap(found, known), loop)
                    if placed is None:
                        return None
                    found.update(placed)
        placed = placed_in(node, ChainMap(found, known) if found else known, loop)
        return None if placed is None else {**found, **placed}

    def is_inside(self, value: Value, groups: Sequence[Group]) -> bool:
        """Whether a value is a number, computed by the groups, or such a one moved."""
        moved = self.sources.moved(value)
        return moved is not None and (moved in self.sources.numbers or self.step(moved) in groups)

    def _shapes(self, node: Node, *groups: Group) -> list[Shape]:
        """The shapes of what a node reads and makes, as part of these groups."""
        values = [*node.inputs, *node.outputs]
        for value in node.inputs:
            if value in self.sources.windows and self.is_inside(value, groups):
                values += [move.output for move in self.sources.windows[value]]
        return [v.type.shape if isinstance(v.type, ArrayType) else () for v in values]

    def _size(self, node: Node, groups: Sequence[Group]) -> int:
        """How many nodes the body would have."""
        parts = set(self.sources.parts(node))
        new = sum(not any(part in group.nodes for group in groups) for part in parts)
        return new + sum(len(group.nodes) for group in groups)

    # ---- products

    def _begin_product(self, node: Node) -> None:
        assert isinstance(node.output.type, ArrayType)
        shape = node.output.type.shape
        group = self._begin(node, shape, {node.output: tuple(range(len(shape)))})
        group.product = node

    def check_product(self, group: Group) -> None:
        """Leave the product outside unless something follows that may overwrite it."""
        product = group.product
        if product is None:
            return
        others = [node for node in group.computing if node is not product]
        code = self.escapes(product.output, group)
        same = [node.output for node in others if node.output.type == product.output.type]
        if not others:
            self._evict_product(group, refusals.ALONE)
        elif code:
            self._evict_product(group, Refusal(code, "the product itself is needed, too"))
        elif not any(self.escapes(value, group) for value in same):
            why = f"no result of the kernel is a {product.output.type}, as the product is"
            self._evict_product(group, Refusal("DTYPE", why))

    def _evict_product(self, group: Group, refusal: Refusal) -> None:
        """Leave a product outside of its group, which reads the result.

        Only the group's nodes read it so far, so it may stand anywhere before them.
        """
        product, group.product = group.product, None
        assert product is not None
        del group.nodes[product]
        left = {part for node in group.computing for part in self.sources.parts(node)}
        group.nodes = {node: None for node in group.nodes if node in left}
        self._step[product.output] = Step(group.level - 0.5)
        self.objections[product] = refusal

    def dissolve(self, group: Group, refusal: Refusal) -> None:
        """Leave the nodes of a group by themselves."""
        for node in group.computing:
            self.objections[node] = refusal
            self._step[node.output] = Step(group.level)
        group.nodes = {}


def _limit(seat: Seat) -> float:
    return seat.group.limit


def _size(seat: Seat) -> int:
    return len(seat.group.nodes)
