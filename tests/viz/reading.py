"""Reads back what was written: DOT text and SVG, far enough to compare them with the graph."""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[{}\[\]=;]|[\w.#-]+)', re.ASCII | re.DOTALL)
SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Dot:
    """Nodes and edges with their attributes, and the clusters that each node stands in."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    clusters: dict[str, dict[str, str]] = field(default_factory=dict)
    inside: dict[str, list[str]] = field(default_factory=dict)
    graph: dict[str, str] = field(default_factory=dict)

    def data(self) -> Counter[tuple[str, str]]:
        """How many values flow from node to node."""
        flows: Counter[tuple[str, str]] = Counter()
        for tail, head, attrs in self.edges:
            if attrs["class"] in ("data", "back"):
                times = re.search(r"x(\d+)$", text(attrs.get("label", '""')))
                flows[tail, head] += int(times[1]) if times else 1
        return flows

    def kinds(self, kind: str) -> set[tuple[str, str]]:
        return {(tail, head) for tail, head, attrs in self.edges if attrs["class"] == kind}


def text(quoted: str, *, tooltip: bool = False) -> str:
    """What a DOT label shows, its lines separated by newlines."""
    shown = quoted.removeprefix('"').removesuffix('"')
    for _ in range(2 if tooltip else 1):  # in tooltips, Graphviz resolves escapes twice
        shown = re.sub(r"\\(.)", lambda found: "\n" if found[1] in "nl" else found[1], shown)
    return html.unescape(shown)


def read_dot(source: str) -> Dot:
    """Parse the statements that drawings consist of; anything else fails."""
    tokens: list[str] = []
    source, at = source.rstrip(), 0
    while at < len(source):
        found = TOKEN.match(source, at)
        assert found, source[at : at + 60]
        tokens.append(found[1])
        at = found.end()
    dot, stack = Dot(), list[str]()
    assert tokens[:2] == ["digraph", "{"], tokens[:2]
    at = 2
    while at < len(tokens):
        word = tokens[at]
        if word == "}":
            at += 1
            if stack:
                stack.pop()
            else:
                assert at == len(tokens), tokens[at:]
                return dot
        elif word == "subgraph":
            stack.append(tokens[at + 1])
            assert tokens[at + 2] == "{"
            at += 3
        elif tokens[at + 1] == "->":
            attrs, after = attributes(tokens, at + 3)
            dot.edges.append((word, tokens[at + 2], attrs))
            at = after
        else:
            attrs, at = attributes(tokens, at + 1)
            if word == "graph" and stack:
                dot.clusters[stack[-1]] = attrs
            elif word == "graph":
                dot.graph = attrs
            elif word not in ("node", "edge"):
                assert word not in dot.nodes, word
                dot.nodes[word] = attrs
                dot.inside[word] = list(stack)
    raise AssertionError("a brace is missing")


def attributes(tokens: list[str], at: int) -> tuple[dict[str, str], int]:
    assert tokens[at] == "[", tokens[at : at + 5]
    at += 1
    found: dict[str, str] = {}
    while tokens[at] != "]":
        name, equals, value = tokens[at : at + 3]
        assert equals == "=" and name not in found, tokens[at : at + 3]
        found[name] = value.strip('"') if name in ("id", "class") else value
        at += 3
    return found, at + 1


def read_svg(source: str) -> Element:
    return ElementTree.fromstring(source)


def shown_text(group: Element) -> list[str]:
    """The lines of text directly in a group."""
    return ["".join(each.itertext()) for each in group if each.tag == SVG + "text"]


def groups(root: Element) -> dict[str, Element]:
    return {each.get("id", ""): each for each in root.iter(SVG + "g")}


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
