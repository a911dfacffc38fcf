"""Through `while`: a loop that takes the turns back, from the last to the first.

    %y, %turns, %kept = while %x, %zero, %empty, %w {test=..., body=..., limit=8}

is the forward loop with `limit`: it counts its turns, and keeps what a turn back needs, as
`partition` says for the body, in arrays with room for `limit` turns.  The loop back

    %none, %dx, %dw = while %turns, %dy, %zeros, %kept, %w {test=..., body=..., limit=8}

counts down; it carries the cotangents of what is carried, and the sums of those of the operands.

Without a limit nobody knows how much room that takes.  Then the forward loop keeps the states
before its first `room` turns only (as many as take `ROOM_BYTES`, at least `LEAST_ROOM`, at most
`MOST_ROOM`).  After `n` turns, more than that, it runs once more and keeps every `stride`-th state,
`stride = ceil(n / room)`.  A turn back starts from the last state kept before it and computes the
turns in between again.

Cost, in turns of the forward loop: `n` back; none more with a limit or if `n <= room`; else
`n + n * (stride - 1) / 2` more, which is about `n * n / (2 * room)`: a loop that is long should
have a limit.  Nothing is drawn again: a body that draws needs a limit.  Python ints that are kept
have to fit into 64 bits, else `OverflowError` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from minigraph.ir import INT, OPERAND, ArrayType, Graph, Ids, Node, Type, Value, carried_count
from minigraph.ops import get
from minigraph.passes import optimize

from .building import GraphBuilder, add_part, zeros
from .joining import join
from .kept import as_array, as_value, kept_type
from .partition import needed, size_bytes
from .reach import Wanted
from .regions import TIDY, Scope, halves, inlined, quiet, read_by, without

ROOM_BYTES = 1 << 18
LEAST_ROOM = 32
MOST_ROOM = 1024


def through_while(
    scope: Scope, node: Node, cotangents: Sequence[Value | None], needs: Sequence[bool]
) -> list[Value | None]:
    """The cotangents of the inputs."""
    node = scope.now(node)
    cotangents = [*cotangents, *[None] * (len(node.outputs) - len(cotangents))]
    wanted = Wanted(node, cotangents, needs)
    if not wanted.carried:
        return [None] * len(node.inputs)
    limited = node.attrs.get("limit") is not None
    turns = (_with_limit if limited else _without_limit)(scope, node, wanted)
    starts = [
        cotangents[at] or zeros(scope.builder, node.inputs[at].type, scope.place)
        for at in wanted.carried
    ]
    starts += [zeros(scope.builder, node.inputs[at].type, scope.place) for at in wanted.others]
    regions, outer = _back(turns, [value.type for value in starts], len(wanted.carried))
    attrs = {**node.attrs, **regions}
    found = scope.emit("while", [turns.count, *starts, *outer], attrs)
    parts = dict(zip((*wanted.carried, *wanted.others), found[1:], strict=True))
    return [parts.get(at) for at in range(len(node.inputs))]


class _Turns:
    """The turns of a loop, as the loop back takes them.

    Attributes:
        count: how many there were.
        ids: of the values of the loop back.
        outer: what that reads from outside, by what it is called within.
        derive: records the gradients of one turn: `(builder, turn, cotangents)`.
    """

    def __init__(self, count: Value) -> None:
        self.count = count
        self.ids = Ids()
        self.outer: dict[Value, Value] = {}
        self._inner: dict[Value, Value] = {}
        self.derive: Callable[[GraphBuilder, Value, Sequence[Value]], Sequence[Value]]

    def read(self, outer: Value) -> Value:
        """A value from outside, as it is called within."""
        if outer not in self._inner:
            inner = self._inner[outer] = self.ids.value(outer.type)
            self.outer[inner] = outer
        return self._inner[outer]


def _back(
    turns: _Turns, types: Sequence[Type], carried: int
) -> tuple[dict[str, Graph], list[Value]]:
    """The regions of the loop back, and the operands that they read."""
    count = turns.ids.value(INT)
    given = [turns.ids.value(type_) for type_ in types]
    builder = GraphBuilder(Graph("body", [count, *given], (), ()))
    builder.ids = turns.ids
    turn = _op(builder, "subtract", count, builder.constant(1))
    gradients = turns.derive(builder, turn, given[:carried])
    sums = zip(given[carried:], gradients[carried:], strict=True)
    added = [add_part(builder, so_far, part) for so_far, part in sums]
    results = [turn, *gradients[:carried], *added]
    nodes = needed(builder.nodes, results)
    body = Graph("body", [count, *given, *turns.outer], nodes, results)
    inputs = _like(body.inputs)
    test = GraphBuilder(Graph("test", inputs, (), ()))
    more = _op(test, "greater", inputs[0], test.constant(0))
    regions = {"test": Graph("test", inputs, test.nodes, [more]), "body": body}
    return regions, list(turns.outer.values())


def _op(builder: GraphBuilder, name: str, *inputs: Value, **attrs: Any) -> Value:
    return builder.emit(get(name), inputs, attrs, checked=True)[0]


def _like(values: Iterable[Value]) -> list[Value]:
    """Other values of the same types."""
    ids = Ids()
    return [ids.value(value.type) for value in values]


def _fixed(turns: _Turns, node: Node, body: Graph) -> dict[Value, Value]:
    """The inputs of the body that are the same in each turn, as the loop back calls them."""
    count = carried_count(node)
    return {
        value: turns.read(outer)
        for at, (value, outer) in enumerate(zip(body.inputs, node.inputs, strict=True))
        if at >= count or body.outputs[at] is value
    }


# ---- with a limit


def _with_limit(scope: Scope, node: Node, wanted: Wanted) -> _Turns:
    """What a turn needs is kept of all turns."""
    count, limit = carried_count(node), node.attrs["limit"]
    asked = [*wanted.carried, *wanted.others]
    part = halves(scope, node.attrs["body"], asked, wanted.carried, count)
    body, kept = part.forward.replace(outputs=part.forward.outputs[:count]), part.saved_values
    loop = _Keeping(body, kept, limit)
    made, *arrays = scope.more(
        node, loop.attrs(node, lambda builder, turn: turn), loop.starts, count
    )
    turns = _Turns(made)
    cotangents = part.backward.inputs[-len(wanted.carried) :]

    def derive(builder: GraphBuilder, turn: Value, given: Sequence[Value]) -> Sequence[Value]:
        now = _fixed(turns, node, body)
        now.update(_taken(builder, turn, kept, map(turns.read, arrays)))
        now.update(zip(cotangents, given, strict=True))
        return inlined(builder, part.backward, now)

    turns.derive = derive
    return turns


class _Keeping:
    """A forward loop that counts its turns, and keeps values of them in arrays.

    Args:
        body: what a turn does.
        kept: which values of it.
        room: the extent of the arrays.
    """

    def __init__(self, body: Graph, kept: Sequence[Value], room: int) -> None:
        self.body = body
        self.kept = kept
        self.room = room
        self._types = [
            ArrayType(held.dtype, (room, *held.shape))
            for held in (kept_type(value.type) for value in kept)
        ]
        zeros_of = ({"shape": each.shape, "dtype": each.dtype} for each in self._types)
        self.starts = [("const", {"value": 0}), *(("zeros", attrs) for attrs in zeros_of)]

    def attrs(
        self, node: Node, slot: Callable[..., Value], more: Sequence[Type] = ()
    ) -> dict[str, Any]:
        """The attrs of the loop.

        Args:
            node: the loop that keeps nothing.
            slot: records where in the arrays a turn has its place: `(builder, turn, *more)`.
            more: the types of further operands, at the end.
        """
        count = len(self.body.outputs)
        builder = GraphBuilder(self.body)
        turn = builder.ids.value(INT)
        others = [builder.ids.value(type_) for type_ in more]
        arrays = [builder.ids.value(type_) for type_ in self._types]
        place = slot(builder, turn, *others)
        stored = [
            _op(builder, "update", into, as_array(builder, value), place, index=[OPERAND])
            for into, value in zip(arrays, self.kept, strict=True)
        ]
        after = _op(builder, "add", turn, builder.constant(1))
        inputs, results = self.body.inputs, self.body.outputs
        body = Graph(
            self.body.name,
            [*inputs[:count], turn, *arrays, *inputs[count:], *others],
            builder.nodes,
            [*results, after, *stored],
        )
        test: Graph = node.attrs["test"]
        ids = Ids.after(test)
        unread = [ids.value(value.type) for value in (turn, *arrays, *others)]
        first = 1 + len(arrays)
        inputs = [
            *test.inputs[:count],
            *unread[:first],
            *test.inputs[count:],
            *unread[first:],
        ]
        return {
            **node.attrs,
            "test": Graph(test.name, inputs, test.nodes, test.outputs),
            "body": body,
        }


def _taken(
    builder: GraphBuilder, place: Value, values: Sequence[Value], arrays: Iterable[Value]
) -> dict[Value, Value]:
    """Record what was kept of some values."""
    found: dict[Value, Value] = {}
    for value, array in zip(values, arrays, strict=True):
        held = _op(builder, "gather", array, place, index=[OPERAND])
        found[value] = held
        if not isinstance(value.type, ArrayType):
            found[value] = builder.ids.value(value.type)
            builder.nodes += as_value(builder.ids, held, found[value])
    return found


# ---- without a limit


def _without_limit(scope: Scope, node: Node, wanted: Wanted) -> _Turns:
    """States are kept of some turns, and computed again of others."""
    count = carried_count(node)
    plain = without(node.attrs["body"], scope.paused)
    again = quiet(plain, "a limit (max_iter=), or draw before the loop")
    asked = [*wanted.carried, *wanted.others]
    both = optimize(join(scope.sweep, again, asked, wanted.carried), TIDY).graph
    gradients = both.outputs[count:]
    backward = both.replace(needed(both.nodes, gradients, effects=False), gradients)
    again = _reduced(again, read_by(backward))
    state = again.inputs[: len(again.outputs)]
    room = _room(state) if state else 0
    loop = _Keeping(plain, state, room + 1)  # the last place is for what is not kept
    made, *arrays = scope.more(
        node, loop.attrs(node, lambda b, turn: _first_turns(b, turn, room)), loop.starts, count
    )
    turns = _Turns(made)
    cotangents = both.inputs[len(plain.inputs) :]
    if state:
        places = scope.number(room)
        stride = scope.op("floor_divide", scope.op("add", made, scope.number(room - 1)), places)
        fits = scope.op("less_equal", made, places)
        arrays = _spread(scope, node, loop, fits, stride, arrays)

    def derive(builder: GraphBuilder, turn: Value, given: Sequence[Value]) -> Sequence[Value]:
        now = _fixed(turns, node, plain)
        if state:
            place = _op(builder, "floor_divide", turn, turns.read(stride))
            first = _op(builder, "multiply", place, turns.read(stride))
            now.update(_taken(builder, place, state, map(turns.read, arrays)))
            now = _advanced(builder, again, now, first, turn)
        now.update(zip(cotangents, given, strict=True))
        return inlined(builder, backward, now)

    turns.derive = derive
    return turns


def _reduced(body: Graph, read: Collection[Value]) -> Graph:
    """The body, which carries nothing but what is read before a turn, and what that depends on."""
    pairs = zip(body.inputs, body.outputs, strict=False)
    after = {before: value for before, value in pairs if before is not value}
    nodes: list[Node] = []
    state: list[Value] = []
    found = [value for value in after if value in read]
    while len(found) > len(state):
        state = found
        results = [after[value] for value in state]
        nodes = needed(body.nodes, results, effects=False)
        read = {*state, *results, *(value for node in nodes for value in node.inputs)}
        found = [value for value in after if value in read]
    others = [value for value in body.inputs if value in read and value not in state]
    return Graph(body.name, [*state, *others], nodes, [after[value] for value in state])


def _room(state: Sequence[Value]) -> int:
    """How many states are kept."""
    size = sum(map(size_bytes, state)) or 1
    return min(max(ROOM_BYTES // size, LEAST_ROOM), MOST_ROOM)


def _first_turns(builder: GraphBuilder, turn: Value, room: int) -> Value:
    """The place of a turn, where there is one for the first turns."""
    fits = _op(builder, "less", turn, builder.constant(room))
    return _op(builder, "select", fits, turn, builder.constant(room))


def _evenly(builder: GraphBuilder, turn: Value, stride: Value, room: int) -> Value:
    """The place of a turn, where there is one for each `stride`-th."""
    rest = _op(builder, "remainder", turn, stride)
    there = _op(builder, "equal", rest, builder.constant(0))
    place = _op(builder, "floor_divide", turn, stride)
    return _op(builder, "select", there, place, builder.constant(room))


def _spread(
    scope: Scope,
    node: Node,
    loop: _Keeping,
    fits: Value,
    stride: Value,
    arrays: Sequence[Value],
) -> Sequence[Value]:
    """Record arrays of states evenly spread over the loop: these, if all `fits` into them."""
    room, count = loop.room - 1, carried_count(node)
    attrs = loop.attrs(node, lambda b, turn, each: _evenly(b, turn, each, room), [INT])
    regions = {name: quiet(attr) for name, attr in attrs.items() if isinstance(attr, Graph)}
    operands = [stride, *arrays, *node.inputs]
    same, inputs = _like(operands), _like(operands)
    builder = GraphBuilder(Graph("otherwise", inputs, (), ()))
    (every, *kept), given = inputs[: len(arrays) + 1], inputs[len(arrays) + 1 :]
    zero = builder.constant(0)
    again = [*given[:count], zero, *kept, *given[count:], every]
    results = builder.emit(node.op, again, {**attrs, **regions}, checked=True)
    branches = {
        "then": Graph("then", same, (), same[1 : len(arrays) + 1]),
        "otherwise": Graph("otherwise", inputs, builder.nodes, results[count + 1 :]),
    }
    return scope.emit("if", [fits, *operands], branches)


def _advanced(
    builder: GraphBuilder, body: Graph, now: Mapping[Value, Value], first: Value, turn: Value
) -> dict[Value, Value]:
    """Record the turns from the first one up to another one; what is carried then."""
    count = len(body.outputs)
    inner = GraphBuilder(body)
    at, end = inner.ids.value(INT), inner.ids.value(INT)
    after = _op(inner, "add", at, inner.constant(1))
    inputs = [at, *body.inputs[:count], end, *body.inputs[count:]]
    unread = _like(inputs)
    test = GraphBuilder(Graph("test", unread, (), ()))
    more = _op(test, "less", unread[0], unread[count + 1])
    regions = {
        "test": Graph("test", unread, test.nodes, [more]),
        "body": Graph("body", inputs, inner.nodes, [after, *body.outputs]),
    }
    known = [now[value] for value in body.inputs]
    operands = [first, *known[:count], turn, *known[count:]]
    found = builder.emit(get("while"), operands, regions, checked=True)
    return {**now, **dict(zip(body.inputs[:count], found[1:], strict=True))}
