"""Calls of Python functions that stay as they are.

    %total = python_call %smooth, %x {args=(%, 3), returns=<f64[4]>} : f64[4]

The first operand is the function; `args` says where the others stand among its arguments, `names`
calls the last of them by keyword, and `returns` says what it gives.  Containers are tuples that
begin with their kind: `("dict", "sum", <f64[]>, "count", py.int)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, UnsupportedError
from minigraph.ir import (
    FUNCTION,
    OPERAND,
    ArrayType,
    Op,
    ScalarType,
    Type,
    class_of,
    is_array,
    type_of,
)

from .derivation import Derivation, Term
from .evaluate import Sizes, substitute
from .registry import declare
from .rules import NO_ATTRS
from .samples import Sample, array

CONTAINERS: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict}


class PythonFunction:
    """A function that programs call.

    It gets copies of arrays, which cannot be written: the values of the program are its own.

    Attributes:
        function: the user's.
        arrays: what it takes arrays as (None: ndarrays).
    """

    python_function_ = True

    def __init__(self, function: Callable[..., Any], arrays: Callable[[Any], Any] | None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.arrays = arrays

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = {name: self._given(value) for name, value in kwargs.items()}
        return self.function(*map(self._given, args), **named)

    def __deepcopy__(self, memo: Any) -> PythonFunction:
        return self  # as Python copies functions

    def _given(self, thing: Any) -> Any:
        """An argument as the function gets it."""
        kind = class_of(thing)
        if kind is tuple or kind is list:
            items = [self._given(item) for item in thing]
            return items if kind is list else tuple(items)
        if kind is dict:
            return {key: self._given(value) for key, value in thing.items()}
        if not is_array(thing):
            return thing
        copied: np.ndarray[Any, Any] = np.array(thing)
        copied.flags.writeable = False
        return copied[()] if self.arrays is None else self.arrays(copied)


# ---- structures ----------------------------------------------------------------------------------


def _is_leaf(part: Any) -> bool:
    return part is OPERAND or isinstance(part, ArrayType | ScalarType)


def leaves_of(structure: Any) -> Iterator[Any]:
    """The operands, or the types, of a structure, in order.

    Raises:
        DtypeError: it begins with no kind of container.
    """
    if _is_leaf(structure):
        yield structure
    elif isinstance(structure, tuple):
        kind, children = _opened(structure)
        for child in children[kind == "dict" :: 2 if kind == "dict" else 1]:
            yield from leaves_of(child)


def filled(structure: Any, leaves: Iterator[Any]) -> Any:
    """What a structure describes, with the next leaves."""
    if _is_leaf(structure):
        return next(leaves)
    if not isinstance(structure, tuple):
        return structure
    kind, children = _opened(structure)
    if kind == "dict":
        values = [filled(child, leaves) for child in children[1::2]]
        return dict(zip(children[::2], values, strict=True))
    return CONTAINERS[kind](filled(child, leaves) for child in children)


def _opened(structure: Any) -> tuple[str, Sequence[Any]]:
    """The kind of a container, and what is inside."""
    if not structure or structure[0] not in CONTAINERS:
        raise DtypeError(f"{structure!r} is no structure", instead=", ".join(CONTAINERS))
    return structure[0], structure[1:]


# ---- what comes back -----------------------------------------------------------------------------


def returned(name: str, returns: Any, result: Any, sizes: Sizes = NO_ATTRS) -> Any:
    """The results of a node from what the function returned: one, or a tuple of them.

    Args:
        name: of the function.
        returns: the structure and the types that were said.
        result: what it returned.
        sizes: of the named dimensions in them.

    Raises:
        DtypeError: it is something else.
    """
    said = substitute(returns, sizes)
    found = _taken(said, result)
    if found is None:
        raise DtypeError(
            f"{name} returned {_shown(result)}, and its mark says {structure_text(said)}",
            instead="mg.ignore(returns=...) of what it returns",
        )
    return found[0] if len(found) == 1 else tuple(found)


def _taken(said: Any, result: Any) -> list[Any] | None:
    """The leaves of a result; None if it is not what was said."""
    if said is None:
        return [] if result is None else None
    if isinstance(said, ScalarType):
        return [result] if type(result) is said.python else None
    if isinstance(said, ArrayType):
        data = _data(result)
        if data is None or (data.dtype.newbyteorder("="), data.shape) != (said.dtype, said.shape):
            return None
        return [np.array(data, said.dtype, order="C")[()]]
    kind, parts = _opened(said)
    if type(result) is not CONTAINERS[kind]:
        return None
    children: list[Any] = list(result)
    if kind == "dict":
        if children != list(parts[::2]):
            return None
        parts, children = parts[1::2], list(result.values())
    if len(parts) != len(children):
        return None
    found: list[Any] = []
    for part, child in zip(parts, children, strict=True):
        taken = _taken(part, child)
        if taken is None:
            return None
        found += taken
    return found


def _data(thing: Any) -> Any:
    """The numbers of an array, a scalar of NumPy's or an eager array; None of anything else."""
    kind = class_of(thing)
    if getattr(kind, "eager_array_", False):
        return thing.data_
    return thing if kind is np.ndarray or issubclass(kind, np.generic) else None


def structure_text(said: Any) -> str:
    """`(f64[3], {"count": int})`."""
    if not isinstance(said, tuple):
        return str(said)
    kind, parts = _opened(said)
    if kind == "dict":
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return "{" + ", ".join(f"{key!r}: {structure_text(part)}" for key, part in pairs) + "}"
    return _enclosed(kind, map(structure_text, parts))


def _shown(result: Any) -> str:
    """What came back, as `structure_text` shows what was said."""
    kind = class_of(result)
    if result is None:
        return "None"
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {_shown(part)}" for key, part in result.items()) + "}"
    if kind is tuple or kind is list:
        return _enclosed(kind.__name__, map(_shown, result))
    data = _data(result)
    if data is None and is_array(result):
        return f"a {kind.__name__}"
    try:
        return str(type_of(result if data is None else data))
    except DtypeError:
        return f"a {kind.__name__}"


def _enclosed(kind: str, parts: Iterator[str]) -> str:
    texts = list(parts)
    inside = ", ".join(texts) + ("," if kind == "tuple" and len(texts) == 1 else "")
    return f"[{inside}]" if kind == "list" else f"({inside})"


# ---- the op --------------------------------------------------------------------------------------


def _run(
    xp: Any,
    function: Callable[..., Any],
    *operands: Any,
    args: tuple[Any, ...],
    returns: Any,
    names: tuple[str, ...] = (),
) -> Any:
    values = iter(operands)
    given = [filled(arg, values) for arg in args]
    split = len(given) - len(names)
    result = function(*given[:split], **dict(zip(names, given[split:], strict=True)))
    return returned(getattr(function, "__name__", "the function"), returns, result)


def _infer(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    if types[0] != FUNCTION:
        raise DtypeError(f"a function is needed here, not a {types[0]}")
    needed = sum(1 for arg in attrs["args"] for _ in leaves_of(arg))
    if needed != len(types) - 1:
        raise DtypeError(f"the call has {needed} operands, and {len(types) - 1} are given")
    return tuple(leaves_of(attrs["returns"]))


def _no_derivative(derivation: Derivation, *inputs: Term) -> Any:
    raise UnsupportedError(
        "there is no derivative through a Python function that the program calls",
        where=derivation.node.loc,
        instead="leave mg.ignore out; or give it mg.stop_gradient(x)",
    )


def _both(x: Any, count: Any, scale: Any = 1) -> Any:
    return {"twice": x + x, "rest": (count, [None if scale == 1 else scale])}


def _first(pair: Any) -> Any:
    return pair[0]


def _sample(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = array(rng, dtype, 2, 3)
    rest = ("tuple", type_of(3), ("list", type_of(2.5)))
    both = ("dict", "twice", type_of(x), "rest", rest)
    return [
        (
            [PythonFunction(_both, None), x, 3, 2.5],
            {"args": (OPERAND, OPERAND, OPERAND), "names": ("scale",), "returns": both},
        ),
        (
            [PythonFunction(_first, None), x],
            {"args": (("tuple", OPERAND, "word"),), "returns": type_of(x)},
        ),
        ([PythonFunction(_first, None)], {"args": (("list", None),), "returns": None}),
    ]


declare(
    Op(
        "python_call",
        "effect",
        _infer,
        _run,
        effect="call",
        raises=True,
        defaults={"names": ()},
        vjp=_no_derivative,
        sample=_sample,
        doc="a call of a Python function, each time and in order",
    )
)
