"""Minigraph against other frameworks: what is computed, how each runs it, and how long it takes.

python -m benchmarks.against
"""
