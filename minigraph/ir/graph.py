"""The IR: four records, made once and never changed.

    graph     ::= ("graph" | "program") GRAPHNAME "(" params ")" captures? "{" node* return "}"
    params    ::= (param ("," param)*)?
    param     ::= (NAME? "=")? tree(input)        left out where it is the value's own name (and
                                                  empty where the value has a number only)
    captures  ::= "captures" "(" (input "=" STRING) ("," ...)* ")"
    input     ::= "%" name ":" type
    node      ::= (values "=")? OP operands? attrs? (":" types)? comment?        on a new line
    values    ::= "%" name ("," "%" name)*
    operands  ::= "%" name ("," "%" name)*  |  constant                          (of `const`)
    attrs     ::= "{" NAME "=" attr ("," NAME "=" attr)* "}"
    attr      ::= literal | dtype | "py." NAME | "<" dimension ">" | "<" type ">" | "%" | "..."
                | attr? ":" attr? (":" attr?)?                                   (a slice)
                | "(" attr* ")" | "[" attr* "]" | graph
    return    ::= "return" tree(value)
    tree(x)   ::= x | literal | "<" NAME ">" | "(" tree* ")" | "[" tree* "]"
                | "{" (key ":" tree)* "}" | NAME "(" NAME "=" tree ... ")"
    type      ::= dtype "[" dimension* "]" | "bool" | "int" | "float" | "complex" | "generator"
                | "function"
    name      ::= the user's variable name, `name.N`, or a number
    literal   ::= None | STRING | BYTES | number                         (see `ir/literals.py`)
    constant  ::= number | "[" constant* "]" | "array(" number ")"
                | "<hex:" DIGITS ">" | "<sha256:" DIGITS ">"
    comment   ::= "#" to the end of the line

`ir/printer.py` prints it, `ir/parser.py` parses it.  A region (an attr that is a graph) has names
of its own.  Elements in brackets are separated by commas; a tuple of one element ends with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from .attrs import constant_digest, freeze
from .printer import print_graph
from .tree import Branch, Leaf, Static, Tree
from .types import ArrayType, Shape, Type


class Loc:
    """A place in the user's source: the expression, its function, and who called it.

    Lines count from 1, columns are UTF-8 byte offsets as in code objects (None: not known).
    """

    __slots__ = ("caller", "column", "end_column", "file", "function", "line")

    def __init__(
        self,
        file: str,
        line: int,
        column: int | None = None,
        end_column: int | None = None,
        function: str = "",
        caller: Loc | None = None,
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.end_column = end_column
        self.function = function
        self.caller = caller

    def __str__(self) -> str:
        return f"{self.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}"

    def __repr__(self) -> str:
        return f"Loc({self})"


class Value:
    """One result of a node or one input of a graph; compares by identity."""

    __slots__ = ("hint", "id", "type")

    def __init__(self, id: int, type: Type, hint: str | None = None) -> None:
        self.id = id
        self.type = type
        self.hint = hint

    @property
    def name(self) -> str:
        """The name in the text form: the user's where known, else the number."""
        return self.hint or str(self.id)

    @property
    def shape(self) -> Shape:
        """The extents of an array; a number has none."""
        return self.type.shape if isinstance(self.type, ArrayType) else ()

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


Scalar = str | Mapping[str, str] | Callable[["Node", Mapping[Value, Any], bool], str | None]
"""See `Op.scalar`."""

Rule = (
    Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
    | Callable[..., Any]
)
"""See `Op.vjp`."""


class Op:
    """What a node does; declared once, in `minigraph/ops/`; compares by identity.

    Attributes:
        name: the word in the text form.
        kind: one of the closed list `KINDS`.
        infer: `(types, attrs) -> type or tuple of types` of the results.
        numpy: its meaning on arrays, `(xp, *inputs, **attrs)`, or the name of the function of `xp`
            that is called as `(*inputs, **attrs)`.
        python: its meaning on Python numbers, where it has one.
        effect: None, or what it does to the world: "print", "write", "random", "check", "call".
        raises: whether it can fail on data: a bool, or a function of the node.
        view: whether the result shares memory with the first input.
        stores: whether it copies its first input and then stores into the copy.
        commutative: whether its two inputs may be exchanged, bit for bit.
        defaults: attrs that are left out where they have this value.
        operator: Python's spelling with `{0}`, `{1}` for the inputs, where it has one.
        scalar: how one element is computed from operands of NumPy's loop dtypes: a template, or
            templates by the kinds of the first one's dtype (`{"iu": "~{0}"}`), or a function of
            `(node, known operands, exact)` that chooses one; None: not element by element.
        records: the NumPy callables (dotted names below `numpy`) that it records, and methods of
            arrays as `ndarray.name`.
        bind: turns the arguments of a recorded call into inputs and attrs (see `ops/bind.py`).
        vjp: the derivative rule, `(derivation, *inputs) -> cotangents of the inputs` (see
            `ops/derivation.py`); None: it has none.
        sample: makes inputs for the op's own tests.
        doc: one line for people.
    """

    __slots__ = (
        "bind",
        "commutative",
        "defaults",
        "doc",
        "effect",
        "infer",
        "kind",
        "name",
        "numpy",
        "operator",
        "python",
        "raises",
        "records",
        "sample",
        "scalar",
        "stores",
        "view",
        "vjp",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        infer: Callable[[Sequence[Type], Mapping[str, Any]], Type | tuple[Type, ...]],
        numpy: Callable[..., Any] | str | None = None,
        *,
        python: Callable[..., Any] | None = None,
        effect: str | None = None,
        raises: bool | Callable[[Node], bool] = False,
        view: bool = False,
        stores: bool = False,
        commutative: bool = False,
        defaults: Mapping[str, Any] | None = None,
        operator: str | None = None,
        scalar: Scalar | None = None,
        records: Sequence[str] = (),
        bind: Callable[..., Any] | None = None,
        vjp: Rule | None = None,
        sample: Callable[[Any, Any], Any] | None = None,
        doc: str = "",
    ) -> None:
        assert kind in KINDS, kind
        self.name = name
        self.kind = kind
        self.infer = infer
        self.numpy = numpy
        self.python = python
        self.effect = effect
        self.raises = raises
        self.view = view
        self.stores = stores
        self.commutative = commutative
        self.defaults = dict(defaults or {})
        self.operator = operator
        self.scalar = scalar
        self.records = tuple(records)
        self.bind = bind
        self.vjp: Callable[..., Any] | None = vjp
        self.sample = sample
        self.doc = doc

    def __repr__(self) -> str:
        return f"Op({self.name})"


KINDS = (
    "elementwise",
    "reduce",
    "cumulate",
    "layout",
    "join",
    "index",
    "contract",
    "window",
    "create",
    "random",
    "control",
    "effect",
    "library",
)


class Node:
    """One application of an op; compares by identity.

    Attributes:
        inputs: values, in the op's order; attrs: plain data by name.
        loc: where the user wrote it.
        origin: the nodes of the stage before that it directly stands for (itself when traced).
    """

    __slots__ = ("attrs", "id", "inputs", "loc", "op", "origin", "outputs")

    def __init__(
        self,
        id: int,
        op: Op,
        inputs: Iterable[Value],
        attrs: Mapping[str, Any],
        outputs: Iterable[Value],
        loc: Loc | None = None,
        origin: Sequence[Node] = (),
    ) -> None:
        self.id = id
        self.op = op
        self.inputs = tuple(inputs)
        self.attrs = attrs
        self.outputs = tuple(outputs)
        self.loc = loc
        self.origin: tuple[Node, ...] = tuple(origin) or (self,)

    @property
    def output(self) -> Value:
        """The result of a node that has exactly one."""
        assert len(self.outputs) == 1, self
        return self.outputs[0]

    @property
    def is_effect(self) -> bool:
        """It does something to the world, or may raise: it keeps its place in the order."""
        return self.op.effect is not None or self.may_raise

    @property
    def may_raise(self) -> bool:
        """It can fail on data (not if `safe=True` says that these operands were checked)."""
        if self.attrs.get("safe"):
            return False
        raises = self.op.raises
        return raises if isinstance(raises, bool) else raises(self)

    @property
    def regions(self) -> Iterator[tuple[str, Graph]]:
        """The attrs that are graphs."""
        return ((name, attr) for name, attr in self.attrs.items() if isinstance(attr, Graph))

    def __repr__(self) -> str:
        outputs = ", ".join(f"%{value.name}" for value in self.outputs)
        inputs = ", ".join(f"%{value.name}" for value in self.inputs)
        return f"{outputs} = {self.op.name} {inputs}".removeprefix(" = ")


class Signature:
    """What a call needs besides the values.

    Attributes:
        params: (name, tree) of each parameter; the leaves are the graph's first inputs, in order.
        captures: for each further input the path by which the function reaches it.
        result: the tree of the result; its leaves are the graph's outputs, in order.
        program: a whole program (statements, no result) and not a function.
    """

    __slots__ = ("captures", "params", "program", "result")

    def __init__(
        self,
        params: Sequence[tuple[str, Tree]],
        captures: Sequence[str] = (),
        result: Tree | None = None,
        program: bool = False,
    ) -> None:
        self.params = tuple(params)
        self.captures = tuple(captures)
        self.result: Tree = Static(None) if result is None else result
        self.program = program

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Signature)
            and self.params == other.params
            and self.captures == other.captures
            and self.result == other.result
            and self.program == other.program
        )

    def __hash__(self) -> int:
        return hash((self.params, self.captures, self.result))

    @classmethod
    def flat(cls, inputs: Sequence[Value], outputs: Sequence[Value]) -> Signature:
        """The signature of a function that takes its inputs one by one.

        One output is returned as it is, several as a tuple, none as None.  A parameter is called as
        its value is, or nothing where that has a number only.
        """
        result: Tree = Static(None)
        if len(outputs) == 1:
            result = Leaf()
        elif outputs:
            result = Branch(tuple, range(len(outputs)), [Leaf()] * len(outputs))
        return cls([(value.hint or "", Leaf()) for value in inputs], (), result)


class Drawer(Protocol):
    """Draws graphs; `minigraph.viz` enters itself as `Graph.drawer`, the IR knows no more of it."""

    def dot(self, graph: Graph, **options: Any) -> str: ...
    def svg(self, graph: Graph, **options: Any) -> str: ...
    def save(self, graph: Graph, path: str | Path, **options: Any) -> str | None: ...
    def mimebundle(self, graph: Graph, include: Any, exclude: Any) -> dict[str, str]: ...


class Graph:
    """A function as nodes in order.

    Equality is structural (signature, types, ops, attrs, constant bytes) and ignores ids, hints,
    places and the graph's own name.  `str(graph)` is the text form.
    """

    __slots__ = ("_own_key", "inputs", "name", "nodes", "outputs", "signature", "written")

    drawer: ClassVar[Drawer]

    def __init__(
        self,
        name: str,
        inputs: Iterable[Value],
        nodes: Iterable[Node],
        outputs: Iterable[Value],
        signature: Signature | None = None,
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.nodes = tuple(nodes)
        self.outputs = tuple(outputs)
        self.signature = signature or Signature.flat(self.inputs, self.outputs)
        self._own_key: tuple[Any, ...] | None = None
        self.written: tuple[int, ...] | None = None  # once `regions.written_inputs` found it out

    def replace(
        self, nodes: Iterable[Node] | None = None, outputs: Iterable[Value] | None = None
    ) -> Graph:
        """The graph with other nodes or outputs."""
        return Graph(
            self.name,
            self.inputs,
            self.nodes if nodes is None else nodes,
            self.outputs if outputs is None else outputs,
            self.signature,
        )

    def values(self) -> Iterator[Value]:
        """Inputs, then each node's outputs."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outputs

    def producers(self) -> dict[Value, Node]:
        """The node that defines each value that is not an input."""
        return {value: node for node in self.nodes for value in node.outputs}

    def users(self) -> dict[Value, list[Node]]:
        """The nodes that read each value (once for each node); also of one that nothing defines."""
        found: dict[Value, list[Node]] = {value: [] for value in self.values()}
        for node in self.nodes:
            for value in dict.fromkeys(node.inputs):
                found.setdefault(value, []).append(node)
        return found

    @property
    def constants(self) -> dict[str, Any]:
        """Large constants by digest: what `parse(text, constants=...)` needs."""
        from_nodes: dict[str, Any] = {}
        for node in walk(self):
            if node.op.name == "const":
                digest = constant_digest(node.attrs["value"])
                if digest is not None:
                    from_nodes[digest] = node.attrs["value"]
        return from_nodes

    def key(self) -> tuple[Any, ...]:
        """A hashable form of the structure: equal exactly for equal graphs."""
        graphs: list[Graph] = [self]
        for graph in graphs:  # grows while it is walked
            graphs.extend(_regions(graph))
        return tuple(graph.own_key() for graph in graphs)

    def own_key(self) -> tuple[Any, ...]:
        """The key without what is inside of regions."""
        if self._own_key is None:
            number = {value: index for index, value in enumerate(self.values())}
            self._own_key = (
                self.signature,
                tuple(value.type for value in self.inputs),
                tuple(
                    (
                        node.op.name,
                        tuple(number[value] for value in node.inputs),
                        freeze(
                            {
                                name: Graph if isinstance(attr, Graph) else attr
                                for name, attr in sorted(node.attrs.items())
                            }
                        ),
                        tuple(value.type for value in node.outputs),
                    )
                    for node in self.nodes
                ),
                tuple(number[value] for value in self.outputs),
            )
        return self._own_key

    def canonical(self) -> Graph:
        """The same graph with values and nodes numbered densely and no names."""
        done: dict[int, Graph] = {}
        for graph in inner_first(self):
            done[id(graph)] = _renumbered(graph, done)
        return done[id(self)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return False
        pending: list[tuple[Graph, Graph]] = [(self, other)]
        seen: set[tuple[int, int]] = set()
        while pending:
            a, b = pending.pop()
            if a is b or (id(a), id(b)) in seen:
                continue
            if a.own_key() != b.own_key():
                return False
            seen.add((id(a), id(b)))
            pending.extend(zip(_regions(a), _regions(b), strict=True))
        return True

    def __hash__(self) -> int:
        return hash((self.own_key(), *(region.own_key() for region in _regions(self))))

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.inputs)} inputs, {len(self.nodes)} nodes>"

    def __str__(self) -> str:
        return print_graph(self)

    def dot(self, **options: Any) -> str:
        """The drawing as DOT text; the options are those of `minigraph.viz.Options`."""
        return Graph.drawer.dot(self, **options)

    def svg(self, **options: Any) -> str:
        """The drawing as a standalone SVG; the options are those of `minigraph.viz.Options`.

        Raises:
            DrawingError: there is no layout engine, or none that can draw the graph.
        """
        return Graph.drawer.svg(self, **options)

    def save(self, path: str | Path, **options: Any) -> str | None:
        """Write the drawing (`.svg`, `.png`, `.pdf`, `.dot`) or the text form (`.txt`).

        Returns:
            What a drawing leaves out, or None.

        Raises:
            OptionError: another extension.
            DrawingError: there is no layout engine, or none that can draw the graph.
        """
        return Graph.drawer.save(self, path, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return Graph.drawer.mimebundle(self, include, exclude)


def walk(graph: Graph) -> Iterator[Node]:
    """Every node, those of regions after the node that holds them."""
    pending = [iter(graph.nodes)]
    while pending:
        node = next(pending[-1], None)
        if node is None:
            pending.pop()
            continue
        yield node
        pending.extend(reversed([iter(region.nodes) for _, region in node.regions]))


def _regions(graph: Graph) -> list[Graph]:
    """The regions that the graph's own nodes hold, by node and attr name."""
    return [region for node in graph.nodes for _, region in sorted(node.regions, key=_first)]


def _first(pair: tuple[str, Graph]) -> str:
    return pair[0]


def inner_first(graph: Graph) -> list[Graph]:
    """The graph and all regions within it, each once and before the graph that holds it."""
    found: dict[int, Graph] = {}
    pending = [(graph, iter(_regions(graph)))]
    while pending:
        holder, regions = pending[-1]
        region = next(regions, None)
        if region is None:
            found[id(holder)] = holder
            pending.pop()
        elif id(region) not in found:
            pending.append((region, iter(_regions(region))))
    return list(found.values())


def _renumbered(graph: Graph, regions: Mapping[int, Graph]) -> Graph:
    fresh = {value: Value(index, value.type) for index, value in enumerate(graph.values())}
    nodes = [
        Node(
            index,
            node.op,
            [fresh[value] for value in node.inputs],
            {
                name: regions[id(attr)] if isinstance(attr, Graph) else attr
                for name, attr in node.attrs.items()
            },
            [fresh[value] for value in node.outputs],
            node.loc,
            (node,),
        )
        for index, node in enumerate(graph.nodes)
    ]
    inputs, outputs = ([fresh[value] for value in ends] for ends in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, nodes, outputs, graph.signature)


class Ids:
    """Numbers and names that are never given twice within one compilation."""

    __slots__ = ("_names", "_next")

    def __init__(self, start: int = 0, names: Iterable[str] = ()) -> None:
        self._next = start
        self._names: dict[str, int] = dict.fromkeys(names, 0)

    @classmethod
    def after(cls, graph: Graph) -> Ids:
        """Ids that collide with nothing in `graph`."""
        highest, names = -1, list[str]()
        for value in graph.values():
            highest = max(highest, value.id)
            names.append(value.name)
        for node in walk(graph):
            highest = max(highest, node.id)
            for value in node.outputs:
                highest = max(highest, value.id)
                names.append(value.name)
            for _, region in node.regions:
                highest = max([highest, *(value.id for value in region.inputs)])
                names.extend(value.name for value in region.inputs)
        return cls(highest + 1, names)

    def next(self) -> int:
        self._next += 1
        return self._next - 1

    def value(self, type: Type, hint: str | None = None) -> Value:
        """A new value; a second `hint` "y" becomes "y.1"."""
        return Value(self.next(), type, hint and self.name(hint))

    def name(self, hint: str) -> str:
        """`hint`, or `hint.N` if it was given before."""
        base = hint.split(".", 1)[0]
        if base not in self._names:
            self._names[base] = 0
            return base
        while True:
            self._names[base] += 1
            name = f"{base}.{self._names[base]}"
            if name not in self._names:
                self._names[name] = 0
                return name
