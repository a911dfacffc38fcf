"""What one loop over a row computes and a later one needs."""

from __future__ import annotations

from collections.abc import Sequence

from minigraph.ir import Value

from .space import Space
from .writing import Scope


class Keeping:
    """The costly values that later loops read back instead of computing them again.

    Attributes:
        place: for each value that is kept the output in whose place it stands; that may be itself.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.place: dict[Value, Value] = {}
        needed = self._needed()
        free = {value: None for value in space.body.outputs if space.varies(value)}
        for node in space.nodes:
            value = node.output
            loops = needed.get(value, [])
            if len(loops) < 2 or space.level[value] != loops[0]:
                continue
            if value in free:
                self.place[value] = value
            elif space.is_costly(node):
                place = next((o for o in free if self._can_stand_in(value, o, loops)), None)
                if place is not None:
                    self.place[value] = place
                    del free[place]

    def _needed(self) -> dict[Value, list[int]]:
        """The loops that need each value which varies along the reduced axes."""
        needed: dict[Value, list[int]] = {}
        for level in range(self.space.passes):
            wanted = {node.inputs[0] for node in self.space.reduced_at(level)}
            wanted.update(self.space.stored_at(level))
            for node in reversed(self.space.nodes):
                if node.output in wanted and self.space.varies(node.output):
                    needed.setdefault(node.output, []).append(level)
                    wanted.update(node.inputs)
        return needed

    def _can_stand_in(self, value: Value, output: Value, loops: Sequence[int]) -> bool:
        """Whether the output is of the same kind, and written no earlier than the last reading."""
        space = self.space
        return (
            output.type == value.type
            and space.axes[output] == space.axes[value]
            and space.level[output] >= loops[-1]
        )

    def readable(self, level: int) -> dict[Value, Value]:
        """What stands in memory before this loop."""
        return {v: place for v, place in self.place.items() if self.space.level[v] < level}

    def store(self, scope: Scope, level: int) -> None:
        """Keep what this loop is the first to compute."""
        for value, place in self.place.items():
            if place is not value and self.space.level[value] == level:
                scope.store(value, place)
