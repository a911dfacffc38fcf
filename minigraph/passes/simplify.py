"""Algebraic simplification: the equations of `equations.py`, from left to right.

    graph f(%x: f64[2,3]) {
      %0 = const 1.0               : float
      %1 = multiply %x, %0         : f64[2,3]
      %2 = negative %1             : f64[2,3]
      %3 = negative %2             : f64[2,3]
      %4 = transpose %3 {axes=(1, 0)} : f64[3,2]
      %5 = transpose %4 {axes=(1, 0)} : f64[2,3]
      %6 = const 4.0               : float
      %7 = divide %5, %6           : f64[2,3]
      return %7
    }

becomes, dead nodes removed,

    graph f(%x: f64[2,3]) {
      %0 = const 0.25              : float
      %7 = multiply %x, %0         : f64[2,3]
      return %7
    }

Legality: both sides of an equation are the same bit for bit, NaN, infinities, the sign of zero and
integers that wrap around included, and have the same dtype and shape; the table says why.
Equations that hold in real numbers only are applied under `fast_math=True`, and otherwise told as
refused.  A copy may be dropped, values being functional; but not a copy of an argument that is
written to, for it keeps what the argument held before.

Every rule ends: the right side has fewer ops than the left, or a multiplication in place of a
division, or says that a node cannot raise.

Cost: one sweep, with regions until one finds nothing; the rules for a node are found by its op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from minigraph.ir import Graph

from .equations import RULES
from .recorder import Recorder
from .regions import in_regions
from .rewriting import Rule, Table, rewrite


def simplify(graph: Graph, recorder: Recorder) -> Graph:
    """Apply the equations of `RULES`."""
    return _apply(graph, _table(), recorder, "simplify", simplify)


def _apply(
    graph: Graph,
    table: Table,
    recorder: Recorder,
    name: str,
    inside: Callable[[Graph, Recorder], Graph],
) -> Graph:
    """Apply a table in a graph and its regions.

    What a region leaves may lie in memory more plainly once it is simpler, and so may what a loop
    carries; then there may be more to do in regions.
    """
    while True:
        after = rewrite(in_regions(graph, inside, recorder), table, recorder, name)
        if after is graph or not any(any(True for _ in node.regions) for node in after.nodes):
            return after
        graph = after


@cache
def _table() -> Table:
    return Table(RULES)


def simplify_with(
    rules: Sequence[Rule], name: str = "simplify_with"
) -> Callable[[Graph, Recorder], Graph]:
    """A pass of your own rules: `optimize(graph, (simplify_with(rules), "cse", "dce"))`.

    Each rule is a pattern, a replacement, an equation and the reason why it is exact:

        Rule("square", "multiply(x, x)", "square(x)", "x · x = x²", "np.square is that product")
    """
    table = Table(rules)

    def apply_rules(graph: Graph, recorder: Recorder) -> Graph:
        return _apply(graph, table, recorder, name, apply_rules)

    apply_rules.__name__ = name
    return apply_rules
