"""Networks as files without code: `net.export(path)`, and `mg.load(path)`, which needs no class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minigraph import autograd
from minigraph.array import Array
from minigraph.engine import Options
from minigraph.entry import flat_inputs
from minigraph.errors import FormatError, MinigraphError
from minigraph.formats import write_archive
from minigraph.ir import ArrayType, Branch, Leaf, Tree, dim, is_container, items, unflatten, walk
from minigraph.jit import HybridFunction
from minigraph.trace import Spec, Trace, bind

if TYPE_CHECKING:
    from .hybrid import HybridBlock

LEARNED = "learned"
"""The note of an archive that lists the arrays that have a gradient."""


def export(block: HybridBlock, path: str | os.PathLike[str], example: Sequence[Any]) -> None:
    """Write what a block computes when it predicts, with all its arrays.

    Args:
        block: initialized.
        path: the file.
        example: arguments, or `Spec`s of them; none: those of the last compiled call.

    Raises:
        FormatError: there is no example, or the code needs the value of a number.
    """
    static = block._options.get("static", ())
    engine = HybridFunction(block, {"backend": "null", "static": static})
    with autograd.pause(train_mode=False):
        arguments = (
            _with_names(bind(engine.function, example, {}), Options(block._options).dynamic)
            if example
            else _last_arguments(block)
        )
        trace = _traced(engine, arguments)
    if trace.guards.pinned:
        raise FormatError(
            f"the value of {trace.guards.pinned[0].text} was needed while tracing, and the file "
            "would hold the program for this one alone",
            instead="net.hybridize(static=[its name]) before: a loaded network takes only this "
            "value then",
        )
    for node in walk(trace.graph):
        if node.op.effect == "call":
            raise FormatError(
                "the network calls a Python function here, and the file holds no code",
                where=node.loc,
                instead="do it outside of the network; or leave mg.ignore out",
            )
    captures = trace.graph.signature.captures
    start = len(trace.graph.inputs) - len(captures)
    inputs = flat_inputs(trace, arguments)[start:]
    arrays = {
        name: array
        for name, array in zip(captures, inputs, strict=True)
        if isinstance(array, np.ndarray | np.generic)
    }
    learned = {id(p.data().data_) for p in block.collect_params().values() if p.grad_req != "null"}
    notes = {LEARNED: [name for name, array in arrays.items() if id(array) in learned]}
    write_archive(path, trace.graph, {n: np.asarray(a) for n, a in arrays.items()}, notes)


def _with_names(
    arguments: Mapping[str, Any], dynamic: Mapping[str, Mapping[int, Any]]
) -> Mapping[str, Any]:
    """The arguments; arrays with axes that the block names are described."""
    named = dict(arguments)
    for name, axes in dynamic.items():
        array = arguments.get(name)
        if isinstance(array, np.ndarray | Array):
            sizes = dict(enumerate(array.shape)) | {at % array.ndim: n for at, n in axes.items()}
            named[name] = Spec(tuple(sizes.values()), array.dtype)
    return named


def _last_arguments(block: HybridBlock) -> Mapping[str, Any]:
    """Descriptions of the arguments of the last compiled call."""
    entries = block._engine.entries() if block._engine is not None else []
    if not entries:
        raise FormatError(
            f"{type(block).__name__} has not been traced yet, so there is nothing to export",
            instead="net.hybridize() and one call, or net.export(path, x) with an example",
        )
    graph = entries[0].trace.graph
    leaves = iter(graph.inputs)

    def described(tree: Tree) -> Iterator[Any]:
        if isinstance(tree, Leaf):
            type_ = next(leaves).type
            if not isinstance(type_, ArrayType):
                raise FormatError(
                    "the last call had a number among its arguments, whose value is not kept",
                    instead="net.export(path, *example)",
                )
            yield Spec(type_.shape, type_.dtype)
        elif isinstance(tree, Branch):
            for child in tree.children:
                yield from described(child)

    return {name: unflatten(tree, described(tree)) for name, tree in graph.signature.params}


def _traced(engine: HybridFunction, arguments: Mapping[str, Any]) -> Trace:
    """The trace for any size of the first axis that all arrays share, or else for just these."""
    batched = {name: _batched(value) for name, value in arguments.items()}
    firsts = {size for value in arguments.values() for size in _first_sizes(value)}
    if len(firsts) == 1 and all(isinstance(size, int) and size > 0 for size in firsts):
        try:
            return engine.trace(batched)
        except MinigraphError:
            pass  # the code needs the size, or cannot be traced at all: then the next line says so
    return engine.trace(arguments)


def _first_sizes(thing: Any) -> Iterator[Any]:
    """The extents of the first axes of all arrays in an argument (None: one has no axes)."""
    if is_container(thing):
        for _, child in items(thing):
            yield from _first_sizes(child)
    elif isinstance(thing, Spec) or hasattr(thing, "shape"):
        shape = thing.type.shape if isinstance(thing, Spec) else thing.shape
        yield shape[0] if shape else None


def _batched(thing: Any) -> Any:
    """Descriptions of the arrays in an argument, with a first axis of any size."""
    if isinstance(thing, Spec):
        return Spec((dim("batch"), *thing.type.shape[1:]), thing.type.dtype)
    if is_container(thing):
        kind = type(thing)
        keys = [key for key, _ in items(thing)]
        children = [_batched(child) for _, child in items(thing)]
        return unflatten(Branch(kind, keys, [Leaf()] * len(keys)), iter(children))
    if hasattr(thing, "shape") and thing.shape:
        return Spec((dim("batch"), *thing.shape[1:]), thing.dtype)
    return thing
