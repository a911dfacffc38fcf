"""Containers: blocks made of other blocks in a row, and blocks made of a function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from .block import Block
from .hybrid import HybridBlock
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
        self._layers = [*self._layers, *layers]
        return self

    def forward(self, x: Any, *others: Any) -> Any:
        """Each block on what the one before returned."""
        for layer in self._layers:
            x = layer(x, *others)
            others = ()
            if type(x) is tuple:
                x, others = x[0], x[1:]
        return (x, *others) if others else x

    def _parts(self) -> Iterator[tuple[tuple[Any, ...], Block | Parameter]]:
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
        made.add(*found)
        return made

    def __setitem__(self, index: int, block: Block) -> None:
        layers = list(self._layers)
        layers[index] = block
        self._layers = layers

    def __delitem__(self, index: int | slice) -> None:
        layers = list(self._layers)
        del layers[index]
        self._layers = layers


class Sequential(_Row):
    """Blocks run one after the other, by Python."""

    __slots__ = ()


class HybridSequential(_Row, HybridBlock):
    """Blocks run one after the other, which can be compiled as a whole."""

    __slots__ = ()
