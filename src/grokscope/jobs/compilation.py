"""Which steps of a run are compiled: the run's own, its model and its batch decide, and its budget never does.

Compiled arithmetic rounds differently. On a CPU, compiling takes about as long as the first hundreds of steps of the
paper's network, or the first thousands of a small one, and a compiled step takes about half as long. So these first
steps are not compiled and all later ones are: a run of 2,000 steps is the beginning of the run of 8,000, bit for bit,
and one that resumes or is forked goes on as it began.
"""

import os
import shutil
import sys
from dataclasses import dataclass

from grokscope.model import layout_of
from grokscope.runs.outcome import RunOutcome
from grokscope.specs import RunSpec
from grokscope.training import CohortKey, cohort_key

__all__ = ["Compilation", "compilation_of", "compilation_when_trained", "plain_steps"]

# In multiply-adds: what takes as long without the compiler as compiling does, which is half a minute on one core, and
# what a step costs however small the network is.
WORK_BEFORE = 1.5e12
WORK_OF_ANY_STEP = 1e8
PASSES = 3  # forward, and backward to activations and to weights


@dataclass(frozen=True)
class Compilation:
    """Which steps of a run are compiled."""

    asked: bool | None
    """All or none; None leaves it to `start`, or on an accelerator to the kernels."""
    start: int | None = None
    """The step from which on all are, on a CPU."""

    def after(self, step: int) -> bool | None:
        """Whether the steps after this one are."""
        return self.asked if self.start is None else step >= self.start

    def until(self, step: int) -> bool | None:
        """Whether the step that led here was: an evaluation is computed like it."""
        return self.after(step - 1)


def compilation_of(spec: RunSpec, device: str, asked: bool | None) -> Compilation:
    """Which steps of a run are compiled, if nobody asks for all or none.

    >>> spec = RunSpec("add_mod97")
    >>> longer = spec.with_values({"steps": 10 * spec.training.steps})
    >>> compilation_of(spec, "cpu", None) == compilation_of(longer, "cpu", None)
    True
    """
    if asked is not None or device != "cpu":
        return Compilation(asked)
    return Compilation(None, plain_steps(cohort_key(spec))) if _has_compiler() else Compilation(asked=False)


def compilation_when_trained(spec: RunSpec, device: str, asked: bool | None, outcome: RunOutcome) -> Compilation:
    """Which steps of a run were compiled, if it has ended and says so: those it takes again are to have the same bits.

    >>> ended = RunOutcome("grokked", layout={"compiled": True})  # all of them, as in earlier versions
    >>> compilation_when_trained(RunSpec("add_mod97"), "cpu", None, ended)
    Compilation(asked=True, start=None)
    """
    layout = outcome.layout or {}
    if asked is None and device == "cpu" and "compiled" in layout and not layout.get("kernels"):
        start = layout.get("compiled_from")
        return Compilation(bool(layout["compiled"])) if start is None else Compilation(None, start)
    return compilation_of(spec, device, asked)


def plain_steps(key: CohortKey) -> int:
    """How many steps on a CPU are not compiled: w / (3BLP + w₀) of B rows of L tokens and P parameters.

    >>> from grokscope.specs import Architecture
    >>> small = RunSpec("add_mod31", architecture=Architecture(layers=1, width=64, heads=2, mlp_width=128))
    >>> plain_steps(cohort_key(RunSpec("add_mod97"))) < plain_steps(cohort_key(small))
    True
    """
    parameters = layout_of(key.architecture, key.sizes).size
    products = PASSES * key.batch * max(1, key.sizes.length) * parameters
    return round(WORK_BEFORE / (products + WORK_OF_ANY_STEP))


def _has_compiler() -> bool:
    """Whether torch finds the C++ compiler that it needs."""
    usual = "clang++" if sys.platform == "darwin" else "cl" if sys.platform == "win32" else "g++"
    return shutil.which(os.environ.get("CXX", usual)) is not None
