"""Where functions are found, and what is refused."""

# ruff: noqa: E501, E731  # programs as text, one a line

from __future__ import annotations

import importlib
import linecache
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from script_programs import as_python, define, outcome

import minigraph as mg


def sign(x: Any) -> Any:
    return mg.script(lambda v: v if v > 0 else -v)(x)


def test_lambdas_of_one_line_are_told_apart():
    one, two = mg.script(lambda x: x if x > 0 else 1), mg.script(lambda x: x if x > 0 else 2)
    assert (one(-5), two(-5)) == (1, 2)
    assert sign(-3.0) == 3.0


def test_text_that_a_caller_holds():
    text = """
import minigraph as mg
@mg.script
def double(x):
    if x > 1:
        return x * 2
    return helper(x)
def helper(x):
    return -x if x < 0 else x * 3
"""
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    double = namespace["double"]
    assert [double(x) for x in (3, 0.5, -2)] == [6, 1.5, 2]
    assert double.code.startswith("@mg.script")


def test_text_that_no_one_holds():
    namespace: dict[str, Any] = {}
    exec("".join(["def lost(x):\n", "    return x if x > 0 else -", "x\n"]), namespace)
    with pytest.raises(mg.MinigraphError, match="text of lost is nowhere to be found") as caught:
        mg.script(namespace["lost"])
    assert caught.value.code == "MG035"


def test_a_function_without_text_that_is_called_stays_as_it_is():
    namespace: dict[str, Any] = {}
    exec("".join(["def lost(x):\n", "    return x * ", "2\n"]), namespace)
    lost = namespace["lost"]

    def function(x: Any) -> Any:
        if x > 0:
            return lost(x)
        return x

    scripted = mg.script(function)
    assert [scripted(2.0), scripted(-2.0)] == [4.0, -2.0]


def test_a_branch_in_a_function_that_could_not_be_converted_says_why():
    namespace: dict[str, Any] = {}
    exec("".join(["def lost(x):\n", "    return x if x.sum() > ", "2 else -x\n"]), namespace)
    lost = namespace["lost"]

    def function(x: Any) -> Any:
        return lost(x) + 1

    with pytest.raises(mg.MinigraphError, match="lost could not be converted: the text of lost"):
        mg.script(function)(np.ones(3))


def test_a_file_that_has_changed(tmp_path: Path):
    path = tmp_path / "changing.py"
    path.write_text("def f(x):\n    return x + 1\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("def f(x):\n    return x + 2\n")
    linecache.checkcache()
    with pytest.raises(mg.MinigraphError, match="has changed since"):
        mg.script(namespace["f"])


def test_the_command_line(fresh_process: Callable[..., str]):
    source = (
        "import minigraph as mg\n"
        "@mg.script(backend='python')\n"
        "def f(x):\n"
        "    return x if x > 0 else -x\n"
        "print(f(-3))\n"
    )
    assert fresh_process(source) == "3\n"


def test_the_history_of_the_repl(monkeypatch: pytest.MonkeyPatch):
    lines = ["import numpy as np", "x = 1", "def f(x):", "    if x > 0:", "        return x"]
    lines += ["    return -x", "", "f(3)"]
    readline = types.ModuleType("readline")
    readline.get_current_history_length = lambda: len(lines)  # type: ignore[attr-defined]
    readline.get_history_item = lambda at: lines[at - 1]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "readline", readline)
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(lines[2:6]) + "\n", "<stdin>", "single"), namespace)
    assert mg.script(namespace["f"])(-2) == 2


def test_private_names_and_the_names_of_classes():
    function = define(
        """
        class Net:
            __scale = 2
            count = 5
            def forward(self, x):
                if x > 0:
                    return x * self.__scale + Net.count
                return x
        made = Net().forward
        """,
        "made",
    )
    scripted = mg.script(function)
    assert [scripted(3.0), scripted(-3.0)] == [11.0, -3.0]


def test_a_function_of_an_installed_package_is_left_alone():
    def function(x: Any) -> Any:
        if x.sum() > 0:
            return textwrap.dedent("  a") == "a", np.linalg.norm(x)
        return False, np.linalg.norm(x)

    assert mg.script(function)(np.ones(4)) == (True, 2.0)


REFUSED = {
    "    global calls\n    calls = 1": ("a global is assigned", "global calls"),
    "    yield x": ("a generator is not converted", "yield x"),
    "    return locals()": (r"locals\(\) sees the variables", "locals()"),
    "    def g():\n        nonlocal x\n        x = 1\n    g()": ("is assigned here", "nonlocal x"),
    "    exec('x = 1')": (r"exec\(\) sees", "exec('x = 1')"),
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body: str):
    fact, marked = REFUSED[body]
    with pytest.raises(mg.MinigraphError, match=fact) as caught:
        mg.script(define(f"def f(x):\n{body}\n"))
    lines = str(caught.value).splitlines()
    assert caught.value.code == "MG034"
    (caret,) = [line for line in lines if line.strip() and not line.strip().strip("^")]
    text = lines[lines.index(caret) - 1]
    assert text[caret.index("^") : caret.rindex("^") + 1] == marked
    assert any(line.startswith("  instead: ") for line in lines)


def test_async_code_is_refused():
    with pytest.raises(mg.MinigraphError, match="async code"):
        mg.script(define("async def f(x):\n    return x\n"))


def test_conditions_in_what_is_kept():
    function = define(
        """
        def f(x):
            try:
                if x.sum() > 3:
                    y = 1
                else:
                    y = 2
            finally:
                print("done")
            return y
        """
    )
    with pytest.raises(mg.MinigraphError, match="the `try` in line 3 is kept as Python"):
        mg.script(function)(np.ones(2))


def test_a_with_that_swallows():
    function = define(
        """
        class Swallow:
            def __enter__(self): return self
            def __exit__(self, *error): return True
        def f(x):
            with Swallow():
                raise ValueError("lost")
            return x
        """
    )
    with pytest.raises(mg.MinigraphError, match="a `with` swallows a ValueError"):
        as_python(function)(1)


@pytest.mark.parametrize(
    "body",
    [
        "    import contextlib\n    with contextlib.suppress(ZeroDivisionError):\n        b = 1 / a\n"
        "    return b",
        "    for i in range(5):\n        try:\n            if i == a: break\n            print(1 / (i - 1))\n"
        "        except ZeroDivisionError:\n            continue\n        finally:\n            b = i\n"
        "    return b, i",
        "    match [a, b]:\n        case [0, y]: return y\n        case [x, _] if x > 5: return x\n"
        "    return -1",
        "    made = [i * j for i in range(a) for j in range(i) if j % 2]\n    return made, sum(made)",
        "    try:\n        c = b\n        if a: del c\n        print(c)\n    except NameError as e:\n"
        "        return type(e).__name__\n    return c",
        "    g = lambda: b\n    if a: b += 1\n    return g()",
        "    x: int = 3\n    del x\n    x = a\n    return x",
        "    class K:\n        k = a\n    while K.k < 3: K.k += 1\n    return K.k",
        "    def g(n): return 1 if n < 2 else n * g(n - 1)\n    return g(a)",
    ],
)
def test_kept_and_unusual_python(body: str):
    function = define(f"def f(a, b=7):\n{body}\n")
    converted = as_python(function)
    for a in (0, 1, 3, 8):
        assert outcome(converted, a) == outcome(function, a)


def test_a_module_that_is_edited_and_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "edited_module.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    path.write_text("def f(x):\n    return x if x > 0 else 1\n")
    module = importlib.import_module("edited_module")
    assert mg.script(module.f)(-1) == 1
    path.write_text("# longer\ndef f(x):\n    return x if x > 0 else 2\n")
    importlib.reload(module)
    assert mg.script(module.f)(-1) == 2
