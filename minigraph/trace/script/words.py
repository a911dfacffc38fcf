"""What the words of converted code do: as Python where that can tell, else recorded."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from minigraph.errors import ScriptError
from minigraph.ir import BOOL

from ..arrays import TracedArray
from ..control import cond as choose_way
from ..control import for_loop, while_loop
from ..handlers import handler
from ..loops import condition, negated
from ..numbers import as_bool
from ..recording import ACTIVE, here
from ..scalars import TracedScalar
from ..text import braces, joined, part, percent, text
from ..undefined import Undefined

# ---- names -------------------------------------------------------------------------------------


def undefined(name: str) -> Undefined:
    """What a variable holds to which nothing is assigned; any use of it is an error.

    Args:
        name: what the variable is called.
    """
    return Undefined(name)


def guarded(name: str) -> Undefined:
    """The same of a variable that is read only where something is assigned."""
    return Undefined(name, guarded=True)


def defined(thing: Any, name: str) -> Any:
    """The value of a variable that is read.

    Raises:
        UnboundLocalError: it has none.
        UndefinedError: it has one after one branch only, and which ran is known at the call.
    """
    if not isinstance(thing, Undefined):
        return thing
    if thing.sides:
        thing.refuse_(here())
    raise UnboundLocalError(
        f"cannot access local variable '{name}' where it is not associated with a value"
    )


# ---- branches ----------------------------------------------------------------------------------

_DEEPEST = 50  # times that a branch may run inside of itself


def cond(
    test: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    *operands: Any,
    names: Sequence[str] = (),
) -> Any:
    """`mg.cond`, which does not follow a recursion that only data would end.

    Raises:
        ScriptError: there is one.
    """
    active = ACTIVE.get()
    if active is not None and len(active.sections) > _DEEPEST and _runs(then, otherwise) > _DEEPEST:
        where = active.here()
        raise ScriptError(
            f"{where.function if where else 'the function'} calls itself without end: whether it "
            "stops depends on data, so both branches are recorded each time",
            where=where,
            instead="a loop; recursion has to end on sizes and numbers that are known while "
            "tracing",
        )
    return choose_way(test, then, otherwise, *operands, names=names)


def _runs(*functions: Callable[..., Any]) -> int:
    """How often functions made from the same text are running, each inside of the one before."""
    codes = [getattr(function, "__code__", None) for function in functions]
    frame: types.FrameType | None = sys._getframe(2)
    found = 0
    while frame is not None:
        found += frame.f_code in codes
        frame = frame.f_back
    return found


# ---- truth -------------------------------------------------------------------------------------


def _holds(thing: Any) -> bool | TracedScalar:
    """The truth of something: a bool, or a recorded one where that depends on the call."""
    active = ACTIVE.get()
    if active is None or not isinstance(thing, TracedScalar | TracedArray):
        return bool(thing)
    found = condition(active, thing)
    return found if isinstance(found, bool) else as_bool(active, found)


truth = _holds


def negate(thing: Any) -> Any:
    """`not thing`."""
    holds = _holds(thing)
    if type(holds) is bool:
        return not holds
    active = holds.recording_
    found = negated(active, holds.value_)
    return found if isinstance(found, bool) else as_bool(active, found)


def is_bool(thing: Any, value: bool) -> Any:
    """`thing is True`, `thing is False`: of a recorded bool, its truth."""
    if isinstance(thing, TracedScalar) and thing.value_.type is BOOL:
        return _holds(thing) if value else negate(thing)
    return thing is value


def both(first: Any, rest: Callable[[], Any]) -> Any:
    """`first and rest()`."""
    holds = _holds(first)
    if type(holds) is bool:
        return rest() if holds else first
    return cond(holds, rest, lambda: first)


def either(first: Any, rest: Callable[[], Any]) -> Any:
    """`first or rest()`."""
    holds = _holds(first)
    if type(holds) is bool:
        return first if holds else rest()
    return cond(holds, lambda: first, rest)


def choose(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`then() if test else otherwise()`."""
    return cond(test, then, otherwise)


def chain(left: Any, *links: tuple[str, Callable[[], Any]]) -> Any:
    """`left < middle < right`: each operand is computed once, if at all."""
    (name, compute), *rest = links
    right = compute()
    found = _compare(name, left, right)
    return both(found, lambda: chain(right, *rest)) if rest else found


def _compare(name: str, left: Any, right: Any) -> Any:
    if name == "not in":
        return negate(_compare("in", left, right))
    if name != "in":
        return _COMPARE[name](left, right)
    active = ACTIVE.get()
    traced = TracedScalar | TracedArray
    plain = type(right) in (list, tuple)
    if active is None or not plain or not any(isinstance(x, traced) for x in (left, *right)):
        return left in right
    found: Any = False
    for item in right:
        found = either(found, lambda item=item: left is item or _holds(left == item))
    return found


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
}


def known(test: Any, where: str) -> bool:
    """A condition in what is kept as Python.

    Raises:
        ScriptError: it depends on data.
    """
    holds = _holds(test)
    if type(holds) is bool:
        return holds
    raise ScriptError(
        f"this condition depends on data, and {where} is kept as Python",
        where=here(),
        instead="take the condition out of it, or choose with np.where",
    )


# ---- statements --------------------------------------------------------------------------------


def claim(test: Any, message: Callable[[], Any] | None = None) -> None:
    """`assert test, message()`."""
    if not __debug__:
        return
    holds = _holds(test)
    if type(holds) is bool and holds:
        return
    if type(holds) is bool:
        raise AssertionError(*([message()] if message is not None else []))

    def fail() -> None:
        raise AssertionError(*([message()] if message is not None else []))

    cond(holds, lambda: None, fail)


def entered(manager: Any) -> Any:
    """The manager of a `with` whose body is converted: it may not swallow an exception."""
    return _Manager(manager)


class _Manager:
    """A manager that lets every exception pass.

    What that of a user's does at its end would also be done where recorded code raises, and is not
    recorded: inside of it nothing may fail on data.
    """

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self.handles = not type(manager).__module__.startswith(("minigraph", "numpy"))

    def __enter__(self) -> Any:
        found = self.manager.__enter__()
        if self.handles:
            handler(True)
        return found

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self.handles:
            handler(False)
        if self.manager.__exit__(kind, error, traceback) and error is not None:
            raise ScriptError(
                f"a `with` swallows a {kind.__name__}, which converted code does not do",
                where=here(),
                instead="take what may fail out of it",
            ) from error


WORDS = types.SimpleNamespace(
    both=both,
    braces=braces,
    chain=chain,
    choose=choose,
    claim=claim,
    cond=cond,
    defined=defined,
    either=either,
    entered=entered,
    for_loop=for_loop,
    guarded=guarded,
    is_bool=is_bool,
    joined=joined,
    known=known,
    negate=negate,
    part=part,
    percent=percent,
    text=text,
    truth=truth,
    undefined=undefined,
    while_loop=while_loop,
)
"""What converted code finds under its reserved global."""
