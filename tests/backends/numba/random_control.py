"""Random graphs with branches and loops within each other, for comparison with the interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable

TYPES = ("int", "float", "bool", "f64[]", "i32[]", "f64[4]", "f32[3,4]", "i64[4]")
NUMBERS = {"int": ("0", "1", "3", "-2", "7"), "float": ("0.5", "-1.25", "2.0"), "bool": ("True",)}


class Writer:
    """Writes one graph; names are never used twice."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def pick(self, names: dict[str, str], kind: str) -> str | None:
        found = [name for name, type_ in names.items() if type_ == kind]
        return self.random.choice(found) if found else None

    def graph(self) -> str:
        """The text of a graph with an input of each type, and results of several."""
        names = {self.name(): kind for kind in TYPES}
        head = ", ".join(f"{name}: {kind}" for name, kind in names.items())
        lines, outputs = self.body(names, self.random.choices(TYPES, k=4), 0)
        returned = ", ".join(outputs)
        return f"graph f({head}) {{\n" + "\n".join(lines) + f"\n  return ({returned})\n}}"

    def body(
        self, names: dict[str, str], wanted: list[str], depth: int
    ) -> tuple[list[str], list[str]]:
        """Lines, and the names of values of the wanted types."""
        names = dict(names)
        lines: list[str] = []
        choices: list[Callable[..., None]] = [self.number, self.number, self.array, self.array]
        choices += [self.element, self.store, self.row]
        if depth < 3:
            choices += [self.branch, self.loop, self.scan]
        for _ in range(self.random.randint(2, 6 - depth)):
            self.random.choice(choices)(names, lines, depth)
        outputs = []
        for kind in wanted:
            recent = [name for name, type_ in names.items() if type_ == kind]
            outputs.append(self.random.choice(recent[-2:]) if recent else self.made(kind, lines))
        return lines, outputs

    def made(self, kind: str, lines: list[str]) -> str:
        name = self.name()
        if kind in NUMBERS:
            lines.append(f"  {name} = const {self.random.choice(NUMBERS[kind])} : {kind}")
        else:
            dtype, shape = kind.removesuffix("]").split("[")
            sizes = f"({shape},)" if shape and "," not in shape else f"({shape})"
            lines.append(
                f"  {name} = ones {{shape={sizes}, dtype={dtype}}} : {kind}".replace(
                    "dtype=f64", "dtype=f64"
                )
            )
        return name

    def number(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        kind = self.random.choice(("int", "float", "f64[]", "i32[]"))
        a, b = self.pick(names, kind), self.pick(names, kind)
        if a is None or b is None:
            a = b = self.made(kind, lines)
        name = self.name()
        if self.random.random() < 0.2 and kind in ("int", "float"):
            op = self.random.choice(("less", "equal", "greater_equal"))
            lines.append(f"  {name} = {op} {a}, {b} : bool")
            names[name] = "bool"
            return
        ops = ["add", "subtract", "multiply"]
        if kind == "int":
            ops += ["floor_divide", "remainder", "bitwise_and"]
        if kind == "float":
            ops += ["divide"]
        if kind.endswith("]"):
            ops += ["maximum", "minimum"]
        lines.append(f"  {name} = {self.random.choice(ops)} {a}, {b} : {kind}")
        names[name] = kind

    def array(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        kind = self.random.choice(("f64[4]", "i64[4]", "f32[3,4]"))
        a, b = self.pick(names, kind), self.pick(names, kind)
        if a is None or b is None:
            return
        name = self.name()
        choice = self.random.random()
        if choice < 0.2 and kind == "f64[4]":
            lines.append(f"  {name} = sum {a} {{axis=(0,)}} : f64[]")
            names[name] = "f64[]"
        elif choice < 0.4 and kind == "f64[4]" and self.pick(names, "f64[]"):
            lines.append(f"  {name} = multiply {a}, {self.pick(names, 'f64[]')} : {kind}")
            names[name] = kind
        else:
            op = self.random.choice(("add", "subtract", "multiply", "maximum", "minimum"))
            lines.append(f"  {name} = {op} {a}, {b} : {kind}")
            names[name] = kind

    def element(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        x, i = self.pick(names, "f64[4]"), self.pick(names, "int")
        if x is None or i is None:
            return
        name = self.name()
        if self.random.random() < 0.4:
            at = self.random.randint(-4, 3)
            lines.append(f"  {name} = slice {x} {{index=[{at}]}} : f64[]")
        else:
            small = self.small(i, lines)
            lines.append(f"  {name} = gather {x}, {small} {{index=[%]}} : f64[]")
        names[name] = "f64[]"

    def small(self, i: str, lines: list[str]) -> str:
        """An int that is, mostly, a position."""
        if self.random.random() < 0.1:
            return i
        four, small = self.name(), self.name()
        lines.append(f"  {four} = const 3 : int")
        lines.append(f"  {small} = remainder {i}, {four} : int")
        return small

    def store(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        kind = self.random.choice(("f64[4]", "i64[4]", "f32[3,4]"))
        x, i = self.pick(names, kind), self.pick(names, "int")
        if x is None or i is None:
            return
        name = self.name()
        small = self.small(i, lines)
        values = {"f64[4]": ("float", "f64[]"), "i64[4]": ("int",), "f32[3,4]": ("f64[4]", "float")}
        value = self.pick(names, self.random.choice(values[kind]))
        if value is None:
            return
        lines.append(f"  {name} = update {x}, {value}, {small} {{index=[%]}} : {kind}")
        names[name] = kind

    def row(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        x, i = self.pick(names, "f32[3,4]"), self.pick(names, "int")
        if x is None or i is None:
            return
        small, row, name = self.small(i, lines), self.name(), self.name()
        lines.append(f"  {row} = gather {x}, {small} {{index=[%]}} : f32[4]")
        lines.append(f"  {name} = cast {row} {{dtype=f64}} : f64[4]")
        names[name] = "f64[4]"

    # ---- regions

    def region(
        self, label: str, operands: list[str], names: dict[str, str], wanted: list[str], depth: int
    ) -> str:
        inner = {self.name(): names[value] for value in operands}
        head = ", ".join(f"{name}: {kind}" for name, kind in inner.items())
        lines, outputs = self.body(inner, wanted, depth + 1)
        returned = f"({', '.join(outputs)}{',' if len(outputs) == 1 else ''})"
        if len(outputs) == 1:
            returned = outputs[0]
        return f"graph {label}({head}) {{\n" + "\n".join(lines) + f"\n return {returned} }}"

    def several(self, names: dict[str, str], least: int, most: int) -> list[str]:
        chosen = self.random.sample(list(names), min(len(names), self.random.randint(least, most)))
        return chosen

    def branch(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        condition = self.pick(names, "bool")
        if condition is None:
            return
        operands = self.several(names, 2, 6)
        wanted = [names[v] for v in operands[: self.random.randint(1, 3)]]
        then = self.region("then", operands, names, wanted, depth)
        otherwise = self.region("otherwise", operands, names, wanted, depth)
        self.finish(
            f"if {', '.join([condition, *operands])}",
            wanted,
            names,
            lines,
            f"then={then}, otherwise={otherwise}",
        )

    def finish(
        self, head: str, wanted: list[str], names: dict[str, str], lines: list[str], attrs: str
    ) -> None:
        made = [self.name() for _ in wanted]
        lines.append(f"  {', '.join(made)} = {head} {{{attrs}}} : {', '.join(wanted)}")
        names.update(zip(made, wanted, strict=True))

    def loop(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        operands = self.several(names, 2, 6)
        count = self.random.randint(1, 3)
        carried = operands[:count]
        start = self.made("int", lines)
        kinds = ["int", *(names[v] for v in operands)]
        inner = [self.name() for _ in kinds]
        head = ", ".join(f"{n}: {k}" for n, k in zip(inner, kinds, strict=True))
        limit, test = self.name(), self.name()
        turns = self.random.randint(0, 4)
        tested = (
            f"graph test({head}) {{\n  {limit} = const {turns} : int\n"
            f"  {test} = less {inner[0]}, {limit} : bool\n  return {test} }}"
        )
        inner = [self.name() for _ in kinds]
        head = ", ".join(f"{n}: {k}" for n, k in zip(inner, kinds, strict=True))
        wanted = [names[v] for v in carried]
        known = dict(zip(inner, kinds, strict=True))
        body, outputs = self.body(known, wanted, depth + 1)
        one, following = self.name(), self.name()
        body += [f"  {one} = const 1 : int", f"  {following} = add {inner[0]}, {one} : int"]
        done = (
            f"graph body({head}) {{\n"
            + "\n".join(body)
            + f"\n  return ({', '.join([following, *outputs])}) }}"
        )
        limited = f", limit={self.random.randint(0, 3)}" if self.random.random() < 0.2 else ""
        self.finish(
            f"while {', '.join([start, *operands])}",
            ["int", *wanted],
            names,
            lines,
            f"test={tested}, body={done}{limited}",
        )

    def scan(self, names: dict[str, str], lines: list[str], depth: int) -> None:
        rows = self.pick(names, "f32[3,4]")
        if rows is None:
            return
        operands = self.several(names, 2, 5)
        count = self.random.randint(1, 2)
        carried, same = operands[:count], operands[count:]
        kinds = [*(names[v] for v in carried), "f32[4]", *(names[v] for v in same)]
        inner = [self.name() for _ in kinds]
        head = ", ".join(f"{n}: {k}" for n, k in zip(inner, kinds, strict=True))
        row = self.name()
        body = [f"  {row} = cast {inner[count]} {{dtype=f64}} : f64[4]"]
        known = dict(zip(inner, kinds, strict=True)) | {row: "f64[4]"}
        wanted = [names[v] for v in carried]
        found, outputs = self.body(known, [*wanted, "f64[4]"], depth + 1)
        done = (
            f"graph body({head}) {{\n"
            + "\n".join([*body, *found])
            + f"\n  return ({', '.join(outputs)}) }}"
        )
        backwards = ", reverse=True" if self.random.random() < 0.3 else ""
        made = [self.name() for _ in wanted]
        stacked = self.name()
        kinds = ", ".join([*wanted, "f64[3,4]"])
        lines.append(
            f"  {', '.join([*made, stacked])} = scan {', '.join([*carried, rows, *same])} "
            f"{{body={done}, carried={count}, scanned=1, length=3{backwards}}} : {kinds}"
        )
        names.update(zip(made, wanted, strict=True))
