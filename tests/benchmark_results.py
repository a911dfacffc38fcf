"""Made-up results of benchmarks, as their file has them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

OURS, NUMPY, TORCH = "minigraph numba", "NumPy", "torch eager"
ROUNDS, SAMPLES = 3, 4
DAY = "2026-11-30T12:00:00+00:00"

MEMORY = {"import_bytes": 90_000_000, "first_call_bytes": 9_000_000, "beyond_bytes": 8_000_000}

Document = dict[str, Any]


def runner(name: str, **more: Any) -> Document:
    framework = "" if name.startswith(("minigraph", "NumPy", "Numba")) else name.split()[0]
    return {
        "framework": framework.split(".")[0].lower(),
        "about": f"about {name}",
        "versions": {(name.split()[0].split(".")[0]): "1.2.3"},
        "threads": "2",
        "baseline": None,
        "missing": None,
        "ablation": " without " in name or name.endswith(" whole"),
        **more,
    }


def workload(name: str, **more: Any) -> Document:
    return {
        "title": f"the work {name}",
        "family": name.partition("-")[0],
        "kind": "inference",
        "size": 1000,
        "operations": 9000,
        "products": False,
        "dtype": "float32",
        "tolerance": 1e-4,
        **more,
    }


def samples(median_s: float, spread: float = 0.01) -> list[list[float]]:
    """Rounds of samples around a median; `spread` is about the range between the quartiles."""
    steps = np.linspace(-1, 1, ROUNDS * SAMPLES) * spread * median_s
    return (median_s + steps).reshape(ROUNDS, SAMPLES).tolist()


def cell(workload: str, runner: str, median_s: float | None, **more: Any) -> Document:
    """Measured, if a duration is given."""
    spread = more.pop("spread", 0.01)
    there = median_s is not None
    return {
        "workload": workload,
        "runner": runner,
        "status": "measured" if there else "not written",
        "message": "",
        "error": 1e-7 if there else None,
        "prepare_s": 0.01 if there else None,
        "first_call_s": 0.25 if there else None,
        "import_s": 0.5 if there else None,
        "warm_up": {"calls": 100, "stable": True} if there else None,
        "calls_per_sample": 10 if there else 1,
        "samples_s": samples(median_s, spread) if median_s is not None else [],
        "memory": dict(MEMORY) if there else None,
        "details": {},
        **more,
    }


def document(
    cells: Sequence[Document],
    workloads: Mapping[str, Document] | None = None,
    runners: Iterable[Document] = (),
    **more: Any,
) -> Document:
    """Results with these cells; workloads and runners that are not given are made up."""
    named = list(dict.fromkeys(each["workload"] for each in cells))
    columns = list(dict.fromkeys(each["runner"] for each in cells))
    return {
        "schema": 1,
        "kind": "custom",
        "started": DAY,
        "finished": DAY,
        "interrupted": False,
        "commit": "0123456789abcdef",
        "dirty": False,
        "machine": {
            "processor": "A Processor",
            "cores": 2,
            "memory_bytes": 8_000_000_000,
            "system": "Linux 6",
            "python": "3.11.9",
        },
        "threads": 2,
        "load": [0.5, 1.5],
        "method": {
            "rounds": ROUNDS,
            "samples": SAMPLES,
            "sample_s": 0.01,
            "others_stopped": True,
            "environment": {},
        },
        "roofs": None,
        "scale": 1.0,
        "runners": {name: runner(name) for name in columns} | dict(runners),
        "workloads": {name: workload(name) for name in named} | dict(workloads or {}),
        "cells": list(cells),
        **more,
    }


def read(known: Document) -> Any:
    """The results that a file of this document has."""
    from benchmarks.harness import results

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        path.write_text(json.dumps(known, allow_nan=False), encoding="utf-8")
        return results.load(path)
