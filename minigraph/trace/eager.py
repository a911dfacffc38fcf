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
    RecordError,
    ShapeError,
    SignatureError,
    StateError,
    TracerLeakError,
    freed,
    unrecorded,
    written_since,
)
from minigraph.ir import ArrayType, Node, Value

from .arrays import TracedArray, fit, record, wrap
from .leaves import without_gradient
from .operands import cast, operand
from .recording import Recording, Storage
from .views import Layout


class TracedAttached:
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
        """The same memory, through which no gradient flows."""
        return without_gradient(self)

    # ---- gradients -------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write") -> None:
        """Give the array a gradient for the time of the trace.

        Raises:
            StateError: the array is not the trace's own.
        """
        self.attach_to_(None, grad_req)

    def attach_to_(self, grad: Any, req: str) -> None:
        """Attach a gradient that lies in a given array (None: a new one)."""
        recording, storage = self.recording_, self.storage_
        outside = storage.source is not None and not self.path_
        if outside or not isinstance(grad, TracedArray | None):
            raise StateError(
                "a gradient was attached to an array from outside while tracing",
                where=recording.here(),
                instead="x.attach_grad() before the call",
            )
        (value,) = recording.emit(ops.get("stop_gradient"), (self.value_,), {})  # nothing before it
        if self.path_:
            self.storage_ = Storage(value)
            self.path_ = ()
            self.storage_.doubt = storage.doubt = (
                "an array shares its memory with one that has a gradient of its own"
            )
        else:
            if recording.sections:
                recording.sections[-1].note(storage)
            storage.value, storage.past = value, ()
            storage.version += 1
        self.cached_, self.seen_ = value, self.storage_.version
        if grad is None and req != "null":
            grad = _filled(recording, self.type_, 0)
        recording.leaves[self.storage_] = TracedAttached(self, req, grad)

    def _leaf(self) -> TracedAttached | None:
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


def leaf_of(recording: Recording, array: TracedArray) -> TracedAttached | None:
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
            known = recording.leaves[storage] = TracedAttached(array, holder.grad_req, gradient)
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
    taped = recording.taped
    cotangents = _starts(recording, heads, head_gradients, taped)
    leaves = [leaf for leaf in _leaves(recording) if leaf.req != "null"]
    versions = [_versions(leaf.array) for leaf in leaves]
    if not _between(taped, sum(versions, ()), cotangents):
        raise unrecorded(recording.here())
    found = _derive(recording, taped, cotangents, versions, retain_graph)
    for leaf, parts in zip(leaves, found, strict=True):
        value = _sum(recording, parts)
        if value is not None:
            _store(recording, leaf, _as_constant(recording, value))


def _versions(array: TracedArray) -> tuple[Value, ...]:
    """What an array is now, and was before it was written outside of the record."""
    if array.path_:
        return (array.cached_,)
    return (array.value_, *array.storage_.past)


def _derive(
    recording: Recording,
    taped: Sequence[Node],
    cotangents: Mapping[Value, Value],
    wanted: Sequence[tuple[Value, ...]],
    retain_graph: bool,
) -> list[list[Value]]:
    """The gradients by these arrays: for each those by all versions that have one."""
    assert recording.mode is not None
    flat = sum(wanted, ())
    _free(recording, _between(taped, flat, cotangents), retain_graph)
    count = len(recording.nodes)
    found = recording.mode.derive(recording, taped, cotangents, flat, recording.untaped)
    _check_overwritten(recording, count, found)
    parts = iter(found)
    each = [[next(parts) for _ in versions] for versions in wanted]
    return [[part for part in parts if part is not None] for parts in each]


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
                raise written_since(places[value])


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
        RecordError: a variable has no gradient attached and was not recorded; or as `backward`.
        FreedError: as `backward`.
    """
    recording = heads[0].recording_
    taped, count = recording.taped, len(recording.nodes)
    cotangents = _starts(recording, heads, head_gradients, taped)
    made = {value for node in taped for value in node.outputs}
    wanted = [_occurrences(recording, variable, made) for variable in variables]
    found = _derive(recording, taped, cotangents, wanted, retain_graph)
    sums = [_sum(recording, parts) for parts in found]
    if create_graph:
        recording.untaped.difference_update(recording.nodes[count:])
    return [
        _filled(recording, variable.type_, 0)
        if value is None
        else wrap(
            recording,
            value if create_graph else _as_constant(recording, value),
            variable.layout_,
        )
        for variable, value in zip(variables, sums, strict=True)
    ]


def _occurrences(recording: Recording, variable: Any, made: set[Value]) -> tuple[Value, ...]:
    """The values of an array that gradients are asked by.

    Raises:
        RecordError: none is asked for by `attach_grad`, and it was not recorded.
    """
    if isinstance(variable, TracedArray):
        versions = _versions(variable)
        holder = recording.holders.get(variable.storage_.source)  # type: ignore[arg-type]
        if (
            not made.isdisjoint(versions)
            or leaf_of(recording, variable) is not None
            or (not variable.path_ and holder is not None and recording.is_tracked(holder))
        ):
            return versions
    else:
        recording.eager_value(variable)  # raises if it has a gradient attached
    raise RecordError(
        "the gradient by an array that has no gradient attached and was not recorded",
        where=recording.here(),
        instead="x.attach_grad() before it is used, outside if the array comes from there",
    )


def _sum(recording: Recording, parts: Sequence[Value]) -> Value | None:
    """The sum of gradients by one array; None: there are none."""
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        (total,) = recording.emit(ops.get("add"), (total, part), {})
    return total


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
    if len(heads) != len(head_gradients):
        raise SignatureError(
            f"{len(heads)} arrays and {len(head_gradients)} gradients", instead="one each"
        )
    made = {value for node in taped for value in node.outputs}
    cotangents: dict[Value, Value] = {}
    for head, gradient in zip(heads, head_gradients, strict=True):
        if head.value_ not in made:
            raise unrecorded(recording.here())
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
            raise freed(node.loc)
    if not retain_graph:
        recording.freed.update(nodes)


def _leaves(recording: Recording) -> list[TracedAttached]:
    for array in recording.captures:
        leaf_of(recording, array)
    return list(recording.leaves.values())


def _head(recording: Recording, head: TracedArray, gradient: Any) -> Value:
    """The gradient to start from; ones if none is given."""
    type_ = head.type_
    if gradient is None:
        return _filled(recording, type_, 1).value_
    value = cast(recording, operand(recording, gradient), type_.dtype)
    shape = value.type.shape if isinstance(value.type, ArrayType) else ()
    if shape != type_.shape:
        raise ShapeError(
            f"the gradient by an array of shape {type_.shape} has that shape, not {shape}",
            where=recording.here(),
        )
    return fit(recording, value, type_)


def _store(recording: Recording, leaf: TracedAttached, value: Value) -> None:
    gradient = leaf.gradient
    assert gradient is not None
    assert isinstance(value.type, ArrayType)
    new = wrap(recording, value, gradient.layout_)
    if leaf.req == "add":
        new = record(ops.get("add"), [gradient, new], {}, recording)
    gradient.update_in_place_(new)
    leaf.fresh = True
