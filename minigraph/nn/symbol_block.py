"""Blocks around a graph: a network without the code that made it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import autograd, ops, random
from minigraph.array import Array, is_tracked, unwrap, wrap_all
from minigraph.engine import structure_text
from minigraph.errors import ParameterError, ShapeError, StructureError
from minigraph.grad import differentiable
from minigraph.ir import (
    GENERATOR,
    SCALARS,
    ArrayType,
    Branch,
    Dim,
    Graph,
    Leaf,
    Static,
    Tree,
    Value,
    flatten,
    leaf_count,
    type_of,
    unflatten,
)
from minigraph.mode import here
from minigraph.tape import Called, tape_of_thread, with_sizes
from minigraph.trace import ACTIVE, Recording, TracedScalar, standing_for

from .hybrid import HybridBlock
from .members import Members
from .parameter import Parameter


class SymbolBlock(HybridBlock):
    """A graph as a block: it can be called, trained, compiled, and be a child of others.

    Args:
        graph: takes the arguments, then what it captures.
        parameters: of each name among the graph's captures, as the graph has it
            ("self.layers[0].weight") or as `collect_params` does ("layers.0.weight"); generators
            are the library's own.

    Raises:
        ParameterError: a capture has no parameter, or one of another shape.
    """

    __slots__ = ()

    traced_covered_ = ("_parameters",)

    def __init__(self, graph: Graph, parameters: Mapping[str, Parameter]) -> None:
        super().__init__()
        self._graph = graph
        self._parameters = {parameter_name(name): p for name, p in parameters.items()}
        names = [parameter_name(name) for name in graph.signature.captures]
        self._arguments = graph.inputs[: len(graph.inputs) - len(names)]
        captured = graph.inputs[len(self._arguments) :]
        self._captured = tuple(zip(names, captured, strict=True))
        for name, value in self._captured:
            if value.type is not GENERATOR:
                self._check(name, value)
        self.hybridize()

    def _check(self, name: str, value: Value) -> None:
        parameter = self._parameters.get(name)
        if parameter is None:
            raise ParameterError(f"the graph captures {name}, for which no parameter is given")
        assert isinstance(value.type, ArrayType)
        if not parameter.takes_shape(value.type.shape):
            raise ParameterError(
                f"parameter {name} has shape {parameter.shape}, the graph takes {value.type.shape}"
            )

    # ---- calling ---------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The graph's outputs for these arguments.

        Raises:
            StructureError: they are nested in another way than the graph's, or named otherwise.
            ShapeError: one has another dtype or shape.
        """
        leaves = self._leaves(args, kwargs)
        arrays = [*leaves, *self._captures()]
        recording = ACTIVE.get()
        if recording is not None:
            outputs = self._record(recording, arrays)
        elif autograd.is_recording() and any(map(is_tracked, arrays)):
            outputs = self._compute_on_tape(arrays)
        else:
            outputs = wrap_all(ops.evaluate(self._graph, unwrap(arrays)))
        return unflatten(self._graph.signature.result, iter(outputs))

    def _leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments, in the order of the graph's inputs."""
        params = dict(self._graph.signature.params)
        given = dict(zip(params, args, strict=False)) | dict(kwargs)
        for name, tree in params.items():
            if not leaf_count(tree):
                given.setdefault(name, unflatten(tree, iter(())))
        leaves: list[Any] = []
        fits = len(args) <= len(params) and given.keys() == params.keys()
        if not fits or not all(
            _take(tree, _plain(given[name]), leaves) for name, tree in params.items()
        ):
            found = {name: _structure(thing) for name, thing in given.items()}
            raise StructureError(
                f"the arguments of {self._graph.name}: expected {structure_text(params)}, got "
                f"{structure_text(found)}",
                where=here(),
                instead="arguments nested as the graph's; what is no data has the same value",
            )
        for value, leaf in zip(self._arguments, leaves, strict=True):
            if not _fits(value, leaf):
                shown = getattr(leaf, "value_", None)
                found = shown.type if shown is not None else type_of(unwrap(leaf))
                raise ShapeError(
                    f"the argument {value.name} of {self._graph.name}: expected {value.type}, "
                    f"got {found}",
                    where=here(),
                    instead=_converted(value, found),
                )
        return leaves

    def _captures(self) -> Iterator[Any]:
        for name, value in self._captured:
            generator = value.type is GENERATOR
            yield random.generator() if generator else self._parameters[name].data()

    def _record(self, recording: Recording, arrays: Sequence[Any]) -> list[Any]:
        """Put the graph's nodes into a trace."""
        traced = [getattr(array, "value_", None) for array in arrays]
        given = [
            recording.constant(unwrap(array)) if value is None else value
            for array, value in zip(arrays, traced, strict=True)
        ]
        graph = _for_inputs(self._graph, given)
        known = dict(zip(graph.inputs, given, strict=True))
        targets = dict(zip(graph.inputs, arrays, strict=True))
        for node in graph.nodes:
            inputs = [known[value] for value in node.inputs]
            if node.op.name == "write":
                targets[node.inputs[0]][...] = standing_for(recording, inputs[1])
                continue
            place = (node.loc, tuple(value.hint or "" for value in node.outputs))
            outputs = recording.emit(node.op, inputs, node.attrs, place=place)
            known.update(zip(node.outputs, outputs, strict=True))
        return [standing_for(recording, known[value]) for value in graph.outputs]

    def _compute_on_tape(self, arrays: Sequence[Any]) -> list[Array]:
        """Run the graph node by node and put it on the tape as one."""
        floats = differentiable(self._graph.inputs)
        wanted = tuple(index for index in floats if is_tracked(arrays[index]))
        called = _called(self._graph, wanted)
        values = ops.evaluate(called.body, unwrap(arrays))
        return tape_of_thread().call(called, arrays, values)

    # ---- what it holds ---------------------------------------------------------------------

    def _parts(self) -> Iterator[tuple[tuple[Any, ...], Members | Parameter]]:
        for keys, member in super()._parts():
            yield keys[1:] if keys[0] == "_parameters" else keys, member

    def extra_repr(self) -> str:
        return f"{self._graph.name}, {len(self._graph.nodes)} nodes"


def parameter_name(path: str) -> str:
    """What `collect_params` calls a parameter that the graph captures by this path."""
    keys = re.findall(r"""[^.\[\]'"]+""", path)
    return ".".join(keys[1:] if keys[0] == "self" else keys)


def _for_inputs(graph: Graph, given: Sequence[Value]) -> Graph:
    """The graph with the sizes of these inputs in place of its named dimensions."""
    sizes = {
        str(size): extent
        for value, other in zip(graph.inputs, given, strict=True)
        if isinstance(value.type, ArrayType)
        for size, extent in zip(value.type.shape, other.shape, strict=True)
        if isinstance(size, Dim) and size.is_name
    }
    return with_sizes(graph, sizes) if sizes else graph


@functools.lru_cache(64)
def _called(graph: Graph, wanted: tuple[int, ...]) -> Called:
    """The graph as a program with gradients."""
    return Called.of(graph, wanted, "python")


def _take(tree: Tree, thing: Any, leaves: list[Any]) -> bool:
    """Append the data of an argument to the leaves; False if it is nested in another way."""
    if isinstance(tree, Leaf):
        leaves.append(thing)
        return _is_leaf(thing)
    if isinstance(thing, Array | np.ndarray):
        return False
    if isinstance(tree, Static):
        number = (
            thing.force_(f"the graph has {tree.text}") if type(thing) is TracedScalar else thing
        )
        return tree == Static(number)
    children, found = flatten(thing, lambda child: child is not thing)
    if not isinstance(found, Branch) or found != Branch(None, tree.keys, found.children, tree.name):
        return False
    return all(_take(*pair, leaves) for pair in zip(tree.children, children, strict=True))


def _structure(thing: Any) -> Tree:
    """How an argument is nested, for a message."""
    return flatten(_plain(thing), lambda part: _is_leaf(part) and type(part) is not bool)[1]


def _plain(thing: Any) -> Any:
    """Containers of arguments as they are outside of a trace."""
    if isinstance(thing, list):
        return [_plain(item) for item in thing]
    if isinstance(thing, dict):
        return {key: _plain(value) for key, value in thing.items()}
    return tuple(map(_plain, thing)) if type(thing) is tuple else thing


def _is_leaf(thing: Any) -> bool:
    return isinstance(thing, Array | np.ndarray | TracedScalar) or type(thing) in SCALARS


def _fits(value: Value, leaf: Any) -> bool:
    """An argument has the type that the graph was made for."""
    if not isinstance(value.type, ArrayType):
        return isinstance(leaf, TracedScalar) or SCALARS.get(type(leaf)) is value.type
    if not isinstance(leaf, Array | np.ndarray) or leaf.dtype != value.type.dtype:
        return False
    pairs = zip(value.type.shape, leaf.shape, strict=False)
    same = all(not isinstance(size, int) or size == extent for size, extent in pairs)
    return same and len(leaf.shape) == len(value.type.shape)


def _converted(value: Value, found: Any) -> str:
    """How an argument becomes what the graph takes, or how the graph comes to take it."""
    wanted = value.type
    if not isinstance(wanted, ArrayType):
        return f"a Python {wanted}"
    if not isinstance(found, ArrayType) or found.dtype != wanted.dtype or found.ndim != wanted.ndim:
        return f'x.astype("{wanted.dtype}") of shape ({", ".join(map(str, wanted.shape))})'
    sizes = [
        f'"axis_{at}"' if type(size) is int and size != found.shape[at] else _quoted(size)
        for at, size in enumerate(wanted.shape)
    ]
    spec = f'mg.Spec(({", ".join(sizes)}), "{wanted.dtype}")'
    return f"an array of that shape; a network exported with {spec} takes other sizes there"


def _quoted(size: Any) -> str:
    return f'"{size}"' if isinstance(size, Dim) else str(size)
