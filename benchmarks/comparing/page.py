"""The page of `compare`: one file that needs nothing else, with or without its script.

All text comes through `escape`, and there are no styles or handlers in attributes, so that the page
can forbid everything but its own style sheet and script, which it names by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from minigraph.viz import palette
from minigraph.viz.escape import clip, visible

from ..runners.base import Form
from .alignment import (
    NO_FORM,
    Column,
    Comparison,
    Operation,
    Source,
    View,
    counted,
    groups,
    rows_of_text,
)

HERE = Path(__file__).parent
FOLDED = 6  # operations in one place, from which on they are folded
NAME_WIDTH, TEXT_WIDTH = 60, 200  # letters of an operation
COLOURS = {
    "page": (palette.PAGE, palette.PAGE_DARK),
    "text": (palette.TEXT, palette.TEXT_DARK),
    "dim": (palette.DIM, palette.DIM_DARK),
    "border": (palette.BORDER, palette.BORDER_DARK),
    "box": (palette.LOOKS["block"].fill, palette.LOOKS["block"].dark),
    "lit": (palette.LOOKS["control"].fill, palette.LOOKS["control"].dark),
    "source": (palette.LOOKS["input"].fill, palette.LOOKS["input"].dark),
}
"""Name in the style sheet → the colour in light and in the dark."""


def page(found: Comparison) -> str:
    """The whole page."""
    style, script = _style(), (HERE / "page.js").read_text("utf-8")
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(found.title)}: what each compiler made of it</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#lines">to the lines</a>
<header>
<h1>{_text(found.title)}</h1>
<p>What each compiler made of it, under the lines that a user wrote.</p>
</header>
<main>
{_top(found)}
{_lines(found)}
{_texts(found)}
{_absent(found)}
</main>
<p id="told" role="status"></p>
<script>{script}</script>
</body>
</html>
"""


def _style() -> str:
    light, dark = (
        "".join(f"--{name}:{both[theme]};" for name, both in COLOURS.items()) for theme in (0, 1)
    )
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"@media print{{:root{{color-scheme:light;{light}}}}}\n"
        + (HERE / "page.css").read_text("utf-8")
    )


def _digest(text: str) -> str:
    found = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{found}'"


def _text(text: str) -> str:
    """Text as a reader should see it: nothing in it is markup, nothing in it is invisible."""
    return escape(visible(text.expandtabs(4)))


def _rows(rows: Iterable[int]) -> str:
    """The attribute by which the script finds what belongs together."""
    text = " ".join(map(str, rows))
    return f' data-rows="{text}"' if text else ""


# ---- the top -----------------------------------------------------------------------------------


def _top(found: Comparison) -> str:
    return f"""<div class="top">
<section aria-labelledby="source-heading">
<h2 id="source-heading">The source</h2>
{_sources(found)}
</section>
<section aria-labelledby="counts-heading">
<h2 id="counts-heading">How many operations</h2>
{_counts(found)}
</section>
</div>"""


def _sources(found: Comparison) -> str:
    parts: list[str] = []
    for index, views in groups(found.views):
        if index is None:
            continue
        source = found.sources[index]
        title = f"{Path(source.file).name}, for {'; '.join(view.label for view in views)}"
        is_open = " open" if not parts else ""
        parts.append(
            f"<details{is_open}><summary>{_text(title)}</summary>"
            f"{_source(source, found.row_of(source), title)}</details>"
        )
    return "\n".join(parts)


def _source(source: Source, row_of: dict[int, int], title: str) -> str:
    """Its lines with their numbers; gaps where lines of the file are left out."""
    lines: list[str] = []
    before = None
    for number, line in source.lines.items():
        if before is not None and number != before + 1:
            lines.append('<span class="gap">⋮\n</span>')
        before = number
        rows = [row_of[number]] if number in row_of else []
        lines.append(f'<span class="line"{_rows(rows)}><i>{number}</i>{_text(line)}\n</span>')
    return _scrolling("".join(lines), title)


def _scrolling(inside: str, title: str, kind: str = "numbered") -> str:
    """Text in a box that can be scrolled by keys, too."""
    name = _text(title)
    return f'<pre class="{kind}" tabindex="0" role="region" aria-label="{name}">{inside}</pre>'


def _counts(found: Comparison) -> str:
    rows = "\n".join(_count(column) for column in found.columns if column.forms)
    return f"""<table class="counts">
<caption>An operation is what that compiler counts as one, so columns are read from left to right.
Kernels are the loops and calls that minigraph runs in the end.</caption>
<thead><tr><th scope="col">framework</th><th scope="col">before</th><th scope="col">after</th>
<th scope="col">kernels</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def _count(column: Column) -> str:
    cells = "".join(_counted(form) for form in (column.before, column.after))
    kernels = _text(str(column.details.get("kernels", "")))
    name = f"{_text(column.name)}<small>{_text(column.about)}</small>"
    return f'<tr><th scope="row">{name}</th>{cells}<td>{kernels}</td></tr>'


def _counted(form: Form | None) -> str:
    if form is None:
        return "<td></td>"
    return f"<td>{form.nodes}<small>{_text(form.title)}</small></td>"


# ---- line by line ------------------------------------------------------------------------------


def _lines(found: Comparison) -> str:
    if not found.views:
        return ""
    sides = groups(found.views)
    views = [view for _, of_it in sides for view in of_it]
    heads = "".join(
        f'<th scope="col" role="columnheader">{_text(view.label)}'
        f"<small>{_text(_title(view.form))}</small></th>"
        for view in views
    )
    bodies = "\n".join(_body(found, sides, row) for row in range(len(found.rows)))
    return f"""<section aria-labelledby="lines-heading" id="lines">
<h2 id="lines-heading">What is left of each line</h2>
<p>Choose a line, or an operation: what belongs together is marked in all columns. An operation
leads to its place in the text below. Escape ends the choice.</p>
<div class="wide" tabindex="0" role="region" aria-labelledby="lines-heading">
<table class="lines" role="table">
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
{bodies}
{_rest(found, views)}
</table>
</div>
</section>"""


def _title(form: Form) -> str:
    return form.title if form.stage == "after" else f"{form.title}, before it is optimised"


Sides = Sequence[tuple[int | None, list[View]]]


def _body(found: Comparison, sides: Sides, row: int) -> str:
    """A line of source, what other sources have in its place, and what is left of it in each."""
    views = [view for _, of_it in sides for view in of_it]
    main = min(found.rows[row].numbers)
    line = found.line(row, main) or ""
    number = found.rows[row].numbers[main]
    file = "" if main == 0 else f"<small>{_text(Path(found.sources[main].file).name)}</small>"
    parts = [
        f'<tr role="row"><th class="source" scope="rowgroup" role="rowheader" '
        f'colspan="{len(views)}"><button type="button" aria-pressed="false"{_rows([row])}>'
        f"<i>{number}</i><code>{_text(line)}</code>{file}</button></th></tr>"
    ]
    others = [
        (index, len(of_it), found.line(row, index) if index is not None else None)
        for index, of_it in sides
    ]
    if any(text not in (None, line) for _, _, text in others):
        cells = "".join(
            f'<td role="cell" colspan="{width}">'
            + (f"<code>{_text(text.strip())}</code>" if text not in (None, line) else "")
            + "</td>"
            for _, width, text in others
        )
        parts.append(f'<tr class="own" role="row">{cells}</tr>')
    if any(view.of_row(row) or view.below(row) for view in views):
        cells = "".join(_cell(found, view, row) for view in views)
        parts.append(f'<tr class="left" role="row">{cells}</tr>')
    return f'<tbody role="rowgroup">{"".join(parts)}</tbody>'


def _rest(found: Comparison, views: Sequence[View]) -> str:
    if not any(view.of_row(None) for view in views):
        return ""
    cells = "".join(_cell(found, view, None) for view in views)
    return (
        f'<tbody role="rowgroup"><tr role="row"><th class="source" scope="rowgroup" '
        f'role="rowheader" colspan="{len(views)}"><span>from no line of yours</span></th></tr>'
        f'<tr class="left" role="row">{cells}</tr></tbody>'
    )


def _cell(found: Comparison, view: View, row: int | None) -> str:
    here = view.of_row(row)
    below = [] if row is None else view.below(row)
    items = "".join(f"<li>{_operation(found, view, each)}</li>" for each in here)
    inside = f"<ul>{items}</ul>" if here else ""
    if len(here) >= FOLDED:
        inside = f"<details><summary>{len(here)}: {_text(_names(here))}</summary>{inside}</details>"
    if below:
        inside += f'<p class="below">with a line below: {_text(_names(below))}</p>'
    return f'<td role="cell" data-name="{_text(view.label)}">{inside}</td>'


def _names(found: Iterable[Operation]) -> str:
    return clip(counted(found), TEXT_WIDTH)


def _operation(found: Comparison, view: View, each: Operation) -> str:
    """A link to its place in the full text; its name stands out where it is part of the line."""
    text, name = clip(each.text, TEXT_WIDTH), clip(each.name, NAME_WIDTH)
    before, is_there, after = text.partition(name)
    shown = (
        f"{_text(before)}<b>{_text(name)}</b>{_text(after)}"
        if is_there
        else f"<b>{_text(name)}</b> {_text(text)}"
    )
    return f'<a href="#{_id(found, view.form, each.line)}"{_rows(each.rows)}>{shown}</a>'


# ---- the texts ---------------------------------------------------------------------------------


def _texts(found: Comparison) -> str:
    """All forms of all columns; a text that several have is printed once."""
    parts: list[str] = []
    for column in found.columns:
        forms = [form for form in column.forms if _first(found, form) is form]
        same = [form.title for form in column.forms if form not in forms]
        if column.forms:
            parts.append(f"<h3>{_text(column.name)}</h3>")
        parts += [_form(found, column, form) for form in forms]
        if same:
            parts.append(f"<p>As above: {_text(', '.join(same))}.</p>")
    if not parts:
        return ""
    return (
        '<section aria-labelledby="texts-heading">\n<h2 id="texts-heading">The texts</h2>\n'
        + "\n".join(parts)
        + "\n</section>"
    )


def _all_forms(found: Comparison) -> list[Form]:
    return [form for column in found.columns for form in column.forms]


def _first(found: Comparison, form: Form) -> Form:
    """The first form of the page that is equal."""
    return next(each for each in _all_forms(found) if each == form)


def _id(found: Comparison, form: Form, line: int) -> str:
    return f"t{_all_forms(found).index(form)}-{line}"


def _form(found: Comparison, column: Column, form: Form) -> str:
    title = f"{column.name}: {form.title}"
    rows = rows_of_text(form, found.row_of(column.source))
    start = _id(found, form, 0).removesuffix("0")
    lines = form.text.rstrip("\n").split("\n")
    inside = "".join(
        f'<span class="line" id="{start}{number}"{_rows(rows.get(number, ()))}>'
        f"{_text(line)}\n</span>"
        for number, line in enumerate(lines, 1)
    )
    count = "" if form.nodes is None else f", {form.nodes} operations"
    facts = f"{form.stage} optimisation{count}, {len(lines)} lines"
    return (
        f"<details><summary>{_text(form.title)}<small>{_text(facts)}</small></summary>"
        f'<button type="button" class="copy" hidden>copy</button>'
        f"{_scrolling(inside, title, 'counted')}</details>"
    )


# ---- who is not there --------------------------------------------------------------------------


def _absent(found: Comparison) -> str:
    absent = [column for column in found.columns if not column.forms]
    if not absent:
        return ""
    items = "".join(
        f"<dt>{_text(column.name)}</dt><dd>{'<br>'.join(map(_text, _why(column)))}</dd>"
        for column in absent
    )
    return (
        '<section aria-labelledby="absent-heading"><h2 id="absent-heading">Not shown</h2>'
        f"<dl>{items}</dl></section>"
    )


def _why(column: Column) -> list[str]:
    return f"{column.status}: {column.reason}".splitlines() if column.status else [NO_FORM]
