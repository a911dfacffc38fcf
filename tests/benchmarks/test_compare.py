"""What compilers made of a workload, side by side: by fake runners, and by real ones."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from viz.reading import contrast

from benchmarks.__main__ import main
from benchmarks.comparing import alignment
from benchmarks.comparing import compare as comparing
from benchmarks.comparing import page as comparison
from benchmarks.comparing.alignment import Column, Comparison, Source
from benchmarks.runners.base import Form

VOID = {"br", "meta"}
FAKE = ("show", "crashes", "raises", "unwritten", "lacking", "erring")


class Page(HTMLParser):
    """What is on a page; elements have to be closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)
            self.text.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.text[tag][-1] += data

    def having(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for _, attrs in self.tags if name in attrs]


def source(*lines: str, first: int = 1, file: str = "them.py") -> Source:
    return Source(file, dict(enumerate(lines, first)), first)


def pairs(*sources: Source) -> list[tuple[str, ...]]:
    """The rows, as texts."""
    return [
        tuple(
            each.lines[row.numbers[n]].strip() if n in row.numbers else ""
            for n, each in enumerate(sources)
        )
        for row in alignment.aligned(sources)
    ]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(Path(__file__).with_name("showing_runners.py"), folder)
    return folder


@pytest.fixture(scope="module")
def made(own: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page and the texts of all fake runners."""
    folder = tmp_path_factory.mktemp("made")
    status = comparing.compare(
        "fancy_func", FAKE, folder / "deep" / "page.html", folder / "texts", own=own
    )
    assert status == 1  # some have failed
    return folder


@pytest.fixture
def text(made: Path) -> str:
    return (made / "deep" / "page.html").read_text("utf-8")


# ---- sources beside each other -------------------------------------------------------------------


def test_lines_that_say_the_same_share_a_row():
    ours = source("def f(x):", "    e = np.exp(x)", "", "    return e / np.sum(e)")
    theirs = source(
        "def f(x):", "    e = torch.exp(x)", "    print()", "    return e / torch.sum(e)"
    )
    assert pairs(ours, theirs) == [
        ("def f(x):", "def f(x):"),
        ("e = np.exp(x)", "e = torch.exp(x)"),
        ("", "print()"),
        ("return e / np.sum(e)", "return e / torch.sum(e)"),
    ]


def test_what_says_something_else_has_a_row_of_its_own():
    assert pairs(source("a = b + c"), source("call(everything)"), source("call(everything)")) == [
        ("a = b + c", "", ""),
        ("", "call(everything)", "call(everything)"),
    ]


def test_order_is_kept():
    one, two = source("a = 1 + x", "b = 2 * y"), source("b = 2 * y", "a = 1 + x")
    rows = alignment.aligned([one, two])
    for index in (0, 1):
        numbers = [row.numbers[index] for row in rows if index in row.numbers]
        assert numbers == [1, 2]


def test_a_source_takes_in_the_functions_that_operations_came_from(tmp_path: Path):
    file = tmp_path / "them.py"
    file.write_text(
        "def helper(x):\n    y = x\n    return y\n\n\ndef f(x):\n    return helper(x)\n"
    )
    found = Source.of("def f(x):\n    return helper(x)\n", str(file), 6, used=(2, 7))
    assert list(found.lines) == [1, 2, 3, 6, 7] and found.lines[2] == "    y = x"
    assert list(Source.of("f = 1\n", str(tmp_path / "gone.py"), 4, used=(2,)).lines) == [4]


# ---- operations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "line", "name"),
    [
        ("minigraph", "  %e = add %a, %b          : int      # fancy_func.py:5", "add"),
        ("minigraph", "  %a, %b = while %c {", "while"),
        ("minigraph", "  write %a, %a.1", "write"),
        ("minigraph", "  %c = const 2 : int", None),
        ("minigraph", "  return %g", None),
        ("minigraph", "graph f(%a: int) {", None),
        ("minigraph", "}", None),
        ("torchscript", "  %5 : Tensor = aten::tanh(%x.1) # /a.py:3:4", "aten::tanh"),
        ("torchscript", "  %5 : int[] = prim::ListConstruct(%3)", "prim::ListConstruct"),
        ("torchscript", "  %7 : int = prim::Constant[value=1]()", None),
        ("torchscript", "  return (%5)", None),
        ("jaxpr", "    d:f32[4] = integer_pow[y=2] c", "integer_pow"),
        ("jaxpr", "  in (d,) }", None),
        ("tensorflow", "add_1 = AddV2(MatMul_1, bias)", "AddV2"),
        ("tensorflow", "x = _Arg()", None),
        ("hlo", "  ROOT %fusion = f32[4]{0} fusion(%p), kind=kLoop", "fusion"),
        ("hlo", "  %w = (s32[], f32[4]{0}) while((s32[], f32[4]{0}) %t)", "while"),
        ("hlo", "  %p = f32[4]{0} parameter(0)", None),
        ("json", '      "op": "FullyConnected", ', "FullyConnected"),
        ("json", '      "op": "null", ', None),
        ("onnx", "   y = MatMul (x, w)", "MatMul"),
        ("onnx", "   [n0] y = Softmax <axis: int = -1> (x)", "Softmax"),
        ("pytensor", " ├─ Composite{(i0 + i1)} [id B] 3", "Composite{(i0 + i1)}"),
        ("pytensor", " │  └─ x [id C]", None),
    ],
)
def test_operations_of_each_language(language: str, line: str, name: str | None):
    found = alignment.operations(Form("it", language, line), {})
    assert [each.name for each in found] == ([] if name is None else [name])


@pytest.mark.parametrize(
    ("language", "line", "text"),
    [
        ("minigraph", "  %e = add %a  # them.py:5", "%e = add %a"),
        (
            "torchscript",
            "  %5 : Tensor = aten::tanh(%x) # /a.py:3:4",
            "%5 : Tensor = aten::tanh(%x)",
        ),
        (
            "hlo",
            '  %a = f32[4]{0} add(%b), metadata={op_name="jit"}, x=1',
            "%a = f32[4]{0} add(%b), x=1",
        ),
    ],
)
def test_an_operation_does_not_repeat_its_place(language: str, line: str, text: str):
    assert [each.text for each in alignment.operations(Form("it", language, line), {})] == [text]


def test_in_python_operations_are_what_came_of_a_line():
    text = "import numpy\nv1 = np.exp(x)\n# what follows\nv2 = v1\ndel v1\nv3 = v2 * 2;  v2 = None"
    form = Form("program", "python", text, lines={8: range(2, 7)})
    found = alignment.operations(form, {8: 0})
    assert [(each.line, each.name) for each in found] == [(2, "np.exp"), (4, "v1"), (6, "*")]


def test_each_operation_is_shown_once_in_the_last_of_its_rows():
    user = source("a = x + 1", "b = a * 2", "c = b - 3")
    text = "%f = fused %x\n%g = sub %f\n%h = copy %g"
    form = Form("graph", "minigraph", text, 3, "after", {1: [1], 2: [1], 3: [2]})
    column = Column("it", source=user, forms=(form,))
    (view,) = Comparison.of("it", [column]).views
    shown = [[each.name for each in view.of_row(row)] for row in (0, 1, 2, None)]
    assert shown == [[], ["fused"], ["sub"], ["copy"]]
    assert [each.name for each in view.below(0)] == ["fused"] and not view.below(1)


def test_columns_that_show_the_same_share_a_view():
    user = source("a = x + 1")
    form = Form("graph", "minigraph", "%a = add %x", 1, "before", {1: [1]})
    other = Form("graph", "minigraph", "%a = add %x, 2", 1, "before", {1: [1]})
    columns = [Column(f"it {n}", source=user, forms=(form,)) for n in ("one", "two", "three")]
    found = Comparison.of("it", [*columns, Column("that", source=user, forms=(other,))])
    assert [view.label for view in found.views] == ["it one, two, three", "that"]


def test_what_is_left_is_shown_where_it_names_its_lines():
    before = Form("before", "minigraph", "%a = add", 1, "before", {1: [1]})
    after = Form("after", "minigraph", "%a = add", 1, "after", {1: [1]})
    silent = Form("silent", "minigraph", "%a = add", 1, "after")
    assert Column("it", forms=(before, silent, after)).aligned is after
    assert Column("it", forms=(before, silent)).aligned is before
    assert Column("it", forms=(Form("b", "hlo", ""), silent)).aligned is silent


# ---- the page ------------------------------------------------------------------------------------


def test_the_page_is_well_formed_and_needs_nothing_else(text: str):
    found = Page(text)
    ids = [attrs["id"] for attrs in found.having("id")]
    assert len(ids) == len(set(ids))
    assert not re.search(r"https?:|//\w|url\(|@import", text)
    assert not found.having("src") and not found.having("style")
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    for attrs in found.having("href"):
        assert attrs["href"][0] == "#" and attrs["href"][1:] in ids
    for attrs in found.having("aria-labelledby"):
        assert attrs["aria-labelledby"] in ids
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


def test_the_policy_names_style_and_script(text: str):
    found = Page(text)
    (policy,) = [attrs["content"] for _, attrs in found.tags if "http-equiv" in attrs]
    style, script = found.text["style"], found.text["script"]
    assert len(style) == len(script) == 1
    assert policy == (
        f"default-src 'none'; style-src {comparison._digest(style[0])}; "
        f"script-src {comparison._digest(script[0])}"
    )


def test_nothing_of_a_text_is_markup(text: str):
    found = Page(text)
    assert text.count("</script>") == 1 and "<b onclick" not in text and "\u202e" not in text
    assert any(
        '</script><b onclick="x">&amp; \\u202e\\u2028\\x07 é 漢 ' in each
        for each in found.text["pre"]
    )
    assert "shows <i>other</i>" in found.text["h3"]


def test_every_operation_is_on_the_page_once(text: str):
    found = Page(text)
    names = [each for each in found.text["b"]]
    assert sorted(names) == ["add_add", "copy", "f"]  # what is left in each of the views
    links = [attrs["href"] for attrs in found.having("href") if attrs.get("class") != "skip"]
    assert len(links) == len(set(links)) == 3


def test_lines_are_beside_each_other(text: str):
    buttons = [line.strip() for line in Page(text).text["button"] if line != "copy"]
    assert len(buttons) == 5  # four lines of the first source, one of the other
    assert buttons[3].endswith("return e + f") and "return sum(everything)" in buttons[4]


def test_who_is_not_there_is_listed_with_the_reason(text: str):
    found = Page(text)
    reasons = dict(zip(found.text["dt"], found.text["dd"], strict=True))
    assert reasons.pop("crashes at forms").startswith("crashed: ended with status 3")
    assert reasons == {
        "raises at forms": "crashed: ValueError: no <form> (showing_runners.py:74)",
        "unwritten": "not written: nobody wrote it",
        "lacking": "missing: no <framework> here",
        "shows nothing": "it shows no form",
        "erring": reasons["erring"],
    }
    assert reasons["erring"].startswith("wrong: ")


def test_a_text_that_several_have_is_printed_once(text: str):
    assert text.count("graph fancy(%a) {") == 1 and "As above: graph, fused graph." in text


def test_the_colours_can_be_read():
    for theme in (0, 1):
        colour = {name: both[theme] for name, both in comparison.COLOURS.items()}
        for ground in ("page", "box", "lit", "source"):
            assert contrast(colour["text"], colour[ground]) >= 7
            assert contrast(colour["dim"], colour[ground]) >= 4.5
            assert contrast(colour["border"], colour[ground]) >= 3


def test_a_workload_that_nobody_shows_has_a_page():
    found = Comparison.of("it", [Column("one").without("missing", ""), Column("two")])
    assert Page(comparison.page(found)).text["dd"] == ["missing: missing", "it shows no form"]


# ---- files and the terminal ----------------------------------------------------------------------


def test_texts_are_files(made: Path):
    names = sorted(path.name for path in (made / "texts").iterdir())
    assert names[:2] == ["shows-1-graph.txt", "shows-2-fused-graph.txt"] and len(names) == 5
    assert names[4].startswith("shows-i-other-i-1-script-b-onclick-x") and names[4].endswith(".py")


def test_the_terminal(own: Path, capsys: pytest.CaptureFixture[str]):
    assert comparing.compare("fancy_func", ["show", "unwritten"], own=own) == 0
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    assert re.search(r"shows +3 +2 +7  graph → fused graph", text)
    assert re.search(r"shows nothing +it shows no form", text)
    assert re.search(r"unwritten +not written: nobody wrote it", text)
    (place,) = [n for n, line in enumerate(lines) if line.endswith("e = a + b")]
    assert lines[place + 1].split() == "shows, shows again 0 in what is below: add_add".split()
    (place,) = [n for n, line in enumerate(lines) if line.endswith("return e + f")]
    assert lines[place + 1].split() == "shows, shows again 1 add_add".split()
    assert re.search(r"from no line of yours\n +shows, shows again +1 +copy", text)
    assert all(len(line) <= 200 for line in lines)


def test_wrong_names():
    with pytest.raises(click.BadParameter, match="there is no 'sofmax'; did you mean 'softmax'"):
        comparing.compare("sofmax")
    with pytest.raises(click.BadParameter, match="there is no 'numpi'; did you mean 'NumPy'"):
        comparing.compare("softmax", ["numpi"])
    result = CliRunner().invoke(main, ["compare", "sofmax"])
    assert result.exit_code == 2 and "did you mean 'softmax'" in result.output


def test_beginnings_are_enough(capsys: pytest.CaptureFixture[str]):
    assert comparing.compare("mlp", ["numpy"], scale=0.1) == 0
    assert "MLP 512-256-128-2, batch 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["setup", "--with", " , "],
        ["run", "--scale", "0"],
        ["run", "--budget", "-1"],
        ["compare", "mlp-1", "--scale", "-1"],
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str]):
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 2 and "Error: " in found.output


def test_the_command_with_real_runners(tmp_path: Path):
    pytest.importorskip("torch")
    names = ("minigraph python", "NumPy", "torch.jit.script")
    chosen = [word for name in names for word in ("--runner", name)]
    page = tmp_path / "page.html"
    arguments = ["compare", "chain-1000", "--threads", "1", "--html", str(page), *chosen]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    text = page.read_text("utf-8")
    names = Page(text).text["b"]
    assert any("tanh" in name for name in names) and "aten::tanh" in text
    assert "crashed" not in text


# ---- in a browser --------------------------------------------------------------------------------


def test_in_a_browser(made: Path):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        told: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((made / "deep" / "page.html").as_uri())
        line = page.get_by_role("button", name="e = a + b")
        line.focus()
        assert page.locator("td a.lit").all_text_contents() == ["%e = add_add %a, %b"]
        page.keyboard.press("Enter")
        assert line.get_attribute("aria-pressed") == "true"
        assert page.locator("#told").text_content() == "Operations marked: shows, shows again: 1"
        page.keyboard.press("Escape")
        assert line.get_attribute("aria-pressed") == "false"
        assert page.locator("#told").text_content() == ""
        page.get_by_role("link", name="add_add").click()
        pressed = page.locator("button[aria-pressed=true]")
        assert [each.split()[-1] for each in pressed.all_text_contents()] == ["b", "f"]
        assert page.locator(".counted .line.lit:visible").count() == 1  # its text has opened
        for width in (1400, 500):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not told and len(asked) == 1
        browser.close()
