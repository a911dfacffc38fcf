"""Arguments of a traced call: inputs of the graph, and what the guard checks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minigraph.errors import OptionError, SignatureError
from minigraph.ir import (
    LEAF,
    SCALARS,
    ArrayType,
    Branch,
    Dim,
    Shape,
    Static,
    Tree,
    Value,
    as_dtype,
    is_container,
    items,
    type_of,
)

from .arrays import TracedArray
from .blocks import is_block
from .inputs import traced_input
from .operands import Traced
from .paths import Path
from .reach import Reach
from .recording import Recording
from .scalars import TracedDim, TracedScalar


class Spec:
    """An array that is described and not given: `mg.Spec(("batch", 512), "float32")`.

    Args:
        shape: ints, `mg.dim(...)`, or names of dimensions.
        dtype: anything `np.dtype` takes.
    """

    __slots__ = ("type",)

    def __init__(self, shape: Sequence[int | str | Dim] | int | Dim, dtype: Any) -> None:
        sizes = shape if isinstance(shape, tuple | list) else (shape,)
        self.type = ArrayType(
            as_dtype(dtype),
            [_size(size) for size in sizes],
        )

    @property
    def shape(self) -> Shape:
        """Ints and named dimensions."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"Spec({self.type})"


def _size(size: Any) -> int | Dim:
    from_name = Dim((((size,), 1),)) if isinstance(size, str) and size.isidentifier() else size
    if isinstance(from_name, Dim):
        return from_name
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise SignatureError(
            f"a shape holds sizes and named dimensions, not {size!r}",
            instead='mg.Spec((mg.dim("batch"), 512), "float32")',
        )
    return int(size)


class Arguments:
    """Turns arguments into graph inputs, and notes what the guard must check of them."""

    def __init__(
        self,
        active: Recording,
        reach: Reach,
        static: Sequence[str],
        dynamic: Mapping[str, Mapping[int, Any]],
    ) -> None:
        self.active = active
        self.reach = reach
        self.static = set(static)
        self.dynamic = dynamic
        self.params: list[tuple[str, Tree]] = []
        self.leaves: list[Value] = []
        self._sizes: dict[str, int] = {}
        self._applied: set[str] = set()  # parameters whose axes were named

    def argument(self, name: str, value: Any) -> Any:
        path = Path.argument(name)
        if name in self.static:
            self.active.guards.equals_deeply(path, value)
            self.params.append((name, Static(value)))
            return value
        seen, tree = self._see(value, path, name)
        self.params.append((name, tree))
        named = value is not None and bool(self.dynamic.get(name))
        if named and name not in self._applied:
            raise OptionError(
                f"dynamic=: {name} is a {type(value).__name__}, and only an array has axes"
            )
        return seen

    def _see(self, value: Any, path: Path, root: str) -> tuple[Any, Tree]:
        guards, active = self.active.guards, self.active
        kind = type(value)
        if isinstance(value, Spec):
            made = traced_input(active, None, path, value.type)
            active.name_sizes(made.value_)
            self.leaves.append(made.value_)
            return made, LEAF
        if kind in (int, float, complex):
            guards.type_is(path, kind)
            scalar = active.add_input(SCALARS[kind], path, path.text, value)
            self.leaves.append(scalar)
            return TracedScalar(active, scalar), LEAF
        if kind is np.ndarray or isinstance(value, np.generic):
            return self._array(value, path, root), LEAF
        if kind is np.random.Generator:
            made_generator = self.reach.generator(value, path)
            self.leaves.append(made_generator.value_)
            return made_generator, LEAF
        if getattr(kind, "eager_array_", False):
            active.need_arrays(kind)
            guards.type_is(path, kind)
            made = self._array(value.data_, path.attribute("data_"), root, path)
            active.hold(made, value)
            return made, LEAF
        if isinstance(value, Traced | TracedDim):
            return value, Static(None, "<traced>")
        if is_container(value):
            return self._container(value, path, root)
        seen = self.reach.see(value, path)
        if is_block(value):  # a graph does not keep it alive
            return seen, Static(None, f"<{kind.__name__}>")
        return seen, Static(value)

    def _array(self, value: Any, path: Path, root: str, holder: Path | None = None) -> TracedArray:
        """An ndarray; `holder` is the path of the eager array that it belongs to."""
        active = self.active
        named = dict(self.dynamic.get(root, {})) if (holder or path).text == root else {}
        self._applied.update((root,) if named else ())
        for axis, size in named.items():
            if type(axis) is not int or not -value.ndim <= axis < value.ndim:
                raise OptionError(f"dynamic=: {root} has {value.ndim} axes and no axis {axis!r}")
            if not isinstance(size, str | Dim):
                raise OptionError(
                    f"dynamic=: axis {axis} of {root} needs a name, not {size!r}",
                    instead=f'{{"{root}": {{{axis}: "n"}}}}',
                )
        dims = {axis % value.ndim: _size(size) for axis, size in named.items()} if named else {}
        dims = {
            axis: size for axis, size in dims.items() if value.shape[axis]
        }  # 0 is its own entry
        type_ = type_of(value)
        assert isinstance(type_, ArrayType)
        if dims:
            sizes = [dims.get(axis, size) for axis, size in enumerate(type_.shape)]
            self._check_sizes(path, sizes, value.shape)
            type_ = ArrayType(type_.dtype, sizes)
            made = traced_input(active, None, path, type_, (holder or path).text)
            active.name_sizes(made.value_)
        else:
            made = traced_input(active, value, path, hint=(holder or path).text)
        active.guards.array(path, value, dims, new=holder is not None)
        self.leaves.append(made.value_)
        return made

    def _check_sizes(self, path: Path, sizes: Sequence[Any], shape: Sequence[int]) -> None:
        """The actual sizes agree with the names given to them so far."""
        for axis, (size, actual) in enumerate(zip(sizes, shape, strict=True)):
            if isinstance(size, Dim) and size.is_name:
                known = self._sizes.setdefault(str(size), actual)
                if known != actual:
                    raise SignatureError(
                        f"the dimension {size} is {known}, but {path.text} has extent {actual} on "
                        f"axis {axis}",
                        instead="another name for that axis",
                    )

    def _container(self, value: Any, path: Path, root: str) -> tuple[Any, Tree]:
        kind = type(value)
        guards = self.active.guards
        attributes = kind not in (tuple, list, dict)
        pairs = items(value)
        if kind is dict:
            guards.keys(path, kind, tuple(key for key, _ in pairs))
        elif attributes:
            guards.type_is(path, kind)
        else:
            guards.length(path, kind, len(pairs))
        seen: list[Any] = []
        trees: list[Tree] = []
        for key, child in pairs:
            step = path.attribute(key) if attributes else path.item(key)
            made, tree = self._see(child, step, root)
            seen.append(made)
            trees.append(tree)
        branch = Branch(kind, [key for key, _ in pairs], trees)
        return self.reach.rebuilt_container(value, path, [key for key, _ in pairs], seen), branch
