"""Text with values in it that are known when the program runs.

    f"loss {x:.3f}"     text("loss ", part(x, "", ".3f"))

Such a text can be printed, and said by an error.  What it is made of stays as it is recorded now.
"""

from __future__ import annotations

import builtins
import itertools
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import UnsupportedError
from minigraph.ir import OPERAND, Loc, Value

from .arrays import TracedArray
from .called import CALLED, FUNCTIONS
from .kinds import is_data
from .operands import operand
from .recording import ACTIVE, Recording, current
from .scalars import TracedDim, TracedScalar

Piece = str | tuple[Value, str, str]
"""A string; or a value, its conversion and its format."""


class TracedText:
    """A string that is put together when the program runs.

    Attributes:
        pieces_: what it is put together of.
    """

    __slots__ = ("pieces_",)
    pieces_: tuple[Piece, ...]

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces_ = tuple(pieces)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return str

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, str):
            return NotImplemented
        return TracedText((*self.pieces_, *_pieces(current(), other)))

    def __radd__(self, other: Any) -> Any:
        return TracedText((other, *self.pieces_)) if isinstance(other, str) else NotImplemented

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute '{name}'")
        return self.refuse_()

    def refuse_(self, *_: Any) -> Any:
        raise UnsupportedError(
            "a text with values that are not known yet can be printed, and said by an error; "
            "nothing else",
            where=current().here(),
            instead='print(f"..."), raise ValueError(f"...")',
        )

    __str__ = __repr__ = __format__ = __len__ = __iter__ = __bool__ = __hash__ = refuse_
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __getitem__ = refuse_
    __mul__ = __rmul__ = __mod__ = __rmod__ = refuse_


def text(*parts: Any) -> Any:
    """An f-string: of strings, and of what `part` gives.

    A string, where all its values are known.
    """
    if all(type(each) is str for each in parts):
        return "".join(parts)
    recording = current()
    pieces = [piece for each in parts for piece in _pieces(recording, each)]
    # A script has one entry for all numbers; a plain trace pins those that it needs.
    known = recording.is_settled if recording.script else recording.is_known
    if all(isinstance(p, str) or known(p[0]) for p in pieces):
        return "".join(p if isinstance(p, str) else _now(recording, *p) for p in pieces)
    return TracedText(pieces)


def _pieces(recording: Recording, thing: Any) -> Sequence[Piece]:
    return thing.pieces_ if isinstance(thing, TracedText) else (thing,)


def _now(recording: Recording, value: Value, conversion: str, spec: str) -> str:
    """The text of a value that is known while tracing."""
    number = recording.force(value, "formatting into a string")
    (word,) = ops.words_of((((OPERAND, conversion, spec),),), (number,))
    return word


def part(thing: Any, conversion: str = "", spec: Any = "") -> Any:
    """What stands in the braces of an f-string: `{thing!conversion:spec}`.

    Raises:
        ValueError, TypeError: things of this type have no such format.
    """
    if ACTIVE.get() is None or not holds_traced(thing):
        return format(ops.CONVERSIONS[conversion](thing), spec)
    if isinstance(spec, TracedText):
        raise UnsupportedError(
            "a format that is not known yet", where=current().here(), instead="a format as it is"
        )
    pieces = list(_shown(current(), thing, conversion, spec))
    return TracedText(pieces)


def holds_traced(thing: Any) -> bool:
    """Something that is being described, or a list, tuple or dict of such."""
    pending, seen = [thing], set[int]()
    while pending:
        each = pending.pop()
        if isinstance(each, TracedScalar | TracedDim | TracedArray | TracedText):
            return True
        if isinstance(each, dict | list | tuple) and id(each) not in seen:
            seen.add(id(each))
            pending.extend(each)
            pending.extend(each.values() if isinstance(each, dict) else ())
    return False


def _shown(recording: Recording, thing: Any, conversion: str, spec: str) -> Iterator[Piece]:
    """The pieces of what an f-string shows of a thing."""
    if isinstance(thing, TracedText):
        if conversion in ("r", "a") or spec:
            thing.refuse_()
        yield from thing.pieces_
    elif isinstance(thing, TracedScalar | TracedDim | TracedArray):
        format(ops.CONVERSIONS[conversion](_sample(thing)), spec)
        value = _value_of(recording, thing)
        box = isinstance(thing, TracedArray) and not thing.ndim and not thing.scalar_
        yield value, "array" if box and conversion in ("r", "a") else conversion, spec
    elif not holds_traced(thing):
        yield format(ops.CONVERSIONS[conversion](thing), spec)
    else:
        if spec and not conversion:
            format([], spec)  # raises as Python does
        yield from _container(recording, thing)


def _container(recording: Recording, thing: Any) -> Iterator[Piece]:
    """The repr of a list, tuple or dict."""
    kind = thing.__class__
    if kind is dict:
        yield "{"
        for at, (key, item) in enumerate(thing.items()):
            yield ", " if at else ""
            yield from _shown(recording, key, "r", "")
            yield ": "
            yield from _shown(recording, item, "r", "")
        yield "}"
        return
    named: Sequence[str] = getattr(kind, "_fields", ())
    known = named and kind.__repr__.__module__.startswith("collections")
    if kind not in (list, tuple) and not known:
        raise UnsupportedError(
            f"what is printed of a {kind.__name__} with values in it is not recorded",
            where=recording.here(),
            instead="print its items",
        )
    yield "[" if kind is list else kind.__name__ + "(" if named else "("
    for at, item in enumerate(thing):
        yield ", " if at else ""
        yield f"{named[at]}=" if named else ""
        yield from _shown(recording, item, "r", "")
    yield "]" if kind is list else ",)" if len(thing) == 1 and not named else ")"


def _sample(thing: Any) -> Any:
    """Something of the same type that is known: what has no format raises at once."""
    if not holds_traced(thing):
        return thing
    if isinstance(thing, TracedArray):
        return np.ones((1,) * thing.ndim, thing.dtype)[()]
    if isinstance(thing, dict):
        return {key: _sample(item) for key, item in thing.items()}
    if isinstance(thing, list | tuple):
        return [] if isinstance(thing, list) else ()
    return thing.__class__() if isinstance(thing, TracedText) else thing.__class__(1)


def _value_of(recording: Recording, thing: Any) -> Value:
    return thing.recorded_value_ if isinstance(thing, TracedDim) else operand(recording, thing)


def words(recording: Recording, things: Iterable[Any]) -> tuple[tuple[Any, ...], list[Value]]:
    """What is printed, or what an error is made with, as attr and operands (see `ops/text.py`)."""
    parts: list[Any] = []
    values: list[Value] = []
    for thing in things:
        if isinstance(thing, TracedText) or (
            isinstance(thing, list | tuple | dict) and holds_traced(thing)
        ):
            pieces = _joined(_shown(recording, thing, "", ""))
            values += [piece[0] for piece in pieces if not isinstance(piece, str)]
            parts.append(tuple(p if isinstance(p, str) else (OPERAND, *p[1:]) for p in pieces))
        elif isinstance(thing, TracedDim):
            values.append(thing.recorded_value_)
            parts.append(OPERAND)
        elif is_data(thing):
            values.append(operand(recording, thing))
            parts.append(OPERAND)
        else:
            parts.append(str(thing))
    return tuple(parts), values


def error_words(
    recording: Recording, error: BaseException, where: Loc | None
) -> tuple[dict[str, Any], list[Value]]:
    """The attrs of the check that raises such an error, and its operands behind the condition.

    Raises:
        UnsupportedError: it was made with something else than texts, numbers and arrays.
    """
    for arg in error.args:
        if not isinstance(arg, str) and not is_data(arg):
            raise UnsupportedError(
                f"a {type(error).__name__} is raised on some ways only, and it was made with a "
                f"{arg.__class__.__name__}",
                where=where,
                instead=f'a text: raise {type(error).__name__}(f"...")',
            ) from error
    parts, values = words(recording, error.args)
    message = parts[0] if len(parts) == 1 and type(parts[0]) is str else parts
    return ({"message": message} if parts else {}), values


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same text with no string behind another one."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, str) and isinstance(last, str):
            found[-1] = last + piece
        elif piece:
            found.append(piece)
    return found


# ---- other ways to put texts together -----------------------------------------------------------


def percent(template: Any, values: Any) -> Any:
    """`template % values`."""
    if ACTIVE.get() is None or not (type(template) is str and holds_traced(values)):
        return template % values
    recording = current()
    given = iter(values if isinstance(values, tuple) else (values,))
    samples = tuple(map(_sample, values)) if isinstance(values, tuple) else _sample(values)
    _ = template % samples  # raises where these things have no such format
    pieces: list[Any] = []
    for literal, conversion in _DIRECTIVE.findall(template):
        if literal or conversion == "%%":
            pieces.append(literal or "%")
        elif "*" in conversion or "(" in conversion:
            raise UnsupportedError(
                f"the format {conversion} of a value that is not known",
                where=recording.here(),
                instead="an f-string",
            )
        elif holds_traced(thing := next(given)):
            pieces.append(TracedText(_by_percent(recording, thing, conversion)))
        else:
            pieces.append(conversion % (thing,))
    return text(*pieces)


_DIRECTIVE = re.compile(r"([^%]+)|(%(?:\([^)]*\))?[-#0 +]*[\d*]*(?:\.[\d*]*)?[a-zA-Z%])")


def _by_percent(recording: Recording, thing: Any, conversion: str) -> Iterator[Piece]:
    if isinstance(thing, TracedScalar | TracedDim | TracedArray) and conversion not in ("%s", "%r"):
        yield _value_of(recording, thing), conversion, ""
    elif conversion in ("%s", "%r"):
        yield from _shown(recording, thing, conversion[1], "")
    else:
        TracedText(()).refuse_()


def braces(template: str, *args: Any, **kwargs: Any) -> Any:
    """`template.format(*args, **kwargs)`."""
    if ACTIVE.get() is None or not holds_traced([*args, *kwargs.values()]):
        return template.format(*args, **kwargs)
    formatter, pieces, count = string.Formatter(), [], itertools.count()
    for literal, field, spec, conversion in formatter.parse(template):
        pieces.append(literal)
        if field is None:
            continue
        if not field or field[0] in ".[":
            field = f"{next(count)}{field}"
        thing, _ = formatter.get_field(field, args, kwargs)
        pieces.append(part(thing, conversion or "", braces(spec or "", *args, **kwargs)))
    return text(*pieces)


def joined(between: str, texts: Iterable[Any]) -> Any:
    """`between.join(texts)`."""
    found = list(texts)
    if not any(isinstance(each, TracedText) for each in found):
        return between.join(found)
    pieces: list[Any] = []
    for each in found:
        between.join(["" if isinstance(each, TracedText) else each])  # raises of what is no text
        pieces += [between, each]
    return text(*pieces[1:])


# ---- the functions of Python --------------------------------------------------------------------


def _as_text(*args: Any, **kwargs: Any) -> Any:
    """`str(x)`."""
    if kwargs or len(args) != 1 or not holds_traced(args[0]):
        return str(*args, **kwargs)
    return text(part(args[0], "s"))


def _repr(thing: Any, /) -> Any:
    return text(part(thing, "r")) if ACTIVE.get() is not None else repr(thing)


def _format(thing: Any, spec: Any = "", /) -> Any:
    return text(part(thing, "", spec)) if ACTIVE.get() is not None else format(thing, spec)


CALLED[id(str)] = _as_text
FUNCTIONS.update({id(builtins.repr): _repr, id(builtins.format): _format})
