"""Ops for which Python has brackets, statements or methods, and no function call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from minigraph.ir import OPERAND, ArrayType, Dim, Node, ScalarType, Value
from minigraph.ops import CONVERSIONS, add_rows, leaves_of, returned

from .spelling import index_code
from .writer import Writer, call_text, word


def _subscript(writer: Writer, node: Node) -> None:
    """`x[1:3]`, `x[i, :]`: both the slice, which is a view, and the gather, which is none."""
    base, *arrays = (writer.text[value] for value in node.inputs)
    if isinstance(node.inputs[0].type, ScalarType):
        base = f"{writer.module('np')}.asarray({base})"
    inside = index_code(node.attrs["index"], iter(arrays), writer.sizes, writer.bind)
    single = node.op.name == "gather" and not any(value.shape for value in node.inputs[1:])
    copied = '.copy("K")' if single and node.outputs[0].shape else ""
    writer.assign(node, f"{base}[{inside}]{copied}")


def _base_to_change(writer: Writer, node: Node) -> None:
    """The first line of an update: a copy of the base; none where the base dies here."""
    base, value = node.inputs[0], node.output
    text = writer.text[base]
    if value not in writer.takeovers:
        writer.assign(node, f"{writer.module('np')}.array({text})")
    elif not writer.renames(base, value):
        writer.assign(node, text)


def _update(writer: Writer, node: Node) -> None:
    new, *arrays = (writer.text[value] for value in node.inputs[1:])
    inside = index_code(node.attrs["index"], iter(arrays), writer.sizes, writer.bind)
    _base_to_change(writer, node)
    writer.line(f"{writer.text[node.outputs[0]]}[{inside}] = {new}", node)


def _scatter_add(writer: Writer, node: Node) -> None:
    new, *arrays = (writer.text[value] for value in node.inputs[1:])
    operands = iter(arrays)
    items = [
        next(operands) if item is OPERAND else writer.attr(item) for item in node.attrs["index"]
    ]
    places = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    _base_to_change(writer, node)
    target = writer.text[node.outputs[0]]
    if node.attrs["index"] == [OPERAND]:
        writer.line(f"{writer.helper(node.op, add_rows)}({target}, {arrays[0]}, {new})", node)
    else:
        writer.line(f"{writer.module('np')}.add.at({target}, {places}, {new})", node)


def _cast(writer: Writer, node: Node) -> None:
    text, dtype = writer.text[node.inputs[0]], writer.dtype(node.attrs["dtype"])
    number = isinstance(node.inputs[0].type, ScalarType)
    writer.assign(node, f"{dtype}({text})" if number else f"{text}.astype({dtype})")


def _new_array(writer: Writer, node: Node) -> None:
    texts, keywords = writer.arguments(node)
    if "dtype" in keywords:
        keywords["dtype"] = writer.dtype(node.attrs["dtype"])
    writer.assign(node, f"{writer.module('np')}.array({call_text(texts, keywords)})")


def _draw(writer: Writer, node: Node) -> None:
    """`rng.normal(0.0, 1.0, size=(3,))`; a shuffle is of a copy."""
    texts, keywords = writer.arguments(node)
    if "dtype" in keywords:
        keywords["dtype"] = writer.dtype(node.attrs["dtype"])
    generator, *operands = texts
    method = word(node.attrs["method"])
    del keywords["method"]
    if "n" in keywords:
        operands = [keywords.pop("n")]
    if method == "shuffle":
        writer.assign(node, f"{writer.module('np')}.array({operands[0]})")
        operands = [writer.text[node.outputs[0]]]
        writer.line(f"{generator}.shuffle({call_text(operands, keywords)})", node)
    else:
        writer.assign(node, f"{generator}.{method}({call_text(operands, keywords)})")


def _words(writer: Writer, parts: Iterable[Any], inputs: Iterable[Value]) -> list[str]:
    """The words of a print or the arguments of an error; texts with values are f-strings."""
    values = iter(inputs)
    return [
        writer.text[next(values)]
        if part is OPERAND
        else repr(part)
        if isinstance(part, str)
        else _f_string(writer, part, values)
        for part in parts
    ]


def _f_string(writer: Writer, pieces: Iterable[Any], values: Iterator[Value]) -> str:
    terms: list[str] = []
    body = ""  # of the f-string that is being written
    for piece in pieces:
        if isinstance(piece, str):
            body += piece.replace("{", "{{").replace("}", "}}")
            continue
        _, conversion, spec = piece
        value = next(values)
        text = writer.text[value]
        if isinstance(value.type, ArrayType) and not value.type.ndim:
            if conversion == "array":
                text, conversion = f"{writer.module('np')}.asarray({text})", "r"
            elif conversion in ("r", "a"):
                text = f"{text}[()]"  # the scalar that an array without axes holds
        if conversion.startswith("%"):
            terms += [f"f{body!r}"] if body else []
            terms.append(f"{conversion!r} % ({text},)")
            body = ""
        elif any(mark in text for mark in "'\"\\{"):  # which the braces cannot hold
            terms += [f"f{body!r}"] if body else []
            shown = f"{CONVERSIONS[conversion].__name__}({text})" if conversion else text
            terms.append(f"format({shown}, {spec!r})")
            body = ""
        else:
            body += f"{{{text}{conversion and '!' + conversion}{spec and ':' + spec}}}"
    if body or not terms:
        terms.append(f"f{body!r}")
    return " + ".join(terms)


def always_raises(writer: Writer, node: Node) -> bool:
    """It is a check of what never holds."""
    return node.op.name == "check" and writer.text[node.inputs[0]] == "False"


def _check(writer: Writer, node: Node) -> None:
    attrs = {**node.op.defaults, **node.attrs}
    error, message = word(attrs["error"]), attrs["message"]
    parts = () if message is None else (message,) if isinstance(message, str) else message
    statement = f"raise {error}({', '.join(_words(writer, parts, node.inputs[1:]))})"
    if always_raises(writer, node):
        writer.line(statement, node)
    else:
        writer.line(f"if not {writer.text[node.inputs[0]]}:", node)
        writer.line(f"    {statement}", node)


def _print(writer: Writer, node: Node) -> None:
    words = _words(writer, node.attrs["parts"], node.inputs)
    for name, default in node.op.defaults.items():
        attr = node.attrs.get(name, default)
        if attr != default:
            is_file = name == "file"
            text = f"{writer.module('sys')}.{word(attr)}" if is_file else repr(attr)
            words.append(f"{name}={text}")
    writer.assign(node, f"print({', '.join(words)})")


def _write(writer: Writer, node: Node) -> None:
    target, new = node.inputs
    if writer.takeovers.get(new) is not target:  # else it was computed there
        writer.assign(node, f"{writer.text[target]}[...] = {writer.text[new]}")


def _kernel(writer: Writer, node: Node) -> None:
    """A call of the evaluator: this backend fuses nothing itself, and inlines what it is given."""
    meaning: Any = node.op.numpy
    run = partial(meaning, np, **node.attrs)
    arguments = ", ".join(writer.text[value] for value in node.inputs)
    writer.assign(node, f"{writer.bind(run, node.op.name)}({arguments})")


def _python_call(writer: Writer, node: Node) -> None:
    """`total = returned(smooth(x, 3))`, where `returned` compares it with what was said."""
    function, *operands = (writer.text[value] for value in node.inputs)
    values = iter(operands)
    texts = [_structure(writer, arg, values) for arg in node.attrs["args"]]
    names = node.attrs.get("names", ())
    split = len(texts) - len(names)
    keywords = dict(zip(map(word, names), texts[split:], strict=True))
    returns = node.attrs["returns"]
    check = writer.bind(partial(returned, node.inputs[0].name, returns), "returned")
    sizes = {
        name: writer.sizes[name]
        for kind in leaves_of(returns)
        for size in (kind.shape if isinstance(kind, ArrayType) else ())
        if isinstance(size, Dim)
        for name in sorted(size.names())
    }
    given = ", ".join(f"{name!r}: {text}" for name, text in sizes.items())
    call = f"{function}({call_text(texts[:split], keywords)})"
    writer.assign(node, f"{check}({call}{f', {{{given}}}' if given else ''})")


def _structure(writer: Writer, part: Any, values: Iterator[str]) -> str:
    """An argument of a call of a Python function (see `ops/python_calls.py`)."""
    if part is OPERAND:
        return next(values)
    if not isinstance(part, tuple):
        return writer.attr(part)
    kind, *children = part
    if kind == "dict":
        pairs = zip(children[::2], children[1::2], strict=True)
        inside = (f"{writer.attr(k)}: {_structure(writer, each, values)}" for k, each in pairs)
        return "{" + ", ".join(inside) + "}"
    texts = [_structure(writer, child, values) for child in children]
    if kind == "list":
        return f"[{', '.join(texts)}]"
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _barrier(writer: Writer, node: Node) -> None:
    writer.assign(node, writer.text[node.inputs[0]])


FORMS: dict[str, Callable[[Writer, Node], None]] = {
    "slice": _subscript,
    "gather": _subscript,
    "update": _update,
    "scatter_add": _scatter_add,
    "cast": _cast,
    "copy": _new_array,
    "draw": _draw,
    "check": _check,
    "print": _print,
    "write": _write,
    "python_call": _python_call,
    "kernel": _kernel,
    "barrier": _barrier,
}
"""By the name of the op."""
