"""How a trace reaches things: paths, for people and as code.

A `Path` says how the function reaches something (`x`, `self.w`, `table[0]`, a global, a cell).
`Names` binds the objects that generated code refers to.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from typing import Any


class Path:
    """A way to reach an object: a root and steps from it.

    Attributes:
        text: as the user would write it.
        kind: "argument", "global", "cell", "object", "part", "attribute", "class", "item".
        id: equal for equal paths only (two globals of one name differ).
    """

    __slots__ = ("holder", "id", "key", "kind", "parent", "text")

    def __init__(
        self, kind: str, key: Any, text: str, parent: Path | None = None, holder: Any = None
    ) -> None:
        self.kind = kind
        self.key = key
        self.text = text
        self.parent = parent
        self.holder = holder
        self.id: tuple[Any, ...] = (
            kind,
            type(key),
            key,
            id(holder),
            parent.id if parent is not None else None,
        )

    @classmethod
    def argument(cls, name: str) -> Path:
        return cls("argument", name, name)

    @classmethod
    def of_global(cls, namespace: dict[str, Any], name: str) -> Path:
        return cls("global", name, name, holder=namespace)

    @classmethod
    def of_cell(cls, cell: Any, name: str) -> Path:
        return cls("cell", name, name, holder=cell)

    @classmethod
    def of_object(cls, owner: Any, name: str) -> Path:
        """Something that the entry keeps alive itself (a function's defaults)."""
        return cls("object", name, name, holder=owner)

    @classmethod
    def of_part(cls, reference: Any, text: str) -> Path:
        """A part of a block, held weakly: that it is still there is a condition of its own."""
        return cls("part", text, text, holder=reference)

    def attribute(self, name: str, text: str = "") -> Path:
        """An attribute of the object; `text` is what the user writes, if that differs."""
        return Path("attribute", name, text or f"{self.text}.{name}", self)

    def owner(self) -> Path:
        """The object that a bound method belongs to; to the method itself it is `self`."""
        text = "self" if self.kind == "object" else f"{self.text}.__self__"
        return Path("attribute", "__self__", text, self)

    def owner_of_data(self) -> Path:
        """The eager array whose ndarray this path leads to."""
        assert self.kind == "attribute" and self.key == "data_" and self.parent is not None
        return self.parent

    def of_class(self) -> Path:
        """The class of the object."""
        return Path("class", None, f"type({self.text})", self)

    def item(self, key: Any) -> Path:
        return Path("item", key, f"{self.text}[{key!r}]", self)

    def steps(self) -> list[Path]:
        """From the root to this path."""
        chain: list[Path] = []
        path: Path | None = self
        while path is not None:
            chain.append(path)
            path = path.parent
        return chain[::-1]

    def code(self, names: Names) -> str:
        """The path as a Python expression; holders and odd keys are bound as `names`."""
        text = ""
        for path in self.steps():
            if path.kind == "argument":
                text = path.key
            elif path.kind == "global":
                text = f"{names.bind(path.holder, 'globals')}[{path.key!r}]"
            elif path.kind == "cell":
                text = f"{names.bind(path.holder, 'cell')}.cell_contents"
            elif path.kind == "object":
                text = names.bind(path.holder, "object")
            elif path.kind == "part":
                text = f"{names.bind(path.holder, 'part')}()"
            elif path.kind == "attribute":
                plain = path.key.isidentifier() and not keyword.iskeyword(path.key)
                text = f"{text}.{path.key}" if plain else f"getattr({text}, {path.key!r})"
            elif path.kind == "class":
                text = f"type({text})"
            elif type(path.key) in (int, str):
                text = f"{text}[{path.key!r}]"
            else:
                text = f"{text}[{names.bind(path.key, 'key')}]"
        return text

    def __repr__(self) -> str:
        return f"Path({self.text})"


class Names:
    """Objects that generated code refers to, each bound to one name."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.bound: dict[str, Any] = {}
        self._by_id: dict[int, str] = {}
        self._reserved = frozenset(reserved)
        self._counts: dict[str, int] = {}
        self.read: dict[str, str] = {}  # a path's code -> the local that holds what it led to

    def bind(self, thing: Any, word: str) -> str:
        name = self._by_id.get(id(thing))
        if name is None:
            name = self._by_id[id(thing)] = self._fresh(word)
            self.bound[name] = thing
        return name

    def own(self, thing: Any, word: str) -> str:
        """A name for this use alone: what it is bound to may be exchanged."""
        name = self._fresh(word)
        self.bound[name] = thing
        return name

    def local(self, code: str) -> str:
        """The local variable for what a path leads to; whoever asks first assigns it."""
        if code not in self.read:
            self.read[code] = self._fresh("read")
        return self.read[code]

    def _fresh(self, word: str) -> str:
        word = "".join(c for c in word if c.isalnum() or c == "_")
        index = self._counts.get(word, 0)
        while (name := f"_{word}{index}") in self._reserved:
            index += 1
        self._counts[word] = index + 1
        return name
