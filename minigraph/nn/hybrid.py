"""Hybrid blocks: written as any block, run by Python or compiled as a whole."""

from __future__ import annotations

from typing import Any

from minigraph.errors import BlockError, ChildError

from .block import Block
from .parameter import Parameter


class HybridBlock(Block):
    """A block that can be compiled: `forward` uses nothing but NumPy, and blocks of this kind."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if "forward" in own and "hybrid_forward" in own:
            raise BlockError(
                f"{cls.__name__} defines both forward and hybrid_forward",
                instead="forward(self, x), which runs eagerly and compiled alike",
            )

    def _check_member(self, member: Block | Parameter) -> None:
        if isinstance(member, Block) and not isinstance(member, HybridBlock):
            raise ChildError(
                "Children of HybridBlock must also be HybridBlock, but "
                f"{type(member).__name__} is a plain Block",
                instead="nn.HybridSequential for nn.Sequential; or derive it from nn.HybridBlock",
            )
