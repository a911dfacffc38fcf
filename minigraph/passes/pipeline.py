"""The pipeline: passes by name, run in rounds until none of them changes anything; then lowerings.

A lowering makes of a graph what a backend wants, so it comes last, and once.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter

from minigraph.errors import OptionError, unknown
from minigraph.ir import Graph, Ids, Value, verify

from .fusible import cannot_fuse
from .history import History, Stage
from .recorder import CannotFuse, Recorder

Pass = Callable[[Graph, Recorder], Graph]

DEFAULT = (
    *("fold", "fold_branches", "simplify", "propagate", "hoist", "prune"),
    *("dce", "cse", "drop_writes"),
)
LOWERINGS = ("inline", "fuse", "parallel", "open_barriers")
MOST_ROUNDS = 16


def _find_passes() -> dict[str, Pass]:
    """Each file of this folder that holds a function of its own name that returns a Graph."""
    found: dict[str, Pass] = {}
    for info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        module = importlib.import_module(f"{__package__}.{info.name}")
        function = getattr(module, info.name, None)
        if inspect.isfunction(function) and function.__annotations__.get("return") == "Graph":
            found[info.name] = function
    return found


PASSES: dict[str, Pass] = _find_passes()


def optimize(
    graph: Graph,
    passes: Iterable[str | Pass] = DEFAULT,
    *,
    fast_math: bool = False,
    debug: bool = False,
    strided: Iterable[Value] = (),
    lowering: Iterable[str | Pass] = (),
    cannot_fuse: CannotFuse = cannot_fuse,
) -> History:
    """Run passes over a graph until none of them changes anything, and then lowerings.

    Args:
        graph: the graph as it was traced; it stays as it is.
        passes: names of passes (`PASSES` has them) or functions `(graph, recorder) -> Graph`, in
            order.  To switch one off, leave it out.  Those of `LOWERINGS` count as lowerings.
        fast_math: allow rewrites that change rounding, NaN and the sign of zero.
        debug: verify the graph after each pass.
        strided: the inputs whose elements do not lie side by side in C order.
        lowering: what else is to run once, at the end.
        cannot_fuse: why the backend has no loop for a node; "" if it has.

    Raises:
        OptionError: there is no pass of that name.
        VerifyError: under `debug`, a pass made a graph that breaks a rule of the IR.
    """
    named = _several(passes)
    last = dict.fromkeys((*(each for each in named if each in LOWERINGS), *_several(lowering)))
    run = _Run(
        graph,
        Recorder(Ids.after(graph), fast_math=fast_math, strided=strided, cannot_fuse=cannot_fuse),
        debug,
    )
    run.rounds([each for each in named if each not in LOWERINGS])
    run.once(last)
    return History(run.stages)


class _Run:
    """Runs passes one after the other and keeps the stages."""

    def __init__(self, graph: Graph, recorder: Recorder, debug: bool) -> None:
        self.graph = graph
        self.recorder = recorder
        self.debug = debug
        self.turn = 1
        self.stages = [Stage("traced", graph, (), 0.0, 0)]
        if debug:
            verify(graph, stage="trace")

    def rounds(self, passes: Iterable[str | Pass]) -> None:
        """Run passes in turn until none of them changes anything."""
        chosen = [(_name(each), _pass(each)) for each in passes]
        unchanged = 0  # passes that ran since the graph last changed
        for self.turn in range(1, MOST_ROUNDS + 1):
            for name, run in chosen:
                if unchanged == len(chosen):
                    return
                unchanged = 0 if self._step(name, run) else unchanged + 1
        if chosen and unchanged < len(chosen):
            note = f"stopped after {MOST_ROUNDS} rounds, still changing"
            self.recorder.note("pipeline.rounds", note)
            events = self.recorder.take_events()
            self.stages.append(Stage("pipeline", self.graph, events, 0.0, MOST_ROUNDS))

    def once(self, passes: Iterable[str | Pass]) -> None:
        """Run each pass once."""
        chosen = [(_name(each), _pass(each)) for each in passes]
        self.turn = 1
        for name, run in chosen:
            self._step(name, run)

    def _step(self, name: str, run: Pass) -> bool:
        """Run one pass; whether it changed the graph."""
        self.recorder.take_events()
        start = perf_counter()
        after = run(self.graph, self.recorder)
        wall_s = perf_counter() - start
        events = self.recorder.take_events()
        if self.debug:
            verify(after, stage=name)
        changed = after is not self.graph
        if self.turn == 1 or events or changed:
            self.stages.append(Stage(name, after, events, wall_s, self.turn))
        self.graph = after
        return changed


def _several(passes: Iterable[str | Pass]) -> Sequence[str | Pass]:
    if isinstance(passes, str):
        raise OptionError(
            f"passes= is a tuple of passes, not {passes!r}", instead=f"passes=({passes!r},)"
        )
    return tuple(passes)


def _name(chosen: str | Pass) -> str:
    return chosen if isinstance(chosen, str) else getattr(chosen, "__name__", type(chosen).__name__)


def _pass(chosen: str | Pass) -> Pass:
    if callable(chosen):
        return chosen
    if chosen not in PASSES:
        raise unknown("pass", chosen, sorted(PASSES))
    return PASSES[chosen]
