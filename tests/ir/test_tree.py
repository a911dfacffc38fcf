from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir.local import Pair, Point, trees

from minigraph.errors import SignatureError
from minigraph.ir import LEAF, Branch, Static, flatten, leaf_count, leaf_paths, unflatten
from minigraph.ir.tree import static_text


def is_leaf(value: Any) -> bool:
    return type(value) is int


STRUCTURE = {
    "w": [1, (2, None)],
    "b": Point(3, Pair(4, "relu")),
    0: {},
    True: [[], ()],
}


def test_flatten_takes_apart_in_order() -> None:
    leaves, tree = flatten(STRUCTURE, is_leaf)
    assert leaves == [1, 2, 3, 4] and leaf_count(tree) == 4
    assert leaf_paths(tree, "p") == [
        "p['w'][0]",
        "p['w'][1][0]",
        "p['b'].x",
        "p['b'].y.left",
    ]


def test_unflatten_puts_together() -> None:
    leaves, tree = flatten(STRUCTURE, is_leaf)
    assert unflatten(tree, iter(leaves)) == STRUCTURE
    made = unflatten(tree, iter([10, 20, 30, 40]))
    assert made["w"] == [10, (20, None)] and made["b"] == Point(30, Pair(40, "relu"))
    assert (
        type(made["b"]) is Point and type(made["b"].y) is Pair and list(made) == ["w", "b", 0, True]
    )


@given(st.integers(0, 6).flatmap(lambda count: trees(count).map(lambda tree: (count, tree))))
def test_a_tree_has_its_leaves(drawn: Any) -> None:
    count, tree = drawn
    assert leaf_count(tree) == len(leaf_paths(tree, "x")) == count
    marks = [object() for _ in range(count)]  # equal to nothing that a static leaf may be
    leaves, again = flatten(unflatten(tree, iter(marks)), lambda x: x in marks)
    assert leaves == marks and hash(again) == hash(again)


def test_equality_tells_kinds_keys_and_children_apart() -> None:
    structures = [
        (1, 2),
        [1, 2],
        {0: 1, 1: 2},
        {0: 1, True: 2},
        {0.0: 1, 1: 2},
        Pair(1, 2),
        Point(1, 2),
        (1, (2,)),
        (1, 2, None),
        (1, 2, False),
        (1, 2, 0.0),
        (1, 2, -0.0),
        (1, 2, ""),
        1,
    ]
    kept = [flatten(structure, is_leaf)[1] for structure in structures]
    for i, a in enumerate(kept):
        for j, b in enumerate(kept):
            assert (a == b) == (i == j), (structures[i], structures[j])
            assert i != j or hash(a) == hash(b)


def test_a_structure_that_contains_itself() -> None:
    structure: list[Any] = [1]
    structure.append({"inner": structure})
    with pytest.raises(SignatureError, match="contains itself"):
        flatten(structure, is_leaf)
    twice = [1]
    assert flatten([twice, twice], is_leaf)[0] == [1, 1]


def test_a_structure_that_is_too_deep() -> None:
    structure: Any = 1
    for _ in range(5000):
        structure = [structure]
    with pytest.raises(SignatureError, match="levels"):
        flatten(structure, is_leaf)


class Config:
    class Inner:
        pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        (-float("nan"), "-nan"),
        (1 - 2j, "complex(1.0, -2.0)"),
        ("a'b", '"a\'b"'),
        (b"\0", r"b'\x00'"),
        (int, "<int>"),
        (np.float32, "<float32>"),
        (Config.Inner, "<Config.Inner>"),
        (Config(), "<Config>"),
        (lambda: 0, "<lambda>"),
    ],
)
def test_static_text(value: Any, text: str) -> None:
    assert static_text(value) == Static(value).text == text


def test_local_names_are_short() -> None:
    def local() -> None: ...

    assert static_text(local) == "<test_local_names_are_short.local>"


def test_what_a_parsed_graph_does_not_know() -> None:
    with pytest.raises(SignatureError, match="class Point"):
        unflatten(Branch(None, ("x",), [LEAF], "Point"), iter([1]))
    with pytest.raises(SignatureError, match="key <Color>"):
        unflatten(Branch(dict, (Static(None, "<Color>"),), [LEAF]), iter([1]))
