"""Which names are read later: liveness, on code without jumps out of blocks.

For statements `s; t`, read before they are bound:  gen(s; t) = gen(s) + (gen(t) - kill(s)), and
bound on every way through:  kill(s; t) = kill(s) + kill(t).  What is live before `s` is then
gen(s) + (live after - kill(s)).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .names import Uses, header


class Liveness:
    """`gen` and `kill` of statements, computed once for each."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ast.stmt, frozenset[str], frozenset[str] | None]] = {}

    def before(self, statements: Sequence[ast.stmt], after: frozenset[str]) -> frozenset[str]:
        """What is live before statements, given what is live after them."""
        gen, kill = self.of_block(statements)
        return gen if kill is None else gen | (after - kill)

    def of_block(
        self, statements: Sequence[ast.stmt]
    ) -> tuple[frozenset[str], frozenset[str] | None]:
        """(gen, kill) of statements in order; kill is None where nothing after them runs."""
        gen: frozenset[str] = frozenset()
        kill: frozenset[str] | None = frozenset()
        for statement in reversed(statements):
            own_gen, own_kill = self.of(statement)
            if own_kill is None:
                gen, kill = own_gen, None
            else:
                gen = own_gen | (gen - own_kill)
                kill = None if kill is None else kill | own_kill
        return gen, kill

    def of(self, statement: ast.stmt) -> tuple[frozenset[str], frozenset[str] | None]:
        """(gen, kill) of one statement."""
        known = self._known.get(id(statement))
        if known is None:
            known = self._known[id(statement)] = (statement, *self._compute(statement))
        return known[1:]

    def _compute(self, statement: ast.stmt) -> tuple[frozenset[str], frozenset[str] | None]:
        uses = header(statement)
        flags = set(getattr(statement, "flags", ()))  # what ends a loop is read before each turn
        reads = frozenset(uses.reads | uses.deferred | flags)
        binds = frozenset(uses.binds)
        match statement:
            case ast.Return() | ast.Raise():
                return reads, None
            case _ if getattr(statement, "kept", ""):
                return frozenset(_all_reads(statement)), frozenset()
            case ast.If():
                then, then_kill = self.of_block(statement.body)
                otherwise, otherwise_kill = self.of_block(statement.orelse)
                return reads | ((then | otherwise) - binds), _meet(binds, then_kill, otherwise_kill)
            case ast.While():
                return reads | (self.of_block(statement.body)[0] - binds), binds
            case ast.For():
                target = Uses(statement.target)
                body = self.of_block(statement.body)[0] - set(target.binds)
                return reads | target.reads | body, binds
            case ast.With():
                gen, kill = self.of_block(statement.body)
                return reads | (gen - binds), None if kill is None else binds | kill
        return reads, binds


def _meet(
    binds: frozenset[str], one: frozenset[str] | None, other: frozenset[str] | None
) -> frozenset[str] | None:
    """What both ways bind; a way that goes nowhere counts for nothing."""
    ways = [way for way in (one, other) if way is not None]
    both = ways[0].intersection(*ways[1:]) if ways else None
    return None if both is None else binds | both


def _all_reads(statement: ast.stmt) -> set[str]:
    uses = Uses(statement)
    return uses.reads | uses.deferred
