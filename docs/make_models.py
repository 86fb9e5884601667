"""Trains the paper's model on the named operations until it has grokked, and saves it with the results of the study.

`python docs/make_models.py sub_mod97`: for operations of which a reproduction kept no grokked model.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from grokscope.cli.plans import run_with_progress
from grokscope.runs import Store
from grokscope.specs import Plan
from grokscope.studies.sources import stored_records
from grokscope.studies.synchronization.experiments import base_run
from grokscope.studies.synchronization.models import MODELS, save_models

FOLDER = Path(__file__).parents[1] / "results" / "synchronization" / "checkpoints"
SEED = 42
SETTLING = 500  # steps after grokking, in which the last pairs are learnt


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
        save_models(FOLDER, stored_records(store), store)


if __name__ == "__main__":
    main(sys.argv[1:])
