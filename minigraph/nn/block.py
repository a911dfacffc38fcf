"""Blocks: networks and layers as objects, run by Python.

    class Net(nn.Block):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Dense(256)
            self.output = nn.Dense(10)

        def forward(self, x):
            return self.output(np.maximum(self.hidden(x), 0))

Inside `forward` arrays are `mg.Array`.  The outermost call turns ndarrays into them, and its result
back if it was given nothing else and nothing is recorded.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Self

from minigraph import autograd
from minigraph.array import Array
from minigraph.compiled import depth_of_user
from minigraph.engine import has_array
from minigraph.errors import BlockError, OptionError, SignatureError, unknown
from minigraph.jit import HybridFunction
from minigraph.mode import here
from minigraph.trace import ACTIVE, ArraysNeeded, seen

from .conversion import to_arrays, to_ndarrays
from .members import Members
from .parameter import Parameter
from .saving import read_parameters
from .summary import Summary

Undo = list[tuple[Parameter, Any]]
"""Parameters that were initialized in a call, with their state before."""

_INSIDE: ContextVar[bool] = ContextVar("minigraph_inside_block", default=False)
"""A block's `forward` is running: what is called there has arrays, and gives back such."""

_UNDO: ContextVar[Undo | None] = ContextVar("minigraph_undo", default=None)
"""Of the outermost call that is running."""


class Handle:
    """A hook that is registered; `detach`, or the end of a `with`, removes it."""

    def __init__(self, block: Block, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise OptionError(f"a hook is a function, and {function!r} is none", where=here())
        self.block = block
        self.function = function

    def detach(self) -> None:
        """Remove the hook; a second time does nothing."""
        block = self.block
        block._before = tuple(hook for hook in block._before if hook is not self)
        block._after = tuple(hook for hook in block._after if hook is not self)
        block._changed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.detach()


class Block(Members):
    """A layer or network whose `forward` is ordinary Python, run at each call."""

    __slots__ = ("_after", "_before", "_engine", "_options")

    slots_ = Members.slots_ | frozenset(__slots__)

    _after: tuple[Handle, ...]  # hooks
    _before: tuple[Handle, ...]
    _engine: Any  # runs the block compiled (None: it is not hybridized)
    _options: Mapping[str, Any]  # as it was hybridized

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._before = made._after = ()
        made._engine = None
        made._options = {}
        return made

    def __init__(self) -> None:
        """Subclasses call this first, as in Gluon; all that is needed was made before it."""

    def forward(self, *args: Any) -> Any:
        """What the block computes; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward(self, ...)")

    def infer_shape(self, *args: Any) -> None:
        """Complete the shapes of the block's own parameters, given the arguments of `forward`.

        A layer with parameters of unknown shape defines it: `self.weight.shape = (self.units,
        x.shape[-1])`.
        """

    # ---- calling ---------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` on arrays; compiled, if the block is hybridized."""
        if self._engine is not None:
            return self._engine(*args, **kwargs)
        if self._direct and not kwargs and _INSIDE.get() and ACTIVE.get() is None:
            for arg in args:
                if type(arg) is not Array:
                    break
            else:
                return self.forward(*args)
        return self.call_in_python(args, kwargs)

    def call_in_python(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `forward` in Python, on arrays; while tracing, on what is traced."""
        if ACTIVE.get() is not None:
            return self._run_or_undo(args, kwargs)
        arrays, named = to_arrays(args), to_arrays(kwargs) if kwargs else kwargs
        if _INSIDE.get():
            return self._run(arrays, named)
        result = self._run_or_undo(arrays, named)
        if has_array(args) or has_array(kwargs) or autograd.is_recording():
            return result
        return to_ndarrays(result)

    def _run_or_undo(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run; parameters that a failed call has initialized wait for the next one again."""
        token, above = _INSIDE.set(True), _UNDO.get()
        undo: Undo = []
        undo_token = _UNDO.set(undo if above is None else above)
        try:
            return self._run(args, kwargs)
        except ArraysNeeded:
            raise  # the same call is traced once more, and finds its parameters
        except BaseException:
            for parameter, state in undo:
                parameter.restore(state)
            raise
        finally:
            _UNDO.reset(undo_token)
            _INSIDE.reset(token)

    def _run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if not self._direct:
            self._prepare(args, kwargs)
        block = seen(self)
        for hook in self._before:
            seen(hook.function)(block, args)
        result = self._compute(block, args, kwargs)
        for hook in self._after:
            seen(hook.function)(block, args, result)
        return result

    def _compute(self, block: Self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the user's method on this block, or on what stands for it while tracing."""
        return block.forward(*args, **kwargs)

    def _check_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Say what `forward` takes, before `infer_shape` is given something else."""
        signature = inspect.signature(self.forward)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            names = ", ".join(signature.parameters)
            raise SignatureError(
                f"a call of {type(self).__name__}: {error}",
                where=here(),
                instead=f"the arguments of its forward: {names}",
            ) from None

    def _prepare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Initialize the own parameters that waited for this call."""
        own = [member for _, member in self._members() if isinstance(member, Parameter)]
        waiting = [parameter for parameter in own if parameter.is_deferred]
        if waiting:
            undo = _UNDO.get()
            assert undo is not None
            undo.extend((parameter, parameter.state()) for parameter in waiting)
            self._check_arguments(args, kwargs)
            self.infer_shape(*args, **kwargs)
            for parameter in waiting:
                parameter.finish()
        no_hooks = not self._before and not self._after
        self._direct = no_hooks and all(parameter.is_ready for parameter in own)

    def register_forward_pre_hook(self, hook: Callable[[Block, Any], Any]) -> Handle:
        """Call `hook(block, args)` before each `forward`; `handle.detach()` ends that."""
        handle = Handle(self, hook)
        self._before = (*self._before, handle)
        self._changed()
        return handle

    def register_forward_hook(self, hook: Callable[[Block, Any, Any], Any]) -> Handle:
        """Call `hook(block, args, result)` after each `forward`; `handle.detach()` ends that."""
        handle = Handle(self, hook)
        self._after = (*self._after, handle)
        self._changed()
        return handle

    # ---- on all at once --------------------------------------------------------------------

    def initialize(
        self, init: Any = None, *, verbose: bool = False, force_reinit: bool = False
    ) -> Self:
        """Give all parameters their first values, those of unknown shape at the first call.

        Args:
            init: an initializer for the parameters that have none of their own.
            verbose: print what each is initialized with.
            force_reinit: also those that have values already.
        """
        self.collect_params().initialize(init, verbose=verbose, force_reinit=force_reinit)
        return self

    def apply(self, function: Callable[[Block], Any]) -> Self:
        """Call a function on each block below this one, children first, then on this one."""
        self._apply(function, set())
        return self

    def _apply(self, function: Callable[[Block], Any], done: set[int]) -> None:
        done.add(id(self))
        for _, member in list(self._members()):
            if isinstance(member, Block) and id(member) not in done:
                member._apply(function, done)
        function(self)

    def cast(self, dtype: Any) -> Self:
        """Change the dtype of all parameters."""
        for parameter in self.collect_params().values():
            parameter.cast(dtype)
        return self

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to zero."""
        self.collect_params().zero_grad()

    def hybridize(self, active: bool = True, **options: Any) -> Self:
        """Run hybrid blocks compiled: this one and all below it; a plain Block stays in Python.

        Nothing is compiled before the first call.  What was compiled before is dropped.

        Args:
            active: False: run all in Python again.
            **options: those of `mg.jit` (`backend`, `passes`, `static_alloc`, `static_shape`, ...),
                and `on_stale`: what to do when something that the code has read has changed:
                "retrace" (default), "warn" and retrace, or "error".

        Raises:
            OptionError: an unknown option (with the nearest).
        """
        known = HybridFunction.OPTIONS
        for name in options:
            if name not in known:
                raise unknown("option", name, known)
        for block in {id(block): block for _, block in self.named_blocks()}.values():
            block._hybridize(active, options)
        if active:
            self._advise()
        return self

    def _hybridize(self, active: bool, options: Mapping[str, Any]) -> None:
        """Run this block alone compiled, if it can be."""

    def _advise(self) -> None:
        warnings.warn(
            f"{type(self).__name__} is a plain Block: its hybrid children are compiled each on its "
            "own, it stays in Python itself; derive it from nn.HybridBlock to compile it whole",
            stacklevel=depth_of_user(),
        )

    # ---- files -----------------------------------------------------------------------------

    def save_parameters(self, file: str | os.PathLike[str]) -> None:
        """Write all parameters into a file in the safetensors format, each once."""
        self.collect_params().save(file)

    def load_parameters(
        self,
        file: str | os.PathLike[str],
        *,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
    ) -> Self:
        """Read the parameters from a file that `save_parameters` wrote; all of them or, if one
        does not fit, none.

        Args:
            file: its path.
            allow_missing: parameters that the file does not have stay as they are.
            ignore_extra: what is in the file alone is left out.
            cast_dtype: values of another dtype are converted.

        Raises:
            ParameterError: a name, shape or dtype does not fit.
        """
        read_parameters(
            file,
            list(self.named_parameters()),
            allow_missing=allow_missing,
            ignore_extra=ignore_extra,
            cast_dtype=cast_dtype,
        )
        return self

    def export(self, path: str | os.PathLike[str], *example: Any) -> None:
        """Hybrid blocks can be written as a program; a plain Block is refused.

        Raises:
            BlockError: always.
        """
        raise BlockError(
            f"{type(self).__name__} is a plain Block: its Python runs at each call, so there is no "
            "program to export",
            where=here(),
            instead="nn.HybridSequential for nn.Sequential, or derive it from nn.HybridBlock; "
            "net.save_parameters(file) writes the numbers alone",
        )

    def summary(self, *args: Any) -> None:
        """Print a table of all layers that run for these arguments, with shapes and parameters."""
        print(Summary(self, args))

    # ---- for the tracer, and for copies ----------------------------------------------------

    def traced_state_(self) -> dict[str, Any]:
        """All that `forward` reads but children and parameters, and the hooks."""
        state = super().traced_state_()
        state.setdefault("forward", type(self).forward)
        if self._before or self._after:
            state["hooks"] = (self._before, self._after)
        return state

    def __getstate__(self) -> dict[str, Any]:
        return {
            **super().__getstate__(),
            "hooks": (self._before, self._after),
            "hybridized": (self._engine is not None, self._options),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._before, self._after = state["hooks"]
        self._hybridize(*state["hybridized"])
