"""minigraph: write ordinary NumPy, see every step the compiler takes with it.

trace, trace_program, Spec, dim     from Python to a Graph
jit, freeze, eager                  compile functions as they are called
grad, value_and_grad, vjp, jvp      derivatives of functions
stop_gradient, checkpoint, custom_gradient      and what steers them
testing                             their check against differences
optimize, compile, parse            from a Graph to a program
Array, array, autograd, random      arrays, and gradients of what was recorded
nn, nd, sym                         networks, and the two namespaces of functions
load                                a network from the file that `net.export` wrote
set_num_threads, get_num_threads    of compiled programs
"""

import importlib
from typing import Any

from . import autograd, random, viz
from .array import Array, array
from .backends import get_num_threads, set_num_threads
from .compiled import Compiled, compile, optimize, parse
from .derivatives import grad, jvp, value_and_grad, vjp
from .errors import MinigraphError
from .ir import Graph, dim
from .jit import JitFunction, eager, freeze, jit
from .steering import checkpoint, custom_gradient, stop_gradient
from .trace import Spec, trace, trace_program

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Compiled",
    "Graph",
    "JitFunction",
    "MinigraphError",
    "Spec",
    "array",
    "autograd",
    "checkpoint",
    "compile",
    "custom_gradient",
    "dim",
    "eager",
    "freeze",
    "get_num_threads",
    "grad",
    "jit",
    "jvp",
    "optimize",
    "parse",
    "random",
    "set_num_threads",
    "stop_gradient",
    "trace",
    "trace_program",
    "value_and_grad",
    "viz",
    "vjp",
]


def __getattr__(name: str) -> Any:
    """Networks, and what tests need, are loaded when they are used."""
    if name == "testing":
        return importlib.import_module(f"{__name__}.testing")
    if name not in ("load", "nd", "nn", "sym"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    nn = importlib.import_module(f"{__name__}.nn")
    return nn if name == "nn" else getattr(nn, name)
