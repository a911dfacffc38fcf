"""Data: examples by index, and batches of them.

    loader = DataLoader(ArrayDataset(images, labels), batch_size=64, shuffle=True)
    for x, y in loader:
        ...

All shuffling draws from the library's own generator, so that `mg.random.seed(0)` repeats it.
Batches are made where they are asked for: examples lie in memory, and a second thread would only
wait for the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Protocol

import numpy as np

from minigraph.array import Array
from minigraph.errors import OptionError, ShapeError, unknown
from minigraph.random import generator

LAST_BATCH = ("keep", "discard", "rollover")


class Dataset(Protocol):
    """Examples by index: anything with a length and `[index]`."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


class ArrayDataset:
    """Examples that lie along the first axis of arrays (or in lists) of equal length.

    An example is a tuple with one part of each array; of a single array the part itself.

    Args:
        *arrays: arrays or sequences.

    Raises:
        ShapeError: their lengths differ.
    """

    def __init__(self, *arrays: Any) -> None:
        if not arrays:
            raise OptionError("ArrayDataset has no arrays", instead="ArrayDataset(images, labels)")
        self.arrays = [np.asarray(array) for array in arrays]
        for array in self.arrays:
            if not array.ndim:
                raise ShapeError("an array of a dataset needs an axis, along which examples lie")
        lengths = [len(array) for array in self.arrays]
        if len(set(lengths)) > 1:
            raise ShapeError(f"the arrays of a dataset have different lengths: {lengths}")

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: Any) -> Any:
        parts = [array[index] for array in self.arrays]
        return tuple(parts) if len(parts) > 1 else parts[0]

    def __repr__(self) -> str:
        return f"ArrayDataset({', '.join(f'{array.dtype}{array.shape}' for array in self.arrays)})"


def batchify(examples: Sequence[Any]) -> Any:
    """Examples as one batch: arrays and numbers are stacked, tuples and dicts taken apart.

    Args:
        examples: all of the same structure and shapes.
    """
    first = examples[0]
    if isinstance(first, tuple | list):
        return tuple(batchify(parts) for parts in zip(*examples, strict=True))
    if isinstance(first, dict):
        return {key: batchify([example[key] for example in examples]) for key in first}
    return Array(np.stack([np.asarray(example) for example in examples]))


class DataLoader:
    """Batches of a dataset, anew each time it is gone through.

    Args:
        dataset: anything with a length and `[index]`.
        batch_size: examples in a batch.
        shuffle: another order each time.
        sampler: the indices in order, anew each time it is gone through; instead of `shuffle`.
        last_batch: what becomes of examples that do not fill a batch: "keep" makes a shorter one,
            "discard" leaves them out, "rollover" has the next round begin with them.
        batchify_fn: from a list of examples to a batch.

    Raises:
        OptionError: options that do not go together; the dataset is empty.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        shuffle: bool = False,
        sampler: Iterable[int] | None = None,
        last_batch: str = "keep",
        batchify_fn: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:
        if not isinstance(batch_size, int | np.integer) or batch_size < 1:
            raise OptionError(f"batch_size is {batch_size!r}", instead="a whole number from 1 up")
        if last_batch not in LAST_BATCH:
            raise unknown("way to treat the last batch", last_batch, LAST_BATCH)
        if shuffle and sampler is not None:
            raise OptionError("the order comes from shuffle= or from sampler=, not from both")
        if type(dataset) is tuple and all(isinstance(part, np.ndarray | Array) for part in dataset):
            raise OptionError(
                "a tuple of arrays is no dataset of examples",
                instead="nn.ArrayDataset(images, labels)",
            )
        if not len(dataset):
            raise OptionError("the dataset is empty", instead="at least one example")
        self.dataset = dataset
        self.batch_size = int(batch_size)
        self.shuffle = shuffle
        self.sampler = sampler
        self.last_batch = last_batch
        self.batchify_fn = batchify_fn
        self._left: list[int] = []  # of the round before, where they roll over

    def __iter__(self) -> Iterator[Any]:
        size = self.batch_size
        indices = [*self._left, *self._order()]
        self._left = []
        whole = len(indices) // size * size
        for start in range(0, whole, size):
            yield self._batch(indices[start : start + size])
        if whole < len(indices):
            if self.last_batch == "keep":
                yield self._batch(indices[whole:])
            elif self.last_batch == "rollover":
                self._left = indices[whole:]

    def _order(self) -> Iterable[int]:
        if self.sampler is not None:
            return self.sampler
        count = len(self.dataset)
        return generator().permutation(count).tolist() if self.shuffle else range(count)

    def _batch(self, indices: list[int]) -> Any:
        if self.batchify_fn is not None:
            return self.batchify_fn([self.dataset[index] for index in indices])
        dataset: Any = self.dataset
        if type(dataset) is ArrayDataset:  # all at once
            parts = [Array(array[indices]) for array in dataset.arrays]
            return tuple(parts) if len(parts) > 1 else parts[0]
        return batchify([dataset[index] for index in indices])

    def __len__(self) -> int:
        """How many batches the next round has."""
        order = self.dataset if self.sampler is None else self.sampler
        if not isinstance(order, Sized):
            raise OptionError("a sampler without a length does not say how many batches there are")
        whole, rest = divmod(len(self._left) + len(order), self.batch_size)
        return whole + bool(rest and self.last_batch == "keep")


def split_data(
    data: Any, num_slice: int, batch_axis: int = 0, even_split: bool = True
) -> list[Any]:
    """The batch in so many slices along an axis: views of it.

    Args:
        data: an array.
        num_slice: how many.
        batch_axis: along which examples lie.
        even_split: all slices have the same length; else the first are longer by one.

    Raises:
        ShapeError: it does not divide evenly, or there are more slices than examples.
    """
    size = data.shape[batch_axis]
    if not 1 <= num_slice <= size:
        raise ShapeError(f"{size} examples do not make {num_slice} slices")
    if even_split and size % num_slice:
        raise ShapeError(
            f"{size} examples do not divide evenly into {num_slice} slices",
            instead="even_split=False, or another batch size",
        )
    ends = [0]
    for index in range(num_slice):
        ends.append(ends[-1] + size // num_slice + (index < size % num_slice))
    whole = (slice(None),) * (batch_axis % data.ndim)
    return [data[(*whole, slice(a, b))] for a, b in zip(ends, ends[1:], strict=False)]
