"""A small recording NumPy, without a tracer: every call is bound, inferred, evaluated, checked."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from ops.nodes import node_of

from minigraph import ops
from minigraph.ir import OPERAND, ArrayType, type_of
from minigraph.ops import OPS, RECORDED
from minigraph.trace.composites import COMPOSITES


class Box:
    """An array that only recorded functions can work with."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.shape, self.ndim = np.shape(value), np.ndim(value)
        self.dtype = np.asarray(value).dtype

    def __getitem__(self, index: Any) -> Any:
        op, inputs, attrs = ops.bind_getitem(self, index)
        return apply(op, inputs, attrs)

    def __setitem__(self, index: Any, value: Any) -> None:
        inputs, attrs = ops.bind_setitem(self, index, value)
        self.value = apply(OPS["update"], inputs, attrs).value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if isinstance(getattr(np.ndarray, name), property) or name in ("T", "mT", "real", "imag"):
            return call(f"ndarray.{name}", self)
        known = f"ndarray.{name}" in RECORDED or f"ndarray.{name}" in COMPOSITES
        return lambda *args, **kwargs: call(
            f"ndarray.{name}" if known else name, self, *args, **kwargs
        )


def apply(op: Any, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    """Infer and evaluate, and hold the one against the other."""
    values = [unboxed(x) for x in inputs]
    node = node_of(op, [type_of(x) for x in values], attrs)
    with np.errstate(all="ignore"):
        results = ops.evaluate_node(node, values)
    for result, output in zip(results, node.outputs, strict=True):
        assert type_of(result) == output.type, (node, result)
    boxed = tuple(
        Box(result) if isinstance(output.type, ArrayType) else result
        for result, output in zip(results, node.outputs, strict=True)
    )
    return boxed[0] if len(boxed) == 1 else boxed


def unboxed(x: Any) -> Any:
    if isinstance(x, Box):
        return x.value
    if isinstance(x, tuple | list):
        found = [unboxed(item) for item in x]
        return np.asarray(found) if isinstance(x, list) else tuple(found)
    return x


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    if name in ("asarray", "asanyarray"):
        return args[0] if isinstance(args[0], Box) else Box(np.asarray(unboxed(args[0])))
    if name == "ndarray.astype":
        name = "astype"
    if name not in RECORDED and name in COMPOSITES:
        return COMPOSITES[name](NUMPY, *args, **kwargs)
    op = RECORDED[name]
    if op.bind is None:
        dtype = kwargs.pop("dtype", None)
        return apply(op, list(args), {} if dtype is None else {"dtype": np.dtype(dtype)})
    inputs, attrs = op.bind(*args, **kwargs)
    return apply(op, inputs, attrs)


class Namespace:
    """`np.<name>`, recorded."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name in ("linalg", "random"):
            return Namespace(f"{name}.")
        if name in ("finfo", "iinfo", "pi", "newaxis", "inf", "nan"):
            return getattr(np, name)
        return lambda *args, **kwargs: call(self.prefix + name, *args, **kwargs)


NUMPY = Namespace()


def _binary(op_name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    if reflected:
        return lambda self, other: apply(OPS[op_name], [other, self], {})
    return lambda self, other: apply(OPS[op_name], [self, other], {})


for _python, _op in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "matmul": "matmul",
    "pow": "pow",
    "gt": "greater",
}.items():
    assert hasattr(operator, f"__{_python}__")
    setattr(Box, f"__{_python}__", _binary(_op, False))
    if _python != "gt":
        setattr(Box, f"__r{_python}__", _binary(_op, True))
Box.__eq__ = _binary("equal", False)  # type: ignore[assignment, method-assign]
Box.__hash__ = object.__hash__  # type: ignore[method-assign]
assert OPERAND is not None
