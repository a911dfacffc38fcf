"""minigraph beside the real frameworks: measured, compared, drawn.

    python -m benchmarks run --quick

Each command imports what it needs when it is called.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click


class Finite(click.FloatRange):
    """Numbers of a range, without infinity and NaN."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no finite number", param, ctx)
        return found


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
SOME = Finite(min=0, min_open=True)


@click.group(help=__doc__, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    pass


@main.command()
@click.option("--with", "names", metavar="NAMES", help="only these, with commas between them")
def setup(names: str | None) -> None:
    """Make one virtual environment for each framework."""
    from . import environments

    if names is not None and not names.strip(" ,"):
        raise click.UsageError(f"--with names frameworks: {','.join(environments.FRAMEWORKS)}")
    asked = names.split(",") if names else environments.FRAMEWORKS
    sys.exit(environments.setup([name.strip() for name in asked]))


@main.command()
@click.option("--quick", is_flag=True, help="few workloads, few rounds: within two minutes")
@click.option("--only", metavar="WORKLOAD", multiple=True, help="or the beginning; repeatable")
@click.option("--runner", metavar="NAME", multiple=True, help="or the beginning; repeatable")
@click.option("--without", metavar="NAME", multiple=True, help="or the beginning; repeatable")
@click.option("--threads", type=click.IntRange(1), help="of each framework (default: all cores)")
@click.option("--budget", "budget_s", type=Finite(min=0), metavar="SECONDS", help="for all")
@click.option(
    "--patience",
    "patience_s",
    type=SOME,
    metavar="SECONDS",
    help="for an answer; a first call has its share of the budget",
)
@click.option("--out", type=NEW_FILE, help="default: .benchmarks/results.json")
@click.option("--scale", type=SOME, default=1.0, help="of all sizes; tests shrink by it")
@click.option("--ablation/--no-ablation", default=None, help="without single parts of minigraph")
@click.option("--own", type=FOLDER, help="a folder with runner files of one's own")
def run(**asked: Any) -> None:
    """Measure what is installed, and print the tables."""
    running = _needing_extra("harness.running")
    request = running.Request(**{name: value for name, value in asked.items() if value is not None})
    with _told():
        status = running.run(request, _needing_extra("harness.display").Listened())
    sys.exit(status)


@main.command()
@click.argument("file", type=FILE)
@click.option("--markdown", is_flag=True, help="as tables of Markdown")
@click.option(
    "--plots",
    "folder",
    type=NEW_FOLDER,
    help="draw into this folder, with a page",
)
def report(file: Path, markdown: bool, folder: Path | None) -> None:
    """Print what `run` has found, or draw it."""
    tables = _needing_extra("reporting.tables")
    results = _results(file)
    if folder is not None:
        plots = _needing_extra("reporting.plots")
        try:
            written = plots.write(results, folder)
        except plots.CannotDraw as error:
            raise click.ClickException(str(error)) from error
        for path in written:
            click.echo(path)
    elif markdown:
        click.echo(f"{tables.heading(results)}\n\n{tables.markdown(results)}")
    else:
        _console().print(tables.terminal(results))


@main.command()
@click.argument("workload")
@click.option("--runner", "runners", metavar="NAME", multiple=True, help="repeatable")
@click.option("--html", type=NEW_FILE, help="write a page with all of them side by side")
@click.option("--text", type=NEW_FOLDER, help="write each form into a file of this folder")
@click.option("--threads", type=click.IntRange(1), help="of each framework")
@click.option("--scale", type=SOME, default=1.0, help="of all sizes")
def compare(workload: str, threads: int | None, **asked: Any) -> None:
    """Show what each compiler made of a workload."""
    from .comparing import compare as comparing
    from .harness import machine

    with _told():
        status = comparing.compare(workload, threads=threads or machine.cores(), **asked)
    sys.exit(status)


@main.command()
@click.argument("file", type=FILE)
@click.option("--markdown", is_flag=True, help="as a table of Markdown")
def bars(file: Path, markdown: bool) -> None:
    """Hold what `run` has found against what minigraph is to reach.

    The exit status is 1 where a bar is missed by more than noise.
    """
    module, grids = (_needing_extra(f"reporting.{name}") for name in ("bars", "grids"))
    found = module.judged(_results(file))
    table = module.table(found)
    if markdown:
        click.echo(grids.as_markdown(table))
    else:
        _console().print(grids.Report([table]))
    sys.exit(int(any(each.verdict == module.MISSED for each in found)))


@main.command("list")
@click.option("--own", type=FOLDER, help="a folder with runner files of one's own")
def list_all(own: Path | None) -> None:
    """Print the names of workloads and runners."""
    from . import runners, workloads

    with _told():
        columns, ablations = runners.columns(own), runners.ablations(own)
    for head, lines in (
        ("Workloads", {each.name: each.title for each in workloads.WORKLOADS.values()}),
        ("Runners", {name: each.variants[name] for name, each in columns.items()}),
        ("Ablations", {name: each.ablations[name] for name, each in ablations.items()}),
    ):
        width = max(map(len, lines), default=0)
        click.echo(click.style(head, bold=True))
        for name, about in lines.items():
            click.echo(f"  {name:{width}}  {about}")


@main.command()
def compiler() -> None:
    """Measure what minigraph's compiler itself costs."""
    from .compiler import costs

    sys.exit(costs.main())


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Wrong names, and runners of one's own that are none, are told in a line."""
    from .runners import Unusable

    try:
        yield
    except KeyError:  # no wrong name, but a fault
        raise
    except LookupError as error:
        raise click.UsageError(f"{error} (python -m benchmarks list)") from error
    except Unusable as error:
        raise click.ClickException(str(error)) from error


def _console() -> Any:
    from rich.console import Console

    return Console()


def _results(file: Path) -> Any:
    results = _needing_extra("harness.results")
    try:
        return results.load(file)
    except results.Unreadable as error:
        raise click.ClickException(str(error)) from error


def _needing_extra(name: str) -> Any:
    """A module of this folder that checks files with `jsonschema`."""
    import importlib

    try:
        return importlib.import_module(f".{name}", __package__)
    except ModuleNotFoundError as error:
        if error.name != "jsonschema":
            raise
        message = "jsonschema is not installed; it comes with `pip install minigraph[bench]`"
        raise click.ClickException(message) from error


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
