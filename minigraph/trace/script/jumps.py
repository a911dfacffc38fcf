"""`break`, `continue` and early `return` as conditions, so that every block ends at its end.

What follows an `if` of which one side always leaves moves into the other side:

    if x > 0:                 if x > 0:
        return x                  return x
    y = -x              ->    else:
    return y                      y = -x
                                  return y

A `return` that ends the function stands as it is.  Everywhere else a flag says that the rest is to
be left out: `stopped` (break), `skipped` (continue), `returned` with `result`:

    for v in xs:              stopped = False
        if v < 0:             for v in xs:              # until stopped
            break       ->        if v < 0:
        total += v                    stopped = True
                                  else:
                                      total += v

A loop carries the names of the flags that end it as `flags`.  What is *kept* (`try`, and what its
jumps cross) stays as it is.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .names import FreshNames, Uses, walk_scope

Loop = ast.For | ast.While


@dataclass(frozen=True)
class _Place:
    """Where a block stands.

    Attributes:
        function: what ends the block ends the function.
        turn: what ends the block ends the turn of the innermost loop.
        returned: the flag `returned` has a value.
    """

    function: bool
    turn: bool = False
    returned: bool = False

    @property
    def inside(self) -> _Place:
        """A block in a statement that others follow."""
        return replace(self, function=False, turn=False)


def _declared(name: str, place: ast.stmt) -> ast.stmt:
    """`name: None`, which makes a name local, and does nothing."""
    target = ast.Name(name, ast.Store())
    made = ast.AnnAssign(target, ast.Constant(None), None, simple=1)
    return ast.fix_missing_locations(ast.copy_location(made, place))


class Jumps:
    """Rewrites the jumps of one function."""

    def __init__(self, names: FreshNames) -> None:
        self._names = names
        self._returned = ""
        self._result = ""
        self._stopped: list[str] = []  # of the loops around
        self._skipped: list[str] = []

    def function(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The body of a function without jumps but `return` at its ends.

        A name that is bound only in what no way leads to stays a local one.
        """
        made = self._block(statements, _Place(function=True))
        gone = Uses(*statements).binds.keys() - Uses(*made).binds.keys()
        return [*(_declared(name, statements[0]) for name in sorted(gone)), *made]

    # ---- blocks ----------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt], place: _Place) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        pending = list(statements)
        while pending:
            statement = pending.pop(0)
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                return made + self._jump(statement, place)
            if isinstance(statement, ast.Raise):
                return [*made, statement]
            if is_kept(statement):
                made.append(statement)
                continue
            leaving = jumps_out_of(statement)
            if isinstance(statement, Loop):
                pending = self._after_loop(statement) + pending
                leaving = jumps_out_of_block(statement.body) & {"return"}
            if isinstance(statement, ast.If) and leaving and pending:
                moved = self._moved(statement, pending, place)
                if moved is not None:
                    return [*made, moved]
            if not leaving:
                made += self._compound(statement, place.inside)
                if isinstance(statement, ast.With) and leaves(statement.body):
                    return made
                continue
            if (
                "return" in leaving
                and not place.returned
                and self._needs_flag(statement, pending, place)
            ):
                made.append(self._flag(self._returned_name(), False, statement))
                place = replace(place, returned=True)
            if not pending and not isinstance(statement, Loop):
                return made + self._compound(statement, place)
            made += self._compound(statement, place.inside)
            return made + self._rest(leaving, pending, place, statement)
        return made

    def _moved(self, statement: ast.If, rest: list[ast.stmt], place: _Place) -> ast.stmt | None:
        """What follows an `if` as the end of the side that goes on, if one does not."""
        if leaves(statement.body):
            body, orelse = statement.body, [*statement.orelse, *rest]
        elif statement.orelse and leaves(statement.orelse):
            body, orelse = [*statement.body, *rest], statement.orelse
        else:
            return None
        return _if(statement.test, self._block(body, place), self._block(orelse, place), statement)

    def _needs_flag(self, statement: ast.stmt, rest: list[ast.stmt], place: _Place) -> bool:
        return not place.function or bool(rest) or isinstance(statement, Loop)

    def _rest(
        self, leaving: set[str], rest: list[ast.stmt], place: _Place, after: ast.stmt
    ) -> list[ast.stmt]:
        """What follows a statement that may jump."""
        flags = [self._flag_of(jump) for jump in sorted(leaving)]
        if place.function:
            assert leaving == {"return"}
            back = _at(ast.Return(_name(self._result)), after)
            if is_endless(after):
                return [back]
            return [_if(_name(self._returned), [back], self._block(rest, place), after)]
        if not rest or is_endless(after):
            return []
        return [_if(_not(flags), self._block(rest, place), [], after)]

    def _flag_of(self, jump: str) -> str:
        if jump == "return":
            return self._returned
        return (self._stopped if jump == "break" else self._skipped)[-1]

    def _jump(
        self, statement: ast.Return | ast.Break | ast.Continue, place: _Place
    ) -> list[ast.stmt]:
        if isinstance(statement, ast.Return):
            if place.function:
                return [statement]
            value = statement.value or _at(ast.Constant(None), statement)
            result = ast.Assign([ast.Name(self._result, ast.Store())], value)
            return [_at(result, statement), self._flag(self._returned, True, statement)]
        if isinstance(statement, ast.Break):
            return [self._flag(self._stopped[-1], True, statement)]
        if place.turn:
            return []
        return [self._flag(self._skipped[-1], True, statement)]

    # ---- compound statements ---------------------------------------------------------------

    def _compound(self, statement: ast.stmt, place: _Place) -> list[ast.stmt]:
        match statement:
            case ast.If():
                return [
                    _if(
                        statement.test,
                        self._block(statement.body, place),
                        self._block(statement.orelse, place),
                        statement,
                    )
                ]
            case ast.With():
                made = _at(ast.With(statement.items, self._block(statement.body, place)), statement)
                return [made]
            case ast.For() | ast.While():
                return self._loop(statement, place)
        return [statement]

    def _after_loop(self, loop: Loop) -> list[ast.stmt]:
        """The `else` of a loop, as what follows it."""
        own = jumps_out_of_block(loop.body)
        self._stopped.append(self._names.fresh("stopped") if "break" in own else "")
        if not loop.orelse:
            return []
        if "break" not in own:
            return list(loop.orelse)
        return [_if(_not([self._stopped[-1]]), loop.orelse, [], loop)]

    def _loop(self, loop: Loop, place: _Place) -> list[ast.stmt]:
        stopped = self._stopped[-1]
        own = jumps_out_of_block(loop.body)
        self._skipped.append(self._names.fresh("skipped") if "continue" in own else "")
        body = self._block(loop.body, replace(place, function=False, turn=True))
        skipped = self._skipped.pop()
        self._stopped.pop()
        if skipped and any(skipped in Uses(each).binds for each in body):
            body.insert(0, self._flag(skipped, False, loop))
        flags = [stopped] if stopped else []
        flags += [self._returned] if "return" in own else []
        made: list[ast.stmt] = [self._flag(stopped, False, loop)] if stopped else []
        if isinstance(loop, ast.For):
            new: Loop = ast.For(loop.target, loop.iter, body, [])
        elif any(isinstance(each, ast.NamedExpr) for each in walk_scope(loop.test)):
            more = self._names.fresh("more")
            made.append(self._set(more, loop.test, loop))
            again: ast.stmt = self._set(more, copy.deepcopy(loop.test), loop)
            body.append(_if(_not(flags), [again], [], loop) if flags else again)
            new = ast.While(_name(more), body, [])
        else:
            new = ast.While(loop.test, body, [])
        new.flags = flags  # type: ignore[attr-defined]
        return [*made, _at(new, loop)]

    # ---- flags -----------------------------------------------------------------------------

    def _returned_name(self) -> str:
        if not self._returned:
            self._returned = self._names.fresh("returned")
            self._result = self._names.fresh("result")
        return self._returned

    def _flag(self, name: str, value: bool, at: ast.stmt) -> ast.stmt:
        return self._set(name, ast.Constant(value), at)

    def _set(self, name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
        return _at(ast.Assign([ast.Name(name, ast.Store())], value), at)


def jumps_out_of(statement: ast.stmt) -> set[str]:
    """The jumps in a statement whose aim is outside of it: "break", "continue", "return"."""
    match statement:
        case ast.Break():
            return {"break"}
        case ast.Continue():
            return {"continue"}
        case ast.Return():
            return {"return"}
        case ast.For() | ast.While() | ast.AsyncFor():
            inner = jumps_out_of_block(statement.body) & {"return"}
            return inner | jumps_out_of_block(statement.orelse)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return set()
    return jumps_out_of_block(blocks_of(statement))


def jumps_out_of_block(statements: Iterable[ast.stmt]) -> set[str]:
    """The same of statements together."""
    found: set[str] = set()
    for statement in statements:
        found |= jumps_out_of(statement)
    return found


def blocks_of(statement: ast.stmt) -> list[ast.stmt]:
    """The statements directly inside of a statement (of the same function)."""
    found: list[ast.stmt] = []
    for part in ("body", "orelse", "finalbody"):
        found += getattr(statement, part, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        found += part.body
    return found


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """What follows these statements never runs."""
    for statement in statements:
        match statement:
            case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
                return True
            case ast.If() if leaves(statement.body) and leaves(statement.orelse):
                return True
            case ast.With() if leaves(statement.body):
                return True
            case ast.While() if is_endless(statement):
                return True
    return False


def is_endless(statement: ast.stmt) -> bool:
    """A loop that only a `return` (or an exception) ends."""
    return (
        isinstance(statement, ast.While)
        and isinstance(statement.test, ast.Constant)
        and bool(statement.test.value)
        and "break" not in jumps_out_of_block(statement.body)
    )


def is_kept(statement: ast.stmt) -> bool:
    """The statement stays as it is."""
    return bool(getattr(statement, "kept", ""))


# ---- nodes -----------------------------------------------------------------------------------


def _at(node: Any, place: ast.AST) -> Any:
    return ast.copy_location(node, place)


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _not(flags: Sequence[str]) -> ast.expr:
    """None of the flags is set."""
    some = _name(flags[0]) if len(flags) == 1 else ast.BoolOp(ast.Or(), [*map(_name, flags)])
    return ast.UnaryOp(ast.Not(), some)


def _if(test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], place: ast.stmt) -> ast.stmt:
    return _at(ast.If(test, body, orelse), place)
