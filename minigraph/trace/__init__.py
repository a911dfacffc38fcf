"""From Python to a Graph: the tracer."""

from . import methods  # gives traced arrays their methods and protocols
from .calls import NUMPY
from .frozen import Frozen
from .guards import Guards, Names, Path
from .operands import has_traced
from .program import trace_program
from .recording import ACTIVE
from .source import is_users_file
from .tracer import Spec, Trace, bind, signature_of, trace, trace_call

__all__ = [
    "ACTIVE",
    "Frozen",
    "NUMPY",
    "Guards",
    "Names",
    "Path",
    "Spec",
    "Trace",
    "bind",
    "has_traced",
    "is_users_file",
    "methods",
    "signature_of",
    "trace",
    "trace_call",
    "trace_program",
]
