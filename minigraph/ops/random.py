"""Random draws: `draw %rng, %loc, %scale {method="normal", size=(3,)}`.

Each is an effect on its generator: in order, never merged, never dropped.  Parameters are operands,
also those left at their defaults.  `DRAWS` has the binding of each method of a generator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError, UnsupportedError
from minigraph.ir import GENERATOR, ArrayType, ObjectType, Op, Shape, Type, type_of

from .bind import Bound, as_int, as_shape, as_size, dtype_attr, keyword_operands, ndim_of, optional
from .derivation import ZERO, Derivation, Term
from .registry import declare
from .rules import array_type, broadcast_shapes, items_of, normalize_axis, stretches
from .samples import Sample, array

Attrs = Mapping[str, Any]
REQUIRED = inspect.Parameter.empty


class Distribution:
    """A method that draws each element on its own.

    Attributes:
        parameters: the name and default of each.
        probe: valid values of them.
        dtypes: whether it takes dtype=.
    """

    __slots__ = ("dtypes", "parameters", "probe")

    def __init__(
        self,
        parameters: Mapping[str, Any],
        probe: Sequence[Any] | None = None,
        dtypes: bool = False,
    ) -> None:
        self.parameters = dict(parameters)
        self.probe = [1] * len(self.parameters) if probe is None else list(probe)
        self.dtypes = dtypes


def _needed(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, REQUIRED)


DISTRIBUTIONS = {
    "random": Distribution({}, dtypes=True),
    "standard_normal": Distribution({}, dtypes=True),
    "standard_exponential": Distribution({}, dtypes=True),
    "standard_cauchy": Distribution({}),
    "standard_gamma": Distribution(_needed("shape"), dtypes=True),
    "standard_t": Distribution(_needed("df")),
    "normal": Distribution({"loc": 0.0, "scale": 1.0}),
    "uniform": Distribution({"low": 0.0, "high": 1.0}),
    "exponential": Distribution({"scale": 1.0}),
    "laplace": Distribution({"loc": 0.0, "scale": 1.0}),
    "logistic": Distribution({"loc": 0.0, "scale": 1.0}),
    "gumbel": Distribution({"loc": 0.0, "scale": 1.0}),
    "lognormal": Distribution({"mean": 0.0, "sigma": 1.0}),
    "rayleigh": Distribution({"scale": 1.0}),
    "gamma": Distribution({"shape": REQUIRED, "scale": 1.0}),
    "beta": Distribution(_needed("a", "b")),
    "chisquare": Distribution(_needed("df")),
    "f": Distribution(_needed("dfnum", "dfden")),
    "pareto": Distribution(_needed("a")),
    "power": Distribution(_needed("a")),
    "weibull": Distribution(_needed("a")),
    "wald": Distribution(_needed("mean", "scale")),
    "vonmises": Distribution(_needed("mu", "kappa")),
    "triangular": Distribution(_needed("left", "mode", "right"), [0, 1, 2]),
    "poisson": Distribution({"lam": 1.0}),
    "binomial": Distribution(_needed("n", "p")),
    "negative_binomial": Distribution(_needed("n", "p")),
    "geometric": Distribution(_needed("p")),
    "hypergeometric": Distribution(_needed("ngood", "nbad", "nsample")),
    "logseries": Distribution(_needed("p"), [0.5]),
    "zipf": Distribution(_needed("a"), [2]),
    "integers": Distribution(_needed("low", "high"), [0, 2], dtypes=True),
}


# ---- types ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _probe(method: str, dtype: np.dtype[Any] | None) -> tuple[Type, np.dtype[Any]]:
    """What a draw of one element gives: the type without size=, and the dtype of an array."""
    generator = np.random.default_rng(0)
    distribution = DISTRIBUTIONS[method]
    function = getattr(generator, method)
    given = {} if dtype is None else {"dtype": dtype.type}
    try:
        one = function(*distribution.probe, **given)
        several = function(*distribution.probe, size=1, **given)
    except TypeError as error:
        raise DtypeError(str(error)) from error
    return type_of(one), several.dtype


def _sized(attrs: Attrs, drawn: Shape, each: Shape = ()) -> Shape:
    """The shape that `size` asks for, or that of the parameters; each draw has the shape `each`."""
    if "size" not in attrs:
        return (*drawn, *each)
    size: Shape = attrs["size"]
    if not stretches(drawn, size):
        raise ShapeError(f"size={size} does not hold parameters of shape {drawn}")
    return (*size, *each)


def _infer_draw(types: Sequence[Type], attrs: Attrs) -> Type:
    if not types or not isinstance(types[0], ObjectType):
        raise DtypeError("a draw needs a random generator")
    method = attrs["method"]
    if method in _OTHERS:
        return _OTHERS[method](types, attrs)
    if method not in DISTRIBUTIONS:
        raise DtypeError(f"a generator has no method {method!r} that is recorded")
    parameters = [array_type(t) for t in types[1:]]
    if any(t.dtype.kind == "c" and t.ndim for t in parameters):
        raise DtypeError(f"{method}: a parameter is complex")
    one, dtype = _probe(method, attrs.get("dtype"))
    shape = _sized(attrs, broadcast_shapes([t.shape for t in parameters]))
    return one if not shape and "size" not in attrs else ArrayType(dtype, shape)


def _infer_choice(types: Sequence[Type], attrs: Attrs) -> Type:
    pool = array_type(types[1])
    size = attrs.get("size")
    if pool.ndim == 0:
        if size is None:
            return type_of(np.random.default_rng(0).choice(1))
        return ArrayType(np.dtype(np.int64), size)
    axis = attrs.get("axis", 0)
    rest = (*pool.shape[:axis], *pool.shape[axis + 1 :])
    if size is None:
        return ArrayType(pool.dtype, rest)
    return ArrayType(pool.dtype, (*pool.shape[:axis], *size, *pool.shape[axis + 1 :]))


def _infer_permutation(types: Sequence[Type], attrs: Attrs) -> Type:
    if "n" in attrs:
        return ArrayType(np.dtype(np.int64), (attrs["n"],))
    return array_type(types[1])


def _infer_multinomial(types: Sequence[Type], attrs: Attrs) -> Type:
    count, chances = (array_type(t) for t in types[1:])
    if chances.ndim == 0:
        raise ShapeError("multinomial: pvals needs at least one axis")
    drawn = broadcast_shapes([count.shape, chances.shape[:-1]])
    return ArrayType(np.dtype(np.int64), _sized(attrs, drawn, chances.shape[-1:]))


def _infer_dirichlet(types: Sequence[Type], attrs: Attrs) -> Type:
    alpha = array_type(types[1])
    if alpha.ndim != 1:
        raise ShapeError("dirichlet: alpha needs exactly one axis")
    return ArrayType(np.dtype(np.float64), _sized(attrs, (), alpha.shape))


_OTHERS: dict[str, Callable[[Sequence[Type], Attrs], Type]] = {
    "choice": _infer_choice,
    "permutation": _infer_permutation,
    "permuted": _infer_permutation,
    "shuffle": _infer_permutation,
    "multinomial": _infer_multinomial,
    "dirichlet": _infer_dirichlet,
}


# ---- meaning ----------------------------------------------------------------------------------


def run_draw(
    xp: Any, generator: Any, *operands: Any, method: str, n: int | None = None, **attrs: Any
) -> Any:
    """`generator.method(*operands, **attrs)`; of a `shuffle` the shuffled copy."""
    if "dtype" in attrs:
        attrs["dtype"] = attrs["dtype"].type
    if method == "shuffle":
        shuffled = xp.array(operands[0])
        generator.shuffle(shuffled, **attrs)
        return shuffled
    positional = operands if n is None else (n,)
    return getattr(generator, method)(*positional, **attrs)


# ---- binding ----------------------------------------------------------------------------------


def _size_attr(size: Any) -> dict[str, Any]:
    return {} if size is None else {"size": as_shape(size)}


def _binding(method: str, distribution: Distribution) -> Callable[..., Bound]:
    """The binding of a distribution: its parameters, then size=."""
    kinds = inspect.Parameter
    parameters = [kinds("generator", kinds.POSITIONAL_ONLY)]
    for name, default in distribution.parameters.items():
        parameters.append(kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=default))
    parameters.append(kinds("size", kinds.POSITIONAL_OR_KEYWORD, default=None))
    if distribution.dtypes:
        parameters.append(kinds("dtype", kinds.POSITIONAL_OR_KEYWORD, default=None))
    signature = inspect.Signature(parameters)

    def bind(*args: Any, **kwargs: Any) -> Bound:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UnsupportedError(
                f"Generator.{method} is recorded, but not with these arguments: {error}"
            ) from error
        given.apply_defaults()
        values = given.arguments
        target = dtype_attr(values.get("dtype"))
        plain = np.int64 if method == "integers" else np.float64
        attrs = {"method": method} | _size_attr(values["size"])
        inputs = [values["generator"], *(values[name] for name in distribution.parameters)]
        return inputs, attrs | optional(dtype=None if target == plain else target)

    bind.__signature__ = signature  # type: ignore[attr-defined]
    return bind


_bind_between = _binding("integers", DISTRIBUTIONS["integers"])


def _bind_integers(
    generator: Any,
    /,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Bound:
    low, high = (0, low) if high is None else (low, high)
    inputs, attrs = _bind_between(generator, low, high, size, dtype)
    return inputs, attrs | optional(endpoint=bool(endpoint))


def _bind_choice(
    generator: Any,
    /,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: Any = 0,
    shuffle: bool = True,
) -> Bound:
    inputs = [generator, a]
    attrs: dict[str, Any] = {"method": "choice"} | _size_attr(size)
    attrs |= {} if replace else {"replace": False}
    attrs |= {} if shuffle else {"shuffle": False}
    where = normalize_axis(as_int(axis), max(1, ndim_of(a)))
    attrs |= {"axis": where} if where else {}
    return inputs, attrs | keyword_operands(inputs, p=p)


def _bind_permutation(generator: Any, /, x: Any, axis: Any = 0) -> Bound:
    if ndim_of(x) == 0:
        return [generator], {"method": "permutation", "n": as_size(x)}
    where = normalize_axis(as_int(axis), ndim_of(x))
    return [generator, x], {"method": "permutation"} | ({"axis": where} if where else {})


def _bind_permuted(generator: Any, /, x: Any, *, axis: Any = None) -> Bound:
    where = None if axis is None else normalize_axis(as_int(axis), ndim_of(x))
    return [generator, x], {"method": "permuted"} | optional(axis=where)


def _bind_shuffle(generator: Any, /, x: Any, axis: Any = 0) -> Bound:
    where = normalize_axis(as_int(axis), ndim_of(x))
    return [generator, x], {"method": "shuffle"} | ({"axis": where} if where else {})


def _bind_multinomial(generator: Any, /, n: Any, pvals: Any, size: Any = None) -> Bound:
    return [generator, n, pvals], {"method": "multinomial"} | _size_attr(size)


def _bind_dirichlet(generator: Any, /, alpha: Any, size: Any = None) -> Bound:
    return [generator, alpha], {"method": "dirichlet"} | _size_attr(size)


DRAWS: dict[str, Callable[..., Bound]] = {
    method: _binding(method, distribution) for method, distribution in DISTRIBUTIONS.items()
} | {
    "integers": _bind_integers,
    "choice": _bind_choice,
    "permutation": _bind_permutation,
    "permuted": _bind_permuted,
    "multinomial": _bind_multinomial,
    "dirichlet": _bind_dirichlet,
}
DRAWS_IN_PLACE: dict[str, Callable[..., Bound]] = {"shuffle": _bind_shuffle}
"""Methods that change their first argument: the draw gives its new contents."""


def _bind_draw(generator: Any, method: str, *args: Any, **kwargs: Any) -> Bound:
    return DRAWS[method](generator, *args, **kwargs)


def _vjp_draw(d: Derivation, *inputs: Term) -> tuple[None, ...]:
    """What is drawn does not depend on the parameters; what is drawn from does not get lost."""
    method: str = d.attrs["method"]
    if method in ("choice", "permutation", "permuted", "shuffle") and d.needs[1]:
        raise d.unsupported(f"Generator.{method} of an array", "x[rng.permutation(len(x))]")
    return ZERO(d, *inputs)


def _sample_draw(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    def generator() -> np.random.Generator:
        return np.random.default_rng(7)

    x = array(rng, dtype, 4, 3)
    chances = np.array([0.25, 0.5, 0.25])
    samples = [
        _bind_choice(generator(), x, 5, p=np.full(4, 0.25)),
        _bind_choice(generator(), x, 3, False, axis=1),
        _bind_choice(generator(), x),
        _bind_choice(generator(), 5),
        _bind_choice(generator(), 5, (2, 2)),
        _bind_permutation(generator(), x),
        _bind_permutation(generator(), x, 1),
        _bind_permutation(generator(), 6),
        _bind_permuted(generator(), x, axis=1),
        _bind_permuted(generator(), x),
        _bind_shuffle(generator(), x),
        _bind_shuffle(generator(), x, 1),
        _bind_multinomial(generator(), 10, chances),
        _bind_multinomial(generator(), np.array([[3], [4]]), chances, (5, 2, 1)),
        _bind_dirichlet(generator(), chances),
        _bind_dirichlet(generator(), chances, (2, 2)),
        _bind_integers(generator(), 5),
        _bind_integers(generator(), 2, 9, (3,), endpoint=True),
        _bind_integers(generator(), 0, np.array([2, 9])),
        DRAWS["normal"](generator(), array(rng, dtype, 3), 2.0, (2, 3)),
        DRAWS["normal"](generator(), array(rng, dtype, 3)),
        DRAWS["normal"](generator(), array(rng, dtype)),
    ]
    if dtype.kind in "iu":
        samples.append(_bind_integers(generator(), 5, size=4, dtype=dtype))
    for method, distribution in DISTRIBUTIONS.items():
        for options in ({}, {"size": ()}, {"size": (2, 3)}):
            samples.append(DRAWS[method](generator(), *distribution.probe, **options))
        if distribution.dtypes and method != "integers":
            samples.append(DRAWS[method](generator(), *distribution.probe, dtype=np.float32))
    return samples


declare(
    Op(
        "draw",
        "random",
        _infer_draw,
        run_draw,
        effect="random",
        bind=_bind_draw,
        vjp=_vjp_draw,
        sample=_sample_draw,
        doc="a draw from a random generator",
    )
)


def _infer_default_rng(types: Sequence[Type], attrs: Attrs) -> Type:
    return GENERATOR


def _bind_default_rng(seed: Any = None) -> Bound:
    if seed is None:
        return [], {}
    if isinstance(seed, np.ndarray):
        seed = seed.tolist()
    items = items_of(seed)
    if items is not None:
        return [], {"seed": tuple(as_int(item) for item in items)}
    try:
        return [], {"seed": as_int(seed)}
    except DtypeError as error:
        raise UnsupportedError(
            f"a generator made from {type(seed).__name__} inside the traced function",
            instead="a generator made outside, or an integer seed",
        ) from error


declare(
    Op(
        "default_rng",
        "random",
        _infer_default_rng,
        "random.default_rng",
        effect="random",
        records=("random.default_rng",),
        bind=_bind_default_rng,
        sample=lambda rng, dtype: [_bind_default_rng(3), _bind_default_rng([1, 2])],
        doc="np.random.default_rng",
    )
)
