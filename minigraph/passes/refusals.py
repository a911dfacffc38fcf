"""Why two nodes are not in one kernel: the codes, each with its reasons."""

from __future__ import annotations

from typing import NamedTuple

SIZE_LIMIT = 200
"""The most nodes of a kernel: compilers take longer than linear in the length of a loop."""


class Refusal(NamedTuple):
    """A code of `REFUSALS`, and the reason for people."""

    code: str
    why: str


MISFIT = Refusal("SHAPE_MISMATCH", "their loops do not fit together")
ELSEWHERE = Refusal("SHAPE_MISMATCH", "it is read in another order, or in part")
RENUMBERED = Refusal("SHAPE_MISMATCH", "the elements are counted in another way")
CYCLE = Refusal("ORDER_CYCLE", "what is in between would have to run in the middle of the kernel")
OTHER_AXES = Refusal("REDUCTION_BARRIER", "the kernel already reduces along other axes")
LARGER = Refusal("REDUCTION_BARRIER", "what reads the reduction runs in larger loops")
WHOLE = Refusal("REDUCTION_BARRIER", "everything has to be reduced first")
OPERAND = Refusal("REDUCTION_BARRIER", "a product reads its operands again and again")
REDUCED = Refusal("REDUCTION_BARRIER", "a reduction follows, and reads the product itself")
SCATTERED = Refusal("BACKEND_CANNOT", "the reduced axes do not follow each other")
ONE_PRODUCT = Refusal("BACKEND_CANNOT", "a kernel begins with one product")
TOO_LONG = Refusal("SIZE_LIMIT", f"the kernel would have more than {SIZE_LIMIT} nodes")
AGAIN = Refusal("COST", "it would be computed again and again in the larger loops")
ALONE = Refusal("COST", "nothing follows that could be done while the product is at hand")
UNREAD = Refusal("COST", "nobody reads the result")
MOVES_NOTHING = Refusal("COST", "a view moves no bytes: there is nothing to save")
