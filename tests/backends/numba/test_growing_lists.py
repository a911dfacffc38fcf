"""Lists that grow in loops, compiled: what is appended is stored where it stays."""

from __future__ import annotations

import numpy as np
from comparing import describe

import minigraph as mg

ROWS = np.arange(60.0).reshape(20, 3) / 8


def running(x, h):
    outs, counts = [], []
    for t in range(x.shape[0]):
        h = x[t] * 0.5 + h
        if h.sum() > 9:
            h = h - 1.0
        outs.append(h)
        counts.append(t * 3)
    return np.stack(outs), h, counts, outs[-1]


def test_a_list_is_filled_in_one_compiled_loop():
    scripted = mg.script(running, backend="numba")
    for x in (ROWS, -ROWS):
        assert describe(scripted(x, np.zeros(3))) == describe(running(x, np.zeros(3)))
    loops = [n for n in scripted.graph.nodes if n.op.name in ("scan", "while")]
    assert [loop.op.name for loop in loops] == ["scan"]
    made = mg.compile(scripted.graph, backend="numba", strict=True)
    assert any(segment.is_loop for segment in made.program.segments.values())  # type: ignore[attr-defined]
