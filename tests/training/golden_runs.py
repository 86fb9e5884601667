"""Two small runs on pair tables, and digests of all that they consist of."""

import hashlib
import json
import platform
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


def machine() -> str:
    """What the last bits of a product may depend on."""
    cpu = Path("/proc/cpuinfo")
    model = cpu.read_text().partition("model name")[2].partition("\n")[0].strip(": \t") if cpu.exists() else ""
    numbers = (torch.__version__, torch.backends.cpu.get_cpu_capability(), str(torch.get_num_threads()))
    return ", ".join((platform.machine(), model, *numbers))


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


if __name__ == "__main__":
    found = {name: digests(spec) for name, spec in RUNS.items()}
    trained = {name: trained_digests(spec) for name, spec in RUNS.items()}
    RECORD.write_text(json.dumps({"data": found, "machine": machine(), "trained": trained}, indent=1) + "\n")
