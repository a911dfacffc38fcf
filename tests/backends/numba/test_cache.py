"""Compiled functions on disk: what is found again, what is rebuilt, what is not trusted."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("numba")

import numba
import numpy as np
from numba import types
from numba.core import config
from numba.core.errors import NumbaError

from minigraph.backends import cache_folder  # noqa: E402
from minigraph.backends.numba import cache
from minigraph.backends.numba.cache import Recipe, Store

FLOATS = types.float64[::1]


def enclosing(number: int):
    @numba.njit
    def shifted(x):
        return x + number

    return shifted


shifted, shifted_further = enclosing(1), enclosing(2)


def recipe(factor: int = 3, **options) -> Recipe:
    text = f"def kernel(x):\n    return shifted(x) * {factor}\n"
    helpers = {"shifted": shifted, "unused": object()}
    return Recipe(text, "kernel", (types.int64,), helpers, **options)


def make(store: Store, factor: int = 3):
    """A small kernel, proved to be the right one."""
    kernel = store.make(recipe(factor))
    assert kernel(4) == 5 * factor
    return kernel


def counts(store: Store) -> tuple[int, int, int]:
    return store.hits, store.misses, store.shared


def anew(folder: Path) -> Store:
    """A store that has to look on disk, as in a new process: nobody holds a function any more."""
    gc.collect()
    assert folder not in [place.parent for place, _ in cache._functions if place is not None]
    return Store(folder)


def only(folder: Path, suffix: str) -> Path:
    (path,) = folder.rglob(f"*{suffix}")
    return path


# ---------------------------------------------------------------------------- found again


def test_functions_are_shared_in_a_process(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path)
    kernel = make(store)
    assert make(other) is kernel
    assert counts(store) == (0, 1, 0)
    assert counts(other) == (0, 0, 1)


def test_threads_get_one_function(tmp_path):
    stores = [Store(tmp_path) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, stores))
    assert len({id(kernel) for kernel in made}) == 1
    assert sum(store.misses for store in stores) == 1


def test_functions_are_loaded_from_disk(tmp_path):
    make(Store(tmp_path))
    store = anew(tmp_path)
    make(store)
    assert counts(store) == (1, 0, 0)
    assert store.why == ""
    assert only(tmp_path, ".py").read_text() == recipe().text


def test_a_function_takes_its_signature_only(tmp_path):
    for store in (Store(tmp_path), anew(tmp_path)):
        with pytest.raises(TypeError, match="No matching definition"):
            make(store)("text")


@pytest.mark.parametrize("signature", ["float64(int64)", types.float64(types.int64)])
def test_a_signature_may_have_a_result(tmp_path, signature):
    for store in (Store(tmp_path), anew(tmp_path)):
        kernel = store.make(Recipe("def kernel(x):\n    return x\n", "kernel", signature, {}))
        assert kernel(3) == 3.0
        assert kernel.nopython_signatures[0].return_type == types.float64
        del kernel


def test_functions_on_disk_need_not_what_they_use(tmp_path):
    def outer():
        return Recipe("def outer(x):\n    return kernel(x)\n", "outer", (types.int64,), uses)

    uses = {"kernel": recipe()}
    first, second = Store(tmp_path), Store(tmp_path)
    assert first.make(outer())(4) == 15
    assert counts(first) == (0, 2, 0)
    second = anew(tmp_path)
    assert second.make(outer())(4) == 15
    assert counts(second) == (1, 0, 0)


def test_functions_from_disk_can_be_used(tmp_path):
    make(Store(tmp_path))
    store = anew(tmp_path)
    kernel = make(store)
    text = "def outer(x):\n    return kernel(x) + 1\n"
    outer = store.make(Recipe(text, "outer", (types.int64,), {"kernel": kernel}))
    assert outer(4) == 16
    assert counts(store) == (1, 1, 0)


def test_memory_alone_will_do():
    store = Store(None)
    kernel = make(store)
    assert make(store) is kernel
    assert store.folder is None
    assert "switched off" in store.why


def test_a_text_that_fails_to_compile_says_so(tmp_path):
    store = Store(tmp_path)
    wrong = Recipe("def kernel(x):\n    return x.name\n", "kernel", (types.int64,), {})
    with pytest.raises(NumbaError):
        store.make(wrong)
    make(store)
    assert counts(store) == (0, 1, 0)


# ---------------------------------------------------------------------------- digests


def test_digests_tell_apart():
    text, name, signature, helpers = "def f(x):\n    return g(x)\n", "f", (types.int64,), {}
    other = "def g(x):\n    return x\n"
    recipes = [
        Recipe(text, name, signature, helpers),
        Recipe(text + "\n", name, signature, helpers),
        Recipe(text, name, (types.int32,), helpers),
        Recipe(text, name, "int64(int64)", helpers),
        Recipe(text, name, signature, helpers, error_model="numpy"),
        Recipe(text, name, signature, helpers, fastmath={"contract"}),
        Recipe(text, name, signature, {"g": shifted}),
        Recipe(text, name, signature, {"g": shifted_further}),
        Recipe(text, name, signature, {"g": Recipe(other, "g", signature, {})}),
        Recipe(text, name, signature, {"g": Recipe(other + "\n", "g", signature, {})}),
    ]
    assert len({recipe.digest for recipe in recipes}) == len(recipes)


def test_a_function_stands_for_its_recipe():
    text, inner = "def outer(x):\n    return kernel(x)\n", recipe()
    made = Store(None).make(inner)
    assert (
        Recipe(text, "outer", (types.int64,), {"kernel": made}).digest
        == Recipe(text, "outer", (types.int64,), {"kernel": inner}).digest
    )


def test_digests_are_the_same_in_each_process(fresh_process):
    code = """if True:
        from numba import types
        from minigraph.backends.numba.cache import Recipe, version
        flags = {"contract", "nsz", "arcp", "afn"}
        helpers = {"float32": types.float32, "two": 2}
        text = "def f(x): return float32(two)"
        print(Recipe(text, "f", (types.int64,), helpers, fastmath=flags).digest, version())
    """
    assert fresh_process(code) == fresh_process(code)


def test_the_version_sees_sources_and_settings(tmp_path, monkeypatch):
    folder = tmp_path / "minigraph" / "backends" / "numba"
    (folder / "inner").mkdir(parents=True)
    sources = [tmp_path / "minigraph" / "__init__.py", folder / "a.py", folder / "inner" / "b.py"]
    for source in sources:
        source.write_text("")
    monkeypatch.setattr(cache, "__file__", str(folder / "cache.py"))
    versions = [cache.version.__wrapped__()]
    for source in sources:
        source.write_text("changed = 1")
        versions.append(cache.version.__wrapped__())
    monkeypatch.setattr(config, "OPT", 0)
    versions.append(cache.version.__wrapped__())
    assert len(set(versions)) == len(versions)


# ---------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: bytes(32) + data[32:],
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: b"cos\nsystem\n(S'exit 1'\ntR.",
    ],
    ids=["empty", "short", "cut", "checksum", "bit", "foreign"],
)
def test_damaged_functions_are_compiled_again(tmp_path, damage):
    make(Store(tmp_path))
    path = only(tmp_path, ".bin")
    path.write_bytes(damage(path.read_bytes()))
    for wanted in [(0, 1, 0), (1, 0, 0)]:
        store = anew(tmp_path)
        make(store)
        assert counts(store) == wanted


def test_a_function_does_not_pass_for_another(tmp_path):
    make(Store(tmp_path), 3)
    three = only(tmp_path, ".bin")
    shutil.copy(three, three.with_name(f"{recipe(4).digest}.bin"))
    store = anew(tmp_path)
    make(store, 4)
    assert counts(store) == (0, 1, 0)


def test_what_numba_cannot_load_is_compiled_again(tmp_path):
    make(Store(tmp_path))
    path = only(tmp_path, ".bin")
    data = b"cnumba.nothing\nlike_this\n."
    path.write_bytes(cache._checksum(recipe(), data) + data)
    store = anew(tmp_path)
    make(store)
    assert counts(store) == (0, 1, 0)


def test_a_text_that_was_changed_is_written_again(tmp_path):
    make(Store(tmp_path))
    path = only(tmp_path, ".py")
    path.write_text("def kernel(x):\n    return 0\n")
    store = anew(tmp_path)
    make(store)
    assert counts(store) == (1, 0, 0)
    assert path.read_text() == recipe().text


def test_a_folder_that_vanishes_harms_nobody(tmp_path):
    store = Store(tmp_path)
    shutil.rmtree(tmp_path)
    make(store)
    assert "kernel could not be kept" in store.why


def test_a_file_that_cannot_be_replaced_harms_nobody(tmp_path):
    store = Store(tmp_path)
    (store.folder / f"{recipe().digest}.bin").mkdir()
    (store.folder / f"{recipe().digest}.py").mkdir()
    make(store)
    assert "kernel could not be kept" in store.why
    assert len(list(store.folder.iterdir())) == 2


# ---------------------------------------------------------------------------- folders


def test_the_folder_is_chosen_at_each_call(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIGRAPH_CACHE", str(tmp_path / "a"))
    assert cache_folder() == tmp_path / "a"
    assert cache_folder(tmp_path / "b") == tmp_path / "b"
    for off in ("", "0", "off", "OFF"):
        monkeypatch.setenv("MINIGRAPH_CACHE", off)
        assert cache_folder() is None
        assert cache_folder(str(tmp_path)) == tmp_path
        assert cache_folder(off) is None


def test_the_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("MINIGRAPH_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "minigraph"
    for nothing in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", nothing)
        assert cache_folder() == tmp_path / ".cache" / "minigraph"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "minigraph"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "minigraph"


posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no owners and modes")


@posix
def test_folders_are_made_for_the_user_alone(tmp_path):
    store = Store(tmp_path / "deep" / "folder")
    assert store.folder is not None and store.why == ""
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert store.folder.parent.stat().st_mode & 0o777 == 0o700


def unused(folder: Path) -> str:
    """Why a store does not use this folder; it works all the same, and leaves no file there."""
    before = sorted(folder.rglob("*"))
    store = Store(folder)
    assert store.folder is None
    make(store)
    assert sorted(folder.rglob("*")) == before
    return store.why


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_folders_that_others_may_write_to_are_not_used(tmp_path, mode):
    inner = Store(tmp_path).folder
    assert inner is not None
    for open_mode in (mode, 0o755, 0o740):
        inner.chmod(open_mode)
        assert unused(tmp_path) == f"others may use {inner}"
    inner.chmod(0o700)
    tmp_path.chmod(0o755)
    assert Store(tmp_path).folder == inner
    tmp_path.chmod(mode)
    assert unused(tmp_path) == f"others may write to {tmp_path}"


@posix
def test_folders_of_others_are_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert unused(tmp_path) == f"{tmp_path} belongs to another user"


@posix
def test_links_are_not_followed(tmp_path):
    true = tmp_path / "true"
    inner = Store(true).folder
    assert inner is not None
    link = tmp_path / "link"
    link.symlink_to(true)
    assert unused(link) == f"{link} is no folder"
    inner.rename(tmp_path / "elsewhere")
    inner.symlink_to(tmp_path / "elsewhere")
    assert unused(true) == f"{inner} is no folder"


def test_a_path_through_a_file_is_not_used(tmp_path):
    (tmp_path / "file").write_text("")
    assert unused(tmp_path / "file") == f"{tmp_path / 'file'} is no folder"
    assert "file" in unused(tmp_path / "file" / "further")


# ---------------------------------------------------------------------------- other processes

EVERYTHING = """if True:
    import json, sys
    import numba
    import numpy as np
    from numba import types
    from pathlib import Path
    from minigraph.backends.numba.cache import Recipe, Store
    from minigraph.backends.numba.intrinsics import HELPERS

    @numba.njit(error_model="numpy")
    def plus_one(x):
        return x + np.float32(1)

    helpers = {{**HELPERS, "np": np, "prange": numba.prange, "plus_one": plus_one}}
    options = dict(error_model="numpy", nogil=True)
    pointer, matrix = types.CPointer(types.float32), types.float32[:, ::1]
    kernel = Recipe('''if True:
        def kernel(lo, hi, x, out):
            for i in range(lo, hi):
                store0(out, i, plus_one(load(x, i)))
        ''', "kernel", (types.intp, types.intp, pointer, pointer), helpers, **options)
    parallel = Recipe('''if True:
        def parallel(parts, x, out):
            for part in prange(parts):
                lo, hi = part * x.size // parts, (part + 1) * x.size // parts
                kernel(lo, hi, data(x), data(out))
        ''', "parallel", (types.intp, matrix, matrix), {{**helpers, "kernel": kernel}},
        parallel=True, **options)
    driver = Recipe('''if True:
        def driver(x, w):
            product = np.empty((x.shape[0], w.shape[1]), np.float32)
            np.dot(x, w, product)
            parallel(2, product, product)
            return product
        ''', "driver", (matrix, matrix), {{**helpers, "parallel": parallel}}, **options)

    store = Store(Path({folder!r}))
    parallel = store.make(parallel)
    light = "scipy.linalg" not in sys.modules
    driver = store.make(driver)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = driver(x, x.T.copy()).tolist()
    try:
        driver(x, x)
    except ValueError as raised:
        error = str(raised)
    print(json.dumps(
        [result, error, store.hits, store.misses, store.why, light, len(plus_one.overloads)]
    ))
"""


def test_everything_is_loaded_in_another_process(tmp_path, fresh_process):
    """Pointers, intrinsics, parallel loops, products, errors; nothing is loaded to compile."""
    code = EVERYTHING.format(folder=str(tmp_path))
    x = np.arange(6).reshape(2, 3)
    cold, warm = json.loads(fresh_process(code)), json.loads(fresh_process(code))
    assert cold[0] == warm[0] == (x @ x.T + 1).tolist()
    assert cold[1] == warm[1] == "incompatible array sizes for np.dot(a, b) (matrix * matrix)"
    assert cold[2:] == [0, 3, "", False, 1]
    assert warm[2:] == [2, 0, "", True, 0]


RACER = """if True:
    import sys
    from numba import types
    from pathlib import Path
    from minigraph.backends.numba.cache import Recipe, Store
    store = Store(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(4):
        text = f"def kernel(x):\\n    return x * {number}\\n"
        kernel = store.make(Recipe(text, "kernel", (types.int64,), {}))
        assert kernel(7) == 7 * number
    print(store.hits + store.misses, store.why)
"""


def test_processes_may_race(tmp_path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(Path(cache.__file__).parents[3])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    assert [racer.communicate()[0].split() for racer in racers] == [["4"], ["4"]]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".py", ".bin"}


COLLIDING = """if True:
    import sys
    import numba
    import numpy as np
    from numba import types
    from numba.parfors.parfor import Parfor
    from pathlib import Path
    from minigraph.backends.numba.cache import Recipe, Store

    Parfor.__hash__ = lambda parfor: 42  # it is an address in memory, and names the parallel loop
    store = Store(Path({folder!r}))
    for number in {numbers}:
        text = f"def kernel(x):\\n    for i in prange(x.size):\\n        x[i] = {{number}}\\n"
        signature, helpers = (types.float64[::1],), {{"prange": numba.prange}}
        kernel = store.make(Recipe(text, "kernel", signature, helpers, parallel=True))
        x = np.zeros(2)
        kernel(x)
        print(*x)
    assert store.hits == {hits}
"""


def test_code_of_two_processes_is_told_apart(tmp_path, fresh_process):
    for numbers, hits in [([3], 0), ([5], 0), ([3, 5], 2)]:
        code = COLLIDING.format(folder=str(tmp_path), numbers=numbers, hits=hits)
        assert fresh_process(code) == "".join(f"{number}.0 {number}.0\n" for number in numbers)


def test_ctrl_c_waits_until_the_function_is_compiled():
    """Python code that LLVM calls back would swallow it."""
    reached = []
    with pytest.raises(KeyboardInterrupt), cache._interrupts_after():
        signal.raise_signal(signal.SIGINT)
        reached.append("the end")
    assert reached == ["the end"]
    with pytest.raises(KeyboardInterrupt):  # the handler of before is back
        signal.raise_signal(signal.SIGINT)


def test_a_compilation_is_interrupted_after_the_function(tmp_path, monkeypatch):
    compile_ = numba.core.dispatcher.Dispatcher.compile

    def interrupted(self, signature):
        signal.raise_signal(signal.SIGINT)
        return compile_(self, signature)

    monkeypatch.setattr(numba.core.dispatcher.Dispatcher, "compile", interrupted)
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        make(store)
    monkeypatch.undo()
    make(store)
    assert (store.hits, store.misses) == (0, 1)
