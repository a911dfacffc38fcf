"""Drawings of graphs: DOT text, SVG, PNG, PDF, and display in notebooks."""

from .attach import GraphDrawer
from .drawing import Drawing, dot, draw, save
from .layout import Engine, engines
from .notebook import mimebundle
from .options import Options
from .terminal import Terminal, bytes_text
from .words import counted
