"""The trainer: one update of all parameters of a network, as one compiled program.

    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    with autograd.record():
        loss = loss_function(net(x), y)
    loss.backward()
    trainer.step(len(x))

All that changes from step to step is an array: the parameters, what the optimiser remembers of
each, the learning rate, the number of updates.  A step writes into them, and never needs to be
compiled again because one of them has another value.  `mg.jit` over a whole training step records
the same code into its own program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from minigraph import autograd
from minigraph.compiled import Compiled, overlaps
from minigraph.errors import FormatError, OptionError, StaleGradientError
from minigraph.formats import load_tensors, save_tensors
from minigraph.jit import is_eager
from minigraph.memory import wrote
from minigraph.mode import here
from minigraph.trace import ACTIVE, Path, captured, seen, trace_call

from . import functional as F
from .block import Block
from .functional import clip_factor
from .optimizers import OPTIMIZERS, Optimizer, State, as_of, create
from .parameter import Parameter, refuse_in_trace
from .schedules import Schedule, is_number

Ndarray = np.ndarray[Any, Any]


class Slot:
    """A parameter that is trained, and what the optimiser remembers of it.

    Attributes:
        name: of the parameter, as its user knows it.
        weight: its ndarray, and state: made for it; None before the first update.
    """

    __slots__ = ("name", "parameter", "state", "weight")

    def __init__(self, name: str, parameter: Parameter) -> None:
        self.name = name
        self.parameter = parameter
        self.weight: Any = None
        self.state: State = {}

    def prepare(self, optimizer: Optimizer) -> None:
        """Make the state, if the parameter has another array than last time."""
        array = self.parameter._data
        assert array is not None, "only parameters with data are updated"
        weight = array.data_
        if weight is self.weight:
            return
        made = optimizer.state(weight)
        if self.weight is not None and self.weight.shape == weight.shape:  # of another dtype
            for name, array in made.items():
                np.copyto(array, self.state[name], casting="unsafe")
        self.weight, self.state = weight, made

    @property
    def factors(self) -> tuple[float, float]:
        """Of the learning rate and of the weight decay."""
        return self.parameter.lr_mult, self.parameter.wd_mult


class Update:
    """One update of some parameters, compiled for their arrays.

    Attributes:
        slots: the parameters; factors: of each, as they are compiled in.
        compiled: the program.
    """

    def __init__(
        self,
        write: Callable[..., None],
        slots: list[Slot],
        gradients: list[Ndarray],
        counters: Mapping[str, Ndarray],
    ) -> None:
        self.slots = slots
        self.factors = [slot.factors for slot in slots]
        self._weights = [slot.weight for slot in slots]
        self._kinds = [_kind(gradient) for gradient in gradients]

        def update(scale: Any, gradients: Any, weights: Any, states: Any, counters: Any) -> None:
            write(weights, gradients, states, self.factors, counters, scale)

        names = [slot.name for slot in slots]
        arguments = {
            "scale": 1.0,
            "gradients": dict(zip(names, gradients, strict=True)),
            "weights": dict(zip(names, self._weights, strict=True)),
            "states": {slot.name: slot.state for slot in slots},
            "counters": counters,
        }
        trace = trace_call(update, arguments)
        self.compiled = Compiled(trace.graph, strided=trace.strided)
        states = [array for slot in slots for array in slot.state.values()]
        self._fixed = [*self._weights, *states, *counters.values()]
        self._run = self.compiled.run

    def fits(self, slots: list[Slot], gradients: list[Ndarray]) -> bool:
        """It was compiled for these."""
        return (
            slots == self.slots
            and [slot.factors for slot in slots] == self.factors
            and all(slot.weight is w for slot, w in zip(slots, self._weights, strict=True))
            and list(map(_kind, gradients)) == self._kinds
        )

    def __call__(self, scale: float, gradients: list[Ndarray]) -> None:
        self._run(scale, *gradients, *self._fixed)


def _kind(array: Ndarray) -> tuple[Any, ...]:
    """What of a gradient's array a program depends on."""
    return array.dtype, array.shape, array.flags.c_contiguous


class Trainer:
    """Updates parameters by their gradients.

    Args:
        params: parameters: what `net.collect_params()` returns, or a list.
        optimizer: the name of one ("sgd", "adam", ...), or an optimiser.
        optimizer_params: its options, such as `{"learning_rate": 0.1, "momentum": 0.9}`.

    Attributes:
        optimizer: the optimiser.
        counters: the arrays that all parameters share: the learning rate, and the count of updates.

    Raises:
        OptionError: there is no such optimiser or option; what is given are no parameters.
        StateError: a trace runs: what the optimiser remembers would begin anew once.
    """

    def __init__(
        self,
        params: Mapping[str, Parameter] | Iterable[Parameter],
        optimizer: str | Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
    ) -> None:
        refuse_in_trace("a Trainer is made")
        self.optimizer = create(optimizer, optimizer_params)
        self._slots = _slots(params)
        schedule = self.optimizer.schedule
        self._own_schedule = schedule if isinstance(schedule, Schedule) else None
        self._users_schedule = schedule if self._own_schedule is None else None
        self.counters = {"learning_rate": np.array(np.nan), "updates": np.zeros((), np.int64)}
        if self._users_schedule is None:
            first = self.optimizer.learning_rate if schedule is None else schedule(0)
            self.counters["learning_rate"][...] = first
        self._update: Update | None = None

    # ---- one update ------------------------------------------------------------------------

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update all parameters by their gradients, divided by `batch_size`.

        Args:
            batch_size: how many examples the gradients are summed over.
            ignore_stale_grad: leave a parameter as it is that no `backward` has given a new
                gradient.

        Raises:
            StaleGradientError: there is such a parameter.
        """
        tracing = ACTIVE.get() is not None
        if not tracing and not batch_size > 0:
            raise OptionError(f"batch_size is {batch_size!r}", instead="a number above 0")
        slots = self._fresh(ignore_stale_grad)
        if tracing:
            self._record(slots, 1.0 / batch_size)
        else:
            self._run(slots, 1.0 / batch_size)
        for slot in slots:
            slot.parameter.data().fresh_grad = False

    update = step
    """Gluon's name for a step without the exchange between devices; there is none here."""

    def _fresh(self, ignore: bool) -> list[Slot]:
        """The parameters to update, ready for it."""
        slots: list[Slot] = []
        stale: list[str] = []
        for slot in self._slots:
            array = slot.parameter.data()
            if array.fresh_grad:
                slots.append(slot)
                slot.prepare(self.optimizer)
            elif array.grad is not None:
                stale.append(slot.name)
        if stale and not ignore:
            raise StaleGradientError(
                f"no backward() has computed the gradient of {', '.join(stale)} since the last "
                "step",
                where=here(),
                instead="loss.backward() before each step; ignore_stale_grad=True if these take "
                "part in some steps only",
            )
        return slots

    def _run(self, slots: list[Slot], scale: float) -> None:
        """Write one update: by a program, or eagerly where that is asked for or not the same."""
        if self._users_schedule is not None:
            self.counters["learning_rate"][...] = self._users_schedule(self.updates)
        gradients = [slot.parameter.grad().data_ for slot in slots]
        update = self._update
        if update is not None and not is_eager() and update.fits(slots, gradients):
            update(scale, gradients)
        elif not is_eager() and self._compiles(slots):
            self._update = Update(self._write, slots, gradients, self.counters)
            self._update(scale, gradients)
        else:
            self._write(
                {slot.name: slot.weight for slot in slots},
                {slot.name: array for slot, array in zip(slots, gradients, strict=True)},
                {slot.name: slot.state for slot in slots},
                [slot.factors for slot in slots],
                self.counters,
                scale,
            )
        for slot in slots:
            wrote(slot.weight)

    def _record(self, slots: list[Slot], scale: Any) -> None:
        """An update within a trace of the user's: part of its program."""
        active = ACTIVE.get()
        assert active is not None
        for slot in slots:
            path = Path.of_object(slot.parameter, slot.name)
            for name in ("lr_mult", "wd_mult"):
                active.guards.equals(path.attribute(name), getattr(slot.parameter, name))
        counters = _captured(self.counters, "")
        if self._users_schedule is not None:
            counters["learning_rate"][...] = seen(self._users_schedule)(counters["updates"])
        with autograd.pause():
            self._write(
                {slot.name: slot.parameter.data() for slot in slots},
                {slot.name: slot.parameter.grad() for slot in slots},
                {slot.name: _captured(slot.state, f"{slot.name}.") for slot in slots},
                [slot.factors for slot in slots],
                counters,
                scale,
            )

    def _compiles(self, slots: list[Slot]) -> bool:
        """The optimiser is one of ours, and no two parameters share memory."""
        weights = [slot.weight for slot in slots]
        return type(self.optimizer) in OPTIMIZERS.values() and not any(
            overlaps(weight, *weights[index + 1 :]) for index, weight in enumerate(weights)
        )

    def _write(
        self,
        weights: Mapping[str, Any],
        gradients: Mapping[str, Any],
        states: Mapping[str, State],
        factors: list[tuple[float, float]],
        counters: Mapping[str, Any],
        scale: Any,
    ) -> None:
        """One update, in NumPy terms: the code that runs eagerly, or is traced."""
        rate, updates = counters["learning_rate"], counters["updates"]
        if self._own_schedule is not None:
            rate[...] = self._own_schedule(updates)
        updates += 1
        seen(self.optimizer).update_all(
            *(list(group.values()) for group in (weights, gradients, states)), factors, rate, scale
        )

    # ---- what changes ----------------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The rate of the last update, or of the first one before it; in a trace the traced one.

        A schedule that is a function of the user's is not asked before the first update: NaN.
        """
        rate = self.counters["learning_rate"]
        return float(rate) if ACTIVE.get() is None else captured(rate)

    def set_learning_rate(self, rate: float) -> None:
        """Go on with another rate; no program is compiled again.

        Raises:
            OptionError: it is no rate, or a schedule determines it.
        """
        if self.optimizer.schedule is not None:
            raise OptionError(
                "the learning rate follows a schedule", instead="a Trainer without a schedule"
            )
        if not is_number(rate) or not 0 <= rate < np.inf:
            raise OptionError(f"the learning rate is {rate!r}", instead="a number from 0 up")
        captured(self.counters["learning_rate"])[...] = rate

    @property
    def updates(self) -> int:
        """How many updates were done."""
        updates = self.counters["updates"]
        return int(updates) if ACTIVE.get() is None else captured(updates)

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Write what changes, but for the parameters themselves, into a safetensors file.

        Args:
            path: the file.
        """
        save_tensors(path, self._named_states())

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Go on from what `save_states` wrote; programs stay compiled.

        Raises:
            FormatError: the file was written by another optimiser, or for other parameters.
        """
        arrays, found = self._named_states(), load_tensors(path)
        for name in {**arrays, **found}:
            there = [
                "no such array" if array is None else f"{array.dtype}{array.shape}"
                for array in (found.get(name), arrays.get(name))
            ]
            if there[0] != there[1]:
                raise FormatError(
                    f"{path} does not fit this trainer: of {name} it has {there[0]}, and the "
                    f"trainer {there[1]}",
                    instead="a trainer with the optimiser and the parameters of the one that "
                    "wrote it, initialized",
                )
        for name, array in arrays.items():
            array[...] = found[name]

    def _named_states(self) -> dict[str, Ndarray]:
        """All that changes, but for the parameters themselves, by name."""
        for slot in self._slots:
            if slot.parameter.is_ready:
                slot.prepare(self.optimizer)
        states = {
            f"states.{slot.name}.{key}": array
            for slot in self._slots
            for key, array in slot.state.items()
        }
        return {**self.counters, **states}

    # ---- what can be seen ------------------------------------------------------------------

    @property
    def compiled(self) -> Compiled:
        """The program of the last step: `print` it to see every stage.

        Raises:
            OptionError: no step was compiled yet.
        """
        if self._update is None:
            raise OptionError("no step was compiled yet", instead="trainer.step(batch_size) first")
        return self._update.compiled

    def __repr__(self) -> str:
        return f"Trainer({len(self._slots)} parameters, {self.optimizer})"


def _slots(params: Any) -> list[Slot]:
    """The parameters, each once.

    Raises:
        OptionError: what is given are no parameters.
    """
    if isinstance(params, Block):
        raise OptionError(
            f"a Trainer takes parameters, not a {type(params).__name__}",
            instead="net.collect_params()",
        )
    pairs = params.items() if isinstance(params, Mapping) else [(None, each) for each in params]
    slots: dict[int, Slot] = {}
    taken: set[str] = set()
    for name, parameter in pairs:
        if not isinstance(parameter, Parameter):
            raise OptionError(
                f"a Trainer takes parameters, not a {type(parameter).__name__}",
                instead="net.collect_params()",
            )
        if id(parameter) not in slots:
            unique = name or parameter.label()
            while unique in taken:
                unique += "_"
            taken.add(unique)
            slots[id(parameter)] = Slot(unique, parameter)
    if not slots:
        raise OptionError("a Trainer was given no parameters", instead="net.collect_params()")
    return list(slots.values())


def _captured(arrays: Mapping[str, Ndarray], prefix: str) -> dict[str, Any]:
    """What stands for arrays in the trace that runs, under their names after the prefix."""
    return {name: captured(array, name=prefix + name) for name, array in arrays.items()}


def clip_global_norm(arrays: Sequence[Any], max_norm: float) -> Any:
    """Scale arrays in place so that all together have at most this norm.

    Args:
        arrays: gradients, or whatever else: `[parameter.grad() for parameter in ...]`.
        max_norm: the most that the root of the sum of all their squares may be.

    Returns:
        The norm that they had.  If it is NaN, so is all that is in them then.
    """
    if not is_number(max_norm) or not max_norm > 0:
        raise OptionError(f"max_norm is {max_norm!r}", instead="a number above 0")
    if not arrays:
        raise OptionError("there are no arrays to scale")
    norm = F.global_norm(arrays)
    factor = clip_factor(norm, max_norm)
    for array in arrays:
        array *= as_of(array, factor)
    return norm
