"""`match` on plain values as `if`: literals, names with dots, `|`, captures and `_`.

match kind:                   if kind == "relu":
    case "relu":                  return np.maximum(x, 0)
        return ...       ->   else:
    case _:                       return x
        return x
"""

from __future__ import annotations

import ast
from typing import Any

from .names import FreshNames


class Patterns(ast.NodeTransformer):
    """Rewrites each `match` of a function that has only such patterns."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names

    def visit_FunctionDef(self, node: Any) -> Any:
        return node  # a function of its own

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """The chain of conditions, or the statement itself."""
        self.generic_visit(node)
        subject = node.subject
        first: list[ast.stmt] = []
        if not isinstance(subject, ast.Name):
            name = self._names.fresh("subject")
            first = [ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], subject), node)]
            subject = ast.copy_location(ast.Name(name, ast.Load()), subject)
        otherwise: list[ast.stmt] = []
        for case in reversed(node.cases):
            made = _case(case, subject, otherwise)
            if made is None:
                return node
            otherwise = made
        return first + otherwise


def _case(
    case: ast.match_case, subject: ast.expr, otherwise: list[ast.stmt]
) -> list[ast.stmt] | None:
    test = _test(case.pattern, subject)
    if test is not None:
        if case.guard is not None:
            test = ast.BoolOp(ast.And(), [test, case.guard])
        return [_if(test, case.body, otherwise, case)]
    if not isinstance(case.pattern, ast.MatchAs) or case.pattern.pattern is not None:
        return None
    bind: list[ast.stmt] = []
    if case.pattern.name is not None:
        target = ast.Name(case.pattern.name, ast.Store())
        bind = [ast.copy_location(ast.Assign([target], subject), case.pattern)]
    if case.guard is None:
        return bind + case.body
    return [*bind, _if(case.guard, case.body, otherwise, case)]


def _test(pattern: ast.pattern, subject: ast.expr) -> ast.expr | None:
    """Whether a value fits; None for patterns that are no plain values."""
    match pattern:
        case ast.MatchValue(value=value):
            test: ast.expr = ast.Compare(subject, [ast.Eq()], [value])
        case ast.MatchSingleton(value=value):
            test = ast.Compare(subject, [ast.Is()], [ast.Constant(value)])
        case ast.MatchOr(patterns=patterns):
            tests = [_test(each, subject) for each in patterns]
            if any(each is None for each in tests):
                return None
            test = ast.BoolOp(ast.Or(), [each for each in tests if each is not None])
        case _:
            return None
    return ast.copy_location(test, pattern)


def _if(
    test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], case: ast.match_case
) -> ast.stmt:
    place = case.pattern
    return ast.copy_location(ast.If(ast.copy_location(test, place), body, orelse), place)
