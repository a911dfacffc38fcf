"""Every recorded function and method on a table of arguments: as eagerly, or a teaching error.

What counts: dtype, shape, bits, array or scalar, what became of the argument, the class of errors.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from comparing import outcome

import minigraph as mg
from minigraph import ops
from minigraph.errors import MinigraphError
from minigraph.trace.composites import COMPOSITES

X = np.array([[1.5, -2.0, 3.0, 0.25], [4.0, 0.0, -6.0, 7.0], [2.0, 2.0, 9.0, -1.0]])
ARGUMENTS: dict[str, Any] = {
    "f8": X,
    "i8": np.arange(12).reshape(3, 4) % 7 - 2,
    "bool": X > 0,
    "c16": X * (1 + 2j),
    "f4, Fortran order": np.asfortranarray(X.astype("f4")),
    "u1": np.abs(X).astype("u1"),
    "one axis, with gaps": X[0, ::2],
    "square": X[:, :3] + 10 * np.eye(3),
    "three axes": np.arange(24.0).reshape(2, 3, 4),
    "empty": np.zeros((0, 4)),
    "no axes": np.array(2.5),
    "numpy scalar": np.float32(1.5),
    "python int": 3,
    "nan": np.where(X > 3, np.nan, X),
}
EXPRESSIONS = r"""
np.all(x)
np.all(x,axis=0)
np.all(x,-1,keepdims=True)
np.any(x,axis=(0,1))
np.any(x,axis=())
np.any(x,where=[True,False,True,False])
np.sum(x,dtype='f4')
np.sum(x,axis=[0])
np.sum(x,axis=(0,-1))
np.sum(x,axis=0,initial=3)
np.sum(x,0,None,None,True)
np.sum(x,where=x>0)
np.prod(x,axis=-1,dtype=complex)
np.prod(x,initial=2)
np.max(x,axis=0,initial=2)
np.max(x,where=x>0,initial=0)
np.min(x,axis=(0,1),keepdims=True)
np.max(x,axis=None)
np.amax(x,0)
np.ptp(x)
np.ptp(x,axis=0)
np.ptp(x,axis=-1,keepdims=True)
np.mean(x)
np.mean(x,axis=(0,),dtype='f4')
np.mean(x,where=x>0)
np.mean(x,keepdims=True)
np.std(x)
np.std(x,axis=0,ddof=1)
np.std(x,correction=1)
np.std(x,mean=np.mean(x))
np.var(x,axis=-1,keepdims=True)
np.var(x,where=x>0)
np.median(x)
np.median(x,axis=0)
np.median(x,axis=(0,1),keepdims=True)
np.percentile(x,50)
np.percentile(x,[10,90],axis=0)
np.percentile(x,30,method='lower')
np.quantile(x,.25,axis=-1,keepdims=True)
np.quantile(x,np.array([.1,.5]))
np.average(x)
np.average(x,axis=0,weights=np.ones(x.shape[0]))
np.average(x,axis=0,returned=True)
np.argmax(x)
np.argmax(x,axis=0)
np.argmin(x,-1,keepdims=True)
np.nanargmax(x)
np.nanargmin(x,axis=0)
np.nansum(x)
np.nansum(x,axis=0,keepdims=True)
np.nanprod(x)
np.nanmean(x)
np.nanmean(x,axis=0)
np.nanstd(x,ddof=1)
np.nanvar(x,axis=-1)
np.nanmax(x)
np.nanmin(x,axis=0)
np.nanmedian(x)
np.nanpercentile(x,40)
np.nanquantile(x,.4,axis=0)
np.nancumsum(x)
np.nancumprod(x,axis=0)
np.count_nonzero(x)
np.count_nonzero(x,axis=0)
np.count_nonzero(x,axis=(0,1),keepdims=True)
np.cumsum(x)
np.cumsum(x,axis=0)
np.cumsum(x,-1,dtype='f4')
np.cumprod(x,axis=0)
np.cumulative_sum(x,axis=0)
np.cumulative_sum(x,axis=0,include_initial=True)
np.cumulative_prod(x,axis=-1)
np.diff(x)
np.diff(x,n=2,axis=0)
np.diff(x,prepend=0)
np.diff(x,append=x,axis=0)
np.trapezoid(x)
np.trapezoid(x,dx=.5,axis=0)
np.trapezoid(x,x=np.arange(x.shape[-1]))
np.clip(x,0,1)
np.clip(x,None,1)
np.clip(x,0,None)
np.clip(x,-1.5,1.5)
np.clip(x,min=0,max=2)
np.clip(x,x*0,x*0+1)
np.clip(x,a_min=0,a_max=1)
np.round(x)
np.round(x,1)
np.around(x,-1)
np.fix(x)
np.rint(x)
np.nan_to_num(x)
np.nan_to_num(x,nan=5,posinf=1)
np.isclose(x,1.5)
np.isclose(x,x,rtol=0,atol=0,equal_nan=True)
np.allclose(x,x)
np.array_equal(x,x)
np.array_equal(x,x,equal_nan=True)
np.array_equiv(x,x)
np.isin(x,[1,2,4])
np.isin(x,[1,2],invert=True)
np.angle(x)
np.angle(x,deg=True)
np.real(x)
np.imag(x)
np.iscomplex(x)
np.isreal(x)
np.isposinf(x)
np.isneginf(x)
np.sinc(x)
np.heaviside(x,.5)
np.frexp(x)
np.modf(x)
np.divmod(x,2)
np.ldexp(x,2)
np.interp(x,[0,1,2],[3,4,5])
np.interp(x,[0,1,2],[3,4,5],left=-1,right=9)
np.interp(x,[0,1,2],[3,4,5],period=2)
np.digitize(x,[0,2,4])
np.digitize(x,[0,2,4],right=True)
np.searchsorted([0,1,2],x)
np.searchsorted([0,1,2],x,side='right')
np.searchsorted(np.sort(x,axis=None),1)
np.convolve(x,[1,2])
np.convolve(x,[1,2],'same')
np.convolve(x,x,mode='valid')
np.correlate(x,[1,2])
np.correlate(x,x,'full')
np.where(x>0,x,0)
np.where(x>0,1,0)
np.where(x>0,1.5,x)
np.where(x,x,x)
np.where(True,x,0)
np.select([x>2,x>0],[x,x*2])
np.select([x>2,x>0],[x,-1],default=7)
np.choose(x>0,[x,0])
np.choose([0,1],[x,0])
np.take(x,0)
np.take(x,[0,1],axis=0)
np.take(x,[[0,1],[1,0]],axis=-1)
np.take(x,[-1,5],mode='wrap')
np.take(x,9,mode='clip')
np.take_along_axis(x,np.argsort(x,axis=0),axis=0)
np.take_along_axis(x,np.argsort(x,axis=-1),-1)
np.take_along_axis(x,np.array([0,1]),None)
np.compress([True,False],x)
np.extract(x>0,x)
np.sort(x)
np.sort(x,axis=0)
np.sort(x,None)
np.sort(x,kind='stable')
np.sort(x,axis=0,stable=True)
np.argsort(x)
np.argsort(x,axis=0,kind='stable')
np.argsort(x,axis=None)
np.argsort(-x)
np.partition(x,1)
np.partition(x,1,axis=0)
np.argpartition(x,1)
np.lexsort((x,))
np.lexsort((x[0],x[1]))
np.unique(x)
np.nonzero(x)
np.argwhere(x)
np.flatnonzero(x)
np.reshape(x,-1)
np.reshape(x,(-1,2))
np.reshape(x,(2,-1),order='F')
np.reshape(x,shape=(1,-1))
np.ravel(x)
np.ravel(x,'F')
np.transpose(x)
np.transpose(x,(1,0))
np.transpose(x,(-1,0))
np.permute_dims(x)
np.swapaxes(x,0,-1)
np.moveaxis(x,0,-1)
np.moveaxis(x,[0,1],[1,0])
np.rollaxis(x,1)
np.matrix_transpose(x)
np.squeeze(x)
np.squeeze(x[None],0)
np.squeeze(x[None],axis=(0,))
np.expand_dims(x,0)
np.expand_dims(x,(0,-1))
np.atleast_1d(x)
np.atleast_2d(x,x)
np.atleast_3d(x)
np.broadcast_to(x,(2,)+x.shape)
np.broadcast_to(x,x.shape)
np.broadcast_arrays(x,1)
np.broadcast_arrays(x,x[...,None])
np.flip(x)
np.flip(x,0)
np.flip(x,(0,1))
np.fliplr(x)
np.flipud(x)
np.rot90(x)
np.rot90(x,2)
np.rot90(x,-1,(1,0))
np.roll(x,1)
np.roll(x,-2,axis=0)
np.roll(x,(1,2),axis=(0,1))
np.roll(x,1,axis=(0,1))
np.repeat(x,2)
np.repeat(x,2,axis=0)
np.repeat(x,[1,2,0],axis=0)
np.tile(x,2)
np.tile(x,(2,1))
np.tile(x,(2,1,2))
np.pad(x,1)
np.pad(x,((0,1),(2,0)))
np.pad(x,1,constant_values=3)
np.pad(x,(1,2),mode='edge')
np.pad(x,1,'reflect')
np.pad(x,2,'wrap')
np.pad(x,1,'symmetric')
np.pad(x,1,'mean')
np.pad(x,1,'linear_ramp',end_values=2)
np.concatenate([x,x])
np.concatenate((x,x),axis=-1)
np.concatenate([x,x],axis=None)
np.concatenate([x,[[1,2,3,4]]])
np.concatenate([x,x],dtype='f4')
np.concat([x,x],0)
np.stack([x,x])
np.stack([x,x],-1)
np.stack((x,x+1,x),axis=1)
np.vstack([x,x])
np.vstack((x,1))
np.hstack([x,x])
np.dstack([x,x])
np.column_stack([x,x])
np.append(x,1)
np.append(x,x,axis=0)
np.append(x,[5,6])
np.insert(x,0,1)
np.delete(x,0)
np.split(x,1)
np.split(x,[1,2])
np.split(x,2,axis=-1)
np.array_split(x,2)
np.array_split(x,3,axis=-1)
np.hsplit(x,2)
np.vsplit(x,[1])
np.dsplit(x,1)
np.unstack(x)
np.unstack(x,axis=1)
np.diag(x)
np.diag(x,1)
np.diagflat(x)
np.diagonal(x)
np.diagonal(x,-1)
np.diagonal(x,0,1,0)
np.trace(x)
np.trace(x,1)
np.trace(x,dtype='f4')
np.tril(x)
np.tril(x,-1)
np.triu(x,k=1)
np.tri(3)
np.meshgrid(x,[1,2])
np.meshgrid(x,[1,2],indexing='ij',sparse=True)
np.dot(x,x)
np.dot(x,2)
np.dot(x,x.T)
np.dot(x.T,x)
np.vdot(x,x)
np.inner(x,x)
np.outer(x,x)
np.matmul(x,x.T)
np.matmul(x,x)
x@x.T
np.tensordot(x,x)
np.tensordot(x,x,axes=1)
np.tensordot(x,x.T,1)
np.tensordot(x,x,axes=([0],[0]))
np.tensordot(x,x,0)
np.einsum('ij->ji',x)
np.einsum('ij,kj->ik',x,x)
np.einsum('ij,ij',x,x)
np.einsum('ii',x)
np.einsum('...j->...',x)
np.einsum(x,[0,1],[1,0])
np.einsum('ij,jk,kl->il',x,x.T,x,optimize=True)
np.kron(x,[1,2])
np.cross(x,x)
np.cross(x[:,:3],[1,2,3])
np.linalg.norm(x)
np.linalg.norm(x,1)
np.linalg.norm(x,2)
np.linalg.norm(x,np.inf)
np.linalg.norm(x,axis=0)
np.linalg.norm(x,axis=-1,keepdims=True)
np.linalg.norm(x,'fro')
np.linalg.norm(x,'nuc')
np.linalg.norm(x,axis=(0,1))
np.linalg.norm(x,0,axis=1)
np.linalg.norm(x,3,axis=1)
np.linalg.det(x)
np.linalg.inv(x)
np.linalg.solve(x,x)
np.linalg.solve(x,x[0])
np.linalg.slogdet(x)
np.linalg.qr(x)
np.linalg.qr(x,mode='r')
np.linalg.svd(x)
np.linalg.svd(x,full_matrices=False)
np.linalg.svd(x,compute_uv=False)
np.linalg.svd(x)[1]
np.linalg.eigh(x@x.T)
np.linalg.eigvalsh(x@x.T)
np.linalg.cholesky(x@x.T)
np.linalg.pinv(x)
np.linalg.matrix_power(x,3)
np.linalg.matrix_power(x,-1)
np.linalg.matrix_power(x,0)
np.linalg.trace(x)
np.linalg.diagonal(x)
np.linalg.outer(x,x)
np.linalg.matmul(x,x.T)
np.linalg.tensordot(x,x,axes=1)
np.linalg.cross(x,x)
np.linalg.vector_norm(x)
np.linalg.matrix_norm(x)
np.zeros_like(x)
np.ones_like(x,dtype='i4')
np.full_like(x,3)
np.full_like(x,3.7)
np.full_like(x,300)
np.empty_like(x).shape
np.arange(3,dtype=x.dtype)
np.full((2,)+x.shape,x)
np.array(x)
np.array([x,x])
np.array(x,dtype='f4')
np.array(x,ndmin=3)
np.array(x,copy=True,order='F')
np.asarray(x,'c16')
np.asanyarray(x)
np.copy(x)
np.astype(x,'f4')
x.astype('i1')
x.astype(bool)
x.astype('U5')
x.astype(object)
np.add.reduce(x)
np.add.reduce(x,axis=None)
np.add.reduce(x,-1,keepdims=True)
np.multiply.reduce(x,axis=(0,1))
np.maximum.reduce(x)
np.minimum.reduce(x,axis=1,initial=0)
np.logical_and.reduce(x)
np.logical_or.reduce(x,axis=-1)
np.subtract.reduce(x)
np.bitwise_or.reduce(x)
np.bitwise_and.reduce(x,axis=None)
np.hypot.reduce(x)
np.logaddexp.reduce(x)
np.add.accumulate(x)
np.add.accumulate(x,axis=-1)
np.multiply.accumulate(x,0)
np.maximum.accumulate(x)
np.maximum.accumulate(x,axis=1)
np.minimum.accumulate(x)
np.subtract.accumulate(x)
np.logical_or.accumulate(x)
np.add.outer(x,[1,2])
np.subtract.outer([1,2],x)
np.multiply.outer(x,x)
np.maximum.outer(x,2)
np.add.reduceat(x,[0,1])
np.add(x,1,dtype='f4')
np.add(x,1,casting='unsafe',dtype='i4')
np.add(x,1,casting='no')
np.add(x,1,where=x>0)
np.add(x,1,subok=False)
np.add(x,1,order='F')
np.add(x,1,signature='dd->d')
np.sqrt(np.abs(x),dtype='f8')
np.sin(x=x)
np.add(x1=x,x2=1)
np.power(x,2)
np.power(x,-1)
np.power(x,.5)
np.power(2,x)
np.float_power(x,2)
x**2
x**-1
x**0.5
x**3
x**x
2**x
x**np.int8(2)
x//0
x%0
x/0
1/x
x<<2
x>>1
~x
-x
+x
abs(x)
x&1
x|True
x^x
x==x
x!=1
x<[1,2,3,4]
x+[1,2,3,4]
[1,2,3,4]-x
x+1j
x+True
x+2**40
x+300
x-300
x*1e300
x+np.float32(1)
x+np.float64(1)
x+np.int8(1)
x+np.array(1.0)
x+np.uint64(1)
np.uint64(1)-x
x.mean(axis=0)
x.sum(axis=-1,keepdims=True)
x.std(0,ddof=1)
x.cumsum(0)
x.max(1)
x.argmax(0)
x.argsort(0)
x.clip(0,1)
x.clip(min=0)
x.round(1)
x.round(decimals=1)
x.reshape(2,-1)
x.reshape((2,-1))
x.reshape([2,-1])
x.reshape(-1,order='F')
x.transpose(1,0)
x.transpose((1,0))
x.transpose([1,0])
x.transpose(None)
x.T
x.mT
x.swapaxes(0,1)
x.ravel('F')
x.flatten('F')
x.squeeze()
x.repeat(2,0)
x.repeat([2,1,1],axis=0)
x.take([0,1],axis=0)
x.take([0,1])
x.choose([x,x])
x.diagonal(1)
x.trace(1)
x.dot(x.T)
x.conj()
x.conjugate()
x.real
x.imag
x.ptp()
x.prod(0)
x.any(0)
x.all(axis=None)
x.nonzero()
x.compress([True,False],axis=0)
x.searchsorted(2)
x.partition(1)
x.argpartition(1,axis=0)
x.sort()
x.fill(2)
x.item(0)
x.var(-1,keepdims=True)
x.min(initial=-3,axis=0)
x.sum(where=x>0)
x[0]
x[-1]
x[...,0]
x[:,0]
x[::-1]
x[1:,::2]
x[None,...,None]
x[0,0]
x[[0,1]]
x[[0,-1],[1,1]]
x[np.array([[0],[1]]),[0,1]]
x[:, [0,2]]
x[[True,False,True]]
x[np.ones(x.shape,bool)]
x[x>0]
x[(slice(None),0)]
x[np.newaxis,0]
x[1:1]
x[5:]
x[-5:5]
x[0,...]
x[()]
x[...]
x[np.int64(0)]
x[np.array(0)]
x[True]
x[False]
x[:,True]
x[None,[0,1]]
x[0][0]
x[[[0,1],[1,0]]]
x[np.array([0,1],'u1')]
x[np.array([0.,1.])]
x[1.5]
x['a']
x[0,0,0,0]
x[10]
x[[10]]
x[:,:,None,:1]
x.astype("f4", copy=False)
np.ascontiguousarray(x)
np.asfortranarray(x)
x.astype("i8", casting="unsafe")
x.argpartition(1)
x.cumprod(0)
np.put_along_axis(x, np.array([[0]]), 5, 0)
np.putmask(x, x > 1, 0)
np.fill_diagonal(x, 5)
np.copyto(x, 1, where=x > 1)
np.add.at(x, [0, 0], 1)
np.random.default_rng(3).normal(size=2)
np.identity(3)
np.eye(3, 4, 1)
np.ones((2, 3), "i4")
np.zeros(3)
np.empty((0, 2))
np.full(3, 2.5)
np.full((2, 2), 7, order="F")
np.linspace(0, 1, 5)
np.logspace(0, 1, 3)
np.geomspace(1, 8, 4)
np.arange(2, 9, 3)
np.indices((2, 3))
np.row_stack((x, x))
np.trapz(x)
np.shape(x)
np.size(x)
np.ndim(x)
np.result_type(x, 1.0)
np.iscomplexobj(x)
x == None
x * [1, 2, 3, 4]
round(x)
np.float32(2) * x
divmod(x, 2)
x.sum()[()]
x.sum()[...]
x.sum()[None]
x[0].copy(order="F")
x.ravel()[::2].ravel()
"""
UFUNCS = sorted({op for op in ops.RECORDED if isinstance(getattr(np, op, None), np.ufunc)})
DTYPES = "? i1 u1 i4 i8 u8 f2 f4 f8 c8 c16".split()
SCALARS: list[Any] = [
    True, 3, -1, 300, 2**40, 2**70, 0.5, -0.0, 1j, np.float32(2), np.int8(-1), np.uint64(2),
    np.array(2), np.nan, [1, 2, 3],
]  # fmt: skip


def function_of(expression: str) -> Any:
    namespace: dict[str, Any] = {"np": np, "__name__": "the_user"}
    exec(compile(f"def f(x, y=None):\n    return {expression}\n", "<table>", "exec"), namespace)
    return namespace["f"]


def equal_or_taught(expression: str, *arguments: Any) -> bool:
    """Whether it is recorded; if so, or if eager NumPy raises, the two agree."""
    function = function_of(expression)
    expected = outcome(function, arguments, {})
    try:
        found = outcome(mg.jit(function), arguments, {})
    except MinigraphError:
        return False
    named = f"{expression} of {arguments!r}"
    if isinstance(expected[0][0], type) and issubclass(expected[0][0], Exception):
        assert isinstance(found[0][0], type) and issubclass(found[0][0], expected[0][0]), named
        assert found[1:] == expected[1:], named
    else:
        assert found == expected, named
    return True


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_as_eagerly_or_an_error(expression: str) -> None:
    for argument in ARGUMENTS.values():
        equal_or_taught(expression, argument)


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_of_every_dtype(name: str) -> None:
    count = getattr(np, name).nin
    arrays = [ARGUMENTS["i8"].astype(dtype) for dtype in DTYPES]
    if count == 1:
        recorded = [equal_or_taught(f"np.{name}(x)", x) for x in arrays + SCALARS]
    else:
        rows = [x[:, :3] if getattr(np, name).signature is None else x[:, :3].T for x in arrays]
        recorded = [
            equal_or_taught(f"np.{name}(x, y)", x, y)
            for index, x in enumerate(rows)
            for y in [*rows[index % 3 :: 3], *SCALARS[index % 4 :: 4]]
        ]
        recorded += [
            equal_or_taught(f"np.{name}(y, x)", x, y) for x, y in zip(rows, SCALARS, strict=False)
        ]
    assert any(recorded)


def test_no_name_is_left_out() -> None:
    """Of each op and composite at least one name stands in the table."""
    found: dict[Any, bool] = {}
    for name, meaning in {**ops.RECORDED, **COMPOSITES}.items():
        if "__" in name:
            continue  # operators have tests of their own
        method = name.startswith("ndarray.")
        pattern = rf"[x)]\{name[7:]}\b" if method else rf"np\.{re.escape(name)}\("
        known = found.get(meaning, False) or name in UFUNCS
        found[meaning] = known or re.search(pattern, EXPRESSIONS) is not None
    left_out = [meaning for meaning, known in found.items() if not known]
    assert not left_out
