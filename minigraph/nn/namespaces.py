"""`mg.nd` and `mg.sym`: NumPy's functions and those of `nn.functional`, run at once or recorded.

Gluon's `hybrid_forward(self, F, x)` is given one of the two as F: `mg.nd` when it runs eagerly,
`mg.sym` while it is traced.  `print(F)` shows which.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from minigraph import random
from minigraph.array import array, wrap_all
from minigraph.errors import UnsupportedError, nearest
from minigraph.trace import ACTIVE, NUMPY

from . import functional


class Namespace(types.ModuleType):
    """A module whose functions are made when they are asked for.

    Args:
        name: what `print` shows.
        doc: its docstring.
        call: how a function is called: `call(function, *args, **kwargs)`.
        library: the functions of NumPy.
    """

    def __init__(self, name: str, doc: str, call: Callable[..., Any], library: Any = NUMPY) -> None:
        super().__init__(name, doc)
        self.call_ = call
        self.library_ = library

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = vars(self)[name] = self._make(name)
        return made

    def _make(self, name: str) -> Any:
        if self.library_ is NUMPY:
            if name in ("np", "npx"):  # Gluon's names for the two halves of a namespace
                return self
            if name == "array":
                return array
            if name == "random":
                return random
            if name in functional.__all__:
                return self._called(getattr(functional, name))
        found = getattr(self.library_, name, None)
        if found is None and name != "newaxis":
            near = nearest(name, dir(self))
            guess = f"; did you mean {near!r}?" if near else ""
            raise AttributeError(f"{self.__name__} has no {name!r}{guess}")
        if isinstance(found, types.ModuleType):
            return Namespace(f"{self.__name__}.{name}", found.__doc__ or "", self.call_, found)
        plain = isinstance(found, type) or not callable(found)
        return found if plain else self._called(found)

    def _called(self, function: Any) -> Any:
        made = functools.partial(self.call_, function)
        return functools.update_wrapper(made, function, updated=())

    def __dir__(self) -> list[str]:
        own = functional.__all__ if self.library_ is NUMPY else []
        return sorted({*own, *dir(self.library_)})


def _at_once(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    result = function(*args, **kwargs)
    return wrap_all(result) if ACTIVE.get() is None else result


def _recorded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if ACTIVE.get() is None:
        raise UnsupportedError(
            f"mg.sym.{function.__name__} records, and nothing is being traced here",
            instead=f"mg.nd.{function.__name__}, or np.{function.__name__}",
        )
    return function(*args, **kwargs)


nd = Namespace("minigraph.nd", "NumPy's and `nn.functional`'s functions, run at once.", _at_once)
sym = Namespace("minigraph.sym", "The same functions, recorded while tracing.", _recorded)
