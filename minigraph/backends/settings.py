"""What the user may choose about backends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

OFF = ("", "0", "off")
"""What `cache_dir=` or MINIGRAPH_CACHE says to keep nothing on disk."""


class Settings:
    """How programs are made and run.

    Attributes:
        math: "vector": transcendental functions within 4 ULP, as vector instructions; "libm": with
            NumPy's own bits.
        threads: the most threads that one call uses; None: as `mg.set_num_threads` says.
        cache_dir: the folder of compiled code; None: MINIGRAPH_CACHE, or the user's cache folder.
        strict: a program that a backend cannot compile is an error, and does not run in another.
        static_alloc: memory for what a call needs and does not return is kept for the next call.
        static_shape: the text of a program holds all sizes, so there is none of named dimensions.
        reuse_buffers: a value may lie in the memory of one that is needed no longer.
    """

    __slots__ = (
        "cache_dir",
        "math",
        "reuse_buffers",
        "static_alloc",
        "static_shape",
        "strict",
        "threads",
    )

    def __init__(
        self,
        math: str = "vector",
        threads: int | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        strict: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        reuse_buffers: bool = True,
    ) -> None:
        self.math = math
        self.threads = threads
        self.cache_dir = cache_dir
        self.strict = strict
        self.static_alloc = static_alloc or static_shape
        self.static_shape = static_shape
        self.reuse_buffers = reuse_buffers


DEFAULT_SETTINGS = Settings()


def cache_folder(cache_dir: str | os.PathLike[str] | None = None) -> Path | None:
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
