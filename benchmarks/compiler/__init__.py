"""What minigraph's compiler itself costs, besides the work."""
