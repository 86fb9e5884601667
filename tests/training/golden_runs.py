"""Two small runs on pair tables, and digests of all that they consist of.

The last bits of a product depend on the processor: PyTorch, MKL and oneDNN choose their kernels by its instructions.
So digests of trained weights are kept for each kind of machine on which they were recorded; and once for the
`PORTABLE` instructions, which every x86-64 processor has and to which all three can be held. A set is added only from
a commit that is known to have the bits: the first ones are of 844310c, the last with pair tables alone, and there and
here they agreed under each of eight settings of these variables.

    PYTHONPATH=src:tests/training python tests/training/golden_runs.py  # adds what this machine finds
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from grokscope.measures import snapshot
from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.training import Cohort, advance, initial_state
from grokscope.training.batches import batches

RECORD = Path(__file__).with_suffix(".json")
SMALL = Architecture(layers=2, width=16, heads=2, mlp_width=32)
TRAINING = Training(steps=200, batch_size=16, weight_decay=1.0)
RUNS = {
    "add_mod7": RunSpec("add_mod7", 0.5, architecture=SMALL, training=TRAINING, measurements=Cadence(100)),
    "S3": RunSpec("S3", 0.7, architecture=SMALL, training=TRAINING, measurements=Cadence(100)).with_seed(3),
}


PORTABLE = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OMP_NUM_THREADS": "1",
}


def library() -> str:
    """What the bits of `PORTABLE` instructions may depend on."""
    return f"{platform.machine()}, {torch.__version__}, {torch.get_num_threads()}"


def machine() -> str:
    """What the bits of this machine's instructions may depend on: a processor's name alone may be that of several."""
    cpu = Path("/proc/cpuinfo")
    about = cpu.read_text() if cpu.exists() else ""
    found = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", about, re.MULTILINE))
    kind = ", ".join(f"{name} {found[name]}" for name in ("model name", "cpu family", "model") if name in found)
    return f"{library()}, {torch.backends.cpu.get_cpu_capability()}, {kind}"


def digests(spec: RunSpec) -> dict[str, str]:
    """What is learnt, by name, of which nothing depends on the machine: spec, tables and batches."""
    tables, train = Cohort([spec]).tables, Cohort([spec]).tables.train_count[0]
    seeds, first = torch.tensor([spec.seeds.data_order]), torch.tensor([0])
    order, _ = batches(seeds, first, 40, train, 16, replacement=False)
    parts = [tables.tokens, tables.answers, tables.labels, tables.is_train, tables.train_rows, order]
    return {"spec": spec.content_hash, "data": _digest(*(part.long().numpy() for part in parts))}


def trained_digests(spec: RunSpec) -> dict[str, str]:
    """Weights before and after 200 steps, and what the log has of them, which may depend on the machine."""
    cohort = Cohort([spec])
    state, rows = initial_state(cohort), []
    begin = _digest(state.weights.numpy())
    for _ in range(3):
        rows.append(snapshot(state.weights, cohort).row(0))
        state, _ = advance(state, cohort, 100)
    logged = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    return {"begin": begin, "weights": _digest(state.weights.numpy(), state.second.numpy()), "log": logged}


def _digest(*arrays: np.ndarray) -> str:
    joined = hashlib.sha256()
    for array in arrays:
        joined.update(np.ascontiguousarray(array).tobytes())
    return joined.hexdigest()


def portable_digests() -> dict[str, dict[str, str]]:
    """`trained_digests` of all runs in a process that is held to `PORTABLE` instructions."""
    words = [sys.executable, __file__, "--portable"]
    found = subprocess.run(words, capture_output=True, text=True, env=os.environ | PORTABLE, timeout=300)
    assert found.returncode == 0, found.stderr[-2000:]
    portable: dict[str, dict[str, str]] = json.loads(found.stdout)
    return portable


if __name__ == "__main__":
    trained = {name: trained_digests(spec) for name, spec in RUNS.items()}
    if "--portable" in sys.argv:
        print(json.dumps(trained))
    else:
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {"native": {}, "portable": {}}
        record["data"] = {name: digests(spec) for name, spec in RUNS.items()}
        record["native"][machine()] = trained
        record["portable"][library()] = portable_digests()
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
