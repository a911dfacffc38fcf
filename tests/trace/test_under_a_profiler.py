"""Under a profiler a script is not the module `__main__`: what it defines is still the user's."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import numpy as np
import minigraph as mg

class Scale:
    def __init__(self, by):
        self.by = by

scale = Scale(2.0)

@mg.jit(backend="python")
def f(x):
    return x * scale.by

print(f(np.ones(1)))
scale.by = 3.0
print(f(np.ones(1)))
"""


def test_a_changed_attribute_is_seen(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = [sys.executable, "-m", "cProfile", str(script)]
    shown = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert shown.startswith("[2.]\n[3.]\n")
