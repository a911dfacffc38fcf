"""What the command line is pointed at: a Python program, or a function in one and its arguments."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from minigraph.errors import OptionError, SignatureError, UnsupportedError, nearest
from minigraph.ir import ArrayType, Graph, parse_type
from minigraph.jit import HybridFunction, JitFunction, jit
from minigraph.trace import Spec, is_users_file, trace_program

STDIN = "-"
FORMS = (
    'values as Python writes them ("np.ones((2, 3)), n=2"), or types of arrays: '
    '"f64[2,3]", "f32[batch,512]", "f64[]" for one number'
)
"""What --args takes."""

Function = JitFunction | HybridFunction


class Target:
    """`FILE`, `FILE:FUNC` (FUNC may be dotted) or `-`, the program that standard input holds.

    Attributes:
        path: the file; function: the name in it, "" for the whole program; given: the text that
            standard input held; words: what `sys.argv` holds behind the name of the file.

    Raises:
        OptionError: there is no such file, or it is not one.
    """

    def __init__(self, text: str, words: Sequence[str] = ()) -> None:
        self.path, self.function = _split(text)
        self.words = tuple(words)
        self.given = ""
        self._names: Mapping[str, Any] = {}  # of the file, once it has run
        if text == STDIN:
            self.given = sys.stdin.read() + "\n"
            return
        if self.path.is_dir():
            raise OptionError(
                f"{self.path} is a folder", instead=f"a file in it: {self.path}/NAME.py"
            )
        if not self.path.exists():
            near = nearest(self.path.name, _neighbours(self.path.parent))
            raise OptionError(
                f"there is no file {self.path}",
                instead=f"did you mean {self.path.with_name(near)}?" if near else "",
            )
        try:
            is_text = "\0" not in self.text()
        except (SyntaxError, UnicodeDecodeError):  # what Python says of a wrong encoding
            is_text = False
        if not is_text:
            raise OptionError(f"{self.path} is not the text of a Python program")

    def text(self) -> str:
        """The whole program."""
        if self.given:
            return self.given
        with tokenize.open(self.path) as file:
            return file.read()

    @property
    def title(self) -> str:
        """The name of the file (and function) without folders."""
        name = "standard input" if str(self.path) == STDIN else self.path.name
        return f"{name}:{self.function}" if self.function else name

    def trace_program(self) -> Graph:
        """The whole program, recorded.

        Raises:
            MinigraphError, SyntaxError, and anything that the program raises.
        """
        with self.running(), _to_its_end():
            return trace_program(self.given or self.path)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Its code runs: `sys.argv` is that of the program, and nothing of ours.

        From now on the neighbours of the file can be imported, as Python does it for scripts.
        """
        folder = str(self.path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        before = sys.argv
        sys.argv = [str(self.path), *self.words]
        try:
            yield
        finally:
            sys.argv = before

    def source(self, function: Function | None) -> tuple[str, int]:
        """The text of the program or function, and the number of its first line."""
        if function is None:
            return self.text(), 1
        try:
            written = _written(function)
            if not is_users_file(inspect.getfile(written)):  # a network of ours
                return "", 1
            lines, first = inspect.getsourcelines(written)
        except (OSError, TypeError):
            return "", 1
        return "".join(lines), first

    def load(self, **options: Any) -> Function:
        """The function, jitted; the rest of its file has run, but not as `__main__`.

        Of a hybrid network, what compiles it, whether or not it is hybridized in the file.

        Args:
            **options: of `mg.jit`, for a function that is not jitted yet.

        Raises:
            OptionError: the file has no such function.
            SyntaxError, and anything that the file raises.
        """
        path = self.path
        module = ModuleType(path.stem if path.stem not in sys.modules else f"{path.stem}_")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # dataclasses look their module up
        with self.running(), _to_its_end():
            exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), vars(module))
        self._names = vars(module)
        found = _look_up(module, self.function, path)
        if hasattr(type(found), "hybrid_"):
            return found._engine or HybridFunction(found)
        return cast(JitFunction, found) if hasattr(found, "lower") else jit(found, **options)

    def arguments(
        self, function: Function, expression: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that an expression gives, checked against the function's parameters.

        Args:
            function: what `load` returned.
            expression: "np.ones(3), scale=2.0", or types such as "f32[batch,512]" for arrays that
                are only described.  The names of the function's file can be used.

        Raises:
            OptionError: it is no list of arguments, or fails.
            SignatureError: the function takes others.
        """
        plain = getattr(function, "function", function)
        network = isinstance(function, HybridFunction)
        scope = {"np": np, **(self._names if network else getattr(plain, "__globals__", {}))}
        args, kwargs = _evaluate(expression or "", scope)
        signature = inspect.signature(plain if network else function)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            needs = "takes other arguments" if expression else "needs arguments"
            raise SignatureError(
                f"{self.function}{signature} {needs}: {error}",
                instead=f'--args "{_example(signature)}": values as Python writes them, '
                "or types such as f32[batch,512]",
            ) from None
        return args, kwargs


@contextlib.contextmanager
def _to_its_end() -> Iterator[None]:
    """A file runs to its last line.

    Raises:
        UnsupportedError: it ended itself.
    """
    try:
        yield
    except SystemExit:
        raise UnsupportedError(
            "the program ended itself (sys.exit) while it was traced",
            instead="let it run to its last line",
        ) from None


def _split(text: str) -> tuple[Path, str]:
    """The file and the function; a colon that belongs to an existing path stays there."""
    head, colon, tail = text.rpartition(":")
    if colon and not Path(text).exists() and Path(head).is_file():
        if all(part.isidentifier() for part in tail.split(".")):
            return Path(head), tail
        raise OptionError(
            f"{tail!r} is not the name of a function", instead=f"{head}, or {head}:NAME"
        )
    return Path(text), ""


def _neighbours(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.py")] if folder.is_dir() else []


def _look_up(module: ModuleType, dotted: str, path: Path) -> Callable[..., Any]:
    """The callable of that name.

    Raises:
        OptionError: there is none.
    """
    found: Any = module
    for name in dotted.split("."):
        if not hasattr(found, name):
            known = [each for each in dir(found) if not each.startswith("_")]
            functions = [each for each in known if callable(getattr(found, each, None))]
            near = nearest(name, functions) or nearest(name, known)
            listed = ", ".join(functions[:8])
            guess = f"did you mean {near!r}?" if near else ""
            raise OptionError(
                f"{path.name} has no function {dotted!r}",
                instead=guess or (f"one of {listed}" if listed else ""),
            )
        found = getattr(found, name)
    if not callable(found):
        raise OptionError(f"{dotted} in {path.name} is not a function: {type(found).__name__}")
    return found


# ---------------------------------------------------------------------------- arguments


def _evaluate(expression: str, scope: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Evaluate the text between the parentheses of a call."""

    def collect(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    names = {**vars(builtins), **scope, "_collect": collect}
    text = re.sub(r"\b([a-z]+\d+|bool)\[\s*\]", r"\1[()]", expression)  # f64[] is no Python
    try:
        tree = ast.parse(f"_collect({text}\n)", "--args", "eval")
    except SyntaxError as error:
        raise OptionError(
            f"--args {expression!r} are no arguments: {error.msg}", instead=FORMS
        ) from None
    if not isinstance(tree.body, ast.Call) or not isinstance(tree.body.func, ast.Name):
        raise OptionError(f"--args {expression!r} are no arguments", instead=FORMS)
    specs = _Specs(scope)
    tree = ast.fix_missing_locations(specs.visit(tree))
    try:
        args, kwargs = eval(compile(tree, "--args", "eval"), {**names, **specs.found})
    except Exception as error:
        raise OptionError(
            f"--args {expression!r} fails: {type(error).__name__}: {error}", instead=FORMS
        ) from None
    given = [*args, *kwargs.values()]
    if given and all(isinstance(value, type) for value in given):  # else it may be a dtype=
        name = given[0].__name__
        raise OptionError(
            f"--args: {name} is a class; only arrays can be told by their type alone",
            instead=f'a value, "2.0", or an array, "{_short(name) or "f64"}[2,3]"',
        )
    return args, kwargs


def _short(name: str) -> str:
    """`f64` for `f64` and `float64`; "" for what is no dtype of arrays."""
    try:
        return str(parse_type(f"{name}[]")).removesuffix("[]")
    except ValueError:
        pass
    try:
        found = np.dtype(name)
        return str(ArrayType(found, ())).removesuffix("[]") if found.name == name else ""
    except (TypeError, KeyError):
        return ""


class _Specs(ast.NodeTransformer):
    """Types of arrays (`f32[batch,512]`) become `Spec`s; their dimensions need no declaration.

    Raises:
        OptionError: what begins like one is none.
    """

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.scope = scope
        self.found: dict[str, Spec] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        short = self.dtype(node.value)
        if not short:
            return self.generic_visit(node)
        shape = ast.unparse(node).removeprefix(ast.unparse(node.value)).replace("[()]", "[]")
        try:
            kind = parse_type(short + shape)
        except ValueError:
            raise OptionError(
                f"--args: {ast.unparse(node)} is no type: a size is an integer from 0, or a name",
                instead=FORMS,
            ) from None
        assert isinstance(kind, ArrayType)
        name = f"_spec{len(self.found)}"
        self.found[name] = Spec(kind.shape, kind.dtype)
        return ast.Name(name, ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.AST:
        short = self.dtype(node)
        if short and not hasattr(builtins, node.id):
            raise OptionError(
                f"--args: {node.id} is a dtype, and the type of an array has a shape too",
                instead=f'"{short}[2,3]", or "{short}[]" for one number',
            )
        return node

    def dtype(self, node: ast.expr) -> str:
        """The short name of the dtype that is named, unless the file gives the name to another."""
        if isinstance(node, ast.Name) and node.id not in self.scope:
            return _short(node.id)
        return ""


def _written(function: Function) -> Any:
    """What the user wrote: the function, or the class of a network."""
    if isinstance(function, HybridFunction):
        return type(function.block)
    return getattr(function, "function", function)


def _example(signature: inspect.Signature) -> str:
    """Something to start from: an array for the first parameter, numbers for the others."""
    required = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    texts: list[str] = []
    for index, parameter in enumerate(required):
        value = "2.0" if index else "np.ones(3)"
        keyword = parameter.kind is parameter.KEYWORD_ONLY
        texts.append(f"{parameter.name}={value}" if keyword else value)
    return ", ".join(texts)
