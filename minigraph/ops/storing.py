"""Whose results can be written into memory that is there already."""

from __future__ import annotations

from functools import cache

import numpy as np

from minigraph.ir import Node, Op

from .rules import ANNOTATIONS


def writes_where_told(node: Node) -> bool:
    """It stores into its first operand if that need not be copied, takes `out=`, or is a kernel."""
    return node.op.stores or node.op.name == "kernel" or takes_out(node)


def takes_out(node: Node) -> bool:
    """Its one result is written bit for bit into the array that `out=` names."""
    plain = len(node.outputs) == 1 and all(name in ANNOTATIONS for name in node.attrs)
    return plain and (node.op.numpy == "dot" or ufunc_of(node.op) is not None)


@cache
def ufunc_of(op: Op) -> np.ufunc | None:
    """The ufunc that is the op's meaning, if it is one."""
    found = getattr(np, op.numpy, None) if isinstance(op.numpy, str) else None
    return found if isinstance(found, np.ufunc) else None
