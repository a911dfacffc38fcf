"""Calls that are recorded in order to be differentiated; what gradients are given and shown as."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from minigraph.errors import DtypeError, OptionError, ShapeError, unknown
from minigraph.grad import add, backward, zeros
from minigraph.ir import ArrayType, Loc, ScalarType, Static, Type, Value
from minigraph.ops import cotangent_type, get
from minigraph.trace import (
    Leaves,
    Recording,
    renewed,
    signature_of,
    standing_for,
    write_back,
)

Slot = int | str
NOWHERE: tuple[None, tuple[str, ...]] = (None, ())
"""The place of nodes that stand for nothing in the user's program."""


class Call:
    """A call that was recorded, in order to be differentiated.

    Attributes:
        result: what the function returned.
        chosen: the structures that are differentiated; inputs: for each the values of its leaves.
        nodes: what the call recorded.
    """

    def __init__(
        self,
        active: Recording,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        slots: Sequence[Slot],
    ) -> None:
        self.active = active
        self.name = name_of(function)
        start = len(active.nodes)
        found = list(args)
        named = dict(kwargs)
        self.chosen: list[Leaves] = []
        self.inputs: list[list[Value]] = []
        before: list[Any] = []
        after: list[Any] = []
        for slot in slots:
            holder, key = place_of(function, found, named, slot)
            leaves = Leaves(holder[key])
            check_leaves(leaves, slot, self.name, active.here())
            for at, value in enumerate(leaves.values(active)):
                what = slot if len(leaves.things) == 1 else f"{slot}, leaf {at},"
                check_float(value.type, what, self.name, active.here())
            things = [renewed(active, thing, "identity") for thing in leaves.things]
            holder[key] = leaves.closed(things)
            before += leaves.things
            after += things
            self.chosen.append(leaves)
            self.inputs.append([thing.value_ for thing in things])
        self.result = function(*found, **named)
        write_back(before, after)
        self.nodes = active.nodes[start:]

    def returned(self, value: Value | None = None) -> Loc | None:
        """The user's line that made the result (the last that was recorded, if not known)."""
        for node in reversed(self.nodes):
            if value is None or value in node.outputs:
                return node.loc
        return self.active.here()

    def number(self, result: Any) -> Value:
        """The value of a result that is one floating-point number.

        Raises:
            ShapeError, DtypeError: it is none.
        """
        leaves = Leaves(result)
        if len(leaves.things) != 1 or leaves.things[0] is not result:
            raise ShapeError(
                f"{self.name} returns a {type(result).__name__}, and a gradient is that of one "
                "number",
                where=self.returned(),
                instead="return one number, has_aux=True for (number, the rest), or mg.vjp",
            )
        (value,) = leaves.values(self.active)
        if isinstance(value.type, ArrayType) and value.type.ndim:
            raise ShapeError(
                f"{self.name} returns {a_type(value.type)}, and a gradient is that of one number",
                where=self.returned(value),
                instead=".sum() or .mean() of it, or mg.vjp for a gradient of your own",
            )
        if cotangent_type(value.type) is None:
            raise DtypeError(
                f"{self.name} returns {a_type(value.type)}, which has no gradient",
                where=self.returned(value),
                instead=_as_float(value.type),
            )
        return value

    def gradients(self, cotangents: Mapping[Value, Value]) -> list[Any]:
        """The gradients of the chosen arguments, recorded now."""
        wanted = [value for values in self.inputs for value in values]
        found = iter(backward(self.active, self.nodes, cotangents, wanted))
        return [
            leaves.gradients(
                [
                    gradient_like(self.active, next(found), value, thing)
                    for value, thing in zip(values, leaves.things, strict=True)
                ]
            )
            for leaves, values in zip(self.chosen, self.inputs, strict=True)
        ]


def check_float(type_: Type, slot: Any, name: str, where: Loc | None) -> None:
    """An argument that is to be differentiated has a gradient.

    Raises:
        DtypeError: it has none.
    """
    if cotangent_type(type_) is None:
        raise DtypeError(
            f"argument {slot} of {name} is {a_type(type_)}, and only real floating-point numbers "
            "have a gradient",
            where=where,
            instead=_as_float(type_),
        )


def check_leaves(leaves: Leaves, slot: Any, name: str, where: Loc | None) -> None:
    """An argument that is to be differentiated is data or a structure of data.

    Raises:
        DtypeError: it is something else.
    """
    if isinstance(leaves.tree, Static):
        raise DtypeError(
            f"argument {slot} of {name} is no data, and so has no gradient",
            where=where,
            instead="an array, a number, or tuples, lists, dicts and dataclasses of them",
        )


def place_of(
    function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], slot: Slot
) -> tuple[Any, Any]:
    """Where an argument stands: (list or dict, key).

    Raises:
        OptionError: there is no such argument.
    """
    parameters = list(signature_of(function).parameters.values())
    named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if isinstance(slot, int):
        if -len(args) <= slot < len(args):
            return args, slot
        if not 0 <= slot < len(named):
            raise OptionError(f"wrt={slot}: there are {len(args)} arguments")
        slot = named[slot]
    if slot in kwargs:
        return kwargs, slot
    positional = [p.name for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    if slot in positional[: len(args)]:
        return args, positional.index(slot)
    default = next((p.default for p in parameters if p.name == slot), inspect.Parameter.empty)
    if default is inspect.Parameter.empty:
        raise unknown("argument", slot, [*named, *kwargs])
    kwargs[slot] = default
    return kwargs, slot


# ---- gradients, cotangents and tangents


def gradient_like(active: Recording, gradient: Value | None, value: Value, thing: Any) -> Any:
    """A gradient as the user sees it: zeros if there is none, a float for a float."""
    if gradient is None:
        gradient = zeros(active, value.type, NOWHERE)
    if isinstance(value.type, ScalarType):
        (gradient,) = active.emit(get("item"), (gradient,), {}, place=NOWHERE)
    return standing_for(active, gradient, thing)


def shown(active: Recording, cotangent: Value | None, thing: Any) -> Any:
    """The cotangent of a result as the user sees it; None where there is none."""
    return None if cotangent is None else standing_for(active, cotangent, thing)


def summed(
    active: Recording, pairs: Iterable[tuple[Value | None, Value | None]]
) -> dict[Value, Value]:
    """Cotangents by value, where a value may stand several times, or have none."""
    sums: dict[Value, Value] = {}
    for value, part in pairs:
        if value is not None and part is not None:
            sums[value] = add(active, sums[value], part, NOWHERE) if value in sums else part
    return sums


def fitted(
    active: Recording, leaves: Leaves, values: Sequence[Value], given: Any, what: str
) -> list[Value | None]:
    """Cotangents or tangents that the user gives, one for each value; None where there is none.

    Raises:
        SignatureError: they have another structure; ShapeError: or another shape.
    """
    found: list[Value | None] = []
    for value, thing in zip(values, leaves.matching(given, what), strict=True):
        type_ = cotangent_type(value.type)
        if type_ is None or thing is None:
            found.append(None)
            continue
        (part,) = Leaves(thing).values(active)
        shape = part.type.shape if isinstance(part.type, ArrayType) else ()
        if shape != type_.shape:
            raise ShapeError(
                f"{what} of {a_type(value.type)} has its shape, and is {a_type(part.type)} here",
                where=active.here(),
            )
        if part.type != type_:
            (part,) = active.emit(get("cast"), (part,), {"dtype": type_.dtype})
        found.append(part)
    return found


# ---- words


def name_of(function: Callable[..., Any]) -> str:
    """What messages call a function."""
    return getattr(function, "__name__", type(function).__name__)


def a_type(type_: Type) -> str:
    """A type with its article."""
    return f"an {type_}" if str(type_)[0] in "aeiou" else f"a {type_}"


def _as_float(type_: Type) -> str:
    if isinstance(type_, ArrayType) and type_.dtype.kind == "c":
        return "its real and imaginary part as two arguments"
    return "x.astype(np.float64)" if isinstance(type_, ArrayType) else "a float such as 2.0"
