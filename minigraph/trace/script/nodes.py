"""Nodes of converted code: what stands for the words of this library, and what is not shown.

A word such as `mg.cond` is printed so and compiled as a look-up that the user's own names cannot
change.  `words.py` says what they do.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeGuard

RESERVED = "__minigraph__"
"""The global that compiled code finds the words in."""

SHOWN = "mg"


def word(name: str, *args: ast.expr, hidden: Sequence[ast.keyword] = ()) -> ast.Call:
    """A call of a word; the hidden keywords are compiled and not printed."""
    module = ast.Name(SHOWN, ast.Load())
    module.machinery = True  # type: ignore[attr-defined]
    for keyword in hidden:
        keyword.hidden = True  # type: ignore[attr-defined]
    return ast.Call(ast.Attribute(module, name, ast.Load()), list(args), list(hidden))


def is_word(node: ast.AST, name: str) -> bool:
    """The node is a call of this word."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and getattr(node.func.value, "machinery", False)
    )


def undefined(name: str, doubtful: bool) -> ast.expr:
    """What a name holds that has no value.

    Args:
        name: the variable.
        doubtful: it may be read all the same; that is then an error.
    """
    if doubtful:
        return word("undefined", ast.Constant(name))
    made = ast.Constant(None)
    made.guarded = name  # type: ignore[attr-defined]
    return made


def names_of(state: Sequence[str]) -> ast.keyword:
    """The hidden keyword that says what results are called."""
    return ast.keyword("names", ast.Tuple([ast.Constant(name) for name in state], ast.Load()))


def load(name: str) -> ast.expr:
    """The value of a variable."""
    return ast.Name(name, ast.Load())


def store(name: str, value: ast.expr) -> ast.stmt:
    """An assignment to a variable."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def together(values: Sequence[ast.expr]) -> ast.expr:
    """One value as it is, several as a tuple."""
    return values[0] if len(values) == 1 else ast.Tuple(list(values), ast.Load())


def put_into(state: Sequence[str], value: ast.expr) -> ast.stmt:
    """`a, b = value`, or the value alone."""
    if not state:
        return ast.Expr(value)
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in state]
    target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
    return ast.Assign([target], value)


def function(name: str, params: Sequence[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """A function with positional parameters."""
    made = ast.FunctionDef(name, arguments(params), list(body) or [ast.Pass()], [], None, None)
    made.generated = True  # type: ignore[attr-defined]
    return made


def is_generated(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """The node is a function that a block became."""
    return isinstance(node, ast.FunctionDef) and getattr(node, "generated", False)


def function_of(params: Sequence[str], value: ast.expr) -> ast.Lambda:
    """The same as a lambda."""
    made = ast.Lambda(arguments(params), value)
    made.generated = True  # type: ignore[attr-defined]
    return made


def arguments(params: Sequence[str]) -> ast.arguments:
    """Positional parameters."""
    return ast.arguments([], [ast.arg(name) for name in params], None, [], [], None, [])


def placed(node: Any, place: ast.AST) -> Any:
    """The node with a position in the user's file."""
    return ast.copy_location(node, place)
