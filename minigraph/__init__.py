"""minigraph: write ordinary NumPy, see every step the compiler takes with it.

trace, trace_program, Spec, dim     from Python to a Graph
jit, freeze, eager                  compile functions as they are called
script, to_code                     the same, with control flow that depends on data
ignore, unused, export, is_scripting, undefined     what scripts leave out, or take in besides
cond, switch, while_loop, for_loop, fori_loop, scan, foreach    the same as functions
unroll                              a `for` that stays in Python
fork, wait                          a call whose result is asked for later
grad, value_and_grad, vjp, jvp      derivatives of functions
stop_gradient, checkpoint, custom_gradient      and what steers them
testing                             their check against differences
optimize, compile, parse            from a Graph to a program
Array, array, autograd, random      arrays, and gradients of what was recorded
nn, nd, sym                         networks, and the two namespaces of functions
load                                a network from the file that `net.export` wrote
bench, Benchmark                    how long calls take
viz                                 pictures of graphs, and of curves
set_num_threads, get_num_threads    of compiled programs

To read the code, follow a call of `mg.jit`: jit.py, engine.py (which entry, and what is made if
there is none), trace/tracer.py (Python to a graph; then recording.py and arrays.py), compiled.py,
passes/pipeline.py and backends/; entry.py is what runs from then on.  Control flow begins with the
text of a function, and goes through

    scripted.py             mg.script and mg.to_code
    trace/script/           source.py finds the text; convert.py makes functions of blocks,
                            expressions.py words of expressions; code.py does both
    trace/control.py        what the functions are given to; joins.py and loops.py record it,
                            parts.py and holders.py find what it changes
    ops/control.py          `if`, `while`, `scan`: nodes whose attrs are graphs
    passes/regions.py       how passes go into these; fold_branches.py, hoist.py, prune.py
    backends/control.py     as Python; numba/loops.py and numba/regions.py as compiled loops
    grad/branches.py        backwards; scans.py, whiles.py, checkpoints.py
    nn/recurrent/           what is built on scans

A derivative begins with the `vjp` of an op, and goes through

    ops/derivation.py       what a rule is written with
    grad/sweep.py           backwards through nodes; joint.py: a graph and its gradients as one;
                            partition.py: that one cut in two
    derivatives.py          mg.grad and the others; differentiated.py: a call of one that is
                            compiled; pullbacks.py: what mg.vjp returns; taped.py: all that eagerly
    steering.py             mg.stop_gradient, mg.checkpoint, mg.custom_gradient
    array.py, autograd.py   arrays, and what says that they are recorded
    tape/steps.py           what was recorded; recording.py writes it, gradients.py goes back
                            through it, programs.py compiles that; called.py: compiled functions
    trace/eager.py          the same `backward` inside what is traced
    nn/block.py             with members.py and parameter.py, then hybrid.py; trainer.py is a step
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import autograd, random
from .array import Array, array
from .backends import get_num_threads, set_num_threads
from .benchmark import Benchmark, bench
from .compiled import Compiled, compile, optimize, parse
from .derivatives import grad, jvp, value_and_grad, vjp
from .errors import MinigraphError
from .forking import fork, wait
from .ir import Graph, dim
from .jit import JitFunction, eager, freeze, jit
from .scripted import ScriptFunction, export, ignore, is_scripting, script, to_code, unused
from .steering import checkpoint, custom_gradient, stop_gradient
from .trace import (
    Spec,
    cond,
    for_loop,
    foreach,
    fori_loop,
    scan,
    switch,
    trace_program,
    undefined,
    unroll,
    while_loop,
)
from .tracing import trace

if TYPE_CHECKING:
    from . import viz

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Benchmark",
    "Compiled",
    "Graph",
    "JitFunction",
    "MinigraphError",
    "ScriptFunction",
    "Spec",
    "array",
    "autograd",
    "bench",
    "checkpoint",
    "compile",
    "cond",
    "custom_gradient",
    "dim",
    "eager",
    "export",
    "fork",
    "for_loop",
    "foreach",
    "fori_loop",
    "freeze",
    "get_num_threads",
    "grad",
    "ignore",
    "is_scripting",
    "jit",
    "jvp",
    "optimize",
    "parse",
    "random",
    "scan",
    "script",
    "set_num_threads",
    "stop_gradient",
    "switch",
    "to_code",
    "trace",
    "trace_program",
    "undefined",
    "unroll",
    "unused",
    "value_and_grad",
    "viz",
    "vjp",
    "wait",
    "while_loop",
]


class _DrawerOnDemand:
    """Loads `minigraph.viz`, which takes its place, when the first graph is drawn."""

    def __getattr__(self, name: str) -> Any:
        importlib.import_module(f"{__name__}.viz")
        return getattr(Graph.drawer, name)


Graph.drawer = _DrawerOnDemand()  # type: ignore[assignment]  # its methods come with `viz`


def __getattr__(name: str) -> Any:
    """Networks, pictures, and what tests need, are loaded when they are used."""
    if name in ("testing", "viz"):
        return importlib.import_module(f"{__name__}.{name}")
    if name not in ("load", "nd", "nn", "sym"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    nn = importlib.import_module(f"{__name__}.nn")
    return nn if name == "nn" else getattr(nn, name)
