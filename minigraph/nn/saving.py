"""Parameters in files: read by name, all of them or none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minigraph.errors import ParameterError, suggestion
from minigraph.formats import load_tensors, save_tensors

if TYPE_CHECKING:
    from .parameter import Parameter


def write_parameters(file: str | os.PathLike[str], parameters: Mapping[str, Parameter]) -> None:
    """Write the values of parameters by name, in the safetensors format."""
    save_tensors(file, {name: p.data().data_ for name, p in parameters.items()})


def read_parameters(
    file: str | os.PathLike[str],
    parameters: Sequence[tuple[str, Parameter]],
    *,
    allow_missing: bool = False,
    ignore_extra: bool = False,
    cast_dtype: bool = False,
) -> None:
    """Give parameters the values that a file has under one of their names.

    Raises:
        FormatError: the file is not in the safetensors format.
        ParameterError: a name, shape or dtype does not fit; then no parameter has changed.
    """
    arrays = load_tensors(file)
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
