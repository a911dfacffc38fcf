"""Lists that grow in a recorded loop: what its turns append is stacked, and the list gets the rows.

A list that each turn only appends to is another one inside of the loop, `Growing`, which may not be
read: how long it is differs from turn to turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NoReturn

from minigraph import ops
from minigraph.errors import LoopError, UnsupportedError
from minigraph.ir import (
    LEAF,
    ArrayType,
    Branch,
    ScalarType,
    Static,
    Tree,
    Value,
    as_dtype,
    unflatten,
)

from .arrays import TracedArray
from .kinds import Kind, children, is_data
from .operands import cast, operand
from .recording import Recording, Storage, current
from .rows import Row, gathered
from .scalars import TracedDim, TracedScalar
from .views import Layout

INSTEAD = (
    "write into an array of the final size (out[i] = y), let mg.scan stack what each turn gives, "
    "or keep the loop in Python: for x in mg.unroll(items)"
)
MOST = 100_000  # items of a list


class Growing(list[Any]):
    """What a list is inside of a loop that it grows in.

    Attributes:
        name_: what the user calls it; added_: what this turn has appended.
    """

    __class__ = property(lambda self: list)  # type: ignore[assignment]
    sealed_ = True

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name_ = name
        self.added_: list[Any] = []

    def append(self, item: Any, /) -> None:
        self.added_.append(item)

    def extend(self, items: Iterable[Any], /) -> None:
        self.added_.extend(items)

    def __iadd__(self, items: Iterable[Any]) -> Growing:  # type: ignore[override]
        self.added_.extend(items)
        return self


def _misused(name: str) -> LoopError:
    return LoopError(
        f"{name} grows in this loop and is read or changed in it, where its length differs from "
        "turn to turn",
        where=current().here(),
        instead=f"only append to {name}, and keep what the next turn needs in a name of its own; "
        "or keep the loop in Python: for x in mg.unroll(items)",
    )


def _refuse(self: Growing, *args: Any, **kwargs: Any) -> NoReturn:
    raise _misused(self.name_)


for _name in """
    __add__ __radd__ __bool__ __contains__ __delitem__ __eq__ __ge__ __getitem__ __gt__ __imul__
    __iter__ __le__ __len__ __lt__ __mul__ __ne__ __reduce_ex__ __repr__ __reversed__ __rmul__
    __setitem__ clear copy count index insert pop remove reverse sort
""".split():
    setattr(Growing, _name, _refuse)


class NumberOf(TracedScalar):
    """A number of Python that is the row of an array.

    Attributes:
        row_: the row.
    """

    __slots__ = ("found_", "kind_", "row_")

    def __init__(self, row: TracedArray, kind: type) -> None:
        self.recording_ = row.recording_
        self.row_ = row
        self.kind_ = kind
        self.found_: Value | None = None

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return self.kind_

    @property
    def value_(self) -> Value:  # type: ignore[override]
        if self.found_ is None or self.found_ in self.recording_.hidden:
            (self.found_,) = self.recording_.emit(ops.get("item"), (self.row_.value_,), {})
        return self.found_


class Column:
    """Things of one kind that each turn appends, and that are stacked together.

    Attributes:
        value: what a turn gives: the thing, or several of them along a first axis.
        storages: memory of the turn's that they are; origins: memory from before that they may be.
    """

    def __init__(self, recording: Recording, things: list[Any], name: str) -> None:
        self.recording = recording
        self.count = len(things)
        self.kind = Kind.of(recording, things[0])
        self.value = self._value(things)
        self.storages: list[Storage] = []
        self.origins: list[Storage] = []
        self.name = name
        for thing in things:
            if isinstance(thing, TracedArray) and not thing.scalar_:
                self.storages += [thing.storage_, *thing.storage_.shared]
                self.origins += recording.sections[-1].origins(thing.storage_)

    def _value(self, things: list[Any]) -> Value:
        found = gathered(self.recording, things) if len(things) > 1 else None
        if found is not None:
            return found
        values = [operand(self.recording, thing) for thing in things]
        if isinstance(self.kind.type, ScalarType):
            dtype = as_dtype(self.kind.type.python)
            values = [cast(self.recording, value, dtype) for value in values]
        if len(values) == 1:
            return values[0]
        return self.recording.emit(ops.get("stack"), values, {})[0]

    def check_memory(self, written: Collection[Storage]) -> None:
        """No turn writes what a turn before has appended.

        Raises:
            UnsupportedError: it may do so.
        """
        if not {*self.origins, *self.storages}.isdisjoint(written):
            raise UnsupportedError(
                f"what is appended to {self.name} may be an array that a later turn writes into",
                where=self.recording.here(),
                instead=f"{self.name}.append(x.copy())",
            )

    def rows(self, value: Value) -> Iterator[Any]:
        """All things that the turns have appended, given what was stacked."""
        recording = self.recording
        assert isinstance(value.type, ArrayType)
        if self.count > 1:
            shape = (value.type.shape[0] * self.count, *value.type.shape[2:])
            (value,) = recording.emit(ops.get("reshape"), (value,), {"shape": shape})
        self.memory = Storage(value)
        for origin in self.origins:
            recording.may_share(self.memory, origin)
        return self._rows(value)

    def _rows(self, value: Value) -> Iterator[Any]:
        recording, kind, whole = self.recording, self.kind, value.type
        assert isinstance(whole, ArrayType) and isinstance(whole.shape[0], int)
        number = kind.type.python if isinstance(kind.type, ScalarType) else None
        scalar = kind.scalar or number is not None
        layout = kind.layout or Layout((), True)
        unknown = recording.ids.value(ArrayType(whole.dtype, whole.shape[1:]))
        for at in range(whole.shape[0]):
            row = TracedArray(recording, self.memory, (Row(at, whole),), layout, scalar, unknown)
            row.seen_ = -1  # it is taken out when it is read
            yield row if number is None else NumberOf(row, number)


class Growth:
    """A list that each turn of a loop appends to.

    Attributes:
        things: the list; name: what the user calls it.
        stand: what it is in a turn.
    """

    def __init__(self, recording: Recording, name: str, things: list[Any]) -> None:
        self.recording = recording
        self.name = name
        self.things = things

    def begin(self) -> None:
        """A turn is about to be recorded."""
        self.stand = Growing(self.name)

    def leave(self, outside: Collection[int]) -> None:
        """A turn has been recorded.

        Args:
            outside: the identities of containers from before the loop.

        Raises:
            LoopError: what it appends cannot be stacked.
        """
        if list.__len__(self.stand):  # by a function that does not ask the list's own methods
            raise _misused(self.name)
        self.outside = outside
        self.columns: list[Column] = []
        self.trees: list[tuple[Tree, list[Column]]] = []
        items = self.stand.added_
        if len(items) > 1 and self._alike(items):
            column = self._column(items)
            self.trees = [(LEAF, [column]) for _ in items]
        else:
            for item in items:
                columns: list[Column] = []
                self.trees.append((self._open(item, columns), columns))

    def _alike(self, items: list[Any]) -> bool:
        """The items are of one kind, and each is another memory."""
        if not all(self._varies(item) for item in items):
            return False
        first, *others = (Kind.of(self.recording, item) for item in items)
        if not all(first.fits(other) and first.c_order == other.c_order for other in others):
            return False
        if first.scalar or first.layout is None or gathered(self.recording, items) is not None:
            return True
        memories = [{item.storage_, *item.storage_.shared} for item in items]
        return len(set().union(*memories)) == sum(map(len, memories))

    def _varies(self, thing: Any) -> bool:
        """It is not one array for all turns, nor a number that is the same in all."""
        if isinstance(thing, TracedArray) and not thing.scalar_ and not thing.path_:
            section = self.recording.sections[-1]
            return thing.storage_ in section.stands or not section.is_outer(thing.storage_)
        return isinstance(thing, TracedArray | TracedScalar)

    def _column(self, things: list[Any]) -> Column:
        column = Column(self.recording, things, self.name)
        self.columns.append(column)
        return column

    def _open(self, thing: Any, columns: list[Column]) -> Tree:
        if self._varies(thing):
            columns.append(self._column([thing]))
            return LEAF
        if isinstance(thing, TracedDim):
            return Static(TracedDim(None, 0, thing.dim), "")
        if is_data(thing) or id(thing) in self.outside or isinstance(thing, str | type | None):
            return Static(thing, "")
        opened = children(thing)
        if opened is None:
            raise LoopError(
                f"each turn appends a {type(thing).__name__} to {self.name}",
                where=self.recording.here(),
                instead="arrays, numbers, and tuples, lists, dicts, dataclasses of them",
            )
        kind, pairs = opened
        trees = [self._open(part, columns) for _, part in pairs]
        return Branch(kind, [key for key, _ in pairs], trees)

    def after(self, values: Iterator[Value], turns: int) -> None:
        """Let the list hold what the turns have appended, given what was stacked."""
        rows = {column: column.rows(next(values)) for column in self.columns}
        for _ in range(turns):
            for tree, columns in self.trees:
                self.things.append(unflatten(tree, (next(rows[column]) for column in columns)))
