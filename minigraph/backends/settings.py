"""What the user may choose about backends."""

from __future__ import annotations

import os


class Settings:
    """How programs are made and run.

    Attributes:
        math: "vector": transcendental functions within 4 ULP, as vector instructions; "libm": with
            NumPy's own bits.
        threads: the most threads that one call uses; None: as `mg.set_num_threads` says.
        cache_dir: the folder of compiled code; None: MINIGRAPH_CACHE, or the user's cache folder.
        strict: a program that a backend cannot compile is an error, and does not run in another.
    """

    __slots__ = ("cache_dir", "math", "strict", "threads")

    def __init__(
        self,
        math: str = "vector",
        threads: int | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        strict: bool = False,
    ) -> None:
        self.math = math
        self.threads = threads
        self.cache_dir = cache_dir
        self.strict = strict
