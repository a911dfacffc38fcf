"""Generated text, compiled by Numba once: shared within a process, kept on disk for the next one.

Numba's own cache does not see that a function which is called has changed, keeps its index in a
pickle that it opens unchecked, and loads a second's worth of typing rules before it looks.  So a
`Store` gives each dispatcher a cache of its own, `Entry`: one file, under a name that is a digest
of all that the machine code depends on.

    FOLDER/VERSION/DIGEST.py     the text, for tracebacks, debuggers and readers
    FOLDER/VERSION/DIGEST.bin    SHA-256 of the rest; Numba's `CompileResult`, pickled

VERSION stands for what is the same for all texts (`version`), DIGEST for one text with its name,
signature, options and what its globals are.  Files are written under a temporary name and put in
place whole, so processes that race write the same function twice and harm nobody.

Loading a pickle runs what is in it.  The checksum finds damage, not malice: that is kept out by the
folder, which must belong to the user and be closed to all others' writing, or is not used.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pickle
import re
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

import llvmlite
import numba
import numpy as np
from numba.core import config, serialize, sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

OFF = ("", "0", "off")
"""What `cache_dir=` or MINIGRAPH_CACHE says to keep nothing on disk."""

_SETTINGS = (
    "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML",
)  # fmt: skip
"""Settings of Numba, by environment variable or file, that change its machine code."""

_functions: WeakValueDictionary[tuple[Path | None, str], Any] = WeakValueDictionary()
"""All functions in use in this process, by folder and digest."""


def folder_for(cache_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder to cache in: as given, or by MINIGRAPH_CACHE, or the user's; None: nowhere."""
    chosen = os.environ.get("MINIGRAPH_CACHE") if cache_dir is None else os.fspath(cache_dir)
    if chosen is not None:
        off = chosen.strip().lower() in OFF
        return None if off else Path(os.path.expanduser(chosen)).absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        # The specification of XDG_CACHE_HOME: a relative path is ignored.
        base = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    # A user without a home has no such folder.
    return Path(base, "minigraph") if os.path.isabs(base) else None


@functools.cache
def version() -> str:
    """A digest of what compiled functions depend on besides their text: helpers, tools, machine."""
    context: Any = cpu_target.target_context
    here = Path(__file__).parent
    sources = [here.parents[1] / "__init__.py", *sorted(here.glob("*.py"))]
    return _digest(
        [(source.name, source.read_bytes()) for source in sources],
        (numba.__version__, llvmlite.__version__, np.__version__, sys.version),
        context.codegen().magic_tuple(),
        [(name, getattr(config, name, None)) for name in _SETTINGS],
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
            self.folder = folder / version()
            self.why = _unfit(folder) or _unfit(self.folder)
        except OSError as error:
            self.why = str(error)
        if self.why:
            self.folder = None

    def function(
        self,
        text: str,
        name: str,
        signature: Any,
        helpers: Mapping[str, Any],
        uses: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """The dispatcher of a function, compiled for one signature and for no other.

        Args:
            text: source that defines the function.
            name: its name there.
            signature: a tuple of Numba types, a Numba signature, or its text.
            helpers: what the text may name without defining it: functions, types, numbers.
            uses: the same for functions that a store has made.
            options: those of `numba.njit`.

        Raises:
            NumbaError: Numba cannot compile the text.
        """
        words = set(re.findall(r"[^\W\d]\w*", text))
        named = {word: item for word, item in {**helpers, **(uses or {})}.items() if word in words}
        arguments, result = sigutils.normalize_signature(signature)
        digest = _digest(
            text,
            (name, arguments, result),
            sorted((option, _spelled(value)) for option, value in options.items()),
            sorted((word, _identity(item)) for word, item in named.items()),
        )
        with global_compiler_lock:
            found = _functions.get((self.folder, digest))
            if found is not None:
                self.shared += 1
                return found
            filename = self._written(text, digest)
            scope = {"__name__": __name__, **named}
            exec(compile(text, filename, "exec", dont_inherit=True), scope)
            function = scope[name]
            # Symbols are made of it: those of two processes must not be mistaken for each other.
            # It also tells `_identity` which function this is.
            function.__qualname__ = f"{name}_{digest}"
            made = numba.njit(**options)(function)
            self._compile(made, arguments if result is None else result(*arguments), digest)
            _functions[self.folder, digest] = made
            return made

    def _written(self, text: str, digest: str) -> str:
        """The name of the file that holds the text, which is written if it is not there."""
        if self.folder is None:
            return f"<minigraph {digest}>"
        path = self.folder / f"{digest}.py"
        data = text.encode()
        try:
            if _read(path) != data:
                _replace(path, data)
        except OSError as error:
            self.why = str(error)
        return str(path)

    def _compile(self, made: Any, signature: Any, digest: str) -> None:
        entry = None
        if self.folder is not None:
            made._cache = entry = Entry(self.folder / f"{digest}.bin")
        made.compile(signature)
        made.disable_compile()
        if entry is not None and entry.loaded:
            self.hits += 1
        else:
            self.misses += 1
        if entry is not None and entry.why:
            self.why = entry.why


class Entry(_Cache):
    """One compiled function on disk, as Numba's dispatchers want their cache to be.

    Attributes:
        loaded: the function came from the file.
        why: why the function could not be kept, if so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loaded = False
        self.why = ""

    @property
    def cache_path(self) -> str:
        return str(self.path.parent)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """The function, or None; a file that holds something else is deleted."""
        data = _read(self.path)
        if data is None:
            return None
        try:
            if data[:32] != self._checksum(data[32:]):
                raise ValueError("damaged")
            # All that running needs.  `target_context.refresh()`, which Numba would call here, also
            # loads what compiling needs, the typing rules and SciPy: most of a program's start.
            rtsys.initialize(target_context)
            result = CompileResult._rebuild(target_context, *pickle.loads(data[32:]))
        except Exception:
            # Whatever it is, compiling anew is the remedy.
            with suppress(OSError):
                self.path.unlink()
            return None
        self.loaded = True
        return result

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        if data.lifted or data.library.has_dynamic_globals:
            self.why = "a function with addresses of this process in it cannot be kept"
            return
        try:
            content = serialize.dumps(data._reduce())
            _replace(self.path, self._checksum(content) + content)
        except Exception as error:
            # A full disk, a folder that cannot be written to, an object that cannot be pickled.
            self.why = f"a compiled function could not be kept: {error}"

    def _checksum(self, content: bytes) -> bytes:
        # With the name: a copy of another entry is no entry.
        return hashlib.sha256(self.path.name.encode() + content).digest()

    def enable(self) -> None:
        """There is always something to enable, so nothing to do."""

    def disable(self) -> None:
        """Without a store's folder there is no entry."""

    def flush(self) -> None:
        """An entry never grows stale: its name says what it holds."""


# ---------------------------------------------------------------------------- digests


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _spelled(value: Any) -> str:
    """An option as text that is the same in each process, which `repr` of a set is not."""
    return repr(sorted(value)) if isinstance(value, set | frozenset) else repr(value)


def _identity(item: Any) -> str:
    """What a global of a text is, as text: for a function its place and what it encloses."""
    function = inspect.unwrap(item)
    if not isinstance(function, FunctionType):
        return repr(item)
    enclosed = [_identity(cell.cell_contents) for cell in function.__closure__ or ()]
    return f"{function.__module__}.{function.__qualname__} {enclosed}"


# ---------------------------------------------------------------------------- files


def _unfit(folder: Path) -> str:
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
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others may write to {folder}"
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
