"""Writes the lines of a program: names, constants, expressions, deletions."""

from __future__ import annotations

import builtins
import keyword
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from minigraph.errors import OptionError
from minigraph.ir import (
    BOOL,
    OPERAND,
    ArrayType,
    Dim,
    Graph,
    Node,
    Op,
    Plan,
    ScalarType,
    Size,
    Value,
    has_axes,
    outputs_to_copy,
)
from minigraph.ops import ANNOTATIONS, named_sizes

from .names import Identifiers, identifier
from .scope import Scope
from .spelling import attr_code, number_code, scalar_code

WORDS = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "!="}
"""Operators on bits, said of Python's bools."""

MOST_FREE = 4
"""Pieces of memory that a program keeps for its next calls: so many at once take none anew."""


class Writer:
    """The state of one emission: names given, lines written, constants met."""

    def __init__(self, graph: Graph, plan: Plan | None) -> None:
        self.graph = graph
        self.scope = Scope(graph, plan, graph.inputs)
        self.takeovers = self.scope.takeovers
        self.out: dict[Value, str] = {}  # a value -> the array, kept between calls, that it goes to
        self.kept_in = ""  # the name of what keeps them
        self.kept_bytes: Size = 0
        self.names = Identifiers(("_explain", "_failure"))
        self.name = self.names.fresh(graph.name.rpartition(".")[2] or graph.name)
        self.params = [self.names.fresh(value.name) for value in graph.inputs]
        self.text: dict[Value, str] = dict(zip(graph.inputs, self.params, strict=True))
        self.locals: set[Value] = set()
        self.constants: dict[str, Any] = {}
        self.sizes: dict[str, str] = {}  # a named dimension -> the local that holds it
        self.bound: dict[int, str] = {}  # id of a constant -> its name
        self.helpers: dict[Callable[..., Any], str] = {}
        self.helper_names = Identifiers()
        self.notes: dict[str, None] = {}
        self.modules: dict[str, None] = {}
        # The body, line by line, in three lists: text, type comment, node.
        self.code: list[str] = []
        self.comments: list[str] = []
        self.nodes: list[Node | None] = []
        self.indent = ""
        self.compiled: dict[Node, Callable[[], None]] = {}  # a node -> what writes its call
        self.types: dict[Any, str] = {}

    # ------------------------------------------------------------------ the whole text

    def assemble(self) -> tuple[str, list[tuple[int, Node]]]:
        """The source and its map from lines to nodes."""
        function = not self.graph.signature.program
        head = list(self.notes)
        if function:
            inputs = ", ".join(
                f"{name}: {self.type_text(value.type)}"
                for name, value in zip(self.params, self.graph.inputs, strict=True)
            )
            results = ", ".join(self.type_text(value.type) for value in self.graph.outputs)
            head.insert(0, f"# {self.name}({inputs}) -> {results or 'None'}")
        head += self.modules
        if self.modules:
            head += ["", ""] if function else [""]
        if function:
            head.append(f"def {self.name}({', '.join(self.params)}):")
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
        self.code.append(self.indent + code)
        self.comments.append(comment)
        self.nodes.append(node)

    @contextmanager
    def block(self, node: Node) -> Iterator[None]:
        """The lines written meanwhile belong to the line before; there is at least one."""
        outer, self.indent = self.indent, self.indent + "    "
        before = len(self.code)
        try:
            yield
            if len(self.code) == before:
                self.line("pass", node)
        finally:
            self.indent = outer

    @contextmanager
    def inside(self, scope: Scope, texts: Iterable[str]) -> Iterator[None]:
        """Write a region; `texts` stand for its inputs, which may be values of the graph around."""
        inputs = scope.graph.inputs
        outer = self.scope, self.takeovers
        known = {value: self.text[value] for value in inputs if value in self.text}
        local = self.locals.intersection(inputs)
        self.scope, self.takeovers = scope, scope.takeovers
        self.text.update(zip(inputs, texts, strict=True))
        self.locals -= local
        try:
            yield
        finally:
            self.scope, self.takeovers = outer
            self.text.update(known)
            self.locals |= local

    def type_text(self, kind: Any) -> str:
        text = self.types.get(kind)
        if text is None:
            text = self.types[kind] = str(kind)
        return text

    def write_return(self) -> None:
        outputs = self.graph.outputs
        copied = outputs_to_copy(self.graph)
        results = [
            copy_text(self.text[value], value) if is_copied else self.text[value]
            for value, is_copied in zip(outputs, copied, strict=True)
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

    def helper(self, op: Op, function: Callable[..., Any]) -> str:
        """`ops.NAME`: what the op means, where neither NumPy nor Python has a function for it."""
        found = self.helpers.get(function)
        if found is None:
            name = self.helper_names.fresh(op.name)
            found = self.helpers[function] = f"ops.{name}"
            setattr(self.constants.setdefault("ops", types.SimpleNamespace()), name, function)
        return found

    def bind_sizes(self, sizes: Iterable[Size] = ()) -> None:
        """Read the named dimensions that the body, or one of `sizes`, mentions off the inputs."""
        if all(v.type.is_static for v in self.graph.inputs if isinstance(v.type, ArrayType)):
            return
        mentioned = {name for size in (*sizes, *_mentioned(self.graph)) for name in _dims_of(size)}
        found: dict[str, str] = {}
        for value in self.graph.inputs:
            for axis, size in enumerate(value.shape):
                if isinstance(size, Dim) and size.is_name:
                    found.setdefault(str(size), f"{self.text[value]}.shape[{axis}]")
        shown = {name for v in self.graph.inputs for s in v.shape for name in _dims_of(s)}
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
        return attr_code(attr, self.sizes, self.bind)

    def dtype(self, dtype: np.dtype[Any]) -> str:
        return f"{self.module('np')}.{dtype.name}"

    # ------------------------------------------------------------------ memory kept between calls

    def take_kept(self, values: Sequence[Value]) -> None:
        """Give each of these values an array of this call alone, from the calls before if any.

        Threads may run the program at once, and it may call itself: what is taken is gone for all
        others until `give_kept`.
        """
        if not values:
            return
        free: deque[list[Any]] = deque(maxlen=MOST_FREE)
        self.kept_in = self.bind(free, "kept")
        empty = f"{self.module('np')}.empty"
        made: list[str] = []
        misfits: list[str] = []
        for value in values:
            name = self.out[value] = self.names.fresh(f"kept_{value.name}")
            shape, kind = self.attr(value.shape), value.type
            assert isinstance(kind, ArrayType)
            self.kept_bytes += kind.size_bytes
            made.append(f"{name} = {empty}({shape}, {self.dtype(kind.dtype)})")
            if not kind.is_static:
                misfits.append(f"{name}.shape != {shape}")
        if not misfits:
            free.append([np.empty(v.shape, _dtype(v)) for v in values])
        self.line("try:", None)
        self.line(f"    [{', '.join(self.out.values())}] = {self.kept_in}.pop()", None)
        if misfits:
            self.line(f"    if {' or '.join(misfits)}:", None)
            self.line("        raise IndexError", None)
        self.line("except IndexError:", None)
        for line in made:
            self.line(f"    {line}", None)

    def give_kept(self) -> None:
        """Leave the arrays to the next call."""
        if self.kept_in:
            names = ", ".join(self.out.values())
            self.line(f"{self.kept_in}.append([{names}])", None)

    # ------------------------------------------------------------------ one node

    def assign(self, node: Node, expression: str) -> None:
        outputs = node.outputs
        if len(outputs) == 1:
            value = outputs[0]
            name = self.local(value)
            if name != expression:
                self.line(f"{name} = {expression}", node, self.type_text(value.type))
        elif outputs:
            code = f"{', '.join(map(self.local, outputs))} = {expression}"
            comment = ", ".join(self.type_text(value.type) for value in outputs)
            self.line(code, node, comment)
        else:
            self.line(expression, node)

    def local(self, value: Value) -> str:
        """The local variable of a value: one that waits for it, or its own."""
        name = self.scope.wanted.get(value)
        if name is not None and self.scope.may_bind(name, value):
            self.scope.holder[name] = value
        else:
            hint = self.scope.becomes.get(value, value.hint)
            name = self.names.fresh(hint or f"v{value.id}")
            self.locals.add(value)
        self.text[value] = name
        return name

    def renames(self, base: Value, value: Value) -> bool:
        """Whether the name of a value that was changed in place stands for what it is now."""
        name, wanted = self.text[base], self.scope.wanted.get(value)
        if wanted not in (None, name) and self.scope.may_bind(wanted, value):
            return False
        if base not in self.locals and base not in self.scope.own:
            return False
        if base in self.locals:
            self.locals.remove(base)
            self.locals.add(value)
        self.text[value] = name
        self.scope.holder[name] = value
        return True

    def constant(self, value: Value, held: Any) -> None:
        """A number stands where it is used; an array gets a name in the namespace."""
        text = None
        if isinstance(held, np.generic):
            text = scalar_code(held)
            if text is not None:
                self.module("np")
        elif not isinstance(held, np.ndarray):
            text = number_code(held)
        if text is None:
            text = self.bind(held, value.hint or f"c{value.id}")
            self.notes[f"# {text}: {value.type}{_small_array(held)}"] = None
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
            keywords[word(name)] = self.attr(attr)
            if isinstance(attr, np.dtype) and not isinstance(node.op.numpy, str):
                keywords[name] = f"np.dtype({keywords[name]})"  # its own code may ask for `.kind`
        return texts[:split], keywords

    def expression(self, node: Node) -> str:
        """The right-hand side: an operator, a NumPy function, or what else the op means."""
        op = node.op
        texts, keywords = self.arguments(node)
        value = node.outputs[0] if node.outputs else None
        dead = self.takeovers.get(value) if value is not None else None
        if dead is not None:
            keywords["out"] = self.text[dead]
        elif value in self.out:
            keywords["out"] = self.out[value]
        elif op.name in WORDS and all(value.type == BOOL for value in node.inputs):
            return _of_bools(op, texts)
        elif (
            op.operator is not None
            and all(f"{{{name}}}" in op.operator for name in keywords)
            and not _complex_scalars(node)
        ):
            return op.operator.format(*map(_tight, texts), **keywords)
        return f"{self.function(node, texts)}({call_text(texts, keywords)})"

    def function(self, node: Node, texts: list[str]) -> str:
        """The text of the function to call; may put the array module in front of the arguments."""
        op = node.op
        scalars = all(isinstance(value.type, ScalarType) for value in node.inputs)
        if scalars and op.python is not None and "dtype" not in node.attrs:
            name = getattr(op.python, "__name__", "")
            if getattr(builtins, name, None) is op.python:
                return name
            return self.helper(op, op.python)
        if isinstance(op.numpy, str):
            return f"{self.module('np')}.{op.numpy}"
        assert op.numpy is not None, op
        texts.insert(0, self.module("np"))
        return self.helper(op, op.numpy)

    def free(self, node: Node, dying: Iterable[Value]) -> None:
        """Delete the names of dead arrays, of a buffer that was taken over only afterwards."""
        kept = self.scope.kept
        dead = [value for value in dying if self.deletable(value) and value not in kept]
        for value in node.outputs if self.takeovers else ():
            taken = self.takeovers.get(value)
            if taken is not None and self.deletable(taken):
                dead.append(taken)
        if dead:
            self.line(f"del {', '.join(self.text[value] for value in dead)}", node)
            self.locals.difference_update(dead)

    def is_given(self, value: Value, node: Node) -> bool:
        """Whether the regions of this node may write the memory of an operand, and return it."""
        plan = self.scope.plan
        return plan is not None and value in plan.given and self.scope.ends(value, node)

    def deletable(self, value: Value) -> bool:
        """It has a name here, and memory that nothing else has."""
        shared = value in self.scope.written or value in self.out
        return has_axes(value) and value in self.locals and not shared


def _of_bools(op: Op, texts: Sequence[str]) -> str:
    """What a person writes between Python's own bools; both sides are known already."""
    if op.name == "bitwise_xor" and "True" in texts:
        return f"not {texts[texts[0] == 'True']}"
    return f"{texts[0]} {WORDS[op.name]} {texts[1]}"


def word(text: str) -> str:
    """A name that goes into the source as it stands; nothing else may.

    Raises:
        OptionError: it is no name (only a graph that was not verified can have such an attr).
    """
    if identifier(text) != text or keyword.iskeyword(text):
        raise OptionError(f"{text!r} is no name")
    return text


def _tight(text: str) -> str:
    """The operand of an operator: a negative number needs parentheses."""
    return f"({text})" if text[0] == "-" else text


def _complex_scalars(node: Node) -> bool:
    """Operators on complex NumPy scalars round differently from the ufuncs (which use FMA)."""
    kinds = [value.type for value in node.inputs if isinstance(value.type, ArrayType)]
    return any(kind.dtype.kind == "c" for kind in kinds) and not any(kind.ndim for kind in kinds)


def call_text(texts: list[str], keywords: Mapping[str, str]) -> str:
    """What stands between the parentheses of a call."""
    return ", ".join([*texts, *(f"{name}={text}" for name, text in keywords.items())])


def copy_text(text: str, value: Value) -> str:
    """A copy in the same memory order (with one axis there is only one)."""
    several = isinstance(value.type, ArrayType) and value.type.ndim > 1
    return f'{text}.copy("K")' if several else f"{text}.copy()"


def _small_array(held: Any) -> str:
    if not isinstance(held, np.ndarray) or held.size > 8:
        return ""
    return f" = {held.tolist()}"


def _dtype(value: Value) -> np.dtype[Any]:
    assert isinstance(value.type, ArrayType)
    return value.type.dtype


def _mentioned(graph: Graph) -> Iterator[Any]:
    """The attrs and sizes that the lines of a graph mention, and those of its regions."""
    for node in graph.nodes:
        yield node.attrs
        if node.op.name == "scan":
            yield from (value.shape for value in node.outputs)
        if node.op.name != "kernel":  # which is not written here
            for _, region in node.regions:
                yield from _mentioned(region)


def _dims_of(attr: Any) -> set[str]:
    """The named dimensions that an attr mentions."""
    if isinstance(attr, Dim):
        return attr.names()
    if isinstance(attr, ArrayType):
        attr = attr.shape
    if isinstance(attr, Mapping):
        attr = tuple(attr.values())
    if isinstance(attr, slice):
        attr = (attr.start, attr.stop, attr.step)
    if isinstance(attr, tuple | list):
        return set[str]().union(*map(_dims_of, attr))
    return set()
