"""A pass of your own: a function from graph to graph that tells what it did.

`late` computes each result when it is first needed, so that none lies in memory while it waits.
Prints keep their order.  A write into an argument has to wait for all that reads the old contents,
so whatever stands before it is done before it.
"""

import numpy as np

import minigraph as mg
from minigraph.ir import Graph, Node
from minigraph.passes import DEFAULT, Recorder


def late(graph: Graph, recorder: Recorder) -> Graph:
    producers = graph.producers()
    order: dict[Node, None] = {}  # the new order

    def need(last: Node) -> None:
        pending = [last]  # a stack and no recursion: a graph may be deep
        while pending:
            makers = (producers.get(value) for value in pending[-1].inputs)
            first = next((maker for maker in makers if maker and maker not in order), None)
            if first is not None:
                pending.append(first)
            else:
                order[pending.pop()] = None

    for position, node in enumerate(graph.nodes):
        if node.op.effect == "write":
            for earlier in graph.nodes[:position]:
                need(earlier)
        if node.is_effect:
            need(node)
    for value in graph.outputs:
        if value in producers:
            need(producers[value])
    if tuple(order) == graph.nodes:
        return graph  # the same object says: nothing changed
    names = ", ".join(f"%{value.name}" for node in order for value in node.outputs)
    recorder.note("late.order", f"computed when needed: {names}")
    return graph.replace(order)


def f(x):
    a = np.sin(x)
    b = np.cos(x).sum()
    c = np.tan(x).sum()
    return (b + c) * a


x = np.linspace(0, 1, 1000)
usual = mg.compile(mg.trace(f, x), backend="python")
moved = mg.compile(mg.trace(f, x), backend="python", passes=(*DEFAULT, late), verify=True)
print(usual.memory_report().planned, "->", moved.memory_report().planned, "bytes")
# | 16000 -> 8000 bytes
print(moved.source())
# | # f(x: f64[1000]) -> f64[1000]
# | import numpy as np
# |
# |
# | def f(x):
# |     v3 = np.cos(x)                    # f64[1000]
# |     b = np.sum(v3, axis=(0,))         # f64[]
# |     v7 = np.tan(x, out=v3)            # f64[1000]
# |     del v3
# |     c = np.sum(v7, axis=(0,))         # f64[]
# |     v11 = b + c                       # f64[]
# |     a = np.sin(x, out=v7)             # f64[1000]
# |     del v7
# |     v13 = np.multiply(v11, a, out=a)  # f64[1000]
# |     return v13
print([event.why for stage in moved.stages for event in stage.events])
# | ['computed when needed: %3, %b, %7, %c, %11, %a, %13']
assert np.array_equal(usual(x), f(x)) and np.array_equal(moved(x), f(x))

# A jitted function takes the same passes, by name or as functions.
print(mg.jit(f, backend="python", passes=(*DEFAULT, late))(x)[:2])
# | [0.         1.45864775]
