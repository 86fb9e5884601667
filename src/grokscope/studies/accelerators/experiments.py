"""The runs: each setting's arms, and what the steering study runs of the same families, tuned alike."""

from collections.abc import Callable
from dataclasses import replace

from grokscope.specs import Architecture
from grokscope.studies.accelerators.settings import SETTINGS, Arm, Setting, arm_runs
from grokscope.studies.run_set import Precision, Runs
from grokscope.studies.steering.experiments import EXPERIMENTS as STEERING

__all__ = ["EXPERIMENTS", "OWN", "SHARED", "quick_runs"]

SHARED = "published"  # of the steering study, whose part of that name packs these runs for this study too


def _experiment(name: str) -> Callable[[int | None, Precision], Runs]:
    def runs(n_seeds: int | None, precision: Precision) -> Runs:
        own = [one for one in SETTINGS.values() if one.experiment == name]
        return {key: run for setting in own for key, run in arm_runs(setting, n_seeds, precision).items()}

    return runs


OWN: dict[str, Callable[[int | None, Precision], Runs]] = {
    name: _experiment(name) for name in dict.fromkeys(one.experiment for one in SETTINGS.values())
}
EXPERIMENTS = OWN | {SHARED: STEERING[SHARED]}
# Of the first setting two arms with a small model on a small task: to see what the output is.
_QUICK: Setting = replace(
    SETTINGS["Grokfast"],
    task="add_mod17",
    train_fraction=0.7,
    architecture=Architecture(layers=1, width=32, heads=2, mlp_width=64),
    arms={arm: Arm(600, own.training) for arm, own in SETTINGS["Grokfast"].arms.items() if arm in ("Adam", "Grokfast")},
)


def quick_runs(precision: Precision = "float32") -> dict[str, Runs]:
    """Two arms with two seeds of a small model.

    >>> {name: len(runs) for name, runs in quick_runs().items()}
    {'grokfast': 4}
    """
    return {_QUICK.experiment: arm_runs(_QUICK, 2, precision)}
