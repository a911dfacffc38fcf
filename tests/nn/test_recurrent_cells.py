"""Cells: single steps, `unroll`, and cells made of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nn.cases import THEIR_NAMES

import minigraph as mg
from minigraph import autograd, nn
from minigraph.array import Array
from minigraph.errors import (
    ChildError,
    OptionError,
    ShapeError,
    UninitializedError,
    UnsupportedError,
)

CELLS: dict[str, Any] = {
    "relu": lambda *args, **options: nn.RNNCell(*args, activation="relu", **options),
    "tanh": nn.RNNCell,
    "lstm": nn.LSTMCell,
    "gru": nn.GRUCell,
}
LAYERS: dict[str, Any] = {
    "relu": nn.RNN,
    "tanh": lambda *args, **options: nn.RNN(*args, activation="tanh", **options),
    "lstm": nn.LSTM,
    "gru": nn.GRU,
}


def made(cell: Any) -> Any:
    """A cell or layer with parameters at random, all of them known after one call."""
    mg.random.seed(0)
    cell.initialize(nn.initializers.Normal(0.5))
    cell.cast("float64")
    return cell


def normal(*shape: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


def begun(cell: Any, batch: int) -> list[np.ndarray[Any, Any]]:
    """States at random."""
    infos = cell.state_info(batch)
    return [normal(*info["shape"], seed=at) for at, info in enumerate(infos)]


class Mean(nn.RecurrentCell):
    """A cell of the user's: half of the state, half of the input, and a learned factor."""

    def __init__(self, units: int = 3) -> None:
        super().__init__()
        self.units = units
        self.scale = nn.Parameter("scale", 0, init="ones", allow_deferred_init=True)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [{"shape": (batch_size, self.units), "__layout__": "NC"}]

    def infer_shape(self, x: Any, states: Any) -> None:
        self.scale.shape = x.shape[-1]

    def forward(self, x: Any, states: Any) -> Any:
        state = (x * self.scale.data() + states[0]) / 2
        return state * state, [state]


COMBINED = {
    **{name: lambda make=make: make(3) for name, make in CELLS.items()},
    "sequential": lambda: nn.SequentialRNNCell(nn.LSTMCell(4), nn.DropoutCell(0.5), nn.GRUCell(3)),
    "residual": lambda: nn.ResidualCell(nn.LSTMCell(3)),
    "zoneout": lambda: nn.ZoneoutCell(nn.GRUCell(3), 0.5),
    "nested": lambda: nn.SequentialRNNCell(
        nn.ResidualCell(nn.ZoneoutCell(nn.LSTMCell(3), 0.3)), nn.SequentialRNNCell(nn.RNNCell(3))
    ),
    "of the user": Mean,
}
BOTH = {
    **COMBINED,
    "bidirectional": lambda: nn.BidirectionalCell(nn.LSTMCell(3), nn.GRUCell(2)),
    "layers of both": lambda: nn.SequentialRNNCell(
        nn.BidirectionalCell(nn.LSTMCell(3), nn.LSTMCell(3)),
        nn.BidirectionalCell(nn.ResidualCell(nn.GRUCell(6)), Mean(6)),
    ),
}


@pytest.mark.parametrize("kind", CELLS)
def test_one_step_is_that_of_pytorch(kind: str):
    torch = pytest.importorskip("torch", reason="PyTorch is what is compared with")
    cell = made(CELLS[kind](4, input_size=3))
    options = {"nonlinearity": kind} if kind in ("relu", "tanh") else {}
    modules = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell}
    theirs = modules.get(kind, torch.nn.RNNCell)(3, 4, dtype=torch.float64, **options)
    for name, parameter in cell.collect_params().items():
        getattr(theirs, THEIR_NAMES[name]).data = torch.tensor(parameter.data().asnumpy())
    x, states = normal(2, 3), begun(cell, 2)
    given = [torch.tensor(state) for state in states]
    expected = theirs(torch.tensor(x), tuple(given) if kind == "lstm" else given[0])
    expected = expected if kind == "lstm" else (expected,)
    for _ in range(2):
        output, end = cell(x, states)
        assert (output == end[0]).all() and type(output) is np.ndarray
        for found, wanted in zip(end, expected, strict=True):
            np.testing.assert_allclose(found, wanted.detach(), rtol=1e-10)
        cell.hybridize()


# ---- unroll -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMBINED)
def test_unroll_is_step_after_step(name: str):
    cell = made(COMBINED[name]())
    x, states = normal(2, 5, 3), begun(cell, 2)
    found, end = cell.unroll(5, x, states)
    assert all(type(each) is np.ndarray for each in (found, *end))
    expected = []
    for at in range(5):
        output, states = cell(x[:, at], states)
        expected.append(output)
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-10)
    assert len(end) == len(states)
    for one, other in zip(end, states, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("name", BOTH)
def test_lengths_are_those_of_each_sequence_alone(name: str):
    cell = made(BOTH[name]())
    x, lengths = normal(3, 5, 3), [4, 1, 5]
    states = begun(cell, 3)
    outputs, end = cell.unroll(5, x, states, valid_length=np.array(lengths))
    for at, length in enumerate(lengths):
        own = slice(at, at + 1)
        alone, alone_end = cell.unroll(length, x[own, :length], [state[own] for state in states])
        np.testing.assert_allclose(outputs[own, :length], alone, rtol=1e-10)
        assert (outputs[at, length:] == 0).all()
        for state, alone_state in zip(end, alone_end, strict=True):
            np.testing.assert_allclose(state[own], alone_state, rtol=1e-10)


@pytest.mark.parametrize("name", BOTH)
def test_forms_of_inputs_and_outputs(name: str):
    cell = made(BOTH[name]())
    x = normal(2, 4, 3)
    expected, _ = cell.unroll(4, x)
    by_time, _ = cell.unroll(None, x.swapaxes(0, 1), layout="TNC")
    np.testing.assert_allclose(by_time.swapaxes(0, 1), expected, rtol=1e-12)
    rows = [x[:, at] for at in range(4)]
    listed, _ = cell.unroll(4, rows)
    assert type(listed) is list and all(type(each) is np.ndarray for each in listed)
    np.testing.assert_allclose(np.stack(listed, 1), expected, rtol=1e-12)
    merged, _ = cell.unroll(4, rows, merge_outputs=True)
    np.testing.assert_allclose(merged, expected, rtol=1e-12)
    apart, end = cell.unroll(4, Array(x), merge_outputs=False)
    assert len(apart) == 4 and all(type(each) is Array for each in (*apart, *end))


class Unrolled(nn.HybridBlock):
    """A network that is one cell over a sequence."""

    def __init__(self, cell: nn.RecurrentCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Any, lengths: Any = None) -> Any:
        outputs, end = self.cell.unroll(x.shape[1], x, valid_length=lengths)
        return outputs, *end


@pytest.mark.parametrize("name", BOTH)
def test_training_is_the_same_in_all_ways(name: str):
    expected: dict[str, Any] = {}
    for way in ("imperative", "in Python", "hybridized"):
        net = made(Unrolled(BOTH[name]()))
        x = Array(normal(3, 5, 3))
        lengths = np.array([4, 1, 5])
        net(x)
        x.attach_grad()
        if way == "hybridized":
            net.hybridize()
        mg.random.seed(3)
        with mg.eager() if way == "in Python" else autograd.record(), autograd.record():
            outputs, *end = net(x, lengths)
            loss = (outputs * normal(*outputs.shape)).sum()
            for state in end:
                loss = loss + (state * normal(*state.shape)).sum()
        loss.backward()
        found = {"outputs": outputs.asnumpy(), "argument": x.grad.asnumpy()}
        found |= {key: p.grad().asnumpy() for key, p in net.collect_params().items()}
        expected = expected or found
        assert list(found) == list(expected)
        for key, values in expected.items():
            np.testing.assert_allclose(found[key], values, 1e-10, 1e-10, err_msg=key)


@pytest.mark.parametrize("kind", CELLS)
def test_cells_and_layers_are_the_same(kind: str):
    layer = made(LAYERS[kind](4, 2, bidirectional=True, layout="NTC", input_size=3))
    cell = nn.SequentialRNNCell(
        *(nn.BidirectionalCell(CELLS[kind](4), CELLS[kind](4)) for _ in range(2))
    )
    made(cell)
    x, lengths = normal(3, 5, 3), np.array([5, 2, 3])
    cell.unroll(5, x)
    for at in range(2):
        for way, part in (("l", cell[at].l_cell), ("r", cell[at].r_cell)):
            for name, parameter in part.collect_params().items():
                parameter.set_data(getattr(layer, f"{way}{at}_{name}").data())
    expected, states = layer(x, layer.begin_state(3), lengths)
    found, end = cell.unroll(5, x, valid_length=lengths)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    order = [end[at] for at in range(len(end))]
    width = len(states)
    stacked = [np.stack(order[at::width]) for at in range(width)]
    for one, other in zip(stacked, states, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


# ---- noise ------------------------------------------------------------------------------------


def test_zoneout_and_dropout_while_training():
    x = normal(8, 6, 3)
    for name in ("zoneout", "sequential", "nested"):
        cell = made(COMBINED[name]())
        kept, _ = cell.unroll(6, x)
        with autograd.train_mode():
            mg.random.seed(1)
            (found, _), (other, _) = cell.unroll(6, x), cell.unroll(6, x)
            mg.random.seed(1)
            again, _ = cell.unroll(6, x)
        assert (found != kept).any() and (found != other).any() and (found == again).all()
    zoneout = made(nn.ZoneoutCell(nn.GRUCell(200), 0.25))
    state = begun(zoneout, 4)
    zoneout(normal(4, 3), state)
    with autograd.train_mode():
        output, (after,) = zoneout(normal(4, 3), state)
    stays = after == state[0]
    assert abs(stays.mean() - 0.25) < 0.05 and (after[~stays] == output[~stays]).all()


# ---- how they look, and what is refused -------------------------------------------------------


def test_members():
    cell = nn.SequentialRNNCell(nn.LSTMCell(4), nn.DropoutCell(0.5))
    assert cell.add(nn.ResidualCell(nn.RNNCell(4))) is cell and len(cell) == 3
    assert [type(each).__name__ for each in cell] == ["LSTMCell", "DropoutCell", "ResidualCell"]
    assert list(cell.collect_params("cells.2")) == [
        f"cells.2.base_cell.{name}" for name in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")
    ]
    assert "(cells.0): LSTMCell(? -> 4)" in repr(cell)
    assert [state.shape for state in cell.begin_state(batch_size=2)] == [(2, 4)] * 3
    assert cell.begin_state(2, dtype="float64")[0].dtype == "float64"
    cell.cast("float64")
    assert cell.begin_state(2)[0].dtype == "float64"
    assert repr(nn.ZoneoutCell(cell, 0.5)).startswith("ZoneoutCell(zoneout_states=0.5\n")


def test_refusals():
    cell = made(nn.LSTMCell(4))
    x = normal(2, 5, 3)
    cell.unroll(5, x)
    with pytest.raises(UninitializedError, match="i2h_weight has not been initialized"):
        nn.LSTMCell(4)(x[:, 0], begun(cell, 2))
    with pytest.raises(ShapeError, match="length=4, and the inputs have 5 steps"):
        cell.unroll(4, x)
    with pytest.raises(ShapeError, match=r"the inputs have shape \(5, 3\)"):
        cell.unroll(5, x[0])
    with pytest.raises(ShapeError, match=r"LSTMCell has 2 states \(h, c\), and given is 1\n"):
        cell.unroll(5, x, cell.begin_state(2)[:1])
    with pytest.raises(ShapeError, match=r"given are 0\n(.*\n)*.* \(2, 4\), \(2, 4\):"):
        cell(x[:, 0], [])
    with pytest.raises(ValueError, match=r"from 0 to 5, and the lengths are \[6 1\]"):
        cell.unroll(5, x, valid_length=np.array([6, 1]))
    with pytest.raises(OptionError, match="layout"):
        cell.unroll(5, x, layout="NCT")
    with pytest.raises(OptionError, match="did you mean 'relu'"):
        nn.RNNCell(3, "rellu")
    with pytest.raises(ShapeError, match=r"instead: inputs\[:, None\] for one sequence"):
        cell.unroll(5, x[0], layout="TNC")
    with pytest.raises(ShapeError, match=r"instead: an array of the axes"):
        cell.unroll(5, x[0, 0])
    for call in (lambda: cell.unroll(5, x[..., :2]), lambda: cell(x[:, 0, :2], begun(cell, 2))):
        with pytest.raises(ShapeError, match="LSTMCell takes 3 features, and the input has 2"):
            call()
    residual = made(nn.ResidualCell(nn.GRUCell(4)))
    for call in (lambda: residual.unroll(5, x), lambda: residual(x[:, 0], begun(residual, 2))):
        with pytest.raises(
            ShapeError, match="3 features to the output of its GRUCell, which has 4"
        ):
            call()
    with pytest.raises(OptionError, match=r"the rate of a zoneout must be .* not 1\.5"):
        nn.ZoneoutCell(cell, 1.5)
    with pytest.raises(OptionError, match=r"GRUCell with hidden_size=2\.5"):
        nn.GRUCell(2.5)
    with pytest.raises(TypeError, match="batch_size"):
        cell.begin_state()
    with pytest.raises(OptionError, match="hidden_size=0"):
        nn.GRUCell(0)
    with pytest.raises(ChildError, match="is made of cells, and is given a LSTM"):
        nn.SequentialRNNCell(nn.LSTM(3))
    both = nn.BidirectionalCell(nn.LSTMCell(3), nn.GRUCell(2))
    both.initialize()
    with pytest.raises(UnsupportedError, match="makes no single steps"):
        both(x[:, 0], both.begin_state(2))
    with pytest.raises(NotImplementedError, match="defines no state_info"):
        nn.RecurrentCell().begin_state(2)
