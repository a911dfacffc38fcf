"""Blocks: networks and layers as objects, run by Python.

A block finds its children and parameters in its own attributes, also in lists, tuples and dicts
there; their names are the paths to them ("hidden.weight", "layers.0.bias").

    class Net(nn.Block):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Dense(256)
            self.output = nn.Dense(10)

        def forward(self, x):
            return self.output(np.maximum(self.hidden(x), 0))

Inside `forward` arrays are `mg.Array`.  The outermost call turns ndarrays into them, and its result
back if it was given nothing else and nothing is recorded.

Each change of a block (an attribute, a child, a parameter's array) gives it and all blocks that
hold it a new `_version`: so what was compiled for a block knows at one look that nothing changed.
"""

from __future__ import annotations

import abc
import os
import re
import reprlib
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Self

import numpy as np

from minigraph import autograd
from minigraph.array import Array, wrap
from minigraph.errors import BlockError, unknown
from minigraph.jit import HybridFunction
from minigraph.trace import ACTIVE, ArraysNeeded, seen

from .parameter import VERSIONS, Parameter, ParameterDict
from .saving import read_parameters, write_parameters
from .summary import Summary

Undo = list[tuple[Parameter, Any]]
"""Parameters that were initialized in a call, with their state before."""

_INSIDE: ContextVar[bool] = ContextVar("minigraph_inside_block", default=False)
"""A block's `forward` is running, by Python and not for a trace: arrays are `mg.Array`."""

_UNDO: ContextVar[Undo | None] = ContextVar("minigraph_undo", default=None)
"""Of the outermost call that is running."""

_ALIVE: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()
"""All blocks, for changes of their classes."""


class BlockType(abc.ABCMeta):
    """The class of blocks' classes: a change of a class is one of all its blocks.

    It is one of abstract classes, so that users may mix those in; what is an instance is decided as
    for all other classes.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        _class_changed(cls, name)

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        _class_changed(cls, name)


def _class_changed(cls: type, name: str) -> None:
    if not name.startswith(("_abc_", "__abstract")):  # Python's own
        for block in list(_ALIVE.values()):
            if any(base is cls for base in type(block).__mro__):
                block.changed()


class Handle:
    """A hook that is registered; `detach`, or the end of a `with`, removes it."""

    def __init__(self, block: Block, function: Callable[..., Any]) -> None:
        self.block = block
        self.function = function

    def detach(self) -> None:
        """Remove the hook; a second time does nothing."""
        block = self.block
        block._before = tuple(hook for hook in block._before if hook is not self)
        block._after = tuple(hook for hook in block._after if hook is not self)
        block.changed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.detach()


class Block(metaclass=BlockType):
    """A layer or network whose `forward` is ordinary Python, run at each call."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_after",
        "_before",
        "_direct",
        "_engine",
        "_options",
        "_parents",
        "_version",
    )

    traced_block_ = True
    traced_covered_: tuple[str, ...] = ()

    _after: tuple[Handle, ...]  # hooks
    _before: tuple[Handle, ...]
    _direct: bool  # `forward` can be called at once: no hooks, and all own parameters have data
    _engine: Any  # runs the block compiled (None: it is not hybridized)
    _options: Mapping[str, Any]  # as it was hybridized
    _parents: dict[int, weakref.ref[Block]]  # by id: the blocks that hold this one
    _version: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._parents = {}
        made._before = made._after = ()
        made._engine = None
        made._options = {}
        made._direct = False
        made._version = next(VERSIONS)
        _ALIVE[made._version] = made
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
        if self._direct and _INSIDE.get() and not kwargs:
            for arg in args:
                if type(arg) is not Array:
                    break
            else:
                return self.forward(*args)
        return self.call_in_python(args, kwargs)

    def call_in_python(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run `forward` in Python, on arrays; while tracing, on what is traced."""
        if ACTIVE.get() is not None:
            return self._run_or_undo(False, args, kwargs)
        arrays, named = to_arrays(args), to_arrays(kwargs) if kwargs else kwargs
        if _INSIDE.get():
            return self._run(arrays, named)
        result = self._run_or_undo(True, arrays, named)
        if has_array(args) or has_array(kwargs) or autograd.is_recording():
            return result
        return to_ndarrays(result)

    def _run_or_undo(self, inside: bool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run; parameters that a failed call has initialized wait for the next one again."""
        token, above = _INSIDE.set(inside), _UNDO.get()
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
            self._prepare(args)
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

    def _prepare(self, args: tuple[Any, ...]) -> None:
        """Initialize the own parameters that waited for this call."""
        own = [member for _, member in self._members() if isinstance(member, Parameter)]
        waiting = [parameter for parameter in own if parameter.is_deferred]
        if waiting:
            undo = _UNDO.get()
            assert undo is not None
            undo.extend((parameter, parameter.state()) for parameter in waiting)
            self.infer_shape(*args)
            for parameter in waiting:
                parameter.finish()
        no_hooks = not self._before and not self._after
        self._direct = no_hooks and all(parameter.is_ready for parameter in own)

    def register_forward_pre_hook(self, hook: Callable[[Block, Any], Any]) -> Handle:
        """Call `hook(block, args)` before each `forward`; `handle.detach()` ends that."""
        handle = Handle(self, hook)
        self._before = (*self._before, handle)
        self.changed()
        return handle

    def register_forward_hook(self, hook: Callable[[Block, Any, Any], Any]) -> Handle:
        """Call `hook(block, args, result)` after each `forward`; `handle.detach()` ends that."""
        handle = Handle(self, hook)
        self._after = (*self._after, handle)
        self.changed()
        return handle

    # ---- attributes, children, parameters --------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            return object.__setattr__(self, name, value)
        before = vars(self).get(name)
        for kind in (Block, Parameter):
            if isinstance(before, kind) and not isinstance(value, kind):
                raise BlockError(
                    f"the attribute {name} of {type(self).__name__} holds a "
                    f"{type(before).__name__} and cannot become a {type(value).__name__}",
                    instead=f"another {kind.__name__}, or `del` it first",
                )
        self._adopt(name, value)
        object.__setattr__(self, name, value)
        self.changed()

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self.changed()

    def _adopt(self, name: str, value: Any) -> None:
        """Take the blocks and parameters in an attribute as members."""
        for _, member in _found((name,), value):
            self._check_member(member)
            member._parents.setdefault(id(self), weakref.ref(self))
            if isinstance(member, Parameter) and member.name == "parameter":
                member.name = name

    def _check_member(self, member: Block | Parameter) -> None:
        """Refuse what cannot be a child of this block."""

    def _parts(self) -> Iterator[tuple[tuple[Any, ...], Block | Parameter]]:
        """The block's own children and parameters, each with the keys that lead to it."""
        for name, value in vars(self).items():
            yield from _found((name,), value)

    def _members(self) -> Iterator[tuple[str, Block | Parameter]]:
        """The block's own children and parameters by name."""
        for keys, member in self._parts():
            yield ".".join(map(str, keys)), member

    def traced_parts_(self) -> dict[str, Block | Parameter]:
        """The same by what a user writes, for the tracer; what came into a list is adopted."""
        for name, value in vars(self).items():
            self._adopt(name, value)
        return {_written(keys): member for keys, member in self._parts()}

    def traced_state_(self) -> dict[str, Any]:
        """All else that `forward` reads, for the tracer."""
        state = {
            name: value
            for name, value in vars(self).items()
            if not isinstance(value, Block | Parameter)
        }
        state.setdefault("forward", type(self).forward)
        if self._before or self._after:
            state["hooks"] = (self._before, self._after)
        return state

    def changed(self) -> None:
        """Give this block and all that hold it a new version."""
        self._direct = False
        pending: list[Block] = [self]
        done: set[int] = set()
        while pending:
            block = pending.pop()
            if id(block) in done:
                continue
            done.add(id(block))
            block._version = next(VERSIONS)
            parents = [reference() for reference in block._parents.values()]
            pending.extend(parent for parent in parents if parent is not None)

    def name_of(self, member: Block | Parameter) -> str:
        """The name of a direct member ("": it is none)."""
        return next((name for name, found in self._members() if found is member), "")

    def named_blocks(self, name: str = "") -> Iterator[tuple[str, Block]]:
        """This block and all below it, by the path that leads there; shared ones at each place."""
        yield from self._walk(name, ())

    def _walk(self, name: str, above: tuple[Block, ...]) -> Iterator[tuple[str, Block]]:
        yield name, self
        for key, member in self._members():
            if isinstance(member, Block) and not any(member is b for b in (*above, self)):
                yield from member._walk(f"{name}.{key}" if name else key, (*above, self))

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters by name; shared ones under each of their names."""
        for path, block in self.named_blocks():
            for key, member in block._members():
                if isinstance(member, Parameter):
                    yield f"{path}.{key}" if path else key, member

    def collect_params(self, select: str | None = None) -> ParameterDict:
        r"""The parameters of this block and all below it, each once, by name.

        Args:
            select: a regular expression that names have to match from their beginning
                (".*weight|.*bias").
        """
        pattern = re.compile(select) if select is not None else None
        done: set[int] = set()
        found = ParameterDict()
        for name, parameter in self.named_parameters():
            if id(parameter) not in done and (pattern is None or pattern.match(name)):
                done.add(id(parameter))
                found[name] = parameter
        return found

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without those of its children."""
        own = {name: m for name, m in self._members() if isinstance(m, Parameter)}
        return ParameterDict(own)

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
            stacklevel=3,
        )

    # ---- files -----------------------------------------------------------------------------

    def save_parameters(self, file: str | os.PathLike[str]) -> None:
        """Write all parameters into a file in the safetensors format, each once."""
        write_parameters(file, self.collect_params())

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
        options = (allow_missing, ignore_extra, cast_dtype)
        read_parameters(file, list(self.named_parameters()), *options)
        return self

    def share_parameters(self, shared: Mapping[str, Parameter]) -> Self:
        """Take the parameters of another block in place of those that have the same names.

        Args:
            shared: `other.collect_params()`.
        """
        places = {
            f"{path}.{key}".removeprefix("."): (block, keys)
            for path, block in self.named_blocks()
            for keys, member in block._parts()
            if isinstance(member, Parameter)
            for key in [".".join(map(str, keys))]
        }
        absent = [name for name in shared if name not in places]
        if absent:
            warnings.warn(
                f"{type(self).__name__} has no parameter {', '.join(absent)} to share",
                stacklevel=2,
            )
        for name, parameter in shared.items():
            if name in places:
                block, (first, *others) = places[name]
                block.__setattr__(first, _with(vars(block)[first], others, parameter))
        return self

    # ---- how it looks ----------------------------------------------------------------------

    def summary(self, *args: Any) -> None:
        """Print a table of all layers that run for these arguments, with shapes and parameters."""
        print(Summary(self, args))

    def extra_repr(self) -> str:
        """What stands in the parentheses of a layer's `repr`."""
        return ""

    @reprlib.recursive_repr("...")
    def __repr__(self) -> str:
        head = f"{type(self).__name__}({self.extra_repr()}"
        lines = [
            f"  ({name}): {member!r}".replace("\n", "\n  ")
            for name, member in self._members()
            if isinstance(member, Block)
        ]
        return "\n".join([head, *lines, ")"]) if lines else head + ")"

    # ---- copies ----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {
            "attributes": vars(self).copy(),
            "hooks": (self._before, self._after),
            "hybridized": (self._engine is not None, self._options),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._before, self._after = state["hooks"]
        for name, value in state["attributes"].items():
            self.__setattr__(name, value)
        self._hybridize(*state["hybridized"])


_OWN = frozenset(Block.__slots__)


def _found(
    keys: tuple[Any, ...], value: Any
) -> Iterator[tuple[tuple[Any, ...], Block | Parameter]]:
    """The blocks and parameters in one attribute."""
    if isinstance(value, Block | Parameter):
        yield keys, value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _found((*keys, index), item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _found((*keys, key), item)


def _with(value: Any, keys: Sequence[Any], parameter: Parameter) -> Any:
    """An attribute's value with a parameter put in at the end of the keys."""
    if not keys:
        return parameter
    first, *others = keys
    items = dict(value) if isinstance(value, dict) else list(value)
    items[first] = _with(items[first], others, parameter)
    return type(value)(items)


def _written(keys: tuple[Any, ...]) -> str:
    """How a user writes the way to a member, after the block's own name."""
    first, *others = keys
    text = f".{first}" if isinstance(first, str) else f"[{first}]"
    return text + "".join(f"[{key!r}]" for key in others)


def to_arrays(thing: Any) -> Any:
    """Ndarrays as arrays, in structures too; without copying."""
    kind = type(thing)
    if kind is np.ndarray:
        return wrap(thing)
    if kind is tuple or kind is list:
        return kind([to_arrays(item) for item in thing])
    if kind is dict:
        return {key: to_arrays(value) for key, value in thing.items()}
    return thing


def to_ndarrays(thing: Any) -> Any:
    """Arrays as ndarrays, in structures too; without copying."""
    kind = type(thing)
    if kind is Array:
        return thing.data_
    if kind is tuple or kind is list:
        return kind([to_ndarrays(item) for item in thing])
    if kind is dict:
        return {key: to_ndarrays(value) for key, value in thing.items()}
    return thing


def has_array(thing: Any) -> bool:
    """There is an array in the structure."""
    kind = type(thing)
    if kind is tuple or kind is list:
        return any(map(has_array, thing))
    if kind is dict:
        return any(map(has_array, thing.values()))
    return kind is Array
