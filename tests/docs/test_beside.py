"""README's table "Beside TorchScript and AutoGraph" is true of TorchScript, and of us.

Each program is run by both, with the arrays of each.  What it says of TensorFlow was run by hand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minigraph as mg
from minigraph.errors import BranchError, JoinError, LoopError, ScriptError, UndefinedError

torch = pytest.importorskip("torch")


def array(xp: Any, *numbers: float) -> Any:
    return xp.asarray(numbers, dtype=xp.float32)


def scripted(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function by TorchScript and by us; each compiles it when it is called."""

    def theirs(*args: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.script(function)(*args)

    return theirs, mg.script(function, backend="python")


def early(x):
    if bool(x.sum() > 0):
        return x * 2
    return -x


def test_a_branch_that_was_traced():
    x = array(torch, 1, 2)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        traced = torch.jit.trace(early, x)
    assert "TracerWarning" in [each.category.__name__ for each in given]
    assert traced(-x).tolist() == [-2, -4] != early(-x).tolist()
    with pytest.raises(BranchError):
        mg.trace(early, array(np, 1, 2))
    for xp, run in zip((torch, np), scripted(early), strict=True):
        assert run(-array(xp, 1, 2)).tolist() == [1, 2]


def found(xs, limit: float):
    for i in range(len(xs)):
        if float(xs[i]) > limit:
            return i
    return -1


def test_return_in_a_loop():
    for xp, run in zip((torch, np), scripted(found), strict=True):
        assert run(array(xp, 1, 5, 9), 4.0) == 1 and run(array(xp, 1, 5, 9), 9.0) == -1


def one_branch(x):
    if bool(x.sum() > 0):
        y = x * 2
    return y


def two_types(n: int):
    if n > 0:  # noqa: SIM108
        y = 1
    else:
        y = 0.5
    return y


def test_joins():
    theirs, ours = scripted(one_branch)
    with pytest.raises(RuntimeError, match="(?s)not defined in the false branch.*was used here"):
        theirs(array(torch, 1))
    with pytest.raises(UndefinedError):
        ours(array(np, 1))
    theirs, ours = scripted(two_types)
    with pytest.raises(RuntimeError, match="type int in the true branch and type float"):
        theirs(1)
    with pytest.raises(JoinError):
        ours(1)


def double(x):
    if bool(x.sum() > 0):  # noqa: SIM108
        y = x.double()
    else:
        y = x
    return y


def widened(x):
    return x.astype(np.float64) if x.sum() > 0 else x


def test_dtypes():
    theirs, _ = scripted(double)
    found = [theirs(array(torch, number)).dtype for number in (1, -1)]
    assert found == [torch.float64, torch.float32]
    with pytest.raises(JoinError):
        mg.script(widened, backend="python")(array(np, 1))


def added(x):
    total = 0
    for i in range(len(x)):
        total = total + x[i]
    return total


def test_an_int_to_which_floats_are_added():
    theirs, ours = scripted(added)
    with pytest.raises(RuntimeError, match="Cannot input a tensor of type Float as an integral"):
        theirs(array(torch, 1, 2))
    assert ours(array(np, 1, 2)) == 3 and ours(np.ones(40)) == 40
    with pytest.raises(LoopError):
        mg.script(added, dynamic={"x": {0: "n"}}, backend="python")(np.ones(40))


def printed(x):
    for i in range(2):
        print("turn", i)
    return x


def text(x):
    total = float(x.sum())
    print(f"total {total:.2f}")
    return x


def test_prints(capfd: pytest.CaptureFixture[str]):
    for xp, run in zip((torch, np), scripted(printed), strict=True):
        run(array(xp, 1)), run(array(xp, 1))
        assert capfd.readouterr().out == "turn 0\nturn 1\n" * 2
    theirs, ours = scripted(text)
    with pytest.raises(torch.jit.frontend.NotSupportedError, match="formatting in JoinedStr"):
        theirs(array(torch, 3))
    ours(array(np, 3))
    assert capfd.readouterr().out == "total 3.00\n"


def refused(x):
    if bool(x.sum() > 100):
        raise ValueError("too much")
    return x


def test_raise():
    theirs, ours = scripted(refused)
    assert theirs(array(torch, 1)).tolist() == ours(array(np, 1)).tolist() == [1]
    with pytest.raises(torch.jit.Error, match="ValueError"):
        theirs(array(torch, 101))
    with pytest.raises(ValueError, match="too much"):
        ours(array(np, 101))


def factorial(n: int):
    product = 1
    for i in range(1, n + 1):
        product = product * i
    return product


def test_large_ints():
    theirs, _ = scripted(factorial)
    assert theirs(30) == -8764578968847253504
    assert mg.script(factorial)(30) == 265252859812191058636308480000000


def grown(x):
    ys = []
    for i in range(len(x)):
        ys.append(x[i] * 2)
    return ys


FACTOR = 2.0


def scaled(x):
    return x * FACTOR


def test_lists_and_globals(monkeypatch: pytest.MonkeyPatch):
    theirs, ours = scripted(grown)
    assert [float(y) for y in theirs(array(torch, 1, 2))] == ours(array(np, 1, 2)) == [2, 4]
    assert ours(np.ones(17)) == [2] * 17
    with pytest.raises(LoopError):
        mg.script(grown, dynamic={"x": {0: "n"}}, backend="python")(np.ones(17))
    theirs, ours = scripted(scaled)
    with pytest.raises(RuntimeError, match="cannot be used as a value"):
        theirs(array(torch, 1))
    assert ours(array(np, 1)) == 2
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert ours(array(np, 1)) == 3


def tried(x):
    try:
        if bool(x.sum() > 0):
            return x + 1
    except ValueError:
        return x * 100
    return x


def test_try():
    theirs, ours = scripted(tried)
    with pytest.raises(torch.jit.frontend.UnsupportedNodeError, match="try blocks"):
        theirs(array(torch, 1))
    with pytest.raises(ScriptError, match="try"):
        ours(array(np, 1))
