"""The parameters of what is traced: signatures, and arguments by name."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .guards import Guards
from .paths import Path


def spread(
    function: Callable[..., Any], params: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by name as positional and keyword arguments of the call."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for name, parameter in signature_of(function).parameters.items():
        if name not in params:
            continue
        value = params[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords.update(value)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords[name] = value
        else:
            positional.append(value)
    return positional, keywords


_signatures: weakref.WeakKeyDictionary[Any, tuple[Any, inspect.Signature]] = (
    weakref.WeakKeyDictionary()
)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a callable; `(*args, **kwargs)` where Python does not know it."""
    if type(function) is not types.FunctionType:
        with contextlib.suppress(TypeError, ValueError):
            return inspect.signature(function)
        return inspect.signature(lambda *args, **kwargs: None)
    defaults = function.__defaults__
    known = _signatures.get(function)
    if known is None or known[0] is not defaults or function.__kwdefaults__:
        known = _signatures[function] = (defaults, inspect.signature(function))
    return known[1]


def guard_defaults(guards: Guards, function: Any, path: Path) -> None:
    """What the call does not give is still what it was when the entry was made."""
    if isinstance(function, types.FunctionType):
        for name in ("__defaults__", "__kwdefaults__"):
            guards.identity(path.attribute(name), getattr(function, name))
        for name, value in (function.__kwdefaults__ or {}).items():
            guards.identity(path.attribute("__kwdefaults__").item(name), value)
    elif isinstance(function, functools.partial):
        for name, value in function.keywords.items():
            guards.identity(path.attribute("keywords").item(name), value)


def bind(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by parameter name, defaults filled in.

    Raises:
        TypeError: as the call itself would raise.
    """
    bound = signature_of(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)
