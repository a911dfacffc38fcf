"""Graph to picture: which boxes, arrows and clusters stand for its nodes, values and regions.

Values are the arrows, nodes the boxes.  Constants and captured arrays are drawn again beside each
user: shared ones would tie the whole picture together.  A region is a cluster; that of a `kernel`
or `call` is drawn in place of its node, others between two ports.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from minigraph.ir import (
    ArrayType,
    Graph,
    Node,
    ScalarType,
    Type,
    Value,
    carried_count,
    is_loop,
    walk,
)
from minigraph.passes import dead_nodes

from .canvas import Canvas, Leaf, Scope, Source
from .escape import clip, visible
from .fold import Repeat, count_steps, find_repeats, is_constant, name_of, steps
from .neighbourhood import find_value, neighbourhood
from .options import Options
from .palette import LOOKS, MARKS, SLOTS, slot_letters
from .picture import Arrow, Box, Cluster, Line, Picture
from .stage import Changes
from .words import (
    LINE_WIDTH,
    attr_lines,
    constant_label,
    constant_results,
    counted,
    input_paths,
    node_tooltip,
    operand_line,
    output_paths,
    outputs_text,
    place_line,
    value_name,
    value_tooltip,
)

IN_PLACE = ("kernel", "call")  # ops whose one region stands for the node itself
DEEPEST = 3  # nested regions that are drawn
MOST_CONSTANT_RESULTS = 8  # that are drawn one by one


class Composer(Canvas):
    """Builds one picture; `fold` draws repeated stretches once, `closed` leaves regions shut."""

    def __init__(
        self, graph: Graph, options: Options, *, fold: bool = False, closed: bool = False
    ) -> None:
        super().__init__(options, fold=fold)
        self.graph = graph
        self.closed = closed
        self.changes = Changes(options.before, graph, options.events)
        self.frame: dict[str, str] = {}  # the cluster of each box of a repeated stretch
        self.shown: set[Node] | None = None
        self.notes: list[str] = []
        self.users = graph.users()
        self.uses = uses_of(graph)
        files = {node.loc.file for node in walk(graph) if node.loc is not None}
        self.several_files = len(files) > 1
        for node in self.changes.removed:
            self.uses.update(set(node.inputs))
        if options.focus is not None:
            self.narrow(find_value(graph, options.focus))

    def compose(self) -> Scope:
        """Draw everything; returns where each value of the graph comes from."""
        scope: Scope = {}
        self.draw_inputs(scope)
        self.draw_nodes(self.graph, scope, self.root, "", 0)
        self.draw_outputs(scope)
        self.draw_constant_results()
        return scope

    def picture(self) -> Picture:
        """What was drawn."""
        return Picture(
            title=title_of(self.graph, self.options),
            description=description_of(self.graph),
            root=self.root,
            arrows=list(self.arrows.values()),
            note="; ".join(self.notes),
            rankdir=self.options.rankdir,
        )

    # ------------------------------------------------------------------ inputs, outputs

    def draw_inputs(self, scope: Scope) -> None:
        first_capture = len(self.graph.inputs) - len(self.graph.signature.captures)
        paths = input_paths(self.graph)
        for index, (value, path) in enumerate(zip(self.graph.inputs, paths, strict=True)):
            captured = index >= first_capture
            used = [node for node in self.users[value] if self.shown is None or node in self.shown]
            if not used and self.shown is not None:
                continue
            lines = [Line(value_name(value), "strong")]
            if path != value.name:
                lines.append(Line(clip(visible(path), LINE_WIDTH)))
            box = Box(f"v{value.id}", "capture" if captured else "input", lines, ())
            box.tooltip = value_tooltip(value)
            self.slot(box, value)
            source = Source(value, value_name(value))
            if captured:
                source.leaf = Leaf(box, self.root, self.uses[value])
            else:
                if not self.uses[value]:
                    box.lines += [Line(str(value.type)), Line("not used", "dim")]
                box.name = source.box = self.name(box.name)
                self.root.members.append(box)
            scope[value] = source

    def draw_outputs(self, scope: Scope) -> None:
        produced = self.graph.producers()
        for index, (value, path) in enumerate(
            zip(self.graph.outputs, output_paths(self.graph), strict=True)
        ):
            if self.shown is not None and not self.is_shown(value, produced):
                continue
            name = self.name(f"return{index}")
            lines = [Line(clip(visible(path), LINE_WIDTH), "strong")]
            self.root.members.append(Box(name, "output", lines, value_tooltip(value)))
            self.arrow(self.source(value, scope, self.root), name, name)

    def draw_constant_results(self) -> None:
        """What the function returns as it is: each with the constant that it is."""
        if self.shown is not None or self.fold:
            return
        results = constant_results(self.graph)
        for index, (path, text) in enumerate(results[:MOST_CONSTANT_RESULTS]):
            constant = Box(self.name(f"static{index}"), "constant", [Line(text, "strong")])
            lines = [Line(clip(visible(path), LINE_WIDTH), "strong")]
            result = Box(self.name(f"return_static{index}"), "output", lines)
            self.root.members += [constant, result]
            self.arrows[constant.name, result.name, "data"] = Arrow(constant.name, result.name)
        left = len(results) - MOST_CONSTANT_RESULTS
        if left > 0:
            self.notes.append(f"{counted(left, 'more constant result')}")

    def is_shown(self, value: Value, produced: dict[Value, Node]) -> bool:
        return value in produced and self.shown is not None and produced[value] in self.shown

    def draw_unused(self, scope: Scope) -> None:
        """Leaves without a user: nothing is left out silently."""
        if self.shown is not None:
            return
        for source in list(scope.values()):
            leaf = source.leaf
            if leaf is not None and leaf.drawn == 0 and leaf.uses == 0:
                leaf.box.lines.append(Line("not used", "dim"))
                leaf.box.dead = leaf.box.look == "constant"
                self.leaf_box(source, "")

    # ------------------------------------------------------------------ nodes

    def draw_nodes(self, graph: Graph, scope: Scope, home: Cluster, path: str, depth: int) -> None:
        """The nodes of one graph, in order."""
        dead = dead_nodes(graph)
        uses = uses_of(graph) if depth else self.uses
        first_of = self.repeats(graph, home, path)
        last_effect = ""
        for node in graph.nodes:
            if depth == 0 and self.shown is not None and node not in self.shown:
                self.hidden.update(dict.fromkeys(node.outputs, node))
            elif is_constant(node):
                self.constant(node, scope, home, path, uses[node.output])
            elif node in first_of and first_of[node][0] is not node:
                self.repetition(node, first_of[node][0], scope, home)
            else:
                inner = first_of[node][1] if node in first_of else home
                open_ = not self.closed and depth < DEEPEST and node not in first_of
                if open_ and any(True for _ in node.regions):
                    self.region_node(node, scope, inner, path, depth, node in dead)
                    continue
                box = self.box(node, scope, inner, path, node in dead)
                if inner is not home:
                    self.frame[box] = inner.name
                if node.op.kind == "effect" and home is inner:
                    if last_effect:
                        self.arrows[last_effect, box, "order"] = Arrow(last_effect, box, "order")
                    last_effect = box

    def constant(self, node: Node, scope: Scope, home: Cluster, path: str, uses: int) -> None:
        value = node.output
        text = constant_label(node.attrs.get("value"))
        strong = [Line(visible(text), "strong")]
        if isinstance(value.type, ArrayType) and (value.type.shape or text == "array"):
            strong = [*([] if text == "array" else strong), Line(str(value.type), "strong")]
        lines = [*strong, Line(value_name(value), "dim")]
        tooltip = (f"{value_name(value)} = const {visible(text)} : {value.type}",)
        tooltip += node_tooltip(node, self.changes.why(node))[1:]
        mark = self.changes.mark(node)
        if mark:
            lines[0].text = f"{MARKS[mark].sign} {lines[0].text}"
        box = Box(f"{path}n{node.id}", "constant", lines, tooltip, mark=mark)
        small = "" if text == "array" or len(text) > 16 else text
        plain = isinstance(value.type, ScalarType)
        scope[value] = Source(
            value,
            small or value_name(value),
            leaf=Leaf(box, home, uses, inside=small),
            label=not plain,
            labelled=isinstance(value.type, ArrayType) and bool(value.type.shape),
        )

    def box(self, node: Node, scope: Scope, home: Cluster, path: str, dead: bool) -> str:
        """One node as one box, and the arrows into it; returns the name of the box."""
        sources = [self.source(value, scope, home) for value in node.inputs]
        mark = self.changes.mark(node)
        lines = self.node_lines(node, sources, mark)
        if dead:
            lines.append(Line("not used", "dim"))
        if node in self.changes.refused:
            lines.append(Line(f"! {clip(visible(self.changes.refused[node]), LINE_WIDTH)}", "dim"))
        if home is self.root:
            lines.extend(self.hidden_uses(node))
        name = self.name(f"{path}n{node.id}")
        look = node.op.kind if node.op.kind in LOOKS else "library"
        box = Box(name, look, lines, dead=dead, mark=mark)
        box.tooltip = node_tooltip(node, self.changes.why(node))
        line = [f"L{node.loc.line}"] if node.loc is not None else []
        box.classes = (re.sub(r"\W", "_", node.op.name, flags=re.ASCII), *line)
        for value in node.outputs:
            self.slot(box, value)
        home.members.append(box)
        self.connect(sources, name, mark)
        self.define(node, scope, name, dead)
        return name

    def define(self, node: Node, scope: Scope, box: str, dead: bool = False) -> None:
        given: set[Type] = {value.type for value in node.inputs}
        several = len(node.outputs) > 1
        for value in node.outputs:
            scope[value] = Source(
                value,
                value_name(value),
                box=box,
                label=given != {value.type},
                name=value_name(value) if several else "",
                dead=dead,
            )

    def node_lines(self, node: Node, sources: Sequence[Source], mark: str) -> list[Line]:
        sign = f"{MARKS[mark].sign} " if mark else ""
        head = f"{sign}{outputs_text(node)} {clip(visible(node.op.name), LINE_WIDTH)}"
        lines = [Line(" ".join(head.split()), "strong")]
        inside = any(self.is_inside(source) for source in sources)
        if inside and node.op.operator and len(sources) <= 2 and not node.attrs:
            texts = [source.text for source in sources]
            spelling = node.op.operator.replace("{0}", "\0").replace("{1}", texts[-1])
            lines.append(Line(spelling.replace("\0", texts[0])))
        elif inside:
            lines.append(Line(clip(", ".join(source.text for source in sources), LINE_WIDTH)))
        else:
            lines += operand_line(node, [source.text for source in sources])
        inner = sum(count_steps(region) for _, region in node.regions)
        if inner:
            lines.append(Line(counted(inner, "node") + " inside"))
        return lines + attr_lines(node) + place_line(node, self.several_files)

    def slot(self, box: Box, value: Value) -> None:
        """Under a plan, the letter and the colour of the storage slot."""
        plan = self.options.plan
        if plan is None or value not in plan.slot:
            return
        slot = plan.slot[value]
        text = f"slot {slot_letters(slot)}"
        if value in plan.in_place:
            text += " in place"
        box.fill = SLOTS[slot % len(SLOTS)].fill
        at = next((i for i, line in enumerate(box.lines) if line.role == "dim"), len(box.lines))
        box.lines.insert(at, Line(text))

    # ------------------------------------------------------------------ regions

    def region_node(
        self, node: Node, scope: Scope, home: Cluster, path: str, depth: int, dead: bool
    ) -> None:
        regions = list(node.regions)
        region = regions[0][1]
        fits = (len(region.inputs), len(region.outputs)) == (len(node.inputs), len(node.outputs))
        if node.op.name in IN_PLACE and len(regions) == 1 and fits:
            self.region_in_place(node, region, scope, home, path, depth)
        else:
            self.region_between_ports(node, regions, scope, home, path, depth, dead)

    def cluster(self, node: Node, role: str, label: str, home: Cluster, path: str) -> Cluster:
        mark = self.changes.mark(node)
        sign = f"{MARKS[mark].sign} " if mark else ""
        tooltip = node_tooltip(node, self.changes.why(node))
        name = self.name(f"{path}n{node.id}")
        cluster = Cluster(name, role, clip(sign + label, 60), tooltip, mark)
        home.members.append(cluster)
        return cluster

    def region_label(self, node: Node, count: int) -> str:
        attrs = " ".join(line.text for line in attr_lines(node))
        words = [f"{outputs_text(node)} {node.op.name}".strip(), attrs, counted(count, "op")]
        return " | ".join(filter(None, words))

    def region_in_place(
        self, node: Node, region: Graph, scope: Scope, home: Cluster, path: str, depth: int
    ) -> None:
        """The region's nodes, wired to the outer values directly."""
        role = node.op.name if node.op.name in IN_PLACE else "call"
        label = self.region_label(node, len(steps(region)))
        cluster = self.cluster(node, role, label, home, path)
        inner: Scope = {
            value: self.source(outer, scope, home)
            for value, outer in zip(region.inputs, node.inputs, strict=True)
        }
        self.draw_nodes(region, inner, cluster, f"{cluster.name}_", depth + 1)
        if not cluster.members:
            cluster.members.append(
                Box(self.name(f"{cluster.name}_empty"), "cut", [Line("no nodes")])
            )
        for value, result in zip(node.outputs, region.outputs, strict=True):
            found = self.source(result, inner, cluster)
            scope[value] = Source(
                value, value_name(value), found.box, found.leaf, found.label, found.name
            )

    def region_between_ports(
        self,
        node: Node,
        regions: Sequence[tuple[str, Graph]],
        scope: Scope,
        home: Cluster,
        path: str,
        depth: int,
        dead: bool,
    ) -> None:
        """An entry that takes the inputs, each region between its own ports, and an exit."""
        count = sum(len(steps(region)) for _, region in regions)
        cluster = self.cluster(node, "control", self.region_label(node, count), home, path)
        sources = [self.source(value, scope, home) for value in node.inputs]
        entry = self.port(cluster, "entry", node.op.name, look="control")
        self.connect(sources, entry, self.changes.mark(node))
        leaving = self.port(cluster, "exit", outputs_text(node) or "done")
        for name, region in regions:
            inside = Cluster(self.name(f"{cluster.name}_{name}"), "region", visible(name))
            cluster.members.append(inside)
            inner: Scope = {}
            first: list[str] = []
            for value in region.inputs:
                box = self.port(inside, f"v{value.id}", value_name(value), value)
                inner[value] = Source(value, value_name(value), box=box)
                self.arrows[entry, box, "control"] = Arrow(entry, box, "control")
                first.append(box)
            self.draw_nodes(region, inner, inside, f"{inside.name}_", depth + 1)
            for index, (value, text) in enumerate(
                zip(region.outputs, yield_texts(node, name, region), strict=True)
            ):
                box = self.port(inside, f"yield{index}", text, value)
                self.arrow(self.source(value, inner, inside), box, box)
                self.arrows[box, leaving, "control"] = Arrow(box, leaving, "control")
                if name == "body" and index < carried_count(node):
                    self.arrows[box, first[index], "back"] = Arrow(box, first[index], "back")
            if not region.inputs:
                found = next((each for each in inside.members if isinstance(each, Box)), None)
                if found is not None:
                    self.arrows[entry, found.name, "control"] = Arrow(entry, found.name, "control")
        self.define(node, scope, leaving, dead)

    def port(
        self, home: Cluster, name: str, text: str, value: Value | None = None, look: str = "port"
    ) -> str:
        box = Box(self.name(f"{home.name}_{name}"), look, [Line(text, "strong")])
        box.tooltip = value_tooltip(value) if value is not None else ()
        home.members.append(box)
        return box.name

    # ------------------------------------------------------------------ folding

    def repeats(self, graph: Graph, home: Cluster, path: str) -> dict[Node, tuple[Node, Cluster]]:
        """For each node of a repeated stretch the node that is drawn for it, and its cluster."""
        if not self.fold:
            return {}
        order = steps(graph)
        found: dict[Node, tuple[Node, Cluster]] = {}
        for repeat in find_repeats(graph):
            shown = order[repeat.start : repeat.start + repeat.period]
            cluster = Cluster(
                self.name(f"{path}x{repeat.start}"), "repeat", self.repeat_label(repeat, shown)
            )
            home.members.append(cluster)
            for offset, node in enumerate(order[repeat.start : repeat.stop]):
                found[node] = (shown[offset % repeat.period], cluster)
        return found

    def repeat_label(self, repeat: Repeat, shown: Sequence[Node]) -> str:
        name = clip(visible(name_of(shown, LINE_WIDTH)), LINE_WIDTH)
        return f"{repeat.count} times, the first is shown | {name}"

    def repetition(self, node: Node, shown: Node, scope: Scope, home: Cluster) -> None:
        """A node that is not drawn: its arrows are those of the one that stands for it."""
        head = scope[shown.outputs[0]].box if shown.outputs else ""
        for value in node.inputs:
            source = self.source(value, scope, home)
            # Within one repetition nothing is new; what comes from elsewhere is counted.
            within = self.frame.get(source.box) == self.frame.get(head)
            if head and source.box and not (within and self.order[source.box] < self.order[head]):
                self.arrow(source, head, head)
        for value, drawn in zip(node.outputs, shown.outputs, strict=True):
            found = scope[drawn]
            scope[value] = Source(value, value_name(value), found.box)

    # ------------------------------------------------------------------ what focus leaves out

    def narrow(self, start: Value) -> None:
        """Draw only the neighbourhood of a value."""
        near = neighbourhood(self.graph, start, self.options.radius)
        self.shown = near
        shown = sum(not is_constant(node) for node in near)
        total = sum(not is_constant(node) for node in self.graph.nodes)
        if shown < total:
            self.notes.append(
                f"{counted(shown)} of {counted(total, 'node')}, near {value_name(start)}"
            )

    def hidden_uses(self, node: Node) -> list[Line]:
        """How many uses of a drawn node's results are not drawn."""
        if self.shown is None:
            return []
        users = {user for value in node.outputs for user in self.users[value]}
        count = len(users - self.shown)
        return [Line(f"... {counted(count, 'more use')}", "dim")] if count else []


def yield_texts(node: Node, name: str, region: Graph) -> list[str]:
    """What becomes of each result of a region."""
    if name == "test":
        return ["go on?"]
    if node.op.name == "if":
        return [value_name(value) for value in node.outputs]
    if not is_loop(node):
        return [value_name(value) for value in region.outputs]
    carried = carried_count(node)
    texts = [f"next {value_name(value)}" for value in region.inputs[:carried]]
    return texts + [f"row of {value_name(value)}" for value in node.outputs[carried:]]


def uses_of(graph: Graph) -> Counter[Value]:
    """How many nodes and results use each value."""
    uses = Counter(graph.outputs)
    for node in graph.nodes:
        uses.update(set(node.inputs))
    return uses


def title_of(graph: Graph, options: Options) -> str:
    """The heading: what was asked for, or the name of the graph."""
    return clip(visible(graph.name if options.title is None else options.title), 80)


def description_of(graph: Graph) -> str:
    """The counts: what the picture's text alternative says."""
    captures = len(graph.signature.captures)
    words = [
        counted(len(graph.inputs) - captures, "argument"),
        *([counted(captures, "captured array")] if captures else []),
        counted(count_steps(graph), "operation"),
        counted(len(graph.outputs), "result"),
    ]
    return f"Computation graph of {clip(visible(graph.name), 80)}: {', '.join(words)}."
