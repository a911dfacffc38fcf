"""`compare`: what each compiler made of one workload, side by side.

Each runner prepares the workload in a process of its own, its answer is checked, and it shows the
forms that its compiler has.  A terminal gets the counts and, under each line of the user's source,
what is left of it; a page has all of that and the texts.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from minigraph.viz import Terminal

from ..harness import machine
from ..harness.checking import judged, request
from ..harness.processes import Crashed, Failed, Process, Settings, TimedOut
from ..runners import columns as known_runners
from ..runners import named
from ..runners.base import Form, Runner
from ..workloads import WORKLOADS, Case, Workload
from .alignment import NO_FORM, Column, Comparison, Source, View, counted, groups
from .page import page

LIMIT_S = 600.0  # for one answer
ENDINGS = {"python": "py", "json": "json", "hlo": "hlo"}


def compare(
    workload: str,
    runners: Sequence[str] = (),
    html: Path | None = None,
    text: Path | None = None,
    threads: int = 1,
    scale: float = 1.0,
    own: Path | None = None,
) -> int:
    """Show what each compiler made of a workload.

    Args:
        workload: its name, or how it begins; of several, the first is meant.
        runners: their names or how these begin; all, if none is given.
        html: where to write the page.
        text: the folder for the texts of all forms.
        threads: of each framework.
        scale: of the workload's size.
        own: a folder with further runners.

    Returns:
        The exit status: 1 where a runner failed.

    Raises:
        click.BadParameter: there is no such workload or runner.
    """
    first, *others = _named(workload, WORKLOADS)
    meant = WORKLOADS[first]
    columns = gathered(meant, scale, _chosen(runners, own), Settings(threads, own))
    found = Comparison.of(meant.title, columns)
    terminal = Terminal()
    if others:
        terminal.write(f"{first}; there are {', '.join(others)}, too")
    show(found, terminal)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page(found), "utf-8")
        terminal.write(f"the page: {html}")
    if text is not None:
        terminal.write(f"{len(write_texts(columns, text))} texts in {text}")
    return int(any(column.failed for column in columns))


def _chosen(names: Sequence[str], own: Path | None) -> dict[str, type[Runner]]:
    known = known_runners(own)
    if not names:
        return known
    asked = {name for each in names for name in _named(each, known)}
    return {name: runner for name, runner in known.items() if name in asked}


def _named(name: str, names: Collection[str]) -> list[str]:
    try:
        return named(name, names)
    except LookupError as error:
        raise click.BadParameter(str(error)) from error


# ---- asking ------------------------------------------------------------------------------------


def gathered(
    workload: Workload, scale: float, chosen: Mapping[str, type[Runner]], settings: Settings
) -> list[Column]:
    """Ask each runner, one after another; the next ones import their frameworks meanwhile."""
    case = workload.case(scale)
    expected = case.expected()
    columns: list[Column] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        status = stack.enter_context(Console(stderr=True).status(""))
        waiting, loading = deque(chosen.items()), deque[Process]()
        while waiting or loading:
            while waiting and len(loading) <= machine.cores():
                name, runner = waiting.popleft()
                if refusal := runner.refuses(name, workload):
                    column = Column(name, runner.variants[name])
                    columns.append(column.without("not written", refusal))
                    continue
                process = Process(name, runner, settings, folder / name.replace(" ", "_"))
                stack.callback(process.end)
                process.send("load")
                loading.append(process)
            if not loading:
                break
            process = loading.popleft()
            status.update(process.name)
            about = chosen[process.name].variants[process.name]
            columns.append(_asked(process, about, case, expected))
            process.end()
    order = list(chosen)
    return sorted(columns, key=lambda column: order.index(column.name))


def _asked(process: Process, about: str, case: Case, expected: Sequence[Any]) -> Column:
    """What a runner has shown, or why it has not."""
    column = Column(process.name, about)
    try:
        answer = process.receive(LIMIT_S)
        if "missing" in answer:
            return column.without("missing", answer["missing"])
        answer = process.ask("prepare", LIMIT_S, **request(case))
        if "not_written" in answer:
            return column.without("not written", answer["not_written"])
        verdict = judged(case, answer["outputs"], expected)
        if verdict.wrong:
            return column.without("wrong", verdict.wrong)
        shown = process.ask("forms", LIMIT_S)
        details = process.ask("finish", LIMIT_S)["details"]
    except TimedOut as error:
        return column.without("timed out", str(error))
    except (Crashed, Failed) as error:
        return column.without("crashed", str(error))
    forms = tuple(map(_form, shown["forms"]))
    used = {number for form in forms for number in form.lines}
    source = Source.of(**shown["source"], used=used) if shown["source"] else None
    return Column(process.name, about, "", "", details, source, forms)


def _form(found: Mapping[str, Any]) -> Form:
    """A form as it was sent: numbers of lines are texts in JSON."""
    lines = {int(number): tuple(of_it) for number, of_it in found["lines"].items()}
    return Form(**{**found, "lines": lines})


# ---- a terminal --------------------------------------------------------------------------------

COUNTS = ("", "before", "after", "kernels", "counted in")


def counts(column: Column) -> tuple[str, str, str, str, str]:
    """A row of the table of counts: the numbers, and of what they are; or why there is nothing."""
    if column.status:
        return column.name, "", "", "", f"{column.status}: {column.reason.splitlines()[0]}"
    counted_in = [form for form in (column.before, column.after) if form is not None]
    numbers = ["" if form is None else str(form.nodes) for form in (column.before, column.after)]
    kernels = str(column.details.get("kernels", ""))
    about = " → ".join(form.title for form in counted_in) or NO_FORM
    return column.name, *numbers, kernels, about


def show(found: Comparison, terminal: Terminal) -> None:
    """The counts, and under each line of source how many operations came of it, and which."""
    terminal.heading(f"what each compiler made of {found.title}")
    terminal.table(map(counts, found.columns), COUNTS, right=(1, 2, 3))
    if not found.views:
        return
    terminal.heading("what is left of each line")
    for place, row in enumerate(found.rows):
        main = min(row.numbers)
        for index, views in groups(found.views):
            left = [each for view in views if (each := _line_of(view, place))]
            line = None if index is None else found.line(place, index)
            is_new = index == main or line != found.line(place, main)
            if line is not None and is_new and (left or index == 0):
                terminal.source(line, row.numbers[index])
            terminal.table(left, right=(1,))
    rest = [
        (view.label, len(left), counted(left))
        for view in found.views
        if (left := view.of_row(None))
    ]
    if rest:
        terminal.write(("  from no line of yours", "bold"))
        terminal.table(rest, right=(1,))


def _line_of(view: View, row: int) -> tuple[str, str, str] | None:
    """What a terminal shows of a view in a row."""
    here, below = view.of_row(row), view.below(row)
    if not here and not below:
        return None
    names = [counted(here)] if here else []
    if below:
        names.append(f"in what is below: {counted(below)}")
    return view.label, str(len(here)), "; ".join(names)


# ---- files -------------------------------------------------------------------------------------


def write_texts(columns: Sequence[Column], folder: Path) -> list[Path]:
    """Each form in a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for column in columns:
        for number, form in enumerate(column.forms, 1):
            words = re.findall(r"\w+", f"{column.name} {number} {form.title}")
            path = folder / f"{'-'.join(words).lower()}.{ENDINGS.get(form.language, 'txt')}"
            path.write_text(form.text, "utf-8", "backslashreplace")
            paths.append(path)
    return paths
