"""What a name holds where nothing is assigned to it: `Undefined`, and `NEVER`."""

from __future__ import annotations

from typing import Any, NoReturn

from minigraph.errors import Place, UndefinedError

from .recording import here


class Undefined:
    """What a name holds on a way on which nothing was assigned to it; any use is an error.

    Attributes:
        name: the user's name.
        sides: where it is assigned, and what it lacks, each with a word for it.
        guarded: who made it reads it only where it is assigned.
    """

    __slots__ = ("guarded", "name", "sides")

    def __init__(
        self,
        name: str,
        sides: tuple[tuple[str, str, Place | None], ...] = (),
        *,
        guarded: bool = False,
    ) -> None:
        self.name = name
        self.sides = sides
        self.guarded = guarded

    def refuse_(self, where: Place | None = None) -> NoReturn:
        """Say that the name is not assigned.

        Raises:
            UndefinedError: always.
        """
        fact = f"{self.name} is used, and not assigned on every way to this line"
        instead = f"assign {self.name} on each way, or before"
        raise UndefinedError(fact, sides=self.sides, where=where, instead=instead)

    def __repr__(self) -> str:
        return f"<{self.name} is not assigned>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # what a protocol asks for
        self.refuse_(here())


def _refusing(self: Undefined, *args: Any, **kwargs: Any) -> Any:
    self.refuse_(here())


_USES = """
    abs add and bool bytes call ceil complex contains delitem divmod enter eq float floor floordiv
    format ge getitem gt hash iadd iand ifloordiv ilshift imatmul imod imul index int invert ior
    ipow irshift isub iter itruediv ixor le len lshift lt matmul mod mul ne neg next or pos pow radd
    rand rdivmod reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub
    rtruediv rxor setitem str sub truediv trunc xor array array_ufunc array_function
"""
for _use in _USES.split():
    setattr(Undefined, f"__{_use}__", _refusing)


class _Never:
    """What a branch returns that ends in `raise`: what follows is reached from the other side."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NEVER"


NEVER = _Never()
