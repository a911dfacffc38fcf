"""Tracing a whole program: its text runs once, and what it computes and prints is recorded."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import os
import tokenize
from pathlib import Path as FilePath
from typing import Any

from minigraph.errors import MinigraphError, OptionError
from minigraph.ir import Graph, Signature
from minigraph.ops import evaluate

from .builtin_names import recording_builtins
from .called import globals_of_program, with_calls_apart
from .literals import Literals
from .recording import ACTIVE, NODE_LIMIT, Recording, recording
from .regions import outermost
from .script import RESERVED, WORDS, in_place
from .tracer import watch_random

_LITERAL = "__minigraph_literal__"
_numbers = itertools.count(1)


def trace_program(source: str | os.PathLike[str]) -> Graph:
    """Record a whole Python program.

    Number literals and everything computed from them are recorded, and known: Python may branch on
    them and count to them; where that depends on what the program draws, `@mg.script` functions
    record both ways.  `print` becomes an effect of the graph.  The program runs once while it
    is traced; its other effects on the world (files, input) happen then.

    Args:
        source: the text of the program, or the path of a file.

    Returns:
        A graph without inputs and outputs; compiled, it is the program.

    Raises:
        SizeError: more than 100 000 nodes.
        MinigraphError: something cannot be recorded.
        SyntaxError, and anything that the program itself raises.
    """
    text, filename, name = _read(source)
    tree = _Literals().visit(_Scripted(filename).visit(ast.parse(text, filename)))
    code = compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)
    code = with_calls_apart(code, globals_of_program(code))
    active = Recording(limit=NODE_LIMIT)
    namespace: dict[str, Any] = {
        "__name__": "__main__",
        "__file__": filename,
        "__builtins__": {
            **recording_builtins(dict(vars(builtins))),
            _LITERAL: Literals(active),
            RESERVED: WORDS,
        },
    }
    with watch_random(), recording(active):
        try:
            exec(code, namespace)
        except SystemExit as end:
            if end.code not in (None, 0):
                _tell(name, active)
                raise
        except MinigraphError:
            raise
        except BaseException:
            _tell(name, active)
            raise
        active.flush()
    return _graph(name, active)


def _graph(name: str, active: Recording) -> Graph:
    return Graph(name, (), outermost(active.nodes, ()), (), Signature((), program=True))


def _tell(name: str, active: Recording) -> None:
    """What the program printed before it failed is printed, as eagerly."""
    token = ACTIVE.set(None)
    try:
        evaluate(_graph(name, active), [])
    finally:
        ACTIVE.reset(token)


def _read(source: str | os.PathLike[str]) -> tuple[str, str, str]:
    """The text, a file name for places, and a name for the graph."""
    is_path = isinstance(source, os.PathLike) or (
        isinstance(source, str) and "\n" not in source and source.endswith(".py")
    )
    if is_path:
        path = FilePath(source)
        if not path.is_file():
            raise OptionError(f"there is no file {path}")
        name = "".join(c if c.isalnum() else "_" for c in path.stem).strip("_")
        with tokenize.open(path) as file:  # in the encoding that its first lines declare
            return file.read(), str(path), name or "program"
    if not isinstance(source, str):
        raise OptionError(
            f"a program is text or a path, not a {type(source).__name__}",
            instead="mg.trace(f, *args) for a function",
        )
    filename = f"<program {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return source, filename, "program"


class _Scripted(ast.NodeTransformer):
    """Converts the functions that the program decorates with `mg.script`."""

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        names = [ast.unparse(each).partition("(")[0] for each in node.decorator_list]
        if any(name.rpartition(".")[2] == "script" for name in names):
            return in_place(node, self.filename)
        return self.generic_visit(node)


class _Literals(ast.NodeTransformer):
    """Passes number literals through the recorder."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) not in (int, float):
            return node
        function = ast.copy_location(ast.Name(_LITERAL, ast.Load()), node)
        return ast.copy_location(ast.Call(function, [node], []), node)

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        return node  # patterns must stay literals

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node
