"""Arrays by name as safetensors: a table of names, dtypes and shapes, and then the plain bytes.

The format is described at https://github.com/huggingface/safetensors; reading one runs no code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minigraph.errors import FormatError

Arrays = Mapping[str, np.ndarray[Any, Any]]


def to_tensors(arrays: Arrays) -> bytes:
    """Arrays by name as the bytes of a safetensors file.

    Raises:
        FormatError: the format has no name for a dtype (complex128).
    """
    import safetensors.numpy as safetensors

    dense = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    shaped = {name: dense[name].reshape(np.shape(array)) for name, array in arrays.items()}
    for name, array in shaped.items():
        if array.dtype.name not in _DTYPES:
            raise FormatError(
                f"{name} has the dtype {array.dtype}, for which safetensors has no name",
                instead="one of " + ", ".join(_DTYPES),
            )
    return safetensors.save(shaped)


_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64"),
)


def from_tensors(data: bytes, source: str) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a safetensors file.

    Args:
        data: its bytes.
        source: what it is called in errors.

    Raises:
        FormatError: it is none.
    """
    import safetensors
    import safetensors.numpy

    try:
        found = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError) as error:
        raise FormatError(f"{source} is no safetensors file: {error}") from None
    return {name: np.array(found[name]) for name in sorted(found)}  # memory of our own, writable


def save_tensors(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Write arrays by name into a safetensors file."""
    write_whole(path, to_tensors(arrays))


def load_tensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Read the arrays of a safetensors file, in the order of their names.

    Raises:
        FormatError: it is no such file.
        OSError: it cannot be read.
    """
    return from_tensors(Path(path).read_bytes(), str(path))


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file such that nobody sees half of it, and a failure leaves the old one."""
    target = Path(path)
    beside = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        beside.replace(target)
    except FileNotFoundError as error:
        folder = str(target.parent)
        raise FileNotFoundError(error.errno, "there is no such folder", folder) from None
    finally:
        beside.unlink(missing_ok=True)
