"""What a pass tells: each change and each refusal, in order, with the rule and the reason.

A viewer replays these events; it never works anything out for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from minigraph.ir import ArrayType, Graph, Ids, Loc, Node, Op, Type, Value
from minigraph.ops import Numbers

from . import fusible
from .order import MemoryOrder

EVENT_KINDS = ("replace", "remove", "refuse", "note")

REFUSALS = {
    "ATTRS": "the attributes differ",
    "BACKEND_CANNOT": "there is no way to run it like that",
    "COST": "it would cost more than it saves",
    "DTYPE": "the dtypes differ",
    "FLOAT_ORDER": "the last bits, NaN or the sign of zero would change: needs fast_math=True",
    "IS_INPUT": "the memory belongs to the caller, or to a constant",
    "IS_OUTPUT": "the value is returned",
    "LAYOUT": "the elements stand in another order in memory",
    "MULTI_USE": "the value is read again later",
    "NOT_PURE": "two evaluations may give different results",
    "ORDER_CYCLE": "a node would wait for its own result",
    "RAISES": "it raises on these values, so it is left to raise when the program runs",
    "REDUCTION_BARRIER": "a reduction needs its whole input first",
    "SHAPE_MISMATCH": "the shapes differ",
    "SIDE_EFFECT": "it does something to the world, or may raise: it keeps its place",
    "SIZE_LIMIT": "the result is larger than the limit",
    "VIEW": "the memory is seen through a view",
}
"""The closed list of reasons why something was not done, each with its sentence."""


def difference(a: Type, b: Type) -> str:
    """The code for what tells two types apart."""
    if isinstance(a, ArrayType) and isinstance(b, ArrayType) and a.dtype == b.dtype:
        return "SHAPE_MISMATCH"
    return "DTYPE"


class Event:
    """One change, or one refusal.

    Attributes:
        kind: one of `EVENT_KINDS`.
        rule: what asked for it, as `pass.rule`.
        why: the reason, for people.
        before: the nodes of the stage before (of a refusal: the node, and the other one if any).
        after: the nodes that stand in their place.
        values: the values that it is about: those that are now computed otherwise, or are gone.
        code: of a refusal, one of `REFUSALS`; else "".
    """

    __slots__ = ("after", "before", "code", "kind", "rule", "values", "why")

    def __init__(
        self,
        kind: str,
        rule: str,
        why: str,
        before: Sequence[Node] = (),
        after: Sequence[Node] = (),
        values: Sequence[Value] = (),
        code: str = "",
    ) -> None:
        assert kind in EVENT_KINDS, kind
        self.kind = kind
        self.rule = rule
        self.why = why
        self.before = tuple(before)
        self.after = tuple(after)
        self.values = tuple(values)
        self.code = code

    def __repr__(self) -> str:
        nodes = " | ".join(map(repr, self.before))
        code = f" [{self.code}]" if self.code else ""
        return f"<{self.kind} {self.rule}{code}: {nodes}: {self.why}>"


CannotFuse = Callable[[Node, Numbers], str]


class Options:
    """What a pass may do.

    Attributes:
        fast_math: whether rewrites may change rounding, NaN and the sign of zero.
        fold_limit_bytes: the largest constant that folding makes.
        strided: the inputs whose elements do not lie side by side in C order.
        cannot_fuse: why the backend has no loop for a node; "" if it has.
    """

    __slots__ = ("_begin", "cannot_fuse", "fast_math", "fold_limit_bytes", "strided")

    def __init__(
        self,
        *,
        fast_math: bool = False,
        fold_limit_bytes: int = 4096,
        strided: Iterable[Value] = (),
        cannot_fuse: CannotFuse = fusible.cannot_fuse,
    ) -> None:
        self.fast_math = fast_math
        self.fold_limit_bytes = fold_limit_bytes
        self.strided = frozenset(strided)
        self.cannot_fuse = cannot_fuse
        self._begin: Callable[[], MemoryOrder] | None = None

    def order(self, graph: Graph) -> MemoryOrder:
        """How the inputs of a graph lie in memory."""
        if self._begin is None:
            return MemoryOrder(graph.inputs, self.strided)
        return self._begin()

    def within(self, begin: Callable[[], MemoryOrder]) -> Options:
        """The same in a region, whose inputs lie in memory as `begin` says."""
        inner = copy(self)
        inner._begin = begin
        return inner


class Recorder:
    """Gives a pass ids and options, makes its nodes, and takes its events.

    Attributes:
        ids: numbers and names that are new in this compilation.
        options: see `Options`.
    """

    def __init__(
        self,
        ids: Ids,
        *,
        fast_math: bool = False,
        fold_limit_bytes: int = 4096,
        strided: Iterable[Value] = (),
        cannot_fuse: CannotFuse = fusible.cannot_fuse,
    ) -> None:
        self.ids = ids
        self.options = Options(
            fast_math=fast_math,
            fold_limit_bytes=fold_limit_bytes,
            strided=strided,
            cannot_fuse=cannot_fuse,
        )
        self._events: list[Event] = []
        self._refused: set[tuple[Any, ...]] = set()
        self._first_id = ids.next()

    @classmethod
    def after(cls, graph: Graph, *, fast_math: bool = False) -> Recorder:
        """A recorder whose ids collide with nothing in `graph`."""
        return cls(Ids.after(graph), fast_math=fast_math)

    # ---- events

    def replaced(
        self, old: Node | Sequence[Node], new: Node | Sequence[Node] | Value, rule: str, why: str
    ) -> None:
        """`old` is now computed by `new`; a `Value`: it is what that value is already."""
        before = (old,) if isinstance(old, Node) else tuple(old)
        values = [value for node in before for value in node.outputs]
        if isinstance(new, Value):
            after = ()
            values.append(new)
        else:
            after = (new,) if isinstance(new, Node) else tuple(new)
        self._events.append(Event("replace", rule, why, self.origin(before), after, values))

    def removed(self, node: Node, rule: str, why: str) -> None:
        """`node` is gone."""
        self._events.append(Event("remove", rule, why, self.origin((node,)), (), node.outputs))

    def refused(
        self, node: Node, other: Node | Value | None, code: str, why: str = "", *, rule: str
    ) -> None:
        """Something was not done to `node` (with `other`); a repetition is not told again.

        With another value it is another refusal, with another node the same.
        """
        assert code in REFUSALS, code
        pair = other if isinstance(other, Value) else None
        key = (rule, code, node.outputs or node, pair)
        if key in self._refused:
            return
        self._refused.add(key)
        others = (other,) if isinstance(other, Node) else ()
        before = (*self.origin((node,)), *self.origin(others))
        values = (*node.outputs, other) if isinstance(other, Value) else node.outputs
        self._events.append(Event("refuse", rule, why or REFUSALS[code], before, (), values, code))

    def note(self, rule: str, why: str) -> None:
        """Something worth knowing that is about no single node."""
        self._events.append(Event("note", rule, why))

    def take_events(self) -> tuple[Event, ...]:
        """What was told since the last time; the next pass begins here."""
        events, self._events = tuple(self._events), []
        self._first_id = self.ids.next()
        return events

    # ---- nodes

    def origin(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """The nodes of the stage before that these stand for, each once."""
        found: dict[Node, None] = {}
        for node in nodes:
            found.update(dict.fromkeys(node.origin if node.id >= self._first_id else (node,)))
        return tuple(found)

    def remake(
        self,
        node: Node,
        *,
        op: Op | None = None,
        inputs: Iterable[Value] | None = None,
        attrs: Mapping[str, Any] | None = None,
        outputs: Iterable[Value] | None = None,
        origin: Iterable[Node] = (),
        loc: Loc | None = None,
    ) -> Node:
        """`node` with another op, other inputs or attrs; it keeps its output values unless told.

        `origin` are further nodes that the new one stands for; `loc` is where it was written, if
        not where `node` was.
        """
        return Node(
            self.ids.next(),
            op or node.op,
            node.inputs if inputs is None else inputs,
            node.attrs if attrs is None else attrs,
            node.outputs if outputs is None else outputs,
            loc or node.loc,
            self.origin((node, *origin)),
        )
