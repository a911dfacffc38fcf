"""Where a function stands in the text it was made from.

The text comes from the file (or what `linecache` knows: notebooks, doctests), else from a string
that some caller holds (`exec`), the command line (`python -c`) or the history of the REPL.  A part
of it is the function if it compiles to the same code.
"""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import inspect
import linecache
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minigraph.errors import SourceError
from minigraph.ir import Loc

from .names import Function, Uses, walk_scope

_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag,
    __future__.all_feature_names,
    0,
)
_EQUAL = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
_REWRITTEN = "@py_"  # begins the variables of pytest's assertions


@dataclass(frozen=True, eq=False)
class Source:
    """A function in its text.

    Attributes:
        node: the function, with the positions of the text.
        owner: the class around it, if any, after which private names are called.
        imported: the names that the module imports; a method call of one is compiled otherwise.
    """

    node: Function
    owner: str
    imported: tuple[str, ...]


_texts: dict[str, list[str]] = {}  # by the file name of code: texts that were found without a file


def find(code: types.CodeType) -> Source:
    """The text of a function.

    Raises:
        SourceError: there is none, or it is not that of this function any more.
    """
    filename = code.co_filename
    linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    near: Source | None = None
    if lines:
        for source in _candidates("".join(lines), code):
            if compiles_to(source, code):
                return source
            near = near or source
        if near is not None and any(name.startswith(_REWRITTEN) for name in code.co_varnames):
            return near
    else:
        for text in _loose_texts(filename, code.co_name):
            for source in _candidates(text, code):
                if compiles_to(source, code):
                    known = _texts.setdefault(filename, [])
                    if text not in known:
                        known.append(text)
                    return source
    changed = "has changed since the function was made" if lines else "is nowhere to be found"
    raise SourceError(
        f"the text of {code.co_name} {changed}, and converting needs it",
        where=Loc(filename, code.co_firstlineno, None, None),
        instead="import or run it again" if lines else "define the function in a file",
    )


def build(source: Source, node: Function, code: types.CodeType) -> types.CodeType:
    """Compile a function in the place of another: same file, class and variables around it."""
    made: Any = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    if source.owner:
        made = ast.ClassDef(source.owner, [], [], [made], [])
    own = "" if isinstance(made, ast.Expr) else made.name
    # What the function calls by its own or its class's name is a global, if it was one.
    shared: list[ast.stmt] = [ast.Global([own])] if own and own not in code.co_freevars else []
    free = [ast.arg(name) for name in code.co_freevars]
    around = ast.FunctionDef(
        "around", ast.arguments([], free, None, [], [], None, []), [*shared, made], [], None, None
    )
    imports: list[ast.stmt] = [ast.Import([ast.alias(name)]) for name in source.imported]
    module = ast.Module([ast.copy_location(each, node) for each in (*imports, around)], [])
    tree = ast.fix_missing_locations(module)
    flags = code.co_flags & _FUTURE
    found = compile(tree, code.co_filename, "exec", flags=flags, dont_inherit=True)
    depth = 3 if source.owner else 2
    for _ in range(depth):
        (found,) = [each for each in found.co_consts if isinstance(each, types.CodeType)]
    return found


def compiles_to(source: Source, code: types.CodeType) -> bool:
    """The text of the source gives this code."""
    return _same(build(source, bare(source.node), code), code)


def bare(node: Function) -> Function:
    """The function without what runs where it is made: defaults, decorators, annotations."""
    old = node.args
    args = ast.arguments(
        [_plain(arg) for arg in old.posonlyargs],
        [_plain(arg) for arg in old.args],
        _plain(old.vararg),
        [_plain(arg) for arg in old.kwonlyargs],
        [None] * len(old.kwonlyargs),
        _plain(old.kwarg),
        [],
    )
    if isinstance(node, ast.Lambda):
        return ast.copy_location(ast.Lambda(args, node.body), node)
    kind: Any = type(node)
    return ast.copy_location(kind(node.name, args, node.body, [], None, None), node)


def _plain(arg: Any) -> Any:
    return arg and ast.copy_location(ast.arg(arg.arg), arg)


def _same(a: types.CodeType, b: types.CodeType) -> bool:
    if any(getattr(a, name) != getattr(b, name) for name in _EQUAL):
        return False
    if (a.co_flags ^ b.co_flags) & ~inspect.CO_NESTED or _positions(a) != _positions(b):
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    for one, other in zip(a.co_consts, b.co_consts, strict=True):
        if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
            if not _same(one, other):
                return False
        elif type(one) is not type(other) or repr(one) != repr(other):
            return False
    return True


def _positions(code: types.CodeType) -> list[Any]:
    """Where each instruction stands; those before the body stand at the first decorator."""
    begins = code.co_code[::2].index(dis.opmap["RESUME"])
    return list(code.co_positions())[begins + 1 :]


def _candidates(text: str, code: types.CodeType) -> Iterator[Source]:
    """The functions of a text that begin where the code does, and are called so."""
    for line, source in _functions(text):
        name = "<lambda>" if isinstance(source.node, ast.Lambda) else source.node.name
        if line == code.co_firstlineno and name == code.co_name:
            yield source


@functools.lru_cache(maxsize=64)
def _functions(text: str) -> list[tuple[int, Source]]:
    """All functions of a text, each with its first line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    imports = [each for each in walk_scope(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
    imported = tuple(name for name in Uses(*imports).binds if name != "*")
    found: list[tuple[int, Source]] = []
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, owner = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            first = getattr(node, "decorator_list", None) or [node]
            found.append((first[0].lineno, Source(node, owner, imported)))
        inside = node.name if isinstance(node, ast.ClassDef) else owner
        pending.extend((child, inside) for child in ast.iter_child_nodes(node))
    return found


# ---- texts without a file ----------------------------------------------------------------------


def _loose_texts(filename: str, name: str) -> Iterator[str]:
    yield from _texts.get(filename, ())
    word = "lambda" if name == "<lambda>" else name
    for text in (*_held(), *sys.orig_argv):
        if word in text:
            yield text
    yield from _history(word)


def _held() -> Iterator[str]:
    """The strings that the callers hold."""
    frame: types.FrameType | None = sys._getframe(1)
    seen: set[int] = set()
    while frame is not None:
        for namespace in (frame.f_locals, frame.f_globals):
            if id(namespace) not in seen:
                seen.add(id(namespace))
                for value in list(namespace.values()):
                    if type(value) is str:
                        yield value
        for value in frame.f_code.co_consts:
            if type(value) is str:
                yield value
        frame = frame.f_back


def _history(word: str) -> Iterator[str]:
    """What was typed into the REPL, the newest first, in pieces that may hold the function."""
    readline: Any = sys.modules.get("readline")
    if readline is None:
        return
    count = readline.get_current_history_length()
    lines = [readline.get_history_item(at + 1) or "" for at in range(count)]
    for start in reversed(range(count)):
        if not lines[start].startswith(("def ", "@", "class ")) and word != "lambda":
            continue
        end = start + 1
        while end < count and end - start < 500 and not lines[end].startswith(("def ", "@")):
            end += 1
        for stop in range(start + 1, end + 1):
            piece = "\n".join(lines[start:stop]) + "\n"
            if word in piece:
                yield piece
