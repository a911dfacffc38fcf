"""The library's random numbers: one generator, that everything which is not given another uses.

In a traced function its draws are recorded like those of any generator that the function reaches.
"""

from __future__ import annotations

import numpy as np

from minigraph.trace import ACTIVE, Path

_GENERATOR = np.random.default_rng()


def seed(number: int) -> None:
    """Start the library's generator anew from this number.

    It stays the same object: programs that draw from it go on with the new numbers.
    """
    _GENERATOR.bit_generator.state = np.random.default_rng(number).bit_generator.state


def generator() -> np.random.Generator:
    """The library's generator; while tracing the recorded one."""
    active = ACTIVE.get()
    if active is None or active.reach is None:
        return _GENERATOR
    return active.reach.generator(_GENERATOR, Path.of_object(_GENERATOR, "mg.random"))
