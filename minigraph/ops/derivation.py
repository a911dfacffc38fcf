"""How derivatives are written: the rule of an op takes a cotangent back through one node.

`Op.vjp` is a function of a `Derivation` (the node, and the cotangents of its outputs) and one
`Term` for each input; it gives one cotangent for each input:

    multiply:  lambda d, x, y: (d.g * y, d.g * x)
    exp:       lambda d, x: d.g * d.out

Terms are recorded as they are computed with, so a rule is itself made of ops, each of which has a
rule again.  A rule need not care for broadcasting and dtypes: what it gives is fitted to the input.
`None` stands for a cotangent of zeros; `ZERO` is the rule of what is constant piece by piece.

Conventions at edges: where several elements are the extreme, they share the cotangent equally; at a
kink the derivative is what lies in the middle (`absolute` at 0: 0); of a root it is infinite at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from minigraph.errors import UnsupportedError
from minigraph.ir import (
    FLOAT,
    OPERAND,
    ArrayType,
    Loc,
    Node,
    Op,
    ScalarType,
    Shape,
    Size,
    Type,
    Value,
    freeze,
)

from .registry import get
from .rules import array_type, reduced_shape

At = tuple[Loc | None, tuple[str, ...]]
FLOAT64 = np.dtype(np.float64)


class Builder(Protocol):
    """Whatever records nodes."""

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: At | None = None,
        checked: bool = False,
    ) -> tuple[Value, ...]: ...

    def constant(self, concrete: Any, place: At | None = None) -> Value: ...


class _Recorder:
    """What records ops for the place where the user wrote what they stand for."""

    __slots__ = ()

    builder: Builder
    place: At | None

    def op(self, name: str, *operands: TermLike, **attrs: Any) -> Term:
        """The one result of an op, which cannot fail where the node itself did not."""
        (found,) = record(self.builder, self.place, name, operands, attrs)
        return found


class Term(_Recorder):
    """A value to compute with: operators and methods record nodes.

    Attributes:
        builder: what records them.
        value: the value.
        place: where the user wrote what they stand for.
    """

    __slots__ = ("builder", "place", "value")

    def __init__(self, builder: Builder, value: Value, place: At | None = None) -> None:
        self.builder = builder
        self.value = value
        self.place = place

    def __repr__(self) -> str:
        return f"Term({self.value!r})"

    @property
    def type(self) -> Type:
        return self.value.type

    @property
    def shape(self) -> Shape:
        return array_type(self.type).shape

    @property
    def ndim(self) -> int:
        return array_type(self.type).ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return array_type(self.type).dtype

    @property
    def is_number(self) -> bool:
        """It is a Python number, and weak."""
        return isinstance(self.type, ScalarType)

    def __add__(self, other: TermLike) -> Term:
        return self.op("add", self, other)

    def __radd__(self, other: TermLike) -> Term:
        return self.op("add", other, self)

    def __sub__(self, other: TermLike) -> Term:
        return self.op("subtract", self, other)

    def __rsub__(self, other: TermLike) -> Term:
        return self.op("subtract", other, self)

    def __mul__(self, other: TermLike) -> Term:
        return self.op("multiply", self, other)

    def __rmul__(self, other: TermLike) -> Term:
        return self.op("multiply", other, self)

    def __truediv__(self, other: TermLike) -> Term:
        return self.op("divide", self, other)

    def __rtruediv__(self, other: TermLike) -> Term:
        return self.op("divide", other, self)

    def __floordiv__(self, other: TermLike) -> Term:
        return self.op("floor_divide", self, other)

    def __mod__(self, other: TermLike) -> Term:
        return self.op("remainder", self, other)

    def __pow__(self, other: TermLike) -> Term:
        return self.op("pow", self, other)

    def __rpow__(self, other: TermLike) -> Term:
        return self.op("pow", other, self)

    def __matmul__(self, other: TermLike) -> Term:
        return self.op("matmul", self, other)

    def __and__(self, other: TermLike) -> Term:
        return self.op("bitwise_and", self, other)

    def __or__(self, other: TermLike) -> Term:
        return self.op("bitwise_or", self, other)

    def __invert__(self) -> Term:
        return self.op("invert", self)

    def __neg__(self) -> Term:
        return self.op("negative", self)

    def __lt__(self, other: TermLike) -> Term:
        return self.op("less", self, other)

    def __le__(self, other: TermLike) -> Term:
        return self.op("less_equal", self, other)

    def __gt__(self, other: TermLike) -> Term:
        return self.op("greater", self, other)

    def __ge__(self, other: TermLike) -> Term:
        return self.op("greater_equal", self, other)

    def __eq__(self, other: TermLike) -> Term:  # type: ignore[override]
        return self.op("equal", self, other)

    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> Term:
        """Basic indexing."""
        entries: list[Any] = list(index) if isinstance(index, tuple) else [index]  # pyright: ignore[reportUnknownArgumentType]
        return self.op("slice", self, index=entries)

    @property
    def mT(self) -> Term:  # noqa: N802  NumPy's name
        """The last two axes exchanged."""
        return self.transpose((*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def sum(self, axis: Sequence[int] | None = None, keepdims: bool = False) -> Term:
        """The sum over sorted axes (None: all of them)."""
        axes = tuple(range(self.ndim)) if axis is None else tuple(axis)
        return self.op("sum", self, axis=axes, keepdims=keepdims) if axes else self

    def reshape(self, shape: Sequence[Size]) -> Term:
        shape = tuple(shape)
        return self if shape == self.shape else self.op("reshape", self, shape=shape)

    def transpose(self, axes: Sequence[int]) -> Term:
        axes = tuple(axes)
        return self if axes == tuple(range(self.ndim)) else self.op("transpose", self, axes=axes)

    def broadcast_to(self, shape: Sequence[Size]) -> Term:
        shape = tuple(shape)
        return self if shape == self.shape else self.op("broadcast_to", self, shape=shape)

    def cast(self, dtype: np.dtype[Any]) -> Term:
        """An array of this dtype."""
        same = isinstance(self.type, ArrayType) and self.type.dtype == dtype
        return self if same else self.op("cast", self, dtype=dtype)


TermLike = Term | bool | int | float | np.ndarray[Any, Any]
"""What a rule computes with; a Python number stays weak."""


def record(
    builder: Builder,
    place: At | None,
    name: str,
    operands: Sequence[TermLike],
    attrs: Mapping[str, Any],
    *,
    checked: bool = True,
) -> tuple[Term, ...]:
    """The results of one op.

    Args:
        builder: what records it.
        place: where the user wrote what it stands for.
        name: of the op.
        operands: its inputs.
        attrs: its metadata; what has its default value is left out.
        checked: it cannot fail where the node did not whose derivative this is.
    """
    op = get(name)
    inputs = [
        x.value if isinstance(x, Term) else builder.constant(x, place=place) for x in operands
    ]
    kept = {
        key: attr
        for key, attr in attrs.items()
        if key not in op.defaults or freeze(op.defaults[key]) != freeze(attr)
    }
    found = builder.emit(op, inputs, kept, place=place, checked=checked)
    return tuple(Term(builder, value, place) for value in found)


class Derivation(_Recorder):
    """One node, the cotangents of its outputs, and what a rule needs besides.

    Attributes:
        node: the node; attrs: its metadata.
        cotangents: of each output, None where nothing depends on it.
        inputs, outputs: their terms.
        named: the operands that NumPy takes by keyword.
        needs: for each input, whether its cotangent is asked for.
    """

    __slots__ = ("builder", "cotangents", "inputs", "named", "needs", "node", "outputs", "place")

    def __init__(
        self,
        builder: Builder,
        node: Node,
        cotangents: Sequence[Value | None],
        needs: Sequence[bool],
        place: At | None = None,
    ) -> None:
        self.builder = builder
        self.node = node
        self.needs = tuple(needs)
        self.place = place
        self.cotangents = tuple(None if g is None else self._term(g) for g in cotangents)
        self.inputs = tuple(map(self._term, node.inputs))
        self.outputs = tuple(map(self._term, node.outputs))
        names = [name for name, attr in node.attrs.items() if attr is OPERAND]
        self.named = dict(zip(names, self.inputs[len(self.inputs) - len(names) :], strict=True))

    def _term(self, value: Value) -> Term:
        return Term(self.builder, value, self.place)

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self.node.attrs

    @property
    def g(self) -> Term:
        """The cotangent of the one output."""
        (cotangent,) = self.cotangents
        assert cotangent is not None
        return cotangent

    @property
    def out(self) -> Term:
        """The one output."""
        (output,) = self.outputs
        return output

    def ops(
        self, name: str, *operands: TermLike, checked: bool = True, **attrs: Any
    ) -> tuple[Term, ...]:
        """The results of an op that has several, or that may fail (not `checked`)."""
        return record(self.builder, self.place, name, operands, attrs, checked=checked)

    def where(self, condition: TermLike, x: TermLike, y: TermLike) -> Term:
        return self.op("where", condition, x, y)

    def zeros(self, type_: Type) -> Term:
        """Zeros of the shape and dtype of a type."""
        like = array_type(type_)
        return self.op("zeros", shape=like.shape, dtype=like.dtype)

    def count(self, x: Term, axes: Sequence[int]) -> TermLike:
        """How many elements these axes hold: a Python number."""
        found: TermLike | None = None
        for axis in axes:
            extent = x.shape[axis]
            size = extent if isinstance(extent, int) else self.op("size", x, axis=axis)
            found = size if found is None else found * size
        return 1 if found is None else found

    def unreduced(self, reduced: Term, x: Term) -> Term:
        """What has one element for each reduction of `x`, with extent 1 on the reduced axes."""
        return reduced.reshape(reduced_shape(x.shape, self.attrs["axis"], True))

    def unsupported(self, what: str, instead: str = "") -> UnsupportedError:
        """The error that says what has no derivative."""
        return UnsupportedError(
            f"{what} has no derivative rule", where=self.node.loc, instead=instead
        )


def ZERO(d: Derivation, *inputs: Term) -> tuple[None, ...]:  # noqa: N802  a constant
    """The rule of what does not change where its inputs change a little."""
    return (None,) * len(inputs)


def SAME(d: Derivation, x: Term) -> Term:  # noqa: N802  a constant
    """The rule of what changes as its input does."""
    return d.g


def cotangent_type(type_: Type) -> ArrayType | None:
    """The type of a value's cotangent; None: it has none (integers, bools, generators)."""
    if type_ == FLOAT:
        return ArrayType(FLOAT64, ())
    return type_ if isinstance(type_, ArrayType) and type_.dtype.kind == "f" else None


def is_complex(type_: Type) -> bool:
    """Whether it holds complex numbers."""
    return isinstance(type_, ArrayType | ScalarType) and array_type(type_).dtype.kind == "c"


def fit(term: Term, type_: ArrayType) -> Term:
    """A cotangent as that of a value of this type: axes that were broadcast are summed."""
    missing = type_.ndim - term.ndim
    if missing > 0:
        term = term.reshape((*[1] * missing, *term.shape))
    extra = tuple(range(-missing))
    term = term.sum(extra)
    stretched = [
        axis
        for axis, (size, wanted) in enumerate(zip(term.shape, type_.shape, strict=True))
        if wanted == 1 and size != 1
    ]
    return term.sum(stretched, keepdims=True).broadcast_to(type_.shape).cast(type_.dtype)


def derive(
    builder: Builder,
    node: Node,
    cotangents: Sequence[Value | None],
    needs: Sequence[bool],
    place: At | None = None,
) -> list[Value | None]:
    """The cotangents of a node's inputs, by the rule of its op, each of its input's type.

    Args:
        builder: what records them.
        node: the node.
        cotangents: of its outputs, not all of them None.
        needs: the inputs for which they are asked.
        place: where the user wrote the node.

    Raises:
        UnsupportedError: the op has no rule (for these attrs), or the numbers are complex.
    """
    for value in (*node.inputs, *node.outputs):
        if is_complex(value.type):
            raise UnsupportedError(
                f"the derivative of {node.op.name} of complex numbers is not defined here",
                where=node.loc,
                instead="the real and the imaginary part as two arrays",
            )
    rule: Callable[..., Any] | None = node.op.vjp
    derivation = Derivation(builder, node, cotangents, needs, place)
    if rule is None:
        raise derivation.unsupported(node.op.name)
    terms = rule(derivation, *derivation.inputs)
    found: list[Value | None] = []
    for term, value, needed in zip(_each(terms), node.inputs, needs, strict=True):
        type_ = cotangent_type(value.type)
        if term is None or type_ is None or not needed:
            found.append(None)
        else:
            found.append(fit(term, type_).value)
    return found


def _each(terms: Any) -> tuple[Term | None, ...]:
    """What a rule gave: one cotangent, or one for each input."""
    return terms if isinstance(terms, tuple) else (terms,)  # pyright: ignore[reportUnknownVariableType]
