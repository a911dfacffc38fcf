"""A whole training step as one program: forward, loss, backward and update under one `mg.jit`.

Parameters, what the optimiser remembers, and the learning rate are arrays that are written in
place; so the step has no results but the loss, and a new learning rate compiles nothing again.
"""

import numpy as np

import minigraph as mg
from minigraph import autograd, nn

rng = np.random.default_rng(0)
x = mg.array(rng.normal(size=(32, 8)).astype("float32"))
y = mg.array(rng.integers(0, 4, size=32))
loss_function = nn.SoftmaxCrossEntropyLoss()


def new_network():
    mg.random.seed(0)
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu", in_units=8), nn.Dense(4, in_units=16))
    net.initialize("xavier")
    trainer = nn.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    return net, trainer


# The Gluon way: three programs (forward, backward, update), and Python between them.
net, trainer = new_network()
net.hybridize()
losses = []
for _ in range(100):
    with autograd.record():
        loss = loss_function(net(x), y)
    loss.backward()
    trainer.step(len(x))
    losses.append(loss.mean().item())

# The same lines in a function that is compiled whole.
whole, whole_trainer = new_network()


@mg.jit
def step(x, y):
    with autograd.record():
        loss = loss_function(whole(x), y)
    loss.backward()
    whole_trainer.step(len(x))
    return loss.mean()


whole_losses = [step(x, y).item() for _ in range(100)]

# Both give the same numbers.
print(f"{losses[0]:.4f} -> {losses[-1]:.4f}", np.allclose(losses, whole_losses, rtol=1e-4))
# | ... -> ... True
pairs = zip(net.collect_params().values(), whole.collect_params().values(), strict=True)
print(all(np.allclose(a.data(), b.data(), atol=1e-4) for a, b in pairs))
# | True

# The rate is an array: set it, and the compiled step goes on with it.
before = whole[0].weight.data().asnumpy()
whole_trainer.set_learning_rate(0.0)
step(x, y)
print(np.array_equal(whole[0].weight.data(), before), len(step.cache_info()), "entry")
# | True 1 entry

# One graph holds it all: each node stands for a line above, each write for an array it changes.
graph = step.graph("traced")
counts = {}
for node in graph.nodes:
    counts[node.loc.line] = counts.get(node.loc.line, 0) + 1
print(counts)
# | {45: ..., 46: ..., 47: ..., 48: ...}
writes = [node.inputs[0].name for node in graph.nodes if node.op.name == "write"]
print(len(writes), "writes:", *writes[:5], "...")
# | 21 writes: whole_0_bias_grad whole_0_weight_grad whole_1_bias_grad whole_1_weight_grad ...
