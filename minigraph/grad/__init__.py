"""Reverse-mode differentiation: Graph to Graph, from the rule (`Op.vjp`) of each op.

    graph f(%x: f64[3]) {
      %y = sin %x                  : f64[3]
      return %y
    }

has the joint graph

    graph f_joint(%x: f64[3], %dy: f64[3]) {
      %y = sin %x                  : f64[3]
      %0 = cos %x                  : f64[3]
      %1 = multiply %dy, %0        : f64[3]
      return (%y, %1)
    }

`backward` is the sweep, over the nodes of any recording: of a trace, of the tape, of `joint`.
`partition` cuts a joint graph, once it is optimised, into a forward and a backward program.

`if`, `scan` and `while` are differentiated through their regions, into an `if`, a `scan` from the
last turn to the first, and a `while` that counts down; what these need of what was computed, the
node gives as further results (see `branches`, `scans`, `whiles`, `checkpoints`).

The cotangent of an array has its type, that of a Python float is an `f64[]`; nothing else has one.
"""

from .building import GraphBuilder, add, zeros
from .joint import differentiable, joint
from .partition import Partition, needed, partition
from .reach import influenced
from .sweep import backward

__all__ = [
    "GraphBuilder",
    "Partition",
    "add",
    "backward",
    "differentiable",
    "influenced",
    "joint",
    "needed",
    "partition",
    "zeros",
]
