"""Through a `while` of unknown length: states are kept of some turns, and computed again of others.

The forward loop keeps the states before its first `room` turns (as many as take `ROOM_BYTES`, at
least `LEAST_ROOM`, at most `MOST_ROOM`).  After `n` turns, more than that, it runs once more and
keeps every `stride`-th state, `stride = ceil(n / room)`.  A turn back starts from the last state
kept before it and computes the turns in between again.  A state is what is carried and needed to
take a turn back, or to get to the next state.

Cost, in turns of the forward loop: `n` back; none more if `n <= room`; else
`n + n * (stride - 1) / 2` more, about `n * n / (2 * room)`.  Nothing is drawn again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from minigraph.ir import INT, Graph, Node, Value, carried_count
from minigraph.ops import get
from minigraph.passes import optimize

from .building import GraphBuilder
from .joining import join
from .kept import Keeping, taken
from .partition import needed, size_bytes
from .reach import Wanted
from .regions import TIDY, Scope, inlined, quiet, read_by, without
from .turns import Turns, fixed_inputs, like, one

ROOM_BYTES = 1 << 18
LEAST_ROOM = 32
MOST_ROOM = 1024


def without_limit(scope: Scope, node: Node, wanted: Wanted) -> Turns:
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
    loop = Keeping(plain, state, room + 1)  # the last place is for what is not kept
    made, *arrays = scope.more(
        node, loop.attrs(node, lambda b, turn: _first_turns(b, turn, room)), loop.starts, count
    )
    turns = Turns(made)
    cotangents = both.inputs[len(plain.inputs) :]
    if state:
        places = scope.number(room)
        stride = scope.op("floor_divide", scope.op("add", made, scope.number(room - 1)), places)
        fits = scope.op("less_equal", made, places)
        arrays = _spread(scope, node, loop, fits, stride, arrays)

    def derive(builder: GraphBuilder, turn: Value, given: Sequence[Value]) -> Sequence[Value]:
        now = fixed_inputs(turns, node, plain)
        if state:
            place = one(builder, "floor_divide", turn, turns.read(stride))
            first = one(builder, "multiply", place, turns.read(stride))
            now.update(taken(builder, place, state, map(turns.read, arrays)))
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
    fits = one(builder, "less", turn, builder.constant(room))
    return one(builder, "select", fits, turn, builder.constant(room))


def _evenly(builder: GraphBuilder, turn: Value, stride: Value, room: int) -> Value:
    """The place of a turn, where there is one for each `stride`-th."""
    rest = one(builder, "remainder", turn, stride)
    there = one(builder, "equal", rest, builder.constant(0))
    place = one(builder, "floor_divide", turn, stride)
    return one(builder, "select", there, place, builder.constant(room))


def _spread(
    scope: Scope,
    node: Node,
    loop: Keeping,
    fits: Value,
    stride: Value,
    arrays: Sequence[Value],
) -> Sequence[Value]:
    """Record arrays of states evenly spread over the loop: these, if all `fits` into them."""
    room, count = loop.room - 1, carried_count(node)
    attrs = loop.attrs(node, lambda b, turn, each: _evenly(b, turn, each, room), [INT])
    regions = {name: quiet(attr) for name, attr in attrs.items() if isinstance(attr, Graph)}
    operands = [stride, *arrays, *node.inputs]
    same, inputs = like(operands), like(operands)
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
    after = one(inner, "add", at, inner.constant(1))
    inputs = [at, *body.inputs[:count], end, *body.inputs[count:]]
    unread = like(inputs)
    test = GraphBuilder(Graph("test", unread, (), ()))
    more = one(test, "less", unread[0], unread[count + 1])
    regions = {
        "test": Graph("test", unread, test.nodes, [more]),
        "body": Graph("body", inputs, inner.nodes, [after, *body.outputs]),
    }
    known = [now[value] for value in body.inputs]
    operands = [first, *known[:count], turn, *known[count:]]
    found = builder.emit(get("while"), operands, regions, checked=True)
    return {**now, **dict(zip(body.inputs[:count], found[1:], strict=True))}
