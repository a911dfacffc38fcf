"""Data: which examples stand in which batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import OptionError, ShapeError
from minigraph.nn.data import ArrayDataset, DataLoader, split_data


class Squares:
    """A dataset that is no array."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        return np.array([index, index * index]), index


def batches(loader: DataLoader) -> list[list[int]]:
    return [batch.asnumpy().tolist() for batch in loader]


def test_a_dataset_gives_examples():
    x, y = np.arange(6.0).reshape(3, 2), [5, 6, 7]
    dataset = ArrayDataset(x, y)
    assert len(dataset) == 3
    first, label = dataset[1]
    assert first.tolist() == [2.0, 3.0] and label == 6
    assert ArrayDataset(x)[2].tolist() == [4.0, 5.0]
    assert repr(dataset) == "ArrayDataset(float64(3, 2), int64(3,))"


def test_batches_are_arrays():
    x, y = np.arange(8.0, dtype=np.float32).reshape(4, 2), np.arange(4)
    loader = DataLoader(ArrayDataset(x, y), batch_size=3)
    (a, b), (c, d) = loader
    assert all(type(part) is mg.Array for part in (a, b, c, d))
    assert a.shape == (3, 2) and a.dtype == np.float32 and d.asnumpy().tolist() == [3]
    a[...] = 0  # a copy
    assert x[0, 1] == 1.0


@pytest.mark.parametrize(
    ("last_batch", "rounds"),
    [
        ("keep", [[[0, 1, 2], [3, 4, 5], [6]], [[0, 1, 2], [3, 4, 5], [6]]]),
        ("discard", [[[0, 1, 2], [3, 4, 5]], [[0, 1, 2], [3, 4, 5]]]),
        (
            "rollover",
            [
                [[0, 1, 2], [3, 4, 5]],
                [[6, 0, 1], [2, 3, 4]],
                [[5, 6, 0], [1, 2, 3], [4, 5, 6]],
                [[0, 1, 2], [3, 4, 5]],
            ],
        ),
    ],
)
def test_the_last_batch(last_batch: str, rounds: list[list[list[int]]]):
    loader = DataLoader(ArrayDataset(np.arange(7)), 3, last_batch=last_batch)
    for expected in rounds:
        assert len(loader) == len(expected)
        assert batches(loader) == expected


def test_shuffling_is_repeated_by_the_seed():
    loader = DataLoader(ArrayDataset(np.arange(50)), 50, shuffle=True)
    mg.random.seed(7)
    first, second = batches(loader)[0], batches(loader)[0]
    assert first != second and sorted(first) == sorted(second) == list(range(50))
    mg.random.seed(7)
    assert batches(loader)[0] == first


def test_a_sampler_gives_the_order():
    loader = DataLoader(ArrayDataset(np.arange(5) * 10), 2, sampler=[4, 0, 4])
    assert batches(loader) == [[40, 0], [40]] and len(loader) == 2
    endless = DataLoader(ArrayDataset(np.arange(5)), 2, sampler=(i for i in (1, 2)))
    with pytest.raises(OptionError, match="a sampler without a length"):
        len(endless)
    assert batches(endless) == [[1, 2]]


def test_any_dataset_is_batched():
    (pairs, indices), *_ = DataLoader(Squares(), 3)
    assert pairs.asnumpy().tolist() == [[0, 0], [1, 1], [2, 4]]
    assert indices.asnumpy().tolist() == [0, 1, 2]


def test_a_subclass_of_a_dataset_changes_its_examples():
    class Doubled(ArrayDataset):
        def __getitem__(self, index: Any) -> Any:
            return {"x": super().__getitem__(index) * 2, "at": index}

    batches = list(DataLoader(Doubled(np.arange(4.0)), 2))
    assert [batch["x"].tolist() for batch in batches] == [[0, 2], [4, 6]]
    assert [batch["at"].tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_batchify_of_ones_own():
    loader = DataLoader(Squares(), 2, batchify_fn=lambda examples: [y for _, y in examples])
    assert list(loader) == [[0, 1], [2, 3], [4]]


def test_splitting_a_batch():
    x = np.arange(12).reshape(6, 2)
    assert [part.tolist() for part in split_data(x, 3)] == [
        [[0, 1], [2, 3]],
        [[4, 5], [6, 7]],
        [[8, 9], [10, 11]],
    ]
    parts = split_data(x, 4, even_split=False)
    assert [len(part) for part in parts] == [2, 2, 1, 1]
    assert np.array_equal(np.concatenate(parts), x)
    assert [part.shape for part in split_data(x, 2, batch_axis=1)] == [(6, 1), (6, 1)]
    assert [part.shape for part in split_data(mg.array(x), 2, batch_axis=-1)] == [(6, 1)] * 2


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ArrayDataset(), OptionError, "has no arrays"),
        (lambda: ArrayDataset(np.ones(3), np.ones(4)), ShapeError, r"lengths: \[3, 4\]"),
        (lambda: ArrayDataset(3.0), ShapeError, "needs an axis"),
        (lambda: DataLoader(ArrayDataset([]), 1), OptionError, "the dataset is empty"),
        (lambda: DataLoader(Squares(), 0), OptionError, "batch_size is 0"),
        (lambda: DataLoader(Squares(), 2.5), OptionError, "batch_size is 2.5"),
        (
            lambda: DataLoader(Squares(), 2, last_batch="discrad"),
            OptionError,
            r"'discrad'\n.*did you mean 'discard'\?",
        ),
        (
            lambda: DataLoader(Squares(), 2, shuffle=True, sampler=[0]),
            OptionError,
            "not from both",
        ),
        (lambda: split_data(np.ones(5), 2), ShapeError, "5 examples do not divide evenly"),
        (lambda: split_data(np.ones(2), 3), ShapeError, "do not make 3 slices"),
    ],
)
def test_wrong_use_is_told(make: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        make()


def test_a_tuple_of_arrays_is_no_dataset():
    with pytest.raises(OptionError, match="a tuple of arrays is no dataset") as caught:
        DataLoader((np.ones((3, 2)), np.ones(3)), 2)
    assert "nn.ArrayDataset(" in str(caught.value)
