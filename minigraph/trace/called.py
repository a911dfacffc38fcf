"""Classes that are called: `float(x)` in traced code has another name than `float`.

A class has to stay what it is where it is compared, passed on (`dtype=float`) or asked with
isinstance; where it is called with a number that is being described, the call is recorded.
Bytecode tells the two apart: a global that is called next is loaded with a mark.  Such loads get a
name of their own, the class's with `()` behind it, which recording globals know.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

import numpy as np

MARK = "()"
CALLED: dict[int, Callable[..., Any]] = {}
"""By the identity of a class: what traced code calls in its place; `numbers.py` fills it."""
FUNCTIONS: dict[int, Any] = {}
"""By the identity of a function or module: what traced code sees in its place; likewise."""


def with_calls_apart(code: CodeType, namespace: Mapping[str, Any]) -> CodeType:
    """The code with other names where classes are called that are recorded.

    Args:
        code: of a function or a module.
        namespace: its globals.
    """
    called: set[str] = set()
    modules: set[str] = set()
    for name in _names(code):
        found = namespace.get(name, getattr(builtins, name, None))
        if id(found) in CALLED:
            called.add(name)
        elif found is np:
            modules.add(name)
    if not called and not modules:
        return code
    return _renamed(code, code.co_filename, frozenset(called), frozenset(modules))


def globals_of_program(code: CodeType) -> dict[str, Any]:
    """What the globals that a program assigns will be, as far as its text says: NumPy, or None."""
    found: dict[str, Any] = {}
    imported = ""
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            first = step.argval not in found
            found[step.argval] = np if first and imported == "numpy" else None
        imported = step.argval if step.opname == "IMPORT_NAME" else ""
    for inner in _inner(code):
        found.update(dict.fromkeys(globals_of_program(inner)))
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in _inner(code):
        yield from _names(inner)


def _inner(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


@functools.lru_cache(maxsize=4096)
def _renamed(
    code: CodeType, filename: str, called: frozenset[str], modules: frozenset[str]
) -> CodeType:
    """Equal codes of different files are different: equality does not look at the file's name."""
    names, text = list(code.co_names), bytearray(code.co_code)
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        module = steps[at - 1].argval if at else None
        if step.argval in called and _is_called(steps, at):
            shift, mark = (0, 0) if step.opname == "LOAD_NAME" else (1, 1)
        elif module in modules and _is_called_of(steps, at):
            shift, mark = (0, 0) if _WITH_METHODS else (1, (step.arg or 0) & 1)
        else:
            continue
        argument = _index(names, step.argval + MARK) << shift | mark
        if argument < 256 and (step.arg or 0) < 256:  # what has no place for it stays as it is
            text[step.offset + 1] = argument
    consts = tuple(
        _renamed(const, filename, called, modules) if isinstance(const, CodeType) else const
        for const in code.co_consts
    )
    if len(names) == len(code.co_names) and all(map(_same, consts, code.co_consts)):
        return code
    made = code.replace(co_names=tuple(names), co_code=bytes(text), co_consts=consts)
    _written[id(made)] = weakref.ref(made, lambda _: _written.pop(id(made), None)), code
    return made


_written: dict[int, tuple[weakref.ref[CodeType], CodeType]] = {}  # by the identity of what runs


def as_written(code: CodeType) -> CodeType:
    """The code before its calls were told apart."""
    known = _written.get(id(code))
    return code if known is None or known[0]() is not code else known[1]


def _same(a: Any, b: Any) -> bool:
    return a is b


def _is_called(steps: list[dis.Instruction], at: int) -> bool:
    """The name that is loaded here, or an attribute of it, is called next.

    A NULL on the stack, before it or behind it, says so.
    """
    if steps[at].opname == "LOAD_GLOBAL":
        return bool((steps[at].arg or 0) & 1)
    around = (steps[at - 1].opname if at else "", steps[at + 1].opname)
    return steps[at].opname == "LOAD_NAME" and "PUSH_NULL" in around


def _is_called_of(steps: list[dis.Instruction], at: int) -> bool:
    """The attribute that is loaded here, of a module that is loaded before, is called next."""
    step, after = steps[at], steps[at + 1].opname
    if steps[at - 1].opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        return False
    if step.opname not in _ATTRIBUTES or id(getattr(np, step.argval, None)) not in CALLED:
        return False
    as_method = step.opname == "LOAD_METHOD" if _WITH_METHODS else bool((step.arg or 0) & 1)
    return (
        as_method
        or after == "PUSH_NULL"
        or (after not in _ATTRIBUTES and _is_called(steps, at - 1))
    )


_WITH_METHODS = sys.version_info < (3, 12)  # attributes that are called have their own instruction
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


def _index(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)
