"""How each framework runs a work.

A peer is a function from a work, its inputs and its bound arrays to a `Call`.  It imports its
framework itself, so that one that is not installed is an ImportError here, and is left out.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigraph as mg

from .works import Arrays, Function, Work


@dataclass(frozen=True)
class Call:
    """Something to measure.

    Attributes:
        run: computes the work once; returns the result.
        around: a context that calls are made in, entered outside of what is timed.
        checked: whether the result is that of the work.
    """

    run: Callable[[], Any]
    around: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    checked: bool = True


def minigraph(work: Work, inputs: Arrays, bound: Arrays, backend: str = "auto") -> Call:
    function = mg.jit(work.formula(np, *bound), backend=backend)
    return Call(functools.partial(function, *inputs), quiet)


def numpy(work: Work, inputs: Arrays, bound: Arrays) -> Call:
    return Call(functools.partial(work.formula(np, *bound), *inputs), quiet)


def quiet() -> contextlib.AbstractContextManager[Any]:
    return np.errstate(all="ignore")


# ---- PyTorch -----------------------------------------------------------------------------------


def torch_eager(work: Work, inputs: Arrays, bound: Arrays) -> Call:
    import torch

    function, tensors = _in_torch(work, inputs, bound)
    return Call(functools.partial(function, *tensors), torch.no_grad)


def torch_with_grad(work: Work, inputs: Arrays, bound: Arrays) -> Call:
    function, tensors = _in_torch(work, inputs, bound)
    return Call(functools.partial(function, *tensors))


def torch_script(work: Work, inputs: Arrays, bound: Arrays) -> Call:
    """A module is scripted; a function is traced, since closures cannot be scripted."""
    import torch

    function, tensors = _in_torch(work, inputs, bound)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # it is deprecated
        if isinstance(function, torch.nn.Module):
            script: Any = torch.jit.script(function)
        else:
            script = torch.jit.trace(function, tensors)
    return Call(functools.partial(script, *tensors), torch.no_grad)


def torch_compiled(work: Work, inputs: Arrays, bound: Arrays, as_written: bool = False) -> Call:
    import torch

    function, tensors = _in_torch(work, inputs, bound, as_written)
    compiled = torch.compile(function, dynamic=False)
    return Call(functools.partial(compiled, *tensors), torch.no_grad)


def _in_torch(
    work: Work, inputs: Arrays, bound: Arrays, as_written: bool = False
) -> tuple[Function, Any]:
    import torch

    formula = work.formula if as_written or work.native is None else work.native
    function = formula(torch, *map(torch.from_numpy, bound))
    return function, tuple(map(torch.from_numpy, inputs))


# ---- others ------------------------------------------------------------------------------------


def jax(work: Work, inputs: Arrays, bound: Arrays) -> Call:
    import jax as framework

    framework.config.update("jax_enable_x64", True)
    jnp = framework.numpy
    function = framework.jit(work.formula(jnp, *map(jnp.asarray, bound)))
    arrays = tuple(map(jnp.asarray, inputs))
    return Call(lambda: function(*arrays).block_until_ready())


def onnx_runtime(work: Work, inputs: Arrays, bound: Arrays) -> Call:
    """The network as Gemm and Relu nodes; other works are not written for it."""
    import onnx
    import onnxruntime

    helper, tensor = onnx.helper, onnx.TensorProto
    (x,) = inputs
    nodes: list[Any] = []
    value = "x"
    names = [f"p{index}" for index in range(len(bound))]
    for weight, bias in zip(names[::2], names[1::2], strict=True):
        nodes.append(helper.make_node("Gemm", [value, weight, bias], [f"{weight}_sum"]))
        nodes.append(helper.make_node("Relu", [f"{weight}_sum"], [f"{weight}_relu"]))
        value = f"{weight}_relu"
    result = nodes.pop().input[0]
    graph = helper.make_graph(
        nodes,
        work.name,
        [helper.make_tensor_value_info("x", tensor.FLOAT, x.shape)],
        [helper.make_tensor_value_info(result, tensor.FLOAT, (len(x), bound[-1].size))],
        [onnx.numpy_helper.from_array(a, n) for a, n in zip(bound, names, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {"x": x}
    return Call(lambda: session.run(None, feed)[0])


def reading(work: Work, inputs: Arrays, bound: Arrays) -> Call:
    """Reads the first input once, on all cores, as fast as memory gives it."""
    import numba

    @numba.njit(fastmath={"reassoc"})
    def read(part: Any) -> Any:
        total = np.float32(0)
        for index in range(part.size):
            total += part[index]
        return total

    @numba.njit(parallel=True)
    def read_all(array: Any, parts: int) -> Any:
        totals = np.empty(parts, np.float32)
        for part in numba.prange(parts):
            first, last = part * array.size // parts, (part + 1) * array.size // parts
            totals[part] = read(array[first:last])
        return totals

    flat = inputs[0].ravel()
    return Call(functools.partial(read_all, flat, numba.get_num_threads()), checked=False)


PEERS: dict[str, Callable[[Work, Arrays, Arrays], Call]] = {
    "NumPy": numpy,
    "torch eager": torch_eager,
    "torch eager, with grad": torch_with_grad,
    "torch.jit.script": torch_script,
    "torch.compile": torch_compiled,
    "torch.compile, as written": functools.partial(torch_compiled, as_written=True),
    "ONNX Runtime": onnx_runtime,
    "JAX": jax,
    "reading memory": reading,
}


def threads() -> str:
    """The threads each may use, and the kind of BLAS, as far as they say."""
    found: list[str] = []
    with contextlib.suppress(ImportError):
        import threadpoolctl

        for pool in threadpoolctl.threadpool_info():
            kind = pool.get("architecture", pool["internal_api"])
            found.append(f"{pool['prefix']} {pool['num_threads']} ({kind})")
    with contextlib.suppress(ImportError):
        import torch

        found.append(f"torch {torch.get_num_threads()}")
    with contextlib.suppress(ImportError):
        import numba

        found.append(f"Numba {numba.get_num_threads()}")
    return "threads: " + ", ".join(dict.fromkeys(found))
