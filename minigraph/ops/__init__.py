"""The declaration of every op, and the evaluator: what a node and a graph mean."""

from . import (
    contract,
    control,
    create,
    cumulate,
    effects,
    elementwise,
    index,
    join,
    layout,
    library,
    linalg,
    numbers,
    random,
    reduce,
    statistics,
)
from .bind import as_axes, as_shape, as_size, common_dtype, dtype_of, ndim_of, shape_of
from .contract import is_float_product
from .derivation import ZERO, Builder, Derivation, Term, cotangent_type, derive, fit, is_complex
from .effects import ERRORS
from .evaluate import call_arguments, evaluate, evaluate_node, named_sizes, substitute
from .index import add_rows, bind_getitem, bind_setitem
from .indexing import expand, slice_bounds, split_index, subscript
from .loops import Axes, extent, largest, place
from .numbers import FAILURES
from .random import DRAWS, DRAWS_IN_PLACE
from .registry import OPS, RECORDED, declare, get, infer
from .rules import (
    ANNOTATIONS,
    AxisError,
    OutOfBoundsError,
    array_type,
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
    shape_text,
)
from .scalar import NONE_KNOWN, TRANSCENDENTAL, Numbers, loop_dtypes, scalar_text
from .special import special_op, special_ufunc
from .storing import takes_out, ufunc_of, writes_where_told
from .text import CONVERSIONS, words_of

__all__ = [
    "ANNOTATIONS",
    "DRAWS",
    "DRAWS_IN_PLACE",
    "CONVERSIONS",
    "ERRORS",
    "FAILURES",
    "NONE_KNOWN",
    "OPS",
    "RECORDED",
    "TRANSCENDENTAL",
    "ZERO",
    "Axes",
    "AxisError",
    "Builder",
    "Derivation",
    "Numbers",
    "OutOfBoundsError",
    "Term",
    "add_rows",
    "array_type",
    "as_axes",
    "as_shape",
    "as_size",
    "bind_getitem",
    "bind_setitem",
    "broadcast_shapes",
    "call_arguments",
    "common_dtype",
    "contract",
    "control",
    "cotangent_type",
    "create",
    "cumulate",
    "declare",
    "derive",
    "dtype_of",
    "effects",
    "elementwise",
    "evaluate",
    "evaluate_node",
    "expand",
    "extent",
    "fit",
    "get",
    "index",
    "infer",
    "is_complex",
    "is_float_product",
    "join",
    "largest",
    "layout",
    "library",
    "linalg",
    "loop_dtypes",
    "named_sizes",
    "ndim_of",
    "normalize_axes",
    "normalize_axis",
    "numbers",
    "place",
    "random",
    "reduce",
    "scalar_text",
    "shape_of",
    "shape_text",
    "slice_bounds",
    "special_op",
    "special_ufunc",
    "split_index",
    "statistics",
    "subscript",
    "substitute",
    "takes_out",
    "ufunc_of",
    "words_of",
    "writes_where_told",
]
