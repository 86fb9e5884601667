"""A set of runs and where their results go."""

from dataclasses import dataclass
from typing import Literal

from grokscope.specs.membership import Membership
from grokscope.specs.run import RunSpec
from grokscope.specs.spec import Spec, require

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan(Spec):
    """What a worker needs to know."""

    out: str
    """The folder of results."""
    runs: tuple[RunSpec, ...]
    """What is to be run."""
    device: str = "cpu"
    """`cpu`, `cuda`, or `cuda:1`."""
    keep: Literal["weights", "state", "forks", "none"] = "weights"
    """Checkpoints: weights at the cadence and full states where a run can be continued; every full state; full states
    at listed steps only, where forks begin; none."""
    stop_after_grokking: int | None = None
    """Steps after which a grokked run ends; None runs to the last step. Leads are then biased: FSD may cross later."""
    measures: tuple[str, ...] = ()
    """What is measured at every checkpoint while the weights are at hand, by name; `fsd@sum` and `fsd@additive` read by
    sums or in that basis, and tasks that have neither go without."""
    milestones: tuple[str, ...] = ()
    """What is measured at two checkpoints only, because it is dear: the first at or after grokking, and the last."""
    measured: tuple[str, ...] = ()
    """Content hashes of the runs that are measured; all of them if empty."""
    deterministic: bool = False
    """Refuse any operation whose result may differ between two runs on one accelerator."""

    made_for: tuple[tuple[Membership, ...], ...] = ()
    """For each run, in order, the places it has in studies; empty where the plan belongs to none."""

    def check(self) -> None:
        """A folder, at least one run, a sensible stop."""
        require(self.out != "", "out must be a folder", self.out)
        require(len(self.runs) >= 1, "a plan needs at least one run", self.runs)
        require(len(self.made_for) in (0, len(self.runs)), "made_for has an entry for each run", len(self.made_for))
        early = self.stop_after_grokking
        require(early is None or early >= 0, "stop_after_grokking must be at least 0", early)
