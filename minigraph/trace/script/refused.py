"""What is refused when a function is converted, and what is kept as Python.

Refused is what would mean something else in converted code.  `try`, a `with` that swallows
exceptions, and patterns of `match` other than plain values are kept, with all inside them and all
that their jumps cross: exact, but Python itself has to know each condition there.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from minigraph.errors import ScriptError
from minigraph.ir import Loc

from .jumps import Loop, blocks_of, jumps_out_of
from .names import Function, body_of, walk_scope

_FRAME_READERS = {
    "locals": "name the variables",
    "vars": "vars(thing), or name the variables",
    "dir": "dir(thing)",
    "eval": "write the expression itself",
    "exec": "write the statements themselves",
}
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.AsyncFor: ("async code is not converted", "an ordinary loop"),
    ast.AsyncWith: ("async code is not converted", "an ordinary `with`"),
    ast.Await: ("async code is not converted", "an ordinary call"),
    ast.Yield: ("a generator is not converted", "return a list or an array"),
    ast.YieldFrom: ("a generator is not converted", "return a list or an array"),
    ast.Global: ("a global is assigned here", "return the value, or write into an array"),
    ast.Nonlocal: (
        "a variable of the function around is assigned here",
        "return the value, or write into an array",
    ),
}
_SWALLOW = ("suppress", "raises", "assertRaises", "warns", "deprecated_call")


def refuse(function: Function, filename: str) -> None:
    """Look for what is not converted.

    Raises:
        ScriptError: there is something; file, line, caret, and what to write.
    """
    if isinstance(function, ast.AsyncFunctionDef):
        raise _error("async code is not converted", "an ordinary function", function, filename)
    for statement in body_of(function):
        for node in walk_scope(statement):
            found = _REFUSED.get(type(node))
            if found is not None:
                raise _error(*found, node, filename)
            if isinstance(node, ast.Call):
                _refuse_call(node, filename)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                _refuse_inside(node, filename)


def _refuse_call(node: ast.Call, filename: str) -> None:
    if not isinstance(node.func, ast.Name) or node.func.id not in _FRAME_READERS:
        return
    if node.func.id in ("vars", "dir") and node.args:
        return
    fact = f"{node.func.id}() sees the variables of converted code, which are not yours"
    raise _error(fact, _FRAME_READERS[node.func.id], node, filename)


def _refuse_inside(function: Function, filename: str) -> None:
    """A function made inside may be a generator, but may not assign variables around it."""
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            raise _error(*_REFUSED[type(node)], node, filename)


def is_convertible(function: Function) -> bool:
    """A function made inside of another is converted with it; generators stay as they are."""
    own = (each for statement in body_of(function) for each in walk_scope(statement))
    generator = (ast.Yield, ast.YieldFrom, ast.Await)
    return not isinstance(function, ast.AsyncFunctionDef) and not any(
        isinstance(node, generator) for node in own
    )


def _error(fact: str, instead: str, node: ast.AST, filename: str) -> ScriptError:
    return ScriptError(fact, where=place_of(node, filename), instead=instead)


def place_of(node: ast.AST, filename: str) -> Loc:
    """The place of a node in the user's file."""
    line: int = getattr(node, "lineno", 1)
    end = node.end_col_offset if getattr(node, "end_lineno", line) == line else None  # type: ignore[attr-defined]
    return Loc(filename, line, getattr(node, "col_offset", None), end)


# ---- what stays Python -------------------------------------------------------------------------


def keep(statements: Sequence[ast.stmt], around: tuple[ast.stmt, ...] = ()) -> None:
    """Mark what is kept with the reason (`kept`)."""
    for statement in statements:
        reason = _reason(statement)
        if not reason:
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                keep(blocks_of(statement), (*around, statement))
            continue
        _mark(statement, reason)
        leaving = jumps_out_of(statement)
        crossed: list[ast.stmt] = []
        if "return" in leaving:
            crossed = list(around)
        elif leaving:
            loops = [at for at, each in enumerate(around) if isinstance(each, Loop)]
            crossed = list(around[loops[-1] :])
        for each in crossed:
            _mark(each, f"a jump out of {reason}")


def _mark(statement: ast.stmt, reason: str) -> None:
    for node in walk_scope(statement):
        if isinstance(node, ast.stmt) and not getattr(node, "kept", ""):
            node.kept = reason  # type: ignore[attr-defined]


def _reason(statement: ast.stmt) -> str:
    match statement:
        case ast.Try() | ast.TryStar():
            return f"the `try` in line {statement.lineno}"
        case ast.Match():
            return f"the `match` in line {statement.lineno}"
        case ast.With():
            for item in statement.items:
                call = item.context_expr
                found = call.func if isinstance(call, ast.Call) else call
                name = getattr(found, "attr", getattr(found, "id", ""))
                if name in _SWALLOW:
                    return f"the `with` in line {statement.lineno}"
    return ""
