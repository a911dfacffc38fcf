"""A small Transformer on the same digits: each row of an image is one word of eight pixels.

The network is a class of one's own.  Its `forward` is ordinary Python, run at each call, until
`hybridize()` makes it two programs: forward and backward.
"""

import time

import numpy as np
from rich.console import Console
from rich.progress import track

import minigraph as mg
from minigraph import autograd, nn

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("this example needs scikit-learn: pip install minigraph[examples]") from None

images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images, labels = (images[order] / 16).astype("float32").reshape(-1, 8, 8), labels[order]
train = nn.ArrayDataset(images[:1437], labels[:1437])


class Classifier(nn.HybridBlock):
    def __init__(self, units=32, heads=4, depth=2):
        super().__init__()
        self.embedding = nn.Dense(units, flatten=False)
        self.positions = nn.PositionalEncoding(units, max_length=8, learned=True)
        self.encoder = nn.HybridSequential()
        for _ in range(depth):
            self.encoder.add(nn.TransformerEncoderBlock(units, heads, 2 * units))
        self.output = nn.Dense(10)

    def forward(self, rows):
        x = self.positions(self.embedding(rows))
        return self.output(self.encoder(x).mean(axis=1))


def fit(net, what, epochs):
    """Train; the loss of each batch, the seconds that the first took, and the median of a step."""
    batches = epochs * 23
    schedule = nn.schedules.WarmUp(0.0, nn.schedules.Cosine(0.005, batches), updates=20)
    trainer = nn.Trainer(net.collect_params(), "adamw", {"learning_rate": schedule})
    loader = nn.DataLoader(train, 64, shuffle=True)
    loss_function = nn.SoftmaxCrossEntropyLoss()
    losses, times = [], [time.perf_counter()]
    for _ in track(range(epochs), what, transient=True, disable=not Console().is_terminal):
        for x, y in loader:
            with autograd.record():
                loss = loss_function(net(x), y)
            loss.backward()
            trainer.step(len(x))
            losses.append(loss.mean().item())
            times.append(time.perf_counter())
    return losses, times[1] - times[0], np.median(np.diff(times[1:]))


net = Classifier()
mg.random.seed(0)
net.initialize("xavier")
losses, _, imperative_s = fit(net, "imperative", epochs=2)
print(f"imperative: {1000 * imperative_s:.2f} ms for a step")
# | imperative: ... ms for a step

net.hybridize()
more, first_s, compiled_s = fit(net, "hybridized", epochs=20)
print(f"hybridized: {1000 * compiled_s:.2f} ms for a step")
# | hybridized: ... ms for a step
print(f"the speed-up: {imperative_s / compiled_s:.1f}, after {first_s:.2f} s for the first step")
# | the speed-up: ..., after ... s for the first step

right = net(images[1437:]).argmax(axis=1) == labels[1437:]
print(f"test accuracy: {right.mean():.1%}")
# | test accuracy: 9...%
curve = mg.viz.chart({"loss": losses + more}, title="Digits", x="batch", y="loss", logarithmic=True)
curve.save("digits_transformer.svg")
