"""Every equation of the table, on every dtype, with the numbers that rewriting gets wrong."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from passes.laws import example, ops_of, outcome, refusals, run_pass

from minigraph.errors import MinigraphError
from minigraph.ir import Graph, Ids, Node, Signature, Type, Value, parse_type, verify
from minigraph.ops import OPS, infer
from minigraph.passes import RULES, Rule, simplify_with
from minigraph.passes.patterns import Call, Constant, Literal, Pattern, parse_pattern

TYPES = [
    *(parse_type(t) for t in ("f64[2,3]", "f32[3]", "f16[3]", "c128[2,3]", "c64[3]", "i8[3]")),
    *(
        parse_type(t)
        for t in ("i64[2,3]", "u8[3]", "u64[3]", "bool[3]", "bool[]", "f64[]", "i32[]")
    ),
    *(parse_type(t) for t in ("f64[1,3]", "f64[3,1]", "int", "float", "bool", "complex")),
]
NUMBERS: list[Any] = [1, 2, 4, -3, 300, 0.5, 0.25, 3.0, True, 1e300, 2.0**-20, 2**62]
NUMBERS += [np.float32(8), np.float16(2.0**-16), np.int8(2), np.float64(-4), np.complex64(2)]
NUMBERS += [
    np.full(3, 4.0),
    np.full((2, 3), 2, np.int8),
    np.array([1.0, 2.0, 3.0]),
    np.ones((2, 1)),
]
ATTRS: dict[str, list[dict[str, Any]]] = {
    "transpose": [{"axes": (1, 0)}, {"axes": (0, 1)}, {"axes": (0,)}, {"axes": (1, 2, 0)}],
    "reshape": [{"shape": (2, 3)}, {"shape": (6,)}, {"shape": (3,)}, {"shape": (3, 1)}],
    "expand_dims": [{"axis": (0,)}, {"axis": (1,)}],
    "squeeze": [{"axis": (0,)}, {"axis": (1,)}, {"axis": ()}],
    "broadcast_to": [{"shape": (3,)}, {"shape": (2, 3)}, {"shape": (4, 2, 3)}],
    "slice": [
        {"index": [slice(None)]},
        {"index": [..., slice(0, 3)]},
        {"index": [slice(None, None, -1)]},
    ],
    "update": [
        {"index": [...]},
        {"index": [slice(None)]},
        {"index": [slice(None), slice(None)]},
        {"index": [slice(0, 0)]},
        {"index": [slice(None, None, -1)]},
        {"index": [None, ...]},
    ],
    "cast": [{"dtype": np.dtype(name)} for name in ("f8", "f4", "i1", "u1", "i8", "?", "c16")],
    "copy": [{}],
}


class Maker:
    """Builds the graphs of a pattern: all combinations of types, constants and attrs that fit."""

    def __init__(self, rule: Rule, choice: dict[str, Any]) -> None:
        self.rule, self.choice = rule, choice
        self.ids = Ids()
        self.values: dict[str, Value] = {}
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.calls = 0

    def graph(self) -> Graph:
        output = self.value(parse_pattern(self.rule.pattern))
        signature = Signature.flat(self.inputs, [output])
        return Graph("f", self.inputs, self.nodes, [output], signature)

    def node(self, op: str, inputs: list[Value], attrs: dict[str, Any]) -> Value:
        (type_,) = infer(OPS[op], [value.type for value in inputs], attrs)
        value = self.ids.value(type_)
        self.nodes.append(Node(self.ids.next(), OPS[op], inputs, attrs, [value]))
        return value

    def value(self, pattern: Pattern) -> Value:
        if isinstance(pattern, Call):
            self.calls += 1
            attrs = self.choice[f"attrs{self.calls}"] if pattern.any_attrs else {}
            return self.node(pattern.op, [self.value(each) for each in pattern.arguments], attrs)
        if isinstance(pattern, Literal):
            number: Any = pattern.number
            kind = self.choice["literal"]
            x = self.choice["x"]
            if kind == "float":
                number = float(number)
            elif kind != "python" and hasattr(x, "dtype"):
                with np.errstate(all="ignore"):
                    number = np.full(x.shape if kind == "full" else (), number).astype(x.dtype)[()]
            return self.node("const", [], {"value": number})
        if pattern.name not in self.values:
            chosen = self.choice[pattern.name]
            if isinstance(pattern, Constant):
                self.values[pattern.name] = self.node("const", [], {"value": chosen})
            else:
                self.values[pattern.name] = self.ids.value(chosen)
                self.inputs.append(self.values[pattern.name])
        return self.values[pattern.name]


def letters(pattern: Pattern) -> Iterator[tuple[str, list[Any]]]:
    """What there is to choose in a pattern, with the choices."""
    if isinstance(pattern, Call):
        for each in pattern.arguments:
            yield from letters(each)
    elif isinstance(pattern, Literal):
        yield "literal", ["python", "float", "scalar", "full"]
    elif isinstance(pattern, Constant):
        yield pattern.name, NUMBERS
    elif pattern.name == "c":
        yield "c", [parse_type("bool[3]"), parse_type("f64[2,3]"), parse_type("bool")]
    elif pattern.name == "y":
        yield "y", [parse_type(t) for t in ("f64[3]", "f64[2,3]", "f32[2,3]", "int")]
    else:
        yield pattern.name, TYPES


def calls(pattern: Pattern) -> Iterator[Call]:
    if isinstance(pattern, Call):
        yield pattern
        for each in pattern.arguments:
            yield from calls(each)


def graphs_of(rule: Rule) -> Iterator[Graph]:
    pattern = parse_pattern(rule.pattern)
    choices = {"x": TYPES, **dict(letters(pattern))}
    for number, call in enumerate(calls(pattern), 1):
        if call.any_attrs:
            choices[f"attrs{number}"] = ATTRS[call.op]
    for chosen in itertools.product(*choices.values()):
        try:
            graph = Maker(rule, dict(zip(choices, chosen, strict=True))).graph()
        except (MinigraphError, IndexError, TypeError, StopIteration):
            continue
        yield graph


def arguments(types: list[Type], seed: int) -> list[Any]:
    source = random.Random(seed)
    return [example(type_, source) for type_ in types]


NAMES = [rule.name for rule in RULES]


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.fast], ids=lambda r: r.name)
def test_both_sides_are_the_same_bit_for_bit(rule: Rule) -> None:
    run = simplify_with([rule])
    applied = 0
    for graph in graphs_of(rule):
        changed, events = run_pass(run, graph)
        if not any(event.rule == f"simplify_with.{rule.name}" for event in events):
            continue
        if changed is graph:
            assert refusals(events)
            continue
        applied += 1
        verify(changed)
        for seed in range(4):
            given = arguments([value.type for value in graph.inputs], seed)
            assert outcome(changed, given) == outcome(graph, given), f"{graph}\n{changed}\n{given}"
    assert applied, "no graph of this pattern was rewritten"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.fast], ids=lambda r: r.name)
def test_what_only_real_numbers_keep_needs_fast_math(rule: Rule) -> None:
    run = simplify_with([rule])
    applied = 0
    for graph in graphs_of(rule):
        changed, events = run_pass(run, graph)
        assert all(event.kind == "refuse" or event.rule.endswith(".safe") for event in events)
        fast, told = run_pass(run, graph, fast_math=True)
        verify(fast)
        if any(event.kind == "replace" and event.rule.endswith(rule.name) for event in told):
            applied += 1
            assert (f"simplify_with.{rule.name}", "FLOAT_ORDER") in refusals(events)
            assert ops_of(changed) == ops_of(graph)
    assert applied, "no graph of this pattern was rewritten"
