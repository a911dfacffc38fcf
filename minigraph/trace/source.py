"""Where in the user's source a value is made, and what the user calls it.

Both come from the frames above the recorder: the place from the instruction that is running, the
name from the instruction after it (`STORE_FAST e` after the `+`).  A `return a + b` has no name of
its own: the caller's `e = add(a, b)` gives name and place.
"""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
from types import CodeType, FrameType

import numpy as np

from minigraph.ir import Loc

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
ROOTS = ("trace_call", "trace_program")  # our functions that run the traced code
_SKIPPED = (_HERE, _NUMPY, "<frozen", "<__array_function__")
_INSTALLED = tuple(
    {
        os.path.abspath(sysconfig.get_path(key)) + os.sep
        for key in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)


def is_installed(filename: str) -> bool:
    """The file belongs to an installed package or to Python itself, not to the user."""
    return filename.startswith(("<frozen", _HERE, _NUMPY, *_INSTALLED))


def is_ours(filename: str) -> bool:
    """The file belongs to this package."""
    return filename.startswith(_HERE)


def called_by_an_op() -> bool:
    """The function that calls this one was called by an op (for a message), not by the user."""
    return sys._getframe(2).f_code.co_filename.startswith(_HERE + "ops" + os.sep)


def is_users_file(filename: str) -> bool:
    """The file is the user's own."""
    return not is_installed(filename) and not filename.startswith("<minigraph ")


class Places:
    """Positions and names of one trace (a cache over code objects)."""

    def __init__(self) -> None:
        self._tables: dict[int, _Table] = {}

    def locate(self, outputs: int = 1) -> tuple[Loc | None, tuple[str, ...]]:
        """The place that is being executed, and names for its `outputs` results (may be empty)."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
            if frame.f_code.co_name in ROOTS and frame.f_code.co_filename.startswith(_HERE):
                return None, ()  # the traced code has returned
            frame = frame.f_back
        if frame is None:
            return None, ()
        at = frame
        while True:
            table = self._table(at.f_code)
            names, returns = table.after(at.f_lasti)
            if names and len(names) == outputs:
                return self._loc(at), names
            above = at.f_back
            if not returns or above is None or above.f_code.co_filename.startswith(_SKIPPED):
                return self._loc(frame), ()
            at = above

    def _loc(self, frame: FrameType | None, depth: int = 0) -> Loc | None:
        while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
            if frame.f_code.co_filename.startswith(_HERE) and depth:
                return None  # the tracer itself: nothing of the user's program is above it
            frame = frame.f_back
        if frame is None or depth > 8:
            return None
        line, column, end_column = self._table(frame.f_code).position(frame.f_lasti)
        return Loc(
            frame.f_code.co_filename,
            line or frame.f_lineno,
            column,
            end_column,
            frame.f_code.co_name,
            self._loc(frame.f_back, depth + 1),
        )

    def _table(self, code: CodeType) -> _Table:
        table = self._tables.get(id(code))
        if table is None:
            table = self._tables[id(code)] = _Table(code)
        return table


class _Table:
    """For each instruction of a code object: its position, and what follows it."""

    def __init__(self, code: CodeType) -> None:
        self.code = code  # keeps the id taken
        self.positions = list(code.co_positions())
        self.follows: list[tuple[tuple[str, ...], bool]] = [((), False)] * len(self.positions)
        instructions = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
        for index, instruction in enumerate(instructions[:-1]):
            end = instructions[index + 1].offset
            follow = _follow(instructions, index + 1)
            for offset in range(instruction.offset, end, 2):
                self.follows[offset // 2] = follow

    def after(self, lasti: int) -> tuple[tuple[str, ...], bool]:
        """The names that the next instruction stores into, and whether it returns."""
        index = lasti // 2
        return self.follows[index] if 0 <= index < len(self.follows) else ((), False)

    def position(self, lasti: int) -> tuple[int | None, int | None, int | None]:
        index = lasti // 2
        if not 0 <= index < len(self.positions):
            return None, None, None
        line, end_line, column, end_column = self.positions[index]
        if end_line != line:
            end_column = None  # the caret stays on the first line
        return line, column, end_column


def _follow(instructions: list[dis.Instruction], at: int) -> tuple[tuple[str, ...], bool]:
    instruction = instructions[at]
    if instruction.opname == "UNPACK_SEQUENCE":
        names: list[str] = []
        for store in instructions[at + 1 :]:
            found = _stored(store)
            if not found or len(names) >= instruction.argval:
                break
            names.extend(found)
        return tuple(names[: instruction.argval]), False
    return _stored(instruction)[:1], instruction.opname in ("RETURN_VALUE", "RETURN_GENERATOR")


def _stored(instruction: dis.Instruction) -> tuple[str, ...]:
    """The variable names that a store instruction (or a fused pair of them) writes."""
    name = instruction.opname
    if name in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"):
        return (str(instruction.argval),)
    if name == "STORE_FAST_STORE_FAST":
        return tuple(map(str, instruction.argval))
    if name == "STORE_FAST_LOAD_FAST":
        return (str(instruction.argval[0]),)
    return ()
