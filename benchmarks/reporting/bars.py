"""The bars that minigraph was built to reach, held against the results of a run.

A bar is how long minigraph may take at most, for each second of a peer (of several: of the fastest
of those that were measured).  What is no workload, such as the memory of a chain, is not here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from minigraph.measuring import duration

from ..harness.results import Results
from . import verdicts
from .grids import Entry, Grid, Notes
from .tables import times
from .verdicts import MEASURED, OURS, Ratio

COMPILED, BLOCK, HYBRIDIZED = f"{OURS} numba", f"{OURS} block", f"{OURS} hybridize"
STATIC = f"{HYBRIDIZED} static"
PYTHON, NUMPY, NJIT, BY_HAND = "Python", "NumPy", "Numba njit", "Numba by hand"
JAX, ONNX = "JAX jit", "ONNX Runtime"
EAGER, WITH_GRAD, SCRIPT = "torch eager", "torch eager with grad", "torch.jit.script"
CELLS, COMPILE, MXNET = "torch.jit.script of cells", "torch.compile", "MXNet hybridize static"
TORCH = (EAGER, SCRIPT, COMPILE)

REACHED, MISSED, NOISE, UNKNOWN = "reached", "missed", "within noise", "not measured"
PARTLY = "reached of some"
PRESENT = (MEASURED, "not written")  # a peer that nobody wrote is none
FAILED = ("wrong", "crashed", "timed out")
TONES = {REACHED: "gain", PARTLY: "", MISSED: "loss", NOISE: "", UNKNOWN: "grey"}


@dataclass(frozen=True)
class Bar:
    """How much of the time of the fastest of `peers` the column `ours` may take."""

    workload: str
    ours: str
    at_most: float
    peers: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """A bar and what was measured.

    Attributes:
        verdict: reached or missed, if the whole range says so; "reached of some" where one of the
            peers, which may be the strongest, was not measured.
        peer: the fastest of the peers; ours_s, theirs_s: the medians.
        why: what is not there, if something is not.
    """

    bar: Bar
    verdict: str
    peer: str = ""
    ours_s: float | None = None
    theirs_s: float | None = None
    ratio: Ratio | None = None
    why: str = ""


def _each(workloads: Iterable[str], ours: str, *bars: tuple[float, tuple[str, ...]]) -> list[Bar]:
    return [Bar(name, ours, at_most, peers) for name in workloads for at_most, peers in bars]


def _over(axis: str, *methods: str) -> list[str]:
    return [f"{method}-{axis}" for method in methods]


BARS: Sequence[Bar] = (
    # the textbook's network
    *_each(
        ["mlp-1"],
        COMPILED,
        (0.40, (SCRIPT,)),
        (0.25, (WITH_GRAD,)),
        (0.30, (EAGER,)),
        (0.90, (ONNX,)),
    ),
    *_each(["mlp-32", "mlp-256"], COMPILED, (1.0, (WITH_GRAD, *TORCH))),
    *_each(["mlp-1"], BLOCK, (1.5, (WITH_GRAD,))),
    *_each(["mlp-1"], HYBRIDIZED, (0.45, (SCRIPT,)), (0.25, (MXNET,))),
    *_each(["mlp-1"], STATIC, (0.45, (SCRIPT,))),
    # chains and rows
    *_each(["chain-4194304"], COMPILED, (0.45, (COMPILE,)), (0.6, (JAX,)), (0.15, (NUMPY,))),
    *_each(["softmax"], COMPILED, (1.0, TORCH)),
    *_each(["layer_norm"], COMPILED, (0.7, TORCH)),
    # reductions; by hand is reading memory
    *_each(_over("rows", "sum", "max"), COMPILED, (1.0, (NUMPY,)), (1 / 0.85, (BY_HAND,))),
    *_each(_over("columns", "sum", "max"), COMPILED, (0.8, (NUMPY,))),
    *_each(["var-rows", "var-columns"], COMPILED, (0.2, (NUMPY,))),
    # programs
    *_each(
        ["black_scholes", "mandelbrot", "heat", "pairwise"],
        COMPILED,
        (0.5, (NUMPY,)),
        (1.0, (COMPILE,)),
        (1.0, (JAX,)),
    ),
    # training, and the encoder
    *_each(["mlp-training-sgd"], COMPILED, (0.8, (EAGER,)), (0.9, (JAX,))),
    *_each(["mlp-training-sgd"], HYBRIDIZED, (0.8, (EAGER,)), (0.9, (JAX,))),
    *_each(["mlp-training-adam"], COMPILED, (0.8, (EAGER,))),
    *_each(["mlp-training-adam"], HYBRIDIZED, (0.8, (EAGER,))),
    *_each(["encoder", "encoder-training"], HYBRIDIZED, (1.0, (BLOCK,)), (1.0, (EAGER,))),
    # recurrent layers, and loops of numbers
    *_each(["lstm-1", "gru-1"], HYBRIDIZED, (0.25, (CELLS,)), (1.0, (EAGER,))),
    *_each(["lstm-32", "gru-32"], HYBRIDIZED, (1.0, (EAGER,))),
    *_each(
        ["collatz", "newton", "levenshtein", "sieve"],
        COMPILED,
        (0.02, (PYTHON,)),
        (1.25, (NJIT,)),
        (0.05, (SCRIPT,)),
    ),
)


def judge(bar: Bar, results: Results) -> Judged:
    """Hold a bar against the results."""
    mine = results.cell(bar.workload, bar.ours)
    if mine is None or mine.status != MEASURED:
        status = mine.status if mine else "not run"
        return Judged(bar, MISSED if status in FAILED else UNKNOWN, why=f"{bar.ours}: {status}")
    best = verdicts.fastest(results, bar.workload, bar.peers)
    cells = [(peer, results.cell(bar.workload, peer)) for peer in bar.peers]
    statuses = {peer: cell.status if cell else "not run" for peer, cell in cells}
    absent = {peer: status for peer, status in statuses.items() if status not in PRESENT}
    why = ", ".join(f"{peer}: {status}" for peer, status in absent.items())
    if best is None:
        return Judged(bar, UNKNOWN, ours_s=mine.statistics.median_s, why=why)
    ratio = Ratio.of(mine.statistics, best.statistics)
    reached = PARTLY if absent else REACHED
    verdict = {True: reached, False: MISSED, None: NOISE}[ratio.is_below(bar.at_most)]
    times_s = (mine.statistics.median_s, best.statistics.median_s)
    return Judged(bar, verdict, best.runner, *times_s, ratio, why)


def judged(results: Results, bars: Sequence[Bar] = BARS) -> list[Judged]:
    """The bars of all workloads that were run; of a full run all, also of those that were not."""
    is_full = results.kind == "full"
    return [judge(bar, results) for bar in bars if is_full or bar.workload in results.workloads]


def table(found: Sequence[Judged]) -> Grid:
    """One row for each bar, and of how many what can be said."""
    count, notes = Counter(each.verdict for each in found), Notes()
    said = ", ".join(f"{verdict} {count[verdict]}" for verdict in TONES)
    return Grid(
        "The bars: how long minigraph may take at most, for each second of the other",
        ("workload: minigraph / other", "ratio", "at most", "verdict", "range", "time", "its time"),
        [(_name(each), _entries(each, notes)) for each in found],
        remarks=[
            f"Of {len(found)} bars: {said}. The range is of the quartiles.",
            *notes.lines(),
        ],
    )


def _name(found: Judged) -> str:
    peer = found.peer or " or ".join(found.bar.peers)
    return f"{found.bar.workload}: {found.bar.ours.removeprefix(f'{OURS} ')} / {peer}"


def _entries(found: Judged, notes: Notes) -> list[Entry]:
    bar, ratio = found.bar, found.ratio
    texts = [times(ratio.value) if ratio else "-", times(bar.at_most)]
    verdict = Entry(found.verdict, TONES[found.verdict], notes.number(found.why))
    more = [f"{times(ratio.lower)} to {times(ratio.upper)}" if ratio else "-"]
    more += ["-" if each is None else duration(each) for each in (found.ours_s, found.theirs_s)]
    return [*map(Entry, texts), verdict, *map(Entry, more)]
