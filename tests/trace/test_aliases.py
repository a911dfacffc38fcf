"""Random programs of views and writes: whatever shares memory eagerly is written when compiled."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from comparing import outcome

import minigraph as mg
from minigraph.errors import MinigraphError

BASE = np.arange(16.0).reshape(4, 4) * 1.5 - 9
LARGE = np.arange(64.0).reshape(8, 8)
ARGUMENTS = [
    (BASE, BASE + 1),
    (np.asfortranarray(BASE), BASE),
    (BASE[:, ::2], BASE[::-1]),
    (BASE.T, np.asfortranarray(BASE)[::-1]),
    (LARGE[::2, ::2], LARGE[:4, :4]),
    (BASE[:1], BASE[:, :1]),
    (np.arange(32)[::2].reshape(4, 4), np.arange(16).reshape(4, 4)),
]
VIEWS = """
{x}[0]
{x}[1:]
{x}[::-1]
{x}[..., 0]
{x}[..., ::2]
{x}[...]
{x}[None]
{x}.T
{x}.ravel()
{x}.ravel("F")
{x}.reshape(-1)
{x}.reshape(-1, order="F")
{x}.flatten()
{x}.copy()
{x}
{x}[[0]]
{x} + 0
np.split({x}, [1])[0]
np.split({x}, [1])[-1]
np.swapaxes({x}, 0, -1)
np.squeeze({x})
np.atleast_2d({x})
np.asarray({x}, order="C")
np.asarray({x}, order="F")
np.ascontiguousarray({x})
{x}.astype({x}.dtype, copy=False)
np.zeros_like({x})
""".strip().splitlines()
WRITES = """
{x}[...] = {y}.sum()
{x}[0] = 0
{x} += 1
{x}[-1] *= 2
{x} -= {x}[..., :1]
{x}[..., 0] = 5
{x}[{x} > 3] = -1
{x}.fill(2)
{x}.sort()
np.multiply({x}, 2, out={x})
np.copyto({x}, {y}.max())
{x}[[0, -1]] = {y}.min()
{x}[0], {x}[-1] = {x}[-1].copy(), {x}[0].copy()
{x} += {x}[::-1]
np.add.at({x}, [0, 0], 1)
{x}[...] = {x}[::-1]
{x}[::-1] += 1
np.cumsum({x}, axis=-1, out={x})
print({x}.sum())
""".strip().splitlines()


def program(seed: int) -> tuple[str, Any]:
    choose = random.Random(seed)
    names, text = ["a", "b"], ["def f(a, b):"]
    for index in range(choose.randint(3, 9)):
        x, y = choose.choice(names), choose.choice(names)
        if choose.random() < 0.5:
            text.append(f"    v{index} = " + choose.choice(VIEWS).format(x=x))
            names.append(f"v{index}")
        else:
            text.append("    " + choose.choice(WRITES).format(x=x, y=y))
    text.append(f"    return {', '.join(names)}")
    namespace: dict[str, Any] = {"np": np, "__name__": "the_user"}
    exec(compile("\n".join(text), f"<program {seed}>", "exec", dont_inherit=True), namespace)
    return "\n".join(text), namespace["f"]


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_programs_of_views_and_writes(start: int) -> None:
    refused = 0
    for seed in range(start, start + 20):
        text, function = program(seed)
        jitted = mg.jit(function)  # one for all arguments: entries must not be mixed up
        for arguments in ARGUMENTS:
            expected = outcome(function, arguments, {})
            try:
                assert outcome(jitted, arguments, {}) == expected, text
            except MinigraphError:
                refused += 1
    assert refused < 40
