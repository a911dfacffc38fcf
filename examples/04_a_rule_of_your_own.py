"""A rule of your own: an equation, read from left to right, with the reason why it is exact."""

import numpy as np

import minigraph as mg
from minigraph.passes import DEFAULT, RULES, Rule, simplify_with

# The pattern is an expression: small letters are any value, capitals any constant, numbers are
# constants of that value.  Rules must give the same bits for NaN, infinities and both zeros.
RULES_OF_MINE = (
    Rule(
        "not_equal",
        "logical_not(equal(x, y))",
        "not_equal(x, y)",
        "¬(x = y) ⇔ x ≠ y",
        "NaN = NaN is false, NaN ≠ NaN is true",
    ),
    Rule(
        "not_less",
        "logical_not(less(x, y))",
        "greater_equal(x, y)",
        "¬(x < y) ⇔ x ≥ y",
        "integers are ordered; NaN is not",
        # A condition sees what was matched: of floats this would be wrong.
        lambda match: all(value.type.dtype.kind in "iu" for value in match.nodes[1].inputs),
    ),
)
mine = simplify_with(RULES_OF_MINE, "mine")


def f(x, y, i, j):
    return np.logical_not(x == y), np.logical_not(x < y), np.logical_not(i < j)


x, y = np.array([0.0, np.nan]), np.array([-0.0, np.nan])
i, j = np.array([1, 2]), np.array([2, 1])
graph = mg.trace(f, x, y, i, j)
compiled = mg.compile(graph, backend="python", passes=(*DEFAULT, mine, "dce"))
print(compiled.source())
# | # f(x: f64[2], y: f64[2], i: i64[2], j: i64[2]) -> bool[2], bool[2], bool[2]
# | import numpy as np
# |
# |
# | def f(x, y, i, j):
# |     v6 = x != y                       # bool[2]
# |     v8 = x < y                        # bool[2]
# |     v10 = np.logical_not(v8, out=v8)  # bool[2]
# |     del v8
# |     v14 = i >= j                      # bool[2]
# |     return v6, v10, v14
for event in compiled.history.stage("mine").events:
    print(event.rule, "|", event.why)
# | mine.not_equal | ¬(x = y) ⇔ x ≠ y: NaN = NaN is false, NaN ≠ NaN is true
# | mine.not_less | ¬(x < y) ⇔ x ≥ y: integers are ordered; NaN is not
print(compiled(x, y, i, j))
# | (array([False,  True]), array([ True,  True]), array([False,  True]))

# How the rules that come with minigraph read.
for rule in RULES[:3]:
    print(f"{rule.pattern:14} = {rule.replacement}   {rule.exact}")
# | add(x, 0)      = x   integers have one zero
# | add(x, -0.0)   = x   IEEE 754: exact for every number, NaN and both zeros included
# | subtract(x, 0) = x   IEEE 754: exact for every number, NaN and both zeros included

# Equations that hold for real numbers only are refused, with the reason, unless you allow them.
halves = mg.trace(lambda x: np.log(np.exp(x)) * 0.5 * 0.5, x)
for event in mg.compile(halves, backend="python").history.events:
    if event.kind == "refuse":
        print(event.code, "|", event.why)
# | FLOAT_ORDER | log eˣ = x needs fast_math=True: e¹⁰⁰⁰ is ∞
# | FLOAT_ORDER | (x · C) · D = x · (C · D) needs fast_math=True: rounds once, not twice
print(mg.compile(halves, backend="python", fast_math=True).source())
# | # lambda_(x: f64[2]) -> f64[2]
# | def lambda_(x):
# |     v9 = x * 0.25  # f64[2]
# |     return v9
