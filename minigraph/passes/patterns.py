"""Patterns over expressions, written as the expressions they match.

    negative(negative(x))      calls are ops by name; a small letter is any value
    maximum(x, x)              the same letter is the same value
    add(add(x, C), D)          a capital letter is any constant
    multiply(x, 1)             a number is a constant that has this value in every element:
                               0 is not -0.0, and True is a bool
    transpose(x, ...)          `...` lets the node have attrs; without it, it may have none

The operands of a commutative op match in either order.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Mapping
from typing import Any

from minigraph.errors import OptionError
from minigraph.ir import Node, Value
from minigraph.ops import ANNOTATIONS, OPS


class Call:
    """An op applied to patterns."""

    __slots__ = ("any_attrs", "arguments", "cheapest_first", "op", "text")

    def __init__(self, op: str, arguments: tuple[Pattern, ...], any_attrs: bool, text: str) -> None:
        self.op = op
        self.arguments = arguments
        self.any_attrs = any_attrs
        self.text = text
        cost = {Literal: 0, Constant: 1, Call: 2, Variable: 3}
        order = sorted(range(len(arguments)), key=lambda i: cost[type(arguments[i])])
        self.cheapest_first = tuple((position, arguments[position]) for position in order)


class Variable:
    """Any value; the same one wherever the name occurs."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Constant:
    """Any constant."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Literal:
    """A constant with this number in every element."""

    __slots__ = ("number",)

    def __init__(self, number: complex) -> None:
        self.number = number

    def equals(self, number: Any) -> bool:
        """Equal as a number, with the sign of zero; a bool equals bools only."""
        if type(self.number) is bool:
            return number is self.number
        if number != self.number:
            return False
        return number != 0 or _signs_of_zero(number) == _signs_of_zero(self.number)


def _signs_of_zero(number: complex) -> tuple[float, float]:
    return math.copysign(1.0, number.real), math.copysign(1.0, number.imag)


Pattern = Call | Variable | Constant | Literal


def parse_pattern(text: str) -> Pattern:
    """Read a pattern.

    Raises:
        OptionError: it is none, or names an op that does not exist.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise OptionError(f"not a pattern: {text!r}", instead="multiply(x, 1)") from error
    return _read(tree, text)


def _read(tree: ast.expr, text: str) -> Pattern:
    """One pattern of a Python expression; `text` is the whole, for the message."""
    match tree:
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in OPS:
                raise OptionError(f"the pattern {text!r} names {name}, which is no op")
            rest = [each for each in arguments if not _is_ellipsis(each)]
            patterns = tuple(_read(each, text) for each in rest)
            return Call(name, patterns, len(rest) < len(arguments), ast.unparse(tree))
        case ast.Name(id=name) if len(name) == 1 and name.isalpha():
            return Constant(name) if name.isupper() else Variable(name)
        case ast.Constant(value=bool() | int() | float() as number):
            return Literal(number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return Literal(-number)
        case _:
            raise OptionError(
                f"{ast.unparse(tree)!r} cannot stand in the pattern {text!r}",
                instead="a call of an op, a letter, a number or ...",
            )


def _is_ellipsis(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Constant) and tree.value is Ellipsis


def orders(pattern: Pattern) -> list[Pattern]:
    """The pattern with the operands of commutative ops in every order that makes a difference."""
    if not isinstance(pattern, Call):
        return [pattern]
    choices = list(itertools.product(*(orders(each) for each in pattern.arguments)))
    if OPS[pattern.op].commutative and len(set(map(_text, pattern.arguments))) > 1:
        choices += [tuple(reversed(arguments)) for arguments in choices]
    return [Call(pattern.op, each, pattern.any_attrs, pattern.text) for each in choices]


def _text(pattern: Pattern) -> str:
    match pattern:
        case Call():
            return pattern.text
        case Literal():
            return repr(pattern.number)
        case _:
            return pattern.name


def has_literal(pattern: Pattern) -> bool:
    """Whether a number stands in it."""
    if isinstance(pattern, Call):
        return any(has_literal(each) for each in pattern.arguments)
    return isinstance(pattern, Literal)


class Found:
    """What a pattern matched: values by letter, values of its inner calls by text, the nodes."""

    __slots__ = ("nodes", "parts", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.parts: dict[str, Value] = {}
        self.nodes: list[Node] = []


class Scope:
    """The nodes that a pattern may look at: those that stand before the one in question.

    Attributes:
        producers: the node of each value.
        constants: the value of each constant; numbers: of those with one number throughout, that.
    """

    __slots__ = ("constants", "numbers", "producers")

    def __init__(self) -> None:
        self.producers: dict[Value, Node] = {}
        self.constants: dict[Value, Any] = {}
        self.numbers: dict[Value, Any] = {}

    def add(self, node: Node) -> None:
        for value in node.outputs:
            self.producers[value] = node
        if node.op.name == "const":
            self.constants[node.output] = node.attrs["value"]
            number = uniform_number(node.attrs["value"])
            if number is not None:
                self.numbers[node.output] = number


def uniform_number(constant: Any) -> Any:
    """The Python number that every element is, bit for bit; None if there is no such number."""
    if type(constant) in (bool, int, float, complex):
        return constant
    if not constant.size:
        return None
    first: bytes = constant[(0,) * constant.ndim].tobytes()
    last: bytes = constant[(-1,) * constant.ndim].tobytes()
    if first != last or constant.tobytes() != first * constant.size:
        return None
    return constant[(0,) * constant.ndim].item()


def find(pattern: Call, node: Node, scope: Scope) -> Found | None:
    """Match a pattern against a node; None if it does not."""
    found = Found()
    return found if _matches_node(pattern, node, scope, found) else None


def _matches_node(pattern: Call, node: Node, scope: Scope, found: Found) -> bool:
    if node.op.name != pattern.op or len(node.inputs) != len(pattern.arguments):
        return False
    if node.attrs and not pattern.any_attrs and not _annotations_only(node.attrs):
        return False
    found.nodes.append(node)
    inputs = node.inputs
    return all(
        _matches(argument, inputs[position], scope, found)
        for position, argument in pattern.cheapest_first
    )


def _annotations_only(attrs: Mapping[str, Any]) -> bool:
    return all(name in ANNOTATIONS for name in attrs)


def _matches(pattern: Pattern, value: Value, scope: Scope, found: Found) -> bool:
    match pattern:
        case Variable():
            return found.values.setdefault(pattern.name, value) is value
        case Literal():
            return value in scope.numbers and pattern.equals(scope.numbers[value])
        case Constant():
            return value in scope.constants and (
                found.values.setdefault(pattern.name, value) is value
            )
        case Call():
            node = scope.producers.get(value)
            if node is None or not _matches_node(pattern, node, scope, found):
                return False
            found.parts[pattern.text] = value
            return len(node.outputs) == 1
