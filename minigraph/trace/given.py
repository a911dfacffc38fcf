"""What functions of control flow are given by a caller, checked before anything is recorded."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from minigraph.errors import MinigraphError, SignatureError

from .recording import here


def a_kind(thing: Any) -> str:
    """What a thing is to the user: `an int`, `a list`; of a traced one what it stands for."""
    if thing is None:
        return "None"
    name = thing.__class__.__name__
    return f"{'an' if name[0] in 'aeiou' or name == 'ndarray' else 'a'} {name}"


def check_callable(instead: str, *functions: Any) -> None:
    """Functions are given.

    Args:
        instead: a call that is right.
        *functions: what should be functions.

    Raises:
        SignatureError: one is none.
    """
    for each in functions:
        if not callable(each):
            name = instead.partition("(")[0]
            raise SignatureError(
                f"{name} takes a function here, not {a_kind(each)}", where=here(), instead=instead
            )


def number_of_turns(name: str, number: Any) -> int | None:
    """A number of turns that a caller gives, or None.

    Raises:
        SignatureError: it is no whole number, or below 0.
    """
    if number is None:
        return None
    try:
        count = operator.index(number)
    except MinigraphError:  # a traced one that is not known says so itself
        raise
    except TypeError:
        raise _no_number_of_turns(name, number) from None
    if count < 0:
        raise _no_number_of_turns(name, count)
    return count


def _no_number_of_turns(name: str, number: Any) -> SignatureError:
    return SignatureError(
        f"{name}={number!r} is no number of turns",
        where=here(),
        instead=f"{name}= a whole number, 0 or more",
    )


def check_state(state: Any, test: Callable[..., Any]) -> None:
    """A state of several parts is a tuple.

    Raises:
        SignatureError: it is a list, and the test takes its items.
    """
    if isinstance(state, list) and _takes_more(test):
        raise SignatureError(
            "the state is a list, which is one part, and the test takes several",
            where=here(),
            instead="a tuple",
        )


def _takes_more(function: Callable[..., Any]) -> bool:
    """Whether one argument is not enough for a function."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return True
    except ValueError:  # written in C, and it does not say
        return False
    return False
