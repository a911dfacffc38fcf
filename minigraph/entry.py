"""Entries: one compiled signature of a jitted function, behind a generated guard.

An entry is one generated function with the parameters of the user's: it checks the guard, reads
what the program takes, runs it, and builds the result.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import inspect
import io
import itertools
import linecache
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.bindings import Bindings
from minigraph.compiled import Compiled, overlaps
from minigraph.errors import MinigraphError
from minigraph.ir import (
    SCALARS,
    ArrayType,
    Branch,
    Leaf,
    Static,
    Tree,
    unflatten,
)
from minigraph.ir import freeze as frozen_bits
from minigraph.memory import wrote
from minigraph.passes import History
from minigraph.trace import Condition, Names, Path, Trace, signature_of

_numbers = itertools.count(1)
MISS: Any = object()  # what an entry returns where its guard does not hold


class Entry:
    """One compiled signature of a jitted function.

    Attributes:
        compiled: the program; trace: what it was made from.
        call: the generated function; returns a marker when the guard does not hold.
        guard: the conditions as text.
        reason: why it was traced.
        number: they are counted as they are made.
        joint: forward and backward in one graph, where gradients are recorded.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        trace: Trace,
        compiled: Compiled,
        reason: str,
        run_eagerly: Callable[..., Any],
        results: Results | None = None,
        joint: History | None = None,
    ) -> None:
        self.trace = trace
        self.compiled = compiled
        self.reason = reason
        self.joint = joint
        self.number = next(_numbers)
        self.signature = ", ".join(f"{value.name}: {value.type}" for value in trace.graph.inputs)
        made = _Generated(function, trace, compiled, run_eagerly, results or Results())
        self.call, self.guard, self._check = made.entry, made.guard, made.check

    def difference(self, arguments: Mapping[str, Any]) -> str:
        """Which condition does not hold for these arguments."""
        return self._check(arguments)[1]

    @property
    def is_dead(self) -> bool:
        """A block that the program was made for is no more."""
        return any(group.is_dead for group in self.trace.groups)

    def failure(self, arguments: Mapping[str, Any]) -> tuple[int, str]:
        """How many conditions hold before the first that does not, and which that is."""
        return self._check(arguments)

    def is_stale(self, arguments: Mapping[str, Any]) -> bool:
        """Where the guard does not hold: all that it asks about the arguments themselves does."""
        return not self._check(arguments, _is_about_arguments)[1]


_ERRORS = "(AttributeError, IndexError, KeyError, NameError, TypeError, ValueError)"


class Results:
    """How what a program returns becomes what the call returns.

    Attributes:
        wrap: makes the caller's array of an ndarray (None: they are the same).
        record: takes what the program returned and a tuple of its inputs, eager arrays as such, and
            gives the results as they are on the tape (None: nothing is recorded).
    """

    def __init__(
        self,
        wrap: Callable[[Any], Any] | None = None,
        record: Callable[[Any, tuple[Any, ...]], Any] | None = None,
    ) -> None:
        self.wrap = wrap
        self.record = record


class _Generated:
    """The entry function, its guard as text, and a check that names the failing condition."""

    def __init__(
        self,
        function: Callable[..., Any],
        trace: Trace,
        compiled: Compiled,
        run_eagerly: Callable[..., Any],
        results: Results,
    ) -> None:
        self.trace = trace
        self.results = results
        signature = signature_of(function)
        self.names = names = Names(reserved=signature.parameters)
        self.bindings = Bindings(trace, names)
        conditions = trace.guards.expressions(names)
        self.guard = "\n    and ".join(conditions) or "True"
        self.inputs = self._inputs()
        head, forward = _parameters(signature, names)
        lines = [
            f"def entry({head}):",
            "    try:",
            f"        if not ({self.guard}):",
            f"            return {names.bind(MISS, 'miss')}",
            f"    except {_ERRORS}:",
            f"        return {names.bind(MISS, 'miss')}",
        ]
        overlap = self._overlap_test()
        if overlap:
            eager = names.bind(run_eagerly, "eager")
            lines += [f"    if {overlap}:", f"        return {eager}({forward})"]
        lines += self._body(names.bind(compiled.run, "run"))
        namespace = _execute("\n".join(lines), names.bound, "guard of " + trace.graph.name)
        self.bindings.start(namespace)
        self.entry: Callable[..., Any] = namespace["entry"]
        with contextlib.suppress(AttributeError):
            self.entry.__name__ = self.entry.__qualname__ = function.__name__
        self.check = functools.partial(_failing, trace, names, conditions)

    def _inputs(self) -> list[str]:
        """The program's inputs, as expressions."""
        codes = [path.code(self.names) for path in self.trace.paths]
        return [
            self.bindings.names.get(index) or self.names.read.get(code, code)
            for index, code in enumerate(codes)
        ]

    def _body(self, run: str) -> list[str]:
        """The call of the program, and the result in its structure."""
        call = f"{run}({', '.join(self.inputs)})"
        if self.results.record is not None:
            record = self.names.bind(self.results.record, "record")
            call = f"{record}({call}, ({''.join(f'{code}, ' for code in self._recorded_inputs())}))"
        tree = self.trace.graph.signature.result
        result = _result_code(tree, self._leaf_codes(), self.names)
        lines = self._notes_of_writes()
        if not self.trace.fresh and result.count("_outputs") == 1:
            if result.startswith("_outputs["):
                return [*lines, f"    return {call}{result.removeprefix('_outputs')}"]
            return [*lines, f"    return {result.replace('_outputs', call)}"]
        lines.append(f"    _outputs = {call}")
        lines += [f"    {self._holder(at)}.fresh_grad = {new}" for at, new in self.trace.fresh]
        lines.append(f"    return {result}")
        return lines

    def _notes_of_writes(self) -> list[str]:
        """What is recorded elsewhere must know of writes into eager arrays."""
        written = [self.inputs[index] for index in self.trace.writes if index in self.trace.holders]
        note = self.names.bind(wrote, "wrote")
        return [f"    {note}({code})" for code in written]

    def _recorded_inputs(self) -> list[str]:
        """The inputs with eager arrays in place of their ndarrays."""
        return [
            self.bindings.holders.get(index)
            or (self.trace.holders[index].code(self.names) if index in self.trace.holders else code)
            for index, code in enumerate(self.inputs)
        ]

    def _holder(self, path: Path) -> str:
        """An eager array that is reached by this path."""
        for index, holder in self.trace.holders.items():
            if holder.id == path.id and index in self.bindings.holders:
                return self.bindings.holders[index]
        return path.code(self.names)

    def _leaf_codes(self) -> Iterator[str]:
        """Each output as the caller gets it: without axes a scalar or a 0-d array."""
        wrap = self.results.wrap
        values = self.trace.graph.outputs
        for index, (value, box) in enumerate(zip(values, self.trace.boxes, strict=True)):
            code = f"_outputs[{index}]"
            if self.results.record is None and box is not None:
                array = f"{self.names.bind(np.asarray, 'asarray')}({code})"
                code = array if box else f"{code}[()]"
            if wrap is not None and isinstance(value.type, ArrayType):
                code = f"{self.names.bind(wrap, 'wrap')}({code})"
            yield code

    def _overlap_test(self) -> str:
        """Whether a written array shares memory with another input, or with itself."""
        trace, inputs, bound = self.trace, self.inputs, self.bindings.names
        if not trace.writes:
            return ""
        if self.bindings.entangled(self.names.bound):
            return "True"
        arrays = [
            index
            for index, value in enumerate(trace.graph.inputs)
            if isinstance(value.type, ArrayType)
        ]
        tests: list[str] = []
        if any(index in bound for index in trace.writes):
            shares = self.names.bind(self.bindings.shares, "shares")
            tests += [f"{shares}({inputs[index]})" for index in arrays if index not in bound]
        overlap = self.names.bind(overlaps, "overlaps")
        for written in trace.writes:
            if written not in bound:
                others = [inputs[index] for index in arrays if index != written]
                tests.append(f"{overlap}({', '.join([inputs[written], *others])})")
        return " or ".join(tests)


def _execute(source: str, bound: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Run generated source; `linecache` shows it for as long as the function made by it lives."""
    filename = f"<minigraph {title} {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = dict(bound)
    exec(builtins.compile(source, filename, "exec"), namespace)
    weakref.finalize(namespace["entry"], linecache.cache.pop, filename, None).atexit = False
    return namespace


def _is_about_arguments(condition: Condition) -> bool:
    return condition.path.steps()[0].kind == "argument"


def _failing(
    trace: Trace,
    names: Names,
    conditions: Sequence[str],
    arguments: Mapping[str, Any],
    among: Callable[[Condition], bool] | None = None,
) -> tuple[int, str]:
    """The first condition (of some) that does not hold: its position, and described ("": none)."""
    namespace = {**names.bound, **arguments}
    pairs = zip(trace.guards.conditions, conditions, strict=True)
    for position, (condition, code) in enumerate(pairs):
        if among is not None and not among(condition):
            continue
        try:
            holds = eval(code, namespace)
        except Exception:
            return position, f"{condition.path.text} is no longer what it was"
        if not holds:
            try:
                now = eval(condition.path.code(names), namespace)
            except Exception:
                return position, f"{condition.path.text} is no longer there"
            return position, condition.describe(now)
    return len(conditions), ""


def _parameters(signature: inspect.Signature, names: Names) -> tuple[str, str]:
    """The parameter list of the entry function, and the same as arguments of a call."""
    head: list[str] = []
    forward: list[str] = []
    kinds = inspect.Parameter
    star = False
    previous: Any = None
    for name, parameter in signature.parameters.items():
        if previous is kinds.POSITIONAL_ONLY and parameter.kind is not kinds.POSITIONAL_ONLY:
            head.append("/")
        previous = parameter.kind
        default = ""
        if parameter.default is not parameter.empty:
            default = "=" + names.bind(parameter.default, "default")
        if parameter.kind is kinds.VAR_POSITIONAL:
            star = True
            head.append("*" + name)
            forward.append("*" + name)
        elif parameter.kind is kinds.VAR_KEYWORD:
            head.append("**" + name)
            forward.append("**" + name)
        elif parameter.kind is kinds.KEYWORD_ONLY:
            if not star:
                head.append("*")
                star = True
            head.append(name + default)
            forward.append(f"{name}={name}")
        else:
            head.append(name + default)
            forward.append(name)
    if previous is kinds.POSITIONAL_ONLY:
        head.append("/")
    return ", ".join(head), ", ".join(forward)


def _result_code(tree: Tree, leaves: Iterator[str], names: Names) -> str:
    if isinstance(tree, Leaf):
        return next(leaves)
    if isinstance(tree, Static):
        value = tree.value
        return repr(value) if value is None else names.bind(value, "static")
    children = [_result_code(child, leaves, names) for child in tree.children]
    if tree.kind is tuple:
        return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
    if tree.kind is list:
        return f"[{', '.join(children)}]"
    if tree.kind is dict:
        keys = [names.bind(key, "key") for key in tree.keys]
        pairs = zip(keys, children, strict=True)
        return "{" + ", ".join(f"{key}: {child}" for key, child in pairs) + "}"
    shallow = Branch(tree.kind, tree.keys, [Leaf()] * len(children))
    build = names.bind(functools.partial(unflatten, shallow), "build")
    return f"{build}(iter(({', '.join(children)},)))"


def flat_inputs(trace: Trace, arguments: Mapping[str, Any]) -> list[Any]:
    """What the graph takes, read by its paths from the arguments of a call."""
    names = Names()
    codes = [path.code(names) for path in trace.paths]
    return [eval(code, {**names.bound, **arguments}) for code in codes]


def check_numbers(compiled: Compiled, trace: Trace, arguments: Mapping[str, Any]) -> None:
    """Run every stage with the interpreter on these arguments; all must give the same bits."""
    expected: Any = None
    for stage in compiled.stages:
        inputs = copy.deepcopy(flat_inputs(trace, arguments))
        silent = io.StringIO()
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            try:
                outputs: Any = [_bits(value) for value in ops.evaluate(stage.graph, inputs)]
            except Exception as error:
                outputs = type(error)
        found = (outputs, silent.getvalue(), [_bits(v) for v in inputs if _is_data(v)])
        if expected is None:
            expected = found
        elif found != expected:
            raise MinigraphError(
                f"the pass {stage.name} changed what {trace.graph.name} computes",
                instead="leave it out of passes= and report it",
            )


def _bits(value: Any) -> Any:
    """A key of the bits; a NumPy scalar and a 0-d array count as the same."""
    return frozen_bits(np.asarray(value) if isinstance(value, np.generic) else value)


def _is_data(value: Any) -> bool:
    return type(value) in SCALARS or isinstance(value, np.ndarray | np.generic)
