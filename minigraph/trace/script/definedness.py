"""Whether a name has a value where it is read, on every way there (definite assignment).

The names for which that is not sure are marked: reading one is checked when the code runs.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .names import Function, Uses, body_of, header, local_names, parameters, walk_scope

Defined = frozenset[str] | None
"""The names that have a value; None where no way leads."""


class Definedness:
    """Follows the ways through one function.

    Attributes:
        doubtful: the names of which some read is not sure; each such `ast.Name` has `doubtful`.
    """

    def __init__(self, function: Function) -> None:
        self.doubtful: set[str] = set()
        self._locals = set(local_names(function))
        self._loops: list[tuple[list[Defined], list[Defined]]] = []  # at break, at continue
        own = frozenset(arg.arg for arg in parameters(function.args))
        if isinstance(function, ast.Lambda):
            self._reads(function.body, own)
        else:
            self._block(body_of(function), own)  # type: ignore[arg-type]

    def _block(self, statements: Sequence[ast.stmt], defined: Defined) -> Defined:
        for statement in statements:
            if defined is None:
                return None
            defined = self._statement(statement, defined)
        return defined

    def _statement(self, statement: ast.stmt, defined: frozenset[str]) -> Defined:
        match statement:
            case ast.If():
                defined = self._reads(statement.test, defined)
                then = self._block(statement.body, defined)
                return _meet(then, self._block(statement.orelse, defined))
            case ast.While():
                return self._while(statement, defined)
            case ast.For() | ast.AsyncFor():
                return self._for(statement, defined)
            case ast.With() | ast.AsyncWith():
                for item in statement.items:
                    defined = self._reads(item, defined)
                return self._block(statement.body, defined)
            case ast.Try() | ast.TryStar():
                return self._try(statement, defined)
            case ast.Match():
                return self._match(statement, defined)
            case ast.Break() | ast.Continue():
                breaks, continues = self._loops[-1]
                (breaks if isinstance(statement, ast.Break) else continues).append(defined)
                return None
            case ast.Return() | ast.Raise():
                self._reads(statement, defined)
                return None
            case ast.Delete():
                return self._reads(statement, defined) - _deleted(statement)
        return self._reads(statement, defined)

    def _while(self, statement: ast.While, defined: frozenset[str]) -> Defined:
        head = defined - _deleted(statement)
        tested = self._reads(statement.test, head)
        breaks: list[Defined] = []
        self._loops.append((breaks, []))
        self._block(statement.body, tested)
        self._loops.pop()
        endless = isinstance(statement.test, ast.Constant) and bool(statement.test.value)
        after = None if endless else self._block(statement.orelse, tested)
        return _meet(after, *breaks)

    def _for(self, statement: ast.For | ast.AsyncFor, defined: frozenset[str]) -> Defined:
        defined = self._reads(statement.iter, defined)
        head = defined - _deleted(statement)
        breaks: list[Defined] = []
        self._loops.append((breaks, []))
        self._block(statement.body, self._reads(statement.target, head))
        self._loops.pop()
        return _meet(self._block(statement.orelse, head), *breaks)

    def _try(self, statement: ast.Try | ast.TryStar, defined: frozenset[str]) -> Defined:
        start = defined - _deleted(*statement.body, *statement.orelse)
        body = self._block(statement.body, defined)
        after = None if body is None else self._block(statement.orelse, body)
        for handler in statement.handlers:
            inside = start if handler.type is None else self._reads(handler.type, start)
            own = {handler.name} if handler.name else set()
            left = self._block(handler.body, inside | own)
            after = _meet(after, None if left is None else left - own)
        if not statement.finalbody:
            return after
        last = self._block(statement.finalbody, defined - _deleted(statement))
        if last is None:
            return None
        return None if after is None else (after - _deleted(*statement.finalbody)) | last

    def _match(self, statement: ast.Match, defined: frozenset[str]) -> Defined:
        defined = self._reads(statement.subject, defined)
        after: Defined = defined
        for case in statement.cases:
            inside = defined | set(Uses(case.pattern).binds)
            if case.guard is not None:
                inside = self._reads(case.guard, inside)
            after = _meet(after, self._block(case.body, inside))
        return after

    def _reads(self, node: ast.AST, defined: frozenset[str]) -> frozenset[str]:
        """Mark what is read and may have no value; what is defined afterwards."""
        uses = header(node) if isinstance(node, ast.stmt) else Uses(node)
        # A function that is made now may be called at once: it reads what there is now.
        unsure = ((uses.reads | uses.deferred) & self._locals) - defined
        unsure -= _bound_by_expression(node)
        if unsure:
            self.doubtful |= unsure
            for each in ast.walk(node):
                if isinstance(each, ast.Name) and each.id in unsure:
                    each.doubtful = True  # type: ignore[attr-defined]
        sure = set(uses.binds) - _bound_lazily(node)
        return defined | sure


def _bound_by_expression(node: ast.AST) -> set[str]:
    """Names bound by `:=` for sure; the same expression may read them afterwards."""
    bound = {
        each.target.id for each in walk_scope(node) if isinstance(each, ast.NamedExpr)
    } - _bound_lazily(node)
    return bound


def _bound_lazily(node: ast.AST) -> set[str]:
    """Names bound by `:=` where it may not run: behind `and`, `or`, in a choice, in a loop."""
    found: set[str] = set()
    for each in walk_scope(node):
        parts: list[ast.expr] = []
        if isinstance(each, ast.BoolOp):
            parts = each.values[1:]
        elif isinstance(each, ast.IfExp):
            parts = [each.body, each.orelse]
        elif isinstance(each, ast.Compare):
            parts = each.comparators[1:]
        elif isinstance(each, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            parts = [each.elt, *(test for part in each.generators for test in part.ifs)]
        for part in parts:
            found |= {
                inner.target.id for inner in walk_scope(part) if isinstance(inner, ast.NamedExpr)
            }
    return found


def _deleted(*nodes: ast.AST) -> set[str]:
    """Names that a `del` (or the end of an `except ... as`) may take away."""
    found: set[str] = set()
    for node in nodes:
        for each in walk_scope(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Del):
                found.add(each.id)
            elif isinstance(each, ast.ExceptHandler) and each.name:
                found.add(each.name)
    return found


def _meet(*ways: Defined) -> Defined:
    """What has a value whichever way was taken."""
    met: Defined = None
    for way in ways:
        if way is not None:
            met = way if met is None else met & way
    return met
