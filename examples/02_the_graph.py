"""The graph: four kinds of records, never changed, with one text form."""

import numpy as np

import minigraph as mg


def distance(points, center):
    offset = points - center
    squared = (offset * offset).sum(axis=1)
    return np.sqrt(squared)


graph = mg.trace(distance, mg.Spec(("n", 2), "float64"), mg.Spec((2,), "float64"))
print(graph)
# | graph distance(%points: f64[n,2], %center: f64[2]) {
# |   %offset = subtract %points, %center : f64[n,2]  # 02_the_graph.py:9
# |   %4 = multiply %offset, %offset : f64[n,2]   # 02_the_graph.py:10
# |   %squared = sum %4 {axis=(1,)} : f64[n]      # 02_the_graph.py:10
# |   %8 = sqrt %squared           : f64[n]       # 02_the_graph.py:11
# |   return %8
# | }

# A node applies an op to values; arrays are inputs, everything else is an attribute.
node = graph.nodes[2]
print(node.op.name, node.op.kind, node.inputs, node.attrs, "->", node.outputs)
# | sum reduce (%4: f64[n,2],) {'axis': (1,)} -> (%squared: f64[n],)

# Each value knows its type; `n` is a size that stays open.
print([str(value.type) for value in graph.values()])
# | ['f64[n,2]', 'f64[2]', 'f64[n,2]', 'f64[n,2]', 'f64[n]', 'f64[n]']

# The way back to the source, and to who reads what.
offset = graph.nodes[0].output
print(graph.nodes[0].loc, [user.op.name for user in graph.users()[offset]])
# | 02_the_graph.py:9 ['multiply']

# The text is the graph: it can be read back, and run.
again = mg.parse(str(graph))
print(again == graph)
# | True
run = mg.compile(again)
print(run(np.array([[3.0, 4.0], [6.0, 8.0]]), np.zeros(2)))
# | [ 5. 10.]

# Compiling keeps every stage, and what each pass did.  Here to Python, which is there at once and
# can be read; what becomes of a graph by default is in 08_fused_kernels.py.
compiled = mg.compile(graph, backend="python")
print(*(stage.name for stage in compiled.stages))
# | traced fold fold_branches simplify propagate hoist prune dce cse drop_writes parallel
print(compiled.source())
# | # distance(points: f64[n,2], center: f64[2]) -> f64[n]
# | import numpy as np
# |
# |
# | def distance(points, center):
# |     offset = points - center                      # f64[n,2]
# |     v4 = np.multiply(offset, offset, out=offset)  # f64[n,2]
# |     del offset
# |     squared = np.sum(v4, axis=(1,))               # f64[n]
# |     del v4
# |     v8 = np.sqrt(squared, out=squared)            # f64[n]
# |     return v8

# A picture needs nothing installed: graph.save("distance.svg"), .png, .pdf or .dot.
print(graph.svg()[:4], len(graph.dot().splitlines()) > 10)
# | <svg True
