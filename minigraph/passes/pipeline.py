"""The pipeline: passes by name, run in rounds until none of them changes anything."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter

from minigraph.errors import OptionError, unknown
from minigraph.ir import Graph, Ids, Value, verify

from .history import History, Stage
from .recorder import Recorder

Pass = Callable[[Graph, Recorder], Graph]

DEFAULT = ("fold", "simplify", "dce", "cse", "drop_writes")
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
) -> History:
    """Run passes over a graph until none of them changes anything.

    Args:
        graph: the graph as it was traced; it stays as it is.
        passes: names of passes (`PASSES` has them) or functions `(graph, recorder) -> Graph`, in
            order.  To switch one off, leave it out.
        fast_math: allow rewrites that change rounding, NaN and the sign of zero.
        debug: verify the graph after each pass.
        strided: the inputs whose elements do not lie side by side in C order.

    Raises:
        OptionError: there is no pass of that name.
        VerifyError: under `debug`, a pass made a graph that breaks a rule of the IR.
    """
    chosen = [(_name(each), _pass(each)) for each in _several(passes)]
    recorder = Recorder(Ids.after(graph), fast_math=fast_math, strided=strided)
    stages = [Stage("traced", graph, (), 0.0, 0)]
    if debug:
        verify(graph, stage="trace")
    unchanged = 0  # passes that ran since the graph last changed
    for turn in range(1, MOST_ROUNDS + 1):
        for name, run in chosen:
            if unchanged == len(chosen):
                return History(stages)
            recorder.take_events()
            start = perf_counter()
            after = run(graph, recorder)
            wall_s = perf_counter() - start
            events = recorder.take_events()
            if debug:
                verify(after, stage=name)
            unchanged = unchanged + 1 if after is graph else 0
            if turn == 1 or events or after is not graph:
                stages.append(Stage(name, after, events, wall_s, turn))
            graph = after
    if chosen and unchanged < len(chosen):
        recorder.note("pipeline.rounds", f"stopped after {MOST_ROUNDS} rounds, still changing")
        stages.append(Stage("pipeline", graph, recorder.take_events(), 0.0, MOST_ROUNDS))
    return History(stages)


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
