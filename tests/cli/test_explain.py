"""`minigraph explain`: every stage, one pass, one graph, or an error code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.running import Command, Process

from minigraph import parse, trace_program
from minigraph.errors import pages
from minigraph.ops import OPS


def headings(text: str) -> list[str]:
    return re.findall(r"^── ([a-z ]+?) ─", text, re.MULTILINE)


def test_every_stage_of_a_program(command: Command):
    shown = command("explain", "fancy_func.py").output
    assert headings(shown) == ["source", "traced", "passes", "optimized", "program", "summary"]
    assert "  12  print(fancy_func(1, 2, 3, 4))\n" in shown
    assert "\nprint(10)\n" in shown
    assert re.search(r"^fold   8 -> 8 nodes   3 changed   [\d.]+ ms$", shown, re.M)
    assert re.search(r"^  ~ %f = add %\w+, %\w+ -> const 7 +@L7  \S.*$", shown, re.M)
    assert re.search(r"^changed nothing: .*\bcse\b", shown, re.M)
    assert re.search(r"^  traced +8$", shown, re.M)
    assert re.search(r"^  dce +2 ", shown, re.M)


def test_a_function_shows_its_own_lines_and_its_memory(command: Command):
    shown = command("explain", "model.py:model.forward", "--args", "np.ones((2, 4))").output
    assert "source" in headings(shown) and "memory" in headings(shown)
    assert re.search(r"^  +\d+      def forward\(self, x, scale=2\.0\):$", shown, re.M)
    assert "class Layer" not in shown
    assert re.search(r"^  - %\w+ = tanh %h : f64\[2,3\] +@L\d+  \S", shown, re.M)
    assert re.search(r"^  %h = matmul .* A +48  new, 48 bytes", shown, re.M)
    assert "def forward(" in shown.split("── program")[1]


def test_arguments_can_be_types(command: Command):
    shown = command("explain", "model.py:soften", "--args", "f32[batch, 3], Layer(np.ones(3))")
    assert shown.exit_code == 0
    assert "%x: f32[batch,3]" in shown.output
    assert "*batch" in shown.output.split("── memory")[1]
    scalar = command("explain", "model.py:shout", "--args", "f64[], loud=2", "--stage", "traced")
    assert "%x: f64[]" in scalar.output


def test_types_can_have_long_names(command: Command):
    given = ("explain", "model.py:shout", "--stage", "traced", "--args")
    assert "%x: f64[2,n]" in command(*given, "float64[2, n]").output
    assert "%x: c64[]" in command(*given, "complex64[]").output


def test_a_dtype_is_an_argument_like_others(command: Command, folder: Path):
    (folder / "cast.py").write_text("def cast(x, dtype):\n    return x.astype(dtype)\n")
    shown = command("explain", "cast.py:cast", "--args", "f64[3], float", "--stage", "traced")
    assert shown.exit_code == 0


def test_arguments_can_name_what_the_file_holds(command: Command):
    shown = command("explain", "model.py:shout", "--args", "numbers, loud=3", "--stage", "traced")
    assert "graph shout(%x: f64[3], %loud: int) {" in shown.output


def test_what_the_file_prints_is_kept_apart(process: Process):
    done = process("explain", "model.py:shout", "--args", "numbers", "--stage", "traced")
    assert done.returncode == 0
    assert done.stderr == "the file runs\n"
    assert done.stdout.startswith("graph shout(")


@pytest.mark.parametrize("what", ["loud.py:f --args f64[2]", "loud.py"])
@pytest.mark.parametrize("shown", ["explain --stage program", "draw -o out.dot"])
def test_what_other_code_prints_is_kept_apart_too(
    process: Process, folder: Path, what: str, shown: str
):
    (folder / "loud.py").write_text(
        "import pprint, sys\n\ndef f(x):\n    pprint.pprint('tracing')\n"
        "    print('to out', file=sys.stdout)\n    print('aside', file=sys.stderr)\n"
        "    return x\n\nf(1)\n"
    )
    done = process(*shown.split(), *what.split())
    assert done.returncode == 0 and "'tracing'" in done.stderr
    assert "'tracing'" not in done.stdout
    if "program" in shown:
        assert "print('to out')" in done.stdout
        assert "print('aside', file=sys.stderr)" in done.stdout


def test_one_pass(command: Command):
    shown = command("explain", "fancy_func.py", "--pass", "dce").output
    lines = shown.rstrip().split("\n")
    assert lines[0].startswith("dce   8 -> 2 nodes   6 gone")
    assert [line[:4] for line in lines[1:]] == ["  - "] * 6
    assert command("explain", "fancy_func.py", "--pass", "cse").output == "changed nothing: cse\n"


def test_refusals_are_shown_with_their_reason(command: Command, folder: Path):
    (folder / "near.py").write_text(
        "def near(x):\n    a = x.sum(axis=0)\n    b = x.sum(axis=1)\n    return a, b\n"
    )
    shown = command("explain", "near.py:near", "--args", "f64[3,3]", "--pass", "cse").output
    assert re.search(r"^  ! %b = sum .* +@L3  ATTRS: other axis than %a \(line 2\): ", shown, re.M)


def test_the_plan_is_a_pass_too(command: Command):
    shown = command(
        "explain", "model.py:model.forward", "--args", "f64[2,4]", "--pass", "plan"
    ).output
    assert "new, 48 bytes" in shown and "in place of" in shown


def test_one_graph_is_the_text_form_alone(command: Command, folder: Path):
    traced = command("explain", "fancy_func.py", "--stage", "traced").output
    assert traced == f"{trace_program(folder / 'fancy_func.py')}\n"
    optimized = command("explain", "fancy_func.py", "--stage", "optimized").output
    assert [node.op.name for node in parse(optimized).nodes] == ["const", "print"]
    assert command("explain", "fancy_func.py", "--stage", "dce").output == optimized
    assert command("explain", "fancy_func.py", "--stage", "program").output == "print(10)\n"


def test_a_network(command: Command):
    for name in ("net", "plain"):
        shown = command("explain", f"net.py:{name}", "--args", "f32[batch,4]").stdout
        assert "class Net(nn.HybridBlock):" in shown and "%output_weight" in shown


def test_forward_and_backward_in_one_graph(command: Command):
    for name, arguments in (("net.py:net", "data"), ("model.py:model.forward", "np.ones((2, 4))")):
        shown = command("explain", name, "--args", arguments, "--stage", "joint").stdout
        assert shown.startswith("graph ") and shown.count("matmul") == 3, shown


def test_a_program_from_standard_input(command: Command):
    shown = command("explain", "-", input="print((1 + 2) * (3 + 4))").output
    assert "standard input" in shown
    assert "\nprint(21)\n" in shown


def test_long_things_are_cut_and_say_so(command: Command, folder: Path):
    lines = "\n".join(f"x = np.sin(x) + {n}.5 * x * 1" for n in range(60))
    (folder / "long.py").write_text(f"import numpy as np\nx = np.ones(3)\n{lines}\nprint(x)\n")
    shown = command("explain", "long.py").output
    assert re.search(r"^  \.\.\. \d+ more lines$", shown, re.M)
    assert re.search(r"^  # \.\.\. \d+ more lines: --stage traced$", shown, re.M)
    assert re.search(r"^    \.\.\. \d+ .*more: --pass \w+$", shown, re.M)
    function = (
        "def f(x, y):\n    for i in range(60):\n        x = np.sin(x).sum() * y\n    return x\n"
    )
    (folder / "loop.py").write_text(f"import numpy as np\n\n{function}")
    shown = command("explain", "loop.py:f", "--args", "f64[3], f64[3]").output
    assert re.search(r"^  \.\.\. \d+ more: --pass plan$", shown, re.M)
    assert re.search(r"^# \.\.\. \d+ more lines: --stage python$", shown, re.M)
    traced = command("explain", "long.py", "--stage", "traced").output
    assert traced.count("\n") > 200 and "..." not in traced


@pytest.mark.parametrize("code", pages())
def test_every_code_has_its_page(command: Command, code: str):
    summary, page = pages()[code]
    shown = command("explain", code).output
    assert shown.startswith(f"{code}  {summary.splitlines()[0]}")
    assert page.splitlines()[-1] in shown


def test_a_code_may_be_written_carelessly(command: Command):
    assert command("explain", "mg12").output == command("explain", "MG012").output


def test_a_file_comes_before_a_code(command: Command, folder: Path):
    (folder / "MG012").write_text("print(6 * 7)\n")
    assert "print(42)" in command("explain", "MG012").output


def test_an_op_is_told_in_its_own_words(command: Command):
    shown = command("explain", "sum").output
    assert shown.startswith("sum  np.sum\n")
    assert re.search(r"^  kind +reduce$", shown, re.M)
    assert re.search(r"^  records +np\.sum, ndarray\.sum$", shown, re.M)
    assert re.search(r"^  attrs left out +keepdims=False, dtype=None$", shown, re.M)
    assert re.search(r"^  in Python +%a \+ %b$", command("explain", "add").output, re.M)
    assert "can fail on data" in command("explain", "gather").output


@pytest.mark.parametrize("name", OPS)
def test_every_op_has_its_page(command: Command, name: str):
    lines = command("explain", name).output.splitlines()
    assert lines[0] == f"{name}  {OPS[name].doc}" and lines[1].split() == ["kind", OPS[name].kind]
