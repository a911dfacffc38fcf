"""Script: loops that NumPy has no function for; their source, converted code, graph and picture.

How many edits lead from one word to another takes a loop in a loop, each turn of which needs the
one before.
"""

from time import perf_counter

import numpy as np

import minigraph as mg


def distance(a, b):
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        corner, row[0] = row[0], i + 1
        for j in range(len(b)):
            best = min(row[j], row[j + 1], corner - (a[i] == b[j])) + 1
            corner, row[j + 1] = row[j + 1], best
    return row[-1]


# `for` becomes a function, its body, and a call.  What it carries from turn to turn is returned:
# `corner`.  The tracer finds what it writes to: `row`.
print(mg.to_code(distance))
# | def distance(a, b):                                                     # line 14
# |     row = np.arange(len(b) + 1)                                         # line 15
# |     def body(i):                                                        # line 16
# |         corner, row[0] = (row[0], i + 1)                                # line 17
# |         def body_2(j, corner):                                          # line 18
# |             best = min(row[j], row[j + 1], corner - (a[i] == b[j])) + 1  # line 19
# |             corner, row[j + 1] = (row[j + 1], best)                     # line 20
# |             return corner                                               # line 20
# |         corner = mg.for_loop(range(len(b)), body_2, corner)             # line 18
# |     mg.for_loop(range(len(a)), body)                                    # line 16
# |     return row[-1]                                                      # line 21
# |

# For words of any length: one graph, in which each loop is one node.
scripted = mg.script(distance, dynamic={"a": {0: "m"}, "b": {0: "n"}})
kitten, sitting = (np.array([ord(c) for c in word]) for word in ("kitten", "sitting"))
print(scripted(kitten, sitting), distance(kitten, sitting))
# | 3 3
print(scripted.graph)
# | graph distance(%a: i64[m], %b: i64[n]) {
# |   %row = arange {stop=<n+1>, dtype=i64} : i64[n+1]  # 13_script.py:15
# | ...
# |   %i..., %... = scan %..., %row, %a, %b {carried=2, scanned=0, length=<m>, ... {
# | ...
# |     %j..., %corner..., %... = scan ... {carried=3, scanned=0, length=<n>, ... {
# | ...
# |       %... = equal %..., %...      : bool[]       # 13_script.py:19
# | ...
# |   }} : int, i64[n+1]                           # 13_script.py:16
# | ...
# | }

# As a picture (graph.save("distance.svg")), each loop has a frame of two lines around its body.
print(scripted.graph.dot().count("class=frame"), "frames")
# | 2 frames

# Both loops are one compiled function; the same numbers as in Python, which takes longer.
print(scripted.source("numba").count("    for "), "loops")
# | 2 loops
rng = np.random.default_rng(0)
words = rng.integers(0, 4, 400), rng.integers(0, 4, 500)
for name, function in (("Python", distance), ("script", scripted)):
    begin = perf_counter()
    found = function(*words)
    print(f"{name}: {found} edits, {1000 * (perf_counter() - begin):.1f} ms")
# | Python: ... edits, ... ms
# | script: ... edits, ... ms
print(len(scripted.cache_info()), "entry")
# | 1 entry
