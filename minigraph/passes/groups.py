"""Groups of nodes that will be kernels: which node may join which.

Nodes are taken in order.  Each joins the groups that compute its operands (and makes them one), as
far as that is legal; else it begins a group of its own.

Groups must not wait for each other in a circle.  To know that without searching, each group (and
each node outside of groups) has a *level*, and whoever reads a result has a higher one than whoever
made it.  A group may rise as long as it stays below its readers; `limit` is the lowest of those.

A node joins only if the loop axes of all values stay those that `ops.place` gives, in loops over
the largest shape in the group.  A group whose loops are smaller is moved into larger ones if nobody
else reads its values, which are then computed once for each step of the outer loops.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from minigraph.ir import ArrayType, Graph, Node, Shape, Value, storage_roots
from minigraph.ops import Axes, place

from .fusible import cannot_loop, follow_each_other, is_product, is_window, only_moves
from .recorder import CannotFuse
from .regions import does_something, is_effect

SIZE_LIMIT = 200
MOST_WINDOWS = 8  # views of views of views ...


class Refusal(NamedTuple):
    """A code of `REFUSALS`, and the reason for people."""

    code: str
    why: str


MISFIT = Refusal("SHAPE_MISMATCH", "their loops do not fit together")
CYCLE = Refusal("ORDER_CYCLE", "what is in between would have to run in the middle of the kernel")
OTHER_AXES = Refusal("REDUCTION_BARRIER", "the kernel already reduces along other axes")
WHOLE = Refusal("REDUCTION_BARRIER", "everything has to be reduced first")
TOO_LONG = Refusal("SIZE_LIMIT", f"the kernel would have more than {SIZE_LIMIT} nodes")
ELSEWHERE = Refusal("SHAPE_MISMATCH", "it is read in another order, or in part")
AGAIN = Refusal("COST", "it would be computed again and again in the larger loops")
ONE_PRODUCT = Refusal("BACKEND_CANNOT", "a kernel begins with one product")
ALONE = Refusal("COST", "nothing follows that could be done while the product is at hand")
OPERAND = Refusal("REDUCTION_BARRIER", "a product reads its operands again and again")
UNREAD = Refusal("COST", "nobody reads the result")
MOVES_NOTHING = Refusal("COST", "a view moves no bytes: there is nothing to save")


class Step:
    """What runs as one: a node by itself, or a group."""

    __slots__ = ("level", "limit")

    def __init__(self, level: float) -> None:
        self.level = level
        self.limit = inf


class Group(Step):
    """Nodes that will be one kernel.

    Attributes:
        loop: the extents of the loop axes.
        axes: the loop axes of each value; reduced: those along which the reductions run.
        nodes: the nodes of the body, with the views of inputs and the numbers that it reads.
        late: the values that depend on a reduction.
        inner: the axes of the values that do not vary along all loop axes, reductions left out.
        product: the product of matrices that the kernel begins with, if it does.
    """

    __slots__ = ("axes", "inner", "into", "late", "loop", "nodes", "product", "reduced")

    def __init__(self, level: float, loop: Shape) -> None:
        super().__init__(level)
        self.loop = loop
        self.axes: dict[Value, Axes] = {}
        self.reduced: tuple[int, ...] = ()
        self.nodes: dict[Node, None] = {}
        self.late: set[Value] = set()
        self.inner: set[Axes] = set()
        self.product: Node | None = None
        self.into: Group | None = None

    @property
    def form(self) -> str:
        """The attr of the kernel."""
        if self.product is not None:
            return "epilogue"
        if not self.reduced:
            return "map"
        return "rows" if self.reduced[-1] == len(self.loop) - 1 else "columns"


class Seat(NamedTuple):
    """A group as it would be in given loops."""

    group: Group
    axes: dict[Value, Axes]
    inner: set[Axes]


class Grouping:
    """The groups of a graph's nodes.

    Attributes:
        position: of each node.
        base: for each view that is read as part of its readers what it is a window on.
        windows: the views that lead from there to it.
        numbers: the constants without axes, which stand in each kernel that reads them.
        objections: for each node that is in no group, why.
    """

    def __init__(
        self,
        graph: Graph,
        dead: Iterable[Node],
        cannot_fuse: CannotFuse,
    ) -> None:
        self.graph = graph
        self.nodes = nodes = graph.nodes
        self.dead = set(dead)
        self.cannot_fuse = cannot_fuse
        self.outputs = set(graph.outputs)
        self.position = {node: index for index, node in enumerate(nodes)}
        self.readers: dict[Value, list[Node]] = {}
        self.base: dict[Value, Value] = {}
        self.windows: dict[Value, tuple[Node, ...]] = {}
        self.numbers: dict[Value, Node] = {}
        self.objections: dict[Node, Refusal] = {}
        self._refusals: dict[tuple[Value, Node], Refusal] = {}
        self._step: dict[Value, Step] = {}
        self._last_effect: Step | None = None
        self._written_after = written_after(graph)
        for node in nodes:
            for value in dict.fromkeys(node.inputs):
                self.readers.setdefault(value, []).append(node)
        for node in nodes:
            self._add(node)

    # ---- what there is

    def step(self, value: Value) -> Step | None:
        """What makes a value: a group, a node by itself, or None (inputs and constants)."""
        step = self._step.get(value)
        while isinstance(step, Group) and step.into is not None:
            if step.into.into is not None:
                step.into = step.into.into  # so that the way is short the next time
            step = step.into
        return step

    def group(self, node: Node) -> Group | None:
        """The group of a node that computes something."""
        step = self.step(node.outputs[0]) if len(node.outputs) == 1 else None
        return step if isinstance(step, Group) and node in step.nodes else None

    def groups(self) -> list[Group]:
        """All groups, in the order of their first nodes."""
        found = (self.group(node) for node in self.nodes)
        return list(dict.fromkeys(group for group in found if group is not None))

    def computing(self, group: Group) -> Iterator[Node]:
        """The nodes of a group that compute something: no numbers, no views."""
        return (node for node in group.nodes if node.op.name != "const" and not node.op.view)

    def _is_placed(self, node: Node, group: Group) -> bool:
        """Whether a node of a group computes something, or moves what was computed."""
        if not node.op.view:
            return node.op.name != "const"
        return self._is_moved_in(node.output, [group])

    def escapes(self, value: Value, group: Group, reader: Node | None = None) -> str:
        """`IS_OUTPUT` or `MULTI_USE` if others than the group and one more reader need a value."""
        pending = [value]
        while pending:
            value = pending.pop()
            if value in self.outputs:
                return "IS_OUTPUT"
            for node in self.readers.get(value, ()):
                if self.is_window(node):
                    pending.append(node.output)
                elif node is not reader and node not in group.nodes:
                    return "MULTI_USE"
        return ""

    def why_apart(self, value: Value, node: Node, maker: Node) -> Refusal:
        """Why a node is not in the kernel of the node that made (the base of) its operand."""
        if is_product(node):
            return OPERAND
        refusals = (
            self.objections.get(node),
            self._refusals.get((value, node)),
            self.objections.get(maker),
        )
        found = next((refusal for refusal in refusals if refusal is not None), None)
        if found is None:
            assert self._moved_from(value) is None, (value, node)
            return ELSEWHERE
        return found

    def is_window(self, node: Node) -> bool:
        """Whether it is a view that is read as part of whoever reads it."""
        return len(node.outputs) == 1 and node.outputs[0] in self.windows

    # ---- one node after the other

    def _add(self, node: Node) -> None:
        if self._is_followed(node):
            return
        refusal = self._objection(node)
        if refusal is not None:
            self.objections[node] = refusal
            self._alone(node)
        elif is_product(node):
            self._begin_product(node)
        elif node.op.kind == "reduce":
            self._add_reduction(node)
        else:
            self._add_elementwise(node)

    def _is_followed(self, node: Node) -> bool:
        """Take in a number or a window: these stand wherever they are read."""
        if node.op.name == "const":
            if np.ndim(node.attrs["value"]) == 0:
                self.numbers[node.output] = node
            return True
        if node in self.dead or not node.inputs or not is_window(node):
            return False
        windows = (*self.windows.get(node.inputs[0], ()), node)
        base = self._of(node.inputs[0])
        if len(windows) > MOST_WINDOWS or (base in self.numbers and not only_moves(node)):
            return False
        self.windows[node.output] = windows
        self.base[node.output] = base
        return True

    def _objection(self, node: Node) -> Refusal | None:
        """Why a node can be in no kernel."""
        if does_something(node):
            return Refusal("SIDE_EFFECT", f"`{node.op.name}` does something to the world")
        if node.may_raise:
            return Refusal("SIDE_EFFECT", f"`{node.op.name}` may raise here: it keeps its place")
        if node in self.dead:
            return UNREAD
        if node.op.name == "reshape":
            return Refusal("SHAPE_MISMATCH", "the elements are counted in another way")
        why = cannot_loop(node) or self.cannot_fuse(node)
        return Refusal("BACKEND_CANNOT", why) if why else None

    def _of(self, value: Value) -> Value:
        return self.base.get(value, value)

    def _moved_from(self, value: Value) -> Value | None:
        """The value of which this one is the same at each place of the loops; None: of none."""
        windows = self.windows.get(value, ())
        return self._of(value) if all(map(only_moves, windows)) else None

    def _made_by(self, values: Iterable[Value]) -> dict[Step, None]:
        """The steps that make what these values are or show."""
        steps = (self.step(self._of(value)) for value in values)
        return {step: None for step in steps if step is not None}

    def _alone(self, node: Node) -> None:
        before = self._made_by(node.inputs)
        for reader in self._written_after.get(node, ()):
            before.update(self._made_by(reader.outputs))
        effect = is_effect(node)
        if effect and self._last_effect is not None:
            before[self._last_effect] = None
        step = Step(_above(before))
        self._raise_limits(before, step.level)
        self._step.update(dict.fromkeys(node.outputs, step))
        if effect:
            self._last_effect = step

    @staticmethod
    def _raise_limits(before: Iterable[Step], level: float) -> None:
        for step in before:
            step.limit = min(step.limit, level)

    def _new(self, node: Node, loop: Shape) -> Group:
        before = self._made_by(node.inputs)
        group = Group(_above(before), loop)
        self._raise_limits(before, group.level)
        self._enter(node, group)
        return group

    def _enter(self, node: Node, group: Group) -> None:
        group.nodes.update(dict.fromkeys(self._parts(node)))
        self._step[node.output] = group

    def _parts(self, node: Node) -> Iterator[Node]:
        """What a node brings along: numbers, windows, itself."""
        for value in dict.fromkeys(node.inputs):
            windows = self.windows.get(value, ())
            if is_product(node) and not _is_plain_transpose(windows):
                continue  # a library multiplies, and takes matrices as they are or transposed
            base = self._moved_from(value)
            if base in self.numbers:
                yield self.numbers[base]
            yield from windows
        yield node

    def _begin_product(self, node: Node) -> None:
        assert isinstance(node.output.type, ArrayType)
        group = self._new(node, node.output.type.shape)
        group.product = node
        group.axes[node.output] = (0, 1)

    # ---- reductions

    def _add_reduction(self, node: Node) -> None:
        (operand,) = node.inputs
        base = self._moved_from(operand)
        group = self.step(base) if base is not None else None
        if isinstance(group, Group):
            refusal = self._reduce_in(node, group)
            if refusal is None:
                return
            self._refusals[operand, node] = refusal
        loop = _largest(self._shapes(node))
        placed = self._placed(node, {}, loop)
        reduced = () if placed is None else _reduced(node, placed)
        if placed is None or len(reduced) != len(node.attrs["axis"]):
            self.objections[node] = MISFIT
            self._alone(node)
            return
        group = self._new(node, loop)
        group.axes.update(placed)
        group.reduced = reduced
        group.late.add(node.output)

    def _reduce_in(self, node: Node, group: Group) -> Refusal | None:
        """Let a reduction join the group of its operand."""
        placed = self._placed(node, group.axes, group.loop, group)
        if placed is None or not _within(self._shapes(node, group), group.loop):
            return MISFIT
        reduced = _reduced(node, {**group.axes, **placed})
        if not reduced or len(reduced) != len(node.attrs["axis"]):
            return MISFIT
        axes = placed.get(node.inputs[0]) or group.axes[node.inputs[0]]
        if group.reduced not in ((), reduced) or len(_span(axes)) < len(group.loop):
            return OTHER_AXES
        if not follow_each_other(reduced):
            return Refusal("BACKEND_CANNOT", "the reduced axes do not follow each other")
        if any(not set(inner).isdisjoint(reduced) for inner in group.inner):
            return AGAIN
        if self._size(node, [group]) > SIZE_LIMIT:
            return TOO_LONG
        if group.product is not None:
            why = "a reduction follows, and reads the product itself"
            self.evict_product(group, Refusal("REDUCTION_BARRIER", why))
        group.axes.update(placed)
        group.reduced = reduced
        group.late.add(node.output)
        self._enter(node, group)
        return None

    # ---- elementwise nodes

    def _add_elementwise(self, node: Node) -> None:
        candidates: dict[Group, list[Value]] = {}
        for value in dict.fromkeys(node.inputs):
            base = self._moved_from(value)
            group = self.step(base) if base is not None else None
            if isinstance(group, Group):
                candidates.setdefault(group, []).append(value)
        for group in self._made_by(v for v in node.inputs if self._moved_from(v) is None):
            if isinstance(group, Group) and group in candidates:
                self._tell(node, candidates.pop(group), ELSEWHERE)
        shapes = self._shapes(node)
        loops = dict.fromkeys([_largest(shapes), *(group.loop for group in candidates)])
        for loop in sorted(loops, key=_extent, reverse=True):
            if _within(shapes, loop) and self._join(node, candidates, loop):
                return
        loop = _largest(shapes)
        placed = self._placed(node, {}, loop)
        if placed is None or not _within(self._shapes(node), loop):
            self.objections[node] = MISFIT
            self._alone(node)
        else:
            self._new(node, loop).axes.update(placed)

    def _join(self, node: Node, candidates: Mapping[Group, list[Value]], loop: Shape) -> bool:
        """Let a node join as many of the groups that compute its operands as fit."""
        seats: list[Seat] = []
        for group in candidates:
            seat = self._seat(group, node, loop, seats)
            if isinstance(seat, Seat):
                seats.append(seat)
            else:
                self._tell(node, candidates[group], seat)
        while seats:
            refusal = self._try(node, seats, loop)
            if refusal is None:
                return True
            out = min(seats, key=_limit) if refusal is CYCLE else seats[-1]
            seats.remove(out)
            self._tell(node, candidates[out.group], refusal)
        return False

    def _tell(self, node: Node, values: Iterable[Value], refusal: Refusal) -> None:
        for value in values:
            self._refusals.setdefault((value, node), refusal)

    def _seat(
        self, group: Group, node: Node, loop: Shape, others: Sequence[Seat]
    ) -> Seat | Refusal:
        """A group in loops that may be larger than its own, beside others."""
        seat: Seat | Refusal = Seat(group, group.axes, group.inner)
        if group.loop != loop:
            seat = self._moved_into(group, node, loop)
        if not isinstance(seat, Seat):
            return seat
        for other in others:
            if other.group.reduced and group.reduced not in ((), other.group.reduced):
                return OTHER_AXES
            few, many = sorted((seat.axes, other.axes), key=len)
            if any(many.get(value, axes) != axes for value, axes in few.items()):
                return MISFIT
        return seat

    def _moved_into(self, group: Group, node: Node, loop: Shape) -> Seat | Refusal:
        """A group in larger loops: it is no group of its own any more, so only `node` reads it."""
        if _extent(group.loop) >= _extent(loop):
            return MISFIT
        if group.reduced:
            return Refusal("REDUCTION_BARRIER", "the loops around the reduction are smaller")
        if group.product is not None:
            return MISFIT
        for each in self.computing(group):
            code = self.escapes(each.output, group, node)
            if code:
                return Refusal(code, "others need it, too, and the loops of the reader are larger")
        axes: dict[Value, Axes] = {}
        inner: set[Axes] = set()
        for each in sorted(group.nodes, key=self.position.__getitem__):
            if not self._is_placed(each, group):
                continue
            placed = place(each, axes, loop)
            if placed is None:
                return MISFIT
            axes.update(placed)
            span = _span(axes[each.output])
            if span != tuple(range(len(span))):
                return AGAIN
            if len(span) < len(loop):
                inner.add(span)
        return Seat(group, axes, inner)

    def _try(self, node: Node, seats: Sequence[Seat], loop: Shape) -> Refusal | None:
        """Make one group of several and a node, or say why not."""
        groups = [seat.group for seat in seats]
        known: MutableMapping[Value, Axes] = ChainMap(*(seat.axes for seat in seats))
        placed = self._placed(node, known, loop, *groups)
        if placed is None or not _within(self._shapes(node, *groups), loop):
            return MISFIT
        reduced = next((group.reduced for group in groups if group.reduced), ())
        kept = tuple(axis for axis in range(len(loop)) if axis not in reduced)
        span = _span(placed[node.output])
        full = len(span) == len(loop)
        if not full and not (reduced and span == kept):
            return AGAIN
        if reduced and any(not set(a).isdisjoint(reduced) for seat in seats for a in seat.inner):
            return AGAIN
        late = any(self._of(v) in group.late for v in node.inputs for group in groups)
        if late and full and reduced and not kept:
            return WHOLE
        if self._size(node, groups) > SIZE_LIMIT:
            return TOO_LONG
        before = self._made_by(node.inputs)
        for group in groups:
            before.pop(group, None)
        level = max(_above(before), *(group.level for group in groups))
        if any(group.limit <= level for group in groups):
            return CYCLE
        self._raise_limits(before, level)
        group = self._merge(seats, loop, level)
        group.axes.update(placed)
        if late:
            group.late.add(node.output)
        self._enter(node, group)
        return None

    def _merge(self, seats: Sequence[Seat], loop: Shape, level: float) -> Group:
        """Make one group of several; the smaller ones go into the largest."""
        products = [seat.group for seat in seats if seat.group.product is not None]
        if any(seat.group.reduced for seat in seats):
            for each in products:
                self.evict_product(each, OTHER_AXES)
        for each in products[1:]:
            self.evict_product(each, ONE_PRODUCT)
        largest, *others = sorted(seats, key=_size, reverse=True)
        group = largest.group
        group.axes, group.inner, group.loop, group.level = (
            *(largest.axes, largest.inner, loop, level),
        )
        for axes, inner, other in ((seat.axes, seat.inner, seat.group) for seat in others):
            group.nodes.update(other.nodes)
            group.axes.update(axes)
            group.inner |= inner
            group.late |= other.late
            group.reduced = group.reduced or other.reduced
            group.product = group.product or other.product
            group.limit = min(group.limit, other.limit)
            other.into = group
        return group

    # ---- common parts

    def _placed(
        self, node: Node, known: MutableMapping[Value, Axes], loop: Shape, *groups: Group
    ) -> dict[Value, Axes] | None:
        """The axes of a node's result, and of the operands that have none yet."""
        found: dict[Value, Axes] = {}
        for value in dict.fromkeys(node.inputs):
            if not self._is_moved_in(value, groups):
                continue
            for move in self.windows.get(value, ()):
                placed = place(move, ChainMap(found, known), loop)
                if placed is None:
                    return None
                found.update(placed)
        placed = place(node, ChainMap(found, known) if found else known, loop)
        return None if placed is None else {**found, **placed}

    def _shapes(self, node: Node, *groups: Group) -> list[Shape]:
        """The shapes of what a node reads and makes, as part of these groups."""
        values = [*node.inputs, *node.outputs]
        for value in node.inputs:
            if self._is_moved_in(value, groups):
                values += [move.output for move in self.windows.get(value, ())]
        return [v.type.shape if isinstance(v.type, ArrayType) else () for v in values]

    def _is_moved_in(self, value: Value, groups: Sequence[Group]) -> bool:
        """Whether a value is a number, computed by the groups, or such a one moved."""
        base = self._moved_from(value)
        return base is not None and (base in self.numbers or self.step(base) in groups)

    def _size(self, node: Node, groups: Sequence[Group]) -> int:
        """How many nodes the body would have."""
        new = sum(not any(each in g.nodes for g in groups) for each in set(self._parts(node)))
        return new + sum(len(group.nodes) for group in groups)

    def check_product(self, group: Group) -> None:
        """Leave the product outside unless something follows that may overwrite it."""
        product = group.product
        assert product is not None
        others = [node for node in self.computing(group) if node is not product]
        code = self.escapes(product.output, group)
        if not others:
            self.evict_product(group, ALONE)
        elif code:
            self.evict_product(group, Refusal(code, "the product itself is needed, too"))
        elif not any(
            node.output.type == product.output.type and self.escapes(node.output, group)
            for node in others
        ):
            why = f"no result of the kernel is a {product.output.type} as the product"
            self.evict_product(group, Refusal("DTYPE", why))

    def dissolve(self, group: Group, refusal: Refusal) -> None:
        """Leave the nodes of a group by themselves."""
        for node in self.computing(group):
            self.objections[node] = refusal
            self._step[node.output] = Step(group.level)
        group.nodes = {}

    def evict_product(self, group: Group, refusal: Refusal) -> None:
        """Leave a product outside of its group, which reads the result.

        Only the group's nodes read it so far, so it may stand anywhere before them.
        """
        product, group.product = group.product, None
        assert product is not None
        del group.nodes[product]
        left = {part for node in self.computing(group) for part in self._parts(node)}
        group.nodes = {node: None for node in group.nodes if node in left}
        self._step[product.output] = Step(group.level - 0.5)
        self.objections[product] = refusal


def written_after(graph: Graph) -> dict[Node, list[Node]]:
    """For the first `write` to each argument the nodes that read it: all of them come before."""
    first: dict[Value, Node] = {}
    for node in graph.nodes:
        if node.op.effect == "write":
            first.setdefault(node.inputs[0], node)
    found: dict[Node, list[Node]] = {node: [] for node in first.values()}
    root = storage_roots(graph) if first else {}
    for node in graph.nodes if first else ():
        read = node.inputs[1:] if node.op.effect == "write" else node.inputs
        for owner in {root[value] for value in read} & first.keys():
            found[first[owner]].append(node)
    return found


def _above(steps: Iterable[Step]) -> float:
    """The lowest level above all of these."""
    return 1 + max((step.level for step in steps), default=0.0)


def _is_plain_transpose(windows: Sequence[Node]) -> bool:
    """Whether views make a matrix of a matrix, as a library can read it."""
    return not windows or (len(windows) == 1 and windows[0].op.name == "transpose")


def _reduced(node: Node, axes: Mapping[Value, Axes]) -> tuple[int, ...]:
    """The loop axes that a reduction runs along."""
    dims: tuple[int, ...] = node.attrs["axis"]
    return _span(tuple(axes[node.inputs[0]][dim] for dim in dims))


def _span(axes: Axes) -> tuple[int, ...]:
    """The loop axes along which a value varies."""
    return tuple(axis for axis in axes if axis is not None)


def _extent(shape: Shape) -> tuple[int, int]:
    """What decides which of two shapes the loops run over: as `ops.place` wants it."""
    return len(shape), sum(size != 1 for size in shape)


def _largest(shapes: Iterable[Shape]) -> Shape:
    return max(shapes, key=_extent)


def _within(shapes: Iterable[Shape], loop: Shape) -> bool:
    """Whether the loops that these shapes need are (part of) the given ones."""
    return all(shape == loop or _extent(shape) < _extent(loop) for shape in shapes)


def _limit(seat: Seat) -> float:
    return seat.group.limit


def _size(seat: Seat) -> int:
    return len(seat.group.nodes)
