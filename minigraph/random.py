"""The library's random numbers: one generator, used wherever no other is given.

`mg.random.normal(size=3)` and its like take what the methods of `np.random.Generator` take and
give arrays.  In a traced function the draws are recorded, like those of any generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigraph.array import Array, wrap_all, wrote_into
from minigraph.trace import ACTIVE, Path, has_traced

_GENERATOR = np.random.default_rng()


def seed(number: Any = None) -> None:
    """Start the library's generator anew.

    It stays the same object, so whatever draws from it goes on with the new numbers.

    Args:
        number: anything that `np.random.default_rng` takes; None: another start each time.
    """
    _GENERATOR.bit_generator.state = np.random.default_rng(number).bit_generator.state


def generator() -> np.random.Generator:
    """The library's generator; while tracing the recorded one."""
    active = ACTIVE.get()
    if active is None or active.reach is None:
        return _GENERATOR
    return active.reach.generator(_GENERATOR, Path.of_object(_GENERATOR, "mg.random"))


def _draw(name: str) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        made = getattr(generator(), name)(*args, **kwargs)
        return made if has_traced(made) else wrap_all(made)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = getattr(np.random.Generator, name).__doc__
    return draw


beta = _draw("beta")
binomial = _draw("binomial")
choice = _draw("choice")
exponential = _draw("exponential")
gamma = _draw("gamma")
geometric = _draw("geometric")
gumbel = _draw("gumbel")
integers = randint = _draw("integers")
laplace = _draw("laplace")
lognormal = _draw("lognormal")
multinomial = _draw("multinomial")
normal = _draw("normal")
permutation = _draw("permutation")
poisson = _draw("poisson")
random = _draw("random")
standard_normal = _draw("standard_normal")
uniform = _draw("uniform")


def shuffle(x: Any, axis: int = 0) -> None:
    """Bring the slices of an array along an axis into random order, in place."""
    wrote_into(x)
    generator().shuffle(x.data_ if type(x) is Array else x, axis=axis)
