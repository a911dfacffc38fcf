"""Generated Python: a graph as the NumPy lines that a person would have written.

    # fancy_func(a: f64[4], b: f64[4]) -> f64[4]
    import numpy as np


    def fancy_func(a, b):
        e = a + b               # f64[4]
        g = np.exp(e, out=e)    # f64[4]
        del e
        return g * 2.0

Each value has one local of the user's name; numbers stand where they are used; a buffer is freed or
written again where the plan says so.  What the text shows is what runs, but for two things that
`load` adds around it: results come as a tuple, and an exception gets its note (see `_runnable`).
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from minigraph.errors import OptionError
from minigraph.ir import OPERAND, ArrayType, Dim, Graph, Node, Op, Plan, ScalarType, Shape, Value
from minigraph.ops import ANNOTATIONS, named_sizes

from .names import Names
from .program import Program, explain_failure
from .spelling import attr_text, index_text, number_text, scalar_text
from .storage import outputs_to_copy, takeovers


def available() -> str | None:
    """Why this backend cannot run here: it always can."""
    return None


def emit(graph: Graph, plan: Plan | None = None, *, c_order: Collection[Value] = ()) -> Program:
    """Write the program of a graph.

    Args:
        graph: a function (flat inputs in order, outputs in order) or a whole program (statements).
        plan: which names to delete and which buffers to write again; without one, neither.
        c_order: the inputs that the caller promises to pass in C order.  Where inputs could lie
            differently, fewer buffers can be written again (see `storage.py`).

    Raises:
        OptionError: the graph has a node with regions, which this backend cannot run yet.
    """
    return _Writer(graph, plan, c_order).program()


def load(program: Program) -> Callable[..., tuple[Any, ...]]:
    """Compile a program.

    Returns:
        A callable that takes the graph's inputs one by one and returns a tuple of its outputs.
        `load` adds no call of its own: for a function it is the generated function itself.
    """
    namespace = {**program.constants, "_explain": partial(explain_failure, program=program)}
    if not program.graph.signature.program:
        exec(compile(_runnable(program), program.filename, "exec"), namespace)
        return namespace[program.name]
    code = compile(program.source, program.filename, "exec")

    def run() -> tuple[Any, ...]:
        try:
            exec(code, dict(namespace))
        except Exception as error:
            explain_failure(error, program)
            raise
        return ()

    return run


def _runnable(program: Program) -> str:
    """The function's text with its body inside a `try`, each line where the source has it.

    The line above `def` (a comment or blank) gives the room, and one space of indentation keeps the
    columns, so that tracebacks point into the source as shown.  A `try` costs nothing until it
    catches; a wrapper around the function would cost as much as a small operation at every call.
    """
    lines = program.source.split("\n")
    at = next(index for index, line in enumerate(lines) if line.startswith("def "))
    lines[at - 1 : at + 1] = [lines[at], " try:"]
    results = lines[-1].removeprefix("    return").strip()
    comma = "," if len(program.graph.outputs) == 1 else ""
    lines[-1] = f"    return ({results}{comma})"
    return "\n".join([*lines, " except Exception as _failure:", "  _explain(_failure)", "  raise"])


class _Writer:
    """The state of one emission: names given, lines written, constants met."""

    def __init__(self, graph: Graph, plan: Plan | None, c_order: Collection[Value]) -> None:
        assert plan is None or len(plan.dies) == len(graph.nodes), "a plan of another graph"
        self.graph = graph
        self.plan = plan
        self.takeovers = {} if plan is None else takeovers(graph, plan, c_order)
        self.kept = set(self.takeovers.values())
        self.names = Names(("_explain", "_failure"))
        self.name = self.names.fresh(graph.name.rpartition(".")[2] or graph.name)
        self.text: dict[Value, str] = {}
        self.locals: set[Value] = set()
        self.constants: dict[str, Any] = {}
        self.bound: dict[int, str] = {}  # id of a constant -> its name
        self.helpers: dict[Callable[..., Any], str] = {}
        self.helper_names = Names()
        self.notes: list[str] = []
        self.modules: dict[str, None] = {}
        # The body, line by line, in three lists: text, type comment, node.
        self.code: list[str] = []
        self.comments: list[str] = []
        self.nodes: list[Node | None] = []
        self.types: dict[Any, str] = {}

    def program(self) -> Program:
        graph = self.graph
        params = [self.names.fresh(value.name) for value in graph.inputs]
        self.text.update(zip(graph.inputs, params, strict=True))
        self.sizes: dict[str, str] = {}
        if any(isinstance(v.type, ArrayType) and not v.type.is_static for v in graph.inputs):
            self.bind_sizes()
        last = len(graph.nodes) - 1
        for position, node in enumerate(graph.nodes):
            self.write_node(node)
            if self.plan is not None and position != last:
                self.free(node, self.plan.dies[position])
        if not graph.signature.program:
            self.write_return()
        source, lines = self.assemble(params)
        return Program(self.name, source, lines, self.constants, graph, self.plan, names=self.text)

    # ------------------------------------------------------------------ the whole text

    def assemble(self, params: list[str]) -> tuple[str, list[tuple[int, Node]]]:
        """The source and its map from lines to nodes."""
        function = not self.graph.signature.program
        head = list(self.notes)
        if function:
            inputs = ", ".join(
                f"{name}: {self.type_text(value.type)}"
                for name, value in zip(params, self.graph.inputs, strict=True)
            )
            results = ", ".join(self.type_text(value.type) for value in self.graph.outputs)
            head.insert(0, f"# {self.name}({inputs}) -> {results or 'None'}")
        head += self.modules
        if self.modules:
            head += ["", ""] if function else [""]
        if function:
            head.append(f"def {self.name}({', '.join(params)}):")
        lines = [
            (number, node)
            for number, node in enumerate(self.nodes, len(head) + 1)
            if node is not None
        ]
        margin = "    " if function else ""
        pairs = list(zip(self.code, self.comments, strict=True))
        width = min(max((len(code) for code, comment in pairs if comment), default=0), 48)
        head += [
            f"{margin}{code:<{width}}  # {comment}" if comment else margin + code
            for code, comment in pairs
        ]
        return "\n".join(head), lines

    def line(self, code: str, node: Node | None, comment: str = "") -> None:
        self.code.append(code)
        self.comments.append(comment)
        self.nodes.append(node)

    def type_text(self, kind: Any) -> str:
        text = self.types.get(kind)
        if text is None:
            text = self.types[kind] = str(kind)
        return text

    def write_return(self) -> None:
        results = [
            _copy(self.text[value], value) if copied else self.text[value]
            for value, copied in zip(self.graph.outputs, outputs_to_copy(self.graph), strict=True)
        ]
        self.line(f"return {', '.join(results)}".rstrip(), None)

    # ------------------------------------------------------------------ names and constants

    def module(self, name: str) -> str:
        self.modules.setdefault("import numpy as np" if name == "np" else f"import {name}")
        if name == "np":
            self.constants["np"] = np
        return name

    def bind(self, held: Any, wish: str) -> str:
        """The name of an object that the namespace holds."""
        name = self.bound.get(id(held))
        if name is None:
            name = self.bound[id(held)] = self.names.fresh(wish)
            self.constants[name] = held
        return name

    def helper(self, place: str, op: Op, function: Callable[..., Any]) -> str:
        """`ops.NAME`: what the op means, where NumPy has no function for it."""
        found = self.helpers.get(function)
        if found is None:
            name = self.helper_names.fresh(op.name)
            found = self.helpers[function] = f"{place}.{name}"
            setattr(self.constants.setdefault(place, types.SimpleNamespace()), name, function)
        return found

    def bind_sizes(self) -> None:
        """Read the named dimensions that the body mentions off the inputs' shapes."""
        mentioned = {name for node in self.graph.nodes for name in _dims_of(node.attrs)}
        found: dict[str, str] = {}
        for value in self.graph.inputs:
            for axis, size in enumerate(_shape(value)):
                if isinstance(size, Dim) and size.is_name:
                    found.setdefault(str(size), f"{self.text[value]}.shape[{axis}]")
        shown = {name for v in self.graph.inputs for s in _shape(v) for name in _dims_of(s)}
        solve = partial(named_sizes, [value.type for value in self.graph.inputs])
        arguments = ", ".join(self.text[value] for value in self.graph.inputs)
        for name in sorted(mentioned & shown - found.keys()):  # only inside of an expression
            found[name] = f"{self.bind(solve, 'sizes_of')}([{arguments}])[{name!r}]"
        for name, text in found.items():
            if name in mentioned:
                self.sizes[name] = self.names.fresh(name)
                self.line(f"{self.sizes[name]} = {text}", None, "int")
        if not mentioned <= found.keys():
            raise OptionError(
                f"no argument has the named dimension {min(mentioned - found.keys())} in its shape"
            )

    def attr(self, attr: Any) -> str:
        if isinstance(attr, np.dtype):
            return self.dtype(attr)
        return attr_text(attr, self.sizes, self.bind)

    def dtype(self, dtype: np.dtype[Any]) -> str:
        return f"{self.module('np')}.{dtype.name}"

    # ------------------------------------------------------------------ one node

    def write_node(self, node: Node) -> None:
        op = node.op
        if op.name == "const":
            self.constant(node.outputs[0], node.attrs["value"])
            return
        if op.kind == "control":
            raise OptionError(
                f"the python backend cannot run `{op.name}` nodes yet",
                instead='backend="interpret"',
            )
        form = FORMS.get(op.name)
        if form is not None:
            form(self, node)
        else:
            self.assign(node, self.expression(node))

    def assign(self, node: Node, expression: str) -> None:
        outputs = node.outputs
        if len(outputs) == 1:
            value = outputs[0]
            code = f"{self.local(value)} = {expression}"
            self.line(code, node, self.type_text(value.type))
        elif outputs:
            code = f"{', '.join(map(self.local, outputs))} = {expression}"
            comment = ", ".join(self.type_text(value.type) for value in outputs)
            self.line(code, node, comment)
        else:
            self.line(expression, node)

    def local(self, value: Value) -> str:
        name = self.text[value] = self.names.fresh(value.hint or f"v{value.id}")
        self.locals.add(value)
        return name

    def constant(self, value: Value, held: Any) -> None:
        """A number stands where it is used; an array gets a name in the namespace."""
        text = None
        if isinstance(held, np.generic):
            text = scalar_text(held)
            if text is not None:
                self.module("np")
        elif not isinstance(held, np.ndarray):
            text = number_text(held)
        if text is None:
            text = self.bind(held, value.hint or f"c{value.id}")
            self.notes.append(f"# {text}: {value.type}{_small_array(held)}")
        self.text[value] = text

    def arguments(self, node: Node) -> tuple[list[str], dict[str, str]]:
        """The texts of the positional and the keyword arguments, as the evaluator passes them."""
        texts = [self.text[value] for value in node.inputs]
        if not node.attrs:
            return texts, {}
        named = [name for name, attr in node.attrs.items() if attr is OPERAND]
        split = len(texts) - len(named)
        keywords = dict(zip(named, texts[split:], strict=True))
        for name, attr in node.attrs.items():
            if attr is OPERAND or name in ANNOTATIONS:
                continue
            keywords[name] = self.attr(attr)
            if isinstance(attr, np.dtype) and not isinstance(node.op.numpy, str):
                keywords[name] = f"np.dtype({keywords[name]})"  # its own code may ask for `.kind`
        return texts[:split], keywords

    def expression(self, node: Node) -> str:
        """The right-hand side: an operator, a NumPy function, or what else the op means."""
        op = node.op
        texts, keywords = self.arguments(node)
        dead = self.takeovers.get(node.outputs[0]) if self.takeovers and node.outputs else None
        if dead is not None:
            keywords["out"] = self.text[dead]
        elif (
            op.operator is not None
            and all(f"{{{name}}}" in op.operator for name in keywords)
            and not _complex_scalars(node)
        ):
            return op.operator.format(*map(_tight, texts), **keywords)
        return f"{self.function(node, texts)}({_call(texts, keywords)})"

    def function(self, node: Node, texts: list[str]) -> str:
        """The text of the function to call; may put the array module in front of the arguments."""
        op = node.op
        if op.python is not None and all(isinstance(v.type, ScalarType) for v in node.inputs):
            name = getattr(op.python, "__name__", "")
            if getattr(builtins, name, None) is op.python:
                return name
            return self.helper("python", op, op.python)
        if isinstance(op.numpy, str):
            return f"{self.module('np')}.{op.numpy}"
        assert op.numpy is not None, op
        texts.insert(0, self.module("np"))
        return self.helper("ops", op, op.numpy)

    def free(self, node: Node, dying: Iterable[Value]) -> None:
        """Delete the names of dead arrays, of a buffer that was taken over only afterwards."""
        dead = [value for value in dying if self.deletable(value) and value not in self.kept]
        for value in node.outputs if self.takeovers else ():
            if value in self.takeovers:
                dead.append(self.takeovers[value])
        if dead:
            self.line(f"del {', '.join(self.text[value] for value in dead)}", node)

    def deletable(self, value: Value) -> bool:
        """It has a name here, and holds more than a number."""
        kind = value.type
        return isinstance(kind, ArrayType) and kind.ndim > 0 and value in self.locals


# ---------------------------------------------------------------------- forms of their own


def _subscript(writer: _Writer, node: Node) -> None:
    """`x[1:3]`, `x[i, :]`: both the slice and the gather."""
    base, *arrays = (writer.text[value] for value in node.inputs)
    if isinstance(node.inputs[0].type, ScalarType):
        base = f"{writer.module('np')}.asarray({base})"
    inside = index_text(node.attrs["index"], iter(arrays), writer.sizes, writer.bind)
    writer.assign(node, f"{base}[{inside}]")


def _base_to_change(writer: _Writer, node: Node) -> None:
    """The first line of an update: a copy of the base, or the base itself where it dies here."""
    base = writer.text[node.inputs[0]]
    in_place = node.outputs[0] in writer.takeovers
    writer.assign(node, base if in_place else f"{writer.module('np')}.array({base})")


def _update(writer: _Writer, node: Node) -> None:
    new, *arrays = (writer.text[value] for value in node.inputs[1:])
    inside = index_text(node.attrs["index"], iter(arrays), writer.sizes, writer.bind)
    _base_to_change(writer, node)
    writer.line(f"{writer.text[node.outputs[0]]}[{inside}] = {new}", node)


def _scatter_add(writer: _Writer, node: Node) -> None:
    new, *arrays = (writer.text[value] for value in node.inputs[1:])
    operands = iter(arrays)
    items = [
        next(operands) if item is OPERAND else writer.attr(item) for item in node.attrs["index"]
    ]
    places = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    _base_to_change(writer, node)
    writer.line(f"np.add.at({writer.text[node.outputs[0]]}, {places}, {new})", node)


def _cast(writer: _Writer, node: Node) -> None:
    text, dtype = writer.text[node.inputs[0]], writer.dtype(node.attrs["dtype"])
    number = isinstance(node.inputs[0].type, ScalarType)
    writer.assign(node, f"{dtype}({text})" if number else f"{text}.astype({dtype})")


def _new_array(writer: _Writer, node: Node) -> None:
    texts, keywords = writer.arguments(node)
    if "dtype" in keywords:
        keywords["dtype"] = writer.dtype(node.attrs["dtype"])
    writer.assign(node, f"{writer.module('np')}.array({_call(texts, keywords)})")


def _draw(writer: _Writer, node: Node) -> None:
    """`rng.normal(0.0, 1.0, size=(3,))`; a shuffle is of a copy."""
    texts, keywords = writer.arguments(node)
    if "dtype" in keywords:
        keywords["dtype"] = writer.dtype(node.attrs["dtype"])
    generator, *operands = texts
    method = node.attrs["method"]
    del keywords["method"]
    if "n" in keywords:
        operands = [keywords.pop("n")]
    if method == "shuffle":
        writer.assign(node, f"{writer.module('np')}.array({operands[0]})")
        operands = [writer.text[node.outputs[0]]]
        writer.line(f"{generator}.shuffle({_call(operands, keywords)})", node)
    else:
        writer.assign(node, f"{generator}.{method}({_call(operands, keywords)})")


def _check(writer: _Writer, node: Node) -> None:
    error, message = node.attrs.get("error", "AssertionError"), node.attrs.get("message")
    writer.line(f"if not {writer.text[node.inputs[0]]}:", node)
    writer.line(f"    raise {error}({'' if message is None else repr(message)})", node)


def _print(writer: _Writer, node: Node) -> None:
    values = (writer.text[value] for value in node.inputs)
    words = [next(values) if part is OPERAND else repr(part) for part in node.attrs["parts"]]
    for name, default in (("sep", " "), ("end", "\n")):
        if node.attrs.get(name, default) != default:
            words.append(f"{name}={node.attrs[name]!r}")
    if node.attrs.get("file", "stdout") != "stdout":
        words.append(f"file={writer.module('sys')}.{node.attrs['file']}")
    writer.assign(node, f"print({', '.join(words)})")


def _write(writer: _Writer, node: Node) -> None:
    target, new = (writer.text[value] for value in node.inputs)
    writer.assign(node, f"{target}[...] = {new}")


FORMS: dict[str, Callable[[_Writer, Node], None]] = {
    "slice": _subscript,
    "gather": _subscript,
    "update": _update,
    "scatter_add": _scatter_add,
    "cast": _cast,
    "copy": _new_array,
    "draw": _draw,
    "check": _check,
    "print": _print,
    "write": _write,
}
"""Ops that Python has statements or brackets for."""


# ---------------------------------------------------------------------- pieces of text


def _tight(text: str) -> str:
    """The operand of an operator: a negative number needs parentheses."""
    return f"({text})" if text[0] == "-" else text


def _complex_scalars(node: Node) -> bool:
    """Operators on complex NumPy scalars round differently from the ufuncs (which use FMA)."""
    kinds = [value.type for value in node.inputs if isinstance(value.type, ArrayType)]
    return any(kind.dtype.kind == "c" for kind in kinds) and not any(kind.ndim for kind in kinds)


def _call(texts: list[str], keywords: Mapping[str, str]) -> str:
    return ", ".join([*texts, *(f"{name}={text}" for name, text in keywords.items())])


def _copy(text: str, value: Value) -> str:
    """A copy in the same memory order (with one axis there is only one)."""
    several = isinstance(value.type, ArrayType) and value.type.ndim > 1
    return f'{text}.copy("K")' if several else f"{text}.copy()"


def _small_array(held: Any) -> str:
    if not isinstance(held, np.ndarray) or held.size > 8:
        return ""
    return f" = {held.tolist()}"


def _shape(value: Value) -> Shape:
    return value.type.shape if isinstance(value.type, ArrayType) else ()


def _dims_of(attr: Any) -> set[str]:
    """The named dimensions that an attr mentions."""
    if isinstance(attr, Dim):
        return attr.names()
    if isinstance(attr, Mapping):
        attr = tuple(attr.values())
    if isinstance(attr, slice):
        attr = (attr.start, attr.stop, attr.step)
    if isinstance(attr, tuple | list):
        return set[str]().union(*map(_dims_of, attr))
    return set()
