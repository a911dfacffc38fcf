"""Generated text, compiled by Numba once: shared within a process, kept on disk for the next one.

Numba's own cache does not see that a function which is called has changed, keeps its index in a
pickle that it opens unchecked, and loads typing rules and SciPy before it looks.  So a `Store`
keeps what Numba keeps, a pickled `CompileResult`, in its own way: one file, under a name that is a
digest of all that the machine code depends on.

    FOLDER/VERSION/DIGEST.py     the text, for tracebacks, debuggers and readers
    FOLDER/VERSION/DIGEST.bin    SHA-256 of the rest; the compiled function

VERSION stands for what is the same for all texts (`version`), DIGEST for one `Recipe`: a text with
its name, signature, options and globals.  Files are written under a temporary name and put in place
whole, so processes that race write the same function twice and harm nobody.

Loading a pickle runs what is in it.  The checksum finds damage, not malice: that is kept out by the
folder, which must belong to the user and be closed to all others' writing, or is not used.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import os
import pickle
import re
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import numba
import numpy as np
from numba.core import config, serialize, sigutils
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

_SETTINGS = (
    "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML",
)  # fmt: skip
"""Settings of Numba, by environment variable or file, that change its machine code."""

_functions: WeakValueDictionary[tuple[Path | None, str], Any] = WeakValueDictionary()
"""All functions in use in this process, by folder and digest."""


@functools.cache
def version() -> str:
    """A digest of what compiled functions depend on besides their text: helpers, tools, machine."""
    context: Any = cpu_target.target_context
    here = Path(__file__).parent
    sources = [here.parents[1] / "__init__.py", *sorted(here.rglob("*.py"))]
    return _digest(
        [(source.name, source.read_bytes()) for source in sources],
        (numba.__version__, llvmlite.__version__, np.__version__, sys.version),
        context.codegen().magic_tuple(),
        [(name, getattr(config, name, None)) for name in _SETTINGS],
    )


class Recipe:
    """What it takes to make one function; it is made when it is needed.

    Attributes:
        text: source that defines the function.
        name: its name there.
        arguments: their Numba types.
        result: the type of the result; None: whatever Numba infers.
        helpers: what the text names without defining it: types, numbers, functions for Numba, and
            recipes for further ones.  Of a function only the place enters the digest, so its
            source must lie where `version` reads it.
        options: those of `numba.njit`.
        digest: stands for all of this.
    """

    def __init__(
        self, text: str, name: str, signature: Any, helpers: Mapping[str, Any], **options: Any
    ) -> None:
        """A signature is as for `numba.njit`; helpers that the text does not name are left out."""
        words = set(re.findall(r"[^\W\d]\w*", text))
        self.text = text
        self.name = name
        self.arguments, self.result = sigutils.normalize_signature(signature)
        self.helpers = {word: item for word, item in helpers.items() if word in words}
        self.options = options
        self.digest = _digest(
            text,
            (name, self.arguments, self.result),
            sorted((word, _identity(item)) for word, item in self.helpers.items()),
            sorted((option, _spelled(value)) for option, value in options.items()),
        )


class Store:
    """Makes functions of text; none is compiled twice, here or in the next process.

    Attributes:
        folder: where they are kept; None: in memory only.
        why: why there is no folder, or why the latest function that could not be kept was not.
        hits: functions that were loaded from the folder.
        misses: functions that were compiled.
        shared: functions that were in use in this process already.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder: Path | None = None
        self.why = ""
        self.hits = self.misses = self.shared = 0
        if folder is None:
            self.why = "nothing is kept on disk: that is switched off"
            return
        try:
            own = folder / version()
            self.why = _unfit(folder, WRITING) or _unfit(own, ANYTHING)
        except OSError as error:
            self.why = str(error)
        else:
            self.folder = None if self.why else own

    def make(self, recipe: Recipe) -> Any:
        """The dispatcher of a function, compiled for its one signature and for no other.

        The recipes among its helpers are made only if it has to be compiled: its code on disk
        holds theirs.

        Raises:
            NumbaError: Numba cannot compile the text.
        """
        with global_compiler_lock:
            made = _functions.get((self.folder, recipe.digest))
            if made is not None:
                self.shared += 1
                return made
            scope: dict[str, Any] = {"__name__": __name__, **recipe.helpers}
            exec(compile(recipe.text, self._write(recipe), "exec", dont_inherit=True), scope)
            function = scope[recipe.name]
            # It becomes part of symbols, and tells the recipes that use the function which it is.
            function.__qualname__ = f"{recipe.name}_{recipe.digest}"
            made = numba.njit(**recipe.options)(function)
            if not self._load(recipe, made):
                for word, item in recipe.helpers.items():
                    scope[word] = self.make(item) if isinstance(item, Recipe) else item
                self._compile(recipe, made)
            made.disable_compile()
            _functions[self.folder, recipe.digest] = made
            return made

    def is_kept(self, recipe: Recipe) -> bool:
        """Whether the function is in use here, or in the folder."""
        if (self.folder, recipe.digest) in _functions:
            return True
        return self.folder is not None and (self.folder / f"{recipe.digest}.bin").exists()

    def _write(self, recipe: Recipe) -> str:
        """The name of the file that holds the text, which is written if it is not there."""
        if self.folder is None:
            return f"<minigraph {recipe.digest}>"
        path = self.folder / f"{recipe.digest}.py"
        text = recipe.text.encode()
        try:
            if _read(path) != text:
                _replace(path, text)
        except OSError as error:
            self.why = str(error)
        return str(path)

    def _load(self, recipe: Recipe, made: Any) -> bool:
        """Give a dispatcher its code from disk; False: there was none that is whole."""
        if self.folder is None:
            return False
        path = self.folder / f"{recipe.digest}.bin"
        data = _read(path)
        if data is None:
            return False
        try:
            if data[:32] != _checksum(recipe, data[32:]):
                raise ValueError("damaged")
            # All that running needs.  `targetctx.refresh()`, which Numba would call here, also
            # loads what compiling needs, the typing rules and SciPy: most of a program's start.
            rtsys.initialize(made.targetctx)
            result = CompileResult._rebuild(made.targetctx, *pickle.loads(data[32:]))
        except Exception:
            # Whatever it is, compiling anew is the remedy.
            with suppress(OSError):
                path.unlink()
            return False
        made.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        made.add_overload(result)
        self.hits += 1
        return True

    def _compile(self, recipe: Recipe, made: Any) -> None:
        """Give a dispatcher its code by compiling it, and keep that on disk."""
        with _numbered_by(recipe.digest), _interrupts_after():
            made.compile(
                recipe.arguments if recipe.result is None else recipe.result(*recipe.arguments)
            )
        self.misses += 1
        if self.folder is None:
            return
        result = made.overloads[recipe.arguments]
        if result.lifted or result.library.has_dynamic_globals:
            self.why = f"{recipe.name} has addresses of this process in it"
            return
        try:
            data = serialize.dumps(result._reduce())
            _replace(self.folder / f"{recipe.digest}.bin", _checksum(recipe, data) + data)
        except Exception as error:
            # A full disk, a folder that cannot be written to, an object that cannot be pickled.
            self.why = f"{recipe.name} could not be kept: {error}"


@contextmanager
def _interrupts_after() -> Iterator[None]:
    """Let Ctrl-C interrupt after the function is compiled.

    While LLVM runs, Python code that it calls back swallows the exception (measured).
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # someone has plans of their own
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def _numbered_by(digest: str) -> Iterator[None]:
    """While compiling: number functions so that no other text's functions have their numbers.

    Numba makes symbols unique by counting functions from 1.  In two processes that gives the same
    symbols (all parallel loops have one name and an address in memory), and in a third, which loads
    the code of both, the second to be loaded runs the code of the first.
    """
    before = FunctionIdentity._unique_ids
    FunctionIdentity._unique_ids = itertools.count(int(digest[:16], 16) << 16)
    try:
        yield
    finally:
        FunctionIdentity._unique_ids = before


# ---------------------------------------------------------------------------- digests


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _spelled(value: Any) -> str:
    """An option as text that is the same in each process, which `repr` of a set is not."""
    return repr(sorted(value)) if isinstance(value, set | frozenset) else repr(value)


def _identity(item: Any) -> str:
    """What a global of a text is, as text: for a function its place and what it encloses."""
    if isinstance(item, Recipe):
        return f"{__name__}.{item.name}_{item.digest} []"
    function = inspect.unwrap(item)
    if not isinstance(function, FunctionType):
        return repr(item)
    enclosed = [_identity(cell.cell_contents) for cell in function.__closure__ or ()]
    return f"{function.__module__}.{function.__qualname__} {enclosed}"


def _checksum(recipe: Recipe, data: bytes) -> bytes:
    # With the digest: a copy of another function's file does not pass for this one's.
    return hashlib.sha256(recipe.digest.encode() + data).digest()


# ---------------------------------------------------------------------------- files


WRITING, ANYTHING = 0o022, 0o077
"""What others may not do in the chosen folder, and in the one within that holds the code."""


def _unfit(folder: Path, forbidden: int) -> str:
    """Why this folder, made where it is missing, is not to be trusted; "": it is.

    Raises:
        OSError: it is missing and cannot be made.
    """
    if not os.path.lexists(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no folder"
    if sys.platform != "win32":
        if found.st_uid != os.geteuid():
            return f"{folder} belongs to another user"
        if found.st_mode & forbidden:
            return f"others may {'write to' if forbidden == WRITING else 'use'} {folder}"
    return ""


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _replace(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
