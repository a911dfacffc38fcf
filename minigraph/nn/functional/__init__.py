"""Functions of neural networks, in NumPy's terms.

They take ndarrays, `mg.Array`s and traced arrays alike, and give back what they were given.  The
compiler knows none of them by name: it sees the NumPy calls that they make.
"""

from .activations import (
    ACTIVATIONS,
    activation,
    celu,
    elu,
    gelu,
    hard_sigmoid,
    hard_swish,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    masked_log_softmax,
    masked_softmax,
    mish,
    prelu,
    relu,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    swish,
    tanh,
)
from .attention import (
    causal_mask,
    merge_heads,
    scaled_dot_product_attention,
    sinusoids,
    split_heads,
)
from .choosing import along, embedding, length_mask, may_equal, one_hot, pick, sequence_mask
from .clipping import clip_by_global_norm, clip_by_value, clip_factor, global_norm
from .linear import dense, linear
from .noise import check_rate, dropout
from .normalizing import batch_norm, group_norm, l2_normalize, layer_norm, rms_norm
from .scoring import (
    binary_cross_entropy,
    cosine_similarity,
    cross_entropy,
    hinge,
    huber,
    kl_divergence,
    poisson_nll,
)

# What users see, here and in `mg.nd`; the layers alone use `along`, `check_rate`, `clip_factor` and
# `may_equal`.
__all__ = [
    "ACTIVATIONS",
    "activation",
    "batch_norm",
    "binary_cross_entropy",
    "causal_mask",
    "celu",
    "clip_by_global_norm",
    "clip_by_value",
    "cosine_similarity",
    "cross_entropy",
    "dense",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "global_norm",
    "group_norm",
    "hard_sigmoid",
    "hard_swish",
    "hinge",
    "huber",
    "kl_divergence",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "length_mask",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "masked_log_softmax",
    "masked_softmax",
    "merge_heads",
    "mish",
    "one_hot",
    "pick",
    "poisson_nll",
    "prelu",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sequence_mask",
    "sigmoid",
    "silu",
    "sinusoids",
    "softmax",
    "softplus",
    "softsign",
    "split_heads",
    "swish",
    "tanh",
]
