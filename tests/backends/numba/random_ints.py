"""Random graphs of ints that grow in loops and branches within each other, beyond 64 bits, too."""

from __future__ import annotations

import random

BINARY = "add subtract multiply minimum maximum floor_divide remainder bitwise_and".split()
UNARY = ("negative", "absolute")
SMALL = (0, 1, -1, 2, 3, -4, 7, 16, 17)
LARGE = (2**59, 2**60, -(2**60), 2**61, -(2**61), 2**61 + 1, 2**62, 2**63 - 1, -(2**63))
TURNS = (70, 0, 1, 2, 3, 5)


class IntWriter:
    """Writes one graph of three ints; a region may read all that was known before it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def graph(self) -> str:
        names = [self.name() for _ in range(3)]
        lines, known = self.lines(names, 0)
        end = self.loop(known, lines, 0)
        head = ", ".join(f"{name}: int" for name in names)
        return f"graph f({head}) {{\n{lines_of(lines)}\n return ({', '.join(end)})\n}}"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def made(self, text: str, lines: list[str], kind: str = "int") -> str:
        name = self.name()
        lines.append(f"{name} = {text} : {kind}")
        return name

    def constant(self, lines: list[str]) -> str:
        numbers = SMALL if self.random.random() < 0.7 else LARGE
        return self.made(f"const {self.random.choice(numbers)}", lines)

    def lines(self, names: list[str], depth: int) -> tuple[list[str], list[str]]:
        """Lines that compute ints of some others, and all that are known then."""
        names, lines, pick = list(names), [], self.random
        for _ in range(pick.randint(1, 4)):
            choice = pick.random()
            x = pick.choice(names[-4:])
            if choice < 0.65 or depth > 2:
                op = pick.choice(BINARY)  # squares of squares would have too many digits
                is_constant = op == "multiply" or pick.random() < 0.5
                pair = [x, self.constant(lines) if is_constant else pick.choice(names)]
                if pick.random() < 0.3:
                    pair.reverse()
                names.append(self.made(f"{op} {', '.join(pair)}", lines))
            elif choice < 0.75:
                names.append(self.made(f"{pick.choice(UNARY)} {x}", lines))
            elif choice < 0.9:
                names.append(self.branch(names, lines, depth))
            else:
                names += self.loop(names, lines, depth)
        return lines, names

    def test(self, names: list[str], lines: list[str]) -> str:
        y = self.constant(lines)
        return self.made(f"less {self.random.choice(names)}, {y}", lines, "bool")

    def branch(self, names: list[str], lines: list[str], depth: int) -> str:
        test = self.test(names, lines)
        regions: list[str] = []
        for side in ("then", "otherwise"):
            inner = [self.name() for _ in names]
            body, known = self.lines(inner, depth + 1)
            regions.append(f"{side}={region(side, inner, body, [known[-1]])}")
        return self.made(f"if {test}, {', '.join(names)} {{{', '.join(regions)}}}", lines)

    def loop(self, names: list[str], lines: list[str], depth: int) -> list[str]:
        """A loop of a few turns, with a counter of its own, that carries some of the ints."""
        zero = self.made("const 0", lines)
        carried = self.random.sample(names, min(len(names), self.random.randint(2, 4)))
        carried = [self.constant(lines) if self.random.random() < 0.5 else v for v in carried]
        given = [zero, *carried, *names]
        count = 1 + len(carried)
        inner = [self.name() for _ in given]
        body: list[str] = []
        one = self.made("const 1", body)
        following = self.made(f"add {inner[0]}, {one}", body)
        found, known = self.lines(inner[1:], depth + 1)
        results = [self.result(inner[at], inner[1:count], known, found) for at in range(1, count)]
        around = [self.name() for _ in given]
        test: list[str] = []
        most = self.made(f"const {self.random.choice(TURNS[depth > 0 :])}", test)
        holds = self.made(f"less {around[0]}, {most}", test, "bool")
        ends = [self.name() for _ in range(count)]
        lines.append(
            f"{', '.join(ends)} = while {', '.join(given)} "
            f"{{test={region('test', around, test, [holds])}, "
            f"body={region('body', inner, [*body, *found], [following, *results])}}} : "
            + ", ".join(["int"] * count)
        )
        return ends[1:]

    def result(self, value: str, others: list[str], known: list[str], lines: list[str]) -> str:
        """What a turn makes of a carried int: often a little more or less, or an earlier one."""
        choice = self.random.random()
        if choice < 0.3:
            step = self.constant(lines)
            return self.made(f"{self.random.choice(('add', 'subtract'))} {value}, {step}", lines)
        if choice < 0.5:
            step = self.random.choice(others)
            return self.made(f"add {value}, {step}", lines)
        return value if choice < 0.55 else self.random.choice(known[-6:])


def lines_of(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def region(name: str, inputs: list[str], lines: list[str], outputs: list[str]) -> str:
    head = ", ".join(f"{each}: int" for each in inputs)
    returned = f"({', '.join(outputs)})" if outputs[1:] else outputs[0]
    return f"graph {name}({head}) {{\n{lines_of(lines)}\n  return {returned} }}"
