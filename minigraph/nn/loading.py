"""`mg.load`: a network from the file that `net.export` wrote."""

from __future__ import annotations

import os

from minigraph.formats import read_archive

from .exporting import LEARNED
from .parameter import Parameter
from .symbol_block import SymbolBlock, parameter_name


def load(path: str | os.PathLike[str]) -> SymbolBlock:
    """A network that `net.export(path)` wrote: it can be called, trained on, and be a child.

    No code of the file is run, and the classes that made it are not needed.

    Args:
        path: the file.

    Raises:
        FormatError: it is no such file, or it is damaged.
        OSError: it cannot be read.
    """
    graph, arrays, notes = read_archive(path)
    parameters: dict[str, Parameter] = {}
    for name in filter(arrays.__contains__, graph.signature.captures):
        array, short = arrays[name], parameter_name(name)
        learned = "write" if name in notes.get(LEARNED, ()) else "null"
        parameter = Parameter(short, array.shape, array.dtype, grad_req=learned)
        parameter.set_data(array)
        parameters[short] = parameter
    return SymbolBlock(graph, parameters)
