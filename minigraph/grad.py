"""Reverse-mode differentiation: Graph to Graph, from the rule (`Op.vjp`) of each op.

    graph f(%x: f64[3]) {
      %y = sin %x                  : f64[3]
      return %y
    }

has the joint graph

    graph f_joint(%x: f64[3], %dy: f64[3]) {
      %y = sin %x                  : f64[3]
      %0 = cos %x                  : f64[3]
      %1 = multiply %dy, %0        : f64[3]
      return (%y, %1)
    }

`backward` is the sweep, over the nodes of any recording: of a trace, of the tape, of `joint`.
`partition` cuts a joint graph, once it is optimised, into a forward and a backward program.

The cotangent of an array has its type, that of a Python float is an `f64[]`; nothing else has one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from minigraph.errors import UnsupportedError
from minigraph.ir import ArrayType, Graph, Ids, Loc, Node, Op, Type, Value, freeze, storage_roots
from minigraph.ops import (
    TRANSCENDENTAL,
    ZERO,
    Builder,
    cotangent_type,
    derive,
    get,
    infer,
    is_complex,
)
from minigraph.passes import is_effect

Rule = Callable[..., Sequence[Value | None]]
"""What `ops.derive` is: how the cotangents of one node's inputs are recorded."""

Place = tuple[Loc | None, tuple[str, ...]]


# ---- the sweep


def backward(
    builder: Builder,
    nodes: Sequence[Node],
    cotangents: Mapping[Value, Value],
    wanted: Sequence[Value],
    rules: Mapping[Node, Rule] | None = None,
) -> list[Value | None]:
    """Record the gradients of some values of a recording.

    Args:
        builder: takes the new nodes; each stands where the node stands that it differentiates.
        nodes: what computed the values, in order.
        cotangents: of the values to start from.
        wanted: the values whose gradients are asked for.
        rules: for single nodes, in place of their op's own.

    Returns:
        One cotangent for each wanted value; None where nothing leads there.

    Raises:
        UnsupportedError: an op on the way has no rule (with the user's line).
    """
    given, builder = rules or {}, _Remembering(builder)
    reached = set(wanted)  # the values on which a wanted one has influence
    for node in nodes:
        if not reached.isdisjoint(node.inputs) and (node in given or node.op.vjp is not ZERO):
            # Through complex numbers too, so that they are refused on the way back.
            reached.update(
                v for v in node.outputs if cotangent_type(v.type) is not None or is_complex(v.type)
            )
    sums = dict(cotangents)
    for node in reversed(nodes):
        if reached.isdisjoint(node.outputs) or sums.keys().isdisjoint(node.outputs):
            continue
        place = (node.loc, ())
        rule = given.get(node) or _OWN.get(node.op.name, derive)
        needs = [value in reached for value in node.inputs]
        parts = rule(builder, node, [sums.get(v) for v in node.outputs], needs, place)
        for value, needed, part in zip(node.inputs, needs, parts, strict=True):
            if needed and part is not None:
                so_far = sums.get(value)
                sums[value] = part if so_far is None else builder.sum(so_far, part, place)
    return [sums.get(value) for value in wanted]


class _Remembering:
    """A builder that knows what it has recorded, where another spelling is better.

    Of cotangents that are zero but for a part it adds up the part alone: so a loop over the rows of
    an array does not add whole arrays for each row.  A transposed product is the product of the
    transposed: so the gradient of `w` in `x @ w.T` lies in memory as `w` does.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._zeros: set[Value] = set()
        self._stored: dict[Value, tuple[Op, Sequence[Value], Mapping[str, Any]]] = {}
        self._products: dict[Value, Sequence[Value]] = {}  # of two matrices
        self._turned: dict[Value, Value] = {}  # transposed matrices, and what they are of

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Place | None = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        if op.name == "transpose" and inputs[0] in self._products:
            left, right = [self._turn(value, place) for value in self._products[inputs[0]]]
            return self.emit(get("matmul"), (right, left), {}, place=place, checked=checked)
        found = self.builder.emit(op, inputs, attrs, place=place, checked=checked)
        if op.name == "transpose" and _is_matrix(found[0]):
            self._turned[found[0]] = inputs[0]
        elif op.name == "matmul" and all(map(_is_matrix, inputs)):
            self._products[found[0]] = inputs
        elif op.name == "zeros":
            self._zeros.add(found[0])
        elif op.name in ("update", "scatter_add") and inputs[0] in self._zeros:
            self._stored[found[0]] = (op, inputs[1:], attrs)
        return found

    def constant(self, concrete: Any, place: Place | None = None) -> Value:
        return self.builder.constant(concrete, place)

    def _turn(self, matrix: Value, place: Place | None) -> Value:
        """The transpose of a matrix."""
        known = self._turned.get(matrix)
        if known is not None:
            return known
        return self.emit(get("transpose"), (matrix,), {"axes": (1, 0)}, place=place)[0]

    def sum(self, so_far: Value, part: Value, place: Place) -> Value:
        """Record `so_far + part`."""
        if part not in self._stored:
            return add(self, so_far, part, place)
        op, (stored, *places), attrs = self._stored[part]
        if op.name == "update":
            there = self._one("slice" if not places else "gather", [so_far, *places], attrs, place)
            stored = add(self, there, stored, place)
        return self._one(op.name, [so_far, stored, *places], attrs, place)

    def _one(
        self, name: str, inputs: Sequence[Value], attrs: Mapping[str, Any], place: Place
    ) -> Value:
        return self.builder.emit(get(name), inputs, attrs, place=place, checked=True)[0]


def _is_matrix(value: Value) -> bool:
    return isinstance(value.type, ArrayType) and value.type.ndim == 2


def add(builder: Builder, a: Value, b: Value, place: Place | None = None) -> Value:
    """Record a sum."""
    return builder.emit(get("add"), (a, b), {}, place=place)[0]


def zeros(builder: Builder, type_: Type, place: Place | None = None) -> Value:
    """Record the cotangent of a value of this type on which nothing depends."""
    like = cotangent_type(type_)
    assert like is not None, type_
    attrs = {"shape": like.shape, "dtype": like.dtype}
    return builder.emit(get("zeros"), (), attrs, place=place)[0]


# ---- through a `call`


def _through_call(
    builder: Builder,
    call: Node,
    cotangents: Sequence[Value | None],
    needs: Sequence[bool],
    place: Place,
) -> list[Value | None]:
    """By the call's own backward graph, or by computing again what the body computed."""
    results: int = call.attrs.get("results", len(call.outputs))
    # A second derivative may also go through what was saved for the first.
    if "backward" not in call.attrs or any(cotangents[results:]):
        return _recomputed(builder, call, cotangents, needs, place)
    given = [
        g if g is not None else zeros(builder, value.type, place)
        for value, g in zip(call.outputs[:results], cotangents, strict=False)
        if cotangent_type(value.type) is not None
    ]
    graph: Graph = call.attrs["backward"]
    made = _Copy(builder, graph, [*call.inputs, *call.outputs, *given])
    found: list[Value | None] = [None] * len(call.inputs)
    for at, value in zip(call.attrs["wanted"], graph.outputs, strict=True):
        found[at] = made.now[value]
    return found


def _recomputed(
    builder: Builder,
    call: Node,
    cotangents: Sequence[Value | None],
    needs: Sequence[bool],
    place: Place,
) -> list[Value | None]:
    """The body once more, not before its cotangents are there, and differentiated.

    What it does to the world is not done again: the results of that are among those of the call.
    """
    body: Graph = call.attrs["body"]
    waited = next(g for g in cotangents if g is not None)
    inputs = [
        builder.emit(get("barrier"), (value, waited), {}, place=place)[0]
        if isinstance(value.type, ArrayType)
        else value
        for value in call.inputs
    ]
    made = _Copy(builder, body, inputs, dict(zip(body.outputs, call.outputs, strict=True)))
    sums: dict[Value, Value] = {}
    for value, g in zip(body.outputs, cotangents, strict=True):
        if g is not None:
            so_far, value = sums.get(made.now[value]), made.now[value]
            sums[value] = g if so_far is None else add(builder, so_far, g, place)
    needed = [value for value, need in zip(inputs, needs, strict=True) if need]
    found = iter(backward(builder, made.nodes, sums, needed))
    return [next(found) if need else None for need in needs]


class _Copy:
    """The nodes of a graph recorded once more.

    Attributes:
        now: the values of the copy by those of the graph.
        nodes: the new nodes, as `backward` needs them.
    """

    def __init__(
        self,
        builder: Builder,
        graph: Graph,
        inputs: Sequence[Value],
        done: Mapping[Value, Value] | None = None,
    ) -> None:
        self.now = dict(zip(graph.inputs, inputs, strict=True))
        self.nodes: list[Node] = []
        for node in graph.nodes:
            if done is not None and node.op.effect is not None:
                self._take(node, done)
                continue
            operands = [self.now[value] for value in node.inputs]
            place = (node.loc, ())
            outputs = builder.emit(node.op, operands, node.attrs, place=place, checked=True)
            self.now.update(zip(node.outputs, outputs, strict=True))
            self.nodes.append(Node(-1, node.op, operands, node.attrs, outputs, node.loc))

    def _take(self, node: Node, done: Mapping[Value, Value]) -> None:
        """What an effect gave the first time."""
        for value in node.outputs:
            if value not in done:
                raise UnsupportedError(
                    f"`{node.op.name}` would have to be done a second time to differentiate twice",
                    where=node.loc,
                    instead="mg.grad(mg.grad(f)), which sees both derivatives at once",
                )
            self.now[value] = done[value]


_OWN: dict[str, Rule] = {"call": _through_call}


# ---- joint graphs


class GraphBuilder:
    """Adds nodes to those of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.ids = Ids.after(graph)
        self.nodes = list(graph.nodes)
        self._constants: dict[Any, Value] = {}

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: Place | None = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        types = infer(op, [value.type for value in inputs], attrs)
        loc, names = place or (None, ())
        outputs = [
            self.ids.value(type_, names[at] if at < len(names) else None)
            for at, type_ in enumerate(types)
        ]
        node = Node(self.ids.next(), op, inputs, attrs, outputs, loc)
        if checked and node.may_raise:
            node = Node(node.id, op, inputs, {**attrs, "safe": True}, outputs, loc)
        self.nodes.append(node)
        return tuple(outputs)

    def constant(self, concrete: Any, place: Place | None = None) -> Value:
        key = (type(concrete), freeze(concrete))
        if key not in self._constants:
            attrs = {"value": concrete}
            (self._constants[key],) = self.emit(get("const"), (), attrs, place=place)
        return self._constants[key]


def joint(
    graph: Graph, wanted: Sequence[int] | None = None, paused: Collection[Node] = ()
) -> Graph:
    """A graph with its derivative.

    Args:
        graph: what to differentiate.
        wanted: positions of the inputs whose gradients are asked for; all that have one.
        paused: nodes through which no gradient flows.

    Returns:
        (inputs, cotangents of the outputs that have one) -> (outputs, gradients of `wanted`).

    Raises:
        UnsupportedError: an op on the way has no rule (with the user's line).
    """
    if wanted is None:
        wanted = differentiable(graph.inputs)
    builder = GraphBuilder(graph)
    cotangents: list[Value] = []
    sums: dict[Value, Value] = {}
    for value in graph.outputs:
        type_ = cotangent_type(value.type)
        if type_ is not None:
            cotangents.append(builder.ids.value(type_, value.hint and f"d{value.hint}"))
            sums[value] = (
                cotangents[-1] if value not in sums else add(builder, sums[value], cotangents[-1])
            )
    targets = [graph.inputs[at] for at in wanted]
    nodes = [node for node in builder.nodes if node not in paused]
    found = backward(builder, nodes, sums, targets)
    gradients = [
        zeros(builder, target.type) if value is None else value
        for target, value in zip(targets, found, strict=True)
    ]
    nodes = _before_writes(builder, len(graph.nodes))
    return Graph(
        f"{graph.name}_joint",
        [*graph.inputs, *cotangents],
        nodes,
        [*graph.outputs, *gradients],
    )


def differentiable(values: Sequence[Value]) -> list[int]:
    """The positions of the values that have a gradient."""
    return [at for at, value in enumerate(values) if cotangent_type(value.type) is not None]


def _before_writes(builder: GraphBuilder, count: int) -> list[Node]:
    """The nodes, where those from `count` on read what an argument held before it was written."""
    written = {node.inputs[0] for node in builder.nodes[:count] if node.op.name == "write"}
    if not written:
        return builder.nodes
    root = storage_roots(Graph("all", (), builder.nodes, ()))
    kept: dict[Value, Value] = {}
    later: list[Node] = []
    for node in builder.nodes[count:]:
        for value in node.inputs:
            if value not in kept and root.get(value, value) in written:
                kept[value] = builder.ids.value(value.type)
        inputs = [kept.get(value, value) for value in node.inputs]
        later.append(Node(node.id, node.op, inputs, node.attrs, node.outputs, node.loc))
    made = {value for node in builder.nodes for value in node.outputs}
    nodes = [_copied(builder, value, kept) for value in kept if value not in made]
    for node in builder.nodes[:count]:
        nodes.append(node)
        nodes += [_copied(builder, value, kept) for value in node.outputs if value in kept]
    return [*nodes, *later]


def _copied(builder: GraphBuilder, value: Value, kept: Mapping[Value, Value]) -> Node:
    return Node(builder.ids.next(), get("copy"), [value], {}, [kept[value]])


# ---- forward and backward programs


class Partition(NamedTuple):
    """Two programs that together do what a joint graph does.

    Attributes:
        forward: (inputs) -> (results, what is saved).
        backward: (inputs, outputs of `forward`, cotangents) -> gradients; most it leaves unread.
        saved: how many outputs of `forward` are no results.
    """

    forward: Graph
    backward: Graph
    saved: int


def partition(joint: Graph, results: int, cotangents: int) -> Partition:
    """Cut a joint graph in two.

    What does something to the world stays in the forward program, but for what depends on the
    cotangents.  The backward program reads inputs and results again, which costs nothing.  Of what
    else it needs, it computes again what takes little (see `_is_cheap`) where that saves memory.

    Args:
        joint: from `joint`, after any passes but lowerings.
        results: how many of its outputs the user asked for.
        cotangents: how many of its last inputs are cotangents.
    """
    count = len(joint.inputs) - cotangents
    late = _depending(joint, joint.inputs[count:])
    shown, gradients = joint.outputs[:results], joint.outputs[results:]
    behind = _needed(late, gradients)
    read = [v for node in behind for v in node.inputs] + list(gradients)
    made_late = {value for node in behind for value in node.outputs} | set(joint.inputs[count:])
    needed = dict.fromkeys(value for value in read if value not in made_late)
    early = [node for node in joint.nodes if node not in late]
    choice = _Choice(joint.inputs[:count], early, shown)
    saved = choice.saved(list(needed))
    available = {*joint.inputs[:count], *shown, *saved}
    again = _needed(early, [v for v in needed if v not in available], available, effects=False)
    ids = Ids.after(joint)
    outputs = [*shown, *saved]
    forward = Graph(f"{joint.name}_forward", joint.inputs[:count], _needed(early, outputs), outputs)
    taken: set[Value] = set()
    inputs: list[Value] = []
    for value in (*joint.inputs[:count], *outputs, *joint.inputs[count:]):
        inputs.append(ids.value(value.type) if value in taken else value)
        taken.add(value)
    rest = Graph(f"{joint.name}_backward", inputs, [*again, *behind], gradients)
    return Partition(forward, rest, len(saved))


def _depending(graph: Graph, sources: Sequence[Value]) -> dict[Node, None]:
    """The nodes that some of these values have influence on, in order."""
    reached = set(sources)
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.update(node.outputs)
            found[node] = None
    return found


def _needed(
    nodes: Iterable[Node],
    wanted: Iterable[Value],
    available: Collection[Value] = (),
    *,
    effects: bool = True,
) -> list[Node]:
    """The nodes that compute the wanted values from the available ones, and those with effects."""
    needed = set(wanted)
    found: list[Node] = []
    for node in reversed(list(nodes)):
        if (effects and is_effect(node)) or not needed.isdisjoint(node.outputs):
            found.append(node)
            needed.update(value for value in node.inputs if value not in available)
    return found[::-1]


MOST_ROOTS = 4
MOST_STEPS = 12
ASSUMED_SIZE = 64  # of a dimension that has a name


class _Choice:
    """Decides what to save.

    Attributes:
        roots: for each value that is cheap to compute, from which others that cannot be (inputs,
            which are there in any case, do not count); for any other, itself.
        steps: the nodes that do so, but for views and constants.
    """

    def __init__(
        self, inputs: Sequence[Value], nodes: Sequence[Node], shown: Sequence[Value]
    ) -> None:
        self.shown = set(shown)
        self.producer = {value: node for node in nodes for value in node.outputs}
        written = {node.inputs[0] for node in nodes if node.op.name == "write"}
        self.roots: dict[Value, frozenset[Value]] = {
            value: frozenset((value,) if value in written else ()) for value in inputs
        }
        self.steps: dict[Value, frozenset[Node]] = dict.fromkeys(inputs, frozenset())
        for node in nodes:
            self._learn(node, written)

    def _learn(self, node: Node, written: AbstractSet[Value]) -> None:
        roots = frozenset[Value]().union(*(self.roots[value] for value in node.inputs))
        steps = frozenset[Node]().union(*(self.steps[value] for value in node.inputs))
        if node.inputs and not node.op.view:
            steps |= {node}
        again = _is_cheap(node) and len(roots) <= MOST_ROOTS and len(steps) <= MOST_STEPS
        if not written.isdisjoint(roots):
            again = False
        for value in node.outputs:
            self.roots[value] = roots if again else frozenset((value,))
            self.steps[value] = steps if again else frozenset()

    def saved(self, needed: Sequence[Value]) -> list[Value]:
        """The values that the forward program returns besides the results."""
        found: dict[Value, None] = {}
        open_: dict[Value, None] = {}
        for value in needed:
            value = self._base(value)
            if self.roots[value] == {value}:
                found[value] = None
            else:
                open_[value] = None
        for value in open_:
            missing = [v for v in self.roots[value] if v not in found and v not in self.shown]
            if sum(map(_size_bytes, missing)) < _size_bytes(value):
                found.update(dict.fromkeys(sorted(missing, key=lambda v: v.id)))
            elif missing:
                found[value] = None
        self._share(found)
        return [value for value in found if value not in self.shown and value in self.producer]

    def _share(self, found: dict[Value, None]) -> None:
        """Save one root in place of several values that can all be computed from it.

        It has to save a quarter of their bytes, for it is one more array to write and to read.
        """
        alone: dict[Value, list[Value]] = {}  # by the one root that is missing for them
        for value in found:
            missing = [v for v in self.roots[value] if v not in found and v not in self.shown]
            if len(missing) == 1:
                alone.setdefault(missing[0], []).append(value)
        for root, values in alone.items():
            if _size_bytes(root) <= 0.75 * sum(map(_size_bytes, values)):
                for value in values:
                    del found[value]
                found[root] = None

    def _base(self, value: Value) -> Value:
        """What a view that is cheap to make looks into."""
        while value in self.producer and value not in self.shown:
            node = self.producer[value]
            if not node.op.view or len(node.inputs) != 1 or not _is_cheap(node):
                break
            value = node.inputs[0]
        return value


def _is_cheap(node: Node) -> bool:
    """Whether computing it again costs no more than reading what was saved."""
    if is_effect(node) or any(True for _ in node.regions):
        return False
    if node.op.kind == "elementwise":
        return node.op.name not in TRANSCENDENTAL
    return node.op.view or node.op.kind == "create" or node.op.name in ("const", "size")


def _size_bytes(value: Value) -> int:
    if not isinstance(value.type, ArrayType):
        return 8
    size = value.type.size_bytes
    if isinstance(size, int):
        return size
    known = size.substitute(dict.fromkeys(size.names(), ASSUMED_SIZE))
    assert isinstance(known, int)
    return known
