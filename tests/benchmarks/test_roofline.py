"""The roofs are measured; how high they are is not asked."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.harness import roofline

pytest.importorskip("numba")

NAMES = {
    "threads",
    "l2_bytes",
    "dram_bytes_per_s",
    "l2_bytes_per_s",
    "float32_per_s",
    "float64_per_s",
    "matmul_per_s",
}


def test_each_roof_is_measured(monkeypatch: pytest.MonkeyPatch):
    small = {"DRAM_SIZE": 64, "L2_SIZE": 64, "L2_TIMES": 2, "VALUES": 64, "TIMES": 2, "SIDE": 8}
    for name, size in small.items():
        monkeypatch.setattr(roofline, name, size)
    found = roofline.measure(1)
    assert set(found) == NAMES and found["threads"] == 1
    assert all(rate > 0 for rate in found.values())


def test_the_kernels_compute_what_they_are_named_after():
    triad, triads, multiply_adds = roofline._kernels()
    b, c = np.arange(8.0), np.ones(8)
    a = np.zeros(8)
    triad(a, b, c, 0.5)
    assert (a == b + 0.5 * c).all()
    rows = np.zeros((2, 8))
    triads(rows, np.stack([b, b]), np.stack([c, c]), 0.5, 3)
    assert (rows == b + 2.5 * c).all()
    values = np.full((1, 4), 3.0)
    multiply_adds(values, 0.5, 2)
    wanted = 3.0
    for _ in range(2 * roofline.STEPS):
        wanted = 0.5 * wanted + 0.5
    assert (values == wanted).all()


@pytest.mark.slow
def test_in_a_process_of_its_own():
    found = roofline.roofs(1)
    assert set(found) == NAMES and found["threads"] == 1


def test_why_they_could_not_be_measured():
    with pytest.raises(RuntimeError, match="could not be measured: ValueError: "):
        roofline.roofs(0)
