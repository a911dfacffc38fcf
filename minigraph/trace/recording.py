"""The recording in progress: nodes, inputs, constants, storage, and what the guard must check.

One `Recording` belongs to one thread (it is found through a `ContextVar`).  Values are recorded
through `emit`; everything that Python can only do with a definite number goes through `force`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from minigraph import ops
from minigraph.errors import (
    RAISED,
    BranchError,
    DimensionError,
    MinigraphError,
    SizeError,
    StateError,
    TracerLeakError,
    UnsupportedError,
    WriteError,
    written_leaf,
)
from minigraph.ir import (
    INT,
    ArrayType,
    Dim,
    Ids,
    Loc,
    Node,
    Op,
    ScalarType,
    Type,
    Value,
    freeze,
    undecidable,
    walk,
)

from .guards import Guards
from .handlers import is_caught
from .paths import Path
from .powers import with_result
from .source import Places
from .users import users_line

ACTIVE: ContextVar[Recording | None] = ContextVar("minigraph_recording", default=None)

KEEP = "keep the value in the graph with NumPy functions"
NODE_LIMIT = 100_000  # of a whole program, whose loops are unrolled


class Storage:
    """The memory of one array while tracing: writing replaces `value`.

    Attributes:
        value: the present contents.
        version: how often it was written.
        source: the input that this memory belongs to, if the caller can see it.
        writable: False for broadcast views and constants.
        doubt: why it is not known whether another name shares this memory ("": no doubt).
        past: what it held before each write outside of a record.
        layout_of: inputs on whose memory layout decisions about this memory were based.
        born: memories made later have higher numbers.
        shared: memories that may be this one: which branch was taken decides.
    """

    __slots__ = (
        "born",
        "dirty",
        "doubt",
        "layout_of",
        "past",
        "shared",
        "source",
        "value",
        "version",
        "writable",
    )
    births: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self, value: Value, source: Value | None = None, *, writable: bool = True) -> None:
        self.value = value
        self.version = 0
        self.source = source
        self.writable = writable
        self.doubt = ""
        self.past: tuple[Value, ...] = ()
        self.layout_of: frozenset[Storage] = frozenset()
        self.dirty = False
        self.born = next(Storage.births)
        self.shared: tuple[Storage, ...] = ()


class ArraysNeeded(BaseException):
    """A trace of ndarrays met an eager array: it starts anew as one of eager arrays.

    No handler in the user's code is to see it.

    Attributes:
        kind: the class of eager arrays.
    """

    def __init__(self, kind: type) -> None:
        self.kind = kind


class Gradients:
    """How gradients are recorded, as the layers above say.

    Attributes:
        is_recording: operations that run now can be differentiated.
        derive: `grad.backward`.
        is_tracked: an eager array carries a gradient; None: the results of the trace do not.
        keyed: entries are kept by mode, so guards need not look at it.
    """

    __slots__ = ("derive", "is_recording", "is_tracked", "keyed")

    def __init__(
        self,
        is_recording: Callable[[], bool],
        derive: Callable[..., Any],
        is_tracked: Callable[[Any], bool] | None = None,
        *,
        keyed: bool = False,
    ) -> None:
        self.is_recording = is_recording
        self.derive = derive
        self.is_tracked = is_tracked
        self.keyed = keyed


class _Unnamed:
    """A context in which no line of the user's makes the nodes."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.before = recording.place

    def __enter__(self) -> None:
        self.recording.place = (self.recording.here(), ())

    def __exit__(self, *error: object) -> None:
        self.recording.place = self.before


class Recording:
    """Everything known about the trace that is running.

    Attributes:
        nodes, ids: the graph so far.
        inputs: (value, path) of each argument leaf and capture.
        guards: what must hold for the compiled entry to be used again.
        limit: the most nodes that may be recorded (None: no limit).
        arrays: the class of eager arrays that traced arrays claim (None: ndarrays).
        holders: the eager array of each input that is the ndarray of one.
        eager: an eager array was reached by name.
        mode: how gradients are recorded (None: they are not).
        untaped: the nodes that `backward` does not go through, as the mode said.
        overwritten: values whose memory was written outside of a record, and where.
        stored: what was last written into an input inside of the record, and where.
        replaced: inputs that are written outside of the record, with what, and where.
        freed: those that an earlier `backward` went through.
        leaves: what is known of gradients, by the memory of the array that has one.
        captures: the traced eager arrays that came from outside.
        prints: `print` prints at once.
        script: functions of the user's are converted before they run.
        unconverted: those that could not be, by file, line and name, and why.
        sections: what is recorded now will be regions of these nodes, the innermost last.
        turns_left: of loops within the one that is unrolled, how many may be, too (None: it has not
            begun).
        place: where nodes are made that no line of the user's makes by itself.
    """

    traced_eager: ClassVar[Any] = None  # the class of traced eager arrays; `methods` enters it

    def __init__(
        self,
        *,
        limit: int | None = None,
        arrays: Any = None,
        mode: Gradients | None = None,
        script: bool = False,
    ) -> None:
        self.script = script
        self.unconverted: dict[tuple[str, int, str], str] = {}
        self.ids = Ids()
        self.nodes: list[Node] = []
        self.inputs: list[tuple[Value, Path]] = []
        self.guards = Guards()
        self.places = Places()
        self.place: tuple[Loc | None, tuple[str, ...]] | None = None
        self.limit = limit
        self.ended = False
        self.streams = (sys.stdout, sys.stderr)
        self.reach: Any = None  # how this recording sees the user's objects, if it does
        self.arrays = arrays
        self.eager = False
        self.mode = mode
        self.guards.keyed = mode is not None and mode.keyed
        self.holders: dict[Value, Any] = {}
        self.untaped: set[Node] = set()
        self.freed: set[Node] = set()
        self.overwritten: dict[Value, Loc | None] = {}
        self.stored: dict[Value, tuple[Value, Loc | None]] = {}
        self.replaced: list[tuple[Value, Value, Loc | None]] = []
        self.leaves: dict[Storage, Any] = {}
        self.captures: list[Any] = []
        self.prints = False
        self.notes: list[str] = []
        self.writes: dict[Value, Loc | None] = {}  # inputs that are written, and where first
        self.layouts: set[Value] = set()  # inputs whose memory layout matters
        self.concrete: dict[Value, np.ndarray[Any, Any]] = {}  # the arrays among the inputs
        self.strided: set[Value] = set()  # inputs whose elements do not lie in C order
        self._constants: dict[Any, Value] = {}
        self._known: dict[Value, Any] = {}  # values that Python may ask for
        self._settled: set[Value] = set()  # those among them that are the same at each call
        self.sections: list[Any] = []
        self.turns_left: int | None = None
        self.spoiled: set[Value] = set()  # what memory holds that is not known any more
        self.hidden: dict[Value, Callable[[], None]] = {}  # in a region -> makes it visible
        self._producer: dict[Value, Node] = {}
        self._scalars: dict[Value, Path] = {}  # Python numbers among the inputs
        self.dirty: list[Storage] = []
        self._sizes: dict[str, tuple[Value, int]] = {}
        self.before: dict[Value, Value] = {}  # written inputs -> copies of what they held
        self.at_end: list[Callable[[], None]] = []  # what is looked at when the trace is done

    def need_arrays(self, kind: type) -> None:
        """An eager array takes part.

        Args:
            kind: its class.

        Raises:
            ArraysNeeded: this trace is one of ndarrays.
        """
        if self.arrays is None:
            raise ArraysNeeded(kind)

    # ---- inputs ----------------------------------------------------------------------------

    def path_of(self, source: Value) -> Path:
        """How an input is reached."""
        return next(path for value, path in self.inputs if value is source)

    def hold(self, traced: Any, array: Any) -> None:
        """A traced array stands for an eager one from outside."""
        self.holders[traced.value_] = array
        self.captures.append(traced)

    def add_input(self, type_: Type, path: Path, hint: str, known: Any = None) -> Value:
        """A new graph input; a Python number is `known`, and pinned when Python asks for it."""
        value = self.ids.value(type_, _identifier(hint))
        self.inputs.append((value, path))
        if isinstance(type_, ScalarType):
            self._known[value] = known
            self._scalars[value] = path
        return value

    def name_sizes(self, value: Value) -> None:
        """Remember where the named dimensions of an input can be read."""
        assert isinstance(value.type, ArrayType)
        for axis, size in enumerate(value.type.shape):
            if isinstance(size, Dim) and size.is_name:
                self._sizes.setdefault(str(size), (value, axis))

    def tells(self, size: Dim) -> bool:
        """The inputs have all that a size is computed from in their shapes."""
        return size.names() <= self._sizes.keys()

    def size_of(self, size: Dim) -> Value:
        """A named size, or an expression of such, as a number of the graph."""

        def read(name: str) -> Value:
            if name not in self._sizes:
                raise undecidable(size, "is not the extent of any input")
            source, axis = self._sizes[name]
            return self.emit(ops.get("size"), (source,), {"axis": axis})[0]

        return size.build(
            read,
            self.constant,
            lambda name, a, b: self.emit(ops.get(name), (a, b), {}, checked=True)[0],
        )

    @property
    def taped(self) -> list[Node]:
        """The nodes that `backward` goes through."""
        return [node for node in self.nodes if node not in self.untaped]

    # ---- nodes -----------------------------------------------------------------------------

    def emit(
        self,
        op: Op,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        *,
        place: tuple[Loc | None, tuple[str, ...]] | None = None,
        checked: bool = False,
    ) -> tuple[Value, ...]:
        """Record one node and return its results.

        Args:
            op: what it does.
            inputs: its operands.
            attrs: its metadata; recorded numbers inside become plain.
            place: where, and names for the results (found from the running frame if left out).
            checked: these operands are known not to make it fail.

        Raises:
            ShapeError, DtypeError: the operands do not fit (with the user's line).
            TracerLeakError: this recording has ended.
            SizeError: too many nodes.
        """
        self._check_open()
        if self.before and op.name not in _WRITING:
            inputs = [self.before.get(value, value) for value in inputs]
        if self.hidden:
            self.unhide(inputs)
        if attrs:
            attrs = {name: _plain_attr(attr) for name, attr in attrs.items()}
        if (
            op.name == "pow"
            and "result" not in attrs
            and all(isinstance(value.type, ScalarType) for value in inputs)
        ):
            attrs = with_result(self, inputs[0], inputs[1], attrs)
        try:
            types = ops.infer(op, [value.type for value in inputs], attrs)
        except MinigraphError as error:
            raise self.located(error) from None
        loc, names = place or self.place or self.places.locate(len(types))
        outputs = [
            self.ids.value(type_, names[index] if index < len(names) else None)
            for index, type_ in enumerate(types)
        ]
        node = Node(self.ids.next(), op, inputs, attrs, outputs, loc)
        if node.may_raise and (checked or self._fits(op, inputs) or self._is_caught(node)):
            node = Node(node.id, op, inputs, {**attrs, "safe": True}, outputs, loc)
        if node.is_effect and op.name != "write":
            self.flush()
        self._append(node)
        return tuple(outputs)

    def unnamed(self) -> _Unnamed:
        """What is recorded meanwhile has no name, and the place of the running line."""
        return _Unnamed(self)

    def _append(self, node: Node) -> None:
        self.nodes.append(node)
        if self.mode is None or not self.mode.is_recording():
            self.untaped.add(node)
        known = all(value in self._known for value in node.inputs) and not _acts(node)
        settled = known and self._settled.issuperset(node.inputs)
        for value in node.outputs:
            self._producer[value] = node
            if known:
                self._known[value] = _LATER
            if settled:
                self._settled.add(value)

    def maker(self, value: Value) -> Node | None:
        """The node that computes a value, if it stands among the nodes."""
        node = self._producer.get(value)
        return node if node in self.nodes else None

    def exchange(self, node: Node, by: Sequence[Node]) -> None:
        """Put nodes in the place of one; the last of them has its results, and more."""
        at = self.nodes.index(node)
        self.nodes[at : at + 1] = by
        for section in self.sections:
            section.start += len(by) - 1 if at < section.start else 0
        self._producer.update((value, new) for new in by for value in new.outputs)
        for marked in (self.untaped, self.freed):
            if node in marked:
                marked.update(by)

    def _check_open(self) -> None:
        if self.ended:
            raise TracerLeakError(
                "a traced value was used after its trace had ended",
                where=self.here(),
                instead="return the value from the traced function",
            )
        if self.limit is not None and len(self.nodes) >= self.limit:
            raise SizeError(
                f"the program recorded more than {self.limit} nodes",
                where=self.here(),
                instead="use operations on whole arrays, or @mg.jit on the function in the loop",
            )

    def eager_value(self, array: Any) -> Value:
        """The value of an eager array that was met: a captured one, or a constant."""
        known = self.reach.blocks.eager_array(array) if self.reach else None
        if known is not None:
            return known.value_
        if array.grad_req in ("write", "add"):
            raise StateError(
                "a gradient was attached to an array of numbers that are known while tracing",
                where=self.here(),
                instead="make the array, and x.attach_grad(), before the call",
            )
        if self.reach is not None:
            self.need_arrays(type(array))
            self.eager = True
        return self.constant(array.data_)

    def is_tracked(self, array: Any) -> bool:
        """An eager array carries a gradient, as far as the trace knows."""
        mode = self.mode
        return mode is not None and mode.is_tracked is not None and mode.is_tracked(array)

    def unhide(self, values: Iterable[Value]) -> None:
        """Make values that were computed in a region results of it.

        Raises:
            UnsupportedError: that is no longer possible.
        """
        for value in values:
            show = self.hidden.get(value)
            if show is not None:
                show()

    def constant(
        self, concrete: Any, place: tuple[Loc | None, tuple[str, ...]] | None = None
    ) -> Value:
        """A constant; equal small constants are one value."""
        if isinstance(concrete, np.ndarray):
            concrete = np.array(concrete, copy=True)
            concrete.flags.writeable = False
        small = not isinstance(concrete, np.ndarray) or concrete.size <= 64
        key = (type(concrete), freeze(concrete)) if small else None
        if key is not None and key in self._constants:
            return self._constants[key]
        place = place or (self.here(), ())
        (value,) = self.emit(ops.get("const"), (), {"value": concrete}, place=place)
        self._known[value] = concrete
        if key is not None:
            self._constants[key] = value
        return value

    def _fits(self, op: Op, inputs: Sequence[Value]) -> bool:
        """The operands of an elementwise op are known not to make it fail.

        Python ints that are constants lie in the range of the integer arrays they meet, and an
        exponent among them is not negative.
        """
        if op.kind != "elementwise" or len(inputs) != 2:
            return False
        dtypes = [v.type.dtype for v in inputs if isinstance(v.type, ArrayType)]
        if not dtypes or not all(dtype.kind in "iu" for dtype in dtypes):
            return False
        for index, value in enumerate(inputs):
            if value.type is not INT:
                continue
            number = self.constant_number(value)
            if number is None or (op.name in ("pow", "power") and index == 1 and number < 0):
                return False
            if not all(np.iinfo(dt).min <= number <= np.iinfo(dt).max for dt in dtypes):
                return False
        return not (op.name in ("pow", "power") and isinstance(inputs[1].type, ArrayType))

    def _is_caught(self, node: Node) -> bool:
        """What the node may raise would be caught by the user's code: then it raises now or never.

        Raises:
            UnsupportedError: its operands are not known.
        """
        if not is_caught():
            return False
        if not all(map(self.is_known, node.inputs)):
            raise UnsupportedError(
                f"{node.op.name} may fail on data, and the handler around it is not recorded",
                where=self.here(),
                instead="take it out of the `try`, or choose with np.where",
            )
        why = "whether it raises inside a `try`"
        ops.evaluate_node(node, [self.force(value, why) for value in node.inputs])
        return True

    def constant_number(self, value: Value) -> Any:
        """The concrete value if it is a constant, else None."""
        producer = self._producer.get(value)
        if producer is not None and producer.op.name == "const":
            return producer.attrs["value"]
        return None

    def peek(self, value: Value) -> Any:
        """The concrete value of a Python number as it is now, if there is one; no guard."""
        found = self._known.get(value)
        return None if found is _LATER else found

    # ---- what Python asks for --------------------------------------------------------------

    def is_known(self, value: Value) -> bool:
        """The value depends on constants and Python numbers alone."""
        return value in self._known

    def is_settled(self, value: Value) -> bool:
        """The value depends on constants alone: no other call has another one."""
        return value in self._settled

    def producer(self, value: Value) -> Node | None:
        """The node that a value comes from; None for an input."""
        return self._producer.get(value)

    def force(self, value: Value, why: str) -> Any:
        """The concrete value; Python numbers among the arguments that it depends on are pinned.

        Raises:
            KeyError: not known while tracing (callers raise the teaching error).
        """
        found = self._known[value]
        needed = self._cone(value)
        for source in needed:
            if source in self._scalars:
                self.guards.pin(self._scalars[source], self._known[source], why)
        if found is _LATER:
            for source in needed:
                node = self._producer.get(source)
                if node is None or self._known[source] is not _LATER:
                    continue
                results = ops.evaluate_node(node, [self._known[v] for v in node.inputs])
                for output, result in zip(node.outputs, results, strict=True):
                    if isinstance(result, np.ndarray):
                        result.flags.writeable = False
                    self._known[output] = result
            found = self._known[value]
        return found

    def _cone(self, value: Value) -> list[Value]:
        """What the value depends on, dependencies first."""
        order: list[Value] = []
        seen: set[Value] = set()
        pending: list[tuple[Value, bool]] = [(value, False)]
        while pending:
            current, ready = pending.pop()
            if ready:
                order.append(current)
                continue
            if current in seen:
                continue
            seen.add(current)
            pending.append((current, True))
            node = self._producer.get(current)
            if node is not None:
                pending.extend((v, False) for v in node.inputs if v not in seen)
        return order

    def require(self, value: Value, error: type[MinigraphError], fact: str, instead: str) -> Any:
        """`force`, or the teaching error at the user's line."""
        if not self.is_known(value):
            raise error(f"{fact} (%{value.name}: {value.type})", where=self.here(), instead=instead)
        return self.force(value, fact)

    def truth(self, value: Value) -> bool:
        """`bool(value)` while tracing.

        Raises:
            BranchError: the value is not known.
        """
        return bool(
            self.require(
                value,
                BranchError,
                "Python needs a definite truth value, and this one is only being described",
                "np.where(condition, a, b) for a choice between values, mg.cond or @mg.script for "
                f"one between branches{self._unconverted()}",
            )
        )

    def _unconverted(self) -> str:
        """What to say of a function of the script that runs and could not be converted."""
        frame: FrameType | None = sys._getframe(1) if self.unconverted else None
        while frame is not None:
            code = frame.f_code
            reason = self.unconverted.get((code.co_filename, code.co_firstlineno, code.co_name))
            if reason is not None:
                return f" ({code.co_name} could not be converted: {reason})"
            frame = frame.f_back
        return ""

    def located(self, error: MinigraphError) -> MinigraphError:
        """The error with the user's line; one about named sizes may not be swallowed either."""
        if error.where is None:
            error.where = self.here()
        raised = RAISED.get()
        if isinstance(error, DimensionError) and raised is not None:
            raised.append(error)
        return error

    def here(self) -> Loc | None:
        """The user's line that is running."""
        return self.places.locate(0)[0]

    # ---- writes ----------------------------------------------------------------------------

    def write(self, storage: Storage, value: Value) -> None:
        """Replace the contents of a memory; the caller will see it if it is an argument's.

        Raises:
            WriteError: read-only, or it is not known what else shares the memory.
        """
        if not storage.writable:
            raise WriteError("assignment destination is read-only", where=self.here())
        if storage.doubt:
            raise WriteError(storage.doubt, where=self.here(), instead="take a .copy() of it first")
        for source in storage.layout_of:
            self.depend_on_layout(source)
        for other in storage.shared:
            self.spoil(other, "another array was written that may share its memory")
        if self.sections:
            self.sections[-1].note(storage)
        if self.mode is not None:
            self._note_write(storage, value)
        storage.value = value
        storage.version += 1
        if storage.source is not None:
            self.writes.setdefault(storage.source, self.here())
            if not storage.dirty:
                storage.dirty = True
                self.dirty.append(storage)

    def may_share(self, a: Storage, b: Storage) -> None:
        """The two are one memory or not: a branch or the number of turns decides."""
        a.shared, b.shared = (*a.shared, b), (*b.shared, a)

    def spoil(self, storage: Storage, why: str) -> None:
        """What a memory holds is not known any more: reading it is an error.

        Raises:
            WriteError: the caller would see it.
        """
        where, instead = self.here(), "take a .copy() of the array before"
        if storage.source is not None:
            raise WriteError(f"whether an argument is written: {why}", where=where, instead=instead)
        if self.sections:
            self.sections[-1].note(storage)
        storage.value = self.ids.value(storage.value.type)
        storage.version += 1

        def refuse() -> None:
            raise UnsupportedError(
                f"what this array holds is not known while tracing: {why}",
                where=where,
                instead=instead,
            )

        self.hidden[storage.value] = refuse
        self.spoiled.add(storage.value)

    def _note_write(self, storage: Storage, value: Value) -> None:
        """What is written outside of the record, `backward` may not need as it was.

        Raises:
            RecordError: inside of the record an array with a gradient attached is written.
        """
        assert self.mode is not None
        if not self.mode.is_recording():
            storage.past = (*storage.past, storage.value)
            self.overwritten[storage.value] = self.here()
            if storage.source is not None:
                self.replaced.append((storage.source, value, self.here()))
            return
        request = self.leaves[storage].req if storage in self.leaves else None
        source = storage.source
        if source is not None and source in self.holders:
            request = self.holders[source].grad_req
            self.reach.guard_request(source, self.holders[source])
        if request in ("write", "add"):
            raise written_leaf(self.here())
        if source is not None:
            self.stored[source] = value, self.here()

    def depend_on_layout(self, source: Storage) -> None:
        """The program is right only for the memory layout that this input has now."""
        assert source.source is not None
        self.layouts.add(source.source)

    def keep(self, source: Value) -> None:
        """Copy what an input holds: it will be written, and `backward` may still ask for it."""
        place = (self.writes.get(source), ())
        (kept,) = self.emit(ops.get("copy"), (source,), {}, place=place)
        self.before[source] = kept
        if source in self.overwritten:
            self.overwritten[kept] = self.overwritten[source]

    def flush(self) -> None:
        """Make pending writes visible: before anything else that can be seen, and at the end."""
        pending, self.dirty = self.dirty, []
        for storage in pending:
            storage.dirty = False
            source = storage.source
            assert source is not None
            place = (self.writes.get(source), ())
            if self.mode is not None and source not in self.before:
                self.keep(source)
            self.emit(ops.get("write"), (source, storage.value), {}, place=place)


_WRITING = ("write", "if", "while", "scan")
_LATER = object()  # known, but not computed until Python asks


@contextmanager
def recording(active: Recording) -> Iterator[Recording]:
    """Make a recording the one that sees this thread's operations."""
    token, raised = ACTIVE.set(active), RAISED.set([])
    try:
        yield active
        for check in active.at_end:
            check()
        swallowed = RAISED.get()
        if swallowed:  # a `try` around it would take a way that eager Python does not take
            raise swallowed[0]
    finally:
        active.ended = True
        ACTIVE.reset(token)
        RAISED.reset(raised)


def here() -> Loc | None:
    """The user's line that is running, in a trace or outside."""
    active = ACTIVE.get()
    return active.here() if active is not None else users_line()


def current() -> Recording:
    """The recording that is running.

    Raises:
        TracerLeakError: there is none.
    """
    active = ACTIVE.get()
    if active is None:
        raise TracerLeakError(
            "a traced value was used outside of tracing",
            instead="return the value from the traced function",
        )
    return active


def _acts(node: Node) -> bool:
    """The node, or one in its regions, does something that must not be done while tracing."""
    inner = (each for _, region in node.regions for each in walk(region))
    return any(each.op.effect is not None for each in (node, *inner))


def _plain_attr(attr: Any) -> Any:
    """An attr without recorded numbers inside."""
    kind = type(attr)
    if kind is tuple or kind is list:
        return kind(_plain_attr(item) for item in attr)
    if kind is slice:
        return slice(*(_plain_attr(part) for part in (attr.start, attr.stop, attr.step)))
    if kind not in _PLAIN and isinstance(attr, int | float) and kind.__module__ != "numpy":
        return int.__int__(attr) if isinstance(attr, int) else float.__float__(attr)
    return attr


_PLAIN = (int, float, bool, complex, str)


def _identifier(hint: str) -> str:
    """A path such as `self.w["a"]` as one name: `self_w_a`."""
    words = "".join(c if c.isalnum() or c == "_" else " " for c in hint).split()
    name = "_".join(words) or "x"
    return name if not name[0].isdigit() else "x" + name
