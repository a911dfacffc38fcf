"""A graph and its arrays in one file, without the code that made them.

The file is a zip archive of

    manifest.json            the version of the format, notes, and the digest of each other part
    graph.txt                the graph in its text form
    arrays.safetensors       what the graph captures, by the names in its signature; its large
                             constants, by `constant/` and their digest

Loading one runs no code: the graph is parsed and verified, ops are known by name.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from minigraph import ops
from minigraph.errors import FormatError, MinigraphError
from minigraph.ir import Graph, parse_graph, verify

from .tensors import Arrays, from_tensors, to_tensors, write_whole

VERSION = 1
_MANIFEST, _GRAPH, _ARRAYS, _CONSTANT = (
    "manifest.json",
    "graph.txt",
    "arrays.safetensors",
    "constant/",
)


Notes = Mapping[str, Sequence[str]]
"""What else the file says, for whoever wrote it: lists of names."""


def write_archive(
    path: str | os.PathLike[str],
    graph: Graph,
    arrays: Arrays,
    notes: Notes = MappingProxyType({}),
) -> None:
    """Write a graph and what it captures.

    Args:
        path: the file.
        graph: with its captures named in its signature.
        arrays: of each capture, by name.
        notes: lists of names, which `read_archive` gives back.

    Raises:
        FormatError: an array has a dtype that the format does not know.
    """
    assert set(arrays) <= set(graph.signature.captures), arrays
    constants = {_CONSTANT + digest: array for digest, array in graph.constants.items()}
    parts = {_GRAPH: str(graph).encode(), _ARRAYS: to_tensors({**arrays, **constants})}
    manifest = {
        "format": "minigraph",
        "version": VERSION,
        "name": graph.name,
        "notes": {name: list(found) for name, found in notes.items()},
        "parts": {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=2))
        for name, data in parts.items():
            archive.writestr(name, data)
    write_whole(path, buffer.getvalue())


def read_archive(
    path: str | os.PathLike[str],
) -> tuple[Graph, dict[str, np.ndarray[Any, Any]], Notes]:
    """Read a graph, the arrays that it captures by name, and the notes.

    Raises:
        FormatError: it is no such file, or it is damaged.
        OSError: it cannot be read.
    """
    parts, notes = _read_parts(path)
    arrays = from_tensors(parts[_ARRAYS], f"{_ARRAYS} in {path}")
    constants = {
        name.removeprefix(_CONSTANT): arrays.pop(name)
        for name in list(arrays)
        if name.startswith(_CONSTANT)
    }
    for array in constants.values():
        array.flags.writeable = False
    try:
        graph = parse_graph(parts[_GRAPH].decode(), ops.OPS, constants)
        verify(graph, stage="load")
    except (MinigraphError, UnicodeDecodeError) as error:
        raise FormatError(f"the graph in {path} cannot be read: {error}") from error
    missing = set(arrays) - set(graph.signature.captures)
    if missing:
        raise FormatError(f"{path} holds arrays that its graph does not read: {sorted(missing)}")
    return graph, arrays, notes


def _read_parts(path: str | os.PathLike[str]) -> tuple[Mapping[str, bytes], Notes]:
    """The parts of an archive, which are what the manifest says of them, and its notes."""
    data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifest = json.loads(archive.read(_MANIFEST))
            if manifest["format"] != "minigraph" or manifest["version"] > VERSION:
                raise FormatError(
                    f"{path} has the format {manifest['format']!r}, version "
                    f"{manifest['version']!r}; this minigraph reads version {VERSION}",
                    instead="a newer minigraph",
                )
            parts = {name: archive.read(name) for name in (_GRAPH, _ARRAYS)}
            digests = {name: manifest["parts"][name] for name in parts}
            notes = {str(name): [str(each) for each in v] for name, v in manifest["notes"].items()}
    except (zipfile.BadZipFile, AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, MinigraphError):
            raise
        raise FormatError(
            f"{path} is not what net.export() writes ({type(error).__name__}: {error})",
            instead="the file that net.export(path) wrote",
        ) from None
    for name, part in parts.items():
        if hashlib.sha256(part).hexdigest() != digests[name]:
            raise FormatError(f"{name} in {path} is damaged: its digest is not the one on record")
    return parts, notes
