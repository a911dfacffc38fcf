"""Files that any language can read: arrays (safetensors), and graphs with their arrays."""

from .archive import read_archive, write_archive
from .tensors import from_tensors, load_tensors, save_tensors, to_tensors

__all__ = [
    "from_tensors",
    "load_tensors",
    "read_archive",
    "save_tensors",
    "to_tensors",
    "write_archive",
]
