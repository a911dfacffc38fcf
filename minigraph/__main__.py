"""`python -m minigraph` is the command `minigraph`."""

from minigraph.cli import main

if __name__ == "__main__":
    main(prog_name="minigraph")
