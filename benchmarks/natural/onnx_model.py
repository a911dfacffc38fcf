"""Models of ONNX, written as formulas: what is done with a `Value` becomes a node.

A `Model` also stands for `numpy` in the formulas of `formulas.py`.  All numbers of a model have one
type, that of its inputs; truth values become numbers where one calculates with them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
OPSET, IR_VERSION = 23, 11


class Model:
    """A graph under construction.

    Attributes:
        lines: name of a value → line of the file whose function computes it.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.lines: dict[str, int] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._constants: dict[str, Array] = {}
        self._nodes: list[onnx.NodeProto] = []

    def input(self, array: Array) -> Value:
        name = f"x{len(self._inputs)}"
        self._inputs.append(helper.make_tensor_value_info(name, _type_of(array), array.shape))
        return Value(self, name)

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A value that is part of the model: a parameter, a number, the indices of a slice."""
        array = np.ascontiguousarray(value, self.dtype if dtype is None else dtype)
        array = array.reshape(np.shape(value))
        name = f"c{len(self._constants)}"
        self._constants[name] = array
        return Value(self, name)

    def node(self, op: str, *inputs: Any, **attributes: Any) -> Value:
        """Add a node and return its first output; an input that is no value is a constant."""
        values = [each if isinstance(each, Value) else self.constant(each) for each in inputs]
        names = [each.name for each in values]
        name = f"{op.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, names, [name], **attributes))
        self.lines[name] = _line()
        return Value(self, name, op in COMPARISONS)

    def made(self, *results: Value) -> onnx.ModelProto:
        """The finished model."""
        outputs = [helper.make_empty_tensor_value_info(each.name) for each in results]
        constants = [numpy_helper.from_array(each, name) for name, each in self._constants.items()]
        graph = helper.make_graph(self._nodes, "workload", self._inputs, outputs, constants)
        opset = [helper.make_opsetid("", OPSET)]
        made = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
        made = onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)
        onnx.checker.check_model(made)
        return made

    # ---- as a namespace of functions of arrays -------------------------------------------------

    def abs(self, x: Value) -> Value:
        return self.node("Abs", x)

    def exp(self, x: Value) -> Value:
        return self.node("Exp", x)

    def log(self, x: Value) -> Value:
        return self.node("Log", x)

    def sqrt(self, x: Value) -> Value:
        return self.node("Sqrt", x)

    def tanh(self, x: Value) -> Value:
        return self.node("Tanh", x)

    def where(self, condition: Value, yes: Any, no: Any) -> Value:
        return self.node("Where", condition, yes, no)

    def zeros_like(self, x: Value) -> Value:
        return self.node("Expand", 0, self.node("Shape", x))


COMPARISONS = {"Less", "LessOrEqual"}


class Value:
    """What a node computes, an input or a constant; its operators add nodes."""

    def __init__(self, model: Model, name: str, is_truth: bool = False) -> None:
        self.model = model
        self.name = name
        self.is_truth = is_truth

    def _number(self) -> Value:
        to = helper.np_dtype_to_tensor_dtype(self.model.dtype)
        return self.model.node("Cast", self, to=to) if self.is_truth else self

    def _with(self, op: str, other: Any, swapped: bool = False) -> Value:
        other = other._number() if isinstance(other, Value) else self.model.constant(other)
        pair = (other, self._number()) if swapped else (self._number(), other)
        return self.model.node(op, *pair)

    def __add__(self, other: Any) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Any) -> Value:
        return self._with("Sub", other)

    def __mul__(self, other: Any) -> Value:
        return self._with("Mul", other)

    def __truediv__(self, other: Any) -> Value:
        return self._with("Div", other)

    def __pow__(self, other: Any) -> Value:
        return self._with("Pow", other)

    def __matmul__(self, other: Any) -> Value:
        return self._with("MatMul", other)

    def __radd__(self, other: Any) -> Value:
        return self._with("Add", other, swapped=True)

    def __rsub__(self, other: Any) -> Value:
        return self._with("Sub", other, swapped=True)

    def __rmul__(self, other: Any) -> Value:
        return self._with("Mul", other, swapped=True)

    def __rtruediv__(self, other: Any) -> Value:
        return self._with("Div", other, swapped=True)

    def __neg__(self) -> Value:
        return self.model.node("Neg", self)

    def __lt__(self, other: Any) -> Value:
        return self._with("Less", other)

    def __le__(self, other: Any) -> Value:
        return self._with("LessOrEqual", other)

    def __getitem__(self, key: Any) -> Value:
        """Slices without steps, and new axes."""
        key = key if isinstance(key, tuple) else (key,)
        found = self
        slices = [each for each in key if each is not None]
        cut = {axis: each for axis, each in enumerate(slices) if each != slice(None)}
        if cut:
            starts = [each.start or 0 for each in cut.values()]
            ends = [np.iinfo(np.int64).max if s.stop is None else s.stop for s in cut.values()]
            found = self.model.node("Slice", found, *map(self._integers, (starts, ends, [*cut])))
        axes = [axis for axis, each in enumerate(key) if each is None]
        return self.model.node("Unsqueeze", found, self._integers(axes)) if axes else found

    def sum(self, axis: int) -> Value:
        return self.model.node("ReduceSum", self, self._integers([axis]), keepdims=0)

    def max(self, axis: int) -> Value:
        return self.model.node("ReduceMax", self, self._integers([axis]), keepdims=0)

    def reshape(self, *shape: int) -> Value:
        return self.model.node("Reshape", self, self._integers(shape))

    def transpose(self, *axes: int) -> Value:
        return self.model.node("Transpose", self, perm=axes)

    def _integers(self, values: Sequence[int]) -> Value:
        return self.model.constant(values, np.int64)


def lines_of(text: str, lines: Mapping[str, int]) -> dict[int, list[int]]:
    """Line of the user's source → the lines of a model's text that compute a value of it."""
    found: dict[int, list[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for name in line.split(" = ")[0].replace(",", " ").split():
            if " = " in line and name in lines:
                found.setdefault(lines[name], []).append(number)
    return found


def _type_of(array: Array) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def _line() -> int:
    """The line of the first caller that is not in this file."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_lineno
