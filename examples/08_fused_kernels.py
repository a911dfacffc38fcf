"""Fused kernels: what NumPy does in five sweeps over memory becomes one loop.

Here is softmax, what becomes of it by default, and the same without fusion.
"""

import numpy as np

import minigraph as mg
from minigraph.passes import DEFAULT


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


x = np.random.default_rng(0).normal(size=(64, 1000)).astype(np.float32)
fused = mg.jit(softmax)
fused(x)  # compiles; the next process finds the machine code on disk

# The last pass, `fuse`, made one node of five.  Its body is a graph of ordinary nodes.
(kernel,) = fused.graph().nodes
print(kernel.op.name, kernel.attrs["form"], [node.op.name for node in kernel.attrs["body"].nodes])
# | kernel rows ['max', 'subtract', 'exp', 'sum', 'divide']

# The loop, with the names and lines of this file; "llvm" and "asm" are what became of it.
print(fused.source("numba"))
# | ...
# | def kernel0(...):
# |     for i in range(lo, hi):
# | ...
# |                 e = exp(...)  # 08_fused_kernels.py:13
# | ...

# Without fusion: the same passes as before it, and a NumPy call for each node.
apart = mg.jit(softmax, passes=DEFAULT)
apart(x)
print(apart.source())
# | # softmax(x: f32[64,1000]) -> f32[64,1000]
# | import numpy as np
# |
# |
# | def softmax(x):
# |     v1 = np.max(x, axis=(1,), keepdims=True)  # f32[64,1]
# |     v3 = x - v1                               # f32[64,1000]
# |     del v1
# |     e = np.exp(v3, out=v3)                    # f32[64,1000]
# |     del v3
# |     v7 = np.sum(e, axis=(1,), keepdims=True)  # f32[64,1]
# |     v9 = np.divide(e, v7, out=e)              # f32[64,1000]
# |     return v9

# The last bits differ: `exp` is within 4 ULP, and sums are added in another order.
print(np.allclose(fused(x), apart(x), rtol=1e-6, atol=0), np.array_equal(apart(x), softmax(x)))
# | True True

# What cannot be one loop has a reason: `y` is needed twice, and `max` needs all of it first.
scaled = mg.jit(lambda x: (y := np.tanh(x)) / np.abs(y).max())
scaled(x)
for event in scaled.lower(x).history.events:
    if event.kind == "refuse":
        print(event.code, "|", event.why)
# | REDUCTION_BARRIER | ...
# | REDUCTION_BARRIER | ...
