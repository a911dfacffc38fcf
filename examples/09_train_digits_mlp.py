"""A real job: handwritten digits, learned imperatively, and again as compiled programs.

1 797 images of 8x8 pixels come with scikit-learn (`pip install minigraph[examples]`); a fifth of
them is held out for the test.  The network is developed as ordinary Python; `net.hybridize()` is
the only line that differs in the second training.
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

EPOCHS = 12
images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images, labels = (images[order] / 16).astype("float32"), labels[order]
train, test = slice(1437), slice(1437, None)
loss_function = nn.SoftmaxCrossEntropyLoss()


def new_network():
    mg.random.seed(0)  # the same numbers to begin with, and the same order of batches
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(10))
    net.initialize("xavier")
    return net


def fit(net, what):
    """Train; the loss of each batch, the seconds that the first took, and the median of a step."""
    trainer = nn.Trainer(net.collect_params(), "adam", {"learning_rate": 0.002})
    loader = nn.DataLoader(nn.ArrayDataset(images[train], labels[train]), 64, shuffle=True)
    losses, times = [], [time.perf_counter()]
    terminal = Console().is_terminal
    for _ in track(range(EPOCHS), what, transient=True, disable=not terminal):
        for x, y in loader:
            with autograd.record():
                loss = loss_function(net(x), y)
            loss.backward()
            trainer.step(len(x))
            losses.append(loss.mean().item())
            times.append(time.perf_counter())
    return losses, times[1] - times[0], np.median(np.diff(times[1:]))


def accuracy(net):
    metric = nn.metrics.Accuracy()
    metric.update(labels[test], net(images[test]))
    return metric.get()[1]


net = new_network()
losses, first_s, imperative_s = fit(net, "imperative")
print(f"imperative: {1000 * imperative_s:.2f} ms for a step, test accuracy {accuracy(net):.1%}")
# | imperative: ... ms for a step, test accuracy 9...%
assert accuracy(net) >= 0.97

net = new_network()
net.hybridize()
compiled_losses, first_s, compiled_s = fit(net, "hybridized")
print(f"hybridized: {1000 * compiled_s:.2f} ms for a step, test accuracy {accuracy(net):.1%}")
# | hybridized: ... ms for a step, test accuracy 9...%
print(f"the speed-up: {imperative_s / compiled_s:.1f}, after {first_s:.2f} s for the first step")
# | the speed-up: ..., after ... s for the first step

# Both ways compute the same numbers, but for the order of sums.
print(np.allclose(losses, compiled_losses, atol=1e-2))
# | True
lines = {"imperative": losses, "hybridized": compiled_losses}
mg.viz.chart(lines, title="Digits", x="batch", y="loss", logarithmic=True).save("digits_mlp.svg")
