"""Blocks around a graph: a network without the code that made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from minigraph import ops, random
from minigraph.array import UNRECORDED, Array, wrap_all
from minigraph.errors import ParameterError, SignatureError
from minigraph.ir import GENERATOR, ArrayType, Graph, Value, flatten, unflatten
from minigraph.mode import MODE
from minigraph.trace import ACTIVE, Layout, Recording, Storage, TracedArray, TracedScalar

from .block import Block
from .hybrid import HybridBlock
from .parameter import Parameter


class SymbolBlock(HybridBlock):
    """A graph as a block: it can be called, trained, compiled, and be a child of others.

    Args:
        graph: takes the arguments, then what it captures.
        parameters: of each name among the graph's captures; generators are the library's own.

    Raises:
        ParameterError: a capture has no parameter, or one of another shape.
    """

    __slots__ = ()

    traced_covered_ = ("_parameters",)

    def __init__(self, graph: Graph, parameters: Mapping[str, Parameter]) -> None:
        super().__init__()
        self._graph = graph
        self._parameters = dict(parameters)
        self._captured = graph.inputs[len(graph.inputs) - len(graph.signature.captures) :]
        for name, value in zip(graph.signature.captures, self._captured, strict=True):
            if value.type is not GENERATOR:
                self._check(name, value)

    def _check(self, name: str, value: Value) -> None:
        parameter = self._parameters.get(name)
        if parameter is None:
            raise ParameterError(f"the graph captures {name}, for which no parameter is given")
        assert isinstance(value.type, ArrayType)
        if not parameter.takes_shape(value.type.shape):
            raise ParameterError(
                f"parameter {name} has shape {parameter.shape}, the graph takes {value.type.shape}"
            )

    def forward(self, *args: Any) -> Any:
        """The graph's outputs for these arguments."""
        signature = self._graph.signature
        leaves, tree = flatten(args, _is_leaf)
        expected = [param for _, param in signature.params]
        if list(getattr(tree, "children", ())) != expected:
            takes = ", ".join(f"{name}" for name, _ in signature.params)
            raise SignatureError(
                f"{self._graph.name} takes ({takes}), and was called with {len(args)} arguments of "
                "another structure"
            )
        arrays = [*leaves, *self._captures()]
        tape = MODE.get().tape
        outputs: Any = UNRECORDED
        if ACTIVE.get() is not None:
            outputs = self.replay(*arrays)
        elif tape is not None:
            outputs = tape.operate(self.replay, tuple(arrays), {})
        if outputs is UNRECORDED:
            data = [a.data_ if isinstance(a, Array) else a for a in arrays]
            outputs = wrap_all(ops.evaluate(self._graph, data))
        return unflatten(signature.result, iter(outputs))

    def replay(self, *arrays: Any) -> list[Any]:
        """Record the graph's nodes on traced arrays."""
        recorder: Any = ACTIVE.get()
        known: dict[Value, Value] = {}
        targets: dict[Value, Any] = {}
        for value, array in zip(self._graph.inputs, arrays, strict=True):
            traced = isinstance(array, TracedArray | TracedScalar) or value.type is GENERATOR
            known[value] = array.value_ if traced else recorder.constant(array)
            targets[value] = array
        for node in self._graph.nodes:
            inputs = [known[value] for value in node.inputs]
            if node.op.name == "write":
                targets[node.inputs[0]][...] = _shown(recorder, inputs[1])
                continue
            place = (node.loc, tuple(value.hint or "" for value in node.outputs))
            outputs = recorder.emit(node.op, inputs, node.attrs, place=place)
            known.update(zip(node.outputs, outputs, strict=True))
        return [_shown(recorder, known[value]) for value in self._graph.outputs]

    def _captures(self) -> Iterator[Any]:
        for name, value in zip(self._graph.signature.captures, self._captured, strict=True):
            if value.type is GENERATOR:
                yield random.generator()
            else:
                yield self._parameters[name].data()

    def _parts(self) -> Iterator[tuple[tuple[Any, ...], Block | Parameter]]:
        for keys, member in super()._parts():
            yield keys[1:] if keys[0] == "_parameters" else keys, member

    def extra_repr(self) -> str:
        return f"{self._graph.name}, {len(self._graph.nodes)} nodes"


def _is_leaf(thing: Any) -> bool:
    numbers = (bool, int, float, complex)
    return isinstance(thing, Array | TracedArray | TracedScalar) or type(thing) in numbers


def _shown(recorder: Recording, value: Value) -> Any:
    """A value of the recording as an array or number."""
    if isinstance(value.type, ArrayType):
        return TracedArray(recorder, Storage(value), (), Layout(value.type.shape, True))
    return TracedScalar(recorder, value)
