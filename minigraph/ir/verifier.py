"""The rules of the IR, one function each; its docstring is the rule as errors quote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigraph.errors import MinigraphError, VerifyError

from .attrs import Operand, class_of
from .dims import Dim
from .graph import Graph, Node, Value, inner_first
from .plan import storage_roots
from .printer import NAME, head_text, node_text, return_text
from .region_rules import (
    Finding,
    branches_agree,
    carried_types_stay,
    regions_fit_operands,
    tests_are_bools,
)
from .regions import (
    carried_count,
    is_loop,
    operands,
    running_regions,
    scanned_count,
    written_inputs,
    written_operands,
)
from .tree import leaf_count
from .types import SHORT, ArrayType, ObjectType, ScalarType, Type

Rule = Callable[[Graph], Iterator[Finding]]

SHOWN_NODES = 8  # before and after the node that an error is about


def verify(graph: Graph, *, stage: str = "") -> None:
    """Check a graph and its regions.

    Args:
        graph: what to check.
        stage: the pass or the layer that made it, for the error.

    Raises:
        VerifyError: names stage, rule and node, and shows the text around it.
    """
    for inner in inner_first(graph):
        for rule in RULES:
            for finding in rule(inner):
                raise _error(inner, rule, finding, stage)


# ---- rules


def defined_once(graph: Graph) -> Iterator[Finding]:
    """A value is defined once: as one input, or by one node."""
    seen: set[Value] = set()
    for value in graph.inputs:
        if value in seen:
            yield f"%{value.name} is an input twice", None
        seen.add(value)
    for node in graph.nodes:
        for value in node.outputs:
            if value in seen:
                yield f"%{value.name} is defined above already", node
            seen.add(value)


def values_stay_inside(graph: Graph) -> Iterator[Finding]:
    """What is made inside of a region is read there only; the region returns what others need."""
    outside = set(graph.values())
    inside = {
        value: node
        for node in graph.nodes
        for _, region in node.regions
        for value in region.values()
        if value not in outside
    }
    for node in graph.nodes if inside else ():
        for value in node.inputs:
            if value in inside:
                yield f"%{value.name} is made inside of the `{inside[value].op.name}`", node
    for value in graph.outputs:
        if value in inside:
            yield f"the output %{value.name} is made inside of the `{inside[value].op.name}`", None


def defined_before_use(graph: Graph) -> Iterator[Finding]:
    """A value is defined before the nodes that read it, in the same graph."""
    defined = set(graph.inputs)
    for node in graph.nodes:
        for value in node.inputs:
            if value not in defined:
                yield f"nothing above defines %{value.name}", node
        defined.update(node.outputs)


def outputs_defined(graph: Graph) -> Iterator[Finding]:
    """An output of the graph is one of its values."""
    defined = set(graph.values())
    for value in graph.outputs:
        if value not in defined:
            yield f"nothing defines the output %{value.name}", None


def signature_fits(graph: Graph) -> Iterator[Finding]:
    """The signature has one leaf for each input and each output."""
    leaves = sum(leaf_count(tree) for _, tree in graph.signature.params)
    captures = len(graph.signature.captures)
    if leaves + captures != len(graph.inputs):
        found = f"{leaves} leaves of parameters and {captures} captures"
        yield f"{found} for {len(graph.inputs)} inputs", None
    results = leaf_count(graph.signature.result)
    if results != len(graph.outputs):
        yield f"{results} leaves of the result for {len(graph.outputs)} outputs", None


def ids_unique(graph: Graph) -> Iterator[Finding]:
    """No two values have the same id, and no two nodes."""
    values: set[int] = set()
    for value in graph.inputs:
        if value.id in values:
            yield f"two inputs have the id {value.id}", None
        values.add(value.id)
    nodes: set[int] = set()
    for node in graph.nodes:
        if node.id in nodes:
            yield f"a node above has the id {node.id}, too", node
        nodes.add(node.id)
        for value in node.outputs:
            if value.id in values:
                yield f"a value above has the id {value.id} of %{value.name}, too", node
            values.add(value.id)


def names_tell_apart(graph: Graph) -> Iterator[Finding]:
    """The text form can name every value: hints are names, and no two values share one."""
    seen: set[str] = set()
    producers = graph.producers()
    for value in graph.values():
        node = producers.get(value)
        if value.hint and not _HINT.fullmatch(value.hint):
            yield f"the hint {value.hint!r} is not a name", node
        if value.name in seen:
            yield f"a value above is called %{value.name}, too", node
        seen.add(value.name)


def attrs_plain(graph: Graph) -> Iterator[Finding]:
    """Attrs are plain data, or graphs; arrays are inputs, or the `value` of `const`."""
    for node in graph.nodes:
        for name, attr in node.attrs.items():
            if type(name) is not str or not name.isidentifier():
                yield f"the attr name {name!r} is not an identifier", node
            elif node.op.name == "const" and name == "value":
                if not _is_constant(attr):
                    yield f"{type(attr).__name__} is no array and no number", node
            elif not isinstance(attr, Graph):
                wrong = _not_plain(attr)
                if wrong:
                    yield f"the attr {name} holds a {wrong}", node


def results_or_effect(graph: Graph) -> Iterator[Finding]:
    """A node without results has an effect or regions, else it would do nothing."""
    for node in graph.nodes:
        if not node.outputs and not node.is_effect and not any(True for _ in node.regions):
            yield f"{node.op.name} has neither", node


def write_targets_are_inputs(graph: Graph) -> Iterator[Finding]:
    """Only inputs of the graph are written to, also by regions; a loop writes to no carried one."""
    inputs = set(graph.inputs)
    for node in graph.nodes:
        if node.op.name == "write" and not node.inputs:
            yield "nothing is no input of the graph", node
            continue
        for target in written_operands(node):
            if target not in inputs:
                yield f"%{target.name} is no input of the graph", node
        changing = carried_count(node) + scanned_count(node)
        for _, region in running_regions(node) if changing else ():
            for at in written_inputs(region):
                if at < changing:
                    yield f"%{region.inputs[at].name} is not the same at each turn", node


def loops_read_no_target(graph: Graph) -> Iterator[Finding]:
    """A loop reads nothing that it writes to: what it needs of that, it carries."""
    for node in graph.nodes if any(map(is_loop, graph.nodes)) else ():
        for _, region in node.regions if is_loop(node) else ():
            targets = {target for inner in region.nodes for target in written_operands(inner)}
            for inner in region.nodes:
                written = set(written_operands(inner))
                for value in inner.inputs[1:] if inner.op.name == "write" else inner.inputs:
                    if value in targets and value not in written:
                        yield f"%{value.name} is written to, and read by {inner!r}", node


def targets_have_one_name(graph: Graph) -> Iterator[Finding]:
    """What regions write to they see by one name only; what they carry is theirs."""
    root = storage_roots(graph)
    for node in graph.nodes:
        targets = set(written_operands(node)) if node.op.name != "write" else ()
        others = [v for v in operands(node)[carried_count(node) :] if v not in targets]
        for value in others if targets else ():
            if root.get(value) in targets:
                yield f"%{value.name} lies in the memory of %{root[value].name}", node


def written_inputs_rest(graph: Graph) -> Iterator[Finding]:
    """After a write to an input no node reads that input or a view of it: its memory has changed.

    What the program reads afterwards is the value that was written, or what a region left.
    """
    root = storage_roots(graph)
    written: set[Value] = set()
    for node in graph.nodes:
        targets = set(written_operands(node))
        is_write = node.op.name == "write"
        for value in node.inputs[1:] if is_write else node.inputs:
            if root.get(value) in written and (is_write or value not in targets):
                yield f"%{value.name} is read after the write to %{root[value].name}", node
        written |= targets
    for value in graph.outputs:
        if root.get(value) in written:
            yield f"%{value.name} is returned after the write to %{root[value].name}", None


def types_as_inferred(graph: Graph) -> Iterator[Finding]:
    """The types of a node's results are those that its op infers from its inputs."""
    for node in graph.nodes:
        inferred = _inferred(node)
        if isinstance(inferred, str):
            yield inferred, node
            continue
        types = tuple(value.type for value in node.outputs)
        if types != inferred:
            found = ", ".join(map(str, inferred)) or "no results"
            yield f"{node.op.name} gives {found}, not {', '.join(map(str, types)) or 'none'}", node


RULES: tuple[Rule, ...] = (
    defined_once,
    values_stay_inside,
    defined_before_use,
    outputs_defined,
    signature_fits,
    ids_unique,
    names_tell_apart,
    attrs_plain,
    results_or_effect,
    write_targets_are_inputs,
    loops_read_no_target,
    targets_have_one_name,
    written_inputs_rest,
    regions_fit_operands,
    branches_agree,
    tests_are_bools,
    carried_types_stay,
    types_as_inferred,
)

_HINT = re.compile(NAME)
_PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes)
_RECORDS = (Operand, Dim, ArrayType, ScalarType, ObjectType)


def _not_plain(attr: Any) -> str:
    """The class of what is no plain data in an attr; empty where all is."""
    pending = [attr]
    while pending:
        part = pending.pop()
        kind = class_of(part)
        if kind is tuple or kind is list:
            pending.extend(part)
        elif kind is slice:
            pending.extend((part.start, part.stop, part.step))
        elif isinstance(part, np.dtype):
            if part.name not in SHORT:
                return f"dtype {part}"
        elif kind not in _PLAIN and not isinstance(part, _RECORDS):
            return kind.__name__
    return ""


def _is_constant(value: Any) -> bool:
    plain = type(value) in (np.ndarray, bool, int, float, complex)
    return plain or isinstance(value, np.generic)


def _inferred(node: Node) -> tuple[Type, ...] | str:
    """The result types, or what is wrong with the inputs."""
    try:
        inferred = node.op.infer([value.type for value in node.inputs], node.attrs)
    except MinigraphError as error:
        return error.fact
    except Exception as error:  # wrong numbers of inputs or attrs fail in any way
        return f"{node.op.name} does not take these inputs and attrs ({error!r})"
    return inferred if isinstance(inferred, tuple) else (inferred,)


# ---- errors


def _error(graph: Graph, rule: Rule, finding: Finding, stage: str) -> VerifyError:
    wrong, node = finding
    sentence = " ".join((rule.__doc__ or "").split("\n\n")[0].split())
    lines = [
        f"{'after ' + stage + ': ' if stage else ''}graph {graph.name} breaks the rule "
        f"{rule.__name__}: {sentence}",
        f"  found:   {wrong}",
    ]
    if node is not None:
        lines.append(f"  node:    {_one_line(node)}")
    lines.append("  graph:")
    lines.extend(_around(graph, node))
    return VerifyError("\n".join(lines), where=None if node is None else node.loc)


def _around(graph: Graph, node: Node | None) -> Iterator[str]:
    """The graph's text, of a long one the lines around a node; `>` marks the node."""
    count = len(graph.nodes)
    at = next((i for i, other in enumerate(graph.nodes) if other is node), count)
    first, last = max(0, at - SHOWN_NODES), min(count, at + SHOWN_NODES + 1)
    yield f"      {head_text(graph)} {{"
    if first > 0:
        yield f"        ... {first} nodes"
    for i in range(first, last):
        yield f"      {'>' if i == at else ' '} {_one_line(graph.nodes[i])}"
    if last < count:
        yield f"        ... {count - last} nodes"
    yield f"        {return_text(graph)}"
    yield "      }"


def _one_line(node: Node) -> str:
    first, _, more = node_text(node).partition("\n")
    return f"{first} ..." if more else first
