"""Compiled functions as people want to read them: with the user's names and lines put back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from minigraph.ir import Node, Value

from ..names import Identifiers
from .driver import NumbaProgram
from .segments import Segment
from .writing import Function


def listing(program: NumbaProgram) -> str:
    """The Python function, and each compiled function after the first that calls it."""
    parts = [program.source]
    shown: dict[str, str] = {}  # text of a kernel -> its name here
    for name, segment in program.segments.items():
        new = {old: f for old, f in segment.functions.items() if f.text not in shown}
        for function in new.values():
            shown[function.text] = f"kernel{len(shown)}"
        kernels = {old: shown[function.text] for old, function in segment.functions.items()}
        parts.append(f"# compiled\n{_segment(name, segment, kernels)}")
        for old, function in new.items():
            shared = f"; shared_{kernels[old]}: threads run it, each over a part of (lo, hi)"
            note = shared if old in segment.shared else ""
            parts.append(f"# compiled{note}\n{_kernel(kernels[old], function, kernels)}")
    return "\n\n\n".join(parts)


def _segment(name: str, segment: Segment, kernels: Mapping[str, str]) -> str:
    values = [*segment.reads, *segment.writes]
    names = {f"a{number}": value for number, value in enumerate(values)}
    names |= {f"c{number}": value for number, (value, _) in enumerate(segment.numbers)}
    names |= {pointer: value for pointer, value in segment.pointers.items() if pointer not in names}
    functions = {"segment": name, **kernels}
    functions |= {f"shared_{old}": f"shared_{new}" for old, new in kernels.items()}
    return _named(segment.text, names, functions, segment.lines)


def _kernel(name: str, function: Function, kernels: Mapping[str, str]) -> str:
    names = {local: value for value, local in function.names.items()}
    pointers = [value for value, _ in function.pointers]
    names |= {f"v{n}": value for n, value in enumerate(pointers) if isinstance(value, Value)}
    names |= {f"c{n}": value for n, (value, _) in enumerate(function.scalars)}
    called = {old: kernels[old] for old in function.functions}
    return _named(function.text, names, {**called, "kernel": name}, function.lines)


def _named(
    text: str,
    values: Mapping[str, Value],
    functions: Mapping[str, str],
    lines: list[tuple[int, Node]],
) -> str:
    """The text with the user's names for its locals, and behind each line where that came from."""
    hints = {old: value.hint for old, value in values.items() if value.hint}
    words = set(re.findall(r"[^\W\d]\w*", text))
    identifiers = Identifiers({*functions.values(), *words} - hints.keys())
    given = {**functions, **{old: identifiers.fresh(hint) for old, hint in hints.items()}}
    renamed = re.sub(r"[^\W\d]\w*", lambda found: given.get(found[0], found[0]), text)
    shown = renamed.split("\n")
    for number, node in lines:
        if node.loc is not None:
            shown[number - 1] += f"  # {node.loc}"
    return "\n".join(shown)
