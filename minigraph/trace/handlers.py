"""Whether the user's code would catch what an operation raises.

Compiled code raises what eager code raises, but it has no `except`: nothing was raised while
tracing, so the handler was not recorded.  An operation that may fail on data must not stand where a
handler waits for it.  That is read off the exception tables of the frames below the tracer.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
import types
from collections.abc import Iterator
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

from .source import ROOTS, is_ours


def is_caught() -> bool:
    """A frame of the traced code is inside a `try` now."""
    if _SUPPRESSED.get():
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if is_ours(code.co_filename):
            if code.co_name in ROOTS:
                return False
        elif any(start <= frame.f_lasti < end for start, end in _tries(code)):
            return True
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=4096)
def _tries(code: CodeType) -> tuple[tuple[int, int], ...]:
    """The ranges of instructions that an `except` or a `finally` watches over."""
    if not code.co_exceptiontable:
        return ()
    instructions = {step.offset: step for step in dis.get_instructions(code)}
    order = sorted(instructions)
    after = dict(zip(order, order[1:], strict=False))
    entries = list(_entries(code.co_exceptiontable))

    def is_handler(target: int) -> bool:
        if target not in instructions:
            return False
        if instructions[target].opname == "PUSH_EXC_INFO":
            return instructions[after[target]].opname != "WITH_EXCEPT_START"
        # What cleans up behind a comprehension, a generator or a handler goes on to what is around.
        return any(
            start <= target < end and further > target and is_handler(further)
            for start, end, further in entries
        )

    return tuple((start, end) for start, end, target in entries if is_handler(target))


def _entries(table: bytes) -> Iterator[tuple[int, int, int]]:
    """(start, end, handler) of each entry of a code object's exception table, in bytes."""
    numbers = _numbers(iter(table))
    for start in numbers:
        length, target, _ = next(numbers), next(numbers), next(numbers)
        yield 2 * start, 2 * (start + length), 2 * target


def _numbers(stream: Iterator[int]) -> Iterator[int]:
    """Numbers of six bits a byte, the highest first; bit 6 says that more follow."""
    for byte in stream:
        number = byte & 63
        while byte & 64:
            byte = next(stream)
            number = number << 6 | byte & 63
        yield number


class _Suppress(contextlib.suppress):
    """`contextlib.suppress` in traced code is a handler, too."""

    def __enter__(self) -> None:
        _SUPPRESSED.set(_SUPPRESSED.get() + 1)

    def __exit__(self, *error: Any) -> Any:
        _SUPPRESSED.set(_SUPPRESSED.get() - 1)
        return super().__exit__(*error)


def handler(begins: bool) -> None:
    """A handler that no frame shows, such as the end of a user's `with`, begins or is over."""
    _SUPPRESSED.set(_SUPPRESSED.get() + (1 if begins else -1))


_SUPPRESSED: ContextVar[int] = ContextVar("minigraph_suppressed", default=0)
_CONTEXTLIB = types.ModuleType("contextlib", contextlib.__doc__)
_CONTEXTLIB.__dict__.update(vars(contextlib), suppress=_Suppress)
SEEN: dict[int, Any] = {id(contextlib): _CONTEXTLIB, id(contextlib.suppress): _Suppress}
"""What traced code sees in place of these (by identity)."""
