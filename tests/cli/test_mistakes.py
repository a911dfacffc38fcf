"""What the command says of wrong input, and its exit status: 1 for a mistake, 2 for wrong usage."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.running import Command, Process

from minigraph import cli
from minigraph.errors import MinigraphError

MISTAKES = {
    "a missing file": ("explain nothing.py", "there is no file nothing.py"),
    "a misspelt file": ("explain fancy_fun.py", "did you mean fancy_func.py?"),
    "a misspelt file with a function": ("explain modle.py:f", "there is no file modle.py"),
    "a missing folder": ("run no/where.py", "there is no file no/where.py"),
    "a folder": ("run .", ". is a folder"),
    "no function": ("run model.py:zzz --args 1", "one of "),
    "a misspelt function": ("run model.py:sofften --args 1", "did you mean 'soften'?"),
    "a misspelt method": ("run model.py:model.forwrd", "did you mean 'forward'?"),
    "something else": ("run model.py:numbers", "numbers in model.py is not a function: ndarray"),
    "a line number": ("explain model.py:12", "'12' is not the name of a function"),
    "a program that is none": ("run noise.py", "noise.py is not the text of a Python program"),
    "a program with zeros": ("run zeros.py", "zeros.py is not the text of a Python program"),
    "no arguments": ("run model.py:soften", "soften(x, layer: model.Layer) needs arguments"),
    "how to give them": ("run model.py:soften", '--args "np.ones(3), 2.0"'),
    "how to give keywords": ("run words.py:f", '--args "np.ones(3), n=2.0"'),
    "no arguments of a network": ("run net.py:net", "net(x, scale=1.0) needs arguments"),
    "of one that is not hybridized": ("explain net.py:plain", '--args "np.ones(3)"'),
    "too many of a network": ("explain net.py:net --args 1,2,3", "too many positional arguments"),
    "a misspelt stage": ("explain net.py:net --args data --stage joinnt", "did you mean 'joint'?"),
    "the joint graph of a program": ("explain fancy_func.py --stage joint", "no stage 'joint'"),
    "no joint graph": ("explain model.py:shout --args np.arange(3) --stage joint", "no floating-"),
    "too few arguments": ("run model.py:soften --args 1", "missing a required argument: 'layer'"),
    "too many arguments": ("run model.py:fail --args 1,2", "too many positional arguments"),
    "arguments that do not parse": ("run model.py:fail --args np.ones(3", "'np.ones(3'"),
    "arguments that close the call": ("run model.py:fail --args 1)+(2", "are no arguments"),
    "arguments that fail": ("run model.py:fail --args q", "NameError: name 'q' is not defined"),
    "types to run with": ("run model.py:fail --args f64[3]", "values, not types"),
    "a dtype without a shape": ("run model.py:fail --args f64", '"f64[2,3]", or "f64[]"'),
    "a long dtype without a shape": ("run model.py:fail --args float32", '"f32[2,3]"'),
    "a negative size": (
        "run model.py:fail --args f64[2,-3]",
        "f64[2, -3] is no type: a size is an integer from 0, or a name",
    ),
    "a class": ("run model.py:fail --args float", 'a value, "2.0", or an array, "f64[2,3]"'),
    "a type of no array": ("run model.py:fail --args float[2,3]", '"f32[batch,512]"'),
    "a stage like none": ("explain fancy_func.py --stage foo", "optimized, program"),
    "a pass that is none": ("explain fancy_func.py --pass fld", "did you mean 'fold'?"),
    "a pass like none": ("explain fancy_func.py --pass zz", "known are fold, fold_branches"),
    "a stage that is none": (
        "explain fancy_func.py --stage optimised",
        "did you mean 'optimized'?",
    ),
    "a stage to draw": ("draw fancy_func.py -o x.svg --stage tracd", "did you mean 'traced'?"),
    "a picture of no kind": ("draw fancy_func.py -o x.jpeg", ".svg, .png"),
    "a picture nowhere": ("draw fancy_func.py -o no/where.svg", "no/where.svg: No such file"),
    "a code that is none": ("explain MG987", "there is no error code MG987"),
    "a branch": ("explain model.py:branch --args f64[3]", "model.py:38\n      if x.sum() > 0:"),
    "a mistake of the user": ("run model.py:fail --args 1", "model.py:44\n      return x + {}"),
    "a mistake in the file": ("run zero.py", "ZeroDivisionError: "),
    "a mistake in the file, where": ("run zero.py", "zero.py:2\n      y = x / 0\n          ^^^^^"),
    "a syntax error": ("run syntax.py", 'syntax.py", line 2\n    print(x\n         ^'),
    "a program that leaves": ("run leaves.py", "the program ended itself (sys.exit)"),
}

WRONG_USAGE = {
    "no command": "",
    "an unknown command": "explian x.py",
    "no file": "explain",
    "no output": "draw fancy_func.py",
    "an unknown option": "explain fancy_func.py --passes cse",
    "arguments of a program": "run fancy_func.py --args 1",
    "words of a function": "run model.py:fail one --args 1",
    "a misspelt option": "explain fancy_func.py --passes",
    "two at once": "explain fancy_func.py --pass cse --stage cse",
}


@pytest.fixture(autouse=True)
def wrong_files(folder: Path) -> None:
    (folder / "zero.py").write_text("x = 1\ny = x / 0\n")
    (folder / "syntax.py").write_text("x = 1\nprint(x\n")
    (folder / "leaves.py").write_text("import sys\n\nprint(1)\nsys.exit(3)\n")
    (folder / "words.py").write_text("def f(x, *, n):\n    return x\n")
    (folder / "zeros.py").write_bytes(b"print(1)\n\x00")
    (folder / "noise.py").write_bytes(b"print(1)\n\xff\xfe\x00")


@pytest.mark.parametrize(("line", "told"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told_without_a_traceback(command: Command, line: str, told: str):
    result = command(*line.split(" "))
    assert result.exit_code == 1
    assert told in result.output
    assert "Traceback" not in result.output and "minigraph/" not in result.output


@pytest.mark.parametrize("line", WRONG_USAGE.values(), ids=WRONG_USAGE.keys())
def test_wrong_usage_has_status_2(command: Command, line: str):
    result = command(*line.split())
    assert result.exit_code == 2
    assert "Usage: " in result.output


def test_errors_of_minigraph_are_told_as_they_are(command: Command):
    result = command("explain", "model.py:branch", "--args", "f64[3]")
    assert "[MG001] " in result.output
    assert "  more:    minigraph explain MG001" in result.output
    assert "np.where" in result.output


def test_mistakes_go_to_standard_error(process: Process):
    done = process("run", "zero.py")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ZeroDivisionError")


def test_what_was_printed_before_the_mistake_is_there(process: Process, folder: Path):
    (folder / "late.py").write_text(
        "import numpy as np\n\ndef f(x, i):\n    print('start', x)\n    return np.take(x, i)\n"
    )
    done = process("run", "late.py:f", "--args", "np.ones(2), np.array([5])")
    assert done.returncode == 1
    assert done.stdout == "start [1. 1.]\n"
    assert done.stderr.startswith("IndexError: ")
    assert "late.py:5" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_cause_is_told_too():
    try:
        raise MinigraphError("outer") from KeyError("inner")
    except MinigraphError as error:
        assert (cli.message_of(error) or "").endswith("  because: KeyError: 'inner'")


def test_an_error_of_our_own_keeps_its_traceback(command: Command, monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(cli, "compile", broken)
    # Its innermost frame stands in this test, which is a user's file as far as the command knows.
    monkeypatch.setattr(cli, "NOT_THE_USERS", (*cli.NOT_THE_USERS, __file__, "<"))
    with pytest.raises(RuntimeError, match="ours"):
        command("run", "fancy_func.py")
