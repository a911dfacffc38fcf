"""The Numba backend: fused loops as Numba kernels, driven by one compiled function."""
