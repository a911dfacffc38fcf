"""What a block holds: children and parameters, found in its attributes.

They are found anew each time they are asked for, also in lists, tuples and dicts; their names are
the paths to them ("hidden.weight", "layers.0.bias").  There is no register beside the attributes.

Each change (an attribute, a child, a parameter's array) gives the block and all blocks that hold it
a new `_version`: so what was compiled for a block knows at one look that nothing changed.
"""

from __future__ import annotations

import abc
import reprlib
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from minigraph.compiled import depth_of_user
from minigraph.errors import BlockError, ParameterError
from minigraph.mode import here
from minigraph.trace import original

from .parameter import VERSIONS, Parameter
from .parameters import ParameterDict

_ALIVE: weakref.WeakValueDictionary[int, Members] = weakref.WeakValueDictionary()
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
                block._changed()


class Members(metaclass=BlockType):
    """An object with blocks and parameters among its attributes."""

    __slots__ = ("__dict__", "__weakref__", "_direct", "_parents", "_version")

    slots_: ClassVar[frozenset[str]] = frozenset(__slots__)
    """What is no attribute of the user's: writing it changes no version."""

    traced_block_ = True
    traced_covered_: tuple[str, ...] = ()

    _direct: bool  # `forward` can be called at once: no hooks, and all own parameters have data
    _parents: dict[int, weakref.ref[Members]]  # by id: the blocks that hold this one
    _version: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._parents = {}
        made._direct = False
        made._version = next(VERSIONS)
        _ALIVE[made._version] = made
        return made

    # ---- attributes ------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.slots_:
            return object.__setattr__(self, name, value)
        before = vars(self).get(name)
        for kind, word in ((Members, "block"), (Parameter, "parameter")):
            if isinstance(before, kind) and not isinstance(value, kind):
                raise BlockError(
                    f"the attribute {name} of {type(self).__name__} holds a "
                    f"{type(before).__name__} and cannot become {_kind(value)}",
                    where=here(),
                    instead=f"another {word}, or `del` it first",
                )
        self._adopt(name, value)
        object.__setattr__(self, name, value)
        self._changed()

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._changed()

    def _adopt(self, name: str, value: Any) -> None:
        """Take the blocks and parameters in an attribute as members."""
        for _, member in _found((name,), value):
            self._check_member(member)
            self._tie(member)
            if isinstance(member, Parameter) and member.name == "parameter":
                member.name = name

    def _tie(self, member: Members | Parameter) -> None:
        """From now on a change of the member is one of this block."""
        parents: dict[int, Any] = member._parents
        known = parents.get(id(self))
        if known is None or known() is not self:
            parents[id(self)] = weakref.ref(self)
            self._direct = False

    def _check_member(self, member: Members | Parameter) -> None:
        """Refuse what cannot be a child of this block."""

    def _changed(self) -> None:
        """Give this block and all that hold it a new version."""
        self._direct = False
        pending: list[Members] = [self]
        done: set[int] = set()
        while pending:
            block = pending.pop()
            if id(block) in done:
                continue
            done.add(id(block))
            block._version = next(VERSIONS)
            parents = [reference() for reference in block._parents.values()]
            pending.extend(parent for parent in parents if parent is not None)

    # ---- children and parameters -----------------------------------------------------------

    def _parts(self) -> Iterator[tuple[tuple[Any, ...], Members | Parameter]]:
        """The block's own children and parameters, each with the keys that lead to it."""
        for name, value in vars(self).items():
            for keys, member in _found((name,), value):
                if original(self) is self:  # and not what stands for it while tracing
                    self._tie(member)  # it may have come into a list
                yield keys, member

    def _members(self) -> Iterator[tuple[str, Members | Parameter]]:
        """The block's own children and parameters by name."""
        for keys, member in self._parts():
            yield ".".join(map(str, keys)), member

    def _name_of(self, member: Members | Parameter) -> str:
        """The name of a direct member ("": it is none)."""
        return next((name for name, found in self._members() if found is member), "")

    def named_blocks(self, name: str = "") -> Iterator[tuple[str, Any]]:
        """This block and all below it, by the path that leads there; shared ones at each place."""
        yield from self._walk(name, ())

    def _walk(self, name: str, above: tuple[Members, ...]) -> Iterator[tuple[str, Any]]:
        yield name, self
        for key, member in self._members():
            if isinstance(member, Members) and not any(member is b for b in (*above, self)):
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
        done: set[int] = set()
        found = ParameterDict()
        for name, parameter in self.named_parameters():
            if id(parameter) not in done:
                done.add(id(parameter))
                found[name] = parameter
        return found if select is None else found.select(select)

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without those of its children."""
        own = {name: m for name, m in self._members() if isinstance(m, Parameter)}
        return ParameterDict(own)

    def share_parameters(self, shared: Mapping[str, Parameter]) -> Self:
        """Take the parameters of another block in place of those that have the same names.

        Args:
            shared: `other.collect_params()`.

        Raises:
            ParameterError: one has another shape than the parameter whose place it takes.
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
                stacklevel=depth_of_user(),
            )
        for name, own in self.named_parameters():
            if name in shared and not _may_be_same(own.shape, shared[name].shape):
                raise ParameterError(
                    f"the parameter {name} has shape {own.shape}, and the one to share "
                    f"{shared[name].shape}",
                    where=here(),
                    instead="parameters of a block with the same sizes",
                )
        for name, parameter in shared.items():
            if name in places:
                block, (first, *others) = places[name]
                block.__setattr__(first, _with(vars(block)[first], others, parameter))
        return self

    # ---- for the tracer --------------------------------------------------------------------

    def traced_parts_(self) -> dict[str, Members | Parameter]:
        """Children and parameters by what a user writes."""
        for _, member in self._parts():
            self._check_member(member)
        return {_written(keys): member for keys, member in self._parts()}

    def traced_state_(self) -> dict[str, Any]:
        """All else that it holds."""
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(value, Members | Parameter)
        }

    # ---- copies, and how it looks ----------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"attributes": vars(self).copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state["attributes"].items():
            self.__setattr__(name, value)

    def extra_repr(self) -> str:
        """What stands in the parentheses of a layer's `repr`."""
        return ""

    @reprlib.recursive_repr("...")
    def __repr__(self) -> str:
        head = f"{type(self).__name__}({self.extra_repr()}"
        lines = [
            f"  ({name}): {member!r}".replace("\n", "\n  ")
            for name, member in self._members()
            if isinstance(member, Members)
        ]
        return "\n".join([head, *lines, ")"]) if lines else head + ")"


def _found(
    keys: tuple[Any, ...], value: Any, above: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Members | Parameter]]:
    """The blocks and parameters in one attribute."""
    if isinstance(value, Members | Parameter):
        yield keys, value
    elif isinstance(value, list | tuple | dict) and all(value is not each for each in above):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from _found((*keys, key), item, (*above, value))


def _may_be_same(shape: Any, other: Any) -> bool:
    """Two shapes are equal, as far as they are known."""
    if shape is None or other is None:
        return True
    pairs = zip(shape, other, strict=False)
    return len(shape) == len(other) and all(a == b or 0 in (a, b) for a, b in pairs)


def _kind(value: Any) -> str:
    """What a value is, in an error."""
    return "None" if value is None else f"something of type {type(value).__name__}"


def _with(value: Any, keys: Sequence[Any], parameter: Parameter) -> Any:
    """An attribute's value with a parameter put in at the end of the keys."""
    if not keys:
        return parameter
    first, *others = keys
    items = dict(value) if isinstance(value, dict) else list(value)
    items[first] = _with(items[first], others, parameter)
    make = getattr(value, "_make", type(value))  # a named tuple has one
    return make(items)


def _written(keys: tuple[Any, ...]) -> str:
    """How a user writes the way to a member, after the block's own name."""
    first, *others = keys
    text = f".{first}" if isinstance(first, str) else f"[{first}]"
    return text + "".join(f"[{key!r}]" for key in others)
