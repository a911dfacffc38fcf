"""The registry of ops: each is declared once, in one of this folder's files."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping, Sequence
from typing import Any

from minigraph.errors import OptionError
from minigraph.ir import Op, Type

OPS: dict[str, Op] = {}
RECORDED: dict[str, Op] = {}  # dotted NumPy name, or ndarray.method -> the op that records it


def declare(op: Op) -> Op:
    """Enter an op; its name and each NumPy callable may be taken once."""
    assert op.name not in OPS, op.name
    OPS[op.name] = op
    for name in op.records:
        assert name not in RECORDED, name
        RECORDED[name] = op
    return op


def get(name: str) -> Op:
    """The op called `name`.

    Raises:
        OptionError: there is none.
    """
    if name not in OPS:
        raise OptionError(f"there is no op {name!r}", instead="one of " + ", ".join(sorted(OPS)))
    return OPS[name]


copyreg.pickle(Op, lambda op: (get, (op.name,)))  # graphs are pickled and copied with these ops


def infer(op: Op, types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    """The types of the results.

    Raises:
        ShapeError, DtypeError: the operands do not fit.
    """
    found = op.infer(types, attrs)
    return found if isinstance(found, tuple) else (found,)
