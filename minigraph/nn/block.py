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

import itertools
import re
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Self

import numpy as np

from minigraph import autograd
from minigraph.array import Array, wrap
from minigraph.errors import BlockError
from minigraph.trace import ACTIVE

from .parameter import Parameter, ParameterDict

_VERSIONS = itertools.count(1)

Undo = list[tuple[Parameter, Any, Any]]
"""Parameters that were initialized in a call, with their state before."""

_CALL: ContextVar[Undo | None] = ContextVar("minigraph_block_call", default=None)
"""Set while a block is called from outside of any other."""


class Block:
    """A layer or network whose `forward` is ordinary Python, run at each call."""

    __slots__ = ("__dict__", "__weakref__", "_direct", "_hooks", "_parents", "_version")

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._parents = {}
        made._hooks = None
        made._direct = False
        made._version = next(_VERSIONS)
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
        """Run `forward`, on arrays."""
        if self._direct and not kwargs and _CALL.get() is not None:
            for arg in args:
                if type(arg) is not Array:
                    break
            else:
                return self.forward(*args)
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if ACTIVE.get() is not None:
            return self._run(args, kwargs)
        if _CALL.get() is not None:
            return self._run(to_arrays(args), to_arrays(kwargs))
        undo: Undo = []
        token = _CALL.set(undo)
        try:
            result = self._run(to_arrays(args), to_arrays(kwargs))
        except BaseException:
            for parameter, shape, initializer in reversed(undo):
                parameter.undo(shape, initializer)
            raise
        finally:
            _CALL.reset(token)
        if has_array((args, kwargs)) or autograd.is_recording():
            return result
        return to_ndarrays(result)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._direct:
            self._prepare(args)
        hooks = self._hooks
        if hooks is None:
            return self.forward(*args, **kwargs)
        for hook in tuple(hooks.before.values()):
            hook(self, args)
        result = self.forward(*args, **kwargs)
        for hook in tuple(hooks.after.values()):
            hook(self, args, result)
        return result

    def _prepare(self, args: tuple[Any, ...]) -> None:
        """Initialize the own parameters that waited for this call."""
        own = [member for _, member in self._members() if isinstance(member, Parameter)]
        waiting = [parameter for parameter in own if parameter.is_deferred]
        if waiting:
            undo = _CALL.get()
            before = [(p, p.shape, p._deferred) for p in waiting]
            if undo is not None:
                undo.extend(before)
            self.infer_shape(*args)
            for parameter in waiting:
                parameter.finish()
        self._direct = self._hooks is None and all(parameter.is_ready for parameter in own)

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
        """Take a new attribute's blocks and parameters as members."""
        for _, member in _found(name, value):
            self._check_member(member)
            if isinstance(member, Parameter) and member.name == "parameter":
                member.name = name
            member._parents.setdefault(id(self), weakref.ref(self))

    def _check_member(self, member: Block | Parameter) -> None:
        """Refuse what cannot be a child of this block."""

    def _members(self) -> Iterator[tuple[str, Block | Parameter]]:
        """The block's own children and parameters by name."""
        for name, value in vars(self).items():
            yield from _found(name, value)

    def changed(self) -> None:
        """Give this block and all that hold it a new version."""
        self._direct = False
        pending, seen = [self], set[int]()
        while pending:
            block = pending.pop()
            if id(block) in seen:
                continue
            seen.add(id(block))
            block._version = next(_VERSIONS)
            parents = [reference() for reference in block._parents.values()]
            pending.extend(parent for parent in parents if parent is not None)

    def label_of(self, member: Block | Parameter) -> str:
        """The name of a member as seen from the outermost block that holds it ("": no member)."""
        name = next((name for name, found in self._members() if found is member), "")
        if not name:
            return ""
        for reference in self._parents.values():
            parent = reference()
            above = parent.label_of(self) if parent is not None else ""
            if above:
                return f"{above}.{name}"
        return name

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
        seen: set[int] = set()
        found = ParameterDict()
        for name, parameter in self.named_parameters():
            if id(parameter) not in seen and (pattern is None or pattern.match(name)):
                seen.add(id(parameter))
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
        """Call a function on each block below this one, then on this one."""
        done: set[int] = set()
        for _, block in reversed(list(self.named_blocks())):
            if id(block) not in done:
                done.add(id(block))
                function(block)
        return self

    def cast(self, dtype: Any) -> Self:
        """Change the dtype of all parameters."""
        for parameter in self.collect_params().values():
            parameter.cast(dtype)
        return self

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to zero."""
        self.collect_params().zero_grad()

    def hybridize(self, active: bool = True, **options: Any) -> Self:
        """Compile the hybrid blocks below this one; this one itself stays in Python."""
        below = {id(block): block for _, block in self.named_blocks() if block is not self}
        for block in below.values():
            block._hybridize(active, options)
        if active:
            self._advise()
        return self

    def _hybridize(self, active: bool, options: Mapping[str, Any]) -> None:
        """Compile this block alone, if it can be compiled."""

    def _advise(self) -> None:
        warnings.warn(
            f"{type(self).__name__} is a plain Block: its hybrid children are compiled each on its "
            "own, it stays in Python itself; derive it from nn.HybridBlock to compile it whole",
            stacklevel=3,
        )

    # ---- how it looks ----------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in the parentheses of a layer's `repr`."""
        return ""

    def __repr__(self) -> str:
        children = [(name, m) for name, m in self._members() if isinstance(m, Block)]
        head = f"{type(self).__name__}({self.extra_repr()}"
        if not children:
            return head + ")"
        lines = [
            f"  ({name}): {repr(child).replace(chr(10), chr(10) + '  ')}"
            for name, child in children
        ]
        return "\n".join([head, *lines, ")"])


_OWN = frozenset(Block.__slots__)


class _Hooks:
    """Functions that are called before and after `forward`."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}


def _found(name: str, value: Any) -> Iterator[tuple[str, Block | Parameter]]:
    """The blocks and parameters in one attribute."""
    if isinstance(value, Block | Parameter):
        yield name, value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _found(f"{name}.{index}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _found(f"{name}.{key}", item)


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
