"""Runs the runners: who is measured when, in processes of their own, and what comes of it."""
