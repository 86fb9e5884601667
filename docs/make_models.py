"""Trains the paper's model on the named operations until it has grokked, and puts it into `results/checkpoints`.

`python docs/make_models.py sub_mod97`: for operations of which a reproduction kept no grokked model.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from grokscope.studies.reproduction import records_in

from grokscope.cli.plans import run_with_progress
from grokscope.runs import Store
from grokscope.specs import Plan
from grokscope.studies.synchronization.experiments import base_run
from grokscope.studies.synchronization.models import MODELS, save_models

SEED = 42
SETTLING = 500  # steps after grokking, in which the last pairs come right


def main(tasks: list[str]) -> None:
    """Train and save."""
    for task in tasks:
        if task not in MODELS:
            raise SystemExit(f"no model is kept of {task!r}; there are {', '.join(MODELS)}")
    with TemporaryDirectory() as folder:
        runs = tuple(base_run(task, SEED, "float32") for task in tasks)
        if not run_with_progress(Plan(folder, runs, "cpu", stop_after_grokking=SETTLING)):
            raise SystemExit("stopped; nothing is kept")
        store = Store(Path(folder))
        save_models(Path(__file__).parents[1] / "results" / "checkpoints", records_in(store), store)


if __name__ == "__main__":
    main(sys.argv[1:])
