"""What the tests of the Numba backend share."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def default_backend() -> None:
    """`mg.jit` compiles with Numba, as it does for users."""
