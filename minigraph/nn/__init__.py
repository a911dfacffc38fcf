"""Neural networks: blocks, layers, losses, and what trains them."""

from .block import Block
from .containers import HybridSequential, Sequential
from .hybrid import HybridBlock
from .parameter import Constant, Parameter, ParameterDict

__all__ = [
    "Block",
    "Constant",
    "HybridBlock",
    "HybridSequential",
    "Parameter",
    "ParameterDict",
    "Sequential",
]
