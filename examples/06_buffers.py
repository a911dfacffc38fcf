"""Buffers: which results lie in memory at the same time, and which share their place."""

import numpy as np

import minigraph as mg


def chain():
    a = np.ones(10)
    b = np.ones(10) * 2
    c = b * a
    d = c + 1
    return d


# With common subexpressions merged, and without computing the constants beforehand.
compiled = mg.compile(mg.trace(chain), backend="python", passes=("cse", "dce"))
print(compiled.graph())
# | graph chain() {
# |   %a = ones {shape=(10,)}      : f64[10]      # 06_buffers.py:9
# |   %4 = const 2                 : int          # 06_buffers.py:10
# |   %b = multiply %a, %4         : f64[10]      # 06_buffers.py:10
# |   %c = multiply %b, %a         : f64[10]      # 06_buffers.py:11
# |   %10 = const 1                : int          # 06_buffers.py:12
# |   %d = add %c, %10             : f64[10]      # 06_buffers.py:12
# |   return %d
# | }
print(compiled.memory_report())
# | without reuse         320 bytes
# | planned               160 bytes
# | lower bound           160 bytes
# | measured                not run

# The plan says what each result is written into, and what is let go after each node.
plan = compiled.plan
for node, dead, live in zip(compiled.graph().nodes, plan.dies, plan.live_bytes, strict=True):
    (value,) = node.outputs
    place = f"slot {plan.slot[value]}" if value in plan.slot else "a number"
    taken = f", taken over from %{plan.reuses[value].name}" if value in plan.reuses else ""
    gone = ", then frees " + " ".join(f"%{each.name}" for each in dead) if dead else ""
    print(f"%{value.name:3} {place}{taken}{gone}; {live} bytes alive")
# | %a   slot 0; 80 bytes alive
# | %4   a number; 80 bytes alive
# | %b   slot 1, then frees %4; 160 bytes alive
# | %c   slot 1, taken over from %b, then frees %a %b; 80 bytes alive
# | %10  a number; 80 bytes alive
# | %d   slot 1, taken over from %c, then frees %c %10; 80 bytes alive

# The generated program does what the plan says.
print(compiled.source())
# | # chain() -> f64[10]
# | import numpy as np
# |
# |
# | def chain():
# |     a = np.ones(shape=(10,))      # f64[10]
# |     b = a * 2                     # f64[10]
# |     c = np.multiply(b, a, out=b)  # f64[10]
# |     del a, b
# |     d = np.add(c, 1, out=c)       # f64[10]
# |     return d


# A result is never a buffer that a later call writes again; an argument changes only where the
# function writes to it.
@mg.jit
def step(x, v):
    x += 0.5 * v
    return x * 2


x, v = np.zeros(3), np.ones(3)
first, second = step(x, v), step(x, v)
print(first, second, x)
# | [1. 1. 1.] [2. 2. 2.] [1. 1. 1.]
print([repr(node) for node in step.graph("traced").nodes if node.op.effect])
# | ['write %x, %x.1']
