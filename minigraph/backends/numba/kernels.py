"""From the body of a `kernel` node to the text of loops.

    kernel %x, %y {form="map"}  over (n, m)        def kernel(lo, hi, v0, v1, v2):
      %t = multiply %x, %y                             for i in range(lo, hi):
      %u = tanh %t                        becomes          t0 = load(v0, i)
      return %u                                            t1 = load(v1, i)
                                                           t2 = t0 * t1
                                                           t3 = tanh(t2)
                                                           store0(v2, i, t3)

The text has one local for each node, and no name, size or place of the user's: equal kernels have
equal text, and a new shape is the same text with other arguments.  Loop axes whose elements lie
side by side in every buffer are one loop.  The outermost loop runs from `lo` to `hi`, so that
threads can share it.

- map: one loop nest, a statement for each node; in tiles where it reads a transpose.
- a long chain: two elements at a time.
- rows: the reduced axes are the last ones, or elements lie side by side along them.
- columns: other axes are the innermost ones.
- a reduction of everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from minigraph.ir import Graph, Value

from ..settings import DEFAULT_SETTINGS, Settings
from ..strided import Strided
from .columns import Columns
from .everything import write_everything
from .rows import write_rows
from .space import NO_TARGETS, Loop, Space, sequence
from .writing import Function, Kernel, NewText, Scope, Text, compute_and_store

LONG_CHAIN = 40  # nodes of a map from which two elements are computed at a time
TILE = 64  # columns at a time of a map that reads a transpose: their cache lines serve many rows
SIMPLE = 5  # of so many nodes at most one is costly then


def write_kernel(
    body: Graph,
    windows: Mapping[Value, Strided],
    over: Mapping[Value, Value],
    settings: Settings = DEFAULT_SETTINGS,
    targets: Mapping[Value, Strided] = NO_TARGETS,
) -> Kernel:
    """The functions that compute a body.

    Args:
        body: the region of a `kernel` node without a contraction.
        windows: where each input of the body lies, if not in a buffer of its own.
        over: the buffers that outputs are written over, each with its output.
        settings: what the user chose.
        targets: where each output of a map goes, if not to a buffer of its own.
    """
    space = Space(body, windows, targets)
    new_text = partial(Text, space, over, settings)
    if not space.reductions:
        return _map(space, new_text)
    if 0 < len(space.shape) == len(space.reduced):
        return write_everything(space, new_text)
    return write_rows(space, new_text) if _is_by_rows(space) else Columns(space, new_text).write()


def _is_by_rows(space: Space) -> bool:
    """Whether the innermost loops run along reduced axes.

    So they do if elements lie side by side along these in most buffers, or, where the buffers do
    not tell, if the reduced axes are the last ones.
    """
    panel = space.others[-1:]
    if not space.reduced or not panel or space.shape[panel[0]] == 1:
        return True
    outer = panel[0]
    by_rows = by_columns = 0
    for value, window in space.in_memory():
        step = space.steps(value, window)
        reduced = [step[axis] for axis in space.reduced]
        by_rows += 1 in reduced and step[outer] not in (0, 1)
        by_columns += step[outer] == 1 and 1 not in reduced and any(each != 0 for each in reduced)
    if any(node.op.name == "copy" for node in space.nodes):  # NumPy would read the copy
        by_rows = by_columns = 0
    return by_rows >= by_columns if by_rows or by_columns else space.reduced[-1] > outer


# ---------------------------------------------------------------------------- map


def _map(space: Space, new_text: NewText) -> Kernel:
    loops = space.loops(range(len(space.shape)))
    if len(loops) == 1 and _is_long_chain(space):
        return _long_map(space, loops, new_text)
    text = new_text()
    outside = Scope(text)
    outer, inner = (loops[:-1], loops[-1:]) if len(loops) > 1 else (loops, [])
    sizes = [text.size(loop.extent) for loop in inner]
    low, high = "0", sizes[0] if inner else ""
    if inner and space.is_across(outer[-1].axes[-1], inner[0].axes[-1]):
        text.open(f"for b in range(0, {high}, {TILE}):")
        low, high = "b", f"min(b + {TILE}, {high})"
    text.open("for i in range(lo, hi):")
    scope = outside.enter(outer, text.decode("i", outer), inline=not inner)
    if inner:
        text.open(f"for j in range({low}, {high}):")
        scope = scope.enter(inner, ["j"], inline=True)
    compute_and_store([scope], space.body.outputs)
    return Kernel(Function(text), sequence(outer), space.work)


def _is_long_chain(space: Space) -> bool:
    """Whether each element takes many steps, most of them simple (others fill the processor)."""
    costly = sum(space.is_costly(node) for node in space.nodes)
    return len(space.nodes) >= max(LONG_CHAIN, SIMPLE * costly)


def _long_map(space: Space, loops: Sequence[Loop], new_text: NewText) -> Kernel:
    """One loop over a long chain: two halves at once, for else each step waits for the one before.

    LLVM does not interleave steps of a loop that is so long.
    """
    text = new_text()
    outside = Scope(text)
    half = text.assign("(hi - lo) // 2")
    text.open(f"for i in range(lo, lo + {half}):")
    halves = [outside.enter(loops, [index], inline=True) for index in ("i", f"(i + {half})")]
    compute_and_store(halves, space.body.outputs)
    text.depth -= 1
    text.open(f"for i in range(lo + {half} * 2, hi):")
    compute_and_store([outside.enter(loops, ["i"], inline=True)], space.body.outputs)
    return Kernel(Function(text), sequence(loops), space.work)
