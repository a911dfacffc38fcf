"""Nodes with regions: `kernel`, `call`, `if`, `while`, `scan`; and `barrier`, which keeps order.

A `kernel` is a group of nodes that a backend may run as one loop:

    %y = kernel %x {form='map', body=graph body(%x: f64[3]) {
      %a = exp %x                  : f64[3]
      %y = negative %a             : f64[3]
      return %y
    }} : f64[3]

means what its body means.  `form` names the loops that compute it:

    map        each element of the results by itself
    rows       reductions over the last axes of the loops, and what is computed before and after
    columns    the same over axes that others follow; of both the backend orders the loops as the
               elements lie in memory
    epilogue   a product of matrices, and then each of its elements by itself

A backend that fuses writes each result into a buffer of its own, in C order.

A `call` means what its body means, too; it is a group of nodes that are differentiated together:

    %y, %s = call %x {body=graph body(...) {...}, backward=graph ..., results=1, wanted=(0,)}

    results    how many of the body's outputs the caller asked for (default: all); the others are
               there for the backward graph
    backward   (inputs of the body, its outputs, cotangents of the float results) -> the gradients
               of the inputs that `wanted` names; what it does not need it leaves unread
    wanted     positions among the inputs; the others count as constants
    outside    positions of those by which no gradient may be asked for

Without `backward` nothing is kept for it but the inputs: what it needs is computed again.

An `if` is one of two graphs of its operands; both return the same types:

    %y = if %positive, %x {then=graph then(%x: f64[3]) {...}, otherwise=graph otherwise(...) {...}}

A `while` applies `body` to the carried values as long as `test` holds of them.  The first inputs
are the carried values, as many as `body` returns; the others are the same at each turn.  `limit`
(default: none) is the most turns:

    %n, %count = while %n.1, %zero, %three {
        test=graph test(%n: int, %count: int, %three: int) {... return %more},
        body=graph body(%n: int, %count: int, %three: int) {... return (%n.2, %count.1)}}

A `scan` applies `body` `length` times, to the `carried` values, to one element along the first axis
of each of the `scanned` arrays (the last one first, if `reverse`), and to what is the same at each
turn.  What the body returns besides the carried values is stacked along a new first axis, where
the element was taken from:

    %h, %hs = scan %h0, %xs, %w {carried=1, scanned=1, length=64,
        body=graph body(%h: f32[8], %x: f32[8], %w: f32[8,8]) {... return (%h.1, %y)}}
        : f32[8], f32[64,8]

A `parallel` is several graphs of the same operands which may run at the same time; it returns what
the first one returns, then what the second one returns, and so on:

    %y, %z = parallel %a, %b {part0=graph part(...) {...}, part1=graph part(...) {...}}

A result of an `if` or a loop lies in memory of its own, and so does what a loop carries: what a
region returns of its operands is copied.

A `barrier` is its first operand, and waits for the others.  Nothing is merged across it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import DtypeError, ShapeError
from minigraph.ir import BOOL, ArrayType, Graph, Op, Size, Type, Value, decide_equal, parse_graph

from .derivation import Derivation, Term, cotangent_type
from .evaluate import Sizes, evaluate, substitute
from .registry import OPS, declare
from .rules import NO_ATTRS, array_type
from .samples import Sample, array, special

FORMS = ("map", "rows", "columns", "epilogue")


def _infer_kernel(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    if attrs["form"] not in FORMS:
        raise DtypeError(f"{attrs['form']!r} is no form of a kernel", instead=", ".join(FORMS))
    return _infer_body(types, attrs["body"])


def _infer_body(types: Sequence[Type], body: Graph) -> tuple[Type, ...]:
    _check_operands(types, body.inputs, "body")
    return tuple(value.type for value in body.outputs)


def _check_operands(types: Sequence[Type], inputs: Sequence[Value], what: str) -> None:
    if len(types) != len(inputs):
        raise ShapeError(f"the {what} has {len(inputs)} inputs, not {len(types)}")
    for type_, value in zip(types, inputs, strict=True):
        _check_operand(type_, value.type)


def _check_operand(found: Type, wanted: Type) -> None:
    if not isinstance(found, ArrayType) or not isinstance(wanted, ArrayType):
        same = found == wanted
    else:
        same = (
            found.dtype == wanted.dtype
            and found.ndim == wanted.ndim
            and all(map(decide_equal, found.shape, wanted.shape))
        )
    if not same:
        raise ShapeError(f"the body needs a {wanted}, not a {found}")


def _run_body(xp: Any, *inputs: Any, body: Graph, sizes: Sizes = NO_ATTRS, **_: Any) -> Any:
    return _one_or_more(evaluate(body, inputs, xp, sizes=sizes))


def _own(xp: Any, results: Sequence[Any], others: Sequence[Any], region: Graph) -> list[Any]:
    """The results, each in memory of its own, side by side: what is not is copied.

    Others are what it is given, the constants of the region, and the results before.
    """
    seen = [*others, *(node.attrs["value"] for node in region.nodes if node.op.name == "const")]
    seen = [x for x in seen if isinstance(x, xp.ndarray)]
    owned: list[Any] = []
    for result in results:
        if np.ndim(result) and isinstance(result, xp.ndarray):
            if not _is_dense(result) or any(xp.may_share_memory(x, result) for x in seen):
                result = result.copy(order="K")
            seen.append(result)
        owned.append(result)
    return owned


def _is_dense(x: Any) -> bool:
    """Its elements lie side by side, in whatever order of the axes, and none of these backward."""
    passed = x.itemsize
    steps = zip(x.strides, x.shape, strict=True)
    for step, size in sorted((step, size) for step, size in steps if size != 1):
        if step != passed:
            return not x.size
        passed *= size
    return True


def _one_or_more(results: Sequence[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


# ---- if, while, scan


def _check_condition(kind: Type, what: str) -> None:
    if kind != BOOL and not (isinstance(kind, ArrayType) and kind.dtype == bool and not kind.ndim):
        raise DtypeError(f"{what} is one bool, not a {kind}", instead="x.any(), x.all() or x != 0")


def _infer_if(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    then: Graph = attrs["then"]
    otherwise: Graph = attrs["otherwise"]
    _check_condition(types[0], "the condition")
    _check_operands(types[1:], then.inputs, "then graph")
    _check_operands(types[1:], otherwise.inputs, "otherwise graph")
    _check_operands([value.type for value in otherwise.outputs], then.outputs, "then graph")
    return tuple(value.type for value in then.outputs)


def _run_if(
    xp: Any,
    condition: Any,
    *operands: Any,
    then: Graph,
    otherwise: Graph,
    sizes: Sizes = NO_ATTRS,
) -> Any:
    chosen = then if condition else otherwise
    results = evaluate(chosen, operands, xp, sizes=sizes)
    return _one_or_more(_own(xp, results, operands, chosen))


def _infer_while(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    test: Graph = attrs["test"]
    body: Graph = attrs["body"]
    carried = [value.type for value in body.outputs]
    _check_operands(types, test.inputs, "test graph")
    _check_operands(types, body.inputs, "body")
    _check_operands(carried, body.inputs[: len(carried)], "body")
    if len(test.outputs) != 1:
        raise ShapeError(f"the test graph has {len(test.outputs)} outputs, not 1")
    _check_condition(test.outputs[0].type, "what the test returns")
    return tuple(value.type for value in body.inputs[: len(carried)])


def _run_while(
    xp: Any,
    *inputs: Any,
    test: Graph,
    body: Graph,
    limit: int | None = None,
    sizes: Sizes = NO_ATTRS,
) -> Any:
    count = len(body.outputs)
    carried, same = _own(xp, inputs[:count], inputs, body), inputs[count:]
    turns = 0
    while limit is None or turns < limit:
        if not evaluate(test, [*carried, *same], xp, sizes=sizes)[0]:
            break
        results = evaluate(body, [*carried, *same], xp, sizes=sizes)
        carried = _own(xp, results, same, body)
        turns += 1
    return _one_or_more(carried)


def _infer_scan(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    body: Graph = attrs["body"]
    carried: int = attrs["carried"]
    scanned: int = attrs["scanned"]
    length: Size = attrs["length"]
    if not 0 <= carried <= len(body.outputs) or carried + scanned > len(types):
        raise ShapeError(
            f"{carried} carried and {scanned} scanned of {len(types)} inputs, "
            f"and a body with {len(body.outputs)} outputs"
        )
    given = list(types)
    for at in range(carried, carried + scanned):
        x = array_type(types[at], "what is scanned")
        if not x.ndim or not decide_equal(x.shape[0], length):
            raise ShapeError(f"{length} elements are scanned, and {x} has others")
        given[at] = ArrayType(x.dtype, x.shape[1:])
    _check_operands(given, body.inputs, "body")
    found = [value.type for value in body.outputs]
    _check_operands(found[:carried], body.inputs[:carried], "body")
    stacked = [array_type(kind, "what is stacked") for kind in found[carried:]]
    return (
        *(value.type for value in body.inputs[:carried]),
        *(ArrayType(kind.dtype, (length, *kind.shape)) for kind in stacked),
    )


def _run_scan(
    xp: Any,
    *inputs: Any,
    body: Graph,
    carried: int,
    scanned: int,
    length: Size,
    reverse: bool = False,
    sizes: Sizes = NO_ATTRS,
) -> Any:
    count = substitute(length, sizes)
    state = _own(xp, inputs[:carried], inputs, body)
    rows = [xp.asarray(x) for x in inputs[carried : carried + scanned]]
    same = inputs[carried + scanned :]
    stacked: list[Any] = []
    for value in body.outputs[carried:]:
        kind = array_type(value.type)
        stacked.append(xp.empty((count, *substitute(kind.shape, sizes)), kind.dtype))
    for at in reversed(range(count)) if reverse else range(count):
        given = [*(x[at] for x in rows), *same]
        results = evaluate(body, [*state, *given], xp, sizes=sizes)
        state = _own(xp, results[:carried], given, body)
        for array_, result in zip(stacked, results[carried:], strict=True):
            array_[at] = result
    return _one_or_more([*state, *stacked])


def _infer_call(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    body: Graph = attrs["body"]
    found = _infer_body(types, body)
    results: int = attrs.get("results", len(found))
    if not 0 <= results <= len(found):
        raise ShapeError(f"the body has {len(found)} outputs, and results={results}")
    backward: Graph | None = attrs.get("backward")
    if backward is not None:
        cotangents = [g for t in found[:results] if (g := cotangent_type(t)) is not None]
        _check_operands([*types, *found, *cotangents], backward.inputs, "backward graph")
        wanted: Sequence[int] = attrs["wanted"]
        if len(backward.outputs) != len(wanted):
            raise ShapeError(f"{len(backward.outputs)} gradients for {len(wanted)} inputs")
    return found


# ---- parallel


def _infer_parallel(types: Sequence[Type], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    found: list[Type] = []
    for part in attrs.values():
        found += _infer_body(types, part)
    return tuple(found)


def _run_parallel(xp: Any, *inputs: Any, sizes: Sizes = NO_ATTRS, **parts: Graph) -> Any:
    results = [evaluate(part, inputs, xp, sizes=sizes) for part in parts.values()]
    return _one_or_more([result for part in results for result in part])


def _first_type(types: Sequence[Type], attrs: Mapping[str, Any]) -> Type:
    return types[0]


def _first(xp: Any, x: Any, *others: Any) -> Any:
    return x


def _derive_barrier(d: Derivation, *inputs: Term) -> tuple[Term | None, ...]:
    return (d.g, *[None] * (len(inputs) - 1))


def _sample_call(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 2, 3)
    rows = ArrayType(dtype, (2, 3))
    body = f"""graph body(%x: {rows}) {{
      %a = maximum %x, %x : {rows}
      %b = minimum %a, %x : {rows}
      return (%b, %a)
    }}"""
    return [([x], {"body": parse_graph(body, OPS), "results": 1})]


def _sample_parallel(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x, y = special(rng, dtype, 2, 3), array(rng, dtype, 3)
    rows, row = ArrayType(dtype, (2, 3)), ArrayType(dtype, (3,))
    parts = {
        f"part{at}": parse_graph(
            f"graph part(%x: {rows}, %y: {row}) {{ %z = {op} %x, %y : {rows}\n return %z }}", OPS
        )
        for at, op in enumerate(("maximum", "minimum"))
    }
    return [([x, y], parts)]


def _sample_barrier(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x = special(rng, dtype, 2, 3)
    return [([x], {}), ([x, array(rng, dtype, 3)], {})]


def _sample_if(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x, y = special(rng, dtype, 2, 3), array(rng, dtype, 3)
    rows, row = ArrayType(dtype, (2, 3)), ArrayType(dtype, (3,))
    head = f"(%x: {rows}, %y: {row})"
    regions = {
        "then": parse_graph(
            f"graph then{head} {{ %z = maximum %x, %y : {rows}\n return (%z, %y) }}", OPS
        ),
        "otherwise": parse_graph(f"graph otherwise{head} {{ return (%x, %y) }}", OPS),
    }
    return [([True, x, y], regions), ([np.bool_(False), x, y], regions)]


def _sample_while(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x, y = special(rng, dtype, 3), array(rng, dtype, 3)
    kind = ArrayType(dtype, (3,))
    head = f"(%n: int, %x: {kind}, %y: {kind})"
    test = f"""graph test{head} {{
      %three = const 3         : int
      %more = less %n, %three  : bool
      return %more
    }}"""
    body = f"""graph body{head} {{
      %one = const 1              : int
      %m = add %n, %one           : int
      %z = maximum %y, %x         : {kind}
      return (%m, %z)
    }}"""
    regions = {"test": parse_graph(test, OPS), "body": parse_graph(body, OPS)}
    return [
        ([0, x, y], regions),
        ([3, x, y], regions),
        ([-5, x, y], {**regions, "limit": 2}),
    ]


def _sample_scan(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    h, xs, w = special(rng, dtype, 3), special(rng, dtype, 4, 3), array(rng, dtype, 3)
    row = ArrayType(dtype, (3,))
    body = f"""graph body(%h: {row}, %x: {row}, %w: {row}) {{
      %a = maximum %h, %x : {row}
      %b = minimum %a, %w : {row}
      return (%a, %b)
    }}"""
    attrs = {"body": parse_graph(body, OPS), "carried": 1, "scanned": 1, "length": 4}
    return [
        ([h, xs, w], attrs),
        ([h, xs, w], {**attrs, "reverse": True}),
        ([h, xs[:0], w], {**attrs, "length": 0}),
    ]


def _sample_kernel(rng: np.random.Generator, dtype: np.dtype[Any]) -> list[Sample]:
    x, bias = special(rng, dtype, 2, 3), array(rng, dtype, 3)
    rows, row = ArrayType(dtype, (2, 3)), ArrayType(dtype, (3,))
    moved = f"""graph body(%x: {rows}, %y: {row}) {{
      %a = maximum %x, %y : {rows}
      %b = minimum %a, %y : {rows}
      return (%a, %b)
    }}"""
    reduced = f"""graph body(%x: {rows}) {{
      %m = max %x {{axis=(1,), keepdims=True}} : {ArrayType(dtype, (2, 1))}
      %y = maximum %x, %m : {rows}
      return %y
    }}"""
    return [
        ([x, bias], {"form": "map", "body": parse_graph(moved, OPS)}),
        ([x], {"form": "rows", "body": parse_graph(reduced, OPS)}),
    ]


declare(
    Op(
        "kernel",
        "control",
        _infer_kernel,
        _run_body,
        sample=_sample_kernel,
        doc="nodes that run as one loop",
    )
)
declare(
    Op(
        "call",
        "control",
        _infer_call,
        _run_body,
        sample=_sample_call,
        doc="nodes that are differentiated together",
    )
)
declare(
    Op(
        "if",
        "control",
        _infer_if,
        _run_if,
        sample=_sample_if,
        doc="one of two graphs of the same operands",
    )
)
declare(
    Op(
        "while",
        "control",
        _infer_while,
        _run_while,
        defaults={"limit": None},
        sample=_sample_while,
        doc="a graph applied again and again while another one holds",
    )
)
declare(
    Op(
        "scan",
        "control",
        _infer_scan,
        _run_scan,
        defaults={"reverse": False},
        sample=_sample_scan,
        doc="a graph applied to each element of arrays, in order",
    )
)
declare(
    Op(
        "parallel",
        "control",
        _infer_parallel,
        _run_parallel,
        sample=_sample_parallel,
        doc="graphs that may run at the same time",
    )
)
declare(
    Op(
        "barrier",
        "layout",
        _first_type,
        _first,
        view=True,
        vjp=_derive_barrier,
        sample=_sample_barrier,
        doc="its first operand, once the others are there",
    )
)
