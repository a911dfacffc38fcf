"""Neural networks: blocks, layers, losses, and what trains them.

Block, HybridBlock, Sequential, ...     what networks are made of: `forward` in NumPy
Dense, Dropout, LayerNorm, ...          layers;  functional: what these are made of
RNN, LSTM, GRU, LSTMCell, ...           recurrent layers, and cells that make one step
SoftmaxCrossEntropyLoss, ...            losses: one number for each example
Parameter, Constant, initializers       what is learned, what is not, and first values
Trainer, optimizers, schedules          one update of all parameters
ArrayDataset, DataLoader, metrics       what goes in, and how good it is
load, SymbolBlock                       networks from files
nd, sym                                 the two namespaces of Gluon's `hybrid_forward`
"""

from . import data, functional, initializers, metrics, optimizers, schedules
from .activations import ELU, GELU, SELU, Activation, LeakyReLU, PReLU, SiLU, Swish
from .attention import (
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from .basic import Dense, Dropout, Embedding, Flatten
from .block import Block
from .containers import (
    Concurrent,
    HybridConcurrent,
    HybridLambda,
    HybridSequential,
    Lambda,
    Sequential,
)
from .data import ArrayDataset, DataLoader, split_data
from .hybrid import HybridBlock
from .initializers import Initializer
from .loading import load
from .losses import (
    CosineEmbeddingLoss,
    HingeLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    L2Loss,
    LogisticLoss,
    Loss,
    PoissonNLLLoss,
    SigmoidBCELoss,
    SigmoidBinaryCrossEntropyLoss,
    SoftmaxCELoss,
    SoftmaxCrossEntropyLoss,
    SquaredHingeLoss,
    TripletLoss,
)
from .namespaces import nd, sym
from .norm import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from .parameter import Constant, Parameter
from .parameters import ParameterDict
from .recurrent import (
    GRU,
    LSTM,
    RNN,
    BidirectionalCell,
    DropoutCell,
    GRUCell,
    LSTMCell,
    ModifierCell,
    RecurrentCell,
    ResidualCell,
    RNNCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from .symbol_block import SymbolBlock
from .trainer import StaleGradientError, Trainer, clip_global_norm

__all__ = [
    "ELU",
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "Activation",
    "ArrayDataset",
    "BatchNorm",
    "BidirectionalCell",
    "Block",
    "Concurrent",
    "Constant",
    "CosineEmbeddingLoss",
    "DataLoader",
    "Dense",
    "Dropout",
    "DropoutCell",
    "Embedding",
    "FeedForward",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "HingeLoss",
    "HuberLoss",
    "HybridBlock",
    "HybridConcurrent",
    "HybridLambda",
    "HybridSequential",
    "Initializer",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "Lambda",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "LogisticLoss",
    "Loss",
    "ModifierCell",
    "MultiHeadAttention",
    "PReLU",
    "Parameter",
    "ParameterDict",
    "PoissonNLLLoss",
    "PositionalEncoding",
    "RNNCell",
    "RMSNorm",
    "Sequential",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "SiLU",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "StaleGradientError",
    "Swish",
    "SymbolBlock",
    "Trainer",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "TripletLoss",
    "ZoneoutCell",
    "clip_global_norm",
    "data",
    "functional",
    "initializers",
    "metrics",
    "optimizers",
    "load",
    "schedules",
    "split_data",
    "nd",
    "sym",
]
