"""The pages are run as users run them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def default_backend() -> None:
    """`mg.jit` compiles with Numba where that can be imported, as it does for users."""
