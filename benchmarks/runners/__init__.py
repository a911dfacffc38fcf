"""All runners: the files of this folder, and of one's own.  No framework is imported.

The files of a second folder join in where one is given (`python -m benchmarks run --own FOLDER`):
that is how a system is measured that is not in here.  Such a file has a class that derives from
`benchmarks.runners.base.Runner`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType

from .base import Runner

FOLDER = Path(__file__).parent

ORDER = (
    "minigraph numba",
    "minigraph python",
    "minigraph interpret",
    "minigraph cupy",
    "minigraph block",
    "minigraph hybridize",
    "minigraph hybridize static",
    "Python",
    "NumPy",
    "Numba njit",
    "Numba by hand",
    "torch eager",
    "torch eager with grad",
    "torch.jit.script",
    "torch.jit.script of cells",
    "torch.jit.freeze",
    "torch.compile",
    "TensorFlow eager",
    "tf.function",
    "tf.function XLA",
    "MXNet imperative",
    "MXNet hybridize",
    "MXNet hybridize static",
    "JAX jit",
    "ONNX Runtime",
    "PyTensor",
)
"""The columns of the tables, from left to right; others come after them."""


class Unusable(ValueError):
    """Runners of one's own that are none; the text says where and why."""


def columns(own: Path | None = None) -> dict[str, type[Runner]]:
    """Name of each column → its class, in their order; with those of a folder of one's own.

    Raises:
        Unusable: two columns have the same name, or a file cannot be loaded.
    """
    found = _named("variants", own)
    place = {name: index for index, name in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda item: place.get(item[0], len(ORDER))))


def ablations(own: Path | None = None) -> dict[str, type[Runner]]:
    """Name of each column that shows what one part of a compiler gains → its class."""
    return _named("ablations", own)


def named(name: str, names: Collection[str]) -> list[str]:
    """Those that are meant: the one of that name, else all whose names begin with it.

    Raises:
        LookupError: there are none; the text says what may have been meant.
    """
    if name in names:
        return [name]
    if not name.strip():
        raise LookupError("a name is empty")
    found = [each for each in names if each.lower().startswith(name.lower())]
    if not found:
        raise LookupError(meant(name, names))
    return found


def meant(name: str, names: Collection[str]) -> str:
    """For messages: what somebody may have meant who wrote a name that there is not."""
    lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return (
        f"there is no {name!r}; did you mean {lower[near[0]]!r}?"
        if near
        else (f"there is no {name!r}; there are {', '.join(names)}")
    )


def _named(which: str, own: Path | None) -> dict[str, type[Runner]]:
    found: dict[str, type[Runner]] = {}
    for runner in _classes(own):
        names: Mapping[str, str] = getattr(runner, which)
        for name in names:
            if name in found:
                both = f"{found[name].__module__} and {runner.__module__}"
                raise Unusable(f"two runners have a column {name!r}: {both}")
            found[name] = runner
    return found


def _classes(own: Path | None) -> list[type[Runner]]:
    modules = [
        importlib.import_module(f".{path.stem}", __package__)
        for path in sorted(FOLDER.glob("*.py"))
        if path.stem not in ("__init__", "base")
    ]
    modules += [_loaded(path) for path in sorted(own.glob("*.py"))] if own else []
    return [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Runner)
        and each.__module__ == module.__name__
    ]


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"own_runners_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Unusable(f"{path}: {type(error).__name__}: {error}") from error
    return module
