"""Hybrid blocks: written as any block, run by Python or compiled as a whole.

    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Dense(256)
            self.output = nn.Dense(10)

        def forward(self, x):
            return self.output(np.maximum(self.hidden(x), 0))

    net = Net()
    net.initialize()
    net(x)                  # Python, line by line
    net.hybridize()
    net(x)                  # traced and compiled at this call; from the next one on, only run

The outermost block that is hybridized owns the program; those below it are part of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from minigraph.errors import BlockError, ChildError, DtypeError, OptionError
from minigraph.jit import HybridFunction
from minigraph.mode import here
from minigraph.trace import ACTIVE, printing

from .block import Block
from .exporting import export
from .members import BlockType, Members
from .namespaces import nd, sym
from .parameter import Parameter


class _View:
    """What the compiled programs of a block show of themselves, as `mg.jit` functions do.

    An attribute of the user's may have the same name: this one has no `__set__`.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.__doc__ = getattr(HybridFunction, name).__doc__

    def __get__(self, block: HybridBlock | None, owner: type) -> Any:
        if block is None:
            return self
        if block._engine is None:
            raise OptionError(
                f"{type(block).__name__} is not hybridized, so it has no {self.name}",
                instead="net.hybridize(), then one call",
            )
        return getattr(block._engine, self.name)


class HybridBlock(Block):
    """A block that can be compiled: `forward` uses NumPy, and no blocks but of this kind.

    Gluon's `hybrid_forward(self, F, x, ..., **params)` may be defined in its place.  F is the
    namespace of functions: `mg.nd`, or `mg.sym` while tracing; the block's own parameters arrive as
    arrays by name.  A `print` in it prints while tracing, and only then.
    """

    __slots__ = ()

    hybrid_: ClassVar[bool] = False
    """The class defines `hybrid_forward` in place of `forward`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if type(cls) is not BlockType or not {"forward", "hybrid_forward"} & own.keys():
            return  # what stands for a class while tracing is as that class
        if "forward" in own and "hybrid_forward" in own:
            raise BlockError(
                f"{cls.__name__} defines both forward and hybrid_forward",
                instead="forward(self, x) alone: it runs eagerly and compiled alike",
            )
        cls.hybrid_ = "hybrid_forward" in own
        if cls.hybrid_:
            cls.forward = _forward

    cache_info, explain, graph, joint = _View(), _View(), _View(), _View()
    lower, memory_report, plan, source, stages = _View(), _View(), _View(), _View(), _View()

    if TYPE_CHECKING:

        def hybrid_forward(self, F: Any, *args: Any, **kwargs: Any) -> Any: ...

    def export(self, path: str | os.PathLike[str], *example: Any) -> None:
        """Write the network as it predicts into one file; `mg.load(path)` needs no class for it.

        Args:
            path: the file: a zip archive of the graph as text and the arrays as safetensors.
            *example: arguments, or `mg.Spec`s of them; left out: like those of the last compiled
                call.  The first axis, if all arrays share it, stays free where the code allows it,
                and so do axes with a name: `mg.Spec(("batch", "time", 4), "float32")`, or those of
                `hybridize(dynamic=)`.

        Raises:
            FormatError: nothing tells what the arguments are.
        """
        export(self, path, example)

    def _compute(self, block: Self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if not self.hybrid_:
            return super()._compute(block, args, kwargs)
        arrays = {name: parameter.data() for name, parameter in self.params.items()}
        if ACTIVE.get() is None:
            return block.hybrid_forward(nd, *args, **kwargs, **arrays)
        with printing():
            return block.hybrid_forward(sym, *args, **kwargs, **arrays)

    def _hybridize(self, active: bool, options: Mapping[str, Any]) -> None:
        self._options = options
        self._engine = HybridFunction(self, options) if active else None

    def _advise(self) -> None:
        """Nothing: it is compiled as a whole."""

    def _check_member(self, member: Members | Parameter) -> None:
        if isinstance(member, Members) and not isinstance(member, HybridBlock):
            raise ChildError(
                "Children of HybridBlock must also be HybridBlock, but "
                f"{type(member).__name__} is a plain Block",
                where=here(),
                instead="nn.HybridSequential for nn.Sequential; or derive it from nn.HybridBlock",
            )


def only_array(layer: HybridBlock, x: Any) -> Any:
    """The argument of a layer that takes one array.

    Raises:
        DtypeError: it is something else.
    """
    if not hasattr(x, "shape"):
        raise DtypeError(
            f"a {type(layer).__name__} takes an array, not a {type(x).__name__}",
            where=here(),
            instead='np.asarray(x, dtype="float32") for nested numbers; one call for each array',
        )
    return x


def _forward(self: HybridBlock, *args: Any, **kwargs: Any) -> Any:
    """`hybrid_forward`, given the namespace of functions and the block's own parameters."""
    return self._compute(self, args, kwargs)
