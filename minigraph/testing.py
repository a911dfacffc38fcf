"""For tests: gradients against differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minigraph.array import Array, unwrap
from minigraph.derivatives import vjp
from minigraph.errors import DtypeError
from minigraph.ir import Tree, flatten, leaf_paths, unflatten
from minigraph.trace import signature_of


def check_grad(
    function: Callable[..., Any],
    *args: Any,
    step: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-7,
) -> None:
    """Compare the gradients of a function with central differences.

    Floating-point arguments are converted to float64, all others are constants.  Of a result that
    is not one number the sum is differentiated, each element weighted with a fixed random number.

    Args:
        function: on arrays, numbers, and structures of them; it must give the same each time.
        *args: where to differentiate.
        step: h in (f(x + h) - f(x - h)) / 2h, for numbers around 1; it grows with |x|.
        rtol: how far the two may be apart, relative to the larger one.
        atol: the same, absolutely.

    Raises:
        AssertionError: somewhere they are further apart; it shows where most.
        DtypeError: there is nothing to differentiate.
    """
    leaves, tree = flatten(args, _is_float)
    if not leaves:
        raise DtypeError(
            "check_grad: no argument is a floating-point number", instead="x.astype(np.float64)"
        )
    points = [_double(leaf) for leaf in leaves]

    def on_leaves(*things: Any) -> Any:
        return function(*unflatten(tree, iter(things)))

    on_leaves.__wrapped__ = function  # type: ignore[attr-defined]  # the tracer goes on into it
    on_leaves.__signature__ = signature_of(lambda *things: None)  # type: ignore[attr-defined]
    value, pullback = vjp(on_leaves, *points)
    results, structure = flatten(value, _is_float)
    rng = np.random.default_rng(0)
    single = len(results) == 1 and not np.shape(unwrap(results[0]))
    weights = [1.0 if single else rng.uniform(0.5, 2.0, np.shape(unwrap(r))) for r in results]
    found = pullback(unflatten(structure, iter(weights)))

    def weighted(things: Sequence[Any]) -> float:
        parts, _ = flatten(on_leaves(*things), _is_float)
        return sum(float(np.sum(unwrap(p) * w)) for p, w in zip(parts, weights, strict=True))

    names = _names(function, tree)
    report = _worst(weighted, points, found, names, step, rtol, atol)
    if report:
        raise AssertionError(f"check_grad({getattr(function, '__name__', function)}): {report}")


def _is_float(thing: Any) -> bool:
    data = unwrap(thing) if isinstance(thing, Array) else thing
    return type(data) is float or (
        isinstance(data, np.ndarray | np.generic) and data.dtype.kind == "f"
    )


def _double(leaf: Any) -> Any:
    if isinstance(leaf, float) and not isinstance(leaf, np.generic):
        return leaf
    return np.array(unwrap(leaf), np.float64)


def _names(function: Callable[..., Any], tree: Tree) -> list[str]:
    """How the user calls each leaf."""
    parameters = [p.name for p in signature_of(function).parameters.values() if p.kind < 2]
    children: Sequence[Tree] = getattr(tree, "children", ())
    return [
        path
        for at, child in enumerate(children)
        for path in leaf_paths(child, parameters[at] if at < len(parameters) else f"args[{at}]")
    ]


def _worst(
    weighted: Callable[[Sequence[Any]], float],
    points: Sequence[Any],
    found: Sequence[Any],
    names: Sequence[str],
    step: float,
    rtol: float,
    atol: float,
) -> str:
    """What to say of the element where the two are furthest apart; "" if they agree."""
    wrong = count = 0
    worst, text = 0.0, ""
    for at, index, difference in _differences(weighted, points, step):
        gradient = float(np.asarray(unwrap(found[at]))[index])
        count += 1
        allowed = atol + rtol * max(abs(difference), abs(gradient))
        off = abs(gradient - difference) / allowed
        if off <= 1:
            continue
        wrong += 1
        if not text or off > worst:
            worst = off
            place = names[at] + (f"[{', '.join(map(str, index))}]" if index else "")
            text = (
                f"the gradient by {place} is {gradient:.9g}, and the difference quotient "
                f"{difference:.9g} (apart by {abs(gradient - difference):.3g}, "
                f"{allowed:.3g} is allowed)"
            )
    return f"{wrong} of {count} elements differ, most of all:\n  {text}" if wrong else ""


def _differences(
    weighted: Callable[[Sequence[Any]], float], points: Sequence[Any], step: float
) -> Iterator[tuple[int, tuple[int, ...], float]]:
    """(leaf, index, central difference) of each element."""
    for at, point in enumerate(points):
        for index in np.ndindex(np.shape(point)):
            x = float(np.asarray(point)[index])
            h = step * max(1.0, abs(x))
            above, below = (weighted(_moved(points, at, index, to)) for to in (x + h, x - h))
            yield at, index, (above - below) / ((x + h) - (x - h))


def _moved(points: Sequence[Any], at: int, index: tuple[int, ...], to: float) -> list[Any]:
    """Copies of the points, with one number in another place."""
    found = [np.array(point) for point in points]
    found[at][index] = to
    return [
        float(new) if isinstance(old, float) else new
        for new, old in zip(found, points, strict=True)
    ]
