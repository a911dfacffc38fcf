"""Converted functions: as Python that can be read, and as code that runs."""

from __future__ import annotations

import ast
import copy
import types
import weakref
from collections.abc import Collection
from dataclasses import dataclass

from minigraph.errors import ScriptError
from minigraph.ir import Loc

from .convert import convert
from .expressions import Expressions
from .names import Function
from .nodes import is_generated
from .source import bare, build, find


@dataclass(frozen=True, eq=False)
class Converted:
    """A function whose control flow is functions and calls.

    Attributes:
        node: the statements; the words for expressions are not in them.
        code: what runs, with the words in.
    """

    node: Function
    code: types.CodeType


_known: dict[int, tuple[weakref.ref[types.CodeType], Converted]] = {}


def converted(code: types.CodeType) -> Converted:
    """The converted function for a code object (once for each).

    Raises:
        SourceError: its text is not to be found.
        ScriptError: something in it is not converted.
    """
    known = _known.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    try:
        found = _convert(code)
    except RecursionError:  # the trees of statements are walked from each to those inside of it
        raise ScriptError(
            f"the statements of {code.co_name} are nested too deep; each `elif`, and what follows "
            "after an early `return`, is within the branch before",
            where=Loc(code.co_filename, code.co_firstlineno),
            instead="a table that is indexed, or a function for a part of it",
        ) from None
    _known[id(code)] = (weakref.ref(code, lambda _: _known.pop(id(code), None)), found)
    _note(found.code)
    return found


def _convert(code: types.CodeType) -> Converted:
    source = find(code)
    node = convert(copy.deepcopy(source.node), code.co_filename)
    runs = bare(Expressions().visit(copy.deepcopy(node)))
    blocks = {each.name for each in ast.walk(runs) if is_generated(each)}
    made = _renamed(build(source, ast.fix_missing_locations(runs), code), blocks, code.co_name)
    return Converted(node, made.replace(co_qualname=code.co_qualname))


_made: dict[int, weakref.ref[types.CodeType]] = {}  # converted code, also that of inner functions


def _note(code: types.CodeType) -> None:
    _made[id(code)] = weakref.ref(code, lambda _: _made.pop(id(code), None))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            _note(const)


def is_converted(code: types.CodeType) -> bool:
    """It is what a conversion has made, or a function inside of that."""
    known = _made.get(id(code))
    return known is not None and known() is code


def in_place(node: ast.FunctionDef, filename: str) -> ast.FunctionDef:
    """A function of a program that is compiled as a whole, converted; it keeps its decorators.

    Raises:
        ScriptError: something in it is not converted.
    """
    made = Expressions().visit(convert(node, filename))
    return ast.fix_missing_locations(made)


def _renamed(code: types.CodeType, blocks: Collection[str], function: str) -> types.CodeType:
    """Blocks are called as the function that they are of, in tracebacks and in graphs."""
    name = function if code.co_name in blocks else code.co_name
    consts = tuple(
        _renamed(each, blocks, name) if isinstance(each, types.CodeType) else each
        for each in code.co_consts
    )
    return code.replace(co_name=name, co_consts=consts)


def to_text(code: types.CodeType) -> str:
    """Converted code as Python, each line with the line that it comes from."""
    node = converted(code).node
    if isinstance(node, ast.Lambda):
        lines = [(ast.unparse(node), node.lineno)]
    else:
        lines = list(_lines(node, ""))
    width = min(max(len(text) for text, _ in lines), _WIDTH)
    return "".join(f"{text:<{width}}  # line {line}\n" for text, line in lines)


_WIDTH = 70
_Line = tuple[str, int]


def _lines(statement: ast.stmt, indent: str) -> list[_Line]:
    """The lines of a statement, and of those inside of it."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    if not body or isinstance(statement, ast.Match | ast.Try | ast.TryStar):
        return [(indent + text, statement.lineno) for text in _text(statement).splitlines()]
    made = copy.copy(statement)
    made.body = [ast.Pass()]  # type: ignore[attr-defined]
    if hasattr(made, "orelse"):
        made.orelse = []  # type: ignore[attr-defined]
    *head, _ = _text(made).splitlines()
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    places = [*(each.lineno for each in decorators), statement.lineno]
    lines = [(indent + text, line) for text, line in zip(head, places, strict=True)]
    lines += [line for each in body for line in _lines(each, indent + "    ")]
    orelse: list[ast.stmt] = getattr(statement, "orelse", [])
    if orelse:
        lines.append((f"{indent}else:", orelse[0].lineno))
        lines += [line for each in orelse for line in _lines(each, indent + "    ")]
    return lines


def _text(statement: ast.stmt) -> str:
    shown = _Shown().visit(copy.deepcopy(statement))
    return ast.unparse(ast.fix_missing_locations(shown))


class _Shown(ast.NodeTransformer):
    """Leaves out the keywords that are for messages."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [each for each in node.keywords if not getattr(each, "hidden", False)]
        return self.generic_visit(node)
