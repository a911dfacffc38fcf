"""Passes: Graph to Graph, and Graph to Plan; each says what it did and did not do, and why."""

from .dce import dead_nodes
from .equations import RULES
from .explain import describe, explain
from .fusible import cannot_fuse
from .history import Difference, History, Stage, changes, diff
from .inline import has_calls
from .liveness import Liveness, liveness
from .pipeline import DEFAULT, LOWERINGS, PASSES, Pass, optimize
from .plan import plan, plan_of
from .recorder import REFUSALS, Event, Options, Recorder
from .regions import does_something, in_regions, is_effect
from .rewriting import Match, Rule
from .simplify import simplify_with

__all__ = [
    "DEFAULT",
    "LOWERINGS",
    "PASSES",
    "REFUSALS",
    "RULES",
    "Difference",
    "Event",
    "History",
    "Liveness",
    "Match",
    "Options",
    "Pass",
    "Recorder",
    "Rule",
    "Stage",
    "cannot_fuse",
    "changes",
    "dead_nodes",
    "describe",
    "diff",
    "does_something",
    "explain",
    "has_calls",
    "in_regions",
    "is_effect",
    "liveness",
    "optimize",
    "plan",
    "plan_of",
    "simplify_with",
]
