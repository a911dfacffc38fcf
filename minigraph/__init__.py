"""minigraph: write ordinary NumPy, see every step the compiler takes with it.

trace, trace_program, Spec, dim     from Python to a Graph
jit, freeze, eager                  compile functions as they are called
optimize, compile, parse            from a Graph to a program
"""

from . import viz
from .compiled import Compiled, compile, optimize, parse
from .errors import MinigraphError
from .ir import Graph, dim
from .jit import JitFunction, eager, freeze, jit
from .trace import Spec, trace, trace_program

__version__ = "0.1.0"

__all__ = [
    "Compiled",
    "Graph",
    "JitFunction",
    "MinigraphError",
    "Spec",
    "compile",
    "dim",
    "eager",
    "freeze",
    "jit",
    "optimize",
    "parse",
    "trace",
    "trace_program",
    "viz",
]
