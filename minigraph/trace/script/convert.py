"""Statements: `if`, `while` and `for` become functions and calls, which read as they stand.

    if x > 0:                 def then(total):
        total = total + x         total = total + x
                       ->         return total
                              def otherwise(total):
                                  return total
                              total = mg.cond(x > 0, then, otherwise, total)

What a block binds and something later reads is its *state*: the functions take and return it.  All
else is read from the variables around.  A variable that a function made by the user reads (a lambda
in a loop, say) stays one variable, which the blocks set when they begin (`nonlocal`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .definedness import Definedness
from .jumps import Jumps, is_kept, jumps_out_of, leaves
from .liveness import Liveness
from .names import (
    FreshNames,
    Function,
    Uses,
    body_of,
    header,
    local_names,
    parameters,
    walk_scope,
)
from .nodes import (
    function,
    function_of,
    load,
    names_of,
    placed,
    put_into,
    store,
    together,
    undefined,
    word,
)
from .patterns import Patterns
from .refused import is_convertible, keep, refuse

Names = frozenset[str]


def convert(node: Function, filename: str) -> Function:
    """The function with its control flow as functions and calls (the node itself is changed).

    Raises:
        ScriptError: something in it is not converted.
    """
    refuse(node, filename)
    _convert(node, FreshNames(node))
    return ast.fix_missing_locations(node)


def _convert(node: Function, names: FreshNames) -> None:
    for inner in _functions_in(node):
        if is_convertible(inner):
            _convert(inner, names)
    if isinstance(node, ast.Lambda):
        Definedness(node)
        return
    Patterns(names).generic_visit(node)
    keep(node.body)
    doubtful = Definedness(node).doubtful
    _Deletions().generic_visit(node)
    own = local_names(node)
    lowered = Jumps(names).function(node.body)
    captured = own.keys() & set().union(*(Uses(each).deferred for each in lowered))
    statements = _Statements(names, doubtful, captured, own, lowered)
    bound = {arg.arg for arg in parameters(node.args)}
    node.body = statements.function(lowered, bound) or [ast.Pass()]


def _functions_in(node: Function) -> list[Function]:
    """The functions made directly in a function."""
    return [
        each
        for part in body_of(node)
        for each in walk_scope(part)
        if isinstance(each, ast.FunctionDef | ast.Lambda)
    ]


class _Deletions(ast.NodeTransformer):
    """In what is kept, a deleted variable is one without a value."""

    def visit_Delete(self, node: ast.Delete) -> ast.AST | list[ast.AST]:
        if not is_kept(node):
            return node
        made: list[ast.AST] = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                read: Any = placed(load(target.id), target)
                read.doubtful = getattr(target, "doubtful", False)
                made.append(placed(ast.Expr(read), node))
                made.append(placed(store(target.id, undefined(target.id, True)), node))
            else:
                made.append(placed(ast.Delete([target]), node))
        return made

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef


class _Statements:
    """Converts the statements of one function."""

    def __init__(
        self,
        names: FreshNames,
        doubtful: set[str],
        captured: set[str],
        own: Mapping[str, None],
        statements: Sequence[ast.stmt],
    ) -> None:
        self._names = names
        self._doubtful = doubtful
        self._captured = captured
        binds = Uses(*statements).binds
        self._local = own.keys() | binds.keys()
        # As the text has them, and then those made here.
        self._order = {name: at for at, name in enumerate({**own, **binds})}
        self._liveness = Liveness()
        self._shared: set[str] = set()  # variables that blocks set, and do not only return

    def _ordered(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: self._order.get(name, -1))

    # ---- blocks ----------------------------------------------------------------------------

    def function(self, statements: Sequence[ast.stmt], bound: set[str]) -> list[ast.stmt]:
        """The body of the function; what only blocks bind together belongs to it."""
        params = set(bound)
        made = self.block(statements, bound, frozenset())
        missing = self._shared - params - set(Uses(*made).binds)
        if missing:
            at = 1 if ast.get_docstring(ast.Module(made, [])) is not None else 0
            made[at:at] = self._without_value(missing, bound, statements[0])
        return made

    def block(
        self, statements: Sequence[ast.stmt], bound: set[str], after: Names
    ) -> list[ast.stmt]:
        """Converted statements; `bound`, the variables that hold something, is updated."""
        lives: list[Names] = [after]
        for statement in reversed(statements):
            lives.append(self._liveness.before([statement], lives[-1]))
        made: list[ast.stmt] = []
        for statement, live in zip(statements, reversed(lives[:-1]), strict=True):
            made += self._without_value(self._read_before_bound(statement, bound), bound, statement)
            made += self._statement(statement, bound, live)
        return made

    def _read_before_bound(self, statement: ast.stmt, bound: set[str]) -> set[str]:
        if is_kept(statement):
            return (Uses(statement).reads & self._local & self._doubtful) - bound
        uses = header(statement)
        if isinstance(statement, ast.For):
            uses.reads |= Uses(statement.target).reads
        walrus = {e.target.id for e in ast.walk(statement) if isinstance(e, ast.NamedExpr)}
        return (uses.reads & self._local) - bound - walrus

    def _without_value(self, names: set[str], bound: set[str], place: ast.stmt) -> list[ast.stmt]:
        """Variables that hold nothing so far, and which something reads or takes along."""
        bound |= names
        return [
            placed(store(name, undefined(name, name in self._doubtful)), place)
            for name in self._ordered(names)
        ]

    def _statement(self, statement: ast.stmt, bound: set[str], after: Names) -> list[ast.stmt]:
        if is_kept(statement):
            binds = set(Uses(statement).binds)
            wanted = {name for name in binds - bound if name in after or name in self._captured}
            first = self._without_value(wanted, bound, statement)
            bound |= binds
            return [*first, statement]
        match statement:
            case ast.If():
                return self._if(statement, bound, after)
            case ast.While():
                return self._while(statement, bound, after)
            case ast.For():
                return self._for(statement, bound, after)
            case ast.With():
                bound |= set(Uses(*statement.items).binds)
                statement.body = self.block(statement.body, bound, after) or [ast.Pass()]
                return [statement]
            case ast.Delete():
                bound -= set(Uses(statement).binds)
                return [statement]
        bound |= set(Uses(statement).binds)
        return [statement]

    # ---- if --------------------------------------------------------------------------------

    def _if(self, statement: ast.If, bound: set[str], after: Names) -> list[ast.stmt]:
        assigned = Uses(*statement.body, *statement.orelse).binds
        ends = "return" in jumps_out_of(statement)  # the function, on both sides
        state = None if ends else self._state(assigned, after)
        outs = frozenset(state or ())
        needed = self._liveness.before(statement.body, outs)
        needed |= self._liveness.before(statement.orelse, outs)
        params = [
            name
            for name in self._ordered(assigned)
            if name in self._captured or (name in bound and name in needed)
        ]
        bound |= set(Uses(statement.test).binds)
        then = self._region("then", params, statement.body, bound, state, statement)
        otherwise = self._region("otherwise", params, statement.orelse, bound, state, statement)
        call = word(
            "cond",
            statement.test,
            load(then.name),
            load(otherwise.name),
            *(self._value(name, bound) for name in params),
            hidden=[names_of(state)] if state else (),
        )
        placed(call, statement.test)
        last = ast.Return(call) if state is None else put_into(state, call)
        bound |= outs
        return [then, otherwise, placed(last, statement)]

    def _state(self, assigned: Iterable[str], live: Names) -> list[str]:
        """What is bound here and read later."""
        return [n for n in self._ordered(assigned) if n in live or n in self._captured]

    def _value(self, name: str, bound: set[str]) -> ast.expr:
        return load(name) if name in bound else undefined(name, name in self._doubtful)

    # ---- loops -----------------------------------------------------------------------------

    def _while(self, loop: ast.While, bound: set[str], after: Names) -> list[ast.stmt]:
        flags: list[str] = loop.flags  # type: ignore[attr-defined]
        live = self._liveness.of(loop)[0] | after
        state = self._state(Uses(loop.test, *loop.body).binds, live)
        start = together([self._value(name, bound) for name in state])
        tested: ast.expr = loop.test
        if flags:
            running = ast.UnaryOp(ast.Not(), _any(flags))
            endless = isinstance(tested, ast.Constant) and bool(tested.value)
            tested = running if endless else ast.BoolOp(ast.And(), [running, tested])
            placed(tested, loop.test)
        asks = placed(ast.Return(tested), loop.test)
        asks.truth = True
        test = self._region("test", state, [asks], bound, None, loop, loop.test)
        body = self._region("body", state, loop.body, bound, state, loop)
        call = word("while_loop", load(test.name), load(body.name), start, hidden=[names_of(state)])
        bound |= set(state)
        return [test, body, placed(put_into(state, placed(call, loop.test)), loop)]

    def _for(self, loop: ast.For, bound: set[str], after: Names) -> list[ast.stmt]:
        flags: list[str] = loop.flags  # type: ignore[attr-defined]
        target = Uses(loop.target).binds
        gen = self._liveness.of_block(loop.body)[0] - set(target)
        live = gen | set(flags) | after | Uses(loop.target).reads
        assigned = {**target, **Uses(*loop.body).binds}
        state = [
            name
            for name in self._state(assigned, live)
            if name not in target or name in after or name in self._captured
        ]
        start = [self._value(name, bound) for name in state]
        params, statements = list(state), list(loop.body)
        if isinstance(loop.target, ast.Name) and loop.target.id not in state:
            item = loop.target.id
        else:
            item = self._names.fresh("item")
            first = ast.Assign([loop.target], placed(load(item), loop.target))
            statements.insert(0, placed(first, loop.target))
        body = self._region("body", [item, *params], statements, bound, state, loop)
        call = word("for_loop", loop.iter, load(body.name), *([together(start)] if start else []))
        if flags:
            until = placed(function_of(state, _any(flags)), loop.iter)
            call.keywords.append(ast.keyword("until", until))
        hidden = [names_of(state)] if state else []
        if flags and _is_made_here(loop.iter):
            hidden.append(ast.keyword("own", ast.Constant(True)))
        for keyword in hidden:
            keyword.hidden = True  # type: ignore[attr-defined]
        call.keywords += hidden
        bound |= set(state)
        return [body, placed(put_into(state, placed(call, loop.iter)), loop)]

    # ---- functions -------------------------------------------------------------------------

    def _region(
        self,
        name: str,
        params: Sequence[str],
        statements: Sequence[ast.stmt],
        bound: set[str],
        state: Sequence[str] | None,
        place: ast.stmt,
        at: ast.AST | None = None,
    ) -> ast.FunctionDef:
        """A block as a function from its parameters to its state (None: it ends the function)."""
        made_name = self._names.fresh(name)
        inside = bound | set(params)
        first: list[ast.stmt] = []
        own = [n for n in self._ordered({*params, *Uses(*statements).binds} & self._captured)]
        taken = [self._names.fresh(f"{n}_now") if n in own else n for n in params]
        self._shared.update(own)
        if own:
            first.append(placed(ast.Nonlocal(own), place))
        for given, kept in zip(taken, params, strict=True):
            if given != kept:
                first.append(placed(store(kept, load(given)), place))
        body = self.block(statements, inside, frozenset(state or ()))
        if state and not leaves(statements):
            values = together([self._value(each, inside) for each in state])
            body.append(placed(ast.Return(values), statements[-1] if statements else place))
        return placed(function(made_name, taken, [*first, *body]), at or place)


def _is_made_here(items: ast.expr) -> bool:
    """The items are an iterator of Python's that nothing else goes through."""
    match items:
        case ast.Call(func=ast.Name(id="enumerate" | "reversed" | "zip")):
            return True
    return False


def _any(flags: Sequence[str]) -> ast.expr:
    if len(flags) == 1:
        return load(flags[0])
    return ast.BoolOp(ast.Or(), [load(flag) for flag in flags])
