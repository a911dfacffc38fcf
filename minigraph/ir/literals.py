"""Numbers and constant arrays, to text and back bit for bit.

True  -3  0x1f  0.1  1e-05  -0.0  inf  nan  -nan  complex(0.0, -inf)
[[1, 2], [3, 4]]       an array; the type beside it tells dtype and shape
array(1.5)             an array without axes; `1.5` alone is a NumPy scalar or a Python number
<hex:0100c07f>         the bytes, little-endian, where no number says them (a NaN with a payload)
<sha256:...>           a large array, which stays beside the text
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from .attrs import constant_digest, native
from .types import SHORT, ArrayType, ScalarType, Type, type_of

# A literal as read, before its type is known: a word (`0.1`, `<hex:..>`), the two words of a
# complex number, or the items of a list.
Raw = str | tuple[str, str] | list["Raw"]

LONGEST_DECIMAL_BITS = 4096  # Python refuses to turn much longer integers into decimal digits


def number_text(value: complex) -> str:
    """A Python bool, int, float or complex as a literal."""
    if isinstance(value, int):
        long = value.bit_length() > LONGEST_DECIMAL_BITS
        return hex(value) if long else repr(value)
    if isinstance(value, complex):
        text = f"complex({_float_text(value.real)}, {_float_text(value.imag)})"
        same = not (math.isnan(value.real) or math.isnan(value.imag)) or (
            _same(value.real) and _same(value.imag)
        )
        return text if same else f"<hex:{struct.pack('<dd', value.real, value.imag).hex()}>"
    same = not math.isnan(value) or _same(value)
    return _float_text(value) if same else f"<hex:{struct.pack('<d', value).hex()}>"


def _same(value: float) -> bool:
    """Whether the literal says all bits of the number."""
    return struct.pack("<d", read_float(_float_text(value))) == struct.pack("<d", value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return repr(value)


def constant_text(value: Any) -> str:
    """The literal of a constant: a Python number, a NumPy scalar or an array.

    What is none of these prints as `<?Class>`, which nothing reads.
    """
    if not isinstance(value, np.ndarray | np.generic):
        is_number = isinstance(value, int | float | complex)
        return number_text(value) if is_number else f"<?{type(value).__name__}>"
    array = native(value)
    if array.dtype.name not in SHORT:
        return f"<?array of {array.dtype}>"
    digest = constant_digest(value)
    if digest is not None:
        return f"<{digest}>"
    words: list[Raw] = [_element_text(item) for item in array.reshape(-1)]
    if _from_raw(words, array.dtype).tobytes() == array.tobytes():
        pieces = iter(words)
        text = "[]" if array.size == 0 else _nested(array.shape, pieces)
    else:
        text = f"<hex:{array.astype(array.dtype.newbyteorder('<')).tobytes().hex()}>"
    return text if isinstance(value, np.generic) or array.ndim else f"array({text})"


def _element_text(item: Any) -> Raw:
    """The word of one element, or the two words of a complex one."""
    kind = item.dtype.kind
    if kind == "c":
        return (str(_element_text(item.real)), str(_element_text(item.imag)))
    if kind == "f" and np.isnan(item):
        return "-nan" if np.signbit(item) else "nan"
    return str(item)


def _nested(shape: tuple[int, ...], words: Any) -> str:
    if not shape:
        word = next(words)
        return word if isinstance(word, str) else f"complex({word[0]}, {word[1]})"
    return "[" + ", ".join(_nested(shape[1:], words) for _ in range(shape[0])) + "]"


def read_float(word: str) -> float:
    """The float that a word says, with the sign of a NaN."""
    return (
        math.copysign(math.nan, -1.0 if word[0] == "-" else 1.0) if "nan" in word else float(word)
    )


def read_number(raw: Raw) -> complex:
    """The Python number that a literal without a type says.

    Raises:
        ValueError: not a number.
    """
    if isinstance(raw, tuple):
        return complex(read_float(raw[0]), read_float(raw[1]))
    if not isinstance(raw, str):
        raise ValueError("a list is no number")
    if raw in ("True", "False"):
        return raw == "True"
    if raw.startswith("<hex:"):
        content = bytes.fromhex(raw[5:-1])
        if len(content) not in (8, 16):
            raise ValueError("a float has 8 bytes, a complex number 16")
        parts = struct.unpack("<d" if len(content) == 8 else "<dd", content)
        return parts[0] if len(parts) == 1 else complex(*parts)
    if "x" in raw:
        return int(raw, 16)
    if any(sign in raw for sign in ".en"):
        return read_float(raw)
    return int(raw)


def read_constant(raw: Raw, boxed: bool, type: Type, constants: Mapping[str, Any]) -> Any:
    """The constant that a literal says beside its type.

    Args:
        raw: the literal as read.
        boxed: it was written `array(..)`.
        type: the type of the constant.
        constants: the large arrays by digest.

    Raises:
        ValueError: the literal does not fit the type; the message is a sentence for people.
    """
    if isinstance(type, ScalarType):
        if boxed:
            raise ValueError(f"an array is no Python {type}")
        number = read_number(raw)
        if number.__class__ not in _WRITTEN_AS[np.dtype(type.python).kind]:
            raise ValueError(f"{number_text(number)} is no {type}")
        return type.python(number)
    if not isinstance(type, ArrayType) or not type.is_static:
        raise ValueError(f"there are no constants of type {type}")
    shape = tuple(int(size) for size in type.shape)
    if boxed and shape:
        raise ValueError(f"array(..) is an array without axes, not {type}")
    if isinstance(raw, str) and raw.startswith("<sha256:"):
        return _beside_the_text(raw[1:-1], type, constants)
    if isinstance(raw, str) and raw.startswith("<hex:"):
        content = bytes.fromhex(raw[5:-1])
        if len(content) != math.prod(shape) * type.dtype.itemsize:
            raise ValueError(f"{len(content)} bytes are no {type}")
        array = native(np.frombuffer(content, type.dtype.newbyteorder("<"))).copy()
    else:
        array = _from_raw(_elements(raw, type), type.dtype)
    array = array.reshape(shape)
    return array if boxed or shape else array[()]


def _beside_the_text(digest: str, type: Type, constants: Mapping[str, Any]) -> Any:
    if digest not in constants:
        raise ValueError(
            f"the constant {digest} is not among `constants`; "
            "the bytes stay beside the text: parse(text, constants=graph.constants)"
        )
    if type_of(constants[digest]) != type:
        raise ValueError(f"the constant {digest} is {type_of(constants[digest])}, not {type}")
    return constants[digest]


def _elements(raw: Raw, type: ArrayType) -> list[Raw]:
    """The elements of a nested list, which must have the shape of the type."""
    level = [raw]
    if raw == [] and type.size == 0:
        return []
    for size in type.shape:
        below: list[Raw] = []
        for item in level:
            if not isinstance(item, list) or len(item) != size:
                raise ValueError(f"the list does not have the shape of {type}")
            below.extend(item)
        level = below
    if any(isinstance(item, list) for item in level):
        raise ValueError(f"the list does not have the shape of {type}")
    return level


def _from_raw(words: list[Raw], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The elements as an array with one axis."""
    array = np.empty(len(words), dtype)
    for index, word in enumerate(words):
        array[index] = _element(word, dtype)
    return array


def _element(word: Raw, dtype: np.dtype[Any]) -> Any:
    number = read_number(word)
    if number.__class__ not in _WRITTEN_AS[dtype.kind]:
        raise ValueError(f"{number_text(number)} is no {dtype}")
    try:
        with np.errstate(all="ignore"):
            item = dtype.type(number)
    except OverflowError as error:
        raise ValueError(f"{number_text(number)} does not fit {dtype}") from error
    if np.isinf(item) and not np.isinf(number):
        raise ValueError(f"{number_text(number)} does not fit {dtype}")
    return item


_WRITTEN_AS: dict[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (int, float),
    "c": (int, float, complex),
}
