"""Runners that show forms: a folder of one's own holds this file in tests."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.runners.base import Form, NotWritten, Prepared, Runner

HOSTILE = '</script><b onclick="x">&amp; \u202e\u2028\x07 é 漢 ' + "long" * 4000


def fancy(a, b, c, d):
    e = a + b
    f = c + d
    return e + f


def other(a, b, c, d):
    """A function of its own, which says the same in the end."""
    everything = [a, b, c, d]
    return sum(everything)


FIRST = fancy.__code__.co_firstlineno
OTHER = other.__code__.co_firstlineno


def graph(name: str = "fancy") -> Form:
    text = f"graph {name}(%a) {{\n  %e = add %a, %b\n  %f = add %c, %d\n  %g = multiply %e, %f\n}}"
    lines = {FIRST + 1: [2], FIRST + 2: [3], FIRST + 3: [4]}
    return Form("graph", "minigraph", text, 3, "before", lines)


def fused() -> Form:
    """One operation of two lines, one of none."""
    text = "  %e = add_add %a, %b\n  %g = copy %e"
    lines = {FIRST + 1: [1], FIRST + 3: [1]}
    return Form("fused graph", "minigraph", text, 2, "after", lines)


def hostile() -> Form:
    return Form(HOSTILE[:60], "python", f"x = f({HOSTILE})", 1, "after", {OTHER + 3: [1]})


class Showing(Runner):
    variants = {
        "shows": "a graph",
        "shows again": "the same graph",
        "shows <i>other</i>": "another source, hostile texts",
        "shows nothing": "no form",
        "crashes at forms": "ends",
        "raises at forms": "raises",
        "unwritten": "nothing",
        "lacking": "nothing",
        "erring": "another answer",
    }

    def load(self) -> None:
        if self.variant == "lacking":
            raise ImportError("no <framework> here")

    def versions(self) -> dict[str, str]:
        return {}

    def threads_used(self) -> str:
        return "1"

    def forms(self) -> list[Form]:
        if self.variant == "crashes at forms":
            os._exit(3)
        if self.variant == "raises at forms":
            raise ValueError("no <form>")
        if self.variant == "shows <i>other</i>":
            return [hostile()]
        return [] if self.variant == "shows nothing" else [graph(), fused()]

    def prepare(self, case) -> Prepared:
        if self.variant == "unwritten":
            raise NotWritten("nobody wrote it")
        answer = sum(case.arguments) + (self.variant == "erring")
        source = other if "other" in self.variant else fancy
        details = {"kernels": 7} if self.variant == "shows" else {}
        return Prepared(
            lambda: answer,
            lambda found: (np.asarray(found),),
            source=source,
            details=lambda: details,
            forms=self.forms,
        )
