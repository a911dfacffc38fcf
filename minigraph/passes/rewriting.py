"""Rewriting by a table of rules: pattern, replacement, equation, and why the equation is exact.

One sweep over the nodes in order.  When a node is reached, all that it reads is in its final form,
and rules look at what a node reads only, never at who reads it: so one sweep does all there is to
do, and a second one does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigraph.errors import MinigraphError
from minigraph.ir import (
    INT,
    ArrayType,
    Graph,
    Node,
    ScalarType,
    Type,
    Value,
    type_of,
    written_operands,
)
from minigraph.ops import get, infer

from .order import MemoryOrder
from .patterns import Call, Found, Literal, Pattern, Scope, find, has_literal, orders, parse_pattern
from .recorder import Recorder, difference
from .regions import does_something

MOST_REWRITES = 64  # of one node; a table that terminates needs far fewer


class Match:
    """What a rule matched, and what its replacement is made with.

    Attributes:
        node: the node that is replaced.
        nodes: all matched nodes, `node` first.
        type: the type that the replacement must have.
        made: the nodes made for the replacement.
    """

    def __init__(self, found: Found, scope: Scope, order: MemoryOrder, recorder: Recorder) -> None:
        self.node = found.nodes[0]
        self.nodes = tuple(found.nodes)
        self.type: Type = self.node.output.type
        self.made: list[Node] = []
        self._found = found
        self._scope = scope
        self._order = order
        self._recorder = recorder

    def __getitem__(self, name: str) -> Value:
        """The value that a letter of the pattern stands for."""
        return self._found.values[name]

    def part(self, text: str) -> Value | None:
        """The value of an inner call of the pattern, if it has that text."""
        return self._found.parts.get(text)

    def constant(self, name: str) -> Any:
        """The array or number that a capital letter stands for."""
        return self._scope.constants[self._found.values[name]]

    def number(self, name: str) -> Any:
        """The Python number that the value is in every element; None if there is no such number."""
        return self._scope.numbers.get(self._found.values[name])

    @property
    def kind(self) -> str:
        """The letter of the result's dtype: b, i, u, f or c."""
        return kind_of(self.type)

    def in_c_order(self, name: str) -> bool:
        """Whether the elements of a value certainly lie side by side in C order."""
        return self._order.is_c(self._found.values[name])

    def lies_like(self, name: str, other: str) -> bool:
        """Whether a value lies side by side, with its axes in memory as another one's."""
        value, like = self._found.values[name], self._found.values[other]
        return self._order.axes[value] == self._order.axes[like] and value in self._order.dense

    def make(self, op: str, *inputs: Value, **attrs: Any) -> Value | None:
        """The result of a new node; None if the op does not take these operands."""
        try:
            (type_,) = infer(get(op), [value.type for value in inputs], attrs)
        except MinigraphError:
            return None
        return self._make(op, inputs, attrs, type_)

    def make_constant(self, constant: Any) -> Value:
        """A new constant: an array, a NumPy scalar or a Python number."""
        return self._make("const", (), {"value": constant}, type_of(constant))

    def filled(self, number: complex) -> Value | None:
        """A value of the result's type with this number in every element."""
        if isinstance(self.type, ScalarType):
            return self.make_constant(self.type.python(number))
        assert isinstance(self.type, ArrayType)
        element = self.make_constant(self.type.dtype.type(number))
        return self.make("full", element, shape=self.type.shape) if self.type.ndim else element

    def _make(
        self, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any], type_: Type
    ) -> Value:
        recorder = self._recorder
        output = recorder.ids.value(type_)
        node = Node(
            recorder.ids.next(),
            get(op),
            inputs,
            attrs,
            (output,),
            self.node.loc,
            recorder.origin(self.nodes),
        )
        self.made.append(node)
        return output


def kind_of(type_: Type) -> str:
    """The letter of a dtype: b, i, u, f, c; of a generator O."""
    if isinstance(type_, ArrayType):
        return type_.dtype.kind
    return type_.python.__name__[0] if isinstance(type_, ScalarType) else "O"


Build = Callable[[Match], Value | None]


class Rule(NamedTuple):
    """One equation, read from left to right.

    Attributes:
        name: of the rule, unique in its table.
        pattern: see `patterns`.
        replacement: an expression of the pattern's letters, a number (of the result's type), or a
            function that makes the new value, or None where the rule does not hold.
        equation: in mathematics, for people.
        exact: why both sides are the same bit for bit; of a `fast` rule, what is given up.
        when: says of a match whether the equation holds.
        fast: only under `fast_math=True`.
        total: the pattern itself shows that the matched node does not raise.
    """

    name: str
    pattern: str
    replacement: str | Build
    equation: str
    exact: str
    when: Callable[[Match], bool] | None = None
    fast: bool = False
    total: bool = False


class Table:
    """Rules, ready to be matched: by the op of the node that they replace, in the given order."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.by_op: dict[str, list[tuple[Call, Rule, Build, bool]]] = {}
        for rule in rules:
            pattern = parse_pattern(rule.pattern)
            assert isinstance(pattern, Call), rule.pattern
            build = _builder(rule.replacement)
            told = has_literal(pattern) or rule.fast
            for order in orders(pattern):
                assert isinstance(order, Call)
                self.by_op.setdefault(pattern.op, []).append((order, rule, build, told))


def _builder(replacement: str | Build) -> Build:
    """What makes the value that a replacement's text describes."""
    if not isinstance(replacement, str):
        return replacement
    pattern = parse_pattern(replacement)
    return lambda match: _built(pattern, match)


def _built(pattern: Pattern, match: Match) -> Value | None:
    if isinstance(pattern, Literal):
        return match.filled(pattern.number)
    if not isinstance(pattern, Call):
        return match[pattern.name]
    there = match.part(pattern.text)
    if there is not None:
        return there
    inputs = [_built(argument, match) for argument in pattern.arguments]
    found = [value for value in inputs if value is not None]
    return match.make(pattern.op, *found) if len(found) == len(inputs) else None


def rewrite(graph: Graph, table: Table, recorder: Recorder, prefix: str) -> Graph:
    """Apply the rules of a table wherever they match; events name them as `prefix.name`."""
    return _Sweep(graph, table, recorder, prefix).run()


class _Sweep:
    """One sweep over a graph."""

    def __init__(self, graph: Graph, table: Table, recorder: Recorder, prefix: str) -> None:
        self.graph = graph
        self.by_op = table.by_op
        self.recorder = recorder
        self.prefix = prefix
        self.scope = Scope()
        self.now: dict[Value, Value] = {}  # replaced value -> what it is
        self.nodes: list[Node] = []
        self.order = recorder.options.order(graph)
        self.root: dict[Value, Value] = {value: value for value in graph.inputs}
        # What these hold is overwritten: nothing may become another name for it.
        self.written = {value for node in graph.nodes for value in written_operands(node)}

    def run(self) -> Graph:
        changed = False
        for node in self.graph.nodes:
            current: Node | None = node
            if self.now and not self.now.keys().isdisjoint(node.inputs):
                inputs = [self.now.get(value, value) for value in node.inputs]
                current = self.recorder.remake(node, inputs=inputs)
            if len(node.outputs) == 1:
                current = self._rewritten(current)
            if current is not None:
                self._add(current)
            changed = changed or current is not node
        if not changed:
            return self.graph
        outputs = [self.now.get(value, value) for value in self.graph.outputs]
        return self.graph.replace(self.nodes, outputs)

    def _add(self, node: Node) -> None:
        self.nodes.append(node)
        self.scope.add(node)
        self._learn(node)

    def _learn(self, node: Node) -> None:
        """Where the results of a node lie in memory."""
        self.order.add(node)
        for value in node.outputs:
            self.root[value] = self.root[node.inputs[0]] if node.op.view else value

    def _rewritten(self, node: Node) -> Node | None:
        """The final form of a node; None if its value is another's."""
        for _ in range(MOST_REWRITES):
            found = self._apply(node) if node.op.name in self.by_op else None
            if found is None:
                return self._marked_safe(node)
            if isinstance(found, Value):
                self.now[node.output] = found
                return None
            node = found
        why = f"%{node.output.name} was rewritten {MOST_REWRITES} times: do rules undo each other?"
        self.recorder.note(f"{self.prefix}.limit", why)
        return node

    def _apply(self, node: Node) -> Node | Value | None:
        """Apply the first rule that holds; tell of the first that would but for one thing."""
        refusal: tuple[str, str, str] | None = None
        for pattern, rule, build, told in self.by_op[node.op.name]:
            found = find(pattern, node, self.scope)
            if found is None:
                continue
            match = Match(found, self.scope, self.order, self.recorder)
            if rule.when is not None and not rule.when(match):
                continue
            value = build(match)
            if value is None:
                continue
            code, why = self._objection(match, rule, value)
            if not code:
                return self._replace(match, value, rule)
            if refusal is None and (told or code not in ("DTYPE", "SHAPE_MISMATCH")):
                refusal = (code, why, rule.name)
        if refusal is not None:
            code, why, name = refusal
            self.recorder.refused(node, None, code, why, rule=f"{self.prefix}.{name}")
        return None

    def _objection(self, match: Match, rule: Rule, value: Value) -> tuple[str, str]:
        """The code and the sentence why a rule that matches is not applied; ("", "") if it is."""
        old, new = match.type, value.type
        if not _same_type(old, new):
            return difference(old, new), f"{rule.equation}, but the result is {old} and not {new}"
        if rule.fast and not self.recorder.options.fast_math:
            return "FLOAT_ORDER", f"{rule.equation} needs fast_math=True: {rule.exact}"
        if does_something(match.node):
            return "SIDE_EFFECT", f"it does its own {match.node.op.effect or 'effects'}"
        if not rule.total and not self._cannot_raise(match.node):
            return "SIDE_EFFECT", "it may raise, and then has to"
        for node in (*match.made, match.node):
            self._learn(node)
        before = match.node.output
        if self.written:
            owner = self._overwritten(match, value)
            if owner is not None:
                why = f"%{owner.name} is written to, and this may be read after that"
                return "SIDE_EFFECT", why
        if not match.node.op.view and not self.order.same(before, value):
            return "LAYOUT", f"{rule.equation}, but a sum would add up in another order"
        return "", ""

    def _overwritten(self, match: Match, value: Value) -> Value | None:
        """An argument that is written to and would be read later than it is now."""
        read = {self.root[v] for node in match.made for v in node.inputs}
        read -= {self.root[v] for v in match.node.inputs}  # here it is read in any case
        if self.root[value] is not self.root[match.node.output]:
            read.add(self.root[value])
        return min(read & self.written, key=lambda owner: owner.id, default=None)

    def _replace(self, match: Match, value: Value, rule: Rule) -> Node | Value:
        name, why = f"{self.prefix}.{rule.name}", f"{rule.equation}: {rule.exact}"
        if not match.made or value not in match.made[-1].outputs:
            self.recorder.replaced(match.node, value, name, why)
            return value
        *extra, last = match.made
        for node in extra:
            self._add(node)
        new = self.recorder.remake(last, outputs=match.node.outputs)
        self.recorder.replaced(match.node, [*extra, new], name, why)
        return new

    # ---- what cannot raise

    def _cannot_raise(self, node: Node) -> bool:
        """Nothing on which it could fail is left: a Python int that meets integers fits them."""
        if not node.may_raise:
            return True
        if node.op.kind != "elementwise":
            return False
        types = [value.type for value in node.inputs]
        dtypes = {t.dtype for t in types if isinstance(t, ArrayType) and t.dtype.kind in "iu"}
        if len(dtypes) != 1:
            return False
        (dtype,) = dtypes
        limits = np.iinfo(dtype)
        inputs: list[Value] = []
        for value in node.inputs:
            if value.type is INT:
                number = self.scope.numbers.get(value)
                if number is None or not limits.min <= number <= limits.max:
                    return False
                value = Value(-1, ArrayType(dtype, ()))
            inputs.append(value)
        # The same node as NumPy runs it, with the int converted.
        return not Node(-1, node.op, inputs, node.attrs, node.outputs).may_raise

    def _marked_safe(self, node: Node) -> Node:
        if not node.may_raise or not self._cannot_raise(node):
            return node
        safe = self.recorder.remake(node, attrs={**node.attrs, "safe": True})
        why = f"the number fits a {node.output.type}, so it cannot raise"
        self.recorder.replaced(node, safe, f"{self.prefix}.safe", why)
        return safe


def _same_type(a: Type, b: Type) -> bool:
    return a is b or (isinstance(a, ArrayType) and a == b)
