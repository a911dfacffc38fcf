"""What kernels need of LLVM and Numba has no function for: memory by pointer, sums in any order.

Kernels read and write through bare pointers, so there are no bounds and no negative indices to
check.  Each access says which buffer it belongs to (LLVM's `alias.scope` and `noalias`): all that
is only read is one scope, each buffer that is written another.  So LLVM vectorises a loop over many
arrays without a test at run time whether they overlap.  That they do not is the planner's promise;
a buffer that is read and written has one pointer only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .writing import MOST_WRITTEN

READ_ONLY = MOST_WRITTEN
ANY = -1


def _in_scope(builder: Any, instruction: Any, scope: int) -> Any:
    """Say that a load or store touches the buffers of this scope and of no other.

    That holds for one call: in a loop, the next call may read what this one writes.  Within its
    caller LLVM would take it to hold for all turns, so such a function stays a function.
    """
    if scope == ANY:
        return instruction
    builder.function.attributes.add("noinline")
    module = builder.module
    domain = module.add_metadata(["minigraph"])
    scopes = [
        module.add_metadata([f"minigraph.{number}", domain]) for number in range(MOST_WRITTEN + 1)
    ]
    own = module.add_metadata([scopes[scope]])
    others = module.add_metadata(scopes[:scope] + scopes[scope + 1 :])
    instruction.set_metadata("alias.scope", own)
    instruction.set_metadata("noalias", others)
    return instruction


def _load_from(scope: int) -> Any:
    @intrinsic
    def load(typing_context: Any, pointer: Any, index: Any) -> Any:
        """The element at `pointer[index]`."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.gep(arguments[0], [arguments[1]])
            return _in_scope(builder, builder.load(place), scope)

        return pointer.dtype(pointer, types.intp), generate

    return load


def _store_to(scope: int) -> Any:
    @intrinsic
    def store(typing_context: Any, pointer: Any, index: Any, value: Any) -> Any:
        """`pointer[index] = value`."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = builder.gep(arguments[0], [arguments[1]])
            _in_scope(builder, builder.store(arguments[2], place), scope)
            return context.get_dummy_value()

        return types.void(pointer, types.intp, pointer.dtype), generate

    return store


@intrinsic
def data(typing_context: Any, array: Any) -> Any:
    """The address of an array's first element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        wanted = context.get_value_type(signature.return_type)
        return builder.bitcast(made.data, wanted)

    dtype = types.uint8 if array.dtype == types.boolean else array.dtype
    return types.CPointer(dtype)(array), generate


@intrinsic
def at_offset(typing_context: Any, memory: Any, offset: Any, dtype: Any) -> Any:
    """The address `offset` bytes into an array of bytes, as that of elements of `dtype`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(made.data, [arguments[1]])
        return builder.bitcast(place, context.get_value_type(signature.return_type))

    return types.CPointer(dtype.dtype)(memory, types.intp, dtype), generate


@intrinsic
def moved(typing_context: Any, pointer: Any, offset: Any) -> Any:
    """The address `offset` elements further."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.intp), generate


@intrinsic
def copy_elements(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy so many elements to another place, or leave them where they are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, source, count = arguments
        size = context.get_abi_sizeof(context.get_value_type(signature.args[0].dtype))
        elsewhere = builder.icmp_unsigned("!=", target, source)
        with cgutils.if_likely(builder, elsewhere):
            cgutils.raw_memcpy(builder, target, source, count, size)
        return context.get_dummy_value()

    return types.void(target, source, types.intp), generate


@intrinsic(prefer_literal=True)
def stack(typing_context: Any, dtype: Any, size: Any) -> Any:
    """The address of `size` elements (a literal) on the stack."""
    count = size.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_value_type(signature.return_type.dtype)
        return cgutils.alloca_once(builder, element, size=count)

    return types.CPointer(dtype.dtype)(dtype, size), generate


@intrinsic
def itemsize(typing_context: Any, pointer: Any) -> Any:
    """The size of what a pointer points to, in bytes."""
    size = pointer.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.intp, size)

    return types.intp(pointer), generate


@intrinsic
def zero(typing_context: Any, pointer: Any) -> Any:
    """The zero of what a pointer points to."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(signature.return_type, 0)

    return pointer.dtype(pointer), generate


def _in_any_order(operation: str) -> Any:
    @intrinsic
    def combine(typing_context: Any, a: Any, b: Any) -> Any:
        """`a` and `b` combined, where a loop that does so may regroup its steps."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            instruction = getattr(builder, operation)
            return instruction(*arguments, flags=("reassoc",))

        return a(a, a), generate

    return combine


def _extreme(name: str) -> Any:
    @intrinsic
    def extreme(typing_context: Any, a: Any, b: Any) -> Any:
        """The extreme of two floats; NaN if either is NaN."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = arguments[0].type
            suffix = "f32" if isinstance(kind, ir.FloatType) else "f64"
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(kind, [kind, kind]),
                f"llvm.{name}.{suffix}",
            )
            return builder.call(function, arguments)

        return a(a, a), generate

    return extreme


@numba.njit(error_model="numpy")
def two_sum(total: Any, error: Any, part: Any) -> Any:
    """`total + part` and the rounding errors so far (Knuth, TAOCP 2, 4.2.2, theorem B)."""
    new = total + part
    back = new - total
    return new, error + ((total - (new - back)) + (part - back))


@numba.njit(error_model="numpy")
def settled(total: Any, error: Any) -> Any:
    """A total with its rounding errors; infinite and NaN totals have none."""
    exact = total + error
    return exact if exact == exact else total


HELPERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "load": _load_from(READ_ONLY),
        **{f"load{scope}": _load_from(scope) for scope in range(MOST_WRITTEN)},
        **{f"store{scope}": _store_to(scope) for scope in range(MOST_WRITTEN)},
        "load_any": _load_from(ANY),
        "store_any": _store_to(ANY),
        "data": data,
        "at_offset": at_offset,
        "moved": moved,
        "copy_elements": copy_elements,
        "stack": stack,
        "itemsize": itemsize,
        "zero": zero,
        "add_in_any_order": _in_any_order("fadd"),
        "multiply_in_any_order": _in_any_order("fmul"),
        "larger": _extreme("maximum"),
        "smaller": _extreme("minimum"),
        "two_sum": two_sum,
        "settled": settled,
    }
)
"""What the text of kernels and segments may call, by name."""
