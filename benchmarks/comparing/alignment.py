"""Which operations of each compiler came from which line of the user's source.

A form of a compiler tells, for lines of a file, the lines of its text that came of them.  Here the
sources of several frameworks are laid beside each other line by line, where they say the same, and
each operation of each form finds its place in one of the rows.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..runners.base import Form

NAMESPACES = re.compile(r"\b(?:np|jnp|numpy|xp|torch|functional|F|nn|tf|mx|nd|pt|mg|self|math)\.")
TOKENS = re.compile(r"\w+|[^\w\s]")
ALIKE = 0.4  # share of equal tokens from which on two lines of different sources say the same


@dataclass(frozen=True)
class Source:
    """The lines of a file that a framework's implementation consists of.

    Attributes:
        file: where it stands.
        lines: number of a line (counted in the file) → its text.
        first: the line at which the user's function or class begins.
    """

    file: str
    lines: Mapping[int, str]
    first: int

    @property
    def place(self) -> tuple[str, int]:
        """Equal where the user's function or class is the same."""
        return self.file, self.first

    @classmethod
    def of(cls, text: str, file: str, line: int, used: Iterable[int]) -> Source:
        """The function or class, and what else of its file the lines `used` are in."""
        lines = dict(enumerate(text.rstrip("\n").split("\n"), line))
        outside = [number for number in used if number not in lines]
        if outside and Path(file).is_file():
            lines |= _around(Path(file).read_text("utf-8"), outside)
        return cls(file, dict(sorted(lines.items())), line)


def _around(text: str, numbers: Sequence[int]) -> dict[int, str]:
    """The lines of the innermost functions around each of the numbers."""
    written = text.split("\n")
    functions = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    ]
    found: dict[int, str] = {}
    for number in numbers:
        around = [lines for lines in functions if number in lines]
        lines = min(around, key=len) if around else range(number, number + 1)
        found |= {each: written[each - 1] for each in lines if each <= len(written)}
    return found


# ---- rows --------------------------------------------------------------------------------------


@dataclass
class Row:
    """A line of source, and what the other sources have in its place.

    Attributes:
        numbers: index of a source → the number of its line.
    """

    numbers: dict[int, int] = field(default_factory=dict)


def aligned(sources: Sequence[Source]) -> list[Row]:
    """All lines of all sources but empty ones, each once; those that say the same in one row."""
    rows: list[Row] = []
    for index, source in enumerate(sources):
        numbers = [number for number, line in source.lines.items() if line.strip()]
        known = [
            [_words(sources[other].lines[number]) for other, number in row.numbers.items()]
            for row in rows
        ]
        texts = [_words(source.lines[number]) for number in numbers]
        matches = dict(_matches(known, texts))
        merged: list[Row] = []
        taken = 0
        for position, row in enumerate(rows):
            if position in matches:
                end = matches[position]
                merged += [Row({index: number}) for number in numbers[taken:end]]
                row.numbers[index] = numbers[end]
                taken = end + 1
            merged.append(row)
        rows = merged + [Row({index: number}) for number in numbers[taken:]]
    return rows


def _words(line: str) -> list[str]:
    return TOKENS.findall(NAMESPACES.sub("", line))


def _alike(one: Sequence[str], other: Sequence[str]) -> float:
    """How much two lines say the same, from 0 to 1; 0 where too little."""
    if one == other:
        return 1.0
    compared = difflib.SequenceMatcher(None, one, other, autojunk=False)
    share = compared.ratio() if compared.quick_ratio() >= ALIKE else 0.0
    return share if share >= ALIKE else 0.0


def _matches(
    rows: Sequence[Sequence[Sequence[str]]], lines: Sequence[Sequence[str]]
) -> Iterator[tuple[int, int]]:
    """Pairs of a row and a line, in the order of both, that together are most alike."""
    shares = [
        [max((_alike(each, line) for each in row), default=0.0) for line in lines] for row in rows
    ]
    # best[i][j]: of the rows from i and the lines from j on
    best = [[0.0] * (len(lines) + 1) for _ in range(len(rows) + 1)]
    for i in reversed(range(len(rows))):
        for j in reversed(range(len(lines))):
            paired = best[i + 1][j + 1] + shares[i][j] if shares[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    i = j = 0
    while i < len(rows) and j < len(lines):
        if shares[i][j] and best[i][j] == best[i + 1][j + 1] + shares[i][j]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1


# ---- operations --------------------------------------------------------------------------------

OPERATIONS = {
    "minigraph": r"\s*(?:%[\w.]+(?:, %[\w.]+)* = )?(?!graph\b|return\b|const\b)([a-z_]\w*)\b",
    "torchscript": r"\s*(?:%[^=]*? = )?(?!prim::Constant|prim::GetAttr)(\^?\w+::\w+)",
    "jaxpr": r"\s*\S.* = (\w+)(?:\[| |$)",
    "tensorflow": r"\s*\S+ = (?!(?:_Arg|_Retval|_HostConst|Placeholder|Const|NoOp)\b)(\w+)\(",
    "hlo": r"\s*(?:ROOT )?%?[\w.\-]+ = (?:\(.*?\)|\S+) "
    r"(?!(?:parameter|constant|tuple|get-tuple-element|bitcast)\()([a-z][\w\-]*)\(",
    "json": r"""\s*"op": "(?!null)([^"]+)\"""",
    "onnx": r"\s*(?:\[.*?\] )?[^=(]+ = (?!Constant\b)([\w.]+)",
    "pytensor": r"[\s│├└─┬]*(\S.*?) \[id \w+\].* \d+$",
}
"""What a line of a language is an operation of; the group is its name.

Constants and parameters are none.  In Python, an operation is what the form says came of a line.
"""
PLACE = re.compile(r"\s+# \S+:\d+(?::\d+)?$|, metadata=\{.*?\}")
"""What a text says of where it comes from, which the row that it is shown in says, too."""
CALL = re.compile(r"([A-Za-z_][\w.]*)\(")
OPERATOR = re.compile(r" ([-+*/%@&|^<>=!]+) ")


@dataclass(frozen=True)
class Operation:
    """One operation of a form.

    Attributes:
        line: of the form's text, counted from 1.
        name: what is done; text: the line, without what it says of its place.
        rows: all rows that it came of; it is shown in the last one.
    """

    line: int
    name: str
    text: str
    rows: tuple[int, ...]


def operations(form: Form, row_of: Mapping[int, int]) -> list[Operation]:
    """All operations of a form, in its order; `row_of`: number of a line of source → its row."""
    pattern = re.compile(OPERATIONS[form.language]) if form.language in OPERATIONS else None
    rows = rows_of_text(form, row_of)
    told = {line for lines in form.lines.values() for line in lines}
    found: list[Operation] = []
    for number, line in enumerate(form.text.split("\n"), 1):
        if pattern is None:
            name = _called(line) if number in told else None
        else:
            match = pattern.match(line)
            name = match[1] if match else None
        if name is not None:
            text = PLACE.sub("", line).strip()
            found.append(Operation(number, name, text, rows.get(number, ())))
    return found


def _called(line: str) -> str | None:
    """What a line of Python calls first, or its operator; None of one that does nothing."""
    text = line.strip()
    if not text or text.startswith(("#", "def ", "return ", "del ", "@")):
        return None
    text = text.partition(";")[0].partition(" # ")[0].rstrip()
    text = text.partition(" = ")[2] or text
    found = CALL.search(text) or OPERATOR.search(text)
    return found[1] if found else text


def rows_of_text(form: Form, row_of: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """The rows of each line of a form's text that came from any."""
    found: dict[int, set[int]] = {}
    for number, lines in form.lines.items():
        if number in row_of:
            for line in lines:
                found.setdefault(line, set()).add(row_of[number])
    return {line: tuple(sorted(rows)) for line, rows in sorted(found.items())}


def counted(found: Iterable[Operation]) -> str:
    """`multiply x2, tanh`: the names in the order in which they first occur."""
    counts = Counter(each.name for each in found)
    return ", ".join(name if n == 1 else f"{name} x{n}" for name, n in counts.items())


NO_FORM = "it shows no form"  # of a runner that compiles nothing

# ---- side by side ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """What a runner has shown of a workload.

    Attributes:
        name: of the runner; about: what it is, in a few words.
        status: why there is nothing, in a word or two ("" where there is); reason: in more.
        details: of the runner, such as `kernels`.
        source: what its user wrote.
        forms: what its compiler made of that.
    """

    name: str
    about: str = ""
    status: str = ""
    reason: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    source: Source | None = None
    forms: tuple[Form, ...] = ()

    def without(self, status: str, reason: str) -> Column:
        """The column of a runner that has nothing to show."""
        return replace(self, status=status, reason=reason or status)

    @property
    def failed(self) -> bool:
        return self.status in ("crashed", "timed out", "wrong")

    @property
    def before(self) -> Form | None:
        """The first form whose operations are counted before anything is optimised."""
        return next(filter(_is_counted("before"), self.forms), None)

    @property
    def after(self) -> Form | None:
        """The first one whose operations are counted afterwards."""
        return next(filter(_is_counted("after"), self.forms), None)

    @property
    def aligned(self) -> Form | None:
        """The form that is laid beside the source: what was left, where that names its lines."""
        after = [form for form in self.forms if form.stage == "after"]
        choices = [form for form in (*after, *self.forms) if form.lines] or after or self.forms
        return next(iter(choices), None)


def _is_counted(stage: str) -> Callable[[Form], bool]:
    return lambda form: form.stage == stage and form.nodes is not None


@dataclass(frozen=True)
class View:
    """The operations of one form, by rows; columns that show the same share it.

    Attributes:
        columns: the names of the runners.
        source: index of what its user wrote; None where nobody wrote it.
        form: where the operations stand.
        operations: all of them, each once.
    """

    columns: tuple[str, ...]
    source: int | None
    form: Form
    operations: tuple[Operation, ...]

    @property
    def label(self) -> str:
        """The names, without what they have in common: `minigraph numba, python`."""
        common = os.path.commonprefix(self.columns).rpartition(" ")[0]
        first, *others = self.columns
        return ", ".join([first, *(name[len(common) :].strip() for name in others)])

    def of_row(self, row: int | None) -> list[Operation]:
        """What is shown in a row; None is for what came of no line."""
        return [each for each in self.operations if (each.rows[-1] if each.rows else None) == row]

    def below(self, row: int) -> list[Operation]:
        """What came of a row, too, but is shown in a later one, such as a fused loop."""
        return [each for each in self.operations if row in each.rows[:-1]]


@dataclass(frozen=True)
class Comparison:
    """One workload, and what each compiler made of it.

    Attributes:
        title: of the workload.
        columns: of all runners that were asked.
        sources: what users wrote, without repetitions; the first is what others are laid beside.
        rows: of the first source all lines, of the others those that anything came of.
        views: what is shown beside them.
    """

    title: str
    columns: Sequence[Column]
    sources: Sequence[Source]
    rows: Sequence[Row]
    views: Sequence[View]

    @classmethod
    def of(cls, title: str, columns: Sequence[Column]) -> Comparison:
        showing = [column for column in columns if column.forms]
        sources = _together([column.source for column in showing if column.source])
        used = [_lines_used(showing, source) for source in sources]
        rows = [
            row
            for row in aligned(sources)
            if 0 in row.numbers or any(number in used[n] for n, number in row.numbers.items())
        ]
        found = cls(title, columns, sources, rows, ())
        return replace(found, views=found._views(showing))

    def _views(self, columns: Sequence[Column]) -> list[View]:
        views: dict[tuple[object, ...], View] = {}
        for column in columns:
            form = column.aligned
            assert form is not None
            source = self.index(column.source)
            key = (source, form.text, str(form.lines))
            if key in views:
                shared = views[key]
                views[key] = replace(shared, columns=(*shared.columns, column.name))
            else:
                of_it = tuple(operations(form, self.row_of(column.source)))
                views[key] = View((column.name,), source, form, of_it)
        return list(views.values())

    def index(self, source: Source | None) -> int | None:
        """Which of the sources it is."""
        places = [each.place for each in self.sources]
        return None if source is None else places.index(source.place)

    def row_of(self, source: Source | None) -> dict[int, int]:
        """Number of a line of a source → its row."""
        index = self.index(source)
        return {
            number: place
            for place, row in enumerate(self.rows)
            for of, number in row.numbers.items()
            if of == index
        }

    def line(self, row: int, source: int) -> str | None:
        """What a source has in a row."""
        number = self.rows[row].numbers.get(source)
        return None if number is None else self.sources[source].lines[number]


def groups(views: Iterable[View]) -> list[tuple[int | None, list[View]]]:
    """Views with the same source, in the order of the sources; those without one come last."""
    found: dict[int | None, list[View]] = {}
    for view in views:
        found.setdefault(view.source, []).append(view)
    return sorted(found.items(), key=lambda item: (item[0] is None, item[0] or 0))


def _together(sources: Iterable[Source]) -> list[Source]:
    """Each once, with all lines that any of its columns has of it."""
    found: dict[tuple[str, int], Source] = {}
    for source in sources:
        before = found.get(source.place, source)
        found[source.place] = replace(
            source, lines=dict(sorted({**before.lines, **source.lines}.items()))
        )
    return list(found.values())


def _lines_used(columns: Sequence[Column], source: Source) -> set[int]:
    same = [each for each in columns if each.source and each.source.place == source.place]
    return {number for column in same for form in column.forms for number in form.lines}
