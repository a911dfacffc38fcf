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
from minigraph.trace import Names, Trace, signature_of

_numbers = itertools.count(1)
MISS: Any = object()  # what an entry returns where its guard does not hold


class Entry:
    """One compiled signature of a jitted function.

    Attributes:
        compiled: the program; trace: what it was made from.
        call: the generated function; returns a marker when the guard does not hold.
        guard: the conditions as text.
        reason: why it was traced.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        trace: Trace,
        compiled: Compiled,
        reason: str,
        run_eagerly: Callable[..., Any],
    ) -> None:
        self.trace = trace
        self.compiled = compiled
        self.reason = reason
        self.signature = ", ".join(f"{value.name}: {value.type}" for value in trace.graph.inputs)
        self.call, self.guard, self._check = _generate(function, trace, compiled, run_eagerly)

    def difference(self, arguments: Mapping[str, Any]) -> str:
        """Which condition does not hold for these arguments."""
        return self._check(arguments)


_ERRORS = "(AttributeError, IndexError, KeyError, NameError, TypeError, ValueError)"


def _generate(
    function: Callable[..., Any], trace: Trace, compiled: Compiled, run_eagerly: Any
) -> tuple[Callable[..., Any], str, Callable[[Mapping[str, Any]], str]]:
    """The entry function, its guard as text, and a check that names the failing condition."""
    signature = signature_of(function)
    names = Names(reserved=signature.parameters)
    conditions = trace.guards.expressions(names)
    guard = "\n    and ".join(conditions) or "True"
    codes = [path.code(names) for path in trace.paths]
    inputs = [names.read.get(code, code) for code in codes]
    head, forward = _parameters(signature, names)
    overlap = _overlap_test(trace, inputs, names)
    result = _result_code(trace.graph.signature.result, _leaf_codes(trace, names), names)
    miss, run = names.bind(MISS, "miss"), names.bind(compiled.run, "run")
    lines = [
        f"def entry({head}):",
        "    try:",
        f"        if not ({guard}):",
        f"            return {miss}",
        f"    except {_ERRORS}:",
        f"        return {miss}",
    ]
    if overlap:
        lines += [
            f"    if {overlap}:",
            f"        return {names.bind(run_eagerly, 'eager')}({forward})",
        ]
    if result.count("_outputs") == 1 and result.startswith("_outputs["):
        lines.append(f"    return {run}({', '.join(inputs)}){result.removeprefix('_outputs')}")
    else:
        lines.append(f"    _outputs = {run}({', '.join(inputs)})")
        lines.append(f"    return {result}")
    namespace = _execute("\n".join(lines), names.bound, "guard of " + trace.graph.name)
    entry = namespace["entry"]
    with contextlib.suppress(AttributeError):
        entry.__name__ = entry.__qualname__ = function.__name__
    return entry, guard, functools.partial(_failing, trace, names, conditions)


def _execute(source: str, bound: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Run generated source; `linecache` shows it for as long as the function made by it lives."""
    filename = f"<minigraph {title} {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = dict(bound)
    exec(builtins.compile(source, filename, "exec"), namespace)
    weakref.finalize(namespace["entry"], linecache.cache.pop, filename, None).atexit = False
    return namespace


def _failing(
    trace: Trace,
    names: Names,
    conditions: Sequence[str],
    arguments: Mapping[str, Any],
) -> str:
    """The first condition that does not hold, described; "" if all hold."""
    namespace = {**names.bound, **arguments}
    for condition, code in zip(trace.guards.conditions, conditions, strict=True):
        try:
            holds = eval(code, namespace)
        except Exception:
            return f"{condition.path.text} is no longer what it was"
        if not holds:
            try:
                now = eval(condition.path.code(names), namespace)
            except Exception:
                return f"{condition.path.text} is no longer there"
            return condition.describe(now)
    return ""


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


def _overlap_test(trace: Trace, inputs: Sequence[str], names: Names) -> str:
    """Whether a written array shares memory with another input, or with itself."""
    if not trace.writes:
        return ""
    bound = names.bind(overlaps, "overlaps")
    arrays = [
        index for index, value in enumerate(trace.graph.inputs) if isinstance(value.type, ArrayType)
    ]
    tests: list[str] = []
    for written in trace.writes:
        others = [inputs[index] for index in arrays if index != written]
        tests.append(f"{bound}({', '.join([inputs[written], *others])})")
    return " or ".join(tests)


def _leaf_codes(trace: Trace, names: Names) -> Iterator[str]:
    """Each output as NumPy gives it: without axes a scalar or a 0-d array."""
    for index, box in enumerate(trace.boxes):
        code = f"_outputs[{index}]"
        if box is None:
            yield code
        else:
            yield f"{names.bind(np.asarray, 'asarray')}({code})" if box else f"{code}[()]"


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
