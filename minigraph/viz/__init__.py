"""Drawings of graphs: DOT text, SVG, PNG, PDF, and display in notebooks."""

from .attach import GraphDrawer
from .chart import Chart, chart
from .drawing import Drawing, dot, draw, save
from .layout import Engine, engines
from .lines import MARKS, Change, Storage, bytes_text, differences, storage
from .notebook import mimebundle
from .options import Options
from .terminal import SHOWN_CHANGES, SHOWN_LINES, Terminal
from .words import counted
