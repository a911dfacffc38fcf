"""Which names a piece of Python reads and binds in the function that it stands in.

A name that only a function made there reads (a lambda, say) is *deferred*: it is read when that
function is called.  Comprehensions run at once, so what they read is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Uses(ast.NodeVisitor):
    """The names of one scope that some of its nodes use.

    Attributes:
        reads: read when the nodes run.
        deferred: read by functions that the nodes make.
        binds: bound (or deleted), in the order of the text.
    """

    def __init__(self, *nodes: ast.AST | None) -> None:
        self.reads: set[str] = set()
        self.deferred: set[str] = set()
        self.binds: dict[str, None] = {}
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _bind(self, name: str | None) -> None:
        if name is not None:
            self.binds[name] = None

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self.reads.add(node.id)
        if not isinstance(node.ctx, ast.Load):
            self._bind(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self.visit(node.target)
        if isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._visit_all([node.value, *node.targets])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None or not isinstance(node.target, ast.Name):
            self._visit_all([node.value, node.target])

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all([*node.decorator_list, node.returns])
        self._arguments(node.args)
        self.deferred |= free(node)
        self._bind(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._arguments(node.args)
        self.deferred |= free(node)

    def _arguments(self, args: ast.arguments) -> None:
        self._visit_all([*args.defaults, *args.kw_defaults])
        self._visit_all(arg.annotation for arg in parameters(args))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        inside = Uses(*node.body)
        self.reads |= inside.reads
        self.deferred |= inside.deferred | inside.reads
        self._bind(node.name)

    def _comprehension(self, node: ast.AST) -> None:
        inside = Uses()
        inside.generic_visit(node)
        own = {name for each in node.generators for name in Uses(each.target).binds}  # type: ignore[attr-defined]
        self.reads |= inside.reads - own
        self.deferred |= inside.deferred - own
        if isinstance(node, ast.GeneratorExp):
            self.deferred |= inside.reads - own
        for name in inside.binds:
            if name not in own:
                self._bind(name)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.generic_visit(node)
        self._bind(node.name)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        self._bind(node.rest)


def parameters(args: ast.arguments) -> list[ast.arg]:
    """All parameters of a function, in order."""
    starred = [args.vararg] if args.vararg else []
    named = [args.kwarg] if args.kwarg else []
    return [*args.posonlyargs, *args.args, *starred, *args.kwonlyargs, *named]


def body_of(function: Function) -> list[ast.stmt] | list[ast.expr]:
    """The statements of a function, or the expression of a lambda."""
    return [function.body] if isinstance(function, ast.Lambda) else function.body


def local_names(function: Function) -> dict[str, None]:
    """The names that are local to a function: its parameters first, then as they are bound."""
    inside = Uses(*body_of(function))
    own = dict.fromkeys(arg.arg for arg in parameters(function.args))
    return {**own, **inside.binds}


def free(function: Function) -> set[str]:
    """The names that a function reads from outside."""
    inside = Uses(*body_of(function))
    own = {arg.arg for arg in parameters(function.args)}
    return (inside.reads | inside.deferred) - own - inside.binds.keys()


def header(statement: ast.stmt) -> Uses:
    """What a statement itself uses, without the statements inside it."""
    match statement:
        case ast.If() | ast.While():
            return Uses(statement.test)
        case ast.For():
            return Uses(statement.iter)
        case ast.With():
            return Uses(*statement.items)
    return Uses(statement)


def walk_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope: those inside of functions and classes made in it left out."""
    pending: list[ast.AST] = [node]
    while pending:
        each = pending.pop()
        yield each
        if not isinstance(each, Function | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(each))


class FreshNames:
    """Names that no one else uses: `then`, and where that is taken, `then_2`, `then_3`, ..."""

    def __init__(self, tree: ast.AST) -> None:
        self._taken: set[str] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) | ast.arg(arg=name):
                    self._taken.add(name)
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    self._taken.add(name)
                case ast.Import() | ast.ImportFrom() | ast.ExceptHandler() | ast.MatchAs():
                    self._taken.update(Uses(node).binds)

    def fresh(self, name: str) -> str:
        """This name, or the first with a number that is free."""
        made, number = name, 1
        while made in self._taken:
            number += 1
            made = f"{name}_{number}"
        self._taken.add(made)
        return made
