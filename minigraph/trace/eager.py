"""Traced arrays that stand for eager arrays: what `mg.Array` has beyond ndarrays.

In a trace on eager arrays every traced array claims to be one, those without axes too.  Gradients
are recorded: `y.backward()` adds the nodes that compute them, and stores into the memory of the
gradients that are attached to captured arrays, as it does eagerly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import (
    FreedError,
    RecordedWriteError,
    RecordError,
    StateError,
    TracerLeakError,
)
from minigraph.ir import ArrayType, Node, Value

from .arrays import TracedArray, fit, record, wrap
from .operands import cast, operand
from .recording import Recording
from .views import Layout


class Leaf:
    """A traced array with a gradient attached.

    Attributes:
        array: the traced array; req: "write", "add" or "null".
        gradient: what stands for its gradient.
        fresh: a gradient was stored and not used since; None: nobody has asked or stored one.
    """

    __slots__ = ("array", "fresh", "gradient", "req")

    def __init__(self, array: TracedArray, req: str, gradient: TracedArray | None) -> None:
        self.array = array
        self.req = req
        self.gradient = gradient
        self.fresh: bool | None = None


class TracedEager(TracedArray):
    """An eager array that is being described."""

    __slots__ = ()

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return self.recording_.arrays

    def __getattr__(self, name: str) -> Any:
        kind = self.recording_.arrays
        if not hasattr(kind, name):
            raise AttributeError(f"'{kind.__name__}' object has no attribute '{name}'")
        return super().__getattr__(name)

    @property
    def __round__(self) -> Any:
        return self._round

    def asnumpy(self) -> Any:
        """The numbers, where they are known while tracing.

        Raises:
            TracerLeakError: they are not.
        """
        if self.recording_.is_known(self.value_):
            return np.array(self.recording_.force(self.value_, ".asnumpy()"))
        raise TracerLeakError(
            ".asnumpy() takes the numbers out, and while tracing there are none "
            f"(%{self.value_.name}: {self.type_})",
            where=self.recording_.here(),
            instead="NumPy functions of the array itself, or .asnumpy() on what the call returns",
        )

    def detach(self) -> TracedArray:
        """The same numbers, through which no gradient flows."""
        return record(ops.get("stop_gradient"), [self], {}, self.recording_)

    # ---- gradients -------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write") -> None:
        """Give the array a gradient for the time of the trace.

        Raises:
            StateError: the array is not the trace's own.
        """
        if self.storage_.source is not None:
            raise StateError(
                "a gradient was attached to an array from outside while tracing",
                where=self.recording_.here(),
                instead="x.attach_grad() before the call",
            )
        gradient = None if grad_req == "null" else _filled(self.recording_, self.type_, 0)
        self.recording_.leaves[self.storage_] = Leaf(self, grad_req, gradient)

    def _leaf(self) -> Leaf | None:
        return leaf_of(self.recording_, self)

    @property
    def grad(self) -> TracedArray | None:
        leaf = self._leaf()
        return leaf.gradient if leaf else None

    @property
    def grad_req(self) -> str | None:
        leaf = self._leaf()
        return leaf.req if leaf else None

    @property
    def fresh_grad(self) -> bool:
        """`backward` has stored a gradient that was not used since."""
        leaf = self._leaf()
        if leaf is None:
            return False
        if leaf.fresh is None:
            source = self.storage_.source
            holder = self.recording_.holders.get(source)  # type: ignore[arg-type]
            leaf.fresh = holder is not None and self.recording_.reach.guard_fresh(source, holder)
        return bool(leaf.fresh)

    @fresh_grad.setter
    def fresh_grad(self, fresh: bool) -> None:
        leaf = self._leaf()
        if leaf is not None:
            leaf.fresh = fresh

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "fresh_grad":
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def backward(self, head_gradient: Any = None, retain_graph: bool = False) -> None:
        """Record the gradients of all arrays that have one attached, and store them.

        Raises:
            RecordError: the array does not come from recorded operations.
        """
        backward([self], [head_gradient], retain_graph=retain_graph)


def leaf_of(recording: Recording, array: TracedArray) -> Leaf | None:
    """What is known of the gradient of an array; None: it has none."""
    storage = array.storage_
    if array.path_:
        return None
    known = recording.leaves.get(storage)
    if known is None and storage.source in recording.holders:
        holder = recording.holders[storage.source]
        recording.reach.guard_request(storage.source, holder)
        if holder.grad is not None:
            gradient = recording.reach.gradient(storage.source, holder)
            known = recording.leaves[storage] = Leaf(array, holder.grad_req, gradient)
    return known


def backward(
    heads: Sequence[TracedArray], head_gradients: Sequence[Any], *, retain_graph: bool = False
) -> None:
    """Record and store the gradients of the sum of these arrays.

    Raises:
        RecordError: one does not come from recorded operations.
        FreedError: an earlier `backward` went through some of them.
    """
    recording = heads[0].recording_
    assert recording.mode is not None
    taped = recording.taped
    cotangents = _starts(recording, heads, head_gradients, taped)
    leaves = [leaf for leaf in _leaves(recording) if leaf.req != "null"]
    values = [(leaf.array.value_, *leaf.array.storage_.past) for leaf in leaves]
    found = iter(_derive(recording, taped, cotangents, sum(values, ()), retain_graph))
    for leaf, versions in zip(leaves, values, strict=True):
        for _ in versions:
            value = next(found)
            if value is not None:
                _store(recording, leaf, _as_constant(recording, value))


def _derive(
    recording: Recording,
    taped: Sequence[Node],
    cotangents: Mapping[Value, Value],
    wanted: Sequence[Value],
    retain_graph: bool,
) -> list[Value | None]:
    """The gradients by these values."""
    assert recording.mode is not None
    between = _between(taped, wanted, cotangents)
    if not between:
        raise _unrecorded(recording)
    _free(recording, between, retain_graph)
    count = len(recording.nodes)
    found = recording.mode.derive(recording, taped, cotangents, wanted)
    _check_overwritten(recording, count, found)
    return found


def _check_overwritten(recording: Recording, count: int, gradients: Iterable[Value | None]) -> None:
    """These gradients, recorded from the node `count` on, need nothing as it was before a write.

    Raises:
        RecordedWriteError: one does.
    """
    if not recording.overwritten:
        return
    places = dict(recording.overwritten)
    for node in recording.nodes:
        if node.op.view and node.inputs[0] in places:
            places.setdefault(node.output, places[node.inputs[0]])
    needed = set(gradients)
    for node in reversed(recording.nodes[count:]):
        if needed.isdisjoint(node.outputs):
            continue
        needed.update(node.inputs)
        for value in node.inputs:
            if value in places:
                raise RecordedWriteError(
                    "an array was written since, and the gradient needs it as it was",
                    where=places[value],
                    instead="write into a .copy() of it, or after `backward`",
                )


def _unrecorded(recording: Recording) -> RecordError:
    return RecordError(
        "backward of an array that was not recorded",
        where=recording.here(),
        instead="compute it inside `with autograd.record():`, from arrays with x.attach_grad()",
    )


def gradients(
    heads: Sequence[TracedArray],
    head_gradients: Sequence[Any],
    variables: Sequence[TracedArray],
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> list[TracedArray]:
    """Record the gradients of the sum of these arrays by others, as new arrays.

    Args:
        heads: the arrays.
        head_gradients: the gradient by each (None: ones).
        variables: the others.
        retain_graph: what was recorded can be used again.
        create_graph: the gradients can be differentiated, too.

    Raises:
        RecordError, FreedError: as `backward`.
    """
    recording = heads[0].recording_
    assert recording.mode is not None
    taped, count = recording.taped, len(recording.nodes)
    cotangents = _starts(recording, heads, head_gradients, taped)
    wanted = [variable.value_ for variable in variables]
    _free(recording, _between(taped, wanted, cotangents), retain_graph)
    found = recording.mode.derive(recording, taped, cotangents, wanted)
    if create_graph:
        recording.untaped.difference_update(recording.nodes[count:])
    else:
        found = [value and _as_constant(recording, value) for value in found]
    return [
        _filled(recording, variable.type_, 0)
        if value is None
        else wrap(recording, value, variable.layout_)
        for variable, value in zip(variables, found, strict=True)
    ]


def _as_constant(recording: Recording, gradient: Value) -> Value:
    """A gradient that is not differentiated in turn."""
    return recording.emit(ops.get("stop_gradient"), (gradient,), {}, checked=True)[0]


def _filled(recording: Recording, type_: ArrayType, number: int) -> TracedArray:
    attrs = {"shape": type_.shape, "dtype": type_.dtype}
    inputs = (recording.constant(number),)
    (value,) = recording.emit(ops.get("full"), inputs, attrs, checked=True)
    return wrap(recording, value, Layout(type_.shape, True))


def _starts(
    recording: Recording,
    heads: Sequence[TracedArray],
    head_gradients: Sequence[Any],
    taped: Sequence[Node],
) -> dict[Value, Value]:
    """The gradients to start from, by value."""
    made = {value for node in taped for value in node.outputs}
    cotangents: dict[Value, Value] = {}
    for head, gradient in zip(heads, head_gradients, strict=True):
        if head.value_ not in made:
            raise _unrecorded(recording)
        given = _head(recording, head, gradient)
        before = cotangents.get(head.value_)
        if before is not None:
            (given,) = recording.emit(ops.get("add"), (before, given), {})
        cotangents[head.value_] = given
    return cotangents


def _between(
    nodes: Sequence[Node], sources: Iterable[Value], targets: Iterable[Value]
) -> list[Node]:
    """The nodes on the ways from the sources to the targets."""
    reached, needed = set(sources), set(targets)
    after: list[Node] = []
    for node in nodes:
        if not reached.isdisjoint(node.inputs):
            reached.update(node.outputs)
            after.append(node)
    found: list[Node] = []
    for node in reversed(after):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            found.append(node)
    return found


def _free(recording: Recording, nodes: Sequence[Node], retain_graph: bool) -> None:
    """A record can be used once, as eagerly."""
    for node in nodes:
        if node in recording.freed:
            raise FreedError(
                "backward through operations whose record is freed: an earlier backward went "
                "through them",
                where=node.loc,
                instead="first.backward(retain_graph=True)",
            )
    if not retain_graph:
        recording.freed.update(nodes)


def _leaves(recording: Recording) -> list[Leaf]:
    for array in recording.captures:
        leaf_of(recording, array)
    return list(recording.leaves.values())


def _head(recording: Recording, head: TracedArray, gradient: Any) -> Value:
    """The gradient to start from; ones if none is given."""
    type_ = head.type_
    if gradient is None:
        return _filled(recording, type_, 1).value_
    value = cast(recording, operand(recording, gradient), type_.dtype)
    return fit(recording, value, type_)


def _store(recording: Recording, leaf: Leaf, value: Value) -> None:
    gradient = leaf.gradient
    assert gradient is not None
    assert isinstance(value.type, ArrayType)
    new = wrap(recording, value, gradient.layout_)
    if leaf.req == "add":
        new = record(ops.get("add"), [gradient, new], {}, recording)
    gradient.update_in_place_(new)
    leaf.fresh = True
