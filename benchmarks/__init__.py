"""Measurements: `python -m benchmarks.core`, from the top of the repository."""
