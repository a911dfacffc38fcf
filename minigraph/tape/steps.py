"""Steps: what a tape keeps of each operation, linked from results back to operands."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigraph.array import Attached
from minigraph.errors import RecordError, freed, written_since
from minigraph.ir import Loc, Node, Type, Value, freeze
from minigraph.memory import NUMBERS, Watch, is_adopted, written
from minigraph.mode import here


class Step:
    """A node that was recorded and computed, or an array or a number that came in.

    Attributes:
        inputs: for each input of the node, the step and which of its results.
        types: of the results; data: the same as arrays and numbers.
        active: a gradient goes through it.
        leaf: where the gradient of what came in is stored, if anywhere.
        number: steps with higher numbers were recorded later.
        since: the data are right but for writes with higher numbers.
        watch: keeps writes noted until the step is freed.
    """

    __slots__ = (
        "_key",
        "_node",
        "_values",
        "active",
        "data",
        "inputs",
        "leaf",
        "number",
        "since",
        "types",
        "watch",
    )

    def __init__(
        self,
        node: Node | Callable[[Step], Node] | None,
        inputs: Sequence[Source],
        types: Sequence[Type],
        data: list[Any],
        active: bool,
        watch: Watch | None,
        leaf: Attached | None = None,
        key: Any = None,
    ) -> None:
        self._node = node
        self._values: Sequence[Value] | None = None
        self.inputs = inputs
        self.types = types
        self.data = data
        self.active = active
        self.leaf = leaf
        self.number = self.since = next(NUMBERS)
        self.watch = watch
        self._key = key

    @property
    def computed(self) -> bool:
        """There is a node: it did not come in."""
        return self._node is not None

    @property
    def node(self) -> Node | None:
        """What was computed (None: it came in); made when it is needed first."""
        if self._node is not None and not isinstance(self._node, Node):
            self._node = self._node(self)
        return self._node

    @property
    def values(self) -> Sequence[Value]:
        """The results in terms of the graph."""
        if self._values is None:
            node = self.node
            if node is None:
                self._values = [Value(next(NUMBERS), type_) for type_ in self.types]
            else:
                self._values = node.outputs
        return self._values

    @property
    def freed(self) -> bool:
        return self.watch is None

    @property
    def place(self) -> Loc | None:
        """Where it was recorded."""
        return None if self.node is None else self.node.loc

    def carries(self, index: int) -> bool:
        """A gradient goes through this result (a complex one does, to be refused by `backward`)."""
        if not self.active:
            return False
        data = self.data[index]
        return type(data) is float if type(data) is not np.ndarray else data.dtype.kind in "fc"

    def check(self, index: int, why: str = "the gradient needs it as it was") -> None:
        """A result is what it was when it was recorded.

        Raises:
            RecordedWriteError: its memory was written since.
        """
        data = self.data[index]
        found = written(data, self.since) if isinstance(data, np.ndarray) else None
        if found is not None:
            raise written_since(found[1], self.place, why)

    @property
    def key(self) -> Any:
        """Its op and attrs."""
        if self._key is None:
            assert self.node is not None
            attrs = self.node.attrs
            self._key = (self.node.op.name, freeze(attrs)) if attrs else self.node.op.name
        return self._key

    def free(self) -> None:
        """Drop what was kept for `backward`."""
        self.inputs, self.data, self.watch = (), [], None


Source = tuple[Step, int]
"""A step, and which of its results."""


def collect(heads: Sequence[Source]) -> list[Step]:
    """The steps through which a gradient reaches the heads, in the order they were recorded.

    Raises:
        FreedError: one of them is freed.
    """
    found: dict[int, Step] = {}
    pending = [step for step, _ in heads]
    while pending:
        step = pending.pop()
        if not step.active or step.number in found:
            continue
        if step.watch is None:
            raise freed(step.place)
        found[step.number] = step
        if step.inputs:
            pending += [source for source, _ in step.inputs]
    return sorted(found.values(), key=_NUMBER)


_NUMBER = operator.attrgetter("number")


def check_known(data: np.ndarray[Any, Any]) -> None:
    """An array that the tape knows nothing of holds no recorded values.

    Raises:
        RecordError: it does.
    """
    if is_adopted(data):
        raise RecordError(
            "recorded values were written into the memory of this array through another view of it",
            where=here(),
            instead="take the view after the write, or write into a .copy()",
        )


def with_inputs(steps: Sequence[Step]) -> list[Step]:
    """The steps, and what came in from outside of them."""
    found: dict[int, Step] = {}
    for step in steps:
        for source, _ in step.inputs:
            found.setdefault(source.number, source)
        found.setdefault(step.number, step)
    return list(found.values())
