"""Losses: what is averaged and weighed, which axis is the batch, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nn.cases import LOSSES, Draw

from minigraph import nn
from minigraph.errors import DtypeError, OptionError, ShapeError


def test_gluons_names():
    assert nn.SigmoidBCELoss is nn.SigmoidBinaryCrossEntropyLoss
    assert nn.SoftmaxCELoss is nn.SoftmaxCrossEntropyLoss
    assert repr(nn.L2Loss(batch_axis=1)) == "L2Loss(batch_axis=1, weight=1.0)"


@pytest.mark.parametrize("name", LOSSES)
def test_one_number_for_each_sample(name: str):
    arguments = LOSSES[name].arguments(Draw(0, "float32"), 3, 4, 5)
    loss = LOSSES[name].make()
    found = loss(*arguments)
    assert found.shape == (3,) and found.dtype == "float32"
    one = [x if x is None or len(x) == 1 else x[1:2] for x in arguments]
    np.testing.assert_allclose(loss(*one), found[1:2], rtol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_weights(name: str):
    arguments = list(LOSSES[name].arguments(Draw(0, "float64"), 3, 4, 5))
    loss = LOSSES[name].make()
    plain = loss(*arguments)
    loss.weight = 3 * (1.0 if loss.weight is None else loss.weight)
    np.testing.assert_allclose(loss(*arguments), 3 * plain)


def test_weights_of_samples():
    pred, label = np.ones((2, 3)), np.zeros((2, 3))
    weights = np.array([[1.0], [10.0]])
    np.testing.assert_allclose(nn.L1Loss()(pred, label, weights), [1, 10])
    each = np.array([[1.0, 2, 3], [0, 0, 3]])
    np.testing.assert_allclose(nn.L2Loss()(pred, label, each), [1, 0.5])
    found = nn.SoftmaxCELoss()(pred, np.array([0, 2]), weights)
    np.testing.assert_allclose(found, np.log(3) * weights[:, 0])
    triplet = nn.TripletLoss()(pred, pred, pred, weights[:, 0])
    np.testing.assert_allclose(triplet, [1, 10])


def test_another_batch_axis():
    rng = np.random.default_rng(0)
    pred, label = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
    expected = nn.L2Loss()(pred.swapaxes(0, 1), label.swapaxes(0, 1))
    np.testing.assert_allclose(nn.L2Loss(batch_axis=1)(pred, label), expected)
    np.testing.assert_allclose(nn.L2Loss(batch_axis=-2)(pred, label), expected)
    classes = rng.integers(0, 4, (2, 3))
    expected = nn.SoftmaxCELoss()(pred.swapaxes(0, 1), classes.T)
    np.testing.assert_allclose(nn.SoftmaxCELoss(batch_axis=1)(pred, classes), expected)


def test_labels_take_the_shape_of_predictions():
    pred, label = np.array([[1.0], [2.0]]), np.array([0.0, 0.0])
    assert nn.L2Loss()(pred, label).tolist() == [0.5, 2]
    for loss in (nn.L2Loss(), nn.HuberLoss(), nn.LogisticLoss(), nn.SigmoidBCELoss()):
        with pytest.raises(ShapeError, match=r"label of shape \(3,\) for predictions"):
            loss(pred, np.zeros(3))


def test_labels_of_floats():
    """Gluon's data sets have them."""
    pred = np.random.default_rng(0).normal(size=(3, 4))
    labels = np.array([1, 3, 0])
    loss = nn.SoftmaxCELoss()
    assert (loss(pred, labels.astype("float32")) == loss(pred, labels)).all()


@pytest.mark.parametrize("wrong", [4, -1])
def test_label_out_of_range(wrong: int):
    loss, pred = nn.SoftmaxCELoss(), np.zeros((2, 4))
    with pytest.raises(
        IndexError, match="a label is out of range: it must be at least 0 and be"
    ) as e:
        loss(pred, np.array([0, wrong]))
    first, place = e.value.__notes__
    assert first == f"  the first: {wrong}, number 1 counted from 0" and "test_losses.py" in place
    loss.hybridize()
    loss(pred, np.array([0, 3]))
    with pytest.raises(IndexError, match="a label is out of range: it must be at least 0 and be"):
        loss(pred, np.array([0, wrong]))


@pytest.mark.parametrize(
    ("pred", "label"),
    [
        (np.zeros((4, 3)), np.eye(4, 3)),
        (np.array([0, 1, 2, 1]), np.zeros((4, 3))),
        (np.zeros((4, 3)), np.array([1])),
        (np.zeros((4, 3)), np.zeros((4, 1, 1), int)),
        (np.zeros((4, 3)), 1),
    ],
)
def test_labels_of_another_shape(pred: Any, label: Any):
    """One-hot labels, the two exchanged, one label for all: nothing is broadcast."""
    with pytest.raises(ShapeError, match="needs one index or label") as caught:
        nn.SoftmaxCELoss()(pred, label)
    assert "sparse_label=False" in str(caught.value)


def test_a_number_is_no_label():
    with pytest.raises(DtypeError, match="labels are an array, nothing of type int"):
        nn.L2Loss()(np.zeros((4, 1)), 1)


def test_labels_with_an_axis_of_one():
    pred, label = np.random.default_rng(0).normal(size=(4, 3)), np.array([1, 0, 2, 2])
    loss = nn.SoftmaxCELoss()
    assert np.array_equal(loss(pred, label[:, None]), loss(pred, label))


def test_wrong_use():
    x: Any = np.zeros((2, 4))
    with pytest.raises(OptionError, match="did you mean 'signed'"):
        nn.LogisticLoss(label_format="sigend")
    with pytest.raises(np.exceptions.AxisError):
        nn.SoftmaxCELoss(axis=2)(x, np.array([0, 1]))
    with pytest.raises(np.exceptions.AxisError):
        nn.L2Loss(batch_axis=2)(x, x)
