"""Elementwise functions of SciPy: `scipy.special.erf`, `scipy.special.expit`.

A user who calls one has imported SciPy; it is loaded here, in one place, when a node is inferred or
evaluated.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minigraph.ir import Op

from .derivation import Derivation, Term
from .registry import OPS, declare
from .rules import elementwise
from .samples import Sample, array, special

RULES: dict[str, Callable[[Derivation, Term], Term]] = {
    "erf": lambda d, x: d.g * (2 / math.sqrt(math.pi)) * d.op("exp", -x * x),
    "expit": lambda d, x: d.g * d.out * (1 - d.out),
}
"""The functions, each with its derivative."""


def special_ufunc(name: str) -> np.ufunc:
    """`scipy.special.<name>`."""
    return getattr(importlib.import_module("scipy.special"), name)


def special_op(ufunc: np.ufunc) -> Op | None:
    """The op as which a ufunc of SciPy is recorded."""
    module = sys.modules.get("scipy.special")
    known = ufunc.__name__ in RULES and getattr(module, ufunc.__name__, None) is ufunc
    return OPS[ufunc.__name__] if known else None


def _sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    return [([x], {}) for x in (special(rng, dtype, 4, 3), array(rng, dtype), 3, -2.5)]


def _meaning(name: str) -> Callable[..., Any]:
    def run(xp: Any, x: Any, **options: Any) -> Any:
        return special_ufunc(name)(x, **options)

    return run


for _name, _rule in RULES.items():
    _run = _meaning(_name)
    declare(
        Op(
            _name,
            "elementwise",
            elementwise(partial(_run, np)),
            _run,
            scalar=f"{_name}({{0}})",
            vjp=_rule,
            sample=_sample,
            doc=f"scipy.special.{_name}",
        )
    )
