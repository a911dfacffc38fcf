"""An op of your own: one record says all there is to know about it.

NumPy has more functions than minigraph records.  `np.i0`, a Bessel function, is one; here it
becomes an op, and with that known to the tracer, the passes, the evaluator and every backend.
"""

import numpy as np

import minigraph as mg
from minigraph import ops
from minigraph.ir import ArrayType, Op


def window(x):
    return np.i0(np.sqrt(1 - x * x)) / np.i0(2.0)


x = np.linspace(-1, 1, 5)
try:
    mg.trace(window, x)
except mg.MinigraphError as error:
    print(error.code, error.fact)
# | MG005 np.i0 is not recorded


def infer(types, attrs):
    """The type of the result from those of the operands: float64, of the same shape."""
    return ArrayType(np.dtype("float64"), ops.array_type(types[0]).shape)


def bind(x):
    """The operands and the attributes of a call; NumPy's own parameters, by name."""
    return [x], {}


ops.declare(
    Op(
        "i0",
        "library",  # called whole; an elementwise op would be one line (CONTRIBUTING.md)
        infer,
        "i0",  # what it means: the function of that name, of numpy or a module like it
        records=("i0",),
        bind=bind,
        doc="np.i0, the modified Bessel function of order 0",
    )
)

graph = mg.trace(window, x)
print([node.op.name for node in graph.nodes])
# | ['multiply', 'const', 'subtract', 'sqrt', 'i0', 'const', 'i0', 'divide']

# Its calls on constants are folded and its memory is planned, as for any other op.
compiled = mg.compile(graph, backend="python")
print(compiled.source())
# | # window(x: f64[5]) -> f64[5]
# | # c13: f64[] = 2.279585302336067
# | import numpy as np
# |
# |
# | def window(x):
# |     v1 = x * x                        # f64[5]
# |     v5 = np.subtract(1, v1, out=v1)   # f64[5]
# |     del v1
# |     v7 = np.sqrt(v5, out=v5)          # f64[5]
# |     del v5
# |     v9 = np.i0(v7)                    # f64[5]
# |     del v7
# |     v15 = np.divide(v9, c13, out=v9)  # f64[5]
# |     return v15
assert np.array_equal(compiled(x), window(x))
