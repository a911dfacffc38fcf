"""Through `while`: a loop that takes the turns back, from the last to the first.

    %y, %turns, %kept = while %x, %zero, %empty, %w {test=..., body=..., limit=8}

is the forward loop with `limit`: it counts its turns, and keeps what a turn back needs, as
`partition` says for the body, in arrays with room for `limit` turns.  The loop back

    %none, %dx, %dw = while %turns, %dy, %zeros, %kept, %w {test=..., body=..., limit=8}

counts down; it carries the cotangents of what is carried, and the sums of those of the operands.

Without a limit nobody knows how much room that takes, and with a high one it may be too much (more
than `LIMITED_BYTES` for the states): then states are computed again, see `checkpoints`; unless the
body draws, which is not done again.

Cost, with a limit, in turns of the forward loop: as many back.  Python ints that are kept have to
fit into 64 bits, else `OverflowError` is raised.
"""

from __future__ import annotations

from collections.abc import Sequence

from minigraph.ir import INT, Graph, Node, Type, Value, carried_count, walk

from .building import GraphBuilder, add_part, zeros
from .checkpoints import without_limit
from .kept import Keeping, taken
from .partition import needed, size_bytes
from .reach import Wanted
from .regions import Scope, halves, inlined
from .turns import Turns, fixed_inputs, like, one

LIMITED_BYTES = 1 << 26


def through_while(
    scope: Scope, node: Node, cotangents: Sequence[Value | None], needs: Sequence[bool]
) -> list[Value | None]:
    """The cotangents of the inputs."""
    node = scope.now(node)
    cotangents = [*cotangents, *[None] * (len(node.outputs) - len(cotangents))]
    wanted = Wanted(node, cotangents, needs)
    if not wanted.carried:
        return [None] * len(node.inputs)
    turns = (_with_limit if _is_limited(node) else without_limit)(scope, node, wanted)
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


def _is_limited(node: Node) -> bool:
    """What turns need is kept of all turns."""
    limit, body = node.attrs.get("limit"), node.attrs["body"]
    if limit is None:
        return False
    state = sum(map(size_bytes, body.outputs))
    return limit * state <= LIMITED_BYTES or any(
        inner.op.effect is not None and inner.outputs for inner in walk(body)
    )


def _back(
    turns: Turns, types: Sequence[Type], carried: int
) -> tuple[dict[str, Graph], list[Value]]:
    """The regions of the loop back, and the operands that they read."""
    count = turns.ids.value(INT)
    given = [turns.ids.value(type_) for type_ in types]
    builder = GraphBuilder(Graph("body", [count, *given], (), ()))
    builder.ids = turns.ids
    turn = one(builder, "subtract", count, builder.constant(1))
    gradients = turns.derive(builder, turn, given[:carried])
    sums = zip(given[carried:], gradients[carried:], strict=True)
    added = [add_part(builder, so_far, part) for so_far, part in sums]
    results = [turn, *gradients[:carried], *added]
    nodes = needed(builder.nodes, results)
    body = Graph("body", [count, *given, *turns.outer], nodes, results)
    inputs = like(body.inputs)
    test = GraphBuilder(Graph("test", inputs, (), ()))
    more = one(test, "greater", inputs[0], test.constant(0))
    regions = {"test": Graph("test", inputs, test.nodes, [more]), "body": body}
    return regions, list(turns.outer.values())


def _with_limit(scope: Scope, node: Node, wanted: Wanted) -> Turns:
    """What a turn needs is kept of all turns."""
    count, limit = carried_count(node), node.attrs["limit"]
    asked = [*wanted.carried, *wanted.others]
    part = halves(scope, node.attrs["body"], asked, wanted.carried, count)
    body, kept = part.forward.replace(outputs=part.forward.outputs[:count]), part.saved_values
    loop = Keeping(body, kept, limit)
    made, *arrays = scope.more(
        node, loop.attrs(node, lambda builder, turn: turn), loop.starts, count
    )
    turns = Turns(made)
    cotangents = part.backward.inputs[-len(wanted.carried) :]

    def derive(builder: GraphBuilder, turn: Value, given: Sequence[Value]) -> Sequence[Value]:
        now = fixed_inputs(turns, node, body)
        now.update(taken(builder, turn, kept, map(turns.read, arrays)))
        now.update(zip(cotangents, given, strict=True))
        return inlined(builder, part.backward, now)

    turns.derive = derive
    return turns
