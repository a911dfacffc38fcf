"""minigraph: write ordinary NumPy, see every step the compiler takes with it.

trace, trace_program, Spec, dim     from Python to a Graph
jit, freeze, eager                  compile functions as they are called
optimize, compile, parse            from a Graph to a program
Array, array, autograd, random      arrays, and gradients of what was recorded
set_num_threads, get_num_threads    of compiled programs
"""

from . import autograd, random, viz
from .array import Array, array
from .backends import get_num_threads, set_num_threads
from .compiled import Compiled, compile, optimize, parse
from .errors import MinigraphError
from .ir import Graph, dim
from .jit import JitFunction, eager, freeze, jit
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
    "compile",
    "dim",
    "eager",
    "freeze",
    "get_num_threads",
    "jit",
    "optimize",
    "parse",
    "random",
    "set_num_threads",
    "trace",
    "trace_program",
    "viz",
]
