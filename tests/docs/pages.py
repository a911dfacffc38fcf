"""What the tests of the documentation share: code blocks of Markdown, and the output they promise.

In a block, and in an example, lines `# | text` below a statement say what has been printed by then:

    print(1 + 1)
    # | 2

All of them together are all that the code prints.  Within a line `...` stands for anything, and a
line `# | ...` for any number of lines.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

_PROMISE = re.compile(r"\s*# \|(?: (.*))?$")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which that begins."""

    language: str
    text: str
    line: int

    @property
    def filename(self) -> str | None:
        """The name that the first line gives it: `# fancy.py`."""
        found = re.match(r"# (\w+\.py)\n", self.text)
        return found and found[1]


def page(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def blocks(name: str, language: str | None = None) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page(name)
    for found in _FENCE.finditer(text):
        if language in (None, found[1]):
            yield Block(found[1], found[2], text.count("\n", 0, found.start(2)) + 1)


def promised(source: str) -> list[str]:
    """The lines that the code says it prints."""
    found = (_PROMISE.match(line) for line in source.splitlines())
    return [match[1] or "" for match in found if match]


def assert_prints(printed: str, source: str) -> None:
    """What was printed is what the code says."""
    text = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    expected = promised(source)
    for count in range(1, len(expected) + 1):  # the first promise that is broken
        begins = re.match("".join(map(_pattern, expected[:count])), text)
        assert begins, f"no {expected[count - 1]!r} in its place in\n\n{text}"
    whole = re.fullmatch("".join(map(_pattern, expected)), text)
    assert whole, f"{text}\nis more than\n\n" + "\n".join(expected)


def _pattern(wanted: str) -> str:
    """What matches the line, or the lines, that are promised."""
    if wanted.strip() == "...":
        return r"(?:.*\n)*?"
    return ".*".join(map(re.escape, wanted.rstrip().split("..."))) + r"\n"


def run(block: Block, namespace: dict[str, Any], folder: Path) -> None:
    """Run a block as a file in `folder`, in a namespace, and compare what it prints."""
    path = folder / (block.filename or f"block_{block.line}.py")
    path.write_text(block.text, encoding="utf-8")
    linecache.checkcache(str(path))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, str(path), "exec"), namespace)
    assert_prints(printed.getvalue(), block.text)
