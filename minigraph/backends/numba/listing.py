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
    """The Python function, and each compiled function after those that call it."""
    parts = [program.source]
    for name, segment in program.segments.items():
        parts.append(f"# compiled\n{_segment(name, segment)}")
        parts += [f"# compiled\n{_kernel(n, f)}" for n, f in segment.functions.items()]
    return "\n\n\n".join(parts)


def _segment(name: str, segment: Segment) -> str:
    values = [*segment.reads, *segment.writes]
    names = {f"a{number}": value for number, value in enumerate(values)}
    names |= {f"c{number}": value for number, (value, _) in enumerate(segment.numbers)}
    names |= {pointer: value for pointer, value in segment.pointers.items() if pointer not in names}
    return _named(segment.text.replace("def segment(", f"def {name}(", 1), names, segment.lines)


def _kernel(name: str, function: Function) -> str:
    names = {local: value for value, local in function.names.items()}
    pointers = [value for value, _ in function.pointers]
    names |= {f"v{n}": value for n, value in enumerate(pointers) if isinstance(value, Value)}
    names |= {f"c{n}": value for n, (value, _) in enumerate(function.scalars)}
    return _named(function.text.replace("def kernel(", f"def {name}(", 1), names, function.lines)


def _named(text: str, values: Mapping[str, Value], lines: list[tuple[int, Node]]) -> str:
    """The text with the user's names for its locals, and behind each line where that came from."""
    identifiers = Identifiers()
    words = set(re.findall(r"[^\W\d]\w*", text))
    for word in words - values.keys():
        identifiers.fresh(word)
    given = {old: identifiers.fresh(value.hint) for old, value in values.items() if value.hint}
    renamed = re.sub(r"[^\W\d]\w*", lambda found: given.get(found[0], found[0]), text)
    shown = renamed.split("\n")
    for number, node in lines:
        if node.loc is not None:
            shown[number - 1] += f"  # {node.loc}"
    return "\n".join(shown)
