"""Script: a function's source with its control flow as functions and calls.

source.py       where the function stands in its text
names.py, definedness.py, liveness.py      what its statements read and bind, and what is read later
patterns.py, refused.py, jumps.py          `match` as `if`; what is refused or kept; no jumps
convert.py      statements: functions and calls that can be read
expressions.py  expressions: words, which are not shown
words.py        what the words do
code.py         all that together, once for each code object
"""

from .code import converted, in_place, is_converted, to_text
from .nodes import RESERVED
from .words import WORDS, undefined

__all__ = [
    "RESERVED",
    "WORDS",
    "converted",
    "in_place",
    "is_converted",
    "to_text",
    "undefined",
]
