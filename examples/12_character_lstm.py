"""A network that learns a text by heart, one character after the other, and recites it.

The text is the Zen of Python, which every Python has.  The LSTM's input products are computed for
all characters at once; what depends on the character before is one loop, forward and backward.
"""

import contextlib
import io

import numpy as np

import minigraph as mg
from minigraph import autograd, nn

with contextlib.redirect_stdout(io.StringIO()):
    import this  # it prints the text, and holds it in rot13

text = "".join(this.d.get(c, c) for c in this.s)
alphabet = sorted(set(text))
codes = np.array([alphabet.index(c) for c in text])
print(len(text), "characters,", len(alphabet), "different ones")
# | 856 characters, 45 different ones


class Reader(nn.HybridBlock):
    def __init__(self, units=128):
        super().__init__()
        self.embedding = nn.Embedding(len(alphabet), 32)
        self.lstm = nn.LSTM(units, layout="NTC", input_size=32)
        self.output = nn.Dense(len(alphabet), flatten=False, in_units=units)

    def forward(self, x, states):
        x, states = self.lstm(self.embedding(x), states)
        return self.output(x), states


def fit(net, steps, length=64, count=16):
    """Train on passages that begin anywhere, to foretell each next character; the losses."""
    rng = np.random.default_rng(0)
    trainer = nn.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss_function = nn.SoftmaxCrossEntropyLoss()
    losses = []
    for _ in range(steps):
        at = rng.integers(0, len(text) - length, count)[:, None] + np.arange(length)
        with autograd.record():
            scores, _ = net(codes[at], net.lstm.begin_state(count))
            loss = loss_function(scores, codes[at + 1])
        loss.backward()
        trainer.step(count)
        losses.append(loss.mean().item())
    return losses


def recite(net, start, count):
    """What the network says after the start: each time the likeliest character."""
    said, states = start, net.lstm.begin_state(1)
    scores, states = net(np.array([[alphabet.index(c) for c in start]]), states)
    while len(said) < count:
        said += alphabet[scores[0, -1].argmax()]
        scores, states = net(np.array([[alphabet.index(said[-1])]]), states)
    return said


imperative, hybrid = Reader(), Reader()
for net in (imperative, hybrid):
    mg.random.seed(0)
    net.initialize("xavier")
hybrid.hybridize()
first, losses = fit(imperative, 20), fit(hybrid, 250)

# Line by line or compiled as a whole, the numbers are the same.
print(f"{losses[0]:.2f} -> {losses[-1]:.2f}", np.allclose(first, losses[:20], rtol=1e-3))
# | 3.81 -> 0... True
print("below 0.2:", losses[-1] < 0.2)
# | below 0.2: True
print(recite(hybrid, "Beautiful", 64))
# | Beautiful is better than ugly.
# | Explicit is better than implicit.
