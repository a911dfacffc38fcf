"""Parameters in files, in the safetensors format: names, shapes, dtypes and bytes, and no code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minigraph.errors import ParameterError, suggestion

from .parameter import Parameter

Arrays = dict[str, np.ndarray[Any, Any]]


def write_arrays(file: str | os.PathLike[str], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write arrays by name; the file is there as a whole or not at all."""
    from safetensors.numpy import save

    path = Path(file)
    written = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        written.write_bytes(save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))
        os.replace(written, path)
    finally:
        written.unlink(missing_ok=True)


def read_arrays(file: str | os.PathLike[str]) -> Arrays:
    """Read what `write_arrays` wrote.

    Raises:
        ParameterError: the file is in another format.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = Path(file).read_bytes()
    try:
        return load(data)
    except SafetensorError as error:
        raise ParameterError(
            f"{os.fspath(file)} is not a file in the safetensors format: {error}",
            instead="a file that net.save_parameters(file) wrote",
        ) from None


def write_parameters(file: str | os.PathLike[str], parameters: Mapping[str, Parameter]) -> None:
    """Write the values of parameters."""
    write_arrays(file, {name: p.data().data_ for name, p in parameters.items()})


def read_parameters(
    file: str | os.PathLike[str],
    parameters: Sequence[tuple[str, Parameter]],
    allow_missing: bool,
    ignore_extra: bool,
    cast_dtype: bool,
) -> None:
    """Give parameters the values that a file has under one of their names.

    Raises:
        ParameterError: a name, shape or dtype does not fit; then no parameter has changed.
    """
    arrays = read_arrays(file)
    known = [name for name, _ in parameters]
    extra = sorted(set(arrays).difference(known))
    if extra and not ignore_extra:
        raise ParameterError(
            f"{os.fspath(file)} holds {_listed(extra)}, which the network does not have",
            instead=f"ignore_extra=True leaves it out; {suggestion(extra[0], known)}",
        )
    names = {
        id(parameter): [n for n, p in parameters if p is parameter] for _, parameter in parameters
    }
    found: list[tuple[Parameter, np.ndarray[Any, Any]]] = []
    for name, parameter in parameters:
        aliases = names.pop(id(parameter), None)
        if aliases is None:
            continue
        given = next((arrays[alias] for alias in aliases if alias in arrays), None)
        if given is not None:
            found.append((parameter, _fitted(name, parameter, given, cast_dtype)))
        elif not allow_missing:
            near = suggestion(name, sorted(arrays))
            raise ParameterError(
                f"parameter {name} is missing in {os.fspath(file)}",
                instead=f"allow_missing=True leaves it as it is; {near}",
            )
    for parameter, given in found:
        parameter.set_data(given)


def _fitted(
    name: str, parameter: Parameter, given: np.ndarray[Any, Any], cast_dtype: bool
) -> np.ndarray[Any, Any]:
    """Values from a file, as a parameter takes them."""
    if not parameter.takes_shape(given.shape):
        raise ParameterError(
            f"parameter {name} has shape {parameter.shape}, in the file it has {given.shape}"
        )
    if given.dtype != parameter.dtype and not cast_dtype:
        raise ParameterError(
            f"parameter {name} has dtype {parameter.dtype}, in the file it has {given.dtype}",
            instead="cast_dtype=True converts the values; net.cast(dtype) the network",
        )
    return given


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
