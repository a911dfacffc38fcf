"""The parameters of a network by name."""

from __future__ import annotations

import os
import re
from typing import Any

from minigraph.errors import ParameterError, suggestion
from minigraph.mode import here

from .parameter import Constant, Parameter, warn_initialized
from .saving import read_parameters, write_parameters


class ParameterDict(dict[str, Parameter]):
    """Parameters by name, in order; what `collect_params` returns."""

    def initialize(
        self, init: Any = None, *, verbose: bool = False, force_reinit: bool = False
    ) -> None:
        """Initialize all; those that have values already are left alone, with one warning.

        Args:
            init: for those without an initializer of their own.
            verbose: print what each is initialized with.
            force_reinit: also those that have values.
        """
        initialized: list[str] = []
        for name, parameter in self.items():
            if parameter.is_ready and not force_reinit:
                initialized.append(name)
                continue
            parameter.initialize(default_init=init, force_reinit=force_reinit)
            if verbose:
                chosen = parameter.init if parameter.init is not None else init
                print(f"{name}: {chosen or 'uniform'}")
        if initialized:
            warn_initialized(initialized)

    def select(self, pattern: str) -> ParameterDict:
        r"""Those whose names match a regular expression from their beginning: ".*bias"."""
        try:
            matches = re.compile(pattern).match
        except re.error as error:
            raise ParameterError(
                f"{pattern!r} is not a regular expression: {error}",
                where=here(),
                instead='".*weight" for all names that hold "weight"',
            ) from None
        return ParameterDict((n, p) for n, p in self.items() if matches(n))

    def get(self, name: str, default: Any = None, **options: Any) -> Any:
        """As of any dict; with options, as in Gluon, a new parameter of this name."""
        return Parameter(name, **options) if options else super().get(name, default)

    def get_constant(self, name: str, value: Any) -> Constant:
        """A new parameter of this name that is not learned; Gluon's way to write `nn.Constant`."""
        return Constant(value, name)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write all values into a file in the safetensors format."""
        write_parameters(file, self)

    def load(self, file: str | os.PathLike[str], **options: bool) -> None:
        """Read all values; options as of `Block.load_parameters`."""
        read_parameters(file, list(self.items()), **options)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for parameter in self.values():
            parameter.zero_grad()

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all: `net.collect_params("encoder").setattr("grad_req", "null")`.

        Raises:
            ParameterError: parameters have no such attribute.
        """
        if name not in _SETTABLE:
            raise ParameterError(
                f"parameters have no attribute {name!r} that could be set",
                where=here(),
                instead=suggestion(name, _SETTABLE),
            )
        for parameter in self.values():
            setattr(parameter, name, value)

    def __repr__(self) -> str:
        lines = [f"  {name}: shape={p.shape}, dtype={p.dtype}" for name, p in self.items()]
        return "\n".join(["ParameterDict(", *lines, ")"])


_SETTABLE = ("dtype", "grad_req", "init", "lr_mult", "wd_mult")
