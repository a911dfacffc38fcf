"""What tracing sees, what it refuses, and what it cannot see.

Python runs while tracing and not afterwards.  What a later run of it could do differently must be
noticed, or be an error.  The README has the list of what is neither.
"""

import time

import numpy as np

import minigraph as mg

# Seen: what the function reaches by name.  Changed, it is traced again, and that says why.
config = {"rate": 0.5}
weights = np.ones(2)


@mg.jit
def step(x):
    return weights - config["rate"] * x


print(step(np.ones(2)))
# | [0.5 0.5]
weights += 10  # an array is an input: its contents are read at each call
config["rate"] = 0.25
print(step(np.ones(2)), step.cache_info().retraces)
# | [10.75 10.75] ["config['rate'] is 0.25, was 0.5"]

# Seen: random draws, fresh at each call, from the generator that you made.
rng = np.random.default_rng(0)
noise = mg.jit(lambda x: x + rng.normal(size=x.shape))
print(noise(np.zeros(2)), noise(np.zeros(2)))
# | [ 0.12573022 -0.13210486] [0.64042265 0.10490012]


# Refused: a decision that depends on data, and a change of Python's own state.
def branch(x):
    return x if x.sum() > 0 else -x


def count(x):
    config["calls"] = config.get("calls", 0) + 1
    return x


for function in (branch, count):
    try:
        mg.jit(function)(np.ones(2))
    except mg.MinigraphError as error:
        print(f"[{error.code}] {error.fact}")
# | [MG001] Python needs a definite truth value, and this one is only being described (%5: bool[])
# | [MG009] config was changed while tracing (.__setitem__)

# Not seen: what code that is not yours reads or does.  It runs once, while tracing.
stamp = mg.jit(lambda x: x + time.perf_counter())
print(stamp(0.0) == stamp(0.0))
# | True

# So read it outside and pass it in ...
stamped = mg.jit(lambda x, now: x + now)
print(stamped(0.0, time.perf_counter()) == stamped(0.0, time.perf_counter()))
# | False

# ... or leave compiled code for a while.
with mg.eager():
    print(stamp(0.0) == stamp(0.0))
# | False

# Different: a result is always an array of its own, also where NumPy would hand out a view.
first = mg.jit(lambda x: x[:1])
x = np.zeros(3)
first(x)[0] = 5
print(x)
# | [0. 0. 0.]
