"""From Python to a Graph: the tracer."""

from . import methods, numbers, text  # they give traced code NumPy and Python
from .arguments import Spec
from .arrays import TracedArray
from .blocks import captured, captured_gradient, outside, printing, seen
from .calling import bind, signature_of, spread
from .calls import NUMPY
from .checks import check
from .control import cond, for_loop, fori_loop, switch, unroll, while_loop
from .eager import backward as traced_backward
from .eager import gradients as traced_gradients
from .frozen import Frozen
from .guards import Condition, Guards
from .leaves import Leaves, renewed, standing_for, write_back
from .literals import forced
from .operands import BINARY, COMPARE, UNARY, has_traced
from .paths import Names, Path
from .program import trace_program
from .python_calls import record_python_call, structure_of
from .recording import ACTIVE, ArraysNeeded, Gradients, Recording, Storage, recording
from .regions import enclose, free, region, take
from .scalars import TracedScalar
from .scanning import foreach, scan
from .script import converted, to_text, undefined
from .source import is_users_file
from .tracer import Trace, trace, trace_call
from .twins import original
from .users import users_line
from .views import Layout

__all__ = [
    "ACTIVE",
    "BINARY",
    "COMPARE",
    "NUMPY",
    "UNARY",
    "ArraysNeeded",
    "Condition",
    "Frozen",
    "Gradients",
    "Guards",
    "Layout",
    "Leaves",
    "Names",
    "Path",
    "Recording",
    "Spec",
    "Storage",
    "Trace",
    "TracedArray",
    "TracedScalar",
    "bind",
    "captured",
    "captured_gradient",
    "check",
    "cond",
    "converted",
    "enclose",
    "for_loop",
    "foreach",
    "fori_loop",
    "forced",
    "free",
    "has_traced",
    "is_users_file",
    "methods",
    "original",
    "outside",
    "printing",
    "record_python_call",
    "recording",
    "region",
    "renewed",
    "scan",
    "seen",
    "signature_of",
    "spread",
    "standing_for",
    "structure_of",
    "switch",
    "take",
    "to_text",
    "trace",
    "trace_call",
    "trace_program",
    "traced_backward",
    "traced_gradients",
    "unroll",
    "undefined",
    "users_line",
    "while_loop",
    "write_back",
]
