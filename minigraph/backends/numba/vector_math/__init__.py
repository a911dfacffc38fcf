"""Mathematical functions of float32 and float64 that a kernel's loop runs on whole vectors.

`FUNCTIONS` are the names that a kernel's text may use. At most 4 ULP off everywhere, with the edge
values of IEEE arithmetic: NaN, infinities, signed zeros, overflow, denormals.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.errors import TypingError
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from .arcs import arccos, arcsin, arctan, arctan2
from .error_function import erf
from .exponential import cosh, exp, exp2, expit, expm1, sinh, tanh
from .lanes import DOUBLE, SINGLE, Float
from .logarithm import (
    arccosh,
    arcsinh,
    arctanh,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
)
from .power import cbrt, hypot, power, rsqrt
from .trigonometric import cos, sin, tan

FORMATS = {types.float32: SINGLE, types.float64: DOUBLE}


def _compiled(write: Callable[..., Float]) -> Callable[..., Any]:
    """`write` as a function for compiled code: of float32 or of float64, all arguments alike."""
    name, parameters = write.__name__, list(inspect.signature(write).parameters.values())
    arity = len(parameters)

    def function(typing_context: Any, *arguments: Any) -> Any:
        first = arguments[0] if arguments else None
        if first not in FORMATS or arguments != (first,) * arity:
            given = ", ".join(map(str, arguments))
            raise TypingError(f"`{name}` takes {arity} float32 or {arity} float64, not ({given})")

        def lower(context: Any, builder: Any, _: Any, values: Any) -> Any:
            return write(*(Float(builder, FORMATS[first], value) for value in values)).value

        return signature(first, *arguments), lower

    function.__name__ = function.__qualname__ = name
    function.__doc__ = write.__doc__
    # Numba binds arguments by the signature, and knows no `*arguments` here.
    own = next(iter(inspect.signature(function).parameters.values()))
    function.__signature__ = inspect.Signature([own, *parameters])
    return intrinsic(function)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    write.__name__: _compiled(write)
    for write in (
        *(exp, exp2, expm1, sinh, cosh, tanh, expit),
        *(log, log2, log10, log1p, arcsinh, arccosh, arctanh, logaddexp, logaddexp2),
        *(sin, cos, tan),
        *(arcsin, arccos, arctan, arctan2),
        *(erf, power, cbrt, rsqrt, hypot),
    )
}
