"""Tracing: Python runs once, and what it does to arrays is written down.

Nothing here is special syntax.  `fancy_func` runs on stand-ins for its arguments, which note each
operation, with your variable names and lines.
"""

import numpy as np

import minigraph as mg


def add(a, b):
    return a + b


def fancy_func(a, b, c, d):
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g


# A graph of Python numbers.  They stay Python numbers, with Python's arithmetic.
print(mg.trace(fancy_func, 1, 2, 3, 4))
# | graph fancy_func(%a: int, %b: int, %c: int, %d: int) {
# |   %e = add %a, %b              : int          # 01_tracing.py:17
# |   %f = add %c, %d              : int          # 01_tracing.py:18
# |   %g = add %e, %f              : int          # 01_tracing.py:19
# |   return %g
# | }

# The same function on arrays; a Spec describes an array without making one.
vector = mg.Spec((3,), "float32")
print(mg.trace(fancy_func, vector, vector, 1.5, np.arange(3)))
# | graph fancy_func(%a: f32[3], %b: f32[3], %c: float, %d: i64[3]) {
# |   %e = add %a, %b              : f32[3]       # 01_tracing.py:17
# |   %f = add %c, %d              : f64[3]       # 01_tracing.py:18
# |   %g = add %e, %f              : f64[3]       # 01_tracing.py:19
# |   return %g
# | }


# Python's own ifs and loops run while tracing, so they leave no trace but what they did.
def power(x, n):
    y = x
    for _ in range(n - 1):
        y = y * x
    return y


print(mg.trace(power, vector, 3))
# | graph power(%x: f32[3], %n: int) {
# |   %2 = const 1                 : int          # 01_tracing.py:46
# |   %4 = subtract %n, %2         : int          # 01_tracing.py:46
# |   %y = multiply %x, %x         : f32[3]       # 01_tracing.py:47
# |   %y.1 = multiply %y, %x       : f32[3]       # 01_tracing.py:47
# |   return %y.1
# | }

# A whole program: what it prints becomes part of the graph ...
program = mg.trace_program("print(sum(range(5)) * 2)")
print(program)
# | program program() {
# |   %0 = const 5                 : int          # <program 1>:1
# |   %2 = const 2                 : int          # <program 1>:1
# |   %4 = const 10                : int          # <program 1>:1
# |   %6 = multiply %4, %2         : int          # <program 1>:1
# |   print %6 {parts=(%,)}                       # <program 1>:1
# |   return None
# | }

# ... and what depends on its literals alone is computed before it runs.
print(mg.compile(mg.trace_program("print((1 + 2) * (3 + 4))")).source())
# | print(21)
