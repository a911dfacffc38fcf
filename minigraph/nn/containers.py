"""Containers: blocks in a row or side by side, and blocks made of a function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from minigraph.compiled import depth_of_user
from minigraph.errors import OptionError
from minigraph.mode import here
from minigraph.trace import ACTIVE, seen

from .block import Block
from .hybrid import HybridBlock
from .members import Members
from .namespaces import nd, sym
from .parameter import Parameter


class _Row(Block):
    """Blocks in a row, named by their position."""

    __slots__ = ()

    traced_covered_ = ("_layers",)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        vars(made)["_layers"] = []
        return made

    def __init__(self, *layers: Block) -> None:
        super().__init__()
        self.add(*layers)

    def add(self, *layers: Block) -> Self:
        """Put blocks at the end."""
        self._replace([*self._layers, *layers])
        return self

    def _replace(self, layers: list[Block]) -> None:
        for layer in layers:
            if not isinstance(layer, Block):
                raise OptionError(
                    f"{type(self).__name__} holds blocks, nothing of type {type(layer).__name__}",
                    where=here(),
                    instead=_block_instead_of(layer),
                )
        self._layers = layers

    def _parts(self) -> Iterator[tuple[tuple[Any, ...], Members | Parameter]]:
        for keys, member in super()._parts():
            yield keys[1:] if keys[0] == "_layers" else keys, member

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._layers)

    def __getitem__(self, index: int | slice) -> Any:
        found = self._layers[index]
        if not isinstance(index, slice):
            return found
        made = type(self).__new__(type(self))
        for name, value in vars(self).items():
            made.__setattr__(name, found if name == "_layers" else value)
        return made

    def __setitem__(self, index: int, block: Block) -> None:
        layers = list(self._layers)
        layers[index] = block
        self._replace(layers)

    def __delitem__(self, index: int | slice) -> None:
        layers = list(self._layers)
        del layers[index]
        self._replace(layers)


def _block_instead_of(layer: Any) -> str:
    """What to write for something that is no block."""
    if isinstance(layer, list | tuple):
        return "each block as an argument of its own: (*layers)"
    if isinstance(layer, type) and issubclass(layer, Block):
        return f"a block of this class: nn.{layer.__name__}(...)"
    return "nn.HybridLambda(function) for a function"


class _Chain(_Row):
    __slots__ = ()

    def forward(self, x: Any, *others: Any) -> Any:
        """Each block on what the one before returned; a tuple is several arguments."""
        for layer in self._layers:
            x = layer(x, *others)
            others = ()
            if type(x) is tuple:
                x, others = x[0], x[1:]
        return (x, *others) if others else x


class Sequential(_Chain):
    """Blocks one after the other, run by Python."""

    __slots__ = ()

    def _advise(self) -> None:
        if self._layers and all(isinstance(layer, HybridBlock) for layer in self._layers):
            warnings.warn(
                "All children of this Sequential are HybridBlocks; nn.HybridSequential compiles "
                "them as one program, nn.Sequential each on its own",
                stacklevel=depth_of_user(),
            )
        else:
            super()._advise()


class HybridSequential(_Chain, HybridBlock):
    """Blocks one after the other, which can be compiled as a whole."""

    __slots__ = ()


class _Fan(_Row):
    __slots__ = ()

    def __init__(self, *layers: Block, axis: int = -1) -> None:
        super().__init__(*layers)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """What the blocks return for the same x, concatenated along the axis."""
        return np.concatenate([layer(x) for layer in self._layers], axis=self.axis)


class Concurrent(_Fan):
    """Blocks side by side, run by Python; their results are concatenated."""

    __slots__ = ()


class HybridConcurrent(_Fan, HybridBlock):
    """Blocks side by side, which can be compiled as a whole; their results are concatenated."""

    __slots__ = ()


class _Function(Block):
    """A block made of a function."""

    __slots__ = ()

    def __init__(self, function: str | Callable[..., Any]) -> None:
        super().__init__()
        if isinstance(function, str):
            getattr(nd, function)  # a wrong name is an error here
        elif not callable(function):
            raise OptionError(
                f"{type(self).__name__} takes a function or the name of one, not a "
                f"{type(function).__name__}"
            )
        self.function = function

    def forward(self, *args: Any) -> Any:
        """The function's result."""
        function = self.function
        if isinstance(function, str):
            return getattr(nd if ACTIVE.get() is None else sym, function)(*args)
        return seen(function)(*args)

    def extra_repr(self) -> str:
        function = self.function
        return function if isinstance(function, str) else getattr(function, "__name__", "function")


class Lambda(_Function):
    """A function as a block, run by Python.

    Args:
        function: any, or the name of one in `mg.nd` ("relu").
    """

    __slots__ = ()


class HybridLambda(_Function, HybridBlock):
    """A function of arrays as a block, which can be compiled.

    Args:
        function: one that uses NumPy, or the name of one in `mg.nd` ("relu").
    """

    __slots__ = ()
