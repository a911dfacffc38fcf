"""Expressions: what Python decides by itself becomes words, which can also record the choice.

    a if c else b      choose(c, lambda: a, lambda: b)
    a and b            both(a, lambda: b)
    not a              negate(a)
    a < b < c          chain(a, ("<", lambda: b), ("<", lambda: c))
    assert a, text     claim(a, lambda: text)
    f"{x:.2f}"         text(part(x, "", ".2f"), ...)
    "%d" % x           percent("%d", x);  also "{}".format(x), ", ".join(xs)

The words are those of `words.py`; they are compiled and not shown.
"""

from __future__ import annotations

import ast
from typing import Any

from .names import walk_scope
from .nodes import RESERVED, function_of, is_word, load, placed, word

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


class Expressions(ast.NodeTransformer):
    """Puts in the words, and what is hidden when converted code is shown."""

    def __init__(self) -> None:
        self._firsts: list[str] = []  # the first parameters of the functions around

    # ---- what is hidden --------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if getattr(node, "machinery", False):
            return placed(load(RESERVED), node)
        if getattr(node, "doubtful", False) and isinstance(node.ctx, ast.Load):
            return _word(node, "defined", load(node.id), ast.Constant(node.id))
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        name = getattr(node, "guarded", "")
        return _word(node, "guarded", ast.Constant(name)) if name else node

    def _check_first(self, node: Any, targets: list[ast.expr]) -> Any:
        """What changes or deletes a variable reads it."""
        checks: list[ast.stmt] = []
        for target in targets:
            if isinstance(target, ast.Name) and getattr(target, "doubtful", False):
                read = _word(target, "defined", load(target.id), ast.Constant(target.id))
                checks.append(placed(ast.Expr(read), node))
        self.generic_visit(node)
        return [*checks, node]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return self._check_first(node, [node.target])

    def visit_Delete(self, node: ast.Delete) -> Any:
        return self._check_first(node, node.targets)

    # ---- truth -----------------------------------------------------------------------------

    def _truth(self, node: ast.expr) -> ast.expr:
        """The same where only its truth matters: the parts of `and` need not be of one type."""
        if isinstance(node, ast.BoolOp) and not _binds_lazily(node.values[1:]):
            *first, last = [self._truth(value) for value in node.values]
            made = last
            for value in reversed(first):
                made = self._boolean(node, value, made)
            return made
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _word(node, "negate", self._truth(node.operand))
        return _word(node, "truth", self.visit(node))

    def _boolean(self, node: ast.BoolOp, first: ast.expr, rest: ast.expr) -> ast.expr:
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _word(node, name, first, function_of((), rest))

    def _condition(self, node: ast.expr) -> ast.expr:
        composed = isinstance(node, ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        )
        return self._truth(node) if composed else self.visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_word(node, "cond"):
            test = self._condition(node.args[0])
            rest = [self.visit(arg) for arg in node.args[1:]]
            node.func = self.visit(node.func)
            node.args = [test, *rest]
            node.keywords = [self.visit(keyword) for keyword in node.keywords]
            return node
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and _is_text(node.func.value):
            name = {"format": "braces", "join": "joined"}.get(node.func.attr)
            if name is not None:
                made = _word(node, name, node.func.value, *node.args)
                made.keywords = node.keywords
                return made
        if _is_bare_super(node) and self._firsts and self._firsts[-1]:
            node.args = [placed(load(n), node) for n in ("__class__", self._firsts[-1])]
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if getattr(node, "truth", False) and node.value is not None:
            node.value = self._condition(node.value)
            return node
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and _is_text(node.left):
            return _word(node, "percent", node.left, node.right)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if _binds_lazily(node.values[1:]):
            *first, last = node.values
            decided = [self._plain(self.visit(value), node) for value in first]
            node.values = [*decided, self.visit(last)]
            return node
        *first, made = [self.visit(value) for value in node.values]
        for value in reversed(first):
            made = self._boolean(node, value, made)
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        return self._truth(node) if isinstance(node.op, ast.Not) else self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if _binds_lazily([node.body, node.orelse]):
            node.test = self._plain(self._condition(node.test), node)
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
            return node
        parts = [function_of((), self.visit(part)) for part in (node.body, node.orelse)]
        return _word(node, "choose", self._condition(node.test), *parts)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        match node:
            case ast.Compare(ops=[ast.Is()], comparators=[ast.Constant(value=bool())]):
                return _word(node, "is_bool", self.visit(node.left), *node.comparators)
            case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=bool())]):
                same = _word(node, "is_bool", self.visit(node.left), *node.comparators)
                return _word(node, "negate", same)
            case _:
                pass
        if len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn):
            return self.generic_visit(node)
        if _binds_lazily(node.comparators[1:]):
            return self.generic_visit(node)
        links = [
            ast.Tuple(
                [ast.Constant(_OPERATORS[type(op)]), function_of((), self.visit(right))],
                ast.Load(),
            )
            for op, right in zip(node.ops, node.comparators, strict=True)
        ]
        return _word(node, "chain", self.visit(node.left), *links)

    # ---- what stays Python -----------------------------------------------------------------

    def _plain(self, test: ast.expr, place: Any) -> ast.expr:
        """A condition that Python itself has to know."""
        kept = getattr(place, "kept", "") or "this expression"
        return _word(test, "known", test, ast.Constant(kept))

    def visit_If(self, node: ast.If | ast.While) -> ast.AST:
        test = self._plain(self._condition(node.test), node)
        node.test = ast.Constant(True)
        self.generic_visit(node)
        node.test = test
        return node

    visit_While = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        tests = [self._condition(test) for test in node.ifs]
        node.ifs = []
        self.generic_visit(node)
        for test in tests:
            known = _word(test, "known", test, ast.Constant("the comprehension"))
            node.ifs.append(known)
        return node

    # ---- statements ------------------------------------------------------------------------

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = [function_of((), self.visit(node.msg))] if node.msg is not None else []
        return placed(ast.Expr(_word(node, "claim", self._condition(node.test), *message)), node)

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        if not getattr(node, "kept", ""):
            for item in node.items:
                item.context_expr = _word(item.context_expr, "entered", item.context_expr)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                spec = self.visit(part.format_spec) if part.format_spec else ast.Constant("")
                letter = chr(part.conversion) if part.conversion > 0 else ""
                value = self.visit(part.value)
                parts.append(_word(part, "part", value, ast.Constant(letter), spec))
            else:
                parts.append(part)
        return _word(node, "text", *parts)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.Lambda) -> ast.AST:
        params = [*node.args.posonlyargs, *node.args.args]
        generated = getattr(node, "generated", False)
        first = params[0].arg if params else ""
        self._firsts.append(self._firsts[-1] if generated and self._firsts else first)
        self.generic_visit(node)
        self._firsts.pop()
        return node

    visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        for case in node.cases:
            if case.guard is not None:
                case.guard = self._plain(self._condition(case.guard), node)
            case.body = [each for part in case.body for each in _as_list(self.visit(part))]
        node.subject = self.visit(node.subject)
        return node


def _is_bare_super(node: ast.Call) -> bool:
    named = isinstance(node.func, ast.Name) and node.func.id == "super"
    return named and not node.args and not node.keywords


def _as_list(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is str


def _word(place: ast.AST, name: str, *args: ast.expr) -> Any:
    made = word(name, *args)
    made.func.value.id = RESERVED  # type: ignore[attr-defined]
    made.func.value.machinery = False  # type: ignore[attr-defined]
    return ast.fix_missing_locations(placed(made, place))


def _binds_lazily(parts: list[ast.expr]) -> bool:
    """A `:=` in what may not run binds a variable of the function, which a lambda could not."""
    return any(isinstance(each, ast.NamedExpr) for part in parts for each in walk_scope(part))
