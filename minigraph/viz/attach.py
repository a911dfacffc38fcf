"""Gives graphs the methods that draw: `ir` knows that graphs can be drawn, not how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minigraph.ir import Graph

from .drawing import dot, draw, save
from .notebook import mimebundle


class GraphDrawer:
    """What `Graph.dot()`, `.svg()`, `.save()` and notebooks call (`minigraph.ir.Drawer`)."""

    def dot(self, graph: Graph, **options: Any) -> str:
        return dot(graph, **options)

    def svg(self, graph: Graph, **options: Any) -> str:
        return draw(graph, **options).svg

    def save(self, graph: Graph, path: str | Path, **options: Any) -> str | None:
        return save(graph, path, **options)

    def mimebundle(self, graph: Graph, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return mimebundle(graph, include, exclude)


Graph.drawer = GraphDrawer()
