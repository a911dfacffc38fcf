"""The one way by which text of users gets into a drawing: nothing in it is read as markup."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    r"""The text with what cannot be seen written as Python writes it (`\n`, `\u2028`).

    Control characters, lone surrogates, and marks that turn the direction of the text around would
    break the picture or mislead its reader.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def clip(text: str, width: int) -> str:
    """At most `width` characters; the middle gives way to `...`."""
    if len(text) <= width:
        return text
    front = (width - 3 + 1) // 2
    return text[:front] + "..." + text[len(text) - (width - 3 - front) :]


def quote(*lines: str, end: str = "") -> str:
    r"""A DOT string that shows the lines: labels.  With `end=r"\l"` they begin at the left.

    Graphviz reads `\` as the start of its own escapes, and `&` as that of an HTML entity.
    """
    return '"' + (end or "\\n").join(_inner(line, "\\\\") for line in lines) + end + '"'


def quote_tooltip(*lines: str) -> str:
    """A DOT string for a tooltip, in which Graphviz resolves escapes twice."""
    return '"' + "&#10;".join(_inner(line, "\\\\\\\\") for line in lines) + '"'


def _inner(line: str, backslash: str) -> str:
    text = visible(line).replace("&", "&amp;").replace("\\", backslash)
    return text.replace('"', "&quot;")


def cells(text: str) -> int:
    """The columns that the text takes in a monospaced font."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if _is_wide(letter) else 1 for letter in text
    )


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"
