"""Recurrent layers: states, lengths, layouts, dropout, files, and what is refused.

Values and gradients of all kinds are compared with PyTorch's in `test_against_torch.py`.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nn.cases import THEIR_NAMES

import minigraph as mg
from minigraph import autograd, nn
from minigraph.array import Array
from minigraph.errors import OptionError, ShapeError, UninitializedError

KINDS = {
    "relu": lambda *args, **options: nn.RNN(*args, **options),
    "tanh": lambda *args, **options: nn.RNN(*args, activation="tanh", **options),
    "lstm": nn.LSTM,
    "gru": nn.GRU,
}


def made(kind: str, *args: Any, dtype: str = "float64", **options: Any) -> Any:
    """A layer with parameters at random."""
    layer = KINDS[kind](*args, dtype=dtype, **options)
    mg.random.seed(0)
    layer.initialize(nn.initializers.Normal(0.5))
    for name, parameter in layer.collect_params().items():
        if name.endswith("bias"):
            parameter.set_data(np.random.default_rng(len(name)).normal(size=parameter.shape))
    return layer


def normal(*shape: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


def begun(layer: Any, batch: int) -> list[np.ndarray[Any, Any]]:
    """States at random."""
    infos = layer.state_info(batch)
    return [normal(*info["shape"], seed=at) for at, info in enumerate(infos)]


def gradients(
    layer: Any, x: Any, states: Any, lengths: Any = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs, states at the end, and all gradients of a training step."""
    arrays = [Array(each.copy()) for each in (x, *states)]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        outputs, end = layer(arrays[0], arrays[1:], lengths)
        loss = (outputs * normal(*outputs.shape, seed=7)).sum()
        for at, state in enumerate(end):
            loss = loss + (state * normal(*state.shape, seed=8 + at)).sum()
    loss.backward()
    found = {"outputs": outputs} | {f"end {at}": state for at, state in enumerate(end)}
    found |= {f"argument {at}": array.grad for at, array in enumerate(arrays)}
    found |= {name: p.grad() for name, p in layer.collect_params().items()}
    return {name: array.asnumpy() for name, array in found.items()}


def assert_same(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, tolerance, tolerance, err_msg=name)


# ---- PyTorch's numbers ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True], ids=["full", "packed"])
@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
def test_states_and_their_gradients_are_those_of_pytorch(kind: str, packed: bool, hybrid: bool):
    torch = pytest.importorskip("torch", reason="PyTorch is what is compared with")
    ours = made(kind, 4, 2, bidirectional=True, input_size=3)
    x, states = normal(6, 5, 3), begun(ours, 5)
    lengths = np.array([6, 1, 4, 6, 3]) if packed else None
    if hybrid:
        ours.hybridize()
    found = gradients(ours, x, states, lengths)

    options = {"nonlinearity": kind} if kind in ("relu", "tanh") else {}
    modules = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
    theirs = modules.get(kind, torch.nn.RNN)(
        3, 4, 2, bidirectional=True, dtype=torch.float64, **options
    )
    names = {}
    for name, parameter in ours.collect_params().items():
        place, _, rest = name.partition("_")
        names[name] = f"{THEIR_NAMES[rest]}_l{place[1:]}" + "_reverse" * place.startswith("r")
        getattr(theirs, names[name]).data = torch.tensor(parameter.data().asnumpy())
    given = [torch.tensor(each, requires_grad=True) for each in (x, *states)]
    begin = tuple(given[1:]) if kind == "lstm" else given[1]
    rnn = torch.nn.utils.rnn
    if packed:
        sequences = rnn.pack_padded_sequence(given[0], torch.tensor(lengths), enforce_sorted=False)
        outputs, end = theirs(sequences, begin)
        outputs, _ = rnn.pad_packed_sequence(outputs)
    else:
        outputs, end = theirs(given[0], begin)
    ends = end if kind == "lstm" else (end,)
    loss = (outputs * torch.tensor(normal(*outputs.shape, seed=7))).sum()
    for at, state in enumerate(ends):
        loss = loss + (state * torch.tensor(normal(*state.shape, seed=8 + at))).sum()
    loss.backward()
    expected = {"outputs": outputs} | {f"end {at}": state for at, state in enumerate(ends)}
    expected |= {f"argument {at}": tensor.grad for at, tensor in enumerate(given)}
    expected |= {name: getattr(theirs, names[name]).grad for name in names}
    assert_same(found, {name: tensor.detach().numpy() for name, tensor in expected.items()}, 1e-10)


# ---- the documented equations -----------------------------------------------------------------


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(w: Any, x: Any) -> Any:
    h, c = np.zeros((2, x.shape[1], w["h2h_weight"].shape[1]))
    for row in x:
        sums = row @ w["i2h_weight"].T + w["i2h_bias"] + h @ w["h2h_weight"].T + w["h2h_bias"]
        enter, forget, value, leave = np.split(sums, 4, axis=1)
        c = sigmoid(forget) * c + sigmoid(enter) * np.tanh(value)
        h = sigmoid(leave) * np.tanh(c)
        yield h


def gru_by_hand(w: Any, x: Any) -> Any:
    h = np.zeros((x.shape[1], w["h2h_weight"].shape[1]))
    for row in x:
        inner = np.split(row @ w["i2h_weight"].T + w["i2h_bias"], 3, axis=1)
        outer = np.split(h @ w["h2h_weight"].T + w["h2h_bias"], 3, axis=1)
        reset, update = sigmoid(inner[0] + outer[0]), sigmoid(inner[1] + outer[1])
        h = (1 - update) * np.tanh(inner[2] + reset * outer[2]) + update * h
        yield h


def rnn_by_hand(w: Any, x: Any) -> Any:
    h = np.zeros((x.shape[1], w["h2h_weight"].shape[1]))
    for row in x:
        h = np.tanh(row @ w["i2h_weight"].T + w["i2h_bias"] + h @ w["h2h_weight"].T + w["h2h_bias"])
        yield h


@pytest.mark.parametrize(
    ("kind", "by_hand"), [("lstm", lstm_by_hand), ("gru", gru_by_hand), ("tanh", rnn_by_hand)]
)
def test_equations(kind: str, by_hand: Any):
    layer = made(kind, 4)
    x = normal(5, 2, 3)
    found = layer(x)
    weights = {
        name.removeprefix("l0_"): p.data().asnumpy() for name, p in layer.collect_params().items()
    }
    np.testing.assert_allclose(found, np.stack(list(by_hand(weights, x))), rtol=1e-12)


# ---- one meaning, however it runs -------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_the_same_in_all_ways(kind: str):
    x, lengths = normal(5, 3, 2), np.array([2, 5, 3])
    expected = None
    for way in ("imperative", "in Python", "hybridized"):
        layer = made(kind, 3, 2, bidirectional=True, dropout=0.3, input_size=2)
        states = begun(layer, 3)
        if way == "hybridized":
            layer.hybridize()
        mg.random.seed(5)
        if way == "in Python":
            with mg.eager():
                found = gradients(layer, x, states, lengths)
        else:
            found = gradients(layer, x, states, lengths)
        expected = expected or found
        assert_same(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_ndarrays_arrays_and_hybridized(kind: str):
    layer = made(kind, 4, 2, layout="NTC")
    x = normal(2, 5, 3)
    outputs, end = layer(x, layer.begin_state(2))
    assert all(type(each) is np.ndarray for each in (outputs, *end))
    for _ in range(2):
        again, again_end = layer(Array(x), layer.begin_state(batch_size=2))
        assert all(type(each) is Array for each in (again, *again_end))
        np.testing.assert_allclose(again, outputs, rtol=1e-12)
        np.testing.assert_allclose(layer(x), outputs, rtol=1e-12)
        for one, other in zip(end, again_end, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        layer.hybridize()


@pytest.mark.parametrize("kind", KINDS)
def test_layouts(kind: str):
    by_time, by_batch = made(kind, 4), made(kind, 4, layout="NTC")
    x = normal(5, 2, 3)
    expected, end = by_time(x, by_time.begin_state(2))
    by_batch.share_parameters(by_time.collect_params())
    found, by_batch_end = by_batch(x.swapaxes(0, 1), by_batch.begin_state(2))
    np.testing.assert_allclose(found.swapaxes(0, 1), expected, rtol=1e-12)
    for one, other in zip(end, by_batch_end, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_in_two_halves(kind: str):
    layer = made(kind, 4, 2)
    x = normal(6, 2, 3)
    expected, expected_end = layer(x, layer.begin_state(2))
    first, states = layer(x[:4], layer.begin_state(2))
    second, states = layer(x[4:], states)
    np.testing.assert_allclose(np.concatenate([first, second]), expected, rtol=1e-10)
    np.testing.assert_allclose(states, expected_end, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_those_of_each_sequence_alone(kind: str):
    layer = made(kind, 4, 2, bidirectional=True)
    x, lengths = normal(5, 3, 2), [4, 0, 5]
    states = begun(layer, 3)
    outputs, end = layer(x, states, np.array(lengths))
    for at, length in enumerate(lengths):
        own = slice(at, at + 1)
        alone, alone_end = layer(x[:length, own], [state[:, own] for state in states])
        np.testing.assert_allclose(outputs[:length, own], alone, rtol=1e-12)
        assert (outputs[length:, at] == 0).all()
        for state, alone_state in zip(end, alone_end, strict=True):
            np.testing.assert_allclose(state[:, own], alone_state, rtol=1e-12)
    assert (layer(x, None, np.array(lengths)) == layer(x, lengths=np.array(lengths))).all()


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
def test_lengths_in_a_list_or_as_floating_point_numbers(hybrid: bool):
    layer, x = made("gru", 4), normal(5, 3, 2)
    expected = layer(x, None, np.array([5, 1, 3]))
    if hybrid:
        layer.hybridize()
    for lengths in ([5, 1, 3], (5, 1, 3), np.float32([5, 1, 3])):
        np.testing.assert_array_equal(layer(x, None, lengths), expected)


def test_lengths_that_do_not_fit_a_named_batch():
    layer, x = made("gru", 4), normal(5, 3, 2)
    layer.hybridize(dynamic={"x": {1: "batch"}})
    with pytest.raises(ShapeError, match=r"they are int64 of shape \(3, 1\)"):
        layer(x, None, np.array([[5], [1], [3]]))


def test_options_in_their_order():
    """Of `nn.RNN`, `activation` stands before those that all layers share."""
    layer = nn.RNN(3, 2, "tanh", "NTC", 0.5, True, 7)
    assert repr(layer).startswith("RNN(7 -> 3, NTC, num_layers=2, dropout=0.5, bidirectional")
    assert nn.RNN(3).kind == "relu" and layer.kind == nn.RNNCell(3).kind == "tanh"
    assert nn.RNNCell(3, "relu", "ones").i2h_weight.shape == (3, 0)


def test_another_length_compiles_nothing():
    layer = made("lstm", 4, 2, bidirectional=True, input_size=3)
    layer.hybridize(dynamic={"x": {0: "time"}})
    plain = made("lstm", 4, 2, bidirectional=True, input_size=3)
    for length in (5, 7, 1, 40):
        x = normal(length, 2, 3)
        np.testing.assert_allclose(layer(x), plain(x), rtol=1e-10)
    assert len(layer.cache_info()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_named_sizes(kind: str):
    layer = made(kind, 4, 2, bidirectional=True, input_size=3)
    plain = made(kind, 4, 2, bidirectional=True, input_size=3)
    named = {"x": {0: "time", 1: "batch"}, "lengths": {0: "batch"}}
    layer.hybridize(dynamic=named)
    for time, batch in ((5, 3), (2, 4), (1, 1), (9, 2)):
        x = normal(time, batch, 3)
        lengths = np.random.default_rng(time).integers(0, time + 1, batch)
        np.testing.assert_allclose(layer(x), plain(x), rtol=1e-10)
        np.testing.assert_allclose(layer(x, None, lengths), plain(x, None, lengths), rtol=1e-10)
    assert len(layer.cache_info()) == 2  # with lengths, and without


def test_nothing_to_do():
    for layer in (made("gru", 4, bidirectional=True), made("lstm", 4)):
        layer(normal(2, 1, 3))
        for _ in range(2):
            states = begun(layer, 2)
            outputs, end = layer(normal(0, 2, 3), states)
            assert outputs.shape == (0, 2, 4 * layer.state_info()[0]["shape"][0])
            for one, other in zip(end, states, strict=True):
                assert (one == other).all()
            outputs, end = layer(normal(5, 0, 3), begun(layer, 0))
            assert outputs.shape[:2] == (5, 0) and end[0].shape[1] == 0
            layer.hybridize()


def test_dtypes():
    layer = nn.GRU(4)
    layer.initialize()
    assert layer(normal(3, 2, 5).astype("float32")).dtype == "float32"
    assert layer(normal(3, 2, 5)).dtype == "float64"
    assert layer.begin_state(2)[0].dtype == "float32"
    outputs, end = layer(normal(3, 2, 5).astype("float32"), normal(1, 2, 4))
    assert outputs.dtype == end[0].dtype == "float64"
    layer.cast("float64")
    assert layer.begin_state(2)[0].dtype == "float64"


# ---- dropout ----------------------------------------------------------------------------------


def test_dropout_between_layers_while_training():
    x = normal(5, 3, 2)
    one = made("lstm", 40, dropout=0.5)
    with autograd.train_mode():
        found = one(x)
    assert (found == one(x)).all()  # there is nothing after it
    two = made("lstm", 40, 2, dropout=0.5)
    for _ in range(2):
        kept = two(x)
        assert (kept == two(x)).all()
        with autograd.train_mode():
            mg.random.seed(3)
            found, other = two(x), two(x)
            assert (found != other).any() and (found != kept).any()
            mg.random.seed(3)
            assert (found == two(x)).all()
        two.hybridize()


# ---- what all blocks can do -------------------------------------------------------------------


def test_parameters_and_states():
    layer = nn.LSTM(5, 2, bidirectional=True)
    assert list(layer.collect_params()) == [
        f"{way}{layer}_{part}"
        for layer in (0, 1)
        for way in "lr"
        for part in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")
    ]
    assert repr(layer) == "LSTM(? -> 5, TNC, num_layers=2, bidirectional)"
    layer.initialize()
    layer(np.ones((3, 2, 7), "float32"))
    assert repr(layer) == "LSTM(7 -> 5, TNC, num_layers=2, bidirectional)"
    shapes = {name: p.shape for name, p in layer.collect_params().items()}
    assert shapes["l0_i2h_weight"] == (20, 7) and shapes["r1_i2h_weight"] == (20, 10)
    assert shapes["l1_h2h_weight"] == (20, 5) and shapes["r0_h2h_bias"] == (20,)
    assert [state.shape for state in layer.begin_state(3)] == [(4, 3, 5)] * 2
    assert [info["__layout__"] for info in layer.state_info(3)] == ["LNC"] * 2
    ones = layer.begin_state(3, np.ones, dtype="float64")
    assert ones[1].dtype == "float64" and (ones[1] == 1).all()
    gru = nn.GRU(5, dropout=0.5, num_layers=3)
    assert repr(gru) == "GRU(? -> 5, TNC, num_layers=3, dropout=0.5)"
    assert len(gru.begin_state(2)) == 1


def test_bias_of_the_forget_gate():
    layer = nn.LSTM(2, i2h_bias_initializer=nn.initializers.LSTMBias(1.5), input_size=3)
    layer.initialize()
    assert layer.l0_i2h_bias.data().asnumpy().tolist() == [0, 0, 1.5, 1.5, 0, 0, 0, 0]
    assert (layer.l0_h2h_bias.data().asnumpy() == 0).all()
    wrong = nn.GRU(3, i2h_bias_initializer=nn.initializers.LSTMBias, input_size=3)
    with pytest.raises(ShapeError, match="four parts of an LSTM's bias"):
        wrong.initialize()


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_copies(kind: str, tmp_path: Path):
    layer = made(kind, 4, 2, bidirectional=True)
    x = normal(5, 2, 3)
    expected = layer(x)
    layer.save_parameters(tmp_path / "layer.safetensors")
    other = KINDS[kind](4, 2, bidirectional=True, dtype="float64")
    other.load_parameters(tmp_path / "layer.safetensors")
    np.testing.assert_allclose(other(x), expected, rtol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(layer))(x), expected, rtol=1e-12)
    layer.export(tmp_path / "layer.zip", x)
    np.testing.assert_allclose(mg.load(tmp_path / "layer.zip")(x), expected, rtol=1e-12)


def test_summary(capsys: pytest.CaptureFixture[str]):
    net = nn.HybridSequential(nn.Embedding(9, 4), nn.LSTM(5, layout="NTC"), nn.Dense(2))
    net.initialize()
    net.summary(np.zeros((2, 3), "int64"))
    shown = capsys.readouterr().out
    assert "1 LSTM" in shown and "(2, 3, 5)" in shown and f"{4 * 5 * (4 + 5 + 2)}" in shown


# ---- what is refused --------------------------------------------------------------------------


def test_wrong_options():
    with pytest.raises(OptionError, match="did you mean 'relu'"):
        nn.RNN(3, activation="rellu")
    with pytest.raises(OptionError, match="no layout 'NCT'"):
        nn.LSTM(3, layout="NCT")
    with pytest.raises(OptionError, match="num_layers=0"):
        nn.GRU(3, 0)
    with pytest.raises(OptionError, match="below 1"):
        nn.GRU(3, 2, dropout=1.5)
    with pytest.raises(OptionError, match="LSTM with hidden_size=2.5"):
        nn.LSTM(2.5)
    with pytest.raises(OptionError, match="LSTM with num_layers=1.5"):
        nn.LSTM(2, 1.5)
    with pytest.raises(TypeError, match="batch_size"):
        nn.LSTM(2).begin_state()


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_without_values_says_so(kind: str, hybrid: bool):
    layer = KINDS[kind](4)
    if hybrid:
        layer.hybridize()
    with pytest.raises(UninitializedError, match="l0_i2h_weight has not been initialized"):
        layer(normal(5, 2, 3))


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
def test_wrong_arguments(hybrid: bool):
    layer = made("lstm", 4, layout="NTC")
    x = normal(3, 5, 2)
    layer(x)
    if hybrid:
        layer.hybridize()
    refused: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        ((x[0],), ShapeError, r"takes \(batch, time, features\), and the input has shape \(5, 2\)"),
        ((normal(3, 5, 7),), ShapeError, "LSTM takes 2 features, and the input has 7"),
        ((x, layer.begin_state(4)), ShapeError, r"\(1, 3, 4\), \(1, 3, 4\), and given are"),
        ((x, layer.begin_state(3)[0]), ShapeError, r"LSTM has 2 states \(h, c\), and given is 1\n"),
        ((x, None, np.array([5, 5])), ShapeError, r"int64 of shape \(2,\)"),
        ((normal(5),), ShapeError, r"instead: an array \(batch, time, features\)"),
        ((x[0],), ShapeError, r"instead: x\[None\] for one sequence"),
        ((x[None],), ShapeError, r"instead: an array \(batch, time, features\)"),
        ((x, None, np.array([6, 1, 1])), ValueError, r"from 0 to 5, and the lengths are \[6 1 1\]"),
        ((x, None, np.array([1, -1, 1])), ValueError, r"the lengths are \[ 1 -1  1\]"),
        ((x, None, [1, 6, 2]), ValueError, r"the lengths are \[1 6 2\]"),
        ((x, None, np.array([1, 2.5, 2])), ValueError, r"a whole number .* are \[1.  2.5 2. \]"),
    ]
    for arguments, kind, text in refused:
        with pytest.raises(kind, match=text):
            layer(*arguments)
    assert layer(x).shape == (3, 5, 4)
