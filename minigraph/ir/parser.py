"""Text to graph, by the grammar at the top of `ir/graph.py`: a tokenizer and recursive descent.

Regions within regions are read by a loop over generators, so nothing recurses over the graph.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Generator, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from minigraph.errors import TextError, nearest

from .attrs import OPERAND
from .dims import parse_dim
from .graph import Graph, Node, Op, Signature, Value
from .literals import Raw, read_constant, read_number
from .printer import NAME
from .tree import LEAF, Branch, Static, Tree
from .types import LONG, Type, parse_type

DEEPEST = 100  # brackets within brackets

_TOKEN = re.compile(
    rf"""\s*(?:\#[^\n]*\s*)*(?:
      (?P<value>    % (?: [0-9]{{1,18}} | {NAME} )? )
    | (?P<string>   b? (?: '(?:[^'\\\n]|\\.)*' | "(?:[^"\\\n]|\\.)*" ) )
    | (?P<type>     (?:{"|".join(LONG)}) \[ [^\[\]\n]* \] )
    | (?P<angle>    < [^<>\n]* > )
    | (?P<number>   -? (?: 0x[0-9a-f]+ | [0-9]+ (?:\.[0-9]*)? (?:e[-+]?[0-9]+)? ) | -(?:inf|nan)\b )
    | (?P<name>     \*{{0,2}} {NAME} )
    | (?P<mark>     \.\.\. | [(){{}}\[\],=:] )
    | (?P<end>      \Z )
    | (?P<wrong>    . )
    )""",
    re.VERBOSE,
)


def parse_graph(
    text: str, ops: Mapping[str, Op], constants: Mapping[str, Any] | None = None
) -> Graph:
    """Read back what `str(graph)` prints.

    Args:
        text: the text form.
        ops: the ops that the text may name.
        constants: the arrays that the text names by digest (`graph.constants` has them).

    Raises:
        TextError: the text does not follow the grammar; says where, what was expected and what
            stands there.
    """
    reader = _Reader(text, ops, constants or {})
    pending, done = [reader.graph()], None
    while pending:
        try:
            pending[-1].send(done)
            pending.append(reader.graph())  # it stands before a region
            done = None
        except StopIteration as stop:
            pending.pop()
            done = stop.value
    if reader.kind != "end":
        reader.fail("the end of the text")
    assert done is not None
    return done


_Item = TypeVar("_Item")

# Yields where a region stands in the text, is sent the region, returns the graph.
_Graphs = Generator[None, Graph | None, Graph]


class _Reader:
    """The tokens of a text and the place reached among them."""

    def __init__(self, text: str, ops: Mapping[str, Op], constants: Mapping[str, Any]) -> None:
        self.text = text
        self.ops = ops
        self.constants = constants
        self.tokens = [
            (match.lastgroup or "", match[match.lastgroup or 0], match.start(match.lastgroup or 0))
            for match in _TOKEN.finditer(text)
        ]
        self.at = 0
        self.kind, self.word, self.start = self.tokens[0]
        # Numbers in the text are ids; values with a name and nodes get ids above them.
        self.next_id = 1 + max(
            (int(word[1:]) for kind, word, _ in self.tokens if kind == "value" and _is_id(word)),
            default=-1,
        )

    # ---- tokens

    def advance(self) -> str:
        """Step over a token and return it."""
        word = self.word
        self.at += 1
        self.kind, self.word, self.start = self.tokens[min(self.at, len(self.tokens) - 1)]
        return word

    def stands(self, *words: str) -> bool:
        """Whether one of the words stands here (strings stand with their quotes)."""
        return self.word in words

    def accept(self, mark: str) -> bool:
        """Step over a mark if it stands here."""
        if self.word != mark or self.kind != "mark":
            return False
        self.advance()
        return True

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.fail(repr(mark))

    def take(self, kind: str, expected: str) -> str:
        if self.kind != kind:
            self.fail(expected)
        return self.advance()

    def on_new_line(self) -> bool:
        """Whether a line ends between the last token and this one."""
        _, word, start = self.tokens[self.at - 1]
        return "\n" in self.text[start + len(word) : self.start]

    def following(self) -> str:
        """The word after this one."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)][1]

    def items(self, closing: str, read: Callable[[], Any]) -> tuple[list[Any], bool]:
        """What stands between brackets, and whether a comma ends it."""
        found: list[Any] = []
        comma = False
        while not self.accept(closing):
            if found and not comma:
                self.fail(f"',' or '{closing}'")
            found.append(read())
            comma = self.accept(",")
        return found, comma

    def separated(self, read: Callable[[], _Item]) -> list[_Item]:
        """One or more, with commas between them."""
        found = [read()]
        while self.accept(","):
            found.append(read())
        return found

    def fail(self, expected: str, instead: str = "") -> NoReturn:
        """Raise the error for the token that stands here."""
        found = "the end of the text" if self.kind == "end" else repr(self.word)
        if self.stands("'", '"'):
            found = "a string that does not end"
        self.error(f"expected {expected}, found {found}", self.start, len(self.word), instead)

    def error(self, fact: str, start: int, width: int = 1, instead: str = "") -> NoReturn:
        """Raise an error about a place in the text, which it shows."""
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1)
        shown = self.text.split("\n")[line - 1]
        first = max(0, column - 70)  # of a long line, what stands around the place
        shown = shown[first : column + 30]
        width = max(1, min(width, len(shown) - (column - first)))
        raise TextError(
            f"line {line}, column {column + 1}: {fact}\n"
            f"      {shown}\n      {' ' * (column - first)}{'^' * width}",
            instead=instead,
        )

    def convert(self, place: tuple[int, int], read: Callable[..., Any], *args: Any) -> Any:
        """`read(*args)`, its ValueError as an error about the place (start, width)."""
        try:
            return read(*args)
        except (ValueError, SyntaxError, OverflowError) as problem:
            self.error(str(problem), *place)

    def since(self, start: int) -> tuple[int, int]:
        """The place (start, width) of what was read from `start` on."""
        _, word, last = self.tokens[self.at - 1]
        return start, max(1, last + len(word) - start)

    def fresh_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    # ---- graphs and nodes

    def graph(self) -> _Graphs:
        if not self.stands("graph", "program"):
            self.fail("'graph' or 'program'")
        program = self.advance() == "program"
        name = self.graph_name()
        scope: dict[str, Value] = {}

        def typed() -> Value:
            return self.definition(scope)

        self.expect("(")
        params, _ = self.items(")", lambda: self.param(typed))
        captures: list[str] = []
        if self.stands("captures"):
            self.advance()
            self.expect("(")
            self.items(")", lambda: captures.append(self.capture(typed)))
        inputs = list(scope.values())
        nodes: list[Node] = []
        self.expect("{")
        while not self.stands("return"):
            if self.kind not in ("value", "name"):
                self.fail("a node or 'return'")
            nodes.append((yield from self.node(scope)))
            if not self.on_new_line():
                self.fail("the end of the line")
        self.advance()
        outputs: list[Value] = []
        result = self.tree(lambda: outputs.append(self.use(scope)))
        self.expect("}")
        return Graph(name, inputs, nodes, outputs, Signature(params, captures, result, program))

    def graph_name(self) -> str:
        if self.kind == "string":
            return self.string()
        if self.kind not in ("name", "angle"):
            self.fail("the name of the graph")
        return self.advance()

    def param(self, typed: Callable[[], Value]) -> tuple[str, Tree]:
        name = None
        if self.kind == "mark" and self.stands("="):
            name = ""
        elif self.kind in ("name", "number") and self.following() == "=":
            name = self.advance()
        if name is not None:
            self.expect("=")
            return name, self.tree(typed)
        if self.kind != "value":
            self.fail("a parameter")
        value = typed()
        return value.hint or "", LEAF

    def capture(self, typed: Callable[[], Value]) -> str:
        typed()
        self.expect("=")
        if self.kind != "string" or self.word[0] == "b":
            self.fail("the path of the captured array, in quotes")
        return self.string()

    def node(self, scope: dict[str, Value]) -> Generator[None, Graph | None, Node]:
        names: list[tuple[str, int]] = []
        if self.kind == "value":
            names = self.separated(lambda: self.new_name(scope))
            self.expect("=")
        op = self.op()
        inputs: list[Value] = []
        literal: tuple[Raw, bool] | None = None
        start = self.start
        if op.name == "const":
            literal = self.constant()
        elif self.kind == "value" and not self.on_new_line():
            inputs = self.separated(lambda: self.use(scope))
        literal_place = self.since(start)
        attrs: dict[str, Any] = {}
        if self.stands("{") and not self.on_new_line():
            attrs = yield from self.attrs()
        types = self.types(len(names)) if names else []
        if literal is not None:
            if len(types) != 1:
                self.error("a constant is one value", *literal_place)
            value = self.convert(literal_place, read_constant, *literal, types[0], self.constants)
            attrs = {"value": value, **attrs}
        outputs = [
            self.define(scope, name, start, type)
            for (name, start), type in zip(names, types, strict=True)
        ]
        return Node(self.fresh_id(), op, inputs, attrs, outputs)

    def attrs(self) -> Generator[None, Graph | None, dict[str, Any]]:
        found: dict[str, Any] = {}
        self.expect("{")
        while True:
            start = self.start
            name = self.take("name", "the name of an attr")
            if name in found:
                self.error(f"the attr {name} stands twice", *self.since(start))
            self.expect("=")
            if self.stands("graph", "program"):
                found[name] = yield
            else:
                found[name] = self.attr(0)
            if self.accept("}"):
                return found
            if not self.accept(","):
                self.fail("',' or '}'")

    def types(self, count: int) -> list[Type]:
        if not self.accept(":"):
            self.fail("':' and the type")
        start = self.start
        found = self.separated(self.type)
        if len(found) != count:
            self.error(f"{len(found)} types for {count} values", *self.since(start))
        return found

    def op(self) -> Op:
        if self.kind != "name":
            self.fail("an op")
        op = self.ops.get(self.word)
        if op is None:
            near = nearest(self.word, self.ops)
            self.fail("an op", f"did you mean {near!r}?" if near else "")
        self.advance()
        return op

    # ---- values and types

    def value_name(self) -> str:
        if self.stands("%") or self.kind != "value":
            self.fail("a value such as %x")
        word = self.advance()[1:]
        return str(int(word)) if word.isdecimal() else word

    def new_name(self, scope: Mapping[str, Value]) -> tuple[str, int]:
        start, width = self.start, len(self.word)
        name = self.value_name()
        if name in scope:
            self.error(f"%{name} is defined a second time", start, width)
        return name, start

    def define(self, scope: dict[str, Value], name: str, start: int, type: Type) -> Value:
        if name in scope:
            self.error(f"%{name} is defined a second time", start, len(name) + 1)
        numbered = name.isdecimal()
        id = int(name) if numbered else self.fresh_id()
        value = scope[name] = Value(id, type, None if numbered else name)
        return value

    def definition(self, scope: dict[str, Value]) -> Value:
        """`%x: f32[2]`."""
        name, start = self.new_name(scope)
        self.expect(":")
        return self.define(scope, name, start, self.type())

    def use(self, scope: Mapping[str, Value]) -> Value:
        start, width = self.start, len(self.word)
        name = self.value_name()
        value = scope.get(name)
        if value is None:
            near = nearest(name, scope)
            instead = f"did you mean %{near}?" if near else ""
            self.error(f"%{name} is not defined above", start, width, instead)
        return value

    def type(self) -> Type:
        if self.kind not in ("type", "name"):
            self.fail("a type such as f32[2,n]")
        try:
            found = parse_type(self.word)
        except ValueError:
            self.fail("a type such as f32[2,n]")
        self.advance()
        return found

    # ---- attrs

    def attr(self, depth: int) -> Any:
        """An attr that is no graph."""
        if self.kind == "mark" and self.stands(":"):
            return self.slice(None, depth)
        found = self.single(depth)
        if self.kind == "mark" and self.stands(":"):
            return self.slice(found, depth)
        return found

    def slice(self, start: Any, depth: int) -> slice:
        parts = [start, None, None]
        for position in (1, 2):
            if not self.accept(":"):
                break
            if self.kind != "mark" or self.stands("(", "[", "..."):
                parts[position] = self.single(depth)
        return slice(*parts)

    def single(self, depth: int) -> Any:
        if depth > DEEPEST:
            self.error(f"brackets within brackets, more than {DEEPEST}", self.start)
        kind, word, start = self.kind, self.word, self.start
        if kind == "mark" and word in ("(", "["):
            self.advance()
            closing = ")" if word == "(" else "]"
            found, comma = self.items(closing, lambda: self.attr(depth + 1))
            if word == "(" and len(found) == 1 and not comma:
                self.error("a tuple of one element ends with a comma: (x,)", start)
            return tuple(found) if word == "(" else found
        if kind == "string":
            return self.string()
        if word == "...":
            self.advance()
            return Ellipsis
        if word == "%":
            self.advance()
            return OPERAND
        if kind == "angle" and not word.startswith("<hex:"):
            self.advance()
            read = parse_type if "[" in word else parse_dim
            return self.convert(self.since(start), read, word[1:-1])
        if word in LONG:
            self.advance()
            return np.dtype(LONG[word])
        if word.startswith("py.") and kind == "name":
            self.advance()
            return self.convert(self.since(start), parse_type, word[3:])
        if word == "None":
            self.advance()
            return None
        return self.number("an attr")

    # ---- literals

    def string(self) -> Any:
        start, word = self.start, self.advance()
        return self.convert(self.since(start), ast.literal_eval, word)

    def number(self, expected: str) -> complex:
        start, raw = self.start, self.raw_number(expected)
        return self.convert(self.since(start), read_number, raw)

    def raw_number(self, expected: str) -> Raw:
        if self.stands("complex") and self.following() == "(":
            self.advance()
            self.expect("(")
            real = self.raw_part()
            self.expect(",")
            imaginary = self.raw_part()
            self.expect(")")
            return real, imaginary
        if self.kind == "number" or self.stands("True", "False", "inf", "nan"):
            return self.advance()
        if self.kind == "angle" and self.word.startswith("<hex:"):
            return self.advance()
        self.fail(expected)

    def raw_part(self) -> str:
        if self.kind != "number" and not self.stands("inf", "nan"):
            self.fail("a number")
        return self.advance()

    def constant(self) -> tuple[Raw, bool]:
        """The literal of a constant, and whether it is written `array(..)`."""
        if self.stands("array") and self.following() == "(":
            self.advance()
            self.expect("(")
            found = self.raw_number("a number")
            self.expect(")")
            return found, True
        if self.kind == "angle" and self.word.startswith("<sha256:"):
            return self.advance(), False
        return self.raw(0), False

    def raw(self, depth: int) -> Raw:
        if depth > DEEPEST:
            self.error(f"brackets within brackets, more than {DEEPEST}", self.start)
        if self.accept("["):
            return self.items("]", lambda: self.raw(depth + 1))[0]
        return self.raw_number("a number or a list of numbers")

    # ---- trees

    def tree(self, leaf: Callable[[], object], depth: int = 0) -> Tree:
        """The structure of an argument or a result; `leaf` reads each value."""
        if depth > DEEPEST:
            self.error(f"brackets within brackets, more than {DEEPEST}", self.start)

        def child() -> Tree:
            return self.tree(leaf, depth + 1)

        def pair() -> tuple[Any, Tree]:
            key = self.static("a key")
            self.expect(":")
            return key, child()

        def field() -> tuple[str, Tree]:
            name = self.take("name", "the name of a field")
            self.expect("=")
            return name, child()

        if self.kind == "value":
            leaf()
            return LEAF
        start = self.start
        if self.accept("("):
            children, comma = self.items(")", child)
            if len(children) == 1 and not comma:
                self.error("a tuple of one element ends with a comma: (%x,)", start)
            return Branch(tuple, range(len(children)), children)
        if self.accept("["):
            children, _ = self.items("]", child)
            return Branch(list, range(len(children)), children)
        if self.accept("{"):
            pairs, _ = self.items("}", pair)
            return Branch(dict, [key for key, _ in pairs], [below for _, below in pairs])
        if self.kind == "name" and self.following() == "(" and not self.stands("complex"):
            name = self.advance()
            self.expect("(")
            pairs, _ = self.items(")", field)
            return Branch(None, [key for key, _ in pairs], [below for _, below in pairs], name)
        found = self.static("a value or a literal")
        return found if isinstance(found, Static) else Static(found)

    def static(self, expected: str) -> Any:
        """A literal, or a `Static` of unknown value for `<Name>`."""
        if self.kind == "string":
            return self.string()
        if self.kind == "angle" and not self.word.startswith("<hex:"):
            return Static(None, self.advance())
        if self.stands("None"):
            self.advance()
            return None
        return self.number(expected)


def _is_id(word: str) -> bool:
    return word[1:].isdecimal()
