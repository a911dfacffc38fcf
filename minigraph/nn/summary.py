"""The table that `net.summary(x)` prints: each layer that runs, with shapes and parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from minigraph import autograd
from minigraph.array import Array
from minigraph.jit import eager

if TYPE_CHECKING:
    from .block import Block

_HEAD = ("layer", "output shape", "parameters")


class Row:
    """One call of a layer.

    Attributes:
        layer: its name and class, indented below the block that calls it.
        shape: of what it returned.
        count: how many numbers its own parameters hold, without those of its children.
    """

    def __init__(self, layer: str) -> None:
        self.layer = layer
        self.shape = ""
        self.count = ""


class Summary:
    """The layers of a block in the order in which they are called.

    Attributes:
        rows: one for each call.
        total, learned: numbers in all parameters, and in those with a gradient; each counted once.
        size_bytes: their memory.
    """

    def __init__(self, block: Block, args: tuple[Any, ...]) -> None:
        self.rows: list[Row] = []
        self._open: list[Row] = []
        self._counted: set[int] = set()
        with _hooked(block, self), eager(), autograd.pause():
            block(*args)
        parameters = [p for p in block.collect_params().values() if p.is_ready]
        sizes = [p.data().data_.size for p in parameters]
        self.total = sum(sizes)
        self.learned = sum(
            n for n, p in zip(sizes, parameters, strict=True) if p.grad_req != "null"
        )
        self.size_bytes = sum(p.data().data_.nbytes for p in parameters)

    def enter(self, name: str, block: Block) -> None:
        """A layer is called."""
        layer = f"{name} {type(block).__name__}".strip()
        self.rows.append(Row("  " * len(self._open) + layer))
        self._open.append(self.rows[-1])

    def leave(self, block: Block, result: Any) -> None:
        """It has returned; its shapes are known by now."""
        row = self._open.pop()
        row.shape = _shape_text(result)
        own = [p for p in block.params.values() if p.is_ready]
        count = sum(p.data().data_.size for p in own)
        shared = own and all(id(p) in self._counted for p in own)
        self._counted.update(map(id, own))
        row.count = "shared" if shared else f"{count:,}"

    def __str__(self) -> str:
        cells = [_HEAD, *((row.layer, row.shape, row.count) for row in self.rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(3)]
        lines = [
            f"{layer:<{widths[0]}}   {shape:<{widths[1]}}   {count:>{widths[2]}}"
            for layer, shape, count in cells
        ]
        rule = "─" * len(lines[0])
        totals = f"{self.total:,} parameters, {self.learned:,} of them learned, " + _size_text(
            self.size_bytes
        )
        return "\n".join([lines[0], rule, *lines[1:], rule, totals])


@contextlib.contextmanager
def _hooked(block: Block, summary: Summary) -> Iterator[None]:
    """Every block below this one tells the summary of its calls."""
    with contextlib.ExitStack() as stack:
        done: set[int] = set()
        for path, each in block.named_blocks():
            if id(each) in done:
                continue
            done.add(id(each))
            name = path.rpartition(".")[2]

            def before(called: Block, _: Any, name: str = name) -> None:
                summary.enter(name, called)

            def after(called: Block, _: Any, result: Any) -> None:
                summary.leave(called, result)

            stack.enter_context(each.register_forward_pre_hook(before))
            stack.enter_context(each.register_forward_hook(after))
        yield


def _shape_text(result: Any) -> str:
    if isinstance(result, Array | np.ndarray):
        return str(np.shape(result))
    if isinstance(result, list | tuple):
        return ", ".join(map(_shape_text, result))
    return type(result).__name__


def _size_text(size_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:.4g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.4g} GB"
